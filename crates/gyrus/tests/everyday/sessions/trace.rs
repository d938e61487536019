//! The traces of a session: what its commands said, the files, and what git knows.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Letters of a difference that are shown on each side.
const SHOWN: usize = 600;

#[derive(Default)]
pub(super) struct Trace {
    /// Output of each command, with how it ended.
    pub(super) said: Vec<String>,
    /// Each with its kind, rights and content.
    files: BTreeMap<PathBuf, String>,
    pub(super) git: String,
}

impl Trace {
    /// Adds what a command said. Names of commits and times differ each time.
    pub(super) fn add(&mut self, said: &str, end: &impl std::fmt::Display) {
        let mut text = String::new();
        for part in said
            .trim_end()
            .split_inclusive(|c: char| !c.is_alphanumeric())
        {
            let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
            let is_commit = (7..=40).contains(&word.len())
                && word.bytes().all(|byte| byte.is_ascii_hexdigit())
                && word.bytes().any(|byte| byte.is_ascii_digit());
            text += &if is_commit {
                part.replace(word, "COMMIT")
            } else {
                part.to_owned()
            };
        }
        self.said.push(format!("{text}\n[{end}]"));
    }

    /// Adds the files of a folder, but for a folder of it.
    pub(super) fn look_at(&mut self, folder: &Path, without: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let kind = path.symlink_metadata().unwrap();
            let is_git = path.file_name().is_some_and(|name| name == ".git");
            if path == without || is_git {
                continue;
            }
            let content = if kind.is_dir() {
                self.look_at(&path, without);
                String::new()
            } else if kind.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if path.extension().is_some_and(|end| end == "pyc") {
                // They hold times.
                String::new()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            let rights = kind.permissions().mode();
            self.files.insert(path, format!("{rights:o} {content}"));
        }
    }

    /// Returns what differs; empty if nothing does.
    pub(super) fn differences(&self, inside: &Self) -> String {
        let mut text = String::new();
        for (index, said) in self.said.iter().enumerate() {
            let theirs = inside
                .said
                .get(index)
                .map_or("(no such command)", String::as_str);
            differ(&mut text, &format!("command {}", index + 1), said, theirs);
        }
        if inside.said.len() > self.said.len() {
            let _ = writeln!(text, "more commands: {:?}", &inside.said[self.said.len()..]);
        }
        let files = self.files.keys().chain(inside.files.keys());
        let files: std::collections::BTreeSet<_> = files.collect();
        for path in files {
            let of = |trace: &Self| {
                trace
                    .files
                    .get(path)
                    .cloned()
                    .unwrap_or("nothing".to_owned())
            };
            differ(
                &mut text,
                &path.display().to_string(),
                &of(self),
                &of(inside),
            );
        }
        differ(&mut text, "git", &self.git, &inside.git);
        text
    }
}

fn differ(text: &mut String, what: &str, outside: &str, inside: &str) {
    if outside != inside {
        let cut = |text: &str| text.chars().take(SHOWN).collect::<String>();
        let (outside, inside) = (cut(outside), cut(inside));
        let _ = writeln!(text, "{what}: outside:\n{outside}\ninside:\n{inside}");
    }
}
