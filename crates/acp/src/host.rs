//! The program around an editor's agent: it starts runs and knows what a person configured.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gyrus_contract::{BoxedFuture, Principal, RunId, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, Controls, Ending};
use gyrus_surfaces::watching::LiveReplies;
use tokio::sync::{oneshot, watch};

use crate::buffers::EditorBuffers;

/// The program around the agent.
pub trait AcpHost: Send + Sync + 'static {
    /// Returns the journals.
    fn store(&self) -> &Store;

    /// Returns the person in whose name the editor answers.
    fn person(&self) -> Principal;

    /// Returns the values that a session can choose among, each list with the chosen one.
    ///
    /// # Errors
    /// The configuration cannot be used; in words.
    fn choices(&self) -> Result<SettingChoices, String>;

    /// Returns the real folder that a session works in. May block for the disk.
    ///
    /// # Errors
    /// No run may work there; in words.
    fn folder(&self, given: &Path) -> Result<PathBuf, String>;

    /// Checks that a run could be started with these settings. May block for the disk.
    ///
    /// # Errors
    /// It cannot; in words.
    fn check(&self, folder: &Path, settings: &SessionSettings) -> Result<(), String>;

    /// Returns the skills that a person can name with a slash in a folder, with their descriptions.
    /// May block for the disk.
    fn skills(&self, folder: &Path) -> Vec<(String, String)>;

    /// Checks a picture that comes with a goal.
    ///
    /// # Errors
    /// It cannot be given to a model; in words.
    fn picture(&self, bytes: Vec<u8>) -> Result<Attachment, String>;

    /// Begins to drive a run on threads of its own.
    fn begin(&self, request: TurnRequest, controls: TurnControls) -> TurnAtWork;

    /// Says what became of a run that did not reach its goal, and what to do next.
    fn ending(&self, run: RunId, ending: &Ending) -> Option<String>;

    /// Carries out a command of the command line; returns what it printed.
    ///
    /// # Errors
    /// It failed; in words.
    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// The approval mode, by its name.
    pub mode: String,
    /// The loop, by its name.
    pub cognitive_loop: String,
    /// The model, as `--model` takes it; empty: as it is configured.
    pub model: String,
}

/// The values that a session can choose among.
#[derive(Debug, Clone)]
pub struct SettingChoices {
    /// The settings of a new session.
    pub chosen: SessionSettings,
    /// The approval modes.
    pub modes: Vec<SettingChoice>,
    pub loops: Vec<SettingChoice>,
    pub models: Vec<SettingChoice>,
}

/// A value that can be chosen.
#[derive(Debug, Clone)]
pub struct SettingChoice {
    pub value: String,
    pub name: String,
    /// A description; may be empty.
    pub about: String,
}

/// A server of the Model Context Protocol that the editor names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorServer {
    pub name: String,
    pub way: EditorServerWay,
}

/// The way to a server that the editor names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditorServerWay {
    Program {
        command: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
    },
    Http {
        url: String,
        /// The headers of every request.
        headers: BTreeMap<String, String>,
    },
}

/// A run that is to be driven.
#[derive(Debug)]
pub struct TurnRequest {
    pub run: RunId,
    /// Whether it begins or goes on.
    pub work: TurnWork,
    /// The folder that it works in, real.
    pub folder: PathBuf,
    pub settings: SessionSettings,
    /// The servers that the editor named.
    pub servers: Vec<EditorServer>,
    /// The editor's buffers, if it lets them be read.
    pub buffers: Option<EditorBuffers>,
    /// Whether the editor can ask its person for words during a call.
    pub asks_words: bool,
}

#[derive(Debug)]
pub enum TurnWork {
    /// A new run.
    Start {
        goal: Text,
        /// The material that comes with it.
        context: Vec<Attachment>,
        /// The run before it in its session.
        continues: Option<RunId>,
    },
    /// A run that was left.
    Resume,
}

/// A run that is being driven.
#[derive(Debug)]
pub struct TurnAtWork {
    /// Says that the journal of a new run is there.
    pub began: oneshot::Receiver<()>,
    /// The replies of its models while they arrive.
    pub replies: LiveReplies,
    /// The ending of the run, or in words the reason why it did not begin.
    pub ended: oneshot::Receiver<Result<Ending, String>>,
}

/// Ends a turn from outside, whether its run has begun or not. Clones control the same turn.
#[derive(Debug, Clone)]
pub struct TurnControls(watch::Sender<RunOrder>);

#[derive(Debug, Clone, PartialEq)]
enum RunOrder {
    Nothing,
    /// Interrupt the effect in progress, then park.
    Park,
    /// The same, for a person who cancelled the turn.
    Stop(Principal),
}

impl Default for TurnControls {
    fn default() -> Self {
        Self(watch::Sender::new(RunOrder::Nothing))
    }
}

impl TurnControls {
    /// Ends the turn in the name of a person.
    pub(crate) fn stop(&self, by: Principal) {
        self.order(RunOrder::Stop(by));
    }

    /// Parks the run of the turn, so that it can go on later.
    pub(crate) fn park(&self) {
        self.order(RunOrder::Park);
    }

    /// The first order counts.
    fn order(&self, order: RunOrder) {
        self.0.send_if_modified(|given| {
            let is_first = *given == RunOrder::Nothing;
            if is_first {
                *given = order;
            }
            is_first
        });
    }

    /// Waits until the turn is to end.
    pub async fn ended(&self) {
        self.given().await;
    }

    /// Passes the order to the controls of the run, as soon as there is one.
    pub async fn obey(&self, controls: Controls) {
        match self.given().await {
            RunOrder::Nothing => {}
            RunOrder::Park => controls.interrupt_now(),
            RunOrder::Stop(by) => controls.stop(by),
        }
    }

    async fn given(&self) -> RunOrder {
        let mut orders = self.0.subscribe();
        // `self` holds the sender, so the channel does not close.
        match orders.wait_for(|order| *order != RunOrder::Nothing).await {
            Ok(order) => order.clone(),
            Err(_) => RunOrder::Park,
        }
    }
}
