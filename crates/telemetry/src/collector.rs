//! OTLP over HTTP with protobuf: one request for each signal of a batch.

use std::time::Duration;

use futures_util::future::join_all;
use gyrus_net::{RootsError, causes, client_builder};
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse},
        metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse},
        trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    },
    common::v1::InstrumentationScope,
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    metrics::v1::{Metric, ResourceMetrics, ScopeMetrics},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use reqwest::{
    Client, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};

use crate::{
    SCHEMA_URL,
    attributes::text,
    settings::{Signal, SignalEndpoint, TelemetrySettings},
};

/// Time limit for connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Maximum bytes read of an answer.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Maximum number of shown characters of a collector's answer.
const MAX_SAID: usize = 200;

pub(crate) struct BatchRequests(Vec<(Signal, Vec<u8>)>);

impl BatchRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug, Default)]
pub(crate) struct SendOutcome {
    /// Sentences for the person: data that was not taken, and why.
    pub(crate) told: Vec<String>,
    /// Reason why some requests have to be sent again, if they have to.
    pub(crate) again: Option<String>,
    /// Time after which the collector wants the next attempt.
    pub(crate) after: Option<Duration>,
}

enum CollectorAnswer {
    Taken(Option<String>),
    Refused(String),
    Again(String, Option<Duration>),
}

pub(crate) struct Collector {
    endpoints: Vec<(SignalEndpoint, Client)>,
    resource: Resource,
}

impl Collector {
    /// Creates the client without sending anything.
    pub(crate) fn new(settings: &TelemetrySettings) -> Result<Self, CollectorError> {
        let clients = settings.endpoints.iter().map(|endpoint| {
            let builder = client_builder(&endpoint.address, CONNECT_LIMIT)?;
            let client = builder.timeout(settings.timeout).build()?;
            Ok((endpoint.clone(), client))
        });
        let mut attributes = vec![
            text("service.name", &settings.service),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ];
        let others = settings.resource.iter();
        attributes.extend(others.map(|(name, value)| text(name, value)));
        Ok(Self {
            endpoints: clients.collect::<Result<_, CollectorError>>()?,
            resource: Resource {
                attributes,
                ..Resource::default()
            },
        })
    }

    /// Returns the requests that deliver this telemetry of the run `instance`.
    pub(crate) fn requests(
        &self,
        instance: &str,
        spans: Vec<Span>,
        metrics: Vec<Metric>,
        logs: Vec<LogRecord>,
    ) -> BatchRequests {
        let mut resource = self.resource.clone();
        resource
            .attributes
            .push(text("service.instance.id", instance));
        let resource = Some(resource);
        let scope = Some(InstrumentationScope {
            name: "gyrus".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        });
        let schema_url = SCHEMA_URL.to_owned();
        let taken = |signal| self.endpoints.iter().any(|(one, _)| one.signal == signal);
        let mut requests = Vec::new();
        if !spans.is_empty() && taken(Signal::Traces) {
            let request = ExportTraceServiceRequest {
                resource_spans: vec![ResourceSpans {
                    resource: resource.clone(),
                    scope_spans: vec![ScopeSpans {
                        scope: scope.clone(),
                        spans,
                        schema_url: schema_url.clone(),
                    }],
                    schema_url: schema_url.clone(),
                }],
            };
            requests.push((Signal::Traces, request.encode_to_vec()));
        }
        if !metrics.is_empty() && taken(Signal::Metrics) {
            let request = ExportMetricsServiceRequest {
                resource_metrics: vec![ResourceMetrics {
                    resource: resource.clone(),
                    scope_metrics: vec![ScopeMetrics {
                        scope: scope.clone(),
                        metrics,
                        schema_url: schema_url.clone(),
                    }],
                    schema_url: schema_url.clone(),
                }],
            };
            requests.push((Signal::Metrics, request.encode_to_vec()));
        }
        if !logs.is_empty() && taken(Signal::Logs) {
            let request = ExportLogsServiceRequest {
                resource_logs: vec![ResourceLogs {
                    resource,
                    scope_logs: vec![ScopeLogs {
                        scope,
                        log_records: logs,
                        schema_url: schema_url.clone(),
                    }],
                    schema_url,
                }],
            };
            requests.push((Signal::Logs, request.encode_to_vec()));
        }
        BatchRequests(requests)
    }

    /// Sends requests concurrently. Those that were accepted or finally rejected are removed.
    pub(crate) async fn send(&self, requests: &mut BatchRequests) -> SendOutcome {
        let answers = join_all(
            requests
                .0
                .iter()
                .map(|(signal, body)| self.post(*signal, body)),
        );
        let answers = answers.await;
        let mut sent = SendOutcome::default();
        let mut answers = answers.into_iter();
        requests.0.retain(|(signal, _)| {
            let word = signal.word();
            match answers.next() {
                Some(CollectorAnswer::Taken(partly)) => {
                    let partly = partly.map(|why| format!("some {word} were not taken: {why}"));
                    sent.told.extend(partly);
                    false
                }
                Some(CollectorAnswer::Refused(why)) => {
                    sent.told.push(format!("{word} were not taken: {why}"));
                    false
                }
                Some(CollectorAnswer::Again(why, after)) => {
                    sent.again = Some(why);
                    sent.after = sent.after.max(after);
                    true
                }
                None => true,
            }
        });
        sent
    }

    async fn post(&self, signal: Signal, body: &[u8]) -> CollectorAnswer {
        let Some((endpoint, client)) = self.endpoints.iter().find(|(one, _)| one.signal == signal)
        else {
            return CollectorAnswer::Taken(None);
        };
        let request = client
            .post(endpoint.address.clone())
            .headers(endpoint.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body.to_vec());
        let response = match request.send().await {
            Ok(response) => response,
            // The address may have a password.
            Err(error) => return CollectorAnswer::Again(causes(&error.without_url()), None),
        };
        let status = response.status();
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let after = response.headers().get(RETRY_AFTER);
                let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
                CollectorAnswer::Again(
                    format!("the collector answered {status}"),
                    after.map(Duration::from_secs),
                )
            }
            status if status.is_success() => match bounded(response).await {
                Ok(bytes) => CollectorAnswer::Taken(partial_success(signal, &bytes)),
                // It took the data before it began to answer.
                Err(_) => CollectorAnswer::Taken(None),
            },
            status => CollectorAnswer::Refused(format!("the collector answered {status}")),
        }
    }
}

/// A collector for which no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The root certificates that the environment names are missing.
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error("no HTTP client can be made")]
    Client(#[from] reqwest::Error),
}

async fn bounded(mut response: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let left = MAX_ANSWER_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if bytes.len() == MAX_ANSWER_BYTES {
            break;
        }
    }
    Ok(bytes)
}

/// Returns the collector's message about data that it rejected, in one line.
fn partial_success(signal: Signal, bytes: &[u8]) -> Option<String> {
    let (rejected, message) = match signal {
        Signal::Traces => {
            let partly = ExportTraceServiceResponse::decode(bytes)
                .ok()?
                .partial_success?;
            (partly.rejected_spans, partly.error_message)
        }
        Signal::Metrics => {
            let partly = ExportMetricsServiceResponse::decode(bytes)
                .ok()?
                .partial_success?;
            (partly.rejected_data_points, partly.error_message)
        }
        Signal::Logs => {
            let partly = ExportLogsServiceResponse::decode(bytes)
                .ok()?
                .partial_success?;
            (partly.rejected_log_records, partly.error_message)
        }
    };
    if rejected == 0 && message.is_empty() {
        return None;
    }
    let message: String = message.chars().take(MAX_SAID).collect();
    Some(format!(
        "the collector rejected {rejected} and said \"{message}\""
    ))
}
