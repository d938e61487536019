//! Logs that are copies.

use std::time::Duration;

use fastrand::Rng;
use gyrus_contract::BlobId;
use gyrus_journal::{Error, LockWait, LogName, Mirror, Store};

use crate::world::{
    LONG, batch_starts, ends, entry, hash_before, lines_of, name, nothing_is_staged, store, taken,
    verified, write_until,
};

/// Writes a log with random batches and takings, beginning where it ends.
fn write(store: &Store, random: &mut Rng) {
    for _ in 0..random.u64(1..4) {
        let writer = if store.exists(&name()) {
            taken(store, &name())
        } else {
            store.create(&name()).unwrap()
        };
        for _ in 0..random.u64(1..25) {
            let batch: Vec<_> = (0..random.u64(1..5))
                .map(|_| entry(&format!("\"{}\"", "x".repeat(random.usize(..200)))))
                .collect();
            writer.append(&batch).unwrap();
            if random.bool() {
                writer.barrier_blocking().unwrap();
            }
        }
    }
}

/// Copies lines in random portions, with syncs, reopenings and failed attempts in between.
fn copy(store: &Store, lines: &[u8], random: &mut Rng) {
    let ends = ends(lines);
    let mut mirror = store.mirror(&name()).unwrap();
    let mut done = usize::try_from(mirror.end().0).unwrap();
    while done < ends.len() {
        let most = if random.bool() { 3 } else { 40 };
        let next = (done + random.usize(1..=most)).min(ends.len());
        let start = if done == 0 { 0 } else { ends[done - 1] };
        let portion = &lines[start..ends[next - 1]];
        assert_eq!(mirror.append(portion).unwrap(), next as u64);
        done = next;
        assert_eq!(
            mirror.end(),
            (next as u64, hash_before(lines, ends[next - 1]))
        );
        assert_eq!(store.reader(&name()).unwrap().end().unwrap(), next as u64);
        assert!(matches!(
            mirror.append(portion),
            Err(Error::BadLines { .. })
        ));
        match random.u64(..5) {
            0 => mirror.sync().unwrap(),
            1 => {
                drop(mirror);
                mirror = store.mirror(&name()).unwrap();
            }
            _ => {}
        }
    }
    mirror.sync().unwrap();
}

#[test]
fn a_copy_of_a_copy_continues_as_the_log_does() {
    for seed in 0..15 {
        let mut random = Rng::with_seed(seed);
        let (_here, here) = store();
        let (_there, there) = store();
        write(&here, &mut random);
        for (from, to) in [(&here, &there), (&there, &here), (&here, &there)] {
            copy(to, &lines_of(from, &name()), &mut random);
            let (one, two) = (verified(from, &name()), verified(to, &name()));
            assert_eq!(
                (one.entries, one.head),
                (two.entries, two.head),
                "seed {seed}"
            );
            assert_eq!(two.tail, None);
            // The copy is written on.
            write(to, &mut random);
            assert!(verified(to, &name()).entries > one.entries);
        }
        let mut export = Vec::new();
        there.export(&name(), &|_| true, &mut export).unwrap();
        let (_elsewhere, elsewhere) = store();
        elsewhere.import("runs", &mut export.as_slice()).unwrap();
        let erased = there.erase(&name(), &[1, 2]).unwrap();
        assert_eq!((erased, verified(&there, &name()).erased), (2, 2));
    }
}

/// Appends bad lines, and expects that nothing changes.
fn refused(store: &Store, mirror: &mut Mirror, lines: &[u8], what: &str) {
    let before = mirror.end();
    let length = || -> u64 {
        let files = std::fs::read_dir(store.folder(&name()))
            .into_iter()
            .flatten();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    let bytes = length();
    let error = mirror.append(lines).unwrap_err();
    assert!(matches!(error, Error::BadLines { .. }), "{what}: {error}");
    assert_eq!(mirror.end(), before, "{what}");
    assert_eq!(length(), bytes, "{what}");
}

#[test]
fn lines_that_do_not_follow_change_nothing() {
    let (_source, source) = store();
    let other = LogName::new("runs", "b").unwrap();
    for name in [&name(), &other] {
        write_until(&source.create(name).unwrap(), 12);
    }
    let (lines, foreign) = (lines_of(&source, &name()), lines_of(&source, &other));
    let (at, other_at) = (ends(&lines), ends(&foreign));
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    let mut random = Rng::with_seed(1);
    // Before the first lines, with one batch, and with lines that become a segment of their own.
    for done in [0, 1, 6] {
        let start = if done == 0 { 0 } else { at[done - 1] };
        if done > 0 {
            let from = usize::try_from(mirror.end().0).unwrap();
            let from = if from == 0 { 0 } else { at[from - 1] };
            mirror.append(&lines[from..start]).unwrap();
        }
        let rest = &lines[start..];
        for _ in 0..150 {
            let mut flipped = rest.to_vec();
            let bit = random.usize(..flipped.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
            refused(&store, &mut mirror, &flipped, &format!("bit {bit}"));
        }
        let gap = &lines[at[done]..];
        let foreign_start = if done == 0 { 0 } else { other_at[done - 1] };
        let twice = [&rest[..at[done] - start], rest].concat();
        let glued = [b"x", rest].concat();
        let blank = [b"\n", rest].concat();
        let blank_inside = [&rest[..at[done] - start], b"\n", gap].concat();
        for (what, lines) in [
            ("nothing", &b""[..]),
            ("a newline", b"\n"),
            ("a gap", gap),
            ("another log", &foreign[foreign_start..]),
            ("a cut line", &rest[..rest.len() - 1]),
            ("half a line", &rest[..at[done] - start - 30]),
            ("twice", &twice),
            ("glued", &glued),
            ("a blank line", &blank),
            ("a blank line inside", &blank_inside),
            (
                "a segment",
                &std::fs::read(source.folder(&name()).join("000001.jsonl")).unwrap(),
            ),
            ("NULs", &[0; 5000]),
        ] {
            refused(&store, &mut mirror, lines, what);
        }
        for length in (1..rest.len())
            .step_by(7)
            .filter(|length| !at.contains(&(start + length)))
        {
            refused(&store, &mut mirror, &rest[..length], "cut");
        }
    }
    let too_long = vec![b'\n'; (128 << 20) + 1];
    assert!(matches!(
        mirror.append(&too_long),
        Err(Error::TooLarge { .. })
    ));
    drop(too_long);
    mirror.append(&lines[at[5]..]).unwrap();
    drop(mirror);
    assert_eq!(
        verified(&store, &name()).head,
        source.verify(&name()).unwrap().head
    );
}

#[test]
fn large_and_erased_payloads_are_copied() {
    let (_source, source) = store();
    let writer = source.create(&name()).unwrap();
    let large = format!("\"{}\"", "x".repeat((8 << 20) - 2));
    for payload in ["\"secret\"", &large, "3", "{\"a\":[1,2]}"] {
        writer.append(&[entry(payload)]).unwrap();
        writer.barrier_blocking().unwrap();
    }
    drop(writer);
    let whole = lines_of(&source, &name());
    source.erase(&name(), &[1, 3]).unwrap();
    let erased = lines_of(&source, &name());
    let head = source.verify(&name()).unwrap().head;
    for (lines, count) in [(&whole, 0), (&erased, 2)] {
        for at_once in [true, false] {
            let (_folder, store) = store();
            let mut mirror = store.mirror(&name()).unwrap();
            let mut start = 0;
            for end in ends(lines) {
                if !at_once {
                    mirror.append(&lines[start..end]).unwrap();
                    start = end;
                }
            }
            if at_once {
                mirror.append(lines).unwrap();
            }
            drop(mirror);
            let verified = verified(&store, &name());
            assert_eq!((verified.head, verified.erased), (head, count));
        }
    }
    // Half of the entries with their payloads, and half without.
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    mirror.append(&whole[..ends(&whole)[1]]).unwrap();
    mirror.append(&erased[ends(&erased)[1]..]).unwrap();
    drop(mirror);
    assert_eq!(verified(&store, &name()).erased, 1);
}

#[test]
fn a_long_log_is_copied_into_several_segments() {
    let (_source, source) = store();
    let writer = source.create(&name()).unwrap();
    let text = format!("\"{}\"", "x".repeat(5 << 20));
    for _ in 0..15 {
        writer.append(&[entry(&text)]).unwrap();
    }
    drop(writer);
    let lines = lines_of(&source, &name());
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    let mut start = 0;
    for end in ends(&lines) {
        mirror.append(&lines[start..end]).unwrap();
        start = end;
    }
    drop(mirror);
    assert_eq!(verified(&store, &name()).entries, 15);
    assert!(store.folder(&name()).join("000002.jsonl").exists());
    let mut export = Vec::new();
    store.export(&name(), &|_| true, &mut export).unwrap();
    let (_elsewhere, elsewhere) = self::store();
    elsewhere.import("runs", &mut export.as_slice()).unwrap();
}

#[test]
fn a_mirror_holds_the_log_and_leaves_nothing_when_it_is_empty() {
    let (_source, source) = store();
    write_until(&source.create(&name()).unwrap(), 3);
    let lines = lines_of(&source, &name());
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    mirror.put_blob(b"a picture").unwrap();
    mirror.sync().unwrap();
    assert_eq!((mirror.end().0, mirror.name()), (0, &name()));
    assert!(
        mirror
            .end()
            .1
            .to_string()
            .bytes()
            .all(|digit| digit == b'0')
    );
    assert!(matches!(mirror.seal(), Err(Error::NotFound { .. })));
    assert!(!store.exists(&name()));
    drop(mirror);
    nothing_is_staged(store.root());

    let (mut first, mut second) = (
        store.mirror(&name()).unwrap(),
        store.mirror(&name()).unwrap(),
    );
    first.append(&lines).unwrap();
    let late = second.append(&lines).unwrap_err();
    assert!(matches!(late, Error::Exists { .. }));
    let late = second.append(&lines).unwrap_err();
    assert!(
        late.to_string().contains("there is a log runs/a already"),
        "{late}"
    );
    drop(second);
    nothing_is_staged(store.root());
    for error in [
        store.mirror(&name()).unwrap_err(),
        store.take(&name(), LockWait::IfFree).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Held { .. }));
    }
    drop(first);
    let writer = taken(&store, &name());
    assert!(matches!(store.mirror(&name()), Err(Error::Held { .. })));
    write_until(&writer, 5);
}

#[test]
fn a_copy_has_blobs_and_a_seal() {
    let (_source, source) = store();
    write_until(&source.create(&name()).unwrap(), 8);
    let lines = lines_of(&source, &name());
    let at = ends(&lines);
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    let early = mirror.put_blob(b"early").unwrap();
    assert!(mirror.has_blob(&early));
    assert!(!mirror.has_blob(&BlobId::of(b"late")));
    mirror.append(&lines[..at[1]]).unwrap();
    let late = mirror.put_blob(b"late").unwrap();
    assert_eq!(mirror.put_blob(b"late").unwrap(), late);
    for number in 0..200_u8 {
        mirror.put_blob(&[number; 40]).unwrap();
    }
    assert!(mirror.has_blob(&early) && mirror.has_blob(&late));
    mirror.append(&lines[at[1]..]).unwrap();
    mirror.seal().unwrap();
    let verified = verified(&store, &name());
    assert_eq!((verified.blobs, verified.is_sealed), (202, true));
    drop(mirror);
    let mirror = store.mirror(&name()).unwrap();
    assert!(mirror.has_blob(&early) && mirror.has_blob(&late));
    drop(mirror);
    assert_eq!(taken(&store, &name()).blob(&late).unwrap(), b"late");
}

#[tokio::test]
async fn a_copy_is_followed_as_it_grows() {
    let (_source, source) = store();
    write_until(&source.create(&name()).unwrap(), 40);
    let lines = lines_of(&source, &name());
    let at = ends(&lines);
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    mirror.append(&lines[..at[0]]).unwrap();
    // In this process, and as another one does.
    let mut followers = [
        store.reader(&name()).unwrap().follow(1).unwrap(),
        Store::open(store.root())
            .unwrap()
            .reader(&name())
            .unwrap()
            .follow(1)
            .unwrap(),
    ];
    for (done, next) in [(0, 1), (1, 2), (2, 5), (5, 20), (20, 21), (21, 40)] {
        if done > 0 {
            mirror.append(&lines[at[done - 1]..at[next - 1]]).unwrap();
        }
        for follower in &mut followers {
            for seq in done + 1..=next {
                let entry = tokio::time::timeout(LONG, follower.next()).await.unwrap();
                assert_eq!(entry.unwrap().seq, seq as u64);
            }
        }
    }
    for follower in &mut followers {
        let more = tokio::time::timeout(Duration::from_millis(1), follower.next()).await;
        assert!(more.is_err(), "there is nothing more");
    }
}

/// A line that claims too much would make a later tail look like damage.
#[test]
fn lines_keep_their_claims() {
    let (_source, source) = store();
    write_until(&source.create(&name()).unwrap(), 6);
    let lines = lines_of(&source, &name());
    let starts = batch_starts(&lines);
    assert_eq!(starts.len(), 6);
    let (_folder, store) = store();
    let mut mirror = store.mirror(&name()).unwrap();
    mirror.append(&lines).unwrap();
    drop(mirror);
    let copied = std::fs::read(store.folder(&name()).join("000001.jsonl")).unwrap();
    assert!(copied.ends_with(&lines), "exactly the lines");
}
