//! The destination of telemetry and what it says: the variables that OpenTelemetry defines for every
//! program, and a section of the configuration file.

use std::{fmt, str::FromStr, time::Duration};

use gyrus_text::percent_decoded;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use crate::{metrics::Temporality, projection::ProjectionOptions};

/// The kind of data that an endpoint accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    pub(crate) const ALL: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

    /// Returns the signal's part of a variable's name, and the path of its endpoint.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Signal::Traces => ("TRACES", "v1/traces"),
            Signal::Metrics => ("METRICS", "v1/metrics"),
            Signal::Logs => ("LOGS", "v1/logs"),
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Signal::Traces => "spans",
            Signal::Metrics => "metrics",
            Signal::Logs => "log records",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SignalEndpoint {
    pub(crate) signal: Signal,
    pub(crate) address: Url,
    /// Sent with every request. The values are marked as secret and never shown.
    pub(crate) headers: HeaderMap,
}

/// The destination and the content of telemetry.
#[derive(Debug, Clone)]
pub struct TelemetrySettings {
    pub(crate) endpoints: Vec<SignalEndpoint>,
    pub(crate) timeout: Duration,
    pub(crate) temporality: Temporality,
    pub(crate) service: String,
    /// Attributes of the resource, beside the service.
    pub(crate) resource: Vec<(String, String)>,
    /// Options for the content.
    pub options: ProjectionOptions,
}

/// Settings of the configuration file; variables count before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// Default of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub endpoint: Option<String>,
    /// Default of `OTEL_SERVICE_NAME`.
    pub service_name: Option<String>,
    /// Default of `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.
    pub content: Option<bool>,
}

/// The error of an invalid setting. No value of a header is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {name}: {reason}")]
pub struct SettingsError {
    name: String,
    reason: String,
}

impl SettingsError {
    fn new(name: &str, reason: impl fmt::Display) -> Self {
        Self {
            name: name.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// Time limit of one request, unless a variable sets another.
const TIMEOUT: Duration = Duration::from_secs(10);

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TEMPORALITY: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

impl TelemetrySettings {
    /// Reads the settings; `None` if no setting names an address, or a variable turns telemetry
    /// off. `variable` returns the value of an environment variable.
    ///
    /// # Errors
    /// A value does not mean anything, or asks for a protocol other than `http/protobuf`.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
        file: &FileSettings,
        provider: fn(&str) -> &str,
    ) -> Result<Option<Self>, SettingsError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if is_true(set("OTEL_SDK_DISABLED").as_deref()) {
            return Ok(None);
        }
        let mut endpoints = Vec::new();
        for signal in Signal::ALL {
            endpoints.extend(endpoint(signal, &set, file)?);
        }
        if endpoints.is_empty() {
            return Ok(None);
        }
        let timeout = match set("OTEL_EXPORTER_OTLP_TIMEOUT") {
            Some(given) => Duration::from_millis(parsed("OTEL_EXPORTER_OTLP_TIMEOUT", &given)?),
            None => TIMEOUT,
        };
        let temporality = match set(TEMPORALITY)
            .map(|word| word.to_ascii_lowercase())
            .as_deref()
        {
            None | Some("cumulative") => Temporality::Cumulative,
            Some("delta" | "lowmemory") => Temporality::Delta,
            Some(other) => {
                let reason = format!("`{other}` is not cumulative, delta or lowmemory");
                return Err(SettingsError::new(TEMPORALITY, reason));
            }
        };
        let mut resource = Vec::new();
        if let Some(given) = set("OTEL_RESOURCE_ATTRIBUTES") {
            resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &given)?;
        }
        let named = resource.iter().position(|(name, _)| name == "service.name");
        let named = named.map(|at| resource.remove(at).1);
        let service = set("OTEL_SERVICE_NAME").or(named);
        let service = service.or_else(|| file.service_name.clone());
        let content = match set(CONTENT) {
            Some(word) => is_true(Some(&word)),
            None => file.content.unwrap_or(false),
        };
        Ok(Some(Self {
            endpoints,
            timeout,
            temporality,
            service: service.unwrap_or_else(|| "gyrus".to_owned()),
            resource,
            options: ProjectionOptions { content, provider },
        }))
    }

    /// Returns the values of headers, which no journal and no model may see.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let headers = self.endpoints.iter().flat_map(|one| &one.headers);
        let secrets = headers.filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            // What comes after the scheme is the secret: `Bearer TOKEN`.
            let value = value.split_once(' ').map_or(value, |(_, token)| token);
            Some((format!("OTLP_{name}"), value.to_owned()))
        });
        secrets.collect()
    }

    /// Adds an attribute of the resource.
    pub fn add_resource(&mut self, name: &str, value: &str) {
        self.resource.push((name.to_owned(), value.to_owned()));
    }

    /// Replaces all endpoints by paths below another address.
    ///
    /// # Errors
    /// `address` is not an address.
    pub fn send_to(&mut self, address: &str) -> Result<(), SettingsError> {
        for endpoint in &mut self.endpoints {
            endpoint.address = below("the address", address, endpoint.signal)?;
        }
        Ok(())
    }

    /// Returns a text that identifies these endpoints, without their headers.
    pub(crate) fn destination(&self) -> String {
        let addresses = self.endpoints.iter().map(|one| one.address.as_str());
        addresses.collect::<Vec<_>>().join(" ")
    }
}

fn endpoint(
    signal: Signal,
    set: &impl Fn(&str) -> Option<String>,
    file: &FileSettings,
) -> Result<Option<SignalEndpoint>, SettingsError> {
    let (word, _) = signal.names();
    match set(&format!("OTEL_{word}_EXPORTER")).as_deref() {
        None | Some("otlp") => {}
        // Exporters of other kinds are other programs' business.
        Some(_) => return Ok(None),
    }
    let own = format!("OTEL_EXPORTER_OTLP_{word}_ENDPOINT");
    let address = match (set(&own), set(ENDPOINT), &file.endpoint) {
        (Some(given), _, _) => parse_address(&own, &given)?,
        (None, Some(base), _) => below(ENDPOINT, &base, signal)?,
        (None, None, Some(base)) => below("`telemetry.endpoint`", base, signal)?,
        (None, None, None) => return Ok(None),
    };
    let specific = |end: &str| {
        let names = [
            format!("OTEL_EXPORTER_OTLP_{word}_{end}"),
            format!("OTEL_EXPORTER_OTLP_{end}"),
        ];
        let found = names.into_iter().find_map(|name| Some((set(&name)?, name)));
        found.map(|(value, name)| (name, value))
    };
    if let Some((name, protocol)) = specific("PROTOCOL")
        && protocol.trim() != "http/protobuf"
    {
        let reason = format!("`{protocol}` is not supported; use http/protobuf");
        return Err(SettingsError::new(&name, reason));
    }
    let headers = match specific("HEADERS") {
        Some((name, given)) => headers(&name, &given)?,
        None => HeaderMap::new(),
    };
    Ok(Some(SignalEndpoint {
        signal,
        address,
        headers,
    }))
}

fn below(name: &str, base: &str, signal: Signal) -> Result<Url, SettingsError> {
    let mut address = parse_address(name, base)?;
    let path = format!(
        "{}/{}",
        address.path().trim_end_matches('/'),
        signal.names().1
    );
    address.set_path(&path);
    Ok(address)
}

fn parse_address(name: &str, given: &str) -> Result<Url, SettingsError> {
    // A password in it is not repeated.
    let address =
        Url::parse(given.trim()).map_err(|_| SettingsError::new(name, "it is not an address"))?;
    if !matches!(address.scheme(), "http" | "https") {
        let reason = "an address of OTLP over HTTP begins with http:// or https://";
        return Err(SettingsError::new(name, reason));
    }
    Ok(address)
}

fn headers(name: &str, given: &str) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    for (key, value) in pairs(name, given)? {
        let wrong = |_| SettingsError::new(name, format!("the header `{key}` cannot be sent"));
        let key = HeaderName::from_str(&key).map_err(|_| {
            SettingsError::new(name, "a name of a header has letters, digits and `-`")
        })?;
        let mut value = HeaderValue::from_str(&value).map_err(wrong)?;
        value.set_sensitive(true);
        headers.insert(key.clone(), value);
    }
    Ok(headers)
}

/// Reads `key=value,key=value`, with values escaped by `%`.
fn pairs(name: &str, given: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let pairs = given.split(',').filter(|pair| !pair.trim().is_empty());
    let pairs = pairs.map(|pair| {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| SettingsError::new(name, "it is not a list of key=value"))?;
        let value = percent_decoded(value.trim())
            .ok_or_else(|| SettingsError::new(name, "a value has a `%` without two digits"))?;
        Ok((key.trim().to_owned(), value))
    });
    pairs.collect()
}

fn parsed(name: &str, given: &str) -> Result<u64, SettingsError> {
    let wrong = |_| SettingsError::new(name, "it is not a number of milliseconds");
    given.trim().parse().map_err(wrong)
}

fn is_true(word: Option<&str>) -> bool {
    word.is_some_and(|word| word.trim().eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        variables: &[(&str, &str)],
        file: &FileSettings,
    ) -> Result<Option<TelemetrySettings>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        TelemetrySettings::read(variable, file, |name| name).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_follow_the_specification() {
        let file = FileSettings {
            endpoint: Some("http://file:1/x/".to_owned()),
            ..FileSettings::default()
        };
        for (variables, expected) in [
            (
                &[][..],
                "http://file:1/x/v1/traces http://file:1/x/v1/metrics http://file:1/x/v1/logs",
            ),
            (&[("OTEL_SDK_DISABLED", "TRUE")], ""),
            (
                &[
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://base:4318"),
                    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own/here"),
                    ("OTEL_METRICS_EXPORTER", "none"),
                ],
                "http://own/here https://base:4318/v1/logs",
            ),
            (
                &[
                    ("OTEL_TRACES_EXPORTER", "none"),
                    ("OTEL_METRICS_EXPORTER", "prometheus"),
                    ("OTEL_LOGS_EXPORTER", "none"),
                ],
                "",
            ),
        ] {
            let read = read(variables, &file).unwrap();
            let destination = read.map(|settings| settings.destination());
            assert_eq!(destination.unwrap_or_default(), expected, "{variables:?}");
        }
        assert!(read(&[], &FileSettings::default()).unwrap().is_none());
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:pass1234@c:4318");
        let headers = (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20s3cr3t-0ne, x-team = a,",
        );
        let settings = read(&[endpoint, headers], &FileSettings::default())
            .unwrap()
            .unwrap();
        let sent = &settings.endpoints[0].headers;
        assert_eq!(sent["authorization"], "Bearer s3cr3t-0ne");
        assert_eq!(sent["x-team"], "a");
        assert!(!format!("{settings:?}").contains("s3cr3t"));
        assert_eq!(settings.secrets()[0].1, "s3cr3t-0ne");
    }

    #[test]
    fn mistakes_name_the_variable_and_no_value() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        for (name, value, reason) in [
            (
                "OTEL_EXPORTER_OTLP_PROTOCOL",
                "grpc",
                "`grpc` is not supported",
            ),
            (
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
                "http/json",
                "use http/protobuf",
            ),
            (
                "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
                "s3cr3t",
                "not an address",
            ),
            (
                "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
                "unix:/s3cr3t",
                "http://",
            ),
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cr3t", "key=value"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cr3t%2", "two digits"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=s3cr3t", "letters"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "a=s3cr3t%0A",
                "cannot be sent",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"),
            (
                "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
                "x",
                "cumulative",
            ),
            ("OTEL_RESOURCE_ATTRIBUTES", "a", "key=value"),
        ] {
            let error = read(&[endpoint, (name, value)], &FileSettings::default()).unwrap_err();
            assert!(error.contains(reason) && error.contains(name), "{error}");
            assert!(!error.contains("s3cr3t"), "{error}");
        }
    }
}
