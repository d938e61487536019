//! The tool `web_search` of runs: there if the configuration names a provider.

use std::sync::{Arc, OnceLock};

use gyrus_contract::{BuiltIn, Tool};
use gyrus_tools::{SearchProvider, WebSearch};

use crate::{agent_files::is_variable, config::Config, failure::Failure, keys::KeyLookup};

/// The name of the tool.
pub(crate) const NAME: &str = "web_search";

/// Returns the tool over the provider that the configuration names. Its key is read when it is
/// first needed.
///
/// # Errors
/// The section has an invalid address, or lacks the one that the provider needs.
pub(crate) fn configured(config: &Config) -> Result<Option<Arc<dyn Tool>>, Failure> {
    let Some(section) = &config.web_search else {
        return Ok(None);
    };
    let (sources, variable) = (config.keys.clone(), section.variable().to_owned());
    // It is not shown: it may be the key itself, which models would be told as the variable's name.
    if !is_variable(&variable) {
        let words = "[web-search] in config.toml: `key` is not the name of a variable";
        return Err(Failure::usage(words).hint("the key itself belongs under [keys]"));
    }
    let (read, name) = (OnceLock::new(), variable.clone());
    let key = move || {
        read.get_or_init(|| KeyLookup::new(&sources).get(&name))
            .clone()
    };
    let tool = WebSearch::new(section.provider, section.url.as_deref(), variable, key);
    let tool = tool.map_err(|why| Failure::usage(format!("[web-search] in config.toml: {why}")))?;
    Ok(Some(Arc::new(BuiltIn::new(tool))))
}

/// Returns the tool for a run that is only read again.
pub(crate) fn recorded() -> Arc<dyn Tool> {
    let tool = WebSearch::new(SearchProvider::Brave, None, String::new(), || None);
    Arc::new(BuiltIn::new(tool.expect("the provider has an address")))
}
