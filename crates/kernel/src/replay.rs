//! Replaying a run without any live effect: a proof that the journal explains the run.

use std::sync::Arc;

use gyrus_contract::{Digest, EffectId, RunId};
use gyrus_workspace::snapshot::Snapshots;

use crate::{
    Controls, CycleDropped, CycleEnded, Divergence, Entry, ErasedLoop, Kernel, KernelError,
    KernelState, Run, RunSettings, RunStarted, Stop,
    abandoned::count_abandoned,
    accounts::Account,
    core::{Core, CoreParts},
    driver::{RestoreError, begin_cycle, hand_over_report, remember, restore, turn},
    log::{RunLog, parse},
    recorded::RecordedCycle,
    runs::{entries, log_name},
};

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayResult {
    pub run: RunId,
    /// Number of entries read.
    pub entries: u64,
    /// Number of cycles that were run again and ended as recorded.
    pub cycles: u32,
    /// Number of cycles that were abandoned in the recorded run and have no end to compare with.
    pub abandoned: u32,
    /// Whether the record ends in the middle of a cycle.
    pub unfinished: bool,
    /// The differences under the present code. Empty under the code that made the record.
    pub differences: Vec<String>,
}

impl Kernel {
    /// Replays a run. Under the code that made the record any difference is an error; under other
    /// code it is reported.
    ///
    /// # Errors
    /// Returns an error when the journal cannot be read, or the loop is not deterministic.
    pub async fn replay(&self, run: RunId) -> Result<ReplayResult, KernelError> {
        let reader = self.store().reader(&log_name(run))?;
        let mut tape = entries(&reader, 1)?;
        let Some(Ok((_, Entry::RunStarted(started)))) = tape.next() else {
            let reason = "its journal does not begin with a start".to_owned();
            return Err(KernelError::NotARun { run, reason });
        };
        let mut replay = JournalReplay::new(self, started, RunLog::recorded(reader.clone()))?;
        let mut recorded = Vec::new();
        for entry in tape {
            let (_, entry) = entry?;
            replay.found.entries += 1;
            match entry {
                Entry::CycleEnded(ended) if replay.is_inherited(&ended) => {
                    replay.inherit(&ended)?
                }
                Entry::CycleEnded(ended) => {
                    replay
                        .cycle(std::mem::take(&mut recorded), Some(ended))
                        .await?;
                }
                Entry::CycleDropped(dropped) => {
                    replay.abandon_cycle(dropped, std::mem::take(&mut recorded))?;
                }
                other if other.effect().is_some() => recorded.push(other),
                _ => {}
            }
        }
        if !recorded.is_empty() {
            replay.cycle(recorded, None).await?;
        }
        Ok(replay.found)
    }
}

struct JournalReplay {
    core: Arc<Core>,
    cognitive_loop: Box<dyn ErasedLoop>,
    number: u32,
    other_code: bool,
    found: ReplayResult,
}

impl JournalReplay {
    fn new(kernel: &Kernel, started: RunStarted, log: RunLog) -> Result<Self, KernelError> {
        let mut cognitive_loop = kernel.make_loop(&started.cognitive_loop, &started.loop_config)?;
        remember(&mut *cognitive_loop, log.reader(), &started)?;
        let mut other_code = false;
        for settings in settings(&log, &started)? {
            other_code |= kernel.pins(&*cognitive_loop, &settings.pins) != settings.pins;
        }
        let run = started.run;
        let state = KernelState {
            exposed: started.exposed,
            ..KernelState::default()
        };
        let next = started.memory_next();
        // Nothing is live, so no snapshots are taken.
        let snapshots = Snapshots::new(started.workspace.clone(), None);
        let parts = CoreParts {
            kernel: kernel.clone(),
            goal: started.goal.load(&log)?,
            context: started.context_parts(log.reader())?,
            settings: started.settings.clone(),
            account: Account::open(None, run, started.settings.limits, &state),
            log,
            inbox: None,
            controls: Controls::default(),
            prompts_may_differ: other_code,
            started: Arc::new(started),
        };
        let core = Core::new(parts, (state, next), snapshots);
        let found = ReplayResult {
            run,
            entries: 1,
            cycles: 0,
            abandoned: 0,
            unfinished: false,
            differences: Vec::new(),
        };
        Ok(Self {
            core: Arc::new(core),
            cognitive_loop,
            number: 1,
            other_code,
            found,
        })
    }

    /// Whether the cycle belongs to the run from which this one was forked.
    fn is_inherited(&self, ended: &CycleEnded) -> bool {
        let forked = self.core.started.forked_from.as_ref();
        forked.is_some_and(|from| from.cycle == ended.cycle)
    }

    fn inherit(&mut self, ended: &CycleEnded) -> Result<(), KernelError> {
        {
            let mut shared = self.core.shared();
            shared.state.exposed = ended.kernel.exposed;
            shared.state.questions = ended.kernel.questions.clone();
            shared.state.amendments = ended.kernel.amendments.clone();
            shared.state.window = ended.kernel.window;
            shared.state.found_tools = ended.kernel.found_tools.clone();
            shared.state.added_tools = ended.kernel.added_tools.clone();
            shared.state.hooks = ended.kernel.hooks.clone();
        }
        self.core.restore_tools()?;
        self.number = ended.cycle + 1;
        self.go_on_from(ended)
    }

    /// Runs one cycle again and compares its end.
    async fn cycle(
        &mut self,
        recorded: Vec<Entry>,
        ended: Option<CycleEnded>,
    ) -> Result<(), KernelError> {
        let core = self.core.clone();
        *core.recorded.lock() = RecordedCycle::new(recorded, ended.is_some());
        let prefix = EffectId::cycle(self.number);
        self.number += 1;
        begin_cycle(&core, &prefix).await?;
        let mut run = Run::new(core.clone(), prefix.clone());
        let done = async {
            let result = turn(&mut *self.cognitive_loop, &mut run).await?;
            run.check_ended()?;
            core.recorded.lock().is_used_up()?;
            Ok(result)
        };
        match (done.await, ended) {
            (Ok(result), Some(ended)) => {
                self.found.cycles += 1;
                let state = self.cognitive_loop.save()?;
                let same_end = result.claim == ended.claim && result.error == ended.error;
                if !same_end || (state != ended.state && !self.other_code) {
                    let now = format!("state {} and result {result:?}", Digest::of_json(&state));
                    let recorded = format!("state {}", Digest::of_json(&ended.state));
                    self.differs(Divergence {
                        effect: prefix,
                        recorded,
                        now,
                    })?;
                }
                self.compare_memory(&ended)?;
            }
            (Err(Stop::EndOfRecord), None) | (Ok(_), None) => self.found.unfinished = true,
            (Err(Stop::Divergence(divergence)), Some(ended)) => {
                self.differs(*divergence)?;
                self.go_on_from(&ended)?;
            }
            (Err(Stop::Divergence(divergence)), None) => self.differs(*divergence)?,
            (Err(stop), _) => return Err(stop.into()),
        }
        core.shared().consumed.clear();
        Ok(())
    }

    fn differs(&mut self, divergence: Divergence) -> Result<(), KernelError> {
        if !self.other_code {
            return Err(Stop::from(divergence).into());
        }
        self.found.differences.push(divergence.to_string());
        Ok(())
    }

    /// Compares the cycle's additions to memory with those in its entries.
    fn compare_memory(&mut self, ended: &CycleEnded) -> Result<(), KernelError> {
        let memory = self.cognitive_loop.memory();
        let mut same = memory.next_number() == ended.memory_next;
        for (number, item) in (ended.appended.first..).zip(&ended.appended.items) {
            let recorded = item.load(&self.core.log)?;
            let now = memory.since(number).next();
            same &= number < memory.first_number()
                || now.is_some_and(|now| now.message == recorded.message);
        }
        if same {
            return Ok(());
        }
        self.differs(Divergence {
            effect: EffectId::cycle(ended.cycle),
            recorded: format!("{} messages in memory", ended.memory_next),
            now: format!("other messages ({})", memory.next_number()),
        })
    }

    /// Continues after a difference: the next cycle begins from the recorded state.
    fn go_on_from(&mut self, ended: &CycleEnded) -> Result<(), KernelError> {
        match restore(&mut *self.cognitive_loop, self.core.log.reader(), ended) {
            Ok(()) => Ok(()),
            Err(RestoreError::Stop(stop)) => Err(stop.into()),
            Err(RestoreError::Loop(reason)) => {
                self.found.differences.push(reason);
                Ok(())
            }
        }
    }

    /// Replays that a cycle was abandoned and the next one was informed of its work.
    fn abandon_cycle(
        &mut self,
        dropped: CycleDropped,
        recorded: Vec<Entry>,
    ) -> Result<(), KernelError> {
        self.found.abandoned += 1;
        self.number = dropped.cycle + 1;
        count_abandoned(&self.core, &recorded)?;
        let handed = hand_over_report(&self.core, &recorded, dropped.why)?;
        self.cognitive_loop.hand_over(&handed);
        Ok(())
    }
}

/// Returns all settings that the run ever had.
fn settings(log: &RunLog, started: &RunStarted) -> Result<Vec<RunSettings>, Stop> {
    let mut all = vec![started.settings.clone()];
    for entry in log.reader().entries(1)? {
        let entry = entry?;
        if entry.kind == "run.resumed"
            && let Entry::RunResumed(resumed) = parse(&entry)?
        {
            all.push(resumed.settings);
        }
    }
    Ok(all)
}
