//! The pages of browsers, which they do not hand out with the elements of their windows: they are
//! asked for level by level. The same holds for programs that are made of a browser (Electron).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::{StreamExt as _, future::join3, stream};
use zbus::OwnedVariant;

use super::{
    accessible::{ACCESSIBLE, AT_ONCE, Accessible, Item, MAX_ITEMS, Program, Reference, states},
    roles,
};

/// Maximum number of levels of a page that are read.
const MAX_LEVELS: usize = 80;

/// The names that browsers give their toolkits: Chromium and Firefox.
const BROWSERS: [&str; 2] = ["Chromium", "Gecko"];

impl Accessible {
    /// Adds what a program has in elements that tell of more than it handed out, if it is a
    /// browser.
    pub(super) async fn add_pages(&self, program: &mut Program) {
        let name = program.bus_name.clone();
        if !self.is_browser(&name).await {
            return;
        }
        let mut told: BTreeMap<&str, i32> = BTreeMap::new();
        for item in &program.items {
            *told.entry(&item.parent).or_default() += 1;
        }
        let lacks_some = |item: &&Item| {
            let told = told.get(&*item.path).copied().unwrap_or(0);
            item.children > told && roles::is_shown(item.states)
        };
        let lacking = program.items.iter().filter(lacks_some);
        let mut level: Vec<String> = lacking.map(|item| item.path.clone()).collect();
        let mut known: BTreeSet<String> =
            program.items.iter().map(|item| item.path.clone()).collect();
        for _ in 0..MAX_LEVELS {
            let room = MAX_ITEMS.saturating_sub(program.items.len());
            if level.is_empty() || room == 0 {
                return;
            }
            let below = self.level_below(&name, &level, room, &mut known).await;
            let goes_on = |item: &&Item| {
                // What is chosen in a closed list is told all the same.
                let is_told = roles::is_visible(item.states) || item.role == roles::MENU;
                item.children > 0 && is_told
            };
            let next = below.iter().filter(goes_on);
            level = next.map(|item| item.path.clone()).collect();
            program.items.extend(below);
        }
    }

    async fn is_browser(&self, name: &str) -> bool {
        let (root, application) = (
            "/org/a11y/atspi/accessible/root",
            "org.a11y.atspi.Application",
        );
        let properties = "org.freedesktop.DBus.Properties";
        let asked = (application, "ToolkitName");
        let said: Result<OwnedVariant, _> = self.ask(name, root, properties, "Get", &asked).await;
        said.is_ok_and(|said| String::try_from(said).is_ok_and(|said| BROWSERS.contains(&&*said)))
    }

    /// Returns the children of elements that are not known yet, at most so many.
    async fn level_below(
        &self,
        name: &str,
        parents: &[String],
        most: usize,
        known: &mut BTreeSet<String>,
    ) -> Vec<Item> {
        let asked: Vec<_> = parents
            .iter()
            .map(|path| self.children(name, path))
            .collect();
        let lists = stream::iter(asked).buffered(AT_ONCE).collect::<Vec<_>>();
        let mut found = Vec::new();
        for (parent, children) in parents.iter().zip(lists.await) {
            for (index, (bus_name, child)) in (0..).zip(children) {
                // What another program shows there is not this one's to tell.
                if bus_name == name && known.insert(child.to_string()) {
                    found.push((parent, index, (bus_name, child)));
                }
            }
        }
        let items = found.into_iter().take(most);
        let items: Vec<_> = items
            .map(|(parent, index, child)| self.item_at(parent, index, child))
            .collect();
        let items = stream::iter(items).buffered(AT_ONCE).collect::<Vec<_>>();
        items.await.into_iter().flatten().collect()
    }

    /// Returns an element by itself; `None` if it is gone.
    async fn item_at(&self, parent: &str, index: i32, at: Reference) -> Option<Item> {
        let (name, path) = (at.0.as_str(), at.1.as_str());
        let of = "org.freedesktop.DBus.Properties";
        let (told, role, properties) = join3(
            self.ask::<Vec<u32>>(name, path, ACCESSIBLE, "GetState", &()),
            self.ask::<u32>(name, path, ACCESSIBLE, "GetRole", &()),
            self.ask::<HashMap<String, OwnedVariant>>(name, path, of, "GetAll", &ACCESSIBLE),
        )
        .await;
        let (role, mut properties) = (role.ok()?, properties.ok()?);
        let said = String::try_from(properties.remove("Name")?).ok()?;
        Some(Item {
            path: path.to_owned(),
            parent: parent.to_owned(),
            index,
            role,
            states: states(&told.ok()?),
            children: i32::try_from(properties.remove("ChildCount")?).ok()?,
            // All of a page have a place, and what says something a text.
            has_place: true,
            has_text: roles::shows_text(role) && (said.is_empty() || roles::takes_text(role)),
            name: said,
        })
    }
}
