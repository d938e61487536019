//! The lines that a person typed before, in a file that goes on from one conversation to the next.
//!
//! A line of the file is a line that was typed, with `\n` for a line end in it and `\\` for a backslash,
//! as rustyline wrote them.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use gyrus_process::read_regular;

/// Maximum number of remembered lines; a file of twice as many is made shorter.
const MOST_LINES: usize = 1_000;

/// Lines that were typed, the newest last.
#[derive(Debug, Default)]
pub(super) struct TypedHistory {
    file: PathBuf,
    lines: Vec<String>,
}

impl TypedHistory {
    /// Reads the history from a file; one that cannot be read is an empty history.
    pub(super) fn open(file: &Path) -> Self {
        let kept = read_regular(file).unwrap_or_default();
        let kept = String::from_utf8_lossy(&kept);
        let lines = kept.lines().filter(|line| !line.starts_with("#V"));
        let mut lines: Vec<String> = lines.map(plain).collect();
        let is_long = lines.len() > 2 * MOST_LINES;
        lines.drain(..lines.len().saturating_sub(MOST_LINES));
        let history = Self {
            file: file.to_owned(),
            lines,
        };
        if is_long {
            let all: String = history.lines.iter().map(|line| escaped(line)).collect();
            // A longer file is as good.
            let _ = fs::write(file, all);
        }
        history
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &String> {
        self.lines.iter().rev()
    }

    /// The line that many lines back; 0 is the newest.
    pub(super) fn back(&self, lines: usize) -> Option<&String> {
        self.newest_first().nth(lines)
    }

    /// Adds a line, unless it begins with a space or equals the last one.
    pub(super) fn add(&mut self, line: &str) {
        let is_last = self.lines.last().is_some_and(|last| last == line);
        if line.trim().is_empty() || line.starts_with(' ') || is_last {
            return;
        }
        self.lines.push(line.to_owned());
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true).mode(0o600);
        // Without a history one can still talk.
        let _ = options
            .open(&self.file)
            .and_then(|mut file| file.write_all(escaped(line).as_bytes()));
    }
}

fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\\\").replace('\n', "\\n");
    format!("{line}\n")
}

fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match (sign, signs.clone().next()) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some('\\')) => plain.push('\\'),
            (sign, _) => {
                plain.push(sign);
                continue;
            }
        }
        signs.next();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_were_typed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        fs::write(&file, "#V2\nolder \\\\n\\nline\n").unwrap();
        let mut history = TypedHistory::open(&file);
        for line in ["a\\b\nc", " hidden", "", "a\\b\nc", "last \\"] {
            history.add(line);
        }
        let all = ["last \\", "a\\b\nc", "older \\n\nline"];
        assert_eq!(history.newest_first().collect::<Vec<_>>(), all);
        assert_eq!(
            TypedHistory::open(&file).newest_first().collect::<Vec<_>>(),
            all
        );
        fs::write(&file, "line\n".repeat(2 * MOST_LINES + 1)).unwrap();
        assert_eq!(TypedHistory::open(&file).newest_first().count(), MOST_LINES);
        let kept = fs::read_to_string(&file).unwrap();
        assert_eq!(kept.lines().count(), MOST_LINES);
    }
}
