//! Everyday commands pass unasked in the default mode, and end in the sandbox as they do outside.
//!
//! Each line of `tests/lines/corpus/everyday.txt` is run in a fresh copy of a small project,
//! plainly and by gyrus, and the two ends are compared. `cargo xtask everyday` runs all of them, and
//! `cargo xtask sessions` whole sessions.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step fails the test, helpers included"
)]

mod corpus;
mod desk;
mod sessions;
mod table;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use corpus::{Line, Missing};
use desk::{Desk, Original};
use parking_lot::Mutex;
use table::{Came, Table, Tried};

/// Lines are independent of each other, so some are tried at once; they wait for the disk mostly.
const DESKS: usize = 4;

/// Percentage of lines that must pass unasked and end as they do outside.
const WANTED_PER_CENT: f64 = 95.0;

/// Each so many lines, one is in the sample.
const SAMPLE_STEP: usize = 43;

fn try_line(desk: &Desk<'_>, line: &Line) -> Tried {
    let outside = desk.outside(&line.line);
    let inside = desk.inside(&line.line);
    Tried {
        line: line.clone(),
        came: Came::of(outside, inside, || desk.said_outside()),
    }
}

/// Tries them all; nothing if no sandbox holds here.
fn try_all(lines: &[Line]) -> Option<Table> {
    let original = Original::lay_out();
    if !Desk::new(&original, "probe").sandbox_holds() {
        return None;
    }
    let missing = Missing::look();
    let (skipped, lines): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| missing.keeps_from(line));
    let next = AtomicUsize::new(0);
    let tried = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..DESKS {
            let desk = Desk::new(&original, &format!("desk-{number}"));
            let (next, tried, lines) = (&next, &tried, &lines);
            scope.spawn(move || {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let came = try_line(&desk, line);
                    tried.lock().push(came);
                }
            });
        }
    });
    let mut tried = tried.into_inner();
    tried.sort_by_key(|tried| tried.line.number);
    Some(Table {
        tried,
        skipped: skipped.into_iter().cloned().collect(),
    })
}

/// A sample, or all, or what `GYRUS_EVERYDAY` names: line numbers, a section, or words of lines.
/// `cargo xtask everyday` sets it; all of them take minutes.
#[test]
fn commands_pass_and_end_as_outside() {
    let only = std::env::var("GYRUS_EVERYDAY").ok();
    let mut lines = corpus::lines();
    match &only {
        None => {
            lines.retain(|line| !["cargo", "npm"].contains(&line.section.as_str()));
            lines = lines.into_iter().step_by(SAMPLE_STEP).collect();
        }
        Some(only) => {
            let numbers: Vec<&str> = only.split(',').collect();
            lines.retain(|line| {
                only.is_empty()
                    || line.section == *only
                    || numbers.contains(&line.number.to_string().as_str())
                    || line.line.contains(only)
            });
        }
    }
    let Some(table) = try_all(&lines) else {
        println!("skipped: no sandbox holds on this machine");
        return;
    };
    if only.is_some() {
        println!("{table}");
    }
    if only.is_none_or(|only| only.is_empty()) {
        table.must_hold(WANTED_PER_CENT);
    }
}

/// One of each kind, or all, or those whose name has the words of `GYRUS_SESSIONS`, which `cargo xtask
/// sessions` sets.
#[test]
fn sessions_end_as_outside_and_do_not_ask() {
    let only = std::env::var("GYRUS_SESSIONS").ok();
    let original = Original::lay_out();
    if !Desk::new(&original, "probe").sandbox_holds() {
        println!("skipped: no sandbox holds on this machine");
        return;
    }
    let report = sessions::hold(&original, only.as_deref());
    if only.is_some() {
        println!("{report}");
    }
}
