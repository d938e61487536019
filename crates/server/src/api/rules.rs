//! Standing grants, verdicts of the gate on command lines, and the settings in force.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    routing::{delete, get, post},
};
use gyrus_contract::{DEFAULT_AGENT, Mode, Risk};
use gyrus_kernel::grants::{self, StandingGrant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{control::succeeded, runs::blocking};
use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, acts, decides, reads},
    error::ApiError,
    extract::{ApiJson, ApiPath, ApiQuery},
    surroundings::ServerSettings,
    tokens::Requester,
};

/// Maximum length of a command line in bytes.
const MAX_LINE: usize = 32 << 10;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/grants", get(list))
            .named("listGrants", "List what is always allowed, by folder")
            .json::<Vec<GrantView>>(200, "The grants, oldest first in each folder."),
        decides("/api/grants/{grant}", delete(revoke))
            .deleting()
            .named("revokeGrant", "Take back what is always allowed")
            .answer(
                204,
                "It is asked about again, by runs that begin.",
                BodyForm::Empty,
            ),
        acts("/api/gate", post(ask))
            .named(
                "askGate",
                "Return what the gate would say to a command line",
            )
            .body::<GateQuestion>()
            .json::<GateAnswer>(200, "The verdict. Nothing was run."),
        reads("/api/configuration", get(configuration))
            .named(
                "showConfiguration",
                "Show the settings and the policy in force",
            )
            .query::<ConfigurationQuery>()
            .json::<ServerSettings>(200, "The settings."),
    ]
}

/// A standing grant.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct GrantView {
    /// Its id.
    pub(crate) id: String,
    /// The permission, as a phrase that follows "allowed".
    pub(crate) grant: String,
    /// The folder in which it holds.
    pub(crate) workspace: PathBuf,
    /// The person or program that gave it.
    pub(crate) by: String,
    /// The surface on which it was given.
    pub(crate) surface: String,
    /// The time at which it was given, in UTC milliseconds.
    pub(crate) given_ms: i64,
}

impl GrantView {
    fn new(standing: &StandingGrant) -> Self {
        Self {
            id: id(standing),
            grant: standing.grant.to_string(),
            workspace: standing.workspace.clone(),
            by: standing.by.id.clone(),
            surface: standing.by.surface.clone(),
            given_ms: standing.at_ms,
        }
    }
}

/// Returns a name for a grant that does not depend on other grants.
fn id(standing: &StandingGrant) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(standing.workspace.as_os_str().as_encoded_bytes());
    hasher.update(&[0]);
    // A grant is JSON, because it was read as that.
    hasher.update(&serde_json::to_vec(&standing.grant).unwrap_or_default());
    hasher.finalize().to_hex()[..32].to_owned()
}

pub(crate) fn all(app: &App) -> Result<Vec<GrantView>, ApiError> {
    Ok(standing(app)?.iter().map(GrantView::new).collect())
}

fn standing(app: &App) -> Result<Vec<StandingGrant>, ApiError> {
    grants::all(&app.store).map_err(|error| ApiError::internal(error.to_string()))
}

async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<GrantView>>, ApiError> {
    blocking(move || all(&app).map(Json)).await
}

pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiPath(given): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    blocking(move || {
        let all = standing(&app)?;
        let found = all.iter().find(|one| id(one) == given);
        let found = found.ok_or_else(|| {
            ApiError::not_found("there is no such grant").hint("it may be revoked already")
        })?;
        grants::revoke(&app.store, found, &identity.principal)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// A command line to ask the gate about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateQuestion {
    /// The command line.
    #[schemars(length(min = 1))]
    pub(crate) command: String,
    /// The folder that a run would work in.
    pub(crate) workdir: PathBuf,
    /// The mode that a run would have: `read-only`, `ask`, `edits`, `auto` or `never`.
    #[serde(default)]
    pub(crate) mode: Option<String>,
    /// The agent under whose trust it would work.
    #[serde(default)]
    pub(crate) agent: Option<String>,
}

/// The verdict of the gate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct GateAnswer {
    /// The risk: `safe`, `moderate`, `high` or `critical`.
    #[schemars(with = "String")]
    pub(crate) risk: Risk,
    /// The decision: `allow`, `ask` or `deny`.
    pub(crate) decision: String,
    /// The reasons.
    pub(crate) reasons: Vec<String>,
    /// The sandbox that it would run in; `null` if it would run with the person's own rights.
    pub(crate) containment: Option<SandboxView>,
    /// The command line as it was understood.
    pub(crate) parse: Value,
}

/// The bounds of a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SandboxView {
    /// Folders and files that it may change.
    pub(crate) writable: Vec<PathBuf>,
    /// The network: `none`, `proxy` if each connection is judged when it is made, or `open`.
    pub(crate) network: String,
    /// Number of places that it does not see.
    pub(crate) hidden: usize,
}

async fn ask(
    State(app): State<Arc<App>>,
    ApiJson(question): ApiJson<GateQuestion>,
) -> Result<Json<GateAnswer>, ApiError> {
    asked(&app, question).await.map(Json)
}

/// Asks the gate a question in the same way as the command line.
pub(crate) async fn asked(app: &App, question: GateQuestion) -> Result<GateAnswer, ApiError> {
    let invalid = |what: &str| ApiError::bad_request(what.to_owned());
    if question.command.trim().is_empty() {
        return Err(invalid("invalid `command`: it is empty"));
    }
    if question.command.len() > MAX_LINE || question.command.contains('\0') {
        return Err(invalid("invalid `command`: at most 32 KiB of text"));
    }
    if !question.workdir.is_absolute() {
        return Err(invalid("invalid `workdir`: it is not absolute").hint("begin with /"));
    }
    let mode = question.mode.as_deref().unwrap_or("ask").parse::<Mode>();
    let mode = mode.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let agent = question.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    let arguments = vec![
        "policy".to_owned(),
        "explain".to_owned(),
        "--json".to_owned(),
        format!("--approve={mode}"),
        format!("--agent={agent}"),
        format!("--workdir={}", question.workdir.display()),
        "--".to_owned(),
        question.command,
    ];
    let output = succeeded(app.command(arguments).await?).map_err(|mut error| {
        // What was asked cannot be answered; the state of nothing is in the way.
        error.status = StatusCode::BAD_REQUEST;
        error
    })?;
    serde_json::from_str(&output.stdout)
        .map_err(|error| ApiError::internal(format!("the verdict cannot be read: {error}")))
}

/// The runs whose settings are meant.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigurationQuery {
    /// The folder that they would work in, whose project may have a policy and servers of tools.
    pub(crate) workdir: Option<PathBuf>,
}

async fn configuration(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<ConfigurationQuery>,
) -> Result<Json<ServerSettings>, ApiError> {
    blocking(move || configured(&app, query.workdir.as_deref()).map(Json)).await
}

/// Returns the settings in force, and the policy for runs in a folder.
pub(crate) fn configured(app: &App, workdir: Option<&Path>) -> Result<ServerSettings, ApiError> {
    if workdir.is_some_and(|folder| !folder.is_absolute()) {
        let error = "invalid `workdir`: it is not absolute";
        return Err(ApiError::bad_request(error).hint("begin with /"));
    }
    app.program.configured(workdir)
}
