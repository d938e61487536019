//! The gate: the judgement of every call before a run may act on the world.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Aim, BlobId, CommandReading, Containment, Destination, Digest, MeantCall, RunId,
    SandboxOptions, ToolCall, ToolMeaning, ToolSpec, Touch,
};

/// The risk of a call. Ordered: the higher wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Changes nothing.
    Safe,
    /// A plain, visible change that is contained and can be undone.
    Moderate,
    /// Asks once per session for that scope. Calls that are not understood have this risk.
    High,
    /// A change that always needs a question.
    Critical,
}

/// The decision about a call. Ordered: the stricter wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call goes ahead.
    Allow,
    /// A person is asked.
    Ask,
    /// The call does not happen; the model is told why.
    Deny,
}

/// The approval mode of a run: how much it may do without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Allows calls that change nothing, and denies the rest.
    ReadOnly,
    /// Asks before every change.
    #[default]
    Ask,
    /// Changes files in the workspace without asking.
    Edits,
    /// Asks only about calls that are not contained or are critical.
    Auto,
    /// Decides as `ask`, but denies instead of asking.
    Never,
}

impl Mode {
    /// All modes with their names on the command line and in a configuration.
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

/// The error for a text that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a mode; there are read-only, ask, edits, auto and never")]
pub struct ModeError {
    /// The invalid text.
    pub given: String,
}

impl FromStr for Mode {
    type Err = ModeError;
    /// Parses the name of a mode. Names that other tools use for the same modes are accepted too.
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

/// A path argument, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedPath {
    /// The path as the model wrote it, or the real name if that only looks the same.
    pub given: String,
    /// The absolute path, without `.`, `..` or symbolic links in the part that exists.
    pub real: PathBuf,
    /// The part of `real` below the workspace; `None` when it is outside.
    pub in_workspace: Option<PathBuf>,
    /// The reason why changing the file needs a person's approval, as a phrase, if other programs
    /// obey the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// A call with all its arguments resolved, so that what was judged is also what is executed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedCall {
    /// The tool's name.
    pub tool: String,
    /// The checked arguments.
    pub arguments: Value,
    /// Path arguments by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, ResolvedPath>,
    /// The command line's reading, and the sandbox in which it would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ResolvedCommand>,
    /// The files that the arguments name, if an approval depends on their contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<NamedFile>,
    /// The element of the screen that the call would touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
}

/// A file that an argument of a call names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedFile {
    /// The path as written in the argument, or `program NAME` for one that another one starts.
    pub given: String,
    /// The absolute path, with all links followed.
    pub real: PathBuf,
    /// The state of the file at that moment.
    pub state: FileState,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The content, which was read.
    Content {
        /// The hash of all bytes.
        hash: BlobId,
        /// The number of bytes.
        bytes: u64,
        executable: bool,
    },
    /// The file, which was not read: it is outside of the workspace, holds keys, or is too large.
    Identity(FileIdentity),
}

/// A command line, resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedCommand {
    /// The analysis of the line; links in the paths of its facts are followed.
    pub reading: CommandReading,
    /// The access of the running command; `None` means everything that the person may access.
    pub containment: Option<Containment>,
    /// The program that is started with the person's own rights ([`Touch::RunsAsUser`]).
    ///
    /// [`Touch::RunsAsUser`]: crate::Touch::RunsAsUser
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ResolvedProgram>,
}

/// A resolved program: a file in a place where neither a run nor another user can put one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResolvedProgram {
    /// The absolute path by which the program is started: many programs depend on the name that
    /// they were started by.
    pub path: PathBuf,
    /// The same path, with all links followed.
    pub real: PathBuf,
    /// The identity of the file at the path.
    pub file: FileIdentity,
}

/// The identity of a file, including signs of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The number of the device.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// The time of the last change of its content or attributes, in nanoseconds since 1970. Unlike
    /// the modification time, no program can set it.
    pub changed_ns: i64,
}

/// A permission that a person gives for longer than one call. Only [`Grant::Program`] covers what
/// is critical.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "grants", rename_all = "snake_case")]
pub enum Grant {
    /// Commands that begin with these words.
    Command {
        /// The words, the program first.
        words: Vec<String>,
    },
    /// Starting this program with exactly these arguments and with the person's own rights.
    Program {
        /// The absolute path.
        path: PathBuf,
        /// All arguments, in this order.
        arguments: Vec<String>,
    },
    /// Connections to this host.
    Host {
        /// The host in lower case.
        host: String,
        /// The port; `None` stands for 443 and 80.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    },
    /// Connections to package registries.
    PackageRegistries,
    /// Putting text and files of the workspace into pages of this origin, and sending them there.
    Origin {
        /// The origin as browsers write it: `https://example.com`, `http://localhost:3000`.
        origin: String,
    },
    /// Reading a file or folder, with everything below.
    Reads {
        /// The real path.
        path: PathBuf,
    },
    /// Changing a file or folder, with everything below.
    Writes {
        /// The real path.
        path: PathBuf,
    },
    /// Every call of this tool.
    Tool { tool: String },
    /// Every call of this tool of a server, for as long as the server describes it the same way.
    Service {
        tool: String,
        /// The digest of the server's description.
        definition: Digest,
    },
    /// Calls of this tool of a server that go to one place, for as long as the server describes it
    /// the same way. What such a call sends there is left open.
    Recipient {
        tool: String,
        /// The digest of the server's description.
        definition: Digest,
        /// The destination: a host, or a name in a form that is the same for all its spellings.
        to: String,
    },
    /// Starting the servers that a project's file names. A run never asks for this.
    Servers {
        /// The digest of the file's content.
        content: Digest,
    },
    /// Using what a project's file proposes for the sandbox, or not. A run never asks for this.
    Sandbox {
        /// The digest of the file's content.
        content: Digest,
        /// Whether the person agreed.
        agreed: bool,
    },
    /// Running the hooks that a project's files name, or not. A run never asks for this.
    Hooks {
        /// The digest of these files.
        content: Digest,
        /// Whether the person agreed.
        agreed: bool,
    },
    /// Following the folder's guidelines, or treating them as data. A run never asks for this.
    Guidelines {
        content: Digest,
        /// Whether the guidelines are instructions; otherwise they are data.
        instruct: bool,
    },
    /// Following a skill with exactly these files. A run never asks for this.
    Skill {
        name: String,
        /// The digest of all files of the skill.
        content: Digest,
        /// The rights of a run that follows it.
        rights: Vec<Grant>,
    },
}

impl fmt::Display for Grant {
    /// Formats the grant as a phrase that follows "allowed".
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
            Grant::Recipient { tool, to, .. } => write!(f, "calls of `{tool}` that go to {to}"),
            Grant::Servers { .. } => {
                f.write_str("starting the servers of `.mcp.json`, as it is now")
            }
            Grant::Sandbox { agreed: true, .. } => {
                f.write_str("what `.gyrus/sandbox.toml` asks for, as it is now")
            }
            Grant::Sandbox { agreed: false, .. } => {
                f.write_str("runs without what `.gyrus/sandbox.toml` asks for, as it is now")
            }
            Grant::Hooks { agreed: true, .. } => {
                f.write_str("running the folder's hooks, as they are now")
            }
            Grant::Hooks { agreed: false, .. } => {
                f.write_str("runs without the folder's hooks, as they are now")
            }
            Grant::Skill { name, rights, .. } => {
                write!(f, "following the skill `{name}`, as it is now")?;
                for grant in rights {
                    write!(f, "; with it {grant}")?;
                }
                Ok(())
            }
            Grant::Guidelines { instruct: true, .. } => {
                f.write_str("following the folder's guidelines, as they are now")
            }
            Grant::Guidelines {
                instruct: false, ..
            } => f.write_str("reading the folder's guidelines, as they are now, as data"),
        }
    }
}

/// The reason why a call could not be judged, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Unresolvable {
    /// The mistake in the call and the way to correct it.
    pub reason: String,
}

/// The run and the folder in which a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallPlace<'a> {
    /// The run that makes the call.
    pub run: RunId,
    /// The folder in which the run works.
    pub workspace: &'a Path,
    /// The name of the agent whose trust the run has.
    pub agent: &'a str,
    /// The mode that the person chose.
    pub mode: Mode,
    /// The skills that the run follows.
    pub skills: &'a [FollowedSkill],
    /// The additions of the person to the sandbox of its commands.
    pub sandbox: &'a SandboxOptions,
}

/// The agent whose trust a run has by default.
pub const DEFAULT_AGENT: &str = "default";

/// A skill that a run follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedSkill {
    pub name: String,
    /// The digest of all files of the skill, as they were when the run started.
    pub content: Digest,
    /// The folder with these files, which the run can read and not change; `None` if there are none
    /// beside its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The names of the tools to which the run is limited, besides those that read, ask and finish;
    /// `None` if it is not limited. `screen` and `network` stand for all tools that touch these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The rights that the person granted to the skill when they installed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
}

impl FollowedSkill {
    /// Whether a run that follows the skill may use the tool.
    pub fn allows(&self, spec: &ToolSpec) -> bool {
        let Some(tools) = &self.tools else {
            return true;
        };
        let is_always = |touch: &Touch| match touch {
            Touch::Reads(_)
            | Touch::Compares(_)
            | Touch::Recalls
            | Touch::Asks(_)
            | Touch::HandsOver(_)
            | Touch::Evaluates(_)
            | Touch::Submits(_) => true,
            Touch::Writes(_)
            | Touch::Changes(_)
            | Touch::Starts(_)
            | Touch::RunsAsUser { .. }
            | Touch::Connects(_)
            | Touch::Searches { .. }
            | Touch::Clipboard
            | Touch::Remembers
            | Touch::Screen
            | Touch::Desktop
            | Touch::Serves(_) => false,
        };
        let is_named = |tool: &String| match tool.as_str() {
            "screen" => spec.touches(Touch::is_screen_input),
            "network" => spec.touches(Touch::reads_network),
            name => name == spec.name,
        };
        spec.touches.iter().all(is_always) || tools.iter().any(is_named)
    }

    /// Whether runs can follow this skill and another one at once, because both name some common
    /// tool or one names none.
    pub fn goes_with(&self, other: &Self) -> bool {
        match (&self.tools, &other.tools) {
            (Some(mine), Some(theirs)) => mine.iter().any(|tool| theirs.contains(tool)),
            (None, _) | (_, None) => true,
        }
    }
}

/// The facts besides the call that a verdict depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement<'a> {
    /// The name of the agent whose trust the run has.
    pub agent: &'a str,
    /// The folder in which the run works, as a real path.
    pub workspace: &'a Path,
    /// The mode that the person chose.
    pub mode: Mode,
    /// Whether the run has read untrusted text.
    pub exposed: bool,
    /// Whether the person named the workspace as one that may be lost.
    pub throwaway: bool,
    /// Whether changes in the workspace can be undone.
    pub undoable: bool,
    /// The grants that the person gave in this session.
    pub grants: &'a [Grant],
    /// The skills that the run follows.
    pub skills: &'a [FollowedSkill],
    /// The texts that the person typed: the goal and its amendments.
    pub trusted: &'a [&'a str],
    /// Whether an address to which the call connects occurs literally in what the run has read.
    pub link_was_seen: bool,
    /// The id of the mandate's call that this call is, if any.
    pub mandated: Option<&'a str>,
    /// Whether the run has a mandate.
    pub has_mandate: bool,
}

impl<'a> Judgement<'a> {
    /// Returns the facts for changes in a workspace outside of runs: nothing was granted.
    pub fn outside_of_runs(workspace: &'a Path) -> Self {
        Self {
            agent: DEFAULT_AGENT,
            workspace,
            mode: Mode::default(),
            exposed: true,
            throwaway: false,
            undoable: true,
            grants: &[],
            skills: &[],
            trusted: &[],
            link_was_seen: false,
            mandated: None,
            has_mandate: false,
        }
    }
}

/// The gate's verdict on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The risk of the call.
    pub risk: Risk,
    /// The decision about the call.
    pub decision: Decision,
    /// The reasons for a person.
    pub reasons: Vec<String>,
    /// The grants that a wider approval would give; empty if each call must be asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<Grant>,
    /// The decision if a second look finds more risk. Set for a call that was not understood whole
    /// and is allowed only because its sandbox contains it, or nothing is filled in on its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_doubted: Option<Decision>,
    /// The risk without the person's grants, where that is higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ungranted: Option<Risk>,
}

impl Verdict {
    /// Returns the risk without regard to grants.
    pub fn bare_risk(&self) -> Risk {
        self.ungranted.map_or(self.risk, |bare| bare.max(self.risk))
    }
}

/// A path below the workspace at which a call changed something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChangedPath {
    /// Relative to the workspace.
    pub path: PathBuf,
    /// The kind of change.
    pub change: PathChange,
}

/// The kind of change at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// The path did not exist before.
    Created,
    /// The content, kind or mode of the entry has changed.
    Changed,
    /// The path no longer exists.
    Deleted,
    /// A pipe, a socket or a device was created there.
    Special,
}

/// A change that needs a person's approval to stay in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldChange {
    /// The index of the change in the list that was judged.
    pub index: usize,
    /// The reason, as a phrase that follows the path.
    pub reason: String,
}

/// Judges calls. `resolve` looks at the world and is recorded; `judge` is pure and total, so a
/// recorded call can be judged again under today's policy.
pub trait Gate: Send + Sync {
    /// Checks the arguments and resolves the paths, commands and programs in them.
    fn resolve(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        place: CallPlace<'_>,
    ) -> Result<ResolvedCall, Unresolvable>;

    /// Returns the verdict on a resolved call.
    fn judge(&self, call: &ResolvedCall, spec: &ToolSpec, under: &Judgement<'_>) -> Verdict;

    /// Splits a call of a server's tool, or the sending of a form that a person described, into
    /// values; `None` for every other call. The default knows nothing.
    fn meant(&self, _call: &ResolvedCall, _spec: &ToolSpec) -> Option<MeantCall> {
        None
    }

    /// Returns the meaning that a person confirmed for calls of a server's tool. The default knows
    /// nothing.
    fn meaning(&self, _spec: &ToolSpec) -> Option<ToolMeaning> {
        None
    }

    /// Returns the forms that a person described, of the origins in these texts, each as a tool
    /// whose arguments are the form's fields. The default knows none.
    fn forms(&self, _trusted: &[&str]) -> Vec<(ToolSpec, ToolMeaning)> {
        Vec::new()
    }

    /// Returns the changes by a command in the workspace that need a person's approval to stay
    /// there. All are of one call, sorted by path, and still in the workspace.
    fn withhold(&self, changes: &[ChangedPath], under: &Judgement<'_>) -> Vec<WithheldChange>;

    /// Returns the origins to which a page may send without another question, because a call with
    /// this risk was allowed.
    fn sends_to(&self, call: &ResolvedCall, risk: Risk, under: &Judgement<'_>) -> Vec<String>;

    /// Returns the verdict on a connection that the command of this call wants to open from its
    /// sandbox. Pure and total. The default denies every connection.
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

    /// Whether the file at this path is known to contain keys, passwords or tokens. The default
    /// knows of none.
    fn keeps_secrets(&self, _path: &Path) -> bool {
        false
    }

    /// Returns the loopback addresses of this machine with a listener, each with the decision about
    /// connections of this call's command.
    fn forwarded(
        &self,
        _call: &ResolvedCall,
        _spec: &ToolSpec,
        _under: &Judgement<'_>,
    ) -> Vec<(SocketAddr, Decision)> {
        Vec::new()
    }
}
