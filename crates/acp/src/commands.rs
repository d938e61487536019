//! Commands that a person types with a slash. Those that are not here are the person's words: a goal
//! that begins with the name of a skill loads it.

use gyrus_contract::RunId;
use gyrus_kernel::RunState;
use gyrus_text::counted;
use serde_json::{Value, json};

use crate::host::AcpHost;

/// Maximum number of skills that are offered as commands.
const MAX_SKILLS: usize = 50;

/// Columns of a description.
const COLUMNS: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorCommand {
    Status,
    Resume,
    /// Lists the questions of all runs that wait for an answer.
    Approvals,
    Undo {
        /// Whether the person has seen the changes to undo.
        confirmed: bool,
    },
}

const KNOWN: [(&str, &str); 4] = [
    (
        "status",
        "How far the session's last run is, and what it used",
    ),
    ("resume", "Go on with the last run where it was left"),
    (
        "approvals",
        "Everything that waits for an answer, in all runs",
    ),
    (
        "undo",
        "Show what taking the last run's changes back would do; `/undo yes` does it",
    ),
];

impl EditorCommand {
    /// Parses a prompt; `None` if it is not a command of gyrus.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text.trim() {
            "/status" => Some(Self::Status),
            "/resume" => Some(Self::Resume),
            "/approvals" => Some(Self::Approvals),
            "/undo" => Some(Self::Undo { confirmed: false }),
            "/undo yes" => Some(Self::Undo { confirmed: true }),
            _ => None,
        }
    }
}

pub(crate) fn available(skills: &[(String, String)]) -> Value {
    let own = KNOWN.iter().map(|(name, about)| {
        let mut command = json!({"name": name, "description": about});
        if *name == "undo" {
            command["input"] = json!({"hint": "yes"});
        }
        command
    });
    let is_free = |name: &str| KNOWN.iter().all(|(known, _)| *known != name);
    let skills = skills.iter().filter(|(name, _)| is_free(name));
    let skills = skills.take(MAX_SKILLS).map(|(name, about)| {
        let about = gyrus_text::clip(&gyrus_text::one_line(about), COLUMNS);
        json!({"name": name, "description": about, "input": {"hint": "goal"}})
    });
    let commands: Vec<Value> = own.chain(skills).collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

pub(crate) async fn carry_out(
    host: &dyn AcpHost,
    command: EditorCommand,
    session: RunId,
    last: Option<RunId>,
) -> String {
    let Some(run) = last else {
        return match command {
            EditorCommand::Approvals => printed(host, &["approvals"]).await,
            EditorCommand::Status | EditorCommand::Resume | EditorCommand::Undo { .. } => {
                "There is no run in this session yet.".to_owned()
            }
        };
    };
    let id = run.to_string();
    match command {
        EditorCommand::Status => status(host, session, run),
        EditorCommand::Approvals => printed(host, &["approvals"]).await,
        EditorCommand::Undo { confirmed: true } => printed(host, &["undo", &id, "--yes"]).await,
        EditorCommand::Undo { confirmed: false } => printed(host, &["undo", &id]).await,
        // A turn of its own carries it out.
        EditorCommand::Resume => String::new(),
    }
}

async fn printed(host: &dyn AcpHost, arguments: &[&str]) -> String {
    let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    let (Ok(text) | Err(text)) = host.command(arguments).await;
    format!("```\n{}\n```", text.trim_end().replace("```", "'''"))
}

fn status(host: &dyn AcpHost, session: RunId, run: RunId) -> String {
    let store = host.store();
    let state = match RunState::of(store, run) {
        Ok(RunState::Running(_)) => "is at work".to_owned(),
        Ok(RunState::Parked(ending) | RunState::Over(ending)) => gyrus_kernel::summary(&ending),
        Ok(RunState::CutOff) => "its process ended before it did".to_owned(),
        Ok(RunState::NeverBegan) => "it never began".to_owned(),
        Ok(RunState::Record(ending)) => gyrus_kernel::record_summary(ending.as_ref()),
        Err(error) => error.to_string(),
    };
    let spent = gyrus_kernel::spent(store, run).unwrap_or_default();
    let (steps, tokens) = (counted(spent.steps, "step"), counted(spent.tokens, "token"));
    let cost = spent.cost.after(" · ");
    format!(
        "Session {session}, run {}: {state}. {steps} · {tokens}{cost}",
        run.short()
    )
}
