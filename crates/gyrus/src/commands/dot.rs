//! `gyrus dot`

use clap::Args;

use crate::{Gyrus, exit::Code, failure::Failure, inside_run};

/// Show a dot on your desktop that tells what runs do, and stop all of them with Escape
///
/// Grey: nothing is at work; blue: a run looks; violet: it waits for its model; green: it acts;
/// amber: it waits for you; red: everything is stopped. Escape stops everything while a run uses
/// this display, Control-Alt-Escape at any time, as `gyrus stop --all` does. Runs never see the dot.
#[derive(Args)]
pub(crate) struct Dot {
    /// The display, as `:0`; the one that `DISPLAY` names if none is given
    #[arg(long)]
    display: Option<String>,
}

impl Dot {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("show a dot")?;
        let given = self.display.or_else(|| gyrus.environment.display.clone());
        let display = given.ok_or_else(|| {
            Failure::usage("there is no display").hint("name it, as: gyrus dot --display :0")
        })?;
        desktop::show(gyrus, &display)
    }
}

#[cfg(not(feature = "desktop"))]
mod desktop {
    use super::{Code, Failure, Gyrus};

    /// Says how to get a gyrus that shows dots.
    pub(super) fn show(_: &Gyrus, _: &str) -> Result<Code, Failure> {
        let failure = Failure::usage("this gyrus was built without desktops");
        Err(failure.hint("build it with them: cargo build --release --features desktop"))
    }
}

#[cfg(feature = "desktop")]
mod desktop {
    use std::time::Instant;

    use gyrus_journal::{Store, os::watch};
    use gyrus_kernel::log_name;
    use gyrus_screen::{DotEvent, DotState, StatusDot};
    use gyrus_server::{FoundRuns, Heads, RunWord};
    use gyrus_surfaces::{
        console::put,
        phases::{Phase, Phases},
    };
    use gyrus_text::plural;

    use super::{Code, Failure, Gyrus};
    use crate::{commands::stop, drive, stopped};

    /// Number of the last entries of a run that tell its part of the cycle.
    const ENTRIES: u64 = 40;

    /// Shows the dot until it is interrupted.
    pub(super) fn show(gyrus: &Gyrus, display: &str) -> Result<Code, Failure> {
        gyrus.home()?.create_state()?;
        let store = gyrus.store()?;
        drive::runtime()?.block_on(follow(gyrus, &store, display))
    }

    async fn follow(gyrus: &Gyrus, store: &Store, display: &str) -> Result<Code, Failure> {
        let latch = gyrus.home()?.latch();
        let folder = latch.path().parent().unwrap_or(store.root()).to_owned();
        let mut latch_changes = watch::watch(&folder)?;
        let heads = Heads::follow(store, FoundRuns::look(store)?);
        let mut changes = heads.changes();
        let mut dot = StatusDot::open(display).map_err(Failure::failed)?;
        put(&format!("a dot is shown on {display}; Ctrl-C ends it\n"))?;
        loop {
            let (state, words) = match latch.check() {
                Ok(()) => at_work(&heads, store),
                Err(latched) => (DotState::Stopped, format!("; {}", stopped::words(&latched))),
            };
            dot.show(state, &words).map_err(Failure::failed)?;
            tokio::select! {
                event = dot.next() => match event.map_err(Failure::failed)? {
                    DotEvent::Stop(pressed) => stop(gyrus, pressed)?,
                    DotEvent::Clicked => put(&format!("{}{words}\n", state.word()))?,
                },
                changed = changes.changed() => if changed.is_err() {
                    return Err(Failure::failed("the runs are no longer followed"));
                },
                () = latch_changes.changed() => {}
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    return Ok(Code::Reached);
                }
            }
        }
    }

    /// Stops everything, and says how long after the key that was done.
    fn stop(gyrus: &Gyrus, pressed: Instant) -> Result<(), Failure> {
        let stopped = stop::everything(
            gyrus,
            "status dot",
            Some("the stop key was pressed".to_owned()),
        );
        put(&format!(
            "{} ms after the key\n",
            pressed.elapsed().as_millis()
        ))?;
        // What is said is no reason to take the dot away.
        if let Err(failure) = stopped {
            put(&format!("{failure}\n"))?;
        }
        Ok(())
    }

    /// Returns what the runs do: a question comes before work, and of several at work the newest counts.
    fn at_work(heads: &Heads, store: &Store) -> (DotState, String) {
        let mut live: Vec<_> = heads
            .live()
            .into_iter()
            .filter_map(|run| heads.of(run))
            .collect();
        live.sort_by_key(|head| head.run);
        let questions: usize = live.iter().map(|head| head.questions).sum();
        if questions > 0 {
            let words = format!("; {} for you", plural(questions, "question"));
            return (DotState::Waiting, words);
        }
        let running = live
            .iter()
            .rev()
            .find(|head| head.state == RunWord::Running);
        let Some(head) = running else {
            return (DotState::Idle, String::new());
        };
        let mut phases = Phases::default();
        let name = log_name(head.run);
        // A run that was removed meanwhile shows as idle until the next change.
        let read = store.reader(&name).and_then(|reader| {
            for entry in reader.entries(head.seq.saturating_sub(ENTRIES).max(1))? {
                phases.take(&entry?);
            }
            Ok(())
        });
        let present = match read {
            Ok(()) => phases.spans().last().map_or(Phase::Idle, |span| span.phase),
            Err(_) => Phase::Idle,
        };
        let state = match present {
            Phase::Idle | Phase::Think | Phase::Reflect => DotState::Thinking,
            Phase::Perceive => DotState::Seeing,
            Phase::Ask => DotState::Waiting,
            Phase::Act => DotState::Acting,
        };
        (state, format!("; run {}", head.run.short()))
    }
}
