//! Readings and notes: effects whose intent and outcome are one entry.

use serde::Serialize;

use crate::{
    Ending, Entry, Fact, ReadValue, Stop, ValueTaken, clock::now_ms, core::Core,
    recorded::diverges, run::NumberedEffect,
};

pub(crate) fn note<T: Serialize + ?Sized>(
    core: &Core,
    begun: NumberedEffect,
    kind: &str,
    version: u16,
    fact: &T,
) -> Result<(), Stop> {
    let mut fact = serde_json::to_value(fact)
        .map_err(|error| Stop::Failed(format!("a note `{kind}` is not JSON: {error}")))?;
    core.kernel.organs().redactor.redact_json(&mut fact);
    if Entry::KINDS.contains(&kind) {
        return Err(Stop::Failed(format!(
            "`{kind}` is one of the kernel's own kinds of entry"
        )));
    }
    let now = Entry::Noted {
        kind: kind.to_owned(),
        version,
        fact: Fact {
            effect: begun.effect.clone(),
            fact,
        },
    };
    match begun.past.first() {
        None => core.log.append(now).map(|_| ()),
        Some(recorded) if *recorded == now => Ok(()),
        Some(recorded) => Err(diverges(
            &begun.effect,
            recorded,
            crate::recorded::describe(&now),
        )),
    }
}

/// Records the repetition, and parks the run; a recorded note means that a person has resumed it
/// since.
pub(crate) fn stuck(core: &Core, begun: NumberedEffect, what: String) -> Result<(), Stop> {
    let told = !begun.past.is_empty();
    note(core, begun, "stuck", 1, &what)?;
    if told {
        Ok(())
    } else {
        Err(Ending::Stuck { what }.into())
    }
}

pub(crate) fn clock(core: &Core, begun: NumberedEffect) -> Result<i64, Stop> {
    match taken(
        core,
        begun,
        || Ok(ReadValue::Clock { at_ms: now_ms() }),
        "reading the clock",
    )? {
        (ReadValue::Clock { at_ms }, _) => Ok(at_ms),
        (ReadValue::Random { .. }, other) => Err(other),
    }
}

pub(crate) fn random(core: &Core, begun: NumberedEffect) -> Result<u64, Stop> {
    let draw = || {
        getrandom::u64()
            .map(|number| ReadValue::Random { number })
            .map_err(|error| Stop::Failed(format!("the system gives no random numbers: {error}")))
    };
    match taken(core, begun, draw, "drawing a random number")? {
        (ReadValue::Random { number }, _) => Ok(number),
        (ReadValue::Clock { .. }, other) => Err(other),
    }
}

/// Returns the recorded or a fresh reading, or the divergence if the recorded one is of the other
/// kind.
fn taken(
    core: &Core,
    begun: NumberedEffect,
    fresh: impl FnOnce() -> Result<ReadValue, Stop>,
    now: &str,
) -> Result<(ReadValue, Stop), Stop> {
    let entry = match begun.past.into_iter().next() {
        Some(recorded) => recorded,
        None => {
            let entry = Entry::from(ValueTaken {
                effect: begun.effect.clone(),
                value: fresh()?,
            });
            core.log.append(entry.clone())?;
            entry
        }
    };
    let other = diverges(&begun.effect, &entry, now);
    match entry {
        Entry::ValueTaken(taken) => Ok((taken.value, other)),
        _ => Err(other),
    }
}
