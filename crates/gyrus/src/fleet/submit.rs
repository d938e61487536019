//! `gyrus run --fleet`: a run is put into the queue of a fleet, and watched here.

use std::{path::PathBuf, sync::Arc, time::Duration};

use gyrus_contract::{DEFAULT_AGENT, RunId};
use gyrus_fleet::{FleetCopy, IsOver};
use gyrus_journal::Store;
use gyrus_kernel::log_name;
use gyrus_runtime::{
    queue::{CommandStage, Gateway, QueueCommand, QueueError, QueueWork},
    request::RunRequest,
};
use gyrus_surfaces::{console::put, terminal};

use super::{FleetMembership, LOCAL, PATIENCE, clone, room, status::why_it_waits, upload};
use crate::{
    Gyrus,
    commands::{
        follow,
        run::{FolderSource, Run},
    },
    drive,
    exit::Code,
    failure::Failure,
};

/// Time after which the reason is printed why a run does not begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// Puts a run into the queue of a fleet, and follows it until it ends or parks. The copy of its
/// journal is kept apart from this machine's own runs.
pub(crate) fn submit_and_follow(gyrus: &Gyrus, asked: Run) -> Result<Code, Failure> {
    let fleet = asked.fleet().unwrap_or(LOCAL).to_owned();
    let (source, json) = (asked.folder_source(), asked.is_json());
    let request = asked.for_worker(gyrus)?;
    let (_, copies) = copies(gyrus)?;
    let runtime = drive::runtime()?;
    let submitted = runtime.block_on(submit(gyrus, (&fleet, source), request, &copies))?;
    let run = submitted.run;
    if let Some(code) = runtime.block_on(submitted.begun(&copies))? {
        return Ok(code);
    }
    // Printing is done on threads of its own.
    let code = follow::follow(gyrus, &copies, run, json);
    let summary = submitted.given_up();
    runtime.shutdown_background();
    if source != FolderSource::SamePath && !json {
        // An address may hold a password.
        let fleet = if fleet == LOCAL { LOCAL } else { "ADDRESS" };
        put(&format!(
            "what it changed is in its copy; to see it, and to have it here:\n  \
             gyrus --fleet {fleet} diff {0}\n  gyrus --fleet {fleet} apply {0}\n",
            run.short()
        ))?;
    }
    match (code, summary) {
        (Ok(Code::Interrupted), Some(summary)) => {
            Err(Failure::failed(format!("the run was given up: {summary}")))
        }
        (code, _) => code,
    }
}

pub(super) fn copies(gyrus: &Gyrus) -> Result<(PathBuf, Store), Failure> {
    let home = gyrus.home()?;
    home.create_state()?;
    let folder = home.state.join("fleet/copies");
    let store = Store::open(&folder)
        .map_err(|error| Failure::failed("the copies of runs cannot be kept").because(&error))?;
    Ok((folder, store))
}

fn not_queued(error: QueueError) -> Failure {
    let why = error.to_string();
    let failure = Failure::usage(format!("the run is not in the queue of the fleet: {why}"));
    match room(&why) {
        "" => failure.hint("to see what is wrong: gyrus fleet doctor"),
        room => failure.hint(room.trim_start_matches("; ")),
    }
}

struct FleetSubmission {
    joined: FleetMembership,
    run: RunId,
    id: String,
    gateway: Gateway,
}

async fn submit(
    gyrus: &Gyrus,
    (fleet, source): (&str, FolderSource),
    mut request: RunRequest,
    copies: &Store,
) -> Result<FleetSubmission, Failure> {
    let joined = FleetMembership::open(gyrus, fleet, Some(PATIENCE)).await?;
    let folder = request.workdir.clone();
    request.base = match source {
        FolderSource::SamePath => None,
        FolderSource::Upload => Some(upload::upload(gyrus, &joined, folder).await?),
        FolderSource::Clone => Some(clone::of_checkout(&folder)?),
    };
    joined.follow();
    let gateway = joined.client(copies);
    let from = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let work = QueueWork::Start(Box::new(request));
    let new = QueueCommand::new(work, None, from, DEFAULT_AGENT.to_owned());
    let queued = gateway.submit(new).await.map_err(not_queued)?;
    let (run, id) = (queued.command.run, queued.command.id.clone());
    put(&format!(
        "run {} is in the queue of {}\n",
        run.short(),
        joined.address
    ))?;
    let copy = FleetCopy {
        log: Arc::clone(&joined.log),
        machine: Arc::clone(&joined.machine),
        store: copies.clone(),
        root: run,
    };
    let (asked, changes) = (gateway.clone(), gateway.changes());
    let command = id.clone();
    let is_over: IsOver = Arc::new(move || {
        asked.with(|queue| {
            let stage = queue.get(&command).map(|one| &one.stage);
            stage
                .is_none_or(|stage| stage.is_over() || matches!(stage, CommandStage::Parked { .. }))
        })
    });
    tokio::spawn(async move {
        if let Err(error) = copy.follow(is_over, changes).await {
            // Who watches sees no more; the run goes on.
            let _ = put(&format!("the run cannot be watched any more: {error}\n"));
        }
    });
    Ok(FleetSubmission {
        joined,
        run,
        id,
        gateway,
    })
}

impl FleetSubmission {
    /// Returns the reason why no worker continues the run, if none does.
    fn given_up(&self) -> Option<String> {
        self.gateway
            .with(|queue| match &queue.get(&self.id)?.stage {
                CommandStage::Ended { summary, .. } => Some(summary.clone()),
                _ => None,
            })
    }

    /// Waits until the run has begun; returns the exit code if it never will.
    async fn begun(&self, copies: &Store) -> Result<Option<Code>, Failure> {
        let name = log_name(self.run);
        let mut changes = self.gateway.changes();
        let mut says_why = Some(std::time::Instant::now() + BEGINS_WITHIN);
        loop {
            if copies.exists(&name) {
                return Ok(None);
            }
            let stage = self
                .gateway
                .with(|queue| queue.get(&self.id).map(|one| one.stage.clone()));
            match stage {
                Some(CommandStage::Ended { summary, .. }) if !copies.exists(&name) => {
                    return Err(Failure::failed(format!("the run did not begin: {summary}")));
                }
                Some(CommandStage::Queued)
                    if says_why.is_some_and(|at| at <= std::time::Instant::now()) =>
                {
                    says_why = None;
                    if let Some(why) = why_it_waits(&self.joined, &self.id).await? {
                        put(&format!("it waits: {why}\n"))?;
                    }
                }
                Some(CommandStage::Cancelled { by, .. }) => {
                    put(&format!("{} took the run back\n", by.id))?;
                    return Ok(Some(Code::Denied));
                }
                _ => {}
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
                _ = tokio::signal::ctrl_c() => {
                    put("no longer waited for; the run stays in the queue\n")?;
                    return Ok(Some(Code::Interrupted));
                }
            }
        }
    }
}
