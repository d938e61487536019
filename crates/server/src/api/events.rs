//! The event bus: publishing, listing and following durable events.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::{get, post},
};
use gyrus_contract::{Answer, ApprovalScope, ChangeEvent, ChangeState, Origin};
use gyrus_runtime::{Event, EventId, EventPosition, Topic, TopicPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{cycle, questions, runs::blocking};
use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, acts, reads},
    error::ApiError,
    extract::{ApiJson, ApiQuery, ListLimit},
    sse::{self, PlacedEvent},
    tokens::{Requester, TokenScope},
};

/// Default and maximum number of events in a list. An event has at most 256 KiB, so a list has at
/// most 25 MiB.
const LISTED: usize = 50;
const MAX_LISTED: usize = 100;

/// Maximum number of events that are searched for one list backwards.
const SEARCHED: u64 = 10_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        acts("/api/events", post(publish))
            .named("publishEvent", "Publish a durable event")
            .body::<PublishEvent>()
            .json::<Published>(202, "The event; it is on disk."),
        reads("/api/events", get(list))
            .named(
                "listEvents",
                "List durable events from a position on, or back from one",
            )
            .query::<EventsQuery>()
            .json::<EventList>(200, "The events."),
        reads("/api/events/stream", get(follow))
            .named(
                "followEvents",
                "Follow durable events as they reach the disk",
            )
            .query::<FollowQuery>()
            .answer(
                200,
                "The events, each with its position as its id.",
                BodyForm::Events,
            ),
    ]
}

/// An event to publish.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishEvent {
    /// The topic: words joined by dots.
    #[schemars(length(min = 1))]
    pub(crate) topic: String,
    /// The data, at most 256 KiB of JSON. It is untrusted, except a text from someone who may answer
    /// in a person's name.
    pub(crate) payload: Value,
    /// The id, a UUID of version 7: an event that is published again under its id is stored once.
    #[serde(default)]
    #[schemars(length(max = 36))]
    pub(crate) id: Option<String>,
    /// Ties the events of one conversation together.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    pub(crate) correlation: Option<String>,
}

/// An event that was published.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Published {
    /// Its id.
    pub(super) id: String,
    /// Its position on the bus.
    pub(crate) position: u64,
}

/// Returns the origin of a payload: a person's, if it is a text from someone who may answer in a
/// person's name.
pub(super) fn origin_of(identity: &Requester, topic: &Topic, payload: &Value) -> Origin {
    if payload.is_string() && identity.may(TokenScope::Approve) {
        Origin::Person
    } else {
        Origin::Event {
            topic: topic.to_string(),
        }
    }
}

pub(crate) async fn publish(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiJson(given): ApiJson<PublishEvent>,
) -> Result<(StatusCode, Json<Published>), ApiError> {
    let invalid = |error: &dyn std::error::Error| ApiError::bad_request(error.to_string());
    let topic: Topic = given.topic.parse().map_err(|error| invalid(&error))?;
    if let Ok(decision) = serde_json::from_value(json!(topic.as_str())) {
        decide(&app, &identity, decision, given.payload.clone()).await?;
    }
    let origin = origin_of(&identity, &topic, &given.payload);
    let mut event = Event::new(topic, &*identity.principal.id, origin, given.payload);
    if let Some(id) = given.id {
        event.id = id.parse::<EventId>().map_err(|error| invalid(&error))?;
    }
    event.correlation = given.correlation;
    let id = event.id.to_string();
    let position = app.agents.bus().publish_durable(event).await?.0;
    let published = Published { id, position };
    Ok((StatusCode::ACCEPTED, Json(published)))
}

/// The payload of a decision about a changeset: `user:approve:context` and its kin.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    run: String,
    /// The id of the question; absent if the run has only one.
    #[serde(default)]
    question: Option<String>,
    /// The reason of a rejection, or the edited text that is approved.
    #[serde(default)]
    words: Option<String>,
}

/// Answers the question that a decision on the bus concerns, in the name of its publisher.
async fn decide(
    app: &Arc<App>,
    identity: &Requester,
    decision: ChangeEvent,
    payload: Value,
) -> Result<(), ApiError> {
    let (asked, approves) = match decision {
        ChangeEvent::ApproveContext => (ChangeState::AwaitingContextApproval, true),
        ChangeEvent::RejectContext => (ChangeState::AwaitingContextApproval, false),
        ChangeEvent::ApproveProposal => (ChangeState::AwaitingProposalApproval, true),
        ChangeEvent::RejectProposal => (ChangeState::AwaitingProposalApproval, false),
        ChangeEvent::Start
        | ChangeEvent::ContextReady
        | ChangeEvent::ProposalReady
        | ChangeEvent::Applied
        | ChangeEvent::Failed
        | ChangeEvent::Abort => return Ok(()),
    };
    if !identity.may(TokenScope::Approve) {
        let error = format!("only who may approve can publish `{decision}`");
        return Err(ApiError::new(StatusCode::FORBIDDEN, error));
    }
    let body: DecisionBody = serde_json::from_value(payload).map_err(|error| {
        ApiError::bad_request(format!("invalid payload of `{decision}`: {error}"))
    })?;
    let run = body
        .run
        .parse()
        .map_err(|_| ApiError::not_found("there is no such run"))?;
    let (app, identity) = (Arc::clone(app), identity.clone());
    blocking(move || {
        let conflict = |error: String| ApiError::new(StatusCode::CONFLICT, error);
        let now = cycle::view(&app, run)?;
        if now.phase != asked.to_string() {
            let error = format!("the run is in the state {}, not in {asked}", now.phase);
            return Err(conflict(error));
        }
        let question = match (body.question, &now.questions[..]) {
            (Some(question), _) => question,
            (None, [only]) => only.question.clone(),
            (None, all) => {
                let error = format!("the run asks {} questions: name one", all.len());
                return Err(conflict(error));
            }
        };
        let open = questions::find(&app, run, &question)?;
        let answer = if approves {
            Answer::Approve {
                words: body.words,
                scope: ApprovalScope::default(),
            }
        } else {
            Answer::Deny { reason: body.words }
        };
        questions::give(&app, &identity, &open, answer)
    })
    .await
}

/// A selection of events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only those behind this position.
    #[serde(default)]
    #[schemars(range(max = crate::extract::MAX_NUMBER))]
    pub(crate) after: u64,
    /// Only those before this position, newest first, of the 10,000 before it.
    #[schemars(range(max = crate::extract::MAX_NUMBER))]
    pub(crate) before: Option<u64>,
    /// Only those whose topic matches this pattern.
    pub(crate) topic: Option<String>,
    /// Only those with this correlation id.
    pub(crate) correlation: Option<String>,
    /// At most so many.
    #[serde(default)]
    pub(crate) limit: ListLimit<LISTED, MAX_LISTED>,
}

/// Durable events, oldest first; newest first on the way back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventList {
    /// The events, each with its `position`.
    #[schemars(with = "Vec<Value>")]
    pub(crate) events: Vec<PlacedEvent>,
    /// The position up to which was looked: ask on with `after`. On the way back, the position down
    /// to which was looked: ask on with `before`, unless it is 1.
    pub(crate) passed: u64,
}

async fn list(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<EventsQuery>,
) -> Result<Json<EventList>, ApiError> {
    selected(&app, query).await.map(Json)
}

pub(crate) async fn selected(app: &App, query: EventsQuery) -> Result<EventList, ApiError> {
    let pattern = pattern(query.topic)?;
    let (bus, limit) = (app.agents.bus(), query.limit.0);
    let correlation = query.correlation.as_deref();
    let is_wanted =
        |event: &Event| correlation.is_none_or(|id| event.correlation.as_deref() == Some(id));
    let (events, passed) = match query.before {
        Some(before) => {
            let is_wanted = |event: &Event| pattern.matches(&event.topic) && is_wanted(event);
            let before = EventPosition(before);
            bus.read_back(before, SEARCHED, limit, is_wanted).await?
        }
        None => {
            let after = EventPosition(query.after);
            let (mut events, passed) = bus.read(after, &[pattern], limit).await?;
            events.retain(|(_, event)| is_wanted(event));
            (events, passed)
        }
    };
    let placed = |(position, event): (EventPosition, Arc<Event>)| PlacedEvent {
        position: position.0,
        event,
    };
    Ok(EventList {
        events: events.into_iter().map(placed).collect(),
        passed: passed.0,
    })
}

/// A selection of events to follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowQuery {
    /// The position behind which the stream begins; without it, and without `Last-Event-ID`, it
    /// begins with the next event.
    after: Option<u64>,
    /// Only events whose topic matches this pattern.
    topic: Option<String>,
}

async fn follow(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let pattern = pattern(query.topic)?;
    let after = match (sse::last_event_id(&headers)?, query.after) {
        (Some(last), _) | (None, Some(last)) => EventPosition(last),
        (None, None) => app.agents.bus().last_position()?,
    };
    sse::events(&app, pattern, after)
}

fn pattern(given: Option<String>) -> Result<TopicPattern, ApiError> {
    let pattern = given.as_deref().unwrap_or("**").parse();
    pattern.map_err(|error: gyrus_runtime::TopicError| ApiError::bad_request(error.to_string()))
}
