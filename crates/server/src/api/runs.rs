//! Looking at runs.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use gyrus_contract::{BlobId, RunId};
use gyrus_kernel::{Register, log_name};
use gyrus_surfaces::{
    left_files::{LeftFiles, read_left_file},
    page, projection,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    app::App,
    endpoint::{BodyForm, Endpoint, reads},
    error::ApiError,
    extract::{ApiPath, ApiQuery, CommandRunPath, ListLimit, RunInPath},
    heads::RunWord,
    overview::RunOverview,
    sse,
};

/// Default and maximum number of runs in a list.
const LISTED: usize = 50;
const MAX_LISTED: usize = 500;

/// Default and maximum number of entries in an answer.
const ENTRIES: usize = 200;
const MAX_ENTRIES: usize = 1_000;

/// Maximum size of the entries in an answer in bytes; one entry may be larger alone.
const MAX_ENTRY_BYTES: usize = 8 << 20;

/// Number of files in a list, and maximum size of one that is returned in bytes.
const MAX_FILES: usize = 10_000;
const MAX_FILE_BYTES: usize = 64 << 20;

/// Maximum number of runs that are searched for one list.
const MAX_SEARCHED: usize = 20_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        reads("/api/runs", get(list))
            .named("listRuns", "List runs, newest first")
            .query::<RunsQuery>()
            .json::<RunList>(200, "The runs."),
        reads("/api/runs/{run}", get(show))
            .named("showRun", "Show a run")
            .json::<RunDetail>(200, "The run."),
        reads("/api/runs/{run}/entries", get(entries))
            .named("listEntries", "List entries of a run's journal")
            .query::<EntriesQuery>()
            .json::<Entries>(200, "The entries."),
        reads("/api/runs/{run}/events", get(events))
            .named("followRun", "Follow a run's entries as they reach the disk")
            .query::<EventsQuery>()
            .answer(
                200,
                "The entries, each with its number as its id.",
                BodyForm::Events,
            ),
        reads("/api/runs/{run}/blobs/{blob}", get(blob))
            .named("getBlob", "Return a blob of a run")
            .answer(
                200,
                "The bytes.",
                BodyForm::Other("application/octet-stream"),
            ),
        reads("/api/runs/{run}/files", get(files))
            .named("listFiles", "List the files that a run left")
            .json::<LeftFileList>(200, "Their paths in its folder, the newest last."),
        reads("/api/runs/{run}/file", get(file))
            .named("getFile", "Return a file that a run left, as it is now")
            .query::<FileQuery>()
            .answer(
                200,
                "The bytes.",
                BodyForm::Other("application/octet-stream"),
            ),
        reads("/api/runs/{run}/page", get(page))
            .named("getPage", "Return a run as one page")
            .answer(200, "The page.", BodyForm::Other("text/html")),
        reads("/api/stream", get(stream))
            .named("followPositions", "Follow the positions of all runs")
            .query::<StreamQuery>()
            .answer(200, "A list of positions in each event.", BodyForm::Events),
    ]
}

/// A selection of runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    /// Only runs in this state.
    pub(crate) state: Option<RunWord>,
    /// Only runs whose goal counts as reached so strongly: `claimed`, `checked` or `verified`.
    pub(crate) outcome: Option<String>,
    /// Only runs that this agent began, or that work under its trust.
    pub(crate) agent: Option<String>,
    /// Only runs with these words in goal, folder, model or ending.
    pub(crate) text: Option<String>,
    /// Only runs that cost more than this, in millionths of a US dollar.
    #[schemars(range(max = crate::extract::MAX_NUMBER))]
    pub(crate) cost_above_microdollars: Option<u64>,
    /// Only runs that cost less than this.
    #[schemars(range(max = crate::extract::MAX_NUMBER))]
    pub(crate) cost_below_microdollars: Option<u64>,
    /// Only runs that were started before this one.
    #[schemars(regex(pattern = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"))]
    pub(crate) before: Option<String>,
    /// At most so many.
    #[serde(default)]
    pub(crate) limit: ListLimit<LISTED, MAX_LISTED>,
}

/// Runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunList {
    /// The runs.
    pub(crate) runs: Vec<Arc<RunOverview>>,
    /// Whether there are more: ask with `before` of the last one.
    pub(crate) more: bool,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<RunsQuery>,
) -> Result<Json<RunList>, ApiError> {
    blocking(move || listed(&app, &query).map(Json)).await
}

pub(crate) fn listed(app: &App, query: &RunsQuery) -> Result<RunList, ApiError> {
    let before = query.before.as_deref().map(|before| {
        before.parse::<RunId>().map_err(|_| {
            ApiError::bad_request(format!(
                "invalid `before`: `{before}` is not the id of a run"
            ))
        })
    });
    let before = before.transpose()?;
    let limit = query.limit.0;
    let text = query.text.as_ref().map(|text| text.to_lowercase());
    let agent = query.agent.as_deref();
    let begun = agent.map(|agent| app.gateway.with(|queue| queue.runs_within(agent, ..)));
    let is_of_agent = |overview: &RunOverview| {
        let began = begun
            .as_ref()
            .is_some_and(|begun| begun.contains(&overview.run));
        began || is(agent, Some(&overview.agent))
    };
    let mut list = RunList {
        runs: Vec::new(),
        more: false,
    };
    let register = Register::read(&app.store)?;
    let mut roots = register.newest_first().filter(|run| run.is_root());
    if let Some(before) = before {
        roots.find(|run| *run == before);
    }
    for run in roots.take(MAX_SEARCHED) {
        // One that was removed since, or cannot be read, is left out.
        let Ok(overview) = overview(app, run) else {
            continue;
        };
        let fits = query.state.is_none_or(|state| overview.state == state)
            && is(query.outcome.as_deref(), overview.outcome.as_deref())
            && costs_as_much(query, overview.cost_microdollars)
            && is_of_agent(&overview)
            && text.as_ref().is_none_or(|text| has(&overview, text));
        if !fits {
            continue;
        }
        if list.runs.len() == limit {
            list.more = true;
            break;
        }
        list.runs.push(overview);
    }
    Ok(list)
}

fn costs_as_much(query: &RunsQuery, cost: u64) -> bool {
    let above = query.cost_above_microdollars;
    let below = query.cost_below_microdollars;
    above.is_none_or(|above| cost > above) && below.is_none_or(|below| cost < below)
}

fn is(wanted: Option<&str>, given: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| given == Some(wanted))
}

fn has(overview: &RunOverview, text: &str) -> bool {
    let folder = overview.workdir.to_string_lossy();
    let texts = [
        &*overview.goal,
        &*folder,
        &*overview.model,
        overview.ending.as_deref().unwrap_or_default(),
        &*overview.name,
    ];
    texts.iter().any(|one| one.to_lowercase().contains(text))
}

pub(crate) fn overview(app: &App, run: RunId) -> Result<Arc<RunOverview>, ApiError> {
    let questions = app.heads.of(run).map_or(0, |head| head.questions);
    Ok(app.overviews.of(&app.store, run, questions)?)
}

/// A run with what its list leaves out.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunDetail {
    #[serde(flatten)]
    overview: RunOverview,
    /// The whole goal.
    full_goal: String,
    /// The answer, if it ended with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The command of the queue that it works for.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Json<RunDetail>, ApiError> {
    blocking(move || {
        let reader = app.store.reader(&log_name(run))?;
        let goal = match reader.entry(1)?.map(|first| gyrus_kernel::parse(&first)) {
            Some(Ok(gyrus_kernel::Entry::RunStarted(started))) => {
                projection::goal(&started.goal, &reader)
            }
            _ => String::new(),
        };
        let answer = match gyrus_kernel::RunState::of(&app.store, run)? {
            gyrus_kernel::RunState::Over(gyrus_kernel::Ending::Reached { claim, .. }) => {
                Some(claim.answer)
            }
            _ => None,
        };
        let command = app
            .gateway
            .with(|queue| Some(queue.of_run(run)?.command.id.clone()));
        Ok(Json(RunDetail {
            overview: RunOverview::clone(&*overview(&app, run)?),
            full_goal: goal,
            answer,
            command,
        }))
    })
    .await
}

/// A selection of entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntriesQuery {
    /// Only entries after this number.
    #[serde(default)]
    #[schemars(range(max = crate::extract::MAX_NUMBER))]
    after: u64,
    /// At most so many.
    #[serde(default)]
    limit: ListLimit<ENTRIES, MAX_ENTRIES>,
}

/// Entries of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entries {
    /// The entries, in order.
    entries: Vec<Value>,
    /// Whether there are more: ask with `after` of the last one.
    more: bool,
}

pub(crate) async fn entries(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(query): ApiQuery<EntriesQuery>,
) -> Result<Json<Entries>, ApiError> {
    blocking(move || {
        let limit = query.limit.0;
        let reader = app.store.reader(&log_name(run))?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        // Nothing is shown that is not on disk.
        let end = app.heads.of(run).map_or(u64::MAX, |head| head.seq);
        for entry in reader.entries(query.after.saturating_add(1))? {
            let entry = entry?;
            if entry.seq > end {
                break;
            }
            if let gyrus_journal::Payload::Json(payload) = &entry.payload {
                bytes += payload.get().len();
            }
            let is_full = entries.len() == limit || bytes > MAX_ENTRY_BYTES;
            if is_full && !entries.is_empty() {
                return Ok(Json(Entries {
                    entries,
                    more: true,
                }));
            }
            entries.push(sse::value(run, &entry));
        }
        Ok(Json(Entries {
            entries,
            more: false,
        }))
    })
    .await
}

/// The place at which to begin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only entries after this number; `Last-Event-ID` counts before it.
    #[serde(default)]
    #[schemars(range(max = crate::extract::MAX_NUMBER))]
    after: u64,
}

pub(crate) async fn events(
    State(app): State<Arc<App>>,
    CommandRunPath { run, .. }: CommandRunPath,
    ApiQuery(query): ApiQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let after = sse::last_event_id(&headers)?.unwrap_or(query.after);
    sse::entries(&app, run, after)
}

/// Further positions to follow.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamQuery {
    /// Also tell the last position of the event bus, in events named `bus`.
    #[serde(default)]
    bus: bool,
}

pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    ApiQuery(query): ApiQuery<StreamQuery>,
) -> Result<Response, ApiError> {
    sse::heads(&app, query.bus)
}

pub(crate) async fn blob(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiPath(path): ApiPath<std::collections::HashMap<String, String>>,
) -> Result<Response, ApiError> {
    let given = path.get("blob").map(String::as_str).unwrap_or_default();
    let id: BlobId = given
        .parse()
        .map_err(|_| ApiError::not_found("there is no such blob: its name is a hash"))?;
    blocking(move || {
        let bytes = app.store.reader(&log_name(run))?.blob(&id)?;
        let media = page::picture_media_type(&bytes).unwrap_or("application/octet-stream");
        Ok(([(CONTENT_TYPE, media)], bytes).into_response())
    })
    .await
}

/// The files that a run left.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LeftFileList {
    /// Their paths in its folder.
    files: Vec<String>,
}

pub(crate) async fn files(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Json<LeftFileList>, ApiError> {
    blocking(move || {
        let files = LeftFiles::of_run(&app.store, run)?
            .newest(MAX_FILES)
            .to_vec();
        Ok(Json(LeftFileList { files }))
    })
    .await
}

/// A file of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileQuery {
    /// Its path in the run's folder, as the list of its files has it.
    path: String,
}

pub(crate) async fn file(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
    ApiQuery(FileQuery { path }): ApiQuery<FileQuery>,
) -> Result<Response, ApiError> {
    blocking(move || {
        let files = LeftFiles::of_run(&app.store, run)?;
        let gone = |why: String| ApiError::not_found(format!("`{path}` cannot be read: {why}"));
        // Only what the run itself left: its folder holds more than anybody asked for.
        if !files.newest(MAX_FILES).contains(&path) {
            let error = format!("run {} left no file `{path}`", run.short());
            return Err(
                ApiError::not_found(error).hint("see which there are: GET /api/runs/RUN/files")
            );
        }
        let workspace = gyrus_kernel::workspace(&app.store, run);
        let workspace = workspace.ok_or_else(|| gone("the run is gone".to_owned()))?;
        let bytes = read_left_file(&workspace, &path, MAX_FILE_BYTES);
        let bytes = bytes.map_err(|error| gone(error.to_string()))?;
        Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
    })
    .await
}

pub(crate) async fn page(
    State(app): State<Arc<App>>,
    RunInPath(run): RunInPath,
) -> Result<Response, ApiError> {
    blocking(move || {
        let mut html = Vec::new();
        page::write(&app.store, run, &mut html)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let attachment = format!("attachment; filename=\"run-{}.html\"", run.short());
        // It brings scripts of its own, which this server's policy does not let run.
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
            (axum::http::header::CONTENT_DISPOSITION, attachment),
        ];
        Ok((headers, html).into_response())
    })
    .await
}

/// Runs work that reads the disk on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(ApiError::internal("the request could not be carried out")),
    }
}
