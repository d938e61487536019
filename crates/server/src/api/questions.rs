//! Questions of runs, and answers in a person's name.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use gyrus_contract::RunId;
use gyrus_kernel::{
    QuestionId,
    approvals::{self, ApprovalAnswer, ApprovalReach, Delivery, OpenQuestion},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::blocking;
use crate::{
    app::App,
    endpoint::{Endpoint, Form, decides, reads},
    error::ApiError,
    extract::{ApiJson, ApiPath, RunPath},
    tokens::Identity,
};
use gyrus_kernel::now_ms;
use gyrus_runtime::queue::Stage;

/// The longest words of an answer in bytes.
const MAX_WORDS: usize = 256 << 10;

/// Returns the endpoints of this module.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/questions", get(all))
            .named("listQuestions", "List the questions of all runs")
            .json::<Vec<Question>>(200, "The open questions, oldest first."),
        reads("/api/runs/{run}/questions", get(of_run))
            .named("listQuestionsOfRun", "List the questions of a run")
            .json::<Vec<Question>>(200, "The open questions, oldest first."),
        decides("/api/runs/{run}/questions/{question}/answer", post(answer))
            .named("answerQuestion", "Answer a question of a run")
            .body::<Answer>()
            .answer(
                202,
                "The answer is on disk; no other one counts.",
                Form::Empty,
            ),
    ]
}

/// An open question.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Question {
    /// The run that asks: the one that was started, or a child of it.
    run: String,
    /// The id of the question, which names exactly this card.
    question: String,
    /// The card, whole.
    card: Value,
    /// The time at which it was asked, in UTC milliseconds.
    asked_ms: i64,
    /// Milliseconds in which an answer counts.
    left_ms: u64,
    /// The answer that was given and waits to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<String>,
}

fn view(app: &App, open: &OpenQuestion) -> Result<Question, ApiError> {
    Ok(Question {
        run: open.run.to_string(),
        question: open.id.to_string(),
        card: serde_json::to_value(&open.card).unwrap_or_default(),
        asked_ms: open.valid.from_ms,
        left_ms: open.valid.left_ms(now_ms()),
        answered: approvals::waiting_answer(&app.store, open)?,
    })
}

pub(crate) async fn all(State(app): State<Arc<App>>) -> Result<Json<Vec<Question>>, ApiError> {
    blocking(move || {
        let open = all_open(&app);
        let views: Result<Vec<_>, _> = open.iter().map(|open| view(&app, open)).collect();
        views.map(Json)
    })
    .await
}

/// Returns the open questions of all runs, oldest first.
pub(crate) fn all_open(app: &App) -> Vec<OpenQuestion> {
    let mut runs: BTreeSet<RunId> = app.heads.live().into_iter().collect();
    // The queue knows of a run before its folder is seen: who reads there that it waits must find
    // its question here.
    app.gateway.with(|queue| {
        let at_work = |stage: &Stage| matches!(stage, Stage::Running { .. } | Stage::Parked { .. });
        let at_work = queue.all().into_iter().filter(|one| at_work(&one.stage));
        runs.extend(at_work.map(|one| one.command.run));
    });
    let mut open: Vec<OpenQuestion> = Vec::new();
    for run in runs {
        // A run that was removed or is damaged asks nothing.
        open.extend(approvals::open(&app.store, run).unwrap_or_default());
    }
    open.sort_by_key(|open| open.valid.from_ms);
    open
}

pub(crate) async fn of_run(
    State(app): State<Arc<App>>,
    RunPath(run): RunPath,
) -> Result<Json<Vec<Question>>, ApiError> {
    blocking(move || {
        let open = approvals::open(&app.store, run)?;
        let views: Result<Vec<_>, _> = open.iter().map(|open| view(&app, open)).collect();
        views.map(Json)
    })
    .await
}

/// The extent of a yes.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reach {
    /// This one call.
    #[default]
    Once,
    /// Everything that the card offers, for the rest of the session.
    Session,
    /// Everything that the card offers, in this folder, until it is revoked.
    Always,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// Yes or no.
    pub(crate) approve: bool,
    /// The extent of a yes.
    #[serde(default)]
    pub(crate) reach: Reach,
    /// The answer to a question for words, an edited text, or the reason of a no.
    #[serde(default)]
    pub(crate) words: Option<String>,
}

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Identity>,
    RunPath(run): RunPath,
    ApiPath(path): ApiPath<HashMap<String, String>>,
    ApiJson(answer): ApiJson<Answer>,
) -> Result<StatusCode, ApiError> {
    let question = path.get("question").cloned().unwrap_or_default();
    blocking(move || give(&app, &identity, run, &question, answer)).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Gives an answer to exactly this card.
pub(crate) fn give(
    app: &App,
    identity: &Identity,
    run: RunId,
    question: &str,
    answer: Answer,
) -> Result<(), ApiError> {
    let id: QuestionId = question
        .parse()
        .map_err(|_| ApiError::not_found("there is no such question: use an id of the list"))?;
    if answer
        .words
        .as_ref()
        .is_some_and(|words| words.len() > MAX_WORDS)
    {
        let error = format!("the words are longer than {MAX_WORDS} bytes");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error));
    }
    let open = approvals::open(&app.store, run)?;
    let open = open.into_iter().find(|open| open.id == id).ok_or_else(|| {
        ApiError::conflict(format!("run {} does not ask {id} (any more)", run.short()))
            .hint("see what is asked: GET /api/questions")
    })?;
    let answer = checked(app, &open, answer)?;
    match approvals::answer(&app.store, &open, identity.principal.clone(), answer)? {
        Delivery::Given => Ok(()),
        Delivery::Void(void) => Err(ApiError::conflict(void.to_string())),
    }
}

/// Returns the answer if the card takes it.
fn checked(app: &App, open: &OpenQuestion, given: Answer) -> Result<ApprovalAnswer, ApiError> {
    let Answer {
        approve,
        reach,
        words,
    } = given;
    if !approve {
        return Ok(ApprovalAnswer::No { reason: words });
    }
    let card = &open.card;
    let reach = match reach {
        Reach::Once => ApprovalReach::Once,
        Reach::Session => ApprovalReach::Session,
        Reach::Always => ApprovalReach::Always,
    };
    if reach != ApprovalReach::Once && !card.question && card.wider.is_empty() {
        return Err(ApiError::bad_request("this can only be allowed once"));
    }
    if card.question && words.is_none() {
        return Err(ApiError::bad_request("this asks for words").hint("give them as `words`"));
    }
    if words.is_some() && !card.question && card.edit.is_none() {
        return Err(
            ApiError::bad_request("this asks for approval, not for words")
                .hint("a yes has no conditions; to say what to do instead, say no with words"),
        );
    }
    let answer = ApprovalAnswer::Yes { words, reach };
    app.program.check_answer(open, &answer)?;
    Ok(answer)
}
