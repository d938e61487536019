//! Agents: how each stands, and what a person tells it.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use gyrus_journal::Store;
use gyrus_runtime::{
    Event, EventId, EventPosition,
    agents::{AgentRecord, AgentStage, Agents},
    queue::{AgentUse, Gateway, day_of},
    triggers::{TriggerStatus, Triggers},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    events::{Published, origin_of},
    triggers::TriggerView,
};
use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, acts, reads},
    error::ApiError,
    extract::{ApiJson, ApiPath},
    surroundings::AgentFileView,
    tokens::Requester,
};
use gyrus_kernel::now_ms;

/// Maximum number of waiting events in an answer.
const SHOWN: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/agents", get(list))
            .named("listAgents", "List agents by name")
            .json::<Vec<AgentView>>(200, "The agents."),
        reads("/api/agents/{agent}", get(show))
            .named("showAgent", "Show an agent and the events that wait for it")
            .json::<AgentDetail>(200, "The agent."),
        reads("/api/agent-files", get(files))
            .named(
                "listAgentFiles",
                "List the files that describe agents, with their mistakes",
            )
            .json::<Vec<AgentFileView>>(200, "The files."),
        acts("/api/agents/{agent}/pause", post(pause))
            .named("pauseAgent", "Let the events of an agent wait")
            .body::<PauseAgent>()
            .answer(204, "It is paused.", BodyForm::Empty),
        acts("/api/agents/{agent}/resume", post(resume))
            .named("resumeAgent", "Go on with an agent and its triggers")
            .answer(204, "It handles events again.", BodyForm::Empty),
        acts("/api/agents/{agent}/skip", post(skip))
            .named(
                "skipEvent",
                "Give up the first event that waits for an agent",
            )
            .answer(204, "The event is given up.", BodyForm::Empty),
        acts("/api/agents/{agent}/inbox", post(send))
            .named("sendToAgent", "Publish an event to an agent's inbox")
            .body::<SendToAgent>()
            .json::<Published>(202, "The event; it is on disk."),
    ]
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentView {
    /// Its name.
    pub(crate) name: String,
    /// The stage of its life: `active`, `paused`, `quarantined` or `retired`; `absent` if this
    /// server does not have it, because its file is missing or invalid.
    pub(crate) stage: &'static str,
    /// The reason for that stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Number of events that wait, the one in progress included.
    pub(crate) waiting: usize,
    /// The run in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// The last run that it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_run: Option<String>,
    /// The result of its last action, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_summary: Option<String>,
    /// Number of events that were handled.
    pub(crate) handled: u64,
    /// Number of failures of its behaviour.
    pub(crate) failures: u64,
    /// Number of events that were dropped or skipped.
    pub(crate) dropped: u64,
    /// Number of runs that were asked for today (UTC).
    pub(crate) runs_today: u64,
    /// Tokens of these runs.
    pub(crate) tokens_today: u64,
    /// Cost of these runs in millionths of a US dollar.
    pub(crate) cost_microdollars_today: u64,
    /// Triggers, which wake it beside events.
    pub(crate) triggers: Vec<TriggerView>,
}

/// An agent in detail.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentDetail {
    /// The agent.
    #[serde(flatten)]
    pub(crate) agent: AgentView,
    /// Patterns of the topics that it receives beside its inbox.
    pub(crate) subscriptions: Vec<String>,
    /// Maximum number of events that wait.
    pub(crate) mailbox: usize,
    /// The first events that wait, at most 100, the one in progress first.
    pub(crate) events: Vec<WaitingEvent>,
}

/// An event in a mailbox.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitingEvent {
    /// Its position on the bus.
    pub(crate) position: u64,
    /// Its topic.
    pub(crate) topic: String,
    /// The name of its publisher.
    pub(crate) from: String,
    /// The time at which it was made, in UTC milliseconds.
    pub(crate) at_ms: i64,
}

impl AgentView {
    fn new(
        name: &str,
        record: &AgentRecord,
        lives: bool,
        used: AgentUse,
        triggers: Vec<TriggerStatus>,
    ) -> Self {
        let (stage, why) = match &record.stage {
            Some(AgentStage::Retired { by }) => ("retired", Some(format!("by {}", by.id))),
            Some(AgentStage::Paused { by, why }) if lives => {
                let why = why.clone().unwrap_or_else(|| format!("by {}", by.id));
                ("paused", Some(why))
            }
            Some(AgentStage::Quarantined { why }) if lives => ("quarantined", Some(why.clone())),
            _ if !lives => ("absent", Some("its file is missing or invalid".to_owned())),
            Some(AgentStage::Active) | None => ("active", None),
            Some(AgentStage::Paused { .. } | AgentStage::Quarantined { .. }) => ("paused", None),
        };
        Self {
            name: name.to_owned(),
            stage,
            why,
            waiting: record.mailbox.len(),
            run: record.run.map(|run| run.to_string()),
            last_run: record.last_run.map(|run| run.to_string()),
            last_summary: record.last_summary.clone(),
            handled: record.figures.handled,
            failures: record.figures.failures,
            dropped: record.figures.dropped,
            runs_today: used.runs,
            tokens_today: used.tokens,
            cost_microdollars_today: used.cost_microdollars,
            triggers: TriggerView::all(triggers),
        }
    }
}

/// Calls `look` with the record of an agent and whether the agent lives in this server.
fn look<T>(
    app: &App,
    name: &str,
    look: impl FnOnce(&AgentRecord, bool) -> T,
) -> Result<T, ApiError> {
    if app.agents.names().iter().any(|known| known == name) {
        return Ok(app.agents.look(name, |record| look(record, true))?);
    }
    let missing = || ApiError::not_found(format!("there is no agent `{name}`"));
    let is_known = Agents::known(&app.store)?.iter().any(|known| known == name);
    let record = if is_known {
        Agents::read(&app.store, name)?
    } else {
        None
    };
    Ok(look(&record.ok_or_else(missing)?, false))
}

fn today(app: &App, name: &str) -> AgentUse {
    app.gateway.used_on_day_of(name, now_ms())
}

/// Reads the agents of a store from disk, while no server runs them.
pub fn agents_on_disk(store: &Store) -> Result<Vec<AgentView>, ApiError> {
    let queue = Gateway::read(store)?;
    let today = day_of(now_ms());
    let mut views = Vec::new();
    for name in Agents::known(store)? {
        if let Some(record) = Agents::read(store, &name)? {
            let used = AgentUse::of(store, &queue.runs_within(&name, today.clone()));
            let triggers = Triggers::read(store, &name)?;
            views.push(AgentView::new(&name, &record, true, used, triggers));
        }
    }
    Ok(views)
}

async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<AgentView>>, ApiError> {
    super::runs::blocking(move || {
        let names = Agents::known(&app.store)?;
        let views = names.iter().map(|name| view(&app, name));
        views.collect::<Result<_, _>>().map(Json)
    })
    .await
}

pub(crate) fn view(app: &App, name: &str) -> Result<AgentView, ApiError> {
    let used = today(app, name);
    let triggers = app.triggers.of_agent(name);
    look(app, name, |record, lives| {
        AgentView::new(name, record, lives, used, triggers)
    })
}

async fn show(
    State(app): State<Arc<App>>,
    ApiPath(name): ApiPath<String>,
) -> Result<Json<AgentDetail>, ApiError> {
    super::runs::blocking(move || detail(&app, &name).map(Json)).await
}

pub(crate) fn detail(app: &App, name: &str) -> Result<AgentDetail, ApiError> {
    let used = today(app, name);
    let triggers = app.triggers.of_agent(name);
    look(app, name, |record, lives| {
        let config = record.config.as_ref();
        let subscriptions = config.map(|config| config.subscriptions.iter());
        let subscriptions = subscriptions.into_iter().flatten();
        let events = record.mailbox.iter().take(SHOWN);
        let waiting = |(position, event): &(EventPosition, Event)| WaitingEvent {
            position: position.0,
            topic: event.topic.to_string(),
            from: event.from.clone(),
            at_ms: event.at_ms,
        };
        AgentDetail {
            agent: AgentView::new(name, record, lives, used, triggers),
            subscriptions: subscriptions.map(ToString::to_string).collect(),
            mailbox: config.map_or(0, |config| config.mailbox),
            events: events.map(waiting).collect(),
        }
    })
}

async fn files(State(app): State<Arc<App>>) -> Json<Vec<AgentFileView>> {
    Json(app.program.agent_files())
}

/// The pausing of an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseAgent {
    /// The reason, of which 500 characters are kept.
    #[serde(default)]
    pub(crate) why: Option<String>,
}

pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiPath(name): ApiPath<String>,
    ApiJson(given): ApiJson<PauseAgent>,
) -> Result<StatusCode, ApiError> {
    let why = given.why.map(|why| gyrus_text::clip(&why, 500));
    app.agents.pause(&name, identity.principal, why).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    ApiPath(name): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    app.agents.resume(&name).await?;
    app.triggers.resume(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn skip(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiPath(name): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    app.agents.skip(&name, identity.principal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Something to tell an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendToAgent {
    /// The text.
    #[schemars(length(min = 1))]
    pub(crate) text: String,
}

pub(crate) async fn send(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiPath(name): ApiPath<String>,
    ApiJson(given): ApiJson<SendToAgent>,
) -> Result<(StatusCode, Json<Published>), ApiError> {
    if given.text.is_empty() {
        return Err(ApiError::bad_request("invalid `text`: it is empty"));
    }
    let id = EventId::new();
    let told = app.agents.tell(&name, |topic| {
        let payload = Value::String(given.text);
        let origin = origin_of(&identity, &topic, &payload);
        let event = Event::new(topic, &*identity.principal.id, origin, payload);
        Event { id, ..event }
    });
    let published = Published {
        position: told.await?.0,
        id: id.to_string(),
    };
    Ok((StatusCode::ACCEPTED, Json(published)))
}
