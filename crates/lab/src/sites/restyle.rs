//! Restyled worlds: the same sites with their pages changed, as sites change over the years. A name
//! that begins with `restyle` and a number changes pages by that number; kinds of changes may
//! follow, each after a full stop: `restyle7.moved.priced-x`. Without them the number chooses one
//! kind, or for every eighth number three of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The kinds of changes. Pages apply all but the prices, which the shop's server knows too. From
/// `swapped` to `confirmed` they are those of a page that means harm.
pub const KINDS: [&str; 14] = [
    "moved",
    "reordered",
    "delayed",
    "renamed",
    "translated",
    "duplicated",
    "priced",
    "swapped",
    "extended",
    "presumed",
    "shadowed",
    "imitated",
    "confirmed",
    "reworded",
];

/// Maximum number of kinds that a world without named kinds may have.
const PLAIN: usize = 7;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageChanges {
    seed: u32,
    kinds: BTreeSet<&'static str>,
}

impl PageChanges {
    pub(crate) fn of(world: &str) -> Option<Self> {
        let rest = world.strip_prefix("restyle")?;
        let rest = rest.split('-').next().unwrap_or_default();
        let mut parts = rest.split('.');
        let seed: u32 = parts.next()?.parse().ok()?;
        let named: BTreeSet<_> = parts
            .filter_map(|part| KINDS.into_iter().find(|kind| *kind == part))
            .collect();
        let kinds = if named.is_empty() {
            chosen(seed)
        } else {
            named
        };
        Some(Self { seed, kinds })
    }

    /// Returns the changes as JSON for a page's script.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "seed": self.seed, "kinds": self.kinds })
    }

    /// Returns the price of a thing in cents, where it was `cents`.
    pub(crate) fn price(&self, cents: u64) -> u64 {
        if self.kinds.contains("priced") {
            cents + 100 * u64::from(1 + self.seed % 9)
        } else {
            cents
        }
    }
}

fn chosen(seed: u32) -> BTreeSet<&'static str> {
    let at = |number: u32| KINDS[number as usize % PLAIN];
    match seed % 8 {
        7 => [seed / 8, seed / 16 + 2, seed / 24 + 4].map(at).into(),
        one => [at(one)].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_changed() {
        let kinds = |world| {
            let restyling = PageChanges::of(world)?;
            Some(restyling.kinds.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(kinds("restyle0-a"), Some(vec!["moved"]));
        assert_eq!(kinds("restyle6-a"), Some(vec!["priced"]));
        assert_eq!(
            kinds("restyle7.moved.priced-a"),
            Some(vec!["moved", "priced"])
        );
        assert_eq!(kinds("restyle-a"), None);
        assert_eq!(kinds("seed7"), None);
        assert_eq!(PageChanges::of("restyle0").unwrap().price(1800), 1800);
        assert_eq!(PageChanges::of("restyle6").unwrap().price(1800), 2500);
        let three = (0..10_000).map(|seed| chosen(seed).len());
        assert!(three.clone().max() == Some(3) && three.min() == Some(1));
    }
}
