//! Topics of the bus, and whoever waits for events: how much waits, and what was dropped.

use std::collections::BTreeMap;

use gyrus_runtime::Overflow;
use gyrus_text::{counted, grouped, percent_encoded};
use maud::{Markup, html};

use super::frame::age;
use crate::{
    app::App,
    topics::{TopicCount, TopicCounts},
};

/// Maximum number of topics, and of queues of each kind, on the page.
const TOPICS: usize = 200;
const QUEUES: usize = 50;

pub(super) fn topics(counts: &TopicCounts) -> Markup {
    let mut newest: Vec<(&String, &TopicCount)> = counts.topics.iter().collect();
    newest.sort_by_key(|(_, count)| std::cmp::Reverse(count.last));
    let left_out = newest.len().saturating_sub(TOPICS);
    newest.truncate(TOPICS);
    let mut groups: BTreeMap<&str, Vec<(&String, &TopicCount)>> = BTreeMap::new();
    for (topic, count) in newest {
        let first = topic.split('.').next().unwrap_or(topic);
        groups.entry(first).or_default().push((topic, count));
    }
    html! {
        h2 { "Topics" }
        @if groups.is_empty() { p.nothing { "No event was published yet." } }
        @else {
            table.grid.tree {
                thead { tr {
                    th scope="col" { "Topic" } th.number scope="col" { "Events" } th scope="col" { "Last" }
                } }
                @for (first, mut topics) in groups {
                    @let () = topics.sort_by_key(|(topic, _)| *topic);
                    tbody { (group(first, &topics)) }
                }
            }
            p.aside {
                @if counts.since > 0 { "Counted from position " (grouped(counts.since + 1)) " on. " }
                @if left_out > 0 { (counted(left_out, "older topic")) " left out." }
            }
        }
    }
}

fn group(first: &str, topics: &[(&String, &TopicCount)]) -> Markup {
    let events: u64 = topics.iter().map(|(_, count)| count.events).sum();
    html! {
        @if topics.len() > 1 {
            tr.group {
                td { a href={ "/events?topic=" (percent_encoded(&format!("{first}.**"))) } { (first) ".**" } }
                td.number { (grouped(events)) }
                td {}
            }
        }
        @for (topic, count) in topics {
            tr.inner[topics.len() > 1] {
                td { a href={ "/events?topic=" (percent_encoded(topic)) } { (topic) } }
                td.number { (grouped(count.events)) }
                td { (age(count.last_ms)) }
            }
        }
    }
}

struct QueueLine {
    name: Markup,
    patterns: String,
    waiting: u64,
    capacity: Option<usize>,
    when_full: &'static str,
    dropped: Option<u64>,
}

/// Draws all queues, with the number of events that they dropped.
pub(super) fn queues(app: &App) -> Markup {
    let mut lines = mailboxes(app);
    lines.extend(live(app));
    lines.extend(durable(app));
    let dropped: u64 = lines.iter().filter_map(|line| line.dropped).sum();
    lines.sort_by_key(|line| std::cmp::Reverse((line.dropped, line.waiting)));
    let left_out = lines.len().saturating_sub(QUEUES);
    html! {
        h2 { "Queues" }
        @if dropped > 0 {
            p.overflow { b { (counted(usize::try_from(dropped).unwrap_or(usize::MAX), "event") ) " dropped or skipped" } " in all" }
        } @else { p.aside { "Nothing was dropped." } }
        div.scrolls tabindex="0" role="group" aria-label="Queues" {
            table.grid {
                thead { tr {
                    th scope="col" { "Receiver" }
                    th.number scope="col" { "Waiting" }
                    th.number scope="col" { "Dropped" }
                    th scope="col" { "When full" }
                    th scope="col" { "Topics" }
                } }
                tbody { @for line in lines.iter().take(QUEUES) { (drawn(line)) } }
            }
        }
        @if left_out > 0 { p.aside { (counted(left_out, "further queue")) ", with less in them" } }
    }
}

fn drawn(line: &QueueLine) -> Markup {
    html! {
        tr {
            td { (line.name) }
            td.number {
                @if line.capacity.is_none() && line.waiting > 0 { "at most " }
                (grouped(line.waiting))
                @if let Some(capacity) = line.capacity { " of " (grouped(capacity as u64)) }
            }
            td.number.bad[line.dropped.is_some_and(|dropped| dropped > 0)] {
                @match line.dropped { Some(dropped) => (grouped(dropped)), None => "never" }
            }
            td { (line.when_full) }
            td.name { (gyrus_text::clip(&line.patterns, 120)) }
        }
    }
}

fn mailboxes(app: &App) -> Vec<QueueLine> {
    use gyrus_runtime::agents::MailboxOverflow;
    let line = |name: String| {
        let looked = app.agents.look(&name, |record| {
            let config = record.config.as_ref()?;
            let own = config.subscriptions.iter().map(ToString::to_string);
            let patterns = std::iter::once(format!("agent.{name}.inbox")).chain(own);
            Some(QueueLine {
                name: html! { a href={ "/agents/" (name) } { (name) } " (agent)" },
                patterns: patterns.collect::<Vec<_>>().join(", "),
                waiting: record.mailbox.len() as u64,
                capacity: Some(config.mailbox),
                when_full: match config.overflow {
                    MailboxOverflow::DropOldest => "the oldest is dropped",
                    MailboxOverflow::DropNewest => "the new one is dropped",
                },
                dropped: Some(record.figures.dropped),
            })
        });
        looked.ok().flatten()
    };
    app.agents.names().into_iter().filter_map(line).collect()
}

fn live(app: &App) -> Vec<QueueLine> {
    let all = app.agents.bus().subscriptions().into_iter();
    all.map(|one| QueueLine {
        name: html! { (one.name) " (live)" },
        patterns: one
            .patterns
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
        waiting: one.depth as u64,
        capacity: Some(one.capacity),
        when_full: match one.overflow {
            Overflow::DropOldest => "the oldest is dropped",
            Overflow::DropNewest => "the new one is dropped",
            Overflow::Wait => "publishers wait",
        },
        dropped: Some(one.dropped),
    })
    .collect()
}

/// Returns the lines of durable subscribers, for which no stored event is dropped.
fn durable(app: &App) -> Vec<QueueLine> {
    let bus = app.agents.bus();
    let last = bus.last_position().map_or(0, |last| last.0);
    let all = bus.durable_subscribers().into_iter();
    all.map(|one| {
        let state = if one.is_connected {
            "durable"
        } else {
            "durable, away"
        };
        QueueLine {
            name: html! { (one.name) " (" (state) ")" },
            patterns: format!("acknowledged up to {}", one.acknowledged),
            waiting: last.saturating_sub(one.acknowledged.0),
            capacity: None,
            when_full: "the history keeps them",
            dropped: None,
        }
    })
    .collect()
}
