//! The run as a loop sees it: the only thing through which it touches the world. Its effects are in
//! `effects`; here each gets its number.

use std::sync::Arc;

use gyrus_contract::{Arguments, EffectId, FindToolsCall, Mode, Perception, RunId, Text, ToolSpec};

use crate::{Divergence, EffectError, Entry, Stop, core::Core};

/// A run, or a branch of it. Every effect takes `&mut self`, so two concurrent ones do not compile
/// outside the concurrent forms, and an effect's number follows from the order of the program.
pub struct Run {
    pub(crate) core: Arc<Core>,
    pub(crate) prefix: EffectId,
    next: u32,
    /// An effect in progress. If it is still set when the next one begins, its future was dropped.
    in_progress: Option<EffectId>,
    stopped: Option<Stop>,
    /// The tools as of the cycle's start.
    tools: Arc<Vec<Arc<ToolSpec>>>,
}

pub(crate) struct NumberedEffect {
    pub(crate) effect: EffectId,
    /// The branch that the effect belongs to.
    pub(crate) prefix: EffectId,
    /// The effect's recorded entries; without any, the effect goes live.
    pub(crate) past: Vec<Entry>,
}

impl Run {
    pub(crate) fn new(core: Arc<Core>, prefix: EffectId) -> Self {
        Self {
            tools: core.tools.specs(),
            core,
            prefix,
            next: 1,
            in_progress: None,
            stopped: None,
        }
    }

    pub fn id(&self) -> RunId {
        self.core.started.run
    }

    /// Returns the original goal and its amendments, oldest first.
    pub fn goal(&self) -> Vec<Text> {
        let mut goal = vec![self.core.goal.clone()];
        goal.extend(self.core.shared().state.amendments.iter().cloned());
        goal
    }

    /// Returns the number of the memory's first item that belongs to the run itself: those before
    /// it come from the run that it continues.
    pub fn memory_start(&self) -> u64 {
        self.core.started.memory_next()
    }

    /// Returns descriptions of the calls that were denied because nobody could be asked.
    pub fn denied(&self) -> Vec<String> {
        self.core.shared().state.denied.clone()
    }

    /// Returns the tools of this run, by name.
    pub fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.tools
    }

    /// Returns the tools that a model is offered now, by name. Those of servers are left out until
    /// they are found or called, where the run has a tool to find them.
    pub fn offered_tools(&self) -> Vec<Arc<ToolSpec>> {
        let tools = self.tools();
        if !tools.iter().any(|spec| spec.name == FindToolsCall::TOOL) {
            return tools.to_vec();
        }
        let found = &self.core.shared().state.found_tools;
        let offered = |spec: &&Arc<ToolSpec>| !spec.is_served() || found.contains(&spec.name);
        tools.iter().filter(offered).cloned().collect()
    }

    /// Returns the approval mode with which the run was started. The gate knows the present one.
    pub fn mode_at_start(&self) -> Mode {
        self.core.started.settings.mode
    }

    /// Returns the context window of the last model in tokens, if known.
    pub fn window(&self) -> Option<u64> {
        self.core.shared().state.window
    }

    /// Returns the input with which every loop starts: the goal with its material, and the tools.
    pub fn perception(&self) -> Perception {
        Perception {
            goal: self.goal(),
            context: self.core.context.clone(),
            available_tools: self.tools().iter().map(|spec| spec.name.clone()).collect(),
            priority: self.core.started.priority,
        }
    }

    /// Returns the number of the cycle in progress, counted from 1.
    pub fn cycle(&self) -> u32 {
        self.prefix.cycle_number()
    }

    /// Assigns a number to an effect that begins.
    pub(crate) fn begin(&mut self, now: impl Fn() -> String) -> Result<NumberedEffect, Stop> {
        if let Some(stop) = &self.stopped {
            return Err(stop.clone());
        }
        self.check_dropped()?;
        let effect = self.prefix.then(self.next);
        self.next += 1;
        let past = self.core.recorded.lock().take(&effect);
        if past.is_empty() {
            let allowed = self
                .core
                .recorded
                .lock()
                .may_go_live(&self.prefix, &effect, now);
            self.keep(allowed.map_err(Stop::from))?;
            let live = self.core.log.is_live();
            self.keep(if live { Ok(()) } else { Err(Stop::EndOfRecord) })?;
            if let Some(ending) = self.core.controls.pausing() {
                self.keep(Err(ending.into()))?;
            }
        }
        self.in_progress = Some(effect.clone());
        Ok(NumberedEffect {
            effect,
            prefix: self.prefix.clone(),
            past,
        })
    }

    pub(crate) fn end<T>(&mut self, done: Result<T, Stop>) -> Result<T, Stop> {
        self.in_progress = None;
        self.keep(done)
    }

    /// Does the same as [`end`](Self::end), for an effect whose failure the loop handles.
    pub(crate) fn end_or_fail<T, E>(
        &mut self,
        done: Result<T, EffectError<E>>,
    ) -> Result<T, EffectError<E>> {
        self.in_progress = None;
        if let Err(EffectError::Stop(stop)) = &done {
            self.stopped = Some(stop.clone());
        }
        done
    }

    fn keep<T>(&mut self, done: Result<T, Stop>) -> Result<T, Stop> {
        if let Err(stop) = &done {
            self.stopped = Some(stop.clone());
        }
        done
    }

    /// Checks that the loop ended properly. A loop that ignored a stop has a result that no other
    /// process would reach.
    pub(crate) fn check_ended(&mut self) -> Result<(), Stop> {
        match &self.stopped {
            Some(stop) => Err(stop.clone()),
            None => self.check_dropped(),
        }
    }

    /// Checks that no effect's future was dropped: its outcome could not be replayed.
    fn check_dropped(&mut self) -> Result<(), Stop> {
        let Some(effect) = self.in_progress.take() else {
            return Ok(());
        };
        let divergence = Divergence {
            effect,
            recorded: "an effect that began".to_owned(),
            now: "its future was dropped before it ended; use `race` or `timeout`".to_owned(),
        };
        self.keep(Err(divergence.into()))
    }
}
