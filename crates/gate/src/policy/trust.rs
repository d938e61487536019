//! Trust in each agent.

use gyrus_contract::{Decision, Mode, Risk};

use super::{rule::Place, text::TextPattern};

/// The person's settings for one agent.
#[derive(Debug)]
pub(super) struct AgentTrust {
    pub(super) place: Place,
    pub(super) agent: String,
    /// Its tools; all others are blocked.
    pub(super) tools: Option<Vec<TextPattern>>,
    pub(super) without_asking: Vec<TextPattern>,
    pub(super) mode: Option<Mode>,
}

/// Trust in an agent for one call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The tool is not among those that the agent may use.
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

impl Trust {
    /// The decision that follows from the trust.
    pub fn decision(&self) -> Decision {
        match self {
            Trust::Blocked { .. } => Decision::Deny,
            Trust::NotNeeded | Trust::AutoApproved { .. } => Decision::Allow,
            Trust::Person => Decision::Ask,
        }
    }
}

/// Evaluates settings in this order: blocked, no permission needed, approved beforehand, else a
/// person.
pub(super) fn evaluate(agents: &[&AgentTrust], tool: &str, risk: Risk) -> Trust {
    let among = |patterns: &[TextPattern]| patterns.iter().any(|pattern| pattern.matches(tool));
    for of in agents {
        if of.tools.as_deref().is_some_and(|tools| !among(tools)) {
            return Trust::Blocked {
                why: format!(
                    "`{tool}` is not among the tools of the agent `{}` ({})",
                    of.agent, of.place
                ),
            };
        }
    }
    match risk {
        Risk::Safe => return Trust::NotNeeded,
        Risk::Critical => return Trust::Person,
        Risk::Moderate | Risk::High => {}
    }
    match agents.iter().find(|of| among(&of.without_asking)) {
        Some(of) => Trust::AutoApproved {
            why: format!(
                "the agent `{}` may use `{tool}` without asking ({})",
                of.agent, of.place
            ),
        },
        None => Trust::Person,
    }
}

/// The mode that lets less happen by itself.
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
