//! Tools: their descriptions, their calls and their results.

use std::{net::SocketAddr, ops::Deref, os::fd::OwnedFd, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ActionVerdict, Aim, AttendedEnd, BlobId, BoxedFuture, Claim, CommandOutcome, CommandSpec,
    Digest, EffectId, Image, KeeperError, PersonReply, ProcessAction, ProcessReport, Reply,
    ResolvedCall, RunId, SandboxOptions, ServerPrompt, ServerQuestion, ToolCall, Touch,
    Unresolvable,
};

/// The description of a tool: its name, parameters and effects. Models see name, description and
/// parameters; the gate and the kernel use the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, in lower case with underscores; unique in a registry.
    pub name: String,
    /// The text for the model: what the tool does and when to use it.
    pub description: String,
    /// The JSON Schema of the arguments, always of an object.
    pub parameters: Value,
    /// The things that a call may read, change or start. Empty means nothing outside the run.
    pub touches: Vec<Touch>,
    /// The handling of a call that a crash interrupted.
    pub repeat: Repeat,
}

impl ToolSpec {
    /// Whether one of the tool's touches satisfies `is`.
    pub fn touches(&self, is: impl Fn(&Touch) -> bool) -> bool {
        self.touches.iter().any(is)
    }

    /// Whether the tool belongs to a server that is not part of gyrus.
    pub fn is_served(&self) -> bool {
        self.touches(|touch| touch.service().is_some())
    }
}

/// The handling of a call whose outcome was lost in a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Calls the tool again: it changes nothing.
    Freely,
    /// Asks [`Tool::probe`] whether the call happened.
    Probe,
    /// Never calls the tool again automatically; the loop is told that it was interrupted.
    Never,
}

/// Proof that the kernel allowed a call: the verdict allowed it and its intent is on disk. Tools
/// accept nothing else, so there is no way around the gate.
#[derive(Debug)]
pub struct Cleared<T> {
    what: T,
    effect: EffectId,
}

impl<T> Cleared<T> {
    /// Creates the proof. Reserved for the kernel: clippy and `cargo xtask tidy` refuse any other
    /// caller.
    pub fn mint(what: T, effect: EffectId) -> Self {
        Self { what, effect }
    }

    /// Returns the effect that this call is: an idempotency key that is the same after every crash.
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

/// Error for a text that names a secret unknown to this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret `{name}` is not known to this process")]
pub struct UnknownSecret {
    /// The name inside the marker.
    pub name: String,
}

/// The call of a run that produced a file or note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSource {
    pub run: RunId,
    pub effect: EffectId,
    /// Whether the run had read untrusted text when it made the call.
    pub exposed: bool,
}

/// The environment of a call, which the kernel provides to a tool for its duration.
pub trait Site: Send + Sync {
    /// Returns the folder in which the run works, as a real absolute path.
    fn workspace(&self) -> &Path;

    /// Returns the person's answer, for a call that asked ([`Touch::Asks`], [`Touch::HandsOver`]).
    fn answer(&self) -> Option<&str>;

    /// Returns the origins to which a page may send because of this call ([`Touch::Screen`]), as
    /// decided by the gate; other requests are held.
    fn sends_to(&self) -> &[String];

    /// Whether the page may only send the judged form because of this call, exactly as it was
    /// judged.
    fn sends_only_the_form(&self) -> bool {
        false
    }

    /// Returns the call that is being executed, for tools that record its author; `None` where no
    /// run made it, and then nothing vouches for its texts.
    fn source(&self) -> Option<CallSource> {
        None
    }

    /// Whether the run has read or written the file at this real path, or was told of it by a call
    /// that named it.
    fn is_known(&self, _path: &Path) -> bool {
        true
    }

    /// Returns the reason, as a phrase after the path, why a new file at this path below the
    /// workspace would need a person's approval; `None` if it may be written.
    fn withheld(&self, path: &Path) -> Option<String>;

    /// Replaces every `⟦secret:NAME⟧` by its value, for the outside world only.
    fn reveal(&self, text: &str) -> Result<String, UnknownSecret>;

    /// Stores a picture in the run's blobs, so that [`ToolOutput::images`] can name it.
    ///
    /// # Errors
    /// A message with the reason why the store cannot take the picture.
    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String>;

    /// Reports the progress of the call to observers. Bounded by the tool, never stored.
    fn tell(&self, _words: &str) {}

    /// Returns the longest time limit of a command, in seconds.
    fn longest_command(&self) -> u64 {
        SandboxOptions::default().longest_command()
    }

    /// Runs a command under the run's keeper and waits until its whole process tree has ended.
    fn run_command(
        &self,
        command: CommandSpec,
    ) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>>;

    /// Does the same, unless a person at the terminal puts the command into the background meanwhile.
    fn run_attended(
        &self,
        command: CommandSpec,
    ) -> BoxedFuture<'_, Result<AttendedEnd, KeeperError>> {
        Box::pin(async move { self.run_command(command).await.map(AttendedEnd::Ended) })
    }

    /// Returns a socket, not blocking and not connected, that can be connected to what a process of the
    /// run serves at this address of loopback; `None` if none does.
    fn served(&self, _at: SocketAddr) -> Option<OwnedFd> {
        None
    }

    /// Starts a command that outlives the call, and returns its name.
    ///
    /// # Errors
    /// The command cannot be started, or this place has no background processes.
    fn start_process(&self, _command: CommandSpec) -> BoxedFuture<'_, Result<String, KeeperError>> {
        let reason = "nothing keeps a process here".to_owned();
        Box::pin(async { Err(KeeperError::Keeper { reason }) })
    }

    /// Performs an operation on a background process.
    ///
    /// # Errors
    /// A message for the model: no process has this name, or its input is full.
    fn process<'a>(
        &'a self,
        _name: &'a str,
        _action: ProcessAction,
    ) -> BoxedFuture<'a, Result<ProcessReport, String>> {
        Box::pin(async { Err("no process is kept here".to_owned()) })
    }

    /// Puts a server's question to the person, and waits for the answer. Dropping the future
    /// withdraws the question.
    fn ask_person(&self, _question: ServerQuestion) -> BoxedFuture<'_, PersonReply> {
        Box::pin(async { PersonReply::NotAsked("nobody can be asked here".to_owned()) })
    }

    /// Asks a model to answer a server's prompt, if the person allows it. Dropping the future cuts
    /// that off.
    ///
    /// # Errors
    /// A message with the reason why there is no reply.
    fn ask_model(&self, _prompt: ServerPrompt) -> BoxedFuture<'_, Result<Reply, String>> {
        Box::pin(async { Err("no model can be asked here".to_owned()) })
    }

    /// Whether the command of the call has changed nothing in the workspace yet: what it wrote
    /// follows if the call succeeds, and is discarded if it fails.
    fn changes_follow(&self) -> bool {
        false
    }
}

/// A file that a call left for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The path relative to the workspace.
    pub path: String,
    /// The digest of the content.
    pub digest: Digest,
}

/// The output of a call. The text is bounded by the tool and says what was cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The text for the model. Untrusted.
    pub text: String,
    /// The result as data, for loops and other parts of gyrus: what the text says, without what it
    /// adds for a model. As untrusted as the text, and as bounded. Tools write a type of their own
    /// ([`with_value`](Self::with_value)); a field `text` in it is the result as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Pictures for the model, kept by [`Site::keep`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether the world changed.
    pub verdict: ActionVerdict,
    /// Files that are worth showing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The model's claim that the goal is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The limits of the sandbox that stopped the call's command, each with the setting that would
    /// allow it. They are also in the text. The text says them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox: Vec<String>,
}

impl ToolOutput {
    /// Adds a limit of the sandbox that stopped the call.
    pub fn limited(&mut self, limit: impl Into<String>) {
        let limit = limit.into();
        self.text.push_str("\n[");
        self.text.push_str(&limit);
        self.text.push(']');
        self.sandbox.push(limit);
    }

    /// Creates the output of a call that only read.
    pub fn read(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            value: None,
            images: Vec::new(),
            is_error: false,
            verdict: ActionVerdict::NoEffect,
            artifacts: Vec::new(),
            claim: None,
            sandbox: Vec::new(),
        }
    }

    /// Creates the output of a failed call that changed nothing. `text` tells the model what to do
    /// differently.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::read(text)
        }
    }

    /// Sets the result as data.
    #[must_use]
    pub fn with_value(self, value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).expect("values are plain data");
        Self {
            value: Some(value),
            ..self
        }
    }
}

/// Tools of servers that may join a run after its start.
pub trait LateTools: Send + Sync {
    /// Returns the tools that are available now, after waiting a moment at most.
    fn present(&self) -> BoxedFuture<'_, Vec<std::sync::Arc<dyn Tool>>>;

    /// Returns a tool that joined a run, whether its server is there or not.
    fn recorded(&self, spec: ToolSpec) -> Option<std::sync::Arc<dyn Tool>>;
}

/// The answer to whether an interrupted call happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// The call happened, and would have returned this.
    Happened(Box<ToolOutput>),
    /// The call did not happen, or not completely: calling it again is right.
    DidNotHappen,
    /// It is unknown whether the call happened.
    Unknown,
}

/// A tool that a run can call.
pub trait Tool: Send + Sync {
    /// Returns the tool's description, which is the same at every call.
    fn spec(&self) -> &ToolSpec;

    /// Executes the call. Errors are part of the output, because a loop reasons about them.
    /// Dropping the future must leave nothing running (the site's keeper takes care of processes).
    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> BoxedFuture<'a, ToolOutput>;

    /// Checks the arguments before the call is judged or a person is asked; nothing is resolved.
    /// The error is worded for the model.
    ///
    /// # Errors
    /// Returns an error when the call cannot succeed with these arguments.
    fn check(&self, _arguments: &Value) -> Result<(), Unresolvable> {
        Ok(())
    }

    /// Returns the change that the call would make to a file of the workspace, as a bounded patch
    /// for the person who is asked about the call. Changes nothing. `None` if the change cannot be
    /// foreseen.
    fn preview(&self, _call: &ResolvedCall, _workspace: &Path) -> Option<String> {
        None
    }

    /// Measures the target of a call with [`Touch::Screen`], changing nothing. The result is
    /// judged, and [`Tool::call`] refuses if it has changed by then.
    ///
    /// # Errors
    /// Returns an error, worded for the model, when the call points at nothing.
    fn aim<'a>(
        &'a self,
        _call: &'a ToolCall,
    ) -> BoxedFuture<'a, Result<Option<Aim>, Unresolvable>> {
        Box::pin(async { Ok(None) })
    }

    /// Finds out whether an interrupted call with [`Repeat::Probe`] happened. It undoes a partial
    /// effect, if that is possible, and changes nothing else.
    fn probe<'a>(&'a self, _call: &'a ResolvedCall, _site: &'a dyn Site) -> BoxedFuture<'a, Probe> {
        Box::pin(async { Probe::Unknown })
    }
}
