//! Tool calls: requested, judged, approved, started, settled.

use gyrus_contract::{ActionVerdict, Decision, Risk};
use gyrus_journal::LogReader;
use gyrus_kernel::{
    ApprovalAnswered, ApprovalAsked, CallEnd, GateVerdict, ToolCalled, ToolResulted, ToolStarted,
};

use super::{Happening, HappeningPart, HappeningSubject, TextForm, Tone, is_patch, stored};

pub(super) fn called(called: ToolCalled) -> Happening {
    Happening::main(HappeningSubject::Call, Tone::Call, called.call.tool)
        .with(HappeningPart::Arguments(called.call.arguments))
}

pub(super) fn judged(judged: GateVerdict) -> Happening {
    let verdict = judged.verdict;
    let (tone, risk) = match verdict.risk {
        Risk::Safe => (Tone::Aside, "safe"),
        Risk::Moderate => (Tone::Aside, "moderate"),
        Risk::High => (Tone::Ask, "high risk"),
        Risk::Critical => (Tone::Bad, "critical"),
    };
    let decision = match verdict.decision {
        Decision::Allow => "allowed",
        Decision::Ask => "asks",
        Decision::Deny => "denied",
    };
    let mut headline = verdict.reasons.join("; ");
    let places: Vec<String> = judged
        .paths
        .values()
        .map(|path| path.real.display().to_string())
        .collect();
    if !places.is_empty() {
        headline.push_str(&format!(" ({})", places.join(", ")));
    }
    // What was denied is told again by the result.
    let happening = Happening::detail(HappeningSubject::Verdict, headline)
        .with(HappeningPart::Badge(tone, risk.to_owned()))
        .with(HappeningPart::Badge(tone, decision.to_owned()));
    match judged.arguments {
        // What is executed, where the model wrote it otherwise.
        Some(resolved) => happening
            .with(HappeningPart::aside("the resolved arguments:"))
            .with(HappeningPart::Arguments(resolved)),
        None => happening,
    }
}

pub(super) fn asked(asked: ApprovalAsked) -> Happening {
    Happening::detail(HappeningSubject::Question, asked.card.sentence.clone())
        .toned(Tone::Ask)
        .with(HappeningPart::Card(Box::new(asked.card)))
}

pub(super) fn answered(answered: ApprovalAnswered) -> Happening {
    let approved = answered.approved;
    let said = if approved { "approved" } else { "denied" };
    let headline = match &answered.by {
        Some(by) => format!("{said} by {by}"),
        None => format!("{said}: nobody could be asked"),
    };
    let happening = Happening::main(HappeningSubject::Answer { approved }, Tone::Ask, headline);
    match answered.reason {
        Some(words) => happening.with(HappeningPart::prose(words)),
        None => happening,
    }
}

pub(super) fn started(started: &ToolStarted) -> Happening {
    match started.attempt {
        0 | 1 => Happening::detail(HappeningSubject::Started, "started"),
        attempt => {
            let headline = format!("it was cut off and started again: attempt {attempt}");
            Happening::main(HappeningSubject::Started, Tone::Aside, headline)
        }
    }
}

pub(super) fn resulted(result: ToolResulted, reader: &LogReader) -> Happening {
    let text = stored(&result.text, reader).unwrap_or_else(|gone| gone);
    let settled = match result.settled {
        CallEnd::Done if result.is_error => Some("failed"),
        CallEnd::Done => None,
        CallEnd::Refused => Some("refused"),
        CallEnd::Interrupted => Some("interrupted"),
        CallEnd::Cancelled => Some("cut off"),
    };
    let failed = settled.is_some();
    let tone = if failed { Tone::Bad } else { Tone::Observation };
    let mut happening = Happening::main(HappeningSubject::Result { failed }, tone, "");
    // Some tools begin with the word themselves: models read it too.
    if let Some(settled) = settled.filter(|word| !text.starts_with(&format!("{word}: "))) {
        happening = happening.with(HappeningPart::Badge(Tone::Bad, settled.to_owned()));
    }
    let changed = match (result.settled, result.verdict) {
        (CallEnd::Done, ActionVerdict::Changed) => Some("changed something"),
        (CallEnd::Done, ActionVerdict::NoEffect) => Some("changed nothing"),
        (_, ActionVerdict::CannotTell) => Some("may have changed something"),
        (
            CallEnd::Done | CallEnd::Refused | CallEnd::Interrupted | CallEnd::Cancelled,
            ActionVerdict::Changed | ActionVerdict::NoEffect | ActionVerdict::Refused,
        ) => None,
    };
    if let Some(changed) = changed {
        happening = happening.with(HappeningPart::Badge(Tone::Aside, changed.to_owned()));
    }
    happening = happening.with(if text.trim().is_empty() {
        HappeningPart::aside("no text")
    } else if !failed && is_patch(&text) {
        HappeningPart::Text(TextForm::Diff, text)
    } else {
        HappeningPart::Text(TextForm::Output, text)
    });
    let value = result.value.map(|value| stored(&value, reader));
    if let Some(diff) = value.and_then(Result::ok)
        && let Some(diff) = diff["diff"].as_str()
    {
        happening = happening.with(HappeningPart::Text(TextForm::Diff, diff.to_owned()));
    }
    for image in result.images {
        happening = happening.with(HappeningPart::Picture(image));
    }
    if !result.artifacts.is_empty() {
        let paths = result.artifacts.into_iter().map(|file| file.path);
        happening = happening.with(HappeningPart::Files(paths.collect()));
    }
    if result.settled == CallEnd::Done {
        happening.took_ms = Some(result.took_ms);
    }
    happening
}
