//! Logs that a store began, and logs that came to it from elsewhere.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use gyrus_journal::{Birth, Error, LockWait, LogName, NewEntry, Store};
use serde_json::value::RawValue;
use tempfile::TempDir;

fn name(id: &str) -> LogName {
    LogName::new("runs", id).unwrap()
}

fn store() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("journal");
    (folder, root)
}

/// A log that a process left.
fn begin(root: &Path, id: &str) {
    let store = Store::open(root).unwrap();
    let payload = RawValue::from_string("{}".to_owned()).unwrap();
    let entry = NewEntry {
        kind: "k",
        version: 1,
        payload,
    };
    let new = store.prepare(&name(id)).unwrap();
    drop(new.publish(&[entry]).unwrap());
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn birth(root: &Path, id: &str) -> Birth {
    let store = Store::open(root).unwrap();
    let birth = store.birth(&name(id));
    let taken = store.take(&name(id), LockWait::IfFree);
    match taken {
        Ok(_) => assert_ne!(birth, Birth::Elsewhere),
        Err(Error::BornElsewhere { .. } | Error::CopiedStore { .. }) => {
            assert_eq!(birth, Birth::Elsewhere);
        }
        Err(error) => panic!("{error}"),
    }
    // It can be read, whatever it is.
    store.verify(&name(id)).unwrap();
    birth
}

/// Takes the marks away that an earlier version did not write.
fn unmark(root: &Path, ids: &[&str]) {
    let _ = fs::remove_file(root.join("identity"));
    for id in ids {
        fs::remove_file(root.join("runs").join(id).join("born")).unwrap();
    }
}

/// A log that an earlier version wrote, years ago.
const OLD: &str = "01a200bc-d480-72b8-b5c0-99583749d19e";

/// Puts the old log into a store as somebody does who copies its folder.
fn copy_old(root: &Path) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/fixtures");
    fs::create_dir_all(root.join("runs")).unwrap();
    copy(
        &fixtures.join("ledger-1/runs").join(OLD),
        &root.join("runs").join(OLD),
    );
    fs::create_dir(root.join("runs").join(OLD).join("inbox")).unwrap();
    fs::write(root.join("format"), "1\n").unwrap();
}

#[test]
fn a_log_is_born_where_it_was_begun() {
    let ((_a, a), (_b, b)) = (store(), store());
    for root in [&a, &b] {
        begin(root, "own");
    }
    begin(&a, "other");
    assert_eq!(birth(&a, "own"), Birth::Here);

    // By an export, also of a log of this very store; only of the kind that is wanted.
    let store = Store::open(&a).unwrap();
    let mut export = Vec::new();
    store.export(&name("own"), &|_| true, &mut export).unwrap();
    store.remove(&name("own")).unwrap();
    let wrong = store.import("grants", &mut export.as_slice()).unwrap_err();
    assert!(wrong.to_string().contains("only grants"), "{wrong}");
    store.import("runs", &mut export.as_slice()).unwrap();
    assert_eq!(birth(&a, "own"), Birth::Elsewhere);
    // What is a copy of something that is written elsewhere is not made of it.
    assert!(matches!(
        store.mirror(&name("own")),
        Err(Error::BornElsewhere { .. })
    ));

    // By a copy of its folder from another store, with its mark, without it, or with another's.
    copy(&a.join("runs/other"), &b.join("runs/other"));
    assert_eq!(birth(&b, "other"), Birth::Elsewhere);
    fs::copy(b.join("runs/own/born"), b.join("runs/other/born")).unwrap();
    assert_eq!(birth(&b, "other"), Birth::Elsewhere);
    fs::remove_file(b.join("runs/other/born")).unwrap();
    assert_eq!(birth(&b, "other"), Birth::Elsewhere);

    // By a copy of a folder of the store's own that was somewhere else meanwhile.
    let away = a.with_file_name("away");
    copy(&a.join("runs/other"), &away);
    fs::remove_dir_all(a.join("runs/other")).unwrap();
    copy(&away, &a.join("runs/other"));
    assert_eq!(birth(&a, "other"), Birth::Elsewhere);
}

#[test]
fn a_copied_store_begins_nothing_until_it_is_adopted() {
    let (_folder, a) = store();
    begin(&a, "own");
    begin(&a, "gone");
    let store = Store::open(&a).unwrap();
    let mut export = Vec::new();
    store.export(&name("gone"), &|_| true, &mut export).unwrap();
    store.remove(&name("gone")).unwrap();
    store.import("runs", &mut export.as_slice()).unwrap();
    let b = a.with_file_name("b");
    copy(&a, &b);
    let store = Store::open(&b).unwrap();
    assert!(store.is_copied());
    assert_eq!(birth(&b, "own"), Birth::Elsewhere);
    assert!(matches!(
        store.prepare(&name("new")),
        Err(Error::CopiedStore { .. })
    ));
    store.adopt().unwrap();
    assert!(!Store::open(&b).unwrap().is_copied());
    begin(&b, "new");
    for (id, born) in [
        ("new", Birth::Here),
        ("own", Birth::Here),
        // What had come from elsewhere has, still.
        ("gone", Birth::Unproven),
    ] {
        assert_eq!(birth(&b, id), born, "{id}");
    }
    // In a copy without logs there is nothing that could act.
    let (_empty, empty) = self::store();
    drop(Store::open(&empty).unwrap());
    let c = a.with_file_name("c");
    copy(&empty, &c);
    begin(&c, "own");
    assert_eq!(birth(&c, "own"), Birth::Here);
    // Moving it on the same disk changes nothing.
    let moved = a.with_file_name("moved");
    fs::rename(&a, &moved).unwrap();
    assert_eq!(birth(&moved, "own"), Birth::Here);
}

#[test]
fn logs_of_an_earlier_version_are_the_stores_own_unless_they_were_copied() {
    let ((_a, a), (_b, b), (_c, c)) = (store(), store(), store());
    begin(&a, "own");
    copy_old(&a);
    unmark(&a, &["own"]);
    assert_eq!(birth(&a, "own"), Birth::Here);
    assert_eq!(birth(&a, OLD), Birth::Unproven);
    // Whatever comes without a mark from now on comes from elsewhere.
    begin(&b, "own");
    copy_old(&b);
    assert_eq!(birth(&b, OLD), Birth::Elsewhere);
    // A store in which nothing was begun is a copy.
    copy_old(&c);
    let store = Store::open(&c).unwrap();
    assert!(store.is_copied());
    store.adopt().unwrap();
    assert_eq!(birth(&c, OLD), Birth::Unproven);
}
