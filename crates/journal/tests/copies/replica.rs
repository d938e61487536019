//! Logs with a replica.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use gyrus_journal::{Error, LockWait, LogName, Store};
use tempfile::TempDir;

use crate::{
    loopback::{Answer, Loopback, Loopbacks},
    world::{
        LONG, entry, is_replica_failure, name, nothing_is_staged, store, taken, verified,
        write_until,
    },
};

/// A store with replicas, and the one of the log `runs/a`.
fn copied() -> (TempDir, Store, Arc<Loopbacks>, Arc<Loopback>) {
    let (folder, store) = store();
    let loopbacks = Loopbacks::new();
    let loopback = loopbacks.of(&name());
    (
        folder,
        store.with_replicas(loopbacks.clone()),
        loopbacks,
        loopback,
    )
}

/// Copies what a replica has to another store, and checks that it is what a store has.
fn is_copy(loopback: &Loopback, store: &Store) {
    let (_elsewhere, other) = self::store();
    let mut mirror = other.mirror(&name()).unwrap();
    mirror.append(&loopback.lines()).unwrap();
    drop(mirror);
    let (here, there) = (verified(store, &name()), verified(&other, &name()));
    assert_eq!((here.entries, here.head), (there.entries, there.head));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn nothing_is_durable_before_both_places_have_it() {
    for answer in [Answer::AtOnce, Answer::Later] {
        let (_folder, store, _, loopback) = copied();
        loopback.answer(answer);
        let writer = store.create(&name()).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let watching = {
            let (durable, loopback) = (writer.durable(), Arc::clone(&loopback));
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let durable = *durable.borrow();
                    assert!(durable <= loopback.seq());
                    thread::yield_now();
                }
            })
        };
        let tasks: Vec<_> = (0..40_u8)
            .map(|number| {
                let (writer, loopback) = (writer.clone(), Arc::clone(&loopback));
                tokio::task::spawn(async move {
                    for _ in 0..5 {
                        if number % 4 == 0 {
                            writer.put_blob(&[number; 50]).unwrap();
                        }
                        let seq = writer.append(&[entry("1"), entry("2")]).unwrap();
                        let durable = if number % 8 == 1 {
                            tokio::task::block_in_place(|| writer.barrier_blocking())
                        } else {
                            writer.barrier().await
                        };
                        assert!(durable.unwrap() >= seq);
                        assert!(loopback.seq() >= seq);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        over.store(true, Ordering::Relaxed);
        watching.join().unwrap();
        drop(writer);
        assert_eq!(loopback.seq(), 400);
        is_copy(&loopback, &store);
    }
}

#[tokio::test]
async fn logs_that_wait_for_a_stuck_replica_hold_up_no_other() {
    let (_folder, store, loopbacks, _) = copied();
    let mut stuck = Vec::new();
    for number in 0..40 {
        let name = LogName::new("runs", &format!("stuck-{number}")).unwrap();
        let writer = store.create(&name).unwrap();
        let loopback = loopbacks.of(&name);
        loopback.answer(Answer::Held);
        writer.append(&[entry("1")]).unwrap();
        let waits = writer.clone();
        let waiting = tokio::spawn(async move { waits.barrier().await });
        stuck.push((writer, loopback, waiting));
    }
    // The batches of all of them are at the replica.
    let mut held = Vec::new();
    for (_, loopback, _) in &stuck {
        let loopback = Arc::clone(loopback);
        held.push(
            tokio::task::spawn_blocking(move || loopback.held())
                .await
                .unwrap(),
        );
    }
    for kind in ["runs", "plain"] {
        let writer = store.create(&LogName::new(kind, "free").unwrap()).unwrap();
        for _ in 0..20 {
            writer.append(&[entry("1")]).unwrap();
            tokio::time::timeout(LONG, writer.barrier())
                .await
                .expect("it is not held up")
                .unwrap();
        }
    }
    for ((writer, loopback, waiting), (batch, done)) in stuck.into_iter().zip(held) {
        // Entries gather meanwhile, and become one batch.
        for _ in 0..3 {
            writer.append(&[entry("2")]).unwrap();
        }
        assert!(!waiting.is_finished());
        assert_eq!(*writer.durable().borrow(), 0);
        loopback.keep(&batch);
        loopback.answer(Answer::AtOnce);
        done.stored();
        assert!(waiting.await.unwrap().unwrap() >= 1);
        assert_eq!(writer.barrier().await.unwrap(), 4);
        assert_eq!(loopback.blobs().len(), 2);
    }
}

#[tokio::test]
async fn a_replica_that_fails_ends_the_writer_and_says_why() {
    for (answer, reason) in [
        (Answer::Refused, "the lease is lost"),
        (Answer::Dropped, "without an answer"),
        (Answer::Panics, "without an answer"),
        (Answer::StoredButFailed, "the connection broke"),
    ] {
        let (_folder, store, _, loopback) = copied();
        let writer = store.create(&name()).unwrap();
        writer.append(&[entry("1")]).unwrap();
        assert_eq!(writer.barrier().await.unwrap(), 1);
        loopback.answer(Answer::Held);
        writer.append(&[entry("2")]).unwrap();
        let waits = |_| {
            let (first, second) = (writer.clone(), writer.clone());
            [
                tokio::spawn(async move { first.barrier().await }),
                tokio::task::spawn_blocking(move || second.barrier_blocking()),
            ]
        };
        let waiting: Vec<_> = (0..3).flat_map(waits).collect();
        let first = Arc::clone(&loopback);
        let (batch, done) = tokio::task::spawn_blocking(move || first.held())
            .await
            .unwrap();
        writer.append(&[entry("3")]).unwrap();
        match answer {
            Answer::Refused => {
                loopback.forget();
                done.failed("the lease is lost");
            }
            Answer::StoredButFailed => {
                loopback.keep(&batch);
                done.failed("the connection broke");
            }
            // The others fail with the next batch.
            _ => {
                loopback.keep(&batch);
                loopback.answer(answer);
                done.stored();
            }
        }
        let mut results = Vec::new();
        for waiting in waiting {
            results.push(waiting.await.unwrap());
        }
        let intact = *writer.durable().borrow();
        for result in results {
            match result {
                Ok(seq) => assert!(seq <= intact),
                Err(error) => is_replica_failure(&error, reason),
            }
        }
        let error = writer.barrier().await.unwrap_err();
        is_replica_failure(&error, reason);
        assert!(matches!(error, Error::ReplicaFailed { intact: at, .. } if at == intact));
        is_replica_failure(&writer.append(&[entry("4")]).unwrap_err(), reason);
        is_replica_failure(&writer.put_blob(b"x").unwrap_err(), reason);
        drop(writer);
        // Taking sends what is only here.
        let (stored, here) = (loopback.seq(), store.verify(&name()).unwrap().entries);
        assert!(
            intact <= stored && stored <= here,
            "{answer:?}: {intact} {stored} {here}"
        );
        loopback.answer(Answer::Refused);
        if stored < here {
            is_replica_failure(&store.take(&name(), LockWait::IfFree).unwrap_err(), "lease");
        }
        loopback.answer(Answer::Later);
        let writer = taken(&store, &name());
        assert_eq!((loopback.seq(), writer.next_seq()), (here, here + 1));
        writer.append(&[entry("5")]).unwrap();
        writer.barrier().await.unwrap();
        drop(writer);
        is_copy(&loopback, &store);
    }
}

#[test]
fn a_log_whose_creation_is_refused_leaves_nothing() {
    for answer in [Answer::Refused, Answer::Dropped, Answer::Panics] {
        let (_folder, store, _, loopback) = copied();
        loopback.answer(answer);
        let log = store.prepare(&name()).unwrap();
        log.put_blob(b"a picture").unwrap();
        assert!(matches!(
            log.publish(&[entry("1")]),
            Err(Error::ReplicaFailed { intact: 0, .. })
        ));
        assert!(!store.exists(&name()));
        assert_eq!(store.names("runs").unwrap(), []);
        nothing_is_staged(store.root());
    }
}

#[test]
fn a_log_that_is_created_is_at_the_replica_with_its_blobs_before_it_has_a_name() {
    let (_folder, store, _, loopback) = copied();
    loopback.answer(Answer::Held);
    let log = store.prepare(&name()).unwrap();
    let blob = log.put_blob(b"a picture").unwrap();
    log.put_private(b"a key").unwrap();
    let publishing = thread::spawn(move || log.publish(&[entry("1"), entry("2")]).unwrap());
    let (batch, done) = loopback.held();
    assert!(!store.exists(&name()));
    assert_eq!((batch.first_seq, batch.last_seq), (1, 2));
    assert_eq!(batch.blobs, [blob]);
    loopback.keep(&batch);
    assert_eq!(loopback.content(&blob), b"a picture");
    loopback.answer(Answer::AtOnce);
    done.stored();
    let writer = publishing.join().unwrap();
    assert_eq!(*writer.durable().borrow(), 2);
    // The name is not asked for twice.
    assert!(matches!(store.prepare(&name()), Err(Error::Exists { .. })));
    write_until(&writer, 4);
    assert_eq!(loopback.blobs()[1..], [vec![], vec![]]);
}

#[test]
fn blobs_go_with_the_next_entries_and_private_content_does_not() {
    let (_folder, store, _, loopback) = copied();
    let other = store.create(&LogName::new("plain", "b").unwrap()).unwrap();
    let linked = other.put_blob(b"shared").unwrap();
    other.barrier_blocking().unwrap();

    let log = store.prepare(&name()).unwrap();
    let early = log.put_blob(b"early").unwrap();
    let writer = log.publish(&[]).unwrap();
    assert_eq!(writer.put_blob(b"shared").unwrap(), linked);
    let own = writer.put_blob(b"own").unwrap();
    writer.put_private(b"a key").unwrap();
    loopback.answer(Answer::Refused);
    assert_eq!(writer.barrier_blocking().unwrap(), 0, "blobs are local");
    assert!(loopback.blobs().is_empty());
    assert_eq!(writer.put_blob(b"own").unwrap(), own);
    loopback.answer(Answer::AtOnce);
    write_until(&writer, 2);
    let mut all = vec![early, linked, own];
    all.sort_unstable();
    assert_eq!(loopback.blobs(), [all.clone(), vec![]]);
    assert_eq!(loopback.content(&linked), b"shared");

    // A writer that was dropped leaves an entry that only this machine has. Its blobs are not known
    // any more, so all go.
    writer.put_blob(b"late").unwrap();
    writer.append(&[entry("3")]).unwrap();
    drop(writer);
    assert_eq!(loopback.seq(), 2);
    drop(taken(&store, &name()));
    assert_eq!((loopback.seq(), loopback.blobs()[2].len()), (3, 4));
    drop(taken(&store, &name()));
    assert_eq!(loopback.blobs().len(), 3, "nothing is sent twice");
}

#[test]
fn a_long_log_from_before_it_had_a_replica_is_sent_in_parts() {
    let (_folder, store, _, loopback) = copied();
    let plain = Store::open(store.root()).unwrap();
    let writer = plain.create(&name()).unwrap();
    let text = format!("\"{}\"", "x".repeat(700_000));
    for _ in 0..7 {
        writer.append(&[entry(&text), entry("1")]).unwrap();
    }
    drop(writer);
    drop(taken(&store, &name()));
    assert_eq!((loopback.seq(), loopback.blobs().len()), (14, 4));
    is_copy(&loopback, &store);
}

#[test]
fn a_log_that_counts_with_its_replica_is_not_written_without_it() {
    let (_folder, store, ..) = copied();
    let plain = Store::open(store.root()).unwrap();
    let writer = store.create(&name()).unwrap();
    write_until(&writer, 5);
    drop(writer);
    assert!(plain.needs_replica(&name()));
    for _ in 0..2 {
        assert!(matches!(
            plain.take(&name(), LockWait::IfFree),
            Err(Error::NeedsReplica { .. })
        ));
    }
    // It is read, copied and erased from as ever.
    assert_eq!(verified(&plain, &name()).entries, 5);
    assert_eq!(plain.erase(&name(), &[2]).unwrap(), 1);
    drop(store.take(&name(), LockWait::IfFree).unwrap());
    // One that was written without one is marked when it gets one.
    let other = LogName::new("runs", "b").unwrap();
    drop(plain.create(&other).unwrap());
    assert!(!plain.needs_replica(&other));
    drop(plain.take(&other, LockWait::IfFree).unwrap());
    drop(store.take(&other, LockWait::IfFree).unwrap());
    assert!(plain.needs_replica(&other));
    assert!(matches!(
        plain.take(&other, LockWait::IfFree),
        Err(Error::NeedsReplica { .. })
    ));
}

#[test]
fn a_log_that_lost_entries_is_not_taken_from_a_replica_that_has_them() {
    let (_folder, store, _, loopback) = copied();
    let writer = store.create(&name()).unwrap();
    write_until(&writer, 5);
    drop(writer);
    let lines = loopback.lines();
    store.remove(&name()).unwrap();
    let plain = Store::open(store.root()).unwrap();
    let mut mirror = plain.mirror(&name()).unwrap();
    let three = crate::world::ends(&lines)[2];
    mirror.append(&lines[..three]).unwrap();
    drop(mirror);
    for _ in 0..3 {
        assert!(matches!(
            store.take(&name(), LockWait::IfFree),
            Err(Error::ReplicaAhead { has: 5, end: 3, .. })
        ));
    }
    let segments = std::fs::read_dir(store.folder(&name())).unwrap();
    let is_segment = |file: &std::fs::DirEntry| {
        let path = file.path();
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    };
    let count = segments.map(Result::unwrap).filter(is_segment).count();
    assert_eq!(count, 1, "attempts leave nothing");
    let mut mirror = plain.mirror(&name()).unwrap();
    mirror.append(&lines[three..]).unwrap();
    drop(mirror);
    write_until(&taken(&store, &name()), 7);
    is_copy(&loopback, &store);
}

#[tokio::test]
async fn a_follower_returns_an_entry_when_both_places_have_it() {
    let (_folder, store, _, loopback) = copied();
    let writer = store.create(&name()).unwrap();
    let mut follower = store.reader(&name()).unwrap().follow(1).unwrap();
    loopback.answer(Answer::Held);
    // The timer flushes it, so nobody waits.
    writer.append(&[entry("1")]).unwrap();
    let first = Arc::clone(&loopback);
    let (batch, done) = tokio::task::spawn_blocking(move || first.held())
        .await
        .unwrap();
    assert_eq!(store.reader(&name()).unwrap().end().unwrap(), 1, "on disk");
    let early = tokio::time::timeout(Duration::from_millis(20), follower.next()).await;
    assert!(early.is_err(), "the replica does not have it");
    loopback.keep(&batch);
    done.stored();
    let next = tokio::time::timeout(LONG, follower.next()).await.unwrap();
    assert_eq!(next.unwrap().seq, 1);
}

#[test]
fn a_log_is_released_when_its_last_batch_is_answered() {
    let (_folder, store, _, loopback) = copied();
    for round in 1..=50_u64 {
        let writer = match round {
            1 => store.create(&name()).unwrap(),
            _ => taken(&store, &name()),
        };
        loopback.answer(Answer::Held);
        writer.append(&[entry("1")]).unwrap();
        let waits = writer.clone();
        let waiting = thread::spawn(move || drop(waits.barrier_blocking()));
        let (batch, done) = loopback.held();
        drop(writer);
        if round % 2 == 0 {
            // Whoever hears of the end can take the log.
            loopback.keep(&batch);
            loopback.answer(Answer::AtOnce);
            done.stored();
            waiting.join().unwrap();
        } else {
            assert!(matches!(
                store.take(&name(), LockWait::IfFree),
                Err(Error::Held { .. })
            ));
            loopback.keep(&batch);
            loopback.answer(Answer::AtOnce);
            done.stored();
            waiting.join().unwrap();
        }
        assert_eq!(loopback.seq(), round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_hears_of_an_answer_at_once_can_take_the_log() {
    let (_folder, store, _, _) = copied();
    drop(store.create(&name()).unwrap());
    for _ in 0..100 {
        let writer = taken(&store, &name());
        writer.append(&[entry("1")]).unwrap();
        writer.barrier().await.unwrap();
    }
}
