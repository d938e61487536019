//! Limits are normal ends: the work is kept, and more can be given.

use crate::support::{THREE_STEPS, UNTIL_GO, World};

#[test]
fn more_can_be_given_and_nothing_is_done_again() {
    let world = World::new(THREE_STEPS);
    let said = world.run(&["--max-steps", "2"]).exits(3);
    assert_eq!(said.out, "");
    let last: Vec<&str> = said.err.lines().rev().take(3).collect();
    insta::assert_snapshot!(world.mask(&format!("{}\n{}\n{}", last[2], last[1], last[0])), @r"
    a limit was reached (steps: 2 of 2)
      changed: ledger.txt, out.txt; gyrus diff, gyrus undo
      to go on with more: gyrus resume [run] --max-steps N
    ");
    world.gyrus(&["resume", "last"]).exits(3);
    world
        .gyrus(&["resume", "last", "--max-turns", "5"])
        .exits(0);
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn each_limit_is_kept() {
    let priced =
        format!("[model]\nprice = {{ input = 3_000_000, output = 15_000_000 }}\n{THREE_STEPS}");
    let world = World::new(&priced);
    for (flag, value) in [
        ("--max-tokens", "100"),
        ("--max-cost", "0.0001"),
        ("--max-budget-usd", "0.0001"),
        ("--max-time", "1ms"),
    ] {
        world
            .run(&[flag, value])
            .exits(3)
            .says("a limit was reached");
    }
    let unpriced = World::new(THREE_STEPS);
    unpriced
        .run(&["--max-cost", "1"])
        .exits(2)
        .says("--max-tokens");
}

#[test]
fn what_makes_no_sense_is_refused_before_a_run_begins() {
    let world = World::new(THREE_STEPS);
    for (flag, value, says) in [
        ("--max-steps", "0", "at least 1 is needed"),
        ("--max-tokens", "0", "at least 1 is needed"),
        ("--max-cost", "0.00", "is not an amount"),
        ("--max-time", "0s", "in no time"),
        ("--url", "notaurl", "does not name a page"),
        ("--profile", "../x", "cannot name a profile"),
    ] {
        world.run(&[flag, value]).exits(2).says(says);
    }
    assert!(world.runs().is_empty());
}

#[test]
fn the_configuration_sets_what_flags_leave_open() {
    let world = World::new(THREE_STEPS);
    std::fs::create_dir(world.path("home")).unwrap();
    std::fs::write(world.path("home/config.toml"), "[limits]\nsteps = 1\n").unwrap();
    world.run(&[]).exits(3);
    world.run(&["--max-steps", "9"]).exits(0);
}

#[test]
fn a_model_that_does_not_answer_leaves_the_run_resumable() {
    let world = World::new("[[reply]]\nraw = \"event: nonsense\\n\\n\"\n");
    world.run(&[]).exits(7).says("gyrus resume");
    std::fs::write(world.path("script.toml"), THREE_STEPS).unwrap();
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn a_command_ends_when_the_time_is_up_and_goes_on_with_more() {
    let world = World::new(UNTIL_GO);
    world.run(&["--max-time", "1s"]).exits(3).says("--max-time");
    assert_eq!(world.file("ledger.txt"), "begun\n");
    std::fs::write(world.work().join("go"), "").unwrap();
    world
        .gyrus(&["resume", "last", "--max-time", "1h"])
        .exits(0);
}

#[test]
fn a_model_that_goes_round_in_circles_is_stuck() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"read\", arguments = { path = \".\" } }]\nrepeat = 50\n",
    );
    world.run(&[]).exits(6).says("gyrus steer");
}
