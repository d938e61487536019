//! Known facts of providers and models, and the choice of a model by name.
//!
//! The one idea: the code contains no model's name. `providers.toml` has the addresses of providers
//! and `models.toml` the abilities and prices of families of models; a person's file of the same
//! format is laid over both. Of several entries for one model, each fact is taken from the most
//! specific entry that states it, a person's entries before those built in. A fact that no entry
//! states is unknown, and a price is never guessed.

mod connect;
mod file;
mod list;
mod pattern;
mod protocol;
mod server;
mod window;

use std::collections::BTreeMap;

use file::{CatalogueFile, ListEntry, ModelEntry, ProviderEntry};
use gyrus_net::KeyPin;
use gyrus_text::FileMistake;
use protocol::ProviderProtocol;

use crate::{ModelFacts, Tier};

pub use connect::{ConnectError, connect, connect_all};
pub use server::{AddressError, ModelServer, find_server};

/// The built-in file with providers.
const PROVIDERS: &str = include_str!("providers.toml");
/// The built-in file with families of models.
const MODELS: &str = include_str!("models.toml");

/// The catalogue of known providers and models.
#[derive(Debug, Clone)]
pub struct Catalogue {
    providers: BTreeMap<String, Provider>,
    /// The person's entries, then those built in.
    models: Vec<OriginatedEntry>,
}

/// Origin of an entry. The greater one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EntryOrigin {
    BuiltIn,
    Person,
}

#[derive(Debug, Clone)]
struct OriginatedEntry {
    layer: EntryOrigin,
    entry: ModelEntry,
}

/// Address and protocol of a provider.
#[derive(Debug, Clone)]
struct Provider {
    protocol: ProviderProtocol,
    base_url: String,
    base_url_variables: Vec<String>,
    key_variables: Vec<String>,
    key_optional: bool,
    pins: Vec<KeyPin>,
    free_when_local: bool,
    list: Option<ListEntry>,
}

/// The catalogue's facts about one model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelEntryFacts {
    /// Price, limits and abilities.
    pub facts: ModelFacts,
    /// Strength of the model; `None` when unknown.
    pub tier: Option<Tier>,
    /// Whether the model is not made for conversations.
    pub(crate) is_other: bool,
    /// Whether the model runs on the provider's machines even if the address is on this one.
    pub(crate) is_hosted: bool,
}

impl Catalogue {
    /// Returns the built-in catalogue. Its prices are those of the date in `models.toml`.
    pub fn builtin() -> Self {
        let read =
            |text| CatalogueFile::parse(text).expect("the built-in files are read in the tests");
        let mut catalogue = Self {
            providers: BTreeMap::new(),
            models: Vec::new(),
        };
        for text in [PROVIDERS, MODELS] {
            catalogue
                .add(text, read(text), EntryOrigin::BuiltIn)
                .expect("the built-in files are read in the tests");
        }
        catalogue
    }

    /// Returns this catalogue with a person's file laid over it: facts in the file take precedence
    /// over built-in ones; all others stay.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn merged(mut self, text: &str) -> Result<Self, FileMistake> {
        let file = CatalogueFile::parse(text)?;
        self.add(text, file, EntryOrigin::Person)?;
        Ok(self)
    }

    /// Returns the names of all providers, sorted.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }

    /// Returns the known facts of the model that `provider` calls `model`.
    pub fn known(&self, provider: &str, model: &str) -> ModelEntryFacts {
        let mut matching: Vec<_> = self
            .models
            .iter()
            .filter_map(|layered| {
                let patterns = layered.entry.patterns.iter();
                let fitting = patterns.filter(|pattern| pattern.is_for(provider, model));
                let specificity = fitting.map(|pattern| pattern.specificity()).max()?;
                Some(((layered.layer, specificity), &layered.entry))
            })
            .collect();
        matching.sort_by_key(|(rank, _)| *rank);
        let mut known = ModelEntryFacts::default();
        for (_, entry) in matching {
            known.learn(entry);
        }
        known
    }

    /// Returns the place of a model in the order of preference: that of the first entry with a tier
    /// that matches it. `None` if there is none.
    fn preference(&self, provider: &str, model: &str) -> Option<usize> {
        self.models.iter().position(|layered| {
            let mut patterns = layered.entry.patterns.iter();
            layered.entry.tier.is_some() && patterns.any(|it| it.is_for(provider, model))
        })
    }

    fn add(
        &mut self,
        text: &str,
        file: CatalogueFile,
        layer: EntryOrigin,
    ) -> Result<(), FileMistake> {
        for (name, entry) in file.providers {
            let line = gyrus_text::line_of(text, name.span().start);
            let name = name.into_inner();
            let provider = match self.providers.remove(&name) {
                Some(before) => before.changed(entry),
                None => Provider::new(&name, entry).map_err(|message| FileMistake {
                    line,
                    message,
                    nearest: None,
                })?,
            };
            self.providers.insert(name, provider);
        }
        let entries = file.models.into_iter();
        let entries = entries.map(|entry| OriginatedEntry { layer, entry });
        self.models.splice(0..0, entries);
        Ok(())
    }
}

impl Provider {
    fn new(name: &str, entry: ProviderEntry) -> Result<Self, String> {
        let missing = |key: &str| format!("the provider `{name}` has no `{key}`");
        let blank = Self {
            protocol: entry.protocol.ok_or_else(|| missing("protocol"))?,
            base_url: entry.base_url.clone().ok_or_else(|| missing("base-url"))?,
            base_url_variables: Vec::new(),
            key_variables: Vec::new(),
            key_optional: entry.key_variables.is_none(),
            pins: Vec::new(),
            free_when_local: false,
            list: None,
        };
        Ok(blank.changed(entry))
    }

    fn changed(self, entry: ProviderEntry) -> Self {
        Self {
            protocol: entry.protocol.unwrap_or(self.protocol),
            base_url: entry.base_url.unwrap_or(self.base_url),
            base_url_variables: entry.base_url_variables.unwrap_or(self.base_url_variables),
            key_variables: entry.key_variables.unwrap_or(self.key_variables),
            key_optional: entry.key_optional.unwrap_or(self.key_optional),
            pins: entry.pins.unwrap_or(self.pins),
            free_when_local: entry.free_when_local.unwrap_or(self.free_when_local),
            list: entry.list.or(self.list),
        }
    }
}

impl ModelEntryFacts {
    /// Adds the facts that `entry` states.
    fn learn(&mut self, entry: &ModelEntry) {
        let ModelEntry {
            patterns: _,
            tier,
            price,
            window,
            max_output_tokens,
            image_tokens,
            tools,
            images,
            schema,
            few_tools,
            screen_tool,
            chat,
            hosted,
        } = entry;
        let facts = &mut self.facts;
        if let Some(price) = price {
            facts.price = price.0;
        }
        if let Some(formula) = image_tokens {
            facts.image_tokens = Some(formula.clone());
        }
        facts.window = window.or(facts.window);
        facts.max_output_tokens = max_output_tokens.or(facts.max_output_tokens);
        facts.tools = tools.or(facts.tools);
        facts.images = images.or(facts.images);
        facts.schema = schema.or(facts.schema);
        facts.few_tools = few_tools.or(facts.few_tools);
        facts.screen_tool = screen_tool.or(facts.screen_tool);
        self.tier = tier.or(self.tier);
        self.is_other = chat.map_or(self.is_other, |chat| !chat);
        self.is_hosted = hosted.unwrap_or(self.is_hosted);
    }
}

impl Catalogue {
    /// Returns the environment variables for a provider's key, in the order in which they are read.
    pub fn key_variables(&self, provider: &str) -> &[String] {
        let provider = self.providers.get(provider);
        provider.map_or(&[], |provider| &provider.key_variables)
    }

    /// Returns the provider of a model of a known family, given by its name alone.
    pub(super) fn provider_of(&self, name: &str) -> Option<&str> {
        let first = name.split(['/', ':']).next().unwrap_or_default();
        if self.providers.contains_key(first) {
            return None;
        }
        let patterns = self.models.iter().flat_map(|model| &model.entry.patterns);
        let mut providers = patterns.filter_map(|pattern| pattern.family_of(name));
        providers.find(|provider| self.providers.contains_key(*provider))
    }

    /// Returns the environment variables for the keys of all providers.
    pub fn all_key_variables(&self) -> impl Iterator<Item = &str> {
        let all = self.providers.values();
        all.flat_map(|provider| provider.key_variables.iter().map(String::as_str))
    }

    /// Returns the providers that answer without a key: servers on this machine, unless a variable
    /// says that they are elsewhere.
    pub fn without_key(&self) -> impl Iterator<Item = &str> {
        let open = self.providers.iter();
        open.filter(|(_, provider)| provider.key_optional)
            .map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests;
