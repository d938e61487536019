//! The runs: what each does, and how it is put into the queue.

use std::{fs, path::Path};

use fastrand::Rng;
use gyrus_contract::{Mode, Origin, Principal, RunId, Text};
use gyrus_runtime::{
    queue::{Gateway, QueueCommand, QueueWork},
    request::{Approve, RunRequest},
};

/// Number of agents for which the runs work.
const AGENTS: usize = 7;

/// A run that was put into the queue.
#[derive(Debug, Clone)]
pub(crate) struct Submitted {
    pub(crate) run: RunId,
    /// The name of its command.
    pub(crate) id: String,
    /// Number of its steps that add a line to the ledger.
    pub(crate) steps: usize,
    /// The ledger.
    pub(crate) ledger: std::path::PathBuf,
}

/// The kinds of what a run does beside its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Nothing.
    Plain,
    /// Commands last longer.
    Slow,
    /// The model asks for what does not exist, or makes no sense.
    Confused,
    /// Some commands fail after their effect.
    Failing,
    /// Several steps in one reply.
    Batched,
    /// A person must be asked about one change.
    Asking,
}

const MANNERS: [Manner; 6] = [
    Manner::Plain,
    Manner::Slow,
    Manner::Confused,
    Manner::Failing,
    Manner::Batched,
    Manner::Asking,
];

/// Returns the script of a run, and the number of its calls.
fn script(steps: usize, manner: Manner, rng: &mut Rng) -> (String, usize) {
    let mut text = String::new();
    let mut calls = 1;
    let mut step = 0;
    let asks_at = (manner == Manner::Asking).then(|| rng.usize(0..steps));
    while step < steps {
        if manner == Manner::Confused && rng.u8(0..5) == 0 {
            text += match rng.u8(0..3) {
                0 => {
                    "[[reply]]\ntext = \"Hm.\"\ncalls = [{ tool = \"teleport\", arguments = { to = \"there\" } }]\n"
                }
                1 => {
                    "[[reply]]\ntext = \"Hm.\"\ncalls = [{ tool = \"shell\", arguments = \"{ not json\" }]\n"
                }
                _ => {
                    "[[reply]]\ntext = \"Hm.\"\ncalls = [{ tool = \"read\", arguments = { path = \"is-not-there.txt\" } }]\n"
                }
            };
            calls += 1;
        }
        if asks_at == Some(step) {
            text += "[[reply]]\ntext = \"May I?\"\ncalls = [{ tool = \"write\", arguments = { path = \".envrc\", content = \"hello\\n\" } }]\n";
            calls += 1;
        }
        let together = if manner == Manner::Batched {
            rng.usize(1..=3).min(steps - step)
        } else {
            1
        };
        let commands: Vec<String> = (0..together)
            .map(|more| {
                let command = command(step + more, manner, rng);
                format!("{{ tool = \"shell\", arguments = {{ command = '''{command}''' }} }}")
            })
            .collect();
        text += &format!(
            "[[reply]]\ntext = \"Step {step}.\"\ncalls = [{}]\n",
            commands.join(", ")
        );
        step += together;
        calls += together;
    }
    text += "[[reply]]\ntext = \"Done.\"\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"done\" } }]\n";
    (text, calls)
}

/// Returns a command that adds a line to the ledger: the number of the step, and the time.
fn command(step: usize, manner: Manner, rng: &mut Rng) -> String {
    let pause = |chance: u8, rng: &mut Rng| {
        let most = if manner == Manner::Slow { 1_500 } else { 200 };
        (rng.u8(0..10) < chance).then(|| format!("sleep {:.3}", f64::from(rng.u32(5..most)) / 1e3))
    };
    let before = pause(3, rng).map_or_else(String::new, |pause| format!("{pause}; "));
    let after = pause(3, rng).map_or_else(String::new, |pause| format!("; {pause}"));
    let end = if manner == Manner::Failing && rng.u8(0..4) == 0 {
        "; exit 3"
    } else {
        ""
    };
    format!(
        ": step {step}; {before}printf '%s %s\\n' {step} \"$EPOCHREALTIME\" >> ledger.txt{after}{end}"
    )
}

/// Puts a run into the queue; returns it and the number of its calls.
pub(crate) async fn submit(
    number: usize,
    most_steps: usize,
    folder: &Path,
    gateway: &Gateway,
    rng: &mut Rng,
) -> anyhow::Result<(Submitted, usize)> {
    // Most have all steps, and some fewer.
    let steps = match rng.u8(0..4) {
        0 => rng.usize(1..=most_steps),
        _ => most_steps,
    };
    let manner = MANNERS[rng.usize(0..MANNERS.len())];
    let (text, calls) = script(steps, manner, rng);
    let (scripts, work) = (
        folder.join("scripts"),
        folder.join("work").join(number.to_string()),
    );
    fs::create_dir_all(&scripts)?;
    fs::create_dir_all(&work)?;
    let script = scripts.join(format!("{number}.toml"));
    fs::write(&script, text)?;
    let goal = Text::new(format!("take {steps} steps"), Origin::Person);
    let mut request = RunRequest::new(goal, work.clone());
    // One who would ask must not be told to ask nobody.
    let mode = if manner == Manner::Asking {
        Mode::Ask
    } else {
        Mode::Auto
    };
    let flags = &mut request.options.flags;
    flags.approvals.approve = Some(Approve::Mode(mode));
    flags.model.names = vec![format!("script:{}", script.display())];
    flags.cognitive_loop = Some("react".to_owned());
    let start = QueueWork::Start(Box::new(request));
    let agent = format!("agent-{}", number % AGENTS);
    let new = QueueCommand::new(start, None, person(), agent);
    let queued = gateway.submit(new).await?;
    let submitted = Submitted {
        run: queued.command.run,
        id: queued.command.id.clone(),
        steps,
        ledger: work.join("ledger.txt"),
    };
    Ok((submitted, calls))
}

/// Returns who asks for the runs.
pub(crate) fn person() -> Principal {
    Principal {
        id: "tester".to_owned(),
        surface: "test".to_owned(),
    }
}
