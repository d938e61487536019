//! The run as a whole, its steps, and what people do to it.

use gyrus_contract::MessageBody;
use gyrus_journal::LogReader;
use gyrus_kernel::{
    BudgetWarning, CycleDropped, CycleEnded, Ending, GoalAmendment, MandateSet, RunEnded,
    RunHandedOver, RunParked, RunResumed, RunStarted, TakeoverEnded, TakeoverStarted, ToolsAdded,
    summary,
};
use gyrus_text::{counted, grouped, span};

use super::{
    Happening, HappeningPart, HappeningSubject, Tone, given_lessons, goal, loaded_skills,
    notes_given,
};

pub(super) fn started(started: &RunStarted, reader: &LogReader) -> Happening {
    let goal = goal(&started.goal, reader);
    let mut happening =
        Happening::detail(HappeningSubject::Goal, format!("goal: {goal}")).toned(Tone::Strong);
    for (name, why) in loaded_skills(started, reader) {
        happening = happening.with(HappeningPart::aside(format!("skill `{name}`, {why}")));
    }
    if let Some((_, lessons)) = given_lessons(started, reader) {
        for line in lessons.lines() {
            happening = happening.with(HappeningPart::aside(line));
        }
    }
    match notes_given(started, reader) {
        0 => happening,
        notes => happening.with(HappeningPart::aside(format!(
            "{} of the memory",
            counted(notes as usize, "note")
        ))),
    }
}

pub(super) fn resumed(resumed: &RunResumed) -> Happening {
    let torn = resumed.set_aside_bytes.map_or_else(String::new, |bytes| {
        let bytes = grouped(bytes);
        format!("; {bytes} unfinished bytes at the journal's end were set aside")
    });
    let pid = resumed.process.pid;
    Happening::detail(
        HappeningSubject::Resumed,
        format!("resumed by process {pid}{torn}"),
    )
}

pub(super) fn handed_over(handed: RunHandedOver) -> Happening {
    let done = counted(handed.done.len(), "effect");
    let headline = format!("a fresh step continues the run; {done} before it");
    Happening::main(HappeningSubject::HandedOver, Tone::Plain, headline)
        .with(HappeningPart::aside(handed.reason))
}

pub(super) fn parked(parked: &RunParked) -> Happening {
    let for_person = matches!(parked.ending, Ending::Waiting { .. });
    let headline = format!("parked: {}", summary(&parked.ending));
    Happening::detail(HappeningSubject::Parked { for_person }, headline)
}

pub(super) fn ended(ended: &RunEnded) -> Happening {
    let tone = if ended.ending.is_final() && !matches!(ended.ending, Ending::Failed { .. }) {
        Tone::Strong
    } else {
        Tone::Bad
    };
    Happening::detail(HappeningSubject::Ended, summary(&ended.ending)).toned(tone)
}

pub(super) fn step_ended(ended: &CycleEnded) -> Happening {
    let spent = &ended.kernel.spent;
    let used = counted(spent.tokens, "token");
    let cost = spent.cost.after(", ");
    let headline = format!(
        "step {} is complete; used so far: {used}{cost}",
        ended.cycle
    );
    let mut happening = Happening::detail(HappeningSubject::StepEnded, headline);
    happening.step = Some(ended.cycle);
    happening
}

pub(super) fn step_dropped(dropped: CycleDropped) -> Happening {
    let headline = format!("step {} was abandoned", dropped.cycle);
    let mut happening = Happening::main(HappeningSubject::StepDropped, Tone::Aside, headline)
        .with(HappeningPart::aside(dropped.why));
    happening.step = Some(dropped.cycle);
    happening
}

pub(super) fn warning(warning: &BudgetWarning) -> Happening {
    let headline = format!("a limit is near: {}", warning.what);
    Happening::main(HappeningSubject::Warning, Tone::Bad, headline)
}

pub(super) fn steered(steered: GoalAmendment) -> Happening {
    let mut happening = Happening::main(HappeningSubject::Person, Tone::Ask, "the person adds");
    for message in steered.messages {
        if let MessageBody::Steer { text, origin } = message.body {
            if !origin.is_trusted() {
                happening.headline = "another program adds".to_owned();
            }
            let who = message.from.to_string();
            happening = happening
                .with(HappeningPart::Badge(Tone::Aside, who))
                .with(HappeningPart::prose(text));
        }
    }
    happening
}

pub(super) fn tools_added(added: &ToolsAdded) -> Happening {
    let count = counted(added.names.len(), "tool");
    let verb = if added.names.len() == 1 {
        "joins"
    } else {
        "join"
    };
    let headline = format!("{count} of servers {verb} the run");
    let names = added.names.join(", ");
    Happening::detail(HappeningSubject::Note, headline).with(HappeningPart::aside(names))
}

pub(super) fn mandate_set(set: MandateSet) -> Happening {
    if set.mandate.calls.is_empty() {
        return Happening::detail(HappeningSubject::Note, "the goal has no mandate");
    }
    let count = counted(set.mandate.calls.len(), "call");
    if set.extends {
        return Happening::detail(
            HappeningSubject::Note,
            format!("{count} may be made as approved"),
        );
    }
    let headline = format!("the mandate: {count} that may be made unasked");
    Happening::main(HappeningSubject::Note, Tone::Aside, headline)
        .with(HappeningPart::aside(set.text))
}

pub(super) fn takeover_started(takeover: &TakeoverStarted) -> Happening {
    let headline = format!("{} has the browser; the run waits", takeover.by.id);
    Happening::main(HappeningSubject::Person, Tone::Ask, headline)
}

pub(super) fn takeover_ended(takeover: TakeoverEnded) -> Happening {
    let took = span(takeover.took_ms);
    let headline = format!("{} gave the browser back after {took}", takeover.by.id);
    let happening = Happening::main(HappeningSubject::Person, Tone::Ask, headline);
    match takeover.words {
        Some(words) => happening.with(HappeningPart::prose(words)),
        None => happening,
    }
}
