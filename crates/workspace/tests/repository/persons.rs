//! A person works in the repository at the same time: none of their changes are lost, and those in
//! conflict are kept apart.

use std::{fs, thread};

use gyrus_workspace::repository::{CarryError, CarryRecord, PrivateCopy};

use super::world::{World, carry, git_program, refresh, rule, try_carry};

/// Returns a copy in which a command has committed a change of `a` to `main`.
fn with_commit() -> (World, PrivateCopy) {
    let world = World::with_repository();
    let copy = world.prepare();
    world.write("a", "ours\n");
    world.inside(&copy, "commit -qam ours");
    (world, copy)
}

fn kept(carried: &CarryRecord) -> Vec<String> {
    let kept = carried.kept.iter().map(|kept| {
        let under: Vec<_> = kept.under.iter().map(ToString::to_string).collect();
        format!("{} > {}", kept.what, under.join(" "))
    });
    kept.collect()
}

#[test]
fn a_commit_on_the_same_branch_stays() {
    let (world, mut copy) = with_commit();
    let ours = world.inside(&copy, "rev-parse HEAD");
    world.git(&world.work(), "commit -q --allow-empty -m theirs");
    let theirs = world.view_outside();
    let carried = carry(&mut copy);
    let under = "refs/gyrus/kept/run-1/heads/main";
    assert_eq!(
        kept(&carried),
        [
            "refs/heads/main > ".to_owned() + under,
            "HEAD > ".to_owned()
        ]
    );
    assert_eq!(world.view_outside(), theirs);
    assert_eq!(
        world.git(&world.work(), &format!("rev-parse {under}")),
        ours
    );
    world.check_whole(&world.work().join(".git"));
    // The next command sees the person's state, and the kept references.
    refresh(&mut copy);
    assert_eq!(world.view_inside(&copy), theirs);
    assert_eq!(world.inside(&copy, &format!("rev-parse {under}")), ours);
    // A second one gets a name of its own.
    world.inside(&copy, "commit -q --allow-empty -m again");
    world.git(&world.work(), "commit -q --allow-empty -m theirs");
    assert_eq!(
        kept(&carry(&mut copy))[0],
        "refs/heads/main > refs/gyrus/kept/run-1/heads-main-2"
    );
}

#[test]
fn a_commit_at_any_moment_stays() {
    for moment in ["plan written", "objects checked", "locks prepared"] {
        let (world, mut copy) = with_commit();
        let changes = copy.changes().unwrap().unwrap();
        let mut theirs = None;
        let mut person = |step: &'static str| {
            if step == moment && theirs.is_none() {
                world.git(&world.work(), "commit -q --allow-empty -m theirs");
                theirs = Some(world.git(&world.work(), "rev-parse HEAD"));
            }
        };
        let carried = copy
            .carry(changes, git_program(), rule(&copy), &mut person)
            .unwrap();
        assert_eq!(kept(&carried).len(), 2);
        assert_eq!(world.git(&world.work(), "rev-parse main"), theirs.unwrap());
        world.check_whole(&world.work().join(".git"));
    }
}

#[test]
fn while_it_is_carried_over_nobody_can_commit() {
    let (world, mut copy) = with_commit();
    let expected = world.view_inside(&copy);
    let changes = copy.changes().unwrap().unwrap();
    let mut tried = 0;
    let mut person = |step: &'static str| {
        if ["reference written", "log written", "index written"].contains(&step) {
            let commit = "commit -q --allow-empty -m theirs";
            assert!(!world.run(&world.work(), None, commit).status.success());
            assert!(
                !world
                    .run(&world.work(), None, "branch -f main side")
                    .status
                    .success()
            );
            // Looking is always possible.
            world.git(&world.work(), "status");
            tried += 1;
        }
    };
    copy.carry(changes, git_program(), rule(&copy), &mut person)
        .unwrap();
    assert!(tried >= 3);
    assert_eq!(world.view_outside(), expected);
}

#[test]
fn other_changes_are_joined() {
    // Staged, of another file.
    let (world, mut copy) = with_commit();
    let ours = world.inside(&copy, "rev-parse HEAD");
    world.write("theirs", "new\n");
    world.git(&world.work(), "add theirs");
    assert_eq!(carry(&mut copy).kept, []);
    assert_eq!(world.git(&world.work(), "rev-parse HEAD"), ours);
    assert_eq!(world.git(&world.work(), "status --porcelain"), "A  theirs");
    // The person is on another branch, in another work tree.
    let (world, mut copy) = with_commit();
    let ours = world.inside(&copy, "rev-parse HEAD");
    world.git(&world.work(), "worktree add -q ../other side");
    world.git(&world.path("other"), "commit -q --allow-empty -m theirs");
    let theirs = world.git(&world.path("other"), "rev-parse HEAD");
    assert_eq!(carry(&mut copy).kept, []);
    assert_eq!(
        world.git(&world.work(), "rev-parse main side"),
        format!("{ours}\n{theirs}")
    );
    // The person is on another branch.
    let (world, mut copy) = with_commit();
    let ours = world.inside(&copy, "rev-parse HEAD");
    world.git(&world.work(), "checkout -qf side");
    let carried = carry(&mut copy);
    assert_eq!(kept(&carried), ["HEAD > "]);
    assert_eq!(world.git(&world.work(), "rev-parse main"), ours);
    assert_eq!(
        world.git(&world.work(), "symbolic-ref HEAD"),
        "refs/heads/side"
    );
    assert_eq!(world.git(&world.work(), "diff --cached --name-only"), "");
    world.check_whole(&world.work().join(".git"));
}

#[test]
fn the_same_file_staged_keeps_the_commit_apart() {
    let (world, mut copy) = with_commit();
    world.write("a", "theirs\n");
    world.git(&world.work(), "add a");
    let theirs = world.view_outside();
    let carried = carry(&mut copy);
    assert_eq!(kept(&carried).len(), 2, "{carried:#?}");
    assert_eq!(world.view_outside(), theirs);
}

#[test]
fn a_branch_of_another_work_tree_is_not_moved() {
    let world = World::with_repository();
    world.git(&world.work(), "worktree add -q ../other side");
    let mut copy = world.prepare();
    world.inside(&copy, "update-ref refs/heads/side main");
    let theirs = world.view(&world.path("other"), None);
    let carried = carry(&mut copy);
    assert_eq!(
        kept(&carried),
        ["refs/heads/side > refs/gyrus/kept/run-1/heads/side"]
    );
    assert_eq!(world.view(&world.path("other"), None), theirs);
}

#[test]
fn stashes_and_settings_of_both() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.write("a", "ours\n");
    world.inside(&copy, "stash push -q -m ours");
    world.inside(&copy, "config user.name ours");
    world.inside(&copy, "config user.email ours@example.org");
    world.write("a", "theirs\n");
    world.git(&world.work(), "stash push -q -m theirs");
    world.git(&world.work(), "config user.name theirs");
    let carried = carry(&mut copy);
    assert_eq!(
        kept(&carried),
        ["refs/stash > refs/gyrus/kept/run-1/stash", "user.name > "]
    );
    assert_eq!(
        world.git(&world.work(), "stash list"),
        "stash@{0}: On main: theirs"
    );
    assert_eq!(world.git(&world.work(), "config user.name"), "theirs");
    assert_eq!(
        world.git(&world.work(), "config user.email"),
        "ours@example.org"
    );
    world.check_whole(&world.work().join(".git"));
}

#[test]
fn a_lock_is_respected() {
    for lock in ["index.lock", "refs/heads/main.lock"] {
        let (world, mut copy) = with_commit();
        let (before, expected) = (world.view_outside(), world.view_inside(&copy));
        let lock = world.work().join(".git").join(lock);
        fs::write(&lock, "").unwrap();
        let Err(CarryError::Locked { path }) = try_carry(&mut copy) else {
            panic!("it is locked");
        };
        assert_eq!(path, lock);
        assert_eq!(fs::read(&lock).unwrap(), b"");
        fs::remove_file(&lock).unwrap();
        world.check_whole(&world.work().join(".git"));
        assert_eq!(world.view_outside(), before);
        // The copy still has it, and works on.
        assert_eq!(
            copy.refresh().unwrap(),
            gyrus_workspace::repository::RefreshResult::Pending
        );
        assert_eq!(world.view_inside(&copy), expected);
        carry(&mut copy);
        assert_eq!(world.view_outside(), expected);
    }
}

#[test]
fn a_person_who_never_stops_loses_nothing() {
    let world = World::with_repository();
    world.git(&world.work(), "worktree add -q ../other side");
    let mut copy = world.prepare();
    thread::scope(|scope| {
        let person = scope.spawn(|| {
            for n in 0..15 {
                let commit = format!("commit -q --allow-empty -m {n}");
                world.git(&world.path("other"), &commit);
            }
        });
        let looking = scope.spawn(|| {
            for _ in 0..15 {
                world.git(&world.work(), "status");
            }
        });
        let mut done = 0;
        while done < 5 {
            world.inside(&copy, "commit -q --allow-empty -m ours");
            while try_carry(&mut copy).is_err() {}
            refresh(&mut copy);
            done += 1;
        }
        person.join().unwrap();
        looking.join().unwrap();
    });
    let count = |branch: &str| world.git(&world.work(), &format!("rev-list --count {branch}"));
    assert_eq!(
        (count("main"), count("side")),
        ("7".to_owned(), "16".to_owned())
    );
    assert_eq!(world.git(&world.work(), "for-each-ref refs/gyrus"), "");
    world.check_whole(&world.work().join(".git"));
}
