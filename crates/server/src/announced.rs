//! Questions of runs as events, for hooks and agents that wait for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gyrus_contract::{Origin, RunId};
use gyrus_kernel::approvals::{self, OpenQuestion};
use gyrus_runtime::{Event, EventId};
use serde_json::json;

use crate::{api::runs::blocking, app::App};

/// Publishes each question that a run asks, once, as a durable event on `question.asked`, until the
/// server stops.
pub async fn announce_questions(app: Arc<App>) {
    let mut changes = app.heads.changes();
    let mut stopping = app.stopping.clone();
    let mut told: BTreeMap<RunId, BTreeSet<String>> = BTreeMap::new();
    let mut seen = 0;
    loop {
        let version = *changes.borrow_and_update();
        for head in app.heads.since(seen) {
            if head.questions == 0 {
                told.remove(&head.run);
                continue;
            }
            let (asking, run) = (Arc::clone(&app), head.run);
            let open = blocking(move || Ok(approvals::open(&asking.store, run)?)).await;
            let told = told.entry(run).or_default();
            for open in open.unwrap_or_default() {
                let id = open.id.to_string();
                // What is not stored now is tried again with the run's next change.
                if !told.contains(&id) && publish(&app, run, &open).await {
                    told.insert(id);
                }
            }
        }
        seen = version;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            _ = stopping.wait_for(|stop| *stop) => return,
        }
    }
}

async fn publish(app: &App, run: RunId, open: &OpenQuestion) -> bool {
    let payload = json!({
        "run": run,
        "asked_by": open.run,
        "question": open.id.to_string(),
        "needs_words": open.card.question,
        "until_ms": open.valid.until_ms,
    });
    let topic = "question.asked".parse().expect("it is a topic");
    let mut event = Event::new(topic, "server", Origin::Kernel, payload);
    // After a restart it is published again, and stored once.
    event.id = EventId::derived(&format!("question/{}/{}", open.run, open.id));
    app.agents.bus().publish_durable(event).await.is_ok()
}
