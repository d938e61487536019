//! Finds calls in a model's text.
//!
//! A call is a JSON object `{"tool": NAME, "arguments": …}`, or an array of such, alone: in a fence
//! that contains nothing else, or from the start of a line to the end of one. An object in a
//! sentence, in a string or among code is not a call, nor is one that is incomplete, not valid
//! JSON, or not of an offered tool: it stays text.

use serde::Deserialize;
use serde_json::Value;

use crate::arguments::MAX_NESTING;

/// Maximum number of calls of one reply; later ones stay text.
const MAX_CALLS: usize = 64;

/// Maximum number of times that all of a reply is scanned.
const LOOKS: usize = 8;

/// Words after the opening of a fence with calls.
const LANGUAGES: [&str; 5] = ["", "json", "tool", "tool_call", "tool_calls"];

/// A piece of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// Text, without blank lines around it.
    Text(String),
    /// A call of an offered tool.
    Call {
        /// Its name.
        tool: String,
        /// The arguments as written, of any type.
        arguments: Value,
    },
}

/// Form of a call. Other keys are ignored; a duplicate of one of these is an error.
#[derive(Deserialize)]
struct Written {
    tool: String,
    arguments: Value,
}

/// Returns the pieces of `text`, in order. Empty texts are left out.
pub(super) fn pieces(text: &str, names: &[&str]) -> Vec<Piece> {
    let mut reader = Reader {
        names,
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

struct Reader<'a> {
    names: &'a [&'a str],
    pieces: Vec<Piece>,
    /// The text since the last call.
    plain: String,
    calls: usize,
    /// Bytes that may still be scanned for the end of something: text that opens many brackets and
    /// never closes them would be scanned as often.
    steps_left: usize,
}

impl Reader<'_> {
    /// Reads what begins with the line at the start of `text`; returns the rest.
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
        if let Some((calls, rest)) = self.calls_in(start) {
            let (blank, after) = rest.split_at(first_line(rest).len());
            if blank.trim().is_empty() {
                self.take(calls);
                return after;
            }
        }
        self.keep(text, line.len())
    }

    /// Returns the rest after a fence with only calls; `None` if it is another one.
    fn fence<'t>(&mut self, inside: &'t str) -> Option<&'t str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let content = inside.trim_start_matches(is_word);
        let language = &inside[..inside.len() - content.len()];
        if !LANGUAGES.contains(&language) {
            return None;
        }
        let (calls, rest) = self.calls_in(content)?;
        let rest = rest.trim_start();
        // A model may end with the object and not close the fence.
        let after = match rest.strip_prefix("```") {
            Some(after) => after.trim_start_matches('`'),
            None if rest.is_empty() => rest,
            None => return None,
        };
        self.take(calls);
        Some(after)
    }

    /// Returns the calls at the start of `text`, at least one, and the rest.
    fn calls_in<'t>(&mut self, text: &'t str) -> Option<(Vec<Written>, &'t str)> {
        let mut calls: Vec<Written> = Vec::new();
        let mut rest = text;
        while calls.len() <= MAX_CALLS {
            let start = rest.trim_start();
            let Some(length) = self.extent(start) else {
                break;
            };
            let (value, after) = start.split_at(length);
            let Some(more) = self.calls_of(value) else {
                break;
            };
            calls.extend(more);
            rest = after;
        }
        let are_few = self.calls + calls.len() <= MAX_CALLS;
        (!calls.is_empty() && are_few).then_some((calls, rest))
    }

    /// Returns the calls in one JSON value.
    fn calls_of(&self, value: &str) -> Option<Vec<Written>> {
        let calls = if value.starts_with('[') {
            serde_json::from_str::<Vec<Written>>(value).ok()?
        } else {
            vec![serde_json::from_str(value).ok()?]
        };
        let is_offered = |call: &Written| self.names.contains(&call.tool.as_str());
        (!calls.is_empty() && calls.iter().all(is_offered)).then_some(calls)
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
                // JSON has no line feeds inside strings: this one never ends.
                b'\n' if in_string => return None,
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

    fn take(&mut self, calls: Vec<Written>) {
        self.end_text();
        self.calls += calls.len();
        let calls = calls.into_iter().map(|call| Piece::Call {
            tool: call.tool,
            arguments: call.arguments,
        });
        self.pieces.extend(calls);
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
            self.pieces.push(Piece::Text(text.to_owned()));
        }
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
