//! Meaning of the changes of a workspace and of its surroundings.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use gyrus_contract::Risk;

use crate::{
    Finding, Fixture, Kind, control,
    fixture::{self, WORKSPACE},
    manifest::Manifest,
};

/// Findings of one kind that are told of one line, at most.
const MAX_TOLD: usize = 4;

/// Bytes of the longest path that the kernel takes.
const MAX_PATH: usize = 4_096;

/// Bytes of a changed file that are looked at.
pub(crate) const MAX_FILE: u64 = 8 << 20;

/// Returns the findings in the workspace after a line.
pub(crate) fn workspace(fixture: Fixture, changed: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let bare = bare_repositories(fixture, changed);
    for path in changed {
        let (now, before) = (
            Path::new(WORKSPACE).join(path),
            fixture::pristine(fixture, path),
        );
        // No path leads there, though a program that walks does.
        let is_too_long = now.as_os_str().len() >= MAX_PATH;
        if is_socket(&now) || (!is_too_long && is_same(&now, &before)) {
            continue;
        }
        let exists = is_too_long || fs::symlink_metadata(&now).is_ok();
        let existed = fs::symlink_metadata(&before).is_ok();
        let finding = |kind, why: &str| Finding::new(kind, format!("{} ({why})", path.display()));
        if let Some(below) = below_git(path).or_else(|| below_one_of(path, &bare)) {
            let why = control::of_git(&below, &now, &before);
            findings.extend(why.map(|why| finding(Kind::GitControl, &why)));
        } else if let Some(why) = control::obeyed(path, exists, existed) {
            let is_plain_folder = existed && exists && now.is_dir() && before.is_dir();
            if !is_plain_folder && !is_new_environment(&before) {
                findings.push(finding(Kind::ControlFile, why));
            }
        }
    }
    told(findings)
}

/// Returns the findings in a repository outside the workspace, of which a work tree is in it.
pub(crate) fn repository(folder: &Path, before: &Path, changed: &[PathBuf]) -> Vec<Finding> {
    let findings = changed.iter().filter_map(|path| {
        let (now, before) = (folder.join(path), before.join(path));
        if is_same(&now, &before) {
            return None;
        }
        let what = |why: &str| format!("{} ({why})", now.display());
        match below_git(path) {
            None => Some(Finding::new(Kind::OutsideChanged, what("a file"))),
            Some(below) => control::of_git(&below, &now, &before)
                .map(|why| Finding::new(Kind::GitControl, what(&why))),
        }
    });
    told(findings.collect())
}

/// Without a sandbox nothing at all may change by what passes unasked.
pub(crate) fn anything(folder: &str, changed: &[PathBuf], risks: &[Risk]) -> Vec<Finding> {
    let kind = if risks.iter().all(|risk| *risk == Risk::Safe) {
        Kind::SafeChanged
    } else {
        Kind::UnaskedChanged
    };
    let told_of = |path: &PathBuf| {
        let path = Path::new(folder).join(path);
        Finding::new(kind, path.display().to_string())
    };
    told(changed.iter().map(told_of).collect())
}

/// Returns the findings outside the workspace.
pub(crate) fn outside(folder: &str, before: &Manifest, changed: &[PathBuf]) -> Vec<Finding> {
    let told_of = |path: &PathBuf| {
        let how = if before.holds(path) {
            "changed"
        } else {
            "created"
        };
        let path = Path::new(folder).join(path);
        Finding::new(Kind::OutsideChanged, format!("{} {how}", path.display()))
    };
    told(changed.iter().map(told_of).collect())
}

/// The folders in which something changed: where a person looks next.
pub(crate) fn folders(changed: &[PathBuf]) -> BTreeSet<PathBuf> {
    let outside_of_git = changed.iter().filter(|path| below_git(path).is_none());
    let folders = outside_of_git.filter_map(|path| {
        let here = Path::new(WORKSPACE).join(path).is_dir();
        let folder = if here {
            path.clone()
        } else {
            path.parent()?.to_owned()
        };
        (!folder.as_os_str().is_empty()).then_some(folder)
    });
    folders.collect()
}

/// A few of each kind.
fn told(findings: Vec<Finding>) -> Vec<Finding> {
    let mut few: Vec<Finding> = Vec::new();
    for finding in findings {
        let known = few.iter().filter(|known| known.kind == finding.kind);
        if known.count() < MAX_TOLD {
            few.push(finding);
        }
    }
    few
}

/// The part of a path behind its first `.git`.
fn below_git(path: &Path) -> Option<PathBuf> {
    let mut parts = path.iter();
    parts
        .by_ref()
        .find(|part| *part == ".git")
        .map(|_| parts.collect())
}

fn below_one_of(path: &Path, folders: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let known = [
        "config",
        "config.worktree",
        "commondir",
        "hooks",
        "info",
        "HEAD",
    ];
    // What else lies in such a folder is a file like others.
    let mut below = folders.iter().filter_map(|folder| {
        let below = path.strip_prefix(folder).ok()?;
        let first = below.iter().next()?;
        known.iter().any(|name| first == *name).then_some(below)
    });
    below.next().map(Path::to_path_buf)
}

/// Folders that git takes for a repository without a `.git`. Of one that was none before, even
/// the `HEAD` is a change of what git obeys.
fn bare_repositories(fixture: Fixture, changed: &[PathBuf]) -> BTreeSet<PathBuf> {
    let folders = changed
        .iter()
        .flat_map(|path| path.ancestors().skip(1).take(3));
    let folders: BTreeSet<&Path> = folders.collect();
    let is_bare = |folder: &Path| {
        ["HEAD", "objects", "refs"]
            .iter()
            .all(|name| fs::symlink_metadata(folder.join(name)).is_ok())
    };
    folders
        .into_iter()
        .filter(|folder| folder.iter().all(|part| part != ".git"))
        .filter(|folder| {
            is_bare(&Path::new(WORKSPACE).join(folder))
                || is_bare(&fixture::pristine(fixture, folder))
        })
        .map(Path::to_path_buf)
        .collect()
}

/// Whether a path is the settings of a Python environment that was made as a folder of its own.
fn is_new_environment(before: &Path) -> bool {
    before.ends_with("pyvenv.cfg") && before.parent().is_some_and(|folder| !folder.exists())
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket())
}

/// Whether two paths hold the same: kind, mode, content.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let (data, other_data) = match (fs::symlink_metadata(one), fs::symlink_metadata(other)) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => return one.is_err() && other.is_err(),
    };
    if data.file_type() != other_data.file_type() {
        return false;
    }
    if data.is_symlink() {
        return fs::read_link(one).ok() == fs::read_link(other).ok();
    }
    if data.mode() != other_data.mode() {
        return false;
    }
    let same_content = || -> io::Result<bool> { Ok(fs::read(one)? == fs::read(other)?) };
    !data.is_file()
        || (data.len() == other_data.len()
            && data.len() <= MAX_FILE
            && same_content().unwrap_or(false))
}
