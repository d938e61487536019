//! The settings of the sandbox of runs: by the configuration, by flags, and by agreeing to
//! what a project's file proposes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use gyrus::runtime::{self, Home, sandbox};
use gyrus_contract::{AddedFolder, Digest, Grant, SandboxOptions};
use gyrus_kernel::{FolderTravels, redact::Secret};
use gyrus_runtime::request::SandboxFlags;
use gyrus_surfaces::console::put;
use gyrus_text::visible;

use crate::{
    Gyrus, agreement,
    config::{Config, read_toml},
    env,
    failure::Failure,
    model_choice::catalogue,
    sandbox_section::{Caches, SandboxSection},
};

/// Name of the file in which a project proposes settings, below its folder.
pub(crate) const PROJECT_FILE: &str = ".gyrus/sandbox.toml";

/// Prefixes of names of variables that are never passed on: they choose what is started, or belong
/// to gyrus.
const REFUSED_STARTS: [&str; 4] = ["LD_", "BASH_", "GIT_", "GYRUS_"];

/// Names of variables that never pass: the sandbox sets them itself, or a shell obeys them.
const REFUSED: [&str; 15] = [
    "PATH",
    "HOME",
    "USER",
    "PWD",
    "TMPDIR",
    "TERM",
    "ENV",
    "IFS",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// Names that are passed on in spite of a refused prefix.
const LET_THROUGH: [&str; 6] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// The person's variables, among which names and patterns choose.
struct VariableNames<'a> {
    /// Keys of models and the like, which no pattern matches.
    keys: BTreeSet<&'a str>,
    environment: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub(crate) struct RunSandbox {
    pub(crate) options: SandboxOptions,
    /// Addresses of loopback that count as typed by the person.
    pub(crate) trusted: Vec<String>,
    pub(crate) grants: Vec<Grant>,
}

impl RunSandbox {
    fn add_folder(&mut self, home: &Home, workspace: &Path, given: &str) -> Result<(), Failure> {
        let (path, writable) = match given.strip_suffix(":ro") {
            Some(path) => (path, false),
            None => (given, true),
        };
        let path = match (path.strip_prefix("~/"), &home.person) {
            (Some(below), Some(person)) => person.join(below),
            _ => workspace.join(path),
        };
        let path = runtime::workspace(home, &path)?;
        let wrong = |what: &str| Failure::usage(format!("{} {what}", path.display()));
        if path.starts_with(workspace) {
            return Err(wrong("lies in the workspace, where the run works anyway"));
        }
        if workspace.starts_with(&path) {
            return Err(wrong("holds the workspace").hint("name the folders that are needed"));
        }
        if home
            .person
            .as_ref()
            .is_some_and(|person| person.starts_with(&path))
        {
            return Err(wrong("holds your home folder").hint("name the folders that are needed"));
        }
        sandbox::check_visible(home, &path).map_err(Failure::usage)?;
        self.grants.push(if writable {
            Grant::Writes { path: path.clone() }
        } else {
            Grant::Reads { path: path.clone() }
        });
        self.options.folders.push(AddedFolder { path, writable });
        Ok(())
    }

    fn add(
        &mut self,
        section: &SandboxSection,
        names: &VariableNames<'_>,
        (home, workspace): (&Home, &Path),
    ) -> Result<(), Failure> {
        for (list, is_shown) in [(&section.env, false), (&section.env_shown, true)] {
            for pattern in list {
                let found = names.matching(pattern)?;
                if is_shown {
                    self.options.shown.extend(found.iter().cloned());
                }
                self.options.variables.extend(found);
            }
        }
        for folder in &section.folders {
            self.add_folder(home, workspace, folder)?;
        }
        self.add_ports(&section.ports);
        if let Some(unknown) = section.unknown_socket() {
            let what = format!(
                "`{}` in `sockets` of [sandbox] is not a socket",
                visible(unknown)
            );
            let hint = "name `ssh-agent`, `docker`, or an absolute path";
            return Err(Failure::usage(what).hint(hint));
        }
        let mut sockets = section.socket_files().into_iter();
        let is_own = |path: &PathBuf| {
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            home.own().iter().any(|own| real.starts_with(own))
        };
        if let Some(own) = sockets.find(is_own) {
            let what = format!("{} belongs to gyrus itself", own.display());
            return Err(Failure::usage(what).hint("a command that reaches it could answer for you"));
        }
        for variable in section.socket_variables() {
            if names.environment.contains_key(variable) {
                self.options.variables.insert(variable.to_owned());
                self.options.shown.insert(variable.to_owned());
            }
        }
        let options = &mut self.options;
        options.shares_caches |= section.caches == Caches::Shared;
        let seconds = section.command_time.map(|time| time.div_ceil(1000));
        options.command_seconds = options.command_seconds.or(seconds);
        let seconds = section.background_after.map(|time| time.div_ceil(1000));
        options.background_seconds = options.background_seconds.or(seconds);
        let bytes = section
            .memory_mb
            .map(|megabytes| megabytes.saturating_mul(1 << 20));
        options.memory_bytes = options.memory_bytes.or(bytes);
        Ok(())
    }

    fn add_ports(&mut self, ports: &[u16]) {
        let at = ports.iter().map(|port| format!("127.0.0.1:{port}"));
        self.trusted.extend(at);
    }
}

impl VariableNames<'_> {
    fn matching(&self, pattern: &str) -> Result<Vec<String>, Failure> {
        let Some((start, end)) = pattern.split_once('*') else {
            check_name(pattern)?;
            return Ok(vec![pattern.to_owned()]);
        };
        let is_meant = |name: &&String| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        let passes =
            |name: &&String| check_name(name).is_ok() && !self.keys.contains(name.as_str());
        let names = self.environment.keys().filter(is_meant).filter(passes);
        Ok(names.cloned().collect())
    }
}

/// Checks that commands may see a variable of this name.
fn check_name(name: &str) -> Result<(), Failure> {
    let mut letters = name.chars();
    let is_start = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !is_start || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let shown = visible(name);
        return Err(Failure::usage(format!(
            "`{shown}` is not the name of a variable"
        )));
    }
    let upper = name.to_ascii_uppercase();
    let is_refused =
        REFUSED.contains(&&*upper) || REFUSED_STARTS.iter().any(|start| upper.starts_with(start));
    if is_refused && !LET_THROUGH.contains(&name) {
        return Err(Failure::usage(format!(
            "commands cannot be given `{name}`: the sandbox sets it, or it changes what programs do"
        )));
    }
    Ok(())
}

/// Returns the settings of a new run: those of the configuration, of the project's file if the
/// person agreed to it, and of flags. At the terminal, a person is asked about the file once.
pub(crate) fn of_run(
    (gyrus, home, config): (&Gyrus, &Home, &Config),
    flags: &SandboxFlags,
    workspace: &Path,
    at_terminal: bool,
) -> Result<RunSandbox, Failure> {
    let catalogue = catalogue(gyrus)?;
    let keys = config.keys.keys().map(String::as_str);
    let names = VariableNames {
        keys: keys.chain(catalogue.all_key_variables()).collect(),
        environment: env::all(),
    };
    let mut run = RunSandbox::default();
    run.add(&config.sandbox, &names, (home, workspace))?;
    if let Some(project) = ProjectFile::read(workspace)?
        && project.is_agreed((gyrus, home, workspace), at_terminal)?
    {
        run.add(&project.section, &names, (home, workspace))?;
    }
    for given in &flags.env {
        let name = given
            .split_once('=')
            .map_or(given.as_str(), |(name, _)| name);
        run.options.variables.extend(names.matching(name)?);
    }
    for folder in &flags.add_dir {
        run.add_folder(home, workspace, folder)?;
    }
    run.add_ports(&flags.port);
    Ok(run)
}

pub(crate) struct ProjectFile {
    section: SandboxSection,
    content: Digest,
}

impl ProjectFile {
    /// Reads the file of a folder; `None` if there is none, or if it can be used for nothing, of
    /// which the person is told.
    pub(crate) fn read(workspace: &Path) -> Result<Option<Self>, Failure> {
        let path = workspace.join(PROJECT_FILE);
        let text = match gyrus_process::read_regular_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return unusable(&error.to_string()),
        };
        match read_toml(&path, &text).and_then(SandboxSection::proposed) {
            Ok(section) => Ok(Some(Self {
                section,
                content: Digest::of(text.as_bytes()),
            })),
            Err(failure) => unusable(&failure.to_string()),
        }
    }

    /// Returns the grant by which a person accepts or refuses the file's proposals.
    pub(crate) fn grant(&self, agreed: bool) -> Grant {
        Grant::Sandbox {
            content: self.content,
            agreed,
        }
    }

    /// Whether the person agreed to exactly this content.
    fn is_agreed(&self, place: (&Gyrus, &Home, &Path), at_terminal: bool) -> Result<bool, Failure> {
        let notice = format!(
            "{PROJECT_FILE} of this folder asks for more in the sandbox, and nobody agreed to it; \
             look at it: gyrus sandbox agree\n"
        );
        let question = format!(
            "{PROJECT_FILE} of this folder asks that commands of runs here have, as it is now:\n{}\
             Shall they? [y/N] ",
            self.in_words()
        );
        let grant = |agreed| self.grant(agreed);
        agreement::settle(place, at_terminal, grant, (&notice, &question))
    }

    pub(crate) fn in_words(&self) -> String {
        let SandboxSection {
            env,
            env_shown,
            ports,
            folders,
            command_time,
            memory_mb,
            ..
        } = &self.section;
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let time = command_time.map(|time| format!("{} seconds", time.div_ceil(1000)));
        let memory = memory_mb.map(|megabytes| format!("{megabytes} MB"));
        let lists = [
            (
                "your variables, whose values are kept from models",
                env.join(", "),
            ),
            (
                "your variables, whose values models may see",
                env_shown.join(", "),
            ),
            (
                "what listens on these ports of this machine",
                ports.join(", "),
            ),
            (
                "these folders, to change unless `:ro` follows",
                folders.join(", "),
            ),
            ("as the longest time of a command", time.unwrap_or_default()),
            ("as the memory of a process", memory.unwrap_or_default()),
        ];
        let lines = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let lines = lines.map(|(what, list)| format!("  {what}: {}\n", visible(&list)));
        lines.collect()
    }
}

fn unusable(why: &str) -> Result<Option<ProjectFile>, Failure> {
    put(&format!(
        "{PROJECT_FILE} of this folder is not used: {why}\n"
    ))?;
    Ok(None)
}

impl SandboxSection {
    /// Checks that a project may propose this section: a person agrees to what the file shows.
    fn proposed(self) -> Result<Self, Failure> {
        let mut variables = self.env.iter().chain(&self.env_shown);
        if let Some(pattern) = variables.find(|name| name.contains('*')) {
            let what = format!("`{pattern}` stands for more than one variable");
            return Err(Failure::usage(what).hint("a project's file names each"));
        }
        if self.caches == Caches::Shared
            || self.background_after.is_some()
            || !self.sockets.is_empty()
        {
            let what = "`sockets`, shared `caches` and `background-after` can be set in your own \
                        config.toml only";
            return Err(Failure::usage(what));
        }
        Ok(self)
    }
}

/// Returns the values of a run's variables, and which of them are secrets. `typed` are the values
/// of `--env` of this command line. A run that another machine may go on with sees only what this
/// machine's configuration names.
pub(crate) fn values(
    config: &Config,
    travels: &FolderTravels,
    options: &SandboxOptions,
    typed: &[String],
) -> (BTreeMap<String, String>, Vec<Secret>) {
    let typed: BTreeMap<&str, &str> = typed.iter().filter_map(|it| it.split_once('=')).collect();
    let configured = config.sandbox.env.iter().chain(&config.sandbox.env_shown);
    let configured = configured.map(String::as_str);
    let mut configured: BTreeSet<&str> = configured.collect();
    for variable in config.sandbox.socket_variables() {
        configured.insert(variable);
    }
    let may_see =
        |name: &&String| *travels == FolderTravels::No || configured.contains(name.as_str());
    let names = options.variables.iter().filter(may_see);
    let values: BTreeMap<String, String> = names
        .filter_map(|name| {
            let typed = typed.get(name.as_str()).map(|value| (*value).to_owned());
            Some((name.clone(), typed.or_else(|| env::variable(name))?))
        })
        .collect();
    let secrets = values
        .iter()
        .filter(|(name, _)| !options.shown.contains(*name));
    let secrets = secrets.map(|(name, value)| Secret {
        name: name.clone(),
        value: value.clone(),
    });
    let secrets = secrets.collect();
    (values, secrets)
}
