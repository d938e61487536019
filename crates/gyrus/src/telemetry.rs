//! Telemetry of the runs that this process drives: settings from the environment and the
//! configuration file, and an export beside each run.

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::redact::Secret;
use gyrus_surfaces::console::put;
use gyrus_telemetry::{FileSettings, LiveExport, SettingsError, TelemetrySettings};
use serde::Deserialize;

use crate::env;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct TelemetrySection {
    /// Default of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    endpoint: Option<String>,
    /// Default of `OTEL_SERVICE_NAME`.
    service_name: Option<String>,
    /// Default of `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.
    content: Option<bool>,
}

impl TelemetrySection {
    fn settings(&self) -> FileSettings {
        FileSettings {
            endpoint: self.endpoint.clone(),
            service_name: self.service_name.clone(),
            content: self.content,
        }
    }

    /// Returns the section with `endpoint` for everything that it does not set.
    pub(crate) fn or_to(mut self, endpoint: Option<&str>) -> Self {
        self.endpoint = self.endpoint.or(endpoint.map(str::to_owned));
        self
    }
}

/// Returns the settings; `None` if there is nowhere to send telemetry to.
pub(crate) fn settings(
    section: &TelemetrySection,
) -> Result<Option<TelemetrySettings>, SettingsError> {
    TelemetrySettings::read(env::variable, &section.settings(), provider)
}

/// Returns the values of headers for collectors, which no run may see. Mistakes are told where
/// the settings are used.
pub(crate) fn secrets(section: &TelemetrySection) -> Vec<Secret> {
    let settings = settings(section).ok().flatten();
    let secrets = settings.iter().flat_map(TelemetrySettings::secrets);
    secrets
        .map(|(name, value)| Secret { name, value })
        .collect()
}

/// Starts the export of a run, if telemetry is to be sent. What is wrong with it is told and never
/// fails a run.
pub(crate) fn start(
    section: &TelemetrySection,
    store: &Store,
    run: RunId,
    correlation: Option<&str>,
) -> Option<LiveExport> {
    let mut settings = match settings(section) {
        Ok(settings) => settings?,
        Err(error) => {
            tell(&error.to_string());
            return None;
        }
    };
    if let Some(correlation) = correlation {
        settings.add_resource("gyrus.correlation.id", correlation);
    }
    // Beside the journals, so that an ephemeral run leaves nothing behind.
    let cursors = store.root().with_file_name("telemetry");
    match LiveExport::start(store.clone(), run, settings, cursors) {
        Ok(export) => Some(export),
        Err(error) => {
            tell(&error.to_string());
            None
        }
    }
}

/// Delivers the remaining records, within a short time.
pub(crate) async fn finish(export: Option<LiveExport>) {
    if let Some(export) = export {
        for told in export.finish().await {
            tell(&told);
        }
    }
}

fn tell(what: &str) {
    // Without anybody to tell, the run goes on all the same.
    let _ = put(&format!("telemetry: {what}\n"));
}

/// Returns the name by which the semantic conventions know a provider of the catalogue.
fn provider(name: &str) -> &str {
    match name {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}
