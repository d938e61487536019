//! The models that runs ask: from names in flags and configuration to a router over real models.
//!
//! A name is `script:FILE`, or what the catalogue of the models crate understands: `provider`,
//! `provider:tier`, `provider/model`, or the address of a compatible server. A provider alone
//! stands for its models of every strength, so that small questions go to small models.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use clap::ValueEnum;
use gyrus::runtime::StoredPictures;
use gyrus_contract::{Intent, Model, ModelError, Router, ThinkingEffort};
use gyrus_journal::Store;
use gyrus_kernel::{CodePins, SingleModel, StandingRun, UnreachableModel, redact::Secret};
use gyrus_loops::DelegationConfig;
use gyrus_models::{
    Candidate, Catalogue, ConnectError, LearnedModels, MeasuredModels, ModelRouter, PictureSource,
    RoutingPolicy, ScriptError, ScriptedModel, Tier, connect_all,
};
use gyrus_runtime::request::{ModelFlags, OfferedTools};
use serde::Deserialize;
use serde_json::Value;

use crate::{Gyrus, config::Config, failure::Failure, keys::KeyLookup, procedures};

/// The pin with the models as a person would name them, so that resuming finds them again.
const MODEL_PIN: &str = "model";

/// The pin with the effort of thinking, if the person set one.
const EFFORT_PIN: &str = "effort";

/// The pin that names the tools that a model is offered, if the person named them.
const TOOLS_PIN: &str = "tools";

/// Between two names in that pin.
const BETWEEN: &str = ", ";

/// A model, as named by `--model`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelName {
    /// Replies from a file.
    Script(PathBuf),
    /// A provider, one of its models, or an address.
    Connected(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    names: Vec<ModelName>,
    /// The strength for the steps of the run, among the models of a provider.
    steps: Tier,
    /// The effort of thinking for all questions, if the person set one.
    effort: Option<ThinkingEffort>,
    /// The tools that each model is offered, if the person named them.
    tools: Option<OfferedTools>,
}

pub(crate) struct ReadyModels {
    pub(crate) router: Arc<dyn Router>,
    /// Models for a second look at calls, if the configuration names any.
    pub(crate) assessor: Option<Arc<dyn Router>>,
    /// Choosers for sub-runs with a model of their own, by its name.
    pub(crate) children: BTreeMap<String, Arc<dyn Router>>,
    /// Keys that were read while the models were made ready: no run may see them.
    pub(crate) secrets: Vec<Secret>,
}

impl ModelChoice {
    /// Parses names of models; a script's path becomes absolute, so that it is found again from
    /// another folder.
    pub(crate) fn parse<'a>(given: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let mut names = Vec::new();
        // The path of a script may have commas.
        let given = given
            .into_iter()
            .flat_map(|given| match given.strip_prefix("script:") {
                Some(_) => vec![given],
                None => given.split(',').map(str::trim).collect(),
            });
        for name in given {
            names.push(match name.strip_prefix("script:") {
                Some("") => {
                    return Err(Failure::usage("`script:` names no file")
                        .hint("name the file: --model script:FILE"));
                }
                Some(file) => ModelName::Script(std::path::absolute(file).map_err(|error| {
                    Failure::usage(format!("invalid path `{file}`")).because(&error)
                })?),
                None => ModelName::Connected(name.to_owned()),
            });
        }
        let scripts = names
            .iter()
            .filter(|name| matches!(name, ModelName::Script(_)));
        if scripts.count() > 0 && names.len() > 1 {
            return Err(Failure::usage("a script plays alone: it knows every reply")
                .hint("give one --model script:FILE, or models without a script"));
        }
        Ok(Self {
            names,
            steps: Tier::Medium,
            effort: None,
            tools: None,
        })
    }

    /// Returns the models that the person named: by flags, the environment or the configuration, in
    /// this order; `None` if no model is named.
    pub(crate) fn named(
        gyrus: &Gyrus,
        config: &Config,
        flags: &ModelFlags,
    ) -> Result<Option<Self>, Failure> {
        let names: Vec<&str> = flags.names.iter().map(String::as_str).collect();
        let named = match (names.is_empty(), &gyrus.environment.model) {
            (false, _) => names,
            (true, Some(model)) => vec![model.as_str()],
            (true, None) => config.model.iter().map(String::as_str).collect(),
        };
        if named.is_empty() {
            Ok(None)
        } else {
            Ok(Some(Self::parse(named)?.with(flags.effort, flags.tools)))
        }
    }

    #[must_use]
    pub(crate) fn with(
        mut self,
        effort: Option<ThinkingEffort>,
        tools: Option<OfferedTools>,
    ) -> Self {
        self.effort = effort.or(self.effort);
        self.tools = tools.or(self.tools);
        self
    }

    /// Chooses the strength of the models for each step by the goal, if the run's loop was chosen
    /// by it.
    #[must_use]
    pub(crate) fn for_goal(mut self, loop_config: &Value) -> Self {
        let intent = Intent::deserialize(&loop_config["intent"]).ok();
        self.steps = match intent {
            Some(Intent::Simple) => Tier::Small,
            Some(Intent::MultiStep) | None => Tier::Medium,
            Some(Intent::Complex) => Tier::Large,
        };
        self
    }

    /// Returns the choice of no model: for runs that may never ask one.
    pub(crate) fn none() -> Self {
        Self {
            names: Vec::new(),
            steps: Tier::Medium,
            effort: None,
            tools: None,
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the names, as `--model` takes them.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.names.iter().map(ModelName::to_string)
    }

    /// Returns the names in a short form, for a line with little room.
    pub(crate) fn in_short(&self) -> String {
        let short = |name: &ModelName| match name {
            ModelName::Script(_) => "script".to_owned(),
            ModelName::Connected(name) => match name.rsplit_once('#') {
                Some((_, model)) if !model.is_empty() => model.to_owned(),
                _ => name.clone(),
            },
        };
        let names: Vec<String> = self.names.iter().map(short).collect();
        names.join(", ")
    }

    /// Returns the person's choice as a run's first entry records it.
    pub(crate) fn pins(&self) -> CodePins {
        let effort = self.effort.map(|effort| effort.word().to_owned());
        let effort = effort.map(|word| (EFFORT_PIN.to_owned(), word));
        let tools = self.tools.map(|tools| tools.word().to_owned());
        let tools = tools.map(|word| (TOOLS_PIN.to_owned(), word));
        let model = (MODEL_PIN.to_owned(), self.to_string());
        [Some(model), effort, tools].into_iter().flatten().collect()
    }

    /// Returns the models that a run was created with.
    pub(crate) fn pinned(pins: &CodePins) -> Result<Self, Failure> {
        let names = pins.get(MODEL_PIN).ok_or_else(|| {
            Failure::usage("the run does not say which model it had")
                .hint("name one: --model PROVIDER")
        })?;
        if names.is_empty() {
            return Ok(Self::none());
        }
        let effort = pins.get(EFFORT_PIN).and_then(|word| {
            let mut all = ThinkingEffort::ALL.into_iter();
            all.find(|effort| effort.word() == word)
        });
        let tools = pins.get(TOOLS_PIN);
        let tools = tools.and_then(|word| OfferedTools::from_str(word, false).ok());
        Ok(Self::parse(names.split(BETWEEN))?.with(effort, tools))
    }

    /// Returns the models for resuming a run: those that are named, else those of before.
    pub(crate) fn again(given: &ModelFlags, before: &StandingRun) -> Result<Self, Failure> {
        let choice = match &given.names[..] {
            [] => Self::pinned(&before.pins),
            names => Self::parse(names.iter().map(String::as_str)),
        };
        Ok(choice?
            .with(given.effort, given.tools)
            .for_goal(&before.started.loop_config))
    }

    /// Makes the models ready to be asked, and the one that takes a second look at calls; pictures
    /// come from the runs in `store`.
    pub(crate) async fn start(
        &self,
        gyrus: &Gyrus,
        config: &Config,
        store: &Store,
    ) -> Result<ReadyModels, Failure> {
        let mut ready = self.alone(gyrus, config, store).await?;
        if !config.assess.is_empty() {
            let assessor = Self::parse(config.assess.iter().map(String::as_str))?;
            let assessor = assessor.alone(gyrus, config, store).await?;
            ready.assessor = Some(assessor.router);
            ready.secrets.extend(assessor.secrets);
        }
        Ok(ready)
    }

    /// Does the same as [`Self::start`], for a run whose loop has this configuration; one that
    /// replays a procedure may never ask.
    pub(crate) async fn start_for(
        &self,
        gyrus: &Gyrus,
        (config, store, loop_config): (&Config, &Store, &Value),
    ) -> Result<ReadyModels, Failure> {
        let mut ready = if procedures::is_replay(loop_config) {
            self.start_if_possible(gyrus, config, store).await
        } else {
            self.start(gyrus, config, store).await?
        };
        let terms = DelegationConfig::deserialize(&loop_config["delegation"]).ok();
        for name in terms.iter().flat_map(DelegationConfig::all_models) {
            if ready.children.contains_key(name) {
                continue;
            }
            let choice = Self::parse([name.as_str()]);
            let child = match choice {
                Ok(choice) => choice.start_if_possible(gyrus, config, store).await,
                Err(failure) => unreachable(failure.message),
            };
            ready.secrets.extend(child.secrets);
            ready.children.insert(name.clone(), child.router);
        }
        Ok(ready)
    }

    /// Does the same as [`Self::start`], for a run that may never ask a model: an obstacle is
    /// reported when a model is asked.
    pub(crate) async fn start_if_possible(
        &self,
        gyrus: &Gyrus,
        config: &Config,
        store: &Store,
    ) -> ReadyModels {
        let why = if self.is_none() {
            "no model is configured; name one with --model, or see: gyrus setup".to_owned()
        } else {
            match self.start(gyrus, config, store).await {
                Ok(ready) => return ready,
                Err(failure) => failure.message,
            }
        };
        unreachable(why)
    }

    async fn alone(
        &self,
        gyrus: &Gyrus,
        config: &Config,
        store: &Store,
    ) -> Result<ReadyModels, Failure> {
        let blobs: Arc<dyn PictureSource> = Arc::new(StoredPictures(store.clone()));
        if let [ModelName::Script(file)] = self.names.as_slice() {
            let router = Arc::new(SingleModel(scripted(file, blobs).await?));
            return Ok(ReadyModels {
                router,
                assessor: None,
                children: BTreeMap::new(),
                secrets: Vec::new(),
            });
        }
        let catalogue = catalogue(gyrus)?;
        let keys = KeyLookup::new(&config.keys);
        let state = &gyrus.home()?.state;
        let measured = MeasuredModels::read(state)?;
        let learned = LearnedModels::read(state)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        for name in &self.names {
            let ModelName::Connected(name) = name else {
                continue;
            };
            for candidate in connected(name, &keys, &catalogue, &blobs).await? {
                let is_new = |one: &Candidate| one.model.name() != candidate.model.name();
                if candidates.iter().all(is_new) {
                    let mut candidate = measured.applied(candidate).with_learned(&learned);
                    candidate.efforts = config.effort.by_purpose(self.effort);
                    if let Some(tools) = self.tools {
                        candidate.facts.few_tools = Some(tools == OfferedTools::Few);
                    }
                    candidates.push(candidate);
                }
            }
        }
        let policy = config.policy;
        if policy == RoutingPolicy::LocalOnly
            && candidates.iter().all(|candidate| !candidate.is_local)
        {
            return Err(Failure::usage(
                "the policy is `local-only`, and none of the models is on this machine",
            )
            .hint("name a model on this machine, like --model ollama, or choose another policy"));
        }
        Ok(ReadyModels {
            router: Arc::new(
                ModelRouter::new(candidates, policy)
                    .with_steps(self.steps)
                    .with_learned_in(state.clone()),
            ),
            assessor: None,
            children: BTreeMap::new(),
            secrets: [keys.secrets(), variables_of(&catalogue)].concat(),
        })
    }
}

/// Returns the models of a run that cannot ask any, for this reason.
fn unreachable(why: String) -> ReadyModels {
    ReadyModels {
        router: Arc::new(UnreachableModel { why }),
        assessor: None,
        children: BTreeMap::new(),
        secrets: Vec::new(),
    }
}

/// Returns the keys of all known providers that the environment sets.
fn variables_of(catalogue: &Catalogue) -> Vec<Secret> {
    let names = catalogue
        .providers()
        .flat_map(|provider| catalogue.key_variables(provider));
    let set = names.filter_map(|name| Some((name.clone(), crate::env::variable(name)?)));
    set.map(|(name, value)| Secret { name, value }).collect()
}

impl std::fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = self.names().collect();
        f.write_str(&names.join(BETWEEN))
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModelName::Script(file) => write!(f, "script:{}", file.display()),
            ModelName::Connected(name) => f.write_str(name),
        }
    }
}

/// Reads the catalogue of models: our own file, then the person's.
pub(crate) fn catalogue(gyrus: &Gyrus) -> Result<Catalogue, Failure> {
    let path = gyrus.home()?.config.with_file_name("models.toml");
    let builtin = Catalogue::builtin();
    match gyrus_process::read_regular_text(&path) {
        Ok(text) => builtin
            .merged(&text)
            .map_err(|error| Failure::usage(format!("{}, {error}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(builtin),
        Err(error) => {
            Err(Failure::usage(format!("{} cannot be read", path.display())).because(&error))
        }
    }
}

async fn scripted(
    file: &std::path::Path,
    blobs: Arc<dyn PictureSource>,
) -> Result<Arc<dyn Model>, Failure> {
    let text = gyrus_process::read_regular_text(file).map_err(|error| {
        Failure::usage(format!("the script {} cannot be read", file.display()))
            .because(&error)
            .hint("name the file: --model script:FILE")
    })?;
    match ScriptedModel::from_text(&file.display().to_string(), &text, blobs).await {
        Ok(model) => Ok(Arc::new(model)),
        Err(error @ (ScriptError::Read { .. } | ScriptError::Format { .. })) => {
            Err(Failure::usage(error))
        }
        Err(error @ (ScriptError::Server { .. } | ScriptError::Client { .. })) => {
            Err(Failure::failed("the script cannot be played").because(&error))
        }
    }
}

pub(crate) async fn connected(
    name: &str,
    keys: &KeyLookup<'_>,
    catalogue: &Catalogue,
    blobs: &Arc<dyn PictureSource>,
) -> Result<Vec<Candidate>, Failure> {
    connect_all(name, |variable| keys.get(variable), catalogue, blobs)
        .await
        .map_err(|error| unconnected(error, keys))
}

fn unconnected(error: ConnectError, keys: &KeyLookup<'_>) -> Failure {
    if let Some(failure) = keys.failure() {
        return failure;
    }
    match &error {
        ConnectError::NoKey { .. } => Failure::usage(&error)
            .hint("`gyrus setup` stores one and proves it; a model on this machine needs none"),
        ConnectError::NoList { error: reason, .. } | ConnectError::Client { error: reason, .. } => {
            let hint = match reason {
                ModelError::Auth { .. } => "is the key right, and has it credit? see: gyrus setup",
                _ => "is the address right, and the network there? see: gyrus models check",
            };
            Failure::unreachable(&error).hint(hint)
        }
        _ => Failure::usage(&error).hint("see which there are: gyrus models"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again() {
        let both = ModelChoice::parse(["openai:large, gemini", "groq"]).unwrap();
        assert_eq!(
            both.names().collect::<Vec<_>>(),
            ["openai:large", "gemini", "groq"]
        );
        let choice = ModelChoice::parse(["openai:large", "http://127.0.0.1:9/v1#m"]).unwrap();
        assert_eq!(ModelChoice::pinned(&choice.pins()).unwrap(), choice);
        assert!(ModelChoice::parse(["script:a.toml", "openai"]).is_err());
        assert!(ModelChoice::parse(["script:"]).is_err());
        assert!(ModelChoice::pinned(&CodePins::new()).is_err());
    }
}
