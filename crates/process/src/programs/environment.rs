//! The person's environment for a program that runs with their rights, without variables that would
//! make it load files that a run has written.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::Programs;

/// Prefix of gyrus's own variables, which may contain keys and are not passed to other programs.
const OWN: &str = "GYRUS_";

/// Variables whose only purpose is to make a program load more code.
const LOADS_CODE: [&str; 8] = [
    "BASH_ENV",
    "ENV",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "ZDOTDIR",
];

/// Variables that name files or folders from which programs load code or settings. An entry that is
/// empty or relative means the folder in which they run.
const LOADED_FROM: [&str; 29] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CARGO_HOME",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GCONV_PATH",
    "GH_CONFIG_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GNUPGHOME",
    "HELM_PLUGINS",
    "KUBECONFIG",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOCPATH",
    "MANPATH",
    "NODE_PATH",
    "NPM_CONFIG_USERCONFIG",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PERL5LIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "RUBYLIB",
    "XDG_CONFIG_HOME",
];

/// Variables with a command line, which may contain a relative path.
const COMMAND_LINES: [&str; 14] = [
    "BROWSER",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
];

impl Programs {
    /// Returns the variables that a program with the person's own rights may be given, with a
    /// `PATH` of trusted folders. Omits values that are not text, and those that would make a
    /// program load something from a folder that runs can write or from the current folder.
    pub fn environment(
        &self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<String, String> {
        let mut writable = self.writable();
        writable.extend(self.more().iter().cloned());
        let places = WritableFolders::new(writable);
        let mut environment: BTreeMap<String, String> = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, value)| !name.starts_with(OWN) && places.may_have(name, value))
            .collect();
        environment.insert("PATH".to_owned(), self.path());
        environment
    }
}

/// Folders that runs can write to, by all their known names.
struct WritableFolders {
    names: Vec<PathBuf>,
}

impl WritableFolders {
    fn new(writable: Vec<PathBuf>) -> Self {
        let mut names = writable;
        let real: Vec<_> = names
            .iter()
            .filter_map(|name| name.canonicalize().ok())
            .collect();
        names.extend(real);
        Self { names }
    }

    fn may_have(&self, name: &str, value: &str) -> bool {
        if LOADS_CODE.contains(&name) {
            return false;
        }
        if LOADED_FROM.contains(&name) && !value.split(':').all(|entry| entry.starts_with('/')) {
            return false;
        }
        let mut words = value.split([':', '=', ',', ';', ' ', '\t', '\n', '"', '\'']);
        let is_relative = |word: &str| !word.starts_with('/') && word.contains('/');
        if COMMAND_LINES.contains(&name) && words.clone().any(is_relative) {
            return false;
        }
        !words.any(|word| word.starts_with('/') && self.holds(Path::new(word)))
    }

    /// Whether a path is in a writable folder, as written or after resolving its existing part.
    fn holds(&self, path: &Path) -> bool {
        let lies = |path: &Path| self.names.iter().any(|name| path.starts_with(name));
        let there = path.ancestors().find_map(|part| part.canonicalize().ok());
        lies(path) || there.is_some_and(|real| lies(&real))
    }
}
