//! The process is killed after every entry in turn; resumed, the run comes to the same end.

use std::os::unix::process::ExitStatusExt;

use crate::support::{THREE_STEPS, World};

#[test]
fn killed_after_any_entry_the_run_comes_to_the_same_end() {
    let whole = World::new(THREE_STEPS);
    whole.run(&[]).exits(0);
    let entries = whole.entries().len();
    for after in 1..=entries {
        let world = World::new(THREE_STEPS);
        let mut command = world.command(&world.run_arguments(&[]));
        let killed = command
            .env("GYRUS_CRASH_AFTER", after.to_string())
            .output()
            .unwrap();
        let was_killed = killed.status.signal() == Some(9);
        // The last entries are on disk together with the end.
        assert!(
            was_killed || killed.status.success(),
            "after {after}: {killed:?}"
        );
        let code = if was_killed {
            world.gyrus(&["resume", "last"]).code
        } else {
            Some(2)
        };
        // It was killed before it could say so, but it was over.
        assert!(matches!(code, Some(0 | 2)), "after {after}: {code:?}");
        assert_eq!(world.file("out.txt"), "hello\n", "after {after}");
        // What was cut off is never run again by itself; the script goes on without it.
        assert!(
            matches!(world.file("ledger.txt").as_str(), "hello\n" | ""),
            "after {after}"
        );
        let replayed = world.gyrus(&["replay", "last"]).exits(0).out;
        assert!(
            replayed.contains("0 differences"),
            "after {after}: {replayed}"
        );
        world.gyrus(&["runs", "verify", "last"]).exits(0);
    }
}
