//! Allowed paths of an index: those that git itself would check out on any system.

/// Checks a path of the index as git does with `core.protectNTFS` and `core.protectHFS`.
pub(super) fn check(path: &[u8], is_link: bool) -> Result<(), &'static str> {
    if path.len() > 4_096 {
        return Err("it is too long");
    }
    // Windows takes a backslash for a separator too.
    for part in path.split(|byte| matches!(byte, b'/' | b'\\')) {
        if matches!(part, b"" | b"." | b"..") {
            return Err("it has an empty part, or leads elsewhere");
        }
        match as_other_systems_see(part).as_str() {
            ".git" | "git~1" => return Err("it would be in a repository's own folder"),
            ".gitmodules" if is_link => return Err("git's settings may not be a link"),
            _ => {}
        }
    }
    Ok(())
}

/// Returns a name without the parts that some file systems ignore: the case, characters without a
/// width, what follows a colon, and dots and blanks at the end.
fn as_other_systems_see(part: &[u8]) -> String {
    let text = String::from_utf8_lossy(part);
    let ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text: String = text.chars().filter(|c| !ignored(c)).collect();
    let text = text.split(':').next().unwrap_or_default();
    text.trim_end_matches(['.', ' ']).to_lowercase()
}

/// Serialises a path as text for a journal: bytes that are not UTF-8, and `%`, as `%` and two
/// digits.
pub(super) mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(crate) fn serialize<S: Serializer>(path: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        for chunk in path.utf8_chunks() {
            text.push_str(&chunk.valid().replace('%', "%25"));
            for byte in chunk.invalid() {
                text.push_str(&format!("%{byte:02x}"));
            }
        }
        serializer.serialize_str(&text)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(reader)?;
        let mut path = Vec::new();
        let mut parts = text.split('%');
        path.extend(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            let digits = part
                .get(..2)
                .ok_or_else(|| D::Error::custom("invalid escape"))?;
            path.push(u8::from_str_radix(digits, 16).map_err(D::Error::custom)?);
            path.extend(&part.as_bytes()[2..]);
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_git_would_not_check_out_are_refused() {
        for (path, valid) in [
            ("src/main.rs", true),
            (".gitignore", true),
            (".github/workflows/a.yml", true),
            ("a/.gitmodules", true),
            ("git", true),
            (".git/config", false),
            ("a/.git/hooks/x", false),
            (".GIT/config", false),
            (".g\u{200c}it/config", false),
            (".git /config", false),
            (".git...", false),
            (".git::$INDEX_ALLOCATION/config", false),
            ("git~1/config", false),
            ("a\\.git\\config", false),
            ("../x", false),
            ("a/../../x", false),
            ("a/./b", false),
            ("/etc/passwd", false),
            ("a//b", false),
            ("a/", false),
        ] {
            assert_eq!(check(path.as_bytes(), false).is_ok(), valid, "{path:?}");
        }
        assert!(check(b".gitmodules", true).is_err());
    }
}
