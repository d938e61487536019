//! Files and folders that are bound over others for a command, as a private copy over a
//! repository's own folder.

use std::fs;

use gyrus_contract::{Bind, Containment};

use super::{
    start::{Around, Ran, User},
    world::World,
};

/// A workspace with a repository, its private copy in a hidden folder, and objects that both use.
fn with_copy(world: &World) -> Containment {
    let hidden = world.path("secret");
    for folder in ["workspace/repository/.git/objects", "secret/copy/objects"] {
        fs::create_dir_all(world.path(folder)).unwrap();
    }
    for (file, text) in [
        ("workspace/repository/.git/config", "real"),
        ("workspace/repository/.git/objects/one", "object"),
        ("workspace/notes", "real"),
        ("secret/copy/config", "copied"),
        ("secret/notes", "copied"),
    ] {
        fs::write(world.path(file), text).unwrap();
    }
    for folder in ["workspace", "secret"] {
        world.give(folder);
    }
    let git = world.path("workspace/repository/.git");
    let mut containment = world.containment();
    assert!(containment.hidden.contains(&hidden));
    containment.binds = vec![
        bind(&git, &hidden.join("copy"), true),
        // The real ones: their place is covered by the copy when this one is put there.
        bind(&git.join("objects"), &git.join("objects"), false),
        bind(&world.path("workspace/notes"), &hidden.join("notes"), false),
    ];
    containment
}

fn bind(place: &std::path::Path, source: &std::path::Path, writable: bool) -> Bind {
    Bind {
        place: place.to_owned(),
        source: source.to_owned(),
        writable,
    }
}

fn script(world: &World, containment: &Containment, script: &str) -> Ran {
    world.start(|start| {
        let mut start = start.clone();
        start.containment = containment;
        start.script(script)
    })
}

/// Each succeeds only if it gets at what is covered, or changes what is read-only.
const ATTACKS: &[&str] = &[
    "umount repository/.git",
    "umount -l repository/.git/objects",
    "mount --bind repository mnt",
    "mv repository/.git moved",
    "rm -rf repository/.git && mkdir repository/.git",
    "mkdir new && mv -T new repository/.git",
    "touch new && mv -T new notes",
    "rm -f notes",
    "perl -e 'rename(q(notes), q(other)) or exit 1'",
    "echo x > notes",
    "chmod 777 notes",
    "ln notes linked",
    "touch repository/.git/objects/two",
    "rm -f repository/.git/objects/one",
    "chmod 777 repository/.git/objects/one",
    "mv repository/.git/objects repository/.git/old",
    "cat $WORLD/secret/copy/config",
    "unshare --user --mount true",
];

pub(crate) fn stand_over_everything(user: User, around: Around) {
    let world = World::new(user, around);
    let containment = with_copy(&world);
    let mut text = String::from(
        "cat repository/.git/config repository/.git/objects/one notes; echo
         echo mine > repository/.git/config && mkdir repository/.git/hooks
         mkdir other && mv repository other/ && cat other/repository/.git/config
         mv other/repository .\n",
    );
    for attack in ATTACKS {
        let quoted = attack.replace('\'', r"'\''");
        text.push_str(&format!(
            "if bash -c '{quoted}' >/dev/null 2>&1; then echo 'BROKEN: {quoted}'; fi\n"
        ));
    }
    let ran = script(&world, &containment, &text);
    assert_eq!(ran.output, "copiedobjectcopied\nmine\n", "{ran:?}");
    assert!(ran.gaps.is_empty(), "{ran:?}");
    let real = world.path("workspace/repository/.git");
    assert_eq!(fs::read_to_string(real.join("config")).unwrap(), "real");
    let mut names: Vec<_> = fs::read_dir(&real)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["config", "objects"]);
    let objects = fs::read_dir(real.join("objects")).unwrap().count();
    assert_eq!(objects, 1);
    for (file, expected) in [("workspace/notes", "real"), ("secret/notes", "copied")] {
        let text = fs::read_to_string(world.path(file)).unwrap();
        assert_eq!(text, expected, "{file}");
    }
    // The copy stays as the command left it, but for what it could delete.
    assert!(world.path("secret/copy").is_dir());
}

/// A bind that cannot be made is an error that names what is missing, and nothing is started.
pub(crate) fn need_a_place_without_links(user: User, around: Around) {
    let world = World::new(user, around);
    let containment = with_copy(&world);
    let source = world.path("secret/copy");
    std::os::unix::fs::symlink("repository", world.path("workspace/linked")).unwrap();
    for (place, source, named) in [
        ("workspace/missing", source.clone(), "workspace/missing"),
        ("workspace/linked/.git", source.clone(), "workspace/linked"),
        ("workspace/notes", source.clone(), "workspace/notes"),
        ("workspace", world.path("secret/missing"), "secret/missing"),
        ("workspace/../outside", source, "workspace/../outside"),
    ] {
        let mut containment = containment.clone();
        containment.binds = vec![bind(&world.path(place), &source, true)];
        let ran = script(&world, &containment, "echo started");
        assert!(ran.output.contains(named), "{place}: {ran:?}");
        assert!(!ran.output.contains("started"), "{place}: {ran:?}");
    }
}

/// A sandbox without mounts says so of each place.
pub(crate) fn are_missed_without_namespaces(user: User, around: Around) {
    let world = World::new(user, around);
    let ran = script(&world, &with_copy(&world), "cat notes");
    assert_eq!(ran.output, "real", "{ran:?}");
    let said = ran.gaps.iter().filter(|gap| gap.reason.contains("notes"));
    assert_eq!(said.count(), 1, "{ran:?}");
}
