//! A domain as τ²-bench has it: `tasks.json` with customers and the actions that serve them,
//! `policy.md`, and tools over data. The tools are a server of the Model Context Protocol, which
//! `server.toml` beside them names as a task does.
//!
//! The customer is not simulated: all that they have to say stands in the goal.

use std::{fmt::Write as _, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    super::{
        expected::ExpectedAnswer,
        served::{ExpectedCall, TaskServer},
        task::{EvalTask, TaskBudget},
    },
    reading::{STEPS, id, json, text, wrong},
};
use crate::LabError;

/// The file by which a folder is such a domain, and the others.
pub(super) const TASKS: &str = "tasks.json";
const POLICY: &str = "policy.md";
const SERVER: &str = "server.toml";

/// Parts of a customer's instructions, in the order in which they are told.
const SAID: [&str; 4] = [
    "reason_for_call",
    "known_info",
    "unknown_info",
    "task_instructions",
];

#[derive(Deserialize)]
struct CustomerTask {
    id: Value,
    user_scenario: Scenario,
    initial_state: Option<Value>,
    evaluation_criteria: Option<Criteria>,
}

#[derive(Deserialize)]
struct Scenario {
    /// A text, or an object of texts.
    instructions: Value,
}

#[derive(Deserialize)]
struct Criteria {
    #[serde(default)]
    actions: Option<Vec<Action>>,
    #[serde(default)]
    communicate_info: Option<Vec<String>>,
    #[serde(default)]
    reward_basis: Vec<String>,
}

#[derive(Deserialize)]
struct Action {
    #[serde(default = "assistant")]
    requestor: String,
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

fn assistant() -> String {
    "assistant".to_owned()
}

pub(super) fn read(folder: &Path) -> Result<Vec<EvalTask>, LabError> {
    let (tasks, server) = (folder.join(TASKS), folder.join(SERVER));
    let policy = text(&folder.join(POLICY))?;
    let mut template: TaskServer = toml::from_str(&text(&server)?).map_err(|error| {
        let why = error.message().to_owned();
        wrong(&server, &why)
    })?;
    template.folder = folder.join(&template.folder);
    let read: Vec<CustomerTask> = serde_json::from_value(json(&tasks, &text(&tasks)?)?)
        .map_err(|error| wrong(&tasks, &error.to_string()))?;
    // Tasks of all domains are numbered from 0.
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let domain = whole.file_name().unwrap_or_default().to_string_lossy();
    let tasks = read.into_iter().map(|task| {
        let name = match &task.id {
            Value::String(id) => format!("{domain}-{id}"),
            id => format!("{domain}-{id}"),
        };
        let goal = goal(&policy, &task.user_scenario.instructions);
        let mut server = template.clone();
        let (answer, left_out) = match complete(task, &mut server) {
            Ok(answer) => (answer, None),
            Err(why) => {
                let why = format!("the task `{name}` cannot be tried here: {why}");
                (None, Some(why))
            }
        };
        let budget = TaskBudget {
            steps: STEPS,
            seconds: None,
        };
        let mut task = EvalTask::in_folder(id(&name), goal, budget);
        task.server = Some(server);
        (task.answer, task.left_out) = (answer, left_out);
        task
    });
    Ok(tasks.collect())
}

/// Adds the expected calls to the server, and returns what the answer must tell.
fn complete(task: CustomerTask, server: &mut TaskServer) -> Result<Option<ExpectedAnswer>, String> {
    let criteria = task.evaluation_criteria;
    let criteria = criteria.ok_or("it has no `evaluation_criteria`")?;
    if task.initial_state.is_some_and(|state| !state.is_null()) {
        return Err("it begins in a state of its own".to_owned());
    }
    let known = ["DB", "COMMUNICATE", "ACTION"];
    let unknown = |basis: &&String| !known.contains(&basis.as_str());
    if let Some(basis) = criteria.reward_basis.iter().find(unknown) {
        return Err(format!("it is judged by `{basis}`"));
    }
    for action in criteria.actions.unwrap_or_default() {
        if action.requestor != assistant() {
            return Err("its customer has tools, too".to_owned());
        }
        server.expected.push(ExpectedCall {
            tool: action.name,
            with: action.arguments,
        });
    }
    let told = criteria.communicate_info.unwrap_or_default();
    Ok((!told.is_empty()).then_some(ExpectedAnswer::All(told)))
}

fn goal(policy: &str, instructions: &Value) -> String {
    let mut said = String::new();
    match instructions {
        Value::Object(parts) => {
            for part in SAID.iter().filter_map(|part| parts.get(*part)?.as_str()) {
                let _ = writeln!(said, "{}", part.trim());
            }
        }
        Value::String(text) => said.push_str(text.trim()),
        other => said = other.to_string(),
    }
    format!(
        "Serve this customer with the tools of the server `tools`, as the policy below says. The \
         customer cannot be asked anything else, and agrees to what the policy needs their consent \
         for.\n\nThe customer:\n{}\n\nThe policy:\n{}",
        said.trim(),
        policy.trim()
    )
}
