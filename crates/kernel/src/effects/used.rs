//! The resources used by parts of a run that are not run again, read from journals: a branch that
//! lost its race, an abandoned cycle, a child that nobody waits for any more.

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, RunId, Spent};

use super::{delegate, execute::wait_for_tree};
use crate::{
    Charge, ChildEnded, Ending, Entry, Kernel, KernelError, Stop, ToolStarted, accounts::TreeUsage,
};

/// The open ends of some entries: requests that may have been answered and charged, and children
/// that were started and have no end.
pub(crate) struct OpenEnds<'a> {
    asks: BTreeMap<(&'a EffectId, u32), Charge>,
    pub(crate) children: BTreeMap<&'a EffectId, RunId>,
    calls: BTreeMap<&'a EffectId, &'a ToolStarted>,
}

impl<'a> OpenEnds<'a> {
    pub(crate) fn of(entries: &'a [Entry]) -> Self {
        let mut open = Self {
            asks: BTreeMap::new(),
            children: BTreeMap::new(),
            calls: BTreeMap::new(),
        };
        for entry in entries {
            match entry {
                Entry::ModelCall(call) => {
                    open.asks
                        .insert((&call.effect, call.attempt), call.reserved);
                }
                Entry::ModelReply(reply) => {
                    open.asks.remove(&(&reply.effect, reply.attempt));
                }
                Entry::ChildStarted(child) => {
                    open.children.insert(&child.effect, child.child);
                }
                Entry::ChildEnded(child) => {
                    open.children.remove(&child.effect);
                }
                Entry::ToolStarted(started) => {
                    open.calls.insert(&started.effect, started);
                }
                Entry::ToolResulted(result) => {
                    open.calls.remove(&result.effect);
                }
                _ => {}
            }
        }
        open
    }

    /// Returns the sum of the open requests.
    pub(crate) fn asked(&self) -> Charge {
        let mut sum = Charge::default();
        for reserved in self.asks.values() {
            sum += *reserved;
        }
        sum
    }
}

/// Returns the use of a run according to its own journal and those of the runs below it.
pub(crate) fn by_run(kernel: &Kernel, run: RunId) -> Result<TreeUsage, Stop> {
    let Some(position) = position(kernel, run)? else {
        return Ok(TreeUsage::default());
    };
    let children = position.children();
    if let Some((_, spent)) = position.over() {
        return Ok(TreeUsage::by_run(spent, children));
    }
    let mut used = TreeUsage::by_run(position.kernel_state().spent, children);
    let dropped = position.dropped.iter().map(|dropped| &dropped.entries);
    for entries in dropped.chain([&position.recorded]) {
        for entry in entries {
            match entry {
                Entry::ModelReply(reply) => {
                    used.add(TreeUsage::charged(reply.charged, reply.estimated));
                }
                // The runs below it are counted already.
                Entry::ChildEnded(child) => used.add(TreeUsage::by_run(child.spent, 0)),
                _ => {}
            }
        }
        let open = OpenEnds::of(entries);
        let asked = open.asked();
        used.add(TreeUsage::charged(asked, asked != Charge::default()));
        for child in open.children.values() {
            used.add(by_run(kernel, *child)?);
        }
    }
    Ok(used)
}

/// Returns the end of a child that no effect waits for any more, after its processes have ended.
pub(crate) async fn abandoned(
    kernel: &Kernel,
    effect: EffectId,
    child: RunId,
) -> Result<ChildEnded, Stop> {
    Box::pin(wait_for_processes(kernel, child)).await?;
    Ok(ended(effect, child, by_run(kernel, child)?))
}

/// Returns the end of a child with this use that is not driven any more.
pub(crate) fn ended(effect: EffectId, child: RunId, used: TreeUsage) -> ChildEnded {
    ChildEnded {
        effect,
        child,
        ending: Ending::Interrupted,
        spent: Spent {
            tokens: used.charge.tokens,
            cost: used.charge.cost,
            estimated: used.estimated,
            ..Spent::default()
        },
        children: used.children,
        brought_back: None,
    }
}

async fn wait_for_processes(kernel: &Kernel, run: RunId) -> Result<(), Stop> {
    let Some(position) = position(kernel, run)? else {
        return Ok(());
    };
    let open = OpenEnds::of(&position.recorded);
    for started in open.calls.values() {
        wait_for_tree(started).await?;
    }
    for child in open.children.values() {
        Box::pin(wait_for_processes(kernel, *child)).await?;
    }
    Ok(())
}

fn position(kernel: &Kernel, run: RunId) -> Result<Option<crate::position::RunPosition>, Stop> {
    delegate::position(kernel, run).map_err(|error| match error {
        KernelError::Stop(stop) => stop,
        KernelError::Journal(error) => error.into(),
        other => Stop::Failed(format!("child run {run}: {other}")),
    })
}
