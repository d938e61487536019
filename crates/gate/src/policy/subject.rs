//! The input of a policy: where it comes from, how it reads lines, and the calls that it rules on.

use std::path::{Path, PathBuf};

use gyrus_contract::{ArgumentValue, CommandReading, SimpleCommand};
use serde_json::Value;

use crate::control;

/// Source of a policy, which decides what it may say.
#[derive(Debug, Clone)]
pub struct PolicyOrigin {
    /// The file; its name stands in errors and reasons.
    pub file: PathBuf,
    /// The person's own file may allow. A project's may not: `false`.
    pub may_loosen: bool,
    /// The person's home folder as a real path, which `~/` stands for.
    pub home: Option<PathBuf>,
}

/// Reads the command lines of examples.
#[derive(Clone, Copy)]
pub struct LineReader<'a> {
    /// Absolute path of the workspace in which `read` assumes that lines run. It need not exist.
    pub workspace: &'a Path,
    /// Reads a line without running it.
    pub read: &'a dyn Fn(&str) -> CommandReading,
}

/// A call, as far as a policy is about it.
#[derive(Debug, Clone, Copy)]
pub struct PolicySubject<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The checked arguments.
    pub arguments: &'a Value,
    /// The arguments taken apart, if the tool is one of a server.
    pub service: Option<ServiceArguments<'a>>,
    /// The texts that the person typed.
    pub trusted: &'a [&'a str],
    /// Every path that the call is known to touch, including those in its command line.
    pub paths: &'a [SubjectPath],
    /// Every host to which the call connects, with or without a port. An empty text stands for a
    /// host that is not known.
    pub hosts: &'a [String],
    /// Every simple command in the call's command line.
    pub commands: &'a [SimpleCommand],
    /// Part of the command line was not understood, so there may be more to it.
    pub unread: bool,
    /// The run has read untrusted text.
    pub exposed: bool,
    /// Name of the agent that makes the call.
    pub agent: &'a str,
    /// Paths that the words of the call may stand for, beside `paths`.
    pub may_name: MayName<'a>,
}

/// The arguments of a call of a server's tool.
#[derive(Debug, Clone, Copy)]
pub struct ServiceArguments<'a> {
    /// All values, each with its role.
    pub values: &'a [ArgumentValue],
    /// Whether the person confirmed the tool's meaning. Then a rule allows only calls whose
    /// destinations it covers.
    pub is_meant: bool,
}

/// Paths that a command line may touch, as far as its words show.
#[derive(Debug, Clone, Copy, Default)]
pub struct MayName<'a> {
    /// Paths that a word may name.
    pub paths: &'a [SubjectPath],
    /// Whether a word is known only at run time, and could be any path.
    pub any: bool,
    /// Whether the command runs where paths denied by rules on paths alone cannot be reached.
    pub masked: bool,
}

/// A path that a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPath {
    /// Absolute, without `.`, `..` or symbolic links in the part that exists.
    pub real: PathBuf,
    /// `real` below the workspace; `None` when it is outside.
    pub in_workspace: Option<PathBuf>,
    /// The way in which the call uses the path.
    pub used: PathUse,
    /// Whether other programs obey the file.
    pub obeyed: bool,
}

impl SubjectPath {
    /// A real path, for a run in this workspace.
    pub fn new(real: PathBuf, used: PathUse, workspace: &Path) -> Self {
        Self {
            in_workspace: real.strip_prefix(workspace).ok().map(Path::to_path_buf),
            obeyed: control::has_git_part(&real) || control::obeyed_by(&real).is_some(),
            real,
            used,
        }
    }
}

/// The way in which a call uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathUse {
    /// The call only reads the path.
    Reads,
    /// The call creates, writes, moves or removes the path.
    Changes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternReading {
    /// The literal pattern: for allow rules.
    Narrow,
    /// The pattern with all its possible meanings: for deny and ask.
    Wide,
}
