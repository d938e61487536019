//! The explorer on a few thousand lives. `cargo xtask sim` does more.

use std::{path::Path, sync::Arc};

use serde_json::value::RawValue;

use super::{Fault, SimDisk, explore, shrink};
use crate::{Error, LogName, NewEntry, Store, Take, Writer};

/// Enough to meet every kind of fault at every kind of place many times over.
const LIVES: u64 = 150;

#[test]
fn whatever_happens_nothing_acknowledged_is_lost() {
    for seed in 0..LIVES {
        if let Err(failure) = explore(seed) {
            panic!("{}", shrink(failure));
        }
    }
}

fn append(writer: &Writer) -> Result<u64, Error> {
    let payload = RawValue::from_string("1".to_owned()).unwrap();
    writer.append(&[NewEntry {
        kind: "test.one",
        version: 1,
        payload,
    }])
}

fn written() -> (SimDisk, Store, LogName, Writer) {
    let disk = SimDisk::new();
    let store = Store::open_on(Arc::new(disk.clone()), Path::new("/home")).unwrap();
    let name = LogName::new("runs", "a").unwrap();
    let writer = store.create(&name).unwrap();
    for _ in 0..3 {
        append(&writer).unwrap();
        writer.barrier_blocking().unwrap();
    }
    (disk, store, name, writer)
}

#[test]
fn a_batch_is_one_write_and_one_sync() {
    let (disk, _, _, writer) = written();
    let before = disk.calls();
    for _ in 0..10 {
        append(&writer).unwrap();
    }
    writer.barrier_blocking().unwrap();
    writer.barrier_blocking().unwrap();
    assert_eq!(disk.calls() - before, 2);
}

#[test]
fn a_writer_that_failed_says_the_same_for_good_and_the_truth() {
    for (call, fault) in [(1, Fault::Io), (1, Fault::NoSpace), (2, Fault::Io)] {
        let (disk, store, name, writer) = written();
        append(&writer).unwrap();
        disk.fail_at(disk.calls() + call, fault);
        let first = writer.barrier_blocking().unwrap_err().to_string();
        let what = if call == 1 {
            "cannot write"
        } else {
            "cannot sync"
        };
        assert!(first.starts_with(what), "{first}");
        assert!(first.contains("runs/a is intact up to entry 3"), "{first}");
        for later in [append(&writer), writer.barrier_blocking()] {
            assert_eq!(later.unwrap_err().to_string(), first);
        }
        assert!(writer.put_blob(b"x").is_err());
        assert!(matches!(
            store.take(&name, Take::IfFree),
            Err(Error::Held { .. })
        ));
        drop(writer);
        let (writer, _) = store.take(&name, Take::IfFree).unwrap();
        let kept = writer.next_seq();
        drop(writer);
        // What the failed sync dropped was written again: the power may go now.
        for seed in 0..20 {
            let store = Store::open_on(Arc::new(disk.crash(seed)), Path::new("/home")).unwrap();
            assert_eq!(
                store.verify(&name).unwrap().entries + 1,
                kept,
                "seed {seed}"
            );
        }
    }
}

/// Seeds that once failed.
#[test]
fn lives_that_went_wrong_once_go_right() {
    // A sweep after a removal that failed, then a power cut: the log came back without its blobs.
    if let Err(failure) = explore(9_024_908) {
        panic!("{failure}");
    }
}
