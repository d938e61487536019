//! Telling a person who looks elsewhere that a run waits for them: by a command of their own.
//!
//! It is started once for each question and for each other end that only a person can resolve, and gets
//! one line of JSON. Nothing in it is in the words of a model or of what a run has read. The
//! command runs under a keeper, bounded in time, with the person's rights; gyrus takes no answer
//! from it, as from nothing below a keeper. Whatever becomes of it, the run goes on.

use std::{collections::BTreeMap, path::PathBuf};

use gyrus_contract::{CommandSpec, EffectId, Exit, OnAsk, Risk, RunId};
use gyrus_journal::LogReader;
use gyrus_kernel::{Ending, Entry, approvals::OpenQuestion};
use gyrus_process::{Programs, keeper::Keeper};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::console::put;

/// Milliseconds after which the command is killed. gyrus waits for it before it ends.
const TIME_LIMIT_MS: u64 = 10_000;

/// Maximum size of the command's output that is kept for the warning, in bytes.
const OUTPUT: usize = 400;

/// The person's command and its environment.
#[derive(Debug, Clone)]
pub struct NotifyCommand {
    /// The line for the shell.
    pub line: String,
    /// The folder in which the command runs.
    pub folder: PathBuf,
    /// The command's environment, without `PATH`.
    pub environment: BTreeMap<String, String>,
}

impl NotifyCommand {
    /// Runs the command with a line on its standard input, for at most 10 seconds.
    ///
    /// # Errors
    /// A message that continues after the command's name: it cannot be started, or failed.
    pub async fn run(self, line: String) -> Result<(), String> {
        let not_run = |error: &dyn std::fmt::Display| format!("was not run: {error}");
        let shell = Programs::of_this_process().find("sh");
        let shell = shell.map_err(|error| not_run(&error))?;
        let mut environment = self.environment;
        environment.insert("PATH".to_owned(), Programs::of_this_process().path());
        let command = CommandSpec {
            program: shell.path.display().to_string(),
            arguments: vec!["-c".to_owned(), self.line],
            folder: self.folder,
            environment,
            stdin: format!("{line}\n"),
            time_limit_ms: TIME_LIMIT_MS,
            head_bytes: OUTPUT,
            tail_bytes: 0,
        };
        let keeper = tokio::task::spawn_blocking(Keeper::start).await;
        let keeper = keeper
            .map_err(|error| not_run(&error))?
            .map_err(|error| not_run(&error))?;
        let outcome = keeper.run(command).await.map_err(|error| not_run(&error))?;
        let first = outcome.output.head.lines().next().unwrap_or_default();
        match outcome.exit {
            Exit::Code(0) => Ok(()),
            Exit::Code(code) => Err(format!("failed with code {code}: {first}")),
            Exit::Signal(signal) => Err(format!("was ended by signal {signal}")),
            Exit::TimedOut => Err(format!("took longer than {} s", TIME_LIMIT_MS / 1_000)),
        }
    }
}

/// Runs the person's command when a run needs attention.
pub struct Notifier {
    command: Option<NotifyCommand>,
    on_ask: OnAsk,
    running: JoinSet<()>,
}

/// The waiting question, as JSON on the command's standard input.
#[derive(Debug, Serialize)]
struct WaitingQuestion {
    run: String,
    /// The id of the card, as `gyrus approve` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<Risk>,
    headline: String,
    /// The command that the person types to answer.
    answer: String,
}

impl Notifier {
    /// Creates the notifier; without a command, it does nothing.
    pub fn new(command: Option<NotifyCommand>, on_ask: OnAsk) -> Self {
        Self {
            command,
            on_ask,
            running: JoinSet::new(),
        }
    }

    /// Handles a question of a run. Nobody is notified if nobody is to be asked.
    pub fn asked(&mut self, open: &OpenQuestion, reader: &LogReader) {
        if self.command.is_none() || self.on_ask == OnAsk::Deny {
            return;
        }
        let run = open.run.short();
        let (tool, risk) = about(reader, &open.id.effect);
        let headline = match tool {
            _ if open.card.question => "the agent asks you a question".to_owned(),
            Some(tool) => format!("the tool `{tool}` needs your approval"),
            None => "the agent needs your approval".to_owned(),
        };
        let words = if open.card.question {
            " --answer WORDS"
        } else {
            ""
        };
        self.tell(&WaitingQuestion {
            run: open.run.to_string(),
            question: Some(open.id.to_string()),
            risk,
            headline,
            answer: format!("gyrus approve {run} {}{words}", open.id),
        });
    }

    /// Handles a run that parked. Its question, if that is the reason, was announced before.
    pub fn parked(&mut self, run: RunId, ending: &Ending) {
        let headline = match ending {
            Ending::Stuck { .. } => "the run is stuck",
            Ending::Limit { .. } => "the run has reached a limit",
            Ending::ModelUnreachable { .. } => "the model does not answer",
            Ending::Waiting { .. }
            | Ending::Sleeping { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted
            | Ending::Reached { .. }
            | Ending::Failed { .. } => return,
        };
        self.tell(&WaitingQuestion {
            answer: format!("gyrus resume {}", run.short()),
            run: run.to_string(),
            question: None,
            risk: None,
            headline: headline.to_owned(),
        });
    }

    fn tell(&mut self, waiting: &WaitingQuestion) {
        let (Some(command), Ok(json)) = (self.command.clone(), serde_json::to_string(waiting))
        else {
            return;
        };
        self.running.spawn(async move {
            if let Err(why) = command.run(json).await {
                // There may be nobody left to tell.
                let _ = put(&format!(
                    "warning: the command of `notify` in [approvals] {why}\n"
                ));
            }
        });
    }

    /// Waits until all commands have ended; each is bounded.
    pub async fn finish(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

fn about(reader: &LogReader, effect: &EffectId) -> (Option<String>, Option<Risk>) {
    let mut risk = None;
    let entries = reader.entries_back().into_iter().flatten();
    for entry in entries.map_while(Result::ok) {
        let Ok(parsed) = gyrus_kernel::parse(&entry) else {
            continue;
        };
        if matches!(parsed, Entry::CycleEnded(_) | Entry::RunStarted(_)) {
            break;
        }
        if parsed.effect() != Some(effect) {
            continue;
        }
        if let Entry::GateVerdict(judged) = parsed {
            risk.get_or_insert(judged.verdict.risk);
        } else if let Entry::ToolCalled(called) = parsed {
            return (Some(called.call.tool), risk);
        }
    }
    (None, risk)
}
