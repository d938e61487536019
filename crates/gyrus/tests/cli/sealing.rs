//! The seal of a finished run's journal.

use std::{fs, path::Path};

use crate::support::{UNTIL_GO, World};

/// A run of the version that wrote the first seals.
const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sealed-1");

#[test]
fn a_seal_that_cannot_be_written_is_reported() {
    let world = World::new(UNTIL_GO);
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    let run = world.runs()[0].to_string();
    // The seal is written under this name first.
    let taken = world.path("home/journal/runs").join(run).join(".tmp-seal");
    fs::create_dir(&taken).unwrap();
    fs::write(world.work().join("go"), "").unwrap();
    let said = running
        .end()
        .exits(0)
        .says("could not be sealed: cannot create");
    assert_eq!(said.out, "finished\n");
    let verified = world.gyrus(&["runs", "verify", "last"]).exits(0).out;
    assert!(verified.contains("the chain holds"), "{verified}");
    assert!(!verified.contains("finished"), "{verified}");
}

#[test]
fn the_first_seals_are_still_read() {
    let world = World::new("");
    copy(Path::new(FIXTURE), &world.path("home/journal"));
    let verified = world.gyrus(&["runs", "verify"]).exits(0).out;
    let whole = "run cdda0614: the chain holds, 18 entries, 5 blobs, finished";
    assert!(verified.starts_with(whole), "{verified}");
    let shown = world.gyrus(&["show", "last"]).exits(0).out;
    assert!(shown.contains("Bread is on the list."), "{shown}");
    let exported = world.path("run.gyrus").display().to_string();
    let folder = world.path("home/journal/runs");
    world.gyrus(&["runs", "export", "last", &exported]).exits(0);
    world.gyrus(&["runs", "rm", "last", "--yes"]).exits(0);
    world.gyrus(&["runs", "import", &exported]).exits(0);
    let run = folder.join(world.runs()[0].to_string());
    let journal = fs::read_to_string(run.join("000001.jsonl")).unwrap();
    let cut = journal.trim_end().rfind('\n').unwrap();
    fs::write(run.join("000001.jsonl"), &journal[..=cut]).unwrap();
    let verified = world.gyrus(&["runs", "verify"]).exits(1).out;
    assert!(verified.contains("entry 18"), "{verified}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}
