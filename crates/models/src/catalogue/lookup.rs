//! Information from a catalogue about providers that could be used.

use super::Catalogue;

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
