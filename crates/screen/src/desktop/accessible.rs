//! The accessibility bus: elements of programs with roles, names, states and places (AT-SPI 2, as
//! the interfaces of at-spi2-core describe it).
//!
//! A program hands out all its elements at once (`Cache.GetItems`); only places and values are
//! asked for one by one, many at a time.

use std::{collections::BTreeSet, io::ErrorKind, path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use gyrus_contract::Bounds;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout};
use zbus::{
    Connection, DynamicType, OwnedObjectPath, OwnedVariant as Value, Type, connection::Builder,
};

use super::{
    enclosure::Enclosure,
    nested::NestedDesktop,
    open_menus::OpenMenus,
    questions::ProgramQuestions,
    roles::{self, ElementStates},
};

/// Number of questions to programs at a time.
pub(super) const AT_ONCE: usize = 32;

/// Maximum number of elements of a program that are read.
pub(super) const MAX_ITEMS: usize = 4_000;

/// Maximum number of characters of a value.
const MAX_VALUE: i32 = 2_000;

/// Time limit for a program's first answer. A program that hangs is named and left out.
const FIRST_ANSWER: Duration = Duration::from_secs(1);

/// Time limit for any other answer of a program.
const ANSWER: Duration = Duration::from_secs(2);

/// Time limit for a program that did not answer before: one that hangs must not delay every look.
const ANSWER_AGAIN: Duration = Duration::from_millis(200);

/// Time limit for places and values of one window's elements.
pub(super) const DETAILS: Duration = Duration::from_secs(4);

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// The name of the service that lists all programs.
const REGISTRY: &str = "org.a11y.atspi.Registry";

/// The path of a program's root object, and of the registry's list of programs.
pub(super) const ROOT: &str = "/org/a11y/atspi/accessible/root";

/// The interface of every element.
pub(super) const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
pub(super) const COMPONENT: &str = "org.a11y.atspi.Component";
const TEXT: &str = "org.a11y.atspi.Text";

pub(super) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// Maximum number of options of a list that are read.
const MAX_OPTIONS: usize = 500;

/// Character in the place of an element within a text (OBJECT REPLACEMENT CHARACTER).
const EMBEDDED: char = '\u{fffc}';

/// Error for a program that did not answer in time.
const NO_ANSWER: &str = "it does not answer";

type AccessibilityError = String;

/// A connection to the accessibility bus.
pub(super) struct Accessible {
    connection: Connection,
    /// The names of programs that did not answer the last time.
    silent: Mutex<BTreeSet<String>>,
    pub(super) open_menus: OpenMenus,
}

/// A program that does not report its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Silent {
    pub(super) process: u32,
    pub(super) why: String,
}

/// An element as its program reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AccessibleItem {
    pub(super) path: String,
    pub(super) parent: String,
    pub(super) index: i32,
    pub(super) name: String,
    pub(super) role: u32,
    pub(super) states: ElementStates,
    /// Number of children that the element reports.
    pub(super) children: i32,
    /// Whether the element has a place on the screen.
    pub(super) has_place: bool,
    /// Whether the element has text other than its name that is read; never that of a password.
    pub(super) has_text: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BusProgram {
    pub(super) bus_name: String,
    pub(super) process: u32,
    /// Whether the program delivers all its elements at once; otherwise they are requested one by
    /// one.
    pub(super) has_cache: bool,
    pub(super) items: Vec<AccessibleItem>,
}

/// The place and the value of an element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) bounds: Option<Bounds>,
    pub(super) value: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChoiceOption {
    pub(super) name: String,
    /// The option's number, from 0.
    pub(super) index: i32,
}

/// The name on the bus and the path of an element.
pub(super) type ObjectReference = (String, OwnedObjectPath);

/// Announces to programs that somebody reads their elements, by the properties that screen readers
/// set. Some programs (Chromium, Firefox) create no elements before. Without a service for these
/// properties, nothing needs them.
async fn ask_for_everything(session: &Connection) {
    for name in ["IsEnabled", "ScreenReaderEnabled"] {
        let value = ("org.a11y.Status", name, zbus::Variant::from(true));
        let (bus, path) = (Some("org.a11y.Bus"), "/org/a11y/bus");
        let _ = session
            .call_method(bus, path, Some(PROPERTIES), "Set", &value)
            .await;
    }
}

/// An entry of a program's cache.
type CacheItem = (
    ObjectReference,
    ObjectReference,
    ObjectReference,
    i32,
    i32,
    Vec<String>,
    String,
    u32,
    String,
    Vec<u32>,
);

impl Accessible {
    /// Connects to the accessibility bus of a nested desktop, or of the person.
    pub(super) async fn connect(
        nested: Option<&NestedDesktop>,
    ) -> Result<Self, AccessibilityError> {
        let connected = timeout(CONNECT, Self::connect_patiently(nested)).await;
        connected.unwrap_or_else(|_| {
            let seconds = CONNECT.as_secs();
            Err(format!(
                "the accessibility bus has not answered for {seconds} seconds"
            ))
        })
    }

    async fn connect_patiently(nested: Option<&NestedDesktop>) -> Result<Self, AccessibilityError> {
        let own = nested.map(NestedDesktop::bus_address).unwrap_or_default();
        let missing = |error: zbus::Error| format!("there is no session bus: {error}");
        let session = match nested {
            None => Builder::session(),
            Some(nested) => bus_at(nested.enclosure(), &own).map_err(missing)?,
        };
        let session = session.method_timeout(CONNECT).build().await;
        let session = session.map_err(missing)?;
        if nested.is_some() {
            ask_for_everything(&session).await;
        }
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
        let silent = |error: zbus::Error| format!("the accessibility bus does not answer: {error}");
        let bus = match nested {
            None => Builder::address(address.as_str()),
            Some(nested) => bus_at(nested.enclosure(), &address).map_err(silent)?,
        };
        let bus = bus.method_timeout(ANSWER).build().await;
        let connection = bus.map_err(silent)?;
        let open_menus = OpenMenus::listen(&connection).await.map_err(silent)?;
        let accessible = Self {
            connection,
            silent: Mutex::default(),
            open_menus,
        };
        // Programs keep no cache of their elements until somebody wants to hear of them.
        for event in ["object:state-changed", "object:children-changed", "window:"] {
            let registry = "/org/a11y/atspi/registry";
            let () = accessible
                .ask(REGISTRY, registry, REGISTRY, "RegisterEvent", &event)
                .await?;
        }
        Ok(accessible)
    }

    /// Returns the programs with their elements, and the programs that do not report them.
    pub(super) async fn programs(
        &self,
    ) -> Result<(Vec<BusProgram>, Vec<Silent>), AccessibilityError> {
        let children: Vec<ObjectReference> = self
            .ask(REGISTRY, ROOT, ACCESSIBLE, "GetChildren", &())
            .await
            .map_err(|why| format!("the accessibility bus does not answer: {why}"))?;
        let questions: Vec<_> = children
            .iter()
            .map(|(name, _)| self.program(name))
            .collect();
        let answers: Vec<_> = stream::iter(questions).buffered(AT_ONCE).collect().await;
        let (mut programs, mut silent) = (Vec::new(), Vec::new());
        for answer in answers.into_iter().flatten() {
            match answer {
                Ok(program) => programs.push(program),
                Err(one) => silent.push(one),
            }
        }
        Ok((programs, silent))
    }

    /// Returns a program; `None` if it has ended.
    async fn program(&self, name: &str) -> Option<Result<BusProgram, Silent>> {
        let bus = "org.freedesktop.DBus";
        let asked = "GetConnectionUnixProcessID";
        let process = self.ask(bus, "/org/freedesktop/DBus", bus, asked, &name);
        let process: u32 = process.await.ok()?;
        let silent = || self.silent.lock();
        let limit = if silent().contains(name) {
            ANSWER_AGAIN
        } else {
            FIRST_ANSWER
        };
        let items = match timeout(limit, self.toolkit(name)).await {
            Ok(Ok(toolkit)) => self.cache(name).await.map(|items| (items, toolkit)),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(NO_ANSWER.to_owned()),
        };
        match &items {
            Err(why) if why == NO_ANSWER => silent().insert(name.to_owned()),
            Ok(_) | Err(_) => silent().remove(name),
        };
        let (items, toolkit) = match items {
            Ok(told) => told,
            Err(why) => return Some(Err(Silent { process, why })),
        };
        let mut program = BusProgram {
            bus_name: name.to_owned(),
            process,
            has_cache: !items.is_empty(),
            items,
        };
        let is_gtk4 = program.is_gtk4(&toolkit);
        if is_gtk4 {
            program.correct_gtk4();
        }
        self.add_rest(&mut program, &toolkit).await;
        if is_gtk4 {
            program.correct_gtk4();
        }
        Some(Ok(program))
    }

    async fn toolkit(&self, name: &str) -> Result<String, AccessibilityError> {
        let asked = ("org.a11y.atspi.Application", "ToolkitName");
        let said: Value = self.ask(name, ROOT, PROPERTIES, "Get", &asked).await?;
        Ok(String::try_from(said).unwrap_or_default())
    }

    /// Returns the elements in a program's cache.
    async fn cache(&self, name: &str) -> Result<Vec<AccessibleItem>, AccessibilityError> {
        let cache = "org.a11y.atspi.Cache";
        let items = self.ask(name, "/org/a11y/atspi/cache", cache, "GetItems", &());
        let items: Vec<CacheItem> = items.await?;
        Ok(items.into_iter().take(MAX_ITEMS).map(cached).collect())
    }

    /// Returns places and values of elements of a program, in their order. Those that it does not
    /// tell in time are missing at the end.
    pub(super) async fn details(&self, name: &str, of: &[&AccessibleItem]) -> Vec<Details> {
        let mut questions = ProgramQuestions::to(name);
        for item in of {
            if item.has_place {
                questions.add(&item.path, COMPONENT, "GetExtents", &0_u32);
            }
            if item.has_text {
                questions.add(&item.path, TEXT, "GetText", &(0_i32, MAX_VALUE));
            }
        }
        let answers = questions
            .ask(&self.connection, Instant::now() + DETAILS)
            .await;
        let (mut answers, mut details) = (answers.into_iter(), Vec::new());
        for item in of {
            let mut one = Details::default();
            if item.has_place {
                let Some(answer) = answers.next() else { break };
                one.bounds = answer.read().and_then(place);
            }
            if item.has_text {
                let Some(answer) = answers.next() else { break };
                let read: Option<String> = answer.read();
                // Where another element stands in the text, programs put a character in its place.
                one.value = read.map(|text| text.replace(EMBEDDED, ""));
            }
            details.push(one);
        }
        self.add_short_texts(name, of, &mut details).await;
        details
    }

    /// Adds texts that came back empty, since editors of Qt and paragraphs of LibreOffice answer
    /// nothing for an end beyond that of the text.
    async fn add_short_texts(&self, name: &str, of: &[&AccessibleItem], details: &mut [Details]) {
        let is_empty = |(item, one): &(&&AccessibleItem, &mut Details)| {
            one.value.as_deref() == Some("") && !roles::is_cell(item.role)
        };
        let mut empty: Vec<_> = of.iter().zip(details).filter(is_empty).collect();
        let mut questions = ProgramQuestions::to(name);
        for (item, _) in &empty {
            questions.add(&item.path, PROPERTIES, "Get", &(TEXT, "CharacterCount"));
        }
        let until = Instant::now() + DETAILS;
        let counts = questions.ask(&self.connection, until).await;
        for ((item, one), count) in empty.iter_mut().zip(counts) {
            let count: Option<Value> = count.read();
            if count.and_then(|count| i32::try_from(count).ok()) > Some(0) {
                let text = self.text(name, &item.path, MAX_VALUE).await;
                one.value = text.map(|text| text.replace(EMBEDDED, ""));
            }
        }
    }

    /// Whether an element reports that it has the keyboard; `None` if it reports nothing.
    pub(super) async fn has_keyboard(&self, name: &str, path: &str) -> Option<bool> {
        let asked = self.ask(name, path, ACCESSIBLE, "GetState", &());
        let words: Vec<u32> = asked.await.ok()?;
        Some(states(&words).has(roles::FOCUSED))
    }

    /// Returns the text of an element, cut after `most` characters.
    pub(super) async fn text(&self, name: &str, path: &str, most: i32) -> Option<String> {
        let asked = (TEXT, "CharacterCount");
        let count: Value = self.ask(name, path, PROPERTIES, "Get", &asked).await.ok()?;
        let range = (0_i32, i32::try_from(count).ok()?.min(most));
        self.ask(name, path, TEXT, "GetText", &range).await.ok()
    }

    /// Returns where the caret stands in an element's text, and the first characters that are selected
    /// there: from and to.
    pub(super) async fn caret(&self, name: &str, path: &str) -> Option<(i32, (i32, i32))> {
        let asked = (TEXT, "CaretOffset");
        let caret: Value = self.ask(name, path, PROPERTIES, "Get", &asked).await.ok()?;
        let selected = self.ask(name, path, TEXT, "GetSelection", &0_i32).await;
        Some((i32::try_from(caret).ok()?, selected.unwrap_or_default()))
    }

    /// Replaces an element's selection by characters `from` to `to`; whether it did.
    pub(super) async fn select(&self, name: &str, path: &str, from: i32, to: i32) -> bool {
        let changed: Result<bool, _> = self
            .ask(name, path, TEXT, "SetSelection", &(0_i32, from, to))
            .await;
        if changed == Ok(true) {
            return true;
        }
        // Nothing was selected that could be changed.
        let added: Result<bool, _> = self
            .ask(name, path, TEXT, "AddSelection", &(from, to))
            .await;
        added == Ok(true)
    }

    /// Asks a program to scroll until an element is in view; whether it says that it did.
    pub(super) async fn scroll_to(&self, name: &str, path: &str) -> bool {
        // ATSPI_SCROLL_ANYWHERE.
        let scrolled = self.ask(name, path, COMPONENT, "ScrollTo", &6_u32);
        scrolled.await == Ok(true)
    }

    /// Returns the options below an element, in their order, with the element that chooses among
    /// them and their number in it.
    pub(super) async fn options(&self, name: &str, path: &str) -> Vec<ChoiceOption> {
        let mut options = Vec::new();
        // A combo box chooses among the items of its menu; a list among its children.
        let asked: Result<u32, _> = self.ask(name, path, ACCESSIBLE, "GetRole", &()).await;
        let Ok(role) = asked else { return options };
        let mut around = path.to_owned();
        if roles::is_combo_box(role) {
            let first = self.children(name, path).await.into_iter().next();
            let Some((_, menu)) = first else {
                return options;
            };
            around = menu.to_string();
        }
        let children = self.children(name, &around).await;
        for (index, (_, child)) in (0..).zip(children.iter().take(MAX_OPTIONS)) {
            let said: Option<Value> = self.property(name, child.as_str(), "Name").await;
            let said = said.and_then(|said| String::try_from(said).ok());
            options.push(ChoiceOption {
                name: said.unwrap_or_default(),
                index,
            });
        }
        options
    }

    /// Chooses an option of an element by its number; whether the program says that it did.
    pub(super) async fn choose(&self, name: &str, path: &str, index: i32) -> bool {
        let selection = "org.a11y.atspi.Selection";
        let chosen = self.ask(name, path, selection, "SelectChild", &index);
        chosen.await == Ok(true)
    }

    pub(super) async fn children(&self, name: &str, path: &str) -> Vec<ObjectReference> {
        let asked = self.ask(name, path, ACCESSIBLE, "GetChildren", &());
        asked.await.unwrap_or_default()
    }

    pub(super) async fn property(&self, name: &str, path: &str, property: &str) -> Option<Value> {
        let asked = (ACCESSIBLE, property);
        self.ask(name, path, PROPERTIES, "Get", &asked).await.ok()
    }

    pub(super) async fn extents(&self, name: &str, path: &str) -> Option<Bounds> {
        let extents = self.ask(name, path, COMPONENT, "GetExtents", &0_u32).await;
        place(extents.ok()?)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) async fn ask<T: DeserializeOwned + Type>(
        &self,
        name: &str,
        path: &str,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) -> Result<T, AccessibilityError> {
        let reply = self
            .connection
            .call_method(Some(name), path, Some(interface), method, body)
            .await
            .map_err(|error| match &error {
                zbus::Error::InputOutput(inner) if inner.kind() == ErrorKind::TimedOut => {
                    NO_ANSWER.to_owned()
                }
                _ => error.to_string(),
            })?;
        let body = reply.body();
        // A structure and its parts are sent alike.
        body.deserialize_ignore_signature()
            .map_err(|error| error.to_string())
    }
}

/// Returns an element's bounds as its program reports them; `None` if they are not a valid box.
fn place((x, y, width, height): (i32, i32, i32, i32)) -> Option<Bounds> {
    // What is hidden has the smallest number there is.
    let is_real = width > 0 && height > 0 && x > -30_000 && y > -30_000;
    is_real.then_some(Bounds {
        x,
        y,
        width,
        height,
    })
}

fn cached(entry: CacheItem) -> AccessibleItem {
    let (object, _, parent, index, children, interfaces, name, role, description, states) = entry;
    let has = |interface: &str| interfaces.iter().any(|one| one == interface);
    let is_told = !name.is_empty() && !roles::takes_text(role);
    let mut item = AccessibleItem {
        path: object.1.to_string(),
        parent: parent.1.to_string(),
        index,
        name,
        role,
        states: self::states(&states),
        children,
        has_place: has(COMPONENT),
        has_text: has(TEXT) && roles::shows_text(role) && !is_told,
    };
    if lacks_name(&item) {
        item.name = description;
    }
    item
}

/// Whether an element for use by a person has no name.
pub(super) fn lacks_name(item: &AccessibleItem) -> bool {
    let is_used = matches!(
        roles::role(item.role),
        Some("button" | "checkbox" | "radio" | "combobox" | "spinbutton" | "slider" | "textbox")
    );
    is_used && item.name.is_empty()
}

/// Joins the two words of an element's states.
pub(super) fn states(words: &[u32]) -> ElementStates {
    let words = words.iter().take(2).enumerate();
    ElementStates(words.fold(0, |all, (at, word)| all | u64::from(*word) << (32 * at)))
}

/// Begins a connection to the bus of programs in an enclosure, at the address that they see. A
/// confined one names a file of its own, and nothing else.
fn bus_at<'a>(enclosure: &Enclosure, address: &'a str) -> Result<Builder<'a>, zbus::Error> {
    if !enclosure.is_confined() {
        return Ok(Builder::address(address));
    }
    let path = address.strip_prefix("unix:path=");
    let path = path
        .and_then(|rest| rest.split(',').next())
        .ok_or_else(|| {
            let shown = gyrus_text::shorten(address, 60);
            zbus::Error::Failure(format!("`{shown}` is not in its sandbox"))
        })?;
    let failed = |error: std::io::Error| zbus::Error::InputOutput(Arc::new(error));
    let socket = enclosure.socket(Path::new(path)).map_err(failed)?;
    let stream = std::os::unix::net::UnixStream::connect(&socket.path).map_err(failed)?;
    Ok(Builder::unix_stream(stream))
}
