//! The elements of one window, from the tree that its program tells.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use gyrus_contract::{Bounds, Element, ElementId, ElementState};

use super::{
    accessible::{Accessible, AccessibleItem, Details},
    numbers::ElementNumbers,
    places::{CoordinateMap, ElementPlace, ElementPlaces, TablePlaces, common, is_within},
    roles,
    trees::{MAX_DEPTH, WindowTree},
    windows::DesktopWindow,
};

/// Maximum number of characters of a name or a value.
const MAX_TEXT: usize = 400;

/// The name of the last cell that is listed of an empty sheet.
const ROOM: &str = "D10";

/// Contents of a window.
#[derive(Default)]
pub(super) struct Inside {
    pub(super) elements: Vec<Element>,
    /// The part of the screen in which an element can be seen, where a box that scrolls or the head
    /// of a table limits it.
    pub(super) limits: BTreeMap<ElementId, Bounds>,
    /// The ids of `elements` that are cells of a sheet.
    sheet: BTreeSet<ElementId>,
    /// Whether the program reported all places in time.
    pub(super) is_whole: bool,
}

/// Returns the content of the window with this number, below these top elements of its program.
pub(super) async fn inside(
    accessible: &Accessible,
    numbers: &mut ElementNumbers,
    (window, document): (&DesktopWindow, u32),
    above: &[DesktopWindow],
    (tree, tops): (&WindowTree<'_>, &[&AccessibleItem]),
) -> Inside {
    let listing = TreeItems::below(tree, tops);
    let listed = with_cells(accessible, tree, listing.listed).await;
    let asked: Vec<&AccessibleItem> = std::iter::once(tree.root)
        .chain(listing.boxes.iter().copied())
        .chain(listing.panes.iter().flatten().copied())
        .chain(listed.iter().map(|one| &*one.item))
        .collect();
    let details = accessible.details(&tree.program.bus_name, &asked).await;
    let is_whole = details.len() == asked.len();
    let mut details = details.into_iter();
    let of_root = details.next().and_then(|details| details.bounds);
    let placing = CoordinateMap::of(of_root, window.bounds);
    let mut details = details.chain(std::iter::repeat_with(Details::default));
    let boxes: Vec<Option<Bounds>> = details
        .by_ref()
        .take(listing.boxes.len())
        .map(|details| Some(placing.on_screen(details.bounds?)))
        .collect();
    let panes = details.by_ref().take(2 * listing.panes.len());
    let panes: Vec<Option<Bounds>> = panes.map(|details| details.bounds).collect();
    let mut places = ElementPlaces::new(placing, &panes, window, above);
    let mut inside = Inside {
        is_whole,
        ..Inside::default()
    };
    let mut tables = TablePlaces::default();
    for (one, mut details) in listed.into_iter().zip(details) {
        let item = &*one.item;
        add_choice(&mut details, tree, item);
        let path = format!("{} {}", tree.program.bus_name, item.path);
        // Cells of Qt and LibreOffice get new paths as rows are shown, hidden or forgotten.
        let key = match &one.item {
            Cow::Owned(cell) => format!("{} {} {}", tree.program.bus_name, cell.parent, cell.index),
            Cow::Borrowed(_) => path.clone(),
        };
        let id = numbers.id_by(document, key, path);
        let ElementPlace::At(place) = places.next((one.depth, one.pane), item, details.bounds)
        else {
            continue;
        };
        let list = tables.around(item);
        // A row may be wider than its list.
        let bounds = place.map(|place| list.and_then(|list| common(place, list)).unwrap_or(place));
        // Without a place it is in a part that is not drawn, though it may be called shown.
        let is_hidden = is_whole && item.has_place && bounds.is_none();
        if is_hidden && !roles::is_cell(item.role) {
            continue;
        }
        let details = Details { bounds, ..details };
        let Some(element) = element(item, id, one.depth, details, above) else {
            continue;
        };
        tables.add(item, element.bounds);
        let limit = list.or(one.scrolled_in.and_then(|number| boxes[number]));
        inside.add(element, item, limit);
    }
    inside.correct_keyboard();
    inside.leave_out_empty_cells();
    inside
}

impl Inside {
    /// Adds an element that is at least partly visible in this part of the screen.
    fn add(&mut self, mut element: Element, item: &AccessibleItem, limit: Option<Bounds>) {
        if let Some(limit) = limit {
            let bounds = element.bounds;
            if bounds.is_some_and(|bounds| common(bounds, limit).is_none()) {
                element.states.insert(ElementState::OutOfView);
            }
            self.limits.insert(element.id, limit);
        }
        if item.has_text && roles::is_cell(item.role) {
            self.sheet.insert(element.id);
        }
        self.elements.push(element);
    }

    /// Removes empty cells of a sheet that are more than one row or column away from filled ones.
    fn leave_out_empty_cells(&mut self) {
        let is_used = |one: &Element| {
            let marks = [ElementState::Focused, ElementState::Selected];
            one.value.is_some() || marks.iter().any(|mark| one.states.contains(mark))
        };
        let cells = self
            .elements
            .iter()
            .filter(|one| self.sheet.contains(&one.id));
        let mut used = cells.clone().filter(|one| is_used(one)).collect::<Vec<_>>();
        // An empty sheet has room to begin.
        used.extend(cells.filter(|one| one.name == ROOM));
        let ends = used.iter().filter_map(|one| one.bounds);
        let ends = ends.map(|bounds| (bounds.x + bounds.width, bounds.y + bounds.height));
        let (right, bottom) = ends.fold((0, 0), |(right, bottom), (x, y)| {
            (right.max(x), bottom.max(y))
        });
        let is_near = |bounds: Bounds| bounds.x <= right && bounds.y <= bottom;
        self.elements.retain(|one| {
            let is_cell = self.sheet.contains(&one.id);
            !is_cell || is_used(one) || one.bounds.is_some_and(is_near)
        });
    }

    /// Removes the keyboard state from tabs if another element has it, since Qt reports it for the
    /// selected tab, too.
    fn correct_keyboard(&mut self) {
        let has = |one: &Element| one.states.contains(&ElementState::Focused);
        let is_other = |one: &Element| one.role != "tab" && has(one);
        if self.elements.iter().any(is_other) {
            for tab in self.elements.iter_mut().filter(|one| one.role == "tab") {
                tab.states.remove(&ElementState::Focused);
            }
        }
    }
}

/// Adds the selected item of a closed list that does not report it as its text.
fn add_choice(details: &mut Details, tree: &WindowTree<'_>, item: &AccessibleItem) {
    let value = details.value.as_deref().unwrap_or_default();
    if roles::is_combo_box(item.role) && value.trim().is_empty() {
        details.value = tree.chosen(item).map(str::to_owned);
    }
}

/// An item of a tree, with its position in the tree.
struct TreeItem<'a> {
    item: Cow<'a, AccessibleItem>,
    depth: u16,
    /// The number of the box in which it scrolls.
    scrolled_in: Option<usize>,
    /// The number of the pane around the item.
    pane: Option<usize>,
}

/// The items of a tree that are visible, or would be after scrolling.
#[derive(Default)]
struct TreeItems<'a> {
    listed: Vec<TreeItem<'a>>,
    /// The boxes that scroll.
    boxes: Vec<&'a AccessibleItem>,
    /// Each pane, after the item around it.
    panes: Vec<[&'a AccessibleItem; 2]>,
}

/// The place of items in their tree.
#[derive(Clone, Copy)]
struct ItemPosition {
    depth: u16,
    /// Index of the innermost scrolling box around the items.
    scrolled_in: Option<usize>,
    /// The number of the pane around the items.
    pane: Option<usize>,
}

impl<'a> TreeItems<'a> {
    /// Lists the descendants of these top elements.
    fn below(tree: &WindowTree<'a>, tops: &[&'a AccessibleItem]) -> Self {
        let mut listing = Self::default();
        let top = ItemPosition {
            depth: 1,
            scrolled_in: None,
            pane: None,
        };
        for below in tops {
            listing.add_below(tree, below, top);
        }
        listing
    }

    /// Adds the descendants of an item, parents first.
    fn add_below(&mut self, tree: &WindowTree<'a>, below: &'a AccessibleItem, at: ItemPosition) {
        if at.depth > MAX_DEPTH || self.listed.len() > 4_000 {
            return;
        }
        for item in tree.below(below) {
            let is_out_of_view = at.scrolled_in.is_some() && roles::is_visible(item.states);
            if !roles::is_shown(item.states) && !is_out_of_view {
                continue;
            }
            let name = item.name.trim();
            // The text of a heading or a link is its name.
            if !name.is_empty() && roles::shows_text(item.role) && name == below.name.trim() {
                continue;
            }
            // The words of a text with others in it are theirs.
            let is_around = roles::role(item.role) == Some("text") && item.children > 0;
            let has_role = roles::role(item.role).is_some() && !is_around;
            let says_something = has_role || !name.is_empty();
            if says_something {
                self.listed.push(TreeItem {
                    item: Cow::Borrowed(item),
                    depth: at.depth,
                    scrolled_in: at.scrolled_in,
                    pane: at.pane,
                });
            }
            let mut inside = ItemPosition {
                depth: at.depth + u16::from(says_something),
                ..at
            };
            if roles::is_menu(item.role) {
                // A menu is drawn over whatever scrolls around it.
                inside.scrolled_in = None;
            }
            if roles::scrolls(item.role) {
                inside.scrolled_in = Some(self.boxes.len());
                self.boxes.push(item);
            }
            if roles::is_pane(item.role) {
                inside.pane = Some(self.panes.len());
                self.panes.push([below, item]);
            }
            self.add_below(tree, item, inside);
        }
    }
}

/// Adds the cells of tables that were not reported with the other elements.
async fn with_cells<'a>(
    accessible: &Accessible,
    tree: &WindowTree<'a>,
    listed: Vec<TreeItem<'a>>,
) -> Vec<TreeItem<'a>> {
    let mut all = Vec::new();
    for table in listed {
        let item = table.item.clone();
        let (depth, scrolled_in, pane) = (table.depth + 1, table.scrolled_in, table.pane);
        all.push(table);
        let is_empty = tree.below(&item).is_empty();
        if roles::has_cells(item.role) && is_empty && roles::is_shown(item.states) {
            let cells = accessible.cells(&tree.program.bus_name, &item).await;
            all.extend(cells.into_iter().map(|cell| TreeItem {
                item: Cow::Owned(cell),
                depth,
                scrolled_in,
                pane,
            }));
        }
    }
    all
}

fn element(
    item: &AccessibleItem,
    id: ElementId,
    depth: u16,
    details: Details,
    above: &[DesktopWindow],
) -> Option<Element> {
    let role = roles::role(item.role).unwrap_or("group");
    let bounds = details.bounds;
    let mut states = roles::states(item.role, item.states);
    let is_hidden_cell = roles::is_cell(item.role) && bounds.is_none();
    if is_hidden_cell {
        // It has a place once it is drawn; programs call it shown all the same.
        states.insert(ElementState::OutOfView);
    } else if !roles::is_shown(item.states) {
        // What has no place is in a part that is not open.
        bounds?;
        states.insert(ElementState::OutOfView);
    } else if let Some(bounds) = bounds {
        let (x, y) = (bounds.x + bounds.width / 2, bounds.y + bounds.height / 2);
        let covers = |window: &&DesktopWindow| {
            window.is_shown
                && window.bounds.contains(x, y)
                && !(window.is_popup && is_within(bounds, window.bounds))
        };
        if above.iter().any(|window| covers(&window)) {
            states.insert(ElementState::Covered);
        }
    }
    let is_text = role == "text";
    let is_field = roles::takes_text(item.role) && !roles::is_secret(item.role);
    let takes_text = is_field || roles::is_cell(item.role);
    let said = details.value.filter(|value| !value.is_empty());
    let mut name = shorten(&item.name);
    if is_text && name.is_empty() {
        name = said.as_deref().map(shorten).unwrap_or_default();
    }
    let value = said.filter(|_| takes_text).map(|value| shorten(&value));
    // A drawing without a name, text without words and an empty cell say nothing.
    if name.is_empty() && value.is_none() && matches!(role, "img" | "text" | "group" | "cell") {
        return None;
    }
    Some(Element {
        id,
        role: role.to_owned(),
        name,
        value,
        address: None,
        states,
        bounds,
        depth,
    })
}

/// Returns a text in the length that elements have.
pub(super) fn shorten(text: &str) -> String {
    gyrus_text::shorten(text.trim(), MAX_TEXT).into_owned()
}
