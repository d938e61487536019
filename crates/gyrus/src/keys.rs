//! Sources of keys: the environment, or what the configuration says of a variable that is not set
//! there.
//!
//! Everything that was read is a secret of the run that follows. What nobody asks for is read as one
//! where that needs no person (`configured_secrets`).

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use gyrus_kernel::redact::Secret;
use gyrus_process::{Programs, read_regular_text};
use serde::Deserialize;

use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum KeySource {
    /// A file that nobody else may read.
    File(PathBuf),
    /// The output of a command line.
    Command(String),
}

/// Looks up keys by the name of their variable.
pub(crate) struct KeyLookup<'a> {
    sources: &'a BTreeMap<String, KeySource>,
    /// A variable and its new key, which is tried in place of the one that is set or stored.
    tried: Option<(String, String)>,
    read: RefCell<BTreeMap<String, Result<String, Failure>>>,
}

impl<'a> KeyLookup<'a> {
    pub(crate) fn new(sources: &'a BTreeMap<String, KeySource>) -> Self {
        Self {
            sources,
            tried: None,
            read: RefCell::default(),
        }
    }

    /// Makes the lookup return a new key, which is tried before it is stored.
    pub(crate) fn trying(mut self, variable: &str, key: &str) -> Self {
        self.tried = Some((variable.to_owned(), key.to_owned()));
        self
    }

    /// The value of a variable; `None` if it is set nowhere, or could not be read (then
    /// [`failure`](Self::failure) says why).
    pub(crate) fn get(&self, variable: &str) -> Option<String> {
        if let Some((_, key)) = self.tried.as_ref().filter(|(name, _)| name == variable) {
            return Some(key.clone());
        }
        if let Some(value) = crate::env::variable(variable) {
            return Some(value);
        }
        let source = self.sources.get(variable)?;
        let mut read = self.read.borrow_mut();
        let value = read
            .entry(variable.to_owned())
            .or_insert_with(|| source.read(variable));
        value.as_ref().ok().cloned()
    }

    /// Returns the reason why a key could not be read.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let mut read = self.read.borrow_mut();
        let failed = read.iter().find(|(_, value)| value.is_err())?.0.clone();
        read.remove(&failed)?.err()
    }

    /// Returns the secrets that were read so far.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let read = self.read.borrow();
        let secret = |(name, value): (&String, &Result<String, Failure>)| {
            Some(Secret {
                name: name.clone(),
                value: value.as_ref().ok()?.clone(),
            })
        };
        read.iter().filter_map(secret).collect()
    }
}

impl KeySource {
    pub(crate) fn read(&self, variable: &str) -> Result<String, Failure> {
        let text = match self {
            KeySource::File(path) => from_file(path)?,
            KeySource::Command(line) => from_command(line)?,
        };
        let value = text.trim().to_owned();
        if value.is_empty() {
            return Err(
                Failure::usage(format!("the key for {variable} is empty ({self})"))
                    .hint("store it again: gyrus setup"),
            );
        }
        Ok(value)
    }
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeySource::File(path) => write!(f, "file {}", path.display()),
            KeySource::Command(line) => write!(f, "command `{line}`"),
        }
    }
}

fn from_file(path: &Path) -> Result<String, Failure> {
    let unreadable = |error: &std::io::Error| {
        Failure::usage(format!("the key file {} cannot be read", path.display())).because(error)
    };
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(Failure::usage(format!(
            "the key file {} can be read by others",
            path.display()
        ))
        .hint(format!(
            "take their rights away: chmod 600 {}",
            path.display()
        )));
    }
    read_regular_text(path).map_err(|error| unreadable(&error))
}

fn from_command(line: &str) -> Result<String, Failure> {
    let failed = || Failure::usage(format!("the command for a key failed: `{line}`"));
    let output = Programs::of_this_process()
        .shell(line)?
        // A password manager may ask at the terminal.
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed().because(&error))?;
    if !output.status.success() {
        return Err(
            failed().hint("try the command by hand; it must print the key and nothing else")
        );
    }
    String::from_utf8(output.stdout).map_err(|error| failed().because(&error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_and_commands() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "secret-key\n").unwrap();
        let file = KeySource::File(path.clone());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let open = file.read("X_KEY").unwrap_err();
        assert!(
            open.hint
                .unwrap()
                .starts_with("take their rights away: chmod 600")
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(file.read("X_KEY").unwrap(), "secret-key");
        let command = |line: &str| KeySource::Command(line.to_owned()).read("X_KEY");
        assert_eq!(command("echo ' a-key '").unwrap(), "a-key");
        assert!(command("exit 3").is_err());
        assert!(command("true").unwrap_err().message.contains("is empty"));
    }
}
