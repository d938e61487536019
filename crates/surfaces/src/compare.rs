//! Runs side by side: their calls aligned by tool and resolved arguments. A fork shares the calls
//! before it with the run that it was forked from, by their entries.

use gyrus_contract::{Digest, EffectId, RunId};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{CallEnd, Entry, log_name, summary};
use serde_json::Value;

use crate::{
    page::{first_argument, first_words},
    projection::stored,
};

/// Maximum number of calls of a run that are compared.
const MAX_CALLS: usize = 5_000;

/// Maximum number of forks that are followed back.
const MAX_FORKS: usize = 32;

/// Maximum number of pairs of calls that are compared for the longest common order; beyond it,
/// calls between the common beginning and the common end count as different.
const MAX_PAIRS: usize = 4_000_000;

/// Characters of the words about a call, and about its result.
const GIST: usize = 160;

/// A call of a run, or the run's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedCall {
    /// The run whose journal contains the call: for what is before a fork, the run that it was
    /// forked from.
    pub run: RunId,
    /// Number of the call's first entry.
    pub seq: u64,
    pub step: u32,
    /// The name of the tool; empty for the end of the run.
    pub tool: String,
    /// The call's arguments in a few words, or the way in which the run ended.
    pub gist: String,
    /// Decision of the gate.
    pub decision: &'static str,
    /// The result in a few words.
    pub result: String,
    /// Whether the call failed or was not executed.
    pub failed: bool,
    /// The duration in milliseconds.
    pub took_ms: u64,
    key: Digest,
}

impl ComparedCall {
    fn is_same(&self, other: &Self) -> bool {
        // Ends stand beside each other, whatever they are.
        let are_ends = self.tool.is_empty() && other.tool.is_empty();
        are_ends || self.key == other.key || (self.run, self.seq) == (other.run, other.seq)
    }
}

/// The calls of a run, including those before its fork.
#[derive(Debug, Default)]
pub struct CallsWithFork {
    /// The calls, in order, and the end of the run if it is over.
    pub calls: Vec<ComparedCall>,
    /// Whether the run has more calls than are compared.
    pub is_cut: bool,
    /// Number of steps that the run shares with the one that it was forked from.
    pub shared_steps: u32,
}

impl CallsWithFork {
    /// Reads the calls of a run.
    ///
    /// # Errors
    /// Its journal cannot be opened. What cannot be read of the runs that it was forked from is
    /// left out.
    pub fn read(store: &Store, run: RunId) -> Result<Self, gyrus_journal::Error> {
        let mut path = Self::default();
        let from = path.add(store, run, None)?;
        path.shared_steps = from.map_or(0, |(_, step)| step);
        let mut next = from;
        for _ in 0..MAX_FORKS {
            let Some((parent, step)) = next else { break };
            let mut earlier = Self::default();
            let Ok(from) = earlier.add(store, parent, Some(step)) else {
                break;
            };
            path.is_cut |= earlier.is_cut;
            earlier.calls.append(&mut path.calls);
            path.calls = earlier.calls;
            // A step before the fork of the parent is its parent's.
            next = from.map(|(run, shared)| (run, shared.min(step)));
        }
        Ok(path)
    }

    /// Adds the calls of one journal up to the end of a step, and returns the origin of the fork.
    fn add(
        &mut self,
        store: &Store,
        run: RunId,
        until: Option<u32>,
    ) -> Result<Option<(RunId, u32)>, gyrus_journal::Error> {
        let reader = store.reader(&log_name(run))?;
        let mut fold = CallCollector {
            run,
            reader: &reader,
            workspace: String::new(),
            open: Vec::new(),
        };
        let mut from = None;
        for entry in reader.entries(1)?.map_while(Result::ok) {
            let Ok(parsed) = gyrus_kernel::parse(&entry) else {
                continue;
            };
            if let Entry::RunStarted(started) = &parsed {
                fold.workspace = started.workspace.display().to_string();
                let forked = started.forked_from.as_ref();
                from = forked.map(|from| (from.run, from.cycle));
            }
            let step = parsed.effect().map(EffectId::cycle_number);
            if until.is_some_and(|until| step.is_some_and(|step| step > until)) {
                break;
            }
            if self.calls.len() == MAX_CALLS {
                self.is_cut = true;
                break;
            }
            if matches!(parsed, Entry::RunEnded(_)) && until.is_some() {
                break;
            }
            fold.take(entry.seq, parsed, &mut self.calls);
        }
        Ok(from)
    }
}

struct CallCollector<'a> {
    run: RunId,
    reader: &'a LogReader,
    workspace: String,
    /// The calls without a result, by their index.
    open: Vec<(EffectId, usize)>,
}

impl CallCollector<'_> {
    fn take(&mut self, seq: u64, entry: Entry, calls: &mut Vec<ComparedCall>) {
        let place = |open: &[(EffectId, usize)], effect: &EffectId| {
            let found = open.iter().rev().find(|(one, _)| one == effect);
            found.map(|(_, place)| *place)
        };
        if let Entry::ToolCalled(called) = entry {
            self.open.push((called.effect.clone(), calls.len()));
            calls.push(ComparedCall {
                run: self.run,
                seq,
                step: called.effect.cycle_number(),
                gist: first_words(
                    &first_argument(&called.call.arguments).unwrap_or_default(),
                    GIST,
                ),
                decision: "",
                result: String::new(),
                failed: false,
                took_ms: 0,
                key: self.key(&called.call.tool, &called.call.arguments),
                tool: called.call.tool,
            });
        } else if let Entry::GateVerdict(judged) = entry {
            if let Some(place) = place(&self.open, &judged.effect) {
                let call = &mut calls[place];
                call.decision = match judged.verdict.decision {
                    gyrus_contract::Decision::Allow => "allowed",
                    gyrus_contract::Decision::Ask => "asked",
                    gyrus_contract::Decision::Deny => "denied",
                };
                if let Some(resolved) = &judged.arguments {
                    call.key = self.key(&call.tool, resolved);
                }
            }
        } else if let Entry::ToolResulted(result) = entry {
            if let Some(place) = place(&self.open, &result.effect) {
                let text = stored(&result.text, self.reader).unwrap_or_else(|gone| gone);
                let call = &mut calls[place];
                call.result = first_words(&text, GIST);
                call.failed = result.is_error || result.settled != CallEnd::Done;
                call.took_ms = result.took_ms;
                self.open.retain(|(_, open)| *open != place);
            }
        } else if let Entry::RunEnded(ended) = entry {
            let ended = summary(&ended.ending);
            calls.push(ComparedCall {
                run: self.run,
                seq,
                step: 0,
                tool: String::new(),
                key: Digest::of_json(&("end", &ended)),
                gist: first_words(&ended, GIST),
                decision: "",
                result: String::new(),
                failed: false,
                took_ms: 0,
            });
        }
    }

    /// Returns a digest for comparing calls. Its folder does not count, because a copy is as good.
    fn key(&self, tool: &str, arguments: &Value) -> Digest {
        let mut text = arguments.to_string();
        if self.workspace.len() > 1 {
            text = text.replace(&self.workspace, ".");
        }
        Digest::of_json(&(tool, text))
    }
}

/// A row of a comparison: for each run the place of its call; `None` where it made no such call.
pub type AlignedCalls = Vec<Option<usize>>;

/// Aligns the calls of runs, each run with those before it.
pub fn align(paths: &[CallsWithFork]) -> Vec<AlignedCalls> {
    let mut rows: Vec<AlignedCalls> = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let of_row = |row: &AlignedCalls| {
            let mut calls = row.iter().zip(paths);
            calls.find_map(|(place, path)| Some(&path.calls[(*place)?]))
        };
        let known: Vec<&ComparedCall> = rows.iter().filter_map(of_row).collect();
        let pairs = common(&known, &path.calls);
        rows = merged(&rows, &pairs, path.calls.len(), number);
    }
    rows
}

/// Returns the pairs of places of a longest common order.
fn common(known: &[&ComparedCall], calls: &[ComparedCall]) -> Vec<(usize, usize)> {
    let first = known
        .iter()
        .zip(calls)
        .take_while(|(a, b)| a.is_same(b))
        .count();
    let (left, right) = (&known[first..], &calls[first..]);
    let backwards = left.iter().rev().zip(right.iter().rev());
    let last = backwards.take_while(|(a, b)| a.is_same(b)).count();
    let (left, right) = (&left[..left.len() - last], &right[..right.len() - last]);
    let mut pairs: Vec<_> = (0..first).map(|at| (at, at)).collect();
    pairs.extend(
        longest(left, right)
            .into_iter()
            .map(|(a, b)| (a + first, b + first)),
    );
    let (end_left, end_right) = (known.len() - last, calls.len() - last);
    pairs.extend((0..last).map(|at| (end_left + at, end_right + at)));
    pairs
}

fn longest(left: &[&ComparedCall], right: &[ComparedCall]) -> Vec<(usize, usize)> {
    if left.len().saturating_mul(right.len()) > MAX_PAIRS {
        return Vec::new();
    }
    let width = right.len() + 1;
    let mut lengths = vec![0_u32; (left.len() + 1) * width];
    for (a, one) in left.iter().enumerate().rev() {
        for (b, other) in right.iter().enumerate().rev() {
            let at = a * width + b;
            lengths[at] = if one.is_same(other) {
                lengths[at + width + 1] + 1
            } else {
                lengths[at + width].max(lengths[at + 1])
            };
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
    while a < left.len() && b < right.len() {
        let at = a * width + b;
        if left[a].is_same(&right[b]) {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if lengths[at + width] >= lengths[at + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

/// Adds a run to the rows: what it has in common with them stands in theirs.
fn merged(
    rows: &[AlignedCalls],
    pairs: &[(usize, usize)],
    calls: usize,
    number: usize,
) -> Vec<AlignedCalls> {
    let (mut merged, mut row, mut call) = (Vec::new(), 0, 0);
    let without = |old: &AlignedCalls| {
        let mut new = old.clone();
        new.push(None);
        new
    };
    let alone = |call: usize| {
        let mut new = vec![None; number];
        new.push(Some(call));
        new
    };
    for (to_row, to_call) in pairs.iter().copied().chain([(rows.len(), calls)]) {
        merged.extend(rows[row..to_row].iter().map(without));
        merged.extend((call..to_call).map(alone));
        if to_row < rows.len() {
            let mut both = rows[to_row].clone();
            both.push(Some(to_call));
            merged.push(both);
        }
        (row, call) = (to_row + 1, to_call + 1);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(calls: &str) -> CallsWithFork {
        let run = RunId::new();
        let call = |(seq, name): (usize, char)| ComparedCall {
            run,
            seq: seq as u64,
            step: 1,
            tool: name.to_string(),
            gist: String::new(),
            decision: "",
            result: String::new(),
            failed: false,
            took_ms: 0,
            key: Digest::of_json(&name),
        };
        CallsWithFork {
            calls: calls.chars().enumerate().map(call).collect(),
            ..CallsWithFork::default()
        }
    }

    fn check(runs: &[&str], expected: &[&str]) {
        let paths: Vec<CallsWithFork> = runs.iter().map(|calls| path(calls)).collect();
        let rows = align(&paths);
        let line = |number: usize| -> String {
            let name = |row: &AlignedCalls| match row[number] {
                Some(place) => paths[number].calls[place].tool.clone(),
                None => "-".to_owned(),
            };
            rows.iter().map(name).collect()
        };
        let lines: Vec<String> = (0..runs.len()).map(line).collect();
        assert_eq!(lines, expected, "{runs:?}");
    }

    #[test]
    fn calls_in_common_stand_in_one_row() {
        check(&["abc", "abc"], &["abc", "abc"]);
        check(&["abcd", "abxd"], &["abc-d", "ab-xd"]);
        check(&["abc", ""], &["abc", "---"]);
        check(&["", "ab"], &["--", "ab"]);
        check(&["abcde", "acxe"], &["abcd-e", "a-c-xe"]);
        // What the second and the third have in common stands in one row of theirs.
        check(&["ab", "axb", "axyb"], &["a--b", "ax-b", "axyb"]);
        check(&["abc", "xyz", "abc"], &["abc---", "---xyz", "abc---"]);
    }
}
