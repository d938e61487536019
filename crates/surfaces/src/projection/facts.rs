//! Facts that loops and organs record under kinds of their own. A kind that is not in the table is
//! shown by its name and its text, so that none is hidden.

use gyrus_kernel::APPROVAL_REFUSED;
use gyrus_text::counted;
use serde_json::Value;

use super::{Happening, HappeningPart, HappeningSubject, Tone};

pub(super) fn fact(kind: &str, fact: &Value) -> Happening {
    let text = fact.as_str().or_else(|| fact["text"].as_str());
    let text = text.unwrap_or_default();
    let known = match kind {
        "thought" => thought(fact, text),
        "reflection" => said(HappeningSubject::Reflection, "", text),
        "engineer.plan" => said(HappeningSubject::Thought, "the plan", word(fact, "plan")),
        "engineer.went_right" => said(HappeningSubject::Reflection, "what went right", text),
        "changeset.reflection" | "run.lesson" => learned(fact),
        "task.plan" => said(HappeningSubject::Thought, "the plan", text),
        "task.step" => plan_step(fact, text),
        "plan.invalid" => refused("the plan was sent back", text),
        "mandate.refused" => refused("the mandate was sent back", text),
        "plan.edited" => said(HappeningSubject::Person, "a person changed the plan", text),
        "reply.unusable" => refused("the model's reply could not be used", word(fact, "why")),
        "batch.stopped" => batch_stopped(fact),
        "phase" => aside(format!("phase: {text}")),
        "perception" | "procedure.replaying" | "procedure.replayed" => aside(text.to_owned()),
        "procedure.handed_over" => note(Tone::Bad, text),
        "memory.compacted" => compacted(fact),
        "judge.verdict" => judged(fact, text),
        "verification.check" => checked(fact),
        "verification.look" => looked(fact),
        "changeset.state" => changeset(fact, text),
        "changeset.context" => aside(format!("read {text}")),
        APPROVAL_REFUSED => approval_refused(fact, text),
        "hooks.ran" => hooks(fact),
        _ => None,
    };
    known.unwrap_or_else(|| other(kind, fact, text))
}

fn word<'a>(fact: &'a Value, name: &str) -> &'a str {
    fact[name].as_str().unwrap_or_default()
}

/// Creates an event with a text of the model or a person; `None` without one.
fn said(subject: HappeningSubject, headline: &str, text: &str) -> Option<Happening> {
    let tone = if subject == HappeningSubject::Person {
        Tone::Ask
    } else {
        Tone::Thought
    };
    let happening = Happening::main(subject, tone, headline);
    (!text.is_empty()).then(|| happening.with(HappeningPart::prose(text)))
}

fn aside(headline: String) -> Option<Happening> {
    Some(Happening::main(
        HappeningSubject::Note,
        Tone::Aside,
        headline,
    ))
}

/// Returns a note with a sentence; `None` if the sentence is empty.
fn note(tone: Tone, text: &str) -> Option<Happening> {
    (!text.is_empty()).then(|| Happening::main(HappeningSubject::Note, tone, text))
}

/// Returns the event that a loop rejected something, with the reason.
fn refused(what: &str, why: &str) -> Option<Happening> {
    let headline = format!("{what}: {why}");
    (!why.is_empty()).then(|| Happening::main(HappeningSubject::Note, Tone::Bad, headline))
}

fn thought(fact: &Value, text: &str) -> Option<Happening> {
    let expects = word(fact, "expects");
    if text.is_empty() && expects.is_empty() {
        return None;
    }
    let mut happening = Happening::main(HappeningSubject::Thought, Tone::Thought, "");
    if !text.is_empty() {
        happening = happening.with(HappeningPart::prose(text));
    }
    if !expects.is_empty() {
        happening = happening.with(HappeningPart::aside(format!("expects: {expects}")));
    }
    Some(happening)
}

fn learned(fact: &Value) -> Option<Happening> {
    let said = [("worked", "what worked"), ("did_not", "what did not")];
    let said = said.iter().filter_map(|(name, what)| {
        let words = word(fact, name);
        (!words.is_empty()).then(|| format!("{what}: {words}"))
    });
    let said: Vec<_> = said.collect();
    self::said(HappeningSubject::Reflection, "", &said.join("\n"))
}

fn plan_step(fact: &Value, text: &str) -> Option<Happening> {
    let tone = match fact["worked"].as_bool() {
        Some(false) => Tone::Bad,
        Some(true) | None => Tone::Aside,
    };
    (!text.is_empty()).then(|| Happening::main(HappeningSubject::Note, tone, text))
}

/// Texts of hooks and language servers for the model.
fn hooks(fact: &Value) -> Option<Happening> {
    let told = fact["context"].as_array()?.iter().filter_map(Value::as_str);
    let told: Vec<&str> = told.collect();
    let happening = Happening::main(HappeningSubject::Note, Tone::Observation, "a hook adds");
    (!told.is_empty()).then(|| happening.with(HappeningPart::prose(told.join("\n"))))
}

fn batch_stopped(fact: &Value) -> Option<Happening> {
    let left = fact["left"].as_u64()?;
    let after = counted(fact["after"].as_u64()?, "call");
    let left = counted(left, "call");
    let verdict = word(fact, "verdict").replace('_', " ");
    aside(format!(
        "{left} of this reply not made: after {after}, the verdict was \"{verdict}\""
    ))
}

fn compacted(fact: &Value) -> Option<Happening> {
    let kilobytes = |name: &str| Some(fact[name].as_u64()?.div_ceil(1000));
    let (before, after) = (kilobytes("bytes_before")?, kilobytes("bytes_after")?);
    let how = word(fact, "how");
    aside(format!("the memory was {how}: {before} kB, now {after} kB"))
}

fn judged(fact: &Value, text: &str) -> Option<Happening> {
    let tone = match fact["accepted"].as_bool() {
        Some(true) => Tone::Strong,
        Some(false) | None => Tone::Bad,
    };
    (!text.is_empty()).then(|| Happening::main(HappeningSubject::Note, tone, text))
}

fn checked(fact: &Value) -> Option<Happening> {
    let (check, says) = (word(fact, "check"), word(fact, "says"));
    Some(match fact["passed"].as_bool()? {
        true => Happening::main(
            HappeningSubject::Note,
            Tone::Strong,
            format!("check passed: {check}"),
        ),
        false if says.is_empty() => Happening::main(
            HappeningSubject::Note,
            Tone::Bad,
            format!("check failed: {check}"),
        ),
        false => {
            let headline = format!("check failed: {check}: {says}");
            Happening::main(HappeningSubject::Note, Tone::Bad, headline)
        }
    })
}

fn looked(fact: &Value) -> Option<Happening> {
    let opinion = &fact["opinion"];
    let (Some(score), Some(passes)) = (opinion["score"].as_u64(), fact["passes"].as_u64()) else {
        let why = word(fact, "because");
        let headline = format!("no model could look independently: {why}");
        return (!why.is_empty())
            .then(|| Happening::main(HappeningSubject::Note, Tone::Aside, headline));
    };
    let reasons = opinion["reasons"].as_array().into_iter().flatten();
    let reasons: Vec<_> = reasons.filter_map(Value::as_str).collect();
    let tone = if score >= passes {
        Tone::Strong
    } else {
        Tone::Bad
    };
    let headline = format!(
        "an independent look gives {score} of 100 ({passes} pass): {}",
        reasons.join("; ")
    );
    Some(Happening::main(HappeningSubject::Note, tone, headline))
}

fn changeset(fact: &Value, text: &str) -> Option<Happening> {
    let first = text.lines().next().unwrap_or_default();
    let mut headline = format!("{}: {first}", word(fact, "to"));
    let by = word(fact, "by");
    if !by.is_empty() {
        headline.push_str(&format!(" ({by})"));
    }
    Some(match word(fact, "last_error") {
        "" => Happening::main(HappeningSubject::Note, Tone::Aside, headline),
        why => Happening::main(
            HappeningSubject::Note,
            Tone::Bad,
            format!("{headline}: {why}"),
        ),
    })
}

/// Returns the event of an answer that did not count.
fn approval_refused(fact: &Value, why: &str) -> Option<Happening> {
    let said = match fact["approved"].as_bool() {
        Some(true) => "yes",
        Some(false) | None => "no",
    };
    let who = fact["by"]["id"].as_str().unwrap_or("somebody");
    let headline = format!("a {said} of {who} does not count: {why}");
    (!why.is_empty()).then(|| Happening::main(HappeningSubject::Person, Tone::Ask, headline))
}

fn other(kind: &str, fact: &Value, text: &str) -> Happening {
    let happening = Happening::detail(HappeningSubject::Note, kind);
    if text.is_empty() {
        happening.with(HappeningPart::code(fact.to_string()))
    } else {
        happening.with(HappeningPart::prose(text))
    }
}
