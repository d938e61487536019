//! The element that shows the part of its cycle that a run is in. Its content is drawn here first, so
//! it is an ordinary list without scripts; `web/widget.js` draws it anew with what follows.

use gyrus_contract::RunId;
use gyrus_kernel::approvals;
use gyrus_surfaces::page::{duration, step_address};
use maud::{Markup, html};

use super::super::{frame::clock, waiting};
use crate::{
    api::cycle::{self, CycleView},
    app::App,
    error::ApiError,
    heads::RunWord,
};

/// Maximum number of listed stretches of time.
const LISTED: usize = 8;

/// Returns the element, with the questions of the run below the cycle.
pub(super) fn widget(app: &App, run: RunId) -> Result<Markup, ApiError> {
    Ok(html! {
        agent-cycle-fsm-widget run=(run) {
            (cycle(&cycle::view(app, run)?))
            div #questions data-live slot="questions" { (questions(app, run, &format!("/runs/{run}"))) }
        }
    })
}

pub(in crate::pages) fn questions(app: &App, run: RunId, back: &str) -> Markup {
    let open = approvals::open(&app.store, run).unwrap_or_default();
    html! { @for question in &open { (waiting::card(app, question, run, back)) } }
}

fn cycle(view: &CycleView) -> Markup {
    let past = &view.history[view.history.len().saturating_sub(LISTED)..];
    let present = view.history.last();
    let words = match view.state {
        RunWord::Over => "The run is over.",
        RunWord::Parked => "The run is parked.",
        RunWord::CutOff => "Its process died.",
        RunWord::Waiting => "It waits for a person.",
        RunWord::Running => {
            let now = view.phases.iter().find(|phase| phase.name == view.phase);
            now.map_or("", |phase| phase.words)
        }
    };
    html! {
        div.cycle data-phase=(view.phase) data-name=(view.name) {
            ol.ring aria-label="Parts of the cycle" {
                @for phase in &view.phases {
                    li data-state=[(!view.next.is_empty()).then_some("")] aria-current=[(phase.name == view.phase).then_some("true")] title=(phase.words) {
                        (phase.name)
                    }
                }
            }
            div.present {
                p.now { b { (view.phase) } " " span { (words) } }
                @if !view.next.is_empty() {
                    p.next {
                        "next: "
                        @for (number, next) in view.next.iter().enumerate() {
                            @if number > 0 { ", " }
                            (next.event) " → " (next.phase)
                        }
                    }
                }
                @if let Some(present) = present {
                    p.since {
                        @if present.cycle > 0 { "step " (present.cycle) ", " }
                        "since " (clock(present.from_ms))
                    }
                }
                p.goal-gist part="goal" { (view.goal) }
            }
            ol.history aria-label="Parts of the cycle that were last, with durations" {
                @for span in past.iter().rev() {
                    li title=[(!span.text.is_empty()).then_some(&span.text)] {
                        b { (span.phase) }
                        @if span.cycle > 0 {
                            a href=(step_address(view.run, span.seq)) { "step " (span.cycle) }
                        } @else { span { "start" } }
                        span.took { @if let Some(took) = span.took_ms { (duration(took)) } @else { "now" } }
                    }
                }
            }
        }
    }
}
