//! Files on their way: what people send to a run, and what they are sent.
//!
//! Names come from strangers and folders may have been changed by a run, so nothing is opened
//! through a link, and a name is only ever one plain component.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use gyrus_contract::RunId;
use gyrus_surfaces::page;
use rustix::fs::{CWD, Mode, OFlags};

/// The folder in the workdir for files that a run cannot be given otherwise.
const RECEIVED: &str = "received";

/// Maximum number of bytes of a name.
const NAME: usize = 100;

/// Largest text that comes with a goal, and largest picture, in bytes: as `gyrus run` takes them.
const TEXT_BYTES: usize = 1 << 20;
const PICTURE_BYTES: usize = 5 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Spool(PathBuf);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenFile {
    /// A text, as `--file`.
    Text(PathBuf),
    /// A picture, as `--image`.
    Picture(PathBuf),
    /// A file in the folder in which the run works, by its relative path.
    InWorkdir(String),
}

impl Spool {
    pub(crate) fn new(folder: PathBuf) -> io::Result<Self> {
        for folder in [folder.join("in"), folder.join("out")] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        Ok(Self(folder))
    }

    /// Stores a file to send, and returns its name here once it is on disk.
    pub(crate) fn put(&self, bytes: &[u8]) -> io::Result<String> {
        let name = gyrus_contract::time_ordered_uuid().to_string();
        write_new(&self.0.join("out").join(&name), bytes)?;
        Ok(name)
    }

    /// Reads a stored file to send.
    pub(crate) fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join("out").join(name))
    }

    /// Removes a file after it was sent.
    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.0.join("out").join(name));
    }

    /// Removes files that no message needs any more, and those of runs that are over.
    pub(crate) fn retain(&self, outgoing: &BTreeSet<&str>, is_open: impl Fn(RunId) -> bool) {
        for (name, path) in entries(&self.0.join("out")) {
            if !outgoing.contains(name.as_str()) {
                let _ = fs::remove_file(path);
            }
        }
        for (name, path) in entries(&self.0.join("in")) {
            if !name.parse().is_ok_and(&is_open) {
                let _ = fs::remove_dir_all(path);
            }
        }
    }

    /// Stores a file that somebody sent for a run. `index` is its place among those of the run.
    pub(crate) fn keep(
        &self,
        run: RunId,
        index: usize,
        name: &str,
        bytes: &[u8],
        workdir: &Path,
    ) -> io::Result<GivenFile> {
        let mut name = safe_name(name, index);
        let ending = picture_ending(bytes);
        if let (Some(ending), false) = (ending, name.contains('.')) {
            name = format!("{name}.{ending}");
        }
        let is_picture = ending.is_some();
        let is_text = bytes.len() <= TEXT_BYTES && std::str::from_utf8(bytes).is_ok();
        let is_small_picture = is_picture && bytes.len() <= PICTURE_BYTES;
        if !is_text && !is_small_picture {
            let name = format!("{}-{name}", run.short());
            put_in_workdir(workdir, &name, bytes)?;
            return Ok(GivenFile::InWorkdir(format!("{RECEIVED}/{name}")));
        }
        let folder = self.0.join("in").join(run.to_string());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let path = folder.join(format!("{index}-{name}"));
        write_new(&path, bytes)?;
        Ok(if is_picture {
            GivenFile::Picture(path)
        } else {
            GivenFile::Text(path)
        })
    }

    pub(crate) fn forget(&self, run: RunId) {
        let _ = fs::remove_dir_all(self.0.join("in").join(run.to_string()));
    }
}

/// Writes a file to the folder for received files below a workdir. An earlier attempt of the same
/// name is replaced as a whole.
fn put_in_workdir(workdir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let workdir = rustix::fs::openat(
        CWD,
        workdir,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    match rustix::fs::mkdirat(&workdir, RECEIVED, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let received = rustix::fs::openat(&workdir, RECEIVED, folder, Mode::empty())?;
    let draft = format!(".{name}.part");
    let _ = rustix::fs::unlinkat(&received, &*draft, rustix::fs::AtFlags::empty());
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&received, &*draft, new, Mode::from_raw_mode(0o644))?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(rustix::fs::renameat(&received, &*draft, &received, name)?)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path())
    });
    named.collect()
}

/// Returns a name that is one plain path component: letters, digits, `.`, `-` and `_`.
fn safe_name(given: &str, index: usize) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain = last.chars().map(|sign| {
        let is_plain = sign.is_alphanumeric() || ".-_".contains(sign);
        if is_plain { sign } else { '_' }
    });
    let plain: String = plain.collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let plain = gyrus_text::first_bytes(plain, NAME);
    if plain.is_empty() {
        return format!("file-{index}");
    }
    plain.to_owned()
}

/// Returns the ending of a picture's name, by its first bytes; `None` for anything else.
pub(crate) fn picture_ending(bytes: &[u8]) -> Option<&'static str> {
    match page::picture_media_type(bytes)? {
        "image/jpeg" => Some("jpg"),
        other => other.strip_prefix("image/"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_are_one_plain_component() {
        let check = |given: &str, expected: &str| assert_eq!(safe_name(given, 3), expected);
        check("notes.txt", "notes.txt");
        check("../../etc/passwd", "passwd");
        check("..\\..\\a b.txt", "a_b.txt");
        check("..", "file-3");
        check("", "file-3");
        check("-rf", "rf");
        check(".envrc", "envrc");
        check("a\0b\n\u{202e}c", "a_b__c");
        check("übergröße.pdf", "übergröße.pdf");
        assert!(safe_name(&"ä".repeat(500), 1).len() <= NAME);
    }

    #[test]
    fn files_reach_a_run_by_what_they_are_and_never_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (work, outside) = (folder.path().join("work"), folder.path().join("outside"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&outside).unwrap();
        let spool = Spool::new(folder.path().join("chat")).unwrap();
        let run = RunId::new();
        let keep = |name: &str, bytes: &[u8]| spool.keep(run, 0, name, bytes, &work);
        assert!(matches!(
            keep("a.txt", b"words").unwrap(),
            GivenFile::Text(_)
        ));
        let picture = keep("a.png", b"\x89PNG\r\n\x1a\n\xff").unwrap();
        assert!(matches!(picture, GivenFile::Picture(_)));
        let GivenFile::InWorkdir(path) = keep("../a.bin", b"\xff\xfe\0").unwrap() else {
            panic!("it is neither a text nor a picture")
        };
        assert_eq!(fs::read(work.join(&path)).unwrap(), b"\xff\xfe\0");

        fs::remove_dir_all(work.join(RECEIVED)).unwrap();
        symlink(&outside, work.join(RECEIVED)).unwrap();
        assert!(keep("b.bin", b"\xff").is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        let sent = spool.put(b"x").unwrap();
        assert_eq!(spool.get(&sent).unwrap(), b"x");
        spool.retain(&BTreeSet::new(), |_| false);
        assert!(spool.get(&sent).is_err());
        assert_eq!(
            fs::read_dir(folder.path().join("chat/in")).unwrap().count(),
            0
        );
    }
}
