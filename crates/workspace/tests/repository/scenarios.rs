//! Everyday work of a command with git: each is carried over completely.

use std::fs;

use super::world::{World, carry, refresh};

/// Runs git commands inside, one a line (`!` before one that fails, `>` before a file to be written
/// with its content), carries them over, and compares both sides.
fn check(before: &str, inside: &str) -> World {
    let world = World::with_repository();
    for line in lines(before) {
        match line.strip_prefix('>') {
            Some(file) => write(&world, file),
            None => drop(world.git(&world.work(), line)),
        }
    }
    let mut copy = world.prepare();
    let untouched = objects(&world);
    for line in lines(inside) {
        if let Some(file) = line.strip_prefix('>') {
            write(&world, file);
        } else if let Some(line) = line.strip_prefix('!') {
            assert!(!world.try_inside(&copy, line).status.success(), "{line}");
        } else {
            world.inside(&copy, line);
        }
    }
    assert_eq!(objects(&world), untouched);
    let expected = world.view_inside(&copy);
    let carried = carry(&mut copy);
    assert_eq!(
        (carried.notes, carried.withheld, carried.kept),
        (vec![], vec![], vec![])
    );
    assert_eq!(world.view_outside(), expected, "{inside}");
    world.check_whole(&world.work().join(".git"));
    // Afterwards both sides are one again.
    refresh(&mut copy);
    assert_eq!(world.view_inside(&copy), expected);
    assert_eq!(copy.changes().unwrap(), None);
    world
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn write(world: &World, file: &str) {
    let (path, content) = file.trim().split_once(' ').unwrap();
    world.write(path, &format!("{content}\n"));
}

fn objects(world: &World) -> Vec<String> {
    super::world::files(&world.work().join(".git/objects"))
}

#[test]
fn commits() {
    check(
        "",
        "> c new
        add c
        commit -qm third
        > a more
        commit -qam fourth",
    );
    check("", "commit -q --amend -m other");
    check("checkout -q HEAD~0", "commit -q --amend -m detached");
}

#[test]
fn only_the_index() {
    check(
        "",
        "> new text
        add new
        > later text
        add -N later
        rm -q --cached a",
    );
    // In all formats that git writes.
    for version in [3, 4] {
        check(
            &format!("update-index --index-version {version}"),
            "> src/c later\n add -N src/c\n > src/bc text\n add src/bc\n rm -q --cached src/b",
        );
    }
}

#[test]
fn branches_and_tags() {
    check(
        "branch old",
        "branch -d old
        branch -m side other
        branch nested/one
        tag light
        tag -d v1
        tag -a v2 -m v2",
    );
    check(
        "branch x
        pack-refs --all",
        "branch -d x
        branch x/y
        branch -m side x/z
        tag -d v1",
    );
    check("branch x/y", "branch -d x/y\n branch x");
    check("", "branch -m main trunk");
    check("", "checkout -q --orphan fresh\n commit -qm root");
}

#[test]
fn checkouts() {
    check("", "checkout -q side");
    check(
        "",
        "checkout -q -b feature
        > f text
        add f
        commit -qm feature
        checkout -q main
        merge -q --no-ff -m merged feature",
    );
    check("", "reset -q --hard HEAD~1");
    check("", "checkout -q v1");
}

#[test]
fn finished_rebases() {
    check(
        "checkout -q side
        commit -q --allow-empty -m extra",
        "rebase -q main",
    );
    check(
        "checkout -q side
        > c text
        add c
        commit -qm extra
        checkout -q main",
        "cherry-pick side",
    );
    check("", "revert --no-edit HEAD");
}

#[test]
fn a_conflict_of_a_merge() {
    let world = check(
        "checkout -q side
        > a other
        commit -qam theirs
        checkout -q main",
        "!merge side",
    );
    assert!(world.work().join(".git/MERGE_HEAD").exists());
    assert!(world.view_outside().contains(" 3\ta"));
    check(
        "checkout -q side
        > a other
        commit -qam theirs
        checkout -q main
        merge -q -s ours --no-commit side",
        "commit -q --no-edit",
    );
}

#[test]
fn stashes() {
    let two = "> a dirty\n stash push -q -m first\n > a again\n stash push -q -m second";
    check("", two);
    check(two, "stash pop -q");
    check(two, "stash drop -q stash@{1}");
    check(two, "stash clear");
}

#[test]
fn what_rewrites_everything() {
    check("", "> c new\n add c\n commit -qm third\n gc -q");
    check("", "pack-refs --all\n tag packed");
    check("", "repack -adq\n commit -q --allow-empty -m empty");
    check("", "filter-branch -f --msg-filter 'sed s/^/x/' -- --all");
}

#[test]
fn a_folder_is_moved() {
    check("", "mv src lib\n commit -qm moved");
}

#[test]
fn a_first_commit() {
    let world = World::empty();
    world.git(&world.work(), "init -q -b main");
    let mut copy = world.prepare();
    world.write("a", "text");
    world.inside(&copy, "add a");
    world.inside(&copy, "commit -qm first");
    let expected = world.view_inside(&copy);
    carry(&mut copy);
    assert_eq!(world.view_outside(), expected);
    world.check_whole(&world.work().join(".git"));
}

/// More objects than are kept one by one, and more references than are synced one by one.
#[test]
fn many_of_everything() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    for n in 0..120 {
        world.write(&format!("many/{n}"), &n.to_string());
    }
    world.inside(&copy, "add .");
    world.inside(&copy, "commit -qm many");
    let head = world.inside(&copy, "rev-parse HEAD");
    for n in 0..50 {
        fs::write(
            copy.path().join(format!("refs/heads/b{n}")),
            format!("{head}\n"),
        )
        .unwrap();
    }
    let expected = world.view_inside(&copy);
    carry(&mut copy);
    assert_eq!(world.view_outside(), expected);
    let packs = super::world::files(&world.work().join(".git/objects/pack"));
    assert_eq!(
        packs.iter().filter(|name| name.ends_with(".pack")).count(),
        1
    );
    world.check_whole(&world.work().join(".git"));
}
