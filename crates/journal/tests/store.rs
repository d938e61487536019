//! Logs on a real disk, through the public interface.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus_journal::{Error, LockWait, LogName, NewEntry, Payload, SegmentTail, Store, Writer};
use serde_json::value::RawValue;
use tempfile::TempDir;

/// Time limit that is longer than anything here should take; reached only by a test that fails.
const LONG: Duration = Duration::from_secs(30);

fn store() -> (TempDir, Store, LogName) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state")).unwrap();
    (folder, store, LogName::new("runs", "a").unwrap())
}

fn entry<'a>(kind: &'a str, json: &str) -> NewEntry<'a> {
    let payload = RawValue::from_string(json.to_owned()).unwrap();
    NewEntry {
        kind,
        version: 1,
        payload,
    }
}

fn write(writer: &Writer, count: u64) -> u64 {
    for _ in 0..count {
        let number = writer.next_seq();
        writer
            .append(&[entry("test.number", &number.to_string())])
            .unwrap();
        writer.barrier_blocking().unwrap();
    }
    writer.next_seq() - 1
}

fn numbers(store: &Store, name: &LogName, from: u64) -> Vec<u64> {
    let entries = store.reader(name).unwrap().entries(from).unwrap();
    entries
        .map(|entry| match entry.unwrap().payload {
            Payload::Json(json) => json.get().parse().unwrap(),
            Payload::Erased(_) => 0,
        })
        .collect()
}

fn segment(store: &Store, name: &LogName, number: u32) -> PathBuf {
    store.folder(name).join(format!("{number:06}.jsonl"))
}

fn append_raw(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

#[test]
fn a_log_is_written_read_and_found_again() {
    let (_folder, store, name) = store();
    assert!(matches!(
        store.take(&name, LockWait::IfFree),
        Err(Error::NotFound { .. })
    ));
    let writer = store.create(&name).unwrap();
    assert!(matches!(store.create(&name), Err(Error::Exists { .. })));
    write(&writer, 5);
    let blob = writer.put_blob(b"a picture").unwrap();
    assert_eq!(writer.put_blob(b"a picture").unwrap(), blob);
    writer
        .append(&[entry("test.many", "[1,\n 2]"), entry("test.last", "null")])
        .unwrap();
    drop(writer);

    let reader = store.reader(&name).unwrap();
    assert_eq!(reader.end().unwrap(), 7, "dropping the writer flushes");
    assert_eq!(reader.blob(&blob).unwrap(), b"a picture");
    let many = reader.last("test.many").unwrap().unwrap();
    assert_eq!(many.seq, 6);
    assert!(matches!(many.payload, Payload::Json(json) if json.get() == "[1,  2]"));
    assert_eq!(reader.last("test.number").unwrap().unwrap().seq, 5);
    assert!(reader.last("test.none").unwrap().is_none());
    assert_eq!(reader.entry(3).unwrap().unwrap().seq, 3);
    assert!(reader.entry(8).unwrap().is_none());
    assert!(reader.entry(0).unwrap().is_none());
    assert_eq!(store.names("runs").unwrap(), std::slice::from_ref(&name));
    assert_eq!(store.names("none").unwrap(), []);

    let (writer, recovery) = store.take(&name, LockWait::IfFree).unwrap();
    assert_eq!(recovery.set_aside, None);
    assert!(recovery.previous.is_some());
    assert_eq!(writer.next_seq(), 8);
    drop(writer);
    store.remove(&name).unwrap();
    assert!(!store.exists(&name));
    assert_eq!(store.sweep().unwrap(), 9, "the blob went with its last log");
}

#[test]
fn any_entry_of_a_long_log_is_found_from_any_end() {
    const BATCH: u64 = 700;
    let (_folder, store, name) = store();
    drop(store.create(&name).unwrap());
    for _ in 0..5 {
        // Every taking opens a segment that is long enough to be searched in.
        let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
        let from = writer.next_seq();
        let texts: Vec<String> = (from..from + BATCH)
            .map(|number| number.to_string())
            .collect();
        let batch: Vec<_> = texts
            .iter()
            .map(|text| entry("test.number", text))
            .collect();
        writer.append(&batch).unwrap();
    }
    let reader = store.reader(&name).unwrap();
    let end = 5 * BATCH;
    assert_eq!(reader.end().unwrap(), end);
    for seq in [1, 2, 699, 700, 701, 702, 1400, 1401, 2000, 3499, 3500] {
        assert_eq!(numbers(&store, &name, seq).first(), Some(&seq));
        let Payload::Json(json) = reader.entry(seq).unwrap().unwrap().payload else {
            panic!()
        };
        assert_eq!(json.get(), seq.to_string());
    }
    assert!(numbers(&store, &name, end + 1).is_empty());
    let back = reader
        .entries_back()
        .unwrap()
        .map(|entry| entry.unwrap().seq);
    assert!(back.eq((1..=end).rev()));
}

#[test]
fn what_is_refused_changes_nothing() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    let long = format!("\"{}\"", "x".repeat(8 << 20));
    let quite = format!("\"{}\"", "x".repeat(7 << 20));
    let good = || entry("test.good", "1");
    let wide = "x".repeat(65);
    let refused: [&[NewEntry<'_>]; 5] = [
        &[good(), entry("", "1")],
        &[good(), entry("Upper", "1")],
        &[good(), entry(&wide, "1")],
        &[good(), entry("test.long", &long)],
        &[(); 5].map(|()| entry("test.long", &quite)),
    ];
    for batch in refused {
        let error = writer.append(batch).unwrap_err();
        assert!(
            matches!(error, Error::BadKind { .. } | Error::TooLarge { .. }),
            "{error}"
        );
    }
    assert_eq!(writer.append(&[good()]).unwrap(), 1);
    assert_eq!(writer.append(&[entry("test.long", &quite)]).unwrap(), 2);
    writer.barrier_blocking().unwrap();
    assert_eq!(store.verify(&name).unwrap().entries, 2);
    assert_eq!(store.reader(&name).unwrap().end().unwrap(), 2);
    assert_eq!(
        store.reader(&name).unwrap().entries_back().unwrap().count(),
        2
    );
}

/// Creates a tail from the last batch of a log and from all of another log.
type MakeTail = fn(&[u8], &[u8]) -> Vec<u8>;

/// Covers the bytes that may stand behind the last entry after a crash.
#[test]
fn tails_are_set_aside_whatever_is_in_them() {
    let (_folder, store, other) = store();
    let writer = store.create(&other).unwrap();
    write(&writer, 3);
    drop(writer);
    let foreign = fs::read(segment(&store, &other, 1)).unwrap();

    let tails: [(&str, MakeTail); 9] = [
        ("nothing", |_, _| Vec::new()),
        ("NULs", |_, _| vec![0; 10_000]),
        ("NULs and a line", |own, _| [&[0; 700], own].concat()),
        ("half a record", |own, _| own[..own.len() / 2].to_vec()),
        ("half a character", |_, _| {
            b"{\"seq\":4,\"at\":1,\"mono\":1,\"kind\":\"\xc3".to_vec()
        }),
        ("the last batch again", |own, _| own.to_vec()),
        ("another log's lines", |_, foreign| foreign.to_vec()),
        ("a line without end", |_, _| vec![b'x'; 17 << 20]),
        ("a line without end and more", |own, _| {
            [&vec![b'x'; 17 << 20], b"\n".as_slice(), own].concat()
        }),
    ];
    for (number, (what, tail)) in tails.into_iter().enumerate() {
        let name = LogName::new("runs", &format!("t{number}")).unwrap();
        let writer = store.create(&name).unwrap();
        write(&writer, 3);
        drop(writer);
        let path = segment(&store, &name, 1);
        let own = fs::read(&path).unwrap();
        let last = own[..own.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap()
            + 1;
        let tail = tail(&own[last..], &foreign);
        append_raw(&path, &tail);

        let reader = store.reader(&name).unwrap();
        assert_eq!(reader.end().unwrap(), 3, "{what}");
        assert_eq!(numbers(&store, &name, 1), [1, 2, 3], "{what}");
        let expected = (!tail.is_empty()).then_some(SegmentTail {
            segment: 1,
            bytes: tail.len() as u64,
        });
        assert_eq!(store.verify(&name).unwrap().tail, expected, "{what}");
        let (writer, recovery) = store.take(&name, LockWait::IfFree).unwrap();
        assert_eq!(recovery.set_aside, expected, "{what}");
        assert_eq!(write(&writer, 2), 5);
        assert_eq!(numbers(&store, &name, 3), [3, 4, 5], "{what}");
        let back: Vec<u64> = reader
            .entries_back()
            .unwrap()
            .map(|entry| entry.unwrap().seq)
            .collect();
        assert_eq!(back, [5, 4, 3, 2, 1], "{what}");
        assert!(
            fs::read(&path).unwrap().ends_with(&tail),
            "the tail is never rewritten"
        );
    }
}

#[test]
fn damage_before_proof_is_corruption_and_behind_it_is_tail() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    write(&writer, 6);
    drop(writer);
    let path = segment(&store, &name, 1);
    let whole = fs::read(&path).unwrap();
    let lines: Vec<usize> = memchr::memchr_iter(b'\n', &whole).collect();
    for (line, seq) in lines.iter().zip(0..) {
        let mut damaged = whole.clone();
        damaged[line - 40] ^= 1;
        fs::write(&path, damaged).unwrap();
        let verified = store.verify(&name);
        let taken = store.take(&name, LockWait::IfFree);
        if seq == 6 {
            assert_eq!(
                verified.unwrap().entries,
                5,
                "nothing proves that 6 was on disk"
            );
            assert!(taken.unwrap().1.set_aside.is_some());
        } else {
            for error in [verified.err(), taken.err()] {
                let Some(Error::Corrupt { seq: found, .. }) = error else {
                    panic!("{error:?}")
                };
                assert_eq!(found, seq);
            }
        }
    }
}

#[test]
fn erased_payloads_are_gone_and_the_chain_holds() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    writer
        .append(&[
            entry("test.secret", r#""hunter2""#),
            entry("test.plain", "7"),
        ])
        .unwrap();
    writer.barrier_blocking().unwrap();
    assert!(matches!(store.erase(&name, &[1]), Err(Error::Held { .. })));
    drop(writer);
    let before = store.verify(&name).unwrap();
    assert!(matches!(
        store.erase(&name, &[1, 9]),
        Err(Error::NoSuchEntry { seq: 9, .. })
    ));
    assert_eq!(store.erase(&name, &[1]).unwrap(), 1);
    assert_eq!(store.erase(&name, &[1]).unwrap(), 0);
    let after = store.verify(&name).unwrap();
    assert_eq!(
        (after.head, after.entries, after.erased),
        (before.head, 2, 1)
    );
    for file in fs::read_dir(store.folder(&name)).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            assert!(
                !fs::read_to_string(&path).unwrap().contains("hunter2"),
                "{path:?}"
            );
        }
    }
}

#[test]
fn an_export_is_the_log_and_a_hostile_one_leaves_nothing() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    write(&writer, 4);
    let blob = writer.put_blob(&[7; 3000]).unwrap();
    writer.barrier_blocking().unwrap();
    let mut export = Vec::new();
    let none = store.export(&name, &|_| false, &mut export).unwrap();
    assert_eq!((none.entries, none.blobs, none.left_out), (4, 0, 1));
    export.clear();
    let exported = store.export(&name, &|_| true, &mut export).unwrap();
    assert_eq!(
        (exported.entries, exported.blobs, exported.left_out),
        (4, 1, 0)
    );
    assert_eq!(exported.bytes, export.len() as u64);
    assert!(matches!(
        store.import("runs", &mut export.as_slice()),
        Err(Error::Exists { .. })
    ));

    let (_elsewhere, other, _) = self::store();
    let replaced = |from: &str, to: &str| {
        let at = memchr::memmem::find(&export, from.as_bytes()).unwrap();
        [&export[..at], to.as_bytes(), &export[at + from.len()..]].concat()
    };
    let mut flipped = export.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    let hostile = [
        ("nothing", Vec::new()),
        ("cut", export[..export.len() - 10].to_vec()),
        ("cut in a blob", export[..export.len() - 1000].to_vec()),
        ("more", [export.as_slice(), b"more"].concat()),
        ("flipped", flipped),
        ("a way out", replaced("runs/a", "../../x")),
        ("an absolute way out", replaced("runs/a", "/etc/a")),
        ("another name", replaced("runs/a", "runs/b")),
        (
            "an endless part",
            replaced("\"bytes\":3000", "\"bytes\":18446744073709551615"),
        ),
        (
            "a longer part",
            replaced("\"bytes\":3000", "\"bytes\":3001"),
        ),
        (
            "a blob with a path",
            replaced(&blob.to_string(), "../../../../x"),
        ),
        ("an endless line", vec![b'{'; 100_000]),
    ];
    for (what, bytes) in hostile {
        let error = other.import("runs", &mut bytes.as_slice()).unwrap_err();
        assert!(
            matches!(error, Error::BadExport { .. } | Error::BadName { .. }),
            "{what}: {error}"
        );
        assert_eq!(other.names("runs").unwrap(), [], "{what}");
        let incoming = other.root().join(".incoming");
        let left = fs::read_dir(incoming).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{what} left something behind");
    }
    assert_eq!(other.import("runs", &mut export.as_slice()).unwrap(), name);
    assert_eq!(
        other.verify(&name).unwrap().head,
        store.verify(&name).unwrap().head
    );
    assert_eq!(other.reader(&name).unwrap().blob(&blob).unwrap(), [7; 3000]);
}

#[test]
fn blobs_are_shared_checked_and_dropped() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    let second = store.create(&LogName::new("runs", "b").unwrap()).unwrap();
    let blob = writer.put_blob(&[1; 100]).unwrap();
    writer.barrier_blocking().unwrap();
    assert_eq!(second.put_blob(&[1; 100]).unwrap(), blob);
    let file = store.folder(&name).join("blobs").join(blob.to_string());
    use std::os::unix::fs::MetadataExt;
    assert_eq!(
        fs::metadata(&file).unwrap().nlink(),
        3,
        "two logs and the shared store"
    );
    assert_eq!(store.sweep().unwrap(), 0);
    drop(writer);
    assert_eq!(store.drop_blobs(&name, &|id| *id == blob).unwrap(), 100);
    let reader = store.reader(&name).unwrap();
    assert!(matches!(reader.blob(&blob), Err(Error::BlobMissing { .. })));
    assert_eq!(second.blob(&blob).unwrap(), [1; 100]);

    let shared = store
        .root()
        .join("blobs")
        .join(&blob.to_string()[..2])
        .join(blob.to_string());
    fs::write(&shared, [2; 100]).unwrap();
    assert!(matches!(second.blob(&blob), Err(Error::BlobDamaged { .. })));
    let third = store.create(&LogName::new("runs", "c").unwrap()).unwrap();
    third.put_blob(&[1; 100]).unwrap();
    assert_eq!(
        third.blob(&blob).unwrap(),
        [1; 100],
        "a damaged copy is not relied on"
    );
}

#[test]
fn private_content_is_in_no_other_place() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    write(&writer, 1);
    let id = writer.put_private(b"hunter22").unwrap();
    assert_eq!(writer.put_private(b"hunter22").unwrap(), id);
    let reader = store.reader(&name).unwrap();
    assert_eq!(reader.private(&id).unwrap(), b"hunter22");
    assert!(matches!(reader.blob(&id), Err(Error::BlobMissing { .. })));
    assert_eq!(store.blob("runs", &id).unwrap(), None);
    let file = store.folder(&name).join("private").join(id.to_string());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    writer.barrier_blocking().unwrap();
    drop(writer);
    let mut export = Vec::new();
    store.export(&name, &|_| true, &mut export).unwrap();
    assert!(memchr::memmem::find(&export, b"hunter22").is_none());
    // The file is changed by another program.
    fs::write(&file, b"hunter23").unwrap();
    assert!(matches!(
        reader.private(&id),
        Err(Error::BlobDamaged { .. })
    ));
    assert_eq!(store.drop_private(&name).unwrap(), 8);
    assert!(matches!(
        reader.private(&id),
        Err(Error::BlobMissing { .. })
    ));
    assert_eq!(store.drop_private(&name).unwrap(), 0);
}

#[test]
fn messages_arrive_whoever_holds_the_log() {
    let (_folder, store, name) = store();
    assert!(matches!(store.inbox(&name), Err(Error::NotFound { .. })));
    let _writer = store.create(&name).unwrap();
    let inbox = store.inbox(&name).unwrap();
    let id = |number: u32| format!("01980000-0000-7000-8000-{number:012}");
    inbox.send(&id(2), "second").unwrap();
    inbox.send(&id(1), "first").unwrap();
    inbox.send(&id(1), "first").unwrap();
    assert!(matches!(
        inbox.send("../x", ""),
        Err(Error::BadMessageId { .. })
    ));
    let long = "x".repeat((1 << 20) + 1);
    assert!(matches!(
        inbox.send(&id(3), &long),
        Err(Error::TooLarge { .. })
    ));
    let expected = [(id(1), "first".to_owned()), (id(2), "second".to_owned())];
    assert_eq!(inbox.messages().unwrap(), expected);
    inbox.remove(&id(1)).unwrap();
    inbox.remove(&id(1)).unwrap();
    assert_eq!(inbox.messages().unwrap(), expected[1..]);

    for number in 10..1009 {
        let path = store
            .folder(&name)
            .join("inbox")
            .join(format!("{}.json", id(number)));
        fs::write(path, "{}").unwrap();
    }
    assert!(matches!(
        inbox.send(&id(5), ""),
        Err(Error::InboxFull { waiting: 1000, .. })
    ));
    inbox.send(&id(2), "second").unwrap();
}

#[test]
fn a_store_is_not_made_of_something_else_nor_of_the_future() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "").unwrap();
    assert!(matches!(
        Store::open(folder.path()),
        Err(Error::NotAStore { .. })
    ));

    let (_folder, store, name) = store();
    write(&store.create(&name).unwrap(), 2);
    fs::write(store.root().join("format"), "2\n").unwrap();
    let newer = Store::open(store.root()).unwrap();
    assert_eq!(numbers(&newer, &name, 1), [1, 2]);
    let refused = newer.take(&name, LockWait::IfFree).unwrap_err();
    assert!(
        matches!(refused, Error::NewerFormat { found: 2, .. }),
        "{refused}"
    );
    fs::write(store.root().join("format"), "two").unwrap();
    assert!(matches!(
        Store::open(store.root()),
        Err(Error::NotAStore { .. })
    ));
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(store.root()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the folder is for the user alone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn barriers_share_flushes_and_keep_order() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let writer = writer.clone();
            tokio::spawn(async move {
                let seq = writer
                    .append(&[entry("test.one", "1"), entry("test.two", "2")])
                    .unwrap();
                assert!(writer.barrier().await.unwrap() >= seq);
                assert!(*writer.durable().borrow() >= seq);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.verify(&name).unwrap().entries, 200);
    let text = fs::read_to_string(segment(&store, &name, 1)).unwrap();
    let batches = text.matches(",\"prev\":").count();
    assert!(batches < 100, "{batches} batches for 100 barriers");
}

#[tokio::test]
async fn entries_that_nobody_waits_for_are_flushed_and_followed() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    let mut follower = store.reader(&name).unwrap().follow(2).unwrap();
    let mut durable = writer.durable();
    for number in ["1", "2", "3"] {
        writer.append(&[entry("test.number", number)]).unwrap();
    }
    let flushed = async { durable.wait_for(|seq| *seq == 3).await.map(drop) };
    tokio::time::timeout(LONG, flushed)
        .await
        .expect("the timer flushes")
        .unwrap();
    for seq in [2, 3] {
        assert_eq!(follower.next().await.unwrap().seq, seq);
    }
    let cut_off = tokio::time::timeout(Duration::from_millis(1), follower.next()).await;
    assert!(cut_off.is_err(), "there is nothing more yet");
    drop(writer);
    // The follower continues into the segment of the next holder.
    let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
    writer.append(&[entry("test.number", "4")]).unwrap();
    let next = tokio::time::timeout(LONG, follower.next())
        .await
        .expect("it is woken");
    assert_eq!(next.unwrap().seq, 4);
    // The follower may have put it on disk itself, before the writer's own flush ended.
    writer.barrier().await.unwrap();
    drop(writer);
    store.remove(&name).unwrap();
    let gone = tokio::time::timeout(LONG, follower.next())
        .await
        .expect("it is told");
    assert!(matches!(gone, Err(Error::NotFound { .. })));
}

/// Another process took the log, appended its last entry and finished it, all before the follower
/// was served.
#[tokio::test]
async fn what_is_finished_in_another_segment_is_followed_to_its_end() {
    let (_folder, store, name) = store();
    let writer = store.create(&name).unwrap();
    write(&writer, 3);
    drop(writer);
    // Another store: its writers do not tell this one how far they are.
    let follows = Store::open(store.root()).unwrap();
    let mut follower = follows.reader(&name).unwrap().follow(3).unwrap();
    assert_eq!(follower.next().await.unwrap().seq, 3);
    let cut_off = tokio::time::timeout(Duration::from_millis(1), follower.next()).await;
    assert!(cut_off.is_err(), "there is nothing more yet");
    let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
    write(&writer, 1);
    writer.seal().await.unwrap();
    drop(writer);
    let next = tokio::time::timeout(LONG, follower.next()).await.unwrap();
    assert_eq!(next.unwrap().seq, 4);
}

#[tokio::test]
async fn a_thousand_inboxes_are_watched_at_once() {
    let (_folder, store, name) = store();
    let _writer = store.create(&name).unwrap();
    let inbox = Arc::new(store.inbox(&name).unwrap());
    let mut watches: Vec<_> = (0..1000).map(|_| inbox.watch().unwrap()).collect();
    inbox
        .send("01980000-0000-7000-8000-000000000001", "wake up")
        .unwrap();
    for watch in &mut watches {
        tokio::time::timeout(LONG, watch.changed())
            .await
            .expect("it is woken");
    }
    drop(watches);
    let mut again = inbox.watch().unwrap();
    inbox
        .send("01980000-0000-7000-8000-000000000002", "wake up")
        .unwrap();
    tokio::time::timeout(LONG, again.changed())
        .await
        .expect("watching anew works");
}

/// Writes a log of three segments with two entries each and two blobs, and finishes it.
fn finished(store: &Store, name: &LogName) {
    drop(store.create(name).unwrap());
    for _ in 0..2 {
        let (writer, _) = store.take(name, LockWait::IfFree).unwrap();
        write(&writer, 3);
        writer.put_blob(&[1; 100]).unwrap();
        writer.put_blob(&[2; 100]).unwrap();
        writer.barrier_blocking().unwrap();
        if writer.next_seq() == 7 {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            runtime.block_on(writer.seal()).unwrap();
        }
    }
}

#[test]
fn a_finished_log_knows_what_it_had() {
    let (_folder, store, name) = store();
    finished(&store, &name);
    let verified = store.verify(&name).unwrap();
    assert_eq!(
        (verified.entries, verified.blobs, verified.is_sealed),
        (6, 2, true)
    );
    let dropped = gyrus_contract::BlobId::of(&[1; 100]);
    let mut export = Vec::new();
    store
        .export(&name, &|id| *id != dropped, &mut export)
        .unwrap();
    store.drop_blobs(&name, &|id| *id == dropped).unwrap();
    assert_eq!(store.verify(&name).unwrap().blobs, 1, "dropped, not lost");
    let (_elsewhere, other, _) = self::store();
    other.import("runs", &mut export.as_slice()).unwrap();
    assert_eq!(
        other.verify(&name).unwrap(),
        store.verify(&name).unwrap(),
        "an import is as finished as what was exported"
    );
}

#[test]
fn what_a_finished_log_lost_is_found() {
    fn flip(path: &Path, from_end: usize) {
        let mut bytes = fs::read(path).unwrap();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    fn cut_off_a_line(path: &Path) {
        let bytes = fs::read(path).unwrap();
        let line = memchr::memrchr(b'\n', &bytes[..bytes.len() - 1]).unwrap();
        fs::write(path, &bytes[..=line]).unwrap();
    }
    // With the first entry that cannot be read, if there is one.
    type Case = (&'static str, fn(&Path), Option<u64>);
    let cases: [Case; 9] = [
        (
            "000002.jsonl",
            |path| fs::remove_file(path).unwrap(),
            Some(1),
        ),
        (
            "000003.jsonl",
            |path| fs::remove_file(path).unwrap(),
            Some(4),
        ),
        ("000003.jsonl", |path| flip(path, 50), Some(6)),
        ("000003.jsonl", cut_off_a_line, Some(6)),
        ("blobs", |path| remove_one(path), None),
        ("blobs", |path| flip(&any_file(path), 7), None),
        ("sealed", |path| flip(path, 50), None),
        ("sealed", |path| fs::write(path, "").unwrap(), None),
        ("sealed", |path| fs::write(path, "{}\n").unwrap(), None),
    ];
    fn any_file(folder: &Path) -> PathBuf {
        let mut files = fs::read_dir(folder).unwrap();
        files.next().unwrap().unwrap().path()
    }
    fn remove_one(folder: &Path) {
        fs::remove_file(any_file(folder)).unwrap();
    }
    for (number, (file, damage, lost)) in cases.into_iter().enumerate() {
        let (_folder, store, name) = store();
        finished(&store, &name);
        damage(&store.folder(&name).join(file));
        let what = format!("case {number}: {file}");
        let mut export = Vec::new();
        let exported = store.export(&name, &|_| true, &mut export);
        assert!(exported.is_err() && export.is_empty(), "{what}");
        let error = store.verify(&name).unwrap_err();
        let Some(lost) = lost else {
            assert!(!matches!(error, Error::Corrupt { .. }), "{what}: {error}");
            continue;
        };
        let taken = store.take(&name, LockWait::IfFree).unwrap_err();
        let read: Vec<_> = store.reader(&name).unwrap().entries(1).unwrap().collect();
        assert_eq!(read.len() as u64, lost, "{what}: {read:?}");
        let read = read.into_iter().next_back().unwrap().unwrap_err();
        let found = |error: &Error| match error {
            Error::Corrupt { seq, .. } => *seq,
            _ => panic!("{what}: {error}"),
        };
        assert_eq!((found(&error), found(&read)), (lost, lost), "{what}");
        assert!(matches!(taken, Error::Corrupt { .. }), "{what}: {taken}");
    }
}

#[test]
fn a_log_that_lost_a_segment_is_damaged_also_while_it_is_unfinished() {
    let (_folder, store, name) = store();
    drop(store.create(&name).unwrap());
    for _ in 0..3 {
        let (writer, _) = store.take(&name, LockWait::IfFree).unwrap();
        write(&writer, 2);
    }
    fs::remove_file(segment(&store, &name, 3)).unwrap();
    let error = store.verify(&name).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Corrupt {
                segment: 3,
                seq: 3,
                ..
            }
        ),
        "{error}"
    );
}
