//! Files about the learned tasks of each application, for people: `procedural/APPLICATION/TASK.json`
//! in the state folder. The ledgers count; the files are written from them and never read.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use gyrus::runtime::Home;
use gyrus_journal::Store;
use gyrus_procedures::{LearnedPlace, Procedure};
use gyrus_runtime::procedures::{KeptProcedure, ReplayOutcome};
use serde_json::{Value, json};

use super::{
    ledger::kept,
    words::{self, described},
};
use crate::{failure::Failure, lessons, private_file};

/// Maximum number of traps of a task.
const MAX_TRAPS: usize = 20;

/// Writes the files of all stored procedures, where they changed.
pub(crate) fn mirror(home: &Home, store: &Store) -> Result<(), Failure> {
    let lessons = lessons::of_home(home, store).all()?;
    for (name, procedure) in kept(store)?.all() {
        let Some(version) = procedure.promoted().or(procedure.latest()) else {
            continue;
        };
        let of = &version.procedure;
        let application = application(of);
        let mut traps = of_replays(procedure);
        let here = lessons.lessons().filter(|record| !record.is_retired());
        let here = here
            .filter(|record| !record.lesson.did_not.is_empty() && is_at(&record.lesson.site, of));
        traps.extend(here.map(|record| {
            json!({"failed": record.lesson.did_not, "helped": record.lesson.worked, "goal": record.lesson.goal})
        }));
        traps.truncate(MAX_TRAPS);
        let counts = procedure.counts();
        let names = words::names(of);
        let steps: Vec<String> = of
            .steps
            .iter()
            .map(|step| described(step, &names))
            .collect();
        let waits = of
            .steps
            .iter()
            .zip(&steps)
            .filter(|(step, _)| step.waited_ms > 0);
        let content = json!({
            "application": application,
            "task": name,
            "command": words::command(of),
            "version": version.version,
            "steps": steps,
            "traps": traps,
            "timing": waits.map(|(step, words)| json!({"before": words, "waited_ms": step.waited_ms})).collect::<Vec<_>>(),
            "replays": counts,
        });
        let file = folder(home)
            .join(file_name(&application))
            .join(format!("{}.json", file_name(name)));
        let content = serde_json::to_vec_pretty(&content).expect("it is plain data");
        if fs::read(&file).is_ok_and(|before| before == content) {
            continue;
        }
        private_file::write(&file, &content).map_err(|error: io::Error| {
            Failure::failed(format!("{} cannot be written", file.display())).because(&error)
        })?;
    }
    Ok(())
}

fn folder(home: &Home) -> PathBuf {
    home.state.join("procedural")
}

/// Returns the name of the application: a host, or what kind of place it is.
fn application(procedure: &Procedure) -> String {
    match &procedure.place {
        LearnedPlace::Site { origin, .. } => {
            let host = origin
                .split_once("://")
                .map_or(origin.as_str(), |(_, host)| host);
            host.to_owned()
        }
        LearnedPlace::Desktop { .. } => "desktop".to_owned(),
        LearnedPlace::Folder { .. } => "folder".to_owned(),
    }
}

fn is_at(site: &str, procedure: &Procedure) -> bool {
    match &procedure.place {
        LearnedPlace::Site { origin, .. } => !site.is_empty() && origin.contains(site),
        LearnedPlace::Desktop { .. } | LearnedPlace::Folder { .. } => false,
    }
}

/// Returns a procedure's name without characters that a file name cannot have.
fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let name: String = name
        .chars()
        .map(|letter| if plain(letter) { letter } else { '_' })
        .collect();
    let name = name.trim_start_matches('.');
    gyrus_text::first_bytes(if name.is_empty() { "_" } else { name }, 120).to_owned()
}

/// Returns the reasons for which replays of a procedure stopped, the most frequent first.
pub(super) fn reasons(procedure: &KeptProcedure) -> Vec<(String, u64)> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, outcome) in &procedure.replays {
        match outcome {
            ReplayOutcome::HandedOver { reason } | ReplayOutcome::Failed { reason } => {
                *reasons.entry(reason).or_default() += 1;
            }
            ReplayOutcome::Replayed => {}
        }
    }
    let mut reasons: Vec<_> = reasons
        .into_iter()
        .map(|(reason, times)| (reason.to_owned(), times))
        .collect();
    reasons.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    reasons
}

fn of_replays(procedure: &KeptProcedure) -> Vec<Value> {
    let traps = reasons(procedure).into_iter();
    traps.map(|(reason, times)| json!({"failed": reason, "times": times, "helped": "a model went on"})).collect()
}
