//! The expected verdicts on calls that are not made yet. They are recorded, because they depend on
//! the world and on the present policy; they authorise nothing.

use gyrus_contract::{Decision, Digest, EffectId, ToolCall, Verdict};
use gyrus_text::counted;
use serde::{Deserialize, Serialize};

use crate::{Entry, Fact, Stop, core::Core, recorded::diverges, run::NumberedEffect};

const KIND: &str = "gate.foreseen";

/// The expected verdict on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Foreseen {
    /// The verdict under the present facts.
    Judged(Verdict),
    /// The call cannot even be judged; the text is for the model.
    Unresolvable(String),
}

#[derive(Serialize, Deserialize)]
struct RecordedForesight {
    /// The digest of the calls.
    digest: Digest,
    /// A line for people.
    text: String,
    foreseen: Vec<Foreseen>,
}

pub(crate) fn perform(
    core: &Core,
    begun: NumberedEffect,
    calls: &[ToolCall],
) -> Result<Vec<Foreseen>, Stop> {
    let now = || format!("asking the gate about {}", counted(calls.len(), "call"));
    let digest = Digest::of_json(&calls);
    let fact = match begun.past.into_iter().next() {
        Some(Entry::Noted { kind, fact, .. }) if kind == KIND => fact,
        Some(other) => return Err(diverges(&begun.effect, &other, now())),
        None => ask(core, &begun.effect, digest, calls)?,
    };
    let broken = |error: serde_json::Error| {
        Stop::Failed(format!("a `{KIND}` entry cannot be read: {error}"))
    };
    let recorded: RecordedForesight = serde_json::from_value(fact.fact.clone()).map_err(broken)?;
    if recorded.digest != digest {
        let entry = Entry::Noted {
            kind: KIND.to_owned(),
            version: 1,
            fact,
        };
        return Err(diverges(&begun.effect, &entry, now()));
    }
    Ok(recorded.foreseen)
}

fn ask(core: &Core, effect: &EffectId, digest: Digest, calls: &[ToolCall]) -> Result<Fact, Stop> {
    let foreseen: Result<Vec<_>, Stop> = calls.iter().map(|call| one(core, call)).collect();
    let foreseen = foreseen?;
    let words = calls.iter().zip(&foreseen).map(|(call, foreseen)| {
        let decision = match foreseen {
            Foreseen::Judged(verdict) => match verdict.decision {
                Decision::Allow => "allowed",
                Decision::Ask => "asks",
                Decision::Deny => "denied",
            },
            Foreseen::Unresolvable(_) => "cannot be judged",
        };
        format!("{}: {decision}", call.tool)
    });
    let recorded = RecordedForesight {
        digest,
        text: words.collect::<Vec<_>>().join(", "),
        foreseen,
    };
    let mut fact =
        serde_json::to_value(recorded).map_err(|error| Stop::Failed(error.to_string()))?;
    core.kernel.organs().redactor.redact_json(&mut fact);
    let fact = Fact {
        effect: effect.clone(),
        fact,
    };
    core.log.append(Entry::Noted {
        kind: KIND.to_owned(),
        version: 1,
        fact: fact.clone(),
    })?;
    Ok(fact)
}

fn one(core: &Core, call: &ToolCall) -> Result<Foreseen, Stop> {
    let organs = core.kernel.organs();
    let Some(tool) = core.tool(&call.tool) else {
        let reason = format!("there is no tool `{}`", call.tool);
        return Ok(Foreseen::Unresolvable(reason));
    };
    let place = core.place();
    Ok(match organs.gate.resolve(call, tool.spec(), place) {
        Ok(resolved) => Foreseen::Judged(core.judge(call, &resolved, tool.spec(), None)?.verdict),
        Err(unresolvable) => Foreseen::Unresolvable(unresolvable.reason),
    })
}
