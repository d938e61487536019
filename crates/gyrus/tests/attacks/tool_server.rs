//! A server of tools over MCP, described as data: its tools, what they answer from, and a ledger of
//! every call that had an effect.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead, BufReader, Write},
    net::TcpListener,
    path::PathBuf,
    sync::Arc,
    thread,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::http::{self, Message};

/// Stands in a text at the end of what somebody else wrote: more can be planted there.
pub(crate) const PLACE: char = '§';

/// A server: its tools, and its data, by the names of the collections.
#[derive(Deserialize, Clone)]
pub(crate) struct Definition {
    pub(crate) tool: Vec<Tool>,
    #[serde(default)]
    pub(crate) data: BTreeMap<String, Vec<Value>>,
}

/// A tool. One that answers from nothing has an effect.
#[derive(Deserialize, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    #[serde(default)]
    description: String,
    /// The arguments in short: `"string"`, `"string?"` for one that may be null or left out,
    /// `["string"]` for a list, a table for an object.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// The fields of the results in the same way, if the server describes them.
    returns: Option<Value>,
    answers: Option<Answer>,
    /// The answer of a tool that has an effect.
    #[serde(default)]
    says: String,
}

/// The data that a tool answers with.
#[derive(Deserialize, Clone)]
struct Answer {
    /// The collection.
    from: String,
    /// Arguments, each with the fields of which one holds the argument's text.
    #[serde(default)]
    contains: BTreeMap<String, Vec<String>>,
    /// Arguments, each with the field that is the same.
    #[serde(default)]
    is: BTreeMap<String, String>,
    /// Fields that the answer leaves out.
    #[serde(default)]
    without: Vec<String>,
    /// The field that holds the list; without one, the answer is the first that is found.
    list: Option<String>,
    form: Form,
    /// Whether the call itself reaches somebody, and so stands in the ledger.
    #[serde(default)]
    reaches: bool,
}

/// The form of an answer.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "snake_case")]
enum Form {
    /// Structured content, repeated as text.
    Structured,
    /// JSON in the text.
    Json,
    /// JSON in the text, after a sentence.
    Introduced,
    /// YAML, written without quotes.
    Lines,
    /// A table in the text.
    Table,
    /// The text of one field.
    Field(String),
}

/// State that all servers of an office share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The calls that had an effect, in order: the tool, with its server's name, and the arguments.
    pub(crate) ledger: Mutex<Vec<(String, Value)>>,
    pub(crate) planted: Mutex<Planted>,
}

/// Texts that are planted in what the servers answer.
#[derive(Default)]
pub(crate) struct Planted {
    /// The texts; all of them are planted in each answer that has a place for them.
    pub(crate) texts: Vec<Text>,
    /// The number of places by which the first text is moved on.
    pub(crate) turn: usize,
    /// Each place that held a text, with the number of the text.
    pub(crate) held: BTreeSet<(String, usize)>,
}

/// A text that is planted.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Whether it goes on with the lines of a server that joins them.
    pub(crate) lines: bool,
}

/// A server of tools.
pub(crate) struct ToolServer {
    name: String,
    definition: Definition,
    shared: Arc<Shared>,
}

impl ToolServer {
    pub(crate) fn new(name: &str, definition: Definition, shared: Arc<Shared>) -> Self {
        Self {
            name: name.to_owned(),
            definition,
            shared,
        }
    }

    /// Serves over HTTP until the process ends, and returns the address.
    pub(crate) fn over_http(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answered = Message::read(&stream).and_then(|asked| {
                    let message = serde_json::from_slice(&asked.body).unwrap_or_default();
                    match self.answer(&message) {
                        Some(reply) => http::answer(&stream, 200, "application/json", &reply),
                        None => http::answer(&stream, 202, "application/json", ""),
                    }
                });
                // Whoever hangs up has what they wanted.
                drop(answered);
            }
        });
        address
    }

    /// Serves lines over two pipes until the process ends: whoever writes into `asked` finds the
    /// answers in `answered`.
    pub(crate) fn over_pipes(self, asked: PathBuf, answered: PathBuf) {
        thread::spawn(move || {
            loop {
                // One program after the other has them.
                let served = self.serve_lines(&asked, &answered);
                if served.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                    return;
                }
            }
        });
    }

    fn serve_lines(&self, asked: &PathBuf, answered: &PathBuf) -> io::Result<()> {
        let asked = BufReader::new(File::open(asked)?);
        let mut answered = File::options().write(true).open(answered)?;
        for line in asked.lines() {
            let message = serde_json::from_str(&line?).unwrap_or_default();
            if let Some(reply) = self.answer(&message) {
                writeln!(answered, "{reply}")?;
            }
        }
        Ok(())
    }

    /// Answers a message; a notification has no answer.
    fn answer(&self, message: &Value) -> Option<String> {
        let id = message.get("id")?;
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": self.name, "version": "1"},
            }),
            Some("tools/list") => {
                let tools = self.definition.tool.iter().map(Tool::described);
                json!({"tools": tools.collect::<Vec<_>>()})
            }
            Some("tools/call") => self.called(
                params["name"].as_str().unwrap_or_default(),
                &params["arguments"],
            ),
            _ => json!({}),
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
    }

    fn called(&self, name: &str, arguments: &Value) -> Value {
        let mut tools = self.definition.tool.iter();
        let Some(tool) = tools.find(|tool| tool.name == name) else {
            return failed(format!("unknown tool `{name}`"));
        };
        if tool.has_effect() {
            let made = (format!("{}__{name}", self.name), arguments.clone());
            self.shared.ledger.lock().push(made);
        }
        let Some(answer) = &tool.answers else {
            let mut said = json!([tool.says]);
            self.plant(&mut said, name, None);
            return json!({"content": [{"type": "text", "text": said[0]}]});
        };
        let mut found: Vec<Value> = self.definition.data[&answer.from]
            .iter()
            .filter(|one| answer.finds(one, arguments))
            .map(|one| answer.shown(one))
            .collect();
        let mut found = match &answer.list {
            Some(list) => json!({list.as_str(): found}),
            None if found.is_empty() => return failed(format!("{name}: nothing was found")),
            None => found.remove(0),
        };
        self.plant(&mut found, name, Some(&answer.form));
        answer.form.written(&found, answer.list.as_deref())
    }

    /// Plants all texts in the places of an answer, in turn.
    fn plant(&self, answer: &mut Value, tool: &str, form: Option<&Form>) {
        let mut planted = self.shared.planted.lock();
        let mut places = Vec::new();
        places_of(answer, &format!("{}__{tool}", self.name), &mut places);
        let mut texts = vec![String::new(); places.len()];
        let joins = matches!(form, Some(Form::Lines));
        for (number, text) in planted.texts.clone().iter().enumerate() {
            if places.is_empty() || (joins && !text.lines) {
                continue;
            }
            let at = (number + planted.turn) % places.len();
            let between = if joins { "" } else { " " };
            texts[at].push_str(&format!("{between}{}", text.text));
            planted.held.insert((places[at].clone(), number));
        }
        fill(answer, &mut texts.into_iter());
    }
}

fn failed(why: String) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}

/// Collects the paths of the places in a value.
fn places_of(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains(PLACE) => found.push(path.to_owned()),
        Value::Array(values) => values
            .iter()
            .for_each(|value| places_of(value, path, found)),
        Value::Object(object) => {
            for (key, value) in object {
                places_of(value, &format!("{path}.{key}"), found);
            }
        }
        _ => {}
    }
}

/// Puts the texts into the places of a value, in the order of [`places_of`].
fn fill(value: &mut Value, texts: &mut impl Iterator<Item = String>) {
    match value {
        Value::String(text) if text.contains(PLACE) => {
            *text = text.replace(PLACE, &texts.next().unwrap_or_default());
        }
        Value::Array(values) => values.iter_mut().for_each(|value| fill(value, texts)),
        Value::Object(object) => object.values_mut().for_each(|value| fill(value, texts)),
        _ => {}
    }
}

impl Tool {
    pub(crate) fn has_effect(&self) -> bool {
        self.answers.as_ref().is_none_or(|answer| answer.reaches)
    }

    pub(crate) fn reads(&self) -> bool {
        self.answers.is_some()
    }

    pub(crate) fn joins_lines(&self) -> bool {
        let answer = self.answers.as_ref();
        answer.is_some_and(|answer| matches!(answer.form, Form::Lines))
    }

    pub(crate) fn takes(&self, argument: &str) -> bool {
        self.arguments.contains_key(argument)
    }

    fn described(&self) -> Value {
        let properties = self.arguments.iter();
        let properties: Map<_, _> = properties
            .map(|(name, kind)| (name.clone(), schema(kind)))
            .collect();
        let is_needed = |kind: &Value| match kind {
            Value::Array(items) => items[0].is_string(),
            kind => kind.as_str().is_some_and(|kind| !kind.ends_with('?')),
        };
        let required = self.arguments.iter().filter(|(_, kind)| is_needed(kind));
        let required: Vec<_> = required.map(|(name, _)| name).collect();
        let mut described = json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        });
        if let Some(fields) = &self.returns {
            described["outputSchema"] = schema(fields);
        }
        described
    }
}

/// The schema of an argument that is described in short.
fn schema(kind: &Value) -> Value {
    match kind {
        Value::String(kind) => match kind.strip_suffix('?') {
            Some("list") => json!({
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": null,
            }),
            Some(kind) => json!({"anyOf": [{"type": kind}, {"type": "null"}], "default": null}),
            None => json!({"type": kind}),
        },
        Value::Array(items) => json!({"type": "array", "items": schema(&items[0])}),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Map<_, _> = fields
                .map(|(name, kind)| (name.clone(), schema(kind)))
                .collect();
            json!({"type": "object", "properties": fields})
        }
        other => other.clone(),
    }
}

impl Answer {
    /// Whether these arguments ask for this one.
    fn finds(&self, one: &Value, arguments: &Value) -> bool {
        let said = |argument: &String| match &arguments[argument] {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.to_lowercase()),
            other => Some(other.to_string()),
        };
        let text = |field: &String| match &one[field] {
            Value::String(text) => text.replace(PLACE, "").to_lowercase(),
            other => other.to_string().to_lowercase(),
        };
        let holds = |(argument, fields): (&String, &Vec<String>)| {
            said(argument).is_none_or(|said| fields.iter().any(|field| text(field).contains(&said)))
        };
        let is_same = |(argument, field): (&String, &String)| {
            said(argument).is_none_or(|said| text(field) == said)
        };
        self.contains.iter().all(holds) && self.is.iter().all(is_same)
    }

    fn shown(&self, one: &Value) -> Value {
        let mut one = one.clone();
        if let Some(one) = one.as_object_mut() {
            one.retain(|field, _| !self.without.contains(field));
        }
        one
    }
}

impl Form {
    fn written(&self, found: &Value, list: Option<&str>) -> Value {
        let rows = || match list {
            Some(list) => found[list].as_array().cloned().unwrap_or_default(),
            None => vec![found.clone()],
        };
        let text = match self {
            Form::Structured => {
                let text = json!({"type": "text", "text": found.to_string()});
                return json!({"content": [text], "structuredContent": found});
            }
            Form::Json => serde_json::to_string_pretty(found).unwrap(),
            Form::Introduced => format!("Found {}:\n{found}", rows().len()),
            Form::Lines => rows().iter().map(lines).collect(),
            Form::Table => rows().iter().map(row).collect(),
            Form::Field(field) => plain(&found[field]),
        };
        json!({"content": [{"type": "text", "text": text}]})
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One entry of a list in YAML, as a program writes it that joins texts.
fn lines(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten().enumerate();
    let line = |(index, (name, value)): (usize, (&String, &Value))| {
        format!(
            "{} {name}: {}\n",
            if index == 0 { "-" } else { " " },
            plain(value)
        )
    };
    fields.map(line).collect()
}

fn row(row: &Value) -> String {
    let cells = row.as_object().into_iter().flatten();
    let cells: Vec<_> = cells.map(|(_, value)| plain(value)).collect();
    format!("| {} |\n", cells.join(" | "))
}
