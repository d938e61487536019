//! What stands between a run and the world.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Aim, CommandReading, Containment, Destination, Digest, RunId, ToolCall, ToolSpec};

/// How bad a call could be. Ordered: the higher wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Changes nothing.
    Safe,
    /// A plain, visible change, contained and undoable.
    Moderate,
    /// Asks, once a session for that scope. What is not understood is here.
    High,
    /// Always asks.
    Critical,
}

/// What happens with a call. Ordered: the stricter wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It goes ahead.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not happen; the model is told why.
    Deny,
}

/// How much a run may do without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Only what changes nothing; the rest is denied.
    ReadOnly,
    /// Asks before every change.
    #[default]
    Ask,
    /// Changes files in the workspace without asking.
    Edits,
    /// Asks only for what is not contained, and for what is critical.
    Auto,
    /// As `ask`, but denies instead of asking.
    Never,
}

impl Mode {
    /// Every mode with the word for it on the command line and in a configuration.
    pub const ALL: [(Mode, &'static str); 5] = [
        (Mode::ReadOnly, "read-only"),
        (Mode::Ask, "ask"),
        (Mode::Edits, "edits"),
        (Mode::Auto, "auto"),
        (Mode::Never, "never"),
    ];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = Mode::ALL
            .into_iter()
            .find(|(mode, _)| mode == self)
            .expect("every mode is in Mode::ALL");
        f.write_str(word)
    }
}

/// Not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a mode; there are read-only, ask, edits, auto and never")]
pub struct ModeError {
    /// What was given.
    pub given: String,
}

impl FromStr for Mode {
    type Err = ModeError;
    /// Also understands the words of other tools for the same thing.
    fn from_str(s: &str) -> Result<Self, ModeError> {
        match s {
            "read-only" | "readonly" | "plan" => Ok(Mode::ReadOnly),
            "ask" | "default" | "manual" | "on-request" | "untrusted" => Ok(Mode::Ask),
            "edits" | "acceptEdits" | "workspace-write" => Ok(Mode::Edits),
            "auto" => Ok(Mode::Auto),
            "never" | "dontAsk" => Ok(Mode::Never),
            _ => Err(ModeError {
                given: s.chars().take(40).collect(),
            }),
        }
    }
}

/// A path argument, looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedPath {
    /// As the model wrote it.
    pub given: String,
    /// Absolute, without `.`, `..` or symbolic links in the part that exists.
    pub real: PathBuf,
    /// `real` below the workspace; `None` when it is outside.
    pub in_workspace: Option<PathBuf>,
}

/// A call with everything that its arguments point at looked up, so that what was judged is what
/// is executed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedCall {
    /// The tool's name.
    pub tool: String,
    /// The checked arguments.
    pub arguments: Value,
    /// Path arguments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, ResolvedPath>,
    /// What its command line does, and in what it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ResolvedCommand>,
    /// What on the screen it would touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
}

/// A command line, looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedCommand {
    /// What it does; links in the paths of its facts are followed.
    pub reading: CommandReading,
    /// What it may reach when it runs; `None`: whatever the person may.
    pub containment: Option<Containment>,
    /// The program that is started with the person's own rights ([`Touch::RunsAsUser`]).
    ///
    /// [`Touch::RunsAsUser`]: crate::Touch::RunsAsUser
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ResolvedProgram>,
}

/// A program, looked up: a file in a place where neither a run nor another user can put one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedProgram {
    /// Absolute, as it is to be started: many programs go by the name that they were started by.
    pub path: PathBuf,
    /// The same, with all links followed.
    pub real: PathBuf,
    /// The file that is there.
    pub file: FileIdentity,
}

/// What tells a file from another one, or from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The number of the device that holds it.
    pub device: u64,
    /// Its number on that device.
    pub inode: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// When its content or its attributes changed last, in nanoseconds since 1970. Unlike the time
    /// of its content no program can set it.
    pub changed_ns: i64,
}

/// Something that a person allows for longer than one call. Only [`Grant::Program`] covers what is
/// critical.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "grants", rename_all = "snake_case")]
pub enum Grant {
    /// Commands that begin with these words.
    Command {
        /// The program first.
        words: Vec<String>,
    },
    /// Starting this program with exactly these arguments and the person's own rights.
    Program {
        /// Absolute.
        path: PathBuf,
        /// All of them, in this order.
        arguments: Vec<String>,
    },
    /// Connections to this host.
    Host {
        /// In lower case.
        host: String,
        /// At this port; `None` stands for 443 and 80.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    },
    /// Connections to the registries that packages come from.
    PackageRegistries,
    /// Putting text and files of the workspace into pages of this origin, and sending them there.
    Origin {
        /// As browsers write it: `https://example.com`, `http://localhost:3000`.
        origin: String,
    },
    /// Reading this file or folder, with all below.
    Reads {
        /// Real.
        path: PathBuf,
    },
    /// Changing this file or folder, with all below.
    Writes {
        /// Real.
        path: PathBuf,
    },
    /// Every call of this tool.
    Tool {
        /// Its name.
        tool: String,
    },
    /// Every call of this tool of a server, for as long as the server says the same of it.
    Service {
        /// Its name.
        tool: String,
        /// Of what the server says.
        definition: Digest,
    },
    /// Starting the servers that a project's file names. Not asked about by a run.
    Servers {
        /// Of the file's content.
        content: Digest,
    },
}

impl fmt::Display for Grant {
    /// What is allowed, as it follows that word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Command { words } => write!(f, "commands that begin with `{}`", words.join(" ")),
            Grant::Program { path, arguments } => {
                let words = crate::quoted_words(path, arguments);
                write!(f, "`{words}`, in exactly these words, with your own rights")
            }
            Grant::Host { host, port: None } => write!(f, "connections to {host}"),
            Grant::Host {
                host,
                port: Some(port),
            } => write!(f, "connections to {host}, port {port}"),
            Grant::PackageRegistries => f.write_str("getting packages from the package registries"),
            Grant::Origin { origin } => write!(f, "typing, uploading and sending on {origin}"),
            Grant::Reads { path } => write!(f, "reading {}", path.display()),
            Grant::Writes { path } => write!(f, "changing {}", path.display()),
            Grant::Tool { tool } => write!(f, "every call of `{tool}`"),
            Grant::Service { tool, .. } => {
                write!(f, "every call of `{tool}`, as its server describes it now")
            }
            Grant::Servers { .. } => {
                f.write_str("starting the servers of `.mcp.json`, as it is now")
            }
        }
    }
}

/// Why a call could not even be judged. The words are for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Unresolvable {
    /// What is wrong with the call and what would be right.
    pub reason: String,
}

/// Where a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The run that makes it.
    pub run: RunId,
    /// The folder that the run works in.
    pub workspace: &'a Path,
    /// Under whose trust the run works.
    pub agent: &'a str,
    /// The mode that the person chose.
    pub mode: Mode,
}

/// Whose trust a run has for which none was named.
pub const DEFAULT_AGENT: &str = "default";

/// What a verdict depends on besides the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement<'a> {
    /// Under whose trust the run works.
    pub agent: &'a str,
    /// The folder that the run works in, real.
    pub workspace: &'a Path,
    /// The mode that the person chose.
    pub mode: Mode,
    /// The run has read untrusted text.
    pub exposed: bool,
    /// The person named the workspace as one that may be lost.
    pub throwaway: bool,
    /// What changes in the workspace can be undone.
    pub undoable: bool,
    /// What the person allowed in this session.
    pub grants: &'a [Grant],
    /// What the person typed: the goal and its amendments.
    pub trusted: &'a [&'a str],
    /// An address that the call connects to stands, byte for byte, in what the run has read.
    pub link_was_seen: bool,
}

/// What the gate says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How bad it could be.
    pub risk: Risk,
    /// What happens.
    pub decision: Decision,
    /// Why, in words for a person.
    pub reasons: Vec<String>,
    /// What a wider yes would grant; empty if each call must be asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<Grant>,
    /// It was not understood whole, and is allowed only because of what contains it: what happens
    /// if a second look at it finds more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_doubted: Option<Decision>,
    /// How bad it would be if the person had granted nothing, where that is worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ungranted: Option<Risk>,
}

impl Verdict {
    /// How bad it could be, whatever was granted.
    pub fn bare_risk(&self) -> Risk {
        self.ungranted.map_or(self.risk, |bare| bare.max(self.risk))
    }
}

/// One path below the workspace at which a call changed something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChangedPath {
    /// Relative to the workspace.
    pub path: PathBuf,
    /// What happened to it.
    pub change: PathChange,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// Nothing was there before.
    Created,
    /// Its content, kind or mode is another.
    Changed,
    /// It is gone.
    Deleted,
    /// A pipe, a socket or a device stands there that did not before.
    Special,
}

/// A change that may not stay in the workspace without a person's yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldChange {
    /// Which of the changes that were shown.
    pub index: usize,
    /// Why, in words that follow the path.
    pub reason: String,
}

/// Judges calls. `resolve` looks at the world and is recorded; `judge` is pure and total, so a
/// recorded call can be judged again under today's policy.
pub trait Gate: Send + Sync {
    /// Checks the arguments and looks up what they point at.
    fn resolve(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        place: Place<'_>,
    ) -> Result<ResolvedCall, Unresolvable>;

    /// The verdict on a resolved call.
    fn judge(&self, call: &ResolvedCall, spec: &ToolSpec, under: &Judgement<'_>) -> Verdict;

    /// Which of the changes that a command made in the workspace may not stay there without a
    /// person's yes. They are all of one call, sorted by path; the workspace holds them still.
    fn withhold(&self, changes: &[ChangedPath], under: &Judgement<'_>) -> Vec<WithheldChange>;

    /// The origins to which a page may send without another question because of a call that was
    /// let through with this risk.
    fn sends_to(&self, call: &ResolvedCall, risk: Risk, under: &Judgement<'_>) -> Vec<String>;

    /// The verdict on a connection that the command of this call wants to make out of its sandbox.
    /// Pure and total. A gate that does not say otherwise lets nothing connect.
    fn judge_destination(
        &self,
        _destination: &Destination,
        _call: &ResolvedCall,
        _spec: &ToolSpec,
        _under: &Judgement<'_>,
    ) -> Verdict {
        Verdict {
            risk: Risk::High,
            decision: Decision::Deny,
            reasons: vec!["nothing may connect here".to_owned()],
            wider: Vec::new(),
            if_doubted: None,
            ungranted: None,
        }
    }

    /// Whether the file at this path is known to hold keys, passwords or tokens. A gate that does
    /// not say otherwise knows of none.
    fn keeps_secrets(&self, _path: &Path) -> bool {
        false
    }

    /// The addresses of this machine's loopback that the command of this call is let to without a
    /// question, and where something listens now.
    fn forwarded(
        &self,
        _call: &ResolvedCall,
        _spec: &ToolSpec,
        _under: &Judgement<'_>,
    ) -> Vec<SocketAddr> {
        Vec::new()
    }
}
