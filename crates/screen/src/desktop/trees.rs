//! The trees of elements that programs hand out, and which of them is that of a window.

use std::collections::BTreeMap;

use super::{
    accessible::{AccessibleItem, BusProgram, ROOT},
    roles,
    windows::DesktopWindow,
};

/// Maximum number of levels of a tree: a program may say that an element is its own ancestor.
pub(super) const MAX_DEPTH: u16 = 60;

/// Elements of one window, found on the accessibility bus.
pub(super) struct WindowTree<'a> {
    pub(super) program: &'a BusProgram,
    /// The items in order, by the path of their parent.
    pub(super) children: BTreeMap<&'a str, Vec<&'a AccessibleItem>>,
    pub(super) root: &'a AccessibleItem,
}

impl<'a> WindowTree<'a> {
    /// Whether the program reports the elements of the window, including those of a visible page.
    pub(super) fn has_elements(&self) -> bool {
        !self.below(self.root).is_empty() && !self.is_loading(self.root, 0)
    }

    /// Whether the window shows a web page that does not report its elements yet.
    pub(super) fn has_page(&self) -> bool {
        self.is_loading(self.root, 0)
    }

    /// Whether a page below an element is visible without its elements, or about to change.
    fn is_loading(&self, item: &AccessibleItem, depth: u16) -> bool {
        if !roles::is_shown(item.states) || depth > MAX_DEPTH {
            return false;
        }
        if item.role == roles::PAGE {
            return roles::is_busy(item.states) || self.below(item).is_empty();
        }
        let mut below = self.below(item).iter();
        below.any(|item| self.is_loading(item, depth + 1))
    }

    /// Returns the children of an element, in order.
    pub(super) fn below(&self, item: &AccessibleItem) -> &[&'a AccessibleItem] {
        let found = self.children.get(item.path.as_str());
        found.map_or(&[], Vec::as_slice)
    }

    /// Returns the tree of a window: the top with its title. Of several the one of its program
    /// counts, which is known by its process, or by its other windows, as a program in a sandbox
    /// tells the number that it has there. A message has a top with another name than its window, so
    /// then those that are called like other windows come last, and the one that is active like the
    /// window first.
    pub(super) fn of(
        window: &DesktopWindow,
        windows: &[DesktopWindow],
        programs: &'a [BusProgram],
    ) -> Option<Self> {
        let tops = programs.iter().flat_map(|program| {
            let tops = program.items.iter().filter(|item| is_top(item));
            tops.filter(|item| roles::is_shown(item.states))
                .map(move |item| (program, item))
        });
        let others = || windows.iter().filter(|other| other.id != window.id);
        let is_named = |item: &AccessibleItem| item.name == window.title;
        let is_of_program = |program: &BusProgram| {
            let mut own = others().filter(|other| other.client == window.client);
            let has = |title: &str| {
                let mut items = program.items.iter();
                items.any(|item| is_top(item) && item.name == title)
            };
            program.process == window.process || own.any(|other| has(&other.title))
        };
        let fits = |(program, item): &(&BusProgram, &AccessibleItem)| {
            (is_named(item), is_of_program(program))
        };
        let is_of_another = |item: &AccessibleItem| others().any(|other| other.title == item.name);
        let is_alike = |item: &AccessibleItem| item.states.has(roles::ACTIVE) == window.is_active;
        let rank = |top: &(&BusProgram, &AccessibleItem)| {
            (fits(top), !is_of_another(top.1), is_alike(top.1))
        };
        let (program, root) = tops
            .filter(|top| fits(top) != (false, false))
            .max_by_key(rank)?;
        Some(Self {
            program,
            children: children(program),
            root,
        })
    }

    /// Returns the name of the selected item of a drop-down list, if the program reports it.
    pub(super) fn chosen(&self, list: &AccessibleItem) -> Option<&str> {
        let mut options = self.below(list).iter().flat_map(|menu| self.below(menu));
        let chosen = options.find(|option| roles::is_chosen(option.states))?;
        Some(&chosen.name)
    }

    /// Returns the menus of the program that belong to no other element: they are windows without a
    /// name, or stand beside the windows.
    pub(super) fn menus(&self) -> impl Iterator<Item = &'a AccessibleItem> {
        let root = &self.root.path;
        let items = self.program.items.iter();
        items.filter(move |item| {
            let is_beside = item.parent == ROOT && roles::is_menu(item.role);
            (item.role == roles::WINDOW && item.name.is_empty() || is_beside)
                && item.path != *root
                && roles::is_shown(item.states)
        })
    }
}

/// Returns the items of a program by the path of their parent, in their order.
fn children(program: &BusProgram) -> BTreeMap<&str, Vec<&AccessibleItem>> {
    let mut children: BTreeMap<&str, Vec<&AccessibleItem>> = BTreeMap::new();
    for item in &program.items {
        children.entry(&item.parent).or_default().push(item);
    }
    for items in children.values_mut() {
        // Entries of menus may not tell their place among the others.
        let is_numbered = items.iter().all(|item| item.index >= 0);
        items.sort_by_key(|item| {
            if is_numbered {
                i64::from(item.index)
            } else {
                made_as(item)
            }
        });
    }
    children
}

/// Whether an element represents a window.
fn is_top(item: &AccessibleItem) -> bool {
    matches!(item.role, 2 | 16 | 19 | 23 | roles::WINDOW)
}

/// Returns the creation number of an element, which ends its path.
fn made_as(item: &AccessibleItem) -> i64 {
    let number = item.path.rsplit('/').next();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use gyrus_contract::Bounds;

    use super::*;
    use crate::desktop::roles::ElementStates;

    const SHOWN: u64 = 1 << 25 | 1 << 30;

    fn item(number: u32, parent: &str, index: i32, role: u32, name: &str) -> AccessibleItem {
        AccessibleItem {
            path: format!("/a/{number}"),
            parent: parent.to_owned(),
            index,
            name: name.to_owned(),
            role,
            states: ElementStates(SHOWN),
            children: 0,
            has_place: true,
            has_text: false,
        }
    }

    fn window(id: u32, title: &str) -> DesktopWindow {
        DesktopWindow {
            id,
            title: title.to_owned(),
            class: "Editor".to_owned(),
            process: 7,
            client: id & !0xff,
            other_user: None,
            bounds: Bounds {
                x: 0,
                y: 0,
                width: 10,
                height: 10,
            },
            is_active: false,
            is_shown: true,
            is_popup: false,
        }
    }

    #[test]
    fn a_message_has_another_name_than_its_window() {
        let editor = |items: Vec<AccessibleItem>| BusProgram {
            bus_name: ":1.2".to_owned(),
            // As it is outside of the sandbox.
            process: 4711,
            has_cache: true,
            items,
        };
        let other = BusProgram {
            bus_name: ":1.3".to_owned(),
            process: 4712,
            has_cache: true,
            items: vec![item(1, "/", 0, 23, "Calculator")],
        };
        let items = vec![
            item(1, "/", 0, 2, "Question"),
            item(2, "/", 1, 23, "notes"),
            item(3, "/a/1", 0, 43, "Save"),
        ];
        let programs = [other, editor(items)];
        let windows = [
            window(0x101, "Save Changes"),
            window(0x102, "notes"),
            window(0x201, "Calculator"),
        ];
        let root = |at: usize| {
            let tree = WindowTree::of(&windows[at], &windows, &programs);
            tree.map(|tree| tree.root.name.clone())
        };
        assert_eq!(root(0).as_deref(), Some("Question"));
        assert_eq!(root(1).as_deref(), Some("notes"));
        assert_eq!(root(2).as_deref(), Some("Calculator"));
        let alone = [window(0x301, "unknown"), window(0x102, "notes")];
        assert!(WindowTree::of(&alone[0], &alone, &programs).is_none());
    }

    #[test]
    fn entries_of_menus_come_in_the_order_in_which_they_were_made() {
        let program = BusProgram {
            bus_name: ":1.2".to_owned(),
            process: 7,
            has_cache: true,
            items: vec![
                item(1, "/", 0, 23, "notes"),
                item(12, "/a/1", -1, 35, "Redo"),
                item(9, "/a/1", -1, 35, "Undo"),
                item(30, "/a/1", 6, 33, "Convert"),
                item(40, "/", 1, roles::WINDOW, ""),
            ],
        };
        let windows = [window(0x101, "notes")];
        let programs = [program];
        let tree = WindowTree::of(&windows[0], &windows, &programs).unwrap();
        let names: Vec<_> = tree.children["/a/1"]
            .iter()
            .map(|item| &*item.name)
            .collect();
        assert_eq!(names, ["Undo", "Redo", "Convert"]);
        let menus: Vec<_> = tree.menus().map(|item| &*item.path).collect();
        assert_eq!(menus, ["/a/40"]);
    }
}
