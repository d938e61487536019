//! Journals as spans: child runs, questions, retries, and what a crash leaves open.

#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use std::collections::BTreeMap;

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::{NewEntry, Store};
use gyrus_kernel::log_name;
use gyrus_telemetry::{ProjectionOptions, TelemetryProjection};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

const OPTIONS: ProjectionOptions = ProjectionOptions {
    content: false,
    provider: |name| name,
};

/// Writes these entries as the journal of a run, and returns the spans that follow from them.
fn spans(store: &Store, run: RunId, trace: RunId, entries: &[(&str, Value)]) -> Vec<Span> {
    let entries: Vec<_> = entries
        .iter()
        .map(|(kind, payload)| NewEntry {
            kind,
            version: 1,
            payload: serde_json::value::to_raw_value(payload).unwrap(),
        })
        .collect();
    let writer = store.create(&log_name(run)).unwrap();
    writer.append(&entries).unwrap();
    writer.barrier_blocking().unwrap();
    let reader = writer.reader().unwrap();
    let mut projection = TelemetryProjection::new(run, trace, OPTIONS);
    let entries = reader.entries(1).unwrap();
    entries
        .flat_map(|entry| projection.take(&entry.unwrap(), &reader).spans)
        .collect()
}

fn started(run: RunId) -> Value {
    json!({
        "run": run, "goal": {"is": {"text": "g", "from": "person"}}, "loop": "react",
        "loop_config": {}, "workspace": "/w", "limits": {}, "mode": "ask", "on_ask": "deny",
        "pins": {}, "tools": [], "model": "p/m",
    })
}

fn called(effect: &str, tool: &str) -> (&'static str, Value) {
    let call = json!({"id": "c", "tool": tool, "arguments": {"secret": "words"}});
    ("tool.call", json!({"effect": effect, "call": call}))
}

fn resulted(effect: &str) -> (&'static str, Value) {
    let result = json!({
        "effect": effect, "settled": "done", "text": {"is": "t"}, "verdict": "changed", "took_ms": 1,
    });
    ("tool.result", result)
}

fn ended() -> (&'static str, Value) {
    let claim = json!({"reached": true, "answer": "a"});
    let spent = json!({"steps": 1, "tokens": 2, "cost": 3, "time_ms": 4});
    let ended = json!({"ending": "reached", "claim": claim, "spent": spent});
    ("run.ended", ended)
}

/// Names of spans in the order in which they end, each with the name of its parent.
fn parents(spans: &[Span]) -> String {
    let names: BTreeMap<_, _> = spans
        .iter()
        .map(|span| (&span.span_id, &*span.name))
        .collect();
    let parents = spans.iter().map(|span| {
        let parent = names.get(&span.parent_span_id).copied();
        format!("{} in {}\n", span.name, parent.unwrap_or("nothing"))
    });
    parents.collect()
}

#[test]
fn a_child_run_is_below_the_effect_that_delegated_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let parent = RunId::new();
    let effect: EffectId = "1.2.1".parse().unwrap();
    let child = RunId::child(parent, &effect);
    let begins = json!({
        "effect": effect, "child": child, "goal": "g", "limits": {},
        "digest": "175703da34405f63aecbc2c0cc76b75a",
    });
    let ends = json!({
        "effect": effect, "child": child, "ending": "interrupted",
        "spent": {"steps": 1, "tokens": 2, "cost": 3, "time_ms": 4},
    });
    let mut all = spans(
        &store,
        parent,
        parent,
        &[
            ("run.started", started(parent)),
            called("1.2", "browse"),
            ("child.started", begins),
            ("child.ended", ends),
            resulted("1.2"),
            ended(),
        ],
    );
    let mut of_child = started(child);
    of_child["parent"] = json!({"run": parent, "effect": effect, "depth": 1});
    let below = spans(&store, child, parent, &[("run.started", of_child), ended()]);
    let delegate = all.iter().find(|span| span.name == "delegate").unwrap();
    assert_eq!(delegate.links[0].span_id, below[0].span_id);
    assert_eq!(delegate.trace_id, below[0].trace_id);
    all.extend(below);
    insta::assert_snapshot!(parents(&all), @r"
    perceive in cycle 1
    delegate in execute_tool browse
    execute_tool browse in act
    act in cycle 1
    cycle 1 in invoke_agent default
    invoke_agent default in nothing
    invoke_agent default in delegate
    ");
}

#[test]
fn a_question_is_inside_its_call_also_over_a_park() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let run = RunId::new();
    let digest = "175703da34405f63aecbc2c0cc76b75a";
    let card = json!({"sentence": "s", "reasons": [], "details": []});
    let asked = json!({"effect": "1.1", "card": card, "digest": digest});
    let by = json!({"surface": "page", "id": "anna", "role": "owner"});
    let answered = json!({"effect": "1.1", "digest": digest, "approved": true, "by": by});
    let spent = json!({"steps": 0, "tokens": 0, "cost": 0, "time_ms": 0});
    let parked = json!({
        "ending": "waiting", "effect": "1.1", "question": "s", "spent": spent,
    });
    let process = json!({"pid": 1, "start_time": 1, "boot_id": "b"});
    let resumed = json!({
        "process": process, "limits": {}, "mode": "ask", "on_ask": "park", "pins": {},
    });
    let spans = spans(
        &store,
        run,
        run,
        &[
            ("run.started", started(run)),
            called("1.1", "shell"),
            ("approval.asked", asked),
            ("run.parked", parked),
            ("run.resumed", resumed.clone()),
            ("approval.answered", answered),
            // The process is killed here.
            ("run.resumed", resumed),
            resulted("1.1"),
            // A call that nobody ended.
            called("1.3", "shell"),
            ended(),
        ],
    );
    insta::assert_snapshot!(parents(&spans), @r"
    perceive in cycle 1
    invoke_agent default in nothing
    approval in execute_tool shell
    invoke_agent default in invoke_agent default
    execute_tool shell in act
    execute_tool shell in act
    act in cycle 1
    cycle 1 in invoke_agent default
    invoke_agent default in invoke_agent default
    ");
    let failed: Vec<_> = spans.iter().filter(|span| span.status.is_some()).collect();
    let failed: Vec<_> = failed.iter().map(|span| &*span.name).collect();
    assert_eq!(
        failed,
        ["invoke_agent default", "execute_tool shell", "cycle 1"]
    );
    assert!(!format!("{spans:?}").contains("words"));
}
