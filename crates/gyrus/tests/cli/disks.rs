//! Disks that are full, read-only or far away.

use std::{fs, process::Command};

use crate::support::{THREE_STEPS, World, said, works};

/// Runs a shell line in a mount namespace of its own; `None` where that is not allowed.
pub(crate) fn with_mounts(world: &World, line: &str) -> Option<crate::support::Said> {
    with_own(world, "-m", line)
}

/// Runs a shell line in namespaces of its own, as `unshare` names them; `None` where that is not
/// allowed.
fn with_own(world: &World, namespaces: &str, line: &str) -> Option<crate::support::Said> {
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
    Some(said(command.output().unwrap()))
}

#[test]
fn a_full_disk_stops_the_run_with_a_true_word_and_loses_nothing() {
    let world = World::new(THREE_STEPS);
    fs::create_dir(world.path("home")).unwrap();
    let line = r#"
        mount -t tmpfs -o size=1m tmpfs "$GYRUS_HOME"
        "$GYRUS" run "say hello" --workdir . --approve auto --max-steps 1 || [ $? = 3 ]
        # Everything but a few kilobytes.
        dd if=/dev/zero of="$GYRUS_HOME/filler" bs=1k 2>/dev/null || true
        code=0; "$GYRUS" resume last --max-steps 9 || code=$?
        echo "full: $code"
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
    assert!(said.out.contains("the chain holds"), "{said:?}");
    assert_eq!(world.file("ledger.txt"), "hello\n");
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
