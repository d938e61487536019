//! The header of a file in a patch, as `git apply` takes it.

use std::{fmt::Write as _, path::Path};

/// The header of one file in a patch.
#[derive(Debug, Clone, Copy)]
pub struct PatchHeader<'a> {
    /// The path, relative to the folder of the patch.
    pub path: &'a [u8],
    /// The old mode, as git stores it (`0o100644`); `None` for a new file.
    pub before: Option<u32>,
    /// The new mode; `None` for a deleted file.
    pub after: Option<u32>,
    /// The path before, if the file was renamed without a change.
    pub renamed_from: Option<&'a [u8]>,
    /// The ids of both contents in git, which a binary patch needs.
    pub ids: Option<(&'a str, &'a str)>,
    /// Whether hunks of text follow.
    pub has_hunks: bool,
}

/// Returns git's mode of a regular file.
pub const fn git_mode(is_executable: bool) -> u32 {
    if is_executable { 0o100_755 } else { 0o100_644 }
}

/// The lines of a binary patch for an empty content, with the blank line that ends it.
pub const EMPTY_BINARY: &str = "literal 0\nHcmV?d00001\n\n";

/// The line above the contents of a binary patch.
pub const BINARY: &str = "GIT binary patch";

impl PatchHeader<'_> {
    /// Returns the lines of the header.
    pub fn lines(&self) -> String {
        let from = self.renamed_from.unwrap_or(self.path);
        let (old, new) = (quoted("a/", from), quoted("b/", self.path));
        let mut text = format!("diff --git {old} {new}\n");
        let _ = match (self.before, self.after) {
            (None, Some(mode)) => writeln!(text, "new file mode {mode:o}"),
            (Some(mode), None) => writeln!(text, "deleted file mode {mode:o}"),
            (Some(old), Some(new)) if old != new => {
                writeln!(text, "old mode {old:o}\nnew mode {new:o}")
            }
            (_, _) => Ok(()),
        };
        if let Some(from) = self.renamed_from {
            let (from, to) = (quoted("", from), quoted("", self.path));
            let _ = write!(
                text,
                "similarity index 100%\nrename from {from}\nrename to {to}\n"
            );
        }
        if let Some((old, new)) = self.ids {
            let _ = writeln!(text, "index {old}..{new}");
        }
        if self.has_hunks {
            let side = |mode: Option<u32>, name: String| match mode {
                None => "/dev/null".to_owned(),
                // A name with a blank ends where a tab is.
                Some(_) if name.contains(' ') && !name.starts_with('"') => name + "\t",
                Some(_) => name,
            };
            let (old, new) = (side(self.before, old), side(self.after, new));
            let _ = write!(text, "--- {old}\n+++ {new}\n");
        }
        text
    }
}

/// Returns a path as git writes it: in quotes if it has a quote, a backslash, a control character
/// or a byte that is not text.
fn quoted(prefix: &str, path: &[u8]) -> String {
    let text = std::str::from_utf8(path).ok();
    let is_plain = |text: &&str| !text.contains(|c: char| c.is_control() || "\"\\".contains(c));
    if let Some(plain) = text.filter(is_plain) {
        return format!("{prefix}{plain}");
    }
    let mut quoted = format!("\"{prefix}");
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the path that both sides of a header's first line name, `None` if they differ. A path
/// that is quoted for a control character is refused.
pub fn path_of_header(line: &str) -> Option<String> {
    let names = line.strip_prefix("diff --git ")?.trim_end_matches('\r');
    let path = if names.starts_with('"') {
        let half = names.len().checked_sub(1)? / 2;
        let inner = names.get(..half)?.strip_prefix("\"a/")?.strip_suffix('"')?;
        if names.get(half + 1..)? != format!("\"b/{inner}\"") {
            return None;
        }
        unquoted(inner)?
    } else {
        // Both sides have the same name, so the line says where the second begins.
        let half = names.len().checked_sub(1)? / 2;
        let path = names.get(..half)?.strip_prefix("a/")?;
        if names.get(half..)? != format!(" b/{path}") {
            return None;
        }
        path.to_owned()
    };
    (!path.is_empty() && Path::new(&path).is_relative()).then_some(path)
}

fn unquoted(inner: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            escaped @ (b'"' | b'\\') => bytes.push(escaped),
            first => {
                let digits = [first, rest.next()?, rest.next()?];
                let number = u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?;
                bytes.push(number);
            }
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        for (path, shown) in [
            ("src/a b.rs", Some("diff --git a/src/a b.rs b/src/a b.rs")),
            ("é/日本", Some("diff --git a/é/日本 b/é/日本")),
            ("a\"b\\c", Some(r#"diff --git "a/a\"b\\c" "b/a\"b\\c""#)),
            ("a\nb", None),
        ] {
            let header = PatchHeader {
                path: path.as_bytes(),
                before: Some(git_mode(false)),
                after: Some(git_mode(false)),
                renamed_from: None,
                ids: None,
                has_hunks: false,
            };
            let lines = header.lines();
            let first = lines.lines().next().unwrap();
            assert_eq!(path_of_header(first).as_deref(), shown.map(|_| path));
            assert!(shown.is_none_or(|shown| shown == first), "{first}");
        }
        for wrong in [
            "diff --git a/x b/y",
            "diff --git a/ b/",
            "diff a.rs new",
            "diff --git \"",
        ] {
            assert_eq!(path_of_header(wrong), None, "{wrong}");
        }
    }
}
