//! Changes of a layer are moved into a folder completely or not at all, at whatever point they are
//! killed, and are undone exactly.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step fails the test, helpers included"
)]

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use gyrus_workspace::layer::{CallLayer, KeptFiles, MovedPaths, take_back};
use rustix::{
    fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr},
    process::{Signal, getpid, kill_process},
};

/// Environment variables that make this test's own process the one to be killed.
const FOLDER: &str = "GYRUS_TEST_LAYER_FOLDER";
const STEP: &str = "GYRUS_TEST_LAYER_STEP";
/// Environment variable with the number of edits that a person makes while changes are moved.
const EDITS: &str = "GYRUS_TEST_LAYER_EDITS";
/// Environment variable with the number of files of the large change; 100,000 are supported.
const FILES: &str = "GYRUS_TEST_LAYER_FILES";

/// A workspace, a layer over it, and a place for what an undo needs.
struct World {
    folder: PathBuf,
}

/// Kind, mode and content by path.
type Tree = BTreeMap<PathBuf, (String, u32, Vec<u8>)>;

impl World {
    fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    fn layer(&self) -> PathBuf {
        self.folder.join("layer")
    }

    fn write(&self, below: &str, path: &str, text: &str) {
        let path = self.folder.join(below).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes every kind of change, as an overlay leaves it in its upper folder.
    fn with_every_kind(&self) {
        for path in [
            "same",
            "changed",
            "gone",
            "a/b/deep",
            "a/gone",
            "old/x/y",
            "old/z",
            "opaque/one",
            "opaque/two",
            "file-to-folder",
            "folder-to-file/inner",
            "mode/inner",
            "shut/inner",
        ] {
            self.write("work", path, "before\n");
        }
        symlink("same", self.work().join("link")).unwrap();
        let layer = CallLayer::create(&self.layer(), &self.work()).unwrap();
        for (path, text) in [
            ("same", "before\n"),
            ("changed", "after\n"),
            ("a/b/deep", "after\n"),
            ("a/b/new", "after\n"),
            ("new/deep/er", "after\n"),
            ("opaque/two", "after\n"),
            ("file-to-folder/inner", "after\n"),
            ("folder-to-file", "after\n"),
            ("shut/new", "after\n"),
        ] {
            self.write("layer/upper", path, text);
        }
        let upper = layer.upper();
        symlink("changed", upper.join("link")).unwrap();
        fs::create_dir(upper.join("mode")).unwrap();
        for gone in ["gone", "a/gone", "old"] {
            let mode = Mode::from_raw_mode(0);
            mknodat(CWD, upper.join(gone), FileType::CharacterDevice, mode, 0).unwrap();
        }
        let mark = XattrFlags::empty();
        setxattr(upper.join("opaque"), "user.overlay.opaque", b"y", mark).unwrap();
        for (path, mode) in [("mode", 0o700), ("new/deep", 0o500), ("changed", 0o755)] {
            fs::set_permissions(upper.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    /// Makes a change of many files: some changed, some new in an old folder, some in new ones,
    /// some removed.
    fn with_many(&self, files: usize) {
        fs::create_dir_all(self.work().join("old")).unwrap();
        for number in 0..files / 2 {
            fs::write(self.work().join(format!("old/{number}")), "before\n").unwrap();
        }
        let layer = CallLayer::create(&self.layer(), &self.work()).unwrap();
        let upper = layer.upper();
        fs::create_dir_all(upper.join("old")).unwrap();
        for number in 0..files {
            let path = upper.join(format!("old/{number}"));
            if number < files / 4 {
                let mode = Mode::from_raw_mode(0);
                mknodat(CWD, path, FileType::CharacterDevice, mode, 0).unwrap();
            } else {
                File::create_new(path)
                    .unwrap()
                    .write_all(b"after\n")
                    .unwrap();
            }
        }
    }

    fn find(&self) -> CallLayer {
        CallLayer::find(&self.layer(), &self.work()).unwrap()
    }

    fn kept(&self) -> PathBuf {
        self.folder.join("kept.json")
    }

    /// Moves everything into the workspace, or continues with it.
    fn apply(&self, stepped: &mut dyn FnMut()) {
        let layer = self.find();
        let applied = match layer.recover(stepped).unwrap() {
            Some(applied) => applied,
            None => layer
                .apply(layer.list().unwrap(), &MovedPaths::new(), stepped)
                .unwrap(),
        };
        assert_eq!(applied.refused, []);
        fs::write(self.kept(), serde_json::to_vec(&applied.kept).unwrap()).unwrap();
    }

    fn take_back(&self, stepped: &mut dyn FnMut()) {
        let kept: KeptFiles = serde_json::from_slice(&fs::read(self.kept()).unwrap()).unwrap();
        let taken = take_back(&self.work(), &[kept], true, stepped).unwrap();
        assert_eq!(taken.refused, []);
    }

    fn tree(&self) -> Tree {
        tree(&self.work())
    }
}

fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            let data = path.symlink_metadata().unwrap();
            let below = path.strip_prefix(folder).unwrap().to_owned();
            let (kind, content) = if data.is_dir() {
                folders.push(path);
                ("folder", Vec::new())
            } else if data.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                ("link", target.into_os_string().into_encoded_bytes())
            } else {
                assert!(data.is_file(), "{below:?}");
                ("file", fs::read(&path).unwrap())
            };
            found.insert(below, (kind.to_owned(), data.mode() & 0o7777, content));
        }
    }
    found
}

/// Applies or undoes, and kills itself at a step. Does nothing as an ordinary test.
#[test]
fn the_one_that_dies() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let last: usize = std::env::var(STEP).unwrap().parse().unwrap();
    let mut steps = 0;
    let mut stepped = || {
        steps += 1;
        if steps == last {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    };
    let world = World::at(Path::new(&folder));
    if world.work().join("f0").exists() {
        let layer = world.find();
        layer
            .apply(layer.list().unwrap(), &MovedPaths::new(), &mut stepped)
            .unwrap();
    } else if !world.kept().exists() {
        world.apply(&mut stepped)
    } else {
        world.take_back(&mut stepped)
    }
}

/// Starts the process that kills itself; returns false if it ended normally.
fn die(world: &World, step: usize) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_one_that_dies", "--test-threads=1"])
        .env(FOLDER, &world.folder)
        .env(STEP, step.to_string())
        .output()
        .unwrap();
    let killed = output.status.code().is_none();
    assert!(killed || output.status.success(), "{output:?}");
    killed
}

/// Kills an application and an undo at these steps, until one ends normally. Returns how many kills
/// there were.
fn is_whole_after_kills(
    make: impl Fn(&World),
    steps: impl Iterator<Item = usize> + Clone,
) -> usize {
    let mut kills = 0;
    let mut expected = None;
    for step in steps {
        let folder = tempfile::tempdir().unwrap();
        let world = World::at(folder.path());
        make(&world);
        let before = world.tree();
        let applying = die(&world, step);
        if applying {
            world.apply(&mut || {});
        }
        let after = world.tree();
        assert_ne!(before, after);
        assert_eq!(
            expected.get_or_insert_with(|| after.clone()),
            &after,
            "{step}"
        );
        let taking = die(&world, step);
        if taking {
            world.take_back(&mut || {});
        }
        assert!(
            world.tree() == before,
            "not as before after a kill at step {step}"
        );
        kills += usize::from(applying) + usize::from(taking);
        if !applying && !taking {
            break;
        }
    }
    kills
}

#[test]
fn every_kind_of_change_survives_a_kill_at_every_step() {
    let kills = is_whole_after_kills(World::with_every_kind, 1..);
    assert!(kills > 20, "{kills}");
}

#[test]
fn a_large_change_survives_kills() {
    let files = std::env::var(FILES).map_or(1_000, |files| files.parse().unwrap());
    let steps = [1, 2, files / 5, files / 2, files - 1, files].into_iter();
    let kills = is_whole_after_kills(|world| world.with_many(files), steps);
    assert!(kills >= 10, "{kills}");
}

#[test]
fn what_it_holds_is_told_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path());
    world.with_every_kind();
    let listed = world.find().list().unwrap();
    let told: Vec<String> = listed
        .changed
        .iter()
        .map(|change| format!("{} {:?}", change.path.display(), change.change))
        .collect();
    assert_eq!(
        told,
        [
            "a/b/deep Changed",
            "a/b/new Created",
            "a/gone Deleted",
            "changed Changed",
            "file-to-folder Changed",
            "file-to-folder/inner Created",
            "folder-to-file Changed",
            "folder-to-file/inner Deleted",
            "gone Deleted",
            "link Changed",
            "mode Changed",
            "new Created",
            "new/deep Created",
            "new/deep/er Created",
            "old Deleted",
            "old/x Deleted",
            "old/x/y Deleted",
            "old/z Deleted",
            "opaque/one Deleted",
            "opaque/two Changed",
            "shut/new Created",
        ]
    );
}

#[test]
fn what_was_changed_since_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path());
    world.with_every_kind();
    world.apply(&mut || {});
    world.write("work", "changed", "of a person\n");
    world.write("work", "new/mine", "of a person\n");
    let kept: KeptFiles = serde_json::from_slice(&fs::read(world.kept()).unwrap()).unwrap();
    let taken = take_back(&world.work(), &[kept], true, &mut || {}).unwrap();
    let refused: Vec<&str> = taken.refused.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(refused, ["changed", "new"]);
    assert_eq!(
        fs::read(world.work().join("changed")).unwrap(),
        b"of a person\n"
    );
    assert!(world.work().join("new/deep/er").exists());
    assert_eq!(fs::read(world.work().join("a/gone")).unwrap(), b"before\n");
}

#[test]
fn of_a_deleted_folder_all_but_what_is_left_out_goes_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::at(folder.path());
    for path in ["old/x/y", "old/x/.git", "old/z/deep", "old/top"] {
        world.write("work", path, "before\n");
    }
    let layer = CallLayer::create(&world.layer(), &world.work()).unwrap();
    let mode = Mode::from_raw_mode(0);
    let mark = layer.upper().join("old");
    mknodat(CWD, mark, FileType::CharacterDevice, mode, 0).unwrap();
    let mut listed = layer.list().unwrap();
    let left: &[&Path] = &[Path::new("old/x/.git")];
    layer.leave_out(&mut listed, left).unwrap();
    let applied = layer.apply(listed, &MovedPaths::new(), &mut || {}).unwrap();
    assert!(applied.refused.is_empty(), "{:?}", applied.refused);
    let there = |path: &str| world.work().join(path).exists();
    assert!(there("old/x/.git") && !there("old/x/y") && !there("old/z") && !there("old/top"));
    take_back(&world.work(), &[applied.kept], true, &mut || {}).unwrap();
    assert!(there("old/x/y") && there("old/x/.git") && there("old/z/deep") && there("old/top"));
}

/// Number of files that a command and a person change at the same time.
const SHARED: usize = 12;

/// A layer that changes most shared files, and deletes some.
fn with_shared_files(world: &World) {
    for number in 0..SHARED {
        world.write("work", &format!("f{number}"), "before\n");
    }
    let layer = CallLayer::create(&world.layer(), &world.work()).unwrap();
    for number in 0..SHARED {
        if number % 4 == 3 {
            let mode = Mode::from_raw_mode(0);
            let path = layer.upper().join(format!("f{number}"));
            mknodat(CWD, path, FileType::CharacterDevice, mode, 0).unwrap();
        } else {
            world.write("layer/upper", &format!("f{number}"), "after\n");
        }
    }
}

/// Edits shared files in an editor's ways until `is_over`. Returns the last text of each.
fn edit(work: &Path, seed: u64, is_over: &AtomicBool) -> (usize, BTreeMap<usize, String>) {
    let mut last = BTreeMap::new();
    let (mut edits, mut random) = (0, seed);
    while !is_over.load(Ordering::SeqCst) {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = (random >> 33) as usize % SHARED;
        let path = work.join(format!("f{number}"));
        let text = format!("edit {edits} of a person\n");
        if random >> 63 == 0 {
            fs::write(&path, &text).unwrap();
        } else {
            let new = work.join("new~");
            fs::write(&new, &text).unwrap();
            fs::rename(&new, &path).unwrap();
        }
        last.insert(number, text);
        edits += 1;
    }
    (edits, last)
}

#[test]
fn what_a_person_writes_while_changes_are_moved_is_there_afterwards() {
    let wanted = std::env::var(EDITS).map_or(500, |edits| edits.parse().unwrap());
    let mut edits = 0;
    for round in 1.. {
        if edits >= wanted {
            break;
        }
        let folder = tempfile::tempdir().unwrap();
        let world = World::at(folder.path());
        with_shared_files(&world);
        let is_over = AtomicBool::new(false);
        let killed = std::thread::scope(|scope| {
            let person = scope.spawn(|| edit(&world.work(), round, &is_over));
            // Every other time a process is killed on the way, and the next one continues.
            let killed = round % 2 == 0 && die(&world, 1 + round as usize % (SHARED + 1));
            let layer = world.find();
            if layer.recover(&mut || {}).unwrap().is_none() {
                layer
                    .apply(layer.list().unwrap(), &MovedPaths::new(), &mut || {})
                    .unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
            let (made, last) = person.join().unwrap();
            edits += made;
            for (number, text) in last {
                let found = fs::read_to_string(world.work().join(format!("f{number}")));
                assert_eq!(found.unwrap(), text, "f{number} in round {round}");
            }
            killed
        });
        assert!(!killed || round % 2 == 0);
    }
}
