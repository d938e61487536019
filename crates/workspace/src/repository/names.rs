//! Names of objects and of references, checked as git checks them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Maximum bytes of a reference's name; git's own limit is that of a path.
const MAX_NAME: usize = 1_024;

/// Name of an object: the SHA-1 of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// The null id, which names no object.
    pub(super) const NULL: Self = Self([0; 20]);

    /// Parses 40 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        let mut bytes = [0; 20];
        if text.len() != 40 {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks(2)) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Some(Self(bytes))
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether this is the null id, which names no object.
    pub fn is_null(&self) -> bool {
        self.0 == [0; 20]
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16)?.try_into().ok()
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("invalid object name `{text}`"))
    }
}

/// Full name of a reference, such as `refs/heads/main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(String);

impl RefName {
    /// Checks a name by git's rules (`git check-ref-format`), and that it begins with `refs/`.
    ///
    /// # Errors
    /// The reason why git would refuse it, in a few words.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        let below = name
            .strip_prefix("refs/")
            .ok_or("it is not below `refs/`")?;
        if name.len() > MAX_NAME {
            return Err("it is too long");
        }
        let is_odd = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
        if name.contains(is_odd) || name.contains("..") || name.contains("@{") {
            return Err("git forbids some of its characters");
        }
        let is_bad = |part: &str| {
            part.is_empty() || part.starts_with('.') || part.ends_with(".lock") || part.len() > 255
        };
        if below.split('/').any(is_bad) || name.ends_with('.') {
            return Err("git forbids one of its parts");
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name without `refs/`.
    pub fn below_refs(&self) -> &str {
        self.0.strip_prefix("refs/").unwrap_or(&self.0)
    }

    /// Whether one name would have to be both a file and a folder if both references existed.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        let below = other.0.strip_prefix(&self.0);
        below.is_some_and(|below| below.starts_with('/'))
    }

    /// Returns the reason why a new reference is not carried over because of its name alone; `None`
    /// if it is. Shell prompts show names of branches, and not all of them quote them.
    pub(super) fn odd_name(&self) -> Option<&'static str> {
        if self.0.contains(gyrus_text::is_unseen) {
            return Some("some of its characters cannot be seen");
        }
        let is_odd = |c: char| "$`;|&<>\"'!".contains(c);
        self.0
            .contains(is_odd)
            .then_some("shells act upon some of its characters")
    }

    /// Returns the other references that share a short name with this one, so that git or a person
    /// could confuse them.
    pub(super) fn namesakes(&self) -> Vec<Self> {
        let kinds = ["refs/heads/", "refs/tags/", "refs/remotes/"];
        let own = kinds
            .iter()
            .find_map(|kind| Some((kind, self.0.strip_prefix(kind)?)));
        let Some((own, short)) = own else {
            return Vec::new();
        };
        let others = kinds.iter().filter(|kind| *kind != own);
        others.map(|kind| Self(format!("{kind}{short}"))).collect()
    }

    /// Returns the reason why a command's change of a reference is not carried over, if any.
    pub(super) fn obstacle(&self) -> Option<&'static str> {
        let (kind, rest) = match self.below_refs().split_once('/') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (self.below_refs(), None),
        };
        let has_more = rest.is_some();
        match kind {
            _ if rest.is_some_and(|rest| rest.starts_with('-') || rest == "HEAD") => {
                Some("commands would take its name for an option or for `HEAD`")
            }
            "heads" | "tags" | "remotes" | "notes" | "original" if has_more => None,
            "stash" if !has_more => None,
            "replace" => {
                Some("it would put other objects in the place of those that are asked for")
            }
            "bisect" | "rewritten" | "worktree" => Some("it belongs to an operation in progress"),
            _ => Some("only branches, tags, notes, stashes and remote-tracking branches are kept"),
        }
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RefName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::parse(name).map_err(|why| format!("invalid reference `{name}`: {why}"))
    }
}

gyrus_contract::stored_as_text!(ObjectId, RefName);

/// Value of a reference, or of `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefValue {
    /// An object. As the value of `HEAD`, it means a detached one.
    Object(ObjectId),
    /// The name of another reference.
    Symbolic(RefName),
}

impl RefValue {
    /// Parses the content of a file such as `HEAD`.
    pub(super) fn parse(content: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(content).map_err(|_| "it is not text")?;
        if let Some(name) = text.strip_prefix("ref:") {
            return RefName::parse(name.trim()).map(Self::Symbolic);
        }
        let digits = text
            .get(..40)
            .ok_or("it is neither an object nor a reference")?;
        let ends = text[40..]
            .chars()
            .next()
            .is_none_or(|c| c.is_ascii_whitespace());
        let id = ObjectId::parse(digits).filter(|id| ends && !id.is_null());
        id.map(Self::Object)
            .ok_or("it is neither an object nor a reference")
    }

    pub(super) fn content(&self) -> Vec<u8> {
        match self {
            Self::Object(id) => format!("{id}\n").into_bytes(),
            Self::Symbolic(name) => format!("ref: {name}\n").into_bytes(),
        }
    }

    /// Returns the object, if the value is one directly.
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Object(id) => Some(*id),
            Self::Symbolic(_) => None,
        }
    }
}

impl fmt::Display for RefValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(id) => id.fmt(f),
            Self::Symbolic(name) => name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_git_does() {
        for (name, valid) in [
            ("refs/heads/main", true),
            ("refs/heads/feature/a-b_c.d", true),
            ("refs/heads/ümlaut", true),
            ("refs/heads/@", true),
            ("refs/stash", true),
            ("HEAD", false),
            ("refs/", false),
            ("refs/heads/", false),
            ("refs/heads//x", false),
            ("refs/heads/.x", false),
            ("refs/heads/x.", false),
            ("refs/heads/x./y", true),
            ("refs/heads/x.lock", false),
            ("refs/heads/x.lock/y", false),
            ("refs/heads/../../config", false),
            ("refs/heads/a..b", false),
            ("refs/heads/a b", false),
            ("refs/heads/a\nb", false),
            ("refs/heads/a\x7fb", false),
            ("refs/heads/a@{1}", false),
            ("refs/heads/a\\b", false),
            ("refs/heads/a*", false),
        ] {
            assert_eq!(RefName::parse(name).is_ok(), valid, "{name:?}");
        }
    }

    #[test]
    fn names_that_mislead_are_known() {
        let name = |name: &str| RefName::parse(name).unwrap();
        for (odd, expected) in [
            ("refs/heads/$(touch${IFS}x)", true),
            ("refs/heads/a`b`", true),
            ("refs/heads/a;b", true),
            ("refs/heads/m\u{202e}niam", true),
            ("refs/heads/feature/#12-a_b+c@d", false),
        ] {
            assert_eq!(name(odd).odd_name().is_some(), expected, "{odd}");
        }
        let namesakes = name("refs/heads/origin/main").namesakes();
        assert!(namesakes.contains(&name("refs/remotes/origin/main")));
        assert_eq!(name("refs/notes/x").namesakes(), []);
        for (name, carried) in [
            ("refs/heads/x", true),
            ("refs/heads/-x", false),
            ("refs/heads/HEAD", false),
            ("refs/remotes/origin/HEAD", true),
            ("refs/stash", true),
            ("refs/stash/x", false),
            ("refs/heads", false),
            ("refs/replace/x", false),
            ("refs/gyrus/kept/x", false),
        ] {
            let name = RefName::parse(name).unwrap();
            assert_eq!(name.obstacle().is_none(), carried, "{name}");
        }
    }

    #[test]
    fn values_are_read_as_git_does() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        for (content, expected) in [
            ("ref: refs/heads/main\n", Some("refs/heads/main")),
            ("ref:refs/heads/main", Some("refs/heads/main")),
            ("ref: /etc/passwd\n", None),
            ("ref: refs/heads/../../config\n", None),
            (&format!("{id}\n"), Some(id)),
            (&format!("{id}\tbranch"), Some(id)),
            (&format!("{id}0\n"), None),
            (&"0".repeat(40), None),
            ("", None),
        ] {
            let value = RefValue::parse(content.as_bytes()).ok();
            let value = value.map(|value| value.to_string());
            assert_eq!(value.as_deref(), expected, "{content:?}");
        }
    }
}
