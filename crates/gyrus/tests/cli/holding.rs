//! One run, one process.

use std::fs;

use rustix::process::Signal;

use crate::support::{UNTIL_GO, World};

/// As [`UNTIL_GO`], for a run whose first call was cut off.
const CUT_OFF: &str = r#"
[[reply]]
text = "This takes a while."
calls = [{ tool = "shell", arguments = { command = "echo begun >> ledger.txt; until [ -e go ]; do sleep 0.01; done; echo done >> ledger.txt" } }]
[[reply]]
when = "interrupted"
calls = [{ tool = "finish", arguments = { reached = true, answer = "taken over" } }]
"#;

#[test]
fn a_second_process_is_told_who_has_the_run() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    world
        .gyrus(&["resume", "last"])
        .exits(1)
        .says("is held by process")
        .says("--take");
    world
        .gyrus(&["runs", "rm", "last"])
        .exits(1)
        .says("nothing was removed");
    assert!(
        world
            .gyrus(&["runs", "list"])
            .out
            .contains("running in process")
    );
    fs::write(world.work().join("go"), "").unwrap();
    running.end().exits(0);
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
}

#[test]
fn of_two_that_resume_at_once_one_does() {
    let world = World::new(UNTIL_GO);
    world.run(&["--max-time", "1ms"]).exits(3);
    fs::write(world.work().join("go"), "").unwrap();
    let both = [(); 2].map(|()| world.start(&["resume", "last", "--max-time", "1m"]));
    let mut codes = both.map(|running| running.end().code);
    codes.sort();
    // The loser finds it held, or over already.
    assert!(matches!(codes, [Some(0), Some(1 | 2)]), "{codes:?}");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
}

#[test]
fn a_suspended_holder_can_be_ended_and_its_run_taken() {
    let world = World::new(CUT_OFF);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    running.signal(Signal::STOP);
    world
        .gyrus(&["resume", "last"])
        .exits(1)
        .says("is held by process");
    let said = world.gyrus(&["resume", "last", "--take"]).exits(0);
    assert_eq!(said.out, "taken over\n");
    assert_eq!(running.end().code, None, "it was killed");
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(
        world.file("ledger.txt"),
        "begun\n",
        "its command died with it"
    );
}
