//! `gyrus runs list`

use std::path::{Path, PathBuf};

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{
    BegunBy, Entry, Register, RunStarted, family, is_record, log_name, newest_run_in,
};
use gyrus_text::{clip, counted, width};
use serde_json::{Value, json};

use super::{
    super::listing::ListFlags,
    standing::{ListedStanding, StateFilter},
};
use crate::{Gyrus, exit::Code, failure::Failure, time, workdir::here};
use gyrus_surfaces::{
    console::{Painter, put},
    output::{self, StandardOutput},
    projection::{Tone, goal},
};

/// Columns of a run's standing.
const STANDING: usize = 40;

/// Number of runs that are shown by default.
const SHOWN: usize = 50;

/// List this folder's runs, newest first
#[derive(Default, Args)]
pub(crate) struct ListRuns {
    #[command(flatten)]
    flags: ListFlags,
    /// List only runs that stand like this: running, parked or over, or are records
    /// from elsewhere
    #[arg(long, value_name = "HOW")]
    state: Option<StateFilter>,
    /// List runs that worked in this folder (default: the one that you are in)
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// List the runs of all folders
    #[arg(long, conflicts_with = "workdir")]
    all: bool,
    /// List the runs that agents began, too
    #[arg(long)]
    agents: bool,
    /// List every sub-run below the run that started it, and not only those at work
    #[arg(long)]
    sub_runs: bool,
    /// List at most this many (default: 50, and all with --json)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

impl ListRuns {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let mut out = output::standard();
        let painter = Painter::new(&out, gyrus.environment.plain);
        let folder = self.folder(gyrus)?;
        let register = Register::read(&store)?;
        let (mut shown, limit) = (0, self.limit.unwrap_or(self.most()));
        for of_run in register.roots() {
            let run = of_run.run;
            // A run that cannot be read, or is a record, belongs to no folder.
            let is_wanted = match of_run.begun_by {
                BegunBy::Unknown => true,
                BegunBy::Agent if !self.agents => false,
                BegunBy::Person | BegunBy::Agent | BegunBy::Run => (folder.as_ref())
                    .is_none_or(|folder| of_run.workspace == *folder || is_record(&store, run)),
            };
            if !is_wanted {
                continue;
            }
            if shown == limit {
                self.tell_more(limit)?;
                break;
            }
            let Some(listed) = ListRow::read(&store, run) else {
                continue;
            };
            let states = [self.state, Some(StateFilter::Unreadable)];
            if self.state.is_some() && !states.contains(&Some(listed.standing.state)) {
                continue;
            }
            let shows = self.flags.shows(&mut out, &listed.item())?;
            shown += usize::from(shows || self.flags.json);
            if shows {
                listed.line(&mut out, &painter, "")?;
            }
            if self.sub_runs || shows && listed.standing.state == StateFilter::Running {
                self.below(&store, run, (&mut out, &painter))?;
            }
        }
        if shown == 0 && !self.flags.json {
            none(&mut out, register.roots().count(), folder.as_deref())?;
        }
        Ok(Code::Reached)
    }

    /// Lists the sub-runs of a run: those at work, or all of them if they are asked for.
    fn below(
        &self,
        store: &Store,
        run: RunId,
        (out, painter): (&mut StandardOutput, &Painter),
    ) -> Result<(), Failure> {
        // One that cannot be read has none to show.
        let below = family(store, run).unwrap_or_default().into_iter();
        for listed in below
            .filter(|one| *one != run)
            .filter_map(|one| ListRow::read(store, one))
        {
            let is_at_work = listed.standing.state == StateFilter::Running;
            if (self.sub_runs || is_at_work) && self.flags.shows(out, &listed.item())? {
                listed.line(out, painter, "↳ ")?;
            }
        }
        Ok(())
    }

    /// Returns the number of listed runs, by default or as the person set it.
    fn most(&self) -> usize {
        if self.flags.json { usize::MAX } else { SHOWN }
    }

    /// Prints that there are more runs than shown, unless the person chose the number.
    fn tell_more(&self, shown: usize) -> Result<(), Failure> {
        if self.limit.is_none() {
            put(&format!(
                "these are the newest {shown}; for more: gyrus runs --limit N\n"
            ))?;
        }
        Ok(())
    }

    /// Returns the folder whose runs are listed; `None` for all. Runs of a fleet work in folders of
    /// other machines.
    fn folder(&self, gyrus: &Gyrus) -> Result<Option<PathBuf>, Failure> {
        match &self.workdir {
            None if self.all || gyrus.is_anywhere() => Ok(None),
            None => {
                let here = here()?;
                let newest = newest_run_in(&gyrus.store()?, &here)?;
                Ok(Some(newest.map_or(here, |(_, folder)| folder)))
            }
            Some(folder) => folder.canonicalize().map(Some).map_err(|error| {
                Failure::usage(format!("invalid folder {}", folder.display())).because(&error)
            }),
        }
    }
}

struct ListRow {
    run: RunId,
    at_ms: Option<i64>,
    started: Option<RunStarted>,
    standing: ListedStanding,
    goal: Option<String>,
}

impl ListRow {
    /// Reads a run; `None` if it no longer exists.
    fn read(store: &Store, run: RunId) -> Option<Self> {
        let reader = store.reader(&log_name(run)).ok()?;
        let first = reader.entry(1).ok().flatten();
        let at_ms = first.as_ref().map(|entry| entry.at_ms);
        let started = match first.map(|entry| gyrus_kernel::parse(&entry)) {
            Some(Ok(Entry::RunStarted(started))) => Some(started),
            _ => None,
        };
        let goal = started.as_ref().map(|started| goal(&started.goal, &reader));
        Some(Self {
            run,
            at_ms,
            started,
            standing: ListedStanding::of(store, run),
            goal,
        })
    }

    fn item(&self) -> Value {
        let started = self.started.as_ref();
        let mut item = json!({
            "run": self.run,
            "state": self.standing.state.word(),
            "standing": self.standing.words,
            "started": self.at_ms.map(gyrus_text::utc),
            "workspace": started.map(|started| &started.workspace),
            "agent": started.map(|started| &started.agent),
            "loop": started.map(|started| &started.cognitive_loop),
            "model": started.map(|started| &started.model),
            "goal": self.goal,
        });
        if let Some(parent) = started.and_then(|started| started.parent.as_ref()) {
            item["parent"] = json!(parent.run);
        }
        item
    }

    fn line(&self, out: &mut StandardOutput, painter: &Painter, mark: &str) -> Result<(), Failure> {
        let at = self.at_ms.map_or_else(String::new, time::ago);
        let goal = self.goal.as_deref().unwrap_or("(it cannot be read)");
        let goal = format!("{mark}{goal}");
        let words = clip(&self.standing.words, STANDING);
        let pad = " ".repeat(STANDING.saturating_sub(width(&words)));
        let used = 8 + 2 + 10 + 2 + STANDING + 2;
        writeln!(
            out,
            "{}  {}  {}{pad}  {}",
            painter.paint(Tone::Strong, &self.run.short()),
            painter.paint(Tone::Aside, &format!("{at:<10}")),
            painter.paint(self.standing.tone, &words),
            clip(&goal, painter.columns.saturating_sub(used).clamp(10, 200)),
        )?;
        Ok(())
    }
}

/// Prints that there is nothing to list, and where more can be found.
fn none(out: &mut StandardOutput, all: usize, folder: Option<&Path>) -> Result<(), Failure> {
    match (all, folder) {
        (0, _) => writeln!(out, "there is no run yet; start one with `gyrus run GOAL`")?,
        (all, Some(folder)) => writeln!(
            out,
            "no run of {} to list; {} on this machine: gyrus runs --all",
            folder.display(),
            counted(all, "run")
        )?,
        (_, None) => writeln!(out, "there is no such run")?,
    }
    Ok(())
}
