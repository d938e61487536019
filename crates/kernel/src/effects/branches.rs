//! The concurrent forms. Each branch numbers its own effects under the form's own number, so
//! concurrent effects may be recorded in any order and are still found on replay.

use std::{sync::Arc, time::Duration};

use futures_util::future::{Either, join_all, select, select_all};
use gyrus_contract::{ActionVerdict, BoxedFuture, EffectId};
use gyrus_text::counted;

use super::{ask::cut_off_asks, changes, used};
use crate::{
    BranchesStarted, CallEnd, ChildEnded, ConcurrencyForm, Ending, Entry, RaceWon, Run, Stop,
    ToolResulted,
    abandoned::count_abandoned,
    clock::now_ms,
    core::{Core, OpenChild},
    recorded::diverges,
    run::NumberedEffect,
};

/// Maximum number of concurrent branches.
pub(crate) const MAX_BRANCHES: usize = 64;

/// A branch of a concurrent form: gets its own [`Run`], which numbers its own effects.
pub type Branch<'a, T> =
    Box<dyn for<'r> FnOnce(&'r mut Run) -> BoxedFuture<'r, Result<T, Stop>> + Send + 'a>;

/// The recorded state of a concurrent form that has started.
struct BranchState {
    /// The winner, if it is decided.
    won: Option<RaceWon>,
    /// The deadline in UTC milliseconds.
    until_ms: Option<i64>,
}

/// Reads the recorded state of a form, or records its start.
fn started(
    core: &Core,
    begun: &NumberedEffect,
    form: ConcurrencyForm,
    branches: usize,
    limit: Option<Duration>,
) -> Result<BranchState, Stop> {
    if branches > MAX_BRANCHES {
        return Err(Stop::Failed(format!(
            "{branches} branches at once are more than the {MAX_BRANCHES} that are allowed"
        )));
    }
    let branches = u32::try_from(branches).unwrap_or(u32::MAX);
    let mut past = begun.past.iter();
    let until_ms = match past.next() {
        None => {
            let until_ms = limit.map(|limit| {
                let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
                now_ms().saturating_add(limit)
            });
            core.log.append(BranchesStarted {
                effect: begun.effect.clone(),
                form,
                branches,
                until_ms,
            })?;
            return Ok(BranchState {
                won: None,
                until_ms,
            });
        }
        Some(Entry::BranchesStarted(past)) if past.form == form && past.branches == branches => {
            past.until_ms
        }
        Some(other) => {
            let now = format!("{} ({form:?})", counted(branches, "branch"));
            return Err(diverges(&begun.effect, other, now));
        }
    };
    match past.next() {
        None => Ok(BranchState {
            won: None,
            until_ms,
        }),
        Some(Entry::RaceWon(won)) => Ok(BranchState {
            won: Some(won.clone()),
            until_ms,
        }),
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
    run.check_ended()?;
    Ok(value)
}

pub(crate) async fn all<T: Send>(
    core: &Arc<Core>,
    begun: NumberedEffect,
    branches: Vec<Branch<'_, T>>,
) -> Result<Vec<T>, Stop> {
    started(core, &begun, ConcurrencyForm::All, branches.len(), None)?;
    let running = branches
        .into_iter()
        .enumerate()
        .map(|(index, branch)| run_branch(core.clone(), branch_id(&begun.effect, index), branch));
    // Every branch runs to its end, even if another one fails: nothing is interrupted.
    join_all(running).await.into_iter().collect()
}

pub(crate) async fn race<T: Send>(
    core: &Arc<Core>,
    begun: NumberedEffect,
    branches: Vec<Branch<'_, T>>,
) -> Result<(u32, T), Stop> {
    if branches.is_empty() {
        return Err(Stop::Failed("a race needs at least one branch".to_owned()));
    }
    let won = started(core, &begun, ConcurrencyForm::Race, branches.len(), None)?.won;
    if let Some(RaceWon {
        winner: Some(winner),
        ..
    }) = won
    {
        let index = (winner as usize).saturating_sub(1);
        let Some(branch) = branches.into_iter().nth(index) else {
            let now = "a race with fewer branches";
            let won = RaceWon {
                effect: begun.effect.clone(),
                winner: Some(winner),
            };
            return Err(diverges(&begun.effect, &won.into(), now));
        };
        let value = run_ended(core, branch_id(&begun.effect, index), branch).await?;
        abandon_within(core, &begun.effect)?;
        return Ok((winner, value));
    }
    let running = branches.into_iter().enumerate().map(|(index, branch)| {
        let ran = run_branch(core.clone(), branch_id(&begun.effect, index), branch);
        Box::pin(async move { (index, ran.await) })
    });
    let mut running: Vec<_> = running.collect();
    let mut stopped = None;
    while !running.is_empty() {
        let ((index, ended), _, others) = select_all(running).await;
        running = others;
        match ended {
            Ok(value) => {
                drop(running);
                let winner = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
                decide(core, &begun.effect, Some(winner))?;
                return Ok((winner, value));
            }
            // A branch that parks has not won: the others finish the effect in progress.
            Err(stop @ Stop::Park(_)) => {
                stopped.get_or_insert(stop);
            }
            Err(stop) => {
                drop(running);
                core.log.append_all(&cut_off_within(core, &begun.effect)?)?;
                return Err(stop);
            }
        }
    }
    Err(stopped.unwrap_or(Stop::EndOfRecord))
}

pub(crate) async fn timeout<T: Send>(
    core: &Arc<Core>,
    begun: NumberedEffect,
    limit: Duration,
    branch: Branch<'_, T>,
) -> Result<Option<T>, Stop> {
    let BranchState { won, until_ms } =
        started(core, &begun, ConcurrencyForm::Timeout, 1, Some(limit))?;
    let prefix = branch_id(&begun.effect, 0);
    match won {
        Some(RaceWon { winner: None, .. }) => {
            abandon_within(core, &begun.effect)?;
            return Ok(None);
        }
        Some(_) => return run_ended(core, prefix, branch).await.map(Some),
        None => {}
    }
    let branch = run_branch(core.clone(), prefix, branch);
    // The time limit does not start again when a run is resumed. Recorded effects are polled first,
    // so a branch that had ended still wins.
    let left = until_ms.map_or(limit, |until| {
        Duration::from_millis(u64::try_from(until.saturating_sub(now_ms())).unwrap_or(0))
    });
    // The clock may have been set back since.
    let left = left.min(limit);
    let ended = match select(Box::pin(branch), Box::pin(tokio::time::sleep(left))).await {
        Either::Left((value, _)) => Some(value?),
        Either::Right(((), _)) => None,
    };
    decide(core, &begun.effect, ended.as_ref().map(|_| 1))?;
    Ok(ended)
}

/// Runs a branch again whose end is recorded.
async fn run_ended<T>(
    core: &Arc<Core>,
    prefix: EffectId,
    branch: Branch<'_, T>,
) -> Result<T, Stop> {
    core.recorded.lock().ends(prefix.clone());
    run_branch(core.clone(), prefix, branch).await
}

/// Charges the use of the losing branches, which are not run again.
fn abandon_within(core: &Core, effect: &EffectId) -> Result<(), Stop> {
    let lost = core.recorded.lock().take_within(effect);
    count_abandoned(core, &lost)
}

/// Records the winner, and that the effects in progress in other branches were interrupted.
fn decide(core: &Core, effect: &EffectId, winner: Option<u32>) -> Result<(), Stop> {
    let mut entries = cut_off_within(core, effect)?;
    entries.push(Entry::from(RaceWon {
        effect: effect.clone(),
        winner,
    }));
    core.log.append_all(&entries)?;
    abandon_within(core, effect)
}

/// Returns the outcomes of effects inside `effect` in progress when its branch was dropped.
fn cut_off_within(core: &Core, effect: &EffectId) -> Result<Vec<Entry>, Stop> {
    let (calls, children) = {
        let mut shared = core.shared();
        let calls = shared.open_calls.extract_if(.., |id| id.is_within(effect));
        let calls: Vec<EffectId> = calls.collect();
        let children = shared
            .open_children
            .extract_if(.., |open| open.effect.is_within(effect));
        let children: Vec<OpenChild> = children.collect();
        (calls, children)
    };
    let calls = calls.into_iter().map(|effect| {
        let changed = changes::end(core, &effect, None)?;
        let text = "another branch ended first; this call was cut off";
        Ok(ToolResulted {
            withheld: changed.withheld,
            to_undo: changed.to_undo,
            ..ToolResulted::not_done(
                effect,
                CallEnd::Cancelled,
                ActionVerdict::CannotTell,
                format!("{text}{}", changed.told()),
            )
        })
    });
    let mut entries = calls
        .map(|call| call.map(Entry::from))
        .collect::<Result<Vec<Entry>, Stop>>()?;
    for open in children {
        entries.push(cut_off_child(core, open)?.into());
    }
    entries.extend(cut_off_asks(core, effect));
    Ok(entries)
}

/// Returns the end of a child whose branch was dropped.
fn cut_off_child(core: &Core, open: OpenChild) -> Result<ChildEnded, Stop> {
    let OpenChild { effect, child } = open;
    let Some(account) = core.account.child(child) else {
        // This process did not drive the child, but an earlier one may have begun it.
        let used = used::by_run(&core.kernel, child)?;
        core.account.charge(used);
        return Ok(used::ended(effect, child, used));
    };
    Ok(ChildEnded {
        effect,
        child,
        ending: Ending::Interrupted,
        spent: account.close(),
        children: account.children(),
        brought_back: None,
    })
}
