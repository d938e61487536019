//! The explorer on some seeds. `cargo xtask sim` does more.

use std::{path::Path, sync::Arc};

use gyrus_contract::BlobId;
use gyrus_journal::{Error, LockWait, LogName, NewEntry, Store, Writer};
use serde_json::value::RawValue;

use super::{Fault, SimDisk, explore, shrink};

/// Number of seeds: enough to meet every kind of fault at every kind of position many times over.
const LIVES: u64 = 150;

#[test]
fn whatever_happens_nothing_acknowledged_is_lost() {
    for seed in 0..LIVES {
        if let Err(failure) = explore(seed) {
            panic!("{}", shrink(failure));
        }
    }
}

fn one() -> NewEntry<'static> {
    NewEntry {
        kind: "test.one",
        version: 1,
        payload: RawValue::from_string("1".to_owned()).unwrap(),
    }
}

fn append(writer: &Writer) -> Result<u64, Error> {
    writer.append(&[one()])
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
            store.take(&name, LockWait::IfFree),
            Err(Error::Held { .. })
        ));
        drop(writer);
        let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
        let kept = writer.next_seq();
        drop(writer);
        // The retry wrote again what the failed sync dropped, so a power cut does no harm now.
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

#[test]
fn blobs_that_share_a_sync_are_whole_wherever_an_entry_names_them() {
    let contents = || (0..5).map(|number| vec![number; 700]);
    let put = |writer: &Writer, count| -> Result<(), Error> {
        for bytes in contents().take(count) {
            writer.put_blob(&bytes)?;
        }
        append(writer)?;
        writer.barrier_blocking().map(drop)
    };
    for fault in [Fault::PowerCut, Fault::Io, Fault::NoSpace] {
        let mut call = 0;
        loop {
            call += 1;
            let (disk, store, name, writer) = written();
            let before = disk.calls();
            disk.fail_at(before + call, fault);
            // Some blobs of the second round are stored already.
            let lived = put(&writer, 2).and_then(|()| put(&writer, 5));
            let over = disk.fired() == 0;
            drop((lived, writer, store));
            for seed in 0..6 {
                let after = disk.crash(seed);
                let store = Store::open_on(Arc::new(after), Path::new("/home")).unwrap();
                let reader = store.reader(&name).unwrap();
                let entries = reader.end().unwrap() - 3;
                let named = [0, 2, 5][usize::try_from(entries).unwrap()];
                for bytes in contents().take(named) {
                    let blob = reader.blob(&BlobId::of(&bytes)).unwrap();
                    assert_eq!(blob, bytes, "{fault:?} at call {call}, seed {seed}");
                }
                // The blobs that were left incomplete are put again.
                let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
                put(&writer, 5).unwrap();
                for bytes in contents() {
                    assert_eq!(writer.blob(&BlobId::of(&bytes)).unwrap(), bytes);
                }
            }
            if over {
                assert!(call > 40, "{call} calls");
                break;
            }
        }
    }
}

#[test]
fn blobs_can_be_read_before_they_are_on_disk_and_after_a_crash() {
    let (disk, store, name, writer) = written();
    let blobs: Vec<BlobId> = (0_u8..100)
        .map(|number| writer.put_blob(&[number; 40]).unwrap())
        .collect();
    // Before the last of them is on disk, all can be read.
    for (blob, number) in blobs.iter().zip(0..) {
        assert_eq!(
            store.reader(&name).unwrap().blob(blob).unwrap(),
            [number; 40]
        );
    }
    append(&writer).unwrap();
    writer.barrier_blocking().unwrap();
    for seed in 0..10 {
        let store = Store::open_on(Arc::new(disk.crash(seed)), Path::new("/home")).unwrap();
        let reader = store.reader(&name).unwrap();
        assert!(blobs.iter().all(|blob| reader.blob(blob).is_ok()));
    }
}

/// A removal fails at each of its calls in turn, a sweep follows, then the power goes: a log that
/// comes back has its blobs.
#[test]
fn a_removal_that_failed_comes_undone_as_a_whole() {
    let (mut call, mut came_back) = (0, 0);
    loop {
        call += 1;
        let (disk, store, name, writer) = written();
        let blob = writer.put_blob(&[7; 700]).unwrap();
        append(&writer).unwrap();
        writer.barrier_blocking().unwrap();
        drop(writer);
        disk.fail_at(disk.calls() + call, Fault::Io);
        let removed = store.remove(&name);
        if disk.fired() == 0 {
            removed.unwrap();
            break;
        }
        store.sweep().unwrap();
        for seed in 0..20 {
            let store = Store::open_on(Arc::new(disk.crash(seed)), Path::new("/home")).unwrap();
            if let Ok(reader) = store.reader(&name) {
                came_back += 1;
                assert!(reader.blob(&blob).is_ok(), "call {call}, seed {seed}");
            }
        }
    }
    assert!(came_back > 0);
}

/// The power goes, or a call fails, at each call in turn.
#[test]
fn a_log_appears_with_its_first_entries_and_their_blobs() {
    for fault in [Fault::PowerCut, Fault::Io, Fault::NoSpace] {
        let (mut call, mut absent) = (0, 0);
        loop {
            call += 1;
            let disk = SimDisk::new();
            let store = Store::open_on(Arc::new(disk.clone()), Path::new("/home")).unwrap();
            let name = LogName::new("runs", "a").unwrap();
            disk.fail_at(disk.calls() + call, fault);
            let created = store.prepare(&name).and_then(|log| {
                log.put_blob(&[7; 700])?;
                log.publish(&[one(), one()]).map(drop)
            });
            let over = disk.fired() == 0;
            for seed in 0..6 {
                let store = Store::open_on(Arc::new(disk.crash(seed)), Path::new("/home")).unwrap();
                let Ok((writer, _)) = store.take(&name, LockWait::IfFree) else {
                    assert!(created.is_err(), "{fault:?} at call {call}, seed {seed}");
                    assert_eq!(store.names("runs").unwrap(), []);
                    absent += 1;
                    continue;
                };
                assert_eq!(
                    writer.next_seq(),
                    3,
                    "{fault:?} at call {call}, seed {seed}"
                );
                let blob = writer.blob(&BlobId::of(&[7; 700])).unwrap();
                assert_eq!(blob, [7; 700]);
            }
            if over {
                created.unwrap();
                break;
            }
        }
        assert!(absent > 0);
    }
}

/// A log is sealed, and each call fails in turn, or the power goes at it: it is finished and sealed,
/// or finished and not yet sealed, and never damaged; what was said to be sealed is.
#[test]
fn a_log_is_sealed_or_not_yet_sealed_and_never_damaged() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for fault in [
        Fault::PowerCut,
        Fault::Io,
        Fault::NoSpace,
        Fault::ShortWrite,
    ] {
        let (mut call, mut met) = (0, [0, 0]);
        loop {
            call += 1;
            let (disk, store, name, writer) = written();
            writer.put_blob(&[7; 700]).unwrap();
            append(&writer).unwrap();
            writer.barrier_blocking().unwrap();
            disk.fail_at(disk.calls() + call, fault);
            let sealed = runtime.block_on(writer.seal());
            let over = disk.fired() == 0;
            drop((writer, store));
            let crashed = (0..20).map(|seed| disk.crash(seed));
            for after in crashed.chain([disk.kill()]) {
                let store = Store::open_on(Arc::new(after), Path::new("/home")).unwrap();
                let found = store.verify(&name).unwrap();
                assert_eq!(
                    (found.entries, found.blobs, found.tail),
                    (4, 1, None),
                    "{fault:?} at call {call}"
                );
                assert!(
                    found.is_sealed || sealed.is_err(),
                    "{fault:?} at call {call}: what was sealed is not"
                );
                met[usize::from(found.is_sealed)] += 1;
                // It can be sealed again, whatever the failed attempt left behind.
                let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
                runtime.block_on(writer.seal()).unwrap();
                drop(writer);
                assert!(store.verify(&name).unwrap().is_sealed);
            }
            if over {
                // A short write is repeated, and every other fault can leave the log unsealed.
                let unsealed = fault != Fault::ShortWrite;
                assert_eq!((call > 5, met[0] > 0, met[1] > 0), (true, unsealed, true));
                break;
            }
        }
    }
}
