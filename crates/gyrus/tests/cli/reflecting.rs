//! Lessons of runs, through the whole program.

use gyrus_kernel::Entry;

use crate::support::World;

/// Fails once, finishes, and looks back.
const LEARNS: &str = r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "absent.txt" } }]
[[reply]]
purpose = "reflect"
text = "The file is not there."
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "Done." } }]
[[reply]]
purpose = "reflect"
text = '{"worked": "Listing the folder first.", "did_not": "Guessing names of files."}'
"#;

fn lesson(world: &World) -> Option<serde_json::Value> {
    world.entries().into_iter().find_map(|entry| match entry {
        Entry::Noted { kind, fact, .. } if kind == "run.lesson" => Some(fact.fact),
        _ => None,
    })
}

#[test]
fn a_run_ends_with_a_lesson_that_later_runs_can_read() {
    let world = World::new(LEARNS);
    world.run(&["--reflect"]).exits(0);
    let learned = lesson(&world).unwrap();
    assert_eq!(learned["worked"], "Listing the folder first.");
    assert_eq!(learned["did_not"], "Guessing names of files.");
    assert_eq!(learned["reached"], true);
    let shown = world.gyrus(&["show", "last"]).exits(0);
    let words = "what did not: Guessing names of files.";
    assert!(shown.out.contains(words), "{}", shown.out);
    world.replays();
}

#[test]
fn a_model_that_does_not_look_back_costs_the_lesson_alone() {
    let silent = LEARNS.split("[[reply]]").take(4).collect::<Vec<_>>();
    let world = World::new(&silent.join("[[reply]]"));
    world.run(&["--reflect"]).exits(0);
    assert_eq!(lesson(&world), None);
    let without = World::new(LEARNS);
    without.run(&[]).exits(0);
    assert_eq!(lesson(&without), None);
}
