//! The head of the page: what was to be reached, what came of it, and the figures.

use gyrus_contract::{Claim, Strength};
use gyrus_kernel::{Ending, RunStarted};
use gyrus_text::{counted, grouped};
use maud::{Markup, html};

use super::{
    excerpt::{Excerpt, ExcerptKind, brief, briefs},
    markup::PageAnchor,
    moment::{TimeOrigin, date_and_time, duration},
    plot,
    survey::{ForkLink, Survey, SurveyState},
};
use crate::projection::limits;

/// Maximum number of characters of a goal in the title; a longer one stands below it as text.
const TITLE: usize = 160;

/// Maximum number of pieces of evidence on the page.
const EVIDENCE: usize = 40;

/// Facts that always show; the others are folded.
const SHOWN_FACTS: usize = 4;

/// Draws the goal, what people added to it, and the state of the run.
pub(super) fn head(survey: &Survey) -> Markup {
    let name = survey.run.short();
    let rest = format!("the whole text is in `gyrus runs show {name}`");
    let start = TimeOrigin {
        at_ms: survey.began_ms,
    };
    let title = survey.goal.gist(TITLE);
    html! {
        h1 { (title) }
        @if title.ends_with('…') {
            div.goal { (survey.goal.render(ExcerptKind::Prose, &rest)) }
        }
        @for (at_ms, who, words) in &survey.amendments {
            div.amendment {
                p.label {
                    span.mark { "»" }
                    span.name { "the person added" }
                    b { (who.id) }
                    " (" (who.surface) ")"
                    (start.moment_and_hour(*at_ms))
                }
                (words.render(ExcerptKind::Prose, &rest))
            }
        }
        (outcome(&survey.standing, &name, &rest))
        @if let Some(damage) = &survey.damage {
            p.damage {
                "The journal cannot be read further than entry " (survey.last_seq) ": " (damage)
                ". This page shows what is before it."
            }
        }
    }
}

struct EndingStyle<'a> {
    class: &'static str,
    badge: &'static str,
    sentence: String,
    words: Option<&'a str>,
    next: String,
}

pub(super) fn outcome(standing: &SurveyState, name: &str, rest: &str) -> Markup {
    let verdict = match standing {
        SurveyState::Over(ending) | SurveyState::Parked(ending) => of_ending(ending, name),
        SurveyState::Running => EndingStyle {
            class: "pending",
            badge: "running",
            sentence: "It was still running when this page was written.".to_owned(),
            words: None,
            next: String::new(),
        },
        SurveyState::CutOff => EndingStyle {
            class: "stopped",
            badge: "cut off",
            sentence: "Its process is gone and left it unfinished.".to_owned(),
            words: None,
            next: format!("gyrus resume {name}"),
        },
    };
    let ending = match standing {
        SurveyState::Over(ending) | SurveyState::Parked(ending) => Some(ending),
        SurveyState::Running | SurveyState::CutOff => None,
    };
    html! {
        section class={ "outcome " (verdict.class) } {
            p.verdict { span.badge { (verdict.badge) } span { (verdict.sentence) } }
            @if let Some(words) = verdict.words {
                (Excerpt::of(words).render(ExcerptKind::Prose, rest))
            }
            @if let Some(Ending::Reached { claim, .. }) = ending { (evidence(claim)) }
            @if let Some(Ending::Failed { denied, .. }) = ending && !denied.is_empty() {
                p.aside { "denied, because nobody could be asked:" }
                (Excerpt::of(&denied.join("\n")).render(ExcerptKind::Code, rest))
            }
            @if !verdict.next.is_empty() {
                p.aside { "to go on: " code { (verdict.next) } }
            }
        }
    }
}

fn of_ending<'a>(ending: &'a Ending, name: &str) -> EndingStyle<'a> {
    let stopped = |badge, sentence: String, words| EndingStyle {
        class: "stopped",
        badge,
        sentence,
        words,
        next: format!("gyrus resume {name}"),
    };
    match ending {
        Ending::Reached { claim, strength } => reached(claim, *strength),
        Ending::Failed { reason, .. } => EndingStyle {
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
        Ending::Waiting { question, .. } => EndingStyle {
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
        Ending::Stopped { by, reason } => {
            stopped("stopped", format!("{by} stopped it."), reason.as_deref())
        }
        Ending::Interrupted => stopped(
            "interrupted",
            "It was interrupted at its terminal.".to_owned(),
            None,
        ),
    }
}

fn reached(claim: &Claim, strength: Strength) -> EndingStyle<'_> {
    let (badge, sentence) = match strength {
        Strength::Answered => (
            "answered",
            "The model answered in words; nothing is said to be reached.",
        ),
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
    // A claim is not a success yet.
    let class = match strength {
        Strength::Answered | Strength::Claimed => "claimed",
        Strength::Checked | Strength::Verified => "good",
    };
    EndingStyle {
        class,
        badge,
        sentence: sentence.to_owned(),
        words: Some(&claim.answer),
        next: String::new(),
    }
}

fn evidence(claim: &Claim) -> Markup {
    if claim.evidence.is_empty() {
        return html! { p.aside { "No evidence was named." } };
    }
    html! {
        div.evidence {
            p.aside { "evidence" }
            ul {
                @for evidence in claim.evidence.iter().take(EVIDENCE) {
                    li {
                        span { (brief(&evidence.what)) }
                        @if !evidence.at.is_empty() { code { (brief(&evidence.at)) } }
                    }
                }
            }
        }
    }
}

/// Draws figures, diagrams and the settings with which the run was started.
pub(super) fn side(survey: &Survey, forks: &[ForkLink]) -> Markup {
    let cost = if survey.cost().0 == 0 {
        "unknown".to_owned()
    } else {
        survey.cost().to_string()
    };
    let tiles = [
        ("steps", grouped(survey.steps.len())),
        ("tokens", grouped(survey.tokens())),
        ("cost", cost),
        ("time", duration(survey.lasted_ms())),
    ];
    let mut rows = facts(survey, forks);
    rows.retain(|(_, value)| !value.is_empty());
    let more = rows.split_off(SHOWN_FACTS.min(rows.len()));
    html! {
        dl.tiles {
            @for (name, value) in &tiles { div { dd { (value) } dt { (name) } } }
        }
        (plot::strip(&survey.shares))
        (plot::by_step(&survey.steps, &|step, _| format!("#{}", PageAnchor::Step { run: 0, step })))
        div.about {
            (list(&rows))
            details.more { summary { "more about this run" } (list(&more)) }
        }
    }
}

fn list(facts: &[(&'static str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

fn facts(survey: &Survey, forks: &[ForkLink]) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(started) = &survey.started {
        facts.extend(given(survey, started));
    }
    let when = |at_ms| {
        format!(
            "{}, {}",
            date_and_time(at_ms),
            gyrus_text::ago(at_ms, gyrus_kernel::now_ms())
        )
    };
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
