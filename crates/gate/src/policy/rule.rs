//! One rule, and which calls it is about.

use std::sync::Arc;

use gyrus_contract::{Decision, SimpleCommand};

use super::argument;
use super::{
    PathUse, PolicySubject,
    argument::ArgumentCondition,
    argument::TextPattern,
    command::CommandPattern,
    host::{Host, HostPattern},
    path::{PathNames, PathPattern},
    subject::PatternReading,
};

/// Position of an item in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RulePlace {
    /// Name of the file in messages, as `policy.toml`.
    pub(super) file: Arc<str>,
    pub(super) line: usize,
}

impl std::fmt::Display for RulePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} line {}", self.file, self.line)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleCertainty {
    No,
    /// The rule may apply, depending on parts of the call that could not be read.
    Perhaps,
    Yes,
}

/// A rule. Empty conditions do not count.
#[derive(Debug)]
pub(super) struct PolicyRule {
    pub(super) place: RulePlace,
    pub(super) decide: Decision,
    pub(super) why: String,
    pub(super) tools: Vec<TextPattern>,
    pub(super) agents: Vec<TextPattern>,
    pub(super) exposed: Option<bool>,
    pub(super) arguments: Vec<ArgumentCondition>,
    pub(super) command: Option<CommandPattern>,
    pub(super) paths: Vec<PathPattern>,
    pub(super) hosts: Vec<HostPattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallPart {
    Whole,
    /// All parts but the connections, which are judged when they are made.
    BeforeConnecting,
    Connection,
}

/// A call, analysed once for all rules.
pub(super) struct PolicyCall<'a> {
    pub(super) subject: &'a PolicySubject<'a>,
    pub(super) part: CallPart,
    pub(super) paths: Vec<PathNames>,
    pub(super) named: Vec<PathNames>,
    pub(super) hosts: Vec<Host>,
}

impl<'a> PolicyCall<'a> {
    pub(super) fn of(subject: &'a PolicySubject<'a>, part: CallPart) -> Self {
        Self {
            subject,
            part,
            paths: subject.paths.iter().map(PathNames::of).collect(),
            named: subject.may_name.paths.iter().map(PathNames::of).collect(),
            hosts: subject.hosts.iter().map(|host| Host::parse(host)).collect(),
        }
    }
}

/// Reason why an allow rule does not allow a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lacks {
    /// The rule is about something else.
    Everything,
    /// The path of this index.
    Path(usize),
    /// Part of the line could not be read.
    Reading,
    /// The rule does not cover this value of a server's call, which is a destination.
    Value(usize),
}

impl PolicyRule {
    /// Whether a deny or ask rule is about the call: any part of it suffices.
    pub(super) fn holds(&self, call: &PolicyCall) -> RuleCertainty {
        let about_part = match call.part {
            CallPart::Whole => true,
            CallPart::BeforeConnecting => self.hosts.is_empty(),
            CallPart::Connection => !self.hosts.is_empty(),
        };
        if !about_part || !self.is_about(call.subject) {
            return RuleCertainty::No;
        }
        let commands = call.subject.commands.iter();
        let parts = [
            self.command
                .as_ref()
                .map(|pattern| commands.clone().any(|command| pattern.may_match(command))),
            any_of(&self.paths, &call.paths, PathPattern::matches),
            any_of(&self.hosts, &call.hosts, |pattern, host| {
                pattern.matches(host, PatternReading::Wide)
            }),
        ];
        if !parts.contains(&Some(false)) {
            return RuleCertainty::Yes;
        }
        let may = call.subject.may_name;
        if may.masked && self.speaks_of_paths_alone() {
            return RuleCertainty::No;
        }
        let [commands, paths, hosts] = parts;
        let named = any_of(&self.paths, &call.named, PathPattern::matches);
        let is = |part: Option<bool>| part.unwrap_or(true);
        let may_be = is(commands) && is(hosts) && !is(paths) && (is(named) || may.any);
        match (may_be, self.decide) {
            (true, Decision::Ask) if is(named) => RuleCertainty::Yes,
            (true, _) => RuleCertainty::Perhaps,
            (false, _) if call.subject.unread => RuleCertainty::Perhaps,
            (false, _) => RuleCertainty::No,
        }
    }

    /// Whether the rule denies paths whatever the call, so that they can be hidden from commands.
    fn speaks_of_paths_alone(&self) -> bool {
        self.decide == Decision::Deny
            && !self.paths.is_empty()
            && self.command.is_none()
            && self.hosts.is_empty()
            && self.arguments.is_empty()
            && self.exposed.is_none()
    }

    /// Whether the rule hides paths from the commands of this tool.
    pub(super) fn masks(&self, tool: &str, agent: &str) -> bool {
        let matches_one = |patterns: &[TextPattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        self.speaks_of_paths_alone()
            && matches_one(&self.tools, tool)
            && matches_one(&self.agents, agent)
    }

    /// Whether reading the denied paths would violate the rule. It would not if the rule names the
    /// tools that write and not the one that reads.
    pub(super) fn is_about_reading(&self) -> bool {
        let names = |tool: &str| self.tools.iter().any(|pattern| pattern.matches(tool));
        self.tools.is_empty() || names("read") || !(names("write") || names("edit"))
    }

    /// Returns the reason why an allow rule does not take part in allowing the call, if there is
    /// one. Its commands and hosts are counted by the caller: several rules may share them.
    pub(super) fn lacks(&self, call: &PolicyCall) -> Option<Lacks> {
        if call.part == CallPart::Connection {
            return (!self.allows_connection(call)).then_some(Lacks::Everything);
        }
        let commands = call.subject.commands;
        let about_commands = match &self.command {
            Some(_) => commands.iter().any(|command| self.allows(command)),
            None => commands.is_empty() || self.allows_all_commands(),
        };
        // A host that was named must be connected to, but by any part of a line.
        let later = call.part == CallPart::BeforeConnecting;
        let hosts = later || self.hosts.is_empty() || !call.hosts.is_empty();
        let paths = self.paths.is_empty() || !call.paths.is_empty();
        if !self.is_about(call.subject) || !about_commands || !hosts || !paths {
            return Some(Lacks::Everything);
        }
        if call.subject.unread {
            return Some(Lacks::Reading);
        }
        if let Some(uncovered) = argument::uncovered(&self.arguments, call.subject) {
            return Some(Lacks::Value(uncovered));
        }
        if !self.hosts.is_empty() && !call.hosts.iter().all(|host| self.allows_host(host)) {
            return Some(Lacks::Everything);
        }
        let workspace = [PathPattern::workspace()];
        let patterns = match self.paths.as_slice() {
            [] => workspace.as_slice(),
            own => own,
        };
        // Who says nothing of paths has not thought of those that run by themselves.
        let unsaid = |index: usize| {
            let path = &call.subject.paths[index];
            self.paths.is_empty() && path.used == PathUse::Changes && path.obeyed
        };
        let outside = |(index, path): (usize, &PathNames)| {
            !patterns.iter().any(|pattern| pattern.matches(path)) || unsaid(index)
        };
        let mut paths = call.paths.iter().enumerate();
        paths.position(outside).map(Lacks::Path)
    }

    pub(super) fn allows(&self, command: &SimpleCommand) -> bool {
        match &self.command {
            Some(pattern) => pattern.surely_matches(command),
            None => self.allows_all_commands(),
        }
    }

    /// Whether an allow rule allows a connection of a command. Which of the line's programs makes
    /// it is not known, so a condition on commands must hold for all of them.
    fn allows_connection(&self, call: &PolicyCall) -> bool {
        let subject = call.subject;
        let by_command = self.command.is_none()
            || (!subject.unread
                && !subject.commands.is_empty()
                && subject.commands.iter().all(|command| self.allows(command)));
        !self.hosts.is_empty()
            && self.paths.is_empty()
            && self.is_about(subject)
            && by_command
            && call.hosts.iter().all(|host| self.allows_host(host))
    }

    pub(super) fn allows_host(&self, host: &Host) -> bool {
        let allows = |pattern: &HostPattern| pattern.matches(host, PatternReading::Narrow);
        self.hosts.iter().any(allows)
    }

    /// Whether the rule allows all commands, as only one for a whole tool does. One for files or
    /// hosts says nothing of commands: which files a command touches is not known well enough.
    fn allows_all_commands(&self) -> bool {
        !self.tools.is_empty() && self.paths.is_empty() && self.hosts.is_empty()
    }

    /// The conditions on the call as a whole.
    fn is_about(&self, subject: &PolicySubject) -> bool {
        let matches_one = |patterns: &[TextPattern], text: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
        };
        matches_one(&self.tools, subject.tool)
            && matches_one(&self.agents, subject.agent)
            && self
                .exposed
                .is_none_or(|exposed| exposed == subject.exposed)
            && self.arguments.iter().all(|argument| match self.decide {
                Decision::Allow => argument.surely_holds(subject),
                Decision::Ask | Decision::Deny => argument.may_hold(subject),
            })
    }
}

/// Whether any pattern matches any part; `None` if there is no condition.
fn any_of<P, T>(patterns: &[P], parts: &[T], matches: impl Fn(&P, &T) -> bool) -> Option<bool> {
    let any = |part| patterns.iter().any(|pattern| matches(pattern, part));
    (!patterns.is_empty()).then(|| parts.iter().any(any))
}
