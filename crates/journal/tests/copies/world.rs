//! Stores, entries and lines for the tests.

use std::{path::Path, time::Duration};

use gyrus_contract::Digest;
use gyrus_journal::{ChainVerification, Error, LockWait, LogName, NewEntry, Store, Writer};
use serde_json::value::RawValue;
use tempfile::TempDir;

use crate::loopback::Loopbacks;

/// Time limit that is longer than anything here should take; reached only by a test that fails.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) fn name() -> LogName {
    LogName::new("runs", "a").unwrap()
}

/// A store in a folder of its own.
pub(crate) fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state")).unwrap();
    (folder, store)
}

pub(crate) fn entry(json: &str) -> NewEntry<'static> {
    NewEntry {
        kind: "test.entry",
        version: 1,
        payload: RawValue::from_string(json.to_owned()).unwrap(),
    }
}

/// Writes batches of one entry each, until the log has `count` entries.
pub(crate) fn write_until(writer: &Writer, count: u64) {
    while writer.next_seq() <= count {
        let number = writer.next_seq().to_string();
        writer.append(&[entry(&number)]).unwrap();
        writer.barrier_blocking().unwrap();
    }
}

/// Returns the lines of all entries of a log that nobody holds.
pub(crate) fn lines_of(store: &Store, name: &LogName) -> Vec<u8> {
    let loopbacks = Loopbacks::new();
    drop(taken(&store.clone().with_replicas(loopbacks.clone()), name));
    loopbacks.of(name).lines()
}

/// Returns the ends of lines.
pub(crate) fn ends(lines: &[u8]) -> Vec<usize> {
    memchr::memchr_iter(b'\n', lines)
        .map(|newline| newline + 1)
        .collect()
}

/// Returns the offsets of the lines that begin a batch.
pub(crate) fn batch_starts(lines: &[u8]) -> Vec<usize> {
    let mut start = 0;
    let mut starts = Vec::new();
    for end in ends(lines) {
        if memchr::memmem::find(&lines[start..end], b",\"synced\":").is_some() {
            starts.push(start);
        }
        start = end;
    }
    starts
}

/// Returns the hash of the line that ends at an offset.
pub(crate) fn hash_before(lines: &[u8], end: usize) -> Digest {
    let digits = &lines[end - 35..end - 3];
    std::str::from_utf8(digits).unwrap().parse().unwrap()
}

/// Takes a log, also one that counts only with a replica, as an earlier version would.
pub(crate) fn taken(store: &Store, name: &LogName) -> Writer {
    let _ = std::fs::remove_file(store.folder(name).join("replicated"));
    store.take(name, LockWait::IfFree).unwrap().0
}

/// Reads a log in both directions and from its middle, and verifies it.
pub(crate) fn verified(store: &Store, name: &LogName) -> ChainVerification {
    let verified = store.verify(name).unwrap();
    let reader = store.reader(name).unwrap();
    let forwards: Vec<_> = reader
        .entries(1)
        .unwrap()
        .map(|entry| entry.unwrap().hash)
        .collect();
    let mut back: Vec<_> = reader
        .entries_back()
        .unwrap()
        .map(|entry| entry.unwrap().hash)
        .collect();
    back.reverse();
    assert!(forwards == back);
    assert_eq!(forwards.len() as u64, verified.entries);
    assert_eq!(reader.end().unwrap(), verified.entries);
    if let Some(last) = forwards.last() {
        assert_eq!(*last, verified.head);
        let middle = verified.entries / 2 + 1;
        let found = reader.entry(middle).unwrap().unwrap();
        assert_eq!(found.seq, middle);
    }
    verified
}

/// Checks that nothing was left behind where logs are staged.
pub(crate) fn nothing_is_staged(root: &Path) {
    let staged = std::fs::read_dir(root.join(".incoming")).unwrap();
    assert_eq!(staged.count(), 0);
}

pub(crate) fn is_replica_failure(error: &Error, reason: &str) {
    let text = error.to_string();
    assert!(
        matches!(error, Error::ReplicaFailed { why, .. } if why.contains(reason)),
        "{text}"
    );
    assert!(text.contains("second copy of runs/"), "{text}");
}
