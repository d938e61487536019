//! Trust in each agent.

use gyrus_contract::{Decision, Mode, Risk};

use super::{argument::TextPattern, rule::RulePlace};

/// The person's settings for one agent.
#[derive(Debug)]
pub(super) struct AgentTrust {
    pub(super) place: RulePlace,
    pub(super) agent: String,
    /// The agent's tools; all others are blocked.
    pub(super) tools: Option<Vec<TextPattern>>,
    pub(super) without_asking: Vec<TextPattern>,
    pub(super) mode: Option<Mode>,
}

/// Trust in an agent for one call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallTrust {
    /// The agent may not use the tool.
    Blocked {
        /// Reason for the person and the model.
        why: String,
    },
    /// The call changes nothing, so it needs no permission.
    NotNeeded,
    /// The person approved the tool for this agent beforehand.
    AutoApproved {
        /// Reason for the person.
        why: String,
    },
    /// The policy is silent: a person decides, or the mode that they chose.
    Person,
}

impl CallTrust {
    /// The decision that follows from the trust.
    pub fn decision(&self) -> Decision {
        match self {
            CallTrust::Blocked { .. } => Decision::Deny,
            CallTrust::NotNeeded | CallTrust::AutoApproved { .. } => Decision::Allow,
            CallTrust::Person => Decision::Ask,
        }
    }
}

/// Evaluates settings in this order: blocked, no permission needed, approved before, else a person.
pub(super) fn evaluate(agents: &[&AgentTrust], tool: &str, risk: Risk) -> CallTrust {
    let among = |patterns: &[TextPattern]| patterns.iter().any(|pattern| pattern.matches(tool));
    for of in agents {
        if of.tools.as_deref().is_some_and(|tools| !among(tools)) {
            return CallTrust::Blocked {
                why: format!(
                    "`{tool}` is not among the tools of the agent `{}` ({})",
                    of.agent, of.place
                ),
            };
        }
    }
    match risk {
        Risk::Safe => return CallTrust::NotNeeded,
        Risk::Critical => return CallTrust::Person,
        Risk::Moderate | Risk::High => {}
    }
    match agents.iter().find(|of| among(&of.without_asking)) {
        Some(of) => CallTrust::AutoApproved {
            why: format!(
                "the agent `{}` may use `{tool}` without asking ({})",
                of.agent, of.place
            ),
        },
        None => CallTrust::Person,
    }
}

/// Returns the mode that allows less without a question.
pub(super) fn stricter(one: Mode, other: Mode) -> Mode {
    let freedom = |mode: &Mode| match mode {
        Mode::ReadOnly => 0,
        Mode::Never => 1,
        Mode::Ask => 2,
        Mode::Edits => 3,
        Mode::Auto => 4,
    };
    std::cmp::min_by_key(one, other, freedom)
}
