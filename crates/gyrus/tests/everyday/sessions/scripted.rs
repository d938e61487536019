//! The model that does a session in a run, and what the run's journal has of it.

use std::path::Path;

use gyrus_journal::Store;
use gyrus_kernel::Entry;
use serde_json::{Value, json};

use super::{Session, Step, trace::Trace};
use crate::desk::{End, end_in};

/// The model's side of the session.
pub(super) fn script(session: &Session) -> String {
    let mut script = String::new();
    let mut reply = |fields: Value| {
        let call = |call: &Value| {
            format!(
                "{{ tool = {}, arguments = {} }}",
                call["tool"],
                inline(&call["arguments"])
            )
        };
        script += "[[reply]]\n";
        for (name, value) in fields.as_object().unwrap() {
            let value = match value.as_array() {
                Some(calls) => {
                    let calls: Vec<String> = calls.iter().map(call).collect();
                    format!("[{}]", calls.join(", "))
                }
                None => value.to_string(),
            };
            script += &format!("{name} = {value}\n");
        }
    };
    let shell = |line: &str| json!([{ "tool": "shell", "arguments": { "command": line, "timeout_seconds": 7200 } }]);
    let mut serving = Vec::new();
    let mut sub_runs = Vec::new();
    for (index, step) in session.kind.steps.iter().enumerate() {
        let calls = match step {
            Step::Shell(line) => shell(line),
            Step::Edit { edit, from, to } => json!([
                { "tool": "read", "arguments": { "path": edit } },
                { "tool": "edit", "arguments": { "path": edit, "old_text": from, "new_text": to } },
            ]),
            Step::Write { write, text } => {
                json!([{ "tool": "write", "arguments": { "path": write, "content": text } }])
            }
            Step::Serve { serve, until } => {
                serving.push(format!("{}.2", index + 1));
                json!([{ "tool": "shell", "arguments": {
                    "command": serve, "background": true, "until": until, "timeout_seconds": 60
                } }])
            }
            Step::Parts { parts } => {
                let goals = (0..parts.len()).map(|number| format!("part-{number}"));
                let calls = goals.clone().map(|goal| {
                    let work_tree = session.kind.work_trees;
                    json!({ "tool": "delegate", "arguments": { "goal": goal, "worktree": work_tree } })
                });
                let calls = calls.collect();
                sub_runs.extend(goals.zip(parts));
                calls
            }
        };
        reply(json!({ "calls": calls }));
    }
    for process in serving {
        let end = json!({ "process": process, "command": "", "end": true });
        reply(json!({ "calls": [{ "tool": "shell", "arguments": end }] }));
    }
    let done = json!({ "reached": true, "answer": "done" });
    reply(json!({ "calls": [{ "tool": "finish", "arguments": done }] }));
    for (goal, line) in sub_runs {
        reply(json!({ "goal": goal, "calls": shell(line) }));
        reply(json!({ "goal": goal, "repeat": 2, "text": format!("{goal} is done") }));
    }
    script
}

/// A value as it is written in one line of TOML.
fn inline(value: &Value) -> String {
    match value.as_object() {
        Some(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name} = {value}"));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        None => value.to_string(),
    }
}

/// Adds what the commands of a run and its sub-runs said, and returns how many questions there were.
pub(super) fn read(journal: &Path, trace: &mut Trace) -> usize {
    let store = Store::open(journal).unwrap();
    let mut runs = Vec::new();
    let mut questions = 0;
    for name in store.names("runs").unwrap() {
        let entries = store.reader(&name).unwrap().entries(1).unwrap();
        let (mut goal, mut said) = (String::new(), Vec::new());
        for entry in entries {
            match gyrus_kernel::parse(&entry.unwrap()).unwrap() {
                Entry::RunStarted(started) => goal = format!("{:?}", started.goal),
                Entry::ApprovalAsked(_) => questions += 1,
                Entry::ToolResulted(body) => {
                    let text: Result<String, Box<dyn std::error::Error>> =
                        body.text.read(|id| Ok(store.blob("runs", id)?.unwrap()));
                    said.extend(command(&text.unwrap()));
                }
                _ => {}
            }
        }
        // The run itself before its parts, by their numbers.
        runs.push((goal.contains("part-"), goal, said));
    }
    runs.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    for (said, end) in runs.into_iter().flat_map(|(.., said)| said) {
        trace.add(&said, &end);
    }
    questions
}

/// Separates what a command said from how it ended; `None` if the result is not one of a command.
fn command(text: &str) -> Option<(String, End)> {
    let (index, end) = text
        .lines()
        .enumerate()
        .find_map(|(index, line)| Some((index, end_in(line)?)))?;
    let said: Vec<&str> = text.lines().take(index).collect();
    let said = said.join("\n");
    Some((
        if said == "(no output)" {
            String::new()
        } else {
            said
        },
        end,
    ))
}
