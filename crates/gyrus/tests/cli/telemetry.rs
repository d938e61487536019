//! Runs as a collector of OpenTelemetry receives them.

use std::{collections::BTreeMap, net::TcpListener, sync::Arc, thread};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest,
        metrics::v1::ExportMetricsServiceRequest,
        trace::v1::{
            ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
        },
    },
    trace::v1::Span,
};
use parking_lot::{Condvar, Mutex};
use prost::Message as _;

use crate::{
    http::{Message, answer},
    support::{Said, THREE_STEPS, TIMEOUT, UNTIL_GO, World, said},
};

/// A collector on loopback. It keeps what it receives, and answers as it is told.
struct Collector {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    received: Mutex<Vec<Message>>,
    arrived: Condvar,
}

impl Collector {
    fn answering(status: u16, body: String) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::<Shared>::default();
        let keeps = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (keeps, body, stream) = (keeps.clone(), body.clone(), stream.unwrap());
                thread::spawn(move || {
                    let Ok(message) = Message::read(&stream) else {
                        return;
                    };
                    // The client may be killed before it reads this.
                    let _ = answer(&stream, status, "application/x-protobuf", &body);
                    keeps.received.lock().push(message);
                    keeps.arrived.notify_all();
                });
            }
        });
        Self { address, shared }
    }

    fn new() -> Self {
        Self::answering(200, String::new())
    }

    /// The spans of all requests, in the order of their arrival.
    fn spans(&self) -> Vec<Span> {
        let received = self.shared.received.lock();
        received.iter().flat_map(spans).collect()
    }

    /// Waits for a span of this name.
    fn wait_for(&self, name: &str) {
        let mut received = self.shared.received.lock();
        let is_missing = |received: &mut Vec<Message>| {
            let mut spans = received.iter().flat_map(spans);
            !spans.any(|span| span.name == name)
        };
        let arrived = &self.shared.arrived;
        let waited = arrived.wait_while_for(&mut received, is_missing, TIMEOUT);
        assert!(!waited.timed_out(), "no span `{name}` has arrived");
    }

    /// Whether these bytes are in anything that was received.
    fn has(&self, words: &str) -> bool {
        let received = self.shared.received.lock();
        let has = |body: &[u8]| body.windows(words.len()).any(|at| at == words.as_bytes());
        received.iter().any(|message| has(&message.body))
    }
}

fn spans(message: &Message) -> Vec<Span> {
    if message.path() != "/v1/traces" {
        return Vec::new();
    }
    let request = ExportTraceServiceRequest::decode(&*message.body).unwrap();
    let scopes = request
        .resource_spans
        .into_iter()
        .flat_map(|of| of.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

/// Spans by id; panics if one came twice or its parent is missing.
#[track_caller]
fn tree(spans: Vec<Span>) -> BTreeMap<Vec<u8>, Span> {
    let number = spans.len();
    let spans: BTreeMap<_, _> = spans
        .into_iter()
        .map(|span| (span.span_id.clone(), span))
        .collect();
    assert_eq!(spans.len(), number, "a span came twice");
    let traces: std::collections::BTreeSet<_> = spans.values().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), 1, "{traces:?}");
    for span in spans.values() {
        let parent = &span.parent_span_id;
        assert!(parent.is_empty() || spans.contains_key(parent), "{span:?}");
        assert!(
            span.start_time_unix_nano <= span.end_time_unix_nano,
            "{span:?}"
        );
    }
    spans
}

/// Names of spans, each below its parent.
fn outline(spans: &BTreeMap<Vec<u8>, Span>) -> String {
    fn below(parent: &[u8], depth: usize, of: &BTreeMap<Vec<u8>, Span>, text: &mut String) {
        let mut children: Vec<_> = of
            .values()
            .filter(|span| span.parent_span_id == parent)
            .collect();
        children.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
        for child in children {
            text.push_str(&format!("{}{}\n", "  ".repeat(depth), child.name));
            below(&child.span_id, depth + 1, of, text);
        }
    }
    let mut text = String::new();
    below(&[], 0, spans, &mut text);
    text
}

/// Runs gyrus with telemetry to a collector.
fn sending(world: &World, to: &str, arguments: &[&str], more: &[(&str, &str)]) -> Said {
    let mut command = world.command(arguments);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", to);
    command.envs(more.iter().copied());
    said(command.output().unwrap())
}

#[test]
fn a_run_is_one_trace_and_says_nothing_of_its_content() {
    let (world, collector) = (World::new(THREE_STEPS), Collector::new());
    let run = world.run_arguments(&[]);
    let secret = (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Bearer%20s3cr3t-t0ken",
    );
    let ran = sending(&world, &collector.address, &run, &[secret]).exits(0);
    assert!(!ran.err.contains("telemetry"), "{ran:?}");

    let first = tree(collector.spans());
    insta::assert_snapshot!(outline(&first), @r"
    invoke_agent default
      cycle 1
        perceive
        think
          chat scripted
        act
          execute_tool write
      cycle 2
        perceive
        think
          chat scripted
        act
          execute_tool shell
      cycle 3
        perceive
        think
          chat scripted
        act
          execute_tool finish
    ");
    let head = &collector.shared.received.lock()[0].head.to_lowercase();
    assert!(
        head.contains("authorization: bearer s3cr3t-t0ken"),
        "{head}"
    );
    for words in [
        "say hello",
        "It says hello",
        "out.txt",
        "First a file",
        "s3cr3t",
    ] {
        assert!(!collector.has(words), "`{words}` was sent");
    }
    let received = collector.shared.received.lock();
    let of = |path: &'static str| {
        received
            .iter()
            .filter(move |message| message.path() == path)
    };
    let logs = of("/v1/logs").map(|message| {
        let logs = ExportLogsServiceRequest::decode(&*message.body).unwrap();
        logs.resource_logs[0].scope_logs[0].log_records.len()
    });
    assert_eq!(logs.sum::<usize>(), world.entries().len());
    let last = of("/v1/metrics").next_back().unwrap();
    let metrics = ExportMetricsServiceRequest::decode(&*last.body).unwrap();
    let metrics = &metrics.resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<_> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "gen_ai.client.token.usage",
            "gen_ai.client.operation.duration",
            "gyrus.runs",
            "gyrus.tool.calls"
        ]
    );
    drop(received);

    // Everything that was sent is forgotten when it was delivered.
    assert!(
        !world
            .path("home/telemetry")
            .join(world.runs()[0].to_string())
            .exists()
    );
    // Sent again from its journal it is the same, and with its content if that is asked for.
    let again = Collector::new();
    let with_content = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    let exported = ["telemetry", "last", "--to", &again.address];
    sending(&world, "http://127.0.0.1:1", &exported, &[with_content]).exits(0);
    let second = tree(again.spans());
    assert!(first.keys().eq(second.keys()), "the ids differ");
    for words in ["say hello", "It says hello", "out.txt", "First a file"] {
        assert!(again.has(words), "`{words}` was not sent");
    }
}

#[test]
fn a_killed_run_goes_on_in_its_trace_and_no_span_comes_twice() {
    let (world, collector) = (World::new(UNTIL_GO), Collector::new());
    let run = world.run_arguments(&[]);
    let mut command = world.command(&run);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    let mut child = command.spawn().unwrap();
    world.wait_for_file("ledger.txt", "begun");
    collector.wait_for("think");
    // It says how far it came a moment after the collector has it.
    let cursor = world
        .path("home/telemetry")
        .join(world.runs()[0].to_string());
    let until = std::time::Instant::now() + TIMEOUT;
    while !cursor.exists() {
        assert!(
            std::time::Instant::now() < until,
            "{} is missing",
            cursor.display()
        );
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !collector
            .spans()
            .iter()
            .any(|span| span.name.starts_with("invoke_agent"))
    );

    std::fs::write(world.work().join("go"), "").unwrap();
    sending(&world, &collector.address, &["resume", "last"], &[]).exits(0);
    let spans = tree(collector.spans());
    insta::assert_snapshot!(outline(&spans), @r"
    invoke_agent default
      cycle 1
        perceive
        think
          chat scripted
        act
          execute_tool shell
      invoke_agent default
        cycle 2
          perceive
          think
            chat scripted
          act
            execute_tool finish
    ");
    assert!(!cursor.exists());
}

#[test]
fn a_collector_that_takes_nothing_changes_nothing() {
    let world = World::new(THREE_STEPS);
    let run = world.run_arguments(&[]);
    let busy = Collector::answering(503, String::new());
    let listening = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let silent = format!("http://{}", listening.local_addr().unwrap());
    for (address, why) in [
        (busy.address.as_str(), "answered 503"),
        ("http://127.0.0.1:1", "Connection refused"),
        (&silent, "did not answer in time"),
        ("nowhere", "invalid OTEL_EXPORTER_OTLP_ENDPOINT"),
    ] {
        let ran = sending(&world, address, &run, &[]).exits(0).says(why);
        assert_eq!(ran.out, "It says hello.\n");
        assert_eq!(ran.err.matches("telemetry: ").count(), 1, "{ran:?}");
    }

    // What it takes only in part is told once, on one line that moves no cursor.
    let partly = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 2,
            error_message: "\u{1b}[2Jtoo old".to_owned(),
        }),
    };
    let partly = String::from_utf8(partly.encode_to_vec()).unwrap();
    let collector = Collector::answering(200, partly);
    let exported = sending(&world, &collector.address, &["telemetry", "last"], &[]);
    let exported = exported.exits(1).says("some spans were not taken");
    assert_eq!(
        exported.err.matches("rejected 2").count(),
        3,
        "{exported:?}"
    );
    assert!(!exported.err.contains('\u{1b}'), "{exported:?}");
    let refusing = Collector::answering(401, String::new());
    sending(&world, &refusing.address, &["telemetry", "last"], &[])
        .exits(1)
        .says("spans were not taken: the collector answered 401");
    world
        .gyrus(&["telemetry", "last"])
        .exits(2)
        .says("--to http://127.0.0.1:4318");
}
