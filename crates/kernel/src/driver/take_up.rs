//! Restores a fresh loop to the state of the journal: its last state, and then either the
//! unfinished cycle again or a fresh one that is told what the unfinished one did.

use gyrus_contract::{ActionVerdict, EffectId, MemoryBuffer, Observation, Origin, Text};

use super::{Driver, ending_of, record_workspace};
use crate::{
    AttemptResult, CallEnd, CycleDropped, CycleEnded, Ending, Entry, ErasedLoop, FolderTravels,
    HandOverReport, InterruptedCycle, ModelReply, RunHandedOver, RunStarted, Stop, ToolResulted,
    abandoned::count_abandoned,
    core::Core,
    effects::{
        changes::JudgedChanges,
        execute::{judged_of_the_dead, wait_for_tree},
        look,
        used::{OpenEnds, abandoned},
    },
    position::{RunPosition, memory_at},
    recorded::RecordedCycle,
};

impl Driver {
    /// Restores the loop to the state of the journal. `hand_over` is the reason why the unfinished
    /// cycle cannot be run again, if that is known already. Returns the ending if the run had ended
    /// and only the entry about it is missing.
    pub(super) async fn take_up(
        &mut self,
        position: RunPosition,
        hand_over: Option<String>,
    ) -> Result<Option<Ending>, Stop> {
        let mut hand_over = hand_over;
        self.core.restore_tools()?;
        remember(
            &mut *self.cognitive_loop,
            self.core.log.reader(),
            &position.started,
        )?;
        if let Some(last) = &position.last {
            if let Some(ending) = ending_of(last) {
                return Ok(Some(ending));
            }
            match restore(&mut *self.cognitive_loop, self.core.log.reader(), last) {
                Ok(()) => {}
                Err(RestoreError::Stop(stop)) => return Err(stop),
                // The present code has started a fresh cycle before, and continues from there.
                Err(RestoreError::Loop(_)) if !position.dropped.is_empty() && !self.other_code => {}
                Err(RestoreError::Loop(reason)) => hand_over = Some(reason),
            }
        }
        if self.core.started.snapshot.is_none() {
            self.folder = record_workspace(&self.core).await?;
        }
        for dropped in &position.dropped {
            count_abandoned(&self.core, &dropped.entries)?;
            self.core.account.count_cycle();
            let handed = hand_over_report(&self.core, &dropped.entries, dropped.why.clone())?;
            self.cognitive_loop.hand_over(&handed);
        }
        let unfinished = !position.recorded.is_empty();
        // The screen that it looked at was closed with its process.
        let looked = |entry: &Entry| matches!(entry, Entry::ScreenViewed(_));
        let abandons = self.cognitive_loop.unfinished() == InterruptedCycle::Abandon;
        if unfinished && (abandons || position.recorded.iter().any(looked)) {
            let reason = "the process ended in the middle of a step";
            hand_over.get_or_insert_with(|| reason.to_owned());
        }
        match hand_over {
            Some(reason) => self.hand_over(reason, position.recorded).await?,
            None => self.recorded = Some(RecordedCycle::new(position.recorded, false)),
        }
        Ok(None)
    }

    /// Records the outcomes of effects that an earlier process began, for a run not taken up.
    pub(super) async fn settle(&mut self, recorded: &[Entry]) -> Result<(), Stop> {
        self.core.layers.lock().is_settling = true;
        let outcomes = unsettled(&self.core, recorded).await?;
        self.core.log.append_all(&outcomes)?;
        self.core.log.barrier().await
    }

    /// Abandons the unfinished cycle and informs a fresh one of its work.
    async fn hand_over(&mut self, reason: String, mut recorded: Vec<Entry>) -> Result<(), Stop> {
        let mut entries = unsettled(&self.core, &recorded).await?;
        recorded.extend(entries.iter().cloned());
        let told = hand_over_report(&self.core, &recorded, reason.clone())?;
        let handed = RunHandedOver {
            reason: reason.clone(),
            done: told.done.iter().map(|seen| seen.effect.clone()).collect(),
        };
        entries.push(handed.into());
        let dropped = CycleDropped {
            cycle: self.cycle,
            why: reason,
        };
        entries.push(dropped.into());
        self.core.log.append_all(&entries)?;
        count_abandoned(&self.core, &recorded)?;
        self.core.account.count_cycle();
        self.cognitive_loop.hand_over(&told);
        self.cycle += 1;
        self.recorded = None;
        Ok(())
    }
}

/// Returns the report on an abandoned cycle with these entries.
pub(crate) fn hand_over_report(
    core: &Core,
    entries: &[Entry],
    reason: String,
) -> Result<HandOverReport, Stop> {
    let mut views = entries.iter().rev().filter_map(|entry| match entry {
        Entry::ScreenViewed(viewed) if !viewed.is_error => Some(viewed),
        _ => None,
    });
    let viewed = views.next().map(|viewed| look::load(core, viewed));
    Ok(HandOverReport {
        reason,
        done: observations(core, entries)?,
        viewed: viewed.transpose()?.map(Box::new),
    })
}

/// Returns the observations of recorded calls.
fn observations(core: &Core, entries: &[Entry]) -> Result<Vec<Observation>, Stop> {
    let mut seen = Vec::new();
    for entry in entries {
        let Entry::ToolResulted(result) = entry else {
            continue;
        };
        let call = entries.iter().find_map(|entry| match entry {
            Entry::ToolCalled(called) if called.effect == result.effect => Some(&called.call),
            _ => None,
        });
        let tool = call.map(|call| call.tool.clone()).unwrap_or_default();
        let text = result.text.load(&core.log)?;
        seen.push(Observation {
            effect: result.effect.clone(),
            call_id: String::new(),
            text: Text::new(text, Origin::Tool { name: tool.clone() }),
            value: result.load_value(&core.log)?,
            tool,
            images: result.images.clone(),
            is_error: result.is_error,
            verdict: result.verdict,
            artifacts: result.artifacts.clone(),
            claim: result.claim.clone(),
        });
    }
    Ok(seen)
}

pub(crate) enum RestoreError {
    Stop(Stop),
    Loop(String),
}

/// Gives a loop the memory of the previous run.
pub(crate) fn remember(
    cognitive_loop: &mut dyn ErasedLoop,
    reader: &gyrus_journal::LogReader,
    started: &RunStarted,
) -> Result<(), Stop> {
    if !started.memory.items.is_empty() {
        let capacity = cognitive_loop.memory().capacity();
        let items = started.memory_items(reader)?;
        *cognitive_loop.memory_mut() =
            MemoryBuffer::restore(capacity, started.memory.first, 0, items);
    }
    Ok(())
}

pub(crate) fn restore(
    cognitive_loop: &mut dyn ErasedLoop,
    reader: &gyrus_journal::LogReader,
    last: &CycleEnded,
) -> Result<(), RestoreError> {
    let capacity = cognitive_loop.memory().capacity();
    let (first, items) = memory_at(reader, last, capacity).map_err(RestoreError::Stop)?;
    *cognitive_loop.memory_mut() = MemoryBuffer::restore(capacity, first, last.memory_first, items);
    cognitive_loop
        .load(last.state_version, last.state.clone())
        .map_err(RestoreError::Loop)
}

/// Returns the outcomes of effects that began and have none, once their processes have ended: it is
/// unknown how far a call came, and a request may have been answered and charged.
async fn unsettled(core: &Core, recorded: &[Entry]) -> Result<Vec<Entry>, Stop> {
    let settled = |effect: &EffectId| {
        recorded
            .iter()
            .any(|entry| matches!(entry, Entry::ToolResulted(result) if result.effect == *effect))
    };
    let answered = |effect: &EffectId, attempt: u32| {
        recorded.iter().any(|entry| {
            matches!(entry, Entry::ModelReply(reply)
                if reply.effect == *effect && reply.attempt == attempt)
        })
    };
    let mut outcomes: Vec<Entry> = Vec::new();
    for entry in recorded {
        match entry {
            Entry::ToolStarted(started) if !settled(&started.effect) => {
                wait_for_tree(started).await?;
                // A repeated call has several starts and one outcome.
                let of_it = |entry: &Entry| entry.effect() == Some(&started.effect);
                if !outcomes.iter().any(of_it) {
                    let changed = judged_of_the_dead(core, started)?;
                    let travels = &core.kernel.organs().travels;
                    outcomes.push(interrupted(started.effect.clone(), &changed, travels));
                }
            }
            Entry::ModelCall(call) if !answered(&call.effect, call.attempt) => {
                let reply = ModelReply {
                    effect: call.effect.clone(),
                    attempt: call.attempt,
                    came: AttemptResult::CutOff,
                    charged: call.reserved,
                    estimated: true,
                    took_ms: 0,
                };
                outcomes.push(reply.into());
            }
            _ => {}
        }
    }
    for (effect, child) in OpenEnds::of(recorded).children {
        outcomes.push(abandoned(&core.kernel, effect.clone(), child).await?.into());
    }
    Ok(outcomes)
}

fn interrupted(effect: EffectId, changed: &JudgedChanges, travels: &FolderTravels) -> Entry {
    let text = match changed.withheld {
        None => "this call was interrupted; it may or may not have happened",
        Some(_) => {
            "this call was interrupted; it may or may not have happened. Its changes to files by \
             which other programs run things were taken back"
        }
    };
    Entry::from(ToolResulted {
        withheld: changed.withheld,
        to_undo: changed.to_undo,
        ..ToolResulted::not_done(
            effect,
            CallEnd::Interrupted,
            ActionVerdict::CannotTell,
            format!("{text}{}{}", travels.told(), changed.told()),
        )
    })
}
