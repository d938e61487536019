//! The accessibility bus: elements of programs with roles, names, states and places (AT-SPI 2, as
//! the interfaces of at-spi2-core describe it).
//!
//! A program hands out all its elements at once (`Cache.GetItems`); only places and values are
//! asked for one by one, many at a time.

use futures_util::{StreamExt as _, stream};
use gyrus_contract::Bounds;
use serde::{Serialize, de::DeserializeOwned};
use zbus::{Connection, DynamicType, OwnedObjectPath, Type, connection::Builder};

use super::roles::{self, States};

/// Number of questions to programs at a time.
pub(super) const AT_ONCE: usize = 32;

/// Maximum number of elements of a program that are read.
const MAX_ITEMS: usize = 4_000;

/// Maximum number of characters of a value.
const MAX_VALUE: i32 = 2_000;

/// Time that a program has for an answer. One that hangs is named and left out.
const ANSWER: std::time::Duration = std::time::Duration::from_secs(2);

/// The service that knows all programs.
const REGISTRY: &str = "org.a11y.atspi.Registry";

/// Error of the bus, in words.
type BusError = String;

/// The session bus that leads to the accessibility bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bus {
    /// The person's own.
    OfPerson,
    /// That of a nested desktop, at this address.
    At(String),
}

/// A connection to the accessibility bus.
pub(super) struct Accessible {
    connection: Connection,
}

/// An element as a program hands it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) parent: String,
    pub(super) index: i32,
    pub(super) name: String,
    pub(super) role: u32,
    pub(super) states: States,
    /// Whether it has a place on the screen.
    pub(super) has_place: bool,
    /// Whether it holds text that is read: never that of a password.
    pub(super) has_text: bool,
}

/// A program on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The name on the bus.
    pub(super) bus_name: String,
    pub(super) process: u32,
    pub(super) items: Vec<Item>,
}

/// The place and the value of an element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) bounds: Option<Bounds>,
    pub(super) value: Option<String>,
}

/// The name on the bus and the path of an element.
pub(super) type Reference = (String, OwnedObjectPath);

/// An entry of a program's cache.
type CacheItem = (
    Reference,
    Reference,
    Reference,
    i32,
    i32,
    Vec<String>,
    String,
    u32,
    String,
    Vec<u32>,
);

impl Accessible {
    /// Connects to the accessibility bus that a session bus names.
    pub(super) async fn connect(bus: Bus) -> Result<Self, BusError> {
        let session = match &bus {
            Bus::OfPerson => Builder::session(),
            Bus::At(address) => Builder::address(address.as_str()),
        };
        let session = session.method_timeout(ANSWER * 5).build().await;
        let session = session.map_err(|error| format!("there is no session bus: {error}"))?;
        let asked = session
            .call_method(
                Some("org.a11y.Bus"),
                "/org/a11y/bus",
                Some("org.a11y.Bus"),
                "GetAddress",
                &(),
            )
            .await
            .map_err(|error| format!("there is no accessibility bus: {error}"))?;
        let address: String = asked
            .body()
            .deserialize()
            .map_err(|error| error.to_string())?;
        let connection = Builder::address(address.as_str())
            .method_timeout(ANSWER)
            .build()
            .await
            .map_err(|error| format!("the accessibility bus does not answer: {error}"))?;
        let accessible = Self { connection };
        // Programs keep no cache of their elements until somebody wants to hear of them.
        for event in ["object:state-changed", "object:children-changed", "window:"] {
            let registry = "/org/a11y/atspi/registry";
            let () = accessible
                .ask(REGISTRY, registry, REGISTRY, "RegisterEvent", &event)
                .await?;
        }
        Ok(accessible)
    }

    /// Returns the programs with their elements; those that do not answer are named in words.
    pub(super) async fn programs(&self) -> Result<(Vec<Program>, Vec<String>), BusError> {
        let root = "/org/a11y/atspi/accessible/root";
        let children: Vec<Reference> = self
            .ask(
                REGISTRY,
                root,
                "org.a11y.atspi.Accessible",
                "GetChildren",
                &(),
            )
            .await?;
        let questions: Vec<_> = children
            .iter()
            .map(|(name, _)| self.program(name))
            .collect();
        let answers: Vec<_> = stream::iter(questions).buffered(AT_ONCE).collect().await;
        let (mut programs, mut unread) = (Vec::new(), Vec::new());
        for ((name, _), answer) in children.iter().zip(answers) {
            match answer {
                Ok(program) => programs.push(program),
                Err(why) => unread.push(format!("the elements of a program ({name}): {why}")),
            }
        }
        Ok((programs, unread))
    }

    async fn program(&self, name: &str) -> Result<Program, BusError> {
        let bus = "org.freedesktop.DBus";
        let process: u32 = self
            .ask(
                bus,
                "/org/freedesktop/DBus",
                bus,
                "GetConnectionUnixProcessID",
                &name,
            )
            .await?;
        let cache = "org.a11y.atspi.Cache";
        let items: Vec<CacheItem> = self
            .ask(name, "/org/a11y/atspi/cache", cache, "GetItems", &())
            .await?;
        let mut items: Vec<Item> = items.into_iter().take(MAX_ITEMS).map(item).collect();
        items.extend(self.descendants(name, &items).await);
        Ok(Program {
            bus_name: name.to_owned(),
            process,
            items,
        })
    }

    /// Returns places and values of elements, in their order.
    pub(super) async fn details(&self, of: &[(&str, &Item)]) -> Vec<Details> {
        let questions = of.iter().map(|(name, item)| self.details_of(name, item));
        let questions: Vec<_> = questions.collect();
        stream::iter(questions).buffered(AT_ONCE).collect().await
    }

    async fn details_of(&self, name: &str, item: &Item) -> Details {
        let mut details = Details::default();
        if item.has_place {
            let component = "org.a11y.atspi.Component";
            let extents: Result<(i32, i32, i32, i32), _> = self
                .ask(name, &item.path, component, "GetExtents", &0_u32)
                .await;
            details.bounds = extents.ok().and_then(|(x, y, width, height)| {
                // What is hidden has the smallest number there is.
                let is_real = width > 0 && height > 0 && x > -30_000 && y > -30_000;
                is_real.then_some(Bounds {
                    x,
                    y,
                    width,
                    height,
                })
            });
        }
        if item.has_text {
            let text = "org.a11y.atspi.Text";
            let read: Result<String, _> = self
                .ask(name, &item.path, text, "GetText", &(0_i32, MAX_VALUE))
                .await;
            details.value = read.ok();
        }
        details
    }

    /// Returns the text of an element, at most so many characters.
    pub(super) async fn text(&self, name: &str, path: &str, most: i32) -> Option<String> {
        let text = "org.a11y.atspi.Text";
        let range = (0_i32, most);
        self.ask(name, path, text, "GetText", &range).await.ok()
    }

    /// Selects characters of an element's text in place of what is selected there; whether it did.
    pub(super) async fn select(&self, name: &str, path: &str, from: i32, to: i32) -> bool {
        let text = "org.a11y.atspi.Text";
        let changed: Result<bool, _> = self
            .ask(name, path, text, "SetSelection", &(0_i32, from, to))
            .await;
        if changed == Ok(true) {
            return true;
        }
        // Nothing was selected that could be changed.
        let added: Result<bool, _> = self
            .ask(name, path, text, "AddSelection", &(from, to))
            .await;
        added == Ok(true)
    }

    pub(super) async fn ask<T: DeserializeOwned + Type>(
        &self,
        name: &str,
        path: &str,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<T, BusError> {
        let reply = self
            .connection
            .call_method(Some(name), path, Some(interface), method, body)
            .await
            .map_err(|error| error.to_string())?;
        let body = reply.body();
        // A structure and its parts are sent alike.
        body.deserialize_ignore_signature()
            .map_err(|error| error.to_string())
    }
}

fn item(entry: CacheItem) -> Item {
    let (object, _, parent, index, _, interfaces, name, role, _, states) = entry;
    let has = |interface: &str| interfaces.iter().any(|one| one == interface);
    Item {
        path: object.1.to_string(),
        parent: parent.1.to_string(),
        index,
        name,
        role,
        states: States::of(&states),
        has_place: has("org.a11y.atspi.Component"),
        has_text: has("org.a11y.atspi.Text") && !roles::is_secret(role),
    }
}
