//! Finds calls in a model's text.
//!
//! A call is a JSON object alone: in a fence or a tag that contains nothing else, or from the start
//! of a line to the end of one; several may follow each other or stand in an array. Models write it
//! in many spellings: see [`WrittenCall::read`]. An object in a sentence, in a string or among code is
//! not a call, nor is one that is incomplete or names no tool: it stays text. One that names a tool
//! that is not offered is a call only where nothing else can be meant: in a tag, beside a call of a
//! tool that is, or as all that the reply says.

use serde_json::{Map, Value};

use crate::arguments::{self, MAX_NESTING};

/// Maximum number of calls of one reply; later ones stay text.
const MAX_CALLS: usize = 64;

/// Maximum number of times that the whole reply may be scanned.
const LOOKS: usize = 8;

/// Words after the opening of a fence with calls.
const LANGUAGES: [&str; 7] = [
    "",
    "json",
    "xml",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_code",
];

/// Tags around calls.
const TAGS: [&str; 5] = [
    "tool_call",
    "tool_calls",
    "function_call",
    "function_calls",
    "tools",
];

/// Keys of a call's tool, and of its arguments.
const TOOL_KEYS: [&str; 4] = ["tool", "name", "function", "tool_name"];
const ARGUMENT_KEYS: [&str; 5] = ["arguments", "parameters", "args", "input", "tool_input"];

const LIST_KEYS: [&str; 3] = ["tool_calls", "calls", "tools"];

/// A piece of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum ReplyPart {
    /// Text, without blank lines around it.
    Text(String),
    /// A call, with the tool's name and the arguments as written, of any type.
    Call(WrittenCall),
}

#[derive(Debug, PartialEq)]
pub(super) struct WrittenCall {
    pub(super) tool: String,
    /// The arguments, of any type.
    pub(super) arguments: Value,
    /// Whether the call has both a name and arguments, so that it can only be a call.
    is_explicit: bool,
}

impl WrittenCall {
    /// Reads a call in any known spelling: `{"tool"|"name"|"function": NAME,
    /// "arguments"|"parameters"|…: {…}}`, with the arguments as a text of JSON, or beside the name;
    /// `{"type": "function", "function": {…}}`; `{NAME: {…}}`.
    fn read(value: &Value, names: &[&str]) -> Option<Self> {
        let fields = value.as_object()?;
        if let Some(inner @ Value::Object(_)) = fields.get("function") {
            return Self::read(inner, names);
        }
        let name_key = TOOL_KEYS.iter().find(|key| {
            let name = fields.get(**key);
            name.is_some_and(Value::is_string)
        });
        let Some(name_key) = name_key else {
            let (name, arguments) = fields.iter().next().filter(|_| fields.len() == 1)?;
            let tool = offered(name, names).filter(|_| arguments.is_object())?;
            return Some(Self {
                tool: tool.to_owned(),
                arguments: arguments.clone(),
                is_explicit: false,
            });
        };
        let tool = fields[*name_key].as_str()?.to_owned();
        if let Some(arguments) = ARGUMENT_KEYS.iter().find_map(|key| fields.get(*key)) {
            let arguments = match arguments {
                Value::String(raw) => arguments::parse(raw.clone(), Value::Null),
                Value::Null => Value::Object(Map::new()),
                other => other.clone(),
            };
            return Some(Self {
                tool,
                arguments,
                is_explicit: true,
            });
        }
        offered(&tool, names)?;
        let mut beside = fields.clone();
        beside.remove(*name_key);
        if beside.get("type").is_some_and(|kind| kind == "function") {
            beside.remove("type");
        }
        Some(Self {
            tool,
            arguments: Value::Object(beside),
            is_explicit: false,
        })
    }
}

/// Returns the pieces of `text`, in order. Empty texts are left out. `is_whole` says that no length
/// limit cut it off, so that brackets which are missing at its end were forgotten.
pub(super) fn pieces(text: &str, names: &[&str], is_whole: bool) -> Vec<ReplyPart> {
    let mut reader = WholeCallReader {
        names,
        is_whole,
        pieces: Vec::new(),
        plain: String::new(),
        calls: 0,
        steps_left: LOOKS.saturating_mul(text.len()).saturating_add(1),
    };
    let mut rest = text;
    while !rest.is_empty() {
        rest = reader.next(rest);
    }
    reader.end_text();
    reader.pieces
}

struct WholeCallReader<'a> {
    names: &'a [&'a str],
    is_whole: bool,
    pieces: Vec<ReplyPart>,
    /// The text since the last call.
    plain: String,
    calls: usize,
    /// Number of bytes that may still be scanned for closing brackets: text that opens many
    /// brackets and never closes them would be scanned as often.
    steps_left: usize,
}

impl WholeCallReader<'_> {
    /// Reads what begins with the first line of `text`; returns the rest.
    fn next<'t>(&mut self, text: &'t str) -> &'t str {
        let line = first_line(text);
        let start = text.trim_start_matches([' ', '\t']);
        if let Some(fenced) = start.strip_prefix("```") {
            let inside = fenced.trim_start_matches('`');
            if let Some(rest) = self.fence(inside) {
                return rest;
            }
            let is_closed = first_line(inside).contains("```");
            let more = if is_closed {
                0
            } else {
                end_of_fence(&text[line.len()..])
            };
            return self.keep(text, line.len() + more);
        }
        if let Some(rest) = self.tag(start) {
            return rest;
        }
        if let Some((calls, rest)) = self.calls_in(start) {
            let (blank, after) = rest.split_at(first_line(rest).len());
            // The line may end with the tag that was never opened.
            let blank = blank.trim();
            let is_end = blank.is_empty() || blank.starts_with("</");
            let is_all = after.trim().is_empty() && self.is_beginning();
            if is_end && self.take(calls, is_all) {
                return after;
            }
        }
        self.keep(text, line.len())
    }

    /// Whether nothing has been read before.
    fn is_beginning(&self) -> bool {
        self.pieces.is_empty() && self.plain.trim().is_empty()
    }

    /// Returns the rest after a tag that contains only calls; `None` for others.
    fn tag<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let opened = text.strip_prefix('<')?;
        let (tag, inside) = opened.split_once('>')?;
        // `<function=NAME>` has the arguments alone.
        if let Some(tool) = tag.strip_prefix("function=") {
            let start = inside.trim_start();
            let length = self.extent(start)?;
            let written = WrittenCall {
                tool: tool.trim_matches('"').to_owned(),
                arguments: arguments::read_leniently(&start[..length])?,
                is_explicit: true,
            };
            let rest = start[length..].trim_start();
            let rest = rest.strip_prefix("</function>").unwrap_or(rest);
            return self.take(vec![written], true).then_some(rest);
        }
        if !TAGS.contains(&tag) {
            return None;
        }
        let inside = inside.trim_start();
        let unfenced = inside
            .strip_prefix("```json")
            .or(inside.strip_prefix("```"));
        let (calls, rest) = self.calls_in(unfenced.unwrap_or(inside))?;
        let rest = rest.trim_start();
        let rest = match unfenced {
            Some(_) => rest.trim_start_matches('`').trim_start(),
            None => rest,
        };
        let after = match rest.strip_prefix("</") {
            Some(closed) => closed.split_once('>')?.1,
            None if rest.is_empty() || rest.starts_with('<') => rest,
            None => return None,
        };
        self.take(calls, true).then_some(after)
    }

    /// Returns the rest after a fence that contains only calls; `None` for others.
    fn fence<'t>(&mut self, inside: &'t str) -> Option<&'t str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let content = inside.trim_start_matches(is_word);
        let language = &inside[..inside.len() - content.len()];
        if !LANGUAGES.contains(&language) {
            return None;
        }
        let is_first = self.is_beginning();
        let start = content.trim_start();
        if start.starts_with('<') {
            let rest = self.tag(start)?.trim_start();
            return Some(rest.trim_start_matches('`'));
        }
        let (calls, rest) = self.calls_in(content)?;
        let rest = rest.trim_start();
        // A model may end with the object and not close the fence.
        let after = match rest.strip_prefix("```") {
            Some(after) => after.trim_start_matches('`'),
            None if rest.is_empty() => rest,
            None => return None,
        };
        let is_all = is_first && after.trim().is_empty();
        self.take(calls, is_all).then_some(after)
    }

    /// Returns the calls at the start of `text`, at least one, and the rest.
    fn calls_in<'t>(&mut self, text: &'t str) -> Option<(Vec<WrittenCall>, &'t str)> {
        let mut calls: Vec<WrittenCall> = Vec::new();
        let mut rest = text;
        while calls.len() <= MAX_CALLS {
            // Some separate them as in a list without brackets.
            let start = rest.trim_start().trim_start_matches(',').trim_start();
            let Some((more, after)) = self.calls_at(start) else {
                break;
            };
            calls.extend(more);
            rest = after;
        }
        let are_few = self.calls + calls.len() <= MAX_CALLS;
        (!calls.is_empty() && are_few).then_some((calls, rest))
    }

    /// Returns the calls in the JSON value at the start of `text`, and the rest. Its brackets may be
    /// doubled, as in a template, or be missing at the end.
    fn calls_at<'t>(&mut self, text: &'t str) -> Option<(Vec<WrittenCall>, &'t str)> {
        if let Some(length) = self.extent(text) {
            let (value, rest) = text.split_at(length);
            if let Some(calls) = self.calls_of(value) {
                return Some((calls, without_surplus(rest)));
            }
        }
        if let Some(once) = text.strip_prefix('{').filter(|once| once.starts_with('{')) {
            let (calls, rest) = self.calls_at(once)?;
            return Some((calls, without_surplus(rest)));
        }
        if !self.is_whole || !text.starts_with('{') {
            return None;
        }
        let unfenced = text.trim_end().trim_end_matches('`').trim_end();
        let closed = ["}", "}}", "]}"].map(|missing| format!("{unfenced}{missing}"));
        let calls = closed.iter().find_map(|closed| {
            let length = self
                .extent(closed)
                .filter(|length| *length == closed.len())?;
            self.calls_of(&closed[..length])
        })?;
        Some((calls, &text[unfenced.len()..]))
    }

    /// Returns the calls in one JSON value.
    fn calls_of(&self, value: &str) -> Option<Vec<WrittenCall>> {
        let value = arguments::read_leniently(value)?;
        let listed = match &value {
            Value::Array(all) => Some(all),
            Value::Object(fields) if fields.len() == 1 => {
                let list = LIST_KEYS.iter().find_map(|key| fields.get(*key));
                list.and_then(Value::as_array)
            }
            _ => None,
        };
        let read = |value: &Value| WrittenCall::read(value, self.names);
        let calls: Vec<_> = match listed {
            Some(all) => all.iter().map(read).collect::<Option<_>>()?,
            None => vec![read(&value)?],
        };
        (!calls.is_empty()).then_some(calls)
    }

    /// Returns the length of the object or array at the start of `text`, by its brackets alone.
    /// `None` if there is none, it does not end, or it nests too deep.
    fn extent(&mut self, text: &str) -> Option<usize> {
        if !text.starts_with(['{', '[']) {
            return None;
        }
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        for (at, byte) in text.bytes().enumerate() {
            self.steps_left = self.steps_left.checked_sub(1)?;
            match byte {
                _ if std::mem::take(&mut escaped) => {}
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth -= 1,
                _ => {}
            }
            match depth {
                0 => return Some(at + 1),
                1..=MAX_NESTING => {}
                _ => return None,
            }
        }
        None
    }

    /// Adds these values if they are calls. `is_plain` says that nothing but calls can be meant.
    fn take(&mut self, calls: Vec<WrittenCall>, is_plain: bool) -> bool {
        let is_offered = |call: &WrittenCall| offered(&call.tool, self.names).is_some();
        let are_calls =
            calls.iter().any(is_offered) || (is_plain && calls.iter().all(|call| call.is_explicit));
        if are_calls {
            self.end_text();
            self.calls += calls.len();
            self.pieces.extend(calls.into_iter().map(ReplyPart::Call));
        }
        are_calls
    }

    /// Keeps the first `length` bytes as text.
    fn keep<'t>(&mut self, text: &'t str, length: usize) -> &'t str {
        let (kept, rest) = text.split_at(length);
        self.plain.push_str(kept);
        rest
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.plain);
        let text = text.trim_matches('\n').trim_end();
        if !text.trim().is_empty() {
            self.pieces.push(ReplyPart::Text(text.to_owned()));
        }
    }
}

/// Returns the rest of a text after surplus closing brackets at the end of their line.
fn without_surplus(rest: &str) -> &str {
    let after = rest.trim_start_matches(['}', ']']);
    let ends_line = after
        .trim_start_matches([' ', '\t'])
        .starts_with(['\n', '\r', '`', '<']);
    if after.is_empty() || ends_line {
        after
    } else {
        rest
    }
}

/// Returns the first line, with its line feed.
fn first_line(text: &str) -> &str {
    text.split_inclusive('\n').next().unwrap_or_default()
}

/// Returns the length of `text`, which is inside a fence, up to the line that closes it.
fn end_of_fence(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if line.trim_start().starts_with("```") {
            break;
        }
    }
    length
}

/// Returns the offered tool that a name means: the same, or the only one that differs by the case
/// of letters, hyphens, and a prefix such as `functions.`.
pub(super) fn offered<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    if let Some(same) = names.iter().find(|offered| **offered == name) {
        return Some(same);
    }
    let last = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let wanted = plain(last);
    let mut alike = names.iter().filter(|offered| plain(offered) == wanted);
    let first = alike.next()?;
    alike.next().is_none().then_some(first)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', ' '], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_one_tool() {
        let names = ["shell", "find_tools", "Read", "read"];
        for (name, expected) in [
            ("shell", Some("shell")),
            ("functions.shell", Some("shell")),
            ("default_api:Shell", Some("shell")),
            ("find-tools", Some("find_tools")),
            ("read", Some("read")),
            ("READ", None),
            ("bash", None),
            ("", None),
        ] {
            assert_eq!(offered(name, &names), expected, "{name}");
        }
    }
}
