//! The run as a loop sees it: the only thing through which it touches the world.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{
    Boxed, EffectId, MemoryBuffer, Message, Mode, ModelError, Observation, Perception, Purpose,
    Reply, RunId, Shown, SystemPart, Text, ToolCall, ToolSpec, View,
};
use gyrus_text::counted;
use serde::Serialize;
use serde_json::Value;

use crate::{
    ApprovalCard, Delegated, Delegation, Divergence, EffectError, Ending, Entry, Foreseen, Stop,
    core::Core,
    effects::{self, approval::PersonAnswer},
};

/// A branch of a concurrent form: gets its own [`Run`], which numbers its own effects.
pub type Branch<'a, T> =
    Box<dyn for<'r> FnOnce(&'r mut Run) -> Boxed<'r, Result<T, Stop>> + Send + 'a>;

/// A question to a model.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The purpose of the question.
    pub purpose: Purpose,
    /// Instructions, cacheable parts first.
    pub system: Vec<SystemPart>,
    /// Messages before memory: the goal.
    pub lead: Vec<Message>,
    /// The conversation so far.
    pub memory: Option<&'a MemoryBuffer>,
    /// Messages after memory, for this question only.
    pub tail: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Tools,
    /// The JSON Schema that the reply's text must match.
    pub output_schema: Option<Value>,
    /// Maximum length of the reply in tokens, if the budget affords it.
    pub max_output_tokens: u64,
}

/// The tools that a model is offered.
#[derive(Debug, Clone, PartialEq)]
pub enum Tools {
    /// None.
    Withheld,
    /// These tools: some of the run's, and those that the loop itself handles.
    Those(Vec<Arc<ToolSpec>>),
    /// None of the run's tools. The prompt's last picture shows its screen in this size: a provider
    /// may offer its models a built-in tool for it.
    OnScreen(Shown),
}

/// A run, or a branch of it. Every effect takes `&mut self`, so two concurrent ones do not compile
/// outside the concurrent forms, and an effect's number follows from the order of the program.
pub struct Run {
    pub(crate) core: Arc<Core>,
    pub(crate) prefix: EffectId,
    next: u32,
    /// An effect that began and has not ended. If it is still set when the next one begins, its
    /// future was dropped.
    in_progress: Option<EffectId>,
    stopped: Option<Stop>,
}

/// An effect with its number.
pub(crate) struct Begun {
    pub(crate) effect: EffectId,
    /// The branch that it is in.
    pub(crate) prefix: EffectId,
    /// Its recorded entries. If there are none, it goes live.
    pub(crate) past: Vec<Entry>,
}

impl Run {
    pub(crate) fn new(core: Arc<Core>, prefix: EffectId) -> Self {
        Self {
            core,
            prefix,
            next: 1,
            in_progress: None,
            stopped: None,
        }
    }

    /// Returns the run's id.
    pub fn id(&self) -> RunId {
        self.core.started.run
    }

    /// Returns the goal as it was given, and its amendments, oldest first.
    pub fn goal(&self) -> Vec<Text> {
        let mut goal = vec![self.core.goal.clone()];
        goal.extend(self.core.shared().amendments.iter().cloned());
        goal
    }

    /// Returns the tools of this run, by name.
    pub fn tools(&self) -> &[Arc<ToolSpec>] {
        &self.core.kernel.organs().specs
    }

    /// Returns the approval mode with which the run was started. The gate knows the present one.
    pub fn mode_at_start(&self) -> Mode {
        self.core.started.settings.mode
    }

    /// Returns the context window of the model that was asked last in tokens, if that is known.
    pub fn window(&self) -> Option<u64> {
        self.core.shared().window
    }

    /// Returns the input with which every loop starts: the goal with its material, and the tools.
    pub fn perception(&self) -> Perception {
        Perception {
            goal: self.goal(),
            context: self.core.context.clone(),
            available_tools: self.tools().iter().map(|spec| spec.name.clone()).collect(),
        }
    }

    /// Returns the number of the cycle in progress, counted from 1.
    pub fn cycle(&self) -> u32 {
        self.prefix.cycle_number()
    }

    /// Asks a model. The run takes care of waits, retries and money; an error that a retry does not
    /// fix parks the run.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn ask(&mut self, ask: Ask<'_>) -> Result<Reply, Stop> {
        let begun = self.begin(|| format!("asking a model ({:?})", ask.purpose))?;
        // Boxed, so that a run that waits for a person does not take up the memory for asking a
        // model.
        let done = Box::pin(effects::ask::perform(&self.core, begun, ask)).await;
        self.end(done.map_err(|error| match error {
            EffectError::Stop(stop) => stop,
            EffectError::Failed(error) => Ending::ModelUnreachable { error }.into(),
        }))
    }

    /// Asks like [`ask`](Self::ask), but returns `None` if the prompt is too long for every model;
    /// the loop may then ask again with less.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn ask_if_it_fits(&mut self, ask: Ask<'_>) -> Result<Option<Reply>, Stop> {
        let begun = self.begin(|| format!("asking a model ({:?})", ask.purpose))?;
        let done = Box::pin(effects::ask::perform(&self.core, begun, ask)).await;
        self.end(match done {
            Ok(reply) => Ok(Some(reply)),
            Err(EffectError::Failed(ModelError::ContextTooLong { .. })) => Ok(None),
            Err(EffectError::Failed(error)) => Err(Ending::ModelUnreachable { error }.into()),
            Err(EffectError::Stop(stop)) => Err(stop),
        })
    }

    /// Asks a model once, without retries: for questions whose answer the run can do without. A
    /// person's messages wait for the next [`ask`](Self::ask).
    ///
    /// # Errors
    /// Returns the model's failure to answer, or a [`Stop`].
    pub async fn consult(&mut self, ask: Ask<'_>) -> Result<Reply, EffectError<ModelError>> {
        let begun = self.begin(|| format!("consulting a model ({:?})", ask.purpose))?;
        let router = self.core.kernel.organs().router.clone();
        let asked = effects::ask::once(&self.core, begun.effect, begun.past, ask, router);
        let done = Box::pin(asked).await;
        self.end_or_fail(done)
    }

    /// Returns the views of the screen so far, this cycle included: the first one, and the last
    /// `most`, in order. It is not an effect: it reads the journal.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn views(&self, most: usize) -> Result<Vec<View>, Stop> {
        effects::look::seen_so_far(&self.core, self.cycle(), most).await
    }

    /// Looks at the screen, with a picture if `frame`.
    ///
    /// # Errors
    /// Returns the reason in words why the screen cannot be seen, or a [`Stop`].
    pub async fn look(&mut self, frame: bool) -> Result<View, EffectError<String>> {
        let begun = self.begin(|| "looking at the screen".to_owned())?;
        let done = Box::pin(effects::look::perform(&self.core, begun, frame)).await;
        self.end_or_fail(done)
    }

    /// Calls a tool, if the gate allows it. Failures, denials and interruptions are observations.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn call(&mut self, call: &ToolCall) -> Result<Observation, Stop> {
        let begun = self.begin(|| effects::call::describe(call))?;
        let done = effects::call::perform(&self.core, begun, call).await;
        self.end(done)
    }

    /// Returns the gate's expected verdicts on calls, under the present facts. It executes and
    /// allows nothing: each call is judged again when it is made.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub fn foresee(&mut self, calls: &[ToolCall]) -> Result<Vec<Foreseen>, Stop> {
        let begun =
            self.begin(|| format!("asking the gate about {}", counted(calls.len(), "call")))?;
        let done = effects::foresee::perform(&self.core, begun, calls);
        self.end(done)
    }

    /// Calls several tools, as many concurrently as branches are allowed; observations come in the
    /// order of the calls.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn call_all(&mut self, calls: Vec<ToolCall>) -> Result<Vec<Observation>, Stop> {
        let mut seen = Vec::with_capacity(calls.len());
        for some in calls.chunks(effects::branches::MAX_BRANCHES) {
            let branches = some.iter().cloned();
            let branches = branches.map(|call| -> Branch<'static, Observation> {
                Box::new(move |run| Box::pin(async move { run.call(&call).await }))
            });
            let branches = branches.collect();
            seen.extend(self.branches(branches).await?);
        }
        Ok(seen)
    }

    /// Runs branches concurrently and waits for all of them.
    ///
    /// # Errors
    /// Returns the [`Stop`] of the first branch that stopped, after all have ended.
    pub async fn branches<T: Send>(
        &mut self,
        branches: Vec<Branch<'_, T>>,
    ) -> Result<Vec<T>, Stop> {
        let begun = self.begin(|| format!("starting {}", counted(branches.len(), "branch")))?;
        let done = effects::branches::all(&self.core, begun, branches).await;
        self.end(done)
    }

    /// Runs branches concurrently until the first ends; the others are interrupted. Returns the
    /// winner's number, counted from 1, and its result.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn race<T: Send>(&mut self, branches: Vec<Branch<'_, T>>) -> Result<(u32, T), Stop> {
        let begun = self.begin(|| format!("racing {}", counted(branches.len(), "branch")))?;
        let done = effects::branches::race(&self.core, begun, branches).await;
        self.end(done)
    }

    /// Runs a branch with a time limit; returns `None` when the time was over and the branch was
    /// interrupted.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn timeout<T: Send>(
        &mut self,
        limit: Duration,
        branch: Branch<'_, T>,
    ) -> Result<Option<T>, Stop> {
        let begun = self.begin(|| format!("a branch limited to {} ms", limit.as_millis()))?;
        let done = effects::branches::timeout(&self.core, begun, limit, branch).await;
        self.end(done)
    }

    /// Asks a person, in the way that `--on-ask` sets.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on: also when the run parks until the answer comes.
    pub async fn approve(&mut self, card: ApprovalCard) -> Result<PersonAnswer, Stop> {
        let begun = self.begin(|| format!("asking a person: {}", card.sentence))?;
        let done = effects::approval::perform(&self.core, begun, card).await;
        self.end(done)
    }

    /// Delegates part of the work to a child run and waits for it.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on: also when the child parks.
    pub async fn delegate(&mut self, work: Delegation) -> Result<Delegated, Stop> {
        let begun = self.begin(|| format!("delegating: {}", work.goal))?;
        let done = effects::delegate::perform(&self.core, begun, work).await;
        self.end(done)
    }

    /// Delegates parts of the work to concurrent child runs; results come in the order of the work.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn delegate_all(&mut self, work: Vec<Delegation>) -> Result<Vec<Delegated>, Stop> {
        let branches = work
            .into_iter()
            .map(|work| -> Branch<'static, Delegated> {
                Box::new(move |run| Box::pin(run.delegate(work)))
            })
            .collect();
        self.branches(branches).await
    }

    /// Waits until a time, in UTC milliseconds. Long waits park the run where that is allowed.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn sleep_until(&mut self, at_ms: i64) -> Result<(), Stop> {
        let begun = self.begin(|| format!("sleeping until {at_ms}"))?;
        let done = effects::wait::perform(&self.core, begun, None, Some(at_ms)).await;
        self.end(done).map(|_| ())
    }

    /// Waits for a named signal; returns `None` if the deadline, in UTC milliseconds, passes
    /// before.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub async fn wait(
        &mut self,
        signal: &str,
        deadline_ms: Option<i64>,
    ) -> Result<Option<Text>, Stop> {
        let begun = self.begin(|| format!("waiting for the signal `{signal}`"))?;
        let done =
            effects::wait::perform(&self.core, begun, Some(signal.to_owned()), deadline_ms).await;
        self.end(done)
    }

    /// Writes a fact of the loop's own into the journal, under a dotted kind.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on: also when an earlier execution of this cycle recorded
    /// another fact.
    pub fn note<T: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        version: u16,
        fact: &T,
    ) -> Result<(), Stop> {
        let begun = self.begin(|| format!("noting `{kind}`"))?;
        let done = effects::value::note(&self.core, begun, kind, version, fact);
        self.end(done)
    }

    /// Returns the wall clock, in UTC milliseconds; the same when replayed.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub fn now(&mut self) -> Result<i64, Stop> {
        let begun = self.begin(|| "reading the clock".to_owned())?;
        let done = effects::value::clock(&self.core, begun);
        self.end(done)
    }

    /// Returns a random number; the same when replayed.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub fn random(&mut self) -> Result<u64, Stop> {
        let begun = self.begin(|| "drawing a random number".to_owned())?;
        let done = effects::value::random(&self.core, begun);
        self.end(done)
    }

    /// Parks the run because it repeats itself, and records what repeats. When a person has resumed
    /// it, this returns and the loop may continue in another way.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on.
    pub fn stuck(&mut self, what: impl Into<String>) -> Result<(), Stop> {
        let what = what.into();
        let begun = self.begin(|| format!("being stuck: {what}"))?;
        let done = effects::value::stuck(&self.core, begun, what);
        self.end(done)
    }

    /// Gives an effect its number.
    fn begin(&mut self, now: impl Fn() -> String) -> Result<Begun, Stop> {
        if let Some(stop) = &self.stopped {
            return Err(stop.clone());
        }
        self.check_dropped()?;
        let effect = self.prefix.then(self.next);
        self.next += 1;
        let past = self.core.recorded().take(&effect);
        if past.is_empty() {
            let allowed = self.core.recorded().may_go_live(&self.prefix, &effect, now);
            self.keep(allowed.map_err(Stop::from))?;
            let live = self.core.log.is_live();
            self.keep(if live { Ok(()) } else { Err(Stop::EndOfRecord) })?;
            if let Some(ending) = self.core.controls.pausing() {
                self.keep(Err(ending.into()))?;
            }
        }
        self.in_progress = Some(effect.clone());
        Ok(Begun {
            effect,
            prefix: self.prefix.clone(),
            past,
        })
    }

    fn end<T>(&mut self, done: Result<T, Stop>) -> Result<T, Stop> {
        self.in_progress = None;
        self.keep(done)
    }

    /// Does the same as [`end`](Self::end), for an effect whose failure the loop handles.
    fn end_or_fail<T, E>(&mut self, done: Result<T, EffectError<E>>) -> Result<T, EffectError<E>> {
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

    /// Checks that the loop ended properly. A loop that ignored a stop and went on has a result
    /// that no other process would reach.
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
