//! Chats of the server, and the people who may use them.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    routing::{delete, get, post},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, decides, reads},
    error::ApiError,
    extract::ApiPath,
    surroundings::ChatView,
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/chats", get(list))
            .named("listChats", "List the chats of the server")
            .json::<Vec<ChatView>>(200, "The chats."),
        decides("/api/chats/{chat}/codes", post(code))
            .named(
                "pairChat",
                "Make a code by which somebody is paired with a chat",
            )
            .json::<PairingCode>(200, "The code; it counts once."),
        decides("/api/chats/{chat}/people/{person}", delete(remove))
            .deleting()
            .named("removePerson", "Take a person's right to use a chat")
            .answer(204, "They have it no more.", BodyForm::Empty),
    ]
}

/// A code by which somebody is paired.
#[derive(Debug, Serialize, JsonSchema)]
struct PairingCode {
    /// The code.
    code: String,
}

async fn list(State(app): State<Arc<App>>) -> Json<Vec<ChatView>> {
    Json(app.program.chats())
}

async fn code(
    State(app): State<Arc<App>>,
    ApiPath(path): ApiPath<HashMap<String, String>>,
) -> Result<Json<PairingCode>, ApiError> {
    let chat = path.get("chat").map(String::as_str).unwrap_or_default();
    let code = app.program.pairing_code(chat)?;
    Ok(Json(PairingCode { code }))
}

async fn remove(
    State(app): State<Arc<App>>,
    ApiPath(path): ApiPath<HashMap<String, String>>,
) -> Result<StatusCode, ApiError> {
    let named = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
    app.program.unpair(named("chat"), named("person")).await?;
    Ok(StatusCode::NO_CONTENT)
}
