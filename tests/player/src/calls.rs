//! Moves in tasks without a screen: the next call of the task, told by how many calls stand in the
//! request. What the calls come to is not looked at; a perfect model knew it before.

use serde_json::{Value, json};

use crate::task::{Step, Task};

/// The answer of a task that names none.
const DONE: &str = "It is done.";

/// A reply of a model that calls tools.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    /// Words, with which the turn ends.
    Words(String),
    /// A call: the tool and its arguments.
    Call(String, Value),
}

impl Said {
    /// Returns the text that counts as output.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Words(words) => words.clone(),
            Self::Call(tool, arguments) => format!("{tool} {arguments}"),
        }
    }

    fn finish(reached: bool, answer: &str) -> Self {
        let evidence = json!([{"what": answer, "at": "the calls before"}]);
        let evidence = if reached { evidence } else { json!([]) };
        let arguments = json!({"reached": reached, "answer": answer, "evidence": evidence});
        Self::Call("finish".to_owned(), arguments)
    }
}

/// Whether the task is played with calls of tools, and not on a screen.
pub(crate) fn has_calls(task: &Task) -> bool {
    task.does.iter().any(|step| said(step).is_some())
}

/// Returns the reply to a request in which `calls` calls of this task stand.
pub(crate) fn next(task: &Task, calls: usize) -> Said {
    match task.does.get(calls) {
        Some(step) => {
            said(step).unwrap_or_else(|| Said::finish(true, step.answer.as_deref().unwrap_or(DONE)))
        }
        None => Said::finish(true, DONE),
    }
}

/// Returns what a step without a screen comes to; `None` for a step on one, or an answer that is
/// claimed.
fn said(step: &Step) -> Option<Said> {
    if let Some(command) = &step.shell {
        return Some(Said::Call("shell".to_owned(), json!({"command": command})));
    }
    if let Some(tool) = &step.call {
        return Some(Said::Call(tool.clone(), json!(step.with)));
    }
    if let Some(why) = &step.gives_up {
        return Some(Said::finish(false, why));
    }
    step.say.clone().map(Said::Words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_with_the_next_call() {
        let does = "does = [{ shell = \"ls\" }, { call = \"read\", with = { path = \"a\" } }, { answer = \"7\" }]";
        let task: Task = toml::from_str(&format!("id = \"a\"\ngoal = \"g\"\n{does}")).unwrap();
        assert!(has_calls(&task));
        let call = |tool: &str, arguments| Said::Call(tool.to_owned(), arguments);
        assert_eq!(next(&task, 0), call("shell", json!({"command": "ls"})));
        assert_eq!(next(&task, 1), call("read", json!({"path": "a"})));
        assert_eq!(next(&task, 2), Said::finish(true, "7"));
        assert_eq!(next(&task, 3), Said::finish(true, DONE));
        let on_page: Task =
            toml::from_str("id = \"a\"\ngoal = \"g\"\ndoes = [{ answer = \"7\" }]").unwrap();
        assert!(!has_calls(&on_page));
    }
}
