//! Drives a run: cycle after cycle, until it ends or parks.

mod take_up;

use std::{path::Path, sync::Arc, time::Duration};

use gyrus_contract::{BlobId, EffectId, ExecutionResult, HookEvent, MemoryBuffer, RunId, Spent};
use gyrus_journal::{Recovery, Writer};
use gyrus_text::counted;
use gyrus_workspace::snapshot::{SnapshotError, SnapshotResult, Snapshots};
use serde_json::json;

use crate::{
    Controls, CycleEnded, Ending, Entry, ErasedLoop, Kernel, KernelError, Run, RunEnded, RunParked,
    RunStarted, Snapshot, Stop, WorkspaceRecorded,
    accounts::Account,
    contents::WorkspaceContents,
    core::{Core, CoreParts},
    effects::{ask, layers, program_connections},
    inbox, late_tools,
    log::RunLog,
    position::RunPosition,
    recorded::RecordedCycle,
    register,
    takeover::Takeovers,
};

pub(crate) use take_up::{RestoreError, hand_over_report, remember, restore};

/// Maximum number of times that hooks keep a run from ending.
const MAX_REFUSED_ENDS: u32 = 3;

/// The result of driving a run until it ended or parked.
#[derive(Debug, Clone, PartialEq)]
pub struct DriveResult {
    pub run: RunId,
    pub ending: Ending,
    /// The resources that the run used, earlier processes included.
    pub spent: Spent,
    /// The reason why the journal of the run, or of one below it, could not be sealed, if it is
    /// over. A lost end of such a journal goes unnoticed.
    pub unsealed: Option<String>,
    /// The answer including secrets that the run has found, such as a link or code that it was
    /// asked for; `None` if there are none. Only for the person's own terminal: no log, file or
    /// wire may contain it.
    pub for_terminal: Option<String>,
}

impl DriveResult {
    /// Returns the answer, if the goal was reached.
    pub fn answer(&self) -> Option<&str> {
        match &self.ending {
            Ending::Reached { claim, .. } => Some(&claim.answer),
            _ => None,
        }
    }
}

/// A run that is held by this process and can be driven.
pub struct DrivableRun {
    held: DriveParts,
    position: Box<RunPosition>,
    recovery: Option<Recovery>,
    /// Whether the recorded cycle was begun by other code than the present one.
    other_code: bool,
}

/// The parts with which a run is driven, wherever it is.
struct DriveParts {
    kernel: Kernel,
    writer: Writer,
    controls: Controls,
    parent: Option<Account>,
}

impl DrivableRun {
    pub(crate) fn new(
        kernel: Kernel,
        writer: Writer,
        position: RunPosition,
        recovery: Option<Recovery>,
        other_code: bool,
    ) -> Result<Self, KernelError> {
        inbox::tidy(&writer.inbox()?, &writer.reader()?)?;
        let held = DriveParts {
            kernel,
            writer,
            controls: Controls::default(),
            parent: None,
        };
        Ok(Self {
            held,
            position: Box::new(position),
            recovery,
            other_code,
        })
    }

    /// Makes the run charge its parent and obey the parent's controls.
    pub(crate) fn under(mut self, parent: Account, controls: Controls) -> Self {
        self.held.parent = Some(parent);
        self.held.controls = controls;
        self
    }

    pub fn id(&self) -> RunId {
        self.position.started.run
    }

    /// Returns the entry with which the run was started.
    pub fn started(&self) -> &RunStarted {
        &self.position.started
    }

    /// Returns the name of the model that the run asks in this process.
    pub fn model(&self) -> &str {
        self.held.kernel.organs().router.name()
    }

    /// Returns what a crash left behind, if the run was taken up again.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.recovery.as_ref()
    }

    /// Returns the resources used before this process.
    pub fn spent(&self) -> Spent {
        self.position.kernel_state().spent
    }

    /// Returns the controls that pause and stop the run while it is driven.
    pub fn controls(&self) -> Controls {
        self.held.controls.clone()
    }

    /// Returns the handle for takeovers of the run's screen by a person.
    pub fn takeovers(&self) -> Takeovers {
        Takeovers::new(
            self.held.kernel.clone(),
            self.held.writer.clone(),
            self.held.controls.clone(),
        )
    }

    /// Records the outcomes of calls that an earlier process left unfinished, once their changes were
    /// judged.
    pub(crate) async fn settle(self) -> Result<(), KernelError> {
        let mut driver = Driver::new(&self.held, &self.position, self.other_code)?;
        Ok(driver.settle(&self.position.recorded).await?)
    }

    /// Drives the run until it ends or parks.
    ///
    /// # Errors
    /// Returns an error when the journal fails or the loop is not deterministic. Everything that
    /// was acknowledged is on disk, and the run can be resumed.
    pub async fn drive(self) -> Result<DriveResult, KernelError> {
        let DrivableRun {
            held,
            mut position,
            mut other_code,
            ..
        } = self;
        let run = position.started.run;
        let workspace = position.started.workspace.clone();
        held.kernel.settle_folder(&workspace, run).await;
        let mut handed_over = None;
        loop {
            // Boxed, because a process may hold thousands of parked runs, each with such a future.
            let driver = Box::new(Driver::new(&held, &position, other_code)?);
            let core = driver.core.clone();
            let may_hand_over = other_code && !position.recorded.is_empty();
            match driver.drive(position, handed_over.take()).await {
                // The present code cannot continue what other code began: a fresh cycle takes over.
                Err(KernelError::Stop(Stop::Divergence(divergence))) if may_hand_over => {
                    other_code = false;
                    core.account.leave_to_next();
                    // Charges that the attempt settled before it diverged are part of the position.
                    held.writer.barrier().await?;
                    position = Box::new(RunPosition::read(run, &held.writer.reader()?)?);
                    handed_over = Some(divergence.to_string());
                }
                Err(error) => {
                    // On a full disk they would keep the room without which nothing goes on.
                    layers::drop_unfinished(&core);
                    return Err(error);
                }
                done => return done,
            }
        }
    }
}

/// Takes the snapshot of the workspace before the first cycle of a fork.
pub(crate) fn first_snapshot(
    kernel: &Kernel,
    log: &RunLog,
    workspace: &Path,
) -> Result<Snapshot, Stop> {
    let organs = kernel.organs();
    let mut contents = WorkspaceContents::new(&organs.redactor, &*organs.gate, log, workspace);
    let mut snapshots = Snapshots::new(workspace.to_owned(), None);
    snapshot_of(snapshots.take(&mut contents))
}

/// Records the workspace before the first cycle; returns its snapshot, if there is one. The folder is
/// read on a thread of its own, because it may be large.
async fn record_workspace(core: &Arc<Core>) -> Result<Option<BlobId>, Stop> {
    let reads = core.clone();
    let read = move || snapshot_of(reads.snapshots.lock().take(&mut reads.contents()));
    let taken = tokio::task::spawn_blocking(read).await;
    let taken = taken.map_err(|error| Stop::Failed(format!("the folder was not read: {error}")))?;
    let snapshot = taken?;
    let id = match &snapshot {
        Snapshot::Blob(id) => Some(*id),
        Snapshot::Missing(_) => None,
    };
    match &snapshot {
        Snapshot::Blob(id) => leave_out_as(&mut core.snapshots.lock(), id, &core.log),
        Snapshot::Missing(why) => core.shared().state.not_undoable = Some(why.clone()),
    }
    core.log.append(WorkspaceRecorded { snapshot })?;
    Ok(id)
}

/// Makes later snapshots leave out the same paths as the first one.
fn leave_out_as(snapshots: &mut Snapshots, first: &BlobId, log: &RunLog) {
    // If it cannot be read, nothing can be undone or forked from it anyhow.
    let _ = snapshots.since(first, |id| log.reader().blob(id));
}

/// Returns a snapshot in the form in which entries name it.
pub(crate) fn snapshot_of(
    taken: Result<SnapshotResult, SnapshotError<Stop>>,
) -> Result<Snapshot, Stop> {
    match taken {
        Ok(SnapshotResult::New(id) | SnapshotResult::Same(id)) => Ok(Snapshot::Blob(id)),
        Ok(SnapshotResult::TooLarge { files, bytes }) => Ok(Snapshot::Missing(format!(
            "the folder is too large ({}, {})",
            counted(files, "file"),
            counted(bytes, "byte")
        ))),
        Err(SnapshotError::Store(stop)) => Err(stop),
        // The run goes on: only a fork from here is impossible.
        Err(error) => Ok(Snapshot::Missing(error.to_string())),
    }
}

struct Driver {
    core: Arc<Core>,
    cognitive_loop: Box<dyn ErasedLoop>,
    cycle: u32,
    recorded: Option<RecordedCycle>,
    /// Whether other code recorded the entries since the last complete cycle.
    other_code: bool,
    /// The last snapshot of a cycle's end, or of the start.
    folder: Option<BlobId>,
}

impl Driver {
    fn new(
        held: &DriveParts,
        position: &RunPosition,
        other_code: bool,
    ) -> Result<Self, KernelError> {
        let log = RunLog::live(held.writer.clone())?;
        let state = position.kernel_state();
        let account = Account::open(
            held.parent.as_ref(),
            position.started.run,
            position.settings.limits,
            &state,
        );
        let last_snapshot = position
            .last
            .as_ref()
            .and_then(|cycle| cycle.snapshot.clone());
        let previous = match last_snapshot {
            Some(Snapshot::Blob(id)) => Some(id),
            Some(Snapshot::Missing(_)) | None => None,
        };
        let mut snapshots = Snapshots::new(position.started.workspace.clone(), previous);
        if let Some(Snapshot::Blob(first)) = &position.started.snapshot {
            leave_out_as(&mut snapshots, first, &log);
        }
        let started = position.started.clone();
        let last = position.last.as_ref();
        let next = last.map_or(started.memory_next(), |cycle| cycle.memory_next);
        let parts = CoreParts {
            kernel: held.kernel.clone(),
            goal: started.goal.load(&log)?,
            context: started.context_parts(log.reader())?,
            settings: position.settings.clone(),
            account,
            log,
            inbox: Some(held.writer.inbox()?),
            controls: held.controls.clone(),
            prompts_may_differ: other_code,
            started,
        };
        let core = Core::new(parts, (state, next), snapshots);
        let started = &position.started;
        Ok(Self {
            core: Arc::new(core),
            cognitive_loop: held
                .kernel
                .make_loop(&started.cognitive_loop, &started.loop_config)?,
            cycle: position.cycle,
            recorded: None,
            other_code,
            folder: previous,
        })
    }

    async fn drive(
        mut self: Box<Self>,
        position: Box<RunPosition>,
        hand_over: Option<String>,
    ) -> Result<DriveResult, KernelError> {
        if self.core.started.parent.is_none() {
            program_connections::hand_to_screen(&self.core);
        }
        let _ = self.core.this.set(Arc::downgrade(&self.core));
        let orders = watch_orders(self.core.clone());
        let ending = tokio::select! {
            ending = self.cycles(position, hand_over) => ending?,
            failed = orders => return Err(failed.into()),
        };
        layers::end_processes(&self.core).await;
        if self.core.started.parent.is_none() {
            // A person who has the screen gives it back before the run is over.
            self.core.controls.close().await;
        }
        let spent = self.core.account.spent();
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
        layers::remove_spent(&self.core);
        self.core.log.append(last)?;
        self.core.log.barrier().await?;
        let mut unsealed = self.core.shared().unsealed.clone();
        if ending.is_final() {
            // The run is over with its last entry: without a seal its journal only proves less.
            let sealed = self.core.log.seal().await;
            unsealed = sealed.err().map(|error| error.to_string()).or(unsealed);
            register::over(self.core.kernel.store(), self.core.started.run);
        }
        let redactor = &self.core.kernel.organs().redactor;
        Ok(DriveResult {
            run: self.core.started.run,
            for_terminal: match &ending {
                Ending::Reached { claim, .. } => redactor.show_found(&claim.answer),
                _ => None,
            },
            ending,
            spent,
            unsealed,
        })
    }

    async fn cycles(
        &mut self,
        position: Box<RunPosition>,
        hand_over: Option<String>,
    ) -> Result<Ending, KernelError> {
        let mut done = Box::pin(self.take_up(*position, hand_over)).await;
        loop {
            match done {
                Ok(None) => done = self.one_cycle().await,
                Ok(Some(ending)) => return Ok(ending),
                Err(Stop::Park(ending)) => return Ok(*ending),
                Err(Stop::Failed(reason)) => {
                    let denied = self.core.shared().state.denied.clone();
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

    /// Runs one cycle, up to its entry. Returns the ending if the run ends with this cycle.
    async fn one_cycle(&mut self) -> Result<Option<Ending>, Stop> {
        let core = self.core.clone();
        let recorded = self.recorded.take().unwrap_or_default();
        *core.recorded.lock() = recorded;
        let prefix = EffectId::cycle(self.cycle);
        begin_cycle(&core, &prefix).await?;
        core.account.check_cycle().map_err(Stop::from)?;
        core.account.count_cycle();
        let mut run = Run::new(core.clone(), prefix);
        let result = turn(&mut *self.cognitive_loop, &mut run).await?;
        run.check_ended()?;
        core.recorded.lock().is_used_up()?;
        let ended = self.ended(&result)?;
        let ending = ending_of(&ended);
        core.log.append(ended)?;
        layers::remove_spent(&core);
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
        let snapshot = if changed && !layers::keep_files(core) {
            // A call may have taken one before this: only the end of a cycle counts for undo.
            let taken = snapshot_of(core.snapshots.lock().take(&mut core.contents()))?;
            Some(taken).filter(|taken| match taken {
                Snapshot::Blob(id) => self.folder.replace(*id) != Some(*id),
                Snapshot::Missing(_) => true,
            })
        } else {
            None
        };
        match &snapshot {
            Some(Snapshot::Missing(why)) => core.shared().state.not_undoable = Some(why.clone()),
            Some(Snapshot::Blob(_)) => core.shared().state.not_undoable = None,
            None => {}
        }
        Ok(CycleEnded {
            cycle: self.cycle,
            state_version: self.cognitive_loop.version(),
            state: self.cognitive_loop.save()?,
            appended,
            memory_next: memory.next_number(),
            memory_first: memory.put_away_before(),
            kernel: core.kernel_state(),
            claim: result.claim.clone(),
            strength: result.strength,
            error: result.error.clone(),
            snapshot,
        })
    }
}

/// Performs effect 0 of a cycle: taking in the person's messages since the last one, and the tools
/// that arrived.
pub(crate) async fn begin_cycle(core: &Core, prefix: &EffectId) -> Result<(), Stop> {
    let start = prefix.then(0);
    let past = core.recorded.lock().take(&start);
    let began_before = !past.is_empty();
    let (mut steered, mut added) = (Vec::new(), Vec::new());
    for entry in past {
        match entry {
            Entry::Steered(past) => steered.push(past),
            Entry::ToolsAdded(past) => added.push(past),
            _ => {}
        }
    }
    let nothing_yet = !began_before && core.recorded.lock().is_used_up().is_ok();
    let is_live = nothing_yet && core.log.is_live();
    if is_live {
        if let Some(ending) = core.controls.pausing() {
            return Err(ending.into());
        }
        core.may_act()?;
        steered.extend(ask::take_steering(core, &start)?);
    }
    ask::amend(core, &steered);
    late_tools::join(core, &start, added, is_live).await
}

/// Runs one cycle of a loop, and lets the loop conclude if the run ends with this cycle.
pub(crate) async fn turn(
    cognitive_loop: &mut dyn ErasedLoop,
    run: &mut Run,
) -> Result<ExecutionResult, Stop> {
    // A sub-run is begun by its parent, whose hooks are asked about that.
    let is_root = run.core.started.parent.is_none();
    if run.has_hooks()
        && is_root
        && !run.core.shared().state.hooks.began
        && let Some(why) = begin_with_hooks(cognitive_loop, run).await?
    {
        return Ok(ExecutionResult {
            error: Some(why),
            ..ExecutionResult::default()
        });
    }
    let mut result = cognitive_loop.cycle(run).await?;
    if run.has_hooks() && result.claim.is_some() {
        end_with_hooks(cognitive_loop, run, &mut result).await?;
    }
    if result.error.is_some() || result.claim.is_some() {
        cognitive_loop.conclude(run, &result).await?;
    }
    Ok(result)
}

/// Asks the hooks about the start of a run and its goal. Returns the reason if one refuses.
async fn begin_with_hooks(
    cognitive_loop: &mut dyn ErasedLoop,
    run: &mut Run,
) -> Result<Option<String>, Stop> {
    let source = if run.memory_start() > 0 {
        "resume"
    } else {
        "startup"
    };
    let goal = run.goal();
    let goal = goal.first().map_or("", |goal| goal.text.as_str());
    let start = (HookEvent::SessionStart, source, json!({ "source": source }));
    let prompt = (HookEvent::UserPromptSubmit, "", json!({ "prompt": goal }));
    for (event, subject, more) in [start, prompt] {
        let answer = run.ask_hooks(event, subject, more).await?;
        let refuses = answer.refuses.or_else(|| answer.asks.into_iter().next());
        if refuses.is_some() {
            return Ok(refuses);
        }
        for context in answer.context {
            cognitive_loop.memory_mut().add_observation("hook", context);
        }
    }
    run.core.shared().state.hooks.began = true;
    Ok(None)
}

/// Asks the hooks about the end of the work: if one refuses, the work goes on, a few times.
async fn end_with_hooks(
    cognitive_loop: &mut dyn ErasedLoop,
    run: &mut Run,
    result: &mut ExecutionResult,
) -> Result<(), Stop> {
    let event = match run.core.started.parent {
        None => HookEvent::Stop,
        Some(_) => HookEvent::SubagentStop,
    };
    let before = run.core.shared().state.hooks.refused_ends;
    let answer = result.claim.as_ref().map(|claim| claim.answer.clone());
    let more = json!({ "stop_hook_active": before > 0, "last_assistant_message": answer });
    let answer = run.ask_hooks(event, "", more).await?;
    let Some(why) = answer.refuses.or_else(|| answer.asks.into_iter().next()) else {
        return Ok(());
    };
    result.claim = None;
    if before >= MAX_REFUSED_ENDS {
        result.error = Some(format!("the work was sent back {before} times, but {why}"));
    } else {
        run.core.shared().state.hooks.refused_ends = before + 1;
        cognitive_loop.sent_back(&why);
    }
    Ok(())
}

/// Returns the ending of the run, if it ends with this cycle.
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
        Ending::Reached {
            claim,
            strength: ended.strength,
        }
    } else {
        Ending::Failed {
            reason: claim.answer,
            denied: denied(),
        }
    })
}

/// Obeys requests from the inbox, whatever effect is in progress. Returns only on an error.
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
    let failed: Result<std::convert::Infallible, Stop> = tokio::select! {
        failed = watched => failed,
        stopped = obey_latch(&core) => match stopped {},
        ended = obey_time_limit(&core) => match ended {},
    };
    match failed {
        Err(stop) => stop,
    }
}

/// Interrupts the effect in progress when all runs are stopped.
async fn obey_latch(core: &Core) -> std::convert::Infallible {
    if let Some(latch) = &core.kernel.organs().latch {
        core.controls.end_now(latch.tripped().await.into());
    }
    std::future::pending().await
}

/// Interrupts the effect in progress when the run's time is up.
async fn obey_time_limit(core: &Core) -> std::convert::Infallible {
    while let Some(left) = core.account.time_left() {
        if let Err(ending) = core.account.check_time() {
            core.controls.end_now(ending);
            break;
        }
        tokio::time::sleep(left.max(Duration::from_millis(1))).await;
    }
    std::future::pending().await
}
