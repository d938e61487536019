//! Pages of MiniWoB++, family by family: from what a page asks for and what its screen shows to
//! what a person would do. Only what, never where: every target is found in the prompt.
//!
//! Most requests are a list of steps, known from their words (`steps`). Where what is done next
//! depends on what the page shows, a family decides turn by turn (`Sight`, `Deed`).

mod sight;
mod steps;
mod dates;
mod mail;
mod tables;
mod fields;
mod posts;
mod moving;
mod words;
mod drawn;
mod points;

use serde_json::Value;

pub(crate) use self::sight::Sight;
use crate::task::Step;

/// Decision of a family.
#[derive(Debug)]
pub(crate) enum Deed {
    /// These actions now, and the family goes on from what it notes.
    Now(Vec<Value>, String),
    /// The same, without a note.
    Do(Vec<Value>),
    /// Steps, as of any task.
    Steps(Vec<Step>),
    /// Steps that only this screen told of: they are noted as a whole.
    Plan(Vec<Step>),
}

/// Decides what is done about a request; `None` if it is not understood.
pub(crate) fn decide(sight: &Sight<'_>) -> Option<Deed> {
    let page = sight.page();
    let family = match page {
        _ if page.starts_with("choose-date") => dates::chosen,
        _ if page.starts_with("book-flight") => dates::flight,
        _ if page.starts_with("email-inbox") => mail::inbox,
        _ if page.starts_with("use-autocomplete") => fields::completed,
        _ if page.starts_with("social-media") => posts::posts,
        _ if page.starts_with("multi-") => fields::labelled,
        _ if page.starts_with("form-sequence") => fields::sequence,
        "use-slider" | "use-slider-2" => fields::sliders,
        "use-spinner" => fields::spinner,
        "copy-paste" | "copy-paste-2" => fields::copied,
        "login-user-popup" => fields::login,
        "buy-ticket" => tables::ticket,
        "read-table" | "read-table-2" => tables::values,
        "phone-book" => tables::contact,
        "search-engine" => tables::results,
        "navigate-tree" => tables::tree,
        "order-food" => tables::food,
        "find-word" => words::nth,
        "scroll-text" => words::last,
        "click-checkboxes-soft" => words::alike,
        "simple-arithmetic" | "simple-algebra" => words::solved,
        "odd-or-even" => words::parity,
        "text-transform" => words::letters_of,
        "generate-number" => words::generated,
        "guess-number" => words::guessed,
        "find-greatest" => words::greatest,
        "identify-shape" => words::shape,
        "terminal" => words::terminal,
        "text-editor" => words::styled,
        "number-checkboxes" => words::drawn_number,
        "stock-market" => words::bought,
        "sign-agreement" | "scroll-text-2" => moving::scrolled,
        "ascending-numbers" => moving::ascending,
        "drag-items" | "drag-items-grid" => moving::items,
        "drag-sort-numbers" => moving::sorted,
        "drag-box" => moving::into_box,
        "click-pie" | "click-pie-nodelay" => moving::pie,
        "click-menu-2" => moving::menu,
        "click-widget" => moving::widget,
        "click-color" => drawn::colour,
        "click-shades" => drawn::shades,
        "grid-coordinate" => drawn::grid,
        "find-midpoint" => drawn::midpoint,
        "draw-line" => drawn::line,
        "visual-addition" => drawn::blocks,
        "drag-circle" | "drag-single-shape" => drawn::dragged,
        "button-delay" => moving::delayed,
        "highlight-text" | "highlight-text-2" => words::selected,
        "right-angle" => points::right_angle,
        "bisect-angle" => points::bisected,
        "circle-center" => points::centre,
        "draw-circle" => points::circled,
        "count-sides" => points::sides,
        "drag-shapes" | "drag-shapes-2" => points::boxed,
        "use-colorwheel" | "use-colorwheel-2" => points::picked,
        "hot-cold" => points::warm,
        _ => return steps::does(sight.asked).map(Deed::Steps),
    };
    family(sight)
}

/// Steps as a note: kind, target, which of several, text.
pub(crate) fn noted(steps: &[Step]) -> String {
    let one = |step: &Step| {
        let (kind, on) = match &step.types {
            Some(on) => ("type", on.as_str()),
            None => ("click", step.click.as_deref().unwrap_or_default()),
        };
        let nth = step.nth.unwrap_or(1);
        let text = step.text.as_deref().unwrap_or_default();
        format!("{kind}|{on}|{nth}|{text}")
    };
    steps.iter().map(one).collect::<Vec<_>>().join(";")
}

/// The steps of a note; nothing if it holds none.
pub(crate) fn plan(note: &str) -> Option<Vec<Step>> {
    let one = |step: &str| {
        let mut parts = step.splitn(4, '|').map(str::to_owned);
        let (kind, on) = (parts.next()?, parts.next()?);
        let nth = parts.next()?.parse().ok();
        Some(match kind.as_str() {
            "type" => Step {
                types: Some(on),
                nth,
                text: parts.next(),
                ..Step::default()
            },
            _ => Step {
                nth,
                ..steps::click(on)
            },
        })
    };
    note.split(';').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Prompt;

    #[test]
    fn steps_come_back_from_a_note() {
        let steps = vec![
            steps::types(2, "a | b"),
            Step {
                nth: Some(3),
                ..steps::click("button Even")
            },
        ];
        assert_eq!(plan(&noted(&steps)), Some(steps));
        assert_eq!(plan(""), None);
    }

    #[test]
    fn a_family_reads_its_page() {
        let said = "=== the screen (data) ===\n\
                    page \"T\" at \"http://x/miniwob/buy-ticket.html?seed=1\"\n\
                    \"3h 43m\"\nb4 button \"Book for $1117\"\n\
                    \"0h 7m\"\nb7 button \"Book for $280\"\n=== end of the screen ===";
        let prompt = Prompt::read("", said);
        let sight = Sight {
            asked: "Buy the ticket with the shortest duration.",
            prompt: &prompt,
            picture: None,
        };
        let Some(Deed::Do(actions)) = decide(&sight) else {
            panic!("it is not understood");
        };
        assert_eq!(actions, [serde_json::json!({"do": "click", "on": "b7"})]);
    }
}
