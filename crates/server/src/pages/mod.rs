//! The dashboard: pages over the same functions as the API. They are links and forms, and work
//! without scripts; the modules in `web/` only keep them up to date.
//!
//! Reading order: `frame` (what every page has), `runs`, `run`, `compare`, `live`,
//! `waiting` (with `hunks`), `agents`, `events`, `costs`, `rules`, `fleet`, `health`, `search`,
//! `assets`.

mod assets;
mod compare;
mod forms;
mod frame;
mod hunks;
mod live;
mod recipients;
mod agents;
mod agent;
mod events;
mod event;
mod conversation;
mod costs;
mod queues;
mod rules;
mod health;
mod fleet;
mod search;
mod filter;
mod several;
mod run;
mod runs;
mod waiting;

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};

use self::{
    forms::{see, typed},
    frame::NavigationPlace,
};
use crate::{
    api::{self, control, takeover, triggers},
    app::App,
    endpoint::{Endpoint, acts, decides, reads},
    error::ErrorBody,
    extract::{ApiForm, ApiJson},
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let all = vec![
        reads("/", get(runs::list)),
        reads("/runs", get(runs::list)),
        reads("/waiting", get(waiting::all)),
        reads("/runs/{run}/live", get(live::show)),
        decides("/runs/{run}/take", post(takeover::take_over)).then_see("/runs/{run}/live"),
        decides("/runs/{run}/give-back", post(takeover::give_back)).then_see("/runs/{run}/live"),
        reads("/compare", get(compare::show)),
        acts("/runs", post(runs::start)),
        acts("/runs/several", post(several::act)),
        decides(
            "/runs/{run}/questions/{question}/answer",
            post(waiting::answer),
        ),
        reads("/agents", get(agents::list)),
        reads("/agents/{agent}", get(agent::show)),
        acts("/agents/{agent}/pause", post(agent::pause)),
        acts("/agents/{agent}/resume", post(api::agents::resume)).then_see("/agents/{agent}"),
        acts("/agents/{agent}/skip", post(api::agents::skip)).then_see("/agents/{agent}"),
        acts("/agents/{agent}/send", post(agent::send)),
        acts(
            "/agents/{agent}/triggers/{trigger}/fire",
            post(triggers::fire),
        )
        .then_see("/agents/{agent}"),
        reads("/events", get(events::list)),
        acts("/events", post(events::send)),
        reads("/events/{position}", get(event::show)),
        reads("/costs", get(costs::show)),
        reads("/costs.csv", get(costs::csv)),
        reads("/rules", get(rules::show)),
        acts("/rules/gate", post(rules::ask)),
        decides("/rules/grants/{grant}/revoke", post(api::rules::revoke)).then_see("/rules"),
        reads("/fleet", get(fleet::show)),
        reads("/health", get(health::show)),
        acts("/health/doctor", post(health::doctor)),
        acts("/health/verify", post(health::verify)),
        reads("/search", get(search::find)),
        acts("/stop", post(stop_all)),
        decides("/rearm", post(control::rearm)).then_see("/"),
        reads("/web/widget.js", get(assets::widget))
            .for_everybody()
            .for_named_origins(),
        reads("/web/{version}/{file}", get(assets::file))
            .for_everybody()
            .for_named_origins(),
    ];
    let all = all.into_iter().chain(run::endpoints());
    all.map(Endpoint::page).collect()
}

#[derive(Debug, serde::Deserialize)]
struct StopForm {
    #[serde(default)]
    reason: String,
}

async fn stop_all(
    state: State<Arc<App>>,
    identity: axum::Extension<crate::tokens::Requester>,
    ApiForm(form): ApiForm<StopForm>,
) -> Result<Response, crate::error::ApiError> {
    let given = control::StopAll {
        reason: typed(form.reason),
    };
    // The page shows whether all runs are stopped.
    let _ = control::stop_all(state, identity, ApiJson(given)).await?;
    Ok(see("/"))
}

/// Turns an error into a page. Whoever is not let in is asked for the printed address.
pub(crate) fn with_errors_as_pages(app: &App, response: Response) -> Response {
    let Some(error) = response.extensions().get::<ErrorBody>() else {
        return response;
    };
    let status = response.status();
    let page = if status == StatusCode::UNAUTHORIZED {
        frame::letting_in()
    } else {
        let heading = match status {
            StatusCode::NOT_FOUND => "Not found",
            _ => "That was not done",
        };
        NavigationPlace::Other.page(app, heading, &frame::error(heading, error))
    };
    (status, page).into_response()
}
