//! Repositories of all kinds and in all places.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use gyrus_workspace::repository::{
    Discovery, GitDirectory, PrivateCopy, RealObjects, Support, find,
};

use super::world::{World, carry, refresh};

fn only(found: Discovery) -> GitDirectory {
    assert_eq!(found.directories.len(), 1, "{found:#?}");
    found.directories.into_iter().next().unwrap()
}

fn prepare(world: &World, directory: &GitDirectory) -> PrivateCopy {
    PrivateCopy::prepare(
        directory,
        &world.path("copy"),
        "run-1",
        RealObjects::InPlace,
    )
    .unwrap()
}

#[test]
fn a_linked_work_tree() {
    let world = World::empty();
    world.init(&world.path("main"));
    fs::remove_dir(world.work()).unwrap();
    world.git(&world.path("main"), "worktree add -q ../work side");
    world.git(&world.path("main"), "worktree add -q ../third -b third");
    let directory = only(find(&world.work()).unwrap());
    assert_eq!(directory.path, world.path("main/.git"));
    assert_eq!(directory.pointers, [world.work().join(".git")]);
    let mut copy = prepare(&world, &directory);
    let private = copy.path().join("worktrees/work");
    let inside = Some((private.as_path(), world.path("work")));
    let inside = inside.as_ref().map(|(git, work)| (*git, work.as_path()));
    let main = world.view(&world.path("main"), None);
    world.write("new", "new\n");
    world.write("src/b", "changed\n");
    for line in [
        "add new",
        "commit -qm new",
        "stash push -q",
        "checkout -q -b feature",
        "mv src lib",
    ] {
        let output = world.run(&world.work(), inside, line);
        assert!(output.status.success(), "{output:?}");
    }
    // Files of others are not touched.
    fs::write(copy.path().join("HEAD"), "ref: refs/heads/side\n").unwrap();
    fs::remove_file(copy.path().join("worktrees/third/index")).unwrap();
    let expected = world.view(&world.work(), inside);
    let carried = carry(&mut copy);
    assert_eq!((carried.notes, carried.kept), (vec![], vec![]));
    assert_eq!(world.view(&world.work(), None), expected);
    world.check_whole(&world.path("main/.git"));
    let own = |view: &str| {
        view.lines()
            .filter(|line| line.contains("100644") || line.contains("refs/heads/main"))
            .count()
    };
    assert_eq!(own(&world.view(&world.path("main"), None)), own(&main));
    refresh(&mut copy);
    assert_eq!(world.view(&world.work(), inside), expected);
}

/// Several work trees of one repository, in one workspace.
#[test]
fn several_work_trees() {
    let world = World::with_repository();
    world.git(&world.work(), "worktree add -q trees/one side");
    let directory = only(find(&world.work()).unwrap());
    assert_eq!(directory.pointers, [world.work().join("trees/one/.git")]);
    let mut copy = prepare(&world, &directory);
    let tree = world.work().join("trees/one");
    let private = copy.path().join("worktrees/one");
    let inside = Some((private.as_path(), tree.as_path()));
    for line in ["commit -q --allow-empty -m one", "rm -q a"] {
        assert!(world.run(&tree, inside, line).status.success());
    }
    world.inside(&copy, "commit -q --allow-empty -m main");
    let expected = (world.view(&tree, inside), world.view_inside(&copy));
    carry(&mut copy);
    assert_eq!((world.view(&tree, None), world.view_outside()), expected);
    world.check_whole(&world.work().join(".git"));
}

#[test]
fn a_submodule() {
    let world = World::with_repository();
    world.init(&world.path("library"));
    world.git(
        &world.work(),
        "-c protocol.file.allow=always submodule --quiet add ../library lib/sub",
    );
    world.git(&world.work(), "commit -qm submodule");
    let directory = only(find(&world.work()).unwrap());
    assert_eq!(directory.path, world.work().join(".git"));
    assert_eq!(directory.pointers, [world.work().join("lib/sub/.git")]);
    let mut copy = prepare(&world, &directory);
    let places: Vec<_> = copy
        .binds()
        .into_iter()
        .map(|bind| (bind.place, bind.source))
        .collect();
    let git = world.work().join(".git");
    let store = git.join("modules/lib/sub");
    assert_eq!(
        places,
        [
            (git.clone(), copy.path()),
            (git.join("gyrus-objects"), git.join("objects")),
            (store.join("gyrus-objects"), store.join("objects")),
        ]
    );
    let sub = world.work().join("lib/sub");
    let private = copy.path().join("modules/lib/sub");
    let inside = Some((private.as_path(), sub.as_path()));
    fs::write(sub.join("a"), "changed\n").unwrap();
    assert!(
        world
            .run(&sub, inside, "commit -qam changed")
            .status
            .success()
    );
    let commit = world.run(&sub, inside, "rev-parse HEAD").stdout;
    let commit = String::from_utf8(commit).unwrap();
    world.inside(
        &copy,
        &format!("update-index --cacheinfo 160000,{},lib/sub", commit.trim()),
    );
    world.inside(&copy, "commit -qm sub");
    let expected = world.view(&sub, inside);
    let carried = carry(&mut copy);
    assert_eq!(carried.stores[0].store, Path::new("modules/lib/sub"));
    assert_eq!(world.view(&sub, None), expected);
    assert_eq!(world.git(&world.work(), "status --porcelain"), "");
    assert_eq!(
        world.git(&world.work(), "rev-parse HEAD"),
        world.inside(&copy, "rev-parse HEAD")
    );
    for git in [&git, &store] {
        world.check_whole(git);
    }
    // The workspace may also be the submodule alone.
    let directory = only(find(&sub).unwrap());
    assert_eq!(
        (directory.path, directory.support),
        (store, Support::Carried)
    );
}

#[test]
fn nested_and_embedded_repositories() {
    let world = World::with_repository();
    world.init(&world.work().join("vendor/nested"));
    world.git(&world.work(), "init -q --bare deep/bare.git");
    world.git(
        &world.work(),
        "init -q --separate-git-dir=../apart separate",
    );
    world.init(&world.path("elsewhere"));
    fs::create_dir(world.work().join("linked")).unwrap();
    symlink(
        world.path("elsewhere/.git"),
        world.work().join("linked/.git"),
    )
    .unwrap();
    let found = find(&world.work()).unwrap().directories;
    let found: Vec<_> = found
        .iter()
        .map(|directory| (directory.name(), directory.support == Support::Carried))
        .collect();
    let outside = |name: &str| world.path(name).display().to_string();
    let mut expected = [
        (".git".to_owned(), true),
        ("vendor/nested/.git".to_owned(), true),
        ("deep/bare.git".to_owned(), false),
        (outside("apart"), true),
        (outside("elsewhere/.git"), true),
    ];
    expected.sort();
    let mut found = found;
    found.sort();
    assert_eq!(found, expected);
    // Each is carried over like any other.
    let all = find(&world.work()).unwrap().directories;
    for (name, tree) in [("nested", "vendor/nested"), ("elsewhere", "linked")] {
        let directory = all
            .iter()
            .find(|directory| directory.path.to_string_lossy().contains(name))
            .unwrap();
        let folder = world.path(&format!("copy/{name}"));
        fs::create_dir(&folder).unwrap();
        let mut copy = PrivateCopy::prepare(directory, &folder, "r", RealObjects::InPlace).unwrap();
        let tree = world.work().join(tree);
        let private = copy.path();
        let inside = Some((private.as_path(), tree.as_path()));
        assert!(
            world
                .run(&tree, inside, "commit -q --allow-empty -m inside")
                .status
                .success()
        );
        let expected = world.view(&tree, inside);
        assert_eq!(carry(&mut copy).kept, []);
        assert_eq!(world.view(&tree, None), expected);
        world.check_whole(&directory.path);
    }
}

#[test]
fn what_is_not_supported_is_said() {
    let check = |change: &dyn Fn(&World), expected: &str| {
        let world = World::with_repository();
        change(&world);
        match only(find(&world.work()).unwrap()).support {
            Support::NotCarried { reason } => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{expected}: {other:?}"),
        }
    };
    let git = |line: &'static str| move |world: &World| drop(world.git(&world.work(), line));
    check(
        &git("config extensions.objectFormat sha256"),
        "extensions.objectformat = sha256",
    );
    check(&git("config extensions.refStorage reftable"), "refstorage");
    check(
        &git("config extensions.partialClone origin"),
        "partialclone",
    );
    check(&git("config extensions.unheardOf true"), "unheardof");
    check(&git("config core.repositoryFormatVersion 2"), "format 2");
    let config = |text: &'static str| {
        move |world: &World| fs::write(world.work().join(".git/config"), text).unwrap()
    };
    check(&config("[core"), "line 1");
    let file = |world: &World, path: &str| world.work().join(".git").join(path);
    check(
        &|world| fs::write(file(world, "HEAD"), "nonsense").unwrap(),
        "HEAD",
    );
    check(
        &|world| fs::write(file(world, "commondir"), "..").unwrap(),
        "another repository",
    );
    check(
        &|world| {
            fs::rename(file(world, "refs"), world.path("refs")).unwrap();
            symlink(world.path("refs"), file(world, "refs")).unwrap();
        },
        "`refs` is not a folder",
    );
    // Indexes that hold less than they seem to.
    let world = World::with_repository();
    world.git(&world.work(), "update-index --split-index");
    let directory = only(find(&world.work()).unwrap());
    let refused = PrivateCopy::prepare(&directory, &world.path("copy"), "r", RealObjects::InPlace);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("a split index"), "{error}");
}

#[test]
fn pointers_that_lead_astray_are_not_followed() {
    let world = World::empty();
    world.init(&world.path("real"));
    world.git(&world.path("real"), "worktree add -q ../tree side");
    let pointers = [
        // Leads to a folder with a blank at its end, which does not exist.
        format!("gitdir: {} \n", world.path("real/.git").display()),
        // Leads to the files of a work tree that is another folder.
        format!(
            "gitdir: {}\n",
            world.path("real/.git/worktrees/tree").display()
        ),
        "gitdir: ../nowhere\n".to_owned(),
        "nonsense".to_owned(),
        String::new(),
    ];
    for pointer in pointers {
        world.write(".git", &pointer);
        let directory = only(find(&world.work()).unwrap());
        assert_eq!(directory.path, world.work().join(".git"));
        assert!(
            matches!(directory.support, Support::NotCarried { .. }),
            "{pointer:?}"
        );
    }
}

/// Objects may lie with another repository already, named relative to this one.
#[test]
fn borrowed_objects() {
    let world = World::empty();
    world.init(&world.path("lender"));
    world.git(&world.path(""), "clone -q --shared lender work");
    let list = world.work().join(".git/objects/info/alternates");
    fs::write(&list, "# ours\n../../../lender/.git/objects\n").unwrap();
    let mut copy = world.prepare();
    world.inside(&copy, "commit -q --allow-empty -m inside");
    let expected = world.view_inside(&copy);
    assert_eq!(carry(&mut copy).withheld, []);
    assert_eq!(world.view_outside(), expected);
    // Bound beside the private objects, the real ones still lead to the lender's.
    let directory = copy.directory().clone();
    let folder = world.path("bound");
    fs::create_dir(&folder).unwrap();
    let copy = PrivateCopy::prepare(&directory, &folder, "r", RealObjects::Bound).unwrap();
    let list = fs::read_to_string(copy.path().join("objects/info/alternates")).unwrap();
    let git = world.work().join(".git");
    let lender = git.join("objects/../../../lender/.git/objects");
    let lines: Vec<_> = list.lines().map(PathBuf::from).collect();
    assert_eq!(lines, [git.join("gyrus-objects"), lender]);
}

#[test]
fn a_shallow_clone() {
    let world = World::empty();
    world.init(&world.path("lender"));
    let from = format!("file://{}", world.path("lender").display());
    world.git(&world.path(""), &format!("clone -q --depth 1 {from} work"));
    let mut copy = world.prepare();
    world.write("a", "changed\n");
    world.inside(&copy, "commit -qam inside");
    let expected = world.view_inside(&copy);
    carry(&mut copy);
    assert_eq!(world.view_outside(), expected);
    world.check_whole(&world.work().join(".git"));
}
