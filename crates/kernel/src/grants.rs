//! Standing grants of a person in a folder: one log for each folder, read when a run begins there.

use std::path::{Path, PathBuf};

use gyrus_contract::{Digest, Grant, Principal};
use gyrus_journal::{
    Error as JournalError, LockWait, LogEntry, LogName, NewEntry, Payload, Store, Writer,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The kind of log.
const GRANTS: &str = "grants";

/// The kind of the first entry, which names the folder.
const OPENED: &str = "grants.opened";
const GIVEN: &str = "grant.given";
const REVOKED: &str = "grant.revoked";

/// Maximum number of attempts to take a log that another process writes. Writing takes
/// milliseconds.
const TRIES: u32 = 50;

#[derive(Serialize, Deserialize)]
struct GrantsOpened {
    workspace: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct GrantRecord {
    grant: Grant,
    by: Principal,
}

/// The error of standing grants that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("entry {seq} of the grants cannot be read")]
    Unreadable {
        /// The number of the entry.
        seq: u64,
        /// The cause, unless the entry was erased.
        source: Option<serde_json::Error>,
    },
    /// Another process holds the log for too long.
    #[error("the list of what is always allowed is in use; try again")]
    InUse,
    /// A grant cannot be written as JSON.
    #[error("a grant is not JSON")]
    Unwritable(#[source] serde_json::Error),
}

/// A standing grant.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingGrant {
    /// The folder in which the grant is valid.
    pub workspace: PathBuf,
    pub grant: Grant,
    /// The person who gave the grant.
    pub by: Principal,
    /// The time of the grant, in UTC milliseconds.
    pub at_ms: i64,
}

/// Returns the grants in this folder, oldest first.
pub fn in_folder(store: &Store, workspace: &Path) -> Result<Vec<StandingGrant>, GrantError> {
    let name = log_of(workspace);
    if store.exists(&name) {
        read(store, &name)
    } else {
        Ok(Vec::new())
    }
}

/// Returns the grants in all folders.
pub fn all(store: &Store) -> Result<Vec<StandingGrant>, GrantError> {
    let mut all = Vec::new();
    for name in store.names(GRANTS)? {
        all.extend(read(store, &name)?);
    }
    Ok(all)
}

/// Gives these grants in a folder. When this returns, they are on disk.
pub fn give(
    store: &Store,
    workspace: &Path,
    grants: &[Grant],
    by: &Principal,
) -> Result<(), GrantError> {
    let said = |grant: &Grant| GrantRecord {
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

/// Revokes a grant. When this returns, the revocation is on disk.
pub fn revoke(store: &Store, standing: &StandingGrant, by: &Principal) -> Result<(), GrantError> {
    let said = GrantRecord {
        grant: standing.grant.clone(),
        by: by.clone(),
    };
    append(store, &standing.workspace, REVOKED, &[said])
}

fn read(store: &Store, name: &LogName) -> Result<Vec<StandingGrant>, GrantError> {
    let mut workspace = PathBuf::new();
    let mut standing: Vec<StandingGrant> = Vec::new();
    for entry in store.reader(name)?.entries(1)? {
        let entry = entry?;
        match entry.kind.as_str() {
            OPENED => workspace = payload::<GrantsOpened>(&entry)?.workspace,
            GIVEN => {
                let GrantRecord { grant, by } = payload(&entry)?;
                standing.push(StandingGrant {
                    workspace: workspace.clone(),
                    grant,
                    by,
                    at_ms: entry.at_ms,
                });
            }
            REVOKED => {
                let GrantRecord { grant, .. } = payload(&entry)?;
                standing.retain(|standing| standing.grant != grant);
            }
            // An entry of a later version: its meaning is unknown, and it allows nothing.
            _ => {}
        }
    }
    Ok(standing)
}

fn payload<T: DeserializeOwned>(entry: &LogEntry) -> Result<T, GrantError> {
    let unreadable = |source| GrantError::Unreadable {
        seq: entry.seq,
        source,
    };
    match &entry.payload {
        Payload::Json(json) => {
            serde_json::from_str(json.get()).map_err(|error| unreadable(Some(error)))
        }
        Payload::Erased(_) => Err(unreadable(None)),
    }
}

fn append(
    store: &Store,
    workspace: &Path,
    kind: &str,
    said: &[GrantRecord],
) -> Result<(), GrantError> {
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

fn take(store: &Store, workspace: &Path) -> Result<Writer, GrantError> {
    let name = log_of(workspace);
    for _ in 0..TRIES {
        let taken = if store.exists(&name) {
            store
                .take(&name, LockWait::IfFree)
                .map(|(writer, _)| writer)
        } else {
            store.create(&name).and_then(|writer| {
                let workspace = workspace.to_owned();
                let opened = serde_json::value::to_raw_value(&GrantsOpened { workspace });
                let payload = opened.expect("a path that is text is JSON");
                writer.append(&[NewEntry {
                    kind: OPENED,
                    version: 1,
                    payload,
                }])?;
                Ok(writer)
            })
        };
        match taken {
            Err(JournalError::Held { .. } | JournalError::Exists { .. }) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            taken => return Ok(taken?),
        }
    }
    Err(GrantError::InUse)
}

fn entry<'a>(kind: &'a str, said: &GrantRecord) -> Result<NewEntry<'a>, GrantError> {
    let payload = serde_json::value::to_raw_value(said).map_err(GrantError::Unwritable)?;
    Ok(NewEntry {
        kind,
        version: 1,
        payload,
    })
}

fn log_of(workspace: &Path) -> LogName {
    let id = Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    LogName::new(GRANTS, &id).expect("a digest has only letters and digits")
}
