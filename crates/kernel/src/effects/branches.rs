//! The concurrent forms. Each branch numbers its own effects under the form's own number, so
//! what runs at the same time is recorded in any order and found again all the same.

use std::{sync::Arc, time::Duration};

use futures_util::future::{Either, join_all, select, select_all};
use gyrus_contract::{ActionVerdict, EffectId};

use super::diverges;
use crate::{
    Branch, BranchesStarted, Entry, Form, Inline, RaceWon, Run, Settled, Stop, ToolResulted,
    core::Core, run::Begun,
};

/// More branches than this at once are refused.
pub(crate) const MAX_BRANCHES: usize = 64;

/// Reads what is recorded of a form, or records its start. Returns the winner, if it is decided.
fn started(
    core: &Core,
    begun: &Begun,
    form: Form,
    branches: usize,
) -> Result<Option<RaceWon>, Stop> {
    if branches > MAX_BRANCHES {
        return Err(Stop::Failed(format!(
            "{branches} branches at once are more than the {MAX_BRANCHES} that are allowed"
        )));
    }
    let branches = u32::try_from(branches).unwrap_or(u32::MAX);
    let now = BranchesStarted {
        effect: begun.effect.clone(),
        form,
        branches,
    };
    let mut past = begun.past.iter();
    match past.next() {
        None => {
            core.log.append(now)?;
            return Ok(None);
        }
        Some(Entry::BranchesStarted(past)) if *past == now => {}
        Some(other) => {
            let now = format!("{branches} branches ({form:?})");
            return Err(diverges(&begun.effect, other, now));
        }
    }
    match past.next() {
        None => Ok(None),
        Some(Entry::RaceWon(won)) => Ok(Some(won.clone())),
        Some(other) => Err(diverges(&begun.effect, other, "the end of the branches")),
    }
}

fn branch_id(effect: &EffectId, index: usize) -> EffectId {
    effect.then(u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1))
}

async fn run_branch<T>(
    core: Arc<Core>,
    prefix: EffectId,
    branch: Branch<'_, T>,
) -> Result<T, Stop> {
    let mut run = Run::new(core, prefix);
    let value = branch(&mut run).await?;
    run.check_dropped()?;
    Ok(value)
}

pub(crate) async fn all<T: Send>(
    core: &Arc<Core>,
    begun: Begun,
    branches: Vec<Branch<'_, T>>,
) -> Result<Vec<T>, Stop> {
    started(core, &begun, Form::All, branches.len())?;
    let running = branches
        .into_iter()
        .enumerate()
        .map(|(index, branch)| run_branch(core.clone(), branch_id(&begun.effect, index), branch));
    // Every branch ends, whatever another one meets: nothing is cut off half-way.
    join_all(running).await.into_iter().collect()
}

pub(crate) async fn race<T: Send>(
    core: &Arc<Core>,
    begun: Begun,
    branches: Vec<Branch<'_, T>>,
) -> Result<(u32, T), Stop> {
    if branches.is_empty() {
        return Err(Stop::Failed("a race needs at least one branch".to_owned()));
    }
    let won = started(core, &begun, Form::Race, branches.len())?;
    if let Some(RaceWon {
        winner: Some(winner),
        ..
    }) = won
    {
        let index = (winner as usize).saturating_sub(1);
        let Some(branch) = branches.into_iter().nth(index) else {
            let entry = Entry::from(RaceWon {
                effect: begun.effect.clone(),
                winner: Some(winner),
            });
            return Err(diverges(
                &begun.effect,
                &entry,
                "a race with fewer branches",
            ));
        };
        let prefix = branch_id(&begun.effect, index);
        let value = run_branch(core.clone(), prefix.clone(), branch).await?;
        core.recorded().forget_within(&begun.effect);
        return Ok((winner, value));
    }
    let running = branches.into_iter().enumerate().map(|(index, branch)| {
        Box::pin(run_branch(
            core.clone(),
            branch_id(&begun.effect, index),
            branch,
        ))
    });
    let (first, index, losers) = select_all(running).await;
    drop(losers);
    let value = first?;
    let winner = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
    decide(core, &begun.effect, Some(winner))?;
    Ok((winner, value))
}

pub(crate) async fn timeout<T: Send>(
    core: &Arc<Core>,
    begun: Begun,
    limit: Duration,
    branch: Branch<'_, T>,
) -> Result<Option<T>, Stop> {
    let won = started(core, &begun, Form::Timeout, 1)?;
    let branch = run_branch(core.clone(), branch_id(&begun.effect, 0), branch);
    match won {
        Some(RaceWon { winner: None, .. }) => {
            core.recorded().forget_within(&begun.effect);
            return Ok(None);
        }
        Some(_) => return branch.await.map(Some),
        None => {}
    }
    let ended = match select(Box::pin(branch), Box::pin(tokio::time::sleep(limit))).await {
        Either::Left((value, _)) => Some(value?),
        Either::Right(((), _)) => None,
    };
    decide(core, &begun.effect, ended.as_ref().map(|_| 1))?;
    Ok(ended)
}

/// Records who won, and that what the others had in hand was cut off.
fn decide(core: &Core, effect: &EffectId, winner: Option<u32>) -> Result<(), Stop> {
    let open: Vec<_> = {
        let mut shared = core.shared();
        let open = std::mem::take(&mut shared.open_calls);
        let (inside, outside): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|id| id.is_within(effect));
        shared.open_calls = outside;
        inside
    };
    let mut entries: Vec<Entry> = open
        .into_iter()
        .map(|effect| {
            Entry::from(ToolResulted {
                effect,
                settled: Settled::Cancelled,
                text: Inline::Is("another branch won; this call was cut off".to_owned()),
                is_error: true,
                verdict: ActionVerdict::CannotTell,
                artifacts: Vec::new(),
                claim: None,
                took_ms: 0,
            })
        })
        .collect();
    entries.push(
        RaceWon {
            effect: effect.clone(),
            winner,
        }
        .into(),
    );
    core.log.append_all(&entries)?;
    core.recorded().forget_within(effect);
    Ok(())
}
