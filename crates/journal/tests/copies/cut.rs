//! Copies that have more than their source, or something else.

use std::time::Duration;

use fastrand::Rng;
use gyrus_contract::Digest;
use gyrus_journal::{Error, Mirror, Store};

use crate::world::{
    LONG, batch_starts, ends, entry, hash_before, lines_of, name, store, taken, verified,
    write_until,
};

fn hash_of(lines: &[u8], seq: usize) -> Digest {
    match seq {
        0 => "0".repeat(32).parse().unwrap(),
        _ => hash_before(lines, ends(lines)[seq - 1]),
    }
}

/// Writes a log whose entries are spread over segments, batches and the beginnings of both.
fn written(store: &Store, random: &mut Rng) -> Vec<u8> {
    let mut writer = store.create(&name()).unwrap();
    for _ in 0..random.u64(1..5) {
        for _ in 0..random.u64(0..6) {
            let batch: Vec<_> = (0..random.u64(1..4)).map(|_| entry("1")).collect();
            writer.append(&batch).unwrap();
            if random.bool() {
                writer.barrier_blocking().unwrap();
            }
        }
        drop(writer);
        writer = taken(store, &name());
    }
    writer.append(&[entry("1")]).unwrap();
    drop(writer);
    lines_of(store, &name())
}

/// Cuts a log, checks what is left, and continues with other entries than before.
fn cut_and_continue(store: &Store, mirror: Mirror, lines: &[u8], seq: usize, what: &str) {
    let mut mirror = mirror;
    let hash = hash_of(lines, seq);
    mirror.cut(seq as u64, hash).unwrap();
    assert_eq!(mirror.end(), (seq as u64, hash), "{what}");
    mirror.cut(seq as u64, hash).unwrap();
    let left = verified(store, &name());
    assert_eq!((left.entries, left.tail), (seq as u64, None), "{what}");
    // The same entries again, and then others in their place.
    let rest = &lines[if seq == 0 { 0 } else { ends(lines)[seq - 1] }..];
    if !rest.is_empty() {
        mirror.append(rest).unwrap();
        assert_eq!(
            verified(store, &name()).head,
            hash_of(lines, ends(lines).len())
        );
        mirror.cut(seq as u64, hash).unwrap();
    }
    drop(mirror);
    assert_eq!(verified(store, &name()).entries, seq as u64, "{what}");
    write_until(&taken(store, &name()), seq as u64 + 5);
    assert_eq!(verified(store, &name()).entries, seq as u64 + 5, "{what}");
    let mut export = Vec::new();
    store.export(&name(), &|_| true, &mut export).unwrap();
    let (_folder, other) = self::store();
    other.import("runs", &mut export.as_slice()).unwrap();
    verified(&other, &name());
}

#[test]
fn entries_that_never_counted_are_cut_off_wherever_they_are() {
    for seed in 0..25 {
        let mut random = Rng::with_seed(seed);
        let (_folder, store) = store();
        let lines = written(&store, &mut random);
        let count = ends(&lines).len();
        if random.u8(..3) == 0 {
            let seqs: Vec<u64> = (1..=count as u64).filter(|_| random.bool()).collect();
            store.erase(&name(), &seqs).unwrap();
        }
        let lines = lines_of(&store, &name());
        let seq = random.usize(..=count);
        let mut mirror = store.mirror(&name()).unwrap();
        let what = format!("seed {seed}: {seq} of {count}");
        let end = mirror.end();
        if seq > 0 {
            let error = mirror
                .cut(seq as u64, hash_of(&lines, seq - 1))
                .unwrap_err();
            assert!(
                matches!(error, Error::OtherHistory { .. }),
                "{what}: {error}"
            );
        }
        let error = mirror
            .cut(count as u64 + 1, hash_of(&lines, count))
            .unwrap_err();
        assert!(
            matches!(error, Error::NoSuchEntry { .. }),
            "{what}: {error}"
        );
        assert_eq!(mirror.end(), end, "{what}");
        cut_and_continue(&store, mirror, &lines, seq, &what);
    }
}

#[test]
fn a_copy_that_is_not_synced_is_cut() {
    let (_source, source) = store();
    write_until(&source.create(&name()).unwrap(), 9);
    let lines = lines_of(&source, &name());
    let at = ends(&lines);
    assert_eq!(batch_starts(&lines).len(), 9);
    for seq in 0..=9 {
        let (_folder, store) = store();
        let mut mirror = store.mirror(&name()).unwrap();
        mirror.append(&lines[..at[1]]).unwrap();
        mirror.append(&lines[at[1]..at[2]]).unwrap();
        mirror.append(&lines[at[2]..at[7]]).unwrap();
        mirror.append(&lines[at[7]..]).unwrap();
        cut_and_continue(&store, mirror, &lines, seq, &format!("{seq} of 9"));
    }
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    mirror.cut(0, hash_of(&lines, 0)).unwrap();
    assert!(matches!(
        mirror.cut(1, hash_of(&lines, 1)),
        Err(Error::NoSuchEntry { last: 0, .. })
    ));
}

#[test]
fn a_seal_goes_with_the_entries_that_it_covers() {
    let (_folder, store) = store();
    write_until(&store.create(&name()).unwrap(), 6);
    let lines = lines_of(&store, &name());
    let mut mirror = store.mirror(&name()).unwrap();
    mirror.seal().unwrap();
    mirror.cut(6, hash_of(&lines, 6)).unwrap();
    assert!(store.is_sealed(&name()));
    mirror.cut(4, hash_of(&lines, 4)).unwrap();
    assert!(!store.is_sealed(&name()));
    mirror.seal().unwrap();
    mirror.append(&lines[ends(&lines)[3]..]).unwrap();
    mirror.cut(5, hash_of(&lines, 5)).unwrap();
    assert!(store.is_sealed(&name()), "it covers 4 entries");
    assert!(verified(&store, &name()).is_sealed);
}

/// Followers do not wait for ever on a file that the log does not have any more.
#[tokio::test]
async fn followers_of_what_was_cut_are_told() {
    for cut in [3, 5] {
        let (_folder, store) = store();
        write_until(&store.create(&name()).unwrap(), 4);
        write_until(&taken(&store, &name()), 6);
        let lines = lines_of(&store, &name());
        let mut mirror = store.mirror(&name()).unwrap();
        let mut follower = store.reader(&name()).unwrap().follow(1).unwrap();
        for seq in 1..=6 {
            let next = tokio::time::timeout(LONG, follower.next()).await.unwrap();
            assert_eq!(next.unwrap().seq, seq);
        }
        let early = tokio::time::timeout(Duration::from_millis(1), follower.next()).await;
        assert!(early.is_err(), "there is nothing more yet");
        mirror
            .cut(cut, hash_of(&lines, usize::try_from(cut).unwrap()))
            .unwrap();
        drop(mirror);
        let writer = taken(&store, &name());
        writer.append(&[entry("\"another\"")]).unwrap();
        writer
            .append(&[entry("7"), entry("8"), entry("9")])
            .unwrap();
        writer.barrier().await.unwrap();
        let told = tokio::time::timeout(LONG, follower.next()).await.unwrap();
        let error = told.unwrap_err().to_string();
        assert!(error.contains("changed while it was"), "{error}");
    }
}

/// A follower that waits while the log is cut is told even if nothing is written afterwards.
#[tokio::test]
async fn a_follower_at_the_end_is_told_of_a_cut() {
    let (_folder, store) = store();
    write_until(&store.create(&name()).unwrap(), 4);
    drop(taken(&store, &name()));
    let lines = lines_of(&store, &name());
    let mut mirror = store.mirror(&name()).unwrap();
    let mut follower = store.reader(&name()).unwrap().follow(5).unwrap();
    let early = tokio::time::timeout(Duration::from_millis(1), follower.next()).await;
    assert!(early.is_err(), "there is nothing more yet");
    mirror.cut(2, hash_of(&lines, 2)).unwrap();
    let told = tokio::time::timeout(LONG, follower.next()).await.unwrap();
    assert!(matches!(told, Err(Error::Corrupt { .. })), "{told:?}");
}

#[test]
fn a_copy_of_another_history_begins_anew() {
    let (_source, source) = store();
    let writer = source.create(&name()).unwrap();
    writer.append(&[entry("\"other\"")]).unwrap();
    drop(writer);
    let lines = lines_of(&source, &name());
    let (_folder, store) = store();
    let writer = store.create(&name()).unwrap();
    let old = writer.put_blob(b"old").unwrap();
    write_until(&writer, 3);
    drop(writer);
    let mut mirror = store.mirror(&name()).unwrap();
    let error = mirror.cut(1, hash_of(&lines, 1)).unwrap_err();
    assert!(
        matches!(error, Error::OtherHistory { seq: 1, .. }),
        "{error}"
    );
    let mut mirror = mirror.reset().unwrap();
    assert_eq!(mirror.end().0, 0);
    assert!(!store.exists(&name()) && !mirror.has_blob(&old));
    mirror = mirror.reset().unwrap();
    mirror.append(&lines).unwrap();
    drop(mirror);
    assert_eq!(verified(&store, &name()).head, hash_of(&lines, 1));
    assert!(store.sweep().unwrap() > 0, "the old copy was put aside");
    assert_eq!(
        std::fs::read_dir(store.root().join(".trash"))
            .unwrap()
            .count(),
        0
    );
    write_until(&taken(&store, &name()), 3);
}
