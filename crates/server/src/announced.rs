//! Questions of runs, and decisions about changesets, as events, for hooks and agents that wait for
//! them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gyrus_contract::{Origin, RunId};
use gyrus_kernel::{
    approvals::{self, OpenQuestion},
    log_name,
};
use gyrus_runtime::{Event, EventId};
use gyrus_surfaces::change_cycle::{ChangeSpan, transition};
use serde_json::json;

use crate::{
    api::{
        cycle::CHANGESET,
        runs::{blocking, overview},
    },
    app::App,
    heads::{RunHead, RunWord},
};

/// Publishes each question that a run asks, once, as a durable event on `question.asked`, and each
/// decision about a changeset on its own topic (`user:approve:context`), until the server stops.
pub async fn announce(app: Arc<App>) {
    let mut changes = app.heads.changes();
    let mut stopping = app.stopping.clone();
    let mut told: BTreeMap<RunId, BTreeSet<String>> = BTreeMap::new();
    let mut decided: BTreeMap<RunId, Option<u64>> = BTreeMap::new();
    let mut seen = 0;
    loop {
        let version = *changes.borrow_and_update();
        for head in app.heads.since(seen) {
            publish_decisions(&app, &head, &mut decided).await;
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

/// Publishes the decisions about a changeset made since the last call. `decided` holds the entry of
/// each run up to which was looked; `None` stands for a run of another loop.
async fn publish_decisions(
    app: &Arc<App>,
    head: &RunHead,
    decided: &mut BTreeMap<RunId, Option<u64>>,
) {
    let (run, end) = (head.run, head.seq);
    let Some(from) = *decided.entry(run).or_insert(Some(1)) else {
        return;
    };
    let reading = Arc::clone(app);
    let found = blocking(move || {
        let reader = reading.store.reader(&log_name(run))?;
        if from == 1 && overview(&reading, run)?.cognitive_loop != CHANGESET {
            return Ok(None);
        }
        let mut spans = Vec::new();
        for entry in reader.entries(from)? {
            let entry = entry?;
            if entry.seq > end {
                break;
            }
            spans.extend(transition(&entry));
        }
        Ok(Some(spans))
    });
    match found.await {
        // It is looked at again with its next change.
        Err(_) => {}
        Ok(None) => {
            decided.insert(run, None);
        }
        Ok(Some(spans)) => {
            for span in spans {
                if !publish_decision(app, run, &span).await {
                    return;
                }
            }
            let next = (head.state != RunWord::Over).then_some(end + 1);
            decided.insert(run, next);
        }
    }
}

async fn publish_decision(app: &App, run: RunId, span: &ChangeSpan) -> bool {
    let event = span
        .event
        .map(|event| event.to_string())
        .unwrap_or_default();
    if !event.starts_with("user:") {
        return true;
    }
    let payload =
        json!({"run": run, "entry": span.seq, "to": span.state, "by": span.by, "text": span.text});
    let topic = event.parse().expect("it is a topic");
    let mut event = Event::new(topic, "server", Origin::Run, payload);
    event.id = EventId::derived(&format!("changeset/{run}/{}", span.seq));
    event.correlation = Some(run.to_string());
    app.agents.bus().publish_durable(event).await.is_ok()
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
