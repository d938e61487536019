//! The time that takeovers took, where nothing else was in their way.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::run::Takeover;
use crate::{
    harms::{Harms, Subject},
    reader::Message,
    servers::COUNT,
};

/// Longest time between two messages of all runs together for which the servers count as at work, in
/// microseconds. A stream whose leader died takes nothing until the others have agreed on another one.
const SILENCE_US: i64 = 1_000_000;

/// The times of takeovers, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Those while no server was harmed, and some worker was whole.
    pub(crate) quiet: Vec<i64>,
    /// Those while a server was harmed, and the others took messages all the time.
    pub(crate) with_quorum: Vec<i64>,
    /// Number of those that took longer than twice the lease, by the faults of servers and of ways
    /// that there were meanwhile.
    pub(crate) slow: BTreeMap<String, usize>,
    /// Numbers of the others by the reason for which they do not count.
    pub(crate) excluded: BTreeMap<&'static str, usize>,
    /// The longest of all.
    pub(crate) longest: i64,
}

/// The circumstances that takeovers are compared with.
pub(crate) struct Circumstances<'a> {
    pub(crate) harms: &'a Harms,
    /// Number of workers.
    pub(crate) workers: usize,
    pub(crate) lease: Duration,
    /// The messages of all runs.
    pub(crate) messages: &'a [Message],
    /// The record of all faults.
    pub(crate) faults: &'a [Value],
}

/// Sorts takeovers by what happened meanwhile; returns which took too long, too.
pub(crate) fn check(
    takeovers: &[Takeover],
    circumstances: &Circumstances<'_>,
) -> (Vec<String>, Times) {
    let Circumstances { harms, workers, .. } = circumstances;
    let mut times = Times::default();
    let mut wrong = Vec::new();
    let lease_us = i64::try_from(circumstances.lease.as_micros()).unwrap_or(i64::MAX);
    let mut stored: Vec<i64> = circumstances
        .messages
        .iter()
        .map(|message| message.at_us)
        .collect();
    stored.sort_unstable();
    for takeover in takeovers {
        let (from, to) = (takeover.silent_us, takeover.claimed_us);
        let took = (to - from) / 1_000;
        times.longest = times.longest.max(took);
        // A worker that came or was held up shortly before has not seen everything in time.
        let is_whole = |number| !harms.was_harmed(Subject::Worker(number), from - lease_us / 2, to);
        let window =
            stored.partition_point(|at| *at < from)..stored.partition_point(|at| *at <= to);
        let silence = stored[window]
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max();
        let excluded = if !(0..*workers).any(is_whole) {
            Some("no worker was whole meanwhile")
        } else if silence.is_none_or(|silence| silence > SILENCE_US) {
            Some("the servers took nothing for more than a second")
        } else {
            None
        };
        // Those that come again need their time, too.
        let was_harmed =
            |server| harms.was_harmed(Subject::Server(server), from - 2 * lease_us, to);
        match excluded {
            Some(reason) => *times.excluded.entry(reason).or_default() += 1,
            None if (0..COUNT).any(was_harmed) => {
                times.with_quorum.push(took);
                if to - from > 2 * lease_us {
                    let faults = meanwhile(circumstances.faults, from, to);
                    *times.slow.entry(faults).or_default() += 1;
                }
            }
            None => {
                if to - from > 2 * lease_us {
                    wrong.push(format!(
                        "a run was taken over after {took} ms, though nothing was in the way (at {to})"
                    ));
                }
                times.quiet.push(took);
            }
        }
    }
    times.quiet.sort_unstable();
    times.with_quorum.sort_unstable();
    (wrong, times)
}

/// Returns the kinds of the faults of servers, and of ways to them, between two times.
fn meanwhile(faults: &[Value], from: i64, to: i64) -> String {
    let kinds: BTreeSet<&str> = faults
        .iter()
        .filter(|fault| {
            let at = fault["at_us"].as_i64().unwrap_or(0);
            let lasts = fault["ms"].as_i64().unwrap_or(0) * 1_000;
            at <= to && at + lasts >= from
        })
        .filter_map(|fault| fault["kind"].as_str())
        .filter(|kind| kind.contains("server") || kind.contains(':'))
        .collect();
    Vec::from_iter(kinds).join(" + ")
}
