//! Readers of the journal of the newest run.

use gyrus_kernel::{Ending, Entry, log_name};
use serde_json::Value;

use crate::support::World;

/// Every entry.
pub(crate) fn entries(world: &World) -> Vec<Entry> {
    let run = *world.runs().last().unwrap();
    let reader = world.store().reader(&log_name(run)).unwrap();
    let entries = reader.entries(1).unwrap();
    entries
        .map(|entry| gyrus_kernel::parse(&entry.unwrap()).unwrap())
        .collect()
}

/// The facts of this kind.
pub(crate) fn facts(world: &World, wanted: &str) -> Vec<Value> {
    let noted = entries(world).into_iter().filter_map(|entry| match entry {
        Entry::Noted { kind, fact, .. } if kind == wanted => Some(fact.fact),
        _ => None,
    });
    noted.collect()
}

/// Returns the ending of the run.
pub(crate) fn ending(world: &World) -> Ending {
    let ended = entries(world).into_iter().find_map(|entry| match entry {
        Entry::RunEnded(ended) => Some(ended.ending),
        _ => None,
    });
    ended.expect("the run ended")
}

/// Every entry as a line: the effect, the kind, and what it says.
pub(crate) fn lines(world: &World) -> String {
    let run = *world.runs().last().unwrap();
    let reader = world.store().reader(&log_name(run)).unwrap();
    let lines = reader.entries(1).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let parsed = gyrus_kernel::parse(&entry).unwrap();
        let words = match &parsed {
            Entry::Noted { fact, .. } => fact.fact["text"].as_str().unwrap_or("").to_owned(),
            Entry::ToolCalled(called) => called.call.tool.clone(),
            Entry::GateVerdict(judged) => format!("{:?}", judged.verdict.decision),
            Entry::ModelCall(call) => format!("{:?}", call.purpose),
            Entry::BranchesStarted(started) => format!("{} at once", started.branches),
            _ => String::new(),
        };
        let effect = parsed
            .effect()
            .map_or_else(String::new, |effect| format!("{effect} "));
        format!("{effect}{} {}", entry.kind, words.replace('\n', " | "))
            .trim_end()
            .to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
