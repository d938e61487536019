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
use gyrus_contract::{Answer, ApprovalScope, RunId};
use gyrus_kernel::{
    QuestionId,
    approvals::{self, OpenQuestion, VoidAnswer},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::blocking;
use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, decides, reads},
    error::ApiError,
    extract::{ApiJson, ApiPath, RunInPath},
    tokens::Requester,
};
use gyrus_kernel::now_ms;
use gyrus_runtime::queue::CommandStage;

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
            .body::<AnswerBody>()
            .answer(
                202,
                "The answer is on disk; no other one counts.",
                BodyForm::Empty,
            )
            .for_named_origins(),
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
        let at_work = |stage: &CommandStage| {
            matches!(
                stage,
                CommandStage::Running { .. } | CommandStage::Parked { .. }
            )
        };
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
    RunInPath(run): RunInPath,
) -> Result<Json<Vec<Question>>, ApiError> {
    blocking(move || {
        let open = approvals::open(&app.store, run)?;
        let views: Result<Vec<_>, _> = open.iter().map(|open| view(&app, open)).collect();
        views.map(Json)
    })
    .await
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Answer")]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    /// Yes or no.
    approve: bool,
    /// The extent of a yes.
    #[serde(default)]
    reach: ApprovalScope,
    /// The answer to a question for words, an edited text, or the reason of a no.
    #[serde(default)]
    words: Option<String>,
}

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
    ApiPath(path): ApiPath<HashMap<String, String>>,
    ApiJson(body): ApiJson<AnswerBody>,
) -> Result<StatusCode, ApiError> {
    let question = path.get("question").cloned().unwrap_or_default();
    let answer = if body.approve {
        Answer::Approve {
            words: body.words,
            scope: body.reach,
        }
    } else {
        Answer::Deny { reason: body.words }
    };
    blocking(move || {
        let open = find(&app, run, &question)?;
        give(&app, &identity, &open, answer)
    })
    .await?;
    Ok(StatusCode::ACCEPTED)
}

pub(crate) fn find(app: &App, run: RunId, question: &str) -> Result<OpenQuestion, ApiError> {
    let id: QuestionId = question
        .parse()
        .map_err(|_| ApiError::not_found("there is no such question: use an id of the list"))?;
    let open = approvals::open(&app.store, run)?;
    let found = open.into_iter().find(|open| open.id == id);
    found.ok_or_else(|| ApiError::from(VoidAnswer::NotAsked { run, id }))
}

/// Records an answer to exactly this card.
pub(crate) fn give(
    app: &App,
    identity: &Requester,
    open: &OpenQuestion,
    answer: Answer,
) -> Result<(), ApiError> {
    approvals::check(&open.card, &answer).map_err(VoidAnswer::from)?;
    app.program.check_answer(open, &answer)?;
    approvals::answer(&app.store, open, identity.principal.clone(), answer)?;
    Ok(())
}
