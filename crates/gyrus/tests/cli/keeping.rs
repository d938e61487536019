//! Runs get out, in, smaller and away.

use std::{fs, os::unix::net::UnixListener, path::Path};

use gyrus_contract::RunId;
use rustix::process::Signal;

use crate::support::{THREE_STEPS, UNTIL_GO, World};

#[test]
fn an_exported_run_is_replayed_elsewhere() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let file = world.path("run.gyrus");
    let file = file.to_str().unwrap();
    world
        .gyrus(&["runs", "export", "last", file])
        .exits(0)
        .says("blobs");
    world
        .gyrus(&["runs", "export", "last", file])
        .exits(1)
        .says("name a new file");

    let elsewhere = World::new("");
    elsewhere.gyrus(&["runs", "import", file]).exits(0);
    elsewhere
        .gyrus(&["runs", "import", file])
        .exits(2)
        .says("already");
    assert!(
        elsewhere
            .gyrus(&["replay", "last"])
            .exits(0)
            .out
            .contains("0 differences")
    );
    elsewhere.gyrus(&["runs", "verify"]).exits(0);

    let half = fs::read(file).unwrap();
    fs::write(world.path("half"), &half[..half.len() / 2]).unwrap();
    let third = World::new("");
    let half = world.path("half");
    third
        .gyrus(&["runs", "import", half.to_str().unwrap()])
        .exits(2);
    assert!(third.runs().is_empty(), "nothing is half imported");
}

#[test]
fn an_export_has_the_files_of_the_folder_only_where_asked() {
    let world = World::new(THREE_STEPS);
    let unread = "UNREAD_BY_THE_RUN";
    fs::write(world.path("work/unread.txt"), unread).unwrap();
    world.run(&[]).exits(0);
    let export = |name: &str, more: &[&str]| {
        let file = world.path(name).to_str().unwrap().to_owned();
        let said = world
            .gyrus(&[&["runs", "export", "last", &file], more].concat())
            .exits(0);
        let holds = String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(unread);
        (file, said.err, holds)
    };
    let (without, said, holds) = export("without", &[]);
    assert!(said.contains("left out: ") && !holds, "{said}");
    let (with, said, holds) = export("with", &["--with-files"]);
    assert!(!said.contains("left out") && holds, "{said}");

    let elsewhere = World::new(THREE_STEPS);
    elsewhere
        .gyrus(&["runs", "import", &without])
        .exits(0)
        .says("without the files of its folder");
    let new = elsewhere.path("new");
    fs::create_dir(&new).unwrap();
    let new = new.to_str().unwrap();
    elsewhere
        .gyrus(&["apply", "last", "--workdir", new, "--yes"])
        .exits(1);
    elsewhere.gyrus(&["show", "last"]).exits(0);

    let third = World::new(THREE_STEPS);
    let said = third.gyrus(&["runs", "import", &with]).exits(0);
    assert!(!said.err.contains("without the files"), "{said:?}");
    // What it changed can be made in a folder that a person names.
    let new = third.path("new");
    fs::create_dir(&new).unwrap();
    fs::write(new.join("unread.txt"), unread).unwrap();
    let new_path = new.to_str().unwrap();
    third
        .gyrus(&["apply", "last", "--workdir", new_path, "--yes"])
        .exits(0);
    let made = fs::read_to_string(new.join("out.txt"));
    assert_eq!(made.unwrap_or_default(), "hello\n");
    let patch = third.gyrus(&["diff", "last"]).exits(0).out;
    assert!(patch.contains("+hello"), "{patch}");
}

/// Its text says nothing of the files.
const RUNS_CODE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "sh code.sh" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

/// The files below a folder that hold a text, as paths relative to it.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text) {
                let path = path.strip_prefix(folder).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn secrets_of_the_folder_are_in_no_blob_and_come_back() {
    let world = World::new(RUNS_CODE);
    let work = world.work();
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let files = [
        (".env", "GREETING=unrecognised\n".to_owned()),
        (
            "deploy.sh",
            format!("curl -H 'Authorization: Bearer {token}' x\n"),
        ),
        ("plain.txt", "plain\n".to_owned()),
    ];
    for (name, content) in &files {
        fs::write(work.join(name), content).unwrap();
    }
    let more = format!("echo 'password: {token}' > made.yml; echo {token} >> plain.txt");
    let code = format!("rm deploy.sh; {more}");
    fs::write(work.join("code.sh"), code).unwrap();
    world.run(&[]).exits(0);
    assert!(!work.join("deploy.sh").exists() && work.join("made.yml").exists());

    let journal = world.path("home/journal");
    for secret in [&token, "unrecognised"] {
        let held = holding(&journal, secret);
        let all_private = held.iter().all(|path| path.contains("/private/"));
        assert!(!held.is_empty() && all_private, "{held:?}");
    }
    assert!(!holding(&journal, "plain").is_empty());

    let file = world.path("run.gyrus");
    let file = file.to_str().unwrap();
    let export = ["runs", "export", "last", file, "--with-files"];
    world.gyrus(&export).exits(0);
    assert_eq!(
        holding(&world.path(""), &token)
            .iter()
            .filter(|path| path.ends_with(".gyrus"))
            .count(),
        0
    );
    let fork = |world: &World| {
        let new = world.path("new");
        let said = world
            .gyrus(&[
                "fork",
                "last",
                "--at",
                "0",
                "--workdir",
                new.to_str().unwrap(),
            ])
            .exits(0);
        (new, said.err)
    };
    let elsewhere = World::new(RUNS_CODE);
    elsewhere.gyrus(&["runs", "import", file]).exits(0);
    let (new, said) = fork(&world);
    assert!(!said.contains("not in the new folder"), "{said}");
    assert_eq!(fs::read_to_string(new.join(".env")).unwrap(), files[0].1);

    let run = world.runs()[0].to_string();
    world.gyrus(&["undo", &run, "--yes"]).exits(0);
    for (name, content) in &files {
        assert_eq!(world.file(name), *content);
    }
    assert!(!work.join("made.yml").exists());
    world.gyrus(&["runs", "rm", &run, "--yes"]).exits(0);
    assert!(
        holding(&journal, &token)
            .iter()
            .all(|path| !path.contains(&run))
    );
    assert!(
        !holding(&journal, &token).is_empty(),
        "the fork has it still"
    );
    world
        .gyrus(&["runs", "prune", "--older-than", "0s"])
        .exits(0);
    assert_eq!(holding(&journal, &token), [""; 0]);
}

#[test]
fn a_removed_run_is_gone_and_the_others_are_not() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    world.run(&[]).exits(0);
    let first = world.runs()[0].to_string();
    world
        .gyrus(&["runs", "rm", &first, "nosuchrun", "--yes"])
        .exits(2);
    assert_eq!(world.runs().len(), 2, "all or nothing");
    world.gyrus(&["runs", "rm", &first, "--yes"]).exits(0);
    assert_eq!(world.runs().len(), 1);
    world.gyrus(&["replay", "last"]).exits(0);
}

#[test]
fn what_was_taken_back_of_a_removed_run_stays_the_persons() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let run = world.runs()[0].to_string();
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(world.file("out.txt"), "");
    let said = world.gyrus(&["runs", "rm", &run, "--yes"]).exits(0);
    let kept = world.path("home/trash").join(&run);
    let place = said
        .err
        .lines()
        .find_map(|line| line.strip_prefix("  what undoing it took away stays in "));
    let place = std::path::Path::new(place.expect("it is said"));
    assert!(place.starts_with(kept.canonicalize().unwrap()), "{place:?}");
    assert!(
        !std::fs::read_dir(place)
            .unwrap()
            .collect::<Vec<_>>()
            .is_empty()
    );
    assert!(world.store().names("undos").unwrap().is_empty());
}

#[test]
fn pruning_keeps_what_replaying_needs() {
    // A goal that is too large for its entry stands in a blob.
    let world = World::new(THREE_STEPS);
    let goal = "say hello ".repeat(1_000);
    world
        .gyrus(&["run", &goal, "--workdir", ".", "--approve", "auto"])
        .exits(0);
    world
        .gyrus(&["runs", "prune"])
        .exits(0)
        .says("dropped 0 bytes of 0 runs");
    let said = world
        .gyrus(&["runs", "prune", "--older-than", "0s"])
        .exits(0);
    assert!(
        said.err.contains("of 1 run;") && !said.err.contains("dropped 0 "),
        "{}",
        said.err
    );
    assert!(
        world
            .gyrus(&["replay", "last"])
            .exits(0)
            .out
            .contains("0 differences")
    );
    world.gyrus(&["runs", "verify"]).exits(0);
    assert!(
        world
            .gyrus(&["show", "last"])
            .out
            .contains("say hello say hello")
    );
    let into = world.path("fork");
    world
        .gyrus(&[
            "fork",
            "last",
            "--at",
            "1",
            "--workdir",
            into.to_str().unwrap(),
        ])
        .exits(1)
        .says("they were pruned");
    // In place it goes on: with the journal's state, and with files as they are now.
    let mut forked = world.command(&["fork", "last", "--at", "1", "--in-place"]);
    assert!(forked.status().unwrap().success());
}

#[test]
fn a_run_that_waits_is_given_up_for_good() {
    let world = World::new(THREE_STEPS);
    world.run(&["--max-steps", "1"]).exits(3);
    world
        .gyrus(&["abandon", "last"])
        .exits(0)
        .says("cannot be resumed");
    for arguments in [["resume", "last"], ["abandon", "last"]] {
        let said = world.gyrus(&arguments);
        assert_ne!(said.code, Some(0), "{said:?}");
        assert!(
            said.err.contains("tester (command line) gave it up"),
            "{said:?}"
        );
    }
    let listed = world.gyrus(&["runs", "list"]).exits(0).out;
    assert!(listed.contains("gave it up"), "{listed}");
    world.gyrus(&["runs", "verify"]).exits(0);
    world.gyrus(&["replay", "last"]).exits(0);
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
}

#[test]
fn what_a_killed_ephemeral_run_left_is_swept_at_the_next_start() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&["--ephemeral"]));
    world.wait_for_file("ledger.txt", "begun");
    let names = || fs::read_dir(world.path("home/ephemeral")).unwrap();
    let left = fs::read_link(names().next().unwrap().unwrap().path()).unwrap();
    // One that lives is left alone.
    let other = world.start(&world.run_arguments(&[]));
    world.wait_for_layers("ledger.txt", 2);
    assert!(left.exists());
    fs::write(world.work().join("go"), "").unwrap();
    other.end().exits(0);
    running.end().exits(0);
    assert!(!left.exists());

    fs::remove_file(world.work().join("go")).unwrap();
    fs::remove_file(world.work().join("ledger.txt")).unwrap();
    let running = world.start(&world.run_arguments(&["--ephemeral"]));
    world.wait_for_file("ledger.txt", "begun");
    let left = fs::read_link(names().next().unwrap().unwrap().path()).unwrap();
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    assert!(left.exists());
    fs::write(world.work().join("go"), "").unwrap();
    world.run(&[]).exits(0);
    assert!(!left.exists());
    assert_eq!(names().count(), 0);
}

#[test]
fn damage_is_found_and_named() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let folder = world
        .path("home/journal/runs")
        .join(world.runs()[0].to_string());
    let segment = folder.join("000001.jsonl");
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let said = world.gyrus(&["runs", "verify"]).exits(1);
    assert!(said.out.contains("is damaged"), "{said:?}");
    let copy = world.path("copy");
    world
        .gyrus(&["runs", "export", "last", copy.to_str().unwrap()])
        .exits(1)
        .says("is not exported");
    assert!(!copy.exists());
}

/// The last step of a run that is over is edited: the run does not become one that can be resumed.
#[test]
fn a_finished_run_stays_finished_or_is_damaged() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    let verified = world.gyrus(&["runs", "verify"]).exits(0).out;
    assert!(verified.contains(", finished, "), "{verified}");
    let folder = world
        .path("home/journal/runs")
        .join(world.runs()[0].to_string());
    let segment = folder.join("000001.jsonl");
    let whole = fs::read(&segment).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let last_cycle = text.rfind("\"cycle.ended\"").expect("a cycle ended");
    // What stands before its payload depends on when the disk was flushed.
    let payload = last_cycle + text[last_cycle..].find("\"payload\":").unwrap();
    let mut edited = whole.clone();
    edited[payload + "\"payload\"".len()] ^= 1;
    fs::write(&segment, edited).unwrap();
    // Without the seal, the list of runs still knows that it had an end.
    let seal = fs::read(folder.join("sealed")).unwrap();
    fs::remove_file(folder.join("sealed")).unwrap();
    let end = text.rfind("\"run.ended\"").expect("it ended");
    let before = text[..end].rfind('\n').expect("an entry before") + 1;
    let edited = fs::read(&segment).unwrap();
    fs::write(&segment, &text[..before]).unwrap();
    let said = world.gyrus(&["runs", "verify"]).exits(1);
    assert!(said.out.contains("has noted its end"), "{said:?}");
    fs::write(folder.join("sealed"), seal).unwrap();
    fs::write(&segment, edited).unwrap();
    let said = world.gyrus(&["runs", "verify"]).exits(1);
    assert!(said.out.contains("was finished with entries"), "{said:?}");
    let listed = world.gyrus(&["runs"]).exits(0).out;
    assert!(listed.contains("cannot be read"), "{listed}");
    world.gyrus(&["resume", "last"]).exits(1).says("is damaged");
    fs::write(&segment, whole).unwrap();
    world.gyrus(&["runs", "verify"]).exits(0);

    let blob = fs::read_dir(folder.join("blobs")).unwrap().next().unwrap();
    fs::remove_file(blob.unwrap().path()).unwrap();
    let said = world.gyrus(&["runs", "verify"]).exits(1);
    assert!(said.out.contains("is lost"), "{said:?}");
    let copy = world.path("copy");
    world
        .gyrus(&["runs", "export", "last", copy.to_str().unwrap()])
        .exits(1)
        .says("all of its entries can still be read");
}

/// Returns the runs whose sandboxes have a folder.
fn sandboxes(world: &World) -> Vec<RunId> {
    let entries = fs::read_dir(world.path("home/sandbox")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut runs: Vec<RunId> = names.filter_map(|name| name.parse().ok()).collect();
    runs.sort_unstable();
    runs
}

#[test]
fn the_folder_of_a_sandbox_goes_with_its_run() {
    let world = World::new(THREE_STEPS);
    world.run(&[]).exits(0);
    assert_eq!(sandboxes(&world), []);
    let over = world.runs()[0];
    world.run(&["--max-steps", "2"]).exits(3);
    let parked = world.runs()[1];
    assert_eq!(sandboxes(&world), [parked]);

    // What is parked goes on where it was; what is over does not, if its process was killed before
    // the folder was removed.
    fs::create_dir_all(world.path(&format!("home/sandbox/{over}/tmp"))).unwrap();
    world.run(&[]).exits(0);
    assert_eq!(sandboxes(&world), [parked]);

    fs::create_dir_all(world.path(&format!("home/sandbox/{over}/tmp"))).unwrap();
    let prune = ["runs", "prune", "--older-than", "0s"];
    world.gyrus(&prune).exits(0);
    assert_eq!(sandboxes(&world), [parked]);
    world
        .gyrus(&["runs", "rm", &parked.to_string(), "--yes"])
        .exits(0);
    assert_eq!(sandboxes(&world), []);
}

#[test]
fn what_a_killed_run_left_is_removed_when_the_next_starts() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    let killed = world.runs()[0];
    assert_eq!(sandboxes(&world), [killed]);
    running.signal(Signal::KILL);
    running.end();
    let socket = world.path(&format!("home/take/{killed}"));
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    drop(UnixListener::bind(&socket).unwrap());

    // The next one is killed, too, and lives while others start.
    let living = world.start(&world.run_arguments(&["--max-steps", "5"]));
    world.wait_for_layers("ledger.txt", 2);
    let held = world.runs()[1];
    fs::write(world.path("script.toml"), THREE_STEPS).unwrap();
    world.run(&[]).exits(0);
    assert_eq!(sandboxes(&world), [held]);
    assert!(!socket.exists());
    fs::write(world.work().join("go"), "").unwrap();
    living.end().exits(0);
    assert_eq!(sandboxes(&world), []);
}
