//! Denied paths within a workspace, tried by a program that the policy knows nothing of.

use std::fs;

use gyrus_contract::Containment;

use super::{
    start::{Around, User},
    world::World,
};

/// None may get at what is hidden, move it to where it is not, or change what is only to be read.
const ATTACKS: &[&str] = &[
    "cat .env",
    "wc -c --files0-from=.env",
    "perl -e 'open(F, q(<), q(.env)); print <F>'",
    "cat deep/.env",
    "chmod 600 .env; cat .env",
    "ln .env linked; cat linked",
    "mv .env moved; cat moved",
    "mv deep moved; cat moved/.env",
    "rm -f .env; cat .env",
    "echo x > .env",
    "ls keys; cat keys/one",
    "mkdir new; mv -T new keys",
    "cat /proc/self/cwd/.env",
    "tar c . | grep -a hidden",
    "umount .env; cat .env",
    "echo x > migrations/001",
    "echo x > migrations/002",
    "rm migrations/001",
    "mv migrations other",
];

/// Lays the files out, for the attacks to find.
fn laid_out(world: &World) -> Containment {
    for folder in ["deep", "keys", "migrations"] {
        fs::create_dir_all(world.path(&format!("workspace/{folder}"))).unwrap();
    }
    for (file, text) in FILES {
        fs::write(world.path(&format!("workspace/{file}")), text).unwrap();
    }
    world.give("workspace");
    let at = |name: &str| world.path("workspace").join(name);
    let mut containment = world.containment();
    containment
        .hidden
        .extend([".env", "deep/.env", "keys"].map(at));
    containment.read_only.push(at("migrations"));
    // What stands in its own right cannot be moved.
    containment.writable.push(at("deep"));
    containment
}

const FILES: [(&str, &str); 4] = [
    (".env", "hidden"),
    ("deep/.env", "hidden"),
    ("keys/one", "hidden"),
    ("migrations/001", "to read"),
];

pub(crate) fn hold_whatever_is_run(user: User, around: Around) {
    let world = World::new(user, around);
    let containment = laid_out(&world);
    let run = |script: &str| {
        world.start(|start| {
            let mut start = start.clone();
            start.containment = &containment;
            start.script(script)
        })
    };
    for attack in ATTACKS {
        let ran = run(attack);
        assert!(!ran.output.contains("hidden"), "{attack}: {ran:?}");
        for (file, text) in FILES {
            let kept = fs::read_to_string(world.path(&format!("workspace/{file}")));
            assert_eq!(kept.unwrap(), text, "{attack}: {file} {ran:?}");
        }
        assert!(!world.path("workspace/migrations/002").exists(), "{attack}");
    }
    let ran = run("cat migrations/001 && echo x > made && echo x > deep/made && ls -a");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Root could read it, and finds nothing.
    let ran = run("cat .env keys/one");
    assert!(user == User::Current || ran.code != Some(0), "{ran:?}");
}
