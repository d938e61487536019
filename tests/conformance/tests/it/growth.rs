//! A long run costs as much a step as a short one.

use std::{fs, path::Path};

use gyrus_conformance::{
    scenario::Scenario,
    script::{Script, Turn},
    world::{FINISH, PUT, claim, value},
};
use gyrus_contract::Limits;
use gyrus_kernel::ResumeChanges;

/// Maximum size on disk of a step with a payload of 200 bytes.
const BYTES_A_STEP: u64 = 4 * 1024;

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.metadata().unwrap() {
            folder if folder.is_dir() => bytes(&entry.path()),
            file => file.len(),
        })
        .sum()
}

/// Bytes a step in each third of a run of `steps`.
async fn thirds(steps: u64) -> Vec<u64> {
    let script = Script::rule(move |prompt| {
        if prompt.ordinal == steps {
            return Turn::call(FINISH, claim("done"));
        }
        let payload = format!("{:0>200}", prompt.ordinal);
        Turn::call(PUT, value("counter", &payload))
    });
    let bench = Scenario::new("react", script).bench();
    let runs = bench.store.root().join("runs");
    let mut ready = Some(bench.create());
    let mut before = bytes(&runs);
    let mut costs = Vec::new();
    for third in 1..=3 {
        let limits = Limits {
            steps: Some(steps / 3 * third),
            ..Limits::default()
        };
        // The first process parks before its first step.
        drop(ready.take());
        let changes = ResumeChanges {
            limits,
            ..ResumeChanges::default()
        };
        bench.resume_with(changes).await.unwrap();
        let now = bytes(&runs);
        costs.push((now - before) / (steps / 3));
        before = now;
    }
    assert_eq!(bench.world.deeds().len() as u64, steps);
    costs
}

async fn check(steps: u64) {
    let costs = thirds(steps).await;
    let (first, last) = (costs[0], costs[2]);
    assert!(
        first.abs_diff(last) * 10 <= first,
        "{steps} steps cost {costs:?} bytes each"
    );
    assert!(
        costs.iter().all(|cost| *cost <= BYTES_A_STEP),
        "{steps} steps cost {costs:?}"
    );
}

#[tokio::test]
async fn bytes_a_step_do_not_grow_over_300_steps() {
    check(300).await;
}

#[tokio::test]
async fn nor_over_30() {
    check(30).await;
}
