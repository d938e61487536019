//! Disks that are full, read-only or far away.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    fleet::eventually,
    server::{
        Server, TOKEN,
        triggers::{SECRET, deliver},
    },
    support::{THREE_STEPS, UNTIL_GO, World, said, works},
};

/// Runs a shell line in a mount namespace of its own; `None` where that is not allowed.
pub(crate) fn with_mounts(world: &World, line: &str) -> Option<crate::support::Said> {
    with_own(world, "-m", line)
}

/// Runs a shell line in namespaces of its own, as `unshare` names them; `None` where that is not
/// allowed.
fn with_own(world: &World, namespaces: &str, line: &str) -> Option<crate::support::Said> {
    Some(said(own(world, namespaces, line)?.output().unwrap()))
}

/// Returns the command that runs a shell line in namespaces of its own.
pub(crate) fn own(world: &World, namespaces: &str, line: &str) -> Option<Command> {
    if !works("unshare", &[namespaces, "true"]) {
        eprintln!("skipped: `unshare {namespaces}` is not allowed here");
        return None;
    }
    let gyrus = world.command(&[]);
    let mut command = Command::new("unshare");
    command
        .args([namespaces, "sh", "-ec", line])
        .current_dir(world.work());
    command.env("GYRUS", env!("CARGO_BIN_EXE_gyrus"));
    for (name, value) in gyrus.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    Some(command)
}

#[test]
fn a_full_disk_stops_the_run_with_a_true_word_and_loses_nothing() {
    let world = World::new(THREE_STEPS);
    fs::create_dir(world.path("home")).unwrap();
    let line = r#"
        mount -t tmpfs -o size=2m tmpfs "$GYRUS_HOME"
        "$GYRUS" run "for nothing" --workdir . --approve auto --max-steps 1 || [ $? = 3 ]
        nothing=$("$GYRUS" runs list | cut -d' ' -f1)
        "$GYRUS" run "say hello" --workdir . --approve auto --max-steps 1 || [ $? = 3 ]
        # Everything but a few kilobytes.
        dd if=/dev/zero of="$GYRUS_HOME/filler" bs=1k 2>/dev/null || true
        code=0; "$GYRUS" resume last --max-steps 9 || code=$?
        echo "full: $code"
        "$GYRUS" runs rm "$nothing" --yes
        rm "$GYRUS_HOME/filler"
        "$GYRUS" runs verify
        "$GYRUS" resume last --max-steps 9
    "#;
    let Some(said) = with_mounts(&world, line) else {
        return;
    };
    let said = said.exits(0);
    assert!(said.out.contains("full: 1\n"), "{said:?}");
    assert!(said.err.contains("make room on the disk"), "{said:?}");
    assert!(said.err.contains("\nremoved "), "{said:?}");
    assert!(said.out.contains("the chain holds"), "{said:?}");
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn what_could_not_begin_on_a_full_disk_runs_once_there_is_room() {
    let world = World::new(UNTIL_GO);
    let Some((server, filler)) = on_small_disk(&world, "", &[]) else {
        return;
    };
    let options = json!({"approve": "auto"});
    let first = server.run("go on", &options);
    server.wait(&first, |_| world.path("work/ledger.txt").exists());
    let mut all = vec![first];
    all.extend((0..5).map(|_| server.run("go on", &options)));
    fill(&filler);
    fs::write(world.path("work/go"), "").unwrap();
    eventually("the server is in want", || {
        server.get("/healthz").status == 503
    });
    let status = server.get("/api/status").is(200).json();
    let want = status["want"].as_str().unwrap();
    assert!(want.contains("the disk"), "{want}");
    fs::remove_file(&filler).unwrap();
    for command in &all {
        let ended = server.wait_for_end(command);
        assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    }
    server.get("/healthz").is(200);
    assert_eq!(world.file("ledger.txt").matches("done").count(), all.len());
    let runs = server.get("/api/runs").is(200).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), all.len());
}

/// Returns a server whose home is a small disk of its own, with what is in the world's `home` until
/// then, and a path by which this process reaches a file there.
pub(crate) fn on_small_disk<'w>(
    world: &'w World,
    more: &str,
    variables: &[(&str, &str)],
) -> Option<(Server<'w>, PathBuf)> {
    fs::create_dir_all(world.path("home")).unwrap();
    let line = format!(
        r#"
        cp -r "$GYRUS_HOME" "$GYRUS_HOME.given"
        mount -t tmpfs -o size=6m tmpfs "$GYRUS_HOME"
        cp -r "$GYRUS_HOME.given/." "$GYRUS_HOME"
        exec "$GYRUS" serve --port 0 --at-once 1 --token {TOKEN} {more}
    "#
    );
    let mut command = own(world, "-m", &line)?;
    command.envs(variables.iter().copied());
    let server = Server::of(world, command);
    let home = world.path("home");
    let filler = format!("/proc/{}/root{}/filler", server.process(), home.display());
    Some((server, filler.into()))
}

/// Fills the rest of a small disk.
pub(crate) fn fill(filler: &Path) {
    // What is written fails, and the file has what room there was.
    let full = fs::write(filler, vec![0; 8 << 20]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn what_agents_and_hooks_heard_on_a_full_disk_is_done_once_there_is_room() {
    let world = World::new(UNTIL_GO);
    let (home, told, watched) = (
        world.path("home"),
        world.path("told.jsonl"),
        world.path("watched"),
    );
    fs::create_dir_all(home.join("agents")).unwrap();
    fs::create_dir(&watched).unwrap();
    let agent = |name: &str, trigger: &str| {
        let work = world.work();
        let text = format!(
            "---\nworkdir: {}\noptions:\n  approve: auto\ntriggers:\n  build:\n    {trigger}\n---\nLook.\n",
            work.display()
        );
        fs::write(home.join("agents").join(name), text).unwrap();
    };
    agent("scribe.md", "webhook: BUILD_HOOK");
    let files = format!("files: {}\n    settle: 100ms", watched.display());
    agent("watcher.md", &files);
    let hook = format!(
        "[hooks.desk]\nevents = [\"command.ended\"]\ncommand = \"cat >> {}; echo >> {0}\"\n",
        told.display()
    );
    fs::write(home.join("config.toml"), hook).unwrap();
    let variables = [("BUILD_HOOK", SECRET)];
    let Some((server, filler)) = on_small_disk(&world, "", &variables) else {
        return;
    };
    let look = |name: &str| server.get(&format!("/api/agents/{name}")).is(200).json();
    eventually("the files are watched", || {
        look("watcher")["triggers"][0]["problem"].is_null()
    });
    // Heard before the disk is full: its run is at work, and the next event waits in the mailbox.
    let event = json!({"topic": "agent.scribe.inbox", "payload": {"number": 1}});
    server.post("/api/events", &event).is(202);
    world.wait_for_file("ledger.txt", "begun");
    server.post("/api/events", &event).is(202);
    fill(&filler);
    // While it is: a file changes, another agent is described, and somebody delivers.
    fs::write(watched.join("new.txt"), "1").unwrap();
    let delivered = deliver(&server, SECRET, "d1", 0, "{}").status;
    assert!(delivered == 202 || delivered >= 500, "{delivered}");
    let agents = filler.with_file_name("agents");
    fs::hard_link(agents.join("scribe.md"), agents.join("other.md")).unwrap();
    fs::write(world.path("work/go"), "").unwrap();
    eventually("the server is in want", || {
        server.get("/healthz").status == 503
    });
    fs::remove_file(&filler).unwrap();
    eventually("the delivery is taken", || {
        deliver(&server, SECRET, "d1", 0, "{}").status < 300
    });
    eventually("all four are handled", || {
        look("scribe")["handled"] == 3 && look("watcher")["handled"] == 1
    });
    eventually("the other one lives", || {
        server.get("/api/agents/other").status == 200
    });
    server.get("/healthz").is(200);
    assert_eq!(world.file("ledger.txt").matches("done").count(), 4);
    let runs = server.get("/api/runs").is(200).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4);
    let told = || -> HashSet<Value> {
        let told = fs::read_to_string(&told).unwrap_or_default();
        let events = told
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        events
            .map(|event: Value| event["payload"]["run"].clone())
            .collect()
    };
    eventually("the hook is told of each", || told().len() == 4);
}

#[test]
fn without_a_watch_left_runs_answers_and_stops_are_seen_a_second_later() {
    const NONE_LEFT: &str = "echo 0 >/proc/sys/user/max_inotify_instances";
    if !works("unshare", &["-Ur", "sh", "-c", NONE_LEFT]) {
        eprintln!("skipped: the limit of watches cannot be set here");
        return;
    }
    let world = World::new(THREE_STEPS);
    let line = r#"
        echo 0 >/proc/sys/user/max_inotify_instances
        "$GYRUS" doctor || true
        "$GYRUS" run "say hello" --workdir . --sandbox off --on-ask wait &
        while kill -0 $! 2>/dev/null; do "$GYRUS" approve last || sleep 0.1; done
        code=0; wait $! || code=$?
        echo "answered: $code"
        "$GYRUS" run "say hello" --workdir . --sandbox off --on-ask wait &
        until "$GYRUS" approvals | grep -q ledger; do sleep 0.1; done
        "$GYRUS" stop --all
        code=0; wait $! || code=$?
        echo "stopped: $code"
    "#;
    let Some(said) = with_own(&world, "-Ur", line) else {
        return;
    };
    let said = said.exits(0);
    assert!(said.out.contains("folders cannot be watched"), "{said:?}");
    assert!(said.out.contains("answered: 0\n"), "{said:?}");
    assert!(said.out.contains("stopped: 4\n"), "{said:?}");
}

#[test]
fn a_read_only_home_is_said() {
    let world = World::new(THREE_STEPS);
    fs::create_dir(world.path("home")).unwrap();
    let line = r#"
        mount -t tmpfs -o ro tmpfs "$GYRUS_HOME"
        exec "$GYRUS" run "say hello" --workdir . --approve auto
    "#;
    let Some(said) = with_mounts(&world, line) else {
        return;
    };
    said.exits(2).says("cannot be used").says("GYRUS_HOME=");
}

#[test]
fn what_is_wrong_with_a_home_is_named_and_no_stop_of_all_is_taken_for_it() {
    let world = World::new(THREE_STEPS);
    fs::write(world.path("home"), "").unwrap();
    let file = world.gyrus(&world.run_arguments(&[])).exits(2);
    assert!(!file.err.contains("rearm"), "{file:?}");
    file.says("a part of the path is a file")
        .says("GYRUS_HOME=");
    fs::remove_file(world.path("home")).unwrap();
    let line = r#"
        "$GYRUS" run "one" --workdir . --approve auto --max-steps 1 || [ $? = 3 ]
        code=0; (ulimit -f 16; exec "$GYRUS" resume last --max-steps 9) || code=$?
        echo "limited: $code" >&2
        "$GYRUS" resume last --max-steps 9
        code=0; (mount -t tmpfs none /proc; exec "$GYRUS" run "two" --workdir .) || code=$?
        echo "no /proc: $code" >&2
    "#;
    let Some(said) = with_mounts(&world, line) else {
        return;
    };
    let said = said.exits(0).says("limited: 1\n").says("ulimit -f");
    said.says("mount -t proc proc /proc").says("no /proc: 1\n");
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn commands_work_in_a_folder_that_is_mounted_again_and_has_a_mount_in_it() {
    let world = World::new(
        r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "cat in/there >> ledger.txt; echo line >> in/ledger.txt" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "written" } }]
"#,
    );
    fs::create_dir(world.work().join("in")).unwrap();
    let run = r#""$GYRUS" run "go" --workdir . --approve auto"#;
    for mounts in [
        "mount --bind . .; cd \"$PWD\"; echo inner > in/there",
        "mount -t tmpfs none in; echo inner > in/there",
    ] {
        let line = format!("{mounts}\n{run}\ncat ledger.txt in/ledger.txt; rm ledger.txt");
        let Some(said) = with_mounts(&world, &line) else {
            return;
        };
        let said = said.exits(0);
        assert!(said.out.contains("inner\nline\n"), "{mounts}: {said:?}");
    }
}
