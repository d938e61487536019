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
    /// The workspace that `read` takes lines to run in, absolute. It need not exist.
    pub workspace: &'a Path,
    /// Reads a line without running it.
    pub read: &'a dyn Fn(&str) -> CommandReading,
}

/// A call, as far as a policy is about it.
#[derive(Debug, Clone, Copy)]
pub struct PolicySubject<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The checked arguments.
    pub arguments: &'a Value,
    /// The arguments taken apart, if the tool is one of a server.
    pub service: Option<ServiceArguments<'a>>,
    /// The texts that the person typed.
    pub trusted: &'a [&'a str],
    /// Every path that it is known to touch, the ones that a command line names, too.
    pub paths: &'a [SubjectPath],
    /// Every host that it connects to, with or without a port. An empty text stands for a host
    /// that is not known.
    pub hosts: &'a [String],
    /// Every simple command in its command line.
    pub commands: &'a [SimpleCommand],
    /// Part of the command line was not understood, so there may be more to it.
    pub unread: bool,
    /// The run has read untrusted text.
    pub exposed: bool,
    /// Name of the agent that makes the call.
    pub agent: &'a str,
    /// Paths that the call's words may stand for, beside `paths`.
    pub may_name: MayName<'a>,
}

/// The arguments of a call of a server's tool.
#[derive(Debug, Clone, Copy)]
pub struct ServiceArguments<'a> {
    /// All values, each with its role.
    pub values: &'a [ArgumentValue],
    /// Whether the person said what the tool does. Then a rule allows only calls whose destinations
    /// it speaks of.
    pub is_meant: bool,
}

/// Paths that a command line may touch, as far as its words can tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct MayName<'a> {
    /// Paths that a word may name.
    pub paths: &'a [SubjectPath],
    /// A word is known only when it runs, so it could be any.
    pub any: bool,
    /// It runs where nothing can be reached that rules on paths alone deny.
    pub masked: bool,
}

/// A path that a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectPath {
    /// Absolute, without `.`, `..` or symbolic links in the part that exists.
    pub real: PathBuf,
    /// `real` below the workspace; `None` when it is outside.
    pub in_workspace: Option<PathBuf>,
    /// Use that the call makes of the path.
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

/// Use that a call makes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathUse {
    /// It only reads.
    Reads,
    /// It creates, writes, moves or removes.
    Changes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternReading {
    /// The pattern as it stands: for allow rules.
    Narrow,
    /// With all that could be meant: for deny and ask.
    Wide,
}
