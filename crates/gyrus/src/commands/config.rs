//! `gyrus config`

use clap::Args;
use gyrus_surfaces::output;
use gyrus_text::visible;

use crate::{Gyrus, config_keys, exit::Code, failure::Failure};

/// Show what is configured here, and where each value comes from
///
/// Keys of config.toml, with the variables of the environment that win over it. Flags of `gyrus run`
/// win over both. Values that may be secrets are not shown.
#[derive(Args)]
pub(crate) struct ConfigCommand {
    /// Also show the keys that nothing sets
    #[arg(long)]
    all: bool,
    /// Print a list as JSON
    #[arg(long, conflicts_with = "all")]
    json: bool,
    /// Print what every key means, as a page of the documentation
    #[arg(long, conflicts_with_all = ["all", "json"])]
    reference: bool,
}

impl ConfigCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let mut out = output::standard();
        if self.reference {
            write!(out, "{}", config_keys::reference())?;
            return Ok(Code::Reached);
        }
        let keys = config_keys::in_force(gyrus)?;
        if self.json {
            let keys = serde_json::to_string(&keys);
            out.json_line(&keys.map_err(|error| Failure::failed(error.to_string()))?)?;
            return Ok(Code::Reached);
        }
        let file = gyrus.home()?.config;
        let is_there = if file.exists() { "" } else { " (not there)" };
        writeln!(out, "config.toml is {}{is_there}", file.display())?;
        let mut shown = keys;
        shown.retain(|key| self.all || !key.value.is_empty());
        let width = |of: fn(&config_keys::SetKey) -> &str| {
            let widths = shown.iter().map(|key| of(key).chars().count());
            widths.max().unwrap_or(0).min(40)
        };
        let (keys, values) = (width(|it| &it.key), width(|it| &it.value));
        for key in &shown {
            let line = format!("{:<keys$}  {:<values$}  {}", key.key, key.value, key.source);
            writeln!(out, "{}", visible(line.trim_end()))?;
        }
        Ok(Code::Reached)
    }
}
