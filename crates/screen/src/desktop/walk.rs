//! Elements that programs do not hand out with the others, asked for level by level: the pages of
//! browsers (also of programs that are made of one, as Electron's), what LibreOffice has not yet
//! been asked for, and everything of programs whose cache is empty, as that of Qt's is.
//!
//! A question that a program does not expect may end it: Qt 5 and 6.4 read a property's name that
//! `GetAll` does not have. So only what every toolkit answers is asked here.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;
use zbus::OwnedVariant;

use super::{
    accessible::{
        self, ACCESSIBLE, Accessible, AccessibleItem, BusProgram, DETAILS, MAX_ITEMS,
        ObjectReference, PROPERTIES, ROOT, lacks_name,
    },
    questions::{ProgramAnswer, ProgramQuestions},
    roles,
};

/// Maximum depth of elements that are read.
const MAX_LEVELS: usize = 80;

/// Maximum number of options read of a closed list, to find the chosen one.
const MAX_OPTIONS: i32 = 100;

/// The toolkit names of browsers: Chromium and Firefox.
const BROWSERS: [&str; 2] = ["Chromium", "Gecko"];

/// The way to the cells of tables, lists and trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellAccess {
    /// Cells are requested like all other elements: a page has those that it shows.
    Walked,
    /// Cells are requested by themselves: there may be millions.
    Left,
}

impl CellAccess {
    /// Whether the descendants of an element are requested level by level.
    fn are_walked(self, item: &AccessibleItem) -> bool {
        self == Self::Walked || !roles::has_cells(item.role)
    }
}

struct TreePlace {
    parent: String,
    index: i32,
    path: String,
}

impl BusProgram {
    /// Puts a reported element below its parent, where LibreOffice may name another one.
    fn put(&mut self, place: &TreePlace, known: &BTreeSet<String>) {
        if known.contains(&place.path) {
            let mut items = self.items.iter_mut();
            if let Some(item) = items.find(|item| item.path == place.path) {
                item.parent.clone_from(&place.parent);
                item.index = place.index;
            }
        }
    }
}

impl Accessible {
    /// Adds the elements of a program with this toolkit that the program did not report itself.
    pub(super) async fn add_rest(&self, program: &mut BusProgram, toolkit: &str) {
        let name = program.bus_name.clone();
        let tables = if BROWSERS.contains(&toolkit) {
            CellAccess::Walked
        } else {
            CellAccess::Left
        };
        let mut told: BTreeMap<&str, i32> = BTreeMap::new();
        for item in &program.items {
            *told.entry(&item.parent).or_default() += 1;
        }
        let lacks_some = |item: &&AccessibleItem| {
            let told = told.get(&*item.path).copied().unwrap_or(0);
            item.children > told && roles::is_shown(item.states) && tables.are_walked(item)
        };
        let lacking = program.items.iter().filter(lacks_some);
        let mut level: Vec<String> = lacking.map(|item| item.path.clone()).collect();
        if !program.has_cache {
            level.push(ROOT.to_owned());
        }
        let mut known: BTreeSet<String> =
            program.items.iter().map(|item| item.path.clone()).collect();
        let until = Instant::now() + DETAILS;
        self.walk(program, tables, level, &mut known, until).await;
        if program.has_cache {
            return;
        }
        let opened = self.open_menus.of(&name).into_iter();
        let opened = opened.filter(|path| known.insert(path.clone()));
        let opened = opened.map(|path| TreePlace {
            parent: ROOT.to_owned(),
            index: -1,
            path,
        });
        let opened = opened.collect();
        let mut menus = self.items(&name, opened, until).await;
        menus.retain(|item| roles::is_menu(item.role) && roles::is_shown(item.states));
        let level = menus.iter().map(|item| item.path.clone()).collect();
        program.items.extend(menus);
        self.walk(program, tables, level, &mut known, until).await;
    }

    /// Adds the descendants of these elements of a program, level by level.
    async fn walk(
        &self,
        program: &mut BusProgram,
        tables: CellAccess,
        mut level: Vec<String>,
        known: &mut BTreeSet<String>,
        until: Instant,
    ) {
        let name = program.bus_name.clone();
        let mut combo_boxes = BTreeSet::new();
        for _ in 0..MAX_LEVELS {
            let room = MAX_ITEMS.saturating_sub(program.items.len());
            if level.is_empty() || room == 0 {
                return;
            }
            let mut found = self.places_below(&name, &level, until).await;
            for place in &found {
                program.put(place, known);
            }
            found.retain(|place| known.insert(place.path.clone()));
            found.truncate(room);
            let below = self.items(&name, found, until).await;
            let boxes = below.iter().filter(|item| roles::is_combo_box(item.role));
            combo_boxes.extend(boxes.map(|item| item.path.clone()));
            let goes_on = |item: &&AccessibleItem| {
                // What is chosen in a closed list is told all the same.
                let is_list = combo_boxes.contains(&item.parent) && item.children <= MAX_OPTIONS;
                let is_menu = tables == CellAccess::Walked && item.role == roles::MENU;
                let is_told = roles::is_visible(item.states) || is_menu;
                item.children > 0 && (is_list || is_told && tables.are_walked(item))
            };
            let next = below.iter().filter(goes_on);
            level = next.map(|item| item.path.clone()).collect();
            program.items.extend(below);
        }
    }

    /// Returns the places of the children of elements.
    async fn places_below(&self, name: &str, parents: &[String], until: Instant) -> Vec<TreePlace> {
        let mut questions = ProgramQuestions::to(name);
        for parent in parents {
            questions.add(parent, ACCESSIBLE, "GetChildren", &());
        }
        let lists = questions.ask(self.connection(), until).await;
        let mut found = Vec::new();
        for (parent, children) in parents.iter().zip(lists) {
            let children: Vec<ObjectReference> = children.read().unwrap_or_default();
            for (index, (bus_name, child)) in (0..).zip(children) {
                // What another program shows there is not this one's to tell.
                if bus_name == name {
                    found.push(TreePlace {
                        parent: parent.clone(),
                        index,
                        path: child.to_string(),
                    });
                }
            }
        }
        found
    }

    /// Returns the elements of a program at these places.
    async fn items(
        &self,
        name: &str,
        found: Vec<TreePlace>,
        until: Instant,
    ) -> Vec<AccessibleItem> {
        let mut questions = ProgramQuestions::to(name);
        for TreePlace { path, .. } in &found {
            questions.add(path, ACCESSIBLE, "GetState", &());
            questions.add(path, ACCESSIBLE, "GetRole", &());
            for property in ["Name", "ChildCount"] {
                questions.add(path, PROPERTIES, "Get", &(ACCESSIBLE, property));
            }
        }
        let answers = questions.ask(self.connection(), until).await;
        let told = answers.chunks_exact(4).zip(found);
        let mut items: Vec<AccessibleItem> = told
            .filter_map(|(answers, place)| {
                let [states, role, name, children] = answers else {
                    return None;
                };
                let (states, role) = (states.read::<Vec<u32>>()?, role.read()?);
                let name = String::try_from(property(name)?).ok()?;
                Some(AccessibleItem {
                    path: place.path,
                    parent: place.parent,
                    index: place.index,
                    role,
                    states: accessible::states(&states),
                    children: i32::try_from(property(children)?).ok()?,
                    // All of these have a place, and what says something a text.
                    has_place: true,
                    has_text: roles::shows_text(role)
                        && (name.is_empty() || roles::takes_text(role)),
                    name,
                })
            })
            .collect();
        self.add_descriptions(name, &mut items, until).await;
        items
    }

    /// Gives controls without a name that of their description, which is their hint.
    async fn add_descriptions(&self, name: &str, items: &mut [AccessibleItem], until: Instant) {
        let mut nameless: Vec<_> = items.iter_mut().filter(|item| lacks_name(item)).collect();
        let mut questions = ProgramQuestions::to(name);
        for item in &nameless {
            questions.add(&item.path, PROPERTIES, "Get", &(ACCESSIBLE, "Description"));
        }
        let answers = questions.ask(self.connection(), until).await;
        for (item, answer) in nameless.iter_mut().zip(answers) {
            let said = property(&answer).and_then(|said| String::try_from(said).ok());
            item.name = said.unwrap_or_default();
        }
    }
}

fn property(answer: &ProgramAnswer) -> Option<OwnedVariant> {
    answer.read()
}
