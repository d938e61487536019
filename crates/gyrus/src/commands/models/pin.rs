//! `gyrus models pin`

use std::time::Duration;

use clap::Args;
use gyrus_net::{KeyPin as ServerPin, SeenKeys, causes, remembering_client_builder};

use crate::{Gyrus, drive, exit::Code, failure::Failure, keys::KeyLookup, model_choice};
use gyrus_surfaces::output;

/// Time limit for a connection, and for the answer.
const LIMIT: Duration = Duration::from_secs(30);

/// Show the keys that vouch for a provider's server, to pin them
///
/// Connects to the server as it is now, sends no key and asks nothing, and prints the lines for
/// `models.toml` by which gyrus speaks to no server of other keys.
#[derive(Args)]
pub(crate) struct PinModel {
    /// The provider, as before the slash of a model's name
    provider: String,
}

impl PinModel {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let config = gyrus.config()?;
        let keys = KeyLookup::new(&config.keys);
        let catalogue = model_choice::catalogue(gyrus)?;
        let (address, pinned) = catalogue
            .server(&self.provider, |name| keys.get(name))
            .map_err(|error| Failure::usage(error.to_string()))?;
        let seen = SeenKeys::default();
        let client = remembering_client_builder(&address, LIMIT, &seen)
            .map_err(|error| Failure::usage(error.to_string()))?
            .timeout(LIMIT)
            .build()
            .map_err(|error| Failure::usage(causes(&error)))?;
        let answered = drive::wait_for(async { client.head(address.clone()).send().await })?;
        let shown = seen.take();
        if let (Err(error), []) = (answered, &shown[..]) {
            let why = format!("{address} cannot be reached: {}", causes(&error));
            return Err(Failure::usage(why));
        }
        let mut out = output::standard();
        let name = &self.provider;
        writeln!(
            out,
            "# in models.toml beside config.toml; any one of them is enough"
        )?;
        writeln!(out, "[providers.{name}]")?;
        writeln!(out, "pins = [")?;
        for (at, pin) in shown.iter().enumerate() {
            let (whose, mark) = (whose(at), mark(pin, pinned));
            writeln!(out, "  \"{pin}\", # {whose}{mark}")?;
        }
        writeln!(out, "]")?;
        let is_pinned = pinned.is_empty() || shown.iter().any(|pin| pinned.contains(pin));
        if is_pinned {
            return Ok(Code::Reached);
        }
        Err(Failure::usage(format!(
            "none of the keys that are pinned for {name} is among them, so gyrus does not speak to it"
        ))
        .hint("if the provider says that its keys are new, put these into models.toml"))
    }
}

/// Returns the owner of the key at a place of the chain.
fn whose(at: usize) -> &'static str {
    match at {
        0 => "the server's own; new with its next certificate, if the provider changes it",
        1 => "of the authority that signed it; a backup that outlives the server's own",
        _ => "of an authority above",
    }
}

fn mark(pin: &ServerPin, pinned: &[ServerPin]) -> &'static str {
    if pinned.contains(pin) {
        " (pinned)"
    } else {
        ""
    }
}
