//! Disks that are full, read-only or far away.

use std::{fs, io, process::Command};

use serde_json::json;

use crate::{
    fleet::eventually,
    server::{Server, TOKEN},
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
    fs::create_dir(world.path("home")).unwrap();
    let line = format!(
        r#"
        mount -t tmpfs -o size=6m tmpfs "$GYRUS_HOME"
        exec "$GYRUS" serve --port 0 --at-once 1 --token {TOKEN}
    "#
    );
    let Some(command) = own(&world, "-m", &line) else {
        return;
    };
    let server = Server::of(&world, command);
    let options = json!({"approve": "auto"});
    let first = server.run("go on", &options);
    server.wait(&first, |_| world.path("work/ledger.txt").exists());
    let home = format!(
        "/proc/{}/root{}",
        server.process(),
        world.path("home").display()
    );
    let filler = format!("{home}/filler");
    let mut all = vec![first];
    all.extend((0..5).map(|_| server.run("go on", &options)));
    // Whatever is written now fails, and the file has what room there was.
    let full = fs::write(&filler, vec![0; 8 << 20]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
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
