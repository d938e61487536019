//! A private copy is kept up to date, and keeps what a command has begun.

use std::fs;

use gyrus_workspace::repository::{PrivateCopy, RealObjects, RefreshResult, find};

use super::world::{World, carry, refresh};

fn unchanged(copy: &mut PrivateCopy) -> bool {
    copy.refresh().unwrap() == RefreshResult::Unchanged
}

#[test]
fn what_a_person_changes_is_seen_by_the_next_command() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    assert!(unchanged(&mut copy));
    assert_eq!(copy.changes().unwrap(), None);
    world.git(&world.work(), "branch new");
    world.git(&world.work(), "branch -D side");
    world.git(&world.work(), "commit -q --allow-empty -m theirs");
    world.git(&world.work(), "pack-refs --all");
    world.git(&world.work(), "config core.quotePath false");
    refresh(&mut copy);
    assert!(unchanged(&mut copy));
    assert_eq!(world.view_inside(&copy), world.view_outside());
    assert_eq!(world.inside(&copy, "config core.quotePath"), "false");
    assert_eq!(copy.changes().unwrap(), None);
}

/// The test rewrites a file within one tick of the file system's clock.
#[test]
fn a_change_without_a_new_time_is_seen() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    for (n, name) in ["one", "two", "ten", "six"].iter().enumerate() {
        let file = copy.path().join("description");
        fs::write(&file, name).unwrap();
        let changes = copy.changes().unwrap();
        assert_eq!(changes.unwrap().withheld.len(), 1, "{n}");
        copy.discard().unwrap();
    }
}

#[test]
fn a_persons_lock_does_not_block_a_command() {
    let world = World::with_repository();
    for lock in [
        "HEAD.lock",
        "index.lock",
        "refs/heads/main.lock",
        "packed-refs.lock",
    ] {
        fs::write(world.work().join(".git").join(lock), "").unwrap();
    }
    let mut copy = world.prepare();
    world.inside(&copy, "commit -q --allow-empty -m inside");
    // Nor does one that a killed command has left.
    copy.discard().unwrap();
    fs::write(copy.path().join("index.lock"), "").unwrap();
    fs::write(copy.path().join("refs/heads/main.lock"), "").unwrap();
    refresh(&mut copy);
    world.inside(&copy, "commit -q --allow-empty -m inside");
}

/// Returns a copy in which a rebase has stopped at a conflict.
fn stopped(world: &World) -> PrivateCopy {
    world.git(&world.work(), "checkout -q side");
    world.write("a", "conflict\n");
    world.git(&world.work(), "commit -qam theirs");
    let mut copy = world.prepare();
    let before = world.view_outside();
    assert!(!world.try_inside(&copy, "rebase main").status.success());
    let carried = carry(&mut copy);
    assert_eq!(carried.notes.len(), 1, "{carried:?}");
    assert!(carried.notes[0].starts_with("an unfinished rebase stays private"));
    world.git(
        &world.work(),
        "update-index -q --refresh --really-refresh --unmerged",
    );
    let ignored = |view: &str| view.split("$ git status").next().unwrap().to_owned();
    assert_eq!(ignored(&world.view_outside()), ignored(&before));
    copy
}

#[test]
fn an_unfinished_rebase_goes_on() {
    let world = World::with_repository();
    let mut copy = stopped(&world);
    assert_eq!(refresh(&mut copy), [""; 0]);
    assert_eq!(copy.changes().unwrap(), None);
    assert!(unchanged(&mut copy));
    // Something else happens outside meanwhile.
    world.git(&world.work(), "branch unrelated");
    refresh(&mut copy);
    world.write("a", "solved\n");
    world.inside(&copy, "add a");
    world.inside(&copy, "rebase --continue");
    let expected = world.view_inside(&copy);
    assert_eq!(carry(&mut copy).notes, [""; 0]);
    assert_eq!(world.view_outside(), expected);
    assert!(!world.work().join(".git/rebase-merge").exists());
    world.check_whole(&world.work().join(".git"));
}

#[test]
fn an_unfinished_rebase_is_aborted() {
    let world = World::with_repository();
    let mut copy = stopped(&world);
    refresh(&mut copy);
    world.inside(&copy, "rebase --abort");
    let expected = world.git(&world.work(), "rev-parse HEAD side main");
    carry(&mut copy);
    assert_eq!(
        world.git(&world.work(), "rev-parse HEAD side main"),
        expected
    );
    assert_eq!(world.git(&world.work(), "status --porcelain"), "");
}

#[test]
fn an_unfinished_rebase_is_dropped_if_a_person_goes_on() {
    let world = World::with_repository();
    let mut copy = stopped(&world);
    world.git(&world.work(), "commit -q --allow-empty -m moved");
    let dropped = refresh(&mut copy);
    assert!(
        dropped[0].contains("unfinished rebase in `.git` was dropped"),
        "{dropped:?}"
    );
    assert_eq!(world.view_inside(&copy), world.view_outside());
}

/// Their list of steps is theirs; what a command does at one of them counts.
#[test]
fn a_persons_own_rebase_goes_on_inside() {
    let world = World::with_repository();
    world.git(&world.work(), "checkout -q side");
    world.write("a", "conflict\n");
    world.git(&world.work(), "commit -qam theirs");
    assert!(
        !world
            .run(&world.work(), None, "rebase main")
            .status
            .success()
    );
    let mut copy = world.prepare();
    assert_eq!(copy.changes().unwrap(), None);
    world.write("a", "solved\n");
    world.inside(&copy, "add a");
    carry(&mut copy);
    assert_eq!(
        world.git(&world.work(), "diff --name-only --diff-filter=U"),
        ""
    );
    refresh(&mut copy);
    world.inside(&copy, "rebase --continue");
    let expected = world.view_inside(&copy);
    assert_eq!(carry(&mut copy).notes, [""; 0]);
    assert_eq!(world.view_outside(), expected);
    assert!(!world.work().join(".git/rebase-merge").exists());
}

#[test]
fn another_process_takes_the_copy_up() {
    let world = World::with_repository();
    let copy = world.prepare();
    world.inside(&copy, "commit -q --allow-empty -m inside");
    let expected = world.view_inside(&copy);
    drop(copy);
    let mut copy = world.prepare();
    assert_eq!(copy.refresh().unwrap(), RefreshResult::Pending);
    carry(&mut copy);
    drop(copy);
    let mut copy = world.prepare();
    assert!(unchanged(&mut copy));
    assert_eq!(
        (world.view_outside(), world.view_inside(&copy)),
        (expected.clone(), expected)
    );
}

/// A process that was killed while it brought the copy up to date leaves no change behind that
/// would be mistaken for a command's.
#[test]
fn a_copy_that_was_half_updated_is_not_carried_over() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.git(&world.work(), "commit -q --allow-empty -m theirs");
    world.git(&world.work(), "branch theirs");
    // State that such a process had reached.
    fs::write(world.path("copy/carried"), "syncing\n").unwrap();
    let main = world.work().join(".git/refs/heads/main");
    fs::copy(&main, world.path("copy/base/refs/heads/main")).unwrap();
    fs::copy(&main, world.path("copy/base/refs/heads/theirs")).unwrap();
    assert_eq!(copy.changes().unwrap(), None);
    drop(copy);
    let mut copy = world.prepare();
    assert_eq!(copy.changes().unwrap(), None);
    assert_eq!(world.view_inside(&copy), world.view_outside());
}

#[test]
fn what_is_discarded_is_gone() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    let before = world.view_inside(&copy);
    world.inside(&copy, "commit -q --allow-empty -m inside");
    world.inside(&copy, "config core.pager evil");
    copy.discard().unwrap();
    assert_eq!(copy.changes().unwrap(), None);
    assert_eq!(world.view_inside(&copy), before);
    assert!(
        !world
            .try_inside(&copy, "config core.pager")
            .status
            .success()
    );
    // Refused while locks in the real repository wait for the plan that names them.
    let plan = world.path("copy/plan.json");
    fs::write(&plan, "{}").unwrap();
    assert_eq!(copy.discard().unwrap(), RefreshResult::Pending);
    assert!(plan.exists());
}

#[test]
fn the_name_of_a_run_is_part_of_references() {
    let world = World::with_repository();
    let directory = find(&world.work()).unwrap().directories.remove(0);
    for run in ["", "a/b", "..", "-x", "a.lock", "a b"] {
        let folder = world.path("copy");
        assert!(PrivateCopy::prepare(&directory, &folder, run, RealObjects::InPlace).is_err());
    }
}
