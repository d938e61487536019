//! A turn: one run, followed from its journal to its end.

use std::sync::Arc;

use gyrus_contract::{ModelError, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{
    Ending, StandingChange,
    approvals::{self, OpenQuestion},
    log_name,
};
use gyrus_surfaces::{
    tree_follower::{TreeEntry, TreeFollower},
    watching::LiveReplies,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    connection::EditorClient,
    host::{AcpHost, TurnAtWork, TurnControls, TurnRequest, TurnWork},
    message::RpcError,
    questions::{AnswerResult, EditorQuestions, QuestionManner},
    view::SessionView,
};

pub(crate) struct EditorTurn {
    pub(crate) host: Arc<dyn AcpHost>,
    pub(crate) client: Arc<EditorClient>,
    pub(crate) session: String,
    pub(crate) view: SessionView,
    pub(crate) questions: EditorQuestions,
    pub(crate) controls: TurnControls,
}

#[derive(Debug)]
pub(crate) struct TurnEnd {
    /// The reason, as named in the protocol.
    pub(crate) reason: &'static str,
    /// The question that the next prompt answers.
    pub(crate) waits_for: Option<OpenQuestion>,
}

enum TurnEvent {
    Began,
    Entry(Box<TreeEntry>),
    Lost(String),
    Piece(gyrus_surfaces::watching::ReplyPiece),
    Answered(AnswerResult),
    Ended(Result<Ending, String>),
}

struct TurnFollower {
    run: RunId,
    entries: TreeFollower,
    replies: LiveReplies,
    began: Option<oneshot::Receiver<()>>,
    ended: Option<oneshot::Receiver<Result<Ending, String>>>,
}

impl EditorTurn {
    /// Drives the run of a request, and reports the events to the client.
    ///
    /// # Errors
    /// The run did not begin, or cannot be followed.
    pub(crate) async fn run(mut self, request: TurnRequest) -> Result<TurnEnd, RpcError> {
        let run = request.run;
        let store = self.host.store().clone();
        let goes_on = matches!(request.work, TurnWork::Resume);
        // Before the run is driven: what it writes from here on is shown.
        let known = if goes_on {
            known_ends(&store, run)?
        } else {
            Vec::new()
        };
        // The person sees at once that they were heard; models and servers may take their time.
        let words = if goes_on {
            format!("run {} goes on", run.short())
        } else {
            format!("run {} begins", run.short())
        };
        let remark = self.view.remark(&words);
        self.client.update(&self.session, remark).await;
        let TurnAtWork {
            began,
            replies,
            ended,
        } = self.host.begin(request, self.controls.clone());
        let mut following = TurnFollower {
            run,
            entries: TreeFollower::new(&store),
            replies,
            began: (!goes_on).then_some(began),
            ended: Some(ended),
        };
        for (run, end) in known {
            following.entries.follow(run, end + 1);
        }
        let mut waits_for = None;
        if goes_on {
            // What is asked from here on comes with the entries.
            for open in still_open(&store, run)? {
                self.ask(open, &mut waits_for).await;
            }
        }
        let ending = self.follow(&store, &mut following, &mut waits_for).await;
        self.questions.withdraw().await;
        if ending.is_err() {
            // Nobody would see what it does.
            self.controls.park();
        }
        let ending = ending.map_err(RpcError::internal)?;
        self.end(run, &ending, waits_for).await
    }

    /// Shows entries until the run has ended and all of them are shown.
    async fn follow(
        &mut self,
        store: &Store,
        following: &mut TurnFollower,
        waits_for: &mut Option<OpenQuestion>,
    ) -> Result<Ending, String> {
        let mut ending: Option<(Ending, u64)> = None;
        let mut shown = 0;
        loop {
            if let Some((ending, last)) = ending.take_if(|(_, last)| shown >= *last) {
                let _ = last;
                return Ok(ending);
            }
            match following.next(&mut self.questions).await {
                TurnEvent::Entry(followed) => {
                    // What was said before an entry was written is known before it is shown.
                    while let Ok(piece) = following.replies.try_recv() {
                        self.piece(&piece).await;
                    }
                    if followed.run == following.run {
                        shown = followed.entry.seq;
                    }
                    self.entry(following.run, *followed, waits_for).await;
                }
                TurnEvent::Began => following.entries.follow(following.run, 1),
                TurnEvent::Lost(why) => return Err(why),
                TurnEvent::Piece(piece) => self.piece(&piece).await,
                TurnEvent::Answered(AnswerResult::Settled) => {}
                TurnEvent::Answered(AnswerResult::Cancelled) => {
                    self.controls.stop(self.host.person())
                }
                TurnEvent::Answered(AnswerResult::Failed(why)) => {
                    let said = self.view.say(&why);
                    self.client.update(&self.session, said).await;
                }
                TurnEvent::Ended(ended) => {
                    let ended = ended?;
                    if !store.exists(&log_name(following.run)) {
                        // It was cancelled before it began.
                        return Ok(ended);
                    }
                    let end = store.reader(&log_name(following.run));
                    let end = end.and_then(|reader| reader.end());
                    ending = Some((ended, end.map_err(|error| error.to_string())?));
                }
            }
        }
    }

    async fn entry(
        &mut self,
        root: RunId,
        followed: TreeEntry,
        waits_for: &mut Option<OpenQuestion>,
    ) {
        let run = followed.run;
        for update in self.view.entry(run, &followed.entry, &followed.reader) {
            self.client.update(&self.session, update).await;
        }
        let Some(change) = followed.change else {
            return;
        };
        self.questions.settle(run, &change).await;
        match change {
            StandingChange::Began(started) if run == root => {
                let words = format!("{} · {}", started.cognitive_loop, started.model);
                let remark = self.view.remark(&words);
                self.client.update(&self.session, remark).await;
            }
            StandingChange::Asked(open) => self.ask(*open, waits_for).await,
            _ => {}
        }
    }

    async fn ask(&mut self, open: OpenQuestion, waits_for: &mut Option<OpenQuestion>) {
        match self.questions.ask(open.clone(), &mut self.view).await {
            QuestionManner::There => {}
            QuestionManner::ByPrompt => {
                let mut text = gyrus_surfaces::console::card::plain_text(&open);
                text.push_str("Your next message answers it.");
                let said = self.view.say(&text);
                self.client.update(&self.session, said).await;
                *waits_for = Some(open);
                self.controls.park();
            }
        }
    }

    async fn piece(&mut self, piece: &gyrus_surfaces::watching::ReplyPiece) {
        if let Some(update) = self.view.piece(piece) {
            self.client.update(&self.session, update).await;
        }
    }

    async fn end(
        mut self,
        run: RunId,
        ending: &Ending,
        waits_for: Option<OpenQuestion>,
    ) -> Result<TurnEnd, RpcError> {
        let said = match ending {
            Ending::Reached { claim, .. } => self.view.answer(claim),
            // The person did it, and knows it.
            Ending::Stopped { .. } | Ending::Interrupted => None,
            _ => {
                let words = self.host.ending(run, ending);
                words.map(|words| self.view.say(&words))
            }
        };
        if let Some(said) = said {
            self.client.update(&self.session, said).await;
        }
        let reason = match waits_for {
            Some(_) => "end_turn",
            None => stop_reason(ending),
        };
        Ok(TurnEnd { reason, waits_for })
    }
}

impl TurnFollower {
    async fn next(&mut self, questions: &mut EditorQuestions) -> TurnEvent {
        loop {
            let (has_begun, is_ended) = (self.began.is_none(), self.ended.is_none());
            tokio::select! {
                biased;
                entry = self.entries.next() => return match entry {
                    Ok(entry) => TurnEvent::Entry(Box::new(entry)),
                    Err(error) => TurnEvent::Lost(format!("the run cannot be followed: {error}")),
                },
                began = said(&mut self.began), if !has_begun => {
                    self.began = None;
                    // Without a word, the end follows.
                    if began.is_some() {
                        return TurnEvent::Began;
                    }
                }
                Some(piece) = self.replies.recv() => return TurnEvent::Piece(piece),
                answered = questions.answered() => return TurnEvent::Answered(answered),
                ended = said(&mut self.ended), if !is_ended => {
                    self.ended = None;
                    let gone = || Err("the run's thread has ended without a word".to_owned());
                    return TurnEvent::Ended(ended.unwrap_or_else(gone));
                }
            }
        }
    }
}

/// Waits for a value that is sent once; `None` if it never will be.
async fn said<T>(once: &mut Option<oneshot::Receiver<T>>) -> Option<T> {
    match once {
        Some(once) => once.await.ok(),
        None => std::future::pending().await,
    }
}

/// Returns the ends of the journals of a run and its child runs in progress.
fn known_ends(store: &Store, run: RunId) -> Result<Vec<(RunId, u64)>, RpcError> {
    let runs = approvals::under_way(store, run).map_err(internal)?;
    let end = |run: RunId| Ok((run, store.reader(&log_name(run))?.end()?));
    let ends: Result<_, gyrus_journal::Error> = runs.into_iter().map(end).collect();
    ends.map_err(internal)
}

pub(crate) fn still_open(store: &Store, run: RunId) -> Result<Vec<OpenQuestion>, RpcError> {
    approvals::unanswered(store, run).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> RpcError {
    RpcError::internal(error.to_string())
}

fn stop_reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Reached { .. }
        | Ending::Failed { .. }
        | Ending::Waiting { .. }
        | Ending::Sleeping { .. }
        | Ending::Stuck { .. } => "end_turn",
        Ending::Limit { what } if what.starts_with("tokens") => "max_tokens",
        Ending::Limit { .. } => "max_turn_requests",
        Ending::ModelUnreachable {
            error: ModelError::Declined { .. },
        } => "refusal",
        Ending::ModelUnreachable { .. } => "end_turn",
        Ending::Stopped { .. } | Ending::Interrupted => "cancelled",
    }
}

pub(crate) fn answer(reason: &str) -> Value {
    json!({"stopReason": reason})
}
