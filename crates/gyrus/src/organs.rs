//! Wiring: which model, tools, loops and gate the kernel of this program has.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{Boxed, Delta, Model, ModelError, Price, Prompt, Reply};
use gyrus_journal::Store;
use gyrus_kernel::{Kernel, Only, Organs, Pins, gate::PlainGate};
use gyrus_loops::{CognitiveConfig, NAMES};
use gyrus_models::{NoBlobs, ScriptError, ScriptedModel};
use gyrus_tools::Registry;
use serde_json::Value;

use crate::{failure::Failure, home::Home};

/// The pin that names the model as a person would, so that resuming finds it again.
const MODEL_PIN: &str = "model";

/// The loop for runs that name none.
const AUTO: &str = "auto";

/// A model as it is named by `--model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelName {
    /// Replies from a file.
    Script(PathBuf),
}

impl ModelName {
    /// Understands a name; a script's path becomes absolute, so that it is found again from
    /// another folder.
    pub(crate) fn parse(given: &str) -> Result<Self, Failure> {
        let Some(file) = given
            .strip_prefix("script:")
            .filter(|file| !file.is_empty())
        else {
            return Err(
                Failure::usage(format!("`{given}` is no model that gyrus knows"))
                    .hint("play one from a file: --model script:FILE"),
            );
        };
        let path = std::path::absolute(file)
            .map_err(|error| Failure::usage(format!("`{file}` is no path")).because(&error))?;
        Ok(ModelName::Script(path))
    }

    /// Makes it ready to be asked.
    pub(crate) async fn start(&self) -> Result<Arc<dyn Model>, Failure> {
        let ModelName::Script(file) = self;
        match ScriptedModel::start(file, Arc::new(NoBlobs)).await {
            Ok(model) => Ok(Arc::new(model)),
            Err(error @ ScriptError::Read { .. }) => Err(Failure::usage(format!(
                "the script {} cannot be read",
                file.display()
            ))
            .because(std::error::Error::source(&error).unwrap_or(&error))
            .hint("name the file: --model script:FILE")),
            Err(error @ ScriptError::Format { .. }) => Err(Failure::usage(error)),
            Err(error @ (ScriptError::Server { .. } | ScriptError::Client { .. })) => {
                Err(Failure::failed("the script cannot be played").because(&error))
            }
        }
    }

    /// What a run's first entry says of the person's choice.
    pub(crate) fn pins(&self) -> Pins {
        let ModelName::Script(file) = self;
        Pins::from([(MODEL_PIN.to_owned(), format!("script:{}", file.display()))])
    }

    /// The model that a run had.
    pub(crate) fn pinned(pins: &Pins) -> Result<Self, Failure> {
        let name = pins.get(MODEL_PIN).ok_or_else(|| {
            Failure::usage("the run does not say which model it had")
                .hint("name one: --model script:FILE")
        })?;
        Self::parse(name)
    }
}

/// Nobody: for reading and replaying, where no model may be asked.
pub(crate) struct NoModel;

impl Model for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn reply<'a>(
        &'a self,
        _prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Boxed<'a, Result<Reply, ModelError>> {
        let message = "this command asks no model".to_owned();
        Box::pin(async { Err(ModelError::Network { message }) })
    }
}

/// A kernel over the home's journals.
pub(crate) fn kernel(home: &Home, store: Store, model: Arc<dyn Model>) -> Result<Kernel, Failure> {
    let registry = Registry::builtin();
    let tools: Vec<_> = registry
        .specs()
        .iter()
        .filter_map(|spec| registry.get(&spec.name).cloned())
        .collect();
    let gate = Arc::new(PlainGate::new(home.state.clone()));
    let redactor = Arc::new(home.redactor()?);
    let mut organs = Organs::new(
        Arc::new(Only(model)),
        tools,
        gate,
        redactor,
        gyrus_loops::factory(),
    );
    organs.pins = Pins::from([
        ("gyrus".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("prompts".to_owned(), gyrus_loops::prompts().to_string()),
    ]);
    Ok(Kernel::new(store, organs))
}

/// The loop of this name, with its configuration.
pub(crate) fn cognitive_loop(name: Option<&str>) -> Result<(&'static str, Value), Failure> {
    let config = match name.unwrap_or(AUTO) {
        AUTO | "react" => CognitiveConfig::react(),
        "chain-of-thought" => CognitiveConfig::chain_of_thought(),
        "single-shot" => CognitiveConfig::single_shot(),
        given => {
            let names = [&[AUTO], NAMES].concat();
            let near = names
                .iter()
                .map(|known| (strsim::jaro(given, known), known))
                .filter(|(nearness, _)| *nearness > 0.7)
                .max_by(|(one, _), (other, _)| one.total_cmp(other));
            let failure = Failure::usage(format!(
                "there is no loop `{given}`; there are {}",
                names.join(", ")
            ));
            return Err(match near {
                Some((_, known)) => failure.hint(format!("did you mean `{known}`?")),
                None => failure,
            });
        }
    };
    let value = serde_json::to_value(&config)
        .map_err(|error| Failure::failed("the loop's configuration is no JSON").because(&error))?;
    Ok((config.strategy().loop_name(), value))
}

/// The folder that a run may work in.
pub(crate) fn workspace(home: &Home, folder: &Path) -> Result<PathBuf, Failure> {
    let real = gyrus_kernel::gate::check_workspace(folder, home.person.as_deref(), &home.state)
        .map_err(Failure::usage)?;
    if real.to_str().is_none() {
        return Err(Failure::usage(format!(
            "the name of the folder {} is not valid UTF-8",
            real.display()
        ))
        .hint("rename it, or name another one: --workdir FOLDER"));
    }
    Ok(real)
}
