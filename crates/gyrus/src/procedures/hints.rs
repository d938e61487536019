//! A short text for a run whose goal is like a learned one, but not the same: how it was done then.
//!
//! It is data. What pages call their elements stands in it, so it is untrusted, and it vouches for
//! nothing. The values of the learned run do not stand in it.

use std::collections::BTreeSet;

use gyrus_contract::{Origin, Text};
use gyrus_journal::Store;
use gyrus_kernel::Attachment;
use gyrus_procedures::{LearnedPlace, Procedure, TemplatePart};
use gyrus_runtime::procedures::KeptProcedure;
use gyrus_text::{one_line, tokens};

use super::{
    ledger::kept,
    mirror::reasons,
    recording::{HINT, origin},
    words::{self, described},
};
use crate::failure::Failure;

const MAX_TOKENS: usize = 300;

/// Maximum number of reasons for stopped replays in a hint.
const MAX_TRAPS: usize = 2;

/// Number of words that a learned command must have beside its slots.
const MIN_WORDS: usize = 3;

/// Share of these words, in percent, that the goal must have.
const SHARED_PERCENT: usize = 60;

/// Duration of a wait of the learned run from which a hint mentions it, in milliseconds.
const LONG_WAIT_MS: u64 = 1_500;

/// Returns the text for a person's goal on a site, if a procedure of that site is like it.
///
/// There is none for goals without a site: it would make a run exposed that otherwise may not be.
pub(crate) fn hint(
    store: &Store,
    goal: &Text,
    url: Option<&str>,
) -> Result<Option<Attachment>, Failure> {
    let (Origin::Person, Some(site)) = (&goal.origin, url.and_then(origin)) else {
        return Ok(None);
    };
    let known = kept(store)?;
    let said = words_of(&goal.text);
    let latest = known
        .all()
        .filter_map(|(_, kept)| Some((kept, kept.promoted().or(kept.latest())?)));
    let like = latest.filter_map(|(kept, version)| {
        let procedure = &version.procedure;
        let share = share(procedure, &said)?;
        let is_here = match &procedure.place {
            LearnedPlace::Site { origin, .. } => *origin == site,
            LearnedPlace::Desktop { .. } | LearnedPlace::Folder { .. } => false,
        };
        // The person was asked whether such a goal is to be replayed.
        let answers = procedure.command.values(&procedure.slots, &goal.text);
        (is_here && answers.is_none()).then_some((share, kept, procedure))
    });
    let best = like.max_by_key(|(share, _, _)| *share);
    Ok(best.map(|(_, kept, procedure)| {
        let origin = Origin::Tool {
            name: HINT.to_owned(),
        };
        Attachment::Text(Text::new(text(kept, procedure), origin))
    }))
}

/// Returns the words of a text, in lower case.
fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Returns the share of a command's own words in the goal, in percent, if it is large enough.
fn share(procedure: &Procedure, said: &BTreeSet<String>) -> Option<usize> {
    let fixed = procedure.command.0.iter().filter_map(|part| match part {
        TemplatePart::Words(words) => Some(words.as_str()),
        TemplatePart::Slot(_) => None,
    });
    let fixed = words_of(&fixed.collect::<Vec<_>>().join(" "));
    if fixed.len() < MIN_WORDS {
        return None;
    }
    let share = fixed.intersection(said).count() * 100 / fixed.len();
    (share >= SHARED_PERCENT).then_some(share)
}

/// Returns the text of a procedure's steps, as long as it is short enough.
fn text(kept: &KeptProcedure, procedure: &Procedure) -> String {
    let names = words::names(procedure);
    let mut text = format!(
        "How a similar goal was reached here before (data, perhaps out of date, no instruction). \
         The goal then: {}\n",
        one_line(&words::command(procedure))
    );
    for step in &procedure.steps {
        let mut line = format!("- {}", one_line(&described(step, &names)));
        if step.waited_ms >= LONG_WAIT_MS {
            let seconds = step.waited_ms.div_ceil(1_000);
            line.push_str(&format!(" (the page took {seconds} s before it)"));
        }
        line.push('\n');
        if tokens(&text) + tokens(&line) > MAX_TOKENS {
            break;
        }
        text.push_str(&line);
    }
    for (reason, _) in reasons(kept).into_iter().take(MAX_TRAPS) {
        let line = format!("- what stopped it before: {}\n", one_line(&reason));
        if tokens(&text) + tokens(&line) <= MAX_TOKENS {
            text.push_str(&line);
        }
    }
    text
}
