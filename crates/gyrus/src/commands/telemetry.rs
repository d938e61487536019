//! `gyrus telemetry`

use clap::Args;
use gyrus_surfaces::console::put;
use gyrus_telemetry::export;
use gyrus_text::counted;

use super::run_argument::RunArgument;
use crate::{Gyrus, drive, exit::Code, failure::Failure, telemetry};

/// Send a run's traces, metrics and logs to an OpenTelemetry collector
///
/// Everything in the journals of the run and its child runs, under the same ids as when it was sent
/// before. Runs are sent by themselves while they go on if OTEL_EXPORTER_OTLP_ENDPOINT is set.
#[derive(Args)]
pub(crate) struct Telemetry {
    #[command(flatten)]
    run: RunArgument,
    /// Send to this collector: its address without `/v1/traces`
    #[arg(long, value_name = "URL")]
    to: Option<String>,
}

impl Telemetry {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let section = gyrus.config()?.telemetry.or_to(self.to.as_deref());
        let wrong = |error| Failure::usage("the telemetry settings are wrong").because(&error);
        let Some(mut settings) = telemetry::settings(&section).map_err(wrong)? else {
            return Err(Failure::usage("there is no collector to send telemetry to")
                .hint("name one: --to http://127.0.0.1:4318, or OTEL_EXPORTER_OTLP_ENDPOINT"));
        };
        if let Some(address) = &self.to {
            settings.send_to(address).map_err(wrong)?;
        }
        let runtime = drive::runtime()?;
        let exported = runtime
            .block_on(export(&store, run, &settings))
            .map_err(|error| Failure::failed("the run was not sent").because(&error))?;
        for refused in &exported.refused {
            put(&format!("{refused}\n"))?;
        }
        put(&format!(
            "run {}: {}, {}, {}\n",
            run.short(),
            counted(exported.runs, "run"),
            counted(exported.entries, "entry"),
            counted(exported.spans, "span")
        ))?;
        Ok(Code::reached_if(exported.refused.is_empty()))
    }
}
