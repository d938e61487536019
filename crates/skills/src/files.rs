//! The files of a skill, read once: the bytes that are hashed, shown and used are the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Component, Path},
};

use rustix::fs::OFlags;

/// Name of the file with the text of a skill, in its folder.
pub const SKILL_FILE: &str = "SKILL.md";

/// Maximum number of files of a skill, or of a package of skills.
pub(crate) const MAX_FILES: usize = 1_000;

/// Maximum size of one file in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 2 << 20;

/// Maximum total size of all files in bytes.
pub(crate) const MAX_TOTAL_BYTES: u64 = 16 << 20;

/// Maximum length of a path in bytes.
const MAX_PATH: usize = 240;

/// Maximum depth of folders.
const MAX_DEPTH: usize = 12;

/// Folders that do not belong to a skill.
const LEFT_OUT: [&str; 2] = [".git", "node_modules"];

/// The reason why files cannot be taken as a skill.
#[derive(Debug, thiserror::Error)]
pub enum SkillFilesError {
    /// A file or folder cannot be read or written.
    #[error("`{path}`: {source}")]
    Io {
        /// The path, within the skill.
        path: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A path that no skill may have.
    #[error("`{path}`: {reason}")]
    Path {
        /// The path within the skill, as found.
        path: String,
        reason: &'static str,
    },
    /// Two paths that some file systems cannot distinguish.
    #[error("`{path}` comes twice, perhaps in another letter case")]
    Twice {
        /// The second path.
        path: String,
    },
    /// The files exceed a limit.
    #[error("{what}; at most {most} can be taken")]
    TooMuch {
        /// Description of the excess.
        what: String,
        most: String,
    },
    /// An archive that is damaged, or of an unsupported form.
    #[error("the archive cannot be read: {0}")]
    Archive(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    pub bytes: Vec<u8>,
    /// Whether the file is executable.
    pub is_executable: bool,
}

/// Files by their paths, relative and with `/` between parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillFiles {
    files: BTreeMap<String, SkillFile>,
    /// Paths of files and folders without letter case.
    folded: BTreeSet<String>,
    total: u64,
}

impl SkillFiles {
    /// Reads the files of a folder. Symbolic links, pipes and devices in it are errors; `.git` and
    /// `node_modules` are left out.
    ///
    /// # Errors
    /// Something in it cannot be a part of a skill.
    pub fn read(folder: &Path) -> Result<Self, SkillFilesError> {
        let mut files = Self::default();
        files.read_below(folder, "")?;
        Ok(files)
    }

    /// Reads a single file, as the text of a skill.
    ///
    /// # Errors
    /// The file cannot be a part of a skill.
    pub fn single(file: &Path) -> Result<Self, SkillFilesError> {
        let mut files = Self::default();
        files.add(SKILL_FILE.to_owned(), read_file(file, SKILL_FILE)?)?;
        Ok(files)
    }

    fn read_below(&mut self, folder: &Path, below: &str) -> Result<(), SkillFilesError> {
        let failed = |source| SkillFilesError::Io {
            path: below.to_owned(),
            source,
        };
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            entries.push(entry.map_err(failed)?);
            if entries.len() > MAX_FILES {
                return Err(too_many_files());
            }
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let shown = name.to_string_lossy();
            let path = if below.is_empty() {
                shown.into_owned()
            } else {
                format!("{below}/{shown}")
            };
            let Some(name) = name.to_str() else {
                return Err(wrong(&path, "its name is not text"));
            };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                if LEFT_OUT.contains(&name) {
                    continue;
                }
                check_path(&path)?;
                self.read_below(&entry.path(), &path)?;
            } else if kind.is_file() {
                let file = read_file(&entry.path(), &path)?;
                self.add(path, file)?;
            } else {
                return Err(wrong(&path, of_another_kind(kind)));
            }
        }
        Ok(())
    }

    /// Adds a file under a path.
    ///
    /// # Errors
    /// Its path cannot be one of a skill's, or there is too much.
    pub fn add(&mut self, path: String, file: SkillFile) -> Result<(), SkillFilesError> {
        check_path(&path)?;
        let size = file.bytes.len() as u64;
        check_size(&path, size)?;
        self.total += size;
        if self.total > MAX_TOTAL_BYTES {
            return Err(SkillFilesError::TooMuch {
                what: format!("the files are larger than {MAX_TOTAL_BYTES} bytes together"),
                most: format!("{MAX_TOTAL_BYTES} bytes"),
            });
        }
        if self.files.len() >= MAX_FILES {
            return Err(too_many_files());
        }
        let folded = path.to_lowercase();
        let is_below = format!("{folded}/");
        let mut above = folded.as_str();
        let mut clashes = self.folded.contains(&folded)
            || self
                .folded
                .range(is_below.clone()..)
                .next()
                .is_some_and(|next| next.starts_with(&is_below));
        while let Some((folder, _)) = above.rsplit_once('/') {
            clashes |= self.folded.contains(folder);
            above = folder;
        }
        if clashes {
            return Err(SkillFilesError::Twice { path });
        }
        self.folded.insert(folded);
        self.files.insert(path, file);
        Ok(())
    }

    pub fn get(&self, path: &str) -> Option<&SkillFile> {
        self.files.get(path)
    }

    /// Returns the text at a path, if there is a file that is one.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.files.get(path)?.bytes).ok()
    }

    /// Returns all files with their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SkillFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the files below a folder, by their paths from there.
    pub fn below(&self, folder: &str) -> Self {
        let mut below = Self::default();
        let start = format!("{folder}/");
        for (path, file) in &self.files {
            if let Some(path) = path.strip_prefix(&start) {
                below.total += file.bytes.len() as u64;
                below.folded.insert(path.to_lowercase());
                below.files.insert(path.to_owned(), file.clone());
            }
        }
        below
    }

    /// Returns the files except those in folders that [`SkillFiles::read`] leaves out.
    pub(crate) fn without_left_out(self) -> Self {
        let is_left_out = |path: &str| path.split('/').any(|part| LEFT_OUT.contains(&part));
        let mut kept = Self::default();
        for (path, file) in self.files {
            if !is_left_out(&path) {
                kept.total += file.bytes.len() as u64;
                kept.folded.insert(path.to_lowercase());
                kept.files.insert(path, file);
            }
        }
        kept
    }

    /// Returns the hash of all paths and contents, in hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (path, file) in &self.files {
            // Lengths part the pieces, so that no two sets of files have the same bytes.
            hasher.update(&(path.len() as u64).to_le_bytes());
            hasher.update(path.as_bytes());
            hasher.update(&[u8::from(file.is_executable)]);
            hasher.update(&(file.bytes.len() as u64).to_le_bytes());
            hasher.update(&file.bytes);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the hash of a skill that consists of this text alone.
    pub fn digest_of_text(bytes: &[u8]) -> String {
        blake3::hash(bytes).to_hex().to_string()
    }

    /// Writes the files into a new folder, readable by this user only.
    ///
    /// # Errors
    /// The folder exists, or something cannot be written. What was written stays.
    pub fn write_into(&self, folder: &Path) -> Result<(), SkillFilesError> {
        let failed = |path: &str, source| SkillFilesError::Io {
            path: path.to_owned(),
            source,
        };
        fs::create_dir(folder).map_err(|error| failed(&folder.to_string_lossy(), error))?;
        for (path, file) in &self.files {
            let whole = folder.join(path);
            let parent = whole.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(|error| failed(path, error))?;
            let mode = if file.is_executable { 0o700 } else { 0o600 };
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode);
            let written = options.open(&whole).and_then(|mut to| {
                to.write_all(&file.bytes)?;
                to.sync_all()
            });
            written.map_err(|error| failed(path, error))?;
        }
        Ok(())
    }
}

fn wrong(path: &str, reason: &'static str) -> SkillFilesError {
    SkillFilesError::Path {
        path: path.to_owned(),
        reason,
    }
}

fn of_another_kind(kind: fs::FileType) -> &'static str {
    if kind.is_symlink() {
        "it is a symbolic link, which may lead anywhere; put the file itself there"
    } else {
        "it is a pipe, socket or device"
    }
}

fn too_many_files() -> SkillFilesError {
    SkillFilesError::TooMuch {
        what: "there are too many files".to_owned(),
        most: MAX_FILES.to_string(),
    }
}

pub(crate) fn check_size(path: &str, size: u64) -> Result<(), SkillFilesError> {
    if size <= MAX_FILE_BYTES {
        return Ok(());
    }
    Err(SkillFilesError::TooMuch {
        what: format!("`{path}` is larger than {MAX_FILE_BYTES} bytes"),
        most: format!("{MAX_FILE_BYTES} bytes"),
    })
}

/// Checks that a path stays within the skill and means the same on every system.
pub(crate) fn check_path(path: &str) -> Result<(), SkillFilesError> {
    let plain = |part| matches!(part, Component::Normal(_));
    let parts = path.split('/');
    let reason = if path.len() > MAX_PATH {
        "the path is too long"
    } else if path.starts_with('/') || path.contains(['\\', ':']) {
        "the path is absolute, or holds `\\` or `:`"
    } else if parts.clone().any(|part| part == ".." || part == ".") {
        "the path holds `..` or `.`"
    } else if parts.clone().any(str::is_empty) || !Path::new(path).components().all(plain) {
        "a part of the path is empty"
    } else if path.chars().any(gyrus_text::is_unseen) {
        "the path holds characters that cannot be seen"
    } else if parts.count() > MAX_DEPTH {
        "folders are nested too deeply"
    } else {
        return Ok(());
    };
    Err(wrong(path, reason))
}

/// Reads a regular file, without following a link.
pub(crate) fn read_file(file: &Path, path: &str) -> Result<SkillFile, SkillFilesError> {
    let failed = |source| SkillFilesError::Io {
        path: path.to_owned(),
        source,
    };
    // A pipe that was put there in between does not hang us.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = OpenOptions::new();
    #[expect(clippy::cast_possible_wrap, reason = "flags are bits")]
    options.read(true).custom_flags(flags as i32);
    let opened = options.open(file).map_err(failed)?;
    let metadata = opened.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(wrong(path, of_another_kind(metadata.file_type())));
    }
    check_size(path, metadata.len())?;
    let mut bytes = Vec::new();
    let read = opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    check_size(path, read.map_err(failed)? as u64)?;
    Ok(SkillFile {
        bytes,
        is_executable: metadata.permissions().mode() & 0o100 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SkillFile {
        SkillFile {
            bytes: text.as_bytes().to_vec(),
            is_executable: false,
        }
    }

    #[test]
    fn paths_that_lead_out_or_mean_two_things_are_refused() {
        for path in [
            "../a",
            "a/../b",
            "/a",
            "a//b",
            "",
            "a/",
            "./a",
            "a\\b",
            "C:a",
            "a\u{200b}b",
            "a\nb",
            "a/b/c/d/e/f/g/h/i/j/k/l/m",
        ] {
            let added = SkillFiles::default().add(path.to_owned(), file(""));
            assert!(added.is_err(), "{path:?}");
        }
        let mut files = SkillFiles::default();
        files.add("Scripts/run.sh".to_owned(), file("")).unwrap();
        for path in ["scripts/RUN.sh", "scripts", "Scripts/run.sh/more"] {
            let added = files.add(path.to_owned(), file(""));
            assert!(
                matches!(added, Err(SkillFilesError::Twice { .. })),
                "{path}"
            );
        }
        files.add("scripts.md".to_owned(), file("")).unwrap();
    }

    #[test]
    fn what_was_written_is_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = SkillFiles::default();
        files.add("SKILL.md".to_owned(), file("text")).unwrap();
        let mut script = file("#!/bin/sh\n");
        script.is_executable = true;
        files.add("scripts/a.sh".to_owned(), script).unwrap();
        let written = folder.path().join("skill");
        files.write_into(&written).unwrap();
        let again = SkillFiles::read(&written).unwrap();
        assert_eq!(again, files);
        assert_eq!(again.digest(), files.digest());
        assert!(files.write_into(&written).is_err(), "it exists");
        fs::create_dir(written.join(".git")).unwrap();
        assert_eq!(SkillFiles::read(&written).unwrap(), files);
        fs::write(written.join("scripts/a.sh"), "#!/bin/sh\n#").unwrap();
        assert_ne!(SkillFiles::read(&written).unwrap().digest(), files.digest());
        std::os::unix::fs::symlink("/etc/passwd", written.join("link")).unwrap();
        let refused = SkillFiles::read(&written).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
    }
}
