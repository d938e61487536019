//! The ruling of all rules together on a call: the strictest that holds.

use std::sync::Arc;

use gyrus_contract::{CommandWord, Decision, SimpleCommand};

use super::{
    PolicySubject,
    error::shortened,
    rule::{CallPart, Lacks, PolicyCall, PolicyRule, RuleCertainty, RulePlace},
};

/// Maximum number of rules whose reasons are given; the rest is counted.
const MAX_REASONS: usize = 5;

/// Ruling of a policy on a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRuling {
    /// The strictest decision of the matching rules; `None` if none does.
    pub decision: Option<Decision>,
    /// Reasons, each with the file and line of its rule: those of the decision, at most five and a
    /// count of the rest. For people, and for the model.
    pub reasons: Vec<String>,
    /// Numbers of the deciding rules in the policy, from 1.
    pub rules: Vec<usize>,
    /// Set if an allow rule is about a part of the call and the rest is not allowed: what keeps
    /// it from counting. For people.
    pub short_of_allow: Option<String>,
}

pub(super) fn judge(
    rules: &[Arc<PolicyRule>],
    subject: &PolicySubject,
    part: CallPart,
) -> PolicyRuling {
    let call = PolicyCall::of(subject, part);
    let mut strictest = None;
    let mut held: Vec<(usize, &PolicyRule, RuleCertainty)> = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        if rule.decide == Decision::Allow {
            continue;
        }
        let holds = rule.holds(&call);
        let decision = match holds {
            RuleCertainty::No => continue,
            // Nobody is refused for what may not even be there.
            RuleCertainty::Perhaps => Decision::Ask,
            RuleCertainty::Yes => rule.decide,
        };
        if strictest < Some(decision) {
            strictest = Some(decision);
            held.clear();
        }
        if strictest == Some(decision) {
            held.push((index + 1, rule, holds));
        }
    }
    if strictest.is_some() {
        return PolicyRuling::of(strictest, &held);
    }
    match allowed(rules, &call) {
        Ok(by) if by.is_empty() => PolicyRuling::default(),
        Ok(by) => {
            let held: Vec<_> = by
                .into_iter()
                .map(|index| (index + 1, &*rules[index], RuleCertainty::Yes))
                .collect();
            PolicyRuling::of(Some(Decision::Allow), &held)
        }
        Err(short) => PolicyRuling {
            short_of_allow: Some(short),
            ..PolicyRuling::default()
        },
    }
}

impl PolicyRuling {
    fn of(decision: Option<Decision>, held: &[(usize, &PolicyRule, RuleCertainty)]) -> Self {
        let mut reasons: Vec<_> = held
            .iter()
            .take(MAX_REASONS)
            .map(|(_, rule, holds)| match holds {
                RuleCertainty::Perhaps => format!(
                    "part of it could not be read and may be what this rule is about: {} ({})",
                    rule.why, rule.place
                ),
                RuleCertainty::No | RuleCertainty::Yes => format!("{} ({})", rule.why, rule.place),
            })
            .collect();
        if held.len() > MAX_REASONS {
            reasons.push(format!(
                "{} with the same decision",
                gyrus_text::counted(held.len() - MAX_REASONS, "more rule")
            ));
        }
        Self {
            decision,
            reasons,
            rules: held.iter().map(|(number, ..)| *number).collect(),
            short_of_allow: None,
        }
    }
}

/// The allow rules that allow the call, none if no rule is about it. Every command must be allowed
/// by a rule that covers every path of the call, and every host by one of these rules.
fn allowed(rules: &[Arc<PolicyRule>], call: &PolicyCall) -> Result<Vec<usize>, String> {
    let mut by = Vec::new();
    let mut short = None;
    for (index, rule) in rules.iter().enumerate() {
        if rule.decide != Decision::Allow {
            continue;
        }
        match rule.lacks(call) {
            None => by.push(index),
            Some(Lacks::Everything) => {}
            Some(Lacks::Reading) => {
                short.get_or_insert_with(|| {
                    format!("{} allows only what can be read whole", rule.place)
                });
            }
            Some(Lacks::Value(index)) => {
                short.get_or_insert_with(|| value_is_beyond(call, index, &rule.place));
            }
            Some(Lacks::Path(path)) => {
                short.get_or_insert_with(|| path_is_beyond(call, path, &rule.place));
            }
        }
    }
    let Some(first) = by.first() else {
        return short.map_or(Ok(by), Err);
    };
    if call.part == CallPart::Connection {
        return Ok(by);
    }
    let place = &rules[*first].place;
    let allowing = || by.iter().map(|index| &rules[*index]);
    for command in call.subject.commands {
        if !allowing().any(|rule| rule.allows(command)) {
            return Err(short.unwrap_or_else(|| {
                let command = shown(command);
                format!("{place} allows a part of it, but no rule allows `{command}`")
            }));
        }
    }
    // Hosts in a server's call are allowed by conditions on its arguments, see `argument`.
    let is_meant = call.subject.service.is_some_and(|service| service.is_meant);
    let hosts = if is_meant { &[] } else { &call.hosts[..] };
    for (host, given) in hosts.iter().zip(call.subject.hosts) {
        if !allowing().any(|rule| rule.allows_host(host)) {
            let which = match given.as_str() {
                "" => "a connection to a host that is not known (`host = \"*\"` would)".to_owned(),
                _ => format!("a connection to `{}`", shortened(given)),
            };
            return Err(format!("{place} does not allow {which}"));
        }
    }
    Ok(by)
}

fn value_is_beyond(call: &PolicyCall, index: usize, place: &RulePlace) -> String {
    let value = call.subject.service.map(|service| &service.values[index]);
    let (path, text) = value.map_or(("", ""), |value| (&*value.path, &*value.text));
    let (path, text) = (shortened(path), shortened(text));
    format!("{place} does not speak of `{path}`, where something may go: `{text}`")
}

fn path_is_beyond(call: &PolicyCall, index: usize, place: &RulePlace) -> String {
    let path = &call.subject.paths[index];
    let shown = shortened(&path.real.display().to_string());
    match &path.in_workspace {
        Some(below) if below.as_os_str().is_empty() => {
            format!("{place} does not allow to change the workspace folder itself")
        }
        Some(_) => format!("{place} does not reach to `{shown}`"),
        None => format!("{place} does not reach to `{shown}`, outside the workspace"),
    }
}

fn shown(command: &SimpleCommand) -> String {
    let words: Vec<_> = command
        .words
        .iter()
        .take(12)
        .map(|word| match word {
            CommandWord::Literal(text) => text.as_str(),
            CommandWord::Open { open } => open.as_str(),
        })
        .collect();
    shortened(&words.join(" "))
}
