//! `gyrus doctor --upgrade`: what becomes of a state folder under this version.

use std::{collections::BTreeSet, fs, path::Path};

use gyrus_journal::{LogName, Store};
use gyrus_text::counted;

use crate::{Gyrus, failure::Failure};

/// Reads the whole state folder without changing it, and returns the findings, each with a name.
pub(super) fn findings(gyrus: &Gyrus) -> Vec<(&'static str, Result<String, Failure>)> {
    let store = gyrus.home().and_then(|home| Ok(home.store()?));
    let store = match store {
        Ok(store) => store,
        Err(failure) => return vec![("state", Err(failure))],
    };
    vec![
        ("state", format(gyrus, &store)),
        ("runs", runs(&store)),
        ("other logs", other_logs(&store)),
        ("changes", Ok(changes(&store))),
    ]
}

fn format(gyrus: &Gyrus, store: &Store) -> Result<String, Failure> {
    store.check_writable()?;
    let state = gyrus.home()?.state;
    Ok(format!(
        "{}: of the format that this version writes",
        state.display()
    ))
}

/// Reads each entry of each run as this version understands it.
fn runs(store: &Store) -> Result<String, Failure> {
    let names = store.names(gyrus_kernel::RUNS)?;
    let mut entries = 0;
    for name in &names {
        let failed = || {
            Failure::failed(format!("run {} cannot be read", name.id()))
                .hint("`gyrus runs verify` says what can still be read of it")
        };
        for entry in store.reader(name)?.entries(1)? {
            let entry = entry.map_err(|error| failed().because(&error))?;
            gyrus_kernel::parse(&entry).map_err(|error| failed().because(&error))?;
            entries += 1;
        }
    }
    let (runs, entries) = (counted(names.len(), "run"), counted(entries, "entry"));
    Ok(format!("{runs} of {entries}: this version reads them all"))
}

/// Reads the logs of the queue, the agents, the grants and all other kinds.
fn other_logs(store: &Store) -> Result<String, Failure> {
    let mut kinds = kinds(store.root());
    kinds.remove(gyrus_kernel::RUNS);
    let mut logs = Vec::new();
    for kind in &kinds {
        let names = store.names(kind)?;
        names.iter().try_for_each(|name| whole(store, name))?;
        if !names.is_empty() {
            logs.push(format!("{kind} ({})", names.len()));
        }
    }
    Ok(match logs.as_slice() {
        [] => "none".to_owned(),
        logs => format!("{}: all can be read", logs.join(", ")),
    })
}

fn whole(store: &Store, name: &LogName) -> Result<(), Failure> {
    for entry in store.reader(name)?.entries(1)? {
        entry?;
    }
    Ok(())
}

fn kinds(root: &Path) -> BTreeSet<String> {
    let folders = fs::read_dir(root).into_iter().flatten().flatten();
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter(|name| LogName::new(name, "any").is_ok() && root.join(name).is_dir())
        .collect()
}

fn changes(store: &Store) -> String {
    let words = if store.check_writable().is_err() {
        "none: a newer version wrote here, so this one reads and changes nothing"
    } else {
        "none of what is there: entries are only added; the list of runs and the index of notes are \
         made again where they are missing"
    };
    words.to_owned()
}
