//! Wiring: which tools, loops and gate the kernel of this program has.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_journal::Store;
use gyrus_kernel::{Kernel, Live, Only, Organs, Pins, gate::PlainGate};
use gyrus_loops::{CognitiveConfig, NAMES};
use gyrus_tools::Registry;
use serde_json::Value;

use crate::{
    failure::Failure,
    home::Home,
    whom::{NoModel, Ready},
};

/// The loop for runs that name none.
const AUTO: &str = "auto";

/// A kernel over the home's journals that asks nobody: for reading and replaying.
pub(crate) fn silent_kernel(home: &Home, store: Store) -> Result<Kernel, Failure> {
    let nobody = Ready {
        router: Arc::new(Only(Arc::new(NoModel))),
        secrets: Vec::new(),
    };
    kernel(home, store, nobody, None)
}

/// A kernel over the home's journals. `live` hears its models while they speak.
pub(crate) fn kernel(
    home: &Home,
    store: Store,
    whom: Ready,
    live: Option<Live>,
) -> Result<Kernel, Failure> {
    let registry = Registry::builtin();
    let tools: Vec<_> = registry
        .specs()
        .iter()
        .filter_map(|spec| registry.get(&spec.name).cloned())
        .collect();
    let gate = Arc::new(PlainGate::new(home.state.clone()));
    let redactor = Arc::new(home.redactor(whom.secrets)?);
    let mut organs = Organs::new(whom.router, tools, gate, redactor, gyrus_loops::factory());
    organs.pins = Pins::from([
        ("gyrus".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("prompts".to_owned(), gyrus_loops::prompts().to_string()),
    ]);
    organs.live = live;
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
