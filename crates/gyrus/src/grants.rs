//! What a person allowed for good in a folder: a log a folder, read when a run begins there.

use std::path::{Path, PathBuf};

use gyrus_contract::{Digest, Grant, Principal};
use gyrus_journal::{Entry, Error, LogName, NewEntry, Payload, Store, Take, Writer};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::failure::Failure;

/// The kind of log.
const GRANTS: &str = "grants";

/// The first entry: which folder the log is about.
const OPENED: &str = "grants.opened";
const GIVEN: &str = "grant.given";
const REVOKED: &str = "grant.revoked";

/// How often a log that another process writes is tried again. Writing takes milliseconds.
const TRIES: u32 = 50;

#[derive(Serialize, Deserialize)]
struct Opened {
    workspace: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Said {
    grant: Grant,
    by: Principal,
}

/// A grant in force.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Standing {
    /// Where it holds.
    pub(crate) workspace: PathBuf,
    /// What it allows.
    pub(crate) grant: Grant,
    /// Who gave it.
    pub(crate) by: Principal,
    /// When, in UTC milliseconds.
    pub(crate) at_ms: i64,
}

/// What was allowed in this folder, oldest first.
pub(crate) fn in_folder(store: &Store, workspace: &Path) -> Result<Vec<Standing>, Failure> {
    let name = log_of(workspace)?;
    match store.exists(&name) {
        true => read(store, &name),
        false => Ok(Vec::new()),
    }
}

/// What was allowed anywhere.
pub(crate) fn all(store: &Store) -> Result<Vec<Standing>, Failure> {
    let mut all = Vec::new();
    for name in store.names(GRANTS)? {
        all.extend(read(store, &name)?);
    }
    Ok(all)
}

/// Allows these in a folder, for good. When this returns, that is on disk.
pub(crate) fn give(
    store: &Store,
    workspace: &Path,
    grants: &[Grant],
    by: &Principal,
) -> Result<(), Failure> {
    let said = |grant: &Grant| Said {
        grant: grant.clone(),
        by: by.clone(),
    };
    let known: Vec<_> = in_folder(store, workspace)?
        .into_iter()
        .map(|standing| standing.grant)
        .collect();
    let new = grants.iter().filter(|grant| !known.contains(grant));
    append(store, workspace, GIVEN, &new.map(said).collect::<Vec<_>>())
}

/// Takes a grant back. When this returns, that is on disk.
pub(crate) fn revoke(store: &Store, standing: &Standing, by: &Principal) -> Result<(), Failure> {
    let said = Said {
        grant: standing.grant.clone(),
        by: by.clone(),
    };
    append(store, &standing.workspace, REVOKED, &[said])
}

fn read(store: &Store, name: &LogName) -> Result<Vec<Standing>, Failure> {
    let mut workspace = PathBuf::new();
    let mut standing: Vec<Standing> = Vec::new();
    for entry in store.reader(name)?.entries(1)? {
        let entry = entry?;
        match entry.kind.as_str() {
            OPENED => workspace = payload::<Opened>(&entry)?.workspace,
            GIVEN => {
                let Said { grant, by } = payload(&entry)?;
                standing.push(Standing {
                    workspace: workspace.clone(),
                    grant,
                    by,
                    at_ms: entry.at_ms,
                });
            }
            REVOKED => {
                let Said { grant, .. } = payload(&entry)?;
                standing.retain(|standing| standing.grant != grant);
            }
            // Of a later version: what it means is not known, and allows nothing.
            _ => {}
        }
    }
    Ok(standing)
}

fn payload<T: DeserializeOwned>(entry: &Entry) -> Result<T, Failure> {
    let unreadable =
        || Failure::failed(format!("entry {} of the grants cannot be read", entry.seq));
    match &entry.payload {
        Payload::Json(json) => {
            serde_json::from_str(json.get()).map_err(|error| unreadable().because(&error))
        }
        Payload::Erased(_) => Err(unreadable()),
    }
}

fn append(store: &Store, workspace: &Path, kind: &str, said: &[Said]) -> Result<(), Failure> {
    if said.is_empty() {
        return Ok(());
    }
    let writer = take(store, workspace)?;
    let batch: Vec<_> = said
        .iter()
        .map(|said| entry(kind, said))
        .collect::<Result<_, _>>()?;
    writer.append(&batch)?;
    writer.barrier_blocking()?;
    Ok(())
}

fn take(store: &Store, workspace: &Path) -> Result<Writer, Failure> {
    let name = log_of(workspace)?;
    for _ in 0..TRIES {
        let taken = match store.exists(&name) {
            true => store.take(&name, Take::IfFree).map(|(writer, _)| writer),
            false => store.create(&name).and_then(|writer| {
                let workspace = workspace.to_owned();
                let opened = serde_json::value::to_raw_value(&Opened { workspace });
                let payload = opened.expect("a path that is text is JSON");
                writer.append(&[NewEntry {
                    kind: OPENED,
                    version: 1,
                    payload,
                }])?;
                Ok(writer)
            }),
        };
        match taken {
            Err(Error::Held { .. } | Error::Exists { .. }) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            taken => return Ok(taken?),
        }
    }
    Err(Failure::failed(
        "the list of what is always allowed is in use; try again",
    ))
}

fn entry<'a>(kind: &'a str, said: &Said) -> Result<NewEntry<'a>, Failure> {
    let payload = serde_json::value::to_raw_value(said)
        .map_err(|error| Failure::failed("a grant is no JSON").because(&error))?;
    Ok(NewEntry {
        kind,
        version: 1,
        payload,
    })
}

fn log_of(workspace: &Path) -> Result<LogName, Failure> {
    let id = Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    LogName::new(GRANTS, &id).map_err(Failure::from)
}
