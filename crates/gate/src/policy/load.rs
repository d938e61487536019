//! Parsing of the text of a policy file to its rules.

use std::{ops::Range, sync::Arc};

use gyrus_contract::{Decision, Mode};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    LineReader, PolicyError, PolicyOrigin,
    argument::TextPattern,
    argument::{ArgumentCondition, ROLES, WhichArgument},
    command::{CommandPattern, MAX_ELEMENTS},
    error::Problems,
    examples::{self, PolicyExample},
    host::HostPattern,
    keys::{PlacedText, PolicyTable, list, text, word},
    path::PathPattern,
    rule::{PolicyRule, RulePlace},
    subject::PatternReading,
    trust::AgentTrust,
};
use crate::control::ControlTable;

/// The largest policy file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum number of rules in one file.
pub const MAX_RULES: usize = 10_000;
/// Maximum number of agents in one file.
const MAX_AGENTS: usize = 1_000;

const DECISIONS: [(&str, Decision); 3] = [
    ("allow", Decision::Allow),
    ("ask", Decision::Ask),
    ("deny", Decision::Deny),
];

const RULE_KEYS: [&str; 11] = [
    "decide",
    "why",
    "tool",
    "command",
    "path",
    "host",
    "argument",
    "exposed",
    "agent",
    "matches",
    "not_matches",
];

const ARGUMENT_KEYS: [&str; 5] = ["name", "role", "matches", "named", "or_absent"];

/// A policy file during its parsing.
struct Loader<'a, 't> {
    origin: &'a PolicyOrigin,
    /// Name of the file in reasons.
    name: Arc<str>,
    problems: Problems<'t>,
}

#[derive(Default)]
pub(super) struct PolicyFile {
    pub(super) rules: Vec<Arc<PolicyRule>>,
    pub(super) agents: Vec<Arc<AgentTrust>>,
    pub(super) control_files: ControlTable,
}

pub(super) fn load(
    text: &str,
    origin: &PolicyOrigin,
    lines: LineReader<'_>,
) -> Result<PolicyFile, PolicyError> {
    let mut problems = Problems::of(if text.len() > MAX_BYTES { "" } else { text });
    if text.len() > MAX_BYTES {
        let what = format!("has {} bytes; at most {MAX_BYTES} fit", text.len());
        problems.add(&(0..0), "", what);
        return problems
            .into_result(&origin.file)
            .map(|()| PolicyFile::default());
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let what = error.message().trim().replace('\n', "; ");
        problems.add(&error.span().unwrap_or(0..0), "", what);
    }
    let mut loader = Loader {
        origin,
        name: shown_name(origin),
        problems,
    };
    // What a broken file seems to say is not worth complaints of its own.
    if loader.problems.count() > 0 {
        return loader
            .problems
            .into_result(&origin.file)
            .map(|()| PolicyFile::default());
    }
    let root = PolicyTable {
        span: document.span(),
        table: document.get_ref(),
        name: "a policy".into(),
    };
    root.check(&mut loader.problems, &["rule", "agent", "control_files"]);
    let rules = loader.rules(&root);
    let agents = loader.agents(&root);
    let control_files = loader.control_files(&root);
    let mut problems = loader.problems;
    // Examples of half a rule would only fail for the same reason again.
    if problems.count() == 0 {
        examples::check(&mut problems, &rules, origin, lines);
    }
    problems.into_result(&origin.file)?;
    let rules = rules.into_iter().map(|(rule, _)| rule).collect();
    Ok(PolicyFile {
        rules,
        agents,
        control_files,
    })
}

fn shown_name(origin: &PolicyOrigin) -> Arc<str> {
    let name = origin.file.file_name().unwrap_or(origin.file.as_os_str());
    let name = super::error::shortened(&name.to_string_lossy());
    // Its reasons are the project's words, not the person's.
    if origin.may_loosen {
        name.into()
    } else {
        format!("the project's {name}").into()
    }
}

impl<'t> Loader<'_, 't> {
    fn place(&self, span: &Range<usize>) -> RulePlace {
        RulePlace {
            file: self.name.clone(),
            line: self.problems.line(span.start),
        }
    }

    /// Reads the names of files that programs obey, beside those that gyrus knows.
    fn control_files(&mut self, root: &PolicyTable<'t>) -> ControlTable {
        let mut table = ControlTable::default();
        for given in root.texts(&mut self.problems, "control_files") {
            match ControlTable::listed(given.text) {
                Ok(listed) => table = table.and(&listed),
                Err(what) => self.problems.add(&given.span, "control_files", what),
            }
        }
        table
    }

    fn rules(&mut self, root: &PolicyTable<'t>) -> Vec<(Arc<PolicyRule>, Vec<PolicyExample<'t>>)> {
        let Some(value) = root.get("rule") else {
            return Vec::new();
        };
        let Some(tables) = value.get_ref().as_array() else {
            let hint = "each rule begins with `[[rule]]`";
            self.problems
                .add_with_hint(&value.span(), "rule", "must be a list of tables", hint);
            return Vec::new();
        };
        if tables.len() > MAX_RULES {
            let what = format!("has {} rules; at most {MAX_RULES} fit", tables.len());
            self.problems.add(&value.span(), "rule", what);
            return Vec::new();
        }
        tables
            .iter()
            .filter_map(|table| {
                let keys = PolicyTable::of(&mut self.problems, "rule", table)?;
                keys.check(&mut self.problems, &RULE_KEYS);
                let rule = self.rule(&keys);
                let expected = examples::read(&mut self.problems, &keys);
                Some((Arc::new(rule?), expected))
            })
            .collect()
    }

    fn rule(&mut self, keys: &PolicyTable<'t>) -> Option<PolicyRule> {
        for required in ["decide", "why"] {
            if keys.get(required).is_none() {
                let what = format!("has no `{required}`");
                self.problems.add(&keys.span, "rule", what);
            }
        }
        let why = keys.text(&mut self.problems, "why");
        let decide = keys
            .text(&mut self.problems, "decide")
            .and_then(|given| word(&mut self.problems, "decide", &given, &DECISIONS));
        // Its conditions are looked at even if it decides nothing: there may be more to fix.
        let reach = match decide {
            Some(Decision::Allow) => PatternReading::Narrow,
            Some(Decision::Ask | Decision::Deny) | None => PatternReading::Wide,
        };
        let rule = PolicyRule {
            place: self.place(&keys.span),
            decide: decide.unwrap_or(Decision::Deny),
            why: why.as_ref().map_or("", |why| why.text).to_owned(),
            tools: patterns(&keys.texts(&mut self.problems, "tool")),
            agents: patterns(&keys.texts(&mut self.problems, "agent")),
            exposed: keys.truth(&mut self.problems, "exposed"),
            arguments: self.arguments(keys),
            command: self.command(keys),
            paths: self.paths(keys, reach),
            hosts: self.hosts(keys),
        };
        if decide == Some(Decision::Allow) {
            self.check_allow(keys, &rule);
        }
        (decide.is_some() && why.is_some()).then_some(rule)
    }

    /// Reports an allow rule that is too wide.
    fn check_allow(&mut self, keys: &PolicyTable<'t>, rule: &PolicyRule) {
        let span = keys.get("decide").map_or(keys.span.clone(), Spanned::span);
        let narrowed = keys.get("path").is_some() || keys.get("host").is_some();
        if !self.origin.may_loosen {
            self.problems.add_with_hint(
                &span,
                "decide",
                "the policy of a project can only tighten, with `ask` and `deny`",
                "an `allow` belongs in your own policy.toml",
            );
        } else if keys.get("tool").is_none() && keys.get("command").is_none() && !narrowed {
            self.problems.add_with_hint(
                &span,
                "decide",
                "an `allow` must say what it allows",
                "add `tool`, `command`, `path` or `host`",
            );
        } else if keys.get("command").is_none()
            && keys.get("path").is_some()
            && rule
                .tools
                .iter()
                .any(|tool| tool.literal() == Some("shell"))
        {
            self.problems.add_with_hint(
                &span,
                "decide",
                "an `allow` for `shell` with `path` allows no command",
                "say which with `command`; what others touch is not known well enough",
            );
        }
    }

    fn arguments(&mut self, keys: &PolicyTable<'t>) -> Vec<ArgumentCondition> {
        let Some(value) = keys.get("argument") else {
            return Vec::new();
        };
        let values = if value.get_ref().is_array() {
            list(&mut self.problems, "argument", value)
        } else {
            vec![value]
        };
        let conditions = values.into_iter();
        conditions
            .filter_map(|value| self.argument(value))
            .collect()
    }

    fn argument(&mut self, value: &'t Spanned<DeValue<'t>>) -> Option<ArgumentCondition> {
        let one = PolicyTable::of(&mut self.problems, "argument", value)?;
        one.check(&mut self.problems, &ARGUMENT_KEYS);
        let name = one.text(&mut self.problems, "name");
        let role = one
            .text(&mut self.problems, "role")
            .and_then(|given| word(&mut self.problems, "role", &given, &ROLES));
        let matches = one.texts(&mut self.problems, "matches");
        let named = one.truth(&mut self.problems, "named");
        let or_absent = one.truth(&mut self.problems, "or_absent");
        let which = match (name, role) {
            (Some(name), None) => WhichArgument::Name(name.text.to_owned()),
            (None, Some(role)) => WhichArgument::Role(role),
            _ => {
                // A word that is no role was told already.
                if one.get("name").is_some() == one.get("role").is_some() {
                    let what = "needs either `name` or `role`";
                    self.problems.add(&one.span, "argument", what);
                }
                return None;
            }
        };
        if one.get("matches").is_none() && one.get("named").is_none() {
            let what = "needs `matches` or `named`";
            self.problems.add(&one.span, "argument", what);
            return None;
        }
        Some(ArgumentCondition {
            which,
            values: patterns(&matches),
            named,
            or_absent: or_absent.unwrap_or(false),
        })
    }

    fn command(&mut self, keys: &PolicyTable<'t>) -> Option<CommandPattern> {
        let value = keys.get("command")?;
        if let Some(line) = value.get_ref().as_str() {
            let words: Vec<_> = line.split_whitespace().map(|w| format!("{w:?}")).collect();
            let hint =
                super::error::shortened(&format!("write `command = [{}]`", words.join(", ")));
            let what = "must be a list of words";
            self.problems
                .add_with_hint(&value.span(), "command", what, hint);
            return None;
        }
        let values = list(&mut self.problems, "command", value);
        if values.len() > MAX_ELEMENTS {
            let what = format!("has more than {MAX_ELEMENTS} words");
            self.problems.add(&value.span(), "command", what);
            return None;
        }
        let before = self.problems.count();
        let mut elements: Vec<Vec<String>> = Vec::new();
        for value in values {
            let words = if value.get_ref().is_array() {
                list(&mut self.problems, "command", value)
            } else {
                vec![value]
            };
            let words: Vec<_> = words
                .into_iter()
                .filter_map(|value| text(&mut self.problems, "command", value))
                .collect();
            if elements.is_empty() {
                self.check_programs(&words);
            }
            elements.push(words.iter().map(|word| word.text.to_owned()).collect());
        }
        (self.problems.count() == before && !elements.is_empty())
            .then(|| CommandPattern::new(elements))
    }

    fn check_programs(&mut self, words: &[PlacedText<'t>]) {
        for word in words {
            if word.text.contains(char::is_whitespace) {
                let hint = "each word stands alone: [\"git\", \"push\"]";
                let what = "begins with a program whose name has a space";
                self.problems
                    .add_with_hint(&word.span, "command", what, hint);
            } else if word.text.starts_with('-') || word.text.ends_with('/') {
                let what = "must begin with a program";
                self.problems.add(&word.span, "command", what);
            }
        }
    }

    fn paths(&mut self, keys: &PolicyTable<'t>, reach: PatternReading) -> Vec<PathPattern> {
        let home = self.origin.home.as_deref();
        keys.texts(&mut self.problems, "path")
            .into_iter()
            .filter_map(|given| {
                PathPattern::new(given.text, home, reach)
                    .map_err(|what| self.problems.add(&given.span, "path", what))
                    .ok()
            })
            .collect()
    }

    fn hosts(&mut self, keys: &PolicyTable<'t>) -> Vec<HostPattern> {
        keys.texts(&mut self.problems, "host")
            .into_iter()
            .filter_map(|given| {
                HostPattern::new(given.text)
                    .map_err(|what| self.problems.add(&given.span, "host", what))
                    .ok()
            })
            .collect()
    }

    fn agents(&mut self, root: &PolicyTable<'t>) -> Vec<Arc<AgentTrust>> {
        let Some(all) = root
            .get("agent")
            .and_then(|value| PolicyTable::of(&mut self.problems, "agent", value))
        else {
            return Vec::new();
        };
        if all.table.len() > MAX_AGENTS {
            let what = format!("has more than {MAX_AGENTS} agents");
            self.problems.add(&all.span, "agent", what);
            return Vec::new();
        }
        all.table
            .iter()
            .filter_map(|(name, value)| self.agent(name, value))
            .collect()
    }

    fn agent(
        &mut self,
        name: &'t Spanned<toml::de::DeString<'t>>,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<Arc<AgentTrust>> {
        let agent = name.get_ref().as_ref();
        let keys = PolicyTable::of(&mut self.problems, &format!("agent.{agent}"), value)?;
        keys.check(&mut self.problems, &["tools", "without_asking", "mode"]);
        let tools = keys.get("tools").map(|value| {
            // An agent without tools is one that only answers.
            match value.get_ref().as_array() {
                Some(none) if none.is_empty() => Vec::new(),
                _ => patterns(&keys.texts(&mut self.problems, "tools")),
            }
        });
        let asked = keys.texts(&mut self.problems, "without_asking");
        if let (false, Some(value)) = (self.origin.may_loosen, keys.get("without_asking")) {
            self.problems.add_with_hint(
                &value.span(),
                "without_asking",
                "the policy of a project can only tighten",
                "approve tools in your own policy.toml",
            );
        }
        for approved in &asked {
            let is_in = |tools: &[TextPattern]| tools.iter().any(|t| t.matches(approved.text));
            if tools.as_deref().is_some_and(|tools| !is_in(tools)) {
                let what = format!("`{}` is not among its `tools`", approved.text);
                self.problems.add(&approved.span, "without_asking", what);
            }
        }
        let modes = Mode::ALL.map(|(mode, word)| (word, mode));
        let mode = keys
            .text(&mut self.problems, "mode")
            .and_then(|given| word(&mut self.problems, "mode", &given, &modes));
        Some(Arc::new(AgentTrust {
            place: self.place(&name.span()),
            agent: agent.to_owned(),
            tools,
            without_asking: patterns(&asked),
            mode,
        }))
    }
}

fn patterns(texts: &[PlacedText]) -> Vec<TextPattern> {
    texts.iter().map(|of| TextPattern::new(of.text)).collect()
}
