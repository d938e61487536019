//! What a tool is, and the only way to call one.

use std::{ops::Deref, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ActionVerdict, Aim, BlobId, Boxed, Claim, CommandOutcome, CommandSpec, Digest, EffectId, Image,
    KeeperError, ResolvedCall, ToolCall, Unresolvable,
};

/// What a tool is called, takes and touches. Models see name, description and parameters; the
/// gate and the kernel live by the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Lower case with underscores; unique in a registry.
    pub name: String,
    /// For the model: what it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, always of an object.
    pub parameters: Value,
    /// What a call may read, change or start. Empty: nothing outside the run.
    pub touches: Vec<Touch>,
    /// What to do with a call that a crash cut off.
    pub repeat: Repeat,
}

/// One thing that a call touches; the named argument says which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// Reads the file or folder at the path in this argument.
    Reads(String),
    /// Creates or changes the file at the path in this argument.
    Writes(String),
    /// Creates, changes or deletes files: this argument is a list of objects, each with a `path`,
    /// and with a `content` or a `diff` unless the file is deleted. In [`ResolvedCall::paths`] they
    /// are named by [`path_in_list`].
    Changes(String),
    /// Reads the files of the workspace that a list as in [`Touch::Changes`] would change, and
    /// changes none.
    Compares(String),
    /// Starts processes; this argument is the command line. Nothing is started when it is missing
    /// and the schema does not require it.
    Starts(String),
    /// Starts one program with the person's own rights, outside of the sandbox and without a shell.
    /// These arguments are its name or absolute path, and the list of its own arguments.
    RunsAsUser {
        /// The argument that names the program.
        program: String,
        /// The argument that lists the program's own arguments.
        arguments: String,
    },
    /// Connects to the host of the URL in this argument and reads from it.
    Connects(String),
    /// Reads or changes the clipboard of the person's desktop, by a helper program.
    Clipboard,
    /// Puts something into a page or an application of the screen.
    Screen,
    /// Runs the script in this argument in the page of the screen. For checks that a person
    /// typed: no model is offered such a tool.
    Evaluates(String),
    /// Sends to the judge at the URL in this argument, and reads what it says. For a judge that a
    /// person typed: no model is offered such a tool.
    Submits(String),
    /// Asks a person the question in this argument; the answer's words are the result.
    Asks(String),
    /// Asks a person to take the screen over, for the reason in this argument; their words are the
    /// result.
    HandsOver(String),
    /// Asks a server that is none of gyrus's own; what it does then is not known here.
    Serves(Service),
}

/// The name of a path of [`Touch::Changes`] or [`Touch::Compares`] in [`ResolvedCall::paths`].
pub fn path_in_list(argument: &str, index: usize) -> String {
    format!("{argument}/{index}")
}

/// A tool of a server that the person, or a project with their leave, connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The server, as the configuration names it.
    pub server: String,
    /// The tool, as the server names it: any text.
    pub tool: String,
    /// What the server can reach.
    pub reach: Reach,
    /// The server says of the tool that it destroys. That it says the contrary counts for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub destructive: bool,
    /// Of all that the server says of the tool.
    pub definition: Digest,
}

/// What a server can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// It runs in the sandbox, without a network.
    Workspace,
    /// It runs in the sandbox, and reaches the hosts that the person named.
    Hosts,
    /// It runs somewhere else, and reaches whatever is there.
    Elsewhere,
    /// It runs here, and nothing contains it.
    Everything,
}

/// What may be done with a call whose outcome was lost in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Call it again: it changes nothing.
    Freely,
    /// Ask [`Tool::probe`] whether it happened.
    Probe,
    /// Never call it again by itself; the loop is told that it was interrupted.
    Never,
}

/// Proof that the kernel let a call through: the verdict allowed it and its intent is on disk.
/// Tools take nothing else, so there is no road around the gate.
#[derive(Debug)]
pub struct Cleared<T> {
    what: T,
    effect: EffectId,
}

impl<T> Cleared<T> {
    /// Clears `what`. The kernel's alone: clippy and `cargo xtask tidy` refuse any other caller.
    pub fn mint(what: T, effect: EffectId) -> Self {
        Self { what, effect }
    }

    /// The effect that this call is: an idempotency key that is the same after every crash.
    pub fn effect(&self) -> &EffectId {
        &self.effect
    }
}

impl<T> Deref for Cleared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.what
    }
}

/// A text names a secret that this process does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret `{name}` is not known to this process")]
pub struct UnknownSecret {
    /// The name inside the marker.
    pub name: String,
}

/// Where a call happens: what the kernel lends a tool for its duration.
pub trait Site: Send + Sync {
    /// The folder that the run works in, as a real absolute path.
    fn workspace(&self) -> &Path;

    /// What the person answered, for a call that asked one ([`Touch::Asks`],
    /// [`Touch::HandsOver`]).
    fn answer(&self) -> Option<&str>;

    /// The origins to which a page may send because of this call ([`Touch::Screen`]), as the gate
    /// says; what goes elsewhere is held.
    fn sends_to(&self) -> &[String];

    /// Replaces every `⟦secret:NAME⟧` by its value, for the outside world only.
    fn reveal(&self, text: &str) -> Result<String, UnknownSecret>;

    /// Puts the bytes of a picture into the run's store, so that [`ToolOutput::images`] can name
    /// it.
    ///
    /// # Errors
    /// In words, when the store cannot take it.
    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String>;

    /// Tells whoever watches how far the call is. Bounded by the tool, never stored.
    fn tell(&self, _words: &str) {}

    /// Runs a command under the run's keeper and waits for its whole process tree to be gone.
    fn run_command(&self, command: CommandSpec) -> Boxed<'_, Result<CommandOutcome, KeeperError>>;
}

/// A file that a call left behind for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Relative to the workspace.
    pub path: String,
    /// Of the content.
    pub digest: Digest,
}

/// What a call returned. The text is bounded by the tool and says what was cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// For the model. Untrusted.
    pub text: String,
    /// Pictures for the model, kept by [`Site::keep`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether the world changed.
    pub verdict: ActionVerdict,
    /// Files worth showing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The model says that it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
}

impl ToolOutput {
    /// A reading: nothing changed.
    pub fn read(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
            is_error: false,
            verdict: ActionVerdict::NoEffect,
            artifacts: Vec::new(),
            claim: None,
        }
    }

    /// A failure that changed nothing. `text` tells the model what to do differently.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::read(text)
        }
    }
}

/// What a tool finds out about a call that may or may not have happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// It did, and this is what it would have returned.
    Happened(ToolOutput),
    /// It did not, or not completely: calling it again is right.
    DidNotHappen,
    /// Nobody can tell.
    Unknown,
}

/// Something that a run can do.
pub trait Tool: Send + Sync {
    /// What it is called, takes and touches. The same at every call.
    fn spec(&self) -> &ToolSpec;

    /// Does it. Errors are part of the output: a loop reasons about them. Dropping the future
    /// must leave nothing running (the site's keeper sees to processes).
    fn call<'a>(&'a self, call: Cleared<ResolvedCall>, site: &'a dyn Site)
    -> Boxed<'a, ToolOutput>;

    /// Checks the arguments before anybody judges the call or is asked about it; nothing is looked
    /// up. The words of an error are for the model.
    ///
    /// # Errors
    /// When the call cannot succeed like this.
    fn check(&self, _arguments: &Value) -> Result<(), Unresolvable> {
        Ok(())
    }

    /// For [`Touch::Screen`]: measures what the call would touch there, changing nothing. What it
    /// finds is judged, and [`Tool::call`] refuses if it has changed by then.
    ///
    /// # Errors
    /// When the call points at nothing; the words are for the model.
    fn aim<'a>(&'a self, _call: &'a ToolCall) -> Boxed<'a, Result<Option<Aim>, Unresolvable>> {
        Box::pin(async { Ok(None) })
    }

    /// For [`Repeat::Probe`]: finds out whether a cut-off call happened. It takes back what is
    /// half done of it, if anything can be, and changes nothing else.
    fn probe<'a>(&'a self, _call: &'a ResolvedCall, _site: &'a dyn Site) -> Boxed<'a, Probe> {
        Box::pin(async { Probe::Unknown })
    }
}
