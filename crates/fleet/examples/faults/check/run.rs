//! The log of one run: its messages follow from each other, its entries are a chain, and each effect has
//! its place in it.

use std::path::PathBuf;

use gyrus_fleet::{RunMessage, RunMessageKind, RunStanding};
use gyrus_journal::Store;
use gyrus_kernel::{Entry, log_name, parse};

use super::effects::{self, Effects, LedgerLine};
use crate::{reader::Message, runs::Submitted};

/// A run that was taken from a worker which did not let it go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Takeover {
    /// The time of the last message of the worker before.
    pub(crate) silent_us: i64,
    /// The time of the claim.
    pub(crate) claimed_us: i64,
}

/// The findings in a run's log.
#[derive(Debug, Default)]
pub(crate) struct RunFindings {
    pub(crate) takeovers: Vec<Takeover>,
    /// The kinds of the last entries before takeovers.
    pub(crate) taken_after: Vec<String>,
    pub(crate) entries: u64,
    pub(crate) effects: Effects,
    pub(crate) is_over: bool,
}

/// An entry with the message that brought it.
pub(crate) struct Placed {
    pub(crate) entry: Entry,
    /// The time of the message.
    pub(crate) at_us: i64,
    /// The number of the claim under which it was written.
    pub(crate) epoch: u64,
}

/// Returns what is wrong with a run, and what its log says. `messages` are those of its subject.
pub(crate) fn check(
    run: &Submitted,
    messages: &[&Message],
    ledger: &[LedgerLine],
    copies: &Store,
) -> (Vec<String>, RunFindings) {
    let mut wrong = Vec::new();
    let mut findings = RunFindings::default();
    let log = match read(messages, &mut findings) {
        Ok(log) => log,
        Err(why) => {
            wrong.push(format!("run {}: {why}", run.run));
            return (wrong, findings);
        }
    };
    let entries = match entries(run, &log, copies) {
        Ok(entries) => entries,
        Err(why) => {
            wrong.push(format!("run {}: {why}", run.run));
            return (wrong, findings);
        }
    };
    findings.entries = log.standing.entries;
    findings.is_over = matches!(
        entries.last().map(|placed| &placed.entry),
        Some(Entry::RunEnded(_))
    );
    for takeover in &findings.takeovers {
        let before = entries.iter().rev();
        let last = before
            .clone()
            .find(|placed| placed.at_us <= takeover.silent_us);
        let kind = last.map_or("nothing", |placed| placed.entry.kind());
        findings.taken_after.push(kind.to_owned());
    }
    let (more, effects) = effects::check(run, &entries, &log.claims, ledger);
    wrong.extend(more);
    findings.effects = effects;
    (wrong, findings)
}

/// The messages of a run's log.
struct RunLog {
    standing: RunStanding,
    messages: Vec<(RunMessage, i64)>,
    /// The time of each claim.
    claims: Vec<i64>,
}

fn read(messages: &[&Message], findings: &mut RunFindings) -> Result<RunLog, String> {
    let mut log = RunLog {
        standing: RunStanding::default(),
        messages: Vec::new(),
        claims: Vec::new(),
    };
    let mut silent_us = 0;
    for stored in messages {
        let message = RunMessage::decode(&stored.body).map_err(|error| error.to_string())?;
        if matches!(message.kind, RunMessageKind::Claimed(_)) {
            if log.standing.holder.is_some() {
                findings.takeovers.push(Takeover {
                    silent_us,
                    claimed_us: stored.at_us,
                });
            }
            log.claims.push(stored.at_us);
        }
        silent_us = stored.at_us;
        log.standing
            .apply(stored.position, &message)
            .map_err(|error| error.to_string())?;
        log.messages.push((message, stored.at_us));
    }
    Ok(log)
}

/// Makes a copy of the run's journal, which proves its chain, and returns its entries.
fn entries(run: &Submitted, log: &RunLog, copies: &Store) -> Result<Vec<Placed>, String> {
    let name = log_name(run.run);
    let failed = |error: gyrus_journal::Error| format!("its entries are no chain: {error}");
    let mut places = Vec::new();
    let mut mirror = copies.mirror(&name).map_err(failed)?;
    for (message, at_us) in &log.messages {
        let lines = match &message.kind {
            RunMessageKind::Entries(lines) => lines,
            RunMessageKind::Blobs(blobs) => {
                for blob in blobs {
                    mirror.put_blob(blob).map_err(failed)?;
                }
                continue;
            }
            RunMessageKind::Claimed(_) | RunMessageKind::Renewed | RunMessageKind::Released => {
                continue;
            }
        };
        for blob in &lines.blobs {
            mirror.put_blob(blob).map_err(failed)?;
        }
        if lines.lines_in.is_some() {
            return Err("its entries do not fit into a message".to_owned());
        }
        mirror.append(&lines.lines).map_err(failed)?;
        if mirror.end() != (lines.last, lines.head) {
            return Err(format!(
                "its message with the entries {} to {} says another head than its lines have",
                lines.first, lines.last
            ));
        }
        places.push((lines.last, *at_us, message.epoch));
    }
    if places.is_empty() {
        return Ok(Vec::new());
    }
    mirror.sync().map_err(failed)?;
    drop(mirror);
    let verified = copies.verify(&name).map_err(failed)?;
    if (verified.entries, Some(verified.head)) != (log.standing.entries, log.standing.head) {
        return Err("its copy has another end than its log".to_owned());
    }
    let mut entries = Vec::new();
    let reader = copies.reader(&name).map_err(failed)?;
    for entry in reader.entries(1).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let place = places.partition_point(|(last, ..)| *last < entry.seq);
        let (_, at_us, epoch) = places[place.min(places.len() - 1)];
        let parsed = parse(&entry).map_err(|error| format!("entry {}: {error}", entry.seq))?;
        entries.push(Placed {
            entry: parsed,
            at_us,
            epoch,
        });
    }
    Ok(entries)
}

/// Returns a folder for copies that costs no disk, where there is one.
pub(crate) fn copies_folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}
