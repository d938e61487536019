//! The position of a run: its last complete cycle, and the recorded entries of the one after it.
//!
//! Read backwards from the journal's end, so that a run of a million entries is taken up as fast as
//! one of ten.

use std::ops::Range;

use std::sync::Arc;

use gyrus_contract::{MemoryItem, RunId, Spent};
use gyrus_journal::LogReader;

use crate::{
    CodePins, CycleEnded, Ending, Entry, KernelError, KernelState, MessagesAppended, RunSettings,
    RunStarted, Snapshot, Stop, log::parse,
};

#[derive(Debug, Clone)]
pub(crate) struct RunPosition {
    pub(crate) started: Arc<RunStarted>,
    pub(crate) settings: RunSettings,
    /// The last complete cycle.
    pub(crate) last: Option<CycleEnded>,
    /// The number of the cycle to run next.
    pub(crate) cycle: u32,
    /// The recorded entries of that cycle.
    pub(crate) recorded: Vec<Entry>,
    /// Cycles after `last` that were abandoned.
    pub(crate) dropped: Vec<AbandonedCycle>,
    /// The last recorded ending of the run, and the resources used until then.
    ending: Option<(Ending, Spent)>,
    /// The hashes of the code with which `recorded` was recorded.
    recorded_under: Vec<Arc<CodePins>>,
}

#[derive(Debug, Clone)]
pub(crate) struct AbandonedCycle {
    pub(crate) why: String,
    pub(crate) entries: Vec<Entry>,
}

impl RunPosition {
    /// Returns the position of a run that has just begun.
    pub(crate) fn fresh(started: RunStarted) -> Self {
        let started = Arc::new(started);
        Self {
            settings: started.settings.clone(),
            recorded_under: vec![started.settings.pins.clone()],
            started,
            last: None,
            cycle: 1,
            recorded: Vec::new(),
            dropped: Vec::new(),
            ending: None,
        }
    }

    /// Reads back to the last complete cycle.
    pub(crate) fn read(run: RunId, reader: &LogReader) -> Result<Self, KernelError> {
        let first = reader.entry(1)?.ok_or_else(|| KernelError::NotARun {
            run,
            reason: "its journal is empty: it was cut off before it began".to_owned(),
        })?;
        let Entry::RunStarted(mut started) = parse(&first).map_err(Stop::from)? else {
            return Err(KernelError::NotARun {
                run,
                reason: format!("its first entry is a `{}`", first.kind),
            });
        };
        if started.snapshot.is_none() {
            started.snapshot = recorded_workspace(reader)?;
        }
        let mut since = Vec::new();
        let mut last = None;
        for entry in reader.entries_back()? {
            match parse(&entry?).map_err(Stop::from)? {
                Entry::CycleEnded(cycle) => {
                    last = Some(cycle);
                    break;
                }
                Entry::RunStarted(_) => break,
                other => since.push(other),
            }
        }
        since.reverse();
        let mut position = Self::fresh(started);
        if let Some(settings) = last
            .as_ref()
            .and_then(|cycle| cycle.kernel.settings.clone())
        {
            position.recorded_under = vec![settings.pins.clone()];
            position.settings = settings;
        }
        position.cycle = last.as_ref().map_or(1, |cycle| cycle.cycle + 1);
        position.last = last;
        for entry in since {
            position.apply(entry);
        }
        Ok(position)
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::CycleDropped(dropped) => {
                let entries = std::mem::take(&mut self.recorded);
                let why = dropped.why;
                self.dropped.push(AbandonedCycle { why, entries });
                self.cycle = dropped.cycle + 1;
                self.recorded_under = vec![self.settings.pins.clone()];
            }
            Entry::RunResumed(resumed) => {
                self.recorded_under.push(resumed.settings.pins.clone());
                self.settings = resumed.settings;
            }
            Entry::RunParked(parked) => self.ending = Some((parked.ending, parked.spent)),
            Entry::RunEnded(ended) => self.ending = Some((ended.ending, ended.spent)),
            other => {
                if other.effect().is_some() {
                    self.recorded.push(other);
                }
            }
        }
    }

    /// Returns the last recorded ending of the run.
    pub(crate) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref().map(|(ending, _)| ending)
    }

    /// Returns the ending and the resources used, if the run has ended for good.
    pub(crate) fn over(&self) -> Option<(Ending, Spent)> {
        self.ending.clone().filter(|(ending, _)| ending.is_final())
    }

    /// Whether code other than that of `pins` recorded entries since the last complete cycle.
    pub(crate) fn other_code(&self, pins: &CodePins) -> bool {
        self.recorded_under.iter().any(|under| **under != *pins)
    }

    /// Returns the number of child runs that were started below this run.
    pub(crate) fn children(&self) -> u32 {
        let dropped = self.dropped.iter().flat_map(|dropped| &dropped.entries);
        let recorded = dropped.chain(&self.recorded).map(|entry| match entry {
            Entry::ChildStarted(_) => 1,
            Entry::ChildEnded(ended) => ended.children,
            _ => 0,
        });
        self.kernel_state().children + recorded.sum::<u32>()
    }

    /// Returns the kernel's state at the end of the last complete cycle.
    pub(crate) fn kernel_state(&self) -> KernelState {
        let last = self.last.as_ref().map(|cycle| cycle.kernel.clone());
        let mut state = last.unwrap_or_else(|| KernelState {
            exposed: self.started.exposed,
            grants: self.started.grants.clone(),
            not_undoable: match &self.started.snapshot {
                Some(Snapshot::Missing(why)) => Some(why.clone()),
                Some(Snapshot::Blob(_)) | None => None,
            },
            ..KernelState::default()
        });
        // Money and tokens of an unfinished cycle are in its entries; its time is only here.
        if let Some((_, spent)) = &self.ending {
            state.spent.time_ms = state.spent.time_ms.max(spent.time_ms);
        }
        state
    }
}

/// Returns the workspace at the start, if a separate entry has it.
fn recorded_workspace(reader: &LogReader) -> Result<Option<Snapshot>, Stop> {
    for entry in reader.entries(2)? {
        match parse(&entry?)? {
            Entry::WorkspaceRecorded(recorded) => return Ok(Some(recorded.snapshot)),
            // It comes before every effect.
            other if other.effect().is_some() => break,
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the last `capacity` messages of memory at the end of `last`, with the number of the
/// first.
pub(crate) fn memory_at(
    reader: &LogReader,
    last: &CycleEnded,
    capacity: usize,
) -> Result<(u64, Vec<MemoryItem>), Stop> {
    let oldest = last.memory_next.saturating_sub(capacity as u64);
    let wanted = oldest.max(last.memory_first)..last.memory_next;
    let is_last = |_, entry: &Entry| matches!(entry, Entry::CycleEnded(c) if c.cycle == last.cycle);
    items_back(reader, wanted, is_last)
}

/// Returns the messages of memory with these numbers, in their state at the entry for which
/// `begins` returns `true`. Also returns the number of the first one found.
pub(crate) fn items_back(
    reader: &LogReader,
    wanted: Range<u64>,
    begins: impl Fn(u64, &Entry) -> bool,
) -> Result<(u64, Vec<MemoryItem>), Stop> {
    let mut items: Vec<MemoryItem> = Vec::new();
    let mut first = wanted.end;
    let mut within = false;
    for entry in reader.entries_back()? {
        if first <= wanted.start {
            break;
        }
        let entry = entry?;
        if !matches!(
            entry.kind.as_str(),
            "cycle.ended" | "model.call" | "run.started"
        ) {
            continue;
        }
        let seq = entry.seq;
        let entry = parse(&entry)?;
        within |= begins(seq, &entry);
        // An abandoned cycle's additions to memory have numbers that were used again since, by
        // messages already found: the cycle is skipped.
        match entry {
            Entry::CycleEnded(cycle) if within => {
                prepend(reader, &mut items, &mut first, wanted.start, cycle.appended)?;
            }
            Entry::ModelCall(call) if within => {
                prepend(reader, &mut items, &mut first, wanted.start, call.appended)?;
            }
            Entry::RunStarted(started) if within => {
                prepend(reader, &mut items, &mut first, wanted.start, started.memory)?;
            }
            _ => {}
        }
    }
    items.reverse();
    Ok((first, items))
}

/// Puts messages before those already gathered, down to the number `start`; `items` is newest
/// first.
fn prepend(
    reader: &LogReader,
    items: &mut Vec<MemoryItem>,
    first: &mut u64,
    start: u64,
    appended: MessagesAppended,
) -> Result<(), Stop> {
    let numbers = appended.first..appended.first + appended.items.len() as u64;
    for (number, item) in numbers.rev().zip(appended.items.iter().rev()) {
        // A repeated attempt may hold the same messages again.
        if number + 1 == *first && number >= start {
            items.push(item.read(|id| reader.blob(id).map_err(Stop::from))?);
            *first = number;
        }
    }
    Ok(())
}
