//! The settings of an agent file, each with the mistakes that it may have.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use gyrus_runtime::{
    TopicPattern,
    agents::{AgentConfig, Agents, MailboxOverflow},
    queue::{OptionValue, is_label},
    triggers::DayBudget,
};

use gyrus_text::{Yaml, YamlNode};

use super::{agent_file::AgentFile, mistake::Mistake};

/// Maximum number of events that wait for an agent.
const MAX_MAILBOX: u64 = 65_536;

/// The keys of a file.
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

/// The lines of fields that are checked together with others.
pub(super) struct Lines {
    pub(super) workdir: usize,
    pub(super) options: BTreeMap<String, usize>,
}

/// The settings of a file, and the mistakes that were found up to now.
pub(super) struct Fields {
    fields: Vec<(usize, String, YamlNode)>,
    pub(super) mistakes: Vec<Mistake>,
}

impl Fields {
    pub(super) fn new(root: YamlNode) -> Self {
        let mut fields = Self {
            fields: Vec::new(),
            mistakes: Vec::new(),
        };
        fields.fields = fields.map(root, "the settings");
        let known = fields.fields.clone();
        fields.only(&known, &KEYS);
        fields
    }

    /// Returns the agent; `None` if it cannot be checked any further.
    pub(super) fn agent(
        &mut self,
        stem: &str,
        body: &str,
        body_line: usize,
        person: Option<&Path>,
    ) -> Option<(AgentFile, Lines)> {
        let (name_line, name) = self.text("name").unwrap_or_else(|| (1, stem.to_owned()));
        if let Err(error) = Agents::check_name(&name) {
            self.mistake(name_line, error.to_string());
        }
        let instructions = self.instructions(body, body_line);
        let mut config = AgentConfig::new(name);
        config.subscriptions = self.subscriptions();
        self.mailbox(&mut config);
        let budget = self.budget();
        let (options, options_lines) = self.options();
        let needs = self.needs();
        let workdir = self.workdir(person);
        let triggers = self.triggers(workdir.as_ref().map(|(_, path)| &**path), person);
        let (line, workdir) = workdir?;
        let lines = Lines {
            workdir: line,
            options: options_lines,
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

    fn instructions(&mut self, body: &str, body_line: usize) -> String {
        let body = body.trim();
        let goal = self.text("goal");
        match (goal, body.is_empty()) {
            (Some((_, goal)), true) if !goal.trim().is_empty() => goal,
            (Some((line, _)), true) => {
                self.mistake(line, "invalid `goal`: it is empty".to_owned());
                String::new()
            }
            (Some((line, _)), false) => {
                let message = "both `goal` and the text below the settings say what to do";
                self.mistake(line, message.to_owned());
                String::new()
            }
            (None, true) => {
                let message = "nothing says what to do: write it below the settings";
                self.mistake(body_line, message.to_owned());
                String::new()
            }
            (None, false) => body.to_owned(),
        }
    }

    fn workdir(&mut self, person: Option<&Path>) -> Option<(usize, PathBuf)> {
        let Some((line, given)) = self.text("workdir") else {
            self.mistake(1, "`workdir` is missing: the folder to work in".to_owned());
            return None;
        };
        let path = match (given.strip_prefix("~/"), person) {
            (Some(rest), Some(person)) => person.join(rest),
            _ => PathBuf::from(&given),
        };
        if !path.is_absolute() {
            let message = "invalid `workdir`: it begins neither with / nor with ~/";
            self.mistake(line, message.to_owned());
            return None;
        }
        Some((line, path))
    }

    fn subscriptions(&mut self) -> Vec<TopicPattern> {
        let mut patterns = Vec::new();
        for (line, text) in self.texts("subscribe", "topics") {
            match text.parse() {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => self.mistake(line, format!("{error}")),
            }
        }
        patterns
    }

    /// Returns the labels that the machine must have which carries out a run.
    fn needs(&mut self) -> BTreeSet<String> {
        let mut needs = BTreeSet::new();
        for (line, label) in self.texts("needs", "labels") {
            if is_label(&label) {
                needs.insert(label);
            } else {
                self.mistake(line, "a label is one word, as `gpu`".to_owned());
            }
        }
        needs
    }

    /// Returns the texts of a list with their lines. One text alone is a list of one.
    fn texts(&mut self, key: &str, of: &str) -> Vec<(usize, String)> {
        let Some((_, node)) = self.get(key) else {
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

    fn mailbox(&mut self, config: &mut AgentConfig) {
        if let Some((line, number)) = self.number("mailbox") {
            match usize::try_from(number) {
                Ok(size) if (1..=MAX_MAILBOX).contains(&number) => config.mailbox = size,
                _ => self.mistake(
                    line,
                    format!("invalid `mailbox`: 1 to {MAX_MAILBOX} events"),
                ),
            }
        }
        if let Some((line, word)) = self.text("overflow") {
            match &*word {
                "drop-oldest" => config.overflow = MailboxOverflow::DropOldest,
                "drop-newest" => config.overflow = MailboxOverflow::DropNewest,
                _ => {
                    let message = "invalid `overflow`: it is drop-oldest or drop-newest";
                    self.mistake(line, message.to_owned());
                }
            }
        }
    }

    fn budget(&mut self) -> DayBudget {
        let mut budget = DayBudget::default();
        let Some((_, node)) = self.get("budget") else {
            return budget;
        };
        let fields = self.map(node, "`budget`");
        self.only(&fields, &BUDGET_KEYS);
        for (line, key, YamlNode { value, .. }) in fields {
            let Yaml::Text(text, _) = value else {
                self.mistake(line, format!("invalid `{key}`: it is not a number"));
                continue;
            };
            let number = text.parse::<u64>();
            match (&*key, number) {
                ("runs", Ok(number @ 1..)) => budget.runs = Some(number),
                ("tokens", Ok(number @ 1..)) => budget.tokens = Some(number),
                ("cost", _) => match text.parse::<f64>() {
                    Ok(dollars) if (0.0..=1e9).contains(&dollars) => {
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "it is in the range"
                        )]
                        let micros = (dollars * 1e6).round() as u64;
                        budget.cost_microdollars = Some(micros);
                    }
                    _ => self.mistake(line, "invalid `cost`: it is not US dollars".to_owned()),
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

    fn options(&mut self) -> (BTreeMap<String, OptionValue>, BTreeMap<String, usize>) {
        let (mut options, mut lines) = (BTreeMap::new(), BTreeMap::new());
        let Some((_, node)) = self.get("options") else {
            return (options, lines);
        };
        for (line, key, node) in self.map(node, "`options`") {
            let value = match node.value {
                Yaml::Text(text, is_plain) => value(text, is_plain),
                Yaml::List(items) => {
                    let texts = items.into_iter().map(|item| match item.value {
                        Yaml::Text(text, _) => Some(text),
                        Yaml::List(_) | Yaml::Map(_) => None,
                    });
                    match texts.collect() {
                        Some(texts) => OptionValue::Texts(texts),
                        None => {
                            self.mistake(line, format!("invalid `{key}`: a list of texts"));
                            continue;
                        }
                    }
                }
                Yaml::Map(_) => {
                    self.mistake(line, format!("invalid `{key}`: it has no fields"));
                    continue;
                }
            };
            lines.insert(key.clone(), line);
            options.insert(key, value);
        }
        (options, lines)
    }

    pub(super) fn get(&self, key: &str) -> Option<(usize, YamlNode)> {
        let mut fields = self.fields.iter();
        let (line, _, node) = fields.find(|(_, known, _)| known == key)?;
        Some((*line, node.clone()))
    }

    fn text(&mut self, key: &str) -> Option<(usize, String)> {
        let (line, node) = self.get(key)?;
        match node.value {
            Yaml::Text(text, _) => Some((line, text)),
            Yaml::List(_) | Yaml::Map(_) => {
                self.mistake(line, format!("invalid `{key}`: it is not a text"));
                None
            }
        }
    }

    fn number(&mut self, key: &str) -> Option<(usize, u64)> {
        let (line, text) = self.text(key)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.mistake(line, format!("invalid `{key}`: it is not a whole number"));
        }
        Some((line, number?))
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

    /// Notes every key that is not known.
    pub(super) fn only(&mut self, fields: &[(usize, String, YamlNode)], known: &[&str]) {
        for (line, key, _) in fields {
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

    pub(super) fn mistake(&mut self, line: usize, message: String) {
        self.mistakes.push(Mistake::new(line, message));
    }
}

/// Returns the value of an option: a switch or a number only without quotes.
fn value(text: String, is_plain: bool) -> OptionValue {
    if is_plain {
        match &*text {
            "true" => return OptionValue::Switch(true),
            "false" => return OptionValue::Switch(false),
            _ => {}
        }
        if let Ok(number) = text.parse() {
            return OptionValue::Number(number);
        }
    }
    OptionValue::Text(text)
}
