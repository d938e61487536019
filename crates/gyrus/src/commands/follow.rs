//! `gyrus follow`

use std::time::Duration;

use clap::Args;
use gyrus_contract::{OnAsk, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{DriveResult, Ending, Entry, log_name};
use gyrus_surfaces::{
    console::{Console, Painter, put},
    notify::Notifier,
    watching::{Person, Until, Views, WatchAtWork, live_replies},
};

use super::run_argument::RunArgument;
use crate::{Gyrus, drive, exit::Code, failure::Failure};

/// Interval at which the process that drives the run is checked for being alive.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Watch a run that another process drives
///
/// Everything that happened is shown, then what happens, until the run ends or parks; the exit code
/// is that of the run. Ctrl-C ends only the watching.
#[derive(Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    run: RunArgument,
    /// Print its entries as JSON, one a line
    #[arg(long)]
    json: bool,
}

impl Follow {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        follow(gyrus, &store, run, self.json)
    }
}

/// Prints a run's progress until the run ends or parks.
pub(crate) fn follow(
    gyrus: &Gyrus,
    store: &Store,
    run: RunId,
    json: bool,
) -> Result<Code, Failure> {
    drive::wait_for(async {
        // The models are in another process.
        let (_live, replies) = live_replies();
        let painter = Painter::new(&std::io::stderr(), gyrus.environment.plain);
        let person = if json {
            Person::Program
        } else {
            let console = Console::new(store.clone(), run, painter, OnAsk::Wait, None);
            Person::Console(Box::new(console))
        };
        let views = Views {
            person,
            notifier: Notifier::new(None, OnAsk::Wait),
            trace: None,
            own_trace: None,
            editor: None,
        };
        let watching = WatchAtWork::start(store.clone(), run, 1, Vec::new(), views, replies);
        let watched = tokio::select! {
            watched = end_of(store, run) => Some(watched?),
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                None
            }
        };
        let Some((last, finished)) = watched else {
            watching.finish(Until::Now).await?;
            put("\nno longer watched; the run goes on\n")?;
            return Ok(Code::Interrupted);
        };
        watching.finish(Until::Entry(last)).await?;
        let words = drive::last_words(&store.reader(&log_name(run))?, 1)?;
        match finished {
            Some(finished) => {
                drive::ended(store, finished, json, false, (&painter, words.as_deref()))
            }
            None => {
                put(&format!(
                    "the process that drove the run died; to go on: gyrus resume {}\n",
                    run.short()
                ))?;
                Ok(Code::Interrupted)
            }
        }
    })?
}

/// Waits until the run ends or parks, or no process drives it any more. Returns its last entry, and
/// how it ended; `None` if it did not say.
async fn end_of(store: &Store, run: RunId) -> Result<(u64, Option<DriveResult>), Failure> {
    let name = log_name(run);
    loop {
        let is_driven = store.holder(&name)?.is_some();
        let last = store.reader(&name)?.entries_back()?.next().transpose()?;
        let seq = last.as_ref().map_or(0, |entry| entry.seq);
        let over = |ending: Ending, spent| {
            let (unsealed, for_terminal) = (None, None);
            let finished = DriveResult {
                run,
                ending,
                spent,
                unsealed,
                for_terminal,
            };
            Ok((seq, Some(finished)))
        };
        match last.map(|entry| gyrus_kernel::parse(&entry)) {
            // A process that lets a run go may keep its journal: the prompt, between two messages.
            Some(Ok(Entry::RunEnded(end))) => return over(end.ending, end.spent),
            Some(Ok(Entry::RunParked(end))) => return over(end.ending, end.spent),
            _ if !is_driven => return Ok((seq, None)),
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}
