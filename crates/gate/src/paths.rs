//! Looking paths up without trusting what they seem to say.
//!
//! `canonicalize` of the standard library refuses paths that do not exist yet, which is what a
//! write usually names. This walk resolves links and `..` in the part that exists and refuses
//! whatever would make the rest ambiguous.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use icu_normalizer::ComposingNormalizerBorrowed;

/// Maximum number of links followed for one path, as in Linux; more count as a loop.
const MAX_LINKS: usize = 40;
/// Bytes of a path; the system's own limit.
const MAX_PATH_BYTES: usize = 4096;
/// Maximum number of names in a folder that are compared with a missing one.
const MAX_NAMES: usize = 10_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("the path is longer than {MAX_PATH_BYTES} bytes; name a shorter one")]
    TooLong,
    #[error("`{0}` is not absolute")]
    Relative(PathBuf),
    #[error("more than {MAX_LINKS} symbolic links follow each other; name the file they mean")]
    TooManyLinks,
    #[error("`..` follows `{0}`, which does not exist; write the path without `..`")]
    ParentOfMissing(PathBuf),
    #[error("`{0}` is a file, so nothing lies below it")]
    NotAFolder(PathBuf),
    #[error("`{path}` cannot be looked at: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
}

/// The absolute path without `.`, `..` and links in the part that exists. The rest may be missing.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, PathError> {
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    if !path.is_absolute() {
        return Err(PathError::Relative(path.to_owned()));
    }
    let mut left = VecDeque::new();
    prepend(&mut left, path);
    let mut real = PathBuf::from("/");
    let mut missing = false;
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            if missing {
                return Err(PathError::ParentOfMissing(real));
            }
            real.pop();
            continue;
        }
        real.push(part);
        if missing {
            continue;
        }
        match fs::symlink_metadata(&real) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(PathError::TooManyLinks);
                }
                let target = fs::read_link(&real).map_err(|source| PathError::Unreadable {
                    path: real.clone(),
                    source,
                })?;
                real.pop();
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                prepend(&mut left, &target);
            }
            Ok(metadata) if !metadata.is_dir() && !left.is_empty() => {
                return Err(PathError::NotAFolder(real));
            }
            Ok(_) => {}
            Err(source) if source.kind() == io::ErrorKind::NotFound => missing = true,
            Err(source) => return Err(PathError::Unreadable { path: real, source }),
        }
    }
    Ok(real)
}

fn prepend(left: &mut VecDeque<OsString>, path: &Path) {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => left.push_front(name.to_owned()),
            Component::ParentDir => left.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

/// Returns the name of the only file in the folder of a missing one that looks like it: by composed
/// characters, quotation marks and spaces, which a model cannot type.
pub(crate) fn alike(missing: &Path) -> Option<String> {
    if fs::symlink_metadata(missing).is_ok() {
        return None;
    }
    let looks = look_of(missing.file_name()?.to_str()?);
    let names = fs::read_dir(missing.parent()?).ok()?.take(MAX_NAMES);
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut alike = names.filter(|name| look_of(name) == looks);
    let found = alike.next()?;
    let file = fs::symlink_metadata(missing.with_file_name(&found)).ok()?;
    // A link would lead to a place that was not looked up.
    (alike.next().is_none() && !file.is_symlink()).then_some(found)
}

/// Returns a name in which characters that look alike are replaced by one of them.
fn look_of(name: &str) -> String {
    let plain = |letter: char| match letter {
        '\u{2018}' | '\u{2019}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{2033}' => '"',
        other if other.is_whitespace() => ' ',
        other => other,
    };
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(name);
    composed.chars().map(plain).collect()
}

pub(crate) enum FileKind {
    Missing,
    /// A regular file; `names` is the number of its hard links.
    File {
        names: u64,
    },
    Folder,
    /// A pipe, socket or device: reading it may block, writing it may do anything.
    Special,
}

pub(crate) fn kind(real: &Path) -> io::Result<FileKind> {
    let metadata = match fs::symlink_metadata(real) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(FileKind::Missing),
        Err(e) => return Err(e),
    };
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        FileKind::Folder
    } else if kind.is_file() {
        FileKind::File {
            names: metadata.nlink(),
        }
    } else {
        FileKind::Special
    })
}

/// Returns the rest of `path` below `folder`, if `path` or one of its ancestors *is* that folder
/// under another name.
pub(crate) fn below_same_folder<'a>(path: &'a Path, folder: &Path) -> Option<&'a Path> {
    let wanted = fs::metadata(folder).ok()?;
    let same = path.ancestors().find(|ancestor| {
        fs::symlink_metadata(ancestor)
            .is_ok_and(|found| found.dev() == wanted.dev() && found.ino() == wanted.ino())
    })?;
    path.strip_prefix(same).ok()
}
