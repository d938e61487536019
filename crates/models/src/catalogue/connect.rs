//! Turns a name that a person typed into a client of a model.
//!
//! `provider/model` names one. `provider` and `provider:tier` choose the best model of that
//! strength from the provider's own list. An address, `http://host/v1#model`, is reached by the
//! Chat protocol, which most servers support; no key is sent there, because none is configured for
//! it.

use std::{borrow::Cow, sync::Arc};

use futures_util::future::join_all;
use gyrus_contract::{Model, ModelError, Price};
use gyrus_net::KeyPin;
use reqwest::Url;

use super::{
    Catalogue, ModelEntryFacts, Provider, ProviderProtocol, file::ListEntry, list, protocol, window,
};
use crate::{CallReader, Candidate, ModelConnection, PictureSource, Tier};

/// Maximum number of models that an error names.
const NAMED: usize = 5;

/// Connects to all models of a name: a provider alone stands for its models of every strength, so
/// that small questions go to small models. Missing strengths are not an error if there is at least
/// one model.
pub async fn connect_all(
    name: &str,
    variable: impl Fn(&str) -> Option<String> + Copy,
    catalogue: &Catalogue,
    blobs: &Arc<dyn PictureSource>,
) -> Result<Vec<Candidate>, ConnectError> {
    let one =
        |name: String| async move { connect(&name, variable, catalogue, blobs.clone()).await };
    if catalogue.providers().all(|provider| provider != name) {
        return Ok(vec![one(name.to_owned()).await?]);
    }
    // Medium first: a run asks it most, so its error is the one to report.
    let tiers = ["medium", "small", "large"].map(|tier| one(format!("{name}:{tier}")));
    let mut found = Vec::new();
    let mut first_error = None;
    for tier in join_all(tiers).await {
        match tier {
            Ok(candidate) => found.push(candidate),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match (found.is_empty(), first_error) {
        (true, Some(error)) => Err(error),
        _ => Ok(found),
    }
}

/// Reason why a name could not be turned into a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("no provider is called `{name}`; {}", remedy(.suggestion, .known))]
    UnknownProvider {
        /// The name as given.
        name: String,
        /// The most similar known name.
        suggestion: Option<String>,
        /// The names of all providers.
        known: Vec<String>,
    },
    /// The part after the colon is not a tier.
    #[error("{0}, or `provider/model` for a certain model")]
    UnknownTier(#[from] crate::UnknownTier),
    #[error("{provider} wants a key: set {}", .variables.join(" or "))]
    NoKey {
        provider: String,
        /// The environment variables that may hold the key.
        variables: Vec<String>,
    },
    #[error("invalid address `{address}`, expected https://host: {reason}")]
    BadAddress {
        /// The given address, without a password.
        address: String,
        reason: String,
    },
    /// The provider's list has no model that may be chosen automatically.
    #[error("{provider} has no model that is known to be {tier}; name one: {}", examples(.listed))]
    NoModel {
        provider: String,
        /// The tier that was requested.
        tier: &'static str,
        /// Some of the provider's models, as names that can be used.
        listed: Vec<String>,
    },
    /// The provider's list of models could not be read.
    #[error("{provider} did not say which models it has: {error}")]
    NoList { provider: String, error: ModelError },
    /// The client could not be created.
    #[error("{name}: {error}")]
    Client {
        /// The model's name.
        name: String,
        error: ModelError,
    },
}

fn remedy(suggestion: &Option<String>, known: &[String]) -> String {
    match suggestion {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

fn examples(listed: &[String]) -> String {
    if listed.is_empty() {
        "its list is empty".to_owned()
    } else {
        listed.join(", ")
    }
}

/// The requested model of a provider.
enum ModelWish<'a> {
    Named(&'a str),
    OfTier(Tier),
}

struct ModelAddress<'a> {
    connection: ModelConnection,
    protocol: ProviderProtocol,
    list: Option<Cow<'a, ListEntry>>,
    free_when_local: bool,
    /// Whether a person runs the server and so sets the model's window, which the server reports.
    names_window: bool,
}

/// Connects to the model called `name`, as a candidate of a router.
///
/// `environment` looks up variables; an empty one counts as not set. The provider is asked for its
/// list if `name` does not contain the model. A server that a person runs is asked for its window if
/// the catalogue has none.
///
/// # Errors
/// [`ConnectError`], which says what to do.
pub async fn connect(
    name: &str,
    environment: impl Fn(&str) -> Option<String>,
    catalogue: &Catalogue,
    blobs: Arc<dyn PictureSource>,
) -> Result<Candidate, ConnectError> {
    let name = name.trim();
    let (mut place, requested) = if name.starts_with("http://") || name.starts_with("https://") {
        at_address(name, blobs)?
    } else {
        at_provider(name, environment, catalogue, blobs)?
    };
    let (mut window, mut longest) = (None, None);
    match requested {
        ModelWish::Named(model) => place.connection.model = model.to_owned(),
        ModelWish::OfTier(tier) => {
            let chosen = place.pick(tier, catalogue).await?;
            (window, longest) = (chosen.window, chosen.longest_window);
            place.connection.model = chosen.id;
        }
    }
    let connection = &place.connection;
    let known = catalogue.known(&connection.provider, &connection.model);
    if let (true, None, Some(entry)) = (
        place.names_window,
        known.facts.window.or(window),
        &place.list,
    ) {
        window = window::window(connection, entry, longest).await;
    }
    place.candidate(known, window)
}

fn at_provider<'a>(
    name: &'a str,
    environment: impl Fn(&str) -> Option<String>,
    catalogue: &'a Catalogue,
    blobs: Arc<dyn PictureSource>,
) -> Result<(ModelAddress<'a>, ModelWish<'a>), ConnectError> {
    // Models may have slashes and colons in their names, providers have none.
    let known = catalogue.provider_of(name);
    let (provider_name, requested) = match (name.split_once('/'), name.split_once(':')) {
        _ if let Some(provider) = known => (provider, ModelWish::Named(name)),
        (Some((provider, model)), _) if !model.is_empty() => (provider, ModelWish::Named(model)),
        (None, Some((provider, tier))) => (provider, ModelWish::OfTier(tier.parse()?)),
        _ => (name.trim_end_matches('/'), ModelWish::OfTier(Tier::Medium)),
    };
    let provider = catalogue.provider(provider_name)?;
    let set = |name: &String| environment(name).filter(|value| !value.trim().is_empty());
    let key = provider.key_variables.iter().find_map(set);
    if key.is_none() && !provider.key_optional {
        return Err(ConnectError::NoKey {
            provider: provider_name.to_owned(),
            variables: provider.key_variables.clone(),
        });
    }
    let base_url = provider.address(&environment)?;
    let place = ModelAddress {
        connection: ModelConnection {
            base_url,
            key,
            pins: provider.pins.clone(),
            provider: provider_name.to_owned(),
            model: String::new(),
            facts: crate::ModelFacts::default(),
            blobs,
        },
        protocol: provider.protocol,
        list: provider.list.as_ref().map(Cow::Borrowed),
        free_when_local: provider.free_when_local,
        names_window: provider.key_optional && provider.protocol == ProviderProtocol::Chat,
    };
    Ok((place, requested))
}

impl Catalogue {
    fn provider(&self, name: &str) -> Result<&Provider, ConnectError> {
        self.providers.get(name).ok_or_else(|| {
            let suggestion = gyrus_text::closest(name, self.providers());
            ConnectError::UnknownProvider {
                name: name.to_owned(),
                suggestion: suggestion.map(str::to_owned),
                known: self.providers().map(str::to_owned).collect(),
            }
        })
    }

    /// Returns a provider's address from its entry and the environment, and the pins of its server.
    ///
    /// # Errors
    /// There is no such provider, or its address cannot be used.
    pub fn server(
        &self,
        provider: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(Url, &[KeyPin]), ConnectError> {
        let provider = self.provider(provider)?;
        let address = check(&provider.address(environment)?)?;
        Ok((address, &provider.pins))
    }
}

impl Provider {
    fn address(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<String, ConnectError> {
        let set = |name: &String| environment(name).filter(|value| !value.trim().is_empty());
        let address = match self.base_url_variables.iter().find_map(set) {
            Some(given) => complete(given.trim(), self)?,
            None => self.base_url.clone(),
        };
        check(&address)?;
        Ok(address)
    }
}

fn at_address(
    name: &str,
    blobs: Arc<dyn PictureSource>,
) -> Result<(ModelAddress<'_>, ModelWish<'_>), ConnectError> {
    let (base_url, model) = name.split_once('#').unwrap_or((name, ""));
    let url = check(base_url)?;
    let host = url.host_str().unwrap_or_default();
    let provider = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let place = ModelAddress {
        connection: ModelConnection {
            base_url: base_url.to_owned(),
            key: None,
            pins: Vec::new(),
            provider,
            model: String::new(),
            facts: crate::ModelFacts::default(),
            blobs,
        },
        protocol: ProviderProtocol::Chat,
        list: Some(Cow::Owned(ListEntry::compatible())),
        free_when_local: false,
        names_window: true,
    };
    let requested = match model {
        "" => ModelWish::OfTier(Tier::Medium),
        model => ModelWish::Named(model),
    };
    Ok((place, requested))
}

/// Completes an address from a variable: a URL, or `host` or `host:port`, where a missing port is
/// the catalogue's; `0.0.0.0`, where a server listens on all interfaces, becomes this machine.
fn complete(given: &str, provider: &Provider) -> Result<String, ConnectError> {
    let wrong = |()| ConnectError::BadAddress {
        address: given.to_owned(),
        reason: "its host or port cannot be used".to_owned(),
    };
    let mut url = if given.contains("://") {
        check(given)?
    } else {
        let mut url = check(&format!("http://{given}"))?;
        if url.port().is_none() && !given.trim_end_matches('/').ends_with(":80") {
            let usual = check(&provider.base_url)?;
            url.set_port(usual.port()).map_err(wrong)?;
        }
        url
    };
    if url.host_str() == Some("0.0.0.0") {
        url.set_host(Some("127.0.0.1")).map_err(|_| wrong(()))?;
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Checks that an address can be used.
pub(super) fn check(address: &str) -> Result<Url, ConnectError> {
    let wrong = |address: &str, reason: &str| ConnectError::BadAddress {
        address: address.to_owned(),
        reason: reason.to_owned(),
    };
    let url = Url::parse(address).map_err(|error| wrong(address, &error.to_string()))?;
    if !url.username().is_empty() || url.password().is_some() {
        let host = url.host_str().unwrap_or_default();
        let reason = "a name or password in an address would be shown; set the key instead";
        return Err(wrong(&format!("{}://…@{host}", url.scheme()), reason));
    }
    match (url.scheme(), url.host_str()) {
        ("http" | "https", Some(_)) => Ok(url),
        (scheme, _) => Err(wrong(address, &format!("`{scheme}` is not spoken here"))),
    }
}

impl ModelAddress<'_> {
    /// Returns the best model of this tier, or of the nearest one, in the provider's list.
    async fn pick(
        &self,
        tier: Tier,
        catalogue: &Catalogue,
    ) -> Result<list::ProviderModel, ConnectError> {
        let provider = &self.connection.provider;
        let models = match &self.list {
            Some(entry) => list::list(&self.connection, entry).await,
            None => Ok(Vec::new()),
        };
        let mut models = models.map_err(|error| ConnectError::NoList {
            provider: provider.clone(),
            error,
        })?;
        models.retain(|model| !catalogue.known(provider, &model.id).is_other);
        // The only model of a server is meant, whatever its tier.
        if let [only] = &models[..] {
            return Ok(only.clone());
        }
        let best_of = |tier: Tier| {
            let of_tier = models.iter().filter_map(|model| {
                let known = catalogue.known(provider, &model.id);
                let preference = catalogue.preference(provider, &model.id)?;
                (known.tier == Some(tier)).then_some((preference, model))
            });
            of_tier.min_by_key(|(preference, _)| *preference)
        };
        let chosen = tier.or_nearest().into_iter().find_map(best_of);
        let chosen = chosen.map(|(_, model)| model.clone());
        chosen.ok_or_else(|| ConnectError::NoModel {
            provider: provider.clone(),
            tier: tier.word(),
            listed: models
                .iter()
                .take(NAMED)
                .map(|model| self.name_of(&model.id))
                .collect(),
        })
    }

    /// Returns the name under which a person gets this model.
    fn name_of(&self, model: &str) -> String {
        if self.connection.provider.contains(['.', ':']) {
            format!("{}#{model}", self.connection.base_url)
        } else {
            format!("{}/{model}", self.connection.provider)
        }
    }

    fn candidate(
        mut self,
        known: ModelEntryFacts,
        listed_window: Option<u64>,
    ) -> Result<Candidate, ConnectError> {
        let connection = &mut self.connection;
        let ModelEntryFacts {
            mut facts,
            tier,
            is_other: _,
            is_hosted,
        } = known;
        let is_local = is_this_machine(&connection.base_url) && !is_hosted;
        facts.window = facts.window.or(listed_window);
        if is_local && self.free_when_local {
            facts.price = facts.price.or(Some(Price::new(0, 0)));
        }
        connection.facts = facts.clone();
        let name = connection.name();
        let model: Arc<dyn Model> = protocol::make(self.protocol, self.connection)
            .map_err(|error| ConnectError::Client { name, error })?;
        let is_prompted = facts.tools == Some(false);
        Ok(Candidate {
            model: Arc::new(if is_prompted {
                CallReader::prompted(model)
            } else {
                CallReader::native(model)
            }),
            tier: tier.unwrap_or(Tier::Medium),
            facts,
            is_local,
            is_prompted,
            latency_ms: None,
            efforts: Default::default(),
            refuses: Default::default(),
        })
    }
}

/// Whether an address is on this machine by its form alone: no name is looked up.
fn is_this_machine(base_url: &str) -> bool {
    let Ok(url) = Url::parse(base_url) else {
        return false;
    };
    url.host_str().is_some_and(gyrus_net::is_loopback_host)
}
