//! The queue: starting runs, going on with them, and taking commands back.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use axum::{
    Extension, Json,
    extract::State,
    http::StatusCode,
    routing::{delete, get, post},
};
use gyrus_contract::{Origin, Principal, Text};
use gyrus_kernel::{RunState, StandingRun, check_not_record};
use gyrus_runtime::{
    queue::{CommandStage, QueueCommand, QueueWork, QueuedCommand, in_time, is_label},
    request::{ContextText, RunOptions, RunRequest, options},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, acts, reads},
    error::ApiError,
    extract::{ApiJson, ApiPath, ApiQuery, ListLimit, RunInPath},
    tokens::Requester,
};
use gyrus_kernel::now_ms;

/// Default and maximum number of commands in a list.
const LISTED: usize = 100;
const MAX_LISTED: usize = 1_000;

/// The longest goal in bytes.
const MAX_GOAL: usize = 256 << 10;

/// The longest delay of a command in milliseconds: a year.
const MAX_DELAY_MS: u64 = 366 * 24 * 60 * 60 * 1000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        acts("/api/runs", post(start))
            .named("startRun", "Start a run")
            .body::<StartRun>()
            .json::<CommandView>(202, "The command that was accepted; it is on disk."),
        acts("/api/runs/{run}/resume", post(resume))
            .named("resumeRun", "Go on with a run")
            .json::<CommandView>(202, "The command that was accepted; it is on disk."),
        reads("/api/commands", get(list))
            .named("listCommands", "List commands of the queue, newest first")
            .query::<CommandsQuery>()
            .json::<Vec<CommandView>>(200, "The commands."),
        reads("/api/commands/{command}", get(show))
            .named("showCommand", "Show a command")
            .json::<CommandView>(200, "The command."),
        acts("/api/commands/{command}", delete(cancel))
            .deleting()
            .named("cancelCommand", "Take a command back that has not begun")
            .answer(204, "It is taken back.", BodyForm::Empty),
    ]
}

/// A run to start.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartRun {
    /// The goal.
    #[schemars(length(min = 1))]
    pub(crate) goal: String,
    /// The folder to work in, absolute, on the server's machine.
    #[schemars(with = "String", regex(pattern = "^/"))]
    pub(crate) workdir: PathBuf,
    /// Options of `gyrus run`, by their long names without dashes.
    #[serde(default, with = "options")]
    #[schemars(schema_with = "schema_of_options")]
    pub(crate) options: RunOptions,
    /// Text that the run starts with, by names. It is data: the run is exposed to it.
    #[serde(default)]
    pub(crate) context: BTreeMap<String, String>,
    /// Labels that the machine must have which carries it out, as `gpu`, if the server is the door of a
    /// fleet.
    #[serde(default)]
    pub(crate) needs: BTreeSet<String>,
    /// From -100 to 100; higher ones go first.
    #[serde(default)]
    #[schemars(range(min = -100, max = 100))]
    pub(crate) priority: i8,
    /// Milliseconds before which it is not started.
    #[serde(default)]
    pub(crate) delay_ms: u64,
    /// Commands with the same key are one command.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    pub(crate) key: Option<String>,
    /// Relates the command to what caused it.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub(crate) correlation: Option<String>,
}

fn schema_of_options(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "#/components/schemas/RunOptions"})
}

/// A command of the queue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommandView {
    /// Its id.
    id: String,
    /// Its run. The run exists once the command has begun.
    run: String,
    /// The goal, for a new run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<String>,
    /// The agent for which it works.
    agent: String,
    /// The person or program that asked, and its surface.
    from: String,
    /// The priority.
    priority: i8,
    /// The earliest start, in UTC milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before_ms: Option<i64>,
    /// Relates the command to what caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<String>,
    /// The time at which it was accepted, in UTC milliseconds.
    submitted_ms: i64,
    /// The stage: `queued`, `running`, `parked`, `ended` or `cancelled`, with what belongs to it.
    #[schemars(with = "serde_json::Value")]
    stage: CommandStage,
}

impl From<&QueuedCommand> for CommandView {
    fn from(standing: &QueuedCommand) -> Self {
        let command = &standing.command;
        let Principal { surface, id } = &command.from;
        Self {
            id: command.id.clone(),
            run: command.run.to_string(),
            goal: match &command.work {
                QueueWork::Start(request) => Some(gyrus_text::clip(&request.goal.text, 400)),
                QueueWork::Resume => None,
            },
            agent: command.agent.clone(),
            from: format!("{id} ({surface})"),
            priority: command.priority,
            not_before_ms: command.not_before_ms,
            correlation: command.correlation.clone(),
            submitted_ms: command.submitted_ms,
            stage: standing.stage.clone(),
        }
    }
}

type Accepted = (StatusCode, Json<CommandView>);

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiJson(given): ApiJson<StartRun>,
) -> Result<Accepted, ApiError> {
    let (new, request) = given.command(identity.principal)?;
    let checking = Arc::clone(&app);
    let request = super::runs::blocking(move || Ok(checking.program.check(request)?)).await?;
    let new = QueueCommand {
        agent: request.agent().to_owned(),
        work: QueueWork::Start(Box::new(request)),
        ..new
    };
    let standing = in_time(app.gateway.submit(new)).await?;
    Ok((StatusCode::ACCEPTED, Json((&standing).into())))
}

impl StartRun {
    fn command(self, from: Principal) -> Result<(QueueCommand, RunRequest), ApiError> {
        if self.goal.trim().is_empty() {
            return Err(
                ApiError::bad_request("the goal is empty").hint("say what is to be reached")
            );
        }
        if self.goal.len() > MAX_GOAL {
            let error = format!("the goal is longer than {MAX_GOAL} bytes");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, error)
                .hint("put the long part into `context`"));
        }
        if self.delay_ms > MAX_DELAY_MS {
            return Err(ApiError::bad_request("invalid `delay_ms`: at most a year"));
        }
        if !(-100..=100).contains(&self.priority) {
            return Err(ApiError::bad_request(
                "invalid `priority`: from -100 to 100",
            ));
        }
        let too_long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > 200);
        if too_long(&self.key) || too_long(&self.correlation) {
            return Err(ApiError::bad_request(
                "invalid `key` or `correlation`: at most 200 bytes",
            ));
        }
        if !self.needs.iter().all(|label| is_label(label)) {
            return Err(ApiError::bad_request(
                "invalid `needs`: each is one word, as `gpu`, of at most 200 bytes",
            ));
        }
        let text = |(name, text): (String, String)| ContextText {
            text: Text::new(text, Origin::File { path: name.clone() }),
            name,
        };
        let delay = i64::try_from(self.delay_ms).unwrap_or(i64::MAX);
        let request = RunRequest {
            options: self.options,
            needs: self.needs.into_iter().collect(),
            context: self.context.into_iter().map(text).collect(),
            ..RunRequest::new(Text::new(self.goal, Origin::Person), self.workdir)
        };
        let new = QueueCommand {
            priority: self.priority,
            not_before_ms: (delay > 0).then(|| now_ms().saturating_add(delay)),
            key: self.key,
            correlation: self.correlation,
            ..QueueCommand::new(QueueWork::Resume, None, from, String::new())
        };
        Ok((new, request))
    }
}

pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
) -> Result<Accepted, ApiError> {
    let name = run.short();
    match RunState::of(&app.store, run)? {
        RunState::Running(_) => {
            return Err(ApiError::conflict(format!("run {name} is at work")));
        }
        RunState::Over(_) | RunState::NeverBegan => {
            return Err(ApiError::conflict(format!("run {name} is over")));
        }
        RunState::Record(_) => check_not_record(&app.store, run)?,
        RunState::Parked(_) | RunState::CutOff => {}
    }
    let waits = app.gateway.with(|queue| {
        let standing = queue.of_run(run)?;
        (!standing.stage.is_over()).then(|| CommandView::from(standing))
    });
    if let Some(waits) = waits {
        return Ok((StatusCode::ACCEPTED, Json(waits)));
    }
    let started = StandingRun::read(&app.store, run)?.started;
    if started.parent.is_some() {
        return Err(ApiError::conflict(format!(
            "run {name} is part of another run, which goes on with it"
        )));
    }
    let new = QueueCommand::new(
        QueueWork::Resume,
        Some(run),
        identity.principal,
        started.agent,
    );
    let standing = in_time(app.gateway.submit(new)).await?;
    Ok((StatusCode::ACCEPTED, Json((&standing).into())))
}

/// A selection of commands.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandsQuery {
    /// Only those that are not over.
    #[serde(default)]
    open: bool,
    /// At most so many.
    #[serde(default)]
    limit: ListLimit<LISTED, MAX_LISTED>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<CommandsQuery>,
) -> Result<Json<Vec<CommandView>>, ApiError> {
    let limit = query.limit.0;
    let list = app.gateway.with(|queue| {
        let all = queue.all().into_iter().rev();
        let fits = all.filter(|one| !query.open || !one.stage.is_over());
        fits.take(limit).map(CommandView::from).collect()
    });
    Ok(Json(list))
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<CommandView>, ApiError> {
    let view = app
        .gateway
        .with(|queue| queue.get(&id).map(CommandView::from));
    let missing = || ApiError::not_found(format!("there is no command `{id}`"));
    view.map(Json).ok_or_else(missing)
}

pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    ApiPath(id): ApiPath<String>,
) -> Result<StatusCode, ApiError> {
    in_time(app.gateway.cancel(&id, identity.principal)).await?;
    Ok(StatusCode::NO_CONTENT)
}
