//! The last lines about a run: the files that it changed, and the changes that were not applied.

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{undo, withheld_changes};
use gyrus_surfaces::{ShownProcesses, console::Painter, projection::Tone};
use gyrus_text::{clip, counted, readable};

/// Maximum number of paths that a line names.
const NAMED: usize = 5;

/// Returns the lines about a run that has stopped; none where it left nothing, or where that cannot be read.
pub(crate) fn lines(store: &Store, run: RunId, painter: &Painter) -> String {
    let plan = undo::plan(store, run, 0).ok();
    let changed = plan.map(|plan| plan.changes()).unwrap_or_default();
    let changed = changed.into_iter().map(|change| change.path);
    // The files of git's own data say nothing to a person.
    let changed: Vec<String> = changed.filter(|path| !path.starts_with(".git/")).collect();
    let withheld = withheld_changes(store, run).unwrap_or_default();
    let withheld = withheld.into_iter().filter(|one| one.applied.is_none());
    let withheld = withheld.flat_map(|one| one.files.into_iter().chain(one.in_repositories));
    let withheld: Vec<String> = withheld.map(|(name, _)| name).collect();
    let mut text = String::new();
    let mut add = |what: &str, paths: &[String], then: &str, tone| {
        if !paths.is_empty() {
            let line = format!("  {what}: {}{then}", named(paths));
            let line = clip(&readable(&line), painter.columns);
            text.push_str(&format!("{}\n", painter.paint(tone, &line)));
        }
    };
    add("changed", &changed, "; gyrus diff, gyrus undo", Tone::Aside);
    add("not applied", &withheld, "; gyrus withheld", Tone::Bad);
    let ended = ShownProcesses::ended_with(store, run).into_iter();
    let ended: Vec<String> = ended.map(|process| process.line).collect();
    add("ended with it, changes dropped", &ended, "", Tone::Bad);
    text
}

fn named(paths: &[String]) -> String {
    let first: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
    let first = first.join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {}", counted(more, "more file")),
    }
}
