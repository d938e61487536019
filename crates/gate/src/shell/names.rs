//! Paths that the words of a line may stand for, whatever a program does with them.
//!
//! A rule on a path asks whenever a word could be it: as it stands, in a part of it (`--from=.env`,
//! a program's text), as a pattern, from any folder that the line enters.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::words::{ShellWord, WordKnowledge};
use crate::{paths::real_path, policy::name_matches};

/// Maximum number of texts in a line that may be paths.
const MAX_TEXTS: usize = 1_000;

/// Maximum number of folders that a line enters.
const MAX_FOLDERS: usize = 8;

/// Maximum number of folder entries that are compared with the patterns of one line.
const MAX_ENTRIES: usize = 10_000;

/// Paths that the words of a line may mean.
#[derive(Debug)]
pub(crate) struct PossiblePaths {
    folders: Vec<PathBuf>,
    texts: BTreeSet<String>,
    patterns: BTreeSet<String>,
    /// Whether some word is known only when the line runs, so that it may mean any path.
    pub(crate) any: bool,
}

impl PossiblePaths {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folders: vec![folder.to_owned()],
            texts: BTreeSet::new(),
            patterns: BTreeSet::new(),
            any: false,
        }
    }

    pub(super) fn word(&mut self, word: &ShellWord) {
        match word.kind {
            WordKnowledge::Literal => self.add(&word.text),
            WordKnowledge::Pattern if self.patterns.len() < MAX_TEXTS => {
                self.patterns.insert(word.text.clone());
            }
            WordKnowledge::Pattern | WordKnowledge::Open => self.any = true,
        }
    }

    /// Adds a text, and each of its parts that looks like a path.
    pub(super) fn add(&mut self, text: &str) {
        let is_part = |c: char| c.is_alphanumeric() || "_./~+-".contains(c);
        let parts = text.split(|c| !is_part(c));
        // `-fFILE`, `-lfFILE`
        let letters = if text.starts_with('-') { 2..6 } else { 0..1 };
        let attached = letters.filter_map(|at| text.get(at..));
        for part in parts.chain(attached) {
            if self.texts.len() == MAX_TEXTS {
                self.any = true;
                return;
            }
            if !part.is_empty() {
                self.texts.insert(part.to_owned());
            }
        }
    }

    /// `false` if the line enters too many folders.
    pub(super) fn enter(&mut self, folder: &Path) -> bool {
        let known = self.folders.iter().any(|known| known == folder);
        if !known && self.folders.len() < MAX_FOLDERS {
            self.folders.push(folder.to_owned());
            return true;
        }
        self.any |= !known;
        known
    }

    /// Returns the paths that the texts may be, with links followed. Paths that cannot be looked up
    /// are left out.
    pub(crate) fn paths(&self, home: Option<&Path>) -> BTreeSet<PathBuf> {
        let looked_up = self.texts.iter().flat_map(|text| self.places(text, home));
        looked_up.filter_map(|path| real_path(&path).ok()).collect()
    }

    /// Returns the paths that the patterns stand for now; `None` if there are too many files.
    pub(crate) fn found(&self, home: Option<&Path>) -> Option<BTreeSet<PathBuf>> {
        let mut left = MAX_ENTRIES;
        let mut found = BTreeSet::new();
        for pattern in &self.patterns {
            for place in self.places(pattern, home) {
                expand(&place, &mut left, &mut found)?;
            }
        }
        Some(found)
    }

    fn places<'t>(
        &'t self,
        text: &'t str,
        home: Option<&'t Path>,
    ) -> impl Iterator<Item = PathBuf> + 't {
        let below = home.zip(text.strip_prefix("~/"));
        let at_home = below.map(|(home, below)| home.join(below));
        let mut folders = self.folders.iter();
        // An absolute path is the same from all of them.
        let count = if text.starts_with('/') {
            1
        } else {
            MAX_FOLDERS
        };
        let here = std::iter::from_fn(move || Some(folders.next()?.join(text)));
        here.take(count).chain(at_home)
    }
}

/// Adds existing paths that match a pattern.
fn expand(pattern: &Path, left: &mut usize, found: &mut BTreeSet<PathBuf>) -> Option<()> {
    let mut places = vec![PathBuf::from("/")];
    for part in pattern.components().skip(1) {
        let part = part.as_os_str().to_string_lossy();
        if !part.contains(['*', '?']) {
            places.iter_mut().for_each(|place| place.push(&*part));
            continue;
        }
        let mut next = Vec::new();
        for place in places {
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                *left = left.checked_sub(1)?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_shown = part.starts_with('.') || !name.starts_with('.');
                if is_shown && name_matches(&part, &name) {
                    next.push(entry.path());
                }
            }
        }
        places = next;
    }
    found.extend(places.iter().filter_map(|place| real_path(place).ok()));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_paths_in_any_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        for file in ["a/.env", "b/x.rs"] {
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("a/.env", folder.join("link")).unwrap();
        let stands = |line: &str| {
            let place = super::super::ShellPlace {
                folder: folder.clone(),
                home: Some(folder.join("a")),
            };
            let names = super::super::read_whole(line, &place).names;
            let mut paths = names.paths(place.home.as_deref());
            paths.extend(names.found(place.home.as_deref()).unwrap());
            names.any || paths.contains(&folder.join("a/.env"))
        };
        for line in [
            "cat a/.env",
            "wc --files0-from=a/.env",
            "wc -lfa/.env",
            "cat link",
            "cat a/.e*",
            "cat */.env",
            "cd a && cat .env",
            "cd a; cat .e??",
            "cat ~/.env",
            "cat $HOME/.env",
            "cat < b/../a/.env",
            "python3 -c 'open(\"a/.env\")'",
            "python3 <<'E'\nopen('a/.env')\nE",
            "echo $(cat a/.env)",
            "sh -c 'cat a/.env'",
            "cat $x",
            "cat {a,b}/.env",
            "for f in a/.env; do cat b; done",
            "x=a/.env",
            "a=(a/.env)",
            "case a/.env in x) ;; esac",
        ] {
            assert!(stands(line), "{line}");
        }
        for line in ["cat b/x.rs", "cat b/*", "ls", "echo .env", "cd b; cat *.rs"] {
            assert!(!stands(line), "{line}");
        }
    }
}
