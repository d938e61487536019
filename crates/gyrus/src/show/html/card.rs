//! A tool call on the page: what was asked for, what the gate and people said, what came back.

use gyrus_contract::{ActionVerdict, Decision, Principal, Risk};
use gyrus_kernel::Settled;

use super::{
    markup::{Element, Markup},
    moment::{Start, duration},
    picture::Shown,
    step::{Answered, Approval, Argument, Call, Judged, Outcome},
    words::Kind,
};

/// Everything about a call but its mark and its name.
pub(super) fn call(call: &Call, start: Start, rest: &str) -> Markup {
    let mut card = Markup::default();
    let arguments: Markup = call
        .arguments
        .iter()
        .map(|one| argument(one, rest))
        .collect();
    if !arguments.is_empty() {
        card.push(Element::new("div").class("arguments").with(arguments));
    }
    // A question says why it is asked.
    if let Some(judged) = &call.gate
        && call.approvals.is_empty()
    {
        card.push(reasons(judged));
    }
    card.push(approvals(&call.approvals, start, rest));
    if call.started > 1 {
        let again = format!("it was cut off and started again: attempt {}", call.started);
        card.push(Element::new("p").class("aside").text(&again));
    }
    match &call.outcome {
        Some(outcome) => card.push(result(outcome, rest)),
        None => card.push(
            Element::new("p")
                .class("aside")
                .text("nothing came back yet"),
        ),
    }
    card
}

/// What the gate said, in a word or two.
pub(super) fn verdict(judged: &Judged) -> Element {
    let (class, risk) = match judged.risk {
        Risk::Safe => ("safe", "safe"),
        Risk::Moderate => ("moderate", "moderate"),
        Risk::High => ("high", "high risk"),
        Risk::Critical => ("critical", "critical"),
    };
    let decision = match judged.decision {
        Decision::Allow => "",
        Decision::Ask => " · asks",
        Decision::Deny => " · denied",
    };
    Element::new("span")
        .class("chip")
        .class(class)
        .text(risk)
        .text(decision)
}

fn argument(argument: &Argument, rest: &str) -> Markup {
    let kind = if argument.is_text { "text" } else { "json" };
    let value = argument.value.render(Kind::Code, rest);
    let mut row = Element::new("div").class("argument").class(kind);
    if !argument.value.is_line() {
        row = row.class("long");
    }
    if !argument.name.is_empty() {
        row = row.with(Element::new("span").class("name").text(&argument.name));
    }
    row.with(Element::new("div").class("value").with(value))
        .into()
}

/// Why the gate said so, where that is of interest: not for what is plainly safe.
fn reasons(judged: &Judged) -> Markup {
    if judged.risk == Risk::Safe && judged.decision == Decision::Allow {
        return Markup::default();
    }
    let mut words = judged.reasons.join("; ");
    if !judged.places.is_empty() {
        words.push_str(&format!(" ({})", judged.places.join(", ")));
    }
    Element::new("p")
        .class("aside")
        .text("gate: ")
        .text(&words)
        .into()
}

/// Questions to a person, with what they answered.
pub(super) fn approvals(approvals: &[Approval], start: Start, rest: &str) -> Markup {
    let one = |approval: &Approval| {
        let mut card = Element::new("div").class("approval");
        let what = if approval.is_question {
            "question"
        } else {
            "approval"
        };
        let head = Element::new("p")
            .class("label")
            .with(Element::new("span").class("mark").text("?"))
            .with(Element::new("span").class("name").text(what))
            .with(start.moment(approval.asked_ms));
        card = card
            .with(head)
            .with(approval.sentence.render(Kind::Prose, rest));
        let reasons: Markup = approval
            .reasons
            .iter()
            .map(|reason| Element::new("li").text(reason).into())
            .collect();
        if !reasons.is_empty() {
            card = card.with(Element::new("ul").with(reasons));
        }
        let details: Markup = approval
            .details
            .iter()
            .map(|words| words.render(Kind::Code, rest))
            .collect();
        if !details.is_empty() {
            let label = "in the model's own words, which nobody has checked";
            let fold = Element::new("details")
                .class("more")
                .with(Element::new("summary").text(label))
                .with(Element::new("div").class("untrusted").with(details));
            card = card.with(fold);
        }
        card.with(answer(approval, start, rest)).into()
    };
    approvals.iter().map(one).collect()
}

fn answer(approval: &Approval, start: Start, rest: &str) -> Element {
    let Some(answered) = &approval.answer else {
        return Element::new("p")
            .class("answer")
            .text("nobody has answered yet");
    };
    let Answered {
        at_ms,
        approved,
        by,
        words,
    } = answered;
    let (class, said) = match (approved, approval.is_question) {
        (true, true) => ("yes", "answered"),
        (true, false) => ("yes", "approved"),
        (false, _) => ("no", "denied"),
    };
    let mut line = Element::new("div").class("answer").class(class);
    line = line.with(Element::new("b").text(said));
    line = match by {
        Some(by) => line.text(" by ").with(principal(by)),
        None => line.text(": nobody could be asked"),
    };
    let waited = at_ms
        .saturating_sub(approval.asked_ms)
        .max(0)
        .unsigned_abs();
    line = line
        .text(&format!(" after {} ", duration(waited)))
        .with(start.moment_and_hour(*at_ms));
    if words.is_blank() {
        return line;
    }
    line.with(words.render(Kind::Prose, rest))
}

/// A person, by name and surface.
pub(super) fn principal(who: &Principal) -> Markup {
    let mut html = Markup::from(Element::new("b").text(&who.id));
    html.push(Markup::text(&format!(" ({})", who.surface)));
    html
}

fn result(outcome: &Outcome, rest: &str) -> Element {
    let settled = match outcome.settled {
        Settled::Done if outcome.is_error => "failed",
        Settled::Done => "",
        Settled::Refused => "refused",
        Settled::Interrupted => "interrupted",
        Settled::Cancelled => "cut off",
    };
    let changed = match (outcome.settled, outcome.verdict) {
        (Settled::Done, ActionVerdict::Changed) => "changed something",
        (Settled::Done, ActionVerdict::NoEffect) => "changed nothing",
        (_, ActionVerdict::CannotTell) => "may have changed something",
        _ => "",
    };
    let mut label = Element::new("p")
        .class("label")
        .with(Element::new("span").class("mark").text("←"))
        .with(Element::new("span").class("name").text("result"));
    if !settled.is_empty() {
        label = label.with(
            Element::new("span")
                .class("chip")
                .class("critical")
                .text(settled),
        );
    }
    if !changed.is_empty() {
        label = label.with(Element::new("span").class("aside").text(changed));
    }
    if outcome.settled == Settled::Done {
        let took = Element::new("span")
            .class("took")
            .text(&duration(outcome.took_ms));
        label = label.with(took);
    }
    let mut card = Element::new("div").class("result").with(label);
    if outcome.is_error || outcome.settled != Settled::Done {
        card = card.class("bad");
    }
    if outcome.words.is_blank() {
        card = card.with(Element::new("p").class("aside").text("no text"));
    } else {
        card = card.with(outcome.words.render(Kind::Output, rest));
    }
    for (shown, caption) in &outcome.pictures {
        card = card.with(picture(shown, caption));
    }
    if outcome.artifacts.is_empty() {
        return card;
    }
    let mut files = Element::new("p")
        .class("aside")
        .class("files")
        .text("files: ");
    for path in &outcome.artifacts {
        files = files.with(Element::new("code").text(path));
    }
    card.with(files)
}

pub(super) fn picture(shown: &Shown, caption: &str) -> Markup {
    match shown {
        Shown::Here(picture, anchor) => {
            let image = Element::new("img")
                .source(picture)
                .set("alt", "a picture of the run")
                .set("loading", "lazy");
            Element::new("figure")
                .id(*anchor)
                .with(image)
                .with(Element::new("figcaption").text(caption))
                .into()
        }
        Shown::Before(anchor) => {
            let link = Element::new("a")
                .link(*anchor)
                .text("the same picture as before");
            Element::new("p").class("aside").with(link).into()
        }
        Shown::Not(why) => {
            let words = format!("a picture ({caption}) is not shown: {why}");
            Element::new("p").class("aside").text(&words).into()
        }
    }
}
