//! Hostile commands that write the private copy: nothing of it is carried over, and it is reported.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use gyrus_workspace::repository::{CarryError, CarryRecord, PrivateCopy, RefreshResult};

use super::world::{World, carry, carry_those, files, refresh, try_carry};

/// Returns every file of the real git directory with a digest, without objects and the kept
/// references.
fn state(world: &World) -> Vec<(String, u64)> {
    let git = world.work().join(".git");
    let is_left_out =
        |name: &String| name.starts_with("objects/") || name.starts_with("refs/gyrus");
    let names = files(&git).into_iter().filter(|name| !is_left_out(name));
    let digest = |name: &String| {
        let mut hasher = DefaultHasher::new();
        fs::read(git.join(name))
            .unwrap_or_default()
            .hash(&mut hasher);
        hasher.finish()
    };
    names.map(|name| (name.clone(), digest(&name))).collect()
}

/// Returns paths of the real git directory that have changed.
fn changed(world: &World, before: &[(String, u64)]) -> Vec<String> {
    let now = state(world);
    let new = now.iter().filter(|file| !before.contains(file));
    let gone = before.iter().filter(|file| !now.contains(file));
    new.chain(gone).map(|(name, _)| name.clone()).collect()
}

/// Runs an attack on the copy, carries over, and checks that nothing arrived.
fn harmless(attack: impl Fn(&World, &PrivateCopy)) -> CarryRecord {
    let world = World::with_repository();
    let mut copy = world.prepare();
    let before = state(&world);
    attack(&world, &copy);
    let carried = carry(&mut copy);
    assert_eq!(changed(&world, &before), [""; 0]);
    assert!(
        carried.stores.iter().all(|store| store.refs.is_empty()),
        "{:#?}",
        carried.stores
    );
    world.check_whole(&world.work().join(".git"));
    // The next command finds no trace of it.
    refresh(&mut copy);
    assert_eq!(copy.changes().unwrap(), None);
    world.inside(&copy, "fsck");
    carried
}

#[test]
fn what_programs_obey_is_withheld() {
    let planted = [
        ("hooks/pre-commit", "#!/bin/sh\ntouch FLAG\n"),
        ("hooks/reference-transaction", "#!/bin/sh\ntouch FLAG\n"),
        ("info/attributes", "* filter=evil\n"),
        ("info/exclude", "evil\n"),
        ("info/grafts", "x\n"),
        (
            "objects/info/alternates",
            "/home/somebody/secret/.git/objects\n",
        ),
        ("commondir", "../evil\n"),
        ("gitdir", "../evil\n"),
        ("config.worktree", "[core]\n\tfsmonitor = ./evil\n"),
        ("shallow", "0123456789012345678901234567890123456789\n"),
        ("refs/.hidden", "x"),
        ("unheard-of", "x"),
    ];
    let carried = harmless(|_, copy| {
        for (path, content) in planted {
            let path = copy.path().join(path);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
    });
    let mut withheld: Vec<_> = carried
        .withheld
        .iter()
        .map(|change| change.path.to_str().unwrap())
        .collect();
    withheld.sort_unstable();
    let mut expected: Vec<_> = planted
        .map(|(path, _)| path)
        .into_iter()
        .filter(|path| !path.starts_with("refs/"))
        .collect();
    expected.sort_unstable();
    assert_eq!(withheld, expected);
    assert_eq!(
        carried.notes,
        ["`.git/refs/.hidden` was not kept: git forbids one of its parts"]
    );
}

#[test]
fn settings_that_name_a_program_are_withheld() {
    let carried = harmless(|world, copy| {
        for line in [
            "config core.hooksPath hooks",
            "config core.fsmonitor ./evil",
            "config alias.st !./evil",
            "config diff.external ./evil",
            "config include.path ../evil",
            "config remote.origin.url ext::./evil",
            "config branch.main.remote ../evil",
        ] {
            world.inside(copy, line);
        }
    });
    let [withheld] = carried.withheld.as_slice() else {
        panic!("{:#?}", carried.withheld);
    };
    assert_eq!(
        (withheld.path.to_str(), withheld.settings.len()),
        (Some("config"), 7)
    );
}

#[test]
fn references_that_are_none_are_dropped() {
    let carried = harmless(|world, copy| {
        let refs = copy.path().join("refs");
        let head = world.inside(copy, "rev-parse HEAD");
        symlink("/etc/passwd", refs.join("heads/link")).unwrap();
        symlink("/etc", refs.join("heads/folder")).unwrap();
        fs::write(refs.join("heads/symbolic"), "ref: refs/heads/main\n").unwrap();
        fs::write(refs.join("heads/-option"), format!("{head}\n")).unwrap();
        fs::write(refs.join("heads/nonsense"), "nonsense").unwrap();
        fs::write(refs.join("heads/with\u{1b}[2Jescape"), format!("{head}\n")).unwrap();
        for name in ["top", "heads/$(evil)", "tags/main"] {
            fs::write(refs.join(name), format!("{head}\n")).unwrap();
        }
        for line in [
            "update-ref refs/replace/",
            "update-ref refs/gyrus/kept/x ",
            "update-ref refs/pull/1 ",
        ] {
            let _ = world.try_inside(copy, &format!("{line}{head} {head}"));
        }
    });
    for part in [
        "heads/link",
        "heads/folder",
        "heads/symbolic",
        "heads/-option",
        "heads/nonsense",
        "escape",
        "refs/top",
        "refs/replace/",
        "$(evil)",
        "tags/main",
    ] {
        assert!(
            carried.notes.iter().any(|note| note.contains(part)),
            "{part}: {:#?}",
            carried.notes
        );
    }
    // A link in the place of a whole folder removes nothing.
    harmless(|_, copy| {
        fs::rename(copy.path().join("refs"), copy.path().join("other")).unwrap();
        symlink("other", copy.path().join("refs")).unwrap();
    });
    // Nor does removing everything.
    harmless(|_, copy| {
        fs::remove_dir_all(copy.path()).unwrap();
        fs::create_dir(copy.path()).unwrap();
    });
    // Nor removing a branch that is checked out, which git itself refuses.
    harmless(|world, copy| drop(world.inside(copy, "update-ref -d refs/heads/main")));
    for content in [
        "ref: refs/../config",
        "ref: refs/remotes/x",
        "ref: refs/heads/x.lock",
        "x",
        "",
    ] {
        harmless(|_, copy| fs::write(copy.path().join("HEAD"), content).unwrap());
    }
}

/// Files written into the copy afterwards stay in it.
#[test]
fn links_in_the_copy_lead_nowhere() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    let outside = world.path("outside");
    fs::create_dir_all(outside.join("heads")).unwrap();
    fs::write(outside.join("file"), "theirs").unwrap();
    for name in ["refs", "logs", "objects", "info", "hooks"] {
        fs::remove_dir_all(copy.path().join(name)).unwrap();
        symlink(&outside, copy.path().join(name)).unwrap();
    }
    for name in ["index", "config", "packed-refs", "description"] {
        let _ = fs::remove_file(copy.path().join(name));
        symlink(outside.join("file"), copy.path().join(name)).unwrap();
    }
    fs::create_dir_all(copy.path().join("ORIG_HEAD/deep")).unwrap();
    fs::set_permissions(
        copy.path().join("ORIG_HEAD"),
        PermissionsExt::from_mode(0o0),
    )
    .unwrap();
    let before = state(&world);
    carry(&mut copy);
    assert_eq!(changed(&world, &before), [""; 0]);
    world.git(&world.work(), "commit -q --allow-empty -m theirs");
    copy.refresh().unwrap();
    assert_eq!(world.view_inside(&copy), world.view_outside());
    assert_eq!(files(&outside), ["file", "heads"]);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"theirs");
}

#[test]
fn odd_indexes_are_refused() {
    let entry = |mode: u32, flags: u16, path: &str| {
        let mut bytes = vec![0; 24];
        bytes.extend(mode.to_be_bytes());
        bytes.extend([0; 12]);
        bytes.extend([0x11; 20]);
        bytes.extend((flags | u16::try_from(path.len()).unwrap()).to_be_bytes());
        bytes.extend(path.as_bytes());
        let length = (bytes.len() + 8) / 8 * 8;
        bytes.resize(length, 0);
        bytes
    };
    let index = |entries: &[Vec<u8>]| {
        let mut bytes = b"DIRC\0\0\0\x02".to_vec();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        bytes.extend(entries.concat());
        bytes.extend([0; 20]);
        bytes
    };
    let file = 0o100_644;
    let mut odd = vec![
        b"".to_vec(),
        b"DIRC".to_vec(),
        vec![0; 100],
        b"DIRC\0\0\0\x02\xff\xff\xff\xff".to_vec(),
    ];
    for path in [
        ".git/config",
        "../x",
        "/etc/passwd",
        "a/../../x",
        "a//b",
        ".GIT/hooks/x",
        "git~1/config",
        "./x",
    ] {
        odd.push(index(&[entry(file, 0, path)]));
    }
    odd.push(index(&[entry(0o040_000, 0, "folder")]));
    odd.push(index(&[entry(0o060_644, 0, "device")]));
    odd.push(index(&[entry(0o120_000, 0, ".gitmodules")]));
    odd.push(index(&[entry(file, 0, "x"), entry(file, 0, "x")]));
    odd.push(index(&[entry(file, 0, "x"), entry(file, 0, "x/y")]));
    let mut extended = index(&[entry(file, 0, "x")]);
    let end = extended.len() - 20;
    extended.splice(end..end, *b"link\0\0\0\x04abcd");
    odd.push(extended);
    let world = World::with_repository();
    let mut copy = world.prepare();
    let before = state(&world);
    for bytes in odd {
        fs::write(copy.path().join("index"), &bytes).unwrap();
        // With a commit that would have to be carried over with it.
        let commit = world.git(&world.work(), "commit-tree -m x HEAD^{tree}");
        fs::write(copy.path().join("refs/heads/main"), format!("{commit}\n")).unwrap();
        let carried = carry(&mut copy);
        assert_eq!(carried.notes.len(), 1, "{bytes:?} {carried:#?}");
        assert_eq!(carried.kept[0].what, "refs/heads/main");
        assert_eq!(changed(&world, &before), [""; 0]);
        refresh(&mut copy);
    }
}

/// Runs an attack on the objects of a commit, which is then refused as a whole.
fn refused(attack: impl Fn(&World, &PrivateCopy)) -> String {
    let world = World::with_repository();
    let mut copy = world.prepare();
    let before = state(&world);
    world.write("a", "changed\n");
    world.inside(&copy, "commit -qam changed");
    attack(&world, &copy);
    let Err(CarryError::Refused { reason }) = try_carry(&mut copy) else {
        panic!("it was carried over");
    };
    assert_eq!(changed(&world, &before), [""; 0]);
    world.check_whole(&world.work().join(".git"));
    let RefreshResult::Updated { .. } = copy.discard().unwrap() else {
        panic!("it stayed");
    };
    world.inside(&copy, "fsck");
    assert_eq!(copy.changes().unwrap(), None);
    reason
}

/// Returns the path of a loose object of the copy.
fn loose(copy: &PrivateCopy, id: &str) -> PathBuf {
    copy.path().join("objects").join(&id[..2]).join(&id[2..])
}

#[test]
fn damaged_objects_are_refused() {
    // Gone, nonsense, another object's content, a pipe.
    type Attack<'a> = &'a dyn Fn(&World, &PrivateCopy, &Path);
    let attacks: [(&str, Attack<'_>); 5] = [
        ("HEAD", &|_, _, _| ()),
        ("HEAD^{tree}", &|_, _, _| ()),
        ("HEAD:a", &|_, _, path| {
            fs::write(path, "not an object").unwrap()
        }),
        ("HEAD:a", &|world, copy, path| {
            let other = world.inside(copy, "hash-object -w --stdin");
            fs::rename(loose(copy, &other), path).unwrap();
        }),
        ("HEAD^{tree}", &|_, _, path| {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
    ];
    for (what, attack) in attacks {
        let reason = refused(|world, copy| {
            let id = world.inside(copy, &format!("rev-parse {what}"));
            fs::remove_file(loose(copy, &id)).unwrap();
            attack(world, copy, &loose(copy, &id));
        });
        assert!(reason.contains("git"), "{reason}");
    }
    let tree = refused(|world, copy| {
        // A tree that would write into the repository's own folder.
        let blob = world.inside(copy, "rev-parse HEAD:a");
        let mut content = b"100644 .git\0".to_vec();
        let bytes = (0..20).map(|n| u8::from_str_radix(&blob[2 * n..2 * n + 2], 16).unwrap());
        content.extend(bytes);
        fs::write(world.path("tree"), content).unwrap();
        let file = world.path("tree").display().to_string();
        let tree = world.inside(copy, &format!("hash-object --literally -t tree -w {file}"));
        let commit = world.inside(copy, &format!("commit-tree -m evil {tree}"));
        world.inside(copy, &format!("update-ref HEAD {commit}"));
    });
    assert!(tree.contains("hasDotgit"), "{tree}");
}

/// Objects of another repository can be read inside, but not be made part of this one by a list of
/// places, a link or a cache.
#[test]
fn other_repositories_objects_are_not_brought_in() {
    let world = World::empty();
    world.init(&world.path("secret"));
    fs::write(world.path("secret/key"), "secret\n").unwrap();
    world.git(&world.path("secret"), "add key");
    world.git(&world.path("secret"), "commit -qm key");
    let secret = world.git(&world.path("secret"), "rev-parse HEAD");
    let store = world.path("secret/.git/objects");
    let attacks: [&dyn Fn(&Path); 3] = [
        &|objects| {
            fs::write(
                objects.join("info/alternates"),
                format!("{}\n", store.display()),
            )
            .unwrap()
        },
        &|objects| {
            for name in fs::read_dir(&store)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
            {
                if name.len() == 2 {
                    let _ = fs::remove_dir(objects.join(&name));
                    symlink(store.join(&name), objects.join(&name)).unwrap();
                }
            }
        },
        &|objects| {
            for file in files(&store).iter().filter(|file| file.len() == 41) {
                fs::create_dir_all(objects.join(&file[..2])).unwrap();
                symlink(store.join(file), objects.join(file)).unwrap();
            }
        },
    ];
    world.init(&world.work());
    for attack in attacks {
        let mut copy = world.prepare();
        let before = state(&world);
        attack(&copy.path().join("objects"));
        fs::write(copy.path().join("refs/heads/secret"), format!("{secret}\n")).unwrap();
        let error = try_carry(&mut copy).unwrap_err();
        assert!(matches!(error, CarryError::Refused { .. }), "{error}");
        assert_eq!(changed(&world, &before), [""; 0]);
        assert!(
            !world
                .run(&world.work(), None, &format!("cat-file -e {secret}"))
                .status
                .success()
        );
        copy.discard().unwrap();
    }
}

/// Content that is many times larger than its object costs time, within the limit, but neither
/// memory nor disk.
#[test]
fn a_bomb_of_zeros_does_no_harm() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    let zeros = fs::File::create(world.work().join("zeros")).unwrap();
    zeros.set_len(40 << 20).unwrap();
    world.inside(&copy, "add zeros");
    fs::remove_file(world.work().join("zeros")).unwrap();
    world.inside(&copy, "commit -qm zeros");
    carry(&mut copy);
    let git = world.work().join(".git/objects");
    let sizes = files(&git)
        .into_iter()
        .map(|file| fs::metadata(git.join(file)).unwrap().len());
    assert!(sizes.sum::<u64>() < 2 << 20);
}

#[test]
fn logs_and_state_hold_only_what_git_writes() {
    let world = World::with_repository();
    let mut copy = world.prepare();
    let head = world.inside(&copy, "rev-parse HEAD");
    let null = "0".repeat(40);
    let lost = "1".repeat(40);
    world.inside(&copy, "commit -q --allow-empty -m fine");
    let log = copy.path().join("logs/HEAD");
    let mut lines = fs::read_to_string(&log).unwrap();
    for (old, new) in [
        (head.as_str(), lost.as_str()),
        (null.as_str(), head.as_str()),
    ] {
        lines += &format!("{old} {new} A <a@b> 1700000000 +0000\tx \u{1b}]0;evil\u{7}\n");
    }
    lines += "nonsense\n";
    fs::write(&log, lines).unwrap();
    let carried = carry(&mut copy);
    assert_eq!(carried.notes, [""; 0]);
    let real = fs::read_to_string(world.work().join(".git/logs/HEAD")).unwrap();
    assert!(
        !real.contains(&lost) && !real.contains('\u{1b}') && !real.contains("nonsense"),
        "{real}"
    );
    assert!(
        real.contains("commit: fine") && real.contains("]0;evil"),
        "{real}"
    );
    world.check_whole(&world.work().join(".git"));
    refresh(&mut copy);
    for (name, content) in [
        ("MERGE_HEAD", "../../etc/passwd\n"),
        ("ORIG_HEAD", "nonsense"),
        ("MERGE_MODE", "evil"),
        ("CHERRY_PICK_HEAD", ""),
        ("MERGE_MSG", "\u{1b}[2J"),
    ] {
        fs::write(copy.path().join(name), content).unwrap();
        let carried = carry(&mut copy);
        assert_eq!(carried.notes.len(), 1, "{name}");
        assert_eq!(carried.stores, []);
        refresh(&mut copy);
    }
}

/// Checks the same in a submodule's folder, and for new folders.
#[test]
fn submodules_and_work_trees_are_held_to_the_same() {
    let world = World::with_repository();
    world.init(&world.path("library"));
    world.git(
        &world.work(),
        "-c protocol.file.allow=always submodule --quiet add ../library sub",
    );
    world.git(&world.work(), "commit -qm submodule");
    let mut copy = world.prepare();
    let before = state(&world);
    let sub = copy.path().join("modules/sub");
    fs::write(sub.join("hooks/pre-commit"), "evil").unwrap();
    fs::write(sub.join("commondir"), "..").unwrap();
    let config = fs::read_to_string(sub.join("config")).unwrap();
    fs::write(
        sub.join("config"),
        config + "[core]\n\tfsmonitor = ./evil\n",
    )
    .unwrap();
    fs::create_dir_all(copy.path().join("modules/new")).unwrap();
    for name in ["config", "HEAD", "hooks/x", "objects/x"] {
        fs::create_dir_all(copy.path().join("modules/new").join(name).parent().unwrap()).unwrap();
        fs::write(copy.path().join("modules/new").join(name), "x").unwrap();
    }
    fs::create_dir_all(copy.path().join("worktrees/new")).unwrap();
    fs::create_dir_all(copy.path().join("worktrees/out")).unwrap();
    fs::write(copy.path().join("worktrees/out/gitdir"), "/x/.git\n").unwrap();
    let inside = format!("{}\n", world.work().join("new/.git").display());
    for (name, content) in [
        ("HEAD", "ref: refs/heads/side\n"),
        ("commondir", "../..\n"),
        ("gitdir", &inside),
    ] {
        fs::write(copy.path().join("worktrees/new").join(name), content).unwrap();
    }
    let changes = copy.changes().unwrap().unwrap();
    let carried = carry_those(&copy, changes).unwrap();
    assert_eq!(changed(&world, &before), [""; 0]);
    let mut withheld: Vec<_> = carried
        .withheld
        .iter()
        .map(|change| change.path.to_str().unwrap())
        .collect();
    withheld.sort_unstable();
    assert_eq!(
        withheld,
        [
            "modules/sub/commondir",
            "modules/sub/config",
            "modules/sub/hooks/pre-commit",
            "worktrees/new/HEAD",
            "worktrees/new/commondir",
            "worktrees/new/gitdir",
        ]
    );
    assert_eq!(carried.notes.len(), 2, "{:?}", carried.notes);
    assert!(carried.notes[0].contains("modules/new"));
    assert!(carried.notes[1].contains("worktrees/out"));
}
