//! Changesets are atomic: a crash, or a full disk, is simulated before each single call that
//! changes something.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use gyrus_contract::Digest;
use rustix::io::Errno;

use super::{
    apply::{already, apply},
    change::{After, ApplyError, FileChange},
    intent::{self, HOME},
};
use crate::root::{AT_ONCE, Pace, RootError, RootFolder};

/// Content and mode of all files below a folder, without unused slots.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn empty() -> Self {
        // In memory if possible, because thousands of syncs follow.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self {
            folder: folder.unwrap(),
        }
    }

    /// Creates a tree with every kind of file that a changeset may meet.
    fn mixed() -> Self {
        let world = Self::empty();
        world.write("src/a.rs", b"fn old() {}\r\nno newline at the end");
        world.write("run.sh", b"#!/bin/sh\n");
        world.mode("run.sh", 0o755);
        world.write("plain.sh", b"#!/bin/sh\n");
        world.write("picture", &[0, 159, 146, 150, 255]);
        world.write("old/deep/x", b"x");
        world.mode("old/deep", 0o2750);
        world.write("kept/one", b"1");
        world.write("kept/two", b"2");
        world.write("Name.txt", b"same");
        world.write("lib", b"a file, later a folder");
        symlink("picture", world.path("link")).unwrap();
        world
    }

    fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(below)
    }

    fn write(&self, below: &str, content: &[u8]) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn mode(&self, below: &str, mode: u32) {
        fs::set_permissions(self.path(below), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn root<'a>(&self, pace: Pace<'a>) -> RootFolder<'a> {
        RootFolder::with_pace(self.folder.path(), pace).unwrap()
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.path(&folder)).unwrap() {
                let entry = entry.unwrap();
                let below = folder.join(entry.file_name());
                if below == Path::new(HOME) {
                    continue;
                }
                let about = entry.metadata().unwrap();
                let content = if about.is_dir() {
                    folders.push(below.clone());
                    b"folder".to_vec()
                } else if about.is_symlink() {
                    fs::read_link(entry.path())
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes()
                } else {
                    fs::read(entry.path()).unwrap()
                };
                tree.insert(below, (about.permissions().mode(), content));
            }
        }
        tree
    }

    fn digest(&self, below: &str) -> Option<Digest> {
        Some(Digest::of(&fs::read(self.path(below)).unwrap()))
    }

    fn replace(&self, below: &str, content: &[u8]) -> FileChange {
        FileChange {
            before: self.digest(below),
            ..create(below, content)
        }
    }

    fn delete(&self, below: &str) -> FileChange {
        FileChange {
            before: self.digest(below),
            path: below.into(),
            after: None,
        }
    }

    fn changes(&self) -> Vec<FileChange> {
        let mut executable = self.replace("plain.sh", b"#!/bin/sh\n");
        executable.after.as_mut().unwrap().executable = Some(true);
        vec![
            self.replace("src/a.rs", b"fn new() {}\r\nstill none"),
            self.replace("run.sh", b"#!/bin/bash\n"),
            executable,
            self.replace("picture", &[255, 0, 254]),
            self.delete("old/deep/x"),
            self.delete("kept/one"),
            self.delete("Name.txt"),
            create("name.txt", b"same"),
            create("new/far/down", b""),
            self.delete("lib"),
            create("lib/mod.rs", b"mod a;\n"),
        ]
    }
}

fn create(below: &str, content: &[u8]) -> FileChange {
    FileChange {
        path: below.into(),
        before: None,
        after: Some(After {
            content: content.to_vec(),
            executable: None,
        }),
    }
}

fn whole(world: &World, changes: &[FileChange], pace: Pace<'_>) -> Result<(), ApplyError> {
    apply(world.root(pace), changes)?.keep()
}

/// Returns the trees before and after a run without errors, and the number of changing calls.
fn straight(world: fn() -> World) -> (Tree, Tree, usize) {
    let world = world();
    let changes = world.changes();
    let before = world.tree();
    let calls = AtomicUsize::new(0);
    whole(&world, &changes, &|| {
        calls.fetch_add(1, Relaxed);
        Ok(())
    })
    .unwrap();
    assert!(!world.path(HOME).exists(), "nothing is left behind");
    (before, world.tree(), calls.into_inner())
}

/// Whether the record of an interrupted attempt exists.
fn unfinished(root: &RootFolder<'_>) -> Result<bool, RootError> {
    Ok(intent::unfinished(root)?.is_some())
}

/// Simulates a crash, after which the disk does nothing from the nth call on.
fn ends_at(nth: usize) -> impl Fn() -> Result<(), Errno> + Sync {
    let calls = AtomicUsize::new(0);
    move || {
        if calls.fetch_add(1, Relaxed) < nth {
            Ok(())
        } else {
            Err(Errno::IO)
        }
    }
}

/// Recovers as the next process does, whatever it is about to apply.
fn recover(world: &World) {
    let refused = apply(world.root(AT_ONCE), &[create("src/a.rs", b"")]);
    assert!(matches!(refused.map(drop), Err(ApplyError::Conflicts(_))));
    assert!(!world.path(HOME).exists());
}

#[test]
fn applies_everything() {
    let (before, after, _) = straight(World::mixed);
    let at = |tree: &Tree, path: &str| tree.get(Path::new(path)).cloned();
    assert_eq!(
        at(&after, "src/a.rs").unwrap().1,
        b"fn new() {}\r\nstill none"
    );
    assert_eq!(at(&after, "run.sh").unwrap().0 & 0o777, 0o755);
    assert_eq!(at(&after, "plain.sh").unwrap().0 & 0o111, 0o111);
    assert_eq!(at(&after, "old"), None, "an emptied folder goes");
    assert!(at(&after, "kept/two").is_some() && at(&after, "kept/one").is_none());
    assert!(at(&after, "name.txt").is_some() && at(&after, "Name.txt").is_none());
    assert!(at(&after, "lib/mod.rs").is_some());
    assert_eq!(at(&after, "link"), at(&before, "link"));
}

#[test]
fn a_crash_anywhere_is_all_or_nothing() {
    let (before, after, calls) = straight(World::mixed);
    let mut ends = Vec::new();
    for nth in 0..calls {
        let world = World::mixed();
        let changes = world.changes();
        let ended = whole(&world, &changes, &ends_at(nth));
        let committed = ended.is_ok() || !unfinished(&world.root(AT_ONCE)).unwrap();
        recover(&world);
        let tree = world.tree();
        assert!(tree == before || tree == after, "cut off at call {nth}");
        assert!(committed || tree == before, "cut off at call {nth}");
        ends.push(tree == after);
        // The call is made again, as after resuming.
        if !already(&world.root(AT_ONCE), &changes).unwrap() {
            whole(&world, &changes, AT_ONCE).unwrap();
        }
        assert_eq!(world.tree(), after, "cut off at call {nth}");
    }
    assert!(ends.is_sorted(), "once it is all, it stays: {ends:?}");
    assert!(ends.contains(&true) && ends.contains(&false));
}

/// The undo can be interrupted too, at each of its own calls.
#[test]
fn a_crash_of_the_recovery_is_recovered() {
    let (before, _, calls) = straight(World::mixed);
    for nth in (0..calls).step_by(3) {
        for again in 0.. {
            let world = World::mixed();
            let changes = world.changes();
            let _ = whole(&world, &changes, &ends_at(nth));
            if !unfinished(&world.root(AT_ONCE)).unwrap() {
                break;
            }
            let second = ends_at(again);
            let refused = apply(world.root(&second), &[create("src/a.rs", b"")]).map(drop);
            let done = matches!(refused, Err(ApplyError::Conflicts(_)));
            recover(&world);
            assert_eq!(world.tree(), before, "cut off at {nth}, then at {again}");
            if done {
                break;
            }
        }
    }
}

#[test]
fn a_disk_that_is_full_for_a_moment_changes_nothing() {
    let (before, after, calls) = straight(World::mixed);
    for nth in 0..calls {
        let world = World::mixed();
        let count = AtomicUsize::new(0);
        let ended = whole(&world, &world.changes(), &|| {
            if count.fetch_add(1, Relaxed) == nth {
                Err(Errno::NOSPC)
            } else {
                Ok(())
            }
        });
        let expected = match &ended {
            Ok(()) => &after,
            Err(ApplyError::Failed(_)) => &before,
            Err(other) => panic!("full at call {nth}: {other}"),
        };
        assert_eq!(&world.tree(), expected, "full at call {nth}");
        assert!(!unfinished(&world.root(AT_ONCE)).unwrap());
    }
}

/// Files that another process writes during the change are not lost, and the rest is atomic.
#[test]
fn what_somebody_else_writes_meanwhile_stays() {
    let (before, after, calls) = straight(World::mixed);
    let path = PathBuf::from("src/a.rs");
    for nth in 0..calls {
        let world = Arc::new(World::mixed());
        let changes = world.changes();
        let count = AtomicUsize::new(0);
        let writer = world.clone();
        let ended = whole(&world, &changes, &move || {
            if count.fetch_add(1, Relaxed) == nth {
                fs::write(writer.path("beside"), "theirs").unwrap();
                fs::rename(writer.path("beside"), writer.path("src/a.rs")).unwrap();
            }
            Ok(())
        });
        let mut tree = world.tree();
        assert_eq!(tree.remove(&path).unwrap().1, b"theirs", "at call {nth}");
        let mut expected = match ended {
            Ok(()) => after.clone(),
            Err(_) => before.clone(),
        };
        expected.remove(&path);
        assert_eq!(tree, expected, "at call {nth}");
    }
}

#[test]
fn what_was_written_over_a_change_is_kept() {
    let world = World::mixed();
    let before = world.tree();
    let changes = world.changes();
    let applied = apply(world.root(AT_ONCE), &changes).unwrap();
    fs::write(world.path("src/a.rs"), "theirs").unwrap();
    let kept = applied.give_back().unwrap().unwrap();
    assert_eq!(fs::read(world.path(&kept).join("0")).unwrap(), b"theirs");
    let mut tree = world.tree();
    tree.retain(|path, _| !path.starts_with(&kept));
    assert_eq!(tree, before);
}

#[test]
fn dropped_without_a_word_it_is_taken_back() {
    let world = World::mixed();
    let before = world.tree();
    let applied = apply(world.root(AT_ONCE), &world.changes()).unwrap();
    assert_ne!(world.tree(), before);
    let second = apply(world.root(AT_ONCE), &[create("other", b"")]);
    assert_eq!(second.map(drop), Err(ApplyError::Busy));
    drop(applied);
    assert_eq!(world.tree(), before);
    assert!(!world.path(HOME).exists());
}

#[test]
fn conflicts_are_named_and_nothing_is_changed() {
    let world = World::mixed();
    let changes = world.changes();
    fs::write(world.path("src/a.rs"), "changed").unwrap();
    fs::remove_dir_all(world.path("old")).unwrap();
    fs::remove_file(world.path("picture")).unwrap();
    symlink("run.sh", world.path("picture")).unwrap();
    world.write("name.txt", b"already");
    world.write("new", b"no folder");
    world.mode("run.sh", 0o555);
    let before = world.tree();
    let Err(ApplyError::Conflicts(named)) = apply(world.root(AT_ONCE), &changes).map(drop) else {
        panic!("it was applied");
    };
    let expected = [
        "`src/a.rs` was changed meanwhile",
        "`run.sh` is protected against writing",
        "`picture` is a symbolic link by now",
        "`old/deep/x` was deleted meanwhile",
        "`name.txt` exists already",
        "`new/far/down` would lie below a file",
    ];
    assert_eq!(named, expected);
    assert_eq!(world.tree(), before);

    // A folder that became a link could lead anywhere.
    fs::rename(world.path("kept"), world.path("moved")).unwrap();
    symlink("moved", world.path("kept")).unwrap();
    let refused = apply(world.root(AT_ONCE), &[create("kept/new", b"")]);
    assert!(refused.is_err());
    assert!(!world.path("moved/new").exists());
}

#[test]
fn ten_thousand_files() {
    const FILES: usize = 10_000;
    let world = World::empty();
    let name = |number: usize| format!("d{}/{number}", number % 100);
    for number in 0..FILES {
        world.write(&name(number), number.to_string().as_bytes());
    }
    let changes: Vec<_> = (0..FILES)
        .map(|number| match number % 3 {
            0 => world.delete(&name(number)),
            _ => world.replace(&name(number), b"new"),
        })
        .collect();
    let before = world.tree();
    let refused = whole(&world, &changes, &ends_at(2 * FILES));
    assert!(matches!(refused, Err(ApplyError::Stranded { .. })));
    assert_ne!(world.tree(), before, "it was in the middle");
    let conflict = [create(&name(0), b"")];
    assert!(apply(world.root(AT_ONCE), &conflict).map(drop).is_err());
    assert_eq!(world.tree(), before);
    whole(&world, &changes, AT_ONCE).unwrap();
    assert!(already(&world.root(AT_ONCE), &changes).unwrap());
}

/// Random changesets, interrupted at random calls.
#[test]
fn any_changeset_is_all_or_nothing() {
    const NAMES: [&str; 8] = [
        "a", "b", "d/a", "d/b", "d/e/a", "f/a", "f/g/h/a", "src/a.rs",
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut below = |bound: usize| random.usize(..bound);
    for round in 0..400 {
        let world = World::empty();
        world.write("src/a.rs", b"always");
        let mut changes = Vec::new();
        for name in NAMES {
            let exists = name == "src/a.rs" || below(2) == 0;
            if exists {
                world.write(name, format!("{name} {}", below(4)).as_bytes());
            }
            let content = below(4).to_string();
            match (exists, below(3)) {
                (_, 0) => {}
                (true, 1) if name != "src/a.rs" => changes.push(world.delete(name)),
                (true, _) => changes.push(world.replace(name, content.as_bytes())),
                (false, _) => changes.push(create(name, content.as_bytes())),
            }
        }
        let before = world.tree();
        let _ = whole(&world, &changes, &ends_at(below(60)));
        recover(&world);
        if world.tree() == before {
            whole(&world, &changes, AT_ONCE).unwrap();
        }
        assert!(
            already(&world.root(AT_ONCE), &changes).unwrap(),
            "round {round}: neither all nor nothing of {changes:?}"
        );
    }
}
