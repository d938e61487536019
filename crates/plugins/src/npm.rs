//! Fetching with the person's own npm: a package by its name, and the packages that it depends on.
//!
//! No script of any package is run: not when one is fetched, not when one is unpacked. npm works in a
//! folder of its own, so no settings of a project or of the package reach it.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use gyrus_process::{ProgramError, Programs};

/// Time limit for npm.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Interval at which the end of npm is checked.
const LOOKS: Duration = Duration::from_millis(20);

/// Maximum length of a message of npm, in characters.
const MAX_SAID: usize = 600;

/// Maximum length in bytes of a name in the registry.
const MAX_NAME: usize = 214;

/// The reason why npm fetched no package.
#[derive(Debug, thiserror::Error)]
pub enum NpmError {
    /// The program npm is not installed.
    #[error("npm is needed for this")]
    Program(#[from] ProgramError),
    /// npm cannot be started, or its files cannot be read.
    #[error("npm cannot be used")]
    Io(#[from] io::Error),
    #[error("npm failed: {0}")]
    Failed(String),
    /// npm took too long.
    #[error("npm did not end within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    #[error("the dependency `{name}` is `{version}`, and only packages of a registry are fetched")]
    Dependency {
        name: String,
        /// The requested version.
        version: String,
    },
}

/// A package of a registry: `NAME` or `NAME@VERSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpmSpec {
    /// The name of the package, with its scope.
    pub name: String,
    version: Option<String>,
}

impl fmt::Display for NpmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl NpmSpec {
    /// Reads a name, and a version after `@`; `None` if it is something else, such as an address.
    pub fn parse(text: &str) -> Option<Self> {
        let (scope, rest) = match text.strip_prefix('@') {
            Some(scoped) => {
                let (scope, rest) = scoped.split_once('/')?;
                (Some(scope), rest)
            }
            None => (None, text),
        };
        let (name, version) = match rest.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (rest, None),
        };
        let is_named = is_name(name) && scope.is_none_or(is_name);
        if !is_named || !version.is_none_or(is_version) {
            return None;
        }
        let name = match scope {
            Some(scope) => format!("@{scope}/{name}"),
            None => name.to_owned(),
        };
        (name.len() <= MAX_NAME).then(|| Self {
            name,
            version: version.map(str::to_owned),
        })
    }

    /// Fetches the package as an archive into a folder, and returns its path.
    ///
    /// # Errors
    /// There is no npm, or no such package.
    pub fn fetch(&self, into: &Path) -> Result<PathBuf, NpmError> {
        let spec = self.to_string();
        run(into, &["pack", "--ignore-scripts", "--silent", "--", &spec])?;
        let entries = fs::read_dir(into)?.flatten();
        let mut archives = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "tgz"));
        archives
            .next()
            .ok_or_else(|| NpmError::Failed("it wrote no archive".to_owned()))
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-._~".contains(letter)
    };
    !name.is_empty() && name.chars().all(is_plain) && !name.starts_with(['.', '-', '_'])
}

/// Whether a version or a range of versions names one of the registry.
fn is_version(version: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " .^~+-*<>=|".contains(letter);
    !version.is_empty() && version.chars().all(is_plain) && !version.starts_with('-')
}

/// Fetches packages with all their dependencies into `node_modules` of an empty folder.
///
/// # Errors
/// There is no npm, it failed, or a package is not one of a registry.
pub(crate) fn install(
    dependencies: &BTreeMap<String, String>,
    into: &Path,
) -> Result<(), NpmError> {
    for (name, version) in dependencies {
        if NpmSpec::parse(name).is_none_or(|spec| spec.version.is_some()) || !is_version(version) {
            return Err(NpmError::Dependency {
                name: name.clone(),
                version: version.clone(),
            });
        }
    }
    let manifest = serde_json::json!({
        "name": "dependencies",
        "version": "0.0.0",
        "private": true,
        "dependencies": dependencies,
    });
    fs::write(into.join("package.json"), manifest.to_string())?;
    let arguments = [
        "install",
        "--ignore-scripts",
        "--omit=dev",
        "--omit=optional",
        "--no-bin-links",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--install-strategy=hoisted",
        // What depends on a repository would run programs of it.
        "--allow-git=none",
        "--git=/nonexistent/git",
        "--silent",
    ];
    run(into, &arguments)
}

fn run(folder: &Path, arguments: &[&str]) -> Result<(), NpmError> {
    let programs = Programs::of_this_process();
    let npm = programs.find("npm")?;
    let said = tempfile::NamedTempFile::new()?;
    let mut command = programs.command(&npm.path);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.reopen()?);
    let mut child = command.spawn()?;
    let ended = wait(&mut child);
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    if ended? {
        return Ok(());
    }
    let said = fs::read(said.path())?;
    let said = String::from_utf8_lossy(&said);
    let said = gyrus_text::shorten(said.trim(), MAX_SAID).into_owned();
    Err(NpmError::Failed(if said.is_empty() {
        "it says nothing about why; try it yourself: npm view NAME".to_owned()
    } else {
        said
    }))
}

/// Waits for npm to end. Returns whether it succeeded.
fn wait(child: &mut Child) -> Result<bool, NpmError> {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        std::thread::sleep(LOOKS);
    }
    Err(NpmError::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_a_registry_are_read() {
        for (text, name) in [
            ("left-pad", "left-pad"),
            ("@scope/name", "@scope/name"),
            ("@scope/name@1.2.3-rc.1", "@scope/name"),
            ("name@^1", "name"),
            ("name@latest", "name"),
        ] {
            let spec = NpmSpec::parse(text).unwrap();
            assert_eq!(
                (spec.name.as_str(), spec.to_string().as_str()),
                (name, text)
            );
        }
        for text in [
            "",
            "@",
            "@a",
            "--x",
            "-g",
            "../x",
            "./x",
            "a/b",
            "github:a/b",
            "https://a.example/x.tgz",
            "name@file:../x",
            "name@git+ssh://x",
            "name@npm:other",
            "Name",
            "nаme",
            "a b",
            "name@",
            "@a/b/c",
            "file:x",
            "~x/y",
            "name@--registry=x",
        ] {
            assert_eq!(NpmSpec::parse(text), None, "{text}");
        }
    }
}
