//! Every command came to its end, and none was begun while it was at work.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_runtime::queue::{CommandStage, QueueFact};
use serde_json::Value;

use crate::{reader::Message, runs::Submitted};

/// The ends of the commands.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    /// Number of commands by how they ended.
    pub(crate) ends: BTreeMap<String, usize>,
    /// The commands whose runs are said to have reached their goals.
    pub(crate) reached: BTreeSet<String>,
    /// Number of times that one was begun.
    pub(crate) begun: usize,
    /// Number of times that one rested because its processes died.
    pub(crate) rests: usize,
}

/// Returns what is wrong with the commands, and what became of them.
pub(crate) fn check(runs: &[Submitted], messages: &[Message]) -> (Vec<String>, Commands) {
    let mut wrong = Vec::new();
    let mut commands = Commands::default();
    let mut stages: BTreeMap<String, CommandStage> = BTreeMap::new();
    let (facts, unreadable) = facts(messages);
    wrong.extend(unreadable);
    for fact in facts {
        let (id, stage) = match fact {
            QueueFact::Submitted(command) => (command.id.clone(), CommandStage::Queued),
            QueueFact::Reached { id, stage } => (id, stage),
            QueueFact::Stopped(_) | QueueFact::Rearmed { .. } => continue,
        };
        let before = stages.get(&id).cloned();
        if before.as_ref().is_some_and(CommandStage::is_over) {
            wrong.push(format!("command {id} went on after its end"));
            continue;
        }
        stages.insert(id.clone(), stage.clone());
        let is_running = |stage: &CommandStage| matches!(stage, CommandStage::Running { .. });
        if is_running(&stage) {
            commands.begun += 1;
            if before.as_ref().is_some_and(is_running) {
                wrong.push(format!("command {id} was begun while it was at work"));
            }
        }
        if matches!(
            stage,
            CommandStage::Parked {
                deaths: Some(_),
                ..
            }
        ) {
            commands.rests += 1;
        }
    }
    for run in runs {
        let end = match stages.get(&run.id) {
            Some(CommandStage::Ended { code, summary, .. }) => match code {
                Some(0) => "reached".to_owned(),
                _ if summary.starts_with("claimed") => "reached, as its log says".to_owned(),
                _ => format!("{code:?}: {summary}"),
            },
            Some(CommandStage::Cancelled { .. }) => "taken back when the time was over".to_owned(),
            stage => {
                wrong.push(format!("run {} did not end: {stage:?}", run.run));
                "did not end".to_owned()
            }
        };
        if end.starts_with("reached") {
            commands.reached.insert(run.id.clone());
        }
        *commands.ends.entry(end).or_default() += 1;
    }
    (wrong, commands)
}

/// Returns the facts of the queue in their order, and what cannot be read. Where it goes on under another
/// subject, that begins with what was said before.
fn facts(messages: &[Message]) -> (Vec<QueueFact>, Vec<String>) {
    let (mut subject, mut after) = ("queue.main".to_owned(), 0);
    let (mut facts, mut wrong) = (Vec::new(), Vec::new());
    'subjects: loop {
        let own = messages.iter();
        for message in own.filter(|one| one.subject == subject && one.position > after) {
            let text: Value = serde_json::from_slice(&message.body).unwrap_or_default();
            match serde_json::from_value::<Vec<QueueFact>>(text["facts"].clone()) {
                Ok(more) => facts.extend(more),
                Err(error) => wrong.push(format!("queue: message {}: {error}", message.position)),
            }
            let next = &text["next"];
            if let (Some(name), Some(place)) = (next["subject"].as_str(), next["position"].as_u64())
            {
                (subject, after) = (name.to_owned(), place);
                continue 'subjects;
            }
        }
        return (facts, wrong);
    }
}
