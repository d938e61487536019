//! One question about several calls of a turn: a person who is asked to approve ten invitations sees
//! one card with ten lines. A yes adds exactly these calls to the mandate, each once; so a call with
//! other arguments is judged as ever, and so is one that the gate denies by now.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{Decision, Digest, EffectId, OnAsk, Origin, Risk, Text, ToolAction, ToolCall};
use serde_json::json;

use super::approval::{self, on_ask};
use crate::{
    ApprovalCard, Entry, Fact, Mandate, MandateSet, MandatedCall, Run, Stop, Times, core::Core,
    mandate, recorded::diverges, run::NumberedEffect,
};

/// The kind of the note with the calls of a turn that one question was about.
const ASKED_TOGETHER: &str = "calls.asked_together";

/// Maximum number of calls on one card; further ones are asked about one by one.
const MAX_CALLS: usize = 30;

/// Maximum number of reasons on one card.
const MAX_REASONS: usize = 20;

/// The calls of a turn that a person denied with one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedTogether {
    /// The positions of these calls in the turn.
    pub calls: Vec<usize>,
    /// A sentence for the model.
    pub why: String,
}

impl Run {
    /// Asks a person once about the calls of a turn about which the gate would ask one by one:
    /// those of servers' tools whose meaning is confirmed, except what is asked about each time
    /// (deleting, passwords). Does nothing if these are fewer than two.
    ///
    /// # Errors
    /// Returns a [`Stop`], to be passed on: also when the run parks until the answer comes.
    pub async fn ask_together(
        &mut self,
        calls: &[&ToolCall],
    ) -> Result<Option<DeniedTogether>, Stop> {
        let Some(meanings) = &self.core.started.meanings else {
            return Ok(None);
        };
        let meanings = meanings.load(&self.core.log)?;
        let acts = |(index, call): (usize, &&ToolCall)| {
            let action = meanings.get(&call.tool)?.action;
            (!matches!(action, ToolAction::Reads | ToolAction::Deletes)).then_some(index)
        };
        let acting: Vec<_> = calls.iter().enumerate().filter_map(acts).collect();
        if acting.len() < 2 {
            return Ok(None);
        }
        let begun = self.begin(|| format!("asking about {} calls together", calls.len()))?;
        let done = Box::pin(perform(&self.core, begun, calls, acting)).await;
        self.end(done)
    }
}

async fn perform(
    core: &Core,
    begun: NumberedEffect,
    calls: &[&ToolCall],
    acting: Vec<usize>,
) -> Result<Option<DeniedTogether>, Stop> {
    let effect = begun.effect;
    let mut past = begun.past.into_iter().peekable();
    let (asked, card) = match past.next() {
        Some(Entry::Noted { kind, fact, .. }) if kind == ASKED_TOGETHER => {
            let asked: Vec<usize> = serde_json::from_value(fact.fact["calls"].clone())
                .map_err(|error| Stop::Failed(error.to_string()))?;
            let card = past.peek().and_then(|entry| match entry {
                Entry::ApprovalAsked(asked) => Some(asked.card.clone()),
                _ => None,
            });
            (asked, card)
        }
        Some(other) => return Err(diverges(&effect, &other, "asking about calls together")),
        None => {
            let (asked, card) = wanting(core, calls, acting)?;
            core.log.append(Entry::Noted {
                kind: ASKED_TOGETHER.to_owned(),
                version: 1,
                fact: Fact {
                    effect: effect.clone(),
                    fact: json!({"calls": asked}),
                },
            })?;
            (asked, Some(card))
        }
    };
    if asked.is_empty() {
        return Ok(None);
    }
    let about: Vec<&ToolCall> = asked
        .iter()
        .filter_map(|index| calls.get(*index).copied())
        .collect();
    let card = card.map_or_else(|| card_of(core, &about), Ok)?;
    let is_set = |entry: &Entry| matches!(entry, Entry::MandateSet(_));
    let (set, questions): (Vec<_>, Vec<_>) = past.partition(is_set);
    let digest = Digest::of_json(&about);
    let answer = approval::perform_about(core, effect.clone(), questions, digest, card).await?;
    if !answer.approved {
        let reason = answer.reason.map(|words| format!(": {words}"));
        let reason = reason.unwrap_or_default();
        return Ok(Some(DeniedTogether {
            calls: asked,
            why: format!("the person denied this call, together with others of this turn{reason}"),
        }));
    }
    if set.is_empty() {
        let mandate = exactly(&effect, &about);
        core.log.append(MandateSet {
            effect,
            text: mandate::describe(&mandate),
            mandate,
            extends: true,
        })?;
        // The calls are judged by what can be read of the journal.
        core.log.barrier().await?;
    }
    Ok(None)
}

/// Returns the mandate to make exactly these calls, each once.
fn exactly(effect: &EffectId, calls: &[&ToolCall]) -> Mandate {
    let calls = calls.iter().zip(1..).map(|(call, number)| MandatedCall {
        id: format!("{effect}-{number}"),
        tool: call.tool.clone(),
        times: Times::AtMost(1),
        arguments: BTreeMap::new(),
        exact: Some(Digest::of_json(&call.arguments)),
    });
    Mandate {
        calls: calls.collect(),
    }
}

/// Returns the calls that the gate would ask about, and the card about them; none if one card has
/// no advantage, or if nobody can be asked.
fn wanting(
    core: &Core,
    calls: &[&ToolCall],
    acting: Vec<usize>,
) -> Result<(Vec<usize>, ApprovalCard), Stop> {
    let mut asked = Vec::new();
    if on_ask(core) != OnAsk::Deny {
        for index in acting {
            if asked.len() < MAX_CALLS && reasons_to_ask(core, calls[index])?.is_some() {
                asked.push(index);
            }
        }
    }
    if asked.len() < 2 {
        return Ok((Vec::new(), ApprovalCard::default()));
    }
    let about: Vec<&ToolCall> = asked.iter().map(|index| calls[*index]).collect();
    let card = card_of(core, &about)?;
    Ok((asked, card))
}

/// Returns the reasons why the gate would ask about a call, if it would.
fn reasons_to_ask(core: &Core, call: &ToolCall) -> Result<Option<Vec<String>>, Stop> {
    let Some(tool) = core.tool(&call.tool) else {
        return Ok(None);
    };
    let gate = &core.kernel.organs().gate;
    let Ok(resolved) = gate.resolve(call, tool.spec(), core.place()) else {
        return Ok(None);
    };
    if tool.check(&resolved.arguments).is_err() {
        return Ok(None);
    }
    let verdict = core.judge(call, &resolved, tool.spec(), None)?.verdict;
    if verdict.decision != Decision::Ask || verdict.risk >= Risk::Critical {
        return Ok(None);
    }
    let mut reasons = verdict.reasons;
    reasons.extend(core.origins(&resolved, tool.spec())?);
    Ok(Some(reasons))
}

fn card_of(core: &Core, calls: &[&ToolCall]) -> Result<ApprovalCard, Stop> {
    let mut reasons = Vec::new();
    let mut seen = BTreeSet::new();
    for call in calls {
        let own = reasons_to_ask(core, call)?.unwrap_or_default();
        reasons.extend(own.into_iter().filter(|reason| seen.insert(reason.clone())));
    }
    let more = reasons.len().saturating_sub(MAX_REASONS);
    reasons.truncate(MAX_REASONS);
    if more > 0 {
        reasons.push(format!("and {more} more reasons of this kind"));
    }
    let details = calls.iter().zip(1..).map(|(call, number)| {
        let mut lines = format!("{number}. {}", call.tool);
        for (name, value) in call.arguments.as_object().into_iter().flatten() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            lines.push_str(&format!("\n   {name}: {value}"));
        }
        Text::new(lines, Origin::Model)
    });
    Ok(ApprovalCard {
        sentence: format!("The run wants to make these {} calls", calls.len()),
        reasons,
        details: details.collect(),
        ..ApprovalCard::default()
    })
}
