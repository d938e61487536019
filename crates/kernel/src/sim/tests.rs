//! A sample of the sweep.

use super::*;

/// About a second of the unoptimised ledgers.
const SAMPLE: u64 = 4_000;

#[test]
fn budgets_hold_under_random_schedules() {
    let done = sweep(SAMPLE, 1).unwrap_or_else(|failure| panic!("{failure}"));
    // Schedules that meet no limit, no kill and no hand-over tell little.
    assert!(done.refused > SAMPLE / 2, "{done}");
    assert!(done.kills > SAMPLE / 8, "{done}");
    assert!(done.given_up > SAMPLE / 50, "{done}");
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in 0..50 {
        assert_eq!(live(seed), live(seed));
    }
}
