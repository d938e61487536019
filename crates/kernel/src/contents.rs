//! The contents of a workspace in a run's journal. Snapshots and changes of commands are stored
//! through [`WorkspaceContents`], which keeps secrets out of the journal's blobs.
//!
//! Content that is or holds a secret is stored in the log's private folder: no other log shares it,
//! no export contains it, and it is removed with the run.

use std::path::Path;

use gyrus_contract::{BlobId, Gate};
use gyrus_journal::{Error, LogReader};
use gyrus_workspace::{ContentStore, Secrecy};

use crate::{Stop, log::RunLog, redact::Redactor};

pub(crate) struct WorkspaceContents<'a> {
    log: &'a RunLog,
    judge: SecretJudge<'a>,
}

/// Decides which files of a workspace are or contain secrets.
struct SecretJudge<'a> {
    redactor: &'a Redactor,
    gate: &'a dyn Gate,
    workspace: &'a Path,
}

impl<'a> WorkspaceContents<'a> {
    pub(crate) fn new(
        redactor: &'a Redactor,
        gate: &'a dyn Gate,
        log: &'a RunLog,
        workspace: &'a Path,
    ) -> Self {
        let judge = SecretJudge {
            redactor,
            gate,
            workspace,
        };
        Self { log, judge }
    }
}

impl Secrecy for SecretJudge<'_> {
    fn is_secret(&self, path: &Path, content: &[u8]) -> bool {
        self.gate.keeps_secrets(&self.workspace.join(path)) || self.redactor.recognises(content)
    }
}

impl ContentStore for WorkspaceContents<'_> {
    type Error = Stop;

    fn secrecy(&self) -> &dyn Secrecy {
        &self.judge
    }

    fn put(&mut self, bytes: &[u8]) -> Result<BlobId, Stop> {
        self.log.put_blob(bytes)
    }

    fn put_apart(&mut self, bytes: &[u8]) -> Result<BlobId, Stop> {
        self.log.put_private(bytes)
    }
}

/// Loads content that [`WorkspaceContents`] stored, from a blob or from the private folder.
pub(crate) fn load(reader: &LogReader, id: &BlobId) -> Result<Vec<u8>, Error> {
    match reader.blob(id) {
        Err(Error::BlobMissing { .. }) => reader.private(id),
        found => found,
    }
}
