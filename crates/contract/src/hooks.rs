//! Hooks: commands of a person or a project that are told of a moment of a run and may refuse what is
//! about to happen, have a person asked about it, or add to what the model reads. They never allow
//! anything. Input, answers and exit codes are those that hooks of other agents use.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{BoxedFuture, Mode};

/// Maximum length of a text from a hook, in characters.
const MAX_TEXT: usize = 10_000;

/// The exit code with which a hook refuses.
const REFUSES: i32 = 2;

/// A moment of a run about which hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookEvent {
    /// Before a call is judged.
    PreToolUse,
    /// After a call.
    PostToolUse,
    /// Before the first step towards a goal.
    UserPromptSubmit,
    /// When the model declares the work finished.
    Stop,
    /// When the model of a run that another run started says that the work is over.
    SubagentStop,
    /// Before the first step of a run.
    SessionStart,
    /// Before the conversation is made shorter.
    PreCompact,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 7] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::UserPromptSubmit,
        Self::Stop,
        Self::SubagentStop,
        Self::SessionStart,
        Self::PreCompact,
    ];

    /// Returns the event's name, as in files and in the input of hooks.
    pub fn word(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::SessionStart => "SessionStart",
            Self::PreCompact => "PreCompact",
        }
    }

    /// Whether plain text printed by a hook is for the model.
    fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }
}

/// The result of running the command of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRun {
    /// The exit code, or the reason why there is none.
    pub exit: Result<i32, String>,
    pub stdout: String,
    pub stderr: String,
}

/// A hook that can be run.
pub trait Hook: Send + Sync {
    /// Returns the command, for people.
    fn name(&self) -> &str;

    /// Runs the hook with this text as standard input. Dropping the future ends it with all its
    /// processes.
    fn run(&self, input: String) -> BoxedFuture<'_, HookRun>;
}

/// The hooks of a process.
pub trait Hooks: Send + Sync {
    /// Returns the hooks for an event about this subject (the name of a tool, the kind of a start or of
    /// a compaction), in the order in which they are run. `told` is what they are told about it.
    fn matching(&self, event: HookEvent, subject: &str, told: &Value) -> Vec<&dyn Hook>;

    /// Whether any of them is about a run as a whole.
    fn are_about_runs(&self) -> bool {
        true
    }
}

/// The joint answer of the hooks to one event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// The reason of a hook that refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses: Option<String>,
    /// The hooks' reasons for asking a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<String>,
    /// Text for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

impl HookAnswer {
    /// Whether the answer has no text for the model.
    pub fn is_silent(&self) -> bool {
        self.refuses.is_none() && self.context.is_empty()
    }

    /// Returns the answer of one hook. Output that cannot be parsed refuses.
    pub fn of(event: HookEvent, run: &HookRun) -> Self {
        let refuses = |why: &str| {
            let why = why.trim();
            let why = if why.is_empty() {
                "it gives no reason"
            } else {
                why
            };
            Self {
                refuses: Some(bounded(why)),
                ..Self::default()
            }
        };
        match &run.exit {
            Ok(0) => {}
            Ok(REFUSES) => return refuses(&run.stderr),
            Ok(code) => return refuses(&format!("it exited with {code}: {}", run.stderr.trim())),
            Err(why) => return refuses(why),
        }
        let text = run.stdout.trim();
        if !text.starts_with('{') {
            let mut answer = Self::default();
            if event.takes_plain_text() && !text.is_empty() {
                answer.context.push(bounded(text));
            }
            return answer;
        }
        let read = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
        match read.and_then(|json| Self::read(event, &json)) {
            Ok(answer) => answer,
            Err(why) => refuses(&format!("its answer is not understood: {why}")),
        }
    }

    /// Reads an answer in JSON.
    fn read(event: HookEvent, json: &Value) -> Result<Self, String> {
        let mut answer = Self::default();
        let reason = |of: &Value, key: &str| match of[key].as_str().map(str::trim) {
            Some(text) if !text.is_empty() => bounded(text),
            _ => "it gives no reason".to_owned(),
        };
        match &json["continue"] {
            Value::Null | Value::Bool(true) => {}
            Value::Bool(false) => answer.refuses = Some(reason(json, "stopReason")),
            other => return Err(format!("`continue` is {other}")),
        }
        match (&json["decision"], json["decision"].as_str()) {
            (Value::Null, _) | (_, Some("approve" | "allow")) => {}
            (_, Some("block" | "deny")) => answer.refuses = Some(reason(json, "reason")),
            (_, Some("ask")) => answer.asks.push(reason(json, "reason")),
            (other, _) => return Err(format!("`decision` is {other}")),
        }
        let own = &json["hookSpecificOutput"];
        if !own.is_null() && !own.is_object() {
            return Err("`hookSpecificOutput` is not an object".to_owned());
        }
        if let Some(other) = own["hookEventName"]
            .as_str()
            .filter(|name| *name != event.word())
        {
            return Err(format!("`hookEventName` is `{other}`"));
        }
        let decision = &own["permissionDecision"];
        match (decision, decision.as_str()) {
            (Value::Null, _) | (_, Some("allow")) => {}
            (_, Some("deny")) => answer.refuses = Some(reason(own, "permissionDecisionReason")),
            (_, Some("ask")) => answer.asks.push(reason(own, "permissionDecisionReason")),
            (other, _) => return Err(format!("`permissionDecision` is {other}")),
        }
        // To make the call as it stands would be looser than what the hook means.
        if !own["updatedInput"].is_null() {
            return Err(
                "a hook cannot change the arguments of a call; it can refuse it".to_owned(),
            );
        }
        for context in [&own["additionalContext"], &json["additionalContext"]] {
            match context {
                Value::Null => {}
                Value::String(text) if text.trim().is_empty() => {}
                Value::String(text) => answer.context.push(bounded(text.trim())),
                other => return Err(format!("`additionalContext` is {other}")),
            }
        }
        Ok(answer)
    }

    /// Adds the answer of another hook, under its name. Returns whether the other hooks need not be
    /// asked.
    pub fn add(&mut self, name: &str, other: Self) -> bool {
        self.asks.extend(
            other
                .asks
                .iter()
                .map(|why| format!("the hook `{name}` asks: {why}")),
        );
        self.context.extend(other.context);
        if let Some(why) = other.refuses {
            self.refuses
                .get_or_insert(format!("the hook `{name}` refuses: {why}"));
        }
        self.refuses.is_some()
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// Returns the word for a mode that hooks of other agents know.
pub fn field_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::ReadOnly => "plan",
        Mode::Ask => "default",
        Mode::Edits => "acceptEdits",
        Mode::Auto => "bypassPermissions",
        Mode::Never => "dontAsk",
    }
}

/// Returns the arguments of a call with the keys that hooks of other agents read, beside our own.
pub fn field_tool_input(tool: &str, arguments: &Value, workspace: &Path) -> Value {
    // Tools take an object in a text as the object.
    let read = arguments
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let mut input: Value = read.unwrap_or_else(|| arguments.clone());
    let Some(fields) = input.as_object_mut() else {
        return json!({ "input": arguments });
    };
    if !["read", "edit", "write", "shell"].contains(&tool) {
        return input;
    }
    let path = fields.get("path").and_then(Value::as_str);
    if let Some(path) = path.map(|path| workspace.join(path)) {
        fields.insert("file_path".to_owned(), json!(path));
    }
    for (own, theirs) in [("old_text", "old_string"), ("new_text", "new_string")] {
        if let Some(value) = fields.get(own).cloned() {
            fields.insert(theirs.to_owned(), value);
        }
    }
    input
}
