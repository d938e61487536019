//! Errors of setting runs up.

use std::{io, path::PathBuf};

use gyrus_gate::{WorkspaceError, policy::PolicyFileError};
use gyrus_kernel::{KernelError, grants::GrantError, redact::KeyError};
use gyrus_models::{ConnectError, ScriptError};
use gyrus_runtime::{BusError, agents::AgentError, ledger::LedgerError};

/// The reason why a runtime cannot be opened, or a run of it cannot be started or driven.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("the state folder {} cannot be used", folder.display())]
    State { folder: PathBuf, source: io::Error },
    /// The folder cannot be a workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The folder belongs to the system, and the person has not agreed to runs in it.
    #[error("{} belongs to the system", folder.display())]
    SystemFolder { folder: PathBuf },
    #[error("the name of the folder {} is not valid UTF-8", folder.display())]
    FolderName { folder: PathBuf },
    #[error(
        "{} belongs to the memory, which runs reach by its own tools alone",
        folder.display()
    )]
    WorkspaceInVault { folder: PathBuf },
    #[error("no model is named: set GYRUS_MODEL, or the key of a provider like ANTHROPIC_API_KEY")]
    NoModel,
    /// A model cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A script of replies cannot be played.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A policy file cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The standing grants cannot be read.
    #[error(transparent)]
    Grants(#[from] GrantError),
    /// The key for naming secrets cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The journals cannot be read or written.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The agents cannot be used.
    #[error(transparent)]
    Agents(#[from] AgentError),
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The context of an agent cannot be read or written.
    #[error("the context of an agent cannot be used")]
    Context(#[from] LedgerError),
    #[error("the context of {agent} in {session} is in use with another state folder")]
    ContextElsewhere { session: String, agent: String },
    /// The run cannot be started or driven.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
