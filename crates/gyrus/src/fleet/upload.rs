//! Putting a folder where all machines of a fleet find it: a snapshot, whose contents are stored by
//! their hashes. What snapshots leave out is left out, and secrets are never sent.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus::runtime;
use gyrus_contract::{BlobId, Gate as _};
use gyrus_fleet::{BlobError, Machine, SharedLog, store_blob};
use gyrus_gate::PolicyGate;
use gyrus_kernel::redact::Redactor;
use gyrus_runtime::request::FolderBase;
use gyrus_surfaces::console::put;
use gyrus_text::counted;
use gyrus_workspace::{
    ContentStore, Secrecy,
    snapshot::{
        LeftOutEntry, MAX_BYTES, MAX_ENTRIES, MAX_FILE_BYTES, SnapshotError, SnapshotResult,
        Snapshots, WhyLeftOut, left_out, without_secrets,
    },
};
use tokio::runtime::Handle;

use super::{FleetMembership, folder::named};
use crate::{Gyrus, failure::Failure, keys::KeyLookup};

/// Time limit for one content.
const CONTENT: Duration = Duration::from_secs(60);

pub(super) async fn upload(
    gyrus: &Gyrus,
    joined: &FleetMembership,
    folder: PathBuf,
) -> Result<FolderBase, Failure> {
    let (home, config) = (gyrus.home()?, gyrus.config()?);
    let keys = KeyLookup::new(&config.keys);
    for variable in config.keys.keys() {
        // One that cannot be read is in no file that could be recognised by it.
        let _ = keys.get(variable);
    }
    let store = SharedLogContents {
        log: Arc::clone(&joined.log),
        machine: Arc::clone(&joined.machine),
        runtime: Handle::current(),
        judge: SecretFiles {
            gate: runtime::bare_gate(&home),
            redactor: home.redactor(keys.secrets())?,
            folder: folder.clone(),
        },
        last: None,
        sent: 0,
    };
    let uploading = tokio::task::spawn_blocking(move || take(store, folder));
    uploading
        .await
        .map_err(|error| Failure::failed("the folder was not read").because(&error))?
}

fn take(mut store: SharedLogContents, folder: PathBuf) -> Result<FolderBase, Failure> {
    let shown = folder.display().to_string();
    let snapshot = match Snapshots::new(folder, None).take(&mut store) {
        Ok(SnapshotResult::New(id) | SnapshotResult::Same(id)) => id,
        Ok(SnapshotResult::TooLarge { .. }) => {
            return Err(Failure::usage(format!(
                "{shown} is too large to be uploaded: at most {} entries, {} MB, and {} MB a file",
                MAX_ENTRIES,
                MAX_BYTES >> 20,
                MAX_FILE_BYTES >> 20
            ))
            .hint(
                "let the worker clone its commit: --clone; or name a folder below it: --workdir",
            ));
        }
        Err(SnapshotError::Store(BlobError::Unreachable(error))) => return Err(error.into()),
        Err(error) => {
            return Err(Failure::failed(format!("{shown} cannot be uploaded")).because(&error));
        }
    };
    let manifest = store.last.take().unwrap_or_default();
    let load = |_: &BlobId| Ok::<_, BlobError>(manifest.clone());
    let refused = |error: SnapshotError<BlobError>| {
        Failure::failed("the folder was not read as a whole").because(&error)
    };
    let left_out = left_out(&snapshot, load).map_err(refused)?;
    let published = without_secrets(&snapshot, load).map_err(refused)?;
    let snapshot = store
        .send(&published)
        .map_err(|error| Failure::failed(format!("{shown} cannot be uploaded")).because(&error))?;
    say(&left_out, &shown, store.sent)?;
    Ok(FolderBase::Uploaded { snapshot })
}

fn say(left_out: &[LeftOutEntry], folder: &str, sent: usize) -> Result<(), Failure> {
    let with = |why: WhyLeftOut| -> Vec<String> {
        let with = left_out.iter().filter(|one| one.why == why);
        with.map(|one| one.path.clone()).collect()
    };
    let changing = with(WhyLeftOut::Changing);
    if !changing.is_empty() {
        return Err(Failure::usage(format!(
            "{} changed all the time while {folder} was read: {}",
            counted(changing.len(), "file"),
            named(&changing)
        ))
        .hint("wait until the program that writes there is done"));
    }
    let mut text = format!("{folder} is uploaded ({} KB)\n", sent.div_ceil(1 << 10));
    for (why, words) in [
        (
            WhyLeftOut::Secret,
            "not sent, because it is or holds a secret",
        ),
        (
            WhyLeftOut::Unreadable,
            "not sent, because it cannot be read",
        ),
        (
            WhyLeftOut::Special,
            "not sent, because it is neither a file nor a folder",
        ),
        (
            WhyLeftOut::Rebuildable,
            "not sent, because git ignores it and it can be built again",
        ),
    ] {
        let paths = with(why);
        if !paths.is_empty() {
            text.push_str(&format!("  {words}: {}\n", named(&paths)));
        }
    }
    Ok(put(&text)?)
}

struct SharedLogContents {
    log: Arc<dyn SharedLog>,
    machine: Arc<dyn Machine>,
    runtime: Handle,
    judge: SecretFiles,
    /// The bytes to store next: those that come last are the snapshot itself, which is not sent as
    /// it is.
    last: Option<Vec<u8>>,
    sent: usize,
}

impl SharedLogContents {
    fn send(&mut self, bytes: &[u8]) -> Result<BlobId, BlobError> {
        let until = self.machine.now() + CONTENT;
        let storing = store_blob(&self.log, &self.machine, bytes, until);
        let id = self.runtime.block_on(storing)?;
        self.sent += bytes.len();
        Ok(id)
    }
}

impl ContentStore for SharedLogContents {
    type Error = BlobError;

    fn secrecy(&self) -> &dyn Secrecy {
        &self.judge
    }

    fn put(&mut self, bytes: &[u8]) -> Result<BlobId, BlobError> {
        if let Some(before) = self.last.replace(bytes.to_vec()) {
            self.send(&before)?;
        }
        Ok(BlobId::of(bytes))
    }

    /// Stores nothing: a content that would be stored separately stays here.
    fn put_apart(&mut self, bytes: &[u8]) -> Result<BlobId, BlobError> {
        Ok(BlobId::of(bytes))
    }
}

/// Decides which files are or contain secrets, as for a run's snapshots.
struct SecretFiles {
    gate: PolicyGate,
    redactor: Redactor,
    folder: PathBuf,
}

impl Secrecy for SecretFiles {
    fn is_secret(&self, path: &Path, content: &[u8]) -> bool {
        self.gate.keeps_secrets(&self.folder.join(path)) || self.redactor.recognises(content)
    }
}
