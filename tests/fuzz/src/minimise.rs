//! Makes an input that breaks a property as short as it can be.

use std::time::{Duration, Instant};

/// Time spent on it; then the shortest so far must do.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A shorter input for which `fails` holds too; the same one if there is none.
pub(crate) fn minimise(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let start = Instant::now();
    let mut best = input.to_vec();
    let mut size = best.len().div_ceil(2);
    while size > 0 && start.elapsed() < TIMEOUT {
        let mut shorter = false;
        let mut at = 0;
        while at < best.len() && start.elapsed() < TIMEOUT {
            let mut without = best.clone();
            without.drain(at..(at + size).min(best.len()));
            if fails(&without) {
                best = without;
                shorter = true;
            } else {
                at += size;
            }
        }
        size = if shorter {
            size.min(best.len())
        } else {
            size / 2
        };
    }
    best
}

#[cfg(test)]
#[test]
fn only_what_matters_is_left() {
    let fails = |input: &[u8]| input.contains(&b'x') && input.contains(&b'y');
    let input = [&[b'a'; 100][..], b"x", &[b'b'; 333], b"y", &[b'c'; 50]].concat();
    assert_eq!(minimise(&input, fails), b"xy");
    assert_eq!(minimise(b"a", |input| input == b"a"), b"a");
}
