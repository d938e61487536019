//! Worlds: each visitor's events, apart from everybody else's, within bounds.

use std::{collections::BTreeMap, fmt};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::sites::rules;

/// Maximum number of worlds of one server; another one is refused.
const MAX_WORLDS: usize = 1024;
/// Maximum number of events of a world.
const MAX_EVENTS: usize = 4096;
/// Maximum size of the events of a world, in bytes of JSON.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum number of addresses of a world whose visits are counted.
const MAX_COUNTED: usize = 256;
/// The longest name of a world or a kind, in bytes.
const MAX_NAME: usize = 64;

/// An event in a world.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteEvent {
    /// The number of the event in the world, from 1.
    pub n: usize,
    /// The site at which the event happened.
    pub site: String,
    /// Kind of the event, such as `order`.
    pub kind: String,
    /// Data entered by the visitor or added by the site.
    pub data: Map<String, Value>,
}

/// The reason why an event did not happen.
#[derive(Debug, PartialEq)]
pub(crate) enum SiteRefusal {
    Full(&'static str),
    Invalid(String),
}

impl fmt::Display for SiteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(what) => write!(f, "there are too many {what}; start the sites anew"),
            Self::Invalid(why) => f.write_str(why),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Worlds(Mutex<BTreeMap<String, SiteWorld>>);

#[derive(Debug, Default)]
struct SiteWorld {
    events: Vec<SiteEvent>,
    bytes: usize,
    /// Number of requests for an address, where that matters.
    visits: BTreeMap<String, u64>,
}

impl Worlds {
    /// Returns the events of a world. Asking creates no world.
    pub(crate) fn ledger(&self, world: &str) -> Vec<SiteEvent> {
        let worlds = self.0.lock();
        worlds
            .get(world)
            .map(|world| world.events.clone())
            .unwrap_or_default()
    }

    pub(crate) fn act(
        &self,
        world: &str,
        site: &str,
        kind: &str,
        data: Map<String, Value>,
    ) -> Result<SiteEvent, SiteRefusal> {
        let mut worlds = self.0.lock();
        let known = visit(&mut worlds, world)?;
        if !is_name(kind) {
            return Err(SiteRefusal::Invalid(format!(
                "`{kind}` is not a kind of event"
            )));
        }
        let admitted = rules::admit(world, &known.events, site, kind, data)?;
        let event = SiteEvent {
            n: known.events.len() + 1,
            site: admitted.site.to_owned(),
            kind: admitted.kind.to_owned(),
            data: admitted.data,
        };
        let bytes = serde_json::to_vec(&event).map_or(MAX_BYTES, |json| json.len());
        if known.events.len() >= MAX_EVENTS || known.bytes + bytes > MAX_BYTES {
            return Err(SiteRefusal::Full("events"));
        }
        known.bytes += bytes;
        known.events.push(event.clone());
        Ok(event)
    }

    /// Counts a visit of an address, from 1.
    pub(crate) fn count(&self, world: &str, address: &str) -> Result<u64, SiteRefusal> {
        let mut worlds = self.0.lock();
        let visits = &mut visit(&mut worlds, world)?.visits;
        if visits.len() >= MAX_COUNTED && !visits.contains_key(address) {
            return Err(SiteRefusal::Full("addresses"));
        }
        let count = visits.entry(address.to_owned()).or_default();
        *count += 1;
        Ok(*count)
    }
}

/// The world of this name, new at the first visit.
fn visit<'a>(
    worlds: &'a mut BTreeMap<String, SiteWorld>,
    name: &str,
) -> Result<&'a mut SiteWorld, SiteRefusal> {
    if !is_name(name) {
        let message = format!("`{name}` names no world: letters, digits and hyphens do");
        return Err(SiteRefusal::Invalid(message));
    }
    if worlds.len() >= MAX_WORLDS && !worlds.contains_key(name) {
        return Err(SiteRefusal::Full("worlds"));
    }
    Ok(worlds.entry(name.to_owned()).or_default())
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_part)
}

/// The number after `seed` at the start of a world's name, by which the order of things varies; 0
/// where there is none.
pub(crate) fn seed(world: &str) -> u32 {
    let digits = world.strip_prefix("seed").unwrap_or_default();
    let digits = digits.split('-').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_part_of_a_name() {
        for (world, expected) in [("seed7-x", 7), ("seed12", 12), ("demo", 0), ("seed-x", 0)] {
            assert_eq!(seed(world), expected, "{world}");
        }
    }

    #[test]
    fn worlds_are_bounded() {
        let worlds = Worlds::default();
        for number in 0..MAX_WORLDS {
            worlds.count(&number.to_string(), "/").unwrap();
        }
        assert_eq!(worlds.count("0", "/"), Ok(2));
        assert_eq!(worlds.count("more", "/"), Err(SiteRefusal::Full("worlds")));
        assert!(matches!(
            worlds.count("../x", "/"),
            Err(SiteRefusal::Invalid(_))
        ));
    }

    #[test]
    fn a_world_is_bounded() {
        let worlds = Worlds::default();
        let much = Map::from_iter([("text".to_owned(), "x".repeat(MAX_BYTES / 2).into())]);
        let act = |world| worlds.act(world, "pad", "stroke", much.clone());
        assert_eq!(act("a").unwrap().n, 1);
        assert_eq!(act("a"), Err(SiteRefusal::Full("events")));
        assert_eq!(act("b").unwrap().n, 1);
        assert_eq!(worlds.ledger("a").len(), 1);
        assert!(worlds.ledger("c").is_empty());
    }
}
