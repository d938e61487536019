//! Files that a command may change, where no mounts decide it.
//!
//! Rules of Landlock allow a folder with all below and cannot take anything out of it again. A
//! writable folder with something in it that must stay as it is gets no rule, only its entries do.
//! What comes and goes in the folder itself is for the supervisor, which asks here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gyrus_contract::Containment;

/// Maximum number of entries of a folder that get rules of their own. The supervisor serves others.
const ENTRIES: usize = 1_024;

/// Writable folders, and places in them that are not. Of two around a path, the inner one decides.
#[derive(Debug, Clone)]
pub(super) struct WritablePlaces {
    writable: Vec<PathBuf>,
    kept: Vec<PathBuf>,
    /// Files and folders that are writable with everything below, as they were at the start.
    whole: Vec<PathBuf>,
}

impl WritablePlaces {
    /// Returns the places of a containment whose binds cannot be mounted: the places below the
    /// binds are not writable.
    pub(super) fn of(containment: &Containment) -> Self {
        let binds = &containment.binds;
        let sources = binds.iter().filter(|bind| bind.writable);
        let sources = sources.map(|bind| &bind.source);
        let writable = containment.writable.iter().chain([&containment.temporary]);
        let kept = containment.read_only.iter();
        let kept = kept.chain(binds.iter().map(|bind| &bind.place));
        Self::new(
            writable.chain(sources).cloned().collect(),
            kept.cloned().collect(),
        )
    }

    fn new(writable: Vec<PathBuf>, kept: Vec<PathBuf>) -> Self {
        let mut places = Self {
            writable,
            kept,
            whole: Vec::new(),
        };
        let mut whole = Vec::new();
        for place in places.folders() {
            places.collect(place, &mut whole);
        }
        places.whole = whole;
        places
    }

    pub(super) fn may_change(&self, path: &Path) -> bool {
        let depth = |places: &[PathBuf]| {
            let holding = places.iter().filter(|place| path.starts_with(place));
            holding.map(|place| place.components().count()).max()
        };
        depth(&self.writable) > depth(&self.kept)
    }

    /// Whether `path` may be created, moved or deleted, which a protected part at or below it
    /// prevents.
    pub(super) fn may_replace(&self, path: &Path) -> bool {
        let is_place = self.writable.iter().any(|place| place == path);
        self.may_change(path) && !is_place && !self.keeps_below(path)
    }

    /// Whether a part of some writable folder is read-only.
    pub(super) fn are_mixed(&self) -> bool {
        self.writable.iter().any(|place| self.keeps_below(place))
    }

    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.writable.iter().map(PathBuf::as_path)
    }

    /// Returns the paths whose rules allow everything.
    pub(super) fn whole(&self) -> impl Iterator<Item = &Path> {
        self.whole.iter().map(PathBuf::as_path)
    }

    /// Whether Landlock itself allows changes of a path.
    pub(super) fn has_rule(&self, path: &Path) -> bool {
        self.whole.iter().any(|place| path.starts_with(place))
    }

    fn keeps_below(&self, path: &Path) -> bool {
        self.kept.iter().any(|kept| kept.starts_with(path))
    }

    fn collect(&self, place: &Path, whole: &mut Vec<PathBuf>) {
        if !self.may_change(place) || place.is_symlink() {
            return;
        }
        if !self.keeps_below(place) {
            whole.push(place.to_owned());
            return;
        }
        let entries = fs::read_dir(place).into_iter().flatten();
        for entry in entries.filter_map(Result::ok).take(ENTRIES) {
            self.collect(&entry.path(), whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_place_decides() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        let places = WritablePlaces::new(
            paths(&["/w", "/w/.git/objects", "/copy"]),
            paths(&["/w/.git", "/w/a/b/.git"]),
        );
        for (path, change, replace) in [
            ("/w", true, false),
            ("/w/new", true, true),
            ("/w/.github", true, true),
            ("/w/.git", false, false),
            ("/w/.git/hooks/x", false, false),
            ("/w/.git/objects", true, false),
            ("/w/.git/objects/ab", true, true),
            ("/w/a", true, false),
            ("/w/a/b", true, false),
            ("/w/a/b/c", true, true),
            ("/copy/config", true, true),
            ("/", false, false),
            ("/wide", false, false),
        ] {
            let path = Path::new(path);
            let found = (places.may_change(path), places.may_replace(path));
            assert_eq!(found, (change, replace), "{}", path.display());
        }
        assert!(places.are_mixed());
    }

    #[test]
    fn entries_get_rules_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = fs::canonicalize(folder.path()).unwrap();
        for name in [".git/hooks", "src/inner", "sub/.git", "sub/src"] {
            fs::create_dir_all(workspace.join(name)).unwrap();
        }
        fs::write(workspace.join("file"), "").unwrap();
        std::os::unix::fs::symlink("/etc", workspace.join("link")).unwrap();
        let kept = [".git", "sub/.git"].map(|name| workspace.join(name));
        let places = WritablePlaces::new(vec![workspace.clone()], kept.into());
        let mut whole: Vec<_> = places.whole().collect();
        whole.sort();
        let expected = ["file", "src", "sub/src"].map(|name| workspace.join(name));
        assert_eq!(whole, expected);
    }
}
