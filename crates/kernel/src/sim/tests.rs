//! A sample of the sweep.

use super::*;

/// Number of schedules that take about a second without optimisation.
const SAMPLE: u64 = 4_000;

#[test]
fn budgets_hold_under_random_schedules() {
    let done = sweep(SAMPLE, 1).unwrap_or_else(|failure| panic!("{failure}"));
    // Schedules that meet no limit, no kill and no hand-over prove little.
    assert!(done.refused > SAMPLE / 2, "{done}");
    assert!(done.kills > SAMPLE / 8, "{done}");
    assert!(done.abandoned > SAMPLE / 50, "{done}");
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in 0..50 {
        assert_eq!(live(seed), live(seed));
    }
}
