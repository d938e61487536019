//! Files that programs saved in the folder of a desktop, which ends with it: whoever saved them there
//! should hear of it while they can still be saved elsewhere.
//!
//! What is in the folder is the programs', so no link in it is followed.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder},
    io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    path::Path,
};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2};

use super::enclosure::Enclosure;

/// Maximum number of files that are returned.
const MAX_FILES: usize = 500;

/// Maximum depth of folders that are searched.
const MAX_DEPTH: usize = 4;

/// Name of the programs' home in the folder, the only entry there that belongs to gyrus.
pub(super) const HOME: &str = "home";

/// The folders in which a person saves files, by the names of xdg-user-dirs.
const PLACES: [&str; 6] = [
    "DESKTOP",
    "DOCUMENTS",
    "DOWNLOAD",
    "MUSIC",
    "PICTURES",
    "VIDEOS",
];

/// Makes the home of programs. Its folders for documents and the like are that in which programs
/// begin, so that what is saved there stays.
pub(super) fn make_home(enclosure: &Enclosure) -> io::Result<()> {
    let home = enclosure.path(HOME);
    fs::create_dir(&home)?;
    let Some(workspace) = enclosure.workspace() else {
        return Ok(());
    };
    let settings = home.join(".config");
    DirBuilder::new().mode(0o700).create(&settings)?;
    let folder = workspace.display().to_string();
    let folder = folder.replace('\\', "\\\\").replace('"', "\\\"");
    let lines = PLACES.map(|place| format!("XDG_{place}_DIR=\"{folder}\"\n"));
    fs::write(settings.join("user-dirs.dirs"), lines.concat())
}

/// Returns the files in the folder of a desktop that a person would call saved there, as programs see
/// their paths: those in their home, and those that lie beside it, without hidden and temporary ones.
pub(super) fn saved_files(enclosure: &Enclosure) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let folder = enclosure.path("");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat2(CWD, &folder, flags, Mode::empty(), ResolveFlags::empty());
    if let Ok(opened) = opened {
        add_files(&opened, Path::new(""), &mut files);
    }
    let seen = files.into_iter().map(|file| enclosure.inner_path(&file));
    seen.collect()
}

/// Adds the files below an entry of a folder.
fn add_files(folder: &OwnedFd, below: &Path, files: &mut BTreeSet<String>) {
    let depth = below.components().count();
    let path = Path::new(".").join(below);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let Ok(opened) = openat2(folder, &path, flags, Mode::empty(), inside) else {
        return;
    };
    let Ok(entries) = Dir::new(opened) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_passing = name.starts_with('.') || name.ends_with('~') || name.ends_with(".tmp");
        if is_passing || files.len() >= MAX_FILES {
            continue;
        }
        let at = below.join(&name);
        let is_top = depth == 0;
        match entry.file_type() {
            FileType::Directory if depth < MAX_DEPTH && (!is_top || name == HOME) => {
                add_files(folder, &at, files);
            }
            FileType::RegularFile if !is_top || !is_own(&name) => {
                files.insert(at.to_string_lossy().into_owned());
            }
            _ => {}
        }
    }
}

/// Whether an entry of the folder is gyrus's.
fn is_own(name: &str) -> bool {
    name == "authority" || name.starts_with("said-")
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, path::PathBuf, sync::Arc};

    use super::*;
    use crate::{RunCommand, TemporaryFolder};

    #[test]
    fn what_was_saved_is_found_and_no_link_is_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "").unwrap();
        let held = TemporaryFolder::of_desktop().unwrap();
        let temporary = held.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        let run: RunCommand = Arc::new(|_| unreachable!());
        let enclosure = Enclosure::confined(run, PathBuf::from("/work/a \"b"), held);
        make_home(&enclosure).unwrap();
        let places = fs::read_to_string(temporary.join("home/.config/user-dirs.dirs")).unwrap();
        assert!(
            places.contains("XDG_DOCUMENTS_DIR=\"/work/a \\\"b\"\n"),
            "{places}"
        );
        for file in [
            "authority",
            "said-1",
            "lu7.tmp",
            "home/.hidden",
            "home/letter.odt",
            "notes.txt",
        ] {
            fs::write(temporary.join(file), "").unwrap();
        }
        fs::create_dir_all(temporary.join("home/a/b")).unwrap();
        fs::create_dir_all(temporary.join("other")).unwrap();
        fs::write(temporary.join("home/a/b/c.txt"), "").unwrap();
        fs::write(temporary.join("other/scratch"), "").unwrap();
        symlink(outside.path(), temporary.join("home/link")).unwrap();
        symlink(outside.path().join("secret"), temporary.join("home/file")).unwrap();
        let found: Vec<_> = saved_files(&enclosure).into_iter().collect();
        let expected = [
            "/tmp/home/a/b/c.txt",
            "/tmp/home/letter.odt",
            "/tmp/notes.txt",
        ];
        assert_eq!(found, expected);
    }
}
