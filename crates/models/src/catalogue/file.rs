//! The catalogue's file format, in TOML, for the built-in files and a person's.
//!
//! Every key is optional, so that a person's entry changes only the facts that it states.

use std::collections::BTreeMap;

use gyrus_contract::Price;
use gyrus_net::KeyPin;
use gyrus_text::{FileMistake, file_mistake};
use serde::{Deserialize, Deserializer, de::Error};
use toml::Spanned;

use super::{pattern::ModelPattern, protocol::ProviderProtocol};
use crate::{ImageTokens, Tier};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CatalogueFile {
    /// Providers by the name before the slash.
    pub(super) providers: BTreeMap<Spanned<String>, ProviderEntry>,
    /// Families of models, in the order of preference among models of one tier.
    pub(super) models: Vec<ModelEntry>,
}

/// A table `[providers.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct ProviderEntry {
    pub(super) protocol: Option<ProviderProtocol>,
    /// Address of the provider.
    pub(super) base_url: Option<String>,
    /// Environment variables with another address; the first that is set counts.
    pub(super) base_url_variables: Option<Vec<String>>,
    /// Environment variables with the provider's key; the first that is set counts.
    pub(super) key_variables: Option<Vec<String>>,
    /// Whether the provider also answers without a key.
    pub(super) key_optional: Option<bool>,
    /// Public keys, one of which must vouch for the provider's server.
    #[serde(deserialize_with = "pins")]
    pub(super) pins: Option<Vec<KeyPin>>,
    /// Whether a server on this machine runs the models itself and so is free.
    pub(super) free_when_local: Option<bool>,
    /// The way in which the provider lists its models.
    pub(super) list: Option<ListEntry>,
}

fn pins<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<KeyPin>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let pins = texts
        .iter()
        .map(|text| text.parse().map_err(D::Error::custom));
    pins.collect::<Result<_, _>>().map(Some)
}

/// The way in which a provider lists its models.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ListEntry {
    /// Path after the base URL.
    pub(super) path: String,
    /// Header with the key.
    pub(super) key: KeyPlace,
    /// Further headers of the request.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// A JSON pointer to the array of models.
    pub(super) models: String,
    /// A JSON pointer to the id inside a model.
    pub(super) id: String,
    /// Prefix of the ids, which is removed.
    #[serde(default)]
    pub(super) id_prefix: String,
    /// A JSON pointer to the maximum number of tokens of a model.
    pub(super) window: Option<String>,
}

impl ListEntry {
    /// Returns the entry of a server that is compatible with the Chat protocol.
    pub(super) fn compatible() -> Self {
        Self {
            path: "/models".to_owned(),
            key: KeyPlace::Bearer,
            headers: BTreeMap::new(),
            models: "/data".to_owned(),
            id: "/id".to_owned(),
            id_prefix: String::new(),
            window: None,
        }
    }

    /// Whether the list has the form of the Chat protocol.
    pub(super) fn is_compatible(&self) -> bool {
        self.path == "/models" && self.models == "/data"
    }
}

/// The header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KeyPlace {
    /// The header `authorization: Bearer KEY`.
    Bearer,
    /// The header `x-api-key: KEY`.
    XApiKey,
    /// The header `x-goog-api-key: KEY`.
    XGoogApiKey,
}

/// A table `[[models]]`: the facts of the models that it matches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ModelEntry {
    /// Patterns of model names; any of them may match.
    #[serde(rename = "match")]
    pub(super) patterns: Vec<ModelPattern>,
    /// Strength of the models.
    pub(super) tier: Option<Tier>,
    pub(super) price: Option<PriceEntry>,
    /// Maximum tokens of a prompt and its reply together.
    pub(super) window: Option<u64>,
    /// Maximum tokens of one reply.
    pub(super) max_output_tokens: Option<u64>,
    /// The way in which the models count pictures.
    pub(super) image_tokens: Option<ImageTokens>,
    /// Whether the models call tools.
    pub(super) tools: Option<bool>,
    /// Whether the models accept pictures.
    pub(super) images: Option<bool>,
    /// Whether the models' replies can be bound to a schema.
    pub(super) schema: Option<bool>,
    /// Whether the models are offered few tools, each reply being a call of one.
    pub(super) few_tools: Option<bool>,
    /// Whether the models are offered their provider's own tool for screens.
    pub(super) screen_tool: Option<bool>,
    /// Whether the models converse; models for embeddings or speech do not and are never chosen
    /// from a list.
    pub(super) chat: Option<bool>,
    /// Whether the models run on the provider's machines even if its address is on this one.
    pub(super) hosted: Option<bool>,
}

/// A price in US dollars per million tokens, or the word for a model without a known price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PriceEntry(pub(super) Option<Price>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Dollars {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl<'de> Deserialize<'de> for PriceEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        if value.as_str() == Some("unknown") {
            return Ok(Self(None));
        }
        let dollars: Dollars = value.try_into().map_err(|error: toml::de::Error| {
            D::Error::custom(format!(
                "{}; a price is {{ input = 3.0, output = 15.0 }}, in dollars for a million \
                 tokens, or \"unknown\"",
                error.message()
            ))
        })?;
        let optional = |dollars: Option<f64>| dollars.map(microdollars).transpose();
        let price = || -> Result<Price, String> {
            Ok(Price {
                input: microdollars(dollars.input)?,
                output: microdollars(dollars.output)?,
                cache_read: optional(dollars.cache_read)?,
                cache_write: optional(dollars.cache_write)?,
            })
        };
        price().map(Some).map(Self).map_err(D::Error::custom)
    }
}

/// Maximum accepted price, in dollars per million tokens.
const MAX_DOLLARS: f64 = 1_000_000.0;

fn microdollars(dollars: f64) -> Result<u64, String> {
    if (0.0..=MAX_DOLLARS).contains(&dollars) {
        Ok((dollars * 1_000_000.0).round() as u64)
    } else {
        Err(format!(
            "`{dollars}` is not a price in dollars for a million tokens"
        ))
    }
}

impl CatalogueFile {
    /// Parses a catalogue file.
    pub(super) fn parse(text: &str) -> Result<Self, FileMistake> {
        toml::from_str(text).map_err(|error| file_mistake(text, error.span(), error.message()))
    }
}
