//! Figures of the page of a run: its size, and how much is read for it however long the run is.

use gyrus_contract::RunId;
use gyrus_journal::{NewEntry, Payload};
use gyrus_kernel::log_name;
use serde_json::{Value, json, value::to_raw_value};

use super::Server;
use crate::support::World;

/// One step that is like many.
const STEP: &str = r#"
[[reply]]
text = "I look at the next file, compare it with what I know, and write down what is different."
calls = [{ tool = "shell", arguments = { command = "for i in 1 2 3 4 5 6 7 8; do echo line $i of the output of a command that says something; done" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

/// Writes a run whose steps all are like the first one of the run in the store.
fn run_of(world: &World, steps: u32) -> RunId {
    let store = world.store();
    let like = world.runs()[0];
    let reader = store.reader(&log_name(like)).unwrap();
    let entries: Vec<_> = reader.entries(1).unwrap().map(Result::unwrap).collect();
    let payload = |entry: &gyrus_journal::LogEntry| -> Value {
        let Payload::Json(json) = &entry.payload else {
            panic!("nothing is erased")
        };
        serde_json::from_str(json.get()).unwrap()
    };
    let ends = |kind: &str| entries.iter().position(|one| one.kind == kind).unwrap();
    let (start, step) = entries.split_at(ends("model.call"));
    let step = &step[..=ends("cycle.ended") - start.len()];
    let run = RunId::new();
    let writer = store.create(&log_name(run)).unwrap();
    let append = |batch: Vec<(String, Value)>| {
        let batch: Vec<NewEntry<'_>> = batch
            .iter()
            .map(|(kind, payload)| NewEntry {
                kind,
                version: 1,
                payload: to_raw_value(payload).unwrap(),
            })
            .collect();
        writer.append(&batch).unwrap();
    };
    let first = start.iter().map(|entry| {
        let mut payload = payload(entry);
        if entry.kind == "run.started" {
            payload["run"] = json!(run);
        }
        (entry.kind.clone(), payload)
    });
    append(first.collect());
    let last = entries.last().unwrap();
    let step: Vec<_> = step
        .iter()
        .map(|one| (one.kind.clone(), payload(one)))
        .collect();
    for number in 1..=steps {
        let entries = step.iter().map(|(kind, payload)| {
            let mut payload = payload.clone();
            if let Some(effect) = payload["effect"].as_str() {
                let (_, rest) = effect.split_once('.').unwrap();
                payload["effect"] = json!(format!("{number}.{rest}"));
            } else {
                payload["cycle"] = json!(number);
            }
            (kind.clone(), payload)
        });
        append(entries.collect());
        if number % 10 == 0 {
            // What is not synced yet is one batch, which is read whole.
            writer.barrier_blocking().unwrap();
        }
    }
    assert_eq!(last.kind, "run.ended");
    append(vec![(last.kind.clone(), payload(last))]);
    writer.barrier_blocking().unwrap();
    run
}

/// Returns the bytes that a process has read so far, from files and else.
fn read_by(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/io")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

#[test]
fn the_page_of_a_long_run_is_small_and_reads_its_end_only() {
    let world = World::new(STEP);
    world.run(&[]).exits(0);
    let short = run_of(&world, 100);
    let long = run_of(&world, 12_500);
    let server = Server::start(&world);
    let end = |run: RunId| {
        server.get(&format!("/api/runs/{run}")).is(200).json()["seq"]
            .as_u64()
            .unwrap()
    };
    let (short_end, long_end) = (end(short), end(long));
    assert!(long_end > 100_000, "{long_end}");
    let process = server.process();
    let mut figures = Vec::new();
    for run in [short, long] {
        for path in [
            "",
            "?zoom=cycles",
            "?zoom=entries",
            "?zoom=reading",
            "/context",
            "/cycle",
        ] {
            let api = if path == "/cycle" { "/api" } else { "" };
            let address = format!("{api}/runs/{run}{path}");
            let before = read_by(process);
            let page = server.get(&address).is(200).body;
            let read = read_by(process) - before;
            assert!(page.len() < 300_000, "{address} has {} bytes", page.len());
            figures.push((path, read));
        }
    }
    let (of_short, of_long) = figures.split_at(figures.len() / 2);
    for ((path, short), (_, long)) in of_short.iter().zip(of_long) {
        // The journal of the long run has some forty megabytes.
        assert!(
            *long < short + 1_000_000,
            "{path}: {long} bytes are read, beside {short}"
        );
    }
    // A step in the middle is as near as one at the end.
    let before = read_by(process);
    let middle = server
        .get(&format!("/runs/{long}/steps/{}", long_end / 2))
        .is(200)
        .body;
    assert!(middle.contains("Permanent link"), "{middle}");
    assert!(read_by(process) - before < 2_000_000);
    let earlier = server
        .get(&format!("/runs/{long}?before=1000"))
        .is(200)
        .body;
    assert!(
        earlier.contains("The newest steps") && short_end < 1_500,
        "{short_end}"
    );
}
