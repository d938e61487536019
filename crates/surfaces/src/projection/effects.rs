//! The remaining effects: looks, values, waits, branches, child runs.

use gyrus_contract::View;
use gyrus_journal::LogReader;
use gyrus_kernel::{
    BranchesStarted, Charge, ChildEnded, ChildStarted, ConcurrencyForm as BranchForm, RaceWon,
    ReadValue, ScreenViewed, ValueTaken, WaitEnded, WaitStarted, summary,
};
use gyrus_text::{counted, utc};

use super::{Happening, HappeningPart, HappeningSubject, Tone, stored};

pub(super) fn viewed(viewed: ScreenViewed, reader: &LogReader) -> Happening {
    let text = stored(&viewed.view, reader).unwrap_or_else(|gone| gone);
    let happening = match serde_json::from_str::<View>(&text) {
        Ok(view) => {
            let elements = counted(view.elements.len(), "element");
            let headline = format!("{} · {} · {elements}", view.title, view.address);
            Happening::main(HappeningSubject::View, Tone::Observation, headline)
        }
        Err(_) => Happening::main(HappeningSubject::View, Tone::Bad, text),
    };
    match viewed.frame {
        Some(frame) => happening.with(HappeningPart::Picture(frame)),
        None => happening,
    }
}

pub(super) fn value(taken: &ValueTaken) -> Happening {
    let headline = match taken.value {
        ReadValue::Clock { at_ms } => format!("read the clock: {}", utc(at_ms)),
        ReadValue::Random { number } => format!("drew a random number: {number}"),
    };
    Happening::detail(HappeningSubject::Value, headline)
}

pub(super) fn wait_started(wait: &WaitStarted) -> Happening {
    let mut headline = "waits".to_owned();
    if let Some(signal) = &wait.signal {
        headline.push_str(&format!(" for the signal `{signal}`"));
    }
    if let Some(until_ms) = wait.until_ms {
        headline.push_str(&format!(" until {}", utc(until_ms)));
    }
    Happening::main(HappeningSubject::Wait, Tone::Aside, headline)
}

pub(super) fn wait_ended(wait: WaitEnded) -> Happening {
    match wait.payload {
        Some(payload) => Happening::main(
            HappeningSubject::WaitEnded,
            Tone::Observation,
            "the signal arrived",
        )
        .with(HappeningPart::Text(super::TextForm::Output, payload.text)),
        None => Happening::detail(HappeningSubject::WaitEnded, "the time is over"),
    }
}

pub(super) fn branches(started: &BranchesStarted) -> Happening {
    let form = match started.form {
        BranchForm::All => "side by side",
        BranchForm::Race => "in a race",
        BranchForm::Timeout => "against a deadline",
    };
    let branches = counted(started.branches, "branch");
    Happening::detail(HappeningSubject::Branches, format!("{branches} {form}"))
}

pub(super) fn race_won(race: &RaceWon) -> Happening {
    let headline = match race.winner {
        Some(branch) => format!("branch {branch} won"),
        None => "the deadline won".to_owned(),
    };
    Happening::detail(HappeningSubject::Branches, headline)
}

pub(super) fn child_started(child: ChildStarted) -> Happening {
    let headline = format!("child run {}", child.child.short());
    let mut happening = Happening::main(HappeningSubject::Child, Tone::Call, headline)
        .with(HappeningPart::prose(child.goal))
        .with(HappeningPart::Run(child.child));
    let limits = limits(&child.limits);
    if !limits.is_empty() {
        happening = happening.with(HappeningPart::aside(format!("at most {limits}")));
    }
    happening
}

pub(super) fn child_ended(child: &ChildEnded) -> Happening {
    let (name, spent) = (child.child.short(), &child.spent);
    let headline = format!("child run {name}: {}", summary(&child.ending));
    let used = format!(
        "{}, {}{}",
        counted(spent.steps, "step"),
        counted(spent.tokens, "token"),
        spent.cost.after(", ")
    );
    let mut happening = Happening::main(HappeningSubject::ChildEnded, Tone::Observation, headline)
        .with(HappeningPart::Badge(Tone::Aside, used));
    happening.charged = Charge {
        tokens: spent.tokens,
        cost: spent.cost,
    };
    happening
}

/// Returns limits as text; empty if there are none.
pub fn limits(limits: &gyrus_contract::Limits) -> String {
    let mut words = Vec::new();
    words.extend(limits.steps.map(|steps| counted(steps, "step")));
    words.extend(limits.tokens.map(|tokens| counted(tokens, "token")));
    words.extend(limits.cost.map(|cost| cost.to_string()));
    words.extend(limits.time_ms.map(gyrus_text::span));
    words.join(", ")
}
