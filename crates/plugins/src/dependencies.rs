//! The packages that the servers of a plugin depend on, as files that were never run: fetched once,
//! hashed, and kept beside the package.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::npm::{self, NpmError};

/// Folder of these packages, as node knows it.
pub(crate) const FOLDER: &str = "node_modules";

/// Maximum number of files and folders.
const MAX_FILES: usize = 40_000;

/// Maximum size of all files together in bytes.
const MAX_BYTES: u64 = 400 << 20;

/// Maximum depth of folders.
const MAX_DEPTH: usize = 40;

/// Packages that were fetched but not installed yet.
#[derive(Debug)]
pub struct Dependencies {
    folder: TempDir,
    /// The number of packages.
    pub packages: usize,
    /// The hash of all files of the packages.
    digest: String,
}

impl Dependencies {
    /// Fetches packages with all their dependencies, into a folder that only this user can read.
    ///
    /// # Errors
    /// npm failed, or fetched what cannot be kept.
    pub fn fetch(wanted: &BTreeMap<String, String>) -> Result<Self, NpmError> {
        let folder = tempfile::Builder::new().prefix("gyrus-npm-").tempdir()?;
        npm::install(wanted, folder.path())?;
        let modules = folder.path().join(FOLDER);
        let mut packages = 0;
        if modules.exists() {
            walk(&modules, &mut |path, _| {
                packages += usize::from(is_package(path));
                Ok(())
            })?;
        } else {
            fs::create_dir(&modules)?;
        }
        Ok(Self {
            digest: digest(&modules)?,
            packages,
            folder,
        })
    }

    /// Returns the hash of all files, in hexadecimal digits.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Copies the packages into the folder of a plugin's package.
    ///
    /// # Errors
    /// Something cannot be written. What was written stays.
    pub fn write_into(&self, package: &Path) -> io::Result<()> {
        let to = package.join(FOLDER);
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).recursive(true);
        private.create(&to)?;
        walk(&self.folder.path().join(FOLDER), &mut |path, file| {
            let to = to.join(path);
            private.create(to.parent().unwrap_or(package))?;
            fs::copy(file, to).map(drop)
        })
    }
}

fn is_package(path: &str) -> bool {
    let Some(folder) = path.strip_suffix("/package.json") else {
        return false;
    };
    let below = folder.rsplit("node_modules/").next().unwrap_or(folder);
    let parts = below.split('/').count();
    parts == if below.starts_with('@') { 2 } else { 1 }
}

/// Returns the hash of the paths and contents of all files below a folder of packages.
///
/// # Errors
/// There is too much, a link, or something that cannot be read.
pub(crate) fn digest(folder: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = Vec::new();
    walk(folder, &mut |path, file| {
        buffer.clear();
        fs::File::open(file)?
            .take(MAX_BYTES)
            .read_to_end(&mut buffer)?;
        for part in [path.as_bytes(), &buffer] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Ok(())
    })?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Calls `each` with every file below a folder, always in the same order, by its relative path.
fn walk(folder: &Path, each: &mut dyn FnMut(&str, &Path) -> io::Result<()>) -> io::Result<()> {
    let mut left = DownloadAllowance {
        files: MAX_FILES,
        bytes: MAX_BYTES,
    };
    walk_below(folder, "", 0, &mut left, each)
}

/// Number of files and bytes that are still allowed.
struct DownloadAllowance {
    files: usize,
    bytes: u64,
}

fn walk_below(
    folder: &Path,
    below: &str,
    depth: usize,
    left: &mut DownloadAllowance,
    each: &mut dyn FnMut(&str, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let wrong = |what: String| io::Error::other(what);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
        let spent = left.files.checked_sub(1);
        left.files =
            spent.ok_or_else(|| wrong(format!("there are more than {MAX_FILES} files")))?;
    }
    paths.sort();
    for file in paths {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let path = if below.is_empty() {
            name.into_owned()
        } else {
            format!("{below}/{name}")
        };
        let metadata = fs::symlink_metadata(&file)?;
        if metadata.is_dir() {
            if depth == MAX_DEPTH {
                return Err(wrong(format!("`{path}` is nested too deeply")));
            }
            walk_below(&file, &path, depth + 1, left, each)?;
        } else if metadata.is_file() {
            let spent = left.bytes.checked_sub(metadata.len());
            left.bytes =
                spent.ok_or_else(|| wrong(format!("it is larger than {MAX_BYTES} bytes")))?;
            each(&path, &file)?;
        } else {
            return Err(wrong(format!("`{path}` is a link, a pipe or a device")));
        }
    }
    Ok(())
}
