//! The pages of browsers, which they do not hand out with the elements of their windows: they are
//! asked for level by level. The same holds for programs that are made of a browser (Electron).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tokio::time::Instant;
use zbus::OwnedVariant;

use super::{
    accessible::{self, ACCESSIBLE, Accessible, DETAILS, Item, MAX_ITEMS, Program, Reference},
    questions::Questions,
    roles,
};

/// Maximum number of levels of a page that are read.
const MAX_LEVELS: usize = 80;

const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

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
        let until = Instant::now() + DETAILS;
        for _ in 0..MAX_LEVELS {
            let room = MAX_ITEMS.saturating_sub(program.items.len());
            if level.is_empty() || room == 0 {
                return;
            }
            let below = self
                .level_below(&name, &level, room, &mut known, until)
                .await;
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
        let asked = (application, "ToolkitName");
        let said: Result<OwnedVariant, _> = self.ask(name, root, PROPERTIES, "Get", &asked).await;
        said.is_ok_and(|said| String::try_from(said).is_ok_and(|said| BROWSERS.contains(&&*said)))
    }

    /// Returns the children of elements that are not known yet, at most so many.
    async fn level_below(
        &self,
        name: &str,
        parents: &[String],
        most: usize,
        known: &mut BTreeSet<String>,
        until: Instant,
    ) -> Vec<Item> {
        let mut questions = Questions::to(name);
        for parent in parents {
            questions.add(parent, ACCESSIBLE, "GetChildren", &());
        }
        let lists = questions.ask(self.connection(), until).await;
        let mut found = Vec::new();
        for (parent, children) in parents.iter().zip(lists) {
            let children: Vec<Reference> = children.read().unwrap_or_default();
            for (index, (bus_name, child)) in (0..).zip(children) {
                // What another program shows there is not this one's to tell.
                if bus_name == name && known.insert(child.to_string()) {
                    found.push((parent, index, child.to_string()));
                }
            }
        }
        found.truncate(most);
        let mut questions = Questions::to(name);
        for (_, _, path) in &found {
            questions.add(path, ACCESSIBLE, "GetState", &());
            questions.add(path, ACCESSIBLE, "GetRole", &());
            questions.add(path, PROPERTIES, "GetAll", &ACCESSIBLE);
        }
        let answers = questions.ask(self.connection(), until).await;
        let told = answers.chunks_exact(3).zip(found);
        told.filter_map(|(answers, (parent, index, path))| {
            let (states, role) = (answers[0].read::<Vec<u32>>()?, answers[1].read()?);
            let mut properties: HashMap<String, OwnedVariant> = answers[2].read()?;
            let name = String::try_from(properties.remove("Name")?).ok()?;
            Some(Item {
                path,
                parent: parent.clone(),
                index,
                role,
                states: accessible::states(&states),
                children: i32::try_from(properties.remove("ChildCount")?).ok()?,
                // All of a page have a place, and what says something a text.
                has_place: true,
                has_text: roles::shows_text(role) && (name.is_empty() || roles::takes_text(role)),
                name,
            })
        })
        .collect()
    }
}
