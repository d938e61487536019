//! `gyrus runs list`

use clap::Args;
use gyrus_kernel::{Entry, log_name};
use gyrus_text::{clip, width};

use super::standing::Standing;
use crate::{Gyrus, exit::Code, failure::Failure, time};
use gyrus_surfaces::{
    console::Painter,
    output,
    projection::{Tone, goal},
};

/// Columns of a run's standing.
const STANDING: usize = 40;

/// List runs, newest first
#[derive(Args)]
pub(crate) struct List {}

impl List {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let mut out = output::standard();
        let painter = Painter::new(&out, gyrus.environment.plain);
        let runs = gyrus_kernel::runs(&store)?;
        let roots: Vec<_> = runs.into_iter().filter(|run| run.is_root()).collect();
        if roots.is_empty() {
            writeln!(out, "there is no run yet; start one with `gyrus run GOAL`")?;
        }
        for run in roots.into_iter().rev() {
            let reader = store.reader(&log_name(run))?;
            let first = reader.entry(1).ok().flatten();
            let at = first
                .as_ref()
                .map_or_else(String::new, |entry| time::ago(entry.at_ms));
            let goal = match first.map(|entry| gyrus_kernel::parse(&entry)) {
                Some(Ok(Entry::RunStarted(started))) => goal(&started.goal, &reader),
                _ => "(it cannot be read)".to_owned(),
            };
            let standing = clip(&Standing::of(&store, run).words(), STANDING);
            let pad = " ".repeat(STANDING.saturating_sub(width(&standing)));
            let used = 8 + 2 + 10 + 2 + STANDING + 2;
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
