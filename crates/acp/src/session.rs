//! A session of an editor: a folder, settings, and the runs that its prompts led to.

use std::{path::PathBuf, sync::Arc};

use gyrus_contract::{Answer, Microdollars, Origin, Principal, RunId, Text};
use gyrus_journal::Store;
use gyrus_kernel::{
    RunState,
    approvals::{self, ApprovalError, OpenQuestion},
    log_name,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    buffers::EditorBuffers,
    chains,
    commands::{self, EditorCommand},
    connection::EditorClient,
    host::{AcpHost, EditorServer, SessionSettings, TurnControls, TurnRequest, TurnWork},
    message::RpcError,
    prompt::EditorPrompt,
    questions::{DeniedDigests, EditorQuestions},
    turn::{self, EditorTurn, TurnEnd},
    view::SessionView,
};

pub(crate) struct EditorSession {
    /// The id of the session's first run, whether that has begun or not.
    pub(crate) first: RunId,
    /// The real path of the folder in which the session's runs work.
    pub(crate) folder: PathBuf,
    pub(crate) servers: Vec<EditorServer>,
    denied: Arc<DeniedDigests>,
    pub(crate) state: Mutex<SessionState>,
}

pub(crate) struct SessionState {
    pub(crate) settings: SessionSettings,
    pub(crate) last: Option<RunId>,
    /// The question that the next prompt answers.
    pub(crate) waits_for: Option<OpenQuestion>,
    pub(crate) turn: Option<TurnSlot>,
}

pub(crate) struct TurnSlot {
    pub(crate) prompt: Value,
    pub(crate) controls: TurnControls,
}

/// The parts of the agent that a turn needs beside its session.
#[derive(Clone)]
pub(crate) struct TurnSurroundings {
    pub(crate) host: Arc<dyn AcpHost>,
    pub(crate) client: Arc<EditorClient>,
    pub(crate) abilities: ClientAbilities,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAbilities {
    /// Whether the client can ask its person for text.
    pub(crate) elicits: bool,
    pub(crate) reads_files: bool,
}

impl EditorSession {
    pub(crate) fn new(
        first: RunId,
        folder: PathBuf,
        servers: Vec<EditorServer>,
        settings: SessionSettings,
    ) -> Self {
        Self {
            first,
            folder,
            servers,
            denied: Arc::default(),
            state: Mutex::new(SessionState {
                settings,
                last: None,
                waits_for: None,
                turn: None,
            }),
        }
    }

    /// Returns the session's id in the protocol.
    pub(crate) fn id(&self) -> String {
        self.first.to_string()
    }

    /// Starts a turn for a prompt.
    ///
    /// # Errors
    /// Another one is at work.
    pub(crate) fn begin(&self, prompt: &Value) -> Result<TurnControls, RpcError> {
        let mut state = self.state.lock();
        if state.turn.is_some() {
            return Err(RpcError::request(
                "a turn is at work in this session; wait for its end or cancel it",
            ));
        }
        let controls = TurnControls::default();
        state.turn = Some(TurnSlot {
            prompt: prompt.clone(),
            controls: controls.clone(),
        });
        Ok(controls)
    }

    /// Cuts the turn at work off in the name of a person.
    pub(crate) fn cancel(&self, by: Principal) {
        if let Some(turn) = &self.state.lock().turn {
            turn.controls.stop(by);
        }
    }

    pub(crate) fn park(&self) {
        if let Some(turn) = &self.state.lock().turn {
            turn.controls.park();
        }
    }

    /// Carries a prompt out; returns the stop reason.
    ///
    /// # Errors
    /// No run was begun, or the run cannot be followed.
    pub(crate) async fn prompt(
        &self,
        around: &TurnSurroundings,
        prompt: EditorPrompt,
        controls: TurnControls,
    ) -> Result<&'static str, RpcError> {
        let store = around.host.store().clone();
        let (last, waits_for) = {
            let mut state = self.state.lock();
            (state.last, state.waits_for.take())
        };
        if let Some(last) = last {
            must_be_free(&store, last)?;
        }
        let typed = if prompt.attachments.is_empty() {
            EditorCommand::read(&prompt.text)
        } else {
            None
        };
        let (run, work) = match (typed, waits_for) {
            (Some(EditorCommand::Resume), _) => match last {
                Some(run) => (run, TurnWork::Resume),
                None => return Err(RpcError::request("there is no run in this session yet")),
            },
            (Some(typed), waits_for) => {
                self.state.lock().waits_for = waits_for;
                let said = commands::carry_out(around.host.as_ref(), typed, self.first, last).await;
                let mut view = SessionView::of_turn(self.folder.clone(), Microdollars::default());
                around.client.update(&self.id(), view.say(&said)).await;
                return Ok("end_turn");
            }
            (None, Some(open)) => match answer(around, &store, &open, &prompt.text)? {
                Some(run) => (last.unwrap_or(run), TurnWork::Resume),
                None => self.start(around, prompt, last).await,
            },
            (None, None) => self.start(around, prompt, last).await,
        };
        let end = self.drive(around, (run, work), controls).await;
        if store.exists(&log_name(run)) {
            self.state.lock().last = Some(run);
        }
        let TurnEnd { reason, waits_for } = end?;
        self.state.lock().waits_for = waits_for;
        Ok(reason)
    }

    /// Returns a new run for a prompt. The first one gives the session its title.
    async fn start(
        &self,
        around: &TurnSurroundings,
        prompt: EditorPrompt,
        last: Option<RunId>,
    ) -> (RunId, TurnWork) {
        let EditorPrompt { text, attachments } = prompt;
        if last.is_none() {
            let title = gyrus_surfaces::session_title(&text);
            let update = json!({"sessionUpdate": "session_info_update", "title": title});
            around.client.update(&self.id(), update).await;
        }
        let work = TurnWork::Start {
            goal: Text::new(text, Origin::Person),
            context: attachments,
            continues: last,
        };
        (last.map_or(self.first, |_| RunId::new()), work)
    }

    async fn drive(
        &self,
        around: &TurnSurroundings,
        (run, work): (RunId, TurnWork),
        controls: TurnControls,
    ) -> Result<TurnEnd, RpcError> {
        let (id, host) = (self.id(), around.host.clone());
        let spent = cost(host.store(), self.first);
        let questions = EditorQuestions::new(
            &around.client,
            host.store(),
            &id,
            host.person(),
            (&self.denied, around.abilities.elicits),
        );
        let buffers = around.abilities.reads_files;
        let buffers = buffers.then(|| EditorBuffers::new(&around.client, &id));
        let turn = EditorTurn {
            view: SessionView::of_turn(self.folder.clone(), spent),
            questions,
            session: id,
            client: around.client.clone(),
            controls,
            host,
        };
        let request = TurnRequest {
            run,
            work,
            folder: self.folder.clone(),
            settings: self.state.lock().settings.clone(),
            servers: self.servers.clone(),
            buffers,
            asks_words: around.abilities.elicits,
        };
        turn.run(request).await
    }
}

/// Answers a question by a prompt; returns the run that asked, if it goes on then.
fn answer(
    around: &TurnSurroundings,
    store: &Store,
    open: &OpenQuestion,
    words: &str,
) -> Result<Option<RunId>, RpcError> {
    match approvals::answer(store, open, around.host.person(), Answer::words(words)) {
        Ok(()) => Ok(Some(open.run)),
        // What was answered elsewhere, or is not asked any more, is not what the prompt is about.
        Err(ApprovalError::Void(_)) => Ok(None),
        Err(error) => Err(RpcError::internal(error.to_string())),
    }
}

/// Checks that no other process drives the last run.
fn must_be_free(store: &Store, run: RunId) -> Result<(), RpcError> {
    match RunState::of(store, run) {
        Ok(RunState::Running(_)) => {
            let name = run.short();
            Err(RpcError::request(format!(
                "run {name} of this session is at work in another process; tell it more with: \
                 gyrus steer {name} TEXT, or end it: gyrus stop {name}"
            )))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(RpcError::internal(error.to_string())),
    }
}

fn cost(store: &Store, first: RunId) -> Microdollars {
    let chain = chains::of(store, first).ok().flatten();
    let runs = chain.into_iter().flat_map(|chain| chain.runs);
    let costs = runs.filter_map(|run| gyrus_kernel::spent(store, run).ok());
    costs.fold(Microdollars::default(), |sum, spent| sum + spent.cost)
}

/// Sends the client the events of a session's runs, and the state of the last run; returns the
/// question that the next prompt answers.
pub(crate) async fn replay(
    around: &TurnSurroundings,
    session: &EditorSession,
    runs: &[RunId],
) -> Result<Option<OpenQuestion>, RpcError> {
    let internal = |error: gyrus_journal::Error| RpcError::internal(error.to_string());
    let (store, id) = (around.host.store(), session.id());
    let mut view = SessionView::of_past(session.folder.clone());
    for run in runs {
        let reader = store.reader(&log_name(*run)).map_err(internal)?;
        for entry in reader.entries(1).map_err(internal)? {
            let entry = entry.map_err(internal)?;
            for update in view.entry(*run, &entry, &reader) {
                around.client.update(&id, update).await;
            }
            if let Ok(gyrus_kernel::Entry::RunEnded(ended)) = gyrus_kernel::parse(&entry) {
                let said = match &ended.ending {
                    gyrus_kernel::Ending::Reached { claim, .. } => view.answer(claim),
                    other => around
                        .host
                        .ending(*run, other)
                        .map(|words| view.say(&words)),
                };
                if let Some(said) = said {
                    around.client.update(&id, said).await;
                }
            }
        }
    }
    let Some(last) = runs.last() else {
        return Ok(None);
    };
    let (words, waits_for) = left(around, *last)?;
    if let Some(words) = words {
        around.client.update(&id, view.say(&words)).await;
    }
    Ok(waits_for)
}

/// Describes the state in which a run was left, and returns the question that a prompt can answer.
pub(crate) fn left(
    around: &TurnSurroundings,
    run: RunId,
) -> Result<(Option<String>, Option<OpenQuestion>), RpcError> {
    let store = around.host.store();
    let state = RunState::of(store, run).map_err(|error| RpcError::internal(error.to_string()))?;
    let goes_on = "`/resume` goes on with it; any other message begins a run that knows of it.";
    let words = match state {
        RunState::Over(_) | RunState::NeverBegan | RunState::Record(_) => {
            return Ok((None, None));
        }
        RunState::Running(_) => {
            let name = run.short();
            return Ok((
                Some(format!("Run {name} is at work in another process.")),
                None,
            ));
        }
        RunState::Parked(_) => format!("The last run was interrupted. {goes_on}"),
        RunState::CutOff => format!("The process of the last run ended before it did. {goes_on}"),
    };
    let open = turn::still_open(store, run)?;
    if let Some(question) = open
        .iter()
        .find(|open| open.card.question && !around.abilities.elicits)
    {
        let mut text = gyrus_surfaces::console::card::plain_text(question);
        text.push_str("Your next message answers it.");
        return Ok((Some(text), Some(question.clone())));
    }
    let waiting = match open.len() {
        0 => String::new(),
        questions => format!(" {}", crate::questions::waiting(questions)),
    };
    Ok((Some(format!("{words}{waiting}")), None))
}
