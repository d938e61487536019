//! The interface of a cognitive loop: perceive, think, act, reflect, over a [`Run`].

use std::{future::Future, sync::Arc};

use gyrus_contract::{
    BoxedFuture, ExecutionResult, MemoryBuffer, Observation, Perception, Plan, Text, View,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Run, Stop};

/// The handling of a cycle that a crash or a pause interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptedCycle {
    /// The cycle is run again, with its finished effects answered from the journal.
    Continue,
    /// The cycle is abandoned; its effects become observations of a fresh cycle. For loops whose
    /// next step depends on a screen that has changed since.
    Abandon,
}

/// The report to a fresh cycle that takes over from an unfinished one.
#[derive(Debug, Clone)]
pub struct HandOverReport {
    pub reason: String,
    /// The observations since the last complete cycle, in order.
    pub done: Vec<Observation>,
    /// The last view of the screen since the last complete cycle.
    pub viewed: Option<Box<View>>,
}

impl HandOverReport {
    /// Describes the interruption for a loop's model.
    pub fn in_words(&self) -> String {
        let mut lines = vec![format!("The work was interrupted: {}.", self.reason)];
        if self.done.is_empty() {
            lines.push("Nothing had been done since your last step.".to_owned());
        } else {
            lines.push("Done since your last step (do not do it again):".to_owned());
        }
        for seen in &self.done {
            let Text { text, .. } = &seen.text;
            lines.push(format!("- {}: {text}", seen.tool));
        }
        lines.join("\n")
    }
}

/// A cognitive loop. It is plain `async` code that touches the world only through its [`Run`], and
/// is therefore deterministic given its journal: no clock, no randomness, no environment, no file,
/// no network, no task of its own, no order of a hash map.
///
/// One call of [`run_cycle`](Self::run_cycle) is one perceive–think–act turn. The state that
/// [`state`](Self::state) returns when it ends, and the memory, are all that a later process
/// has; everything else in `self` must follow from configuration.
///
/// ```
/// use gyrus_contract::{Claim, ExecutionResult, MemoryBuffer, Perception, Plan};
/// use gyrus_kernel::{CognitiveLoop, Run, Stop};
///
/// struct Greeter {
///     memory: MemoryBuffer,
/// }
///
/// impl CognitiveLoop for Greeter {
///     type State = ();
///     fn name(&self) -> &'static str { "greeter" }
///     fn version(&self) -> u32 { 1 }
///     fn state(&self) -> &() { &() }
///     fn restore(&mut self, (): ()) {}
///     fn memory_buffer(&self) -> &MemoryBuffer { &self.memory }
///     fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer { &mut self.memory }
///
///     async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
///         Ok(run.perception())
///     }
///     async fn think(&mut self, _: &mut Run, _: &Perception) -> Result<Plan, Stop> {
///         let mut plan = Plan::with_goal("greet");
///         plan.complete_with_answer("hello");
///         Ok(plan)
///     }
///     async fn act(&mut self, _: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
///         Ok(ExecutionResult { claim: plan.claim.clone(), ..ExecutionResult::default() })
///     }
/// }
/// ```
pub trait CognitiveLoop: Send {
    /// The state between cycles, beside memory. It should be small: it is written at every cycle's
    /// end.
    type State: Serialize + DeserializeOwned + Send + Sync;

    /// Returns the loop's name, as in `--loop`.
    fn name(&self) -> &'static str;

    /// Returns the version of [`State`](Self::State), 1 at first; a change of the loop that alters its
    /// effects raises it too.
    fn version(&self) -> u32 {
        1
    }

    /// Returns the present state.
    fn state(&self) -> &Self::State;

    fn restore(&mut self, state: Self::State);

    /// Converts the state of an older version into the present one.
    ///
    /// # Errors
    /// Returns an error when it cannot: the run is then handed over to a fresh cycle.
    fn migrate(&self, from_version: u32, _state: Value) -> Result<Self::State, String> {
        Err(format!(
            "the loop `{}` has no way from version {from_version} of its state to version {}",
            self.name(),
            self.version()
        ))
    }

    /// Returns the handling of an unfinished cycle.
    fn unfinished(&self) -> InterruptedCycle {
        InterruptedCycle::Continue
    }

    /// Returns the memory of the conversation and of what the run saw.
    fn memory_buffer(&self) -> &MemoryBuffer;

    /// Returns the memory for adding messages.
    fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer;

    /// Collects the input of the cycle.
    fn perceive(&mut self, run: &mut Run) -> impl Future<Output = Result<Perception, Stop>> + Send;

    /// Decides on the next steps.
    fn think(
        &mut self,
        run: &mut Run,
        perception: &Perception,
    ) -> impl Future<Output = Result<Plan, Stop>> + Send;

    /// Executes the plan.
    fn act(
        &mut self,
        run: &mut Run,
        plan: &Plan,
    ) -> impl Future<Output = Result<ExecutionResult, Stop>> + Send;

    /// Reviews the cycle; the text goes into memory and the journal.
    fn reflect(
        &mut self,
        _run: &mut Run,
        _perception: &Perception,
        _plan: &Plan,
        _result: &ExecutionResult,
    ) -> impl Future<Output = Result<Option<String>, Stop>> + Send {
        async { Ok(None) }
    }

    /// Runs one complete cycle.
    fn run_cycle(
        &mut self,
        run: &mut Run,
    ) -> impl Future<Output = Result<ExecutionResult, Stop>> + Send {
        async move {
            let perception = self.perceive(run).await?;
            let plan = self.think(run, &perception).await?;
            let result = self.act(run, &plan).await?;
            if let Some(words) = self.reflect(run, &perception, &plan, &result).await? {
                run.note("reflection", 1, &words)?;
                self.memory_buffer_mut()
                    .add_observation("reflection", words);
            }
            Ok(result)
        }
    }

    /// Checks the result that ends the run before it does, for loops that wrap another loop. Its
    /// effects belong to the same cycle.
    fn conclude(
        &mut self,
        _run: &mut Run,
        _result: &ExecutionResult,
    ) -> impl Future<Output = Result<(), Stop>> + Send {
        async { Ok(()) }
    }

    /// Returns the last actions and their effects for a look back, unless memory contains them.
    fn recent_work(&self) -> Option<String> {
        None
    }

    /// Informs the loop of the reason why its claim to be done was not accepted, and the run
    /// continues. The default remembers the reason as an observation.
    fn sent_back(&mut self, why: &str) {
        self.memory_buffer_mut()
            .add_observation("verification", why);
    }

    /// Informs the loop of the work that an unfinished cycle did before this process or with other
    /// code. The default remembers it as one observation.
    fn take_over(&mut self, handed: &HandOverReport) {
        self.memory_buffer_mut()
            .add_observation("gyrus", handed.in_words());
    }
}

/// A [`CognitiveLoop`] with its state type erased, as the driver holds it.
pub trait ErasedLoop: Send {
    /// See [`CognitiveLoop::name`].
    fn name(&self) -> &'static str;
    /// See [`CognitiveLoop::version`].
    fn version(&self) -> u32;
    /// See [`CognitiveLoop::unfinished`].
    fn unfinished(&self) -> InterruptedCycle;
    /// See [`CognitiveLoop::memory_buffer`].
    fn memory(&self) -> &MemoryBuffer;
    /// See [`CognitiveLoop::memory_buffer_mut`].
    fn memory_mut(&mut self) -> &mut MemoryBuffer;
    /// Returns the state as JSON.
    fn save(&self) -> Result<Value, Stop>;
    /// Restores a state, migrating it from another version; returns the reason if that is
    /// impossible.
    fn load(&mut self, version: u32, state: Value) -> Result<(), String>;
    /// See [`CognitiveLoop::run_cycle`].
    fn cycle<'a>(&'a mut self, run: &'a mut Run) -> BoxedFuture<'a, Result<ExecutionResult, Stop>>;
    /// See [`CognitiveLoop::conclude`].
    fn conclude<'a>(
        &'a mut self,
        run: &'a mut Run,
        result: &'a ExecutionResult,
    ) -> BoxedFuture<'a, Result<(), Stop>>;
    /// See [`CognitiveLoop::recent_work`].
    fn recent_work(&self) -> Option<String>;
    /// Whether the work so far was done without models, so that none may be asked about it either.
    fn asks_no_model(&self) -> bool {
        false
    }
    /// See [`CognitiveLoop::sent_back`].
    fn sent_back(&mut self, why: &str);
    /// See [`CognitiveLoop::take_over`].
    fn hand_over(&mut self, handed: &HandOverReport);
}

impl<L: CognitiveLoop> ErasedLoop for L {
    fn name(&self) -> &'static str {
        CognitiveLoop::name(self)
    }
    fn version(&self) -> u32 {
        CognitiveLoop::version(self)
    }
    fn unfinished(&self) -> InterruptedCycle {
        CognitiveLoop::unfinished(self)
    }
    fn memory(&self) -> &MemoryBuffer {
        self.memory_buffer()
    }
    fn memory_mut(&mut self) -> &mut MemoryBuffer {
        self.memory_buffer_mut()
    }
    fn save(&self) -> Result<Value, Stop> {
        serde_json::to_value(self.state()).map_err(|error| {
            Stop::Failed(format!(
                "the state of the loop `{}` is not JSON: {error}",
                self.name()
            ))
        })
    }
    fn load(&mut self, version: u32, state: Value) -> Result<(), String> {
        let state = if version == CognitiveLoop::version(self) {
            serde_json::from_value(state).map_err(|error| error.to_string())?
        } else {
            self.migrate(version, state)?
        };
        self.restore(state);
        Ok(())
    }
    fn cycle<'a>(&'a mut self, run: &'a mut Run) -> BoxedFuture<'a, Result<ExecutionResult, Stop>> {
        Box::pin(self.run_cycle(run))
    }
    fn conclude<'a>(
        &'a mut self,
        run: &'a mut Run,
        result: &'a ExecutionResult,
    ) -> BoxedFuture<'a, Result<(), Stop>> {
        Box::pin(CognitiveLoop::conclude(self, run, result))
    }
    fn recent_work(&self) -> Option<String> {
        CognitiveLoop::recent_work(self)
    }
    fn sent_back(&mut self, why: &str) {
        CognitiveLoop::sent_back(self, why);
    }
    fn hand_over(&mut self, handed: &HandOverReport) {
        self.take_over(handed);
    }
}

/// Creates a loop by name and configuration; the error lists the valid names.
pub type LoopFactory =
    Arc<dyn Fn(&str, &Value) -> Result<Box<dyn ErasedLoop>, String> + Send + Sync>;
