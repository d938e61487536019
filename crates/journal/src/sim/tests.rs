//! The explorer on a few thousand lives. `cargo xtask sim` does more.

use super::{explore, shrink};

/// Enough to meet every kind of fault at every kind of place many times over.
const LIVES: u64 = 1_500;

#[test]
fn whatever_happens_nothing_acknowledged_is_lost() {
    for seed in 0..LIVES {
        if let Err(failure) = explore(seed) {
            panic!("{}", shrink(failure));
        }
    }
}
