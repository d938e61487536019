//! A repository is intact when a carry-over is killed at any step; and after recovery all is
//! carried over, or nothing.

use std::{fs, path::Path, process::Command};

use gyrus_workspace::repository::{GitDirectory, PrivateCopy, RealObjects, find, recover};
use rustix::process::{Signal, getpid, kill_process};

use super::world::{World, carry, git_program, refresh, rule, rule_in, try_carry};

/// Environment variables that make this test's own process the one to be killed.
const FOLDER: &str = "GYRUS_TEST_CRASH_FOLDER";
const STEP: &str = "GYRUS_TEST_CRASH_STEP";

/// Carries over, and kills itself at a step. Does nothing as an ordinary test.
#[test]
fn the_one_that_dies() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let last: usize = std::env::var(STEP).unwrap().parse().unwrap();
    let mut steps = 0;
    let mut step = |_| {
        steps += 1;
        if steps == last {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    };
    let copy = folder.join("copy");
    if copy.join("plan.json").exists() {
        recover(
            &copy,
            git_program(),
            Some(rule_in(&folder.join("work"))),
            &mut step,
        )
        .unwrap();
        return;
    }
    let found = find(&folder.join("work")).unwrap();
    let mut copy =
        PrivateCopy::prepare(&found.directories[0], &copy, "run-1", RealObjects::InPlace).unwrap();
    if let Some(changes) = copy.changes().unwrap() {
        copy.carry(changes, git_program(), rule(&copy), &mut step)
            .unwrap();
    }
}

/// Starts the process that kills itself; returns false if it ended normally.
fn die(world: &World, step: usize) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::the_one_that_dies", "--test-threads=1"])
        .env(FOLDER, world.path(""))
        .env(STEP, step.to_string())
        .output()
        .unwrap();
    let killed = output.status.code().is_none();
    assert!(killed || output.status.success(), "{output:?}");
    killed
}

/// Copies the contents of a folder, with their times.
fn copy_tree(from: &Path, to: &Path) {
    let from = from.join(".");
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Returns the view that has to be completely old or completely new.
fn view(world: &World, repository: Option<&Path>) -> String {
    let work = world.work();
    let repository = repository.map(|repository| (repository, work.as_path()));
    let show = |arguments| {
        let output = world.run(&work, repository, arguments);
        String::from_utf8(output.stdout).unwrap()
    };
    let git = repository.map_or(work.join(".git"), |(git, _)| git.to_owned());
    let read = |name: &str| fs::read_to_string(git.join(name)).unwrap_or_default();
    [
        read("HEAD"),
        read("MERGE_HEAD"),
        show("for-each-ref"),
        show("ls-files -s"),
        show("stash list"),
        read("logs/HEAD"),
    ]
    .join("\n")
}

/// Is killed at every `stride`th step, recovers (killed there once more), and checks. All that is
/// inside is carried over.
fn check(before: &[&str], inside: &[&str], stride: usize) {
    let (private, new) = check_each_step(before, inside, stride);
    assert_eq!(new, private);
}

/// Returns the view inside, and the view after carrying over.
fn check_each_step(before: &[&str], inside: &[&str], stride: usize) -> (String, String) {
    let world = World::with_repository();
    for line in before {
        world.git(&world.work(), line);
    }
    let copy = world.prepare();
    world.write("a", "changed\n");
    for line in inside {
        let _ = world.try_inside(&copy, line);
    }
    let (old, private) = (view(&world, None), view(&world, Some(&copy.path())));
    drop(copy);
    // Files in the tree contain its path, so it is restored in the same place.
    let saved = World::empty();
    copy_tree(&world.path(""), &saved.path(""));
    carry(&mut world.prepare());
    let new = view(&world, None);
    let git = world.work().join(".git");
    let mut step = 1;
    loop {
        for name in ["work", "copy"] {
            fs::remove_dir_all(world.path(name)).unwrap();
        }
        copy_tree(&saved.path(""), &world.path(""));
        let killed = die(&world, step);
        let fsck = world.run(&git, None, "fsck --full --strict");
        assert!(fsck.status.success(), "step {step}: {fsck:?}");
        if killed && step % 2 == 0 {
            die(&world, 1 + step % 5);
        }
        let recovered = recover(
            &world.path("copy"),
            git_program(),
            Some(rule_in(&world.work())),
            &mut |_| (),
        )
        .unwrap();
        assert!(
            recovered.is_none_or(|carried| carried.kept.is_empty()),
            "step {step}"
        );
        world.check_clean(&git);
        let mut now = view(&world, None);
        if now == old {
            // Nothing had begun: the changes can still be carried over.
            carry(&mut world.prepare());
            now = view(&world, None);
        }
        assert_eq!(now, new, "step {step}");
        if !killed {
            break;
        }
        step += stride;
    }
    assert!(step > 8, "there are more steps than {step}");
    let mut copy = world.prepare();
    assert_eq!(copy.changes().unwrap(), None);
    assert_eq!(view(&world, Some(&copy.path())), new);
    world.check_whole(&git);
    (private, new)
}

/// Changes that wait for a yes never arrive, whenever it is killed; those beside them do.
#[test]
fn killed_while_a_control_file_is_withheld() {
    let inside = [
        "branch fine side",
        "checkout -qb bad",
        "update-index --add --cacheinfo 100644,5626abf0f72e58d7a153368ba57db4c673c0e171,.envrc",
        "commit -qm bad",
        "tag plant",
        "checkout -q main",
        "commit -qam fine",
    ];
    let (private, new) = check_each_step(&[], &inside, 1);
    assert!(private.contains("refs/heads/bad") && private.contains("refs/tags/plant"));
    assert!(
        !new.contains("refs/heads/bad") && !new.contains("refs/tags/plant"),
        "{new}"
    );
    assert!(new.contains("refs/heads/fine"), "{new}");
}

#[test]
fn killed_in_a_commit() {
    check(&[], &["commit -qam third"], 1);
}

#[test]
fn killed_with_branches_and_a_stash() {
    let before = ["branch x", "pack-refs --all", "branch loose"];
    let inside = [
        "branch -D x",
        "branch -D loose",
        "branch x/y",
        "stash push -q",
        "checkout -q side",
    ];
    check(&before, &inside, 4);
}

#[test]
fn killed_in_a_conflict() {
    let before = [
        "checkout -q side",
        "rm -q --cached a",
        "commit -qm theirs",
        "checkout -qf main",
        "config color.ui false",
    ];
    check(
        &before,
        &["commit -qam ours", "config color.ui auto", "merge side"],
        3,
    );
}

/// The processes that a carry-over has started are killed with it.
#[test]
fn what_a_kill_left_is_found_by_its_token() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.inside(&copy, "commit -q --allow-empty -m empty");
    // A foreign lock is not mistaken for ours after a kill.
    let lock = world.work().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    assert!(try_carry(&mut copy).is_err());
    assert!(lock.exists());
    assert!(
        recover(
            &world.path("copy"),
            git_program(),
            Some(rule_in(&world.work())),
            &mut |_| ()
        )
        .unwrap()
        .is_none()
    );
    fs::remove_file(lock).unwrap();
    carry(&mut copy);
    refresh(&mut copy);
    world.check_whole(&world.work().join(".git"));
}

/// A plan of an unknown format is refused.
#[test]
fn a_plan_of_another_format_is_not_carried_out() {
    let world = World::with_repository();
    let copy = world.prepare();
    let directory: &GitDirectory = copy.directory();
    assert_eq!(directory.name(), ".git");
    let plan = world.path("copy/plan.json");
    for content in ["", "{}", "[]", "{\"version\": 2}"] {
        fs::write(&plan, content).unwrap();
        assert!(
            recover(
                &world.path("copy"),
                git_program(),
                Some(rule_in(&world.work())),
                &mut |_| ()
            )
            .is_err()
        );
    }
}
