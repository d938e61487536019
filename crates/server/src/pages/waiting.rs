//! All that waits for a person. A card is shown whole: what is approved was there to be read.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Extension,
    extract::State,
    response::{Html, Response},
};
use gyrus_contract::{Answer, ApprovalScope, RunId};
use gyrus_kernel::{
    ApprovalCard,
    approvals::{self, OpenQuestion},
};
use gyrus_surfaces::page::{duration, whole_text, whose};
use gyrus_text::counted;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    forms::{see, typed},
    frame::{NavigationPlace, age},
    hunks::Hunks,
};
use crate::{
    api::{
        questions::{self, all_open},
        runs::blocking,
    },
    app::App,
    error::ApiError,
    extract::{ApiForm, ApiPath, RunInPath},
    tokens::Requester,
};
use gyrus_kernel::now_ms;

pub(super) async fn all(State(app): State<Arc<App>>) -> Result<Html<String>, ApiError> {
    blocking(move || {
        let open = all_open(&app);
        let main = html! {
            div.heading { h1 { "Waiting" } p.aside { (counted(open.len(), "question")) @if open.len() > 1 { ", oldest first" } } }
            div #questions data-live {
                @if open.is_empty() { p.nothing { "Nothing waits for a person." } }
                @for question in &open { (card(&app, question, question.run, "/waiting")) }
            }
        };
        Ok(NavigationPlace::Waiting.page(&app, "Waiting", &main))
    })
    .await
}

/// Returns the card of a question, with the ways to answer it. `back` is the page that it stands on.
pub(super) fn card(app: &App, open: &OpenQuestion, shown_at: RunId, back: &str) -> Markup {
    let hunks = open.card.edit.as_deref().and_then(Hunks::of);
    let answered = approvals::waiting_answer(&app.store, open).ok().flatten();
    let id = format!("question-{}-{}", open.run, open.id).replace('.', "-");
    let card = &open.card;
    html! {
        article.question id=(id) data-question=(id) aria-labelledby={ (id) "-what" } {
            p.label {
                span.mark aria-hidden="true" { "◆" }
                b { @if card.question { "asks for words" } @else { "asks for approval" } }
                a href={ "/runs/" (shown_at) } { "run " (open.run.short()) ", question " (open.id) }
                a href={ "/runs/" (shown_at) "/live" } { "live" }
                (age(open.valid.from_ms))
                span { "expires in " (duration(open.valid.left_ms(now_ms()))) }
            }
            h2 id={ (id) "-what" } { (card.sentence) }
            @if !card.reasons.is_empty() { ul.reasons { @for reason in &card.reasons { li { (reason) } } } }
            // The hunks with their ticks are the details, whole.
            @if !card.details.is_empty() && (hunks.is_none() || answered.is_some()) {
                p.label { (whose(card)) ":" }
                div.untrusted tabindex="0" role="group" aria-label=(whose(card)) {
                    @for detail in &card.details { (whole_text(&detail.text)) }
                }
            }
            @match &answered {
                Some(answer) => { p.answered role="status" { "answered: " (answer) } },
                None => { (answers(open, card, hunks.as_ref(), back)) },
            }
        }
    }
}

/// The forms of a card: each button says in words what it covers.
fn answers(open: &OpenQuestion, card: &ApprovalCard, hunks: Option<&Hunks>, back: &str) -> Markup {
    let wider: Vec<String> = card.wider.iter().map(ToString::to_string).collect();
    let wider = wider.join(" and ");
    let text = card.edit.as_ref().map(|edit| {
        html! {
            label { "What is approved, as you may edit it"
                textarea name="edited" rows="10" spellcheck="false" { (edit) } }
        }
    });
    let form = |fields: Markup| {
        html! {
            form.answers method="post" action={ "/runs/" (open.run) "/questions/" (open.id) "/answer" } {
                input type="hidden" name="back" value=(back);
                (fields)
            }
        }
    };
    let main = html! {
        @match (hunks, &text) {
            (Some(hunks), _) => { (hunks.fields()) },
            (None, Some(text)) => { (text) },
            (None, None) => {},
        }
        @if card.question {
            label { "Your answer" textarea name="words" rows="3" {} }
            p.choices { button.primary name="answer" value="once" { "Answer" } }
        } @else {
            p.choices {
                button.primary name="answer" value="once" {
                    @if hunks.is_some() { "Yes to what is ticked" } @else { "Yes, this once" }
                }
                @if !card.wider.is_empty() {
                    button name="answer" value="session" { "Yes, for this session: " (wider) }
                    button name="answer" value="always" { "Yes, always in this folder: " (wider) }
                }
            }
            label { "Why not, or what to do instead (optional)" textarea name="words" rows="2" {} }
        }
        p.choices { button.danger name="answer" value="no" { "No" } }
    };
    html! {
        (form(main))
        @if let (Some(_), Some(text)) = (hunks, text) {
            details.as-text {
                summary { "Edit it as a text instead" }
                (form(html! { (text) p.choices { button name="answer" value="once" { "Yes to this text" } } }))
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct TypedAnswer {
    answer: String,
    #[serde(default)]
    words: String,
    edited: Option<String>,
    #[serde(default)]
    back: String,
    /// Whether parts are approved by ticks.
    #[serde(default)]
    ticked: String,
    #[serde(flatten)]
    ticks: HashMap<String, String>,
}

pub(super) async fn answer(
    State(app): State<Arc<App>>,
    Extension(identity): Extension<Requester>,
    RunInPath(run): RunInPath,
    ApiPath(path): ApiPath<HashMap<String, String>>,
    ApiForm(form): ApiForm<TypedAnswer>,
) -> Result<Response, ApiError> {
    let question = path.get("question").cloned().unwrap_or_default();
    let back = match form.back.strip_prefix("/runs/") {
        Some(run) if run.parse::<RunId>().is_ok() => form.back.clone(),
        _ => "/waiting".to_owned(),
    };
    blocking(move || {
        let open = questions::find(&app, run, &question)?;
        let answer = given(form, &open.card)?;
        questions::give(&app, &identity, &open, answer)
    })
    .await?;
    Ok(see(&back))
}

fn given(form: TypedAnswer, card: &ApprovalCard) -> Result<Answer, ApiError> {
    let reason = typed(form.words);
    let scope = match form.answer.as_str() {
        "no" => return Ok(Answer::Deny { reason }),
        "once" => ApprovalScope::Once,
        "session" => ApprovalScope::Session,
        "always" => ApprovalScope::Always,
        other => {
            let error = format!("invalid answer: `{other}` is none of once, session, always, no");
            return Err(ApiError::bad_request(error));
        }
    };
    let edited = match &card.edit {
        Some(edit) if !form.ticked.is_empty() => {
            Some(Hunks::of(edit).unwrap_or_default().ticked(&form.ticks))
        }
        // A form changes line breaks.
        _ => form.edited.map(|edited| edited.replace("\r\n", "\n")),
    };
    Ok(match (edited, reason) {
        (Some(text), _) => approvals::edited(card, text)?,
        (None, Some(words)) => approvals::reply(card, words)?,
        (None, None) => Answer::yes(scope),
    })
}
