//! Where a run is: its last complete cycle, and what was recorded of the one after it.
//!
//! Read backwards from the journal's end, so that a run of a million entries is taken up as fast
//! as one of ten.

use gyrus_contract::{Item, RunId};
use gyrus_journal::Reader;

use crate::{
    Appended, CycleEnded, Ending, Entry, KernelError, KernelState, RunHandedOver, RunStarted,
    Settings, Stop, log::parse,
};

/// Where a run is.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub(crate) started: RunStarted,
    /// What holds now.
    pub(crate) settings: Settings,
    /// The last complete cycle.
    pub(crate) last: Option<CycleEnded>,
    /// The cycle to run next.
    pub(crate) cycle: u32,
    /// What is recorded of that cycle.
    pub(crate) recorded: Vec<Entry>,
    /// Cycles after `last` that were given up, with what they did.
    pub(crate) dropped: Vec<(RunHandedOver, Vec<Entry>)>,
    /// How the run stopped last, if it said so.
    pub(crate) ending: Option<Ending>,
}

impl Position {
    /// A run that has just begun.
    pub(crate) fn fresh(started: RunStarted) -> Self {
        Self {
            settings: started.settings.clone(),
            started,
            last: None,
            cycle: 1,
            recorded: Vec::new(),
            dropped: Vec::new(),
            ending: None,
        }
    }

    /// Reads back to the last complete cycle.
    pub(crate) fn read(run: RunId, reader: &Reader) -> Result<Self, KernelError> {
        let first = reader.entry(1)?.ok_or_else(|| KernelError::NotARun {
            run,
            reason: "its journal is empty: it was cut off before it began".to_owned(),
        })?;
        let Entry::RunStarted(started) = parse(&first).map_err(Stop::from)? else {
            return Err(KernelError::NotARun {
                run,
                reason: format!("its first entry is a `{}`", first.kind),
            });
        };
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
            Entry::RunHandedOver(handed) => {
                self.dropped
                    .push((handed, std::mem::take(&mut self.recorded)));
            }
            Entry::CycleDropped(dropped) => self.cycle = dropped.cycle + 1,
            Entry::RunResumed(resumed) => self.settings = resumed.settings,
            Entry::RunParked(parked) => self.ending = Some(parked.ending),
            Entry::RunEnded(ended) => self.ending = Some(ended.ending),
            other => {
                if other.effect().is_some() {
                    self.ending = None;
                    self.recorded.push(other);
                }
            }
        }
    }

    /// How the run ended, if it is over for good.
    pub(crate) fn over(&self) -> Option<Ending> {
        self.ending.clone().filter(Ending::is_final)
    }

    /// The kernel's state at the end of the last complete cycle.
    pub(crate) fn kernel_state(&self) -> KernelState {
        self.last
            .as_ref()
            .map(|cycle| cycle.kernel.clone())
            .unwrap_or_default()
    }

    /// Inbox messages that the journal already holds.
    pub(crate) fn consumed(&self) -> Vec<String> {
        let recorded = self
            .recorded
            .iter()
            .flat_map(|entry| entry.consumed_messages());
        let last = self
            .last
            .iter()
            .flat_map(|cycle| cycle.kernel.consumed.iter());
        recorded.map(str::to_owned).chain(last.cloned()).collect()
    }
}

/// The last `capacity` messages of memory at the end of `last`, with the number of the first.
pub(crate) fn memory_at(
    reader: &Reader,
    last: &CycleEnded,
    capacity: usize,
) -> Result<(u64, Vec<Item>), Stop> {
    let wanted = last.memory_next.saturating_sub(capacity as u64);
    let mut items: Vec<Item> = Vec::new();
    let mut first = last.memory_next;
    // Numbers of cycles that were given up: what they remembered was forgotten again.
    let mut given_up = Vec::new();
    let mut within = false;
    for entry in reader.entries_back()? {
        if first <= wanted {
            break;
        }
        let entry = entry?;
        if !matches!(
            entry.kind.as_str(),
            "cycle.ended" | "cycle.dropped" | "model.call"
        ) {
            continue;
        }
        let appended = match parse(&entry)? {
            Entry::CycleDropped(dropped) => {
                given_up.push(dropped.cycle);
                continue;
            }
            Entry::CycleEnded(cycle) => {
                within |= cycle.cycle == last.cycle;
                cycle.appended
            }
            Entry::ModelCall(call) if !given_up.contains(&call.effect.cycle_number()) => {
                call.appended
            }
            _ => continue,
        };
        if within {
            prepend(reader, &mut items, &mut first, appended)?;
        }
    }
    items.reverse();
    Ok((first, items))
}

/// Puts messages before those already gathered; `items` is newest first.
fn prepend(
    reader: &Reader,
    items: &mut Vec<Item>,
    first: &mut u64,
    appended: Appended,
) -> Result<(), Stop> {
    let numbers = appended.first..appended.first + appended.items.len() as u64;
    for (number, item) in numbers.rev().zip(appended.items.iter().rev()) {
        // A repeated attempt may hold the same messages again.
        if number + 1 == *first {
            items.push(item.read(|id| reader.blob(id).map_err(Stop::from))?);
            *first = number;
        }
    }
    Ok(())
}
