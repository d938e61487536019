//! One conversation as a sequence diagram: a lane for each party, an arrow for each event. The
//! table below it says the same.

use std::collections::BTreeSet;

use gyrus_contract::RunId;
use gyrus_runtime::Event;
use gyrus_text::{clip, counted};
use maud::{Markup, html};

use super::recipients::Recipients;
use crate::{app::App, sse::PlacedEvent};

/// Maximum number of lanes; further parties share the last one.
const LANES: usize = 8;

/// Sizes of the drawing.
const LANE: usize = 170;
const ROW: usize = 38;
const HEAD: usize = 34;

/// The lane of events that no agent receives.
const BUS: &str = "the bus";

/// The lane of all parties without one of their own.
const OTHERS: &str = "others";

/// Returns the runs that an event is about: the one that it names, and those of its conversation.
pub(super) fn runs(app: &App, event: &Event) -> BTreeSet<RunId> {
    let named = event.payload["run"].as_str();
    let mut runs: BTreeSet<RunId> = named.and_then(|run| run.parse().ok()).into_iter().collect();
    if let Some(id) = &event.correlation {
        runs.extend(of_conversation(app, id));
    }
    runs.retain(|run| app.store.exists(&gyrus_kernel::log_name(*run)));
    runs
}

fn of_conversation(app: &App, id: &str) -> Vec<RunId> {
    app.gateway.with(|queue| {
        let own = queue
            .all()
            .into_iter()
            .filter(|one| one.command.id == id || one.command.correlation.as_deref() == Some(id));
        own.map(|one| one.command.run).collect()
    })
}

struct Arrow {
    from: usize,
    to: usize,
    position: u64,
    topic: String,
}

pub(super) fn drawn(
    app: &App,
    id: &str,
    events: &[PlacedEvent],
    recipients: &Recipients,
) -> Markup {
    let runs: Vec<_> = of_conversation(app, id)
        .into_iter()
        .filter(|run| app.store.exists(&gyrus_kernel::log_name(*run)))
        .collect();
    let (lanes, arrows) = laid_out(events, recipients);
    html! {
        h2 { "Conversation " code.name { (clip(id, 200)) } }
        p.aside {
            (counted(events.len(), "event"))
            @if !runs.is_empty() {
                "; runs: " @for run in &runs { a href={ "/runs/" (run) } { (run.short()) } " " }
            }
        }
        @if !arrows.is_empty() { (drawing(&lanes, &arrows)) }
    }
}

fn laid_out(events: &[PlacedEvent], recipients: &Recipients) -> (Vec<String>, Vec<Arrow>) {
    let (mut lanes, mut arrows) = (Vec::<String>::new(), Vec::new());
    let mut lane = |name: &str| {
        if let Some(at) = lanes.iter().position(|known| known == name) {
            return at;
        }
        if lanes.len() == LANES {
            lanes[LANES - 1] = OTHERS.to_owned();
            return LANES - 1;
        }
        lanes.push(name.to_owned());
        lanes.len() - 1
    };
    let mut oldest_first: Vec<_> = events.iter().collect();
    oldest_first.sort_by_key(|one| one.position);
    for placed in oldest_first {
        let from = lane(&placed.event.from);
        let agent = recipients
            .of(&placed.event.topic)
            .find(|one| one.is_agent && one.name != placed.event.from);
        arrows.push(Arrow {
            from,
            to: lane(agent.map_or(BUS, |agent| &agent.name)),
            position: placed.position,
            topic: placed.event.topic.to_string(),
        });
    }
    (lanes, arrows)
}

fn drawing(lanes: &[String], arrows: &[Arrow]) -> Markup {
    let (width, height) = (lanes.len() * LANE, HEAD + arrows.len() * ROW + 10);
    let middle = |lane: usize| lane * LANE + LANE / 2;
    html! {
        div.scrolls tabindex="0" role="group" aria-label="Sequence of the events" {
            svg.lanes width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
                role="group" aria-label={ (counted(arrows.len(), "event")) " between " (lanes.join(", ")) } {
                @for (at, name) in lanes.iter().enumerate() {
                    text.party x=(middle(at)) y="18" { (clip(name, 20)) title { (name) } }
                    line.lane x1=(middle(at)) y1="28" x2=(middle(at)) y2=(height) {}
                }
                @for (at, arrow) in arrows.iter().enumerate() {
                    @let y = HEAD + at * ROW + ROW - 10;
                    @let (from, to) = (middle(arrow.from), middle(arrow.to));
                    a href={ "/events/" (arrow.position) } {
                        title { (arrow.position) ": " (arrow.topic) }
                        rect.room x="0" y=(y - ROW + 12) width=(width) height=(ROW - 4) {}
                        text.topic x=(from.min(to) + 8) y=(y - 7) { (clip(&arrow.topic, 34)) }
                        (stroke(from, to, y))
                    }
                }
            }
        }
    }
}

/// Returns a line with a head; a small loop if it leads back to its own lane.
fn stroke(from: usize, to: usize, y: usize) -> Markup {
    let line = if from == to {
        format!("M{from} {y} h 26 v 7 h -20")
    } else {
        format!("M{from} {y} H{to}")
    };
    let (tip, back, y) = if from == to {
        (to + 2, to + 9, y + 7)
    } else if to > from {
        (to, to - 8, y)
    } else {
        (to, to + 8, y)
    };
    html! {
        path.arrow d=(line) {}
        path.tip d={ "M" (tip) " " (y) " L" (back) " " (y - 4) " L" (back) " " (y + 4) " Z" } {}
    }
}
