//! The demo in a person's place: it answers what a run asks.

use std::convert::Infallible;

use gyrus_contract::{Aim, Answer, ApprovalScope, Principal, RunId, Starts};
use gyrus_journal::Store;
use gyrus_kernel::{
    Entry,
    approvals::{ApprovalError, OpenQuestion, answer},
    log_name,
};

use crate::LabError;

/// Answers yes to questions that concern only pages of `origin`, which gyrus itself serves, and no
/// to all others. Never ends by itself.
pub(super) async fn answers(
    store: &Store,
    run: RunId,
    origin: &str,
) -> Result<Infallible, LabError> {
    let mut follower = store.reader(&log_name(run))?.follow(1)?;
    let mut judged = None;
    loop {
        match gyrus_kernel::parse(&follower.next().await?) {
            Ok(Entry::GateVerdict(verdict)) => judged = Some(verdict),
            Ok(Entry::ApprovalAsked(asked)) => {
                let about = judged.as_ref().filter(|one| one.effect == asked.effect);
                let aim = about.and_then(|judged| judged.aim.as_ref());
                let says = if aim.is_some_and(|aim| stays(aim, origin)) {
                    Answer::yes(ApprovalScope::Once)
                } else {
                    Answer::no("that has nothing to do with what I asked for")
                };
                let open = OpenQuestion::new(run, asked);
                match answer(store, &open, myself(), says) {
                    // What was answered before the crash is not asked again.
                    Ok(()) | Err(ApprovalError::Void(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            _ => {}
        }
    }
}

fn myself() -> Principal {
    Principal {
        surface: "demo".to_owned(),
        id: "gyrus demo".to_owned(),
    }
}

/// Whether all effects of an input stay at `origin`.
fn stays(aim: &Aim, origin: &str) -> bool {
    let is_there = |address: &str| {
        address == origin
            || address
                .strip_prefix(origin)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    let goes_elsewhere = aim.starts.iter().any(|starts| match starts {
        Starts::Opens { address } | Starts::Follows { address } | Starts::Sends { address, .. } => {
            !is_there(address)
        }
        _ => false,
    });
    let form = aim.form.as_ref();
    aim.origin == origin && !goes_elsewhere && form.is_none_or(|form| is_there(&form.action))
}
