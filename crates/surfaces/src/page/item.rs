//! An item of the page: the first happening of an effect with its mark, its name and
//! its time, and below it what followed.

use std::collections::BTreeMap;

use gyrus_contract::RunId;
use gyrus_journal::LogReader;
use gyrus_kernel::ApprovalCard;
use gyrus_text::{grouped, shorten};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    excerpt::{Excerpt, ExcerptKind, brief, briefs},
    markup::PageAnchor,
    moment::{TimeOrigin, duration},
    picture::PagePictures,
    step::{StepItem, layout},
};
use crate::console::card::whose;
use crate::projection::{Happening, HappeningPart, HappeningSubject, TextForm, Tone, is_patch};

/// Maximum number of arguments of a call, and of texts of a card, on the page.
const LISTED: usize = 40;

/// Characters of a headline.
const HEADLINE: usize = 2_000;

pub(super) struct StepContext<'a> {
    pub(super) number: u32,
    pub(super) run: RunId,
    /// The start, from which other times are measured.
    pub(super) start: TimeOrigin,
    /// Runs whose steps are on the page, by their number there.
    pub(super) children: &'a BTreeMap<RunId, u32>,
}

pub(super) struct ItemDrawer<'a> {
    pub(super) context: &'a StepContext<'a>,
    /// The journal that pictures are read from.
    pub(super) reader: &'a LogReader,
    /// Text that tells where to find the whole of a shortened text.
    pub(super) rest: &'a str,
}

impl ItemDrawer<'_> {
    pub(super) fn item(&self, item: &StepItem, pictures: &mut PagePictures) -> Markup {
        let Some((first, others)) = item.happenings.split_first() else {
            return html! {};
        };
        let mut class = format!("item {}", class(first));
        // Deeper than cycle and effect: inside of a branch.
        if item.effect.as_ref().is_some_and(|id| id.path().len() > 2) {
            class.push_str(" branch");
        }
        html! {
            div class=(class) {
                p.label {
                    (head(first))
                    @if let Some(effect) = &item.effect {
                        span.effect title="the number of this effect" { (effect) }
                    }
                    (self.context.start.moment(first.at_ms))
                }
                (self.parts(first, pictures))
                @for other in others { (self.follower(other, pictures)) }
            }
        }
    }

    /// Draws an event that followed the first one.
    fn follower(&self, happening: &Happening, pictures: &mut PagePictures) -> Markup {
        html! {
            div class={ "part " (class(happening)) } {
                p.label {
                    (head(happening))
                    (self.context.start.moment(happening.at_ms))
                }
                (self.parts(happening, pictures))
            }
        }
    }

    fn parts(&self, happening: &Happening, pictures: &mut PagePictures) -> Markup {
        html! {
            @for part in &happening.parts {
                @match part {
                    HappeningPart::Badge(..) => {},
                    HappeningPart::Text(TextForm::Code, text) if happening.subject == HappeningSubject::Reply => {
                        details.more {
                            summary { "the reply, as the loop reads it" }
                            (self.text(TextForm::Code, text))
                        }
                    },
                    HappeningPart::Text(form, text) => { (self.text(*form, text)) },
                    HappeningPart::Arguments(arguments) => { (self.arguments(arguments)) },
                    HappeningPart::Card(card) => { (self.card(card)) },
                    HappeningPart::Picture(image) => { (pictures.figure(image, self.reader)) },
                    HappeningPart::Files(paths) => {
                        p.aside.files {
                            "files: "
                            @for path in briefs(paths.iter().map(String::as_str)) { code { (path) } }
                        }
                    },
                    HappeningPart::Run(run) => {
                        @if let Some(number) = self.context.children.get(run) {
                            p.aside { a href={ "#" (PageAnchor::Run(*number)) } { "its steps" } }
                        } @else if pictures.are_served() {
                            p.aside { a href={ "/runs/" (run) } { "its steps" } }
                        }
                    },
                }
            }
        }
    }

    fn text(&self, form: TextForm, text: &str) -> Markup {
        let kind = match form {
            TextForm::Prose => ExcerptKind::Prose,
            TextForm::Code => ExcerptKind::Code,
            TextForm::Output => ExcerptKind::Output,
            TextForm::Diff => ExcerptKind::Diff,
            TextForm::Aside => return html! { p.aside { (shorten(text, HEADLINE)) } },
            TextForm::Wrong => return html! { p.error { "! " (shorten(text, HEADLINE)) } },
        };
        Excerpt::of(text).render(kind, self.rest)
    }

    /// The arguments of a call: texts as they are, everything else as JSON, the short ones first.
    fn arguments(&self, arguments: &Value) -> Markup {
        let Some(object) = arguments.as_object() else {
            return html! { div.arguments { (self.argument("", arguments)) } };
        };
        let mut listed: Vec<_> = object.iter().take(LISTED).collect();
        listed.sort_by_key(|(_, value)| !as_excerpt(value).is_line());
        html! {
            div.arguments {
                @for (name, value) in listed { (self.argument(name, value)) }
                @if object.len() > LISTED {
                    p.aside { "and " (grouped(object.len() - LISTED)) " more" }
                }
            }
        }
    }

    fn argument(&self, name: &str, value: &Value) -> Markup {
        let excerpt = as_excerpt(value);
        let form = if value.is_string() { "text" } else { "json" };
        let long = if excerpt.is_line() { "" } else { " long" };
        html! {
            div class={ "argument " (form) (long) } {
                @if !name.is_empty() { span.name { (brief(name)) } }
                div.value { (excerpt.render(ExcerptKind::Code, self.rest)) }
            }
        }
    }

    fn card(&self, card: &ApprovalCard) -> Markup {
        html! {
            @if !card.reasons.is_empty() {
                ul {
                    @for reason in briefs(card.reasons.iter().map(String::as_str)) { li { (reason) } }
                }
            }
            @if !card.details.is_empty() {
                details.more {
                    summary { (whose(card)) }
                    div.untrusted {
                        @for detail in card.details.iter().take(LISTED) {
                            @let kind = if is_patch(&detail.text) { ExcerptKind::Diff } else { ExcerptKind::Code };
                            (Excerpt::of(&detail.text).render(kind, self.rest))
                        }
                    }
                }
            }
        }
    }
}

fn as_excerpt(value: &Value) -> Excerpt {
    match value.as_str() {
        Some(text) => Excerpt::of(text),
        None => Excerpt::of(&layout(value)),
    }
}

fn head(happening: &Happening) -> Markup {
    let name = if happening.headline.is_empty() {
        happening.subject.name()
    } else {
        &happening.headline
    };
    let prefix = if happening.subject == HappeningSubject::Verdict {
        "gate: "
    } else if happening.subject == HappeningSubject::Question {
        "asks: "
    } else {
        ""
    };
    html! {
        span.mark { (happening.subject.mark()) }
        span.name { (prefix) (shorten(name, HEADLINE)) }
        @for part in &happening.parts {
            @if let HappeningPart::Badge(tone, text) = part {
                span class={ "remark " (of_tone(*tone)) } { (brief(text)) }
            }
        }
        @if let Some(ms) = happening.took_ms { span.took { (duration(ms)) } }
    }
}

fn class(happening: &Happening) -> &'static str {
    match happening.subject {
        HappeningSubject::Request | HappeningSubject::Reply => "model",
        HappeningSubject::Result { failed: true } => "result bad",
        HappeningSubject::Result { failed: false } => "result",
        HappeningSubject::Question => "approval",
        HappeningSubject::Answer { approved: true } => "answer yes",
        HappeningSubject::Answer { approved: false } => "answer no",
        HappeningSubject::Child | HappeningSubject::ChildEnded => "child",
        HappeningSubject::Ended if happening.tone == Tone::Bad => "life bad",
        HappeningSubject::Resumed
        | HappeningSubject::Parked { .. }
        | HappeningSubject::Ended
        | HappeningSubject::HandedOver => "life",
        HappeningSubject::Goal
        | HappeningSubject::StepEnded
        | HappeningSubject::StepDropped
        | HappeningSubject::Warning
        | HappeningSubject::Person
        | HappeningSubject::ReplyFailed
        | HappeningSubject::Told
        | HappeningSubject::Thought
        | HappeningSubject::Reflection
        | HappeningSubject::Note
        | HappeningSubject::Value
        | HappeningSubject::Call
        | HappeningSubject::Verdict
        | HappeningSubject::Started
        | HappeningSubject::View
        | HappeningSubject::Wait
        | HappeningSubject::WaitEnded
        | HappeningSubject::Branches
        | HappeningSubject::Unreadable => of_tone(happening.tone),
    }
}

fn of_tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Thought => "thought",
        Tone::Call => "call",
        Tone::Observation => "observation",
        Tone::Ask => "ask",
        Tone::Bad => "bad",
        Tone::Strong => "strong",
        Tone::Aside | Tone::Plain => "note",
    }
}
