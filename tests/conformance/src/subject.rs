//! Interface through which the six properties examine a runtime, so that they can examine any.

use std::future::Future;

/// A task that every subject can set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// At least three cycles with an effect each, one of which changes the world; needs nobody.
    Plain,
    /// One change that needs a person's yes. The run parks until it comes, and then ends.
    NeedsApproval,
}

/// One recorded step, in the order of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its content, without times: equal words are the same step.
    pub words: String,
    /// Its role for the properties.
    pub role: Role,
}

/// Meaning of a step for the properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// This effect was done, and its outcome is recorded.
    Settles(String),
    /// A person's answer was used up.
    Answers,
    /// A cycle is complete, counted from 1: a fork may start here.
    Ends(u32),
    /// It tells of the process that wrote it and is not compared.
    Process,
    /// Anything else.
    Other,
}

/// A durable runtime, with a world and a model that the properties can look into.
///
/// A `Run` is a handle on one run in a world of its own; `crash` and `fork` make further ones.
pub trait Subject {
    /// A handle.
    type Run;

    /// Starts the task and lets it come to its end, or to where it parks.
    fn start(&self, task: Task) -> impl Future<Output = Self::Run>;

    /// Everything recorded so far.
    fn steps(&self, run: &Self::Run) -> Vec<Step>;

    /// Whether the record says that the run is over.
    fn is_over(&self, run: &Self::Run) -> bool;

    /// The effects that the run's world executed, by the same names as in the steps, once for
    /// each execution by any process.
    fn performed(&self, run: &Self::Run) -> Vec<String>;

    /// The prompts that the processes of this handle sent, without times.
    fn prompts(&self, run: &Self::Run) -> Vec<String>;

    /// A second handle, as a crash right after the first `kept` steps leaves the run: with those
    /// steps, a world in which what they settle was done and nothing else, and every message
    /// that was ever sent still waiting.
    fn crash(&self, run: &Self::Run, kept: usize) -> Self::Run;

    /// A new process takes the run up and lets it come to its end.
    fn resume(&self, run: &Self::Run) -> impl Future<Output = Result<(), String>>;

    /// Two processes take the run up at the same time; whoever is let in goes on to the end.
    fn resume_twice(&self, run: &Self::Run) -> impl Future<Output = [Result<(), String>; 2]>;

    /// A new run that shares the cycles up to `cycle` with this one and has not gone on yet.
    fn fork(&self, run: &Self::Run, cycle: u32) -> Self::Run;

    /// A person says yes to what a parked run asks.
    fn approve(&self, run: &Self::Run);
}
