//! The lasting consequences of a part of a run that is not run again: an abandoned cycle, a branch
//! that lost its race.
//!
//! Nobody uses its results any more, but its charges, its exposure to untrusted text and a person's
//! amendments of the goal count all the same.

use crate::{
    ApprovalAnswered, CallEnd, Charge, Entry, Stop,
    accounts::TreeUsage,
    core::Core,
    effects::{
        ask::amend,
        used::{self, OpenEnds},
    },
    unknown,
};

/// Applies the consequences of these entries to the run as a whole.
pub(crate) fn count_abandoned(core: &Core, entries: &[Entry]) -> Result<(), Stop> {
    // Effects without an outcome will never get one: they may have been answered and charged.
    let open = OpenEnds::of(entries);
    let asked = open.asked();
    if asked != Charge::default() {
        core.account.charge(TreeUsage::charged(asked, true));
    }
    for child in open.children.values() {
        let used = used::by_run(&core.kernel, *child)?;
        core.account.charge(used);
        core.expose();
    }
    unknown::remember(&mut core.shared().state.unknown, entries);
    for entry in entries {
        match entry {
            Entry::Steered(steered) => {
                amend(core, [steered]);
            }
            Entry::ModelCall(call) => core.count_question(call.purpose, call.ordinal),
            Entry::ModelReply(reply) => {
                let used = TreeUsage::charged(reply.charged, reply.estimated);
                core.account.charge(used);
            }
            Entry::ToolResulted(result) if result.settled == CallEnd::Done => core.expose(),
            Entry::ApprovalAnswered(answered) => count_denial(core, entries, answered),
            Entry::WaitEnded(ended) if ended.payload.is_some() => core.expose(),
            Entry::ChildStarted(_) => core.account.charge(TreeUsage::children(1)),
            Entry::ChildEnded(ended) => {
                let used = TreeUsage::by_run(ended.spent, ended.children);
                core.account.charge(used);
                core.expose();
            }
            _ => {}
        }
    }
    Ok(())
}

/// Counts a denial because nobody could be asked, which is reported when the run ends.
fn count_denial(core: &Core, entries: &[Entry], answered: &ApprovalAnswered) {
    let question = entries.iter().find_map(|entry| match entry {
        Entry::ApprovalAsked(asked) if asked.effect == answered.effect => {
            Some(&asked.card.sentence)
        }
        _ => None,
    });
    if let (None, Some(question)) = (&answered.by, question) {
        core.shared().state.denied.push(question.clone());
    }
}
