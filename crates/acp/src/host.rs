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
    /// Returns the store of the journals.
    fn store(&self) -> &Store;

    /// Returns the person in whose name the editor answers.
    fn person(&self) -> Principal;

    /// Returns the selectable values of a session, each list with the chosen one.
    ///
    /// # Errors
    /// A message if the configuration cannot be used.
    fn choices(&self) -> Result<SettingChoices, String>;

    /// Returns the real folder in which a session works. May block for the disk.
    ///
    /// # Errors
    /// A message with the reason why no run may work there.
    fn folder(&self, given: &Path) -> Result<PathBuf, String>;

    /// Checks that a run could be started with these settings. May block for the disk.
    ///
    /// # Errors
    /// A message with the reason why a run could not be started.
    fn check(&self, folder: &Path, settings: &SessionSettings) -> Result<(), String>;

    /// Returns the skills that a person can name with a slash in a folder, with their descriptions.
    /// May block for the disk.
    fn skills(&self, folder: &Path) -> Vec<(String, String)>;

    /// Checks a picture that comes with a goal.
    ///
    /// # Errors
    /// A message with the reason why no model could take the picture.
    fn picture(&self, bytes: Vec<u8>) -> Result<Attachment, String>;

    /// Begins to drive a run on threads of its own.
    fn begin(&self, request: TurnRequest, controls: TurnControls) -> TurnAtWork;

    /// Describes the ending of a run that did not reach its goal, with the next step.
    fn ending(&self, run: RunId, ending: &Ending) -> Option<String>;

    /// Carries out a command of the command line; returns what it printed.
    ///
    /// # Errors
    /// A message if the command failed.
    fn command(&self, arguments: Vec<String>) -> BoxedFuture<'_, Result<String, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// The approval mode, by its name.
    pub mode: String,
    /// The loop, by its name.
    pub cognitive_loop: String,
    /// The model, as `--model` takes it; empty for the configured one.
    pub model: String,
}

/// The selectable values of a session.
#[derive(Debug, Clone)]
pub struct SettingChoices {
    /// The settings of a new session.
    pub chosen: SessionSettings,
    /// The approval modes.
    pub modes: Vec<SettingChoice>,
    pub loops: Vec<SettingChoice>,
    pub models: Vec<SettingChoice>,
}

/// A selectable value.
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

/// The way to reach a server that the editor names.
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

/// A run that the host is to drive.
#[derive(Debug)]
pub struct TurnRequest {
    pub run: RunId,
    /// Whether the run is started or resumed.
    pub work: TurnWork,
    /// The real path of the folder in which the run works.
    pub folder: PathBuf,
    pub settings: SessionSettings,
    /// The servers that the editor named.
    pub servers: Vec<EditorServer>,
    /// The editor's buffers, if it allows reading them.
    pub buffers: Option<EditorBuffers>,
    /// Whether the editor can ask its person for text during a call.
    pub asks_words: bool,
}

#[derive(Debug)]
pub enum TurnWork {
    /// A new run.
    Start {
        goal: Text,
        /// The attachments of the run.
        context: Vec<Attachment>,
        /// The previous run of the session.
        continues: Option<RunId>,
    },
    /// A run that is parked or was cut off.
    Resume,
}

/// A run that the host drives.
#[derive(Debug)]
pub struct TurnAtWork {
    /// Notified when the journal of a new run exists.
    pub began: oneshot::Receiver<()>,
    /// The replies of the run's models as they arrive.
    pub replies: LiveReplies,
    /// The run's ending, or the reason why it did not begin.
    pub ended: oneshot::Receiver<Result<Ending, String>>,
}

/// Pauses or stops a turn from outside, even before its run has begun. Clones control the same
/// turn.
#[derive(Debug, Clone)]
pub struct TurnControls(watch::Sender<RunOrder>);

#[derive(Debug, Clone, PartialEq)]
enum RunOrder {
    Nothing,
    /// Interrupt the effect in progress, then park.
    Park,
    /// Parks the run at once, for a person who cancelled the turn.
    Stop(Principal),
}

impl Default for TurnControls {
    fn default() -> Self {
        Self(watch::Sender::new(RunOrder::Nothing))
    }
}

impl TurnControls {
    pub(crate) fn stop(&self, by: Principal) {
        self.order(RunOrder::Stop(by));
    }

    /// Parks the run of the turn, so that it can be resumed later.
    pub(crate) fn park(&self) {
        self.order(RunOrder::Park);
    }

    /// Gives an order, unless one was given before.
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
