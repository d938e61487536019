//! The effects, one file each, and a method of [`Run`] for each. An effect first consumes its
//! recorded entries and goes live only for what is missing. A [`Stop`] that it returns is to be
//! passed on.

mod added_folders;
pub(crate) mod attended;
mod background;
mod doors;
pub(crate) mod processes;
pub(crate) mod approval;
pub(crate) mod ask;
pub(crate) mod plainer;
mod silence;
mod unknown_tool;
mod assess;
pub(crate) mod branches;
pub(crate) mod call;
pub(crate) mod changes;
mod changed_files;
pub(crate) mod delegate;
pub(crate) mod hooks;
pub(crate) mod destinations;
pub(crate) mod program_connections;
mod server_requests;
pub(crate) mod execute;
pub(crate) mod folder;
pub(crate) mod foresee;
mod form_lines;
mod judge;
pub(crate) mod mandate;
mod named_files;
pub(crate) mod layers;
pub(crate) mod look;
pub(crate) mod used;
pub(crate) mod request;
pub(crate) mod repositories;
pub(crate) mod value;
pub(crate) mod wait;
pub(crate) mod to_undo;
pub(crate) mod together;
mod file_groups;
pub(crate) mod withheld;

use std::time::Duration;

use gyrus_contract::{ModelError, Observation, Reply, Text, ToolCall, View};
use gyrus_text::counted;
use serde::Serialize;

use crate::{ApprovalAnswered, ApprovalCard, EffectError, Ending, Run, Stop};
use branches::Branch;
use call::ExpectedAim;
use delegate::{ChildResult, Delegation};
use foresee::Foreseen;
use request::ModelQuestion;

impl Run {
    /// Asks a model. The run takes care of waits, retries and money; an error that a retry does not
    /// fix parks the run.
    pub async fn ask(&mut self, ask: ModelQuestion<'_>) -> Result<Reply, Stop> {
        let begun = self.begin(|| format!("asking a model ({:?})", ask.purpose))?;
        // Boxed, so that a run that waits for a person does not take up the memory for asking a
        // model.
        let done = Box::pin(ask::perform(&self.core, begun, ask)).await;
        self.end(done.map_err(|error| match error {
            EffectError::Stop(stop) => stop,
            EffectError::Failed(error) => Ending::ModelUnreachable { error }.into(),
        }))
    }

    /// Asks like [`ask`](Self::ask), but returns `None` if the prompt is too long for every model;
    /// the loop may then ask again with less.
    pub async fn ask_if_it_fits(&mut self, ask: ModelQuestion<'_>) -> Result<Option<Reply>, Stop> {
        let begun = self.begin(|| format!("asking a model ({:?})", ask.purpose))?;
        let done = Box::pin(ask::perform(&self.core, begun, ask)).await;
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
    pub async fn consult(
        &mut self,
        ask: ModelQuestion<'_>,
    ) -> Result<Reply, EffectError<ModelError>> {
        let begun = self.begin(|| format!("consulting a model ({:?})", ask.purpose))?;
        let router = self.core.router();
        let asked = ask::once(&self.core, begun.effect, begun.past, ask, router);
        let done = Box::pin(asked).await;
        self.end_or_fail(done)
    }

    /// Returns the views of the screen so far, this cycle included: the first one, and the last
    /// `most`, in order. It is not an effect: it reads the journal.
    pub async fn views(&self, most: usize) -> Result<Vec<View>, Stop> {
        look::seen_so_far(&self.core, self.cycle(), most).await
    }

    /// Looks at the screen, with a picture if `frame` is set.
    ///
    /// # Errors
    /// A message with the reason why the screen cannot be seen, or a [`Stop`].
    pub async fn look(&mut self, frame: bool) -> Result<View, EffectError<String>> {
        let begun = self.begin(|| "looking at the screen".to_owned())?;
        let done = Box::pin(look::perform(&self.core, begun, frame)).await;
        self.end_or_fail(done)
    }

    /// Calls a tool, if the gate allows it. Failures, denials and interruptions are observations.
    pub async fn call(&mut self, call: &ToolCall) -> Result<Observation, Stop> {
        let begun = self.begin(|| call::describe(call))?;
        let done = call::perform(&self.core, begun, call, None).await;
        self.end(done)
    }

    /// Calls a tool like [`Run::call`], if the call's target, as measured just before it is judged,
    /// is `expected`; otherwise it is refused with the returned reason.
    pub async fn call_if(
        &mut self,
        call: &ToolCall,
        expected: ExpectedAim<'_>,
    ) -> Result<Observation, Stop> {
        let begun = self.begin(|| call::describe(call))?;
        let done = call::perform(&self.core, begun, call, Some(expected)).await;
        self.end(done)
    }

    /// Returns the gate's expected verdicts on calls, under the present facts. It executes and
    /// allows nothing: each call is judged again when it is made.
    pub fn foresee(&mut self, calls: &[ToolCall]) -> Result<Vec<Foreseen>, Stop> {
        let begun =
            self.begin(|| format!("asking the gate about {}", counted(calls.len(), "call")))?;
        let done = foresee::perform(&self.core, begun, calls);
        self.end(done)
    }

    /// Calls several tools, as many concurrently as branches are allowed; observations come in the
    /// order of the calls.
    pub async fn call_all(&mut self, calls: Vec<ToolCall>) -> Result<Vec<Observation>, Stop> {
        let mut seen = Vec::with_capacity(calls.len());
        for some in calls.chunks(branches::MAX_BRANCHES) {
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
        let done = branches::all(&self.core, begun, branches).await;
        self.end(done)
    }

    /// Runs branches concurrently until the first ends; the others are interrupted. Returns the
    /// winner's number, counted from 1, and its result.
    pub async fn race<T: Send>(&mut self, branches: Vec<Branch<'_, T>>) -> Result<(u32, T), Stop> {
        let begun = self.begin(|| format!("racing {}", counted(branches.len(), "branch")))?;
        let done = branches::race(&self.core, begun, branches).await;
        self.end(done)
    }

    /// Runs a branch with a time limit; returns `None` when the time was over and the branch was
    /// interrupted.
    pub async fn timeout<T: Send>(
        &mut self,
        limit: Duration,
        branch: Branch<'_, T>,
    ) -> Result<Option<T>, Stop> {
        let begun = self.begin(|| format!("a branch limited to {} ms", limit.as_millis()))?;
        let done = branches::timeout(&self.core, begun, limit, branch).await;
        self.end(done)
    }

    /// Asks a person, in the way that `--on-ask` sets.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on: also when the run parks until the answer comes.
    pub async fn approve(&mut self, card: ApprovalCard) -> Result<ApprovalAnswered, Stop> {
        let begun = self.begin(|| format!("asking a person: {}", card.sentence))?;
        let done = approval::perform(&self.core, begun, card).await;
        self.end(done)
    }

    /// Delegates part of the work to a child run and waits for it.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on: also when the child parks.
    pub async fn delegate(&mut self, work: Delegation) -> Result<ChildResult, Stop> {
        let begun = self.begin(|| format!("delegating: {}", work.goal))?;
        let done = delegate::perform(&self.core, begun, work).await;
        self.end(done)
    }

    /// Waits until a time, in UTC milliseconds. Long waits park the run where that is allowed.
    pub async fn sleep_until(&mut self, at_ms: i64) -> Result<(), Stop> {
        let begun = self.begin(|| format!("sleeping until {at_ms}"))?;
        let done = wait::perform(&self.core, begun, None, Some(at_ms)).await;
        self.end(done).map(|_| ())
    }

    /// Waits for a named signal; `None` if the deadline, in UTC milliseconds, passes before.
    pub async fn wait(
        &mut self,
        signal: &str,
        deadline_ms: Option<i64>,
    ) -> Result<Option<Text>, Stop> {
        let begun = self.begin(|| format!("waiting for the signal `{signal}`"))?;
        let done = wait::perform(&self.core, begun, Some(signal.to_owned()), deadline_ms).await;
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
        let done = value::note(&self.core, begun, kind, version, fact);
        self.end(done)
    }

    /// Returns the wall clock, in UTC milliseconds; the same when replayed.
    pub fn now(&mut self) -> Result<i64, Stop> {
        let begun = self.begin(|| "reading the clock".to_owned())?;
        let done = value::clock(&self.core, begun);
        self.end(done)
    }

    /// Returns a random number; the same when replayed.
    pub fn random(&mut self) -> Result<u64, Stop> {
        let begun = self.begin(|| "drawing a random number".to_owned())?;
        let done = value::random(&self.core, begun);
        self.end(done)
    }

    /// Parks the run because it repeats itself, and records the repetition. When a person has
    /// resumed the run, this returns and the loop may continue in another way.
    pub fn stuck(&mut self, what: impl Into<String>) -> Result<(), Stop> {
        let what = what.into();
        let begun = self.begin(|| format!("being stuck: {what}"))?;
        let done = value::stuck(&self.core, begun, what);
        self.end(done)
    }
}
