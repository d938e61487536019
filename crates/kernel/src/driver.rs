//! Drives a run: cycle after cycle, until it ends or parks.

use std::{path::Path, sync::Arc};

use gyrus_contract::{
    ActionVerdict, EffectId, ExecutionResult, MemoryBuffer, Observation, Origin, RunId, Spent, Text,
};
use gyrus_journal::{Inbox, Recovery, Writer};

use crate::{
    Controls, CycleDropped, CycleEnded, Ending, Entry, ErasedLoop, HandOver, Kernel, KernelError,
    Run, RunEnded, RunHandedOver, RunParked, RunStarted, Settled, Snapshot, Stop, Unfinished,
    budget::Ledger,
    core::{Core, CoreParts},
    effects::ask,
    log::Log,
    position::{Position, memory_at},
    recorded::Recorded,
    snapshot::{SnapshotError, Snapshots, Taken},
};

/// How a stretch of a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The run.
    pub run: RunId,
    /// How.
    pub ending: Ending,
    /// What the run used, earlier stretches included.
    pub spent: Spent,
}

/// A run that is held by this process and can be driven.
pub struct Ready {
    kernel: Kernel,
    writer: Writer,
    position: Position,
    recovery: Option<Recovery>,
    /// The recorded cycle was begun by other code than today's.
    other_code: bool,
    controls: Controls,
    parent: Option<Arc<Ledger>>,
}

impl Ready {
    pub(crate) fn new(
        kernel: Kernel,
        writer: Writer,
        position: Position,
        recovery: Option<Recovery>,
        other_code: bool,
    ) -> Result<Self, KernelError> {
        let inbox = writer.inbox()?;
        for message in position.consumed() {
            inbox.remove(&message)?;
        }
        // An order to stop that came before the person resumed is done with.
        clear_orders(&inbox)?;
        let controls = Controls::default();
        Ok(Self {
            kernel,
            writer,
            position,
            recovery,
            other_code,
            controls,
            parent: None,
        })
    }

    /// Spends from a parent's ledger and obeys its controls.
    pub(crate) fn under(mut self, parent: Arc<Ledger>, controls: Controls) -> Self {
        self.parent = Some(parent);
        self.controls = controls;
        self
    }

    /// The run.
    pub fn id(&self) -> RunId {
        self.position.started.run
    }

    /// What the run was started with.
    pub fn started(&self) -> &RunStarted {
        &self.position.started
    }

    /// What a crash left behind, when the run was taken up again.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// What was used before this process.
    pub fn spent(&self) -> Spent {
        self.position.kernel_state().spent
    }

    /// Pauses and stops the run while it is driven.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Drives the run until it ends or parks.
    ///
    /// # Errors
    /// When the journal fails or the loop is not deterministic. Everything that was acknowledged
    /// is on disk, and the run can be resumed.
    pub async fn drive(mut self) -> Result<Finished, KernelError> {
        let mut handed_over = None;
        loop {
            let driver = Driver::new(&self, handed_over.take())?;
            match driver.drive().await {
                // Today's code cannot continue what other code began: a fresh cycle takes over.
                Err(KernelError::Stop(Stop::Divergence(divergence))) if self.other_code => {
                    self.other_code = false;
                    self.position = Position::read(self.id(), &self.writer.reader()?)?;
                    handed_over = Some(divergence.to_string());
                }
                done => return done,
            }
        }
    }
}

fn clear_orders(inbox: &Inbox) -> Result<(), KernelError> {
    use gyrus_contract::{MessageBody, SurfaceMessage};
    for (id, body) in inbox.messages()? {
        let message: Option<SurfaceMessage> = serde_json::from_str(&body).ok();
        if matches!(
            message.map(|m| m.body),
            Some(MessageBody::Pause | MessageBody::Stop)
        ) {
            inbox.remove(&id)?;
        }
    }
    Ok(())
}

/// The workspace before the first cycle.
pub(crate) fn first_snapshot(log: &Log, workspace: &Path) -> Result<Snapshot, Stop> {
    let taken = take_snapshot(log, &mut Snapshots::new(workspace.to_owned(), None))?;
    Ok(taken.unwrap_or_else(|| Snapshot::Missing("the folder did not change".to_owned())))
}

/// `None`: the workspace is as it was at the last snapshot.
fn take_snapshot(log: &Log, snapshots: &mut Snapshots) -> Result<Option<Snapshot>, Stop> {
    match snapshots.take(|bytes| log.put_blob(bytes)) {
        Ok(Taken::New(id)) => Ok(Some(Snapshot::Blob(id))),
        Ok(Taken::Same(_)) => Ok(None),
        Ok(Taken::TooLarge { files, bytes }) => Ok(Some(Snapshot::Missing(format!(
            "the folder is too large ({files} files, {bytes} bytes)"
        )))),
        Err(SnapshotError::Store(stop)) => Err(stop),
        // The run goes on: it is the fork that is impossible then.
        Err(error) => Ok(Some(Snapshot::Missing(error.to_string()))),
    }
}

struct Driver {
    core: Arc<Core>,
    cognitive_loop: Box<dyn ErasedLoop>,
    snapshots: Snapshots,
    cycle: u32,
    recorded: Option<Recorded>,
}

impl Driver {
    fn new(ready: &Ready, handed_over: Option<String>) -> Result<Self, KernelError> {
        let position = ready.position.clone();
        let log = Log::live(ready.writer.clone())?;
        let state = position.kernel_state();
        let ledger = Ledger::new(position.settings.limits, state.spent, ready.parent.clone());
        let last_snapshot = position
            .last
            .as_ref()
            .and_then(|cycle| cycle.snapshot.clone());
        let previous = match last_snapshot {
            Some(Snapshot::Blob(id)) => Some(id),
            Some(Snapshot::Missing(_)) | None => None,
        };
        let started = position.started.clone();
        let core = Core::new(CoreParts {
            kernel: ready.kernel.clone(),
            goal: started.goal.load(&log)?,
            settings: position.settings.clone(),
            ledger: Arc::new(ledger),
            log,
            inbox: Some(ready.writer.inbox()?),
            controls: ready.controls.clone(),
            prompts_may_differ: ready.other_code,
            state,
            journaled_items: position.last.as_ref().map_or(0, |cycle| cycle.memory_next),
            started,
        });
        let started = &position.started;
        let mut driver = Self {
            core: Arc::new(core),
            cognitive_loop: ready
                .kernel
                .make_loop(&started.cognitive_loop, &started.loop_config)?,
            snapshots: Snapshots::new(started.workspace.clone(), previous),
            cycle: position.cycle,
            recorded: None,
        };
        driver.take_up(position, handed_over)?;
        Ok(driver)
    }

    /// Brings the loop to where the journal is.
    fn take_up(
        &mut self,
        position: Position,
        handed_over: Option<String>,
    ) -> Result<(), KernelError> {
        let mut hand_over = handed_over;
        if let Some(last) = &position.last {
            match restore(&mut *self.cognitive_loop, self.core.log.reader(), last) {
                Ok(()) => {}
                Err(Unrestored::Stop(stop)) => return Err(stop.into()),
                Err(Unrestored::Loop(reason)) => hand_over = Some(reason),
            }
        }
        for (handed, done) in &position.dropped {
            let done = observations(&self.core, done)?;
            let reason = handed.reason.clone();
            self.cognitive_loop.hand_over(&HandOver { reason, done });
        }
        let unfinished = !position.recorded.is_empty();
        if unfinished && self.cognitive_loop.unfinished() == Unfinished::Abandon {
            let reason = "the process ended in the middle of a step";
            hand_over.get_or_insert_with(|| reason.to_owned());
        }
        match hand_over {
            Some(reason) => self.hand_over(reason, position.recorded)?,
            None => self.recorded = Some(Recorded::new(position.recorded, false)),
        }
        Ok(())
    }

    /// Gives the unfinished cycle up and tells a fresh one what it did.
    fn hand_over(&mut self, reason: String, recorded: Vec<Entry>) -> Result<(), KernelError> {
        let cut_off = unsettled(&recorded);
        let mut entries: Vec<Entry> = cut_off.into_iter().map(Entry::from).collect();
        let mut all = recorded;
        all.extend(entries.iter().cloned());
        let done = observations(&self.core, &all)?;
        entries.push(
            CycleDropped {
                cycle: self.cycle,
                why: reason.clone(),
            }
            .into(),
        );
        let handed = RunHandedOver {
            reason: reason.clone(),
            done: done.iter().map(|seen| seen.effect.clone()).collect(),
        };
        entries.push(handed.into());
        self.core.log.append_all(&entries)?;
        for entry in &all {
            if let Entry::ModelReply(reply) = entry {
                self.core.ledger.charge_own(reply.charged, reply.estimated);
            }
        }
        self.cognitive_loop.hand_over(&HandOver { reason, done });
        self.cycle += 1;
        self.recorded = None;
        Ok(())
    }

    async fn drive(mut self) -> Result<Finished, KernelError> {
        let orders = watch_orders(self.core.clone());
        let ending = tokio::select! {
            ending = self.cycles() => ending?,
            failed = orders => return Err(failed.into()),
        };
        let spent = self.core.ledger.spent();
        let last: Entry = if ending.is_final() {
            RunEnded {
                ending: ending.clone(),
                spent,
            }
            .into()
        } else {
            RunParked {
                ending: ending.clone(),
                spent,
            }
            .into()
        };
        self.core.log.append(last)?;
        self.core.log.barrier().await?;
        Ok(Finished {
            run: self.core.started.run,
            ending,
            spent,
        })
    }

    async fn cycles(&mut self) -> Result<Ending, KernelError> {
        loop {
            match self.one_cycle().await {
                Ok(None) => {}
                Ok(Some(ending)) => return Ok(ending),
                Err(Stop::Park(ending)) => return Ok(*ending),
                Err(Stop::Failed(reason)) => {
                    let denied = self.core.shared().denied.clone();
                    return Ok(Ending::Failed { reason, denied });
                }
                Err(
                    stop @ (Stop::Divergence(_)
                    | Stop::EndOfRecord
                    | Stop::Journal(_)
                    | Stop::Unreadable(_)
                    | Stop::BadBlob(_)),
                ) => return Err(stop.into()),
            }
        }
    }

    /// One cycle, to its entry. `Some` is how the run ends.
    async fn one_cycle(&mut self) -> Result<Option<Ending>, Stop> {
        let core = self.core.clone();
        let recorded = self.recorded.take().unwrap_or_default();
        *core.recorded() = recorded;
        let prefix = EffectId::cycle(self.cycle);
        begin_cycle(&core, &prefix)?;
        core.ledger.check_cycle().map_err(Stop::from)?;
        core.ledger.count_cycle();
        let mut run = Run::new(core.clone(), prefix);
        let result = self.cognitive_loop.cycle(&mut run).await?;
        run.check_dropped()?;
        core.recorded().is_used_up()?;
        let ended = self.ended(&result)?;
        let ending = ending_of(&ended);
        core.log.append(ended)?;
        core.warn_of_limits()?;
        if !core.shared().consumed.is_empty() {
            core.log.barrier().await?;
            let consumed = std::mem::take(&mut core.shared().consumed);
            for id in &consumed {
                if let Some(inbox) = &core.inbox {
                    inbox.remove(id)?;
                }
            }
        }
        self.cycle += 1;
        Ok(ending)
    }

    fn ended(&mut self, result: &ExecutionResult) -> Result<CycleEnded, Stop> {
        let core = &self.core;
        let memory: &MemoryBuffer = self.cognitive_loop.memory();
        let first = core.shared().journaled_items;
        let appended = ask::append_items(core, memory, first)?;
        let changed = std::mem::take(&mut core.shared().world_changed);
        let snapshot = if changed {
            take_snapshot(&core.log, &mut self.snapshots)?
        } else {
            None
        };
        Ok(CycleEnded {
            cycle: self.cycle,
            state_version: self.cognitive_loop.version(),
            state: self.cognitive_loop.save()?,
            appended,
            memory_next: memory.next_number(),
            kernel: core.kernel_state(),
            claim: result.claim.clone(),
            error: result.error.clone(),
            snapshot,
        })
    }
}

/// What recorded calls came to.
pub(crate) fn observations(core: &Core, entries: &[Entry]) -> Result<Vec<Observation>, Stop> {
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
            tool,
            is_error: result.is_error,
            verdict: result.verdict,
            claim: result.claim.clone(),
        });
    }
    Ok(seen)
}

/// Effect 0 of a cycle: what a person said since the last one.
pub(crate) fn begin_cycle(core: &Core, prefix: &EffectId) -> Result<(), Stop> {
    let start = prefix.then(0);
    let past = core.recorded().take(&start);
    let began_before = !past.is_empty();
    let mut steered: Vec<_> = past
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Steered(steered) => Some(steered),
            _ => None,
        })
        .collect();
    let nothing_yet = !began_before && core.recorded().is_used_up().is_ok();
    if nothing_yet && core.log.is_live() {
        if let Some(ending) = core.controls.pausing() {
            return Err(ending.into());
        }
        steered.extend(ask::take_steering(core, &start)?);
    }
    ask::amend(core, &steered);
    Ok(())
}

/// How the run ends with this cycle, if it does.
pub(crate) fn ending_of(ended: &CycleEnded) -> Option<Ending> {
    let denied = || ended.kernel.denied.clone();
    if let Some(error) = &ended.error {
        return Some(Ending::Failed {
            reason: error.clone(),
            denied: denied(),
        });
    }
    let claim = ended.claim.clone()?;
    Some(if claim.reached {
        Ending::Reached { claim }
    } else {
        Ending::Failed {
            reason: claim.answer,
            denied: denied(),
        }
    })
}

pub(crate) enum Unrestored {
    Stop(Stop),
    Loop(String),
}

/// Brings a loop to the end of a cycle.
pub(crate) fn restore(
    cognitive_loop: &mut dyn ErasedLoop,
    reader: &gyrus_journal::Reader,
    last: &CycleEnded,
) -> Result<(), Unrestored> {
    let capacity = cognitive_loop.memory().capacity();
    let (first, items) = memory_at(reader, last, capacity).map_err(Unrestored::Stop)?;
    *cognitive_loop.memory_mut() = MemoryBuffer::restore(capacity, first, items);
    cognitive_loop
        .load(last.state_version, last.state.clone())
        .map_err(Unrestored::Loop)
}

/// Calls that began and have no outcome: a fresh cycle is told that nobody knows.
fn unsettled(recorded: &[Entry]) -> Vec<crate::ToolResulted> {
    let settled = |effect: &EffectId| {
        recorded
            .iter()
            .any(|entry| matches!(entry, Entry::ToolResulted(result) if result.effect == *effect))
    };
    recorded
        .iter()
        .filter_map(|entry| match entry {
            Entry::ToolStarted(started) if !settled(&started.effect) => Some(crate::ToolResulted {
                effect: started.effect.clone(),
                settled: Settled::Interrupted,
                text: crate::Inline::Is(
                    "this call was interrupted; it may or may not have happened".to_owned(),
                ),
                is_error: true,
                verdict: ActionVerdict::CannotTell,
                artifacts: Vec::new(),
                claim: None,
                took_ms: 0,
            }),
            _ => None,
        })
        .collect()
}

/// Obeys orders from the inbox whatever effect is in hand. Returns only when that fails.
async fn watch_orders(core: Arc<Core>) -> Stop {
    let watched = async {
        let Some(inbox) = &core.inbox else {
            return std::future::pending().await;
        };
        let mut watch = inbox.watch()?;
        loop {
            core.obey_messages()?;
            watch.changed().await;
        }
    };
    let failed: Result<std::convert::Infallible, Stop> = watched.await;
    match failed {
        Err(stop) => stop,
    }
}
