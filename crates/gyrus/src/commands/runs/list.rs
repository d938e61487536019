//! `gyrus runs list`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gyrus_kernel::{Entry, log_name};
use gyrus_text::{clip, width};
use serde_json::json;

use super::{super::listing::ListFlags, standing::Standing};
use crate::{Gyrus, exit::Code, failure::Failure, time};
use gyrus_surfaces::{
    console::Painter,
    output,
    projection::{Tone, goal},
};

/// Columns of a run's standing.
const STANDING: usize = 40;

/// List runs, newest first
#[derive(Default, Args)]
pub(crate) struct List {
    #[command(flatten)]
    flags: ListFlags,
    /// List only runs that stand like this: running, parked or over, or are records
    /// from elsewhere
    #[arg(long, value_name = "HOW")]
    state: Option<State>,
    /// List only runs that worked in this folder
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// List at most this many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Values of `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    Running,
    Parked,
    Over,
    Record,
}

impl State {
    /// A run that cannot be read is in every list.
    fn is(self, standing: &Standing) -> bool {
        match standing {
            Standing::Running { .. } => self == State::Running,
            Standing::Parked(_) => self == State::Parked,
            Standing::Over(_) => self == State::Over,
            Standing::Record(_) => self == State::Record,
            Standing::Unreadable(_) => true,
        }
    }
}

impl List {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let mut out = output::standard();
        let painter = Painter::new(&out, gyrus.environment.plain);
        let workdir = self.workdir.as_deref().map(|folder| {
            folder.canonicalize().map_err(|error| {
                Failure::usage(format!("invalid folder {}", folder.display())).because(&error)
            })
        });
        let workdir = workdir.transpose()?;
        let runs = gyrus_kernel::runs(&store)?;
        let roots: Vec<_> = runs.into_iter().filter(|run| run.is_root()).collect();
        if roots.is_empty() && !self.flags.json {
            writeln!(out, "there is no run yet; start one with `gyrus run GOAL`")?;
        }
        let mut left = self.limit.unwrap_or(usize::MAX);
        for run in roots.into_iter().rev() {
            if left == 0 {
                break;
            }
            let reader = store.reader(&log_name(run))?;
            let first = reader.entry(1).ok().flatten();
            let at_ms = first.as_ref().map(|entry| entry.at_ms);
            let started = match first.map(|entry| gyrus_kernel::parse(&entry)) {
                Some(Ok(Entry::RunStarted(started))) => Some(started),
                _ => None,
            };
            let here = workdir.as_ref().is_none_or(|folder| {
                started
                    .as_ref()
                    .is_some_and(|started| started.workspace == *folder)
            });
            let standing = Standing::of(&store, run);
            if !here || self.state.is_some_and(|state| !state.is(&standing)) {
                continue;
            }
            let goal = started.as_ref().map(|started| goal(&started.goal, &reader));
            let item = json!({
                "run": run,
                "state": standing.state(),
                "standing": standing.words(),
                "started": at_ms.map(gyrus_text::utc),
                "workspace": started.as_ref().map(|started| &started.workspace),
                "loop": started.as_ref().map(|started| &started.cognitive_loop),
                "model": started.as_ref().map(|started| &started.model),
                "goal": goal,
            });
            let shows = self.flags.shows(&mut out, &item)?;
            left -= usize::from(shows || self.flags.json);
            if !shows {
                continue;
            }
            let at = at_ms.map_or_else(String::new, time::ago);
            let standing = clip(&standing.words(), STANDING);
            let pad = " ".repeat(STANDING.saturating_sub(width(&standing)));
            let used = 8 + 2 + 10 + 2 + STANDING + 2;
            let goal = goal.unwrap_or_else(|| "(it cannot be read)".to_owned());
            writeln!(
                out,
                "{}  {}  {standing}{pad}  {}",
                painter.paint(Tone::Strong, &run.short()),
                painter.paint(Tone::Aside, &format!("{at:<10}")),
                clip(&goal, painter.columns.saturating_sub(used).clamp(10, 200)),
            )?;
        }
        Ok(Code::Reached)
    }
}
