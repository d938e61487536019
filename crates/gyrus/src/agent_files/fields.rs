//! The settings of an agent file, each with the mistakes that it may have.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use gyrus_contract::Microdollars;
use gyrus_runtime::{
    TopicPattern,
    agents::{AgentConfig, Agents, MailboxOverflow},
    queue::is_label,
    request::{RefusedRequest, RunOptions, options},
    triggers::DayBudget,
};

use gyrus_text::{Yaml, YamlNode};
use serde_json::{Map, Value};

use super::{agent_file::AgentFile, mistake::Mistake};

/// Maximum number of events that wait for an agent.
const MAX_MAILBOX: usize = 65_536;

const KEYS: [&str; 10] = [
    "name",
    "goal",
    "workdir",
    "subscribe",
    "options",
    "needs",
    "budget",
    "mailbox",
    "overflow",
    "triggers",
];

const BUDGET_KEYS: [&str; 3] = ["runs", "tokens", "cost"];

pub(super) struct FieldLines {
    pub(super) workdir: usize,
    pub(super) options: Option<usize>,
}

/// A mapping of a file, with the line on which it begins.
pub(super) struct FieldMap {
    pub(super) line: usize,
    /// The keys, each with its line, and their values.
    pub(super) fields: Vec<(usize, String, YamlNode)>,
}

impl FieldMap {
    pub(super) fn get(&self, key: &str) -> Option<(usize, YamlNode)> {
        let mut fields = self.fields.iter();
        let (line, _, node) = fields.find(|(_, known, _)| known == key)?;
        Some((*line, node.clone()))
    }
}

/// Reads the settings of a file, and collects the mistakes in them.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) mistakes: Vec<Mistake>,
}

impl Fields {
    /// Returns the agent; `None` if it cannot be checked any further.
    pub(super) fn agent(
        &mut self,
        root: YamlNode,
        stem: &str,
        body: &str,
        body_line: usize,
        person: Option<&Path>,
    ) -> Option<(AgentFile, FieldLines)> {
        let root = &self.settings(root, "the settings", &KEYS);
        let name = self.text(root, "name");
        let (name_line, name) = name.unwrap_or_else(|| (1, stem.to_owned()));
        if let Err(error) = Agents::check_name(&name) {
            self.mistake(name_line, error.to_string());
        }
        let instructions = self.instructions(root, body, body_line);
        let mut config = AgentConfig::new(name);
        config.subscriptions = self.subscriptions(root);
        let overflow = config.overflow;
        config.overflow = self.read(root, "overflow", overflow, |word| match word {
            "drop-oldest" => Ok(MailboxOverflow::DropOldest),
            "drop-newest" => Ok(MailboxOverflow::DropNewest),
            _ => Err("it must be drop-oldest or drop-newest"),
        });
        let mailbox = config.mailbox;
        config.mailbox = self.read(root, "mailbox", mailbox, |text| match text.parse() {
            Ok(size) if (1..=MAX_MAILBOX).contains(&size) => Ok(size),
            Ok(_) => Err(format!("1 to {MAX_MAILBOX} events")),
            Err(_) => Err("it is not a whole number".to_owned()),
        });
        let budget = self.budget(root);
        let (options, first_option) = self.options(root);
        let needs = self.needs(root);
        let workdir = self.workdir(root, person);
        let triggers = self.triggers(root, workdir.as_ref().map(|(_, path)| &**path), person);
        let (line, workdir) = workdir?;
        let lines = FieldLines {
            workdir: line,
            options: first_option,
        };
        let agent = AgentFile {
            instructions,
            workdir,
            options,
            needs,
            budget,
            triggers,
            config,
        };
        Some((agent, lines))
    }

    fn instructions(&mut self, root: &FieldMap, body: &str, body_line: usize) -> String {
        let body = body.trim();
        let (line, wrong) = match (self.text(root, "goal"), body.is_empty()) {
            (Some((_, goal)), true) if !goal.trim().is_empty() => return goal,
            (Some((line, _)), true) => (line, "invalid `goal`: it is empty"),
            (Some((line, _)), false) => {
                let both = "both `goal` and the text below the settings say what to do";
                (line, both)
            }
            (None, true) => {
                let nothing = "nothing says what to do: write it below the settings";
                (body_line, nothing)
            }
            (None, false) => return body.to_owned(),
        };
        self.mistake(line, wrong);
        String::new()
    }

    fn workdir(&mut self, root: &FieldMap, person: Option<&Path>) -> Option<(usize, PathBuf)> {
        let Some((line, given)) = self.text(root, "workdir") else {
            self.mistake(1, "`workdir` is missing: the folder to work in");
            return None;
        };
        let path = match (given.strip_prefix("~/"), person) {
            (Some(rest), Some(person)) => person.join(rest),
            _ => PathBuf::from(&given),
        };
        if !path.is_absolute() {
            self.mistake(
                line,
                "invalid `workdir`: it begins neither with / nor with ~/",
            );
            return None;
        }
        Some((line, path))
    }

    fn subscriptions(&mut self, root: &FieldMap) -> Vec<TopicPattern> {
        let mut patterns = Vec::new();
        for (line, text) in self.texts(root, "subscribe", "topics") {
            match text.parse() {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => self.mistake(line, format!("{error}")),
            }
        }
        patterns
    }

    /// Returns the labels that a machine must have to carry out a run.
    fn needs(&mut self, root: &FieldMap) -> Vec<String> {
        let mut needs = Vec::new();
        for (line, label) in self.texts(root, "needs", "labels") {
            if is_label(&label) {
                needs.push(label);
            } else {
                self.mistake(line, "a label is one word, as `gpu`");
            }
        }
        needs
    }

    /// Returns the texts of a list with their lines. One text alone is a list of one.
    pub(super) fn texts(&mut self, root: &FieldMap, key: &str, of: &str) -> Vec<(usize, String)> {
        let Some((_, node)) = root.get(key) else {
            return Vec::new();
        };
        let items = match node.value {
            Yaml::List(items) => items,
            Yaml::Text(..) => vec![node],
            Yaml::Map(_) => {
                self.mistake(node.line, format!("`{key}` is a list of {of}"));
                Vec::new()
            }
        };
        let mut texts = Vec::new();
        for YamlNode { line, value } in items {
            match value {
                Yaml::Text(text, _) => texts.push((line, text)),
                _ => self.mistake(line, format!("`{key}` is a list of {of}, each a text")),
            }
        }
        texts
    }

    fn budget(&mut self, root: &FieldMap) -> DayBudget {
        let mut budget = DayBudget::default();
        let Some((_, node)) = root.get("budget") else {
            return budget;
        };
        let settings = self.settings(node, "`budget`", &BUDGET_KEYS);
        for (line, key, YamlNode { value, .. }) in settings.fields {
            let Yaml::Text(text, _) = value else {
                self.mistake(line, format!("invalid `{key}`: it is not a number"));
                continue;
            };
            let number = text.parse::<u64>();
            match (&*key, number) {
                ("runs", Ok(number @ 1..)) => budget.runs = Some(number),
                ("tokens", Ok(number @ 1..)) => budget.tokens = Some(number),
                ("cost", _) => match text.parse() {
                    Ok(Microdollars(micros)) => budget.cost_microdollars = Some(micros),
                    Err(_) => self.mistake(line, "invalid `cost`: it is not US dollars"),
                },
                ("runs" | "tokens", _) => {
                    let message = format!("invalid `{key}`: it is not a whole number of 1 or more");
                    self.mistake(line, message);
                }
                _ => {}
            }
        }
        budget
    }

    fn options(&mut self, root: &FieldMap) -> (RunOptions, Option<usize>) {
        let mut given = Map::new();
        let Some((_, node)) = root.get("options") else {
            return (RunOptions::default(), None);
        };
        let before = self.mistakes.len();
        let fields = self.map(node, "`options`");
        let first = fields.first().map(|(line, ..)| *line);
        for (line, key, node) in fields {
            let Some(value) = value(node.value) else {
                self.mistake(line, format!("invalid `{key}`: it has no fields"));
                continue;
            };
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            match options::read(alone) {
                Ok(_) => drop(given.insert(key, value)),
                Err(RefusedRequest { message, hint }) => self.mistakes.push(Mistake {
                    line,
                    message,
                    hint,
                }),
            }
        }
        if self.mistakes.len() > before {
            return (RunOptions::default(), first);
        }
        (options::read(given).unwrap_or_default(), first)
    }

    pub(super) fn text(&mut self, of: &FieldMap, key: &str) -> Option<(usize, String)> {
        let (line, node) = of.get(key)?;
        match node.value {
            Yaml::Text(text, _) => Some((line, text)),
            Yaml::List(_) | Yaml::Map(_) => {
                self.mistake(line, format!("invalid `{key}`: it is not a text"));
                None
            }
        }
    }

    /// Reads a text; `or` replaces one that is missing or invalid.
    pub(super) fn read<T, E: Display>(
        &mut self,
        of: &FieldMap,
        key: &str,
        or: T,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        match self.text(of, key).map(|(line, text)| (line, read(&text))) {
            Some((_, Ok(value))) => value,
            Some((line, Err(error))) => {
                self.mistake(line, format!("invalid `{key}`: {error}"));
                or
            }
            None => or,
        }
    }

    /// Reads a mapping, and reports every unknown key.
    pub(super) fn settings(&mut self, node: YamlNode, what: &str, known: &[&str]) -> FieldMap {
        let line = node.line;
        let fields = self.map(node, what);
        let settings = FieldMap { line, fields };
        self.only(&settings, known);
        settings
    }

    pub(super) fn map(&mut self, node: YamlNode, what: &str) -> Vec<(usize, String, YamlNode)> {
        match node.value {
            Yaml::Map(fields) => fields,
            // A key without a value.
            Yaml::Text(text, true) if text.is_empty() || text == "~" => Vec::new(),
            Yaml::Text(..) | Yaml::List(_) => {
                self.mistake(
                    node.line,
                    format!("invalid {what}: there are no `key: value`"),
                );
                Vec::new()
            }
        }
    }

    /// Notes a mistake for each unknown key.
    pub(super) fn only(&mut self, settings: &FieldMap, known: &[&str]) {
        for (line, key, _) in &settings.fields {
            if known.contains(&key.as_str()) {
                continue;
            }
            let mut mistake = Mistake::new(*line, format!("there is no setting `{key}`"));
            mistake.hint = Some(match gyrus_text::closest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are: {}", known.join(", ")),
            });
            self.mistakes.push(mistake);
        }
    }

    pub(super) fn mistake(&mut self, line: usize, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(line, message.into()));
    }
}

/// Returns the value of an option: a switch only without quotes.
fn value(node: Yaml) -> Option<Value> {
    match node {
        Yaml::Text(text, true) if text == "true" => Some(Value::Bool(true)),
        Yaml::Text(text, true) if text == "false" => Some(Value::Bool(false)),
        Yaml::Text(text, _) => Some(Value::String(text)),
        Yaml::List(items) => items.into_iter().map(|item| value(item.value)).collect(),
        Yaml::Map(_) => None,
    }
}
