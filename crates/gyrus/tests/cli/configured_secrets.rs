//! Keys and tokens that the configuration names are kept from models and journals, whether the run
//! uses them or not.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::{serving::results, support::World};

const KEYS: [&str; 6] = [
    "from-a-file-4711",
    "from-a-command-4712",
    "of-a-chat-4713",
    "of-a-voice-4714",
    "of-a-hook-4715",
    "of-another-provider-4716",
];

#[test]
fn configured_keys_that_a_run_does_not_use_are_kept_from_it() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "notes.txt" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#,
    );
    fs::write(world.work().join("notes.txt"), KEYS.join("\n")).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    let file = world.path("key");
    fs::write(&file, KEYS[0]).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let config = format!(
        "[keys]\nONE = {{ file = \"{}\" }}\nTWO = {{ command = \"echo {}\" }}\n\
         SLOW = {{ command = \"sleep 60\" }}\nNONE = {{ command = \"exit 1\" }}\n\
         THREE = {{ command = \"echo {}\" }}\n\
         [chat.telegram]\ntoken = \"THREE\"\nworkdir = \"/nowhere\"\n\
         [chat.telegram.transcribe]\nurl = \"http://127.0.0.1:9\"\nmodel = \"m\"\nkey = \"VOICE\"\n\
         [hooks.h]\nevents = [\"*\"]\nurl = \"http://127.0.0.1:9\"\nsecret = \"SIGNS\"\n",
        file.display(),
        KEYS[1],
        KEYS[2],
    );
    fs::write(world.path("home/config.toml"), config).unwrap();
    let said = world
        .command(&["run", "read notes.txt"])
        .env("VOICE", KEYS[3])
        .env("SIGNS", KEYS[4])
        .env("OPENROUTER_API_KEY", KEYS[5])
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    let read = results(&world)[0].1.clone();
    for (key, name) in KEYS
        .iter()
        .zip(["ONE", "TWO", "THREE", "VOICE", "SIGNS", "OPENROUTER"])
    {
        assert!(!read.contains(key), "{key}: {read}");
        assert!(read.contains(&format!("secret:{name}")), "{name}: {read}");
    }
}
