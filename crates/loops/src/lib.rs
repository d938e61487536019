//! Cognitive loops, each as plain `async` Rust over a [`gyrus_kernel::Run`].
//!
//! The one idea: a loop has no privileges. It touches no clock, random source, environment, file,
//! network or task but through its run, so the journal explains everything it did and any process
//! can take it up. It does not know which model answers or who judges its calls.
//!
//! Start with `react`, the one that most runs use; `chain_of_thought` reasons before it acts,
//! `single_shot` only answers, `plan` makes a complete plan that a person may review before
//! anything happens, `engineer` works until an outside judge accepts, `changeset` has a person
//! approve what it reads and what it changes, and `reactive` works on a screen, to which `browse`
//! delegates from the others. With `delegate` a model starts sub-runs. `review` lets a person decide about something that they may also
//! edit. `repetition` detects work that repeats itself, and `compaction` keeps a long conversation
//! within its model's window. `verification` wraps each of them and verifies their claims.

mod config;
mod kind;
mod strategy;
mod react;
mod chain_of_thought;
mod single_shot;
mod review;
mod edited;
mod plan;
mod engineer;
mod changeset;
mod reactive;
mod browse;
mod delegate;
mod procedure;
mod calls;
mod repetition;
mod compaction;
mod kept_work;
mod verification;
mod words;
mod evidence;
mod goal;
mod prompt;
mod mandate;
mod json;

use std::sync::Arc;

use gyrus_kernel::LoopFactory;

pub use calls::{CALLS, CallDone, CallsConfig};
pub use chain_of_thought::ChainOfThought;
pub use changeset::{Changeset, ChangesetState, REFLECTION};
pub use compaction::summary_in;
pub use config::{
    CognitiveConfig, DelegationConfig, PerceptionMode, Replays, Review, SubRunRole,
    ThinkingStrategy,
};
pub use delegate::DELEGATE;
pub use edited::edited_calls;
pub use engineer::{BadJudge, Engineer, EngineerState, Judge, WENT_RIGHT};
pub use evidence::Failures;
pub use kept_work::KeptWork;
pub use kind::LoopKind;
pub use plan::{PlanState, Planner};
pub use react::{React, ReactState};
pub use reactive::{FRESH, Reactive, ReactiveState, shown};
pub use repetition::{ActionRepetition, DEMAND_AT, NUDGE_AT, PARK_AT, RepetitionAdvice};
pub use single_shot::SingleShot;
pub use strategy::prompts;
use verification::VerifiedLoop;
pub use verification::{BadCheck, CHECK_MADE, Check, lesson::LESSON};

/// Returns a factory that creates the loops of this crate by their `--loop` names, from a
/// [`CognitiveConfig`]'s JSON.
pub fn factory() -> LoopFactory {
    Arc::new(|name, config| {
        if name == CALLS {
            let config = serde_json::from_value(config.clone())
                .map_err(|error| format!("the calls of the loop `{name}`: {error}"))?;
            return Ok(Box::new(calls::CallSequence::new(config)));
        }
        let config: CognitiveConfig = serde_json::from_value(config.clone())
            .map_err(|error| format!("the configuration of the loop `{name}`: {error}"))?;
        let strategy = ThinkingStrategy::named(name).ok_or_else(|| {
            let names = ThinkingStrategy::names().join(", ");
            format!("there is no loop `{name}`; there are {names}")
        })?;
        let verifying = config.clone();
        Ok(VerifiedLoop::around(
            (strategy.kind().build)(config)?,
            &verifying,
        ))
    })
}
