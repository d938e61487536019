//! Commits, stashes and entries of the index with a control file wait for a yes.

use std::fs;

use gyrus_workspace::repository::{
    CarryError, CarryRecord, WithheldHistory, apply_history, recover, restore,
};

use super::world::{World, carry, git_program, refresh, rule_in, try_carry};

fn apply(world: &World, history: &[WithheldHistory]) -> Result<CarryRecord, CarryError> {
    // They are stored in a journal meanwhile.
    let text = serde_json::to_string(history).unwrap();
    let history: Vec<WithheldHistory> = serde_json::from_str(&text).unwrap();
    let [one] = history.as_slice() else {
        panic!("{history:#?}");
    };
    apply_history(one, &world.path("copy"), git_program(), &mut |_| ())
}

/// Returns references, `HEAD`, index and stashes, without logs.
fn without_logs(view: &str) -> String {
    let (start, rest) = view.split_once("$ git reflog").unwrap();
    let (_, state) = rest.split_once("$ git rev-parse").unwrap();
    start.to_owned() + state.split_once("$ git status").unwrap().0
}

fn view(world: &World) -> String {
    without_logs(&world.view_outside())
}

/// Runs lines of git inside; `before` outside. The plant is in the work tree, the person's things
/// are as before; a yes brings all of it.
fn check_held(before: &[&str], inside: &[&str], names: &[&str]) {
    let world = World::with_repository();
    for line in before {
        world.git(&world.work(), line);
    }
    let mut copy = world.prepare();
    let expected = view(&world);
    world.write(".envrc", "evil\n");
    world.write(".github/workflows/x.yml", "evil\n");
    world.write("a", "changed\n");
    for line in inside {
        let _ = world.try_inside(&copy, line);
    }
    let private = without_logs(&world.view_inside(&copy));
    let carried = carry(&mut copy);
    assert_eq!(view(&world), expected, "{inside:?}");
    let files = carried.history.iter().flat_map(|history| &history.files);
    let mut named: Vec<_> = files.map(|file| file.path.display().to_string()).collect();
    named.sort();
    named.dedup();
    assert_eq!(named, names, "{inside:?}");
    world.check_whole(&world.work().join(".git"));
    refresh(&mut copy);
    let done = apply(&world, &carried.history).unwrap();
    assert_eq!(view(&world), private, "{inside:?}");
    world.check_whole(&world.work().join(".git"));
    refresh(&mut copy);
    assert_eq!(copy.changes().unwrap(), None);
    let folder = world.path("undo");
    fs::create_dir(&folder).unwrap();
    restore(&done, &folder, git_program(), &mut |_| ()).unwrap();
    assert_eq!(view(&world), expected, "{inside:?}");
}

#[test]
fn what_leads_to_a_control_file_waits() {
    let both = [".envrc", ".github/workflows/x.yml"];
    check_held(&[], &["add .", "commit -qm both"], &both);
    check_held(&[], &["add a .envrc", "commit -qm one"], &[".envrc"]);
    // Only the one in the middle has it.
    check_held(
        &[],
        &[
            "commit -qam plain",
            "add .envrc",
            "commit -qm middle",
            "rm -q .envrc",
            "commit -qm last",
        ],
        &[".envrc"],
    );
    check_held(&[], &["stash -qu"], &both);
    check_held(&[], &["add .envrc", "stash -q"], &[".envrc"]);
    check_held(
        &[],
        &[
            "checkout -qb new",
            "add .",
            "commit -qm both",
            "tag -a t -m t",
        ],
        &both,
    );
    check_held(
        &[],
        &[
            "add .envrc",
            "commit -qm one",
            "commit -q --amend --allow-empty -m two",
        ],
        &[".envrc"],
    );
    check_held(
        &["checkout -q --detach"],
        &["add .envrc", "commit -qm detached"],
        &[".envrc"],
    );
    // A merge that holds what none of its parents has.
    check_held(
        &[],
        &[
            "merge -q --no-ff --no-commit side",
            "add .envrc",
            "commit -qm merged",
        ],
        &[".envrc"],
    );
    check_held(&[], &["add -f .envrc"], &[".envrc"]);
    check_held(
        &[],
        &["update-index --add --cacheinfo 100644,5626abf0f72e58d7a153368ba57db4c673c0e171,.envrc"],
        &[".envrc"],
    );
    // A file that is there already, under another name or mode.
    check_held(&[], &["mv -f a .envrc", "commit -qm renamed"], &[".envrc"]);
    check_held(
        &[
            "update-index --add --cacheinfo 100644,5626abf0f72e58d7a153368ba57db4c673c0e171,.envrc",
            "commit -qm mine",
        ],
        &["update-index --chmod=+x .envrc", "commit -qm mode"],
        &[".envrc"],
    );
    // A repository within, which git obeys.
    check_held(
        &[],
        &[
            "update-index --add --cacheinfo 160000,5626abf0f72e58d7a153368ba57db4c673c0e171,build/r",
            "commit -qm link",
        ],
        &["build/r"],
    );
    check_held(
        &[],
        &[
            "update-index --add --cacheinfo 100644,5626abf0f72e58d7a153368ba57db4c673c0e171,bare/HEAD",
            "commit -qm bare",
        ],
        &["bare/HEAD"],
    );
}

/// Everything else is carried over at once: other branches, other entries of the index.
#[test]
fn what_leads_to_no_control_file_is_carried_over() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.write("a", "changed\n");
    world.write(".envrc", "evil\n");
    for line in [
        "checkout -qb bad",
        "add .envrc",
        "commit -qm bad",
        "tag -a annotated -m bad",
        "tag light",
        "branch notes",
        "checkout -q main",
        "checkout -qb good",
        "commit -qam good",
        "tag -a fine -m good",
    ] {
        world.inside(&copy, line);
    }
    let carried = carry(&mut copy);
    let refs = world.git(&world.work(), "for-each-ref --format=%(refname:short)");
    assert_eq!(refs, "good\nmain\nside\nfine\nv1");
    assert_eq!(
        world.git(&world.work(), "rev-parse --abbrev-ref HEAD"),
        "good"
    );
    assert_eq!(world.git(&world.work(), "log -1 --format=%s"), "good");
    let log = world.git(&world.work(), "reflog");
    assert!(!log.contains("commit: bad"), "{log}");
    let held = carried.history[0].held();
    assert_eq!(held, ["bad", "notes", "tags/annotated", "tags/light"]);
    refresh(&mut copy);
    world.write("b", "new\n");
    world.write(".envrc", "evil\n");
    world.inside(&copy, "add b .envrc");
    let carried = carry(&mut copy);
    assert_eq!(world.git(&world.work(), "diff --cached --name-only"), "b");
    assert_eq!(carried.history[0].held(), ["index"]);
    // A person goes on.
    world.git(&world.work(), "commit -qm theirs");
    let refused = apply(&world, &carried.history);
    assert!(
        matches!(refused, Err(CarryError::Moved { .. })),
        "{refused:?}"
    );
    world.check_whole(&world.work().join(".git"));
}

/// A branch of a person that holds such files is nothing new.
#[test]
fn what_a_person_has_already_asks_for_nothing() {
    for inside in [
        &["checkout -q theirs"][..],
        &["merge -q theirs"],
        &["merge -q --no-ff -m merged theirs"],
        &[
            "checkout -qb new theirs",
            "commit -qm empty --allow-empty",
            "tag -a t -m t",
        ],
        &["cherry-pick theirs~2"],
        &["checkout theirs -- .envrc", "commit -qm one"],
        &["checkout -q theirs", "rebase -q main"],
        &["reset -q --hard theirs~1", "reset -q --hard theirs"],
    ] {
        let world = World::with_repository();
        world.git(&world.work(), "checkout -qb theirs side");
        world.write(".envrc", "mine\n");
        world.git(&world.work(), "add .envrc");
        world.git(&world.work(), "commit -qm envrc");
        world.write("c", "c\n");
        world.git(&world.work(), "add c");
        world.git(&world.work(), "commit -qm c");
        world.git(&world.work(), "commit -q --allow-empty -m more");
        world.git(&world.work(), "checkout -q main");
        let mut copy = world.prepare();
        for line in inside {
            world.inside(&copy, line);
        }
        let carried = carry(&mut copy);
        assert!(carried.history.is_empty(), "{inside:?}: {carried:#?}");
        assert!(!carried.stores.is_empty(), "{inside:?}");
        world.check_whole(&world.work().join(".git"));
    }
}

#[test]
fn stashes_of_a_person_stay_theirs() {
    let world = World::with_repository();
    for content in ["one\n", "two\n", "three\n"] {
        world.write(".envrc", content);
        world.git(&world.work(), "stash -qu");
    }
    for inside in [
        &["stash drop -q"][..],
        &["stash drop -q stash@{1}"],
        &["stash pop -q"],
    ] {
        let mut copy = world.prepare();
        for line in inside {
            world.inside(&copy, line);
        }
        let carried = carry(&mut copy);
        assert!(carried.history.is_empty(), "{inside:?}: {carried:#?}");
        assert!(!carried.stores.is_empty(), "{inside:?}");
        refresh(&mut copy);
    }
    assert_eq!(world.git(&world.work(), "stash list"), "");
}

#[test]
fn a_killed_judgement_is_made_again() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.write(".envrc", "evil\n");
    world.inside(&copy, "add .envrc");
    world.inside(&copy, "commit -qm bad");
    let expected = view(&world);
    // Another process holds a lock of what waits anyway.
    let lock = world.work().join(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let held = try_carry(&mut copy).unwrap();
    assert_eq!(held.history.len(), 1);
    fs::remove_file(lock).unwrap();
    let without = recover(&world.path("copy"), git_program(), None, &mut |_| ());
    assert!(without.unwrap().is_none());
    let rule = rule_in(&world.path("work")).workspace.to_owned();
    let again = recover(
        &world.path("copy"),
        git_program(),
        Some(rule_in(&rule)),
        &mut |_| (),
    );
    assert!(again.unwrap().is_none());
    assert_eq!(view(&world), expected);
}

/// A commit that waits in a submodule does not come back by a commit around it.
#[test]
fn a_commit_of_a_submodule_that_waits_is_named_by_none() {
    let world = World::with_repository();
    world.init(&world.path("library"));
    let add = "-c protocol.file.allow=always submodule --quiet add ../library lib/sub";
    world.git(&world.work(), add);
    world.git(&world.work(), "commit -qm submodule");
    let sub = world.work().join("lib/sub");
    let commits = |plant: &str, staged: &str| {
        let mut copy = world.prepare();
        let private = copy.path().join("modules/lib/sub");
        let inside = Some((private.as_path(), sub.as_path()));
        fs::write(sub.join(plant), "new\n").unwrap();
        for line in [&format!("add {plant}"), "commit -qm new"] {
            assert!(world.run(&sub, inside, line).status.success());
        }
        let commit = world.run(&sub, inside, "rev-parse HEAD").stdout;
        let commit = String::from_utf8(commit).unwrap();
        let link = format!("update-index --cacheinfo 160000,{},lib/sub", commit.trim());
        world.inside(&copy, &link);
        world.inside(&copy, staged);
        let carried = carry(&mut copy);
        refresh(&mut copy);
        carried
    };
    let before = world.git(&world.work(), "rev-parse HEAD:lib/sub");
    let carried = commits(".envrc", "commit -qm outer");
    assert_eq!(carried.history.len(), 2, "{carried:#?}");
    assert_eq!(world.git(&world.work(), "rev-parse HEAD:lib/sub"), before);
    fs::remove_file(sub.join(".envrc")).unwrap_or_default();
    world.git(&sub, "reset -q --hard");
    assert!(!sub.join(".envrc").exists());
    for one in carried.history {
        apply(&world, &[one]).unwrap();
    }
    assert_ne!(world.git(&world.work(), "rev-parse HEAD:lib/sub"), before);
    assert!(!world.git(&sub, "ls-files .envrc").is_empty());
    // An ordinary one asks for nothing, neither staged nor committed.
    for staged in ["commit -qm outer", "status"] {
        let carried = commits("plain", staged);
        assert!(carried.history.is_empty(), "{carried:#?}");
        fs::write(sub.join("plain"), "again\n").unwrap();
        world.git(&sub, "commit -qam again");
    }
}
