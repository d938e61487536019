//! The head of the page: what was to be reached, what came of it, and the figures.

use gyrus_contract::{Claim, Limits, Strength};
use gyrus_kernel::{Ending, RunStarted};
use gyrus_text::{counted, grouped};

use super::{
    card,
    markup::{Element, Markup},
    moment::{Start, date_and_time, duration},
    plot,
    survey::{Fork, Standing, Survey},
    words::{Kind, Words, brief, briefs},
};
use crate::time;

/// Characters of a goal that stands as a title; a longer one stands below it as text.
const TITLE: usize = 160;

/// Pieces of evidence that the page has.
const EVIDENCE: usize = 40;

/// Facts that always show; the others are folded.
const SHOWN_FACTS: usize = 4;

/// The goal, what people added to it, and how the run stands.
pub(super) fn head(survey: &Survey) -> Markup {
    let name = survey.run.short();
    let rest = format!("the whole text is in `gyrus runs show {name}`");
    let start = Start {
        at_ms: survey.began_ms,
    };
    let mut html = Markup::from(Element::new("h1").text(&survey.goal.gist(TITLE)));
    if survey.goal.gist(TITLE).ends_with('…') {
        html.push(
            Element::new("div")
                .class("goal")
                .with(survey.goal.render(Kind::Prose, &rest)),
        );
    }
    for (at_ms, who, words) in &survey.amendments {
        let head = Element::new("p")
            .class("label")
            .with(Element::new("span").class("mark").text("»"))
            .with(Element::new("span").class("name").text("the person added"))
            .with(card::principal(who))
            .with(start.moment_and_hour(*at_ms));
        let amendment = Element::new("div")
            .class("amendment")
            .with(head)
            .with(words.render(Kind::Prose, &rest));
        html.push(amendment);
    }
    html.push(outcome(&survey.standing, &name, &rest));
    if let Some(damage) = &survey.damage {
        let words = format!(
            "The journal cannot be read further than entry {}: {damage}. This page shows what is \
             before it.",
            survey.last_seq
        );
        html.push(Element::new("p").class("damage").text(&words));
    }
    html
}

/// How an ending looks and reads.
struct Verdict<'a> {
    class: &'static str,
    badge: &'static str,
    sentence: String,
    words: Option<&'a str>,
    next: String,
}

/// How the run stands, with the evidence for it.
fn outcome(standing: &Standing, name: &str, rest: &str) -> Element {
    let verdict = match standing {
        Standing::Over(ending) | Standing::Parked(ending) => of_ending(ending, name),
        Standing::Running => Verdict {
            class: "pending",
            badge: "running",
            sentence: "It was still running when this page was written.".to_owned(),
            words: None,
            next: String::new(),
        },
        Standing::CutOff => Verdict {
            class: "stopped",
            badge: "cut off",
            sentence: "Its process is gone and left it unfinished.".to_owned(),
            words: None,
            next: format!("gyrus resume {name}"),
        },
    };
    let line = Element::new("p")
        .class("verdict")
        .with(Element::new("span").class("badge").text(verdict.badge))
        .with(Element::new("span").text(&verdict.sentence));
    let mut html = Element::new("section")
        .class("outcome")
        .class(verdict.class)
        .with(line);
    if let Some(words) = verdict.words {
        html = html.with(Words::of(words).render(Kind::Prose, rest));
    }
    if let Standing::Over(Ending::Reached { claim, .. })
    | Standing::Parked(Ending::Reached { claim, .. }) = standing
    {
        html = html.with(evidence(claim));
    }
    if let Standing::Over(Ending::Failed { denied, .. }) = standing
        && !denied.is_empty()
    {
        let calls = Words::of(&denied.join("\n")).render(Kind::Code, rest);
        let label = "denied, because nobody could be asked:";
        html = html
            .with(Element::new("p").class("aside").text(label))
            .with(calls);
    }
    if verdict.next.is_empty() {
        return html;
    }
    let next = Element::new("p")
        .class("aside")
        .text("to go on: ")
        .with(Element::new("code").text(&verdict.next));
    html.with(next)
}

fn of_ending<'a>(ending: &'a Ending, name: &str) -> Verdict<'a> {
    let stopped = |badge, sentence: String, words| Verdict {
        class: "stopped",
        badge,
        sentence,
        words,
        next: format!("gyrus resume {name}"),
    };
    match ending {
        Ending::Reached { claim, strength } => reached(claim, *strength),
        Ending::Failed { reason, .. } => Verdict {
            class: "bad",
            badge: "failed",
            sentence: "The goal was not reached.".to_owned(),
            words: Some(reason),
            next: String::new(),
        },
        Ending::Limit { what } => stopped(
            "limit",
            format!("A limit was reached: {}.", brief(what)),
            None,
        ),
        Ending::Waiting { question, .. } => Verdict {
            class: "pending",
            badge: "asks",
            sentence: "It waits for a person's answer.".to_owned(),
            words: Some(question),
            next: format!("gyrus approve {name}, then gyrus resume {name}"),
        },
        Ending::Sleeping {
            until_ms, signal, ..
        } => {
            let mut sentence = "It waits".to_owned();
            if let Some(signal) = signal {
                sentence.push_str(&format!(" for the signal `{signal}`"));
            }
            if let Some(until_ms) = until_ms {
                sentence.push_str(&format!(" until {}", date_and_time(*until_ms)));
            }
            stopped("waits", format!("{sentence}."), None)
        }
        Ending::Stuck { what } => stopped("stuck", "It repeats itself.".to_owned(), Some(what)),
        Ending::ModelUnreachable { error } => stopped("no model", brief(&error.to_string()), None),
        Ending::Stopped { by } => stopped(
            "stopped",
            format!("{} ({}) stopped it.", by.id, by.surface),
            None,
        ),
        Ending::Interrupted => stopped(
            "interrupted",
            "It was interrupted at its terminal.".to_owned(),
            None,
        ),
    }
}

fn reached(claim: &Claim, strength: Strength) -> Verdict<'_> {
    let (badge, sentence) = match strength {
        Strength::Claimed => (
            "claimed",
            "The model says that the goal is reached; nobody else has checked it.",
        ),
        Strength::Checked => (
            "checked",
            "The goal is reached: the task's own checks passed.",
        ),
        Strength::Verified => (
            "verified",
            "The goal is reached: a model that did not do the work looked, and agrees.",
        ),
    };
    Verdict {
        class: "good",
        badge,
        sentence: sentence.to_owned(),
        words: Some(&claim.answer),
        next: String::new(),
    }
}

fn evidence(claim: &Claim) -> Markup {
    if claim.evidence.is_empty() {
        return Element::new("p")
            .class("aside")
            .text("No evidence was named.")
            .into();
    }
    let rows = claim.evidence.iter().take(EVIDENCE).map(|evidence| {
        let mut row = Element::new("li").with(Element::new("span").text(&brief(&evidence.what)));
        if !evidence.at.is_empty() {
            row = row.with(Element::new("code").text(&brief(&evidence.at)));
        }
        row.into()
    });
    let list = Element::new("ul").with(rows.collect::<Markup>());
    Element::new("div")
        .class("evidence")
        .with(Element::new("p").class("aside").text("evidence"))
        .with(list)
        .into()
}

/// Figures, drawings and what the run was started with.
pub(super) fn side(survey: &Survey, forks: &[Fork]) -> Markup {
    let mut html = Markup::default();
    let tiles: Markup = [
        ("steps", grouped(survey.steps.len())),
        ("tokens", grouped(survey.tokens())),
        (
            "cost",
            if survey.cost().0 == 0 {
                "$0".to_owned()
            } else {
                survey.cost().to_string()
            },
        ),
        ("time", duration(survey.lasted_ms())),
    ]
    .into_iter()
    .map(|(name, value)| {
        Element::new("div")
            .with(Element::new("dd").text(&value))
            .with(Element::new("dt").text(name))
            .into()
    })
    .collect();
    html.push(Element::new("dl").class("tiles").with(tiles));
    html.push(plot::strip(&survey.shares));
    html.push(plot::by_step(&survey.steps, 0));
    let mut rows = facts(survey, forks);
    rows.retain(|(_, value)| !value.is_empty());
    let more = rows.split_off(SHOWN_FACTS.min(rows.len()));
    html.push(
        Element::new("div").class("about").with(list(&rows)).with(
            Element::new("details")
                .class("more")
                .with(Element::new("summary").text("more about this run"))
                .with(list(&more)),
        ),
    );
    html
}

fn list(facts: &[(&'static str, String)]) -> Element {
    let rows = facts.iter().map(|(name, value)| {
        Element::new("div")
            .with(Element::new("dt").text(name))
            .with(Element::new("dd").text(value))
            .into()
    });
    Element::new("dl")
        .class("facts")
        .with(rows.collect::<Markup>())
}

fn facts(survey: &Survey, forks: &[Fork]) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(started) = &survey.started {
        facts.extend(given(survey, started));
    }
    let when = |at_ms| format!("{}, {}", date_and_time(at_ms), time::ago(at_ms));
    facts.insert(0, ("started", when(survey.began_ms)));
    facts.push(("last entry", when(survey.ended_ms)));
    facts.push(("run", survey.run.to_string()));
    let asked: Vec<&str> = survey.models.iter().map(String::as_str).collect();
    let counts = [
        (survey.calls, "tool call"),
        (survey.questions, "question"),
        (survey.failed_attempts, "failed request"),
    ];
    let there = counts.iter().filter(|(count, _)| *count > 0);
    let there: Vec<String> = there.map(|(n, what)| counted(*n, what)).collect();
    facts.push(("models asked", asked.join(", ")));
    facts.push(("in it", there.join(", ")));
    let forks: Vec<String> = forks
        .iter()
        .map(|fork| format!("{} after step {}", fork.run.short(), fork.step))
        .collect();
    facts.push(("forks", forks.join(", ")));
    facts
}

/// What the run was started with, or resumed.
fn given(survey: &Survey, started: &RunStarted) -> Vec<(&'static str, String)> {
    let settings = survey.settings.as_ref().unwrap_or(&started.settings);
    let parent = started
        .parent
        .as_ref()
        .map(|parent| format!("run {}, effect {}", parent.run.short(), parent.effect));
    let forked = started
        .forked_from
        .as_ref()
        .map(|from| format!("run {} after step {}", from.run.short(), from.cycle));
    let gyrus = settings.pins.get("gyrus").cloned();
    let throwaway = if started.throwaway {
        " (may be lost)"
    } else {
        ""
    };
    vec![
        ("model", brief(&started.model)),
        ("loop", brief(&started.cognitive_loop)),
        (
            "workspace",
            format!("{}{throwaway}", started.workspace.display()),
        ),
        ("may do unasked", settings.mode.to_string()),
        ("limits", limits(&settings.limits)),
        (
            "tools",
            briefs(started.tools.iter().map(String::as_str)).join(", "),
        ),
        ("delegated by", parent.unwrap_or_default()),
        ("forked from", forked.unwrap_or_default()),
        ("gyrus", gyrus.unwrap_or_default()),
    ]
}

/// Limits in words; nothing if there are none.
pub(super) fn limits(limits: &Limits) -> String {
    let mut words = Vec::new();
    words.extend(limits.steps.map(|steps| counted(steps, "step")));
    words.extend(limits.tokens.map(|tokens| counted(tokens, "token")));
    words.extend(limits.cost.map(|cost| cost.to_string()));
    words.extend(limits.time_ms.map(duration));
    words.join(", ")
}
