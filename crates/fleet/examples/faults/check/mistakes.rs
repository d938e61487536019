//! Mistakes made on purpose in what the checks read: each must be found, or the checks check nothing.

use gyrus_fleet::{RunMessage, RunMessageKind};
use gyrus_journal::Store;
use gyrus_runtime::queue::{CommandStage, QueueFact};
use serde_json::Value;

use super::{
    Evidence, appends,
    effects::{self, LedgerLine},
    queue, run, streams,
};
use crate::{reader::Message, runs::Submitted};

/// A mistake, and whether it was found; `None` if there was nothing to make it in.
pub(crate) type Mistake = (&'static str, Option<bool>);

/// Makes each mistake once.
pub(crate) fn check(evidence: &Evidence) -> anyhow::Result<Vec<Mistake>> {
    let mut mistakes = in_streams(evidence);
    mistakes.extend(in_appends(evidence));
    mistakes.push(in_queue(evidence));
    mistakes.extend(in_runs(evidence)?);
    Ok(mistakes)
}

fn in_streams(evidence: &Evidence) -> Vec<Mistake> {
    let last = |(stream, position): &(&'static str, u64)| {
        *stream == "runs" && *position == evidence.of("runs").len() as u64
    };
    let victim = evidence
        .seen
        .keys()
        .rfind(|place| place.0 == "runs" && !last(place));
    let Some((_, position)) = victim else {
        return vec![("a stored message that is gone", None)];
    };
    let mut gone = evidence.of("runs").to_vec();
    gone.retain(|message| message.position != *position);
    let mut other = evidence.of("runs").to_vec();
    for message in &mut other {
        if message.position == *position {
            message.body = b"another".as_slice().into();
        }
    }
    let found =
        |messages: &[Message]| Some(!streams::check("runs", messages, &evidence.seen).is_empty());
    vec![
        ("a stored message that is gone", found(&gone)),
        ("a stored message that became another one", found(&other)),
    ]
}

fn in_appends(evidence: &Evidence) -> Vec<Mistake> {
    let stored = |number: &usize| {
        let attempted = &evidence.history[*number];
        !attempted.stored.is_empty() && attempted.unknown == 0
    };
    let victim = (0..evidence.history.len()).find(stored);
    let Some(victim) = victim else {
        return vec![("a refused append that is there", None)];
    };
    let mut refused = evidence.history.clone();
    refused[victim].stored.clear();
    let mut moved = evidence.history.clone();
    moved[victim].stored[0] += 1;
    let found = |history: &[_]| Some(!appends::check(history, evidence.of("inbox")).is_empty());
    vec![
        ("a refused append that is there", found(&refused)),
        (
            "an append that was stored at another place than told",
            found(&moved),
        ),
    ]
}

fn in_queue(evidence: &Evidence) -> Mistake {
    let begins = |message: &Message| {
        let text: Value = serde_json::from_slice(&message.body).unwrap_or_default();
        let facts: Vec<QueueFact> =
            serde_json::from_value(text["facts"].clone()).unwrap_or_default();
        facts.iter().any(|fact| {
            matches!(
                fact,
                QueueFact::Reached {
                    stage: CommandStage::Running { .. },
                    ..
                }
            )
        })
    };
    let mut twice = evidence.of("queue").to_vec();
    let found = twice.iter().position(begins).map(|place| {
        twice.insert(place, twice[place].clone());
        !queue::check(&evidence.runs, &twice).0.is_empty()
    });
    ("a command that was begun twice", found)
}

/// The evidence of one run.
struct OneRun<'a> {
    run: &'a Submitted,
    messages: Vec<&'a Message>,
    ledger: Vec<LedgerLine>,
}

impl OneRun<'_> {
    fn is_wrong(&self) -> anyhow::Result<bool> {
        let folder = tempfile::tempdir_in(run::copies_folder())?;
        let copies = Store::open(folder.path())?;
        let (wrong, _) = run::check(self.run, &self.messages, &self.ledger, &copies);
        Ok(!wrong.is_empty())
    }
}

fn in_runs(evidence: &Evidence) -> anyhow::Result<Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let mut late = None;
    let mut others_made = false;
    for submitted in &evidence.runs {
        let subject = gyrus_fleet::run_subject(submitted.run, submitted.run);
        let own = |message: &&Message| message.subject == subject.as_str();
        let mut one = OneRun {
            run: submitted,
            messages: evidence.of("runs").iter().filter(own).collect(),
            ledger: effects::ledger(submitted).unwrap_or_default(),
        };
        if one.ledger.len() < 2 || one.messages.len() < 6 || one.is_wrong()? {
            continue;
        }
        if !others_made {
            others_made = true;
            mistakes.extend(in_one(&mut one)?);
        }
        let claims = claims(&one.messages);
        let before = one.ledger[0].at_us;
        if let Some(next) = claims.iter().find(|claim| **claim > before) {
            one.ledger[0].at_us = next + 1;
            late = Some(one.is_wrong()?);
            break;
        }
    }
    if !others_made {
        mistakes.push(("mistakes in a run", None));
    }
    mistakes.push(("an effect after the next claim", late));
    Ok(mistakes)
}

fn in_one(one: &mut OneRun<'_>) -> anyhow::Result<Vec<Mistake>> {
    let (messages, ledger) = (one.messages.clone(), one.ledger.clone());
    // A sign of life before a claim is missed by nobody but who saw it.
    let brings_entries = |message: &&&Message| {
        let kind = RunMessage::decode(&message.body).map(|message| message.kind);
        matches!(kind, Ok(RunMessageKind::Entries(_)))
    };
    let number = messages.iter().filter(brings_entries).count() / 2;
    let victim = messages.iter().filter(brings_entries).nth(number);
    one.messages
        .retain(|message| victim.is_none_or(|victim| victim.position != message.position));
    let missing = one.is_wrong()?;
    one.messages = messages;
    one.ledger.push(ledger[0]);
    let twice = one.is_wrong()?;
    one.ledger.clone_from(&ledger);
    one.ledger[0].step += 1_000;
    let unknown = one.is_wrong()?;
    one.ledger.clone_from(&ledger);
    one.ledger[0].at_us = 0;
    let early = one.is_wrong()?;
    one.ledger.clear();
    let none = one.is_wrong()?;
    one.ledger = ledger;
    Ok(vec![
        ("a message that is missing in a run", Some(missing)),
        ("an effect that happened twice", Some(twice)),
        ("an effect that the log does not know", Some(unknown)),
        ("an effect before its intent", Some(early)),
        ("effects that are called done and never were", Some(none)),
    ])
}

fn claims(messages: &[&Message]) -> Vec<i64> {
    let is_claim = |message: &&&Message| {
        let kind = RunMessage::decode(&message.body).map(|message| message.kind);
        matches!(kind, Ok(RunMessageKind::Claimed(_)))
    };
    messages
        .iter()
        .filter(is_claim)
        .map(|claim| claim.at_us)
        .collect()
}
