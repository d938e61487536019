//! Ctrl-C, and orders from elsewhere.

use std::fs;

use gyrus_kernel::{CallEnd, Entry};
use rustix::process::Signal;

use crate::support::{THREE_STEPS, UNTIL_GO, World, said};

fn settled(world: &World) -> Vec<CallEnd> {
    let results = world.entries().into_iter().filter_map(|entry| match entry {
        Entry::ToolResulted(result) => Some(result.settled),
        _ => None,
    });
    results.collect()
}

#[test]
fn once_finishes_what_is_in_hand() {
    let world = World::new(UNTIL_GO);
    let mut running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    running.signal(Signal::INT);
    running.hears("finishing what is in progress");
    fs::write(world.work().join("go"), "").unwrap();
    running.end().exits(130).says("gyrus resume");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
    assert_eq!(settled(&world), [CallEnd::Done]);
    assert_eq!(world.gyrus(&["resume", "last"]).exits(0).out, "finished\n");
    assert_eq!(world.file("ledger.txt"), "begun\ndone\n");
}

#[test]
fn twice_cuts_it_off() {
    let world = World::new(UNTIL_GO);
    let mut running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    running.signal(Signal::INT);
    running.hears("finishing what is in progress");
    running.signal(Signal::INT);
    running.end().exits(130);
    assert_eq!(settled(&world), [CallEnd::Cancelled]);
    fs::write(world.work().join("go"), "").unwrap();
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(
        world.file("ledger.txt"),
        "begun\n",
        "nothing of the command lived on"
    );
}

#[test]
fn stop_and_pause_come_from_another_process() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    world.gyrus(&["stop", "last"]).exits(0).says("is parked");
    running
        .end()
        .exits(4)
        .says("stopped by tester (command line)");
    world
        .gyrus(&["stop", "last"])
        .exits(0)
        .says("is not running");
    assert_eq!(settled(&world), [CallEnd::Cancelled]);

    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    // It returns at once; the command may finish.
    let pause = || world.gyrus(&["pause"]).exits(0);
    pause().says("pauses when the action in progress is done");
    fs::write(world.work().join("go"), "").unwrap();
    running.end().exits(4);
    assert_eq!(settled(&world), [CallEnd::Done]);

    // Saying it again cuts it off.
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    world
        .gyrus(&["pause"])
        .exits(0)
        .says("once more interrupts that action");
    world.gyrus(&["pause"]).exits(0).says("is parked");
    running.end().exits(4);
    assert_eq!(settled(&world), [CallEnd::Cancelled]);
}

#[test]
fn steering_reaches_the_model_and_stays() {
    let world = World::new(THREE_STEPS);
    world.run(&["--max-steps", "1"]).exits(3);
    world
        .gyrus(&["steer", "last", "use capitals"])
        .exits(0)
        .says("gyrus resume");
    let said = world
        .gyrus(&["resume", "last", "--max-steps", "5"])
        .exits(0);
    assert!(
        said.err.contains("the person adds: use capitals"),
        "{}",
        said.err
    );
    let kept = world.entries().into_iter().filter_map(|entry| match entry {
        Entry::CycleEnded(ended) => Some(ended.kernel.amendments.len()),
        _ => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), [0, 1, 1]);
    // A fork hears its words before it is driven.
    let fork = ["fork", "last", "--at", "1", "--workdir", "again", "--steer"];
    world
        .gyrus(&[&fork[..], &["be kind"]].concat())
        .exits(3)
        .says("the person adds: be kind");
    world
        .gyrus(&["steer", "last", "too late"])
        .exits(2)
        .says("is over");
}

/// The process is killed while it reads the folder, which takes much longer than to see that the
/// run exists.
#[test]
fn a_run_that_was_killed_while_it_read_the_folder_is_resumed() {
    let world = World::new(THREE_STEPS);
    for number in 0..20_000 {
        let file = world.path(&format!("work/{number}.txt"));
        fs::write(file, number.to_string()).unwrap();
    }
    let folder = world.path("home/journal/runs");
    let running = world.start(&world.run_arguments(&[]));
    while fs::read_dir(&folder).map_or(0, Iterator::count) == 0 {
        std::thread::yield_now();
    }
    running.signal(Signal::KILL);
    running.end();
    let kinds = || -> Vec<String> {
        let entries = world.entries().into_iter();
        entries.map(|entry| entry.kind().to_owned()).collect()
    };
    assert_eq!(kinds(), ["run.started"]);
    let listed = world.gyrus(&["runs"]).exits(0).out;
    assert!(listed.contains("parked: its process died"), "{listed}");
    let said = world.gyrus(&["undo", "last", "--yes"]);
    assert!(
        said.err.contains("before the folder had been read"),
        "{said:?}"
    );
    let resumed = world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(resumed.out, "It says hello.\n");
    let begun: Vec<String> = kinds().into_iter().take(3).collect();
    assert_eq!(begun, ["run.started", "run.resumed", "workspace.recorded"]);
    world.replays();
    world.gyrus(&["runs", "verify", "last"]).exits(0);
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(world.file("out.txt"), "");
}

/// The process is killed before the first entry.
#[test]
fn a_run_that_was_killed_before_it_began_is_no_run() {
    let world = World::new(THREE_STEPS);
    let incoming = world.path("home/journal/.incoming");
    let running = world.start(&world.run_arguments(&[]));
    while fs::read_dir(&incoming).map_or(0, Iterator::count) == 0 {
        std::thread::yield_now();
    }
    running.signal(Signal::KILL);
    running.end();
    if world.runs().is_empty() {
        let listed = world.gyrus(&["runs"]).exits(0).out;
        assert!(listed.contains("there is no run yet"), "{listed}");
    } else {
        // It was faster, and can be resumed, unless it was so fast that it is over.
        let resumed = world.gyrus(&["resume", "last", "--approve", "auto"]);
        let is_over = resumed.err.contains("is over: claimed");
        resumed.exits(if is_over { 2 } else { 0 });
    }
    world.run(&[]).exits(0);
}

#[test]
fn a_run_whose_folder_was_moved_touches_no_other() {
    let world = World::new(THREE_STEPS);
    world.run(&["--max-steps", "1"]).exits(3);
    let run = world.runs()[0].to_string();
    let (work, moved, other) = (world.work(), world.path("moved"), world.path("other"));
    std::fs::rename(&work, &moved).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("out.txt"), "hello\n").unwrap();
    let refused = |why: &str, more: &[&str]| {
        let resume = ["resume", &run, "--max-steps", "9"];
        for arguments in [&resume[..], &["undo", &run, "--yes"], more] {
            let mut command = world.command(arguments);
            let said = said(command.current_dir(&other).output().unwrap());
            said.exits(1).says(why).says("put it back there");
        }
    };
    let fork = ["fork", &run, "--at", "1", "--in-place"];
    refused("is gone", &fork);
    std::fs::write(&work, "").unwrap();
    refused("is not a folder", &["undo", &run]);
    std::fs::remove_file(&work).unwrap();
    std::os::unix::fs::symlink(&other, &work).unwrap();
    refused(&format!("leads to {} now", other.display()), &fork);
    // Nothing of it was tried, so it goes on where it is put back.
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
    std::fs::remove_file(&work).unwrap();
    std::fs::rename(&moved, &work).unwrap();
    let resume = ["resume", &run, "--max-steps", "9", "--approve", "auto"];
    world.gyrus(&resume).exits(0);
    assert_eq!(world.file("ledger.txt"), "hello\n");
}
