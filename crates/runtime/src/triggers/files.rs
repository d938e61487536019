//! Changes of files below a folder.
//!
//! A watch only says that something may have changed in a folder. What changed is found by a look
//! at all files, compared with the look before; so events that the kernel merged or lost do no
//! harm. Hidden files and what `.gitignore` names are neither watched nor looked at, and links are
//! not followed.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use gyrus_journal::{
    FolderWatch,
    os::watch::{self},
};
use serde_json::{Value, json};

use super::config::FileGlobs;

/// Maximum number of folders that one trigger watches.
pub const MAX_FOLDERS: usize = 2_000;

/// Maximum number of files that one trigger compares.
pub const MAX_FILES: usize = 50_000;

/// Maximum number of names in an event, and of their bytes.
const MAX_NAMED: usize = 100;
const MAX_NAMED_BYTES: usize = 32 << 10;

#[derive(Debug, thiserror::Error)]
pub(super) enum WatchFilesError {
    #[error(
        "there are more than {MAX_FOLDERS} folders; name what is not to be watched in .gitignore"
    )]
    TooManyFolders,
    #[error("there are more than {MAX_FILES} files; name what is not to be watched in .gitignore")]
    TooManyFiles,
    #[error("{} cannot be watched: {source}", folder.display())]
    Unwatched { folder: PathBuf, source: io::Error },
    #[error("{source}")]
    Unreadable { source: ignore::Error },
}

/// The state of the files at one time: a hash of what the system says of each, by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FilesLook(BTreeMap<PathBuf, u64>);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileDifferences {
    changed: Vec<PathBuf>,
    removed: Vec<PathBuf>,
}

pub(super) struct Watches(FuturesUnordered<BoxFuture<'static, FolderWatch>>);

impl Watches {
    fn new(watches: Vec<FolderWatch>) -> Self {
        Self(watches.into_iter().map(changed).collect())
    }

    /// Waits until a file may have changed.
    pub(super) async fn changed(&mut self) {
        match self.0.next().await {
            Some(watch) => self.0.push(changed(watch)),
            None => std::future::pending().await,
        }
    }
}

fn changed(mut watch: FolderWatch) -> BoxFuture<'static, FolderWatch> {
    async move {
        watch.changed().await;
        watch
    }
    .boxed()
}

/// Watches all folders and reads all files. Each folder is watched before it is read, so nothing is
/// missed in between. The watches are good for trying again also where there is an error. Blocks
/// for the disk.
pub(super) fn look(
    folder: &Path,
    globs: &FileGlobs,
) -> (Result<FilesLook, WatchFilesError>, Watches) {
    let mut watches = Vec::new();
    let look = watch_and_look(folder, globs, &mut watches);
    (look, Watches::new(watches))
}

fn watch_and_look(
    folder: &Path,
    globs: &FileGlobs,
    watches: &mut Vec<FolderWatch>,
) -> Result<FilesLook, WatchFilesError> {
    let mut look = FilesLook::default();
    if !folder.is_dir() {
        // It may come back: whatever is there of its path is watched.
        let above = folder.ancestors().skip(1).find(|above| above.is_dir());
        if let Some(above) = above {
            watches.extend(watch::watch(above).ok());
        }
        // In between it may have appeared.
        if !folder.is_dir() {
            return Ok(look);
        }
    }
    // A folder that is named by a link is meant itself.
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // Outside of a repository, what stands above the folder has nothing to say.
    let is_in_repository = folder.ancestors().any(|above| above.join(".git").exists());
    let walk = ignore::WalkBuilder::new(folder)
        .require_git(false)
        .parents(is_in_repository)
        .ignore(false)
        .git_global(false)
        .build();
    for entry in walk {
        let entry = match entry {
            Ok(entry) => entry,
            // What goes while it is looked at is gone, and what may not be read cannot be watched.
            Err(error) if is_gone(&error) => continue,
            Err(source) => return Err(WatchFilesError::Unreadable { source }),
        };
        let Some(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            if watches.len() >= MAX_FOLDERS {
                return Err(WatchFilesError::TooManyFolders);
            }
            match watch::watch(entry.path()) {
                Ok(watch) => watches.push(watch),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    let folder = entry.path().to_owned();
                    return Err(WatchFilesError::Unwatched { folder, source });
                }
            }
            continue;
        }
        let Ok(path) = entry.path().strip_prefix(folder) else {
            continue;
        };
        if !globs.has(path) {
            continue;
        }
        if look.0.len() >= MAX_FILES {
            return Err(WatchFilesError::TooManyFiles);
        }
        if let Ok(metadata) = entry.metadata() {
            look.0.insert(path.to_owned(), stamp(&metadata));
        }
    }
    Ok(look)
}

fn is_gone(error: &ignore::Error) -> bool {
    error
        .io_error()
        .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn stamp(of: &Metadata) -> u64 {
    let parts = [
        of.ino(),
        of.size(),
        of.mtime().cast_unsigned(),
        of.mtime_nsec().cast_unsigned(),
        of.ctime().cast_unsigned(),
        of.ctime_nsec().cast_unsigned(),
    ];
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&part.to_le_bytes());
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

impl FilesLook {
    /// Returns a hash of the files' state, prefixed by the settings by which they were found.
    pub(super) fn fingerprint(&self, settings: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, stamp) in &self.0 {
            hasher.update(path.as_os_str().as_encoded_bytes());
            hasher.update(b"\0");
            hasher.update(&stamp.to_le_bytes());
        }
        format!("{settings}-{}", &hasher.finalize().to_hex()[..32])
    }

    /// Returns the changes since an earlier look; `None` if there are none.
    pub(super) fn since(&self, before: &FilesLook) -> Option<FileDifferences> {
        let changed = self
            .0
            .iter()
            .filter(|(path, stamp)| before.0.get(*path) != Some(stamp));
        let removed = before.0.keys().filter(|path| !self.0.contains_key(*path));
        let changes = FileDifferences {
            changed: changed.map(|(path, _)| path.clone()).collect(),
            removed: removed.cloned().collect(),
        };
        (changes != FileDifferences::default()).then_some(changes)
    }
}

impl FileDifferences {
    /// Returns the payload of an event about the first changes.
    pub(super) fn payload(&self, trigger: &str) -> Value {
        let (mut named, mut bytes) = (0, 0);
        let mut names = |paths: &[PathBuf]| -> Vec<String> {
            let texts = paths.iter().map(|path| path.to_string_lossy().into_owned());
            texts
                .take_while(|text| {
                    bytes += text.len();
                    let fits = named < MAX_NAMED && bytes <= MAX_NAMED_BYTES;
                    named += usize::from(fits);
                    fits
                })
                .collect()
        };
        let (changed, removed) = (names(&self.changed), names(&self.removed));
        let more = self.changed.len() + self.removed.len() - named;
        json!({"trigger": trigger, "changed": changed, "removed": removed, "more": more})
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn seen(folder: &Path, globs: &FileGlobs) -> FilesLook {
        look(folder, globs).0.unwrap()
    }

    fn told(before: &FilesLook, after: &FilesLook) -> Value {
        match after.since(before) {
            Some(changes) => changes.payload("t"),
            None => Value::Null,
        }
    }

    #[test]
    fn looks_tell_what_changed_and_leave_out_what_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/target")).unwrap();
        fs::write(at(".gitignore"), "target/\n*.log\n").unwrap();
        let all = FileGlobs::default();
        let first = seen(folder.path(), &all);
        for ignored in ["sub/target/x", "a.log", ".hidden"] {
            fs::write(at(ignored), "1").unwrap();
        }
        let second = seen(folder.path(), &all);
        assert_eq!(told(&first, &second), Value::Null);
        assert_eq!(first.fingerprint("s"), second.fingerprint("s"));
        fs::write(at("sub/b.txt"), "1").unwrap();
        fs::write(at("a.pdf"), "1").unwrap();
        let third = seen(folder.path(), &all);
        let expected =
            json!({"trigger": "t", "changed": ["a.pdf", "sub/b.txt"], "removed": [], "more": 0});
        assert_eq!(told(&second, &third), expected);
        fs::write(at("a.pdf"), "22").unwrap();
        fs::remove_file(at("sub/b.txt")).unwrap();
        let fourth = seen(folder.path(), &all);
        let expected =
            json!({"trigger": "t", "changed": ["a.pdf"], "removed": ["sub/b.txt"], "more": 0});
        assert_eq!(told(&third, &fourth), expected);
        assert_ne!(third.fingerprint("s"), fourth.fingerprint("s"));
        // A link to the folder is the folder.
        let links = tempfile::tempdir().unwrap();
        let link = links.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(seen(&link, &all), fourth);
        let globs = |patterns: &[&str]| {
            let patterns = patterns.iter().map(|one| (*one).to_owned()).collect();
            FileGlobs::new(patterns).unwrap()
        };
        fs::write(at("sub/c.pdf"), "1").unwrap();
        for (patterns, count) in [
            (&["*.pdf"][..], 2),
            (&["/*.pdf"], 1),
            (&["sub/**"], 1),
            (&["*.txt", "c.*"], 1),
        ] {
            assert_eq!(
                seen(folder.path(), &globs(patterns)).0.len(),
                count,
                "{patterns:?}"
            );
        }
        // What stands above a folder counts only inside a repository.
        fs::write(at("sub/.gitignore"), "*.pdf\n").unwrap();
        fs::create_dir_all(at("sub/inner")).unwrap();
        fs::write(at("sub/inner/d.pdf"), "1").unwrap();
        assert_eq!(seen(&at("sub/inner"), &all).0.len(), 1);
        fs::create_dir(at(".git")).unwrap();
        assert_eq!(seen(&at("sub/inner"), &all).0.len(), 0);
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(seen(folder.path(), &all), FilesLook::default());
    }

    #[test]
    fn many_changes_are_counted() {
        let many = FileDifferences {
            changed: (0..150)
                .map(|number| PathBuf::from(number.to_string()))
                .collect(),
            removed: vec!["gone".into()],
        };
        let payload = many.payload("t");
        assert_eq!(payload["changed"].as_array().unwrap().len(), 100);
        assert_eq!(payload["removed"], json!([]));
        assert_eq!(payload["more"], 51);
    }
}
