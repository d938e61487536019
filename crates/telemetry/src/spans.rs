//! Parts of spans: failures, events and links.

use opentelemetry_proto::tonic::{
    common::v1::KeyValue,
    trace::v1::{
        Span, Status,
        span::{Event, Link},
        status::StatusCode,
    },
};

use crate::{
    attributes::{ERROR_TYPE, text},
    ids::SpanId,
};

/// Maximum number of events of a span; further ones are counted.
const MAX_EVENTS: usize = 128;

/// Marks a span as failed, with a class of error, and a message if content may be exported.
pub(crate) fn fail(span: &mut Span, class: &str, words: Option<&str>) {
    span.attributes.push(text(ERROR_TYPE, class));
    span.status = Some(Status {
        code: StatusCode::Error.into(),
        message: words.unwrap_or_default().chars().take(1000).collect(),
    });
}

pub(crate) fn event(name: &str, now_ns: u64, attributes: Vec<KeyValue>) -> Event {
    Event {
        time_unix_nano: now_ns,
        name: name.chars().take(100).collect(),
        attributes,
        ..Event::default()
    }
}

pub(crate) fn add_event(span: &mut Span, event: Event) {
    if span.events.len() < MAX_EVENTS {
        span.events.push(event);
    } else {
        span.dropped_events_count += 1;
    }
}

pub(crate) fn link(trace: Vec<u8>, span: SpanId) -> Link {
    Link {
        trace_id: trace,
        span_id: span.to_vec(),
        ..Link::default()
    }
}
