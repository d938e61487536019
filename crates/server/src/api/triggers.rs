//! Triggers of agents: how each stands, firing one by hand, and webhooks.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension, Json,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use gyrus_runtime::triggers::{DeliveryFate, HeldBack, HookHead, TriggerStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, acts},
    error::{ApiError, ErrorBody},
    extract::{ApiPath, RawBody},
    tokens::Requester,
};

/// Maximum size of a delivery to a webhook in bytes.
const MAX_DELIVERY: usize = 256 << 10;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        acts("/api/agents/{agent}/triggers/{trigger}/fire", post(fire))
            .named("fireTrigger", "Fire a trigger by hand")
            .answer(204, "It fired; the event is on disk.", BodyForm::Empty),
        acts(
            "/hooks/{agent}/{trigger}",
            post(deliver).layer(DefaultBodyLimit::max(MAX_DELIVERY)),
        )
        .named(
            "deliverToWebhook",
            "Deliver JSON to a webhook, signed as Standard Webhooks say",
        )
        .for_everybody()
        .json::<Delivery>(202, "It fired; the event is on disk.")
        .json::<Delivery>(
            200,
            "It was delivered before, or a condition of the trigger does not hold.",
        )
        .json::<ErrorBody>(503, "The trigger is paused, or has no secret."),
    ]
}

/// A trigger of an agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TriggerView {
    /// Its name.
    pub(crate) name: String,
    /// The kind: `cron`, `files`, `clipboard` or `webhook`; missing if no server has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    /// The next instant of its schedule, in UTC milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_ms: Option<i64>,
    /// The time of its last firing, in UTC milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_ms: Option<i64>,
    /// The end of the run that it woke then, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_result: Option<String>,
    /// Number of firings in all.
    pub(crate) fired: u64,
    /// Number of firings today (UTC).
    pub(crate) wakes_today: u64,
    /// Number of wakes in a row that were of no use.
    pub(crate) useless: u32,
    /// Number of times that it was set off and did not fire, by the reason: `condition`, `budget`, `paused` or
    /// `own_run`.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub(crate) held: BTreeMap<HeldBack, u64>,
    /// The reason why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<String>,
    /// The reason why it cannot be set off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

impl TriggerView {
    pub(super) fn all(triggers: Vec<TriggerStatus>) -> Vec<Self> {
        triggers.into_iter().map(Self::new).collect()
    }

    fn new(status: TriggerStatus) -> Self {
        let record = status.record;
        let (last_ms, last_result) = match record.last {
            Some(last) => (Some(last.at_ms), last.result),
            None => (None, None),
        };
        Self {
            name: status.name,
            kind: status.kind,
            next_ms: status.next_ms,
            last_ms,
            last_result,
            fired: record.fired,
            wakes_today: status.wakes_today,
            useless: record.useless,
            held: record.held,
            paused: record.paused,
            problem: status.problem,
        }
    }
}

pub(crate) async fn fire(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiPath((agent, trigger)): ApiPath<(String, String)>,
) -> Result<StatusCode, ApiError> {
    app.triggers
        .fire(&agent, &trigger, &identity.principal)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The fate of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Delivery {
    /// Whether the trigger fired.
    fired: bool,
    /// The reason why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

async fn deliver(
    State(app): State<Arc<App>>,
    ApiPath((agent, trigger)): ApiPath<(String, String)>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<(StatusCode, Json<Delivery>), ApiError> {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    };
    let head = HookHead {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let delivered = app.triggers.deliver(&agent, &trigger, head, &body).await?;
    let not_fired = |why| {
        (
            StatusCode::OK,
            Json(Delivery {
                fired: false,
                why: Some(why),
            }),
        )
    };
    match delivered {
        DeliveryFate::Fired => {
            let delivery = Delivery {
                fired: true,
                why: None,
            };
            Ok((StatusCode::ACCEPTED, Json(delivery)))
        }
        DeliveryFate::Repeated => Ok(not_fired("it was delivered before")),
        DeliveryFate::Held(HeldBack::Condition) => Ok(not_fired("a condition does not hold")),
        DeliveryFate::Held(HeldBack::Budget) => {
            let error = "the budget of the day is used up";
            Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, error).hint("deliver it tomorrow"))
        }
        DeliveryFate::Held(HeldBack::Paused | HeldBack::OwnRun) => {
            let error = "the trigger is paused";
            Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error))
        }
    }
}
