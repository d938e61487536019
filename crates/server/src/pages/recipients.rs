//! Agents, hooks and subscriptions that receive events of a topic, as they stand now.

use gyrus_runtime::{Topic, TopicPattern};
use maud::{Markup, html};

use crate::app::App;

/// Maximum number of recipients that a row names.
const NAMED: usize = 3;

pub(super) struct Recipient {
    pub(super) name: String,
    pub(super) is_agent: bool,
    patterns: Vec<TopicPattern>,
}

pub(super) struct Recipients(Vec<Recipient>);

impl Recipients {
    /// Returns the present recipients. May block for the disk.
    pub(super) fn now(app: &App) -> Self {
        let mut all = Vec::new();
        for name in app.agents.names() {
            let patterns = app.agents.look(&name, |record| {
                let config = record.config.as_ref();
                config.map(|config| config.subscriptions.clone())
            });
            let mut patterns = patterns.ok().flatten().unwrap_or_default();
            patterns.extend(format!("agent.{name}.inbox").parse());
            all.push(Recipient {
                name,
                is_agent: true,
                patterns,
            });
        }
        let hooks = app.program.configured(None).map(|set| set.hooks);
        all.extend(hooks.into_iter().flatten().map(|hook| Recipient {
            name: format!("hook {}", hook.name),
            is_agent: false,
            patterns: hook.events.iter().flat_map(|one| one.parse()).collect(),
        }));
        let live = app.agents.bus().subscriptions();
        all.extend(live.into_iter().map(|one| Recipient {
            name: one.name,
            is_agent: false,
            patterns: one.patterns,
        }));
        Self(all)
    }

    pub(super) fn of(&self, topic: &Topic) -> impl Iterator<Item = &Recipient> {
        let gets = |one: &&Recipient| one.patterns.iter().any(|pattern| pattern.matches(topic));
        self.0.iter().filter(gets)
    }

    pub(super) fn named(&self, topic: &Topic) -> Markup {
        let all: Vec<_> = self.of(topic).collect();
        html! {
            @for one in all.iter().take(NAMED) {
                @if one.is_agent { a href={ "/agents/" (one.name) } { (one.name) } }
                @else { span { (one.name) } }
                " "
            }
            @if all.len() > NAMED { span { "and " (all.len() - NAMED) " more" } }
            @if all.is_empty() { span.none { "nobody" } }
        }
    }
}
