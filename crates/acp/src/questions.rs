//! Questions of runs at the editor: approval cards as permission requests, and what a run wants to
//! know as elicitations. Each is bound to the digest of its card; of several answers, from wherever
//! they come, the first counts.

use std::{collections::BTreeSet, sync::Arc};

use gyrus_contract::{Answer, ApprovalScope, Digest, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{
    StandingChange,
    approvals::{self, ApprovalError, OpenQuestion, VoidAnswer},
};
use gyrus_surfaces::console::card;
use gyrus_text::counted;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    connection::EditorClient,
    view::{SessionView, changed},
};

/// Ids of the options of a permission request.
const ONCE: &str = "allow_once";
const SESSION: &str = "allow_session";
const ALWAYS: &str = "allow_always";
const DENY: &str = "reject_once";
const DENY_ALWAYS: &str = "reject_always";

/// Digests of cards that a person denied for the rest of a session.
#[derive(Debug, Default)]
pub(crate) struct DeniedDigests(Mutex<BTreeSet<Digest>>);

/// Maximum number of remembered denials.
const REMEMBERED: usize = 10_000;

impl DeniedDigests {
    fn has(&self, digest: &Digest) -> bool {
        self.0.lock().contains(digest)
    }

    fn add(&self, digest: Digest) {
        let mut denied = self.0.lock();
        if denied.len() < REMEMBERED {
            denied.insert(digest);
        }
    }
}

pub(crate) struct EditorQuestions {
    client: Arc<EditorClient>,
    store: Store,
    session: String,
    person: Principal,
    denied: Arc<DeniedDigests>,
    /// Whether the editor can ask for text.
    elicits: bool,
    shown: Vec<QuestionShown>,
    answers: JoinSet<(u64, Option<Result<Value, Value>>)>,
}

struct QuestionShown {
    open: OpenQuestion,
    request: u64,
    call: String,
}

#[derive(Debug)]
pub(crate) enum QuestionManner {
    /// In the editor, by a request.
    There,
    /// By the next prompt, as the editor cannot ask for text.
    ByPrompt,
}

#[derive(Debug)]
pub(crate) enum AnswerResult {
    /// The answer was given, or it was too late.
    Settled,
    /// The person cancelled the turn instead of answering.
    Cancelled,
    /// The answer could not be given, for this reason.
    Failed(String),
}

impl EditorQuestions {
    pub(crate) fn new(
        client: &Arc<EditorClient>,
        store: &Store,
        session: &str,
        person: Principal,
        (denied, elicits): (&Arc<DeniedDigests>, bool),
    ) -> Self {
        Self {
            client: client.clone(),
            store: store.clone(),
            session: session.to_owned(),
            person,
            denied: denied.clone(),
            elicits,
            shown: Vec::new(),
            answers: JoinSet::new(),
        }
    }

    /// Shows a question, unless it is already shown.
    pub(crate) async fn ask(
        &mut self,
        open: OpenQuestion,
        view: &mut SessionView,
    ) -> QuestionManner {
        let is_same = |shown: &QuestionShown| {
            shown.open.run == open.run
                && shown.open.id == open.id
                && shown.open.digest == open.digest
        };
        if self.shown.iter().any(is_same) {
            return QuestionManner::There;
        }
        if self.denied.has(&open.digest) {
            let denied = Answer::no("the person denied this for the session");
            let given = self.give(&open, denied);
            if matches!(given, AnswerResult::Settled) {
                return QuestionManner::There;
            }
        }
        let call = view.asked(&open);
        let id = call["toolCallId"].as_str().unwrap_or_default().to_owned();
        self.client
            .update(&self.session, changed(&id, call.clone()))
            .await;
        if open.card.question && !self.elicits {
            return QuestionManner::ByPrompt;
        }
        let request = if open.card.question {
            let params = elicitation(&self.session, &id, &open);
            self.client.request("elicitation/create", params).await
        } else {
            let options = options(&open);
            let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
            self.client
                .request("session/request_permission", params)
                .await
        };
        let number = request.id;
        self.answers
            .spawn(async move { (number, request.answer.await.ok()) });
        self.shown.push(QuestionShown {
            open,
            request: number,
            call: id,
        });
        QuestionManner::There
    }

    /// Waits for the next answer; never returns while nothing is asked.
    pub(crate) async fn answered(&mut self) -> AnswerResult {
        loop {
            match self.answers.join_next().await {
                Some(Ok((request, Some(outcome)))) => {
                    let place = self.shown.iter().position(|shown| shown.request == request);
                    let Some(place) = place else { continue };
                    let shown = self.shown.remove(place);
                    return self.take(&shown.open, outcome);
                }
                // It was withdrawn.
                Some(Ok((_, None)) | Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn take(&self, open: &OpenQuestion, outcome: Result<Value, Value>) -> AnswerResult {
        let no = Answer::Deny { reason: None };
        let answer = match outcome {
            Err(_) => Answer::no("the editor could not ask the person"),
            Ok(outcome) if open.card.question => {
                let words = outcome["content"]["answer"].as_str();
                match (outcome["action"].as_str(), words) {
                    (Some("accept"), Some(words)) if !words.trim().is_empty() => {
                        Answer::words(words)
                    }
                    (Some("cancel"), _) => return AnswerResult::Cancelled,
                    _ => no,
                }
            }
            Ok(outcome) => {
                let outcome = &outcome["outcome"];
                if outcome["outcome"] == "cancelled" {
                    return AnswerResult::Cancelled;
                }
                match outcome["optionId"].as_str() {
                    Some(ONCE) => Answer::yes(ApprovalScope::Once),
                    Some(SESSION) => Answer::yes(ApprovalScope::Session),
                    Some(ALWAYS) => Answer::yes(ApprovalScope::Always),
                    Some(DENY_ALWAYS) => {
                        self.denied.add(open.digest);
                        no
                    }
                    Some(DENY) => no,
                    // What was not offered is not a yes.
                    _ => Answer::no("the editor gave no answer that was offered"),
                }
            }
        };
        self.give(open, answer)
    }

    fn give(&self, open: &OpenQuestion, answer: Answer) -> AnswerResult {
        let given = tokio::task::block_in_place(|| {
            approvals::answer(&self.store, open, self.person.clone(), answer)
        });
        match given {
            // The editor does not ask again, so an answer that the card does not take is a denial.
            Err(ApprovalError::Void(VoidAnswer::Mismatch(mismatch))) => {
                self.give(open, Answer::no(mismatch.to_string()))
            }
            Ok(()) | Err(ApprovalError::Void(_)) => AnswerResult::Settled,
            Err(error) => AnswerResult::Failed(format!("the answer could not be given: {error}")),
        }
    }

    /// Withdraws the questions that a change of the run's standing answers or makes void.
    pub(crate) async fn settle(&mut self, run: RunId, change: &StandingChange) {
        let is_over = |open: &OpenQuestion| open.run == run && change.settles(open);
        let over: Vec<QuestionShown> = self
            .shown
            .extract_if(.., |shown| is_over(&shown.open))
            .collect();
        for shown in over {
            self.client.withdraw(shown.request).await;
        }
    }

    pub(crate) async fn withdraw(&mut self) {
        for shown in std::mem::take(&mut self.shown) {
            self.client.withdraw(shown.request).await;
            let update = changed(&shown.call, json!({"status": "failed"}));
            self.client.update(&self.session, update).await;
        }
    }
}

/// Returns the options of a permission request. Wider ones are there where the card offers them, and
/// say what they would cover.
fn options(open: &OpenQuestion) -> Value {
    let option =
        |id: &str, kind: &str, name: &str| json!({"optionId": id, "kind": kind, "name": name});
    let mut options = vec![option(ONCE, "allow_once", "Allow once")];
    if !open.card.wider.is_empty() {
        let wider: Vec<String> = open.card.wider.iter().map(ToString::to_string).collect();
        let wider = gyrus_text::one_line(&wider.join(" and ")).into_owned();
        let session = format!("For this session, allow {wider}");
        let always = format!("Always in this folder, allow {wider}");
        options.push(option(SESSION, "allow_always", &session));
        options.push(option(ALWAYS, "allow_always", &always));
    }
    options.push(option(DENY, "reject_once", "Deny"));
    options.push(option(
        DENY_ALWAYS,
        "reject_always",
        "Deny this for the session",
    ));
    Value::from(options)
}

fn elicitation(session: &str, call: &str, open: &OpenQuestion) -> Value {
    json!({
        "mode": "form",
        "sessionId": session,
        "toolCallId": call,
        "message": card::plain_text(open),
        "requestedSchema": {
            "type": "object",
            "properties": {"answer": {"type": "string", "title": "Your answer"}},
            "required": ["answer"],
        },
    })
}

/// Returns the introduction to the questions of a run that was left.
pub(crate) fn waiting(questions: usize) -> String {
    format!("The run waits for {}.", counted(questions, "answer"))
}
