//! A sample of the sweep.

use super::{schedule::live, sweep::sweep};

/// Number of schedules that take about a second without optimisation.
const SAMPLE: u64 = 4_000;

/// `cargo xtask sim budgets` says how many schedules it runs, and from which seed on.
#[test]
fn budgets_hold_under_random_schedules() {
    let number = |name, default| match std::env::var(name) {
        Ok(given) => given.parse().expect("it is a whole number"),
        Err(_) => default,
    };
    let schedules = number("GYRUS_SIM_SCHEDULES", SAMPLE);
    let done = sweep(schedules, number("GYRUS_SIM_SEED", 1));
    let done = done.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{done}");
    // Schedules that meet no limit, no kill and no hand-over prove little.
    if schedules >= SAMPLE {
        assert!(done.refused > schedules / 2, "{done}");
        assert!(done.kills > schedules / 8, "{done}");
        assert!(done.abandoned > schedules / 50, "{done}");
    }
}

#[test]
fn a_seed_tells_the_same_story_again() {
    for seed in 0..50 {
        assert_eq!(live(seed), live(seed));
    }
}
