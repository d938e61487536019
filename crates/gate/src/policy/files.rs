//! The policy files that hold in a folder: the person's, and the project's, which may only be
//! stricter.

use std::{
    io,
    path::{Path, PathBuf},
};

use gyrus_contract::DEFAULT_AGENT;
use gyrus_process::{read_regular, read_regular_text};

use super::{LineReader, Policy, PolicyError, PolicyOrigin};
use crate::{FormMeanings, Meanings, MeaningsError, control::ControlTable, service, shell};

/// Path of a project's policy, below its folder.
const OF_PROJECT: &str = ".gyrus/policy.toml";

/// The policy files of a workspace, whether they exist or not.
#[derive(Debug, Clone)]
pub struct PolicyFiles {
    /// The person's policy file.
    pub own: PathBuf,
    /// The folder that runs work in.
    pub workspace: PathBuf,
    /// The person's home folder.
    pub home: Option<PathBuf>,
}

/// A policy cannot be used. Nothing runs until that is fixed.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// A policy file exists, but cannot be read.
    #[error("the policy {} cannot be read", file.display())]
    Read {
        file: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file has invalid rules.
    #[error(transparent)]
    Wrong(#[from] PolicyError),
    #[error("the table of control files {} cannot be used: {reason}", file.display())]
    ControlFiles {
        file: PathBuf,
        /// Description of the error.
        reason: String,
    },
    /// The file of confirmed meanings or forms cannot be read.
    #[error(transparent)]
    Meanings(#[from] MeaningsError),
    /// An agent without settings would be trusted with everything.
    #[error("there is no agent `{agent}`; there are {}", known.join(", "))]
    UnknownAgent {
        agent: String,
        /// Names of the agents that the policy configures.
        known: Vec<String>,
    },
}

impl PolicyFiles {
    /// Returns the files, each with whether it may loosen the default rules.
    pub fn paths(&self) -> [(PathBuf, bool); 2] {
        [
            (self.own.clone(), true),
            (self.workspace.join(OF_PROJECT), false),
        ]
    }

    /// Reads the policy of all files.
    pub fn policy(&self) -> Result<Policy, PolicyFileError> {
        let mut policy = Policy::default();
        for (file, may_loosen) in self.paths() {
            if let Some(found) = self.read(&file, may_loosen)? {
                policy = policy.and(found);
            }
        }
        let policy = match self.more_control_files()? {
            Some(more) => policy.with_control_files(&more),
            None => policy,
        };
        let policy = policy.with_meanings(Meanings::read(&self.meanings())?);
        Ok(policy.with_forms(FormMeanings::read(&self.forms())?))
    }

    /// Returns the path of the person's table of additional control files.
    fn control_files(&self) -> PathBuf {
        self.own.with_file_name("control_files.toml")
    }

    fn more_control_files(&self) -> Result<Option<ControlTable>, PolicyFileError> {
        let file = self.control_files();
        let reason = match read_regular_text(&file) {
            Ok(text) => match ControlTable::parse(&text) {
                Ok(table) => return Ok(Some(table)),
                Err(reason) => reason,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(PolicyFileError::Read { file, source }),
        };
        Err(PolicyFileError::ControlFiles { file, reason })
    }

    /// Returns the folder of the meanings that the person confirmed for servers' tools.
    pub fn meanings(&self) -> PathBuf {
        self.own.with_file_name("mcp-roles")
    }

    /// Returns the folder of the meanings that the person confirmed for forms of pages.
    pub fn forms(&self) -> PathBuf {
        self.own.with_file_name("page-roles")
    }

    /// Reads one file; `None` if it is absent.
    pub fn read(&self, file: &Path, may_loosen: bool) -> Result<Option<Policy>, PolicyFileError> {
        let text = match read_regular_text(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(PolicyFileError::Read {
                    file: file.to_owned(),
                    source,
                });
            }
        };
        let place = shell::ShellPlace {
            folder: self.workspace.clone(),
            home: self.home.clone(),
        };
        let origin = PolicyOrigin {
            file: file.to_owned(),
            may_loosen,
            home: self.home.clone(),
        };
        let lines = LineReader {
            workspace: &self.workspace,
            read: &|line| shell::read_with_names(line, &place),
        };
        Ok(Some(Policy::parse(&text, &origin, lines)?))
    }

    /// Returns the content of the files, byte for byte; `None` for one that cannot be read.
    pub(crate) fn texts(&self) -> Vec<Option<Vec<u8>>> {
        let mut files: Vec<_> = self.paths().into_iter().map(|(file, _)| file).collect();
        files.push(self.control_files());
        files.extend(service::files(&self.meanings()));
        files.extend(service::files(&self.forms()));
        files.iter().map(|file| read_regular(file).ok()).collect()
    }
}

impl Policy {
    /// Refuses an agent without settings: it would be trusted with everything.
    pub fn check_agent(&self, agent: &str) -> Result<(), PolicyFileError> {
        let mut known = self.agents();
        known.insert(DEFAULT_AGENT);
        if known.contains(agent) {
            return Ok(());
        }
        Err(PolicyFileError::UnknownAgent {
            agent: agent.to_owned(),
            known: known.into_iter().map(str::to_owned).collect(),
        })
    }
}
