//! The fleet that a server is a door of.

use std::sync::Arc;

use axum::{Json, extract::State, routing::get};

use crate::{
    app::App,
    endpoint::{Endpoint, reads},
    error::ApiError,
    fleet::FleetView,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/fleet", get(show))
            .named(
                "showFleet",
                "Show the workers of the fleet, its queue, and who drives what",
            )
            .json::<FleetView>(200, "The fleet as it was a moment ago."),
    ]
}

async fn show(State(app): State<Arc<App>>) -> Result<Json<FleetView>, ApiError> {
    app.program.fleet().map(Json).ok_or_else(|| {
        ApiError::not_found("this server is not the door of a fleet")
            .hint("start one that is: gyrus serve --fleet ADDRESS")
    })
}
