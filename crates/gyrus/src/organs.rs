//! Wiring: which tools, loops and gate the kernel of this program has.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_gate::{House, Warden};
use gyrus_journal::Store;
use gyrus_kernel::{Kernel, Live, Only, Organs, Pins};
use gyrus_loops::{CognitiveConfig, NAMES};
use gyrus_tools::Registry;
use serde_json::Value;

use crate::{
    failure::Failure,
    flags::SandboxWord,
    grants,
    home::Home,
    laid_down, sandbox,
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
    kernel_with(home, store, nobody, Warden::new(house(home)), None)
}

/// Where and how runs of a kernel work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ground<'a> {
    /// The folder that they work in, real.
    pub(crate) workspace: &'a Path,
    /// Whether their commands are confined.
    pub(crate) sandbox: SandboxWord,
}

/// A kernel over the home's journals for runs on `ground`. `live` hears its models while they
/// speak.
pub(crate) fn kernel(
    home: &Home,
    store: Store,
    whom: Ready,
    live: Live,
    ground: Ground<'_>,
) -> Result<Kernel, Failure> {
    let warden = warden(home, &store, ground)?;
    kernel_with(home, store, whom, warden, Some(live))
}

/// What judges the calls of runs on `ground`.
pub(crate) fn warden(home: &Home, store: &Store, ground: Ground<'_>) -> Result<Warden, Failure> {
    let standing = grants::in_folder(store, ground.workspace)?;
    let warden = Warden::new(house(home))
        .under(laid_down::policy(home, ground.workspace)?)
        .with_grants(
            standing
                .into_iter()
                .map(|standing| standing.grant)
                .collect(),
        );
    Ok(match ground.sandbox {
        SandboxWord::On => warden.confining(sandbox::contain(home)),
        SandboxWord::Off => warden.unconfined(),
    })
}

fn house(home: &Home) -> House {
    House {
        state: home.state.clone(),
        configuration: home.configuration(),
        person: home.person.clone(),
    }
}

fn kernel_with(
    home: &Home,
    store: Store,
    whom: Ready,
    warden: Warden,
    live: Option<Live>,
) -> Result<Kernel, Failure> {
    let registry = Registry::builtin();
    let tools: Vec<_> = registry
        .specs()
        .iter()
        .filter_map(|spec| registry.get(&spec.name).cloned())
        .collect();
    let redactor = Arc::new(home.redactor(whom.secrets)?);
    let gate = Arc::new(warden);
    let mut organs = Organs::new(whom.router, tools, gate, redactor, gyrus_loops::factory());
    organs.pins = Pins::from([
        ("gyrus".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("prompts".to_owned(), gyrus_loops::prompts().to_string()),
    ]);
    organs.live = live;
    organs.latch = Some(home.latch());
    organs.outlet = Some(Arc::new(sandbox::Proxy));
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
    let real = gyrus_gate::check_workspace(folder, home.person.as_deref(), &home.state)
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
