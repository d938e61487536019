//! Approved changes, undone changes, and repositories that a command made.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use gyrus_workspace::repository::{
    CarryError, FileContent, WithheldPath, apply_withheld, examine_new, restore,
};

use super::world::{World, carry, git_program, refresh};

fn apply(world: &World, withheld: &[WithheldPath]) -> Result<(), CarryError> {
    // They are stored in a journal meanwhile.
    let text = serde_json::to_string(withheld).unwrap();
    let withheld: Vec<_> = serde_json::from_str(&text).unwrap();
    apply_withheld(&withheld, &world.path("copy"), git_program(), &mut |_| ()).map(drop)
}

#[test]
fn what_is_approved_is_applied() {
    let world = World::with_repository();
    let git = world.work().join(".git");
    fs::write(git.join("hooks/old"), "old\n").unwrap();
    let mut copy = world.prepare();
    let hook = copy.path().join("hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(copy.path().join("hooks/old")).unwrap();
    fs::write(copy.path().join("info/attributes"), [0xff, 0]).unwrap();
    world.inside(&copy, "config core.editor vi");
    world.inside(&copy, "config user.name Agent");
    let carried = carry(&mut copy);
    refresh(&mut copy);
    assert_eq!(world.git(&world.work(), "config user.name"), "Agent");
    let withheld = carried.withheld;
    assert_eq!(withheld.len(), 4);
    let config = withheld
        .iter()
        .find(|change| change.path == Path::new("config"))
        .unwrap();
    let text = |content: &Option<FileContent>| match content {
        Some(FileContent::Text { text, .. }) => text.clone(),
        other => panic!("{other:?}"),
    };
    // A person is shown one more line, and nothing that was carried over already.
    assert_eq!(
        text(&config.new).replace("\teditor = vi\n", ""),
        text(&config.old)
    );
    // The person changed another setting meanwhile.
    world.git(&world.work(), "config color.ui never");
    apply(&world, &withheld).unwrap();
    assert_eq!(world.git(&world.work(), "config core.editor"), "vi");
    assert_eq!(world.git(&world.work(), "config color.ui"), "never");
    assert_eq!(fs::read(git.join("info/attributes")).unwrap(), [0xff, 0]);
    assert!(!git.join("hooks/old").exists());
    assert!(
        !world
            .run(&world.work(), None, "commit --allow-empty -m x")
            .status
            .success()
    );
    // Repeating it does no harm.
    apply(&world, &withheld).unwrap();
    world.check_whole(&git);
}

#[test]
fn what_is_not_as_it_was_shown_is_not_applied() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    fs::write(copy.path().join("hooks/pre-commit"), "agent\n").unwrap();
    world.inside(&copy, "config core.editor vi");
    let mut withheld = carry(&mut copy).withheld;
    world.git(&world.work(), "config core.editor emacs");
    let moved = |withheld: &[WithheldPath]| {
        assert!(matches!(
            apply(&world, withheld),
            Err(CarryError::Moved { .. })
        ));
        assert_eq!(world.git(&world.work(), "config core.editor"), "emacs");
        assert!(!world.work().join(".git/hooks/pre-commit").exists());
        world.check_whole(&world.work().join(".git"));
    };
    moved(&withheld);
    world.git(&world.work(), "config --unset core.editor");
    symlink("/etc/passwd", copy.path().join("hooks/link")).unwrap();
    copy.discard().unwrap();
    symlink("/etc/passwd", copy.path().join("hooks/link")).unwrap();
    withheld.extend(carry(&mut copy).withheld);
    world.git(&world.work(), "config core.editor emacs");
    moved(&withheld);
    // Nor is any file outside of the repository, even if a journal names it.
    for path in ["../outside", "/tmp/outside", "hooks/../../outside"] {
        withheld.truncate(1);
        withheld[0].path = path.into();
        assert!(apply(&world, &withheld).is_err());
        assert!(!world.work().join("outside").exists());
        fs::remove_file(world.path("copy/plan.json")).unwrap_or_default();
    }
}

#[test]
fn a_work_tree_is_added_after_a_yes() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.inside(&copy, "worktree add -q trees/new -b new");
    let tree = world.work().join("trees/new");
    fs::write(tree.join("staged"), "staged\n").unwrap();
    let private = copy.path().join("worktrees/new");
    let inside = Some((private.as_path(), tree.as_path()));
    assert!(world.run(&tree, inside, "add staged").status.success());
    let carried = carry(&mut copy);
    assert_eq!(
        world.git(&world.work(), "rev-parse new"),
        world.git(&world.work(), "rev-parse main")
    );
    assert_eq!(
        world
            .git(&world.work(), "worktree list --porcelain")
            .matches("worktree ")
            .count(),
        1
    );
    apply(&world, &carried.withheld).unwrap();
    refresh(&mut copy);
    fs::write(
        tree.join(".git"),
        format!(
            "gitdir: {}\n",
            world.work().join(".git/worktrees/new").display()
        ),
    )
    .unwrap();
    assert_eq!(world.git(&tree, "status --porcelain"), "A  staged");
    world.check_whole(&world.work().join(".git"));
}

/// All changes of references, `HEAD` and index by a command are undone.
#[test]
fn what_was_carried_over_is_taken_back() {
    let check = |before: &[&str], inside: &[&str]| {
        let world = World::with_repository();
        world.write("a", "dirty\n");
        for line in before {
            world.git(&world.work(), line);
        }
        let mut copy = world.prepare();
        let view = |world: &World| {
            let view = world.view_outside();
            let (start, rest) = view.split_once("$ git reflog").unwrap();
            start.to_owned()
                + rest
                    .split_once("$ git rev-parse -q --verify MERGE")
                    .unwrap()
                    .1
                    .split_once("$ git status")
                    .unwrap()
                    .0
        };
        let expected = view(&world);
        for line in inside {
            let _ = world.try_inside(&copy, line);
        }
        let carried = carry(&mut copy);
        let changed = view(&world);
        assert_ne!(changed, expected, "{inside:?}");
        refresh(&mut copy);
        let carried = serde_json::from_str(&serde_json::to_string(&carried).unwrap()).unwrap();
        let folder = world.path("undo");
        fs::create_dir(&folder).unwrap();
        restore(&carried, &folder, git_program(), &mut |_| ()).unwrap();
        assert_eq!(view(&world), expected, "{inside:?}");
        world.check_whole(&world.work().join(".git"));
    };
    check(&[], &["commit -qam changed", "tag new", "branch -D side"]);
    check(
        &[],
        &[
            "stash push -q",
            "checkout -q side",
            "branch -M other",
            "tag -d v1",
        ],
    );
    check(
        &["stash push -q"],
        &[
            "stash drop -q",
            "config user.name agent",
            "rm -q --cached a",
        ],
    );
}

/// Otherwise it would seem to be undone already, and with it what came after it.
#[test]
fn lines_of_logs_are_nothing_to_take_back() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.inside(&copy, "checkout -q side");
    world.inside(&copy, "checkout -q main");
    let carried = carry(&mut copy);
    assert_eq!(carried.stores.len(), 1);
    assert_eq!(carried.to_take_back(), None);
    refresh(&mut copy);
    world.inside(&copy, "branch new");
    assert!(carry(&mut copy).to_take_back().is_some());
}

#[test]
fn what_somebody_went_on_from_is_not_taken_back() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    world.write("a", "changed\n");
    world.inside(&copy, "commit -qam changed");
    world.inside(&copy, "tag new");
    let carried = carry(&mut copy);
    let lines = [
        "commit -q --allow-empty -m theirs",
        "rm -q --cached a",
        "checkout -q side",
        "tag -f new side",
    ];
    for line in lines {
        let before = world.git(&world.work(), "rev-parse HEAD");
        world.git(&world.work(), line);
        let now = world.view_outside();
        let tried = restore(&carried, &world.path("copy"), git_program(), &mut |_| ());
        assert!(
            matches!(tried, Err(CarryError::Moved { .. })),
            "{line}: {tried:?}"
        );
        assert_eq!(world.view_outside(), now, "{line}");
        world.check_whole(&world.work().join(".git"));
        world.git(&world.work(), "checkout -qf main");
        world.git(&world.work(), &format!("reset -q --hard {before}"));
    }
}

#[test]
fn new_repositories_are_examined() {
    let world = World::empty();
    world.init(&world.path("library"));
    let names = |path: &Path| {
        let found = examine_new(path).unwrap();
        let mut names: Vec<_> = found
            .iter()
            .map(|change| change.path.display().to_string())
            .collect();
        names.sort();
        names
    };
    let library = world.path("library/.git");
    assert_eq!(names(&library), [""; 0]);
    let clone = world.path("clone");
    world.git(&world.path(""), "clone -q library clone");
    let git = clone.join(".git");
    // The address is a folder of this machine, which is a place.
    assert_eq!(names(&git), ["config"]);
    world.git(
        &clone,
        "remote set-url origin https://example.org/library.git",
    );
    assert_eq!(names(&git), [""; 0]);
    world.git(&clone, "config core.fsmonitor ./evil");
    world.git(&clone, "config user.name Agent");
    let found = examine_new(&git).unwrap();
    let Some(FileContent::Text { text, .. }) = &found[0].old else {
        panic!("{found:?}");
    };
    assert!(text.contains("Agent") && !text.contains("evil"), "{text}");
    fs::write(git.join("config"), text).unwrap();
    assert_eq!(names(&git), [""; 0]);
    let planted = [
        "commondir",
        "config.worktree",
        "hooks/pre-commit",
        "info/attributes",
        "info/exclude",
        "modules/x/config",
        "objects/info/alternates",
        "rebase-merge/git-rebase-todo",
        "refs/replace/x",
        "unheard-of",
        "worktrees/x/gitdir",
    ];
    for name in planted {
        let path = git.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "[core]\n\teditor = evil\n").unwrap();
    }
    symlink("/etc", git.join("linked")).unwrap();
    let mut expected = planted.to_vec();
    expected.push("linked");
    expected.sort_unstable();
    assert_eq!(names(&git), expected);
    fs::write(world.work().join(".git"), "gitdir: ../library/.git\n").unwrap();
    assert_eq!(names(&world.work().join(".git")), [".git"]);
}
