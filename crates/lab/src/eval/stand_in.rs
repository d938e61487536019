//! Paths in a task that was written for a container: they stand for places in the attempt's folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The largest file in which paths are replaced, in bytes.
const LARGEST: u64 = 1 << 20;

/// A path that stands for a place in the attempt's folder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StandIn {
    /// The path as the task has it, absolute and without a slash at its end.
    pub(super) path: String,
    pub(super) place: PathBuf,
}

impl StandIn {
    /// Replaces the path in a text wherever it stands for itself or begins a longer path.
    pub(super) fn replaced(&self, text: &str, folder: &Path) -> String {
        let place = folder.join(&self.place);
        let place = place.to_string_lossy();
        let place = place.trim_end_matches('/');
        let mut replaced = String::new();
        let mut rest = text;
        let mut before = None;
        while let Some(at) = rest.find(&self.path) {
            let (skipped, found) = rest.split_at(at);
            let after = &found[self.path.len()..];
            before = skipped.chars().next_back().or(before);
            let is_path = !before.is_some_and(|c| goes_on(c) || matches!(c, '/' | '.' | '~'));
            let mut next = after.chars();
            let ends = match next.next() {
                Some('.') => !next.next().is_some_and(char::is_alphanumeric),
                Some(c) => !goes_on(c),
                None => true,
            };
            replaced.push_str(skipped);
            let as_written = if is_path && ends {
                place
            } else {
                self.path.as_str()
            };
            replaced.push_str(as_written);
            before = self.path.chars().next_back();
            rest = after;
        }
        replaced + rest
    }
}

fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

pub(super) fn replace_in_files(stand_ins: &[StandIn], folder: &Path) -> io::Result<()> {
    let mut open = vec![folder.to_owned()];
    while let Some(below) = open.pop().filter(|_| !stand_ins.is_empty()) {
        for entry in fs::read_dir(below)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && entry.metadata()?.len() <= LARGEST {
                let Ok(text) = String::from_utf8(fs::read(entry.path())?) else {
                    continue;
                };
                let replaced = stand_ins
                    .iter()
                    .fold(text.clone(), |text, one| one.replaced(&text, folder));
                if replaced != text {
                    fs::write(entry.path(), replaced)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_are_replaced() {
        let app = StandIn {
            path: "/app".to_owned(),
            place: PathBuf::new(),
        };
        for (text, expected) in [
            ("in /app.", "in /w."),
            ("cat /app/a.txt \"/app\"", "cat /w/a.txt \"/w\""),
            ("/application /app.py /app-x", "/application /app.py /app-x"),
            ("src/app ./app ../app ~/app", "src/app ./app ../app ~/app"),
            ("/app/app /app", "/w/app /w"),
            ("/appä", "/appä"),
            ("", ""),
        ] {
            assert_eq!(app.replaced(text, Path::new("/w")), expected);
        }
        let tests = StandIn {
            path: "/tests".to_owned(),
            place: PathBuf::from("t"),
        };
        let said = tests.replaced("sh /tests/a.sh", Path::new("/w"));
        assert_eq!(said, "sh /w/t/a.sh");
    }
}
