//! Starting, amending, resuming and ending runs for a client.
//!
//! What a client says is the word of its model, so a goal and an amendment have the client as their
//! source, not a person: they vouch for nothing.

use std::{path::PathBuf, sync::Arc};

use gyrus_contract::{DEFAULT_AGENT, MessageBody, Origin, RunId, Text};
use gyrus_kernel::{Register, RunState, StandingRun, approvals, check_not_record, log_name};
use gyrus_runtime::{
    blocking,
    queue::QueueWork,
    request::{RunOptions, RunRequest, ScreenWord},
};
use gyrus_server::{Requester, RunOverview};
use gyrus_surfaces::projection;

use crate::{
    host::McpHost,
    report::{ListedRun, RunReports},
    tools::{MAX_TEXT, RunArguments},
};

/// Number of runs that are listed by default.
const LISTED: usize = 20;

fn origin(caller: &Requester) -> Origin {
    let name = format!("MCP client {}", caller.principal.id);
    Origin::Tool { name }
}

/// Returns the run that a client names.
///
/// # Errors
/// A message if there is no such run.
pub(crate) async fn find(host: &Arc<dyn McpHost>, given: &str) -> Result<RunId, String> {
    // One that waits for its turn has no journal yet.
    if let Ok(run) = given.parse() {
        return Ok(run);
    }
    let (host, given) = (Arc::clone(host), given.to_owned());
    blocking(move || gyrus_kernel::find_run(host.store(), &given))
        .await
        .map_err(|error| format!("{error}; `runs` lists them"))
}

/// Begins a run.
///
/// # Errors
/// A message with the reason why the run cannot begin.
pub(crate) async fn start(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    given: RunArguments,
) -> Result<RunId, String> {
    let goal = checked_text("goal", given.goal)?;
    let folder = folder(host, given.workdir)?;
    let mut options = RunOptions::default();
    options.flags.screen.screen = given.browser.then_some(ScreenWord::Browser);
    options.flags.cognitive_loop = given.cognitive_loop;
    let continues = match given.continues {
        Some(run) => {
            let run = find(host, &run).await?;
            check_is_own(host, caller, run, "continue").await?;
            Some(run)
        }
        None => None,
    };
    let request = RunRequest {
        options,
        continues,
        ..RunRequest::new(Text::new(goal, origin(caller)), folder)
    };
    let checking = Arc::clone(host);
    let request = blocking(move || checking.check(request)).await;
    let request = request.map_err(|refused| refused.to_string())?;
    // As the host resolved it, without links.
    if let Some(allowed) = host.folder()
        && !request.workdir.starts_with(allowed)
    {
        return Err(outside(&request.workdir, allowed));
    }
    let run = RunId::new();
    let work = QueueWork::Start(Box::new(request));
    let from = caller.principal.clone();
    host.submit(run, work, from, DEFAULT_AGENT.to_owned())
        .await?;
    Ok(run)
}

fn folder(host: &Arc<dyn McpHost>, given: Option<String>) -> Result<PathBuf, String> {
    let folder = match (given, host.folder()) {
        (Some(given), _) => PathBuf::from(given),
        (None, Some(folder)) => folder.to_owned(),
        (None, None) => {
            return Err(
                "name the folder to work in: give its absolute path as `workdir`".to_owned(),
            );
        }
    };
    if !folder.is_absolute() {
        return Err("`workdir` is not absolute: it begins with /".to_owned());
    }
    Ok(folder)
}

fn outside(folder: &std::path::Path, allowed: &std::path::Path) -> String {
    format!(
        "{} is outside of {}, the folder that this server was started for (gyrus mcp serve \
         --workdir)",
        folder.display(),
        allowed.display()
    )
}

fn checked_text(name: &str, text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("`{name}` is empty"));
    }
    if text.len() > MAX_TEXT {
        return Err(format!("`{name}` is longer than {MAX_TEXT} bytes"));
    }
    Ok(text)
}

/// Checks that a client began a run itself: a session that a person began has grants and words of
/// that person.
async fn check_is_own(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    run: RunId,
    what: &str,
) -> Result<(), String> {
    let (host, origin) = (Arc::clone(host), origin(caller));
    let begun_as = blocking(move || {
        let started = StandingRun::read(host.store(), run)?.started;
        let reader = host.store().reader(&log_name(run))?;
        Ok::<_, gyrus_kernel::StandingError>(projection::stored(&started.goal, &reader))
    });
    let goal = begun_as.await.map_err(|error| error.to_string())??;
    if goal.origin == origin {
        return Ok(());
    }
    let run = run.short();
    Err(format!(
        "this client did not start run {run}, so it cannot {what} it"
    ))
}

/// Adds to a run's goal.
///
/// # Errors
/// A message: the run is over, or cannot be reached.
pub(crate) async fn steer(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    run: RunId,
    text: String,
) -> Result<String, String> {
    let text = checked_text("text", text)?;
    let origin = origin(caller);
    send(host, caller, run, MessageBody::Steer { text, origin }).await?;
    Ok(format!("Run {} is told before its next step.", run.short()))
}

/// Cuts off the effect in progress of a run, and parks the run.
///
/// # Errors
/// A message: the run is over, or cannot be reached.
pub(crate) async fn stop(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    run: RunId,
) -> Result<String, String> {
    send(host, caller, run, MessageBody::Stop).await?;
    Ok(format!("Run {} is told to stop.", run.short()))
}

async fn send(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    run: RunId,
    body: MessageBody,
) -> Result<(), String> {
    let (host, from) = (Arc::clone(host), caller.principal.clone());
    blocking(move || {
        approvals::send(host.store(), run, from, body).map_err(|error| error.to_string())
    })
    .await
}

/// Resumes a run; returns the number of its last entry so far.
///
/// # Errors
/// A message: the run is at work or over, or cannot be resumed.
pub(crate) async fn resume(
    host: &Arc<dyn McpHost>,
    caller: &Requester,
    run: RunId,
) -> Result<u64, String> {
    let reading = Arc::clone(host);
    let (agent, end) = blocking(move || {
        let name = run.short();
        match RunState::of(reading.store(), run).map_err(|error| error.to_string())? {
            RunState::Over(ending) => {
                let ending = gyrus_kernel::summary(&ending);
                return Err(format!("run {name} is over: {ending}"));
            }
            RunState::Running(_) => return Err(format!("run {name} is at work: use `follow`")),
            RunState::Record(_) => {
                check_not_record(reading.store(), run).map_err(|error| error.to_string())?;
            }
            RunState::Parked(_) | RunState::CutOff | RunState::NeverBegan => {}
        }
        let standing = StandingRun::read(reading.store(), run);
        let agent = standing.map_err(|error| error.to_string())?.started.agent;
        let end = reading
            .store()
            .reader(&log_name(run))
            .and_then(|reader| reader.end());
        Ok((agent, end.map_err(|error| error.to_string())?))
    })
    .await?;
    let from = caller.principal.clone();
    host.submit(run, QueueWork::Resume, from, agent).await?;
    Ok(end)
}

/// Lists the newest runs.
///
/// # Errors
/// A message if the store cannot be read.
pub(crate) async fn list(
    host: &Arc<dyn McpHost>,
    limit: Option<usize>,
) -> Result<RunReports, String> {
    let host = Arc::clone(host);
    let limit = limit.unwrap_or(LISTED).clamp(1, 100);
    blocking(move || {
        let store = host.store();
        let register = Register::read(store).map_err(|error| error.to_string())?;
        let roots = register.newest_first().filter(|run| run.is_root());
        // One that was removed since, or cannot be read, is left out.
        let listed = roots.filter_map(|run| {
            let asked = approvals::open(store, run).map_or(0, |open| open.len());
            RunOverview::read(store, run, asked).ok()
        });
        let listed = listed.take(limit).map(|overview| ListedRun::of(&overview));
        Ok(RunReports {
            runs: listed.collect(),
        })
    })
    .await
}
