//! A run that is asked for: one type for the command line, the server, chats, editors and agents.
//!
//! The flags of `gyrus run` are the only list of options that there is. Each is written by its long
//! name without dashes, as JSON, in the queue and by whoever asks from elsewhere.

mod answer_schema;
mod flags;
pub mod options;
mod values;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use gyrus_contract::{BlobId, DEFAULT_AGENT, Origin, RunId, Text};
use serde::{Deserialize, Serialize};

pub use self::{
    answer_schema::GivenSchema,
    flags::{
        ApprovalFlags, ContextFlags, LimitFlags, ModelFlags, OfferedTools, OnFailure, RunFlags,
        RunOptions, SandboxFlags, ScreenFlags, ScreenWord, VerificationFlags,
    },
    values::{Approve, Confinement, CostLimit, RefusedRequest, confinement},
};

/// Text with which a run starts beside its goal. It is data, and never instructs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextText {
    pub name: String,
    /// The text, with its source.
    pub text: Text,
}

/// The content with which a folder begins that goes with its run from machine to machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderBase {
    /// A snapshot of a folder, whose contents all machines of the queue can read.
    Uploaded { snapshot: BlobId },
    /// A commit of a git repository.
    Commit {
        /// The address of the repository.
        url: String,
        /// The commit, in hexadecimal digits.
        commit: String,
        /// The branch, if one was checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
}

/// The label of a machine that creates folders for runs.
pub const TRAVELLING_FOLDERS: &str = "folders";

/// The beginning of the label of a folder, before its path.
pub(crate) const FOLDER: &str = "folder:";

/// A run that is to be started.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct RunRequest {
    /// Goal to reach; `-` reads it from standard input
    #[arg(value_parser = typed)]
    pub goal: Text,
    /// The folder to work in.
    #[arg(skip)]
    pub workdir: PathBuf,
    /// With --fleet: label that the worker's machine must have, as `gpu`; may be repeated
    #[arg(long, value_name = "LABEL")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    #[command(flatten)]
    #[serde(default, with = "options", skip_serializing_if = "options::are_none")]
    pub options: RunOptions,
    /// Text that it starts with.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextText>,
    /// The run whose memory it goes on from.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// The content of the folder, if the run works in one that goes with it from machine to machine;
    /// `workdir` only says then where it came from.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FolderBase>,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a parser of the command line may fail"
)]
fn typed(goal: &str) -> Result<Text, String> {
    Ok(Text::new(goal, Origin::Person))
}

impl RunRequest {
    /// Returns a request with a goal and a folder, and nothing else.
    pub fn new(goal: Text, workdir: PathBuf) -> Self {
        Self {
            goal,
            workdir,
            options: RunOptions::default(),
            needs: Vec::new(),
            context: Vec::new(),
            continues: None,
            base: None,
        }
    }

    /// Returns a request with a goal and flags, which may name a folder.
    pub fn with_flags(goal: Text, flags: RunFlags) -> Self {
        let workdir = flags.workdir.clone().unwrap_or_default();
        let mut request = Self::new(goal, workdir);
        request.options.flags = flags;
        request
    }

    /// Returns the labels that a machine must have to carry out the run: those that are given, and
    /// those that the folder and the options amount to.
    pub(crate) fn all_needs(&self) -> BTreeSet<String> {
        let mut needs: BTreeSet<String> = self.needs.iter().cloned().collect();
        needs.insert(match &self.base {
            None => format!("{FOLDER}{}", self.workdir.display()),
            Some(_) => TRAVELLING_FOLDERS.to_owned(),
        });
        needs.extend(self.profile().map(|profile| format!("profile:{profile}")));
        let flags = &self.options.flags.screen;
        let screen = match (flags.screen.and_then(ScreenWord::label), &flags.url) {
            (None, Some(_)) => Some("browser"),
            (screen, _) => screen,
        };
        needs.extend(screen.map(str::to_owned));
        needs
    }

    /// Returns the name of the agent under whose trust it works.
    pub fn agent(&self) -> &str {
        self.options.flags.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }

    /// Returns the name of the browser profile that the run uses exclusively.
    pub fn profile(&self) -> Option<&str> {
        self.options.flags.screen.profile.as_deref()
    }
}
