//! `gyrus models`

mod check;
mod pin;

use std::{collections::BTreeSet, sync::Arc};

use clap::{Args, Subcommand};
use gyrus_contract::Price;
use gyrus_models::{Candidate, LearnedModels, MeasuredModels, NoBlobs, PictureSource};
use gyrus_text::visible;
use serde_json::json;

use super::listing::ListFlags;
use gyrus_runtime::request::ModelFlags;

use crate::{
    Gyrus, discover, drive,
    exit::Code,
    failure::Failure,
    keys::KeyLookup,
    model_choice::{self, ModelChoice},
};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Show which models can be asked, and what is known of them
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Models {
    #[command(subcommand)]
    command: Option<ModelsVerb>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum ModelsVerb {
    Check(check::ModelCheck),
    Pin(pin::PinModel),
}

impl Models {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            Some(ModelsVerb::Check(check)) => check.execute(gyrus),
            Some(ModelsVerb::Pin(pin)) => pin.execute(gyrus),
            None => list(gyrus, &self.list),
        }
    }
}

/// Lists the models that a run may ask, by provider: those configured, else those found.
fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let config = gyrus.config()?;
    let runtime = drive::runtime()?;
    let catalogue = model_choice::catalogue(gyrus)?;
    let keys = KeyLookup::new(&config.keys);
    let state = &gyrus.home()?.state;
    let (measured, learned) = (MeasuredModels::read(state)?, LearnedModels::read(state)?);
    let found = runtime.block_on(async {
        let mut names = Vec::new();
        if let Some(choice) = ModelChoice::named(gyrus, &config, &ModelFlags::default())? {
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
    let blobs: Arc<dyn PictureSource> = Arc::new(NoBlobs);
    // Several names can stand for one model, and one model for several strengths.
    let mut shown = BTreeSet::new();
    for (name, how) in found {
        let connected = if name.starts_with("script:") {
            Ok(Vec::new())
        } else {
            runtime.block_on(model_choice::connected(&name, &keys, &catalogue, &blobs))
        };
        let mut models = Vec::new();
        for candidate in connected.as_deref().unwrap_or_default() {
            if shown.insert(candidate.model.name().to_owned()) {
                let was_measured = measured.has(candidate.model.name());
                let candidate = measured.applied(candidate.clone()).with_learned(&learned);
                models.push((candidate, was_measured));
            }
        }
        let why = connected.err().map(|failure| failure.message);
        let item = json!({
            "name": name,
            "found": how,
            "models": models.iter().map(|(model, was)| facts(model, *was)).collect::<Vec<_>>(),
            "missing": why,
        });
        if !flags.shows(&mut out, &item)? {
            continue;
        }
        let head = format!("{name} ({how})");
        writeln!(out, "{}", painter.paint(Tone::Strong, &visible(&head)))?;
        for (model, was_measured) in &models {
            writeln!(out, "  {}", visible(&line(model, *was_measured)))?;
        }
        if let Some(why) = why {
            writeln!(out, "  {}", painter.paint(Tone::Bad, &visible(&why)))?;
        }
    }
    runtime.shutdown_background();
    Ok(Code::Reached)
}

/// Returns the facts about a model, for programs. Prices are in microdollars for a million tokens.
fn facts(candidate: &Candidate, was_measured: bool) -> serde_json::Value {
    let facts = &candidate.facts;
    json!({
        "model": candidate.model.name(),
        "strength": candidate.tier.word(),
        "window": facts.window,
        "price": facts.price,
        "tools": facts.tools,
        "images": facts.images,
        "schema": facts.schema,
        "measured": was_measured,
        "refuses": candidate.refuses,
    })
}

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
    words.extend((!candidate.refuses.is_empty()).then(|| {
        let refuses = candidate.refuses.iter().map(|step| step.words());
        format!("asked with {}", refuses.collect::<Vec<_>>().join(", "))
    }));
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
