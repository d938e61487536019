//! `gyrus runs show`

use clap::Args;
use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, StandingRun, approvals, family, log_name};
use gyrus_text::{clip, counted};

use super::super::run_argument::RunArgument;
use super::standing::ListedStanding;
use crate::{Gyrus, exit::Code, failure::Failure, time};
use gyrus_surfaces::{output, projection::goal};

/// Show what a run is and how it stands
#[derive(Args)]
pub(crate) struct ShowRun {
    #[command(flatten)]
    run: RunArgument,
}

impl ShowRun {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let name = log_name(run);
        let reader = store.reader(&name)?;
        let started = StandingRun::read(&store, run)?.started;
        let mut steps = 0;
        let mut spent = Default::default();
        for entry in reader.entries_back()? {
            match gyrus_kernel::parse(&entry?) {
                Ok(Entry::CycleEnded(ended)) => {
                    (steps, spent) = (ended.cycle, ended.kernel.spent);
                    break;
                }
                _ => continue,
            }
        }
        let at = reader.entry(1)?.map_or(0, |entry| entry.at_ms);
        let mut rows = vec![
            ("run", run.to_string()),
            ("goal", goal(&started.goal, &reader)),
            ("stands", ListedStanding::of(&store, run).words),
            (
                "started",
                format!("{} ({})", gyrus_text::utc(at), time::ago(at)),
            ),
            ("workspace", started.workspace.display().to_string()),
            ("loop", started.cognitive_loop.clone()),
            ("model", started.model.clone()),
            (
                "steps",
                format!("{steps} complete, {}", counted(reader.end()?, "entry")),
            ),
            (
                "used",
                format!(
                    "{}{}, {}",
                    counted(spent.tokens, "token"),
                    spent.cost.after(", "),
                    gyrus_text::span(spent.time_ms)
                ),
            ),
            ("journal", store.folder(&name).display().to_string()),
        ];
        if let Some(parent) = &started.parent {
            rows.push(("child of", format!("{} at {}", parent.run, parent.effect)));
        }
        if let Some(source) = &started.forked_from {
            rows.push((
                "forked from",
                format!("{} after step {}", source.run, source.cycle),
            ));
        }
        let below = family(&store, run)?.into_iter();
        rows.extend(
            below
                .filter(|child| *child != run)
                .map(|child| sub_run(&store, child)),
        );
        for open in approvals::open(&store, run)? {
            let of = open.run.short();
            let asks = format!("{} (gyrus approve {of} {})", open.card.sentence, open.id);
            rows.push(("asks", asks));
        }
        let mut out = output::standard();
        for (name, value) in rows {
            writeln!(out, "{name:>11}  {}", clip(&value, 500))?;
        }
        Ok(Code::Reached)
    }
}

fn sub_run(store: &Store, child: RunId) -> (&'static str, String) {
    let words = ListedStanding::of(store, child).words;
    ("sub-run", format!("{}: {words}", child.short()))
}
