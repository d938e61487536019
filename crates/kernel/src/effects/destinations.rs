//! Connections that a command asks for while it runs in its sandbox: each is judged when it is
//! requested, and where the gate says so a person is asked while it is held.
//!
//! A question is an effect within the call, `2.3.0.2` the first of call `2.3`: `2.3.0.1` is about
//! the call's changes, and second looks at a call are numbered by its verdicts, from 1 on. A
//! question covers every connection of this command to the same host and port, or to what one wider
//! answer would cover. Where the run would have to park for the answer, the connection is refused;
//! the question is put all the same, and continued when the command's result is in the journal. An
//! approval then counts for one more start of this command.

use std::{collections::BTreeMap, convert::Infallible, net::IpAddr, os::fd::OwnedFd, path::Path};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use gyrus_contract::{
    BoxedFuture, CommandOutcome, CommandSpec, ConnectionPolicy, Containment, Decision, Destination,
    Digest, EffectId, Grant, KeeperError, Listeners, OnAsk, Origin, Outlet, ResolvedCall, Text,
    ToolCall, ToolSpec, Verdict,
};
use gyrus_process::keeper::{Keeper, KeeperSandbox};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc, oneshot, watch};

use super::approval;
use crate::{ApprovalCard, ConnectionPermit, Entry, Stop, clock::now_ms, core::Core};

/// Maximum number of destinations that are asked about in one command; further ones are refused.
const MAX_QUESTIONS: usize = 16;

/// Maximum number of refused destinations that a result names.
const MAX_REFUSED: usize = 10;

/// Maximum number of permits that wait for their command; the oldest is dropped.
const MAX_PERMITS: usize = 32;

/// Number of bytes of an argument that a card shows.
const SHOWN: usize = 2_000;

/// The branch of a call in which its questions are numbered.
const BRANCH: u32 = 0;

/// The number in that branch of the question about the call's changes.
const CHANGES: u32 = 1;

/// The reason for refusing a connection that a person is asked about later.
const LATER: &str = "a person is asked about it when the command has ended";

/// A connection that somebody is to decide about, and the way back.
pub(super) type AskedConnection = (Destination, oneshot::Sender<Result<(), String>>);

fn digest_of(call: &ToolCall) -> Digest {
    Digest::of_json(&(&call.tool, &call.arguments))
}

/// Removes the permits that this start of a call uses up.
pub(super) fn use_permits(core: &Core, command: &Digest) -> Vec<ConnectionPermit> {
    let mut shared = core.shared();
    let permits = shared
        .state
        .permits
        .extract_if(.., |one| one.command == *command);
    permits.collect()
}

/// Whether an answer about one destination also covers the other.
fn covers(asked: (&Destination, &[Grant]), wanted: (&Destination, &[Grant])) -> bool {
    asked.0 == wanted.0 || (!asked.1.is_empty() && asked.1 == wanted.1)
}

/// The questions about connections of a call, in this process or an earlier one.
#[derive(Debug)]
pub(super) struct ConnectionQuestions {
    command: Digest,
    asked: Vec<ConnectionQuestion>,
}

#[derive(Debug)]
struct ConnectionQuestion {
    effect: EffectId,
    destination: Destination,
    past: approval::PastQuestions,
}

impl ConnectionQuestions {
    /// Takes the entries of questions about connections from `recorded`.
    pub(super) fn recorded(
        core: &Core,
        effect: &EffectId,
        call: &ToolCall,
        recorded: &mut Vec<Entry>,
    ) -> Self {
        let branch = effect.then(BRANCH);
        let is_own = |entry: &mut Entry| entry.effect().is_some_and(|id| id.is_within(&branch));
        let mut past: BTreeMap<EffectId, approval::PastQuestions> = BTreeMap::new();
        for entry in recorded.extract_if(.., is_own) {
            if let Some(effect) = entry.effect().cloned() {
                past.entry(effect).or_default().take(core, entry);
            }
        }
        let asked = past.into_iter().filter_map(|(effect, past)| {
            let destination = past.destination()?.clone();
            Some(ConnectionQuestion {
                effect,
                destination,
                past,
            })
        });
        Self {
            command: digest_of(call),
            asked: asked.collect(),
        }
    }

    pub(super) fn command(&self) -> &Digest {
        &self.command
    }

    /// Returns the questions that are still open.
    pub(super) fn pending(&self) -> Vec<EffectId> {
        let open = self.asked.iter().filter(|one| one.past.is_unanswered());
        open.map(|one| one.effect.clone()).collect()
    }

    /// Refuses answers to questions that were open when the command ended and are not continued.
    pub(super) async fn refuse_answers(
        &self,
        core: &Core,
        pending: &[EffectId],
    ) -> Result<(), Stop> {
        let why = "the command that wanted to connect has ended";
        for question in &self.asked {
            if question.past.outcome().is_none() && !pending.contains(&question.effect) {
                approval::refuse_all(core, &question.effect, why).await?;
            }
        }
        Ok(())
    }

    fn add(&mut self, call: &EffectId, destination: Destination) -> &mut ConnectionQuestion {
        let last = self.asked.iter().filter_map(|one| one.effect.path().last());
        let number = last.max().copied().unwrap_or(CHANGES).saturating_add(1);
        self.asked.push(ConnectionQuestion {
            effect: call.then(BRANCH).then(number),
            past: approval::PastQuestions::about(destination.clone()),
            destination,
        });
        self.asked.last_mut().expect("it was pushed")
    }

    /// Continues the questions that were open when the command ended. Returns the text for the
    /// model about the answers. The command's result is recorded, so this may park the run.
    pub(super) async fn settle(
        &mut self,
        core: &Core,
        pending: &[EffectId],
    ) -> Result<String, Stop> {
        let mut told = String::new();
        let command = self.command;
        let mut asked = self.asked.iter_mut();
        while let Some(question) = asked.find(|one| pending.contains(&one.effect)) {
            question.ask_on(core, &command).await?;
            told.push_str(&question.told_late(core, command));
        }
        Ok(told)
    }
}

impl ConnectionQuestion {
    fn digest(&self, command: &Digest) -> Digest {
        Digest::of_json(&(command, &self.destination))
    }

    async fn ask_on(&mut self, core: &Core, command: &Digest) -> Result<(), Stop> {
        if let (true, Some(card)) = (self.past.is_unanswered(), self.past.card()) {
            let what = self.digest(command);
            approval::ask(core, &self.effect, what, card, &mut self.past).await?;
        }
        Ok(())
    }

    /// Returns the text for the model about an answer that came after the command's end. An
    /// approval becomes a permit, unless a grant covers more already.
    fn told_late(&self, core: &Core, command: Digest) -> String {
        let Some((asked, answered)) = self.past.outcome() else {
            return String::new();
        };
        let to = &self.destination;
        let words = answered.reason.as_deref().unwrap_or_default();
        let words = if words.is_empty() {
            String::new()
        } else {
            format!(" and says: {words}")
        };
        if !answered.approved {
            return match answered.by {
                Some(_) => format!(
                    "\n[after this command had ended, a person did not let it connect to \
                     {to}{words}; do not try that again]"
                ),
                None => format!("\n[{}: {to}]", nobody()),
            };
        }
        if answered.grants.is_empty() {
            let mut shared = core.shared();
            shared.state.permits.push(ConnectionPermit {
                command,
                destination: to.clone(),
                wider: asked.card.wider.clone(),
                valid: asked.valid,
            });
            let over = shared.state.permits.len().saturating_sub(MAX_PERMITS);
            shared.state.permits.drain(..over);
        }
        format!(
            "\n[after this command had ended, a person let it connect to {to}{words}; if that is \
             still needed, run exactly this command again]"
        )
    }
}

fn nobody() -> &'static str {
    "this needs a person's yes and nobody can be asked; do what you can without it, then say what \
     was missing"
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum QuestionState {
    /// The question was not put yet.
    Waiting,
    Asked,
    Yes,
    No(String),
    /// The question is unnecessary because of a decision made meanwhile.
    Moot,
}

#[derive(Debug)]
struct OpenDestination {
    to: Destination,
    wider: Vec<Grant>,
    stands: QuestionState,
}

#[derive(Debug, Default)]
struct DestinationBoard {
    open: Vec<OpenDestination>,
    /// Refused destinations, each with the reason.
    refused: BTreeMap<Destination, String>,
}

/// Decides about the connections of one call's command while it runs.
pub(super) struct Destinations<'a> {
    core: &'a Core,
    effect: &'a EffectId,
    spec: &'a ToolSpec,
    call: ResolvedCall,
    permits: Vec<ConnectionPermit>,
    questions: AsyncMutex<&'a mut ConnectionQuestions>,
    board: Mutex<DestinationBoard>,
    /// Notified when a question is queued.
    queued: Notify,
    /// Announces that the state of a question has changed.
    moved: watch::Sender<()>,
}

enum ConnectionDecision {
    May,
    MayNot(String),
    Waits,
}

impl<'a> Destinations<'a> {
    /// Creates the decisions for a call that starts now, which uses up its permits.
    pub(super) fn new(
        core: &'a Core,
        effect: &'a EffectId,
        spec: &'a ToolSpec,
        call: ResolvedCall,
        questions: &'a mut ConnectionQuestions,
    ) -> Self {
        Self {
            permits: use_permits(core, questions.command()),
            core,
            effect,
            spec,
            call,
            questions: AsyncMutex::new(questions),
            board: Mutex::default(),
            queued: Notify::new(),
            moved: watch::Sender::new(()),
        }
    }

    pub(super) fn call(&self) -> (&ResolvedCall, &ToolSpec) {
        (&self.call, self.spec)
    }

    /// Runs a command in its sandbox, and meanwhile asks about its connections.
    pub(super) async fn run(
        &self,
        keeper: Keeper,
        command: CommandSpec,
        containment: &Containment,
        ended: Option<&Path>,
    ) -> Result<(CommandOutcome, Option<Keeper>), KeeperError> {
        let outlet = self.core.kernel.organs().outlet.clone();
        let sandbox = KeeperSandbox {
            containment,
            outlet: outlet.as_deref().unwrap_or(&NoOutlet),
            policy: self,
            ended,
        };
        let mut questions = self.questions.lock().await;
        tokio::select! {
            biased;
            ran = keeper.run_in(command, Some(sandbox)) => ran,
            never = self.ask_all(&mut questions) => match never {},
        }
    }

    /// Decides about the connections of a command that runs elsewhere, and asks about them.
    pub(super) async fn decide_all(
        &self,
        asked: &mut mpsc::Receiver<AskedConnection>,
    ) -> Infallible {
        let mut questions = self.questions.lock().await;
        let mut deciding = FuturesUnordered::new();
        let asking = self.ask_all(&mut questions);
        tokio::pin!(asking);
        loop {
            tokio::select! {
                never = &mut asking => match never {},
                Some((to, mut reply)) = asked.recv() => deciding.push(async move {
                    let decided = tokio::select! {
                        decided = self.decide(&to) => decided,
                        // The program gave up.
                        () = reply.closed() => return,
                    };
                    let _ = reply.send(decided);
                }),
                Some(()) = deciding.next(), if !deciding.is_empty() => {}
            }
        }
    }

    /// Returns the text for the model about refused connections, if there are any.
    pub(super) fn told_of_refused(&self) -> Option<String> {
        let board = self.board.lock();
        if board.refused.is_empty() {
            return None;
        }
        let refused = board.refused.iter().take(MAX_REFUSED);
        let refused: Vec<_> = refused
            .map(|(to, reason)| format!("{to} ({reason})"))
            .collect();
        let more = match board.refused.len().saturating_sub(MAX_REFUSED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let is_near = |to: &Destination| to.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let key = match board.refused.keys().find(|to| is_near(to)) {
            Some(near) => format!(
                "; for the person: `ports = [{0}]` in [sandbox] of config.toml, or --port {0}, lets \
                 commands connect there",
                near.port
            ),
            None => String::new(),
        };
        Some(format!(
            "the sandbox refused connections to {}{more}{key}",
            refused.join(", ")
        ))
    }

    fn judge(&self, to: &Destination) -> Verdict {
        self.core.judge_destination(to, &self.call, self.spec)
    }

    /// Judges a destination by the present facts, and queues a question if a person must be asked.
    fn now(&self, to: &Destination) -> ConnectionDecision {
        if self.core.may_act().is_err() {
            return ConnectionDecision::MayNot("all runs were stopped".to_owned());
        }
        let verdict = self.judge(to);
        match verdict.decision {
            Decision::Allow => return ConnectionDecision::May,
            Decision::Deny => return ConnectionDecision::MayNot(verdict.reasons.join("; ")),
            Decision::Ask => {}
        }
        let wanted = (to, &verdict.wider[..]);
        let redactor = &self.core.kernel.organs().redactor;
        if redactor.redact(&to.host) != to.host {
            // Cards and the journal must not show the name.
            return ConnectionDecision::MayNot("its name holds a secret".to_owned());
        }
        let permitted = |permit: &ConnectionPermit| {
            covers((&permit.destination, &permit.wider), wanted) && !permit.valid.is_over(now_ms())
        };
        if self.permits.iter().any(permitted) {
            return ConnectionDecision::May;
        }
        let mut board = self.board.lock();
        let known = board.open.iter().find(|asked| {
            asked.stands != QuestionState::Moot && covers((&asked.to, &asked.wider), wanted)
        });
        match known.map(|asked| &asked.stands) {
            Some(QuestionState::Yes) => ConnectionDecision::May,
            Some(QuestionState::No(why)) => ConnectionDecision::MayNot(why.clone()),
            Some(QuestionState::Waiting | QuestionState::Asked | QuestionState::Moot) => {
                ConnectionDecision::Waits
            }
            None if board.open.len() >= MAX_QUESTIONS => ConnectionDecision::MayNot(
                "the command has asked for too many other places already".to_owned(),
            ),
            None => {
                board.open.push(OpenDestination {
                    to: to.clone(),
                    wider: verdict.wider,
                    stands: QuestionState::Waiting,
                });
                self.queued.notify_one();
                ConnectionDecision::Waits
            }
        }
    }

    /// Asks the queued questions, one after the other.
    async fn ask_all(&self, questions: &mut ConnectionQuestions) -> Infallible {
        loop {
            let next = {
                let mut board = self.board.lock();
                let mut open = board.open.iter_mut().enumerate();
                open.find(|(_, asked)| asked.stands == QuestionState::Waiting)
                    .map(|(place, asked)| {
                        asked.stands = QuestionState::Asked;
                        (place, asked.to.clone())
                    })
            };
            let Some((place, to)) = next else {
                self.queued.notified().await;
                continue;
            };
            let verdict = self.judge(&to);
            let stands = match verdict.decision {
                Decision::Allow | Decision::Deny => QuestionState::Moot,
                Decision::Ask => self.ask(questions, to, verdict).await,
            };
            self.board.lock().open[place].stands = stands;
            self.moved.send_replace(());
        }
    }

    async fn ask(
        &self,
        questions: &mut ConnectionQuestions,
        to: Destination,
        verdict: Verdict,
    ) -> QuestionState {
        let core = self.core;
        let command = *questions.command();
        let question = questions.add(self.effect, to);
        let card = self.card(&question.destination, verdict);
        let what = question.digest(&command);
        let ConnectionQuestion { effect, past, .. } = question;
        if approval::on_ask(core) == OnAsk::Park {
            // If the question cannot be put, the journal has failed, which ends the run soon.
            let _ = approval::put(core, effect, what, card, past).await;
            return QuestionState::No(LATER.to_owned());
        }
        let answer = match approval::ask(core, effect, what, card, past).await {
            Ok(answer) => answer,
            // The run is to pause, or the question has expired: it is continued afterwards.
            Err(_) => return QuestionState::No(LATER.to_owned()),
        };
        match (answer.approved, answer.by, answer.reason) {
            (true, _, _) => QuestionState::Yes,
            (false, Some(_), Some(words)) => QuestionState::No(format!(
                "a person did not allow it and says: {words}; do not try it again"
            )),
            (false, Some(_), None) => {
                QuestionState::No("a person did not allow it; do not try it again".to_owned())
            }
            (false, None, _) => QuestionState::No(nobody().to_owned()),
        }
    }

    fn card(&self, to: &Destination, verdict: Verdict) -> ApprovalCard {
        let arguments = self.call.arguments.as_object().into_iter().flatten();
        let details = arguments.map(|(name, value)| {
            let value = value.as_str().map_or(value.to_string(), str::to_owned);
            let shown = gyrus_text::shorten(&value, SHOWN);
            Text::new(format!("{name}: {shown}"), Origin::Model)
        });
        let mut reasons = verdict.reasons;
        let once = match approval::on_ask(self.core) {
            OnAsk::Park => {
                "it was refused meanwhile; a yes lets the command connect when it runs again"
            }
            OnAsk::Wait | OnAsk::Deny => {
                "the command waits; a yes is for as long as it runs, or for running it again"
            }
        };
        reasons.push(once.to_owned());
        ApprovalCard {
            sentence: format!("A command that runs in the sandbox wants to connect to {to}"),
            reasons,
            details: details.collect(),
            wider: verdict.wider,
            ..ApprovalCard::default()
        }
    }
}

impl ConnectionPolicy for Destinations<'_> {
    fn socket(&self, to: &Destination) -> Option<OwnedFd> {
        self.core.background.socket(to)
    }

    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if self.core.background.socket(to).is_some() {
                return Ok(());
            }
            let mut moved = self.moved.subscribe();
            loop {
                match self.now(to) {
                    ConnectionDecision::May => return Ok(()),
                    ConnectionDecision::MayNot(reason) => {
                        let refused = &mut self.board.lock().refused;
                        // Destinations that are not named are counted, up to a limit.
                        if refused.len() < 10 * MAX_REFUSED {
                            refused.insert(to.clone(), reason.clone());
                        }
                        return Err(reason);
                    }
                    ConnectionDecision::Waits => {}
                }
                if moved.changed().await.is_err() {
                    return Err("the command has ended".to_owned());
                }
            }
        })
    }
}

/// The outlet of a program that may not connect to anything.
struct NoOutlet;

impl Outlet for NoOutlet {
    fn serve<'a>(
        &'a self,
        _listeners: Listeners,
        _policy: &'a dyn ConnectionPolicy,
    ) -> BoxedFuture<'a, ()> {
        Box::pin(async {})
    }
}
