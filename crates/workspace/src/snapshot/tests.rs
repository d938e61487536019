use std::{
    cell::RefCell,
    collections::HashMap,
    convert::Infallible,
    ffi::OsStr,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink, net::UnixListener},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use gyrus_contract::BlobId;
use serde_json::{Value, json};

use crate::{ContentStore, Secrecy};

use super::{
    ChangeSinceSnapshot, Difference, MAX_DELTAS, MAX_ENTRIES, MAX_FILE_BYTES, SnapshotError,
    SnapshotResult, Snapshots, differences, materialise,
};

/// A blob store in memory that counts its blobs.
#[derive(Default)]
struct Store {
    blobs: RefCell<HashMap<BlobId, Vec<u8>>>,
    puts: RefCell<usize>,
}

impl Store {
    fn put(&self, bytes: &[u8]) -> Result<BlobId, Infallible> {
        let id = BlobId::of(bytes);
        self.blobs.borrow_mut().insert(id, bytes.to_vec());
        *self.puts.borrow_mut() += 1;
        Ok(id)
    }

    fn load(&self, id: &BlobId) -> Result<Vec<u8>, io::Error> {
        let missing = || io::Error::other(format!("no blob {id}"));
        self.blobs.borrow().get(id).cloned().ok_or_else(missing)
    }

    fn json(&self, id: &BlobId) -> Value {
        serde_json::from_slice(&self.load(id).unwrap()).unwrap()
    }

    fn take(&self, snapshots: &mut Snapshots) -> SnapshotResult {
        snapshots
            .take(&mut Puts(|bytes: &[u8]| self.put(bytes)))
            .unwrap()
    }

    fn new_one(&self, snapshots: &mut Snapshots) -> BlobId {
        match self.take(snapshots) {
            SnapshotResult::New(id) => id,
            other => panic!("not new: {other:?}"),
        }
    }

    fn materialise(&self, id: &BlobId, into: &Path) -> Result<(), SnapshotError<io::Error>> {
        materialise(id, |id| self.load(id), into).map(|left_out| assert_eq!(left_out, [""; 0]))
    }

    fn differences(&self, id: &BlobId, folder: &Path) -> Vec<(String, ChangeSinceSnapshot)> {
        differences(id, |id| self.load(id), folder)
            .unwrap()
            .into_iter()
            .map(|Difference { path, change }| (path, change))
            .collect()
    }
}

struct Open;

impl Secrecy for Open {
    fn is_secret(&self, _: &Path, _: &[u8]) -> bool {
        false
    }
}

/// A store without secrets.
struct Puts<P>(P);

impl<E, P: FnMut(&[u8]) -> Result<BlobId, E>> ContentStore for Puts<P> {
    type Error = E;

    fn secrecy(&self) -> &dyn Secrecy {
        &Open
    }

    fn put(&mut self, bytes: &[u8]) -> Result<BlobId, E> {
        self.0(bytes)
    }

    fn put_apart(&mut self, bytes: &[u8]) -> Result<BlobId, E> {
        self.0(bytes)
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Returns one line for every entry below a folder, so that two folders can be compared.
fn describe(folder: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(root).unwrap();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_symlink() {
                lines.push(format!("{below:?} -> {:?}", fs::read_link(&path).unwrap()));
            } else if metadata.is_dir() {
                lines.push(format!("{below:?}/"));
                walk(root, &path, lines);
            } else {
                let executable = metadata.permissions().mode() & 0o100 != 0;
                let content = fs::read(&path).unwrap();
                lines.push(format!("{below:?} {executable} {:?}", BlobId::of(&content)));
            }
        }
    }
    let mut lines = Vec::new();
    walk(folder, folder, &mut lines);
    lines.sort();
    lines
}

fn varied_tree() -> tempfile::TempDir {
    let tree = folder();
    let at = |path: &str| tree.path().join(path);
    fs::create_dir_all(at("src/deep/er")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::write(at("src/deep/er/a.txt"), "text").unwrap();
    fs::write(at("src-sorted-before-slash"), "").unwrap();
    fs::write(at("src/run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at("src/run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(at("binary"), [0, 255, 10, 13]).unwrap();
    fs::write(at("big"), vec![7; 3 << 20]).unwrap();
    for name in [
        &b"not\xffutf8"[..],
        b"back\\slash",
        b"\\x41",
        "é\n⟦".as_bytes(),
        b"-rf",
        b" ",
    ] {
        fs::write(tree.path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    symlink("src/run.sh", at("link")).unwrap();
    symlink("/etc", at("outside")).unwrap();
    symlink(OsStr::from_bytes(b"no\xffwhere"), at("src/dangling")).unwrap();
    tree
}

#[test]
fn a_varied_tree_comes_back_as_it_was() {
    let (tree, store, target) = (varied_tree(), Store::default(), folder());
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let id = store.new_one(&mut snapshots);
    assert_eq!(store.differences(&id, tree.path()), []);
    let new = target.path().join("new");
    store.materialise(&id, &new).unwrap();
    assert_eq!(describe(&new), describe(tree.path()));
    assert_eq!(store.differences(&id, &new), []);
    // An empty folder serves as well, a full one is left alone.
    let empty = target.path().join("empty");
    fs::create_dir(&empty).unwrap();
    store.materialise(&id, &empty).unwrap();
    let error = store.materialise(&id, &empty).unwrap_err();
    assert!(matches!(error, SnapshotError::NotEmpty { .. }), "{error}");
    assert_eq!(describe(&empty), describe(tree.path()));
}

#[test]
fn what_is_no_file_is_named_and_skipped() {
    let (tree, store, target) = (folder(), Store::default(), folder());
    let at = |path: &str| tree.path().join(path);
    fs::write(at("kept"), "kept").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let id = store.new_one(&mut snapshots);
    let skipped = json!({"kind": "skipped", "why": "special"});
    assert_eq!(store.json(&id)["entries"]["pipe"], skipped);
    assert_eq!(store.json(&id)["entries"]["socket"], skipped);
    assert_eq!(store.differences(&id, tree.path()), []);
    store.materialise(&id, &target.path().join("new")).unwrap();
    assert_eq!(describe(&target.path().join("new")).len(), 1);
}

#[test]
fn unreadable_files_and_folders_are_named_and_skipped() {
    if rustix::process::geteuid().is_root() {
        return; // Nothing is unreadable to root.
    }
    let (tree, store) = (folder(), Store::default());
    let at = |path: &str| tree.path().join(path);
    fs::write(at("closed"), "x").unwrap();
    fs::create_dir(at("shut")).unwrap();
    for path in ["closed", "shut"] {
        fs::set_permissions(at(path), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let id = store.new_one(&mut Snapshots::new(tree.path().into(), None));
    fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o700)).unwrap();
    for path in ["closed", "shut"] {
        assert_eq!(store.json(&id)["entries"][path]["why"], "unreadable");
    }
}

#[test]
fn a_delta_is_as_large_as_the_change_and_reads_nothing_else() {
    let (tree, store) = (folder(), Store::default());
    let at = |path: &str| tree.path().join(path);
    fs::create_dir(at("many")).unwrap();
    for number in 0..500 {
        fs::write(at(&format!("many/{number}")), number.to_string()).unwrap();
    }
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let full = store.new_one(&mut snapshots);
    // Files are read again until they are old enough for their stamps to be reliable.
    loop {
        *store.puts.borrow_mut() = 0;
        assert_eq!(store.take(&mut snapshots), SnapshotResult::Same(full));
        assert_eq!(
            *store.puts.borrow(),
            0,
            "what is stored is not stored again"
        );
        if snapshots.files_read() == 0 {
            break;
        }
    }
    fs::write(at("many/7"), "changed").unwrap();
    fs::remove_file(at("many/8")).unwrap();
    symlink("7", at("many/9000")).unwrap();
    let delta = store.new_one(&mut snapshots);
    assert_eq!(snapshots.files_read(), 1);
    assert_eq!(*store.puts.borrow(), 2, "one file and the snapshot itself");
    assert!(store.load(&full).unwrap().len() > 50_000);
    assert!(
        store.load(&delta).unwrap().len() < 500,
        "{}",
        store.json(&delta)
    );
    assert_eq!(store.json(&delta)["parent"], json!(full));
    assert_eq!(store.differences(&delta, tree.path()), []);
    let since = [
        ("many/7".to_owned(), ChangeSinceSnapshot::Changed),
        ("many/8".to_owned(), ChangeSinceSnapshot::Removed),
        ("many/9000".to_owned(), ChangeSinceSnapshot::Added),
    ];
    assert_eq!(store.differences(&full, tree.path()), since);
}

#[test]
fn an_edit_of_the_same_size_within_one_tick_of_the_clock_is_seen() {
    let (tree, store) = (folder(), Store::default());
    let file = tree.path().join("file");
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    for round in 0..300 {
        fs::write(&file, format!("{round:03}")).unwrap();
        let id = store.new_one(&mut snapshots);
        let blob = store.json(&id)["entries"]["file"]["blob"].clone();
        assert_eq!(blob, json!(BlobId::of(format!("{round:03}").as_bytes())));
    }
}

#[test]
fn a_file_that_is_not_older_than_its_reading_is_read_again() {
    let (tree, store) = (folder(), Store::default());
    let path = tree.path().join("file");
    fs::write(&path, "one").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(later)
        .unwrap();
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let id = store.new_one(&mut snapshots);
    assert_eq!(store.take(&mut snapshots), SnapshotResult::Same(id));
    assert_eq!(snapshots.files_read(), 1);
}

#[test]
fn an_edit_that_puts_the_time_back_is_seen() {
    let (tree, store) = (folder(), Store::default());
    let path = tree.path().join("file");
    fs::write(&path, "one").unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let set_back = || {
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap()
    };
    set_back();
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    store.new_one(&mut snapshots);
    loop {
        store.take(&mut snapshots);
        if snapshots.files_read() == 0 {
            break;
        }
    }
    fs::write(&path, "two").unwrap();
    set_back();
    store.new_one(&mut snapshots);
}

#[test]
fn a_full_snapshot_comes_at_least_every_fifty_deltas() {
    let (tree, store) = (folder(), Store::default());
    fs::write(tree.path().join("still"), "").unwrap();
    fs::write(tree.path().join("other"), "").unwrap();
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let mut since_full = 0;
    for round in 0..(2 * MAX_DELTAS + 5) {
        fs::write(tree.path().join("file"), round.to_string()).unwrap();
        let id = store.new_one(&mut snapshots);
        since_full = if store.json(&id)["parent"].is_null() {
            0
        } else {
            since_full + 1
        };
        assert!(since_full <= MAX_DELTAS);
        assert_eq!(store.differences(&id, tree.path()), []);
    }
    assert_eq!(since_full, 2 * MAX_DELTAS + 5 - 1 - 2 * (MAX_DELTAS + 1));
}

#[test]
fn a_new_process_recognises_an_unchanged_workspace() {
    let (tree, store) = (varied_tree(), Store::default());
    let id = store.new_one(&mut Snapshots::new(tree.path().into(), None));
    let mut later = Snapshots::new(tree.path().into(), Some(id));
    assert_eq!(store.take(&mut later), SnapshotResult::Same(id));
    fs::write(tree.path().join("more"), "").unwrap();
    let delta = store.new_one(&mut later);
    assert_eq!(store.json(&delta)["parent"], json!(id));
}

#[test]
fn a_workspace_over_the_limits_has_no_snapshot() {
    let (tree, store) = (folder(), Store::default());
    fs::write(tree.path().join("small"), "x").unwrap();
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let id = store.new_one(&mut snapshots);
    let huge = tree.path().join("huge");
    for bytes in [MAX_FILE_BYTES + 1, 1 << 40] {
        fs::File::create(&huge).unwrap().set_len(bytes).unwrap();
        assert!(matches!(
            store.take(&mut snapshots),
            SnapshotResult::TooLarge { .. }
        ));
        let error = differences(&id, |id| store.load(id), tree.path()).unwrap_err();
        assert!(matches!(error, SnapshotError::TooLarge { .. }), "{error}");
    }
    // Back within the limits, nothing has been forgotten.
    fs::remove_file(&huge).unwrap();
    assert_eq!(store.take(&mut snapshots), SnapshotResult::Same(id));
    for number in 0..=MAX_ENTRIES {
        symlink("x", tree.path().join(format!("link{number}"))).unwrap();
    }
    let SnapshotResult::TooLarge { files, .. } = store.take(&mut snapshots) else {
        panic!("not too large")
    };
    assert_eq!(files, MAX_ENTRIES + 1);
}

#[test]
fn a_store_that_fails_loses_nothing() {
    let (tree, store, target) = (folder(), Store::default(), folder());
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    fs::write(tree.path().join("a"), "a").unwrap();
    let first = store.new_one(&mut snapshots);
    fs::write(tree.path().join("b"), "b").unwrap();
    for fail_at in 0..2 {
        let mut calls = 0;
        let failed = snapshots.take(&mut Puts(|bytes: &[u8]| {
            calls += 1;
            if calls > fail_at {
                Err("disk full")
            } else {
                Ok(store.put(bytes).unwrap())
            }
        }));
        assert!(matches!(failed, Err(SnapshotError::Store("disk full"))));
    }
    let second = store.new_one(&mut snapshots);
    assert_eq!(store.differences(&second, tree.path()), []);
    assert_eq!(
        store.differences(&first, tree.path()),
        [("b".to_owned(), ChangeSinceSnapshot::Added)]
    );
    // A blob that is gone leaves no half of a folder.
    store.blobs.borrow_mut().remove(&BlobId::of(b"b"));
    let into = target.path().join("new");
    assert!(store.materialise(&second, &into).is_err());
    assert!(!into.exists());
    fs::create_dir(&into).unwrap();
    assert!(store.materialise(&second, &into).is_err());
    assert_eq!(describe(&into), [""; 0]);
}

#[test]
fn a_hostile_snapshot_is_refused_before_anything_is_written() {
    let (store, target) = (Store::default(), folder());
    let blob = store.put(b"evil").unwrap();
    let file = json!({"kind": "file", "blob": blob, "bytes": 4});
    let at = |path: &str| json!({"version": 1, "entries": {path: file}});
    let packed =
        |pack: u32, at: u32| json!({"kind": "file", "blob": blob, "bytes": 4, "in": [pack, at]});
    let itself = BlobId::of(b"itself");
    let cases = [
        (at("../evil"), "leaves the folder"),
        (at("/evil"), "leaves the folder"),
        (at("a/../../evil"), "leaves the folder"),
        (at("./evil"), "leaves the folder"),
        (at("a//evil"), "leaves the folder"),
        (at(""), "leaves the folder"),
        (at("evil/"), "leaves the folder"),
        (at("nul\u{0}"), "leaves the folder"),
        (at("\\x2e\\x2e/evil"), "escaped"),
        (at("a\\x2fb"), "escaped"),
        (at("\\"), "escaped"),
        (at("a/evil"), "does not lie in a folder"),
        (
            json!({"version": 1, "entries": {"a": {"kind": "link", "target": ".."}, "a/evil": file}}),
            "does not lie in a folder",
        ),
        (
            json!({"version": 1, "entries": {"a": file, "a/evil": file}}),
            "does not lie in a folder",
        ),
        (
            json!({"version": 1, "entries": {"a": {"kind": "link", "target": ""}}}),
            "no possible target",
        ),
        (
            json!({"version": 1, "entries": {"a": {"kind": "file", "blob": blob, "bytes": 5}}}),
            "not as long",
        ),
        (
            json!({"version": 1, "entries": {"a": {"kind": "file", "blob": blob, "bytes": 1_u64 << 60}}}),
            "larger than",
        ),
        (json!({"version": 5, "entries": {}}), "version 5"),
        (
            json!({"version": 3, "packs": [blob], "entries": {"a": packed(1, 0)}}),
            "no pack 1",
        ),
        (
            json!({"version": 3, "packs": [blob], "entries": {"a": packed(0, 1)}}),
            "not where it says",
        ),
        (
            json!({"version": 3, "packs": [blob], "entries": {"a": packed(0, u32::MAX)}}),
            "not where it says",
        ),
        (
            json!({"version": 1, "entries": {}, "parent": itself}),
            "more than 50 deltas",
        ),
        (
            json!({"version": 1, "entries": {"a": {"kind": "device"}}}),
            "not a snapshot",
        ),
        (
            json!({"version": 1, "entries": {}, "run": "sh"}),
            "not a snapshot",
        ),
        (json!([]), "not a snapshot"),
    ];
    for (manifest, words) in cases {
        let into = target.path().join("new");
        let bytes = serde_json::to_vec(&manifest).unwrap();
        let load = |id: &BlobId| {
            if *id == itself {
                Ok(bytes.clone())
            } else {
                store.load(id)
            }
        };
        let error = materialise(&itself, load, &into).unwrap_err().to_string();
        assert!(error.contains(words), "{manifest}: {error}");
        assert!(!into.exists(), "{manifest}");
        assert_eq!(describe(target.path()), [""; 0], "{manifest}");
    }
}

#[test]
fn only_build_output_that_git_does_without_is_left_out() {
    // A folder, what lies beside or in it, what `.gitignore` says, what git keeps: left out?
    let cases: [(&str, &str, &str, &str, bool); 14] = [
        ("target", "Cargo.toml", "target/", "", true),
        ("target", "target/CACHEDIR.TAG", "target", "", true),
        ("target", "README.md", "target/", "", false),
        ("target", "Cargo.toml", "", "", false),
        ("target", "Cargo.toml", "target/\n!target", "", false),
        ("target", "Cargo.toml", "target/*", "", false),
        ("target", "Cargo.toml", "target/", "target/kept", false),
        ("a/node_modules", "a/package.json", "node_modules", "", true),
        (
            "a/node_modules",
            "a/package.json",
            "/node_modules",
            "",
            false,
        ),
        ("a/b/__pycache__", "x", "a/", "", true),
        ("dist", "package.json", "dist", "src/dist/x", true),
        ("dist", "package.json", "dist", "dist/x", false),
        (".venv", ".venv/pyvenv.cfg", ".venv", "", true),
        ("secrets", "Cargo.toml", "secrets/", "", false),
    ];
    for (folder_name, marker, ignored, tracked, left_out) in cases {
        let (tree, store) = (folder(), Store::default());
        let at = |path: &str| tree.path().join(path);
        for path in [folder_name, ".git"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at(marker), "").unwrap();
        fs::write(at(folder_name).join("inside"), "x").unwrap();
        fs::write(at(".gitignore"), format!("{ignored}\n.env\n")).unwrap();
        fs::write(at(".env"), "KEY").unwrap();
        fs::write(at(".git/index"), index_of(tracked)).unwrap();
        let case = (folder_name, marker, ignored, tracked);
        let mut snapshots = Snapshots::new(tree.path().into(), None);
        let id = store.new_one(&mut snapshots);
        let entries = store.json(&id)["entries"].clone();
        assert_eq!(
            entries[folder_name]["why"] == "rebuildable",
            left_out,
            "{case:?}"
        );
        assert_eq!(entries[".env"]["kind"], "file", "{case:?}");
        let inside = format!("{folder_name}/inside");
        assert_eq!(entries[&inside].is_null(), left_out, "{case:?}");
        assert_eq!(store.differences(&id, tree.path()), [], "{case:?}");
        // Later rules do not change the decision.
        fs::write(at(".gitignore"), if left_out { "" } else { folder_name }).unwrap();
        fs::write(at(".git/index"), index_of("")).unwrap();
        snapshots.since(&id, |id| store.load(id)).unwrap();
        let later = store.new_one(&mut snapshots);
        let changed = &store.json(&later)["entries"][folder_name];
        assert!(changed.is_null(), "{case:?}: {changed}");
    }
}

/// Creates a folder with files of all sizes, enough to fill several packs.
fn large_tree() -> tempfile::TempDir {
    let tree = folder();
    for number in 0..600_usize {
        let inside = tree.path().join(format!("folder{}", number % 7));
        fs::create_dir_all(&inside).unwrap();
        let byte = u8::try_from(number % 251).unwrap();
        let content = [&number.to_le_bytes()[..], &vec![byte; number * 17]].concat();
        fs::write(inside.join(number.to_string()), content).unwrap();
    }
    fs::write(tree.path().join("large"), vec![3; 2 << 20]).unwrap();
    fs::write(tree.path().join("empty"), "").unwrap();
    fs::write(tree.path().join("empty too"), "").unwrap();
    fs::copy(tree.path().join("folder1/533"), tree.path().join("copy")).unwrap();
    tree
}

#[test]
fn many_files_are_few_blobs_and_one_change_leaves_most_of_them() {
    let (tree, store, target) = (large_tree(), Store::default(), folder());
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let first = store.new_one(&mut snapshots);
    let packs = |id: &BlobId| store.json(id)["packs"].as_array().unwrap().clone();
    let before = packs(&first);
    assert!((3..=8).contains(&before.len()), "{before:?}");
    assert_eq!(*store.puts.borrow(), before.len() + 2, "and one file alone");
    store
        .materialise(&first, &target.path().join("first"))
        .unwrap();
    assert_eq!(
        describe(&target.path().join("first")),
        describe(tree.path())
    );

    fs::write(tree.path().join("folder3/325"), "changed").unwrap();
    fs::rename(tree.path().join("folder5"), tree.path().join("moved")).unwrap();
    let delta = store.new_one(&mut snapshots);
    assert_eq!(packs(&delta).len(), 1, "what moved is stored already");
    store
        .materialise(&delta, &target.path().join("delta"))
        .unwrap();
    assert_eq!(
        describe(&target.path().join("delta")),
        describe(tree.path())
    );

    // Another run finds most of what this one stored.
    fs::rename(tree.path().join("moved"), tree.path().join("folder5")).unwrap();
    let other = store.new_one(&mut Snapshots::new(tree.path().into(), None));
    let after = packs(&other);
    let new = after.iter().filter(|pack| !before.contains(pack)).count();
    assert!(new <= 2, "{new} of {} are new", after.len());
}

#[test]
fn a_full_snapshot_names_no_pack_that_it_does_not_need() {
    let (tree, store, target) = (folder(), Store::default(), folder());
    let file = |name: &str| tree.path().join(name);
    for name in ["a", "b", "c"] {
        fs::write(file(name), name).unwrap();
    }
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    for round in 0..=MAX_DELTAS + 1 {
        fs::write(file("b"), round.to_string()).unwrap();
        let id = store.new_one(&mut snapshots);
        let manifest = store.json(&id);
        if round == MAX_DELTAS + 1 {
            assert!(manifest["parent"].is_null());
            assert_eq!(manifest["packs"].as_array().unwrap().len(), 2);
            fs::write(file("d"), "more").unwrap();
            let id = store.new_one(&mut snapshots);
            store.materialise(&id, &target.path().join("new")).unwrap();
            assert_eq!(describe(&target.path().join("new")), describe(tree.path()));
        }
    }
}

/// Returns an index of git with this path as its only entry.
fn index_of(path: &str) -> Vec<u8> {
    let count = u32::from(!path.is_empty());
    let mut index = [&b"DIRC"[..], &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    if count > 0 {
        let mut entry = vec![0; 62];
        entry.extend_from_slice(path.as_bytes());
        entry.resize(entry.len() / 8 * 8 + 8, 0);
        index.extend(entry);
    }
    index.extend_from_slice(b"TREE\0\0\0\x01x");
    index.extend([7; 20]);
    index
}

#[test]
fn snapshots_of_the_first_version_are_still_read() {
    let (store, target) = (Store::default(), folder());
    let blob = store.put(b"text").unwrap();
    let manifest = json!({"version": 1, "entries": {
        "a": {"kind": "folder"},
        "a/run": {"kind": "file", "blob": blob, "bytes": 4, "executable": true},
        "a/text": {"kind": "file", "blob": blob, "bytes": 4},
    }});
    let id = store.put(&serde_json::to_vec(&manifest).unwrap()).unwrap();
    let new = target.path().join("new");
    store.materialise(&id, &new).unwrap();
    assert_eq!(store.differences(&id, &new), []);
    fs::set_permissions(new.join("a/run"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(
        store.differences(&id, &new),
        [("a/run".to_owned(), ChangeSinceSnapshot::Changed)]
    );
}

/// A store that puts contents with the word `hunter` apart, and counts the judgements.
struct Apart<'a> {
    open: &'a Store,
    apart: &'a Store,
    hunters: Hunters,
}

#[derive(Default)]
struct Hunters {
    asked: AtomicUsize,
}

impl Secrecy for Hunters {
    fn is_secret(&self, path: &Path, content: &[u8]) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        path.ends_with(".env") || content.windows(6).any(|part| part == b"hunter")
    }
}

impl ContentStore for Apart<'_> {
    type Error = Infallible;

    fn secrecy(&self) -> &dyn Secrecy {
        &self.hunters
    }

    fn put(&mut self, bytes: &[u8]) -> Result<BlobId, Infallible> {
        self.open.put(bytes)
    }

    fn put_apart(&mut self, bytes: &[u8]) -> Result<BlobId, Infallible> {
        self.apart.put(bytes)
    }
}

#[test]
fn secret_contents_lie_apart_and_are_laid_out_while_they_are_there() {
    let (tree, target) = (folder(), folder());
    let (open, apart) = (Store::default(), Store::default());
    let mut snapshots = Snapshots::new(tree.path().into(), None);
    let big = [&vec![b'x'; 2 << 20][..], b"hunter"].concat();
    let files: [(&str, &[u8]); 6] = [
        (".env", b"NAMED_SO"),
        ("a", b"plain"),
        ("b", b"the hunter"),
        ("c", b"another"),
        ("d", &big),
        ("e", b""),
    ];
    for (path, content) in files {
        fs::write(tree.path().join(path), content).unwrap();
    }
    let mut store = Apart {
        open: &open,
        apart: &apart,
        hunters: Hunters::default(),
    };
    let SnapshotResult::New(first) = snapshots.take(&mut store).unwrap() else {
        panic!("not new")
    };
    assert_eq!(
        store.hunters.asked.load(Ordering::Relaxed),
        5,
        "the empty file is not judged"
    );
    let holds = |store: &Store, what: &[u8]| {
        let blobs = store.blobs.borrow();
        blobs
            .values()
            .any(|blob| blob.windows(what.len()).any(|part| part == what))
    };
    assert!(holds(&open, b"plain") && holds(&open, b"another"));
    assert!(!holds(&open, b"hunter") && !holds(&open, b"NAMED_SO"));
    assert!(holds(&apart, b"the hunter") && !holds(&apart, b"another"));

    // Contents of the last snapshot are not judged again, wherever they are now.
    fs::rename(tree.path().join("b"), tree.path().join("moved")).unwrap();
    fs::write(tree.path().join("a"), "plainly").unwrap();
    let SnapshotResult::New(second) = snapshots.take(&mut store).unwrap() else {
        panic!("not new")
    };
    assert_eq!(store.hunters.asked.load(Ordering::Relaxed), 6);

    let both = |id: &BlobId| open.load(id).or_else(|_| apart.load(id));
    let whole = target.path().join("whole");
    assert_eq!(materialise(&first, both, &whole).unwrap(), [""; 0]);
    for (path, content) in files {
        assert_eq!(fs::read(whole.join(path)).unwrap(), content, "{path}");
    }
    let part = target.path().join("part");
    let left_out = materialise(&second, |id| open.load(id), &part).unwrap();
    assert_eq!(left_out, [".env", "d", "moved"]);
    assert_eq!(describe(&part).len(), 3);

    // Undoing leaves alone what it does not have, and does the rest.
    fs::remove_file(tree.path().join("moved")).unwrap();
    fs::remove_file(tree.path().join("c")).unwrap();
    let SnapshotResult::New(third) = snapshots.take(&mut store).unwrap() else {
        panic!("not new")
    };
    let plan = |load: &dyn Fn(&BlobId) -> Result<Vec<u8>, io::Error>| {
        crate::undo::UndoPlan::new(tree.path().into(), &second, &third, &[], &[], load).unwrap()
    };
    let without = plan(&|id| open.load(id));
    let changed: Vec<_> = without.changes.iter().map(|change| &*change.path).collect();
    assert_eq!(changed, ["c"]);
    assert!(without.refused[0].why.contains("kept apart"));
    let trash = target.path().join("trash");
    let done = plan(&both).apply(&both, &trash, &mut || {}).unwrap();
    assert_eq!((done.undone.len(), done.refused.len()), (2, 0));
    assert_eq!(fs::read(tree.path().join("moved")).unwrap(), b"the hunter");
}
