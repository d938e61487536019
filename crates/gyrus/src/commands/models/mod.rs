//! `gyrus models`

mod check;

use std::sync::Arc;

use clap::{Args, Subcommand};
use gyrus_contract::Price;
use gyrus_models::{Blobs, Candidate, MeasuredModels, NoBlobs};
use gyrus_text::visible;

use crate::{
    Gyrus, discover, drive,
    exit::Code,
    failure::Failure,
    keys::Keys,
    model_choice::{self, ModelChoice},
};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Show which models can be asked, and what is known of them
#[derive(Args)]
pub(crate) struct Models {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Check),
}

impl Models {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            Some(Command::Check(check)) => check.execute(gyrus),
            None => list(gyrus),
        }
    }
}

/// The models that a run may ask, by provider: those that are configured, else those that are
/// found.
fn list(gyrus: &Gyrus) -> Result<Code, Failure> {
    let config = gyrus.config()?;
    let runtime = drive::runtime()?;
    let catalogue = model_choice::catalogue(gyrus)?;
    let keys = Keys::new(&config.keys);
    let measured = MeasuredModels::read(&gyrus.home()?.state)?;
    let found = runtime.block_on(async {
        let mut names = Vec::new();
        if let Some(choice) = ModelChoice::named(gyrus, &config, &[])? {
            names.extend(choice.names().map(|name| (name, "configured".to_owned())));
        }
        let mut more = discover::with_keys(&catalogue, &keys);
        more.extend(discover::local(&catalogue).await);
        for found in more {
            if names.iter().all(|(name, _)| *name != found.name) {
                names.push((found.name, found.how));
            }
        }
        Ok::<_, Failure>(names)
    })?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    if found.is_empty() {
        return Err(
            Failure::usage("no model can be asked: no key is set, no server answers").hint(
                "store a key: gyrus setup; known providers: ".to_owned()
                    + &catalogue.providers().collect::<Vec<_>>().join(", "),
            ),
        );
    }
    let blobs: Arc<dyn Blobs> = Arc::new(NoBlobs);
    for (name, how) in found {
        let head = format!("{name} ({how})");
        writeln!(out, "{}", painter.paint(Tone::Strong, &visible(&head)))?;
        if name.starts_with("script:") {
            continue;
        }
        match runtime.block_on(model_choice::connected(&name, &keys, &catalogue, &blobs)) {
            Ok(candidates) => {
                for candidate in candidates {
                    let was_measured = measured.has(candidate.model.name());
                    let line = line(&measured.applied(candidate), was_measured);
                    writeln!(out, "  {}", visible(&line))?;
                }
            }
            Err(failure) => {
                let text = visible(&failure.message).into_owned();
                writeln!(out, "  {}", painter.paint(Tone::Bad, &text))?;
            }
        }
    }
    runtime.shutdown_background();
    Ok(Code::Reached)
}

/// Renders what is known of a model as a line.
fn line(candidate: &Candidate, was_measured: bool) -> String {
    let facts = &candidate.facts;
    let mut words = vec![format!(
        "{:<7} {}",
        candidate.tier.word(),
        candidate.model.name()
    )];
    if let Some(window) = facts.window {
        words.push(format!("{}k tokens", window / 1_000));
    }
    words.push(match facts.price {
        Some(price) => self::price(&price),
        None => "price unknown".to_owned(),
    });
    let tools = if candidate.is_prompted {
        Some("prompted tool calls")
    } else {
        (facts.tools == Some(true)).then_some("tool calls")
    };
    words.extend(tools.map(str::to_owned));
    words.extend((facts.images == Some(true)).then(|| "pictures".to_owned()));
    words.extend((facts.schema == Some(true)).then(|| "schema".to_owned()));
    words.push(
        if was_measured {
            "measured"
        } else {
            "not measured"
        }
        .to_owned(),
    );
    words.join(" · ")
}

fn price(price: &Price) -> String {
    if (price.input, price.output) == (0, 0) {
        return "free".to_owned();
    }
    let dollars = |micro: u64| micro as f64 / 1e6;
    format!(
        "${} in, ${} out a million",
        dollars(price.input),
        dollars(price.output)
    )
}
