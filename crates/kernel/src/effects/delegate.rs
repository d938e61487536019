//! Child runs. A child is a run like any other, with its own journal; its parent's journal holds
//! what it was given and what came of it, and a replay of the parent looks at nothing else.

use std::sync::Arc;

use gyrus_contract::{Digest, EffectId, Limits, Origin, RunId, Text};
use gyrus_journal::Take;
use serde_json::Value;

use super::diverges;
use crate::{
    ChildEnded, ChildStarted, Ending, Entry, NewRun, Parent, Stop, core::Core, kernel::Changes,
    run::Begun,
};

/// Runs may nest this deep below the one that a person started.
pub const MAX_DEPTH: u32 = 3;

/// A run and its descendants may start so many children in all.
pub const MAX_CHILDREN: u32 = 64;

/// Part of a run's work, for a child.
#[derive(Debug, Clone)]
pub struct Delegation {
    /// What the child is to reach. The child does not take it for a person's word.
    pub goal: String,
    /// The loop that thinks.
    pub cognitive_loop: String,
    /// The loop's configuration.
    pub loop_config: Value,
    /// What it may use; never more than its parent has left.
    pub limits: Limits,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegated {
    /// The child.
    pub child: RunId,
    /// How it ended: reached, failed, or at a limit.
    pub ending: Ending,
    /// Its answer or its reason. Untrusted.
    pub answer: Text,
}

impl Delegated {
    fn new(child: RunId, ending: Ending) -> Self {
        let answer = match &ending {
            Ending::Reached { claim } => claim.answer.clone(),
            Ending::Failed { reason, .. } => reason.clone(),
            Ending::Limit { what } => format!("a limit was reached: {what}"),
            other => format!("{other:?}"),
        };
        Self {
            child,
            ending,
            answer: Text::new(answer, Origin::Run),
        }
    }
}

pub(crate) async fn perform(
    core: &Arc<Core>,
    begun: Begun,
    work: Delegation,
) -> Result<Delegated, Stop> {
    let effect = begun.effect;
    let child = RunId::child(core.started.run, &effect);
    let digest = Digest::of_json(&(&work.goal, &work.cognitive_loop, &work.loop_config));
    let mut started = None;
    for entry in begun.past {
        match entry {
            Entry::ChildStarted(past) if past.digest == digest => started = Some(past),
            Entry::ChildEnded(past) if started.is_some() => {
                core.ledger.charge_own(
                    crate::Charge {
                        tokens: past.spent.tokens,
                        cost: past.spent.cost,
                    },
                    past.spent.estimated,
                );
                core.shared().children += 1;
                core.expose();
                return Ok(Delegated::new(child, past.ending));
            }
            other => {
                return Err(diverges(
                    &effect,
                    &other,
                    format!("delegating {}", work.goal),
                ));
            }
        }
    }
    if !core.log.is_live() {
        return Err(Stop::EndOfRecord);
    }
    let known = started.is_some();
    let limits = match started {
        Some(past) => past.limits,
        None => begin(core, &effect, child, &work, digest)?,
    };
    core.shared().children += 1;
    core.log.barrier().await?;
    let parent = Parent {
        run: core.started.run,
        effect: effect.clone(),
        depth: core
            .started
            .parent
            .as_ref()
            .map_or(1, |parent| parent.depth + 1),
    };
    let new = child_run(core, child, work, limits, parent);
    let ending = drive(core, child, new, known).await?;
    if !ending.0.is_final() && !matches!(ending.0, Ending::Limit { .. }) {
        // The child waits, so its parent does; resuming the parent resumes the child.
        return Err(ending.0.into());
    }
    let (ending, spent) = ending;
    core.log.append(ChildEnded {
        effect,
        child,
        ending: ending.clone(),
        spent,
    })?;
    core.expose();
    Ok(Delegated::new(child, ending))
}

/// Checks the caps and records what the child is given.
fn begin(
    core: &Core,
    effect: &EffectId,
    child: RunId,
    work: &Delegation,
    digest: Digest,
) -> Result<Limits, Stop> {
    let depth = core
        .started
        .parent
        .as_ref()
        .map_or(0, |parent| parent.depth);
    if depth >= MAX_DEPTH {
        return Err(Stop::Failed(format!(
            "child runs may nest {MAX_DEPTH} deep at most"
        )));
    }
    if core.shared().children >= MAX_CHILDREN {
        return Err(Stop::Failed(format!(
            "a run may start {MAX_CHILDREN} children at most"
        )));
    }
    let left = core.ledger.remaining();
    let limits = Limits {
        steps: tighter(work.limits.steps, left.steps),
        tokens: tighter(work.limits.tokens, left.tokens),
        cost: tighter(work.limits.cost, left.cost),
        time_ms: tighter(work.limits.time_ms, left.time_ms),
    };
    core.log.append(ChildStarted {
        effect: effect.clone(),
        child,
        goal: work.goal.clone(),
        limits,
        digest,
    })?;
    Ok(limits)
}

fn tighter<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn child_run(
    core: &Core,
    child: RunId,
    work: Delegation,
    limits: Limits,
    parent: Parent,
) -> NewRun {
    NewRun {
        id: child,
        goal: Text::new(work.goal, Origin::Run),
        cognitive_loop: work.cognitive_loop,
        loop_config: work.loop_config,
        workspace: core.started.workspace.clone(),
        mode: core.settings.mode,
        throwaway: core.started.throwaway,
        on_ask: core.settings.on_ask,
        limits,
        pins: core.settings.pins.clone(),
        parent: Some(parent),
    }
}

/// Creates the child if it is absent, else takes it up, and drives it to its end.
async fn drive(
    core: &Arc<Core>,
    child: RunId,
    new: NewRun,
    known: bool,
) -> Result<(Ending, gyrus_contract::Spent), Stop> {
    let kernel = &core.kernel;
    let failed = |error: crate::KernelError| match error {
        crate::KernelError::Stop(stop) => stop,
        other => Stop::Failed(format!("child run {child}: {other}")),
    };
    let ready = if known && kernel.exists(child) {
        kernel
            .take(child, Take::IfFree, Changes::default())
            .map_err(failed)?
    } else {
        kernel.create(new).map_err(failed)?
    };
    let ready = ready.under(core.ledger.clone(), core.controls.clone());
    // What it used before this process is in no entry of ours yet.
    let before = ready.spent();
    core.ledger.charge_own(
        crate::Charge {
            tokens: before.tokens,
            cost: before.cost,
        },
        before.estimated,
    );
    let finished = Box::pin(ready.drive()).await.map_err(failed)?;
    Ok((finished.ending, finished.spent))
}
