//! The examples of rules, tried before a policy is used.
//!
//! An example stands alone with its rule: would this rule, and no other, decide the call so? What
//! an example leaves open (the agent, whether the run is exposed) is as the rule wants it.

use std::{collections::BTreeMap, ops::Range, path::Path, path::PathBuf, sync::Arc};

use gyrus_contract::{
    ArgumentRole, ArgumentValue, CommandReading, Decision, Does, SimpleCommand, ToolAction,
    ToolMeaning,
};
use serde_json::{Map, Value, json};
use toml::{Spanned, de::DeValue};

use super::{
    LineReader, MayName, PathUse, PolicyOrigin, PolicySubject, ServiceArguments, SubjectPath,
    argument::ROLES,
    error::{Problems, shortened},
    keys::{PolicyTable, list, text, word},
    rule::{CallPart, PolicyRule},
    ruling::{PolicyRuling, judge},
};

/// Maximum number of examples of one rule.
const MAX_OF_RULE: usize = 100;
/// Maximum number of examples in one file: reading a command line is the slowest part of loading.
const MAX_OF_FILE: usize = 10_000;

const KEYS: [&str; 9] = [
    "tool",
    "command",
    "path",
    "host",
    "arguments",
    "roles",
    "goal",
    "exposed",
    "agent",
];

#[derive(Default)]
pub(super) struct PolicyExample<'t> {
    key: &'static str,
    matches: bool,
    span: Range<usize>,
    tool: Option<&'t str>,
    line: Option<&'t str>,
    paths: Vec<&'t str>,
    hosts: Vec<&'t str>,
    arguments: Map<String, Value>,
    /// The roles that a person would have confirmed for a server's tool.
    roles: Option<BTreeMap<String, ArgumentRole>>,
    goal: Option<&'t str>,
    exposed: Option<bool>,
    agent: Option<&'t str>,
}

pub(super) fn read<'t>(problems: &mut Problems, keys: &PolicyTable<'t>) -> Vec<PolicyExample<'t>> {
    let mut all = Vec::new();
    for (key, matches) in [("matches", true), ("not_matches", false)] {
        let Some(value) = keys.get(key) else {
            continue;
        };
        let values = if value.get_ref().is_array() {
            list(problems, key, value)
        } else {
            vec![value]
        };
        if values.len() > MAX_OF_RULE {
            let what = format!("has more than {MAX_OF_RULE} examples");
            problems.add(&value.span(), key, what);
            continue;
        }
        all.extend(
            values
                .into_iter()
                .filter_map(|value| one(problems, key, matches, value)),
        );
    }
    all
}

fn one<'t>(
    problems: &mut Problems,
    key: &'static str,
    matches: bool,
    value: &'t Spanned<DeValue<'t>>,
) -> Option<PolicyExample<'t>> {
    let mut expected = PolicyExample {
        key,
        matches,
        span: value.span(),
        ..PolicyExample::default()
    };
    if !value.get_ref().is_table() {
        expected.line = Some(text(problems, key, value)?.text);
        expected.tool = Some("shell");
        return Some(expected);
    }
    let keys = PolicyTable::of(problems, key, value)?;
    keys.check(problems, &KEYS);
    expected.tool = keys.text(problems, "tool").map(|of| of.text);
    expected.line = keys.text(problems, "command").map(|of| of.text);
    let texts = keys.texts(problems, "path");
    expected.paths = texts.into_iter().map(|of| of.text).collect();
    let texts = keys.texts(problems, "host");
    expected.hosts = texts.into_iter().map(|of| of.text).collect();
    expected.exposed = keys.truth(problems, "exposed");
    expected.agent = keys.text(problems, "agent").map(|of| of.text);
    expected.goal = keys.text(problems, "goal").map(|of| of.text);
    if let Some(value) = keys.get("roles") {
        let roles = PolicyTable::of(problems, "roles", value)?;
        let mut read = BTreeMap::new();
        for (name, _) in roles.table {
            let name = name.get_ref();
            if let Some(given) = roles.text(problems, name)
                && let Some(role) = word(problems, name, &given, &ROLES)
            {
                read.insert(name.to_string(), role);
            }
        }
        expected.roles = Some(read);
    }
    if let Some(value) = keys.get("arguments") {
        let arguments = PolicyTable::of(problems, "arguments", value)?;
        for (name, value) in arguments.table {
            match plain(value.get_ref()) {
                Some(value) => {
                    expected.arguments.insert(name.get_ref().to_string(), value);
                }
                None => problems.add(
                    &value.span(),
                    name.get_ref(),
                    "must be a text, a whole number, true or false, or a list or table of these",
                ),
            }
        }
    }
    Some(expected)
}

fn plain(value: &DeValue) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Boolean(truth) => Some(Value::from(*truth)),
        DeValue::Integer(number) if number.radix() == 10 => {
            number.as_str().parse::<i64>().ok().map(Value::from)
        }
        DeValue::Array(values) => {
            let values: Option<Vec<_>> = values.iter().map(|of| plain(of.get_ref())).collect();
            Some(Value::Array(values?))
        }
        DeValue::Table(values) => {
            let value = |(key, of): (&Spanned<_>, &Spanned<_>)| {
                Some((
                    std::borrow::Cow::to_string(key.get_ref()),
                    plain(of.get_ref())?,
                ))
            };
            let values: Option<Map<_, _>> = values.iter().map(value).collect();
            Some(Value::Object(values?))
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => None,
    }
}

pub(super) fn check(
    problems: &mut Problems,
    rules: &[(Arc<PolicyRule>, Vec<PolicyExample>)],
    origin: &PolicyOrigin,
    lines: LineReader<'_>,
) {
    let mut tried = 0;
    for (rule, examples) in rules {
        for example in examples {
            tried += 1;
            if tried > MAX_OF_FILE {
                let what = format!("is more than {MAX_OF_FILE} examples in one file");
                problems.add(&example.span, example.key, what);
                return;
            }
            check_one(problems, rule, example, origin, lines);
        }
    }
}

fn check_one(
    problems: &mut Problems,
    rule: &Arc<PolicyRule>,
    example: &PolicyExample,
    origin: &PolicyOrigin,
    lines: LineReader<'_>,
) {
    let named = rule.tools.iter().find_map(|tool| tool.literal());
    let Some(tool) = example.tool.or(named) else {
        let hint = "add `tool` to it";
        let what = "does not say which tool is called";
        problems.add_with_hint(&example.span, example.key, what, hint);
        return;
    };
    let mut touched = ExampleTouches::default();
    if let Some(line) = example.line {
        touched.add_reading((lines.read)(line), lines.workspace);
        if touched.commands.is_empty() && !touched.unread {
            problems.add(&example.span, example.key, "has no command in it");
            return;
        }
    }
    for path in &example.paths {
        let Some(real) = example_path(path, origin, lines.workspace) else {
            let what = format!("`{}` is not a path without `..`", shortened(path));
            problems.add(&example.span, example.key, what);
            return;
        };
        touched.add_path(real, used_by(tool), lines.workspace);
    }
    touched
        .hosts
        .extend(example.hosts.iter().map(|h| (*h).to_owned()));
    let any_agent = rule.agents.iter().find_map(|agent| agent.literal());
    let arguments = Value::Object(example.arguments.clone());
    let values = example
        .roles
        .as_ref()
        .map(|roles| values(roles, &arguments));
    let service = values.as_deref().map(|values| ServiceArguments {
        values,
        is_meant: true,
    });
    let subject = PolicySubject {
        tool,
        arguments: &arguments,
        service,
        trusted: example.goal.as_slice(),
        paths: &touched.paths,
        hosts: &touched.hosts,
        commands: &touched.commands,
        unread: touched.unread,
        exposed: example.exposed.or(rule.exposed).unwrap_or(false),
        agent: example.agent.or(any_agent).unwrap_or("main"),
        may_name: MayName {
            paths: &touched.named,
            any: touched.names_any,
            masked: false,
        },
    };
    let ruling = judge(std::slice::from_ref(rule), &subject, CallPart::Whole);
    if (ruling.decision == Some(rule.decide)) != example.matches {
        report(problems, rule, example, &ruling);
    }
}

/// Reports an example that its rule decides otherwise.
fn report(
    problems: &mut Problems,
    rule: &PolicyRule,
    example: &PolicyExample,
    ruling: &PolicyRuling,
) {
    let what = if example.matches {
        "this example should match its rule, and does not"
    } else {
        "this example should not match its rule, and does"
    };
    match hint(rule, ruling) {
        Some(hint) => problems.add_with_hint(&example.span, example.key, what, hint),
        None => problems.add(&example.span, example.key, what),
    }
}

fn hint(rule: &PolicyRule, ruling: &PolicyRuling) -> Option<String> {
    if let Some(short) = &ruling.short_of_allow {
        return Some(short.clone());
    }
    (ruling.decision == Some(Decision::Ask) && rule.decide == Decision::Deny)
        .then(|| "it cannot be read whole, so it would be asked about".to_owned())
}

/// The values of an example's call. Every key of it counts as one that the tool's schema names.
fn values(roles: &BTreeMap<String, ArgumentRole>, arguments: &Value) -> Vec<ArgumentValue> {
    let meaning = ToolMeaning {
        action: ToolAction::Sends,
        arguments: roles.clone(),
    };
    meaning.values(arguments, &schema_of(arguments))
}

/// A schema that names every key of the value.
fn schema_of(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let properties = object
                .iter()
                .map(|(key, value)| (key.clone(), schema_of(value)));
            json!({"properties": properties.collect::<Map<_, _>>()})
        }
        Value::Array(values) => {
            let items: Vec<_> = values.iter().map(schema_of).collect();
            json!({"items": {"anyOf": items}})
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!({}),
    }
}

/// Returns the way in which a tool uses the path of an example.
fn used_by(tool: &str) -> PathUse {
    match tool {
        "write" | "edit" => PathUse::Changes,
        _ => PathUse::Reads,
    }
}

#[derive(Default)]
struct ExampleTouches {
    paths: Vec<SubjectPath>,
    hosts: Vec<String>,
    commands: Vec<SimpleCommand>,
    unread: bool,
    named: Vec<SubjectPath>,
    names_any: bool,
}

impl ExampleTouches {
    fn add_reading(&mut self, reading: CommandReading, workspace: &Path) {
        self.commands = reading.commands;
        self.names_any = reading.named.any;
        let named = reading.named.paths.into_iter();
        self.named = named
            .map(|real| SubjectPath::new(real, PathUse::Reads, workspace))
            .collect();
        for fact in reading.facts {
            match fact.does {
                Does::Reads { path } => self.add_path(path, PathUse::Reads, workspace),
                Does::Writes { path } | Does::Removes { path } => {
                    self.add_path(path, PathUse::Changes, workspace);
                }
                Does::Connects { hosts } if hosts.is_empty() => self.hosts.push(String::new()),
                Does::Connects { hosts } => self.hosts.extend(hosts),
                Does::Hides => self.unread = true,
                Does::ChangesRepository
                | Does::RunsCode
                | Does::GetsPackages
                | Does::UsesCredentials
                | Does::Publishes
                | Does::Destroys
                | Does::ChangesSystem => {}
            }
        }
    }

    fn add_path(&mut self, real: PathBuf, used: PathUse, workspace: &Path) {
        self.paths.push(SubjectPath::new(real, used, workspace));
    }
}

/// Returns the path of an example as it would be looked up.
fn example_path(text: &str, origin: &PolicyOrigin, workspace: &Path) -> Option<PathBuf> {
    let path = match text.strip_prefix("~/") {
        Some(below) => origin.home.as_ref()?.join(below),
        None => workspace.join(text),
    };
    let climbs = |c| matches!(c, std::path::Component::ParentDir);
    (!path.components().any(climbs)).then(|| path.components().collect())
}
