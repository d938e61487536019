//! The policy that a person wrote: rules on calls, and how far each agent is trusted.
//!
//! A policy is data in TOML: the person's own file, and perhaps one of the project, which can
//! only tighten. The strictest rule that holds decides. Whatever is uncertain counts against the
//! call: a deny or ask rule holds if any part of a call *may* be what it is about, an allow rule
//! only if every part *surely* is. All problems of a file are told at once, with their places, and
//! its examples are tried before it is used.
//!
//! Nothing here looks at the world or knows modes and risks: [`Policy::rule`] is pure, and what
//! it is told of a call is what it believes. The language is described in `docs/policy.md`.

mod argument;
mod command;
mod error;
mod files;
mod examples;
mod host;
mod keys;
mod load;
mod mask;
mod path;
mod rule;
mod ruling;
mod subject;
mod trust;

use std::{collections::BTreeSet, sync::Arc};

use gyrus_contract::{Decision, Mode, Risk, Service, ToolMeaning};

use crate::{FormMeanings, Meanings, control::ControlTable, destinations::LOOPBACK};

pub use self::{
    error::{PolicyError, Problem},
    files::{PolicyFileError, PolicyFiles},
    load::{MAX_BYTES, MAX_RULES},
    ruling::PolicyRuling,
    subject::{
        LineReader, MayName, PathUse, PolicyOrigin, PolicySubject, ServiceArguments, SubjectPath,
    },
    trust::CallTrust,
};
pub(crate) use self::{host::Host, path::name_matches};
use self::{
    rule::{CallPart, PolicyRule},
    trust::AgentTrust,
};

/// A whole policy. Cheap to clone; the default has no rules.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Arc<Vec<Arc<PolicyRule>>>,
    agents: Arc<Vec<Arc<AgentTrust>>>,
    /// Additional names of control files, beside the built-in ones.
    control_files: Arc<ControlTable>,
    meanings: Meanings,
    forms: FormMeanings,
}

impl Policy {
    /// Parses a policy and checks its examples.
    ///
    /// # Errors
    /// With everything that is wrong with it. No part of such a file may be used.
    pub fn parse(
        text: &str,
        origin: &PolicyOrigin,
        lines: LineReader<'_>,
    ) -> Result<Self, PolicyError> {
        let loaded = load::load(text, origin, lines)?;
        Ok(Self {
            rules: Arc::new(loaded.rules),
            agents: Arc::new(loaded.agents),
            control_files: Arc::new(loaded.control_files),
            meanings: Meanings::default(),
            forms: FormMeanings::default(),
        })
    }

    /// Joins the rules and the trust of two policies. Neither can loosen what the other tightens.
    #[must_use]
    pub fn and(self, other: Policy) -> Policy {
        let both = |one: &[Arc<PolicyRule>], other: &[Arc<PolicyRule>]| [one, other].concat();
        Policy {
            control_files: Arc::new(self.control_files.and(&other.control_files)),
            rules: Arc::new(both(&self.rules, &other.rules)),
            agents: Arc::new([self.agents.as_slice(), other.agents.as_slice()].concat()),
            meanings: self.meanings,
            forms: self.forms,
        }
    }

    /// Returns the policy with more names of control files.
    #[must_use]
    pub(crate) fn with_control_files(self, more: &ControlTable) -> Policy {
        Policy {
            control_files: Arc::new(self.control_files.and(more)),
            ..self
        }
    }

    /// Returns the additional names of control files, beside the built-in ones.
    pub(crate) fn control_files(&self) -> &ControlTable {
        &self.control_files
    }

    /// Returns the policy with the meanings that the person confirmed for servers' tools.
    #[must_use]
    pub fn with_meanings(self, meanings: Meanings) -> Policy {
        Policy { meanings, ..self }
    }

    /// Returns the policy with the meanings that the person confirmed for forms of pages.
    #[must_use]
    pub fn with_forms(self, forms: FormMeanings) -> Policy {
        Policy { forms, ..self }
    }

    /// Returns the forms of pages that the person described.
    pub(crate) fn forms(&self) -> &FormMeanings {
        &self.forms
    }

    /// Returns the meaning that the person confirmed for a server's tool.
    pub fn meaning(&self, service: &Service) -> Option<ToolMeaning> {
        self.meanings.of(service)
    }

    /// Returns the ruling of all rules on a call.
    pub fn rule(&self, subject: &PolicySubject) -> PolicyRuling {
        ruling::judge(&self.rules, subject, CallPart::Whole)
    }

    /// Returns the ruling on a command whose connections are each judged when made.
    pub(crate) fn rule_before_connecting(&self, subject: &PolicySubject) -> PolicyRuling {
        ruling::judge(&self.rules, subject, CallPart::BeforeConnecting)
    }

    /// Returns the ruling of the host rules on one connection of a command.
    pub(crate) fn rule_connection(&self, subject: &PolicySubject) -> PolicyRuling {
        ruling::judge(&self.rules, subject, CallPart::Connection)
    }

    /// Whether a rule other than an allow rule is about paths, so that the possible meanings of
    /// words matter.
    pub(crate) fn asks_about_paths(&self) -> bool {
        let about_paths =
            |rule: &Arc<PolicyRule>| rule.decide != Decision::Allow && !rule.paths.is_empty();
        self.rules.iter().any(about_paths)
    }

    /// Whether a rule other than an allow rule is about this path.
    pub(crate) fn asks_about(&self, path: &SubjectPath) -> bool {
        let names = path::PathNames::of(path);
        let rules = self.rules.iter();
        let mut rules = rules.filter(|rule| rule.decide != Decision::Allow);
        rules.any(|rule| rule.paths.iter().any(|pattern| pattern.matches(&names)))
    }

    /// Returns the ports of this machine's loopback that rules may allow.
    pub(crate) fn loopback_ports(&self) -> Vec<u16> {
        let rules = self.rules.iter();
        let allowing = rules.filter(|rule| rule.decide == Decision::Allow);
        let hosts = allowing.flat_map(|rule| &rule.hosts);
        hosts.flat_map(|host| host.ports_of(&LOOPBACK)).collect()
    }

    /// Returns the trust in an agent for a call of a tool with this risk. A critical call is never
    /// approved beforehand.
    pub fn trust(&self, agent: &str, tool: &str, risk: Risk) -> CallTrust {
        trust::evaluate(&self.of(agent), tool, risk)
    }

    /// The mode for an agent: the one chosen, or a stricter one if the policy says so.
    pub fn mode(&self, agent: &str, chosen: Mode) -> Mode {
        let limits = self.of(agent).into_iter().filter_map(|of| of.mode);
        limits.fold(chosen, trust::stricter)
    }

    /// The agents with settings, in order of name.
    pub fn agents(&self) -> BTreeSet<&str> {
        self.agents.iter().map(|of| of.agent.as_str()).collect()
    }

    fn of(&self, agent: &str) -> Vec<&AgentTrust> {
        let mut all: Vec<_> = self.agents.iter().map(|of| &**of).collect();
        all.retain(|of| of.agent == agent);
        all
    }
}
