//! The elements of one window, from the tree that its program tells.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use gyrus_contract::{Bounds, Element, ElementId, ElementState};

use super::{
    accessible::{Accessible, Details, Item},
    numbers::ElementNumbers,
    roles,
    trees::{MAX_DEPTH, Tree},
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
    /// Those of `elements` that are cells of a sheet.
    sheet: BTreeSet<ElementId>,
    /// Whether the program told all places in time.
    pub(super) is_whole: bool,
}

/// Returns what is shown in a window, which has this number: what lies below these tops of its
/// program.
pub(super) async fn inside(
    accessible: &Accessible,
    numbers: &mut ElementNumbers,
    (window, document): (&DesktopWindow, u32),
    above: &[DesktopWindow],
    (tree, tops): (&Tree<'_>, &[&Item]),
) -> Inside {
    let mut listing = Listing::default();
    let top = Place {
        depth: 1,
        scrolled_in: None,
        pane: None,
    };
    for below in tops {
        listing.add_below(tree, below, top);
    }
    let listed = with_cells(accessible, tree, listing.listed).await;
    let asked: Vec<&Item> = std::iter::once(tree.root)
        .chain(listing.boxes.iter().copied())
        .chain(listing.panes.iter().flatten().copied())
        .chain(listed.iter().map(|one| &*one.item))
        .collect();
    let details = accessible.details(&tree.program.bus_name, &asked).await;
    let is_whole = details.len() == asked.len();
    let mut details = details.into_iter();
    let of_root = details.next().and_then(|details| details.bounds);
    let placing = Placing::of(of_root, window.bounds);
    let mut details = details.chain(std::iter::repeat_with(Details::default));
    let boxes: Vec<Option<Bounds>> = details
        .by_ref()
        .take(listing.boxes.len())
        .map(|details| Some(placing.on_screen(details.bounds?)))
        .collect();
    let panes = details.by_ref().take(2 * listing.panes.len());
    let panes: Vec<Option<Bounds>> = panes.map(|details| details.bounds).collect();
    let panes: Vec<Shift> = panes.chunks_exact(2).map(Shift::of).collect();
    // The elements around the next one, outermost first.
    let mut undrawn: Option<u16> = None;
    let mut opened: Option<(u16, Shift)> = None;
    let mut around: Vec<(u16, Option<Bounds>)> = Vec::new();
    let mut inside = Inside {
        is_whole,
        ..Inside::default()
    };
    // The places of tables, without their heads.
    let mut tables: BTreeMap<String, Bounds> = BTreeMap::new();
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
        around.retain(|(depth, _)| *depth < one.depth);
        let outer = around.last().and_then(|(_, bounds)| *bounds);
        let shift = one.pane.map(|number| panes[number]).unwrap_or_default();
        let place = details.bounds.map(|bounds| placing.on_screen(bounds));
        let place = place.map(|bounds| shift.correct(bounds, outer));
        if opened.is_some_and(|(depth, _)| one.depth <= depth) {
            opened = None;
        }
        let popup = || Some((one.depth, Shift::to_popup(place?, window, above)?));
        opened = opened.or_else(popup);
        let place = place.map(|bounds| opened.map_or(bounds, |(_, by)| by.moved(bounds)));
        around.push((one.depth, place));
        let is_undrawn = place.is_none() && roles::role(item.role) == Some("menubar");
        if undrawn.is_some_and(|depth| one.depth > depth) || is_undrawn {
            undrawn = undrawn.or(Some(one.depth));
            continue;
        }
        undrawn = None;
        let list = tables.get(&item.parent);
        let list = list.filter(|_| roles::is_cell(item.role)).copied();
        // A row may be wider than its list.
        let bounds = place.map(|place| list.and_then(|list| common(place, list)).unwrap_or(place));
        // What has no place is in a part that is not drawn, though it may be called shown.
        let is_hidden = is_whole && item.has_place && bounds.is_none();
        if is_hidden && !roles::is_cell(item.role) {
            continue;
        }
        let details = Details { bounds, ..details };
        let Some(mut element) = element(item, id, one.depth, details, above) else {
            continue;
        };
        if let (true, Some(bounds)) = (roles::has_cells(item.role), element.bounds) {
            tables.insert(item.path.clone(), bounds);
        }
        let table = tables.get_mut(&item.parent);
        if let (true, Some(bounds), Some(table)) =
            (roles::is_head(item.role), element.bounds, table)
        {
            *table = below(*table, bounds);
        }
        let limit = list.or(one.scrolled_in.and_then(|number| boxes[number]));
        if let Some(limit) = limit {
            if element
                .bounds
                .is_some_and(|bounds| common(bounds, limit).is_none())
            {
                element.states.insert(ElementState::OutOfView);
            }
            inside.limits.insert(id, limit);
        }
        if item.has_text && roles::is_cell(item.role) {
            inside.sheet.insert(id);
        }
        inside.elements.push(element);
    }
    inside.correct_keyboard();
    inside.leave_out_empty_cells();
    inside
}

impl Inside {
    /// Leaves out the empty cells of a sheet that are more than one row or column beyond those that
    /// hold something.
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

    /// Takes the keyboard from tabs where another element says that it has it: Qt says so of the
    /// chosen tab, too.
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

/// Adds what is chosen in a closed list that does not tell it as its text.
fn add_choice(details: &mut Details, tree: &Tree<'_>, item: &Item) {
    let value = details.value.as_deref().unwrap_or_default();
    if roles::is_combo_box(item.role) && value.trim().is_empty() {
        details.value = tree.chosen(item).map(str::to_owned);
    }
}

/// An item of a tree with its place in it.
struct Listed<'a> {
    item: Cow<'a, Item>,
    depth: u16,
    /// The number of the box in which it scrolls.
    scrolled_in: Option<usize>,
    /// The number of the pane that it is in.
    pane: Option<usize>,
}

/// The items of a tree that are shown, or would be after scrolling.
#[derive(Default)]
struct Listing<'a> {
    listed: Vec<Listed<'a>>,
    /// The boxes that scroll.
    boxes: Vec<&'a Item>,
    /// What is around each pane, and the pane.
    panes: Vec<[&'a Item; 2]>,
}

/// The place of items in their tree.
#[derive(Clone, Copy)]
struct Place {
    depth: u16,
    /// The number of the innermost box around them that scrolls.
    scrolled_in: Option<usize>,
    /// The number of the pane around them.
    pane: Option<usize>,
}

impl<'a> Listing<'a> {
    /// Adds what lies below an item, parents first.
    fn add_below(&mut self, tree: &Tree<'a>, below: &'a Item, at: Place) {
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
                self.listed.push(Listed {
                    item: Cow::Borrowed(item),
                    depth: at.depth,
                    scrolled_in: at.scrolled_in,
                    pane: at.pane,
                });
            }
            let mut inside = Place {
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

/// Adds the cells of tables that were not handed out with the other elements.
async fn with_cells<'a>(
    accessible: &Accessible,
    tree: &Tree<'a>,
    listed: Vec<Listed<'a>>,
) -> Vec<Listed<'a>> {
    let mut all = Vec::new();
    for table in listed {
        let item = table.item.clone();
        let (depth, scrolled_in, pane) = (table.depth + 1, table.scrolled_in, table.pane);
        all.push(table);
        let is_empty = tree.below(&item).is_empty();
        if roles::has_cells(item.role) && is_empty && roles::is_shown(item.states) {
            let cells = accessible.cells(&tree.program.bus_name, &item).await;
            all.extend(cells.into_iter().map(|cell| Listed {
                item: Cow::Owned(cell),
                depth,
                scrolled_in,
                pane,
            }));
        }
    }
    all
}

/// The way from places as a program says them to those on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placing {
    /// The number of pixels of each of the program's.
    scale: i32,
    /// The corner of the window, if the program counts from there.
    x: i32,
    y: i32,
}

/// The way from places in a pane as a program says them to those on the screen. LibreOffice does not
/// count its menu bar: its pane is as large as what is around it, and stands elsewhere. It says the
/// right places of fields that are GTK's, and of documents sometimes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Shift {
    x: i32,
    y: i32,
}

impl Shift {
    /// Finds the way by the places of what is around a pane, and of the pane.
    fn of(places: &[Option<Bounds>]) -> Self {
        match places {
            [Some(around), Some(pane)]
                if (around.width, around.height) == (pane.width, pane.height) =>
            {
                Self {
                    x: around.x - pane.x,
                    y: around.y - pane.y,
                }
            }
            _ => Self::default(),
        }
    }

    /// Finds the way of what is as large as a popup of the window's program, and in it: GTK 4 tells
    /// where it would be in the window.
    fn to_popup(said: Bounds, window: &DesktopWindow, above: &[DesktopWindow]) -> Option<Self> {
        let is_it = |one: &&DesktopWindow| {
            let bounds = one.bounds;
            one.is_popup
                && one.client == window.client
                && (bounds.width, bounds.height) == (said.width, said.height)
        };
        let popup = above.iter().find(is_it)?.bounds;
        Some(Self {
            x: popup.x - said.x,
            y: popup.y - said.y,
        })
    }

    fn moved(self, said: Bounds) -> Bounds {
        Bounds {
            x: said.x + self.x,
            y: said.y + self.y,
            ..said
        }
    }

    /// Returns the place of an element in the pane, inside of `outer`.
    fn correct(self, said: Bounds, outer: Option<Bounds>) -> Bounds {
        let moved = self.moved(said);
        let fits = |bounds| outer.is_some_and(|outer| is_within(bounds, outer));
        if fits(said) && !fits(moved) {
            said
        } else {
            moved
        }
    }
}

/// Maximum pixel ratio of a program.
const MAX_SCALE: i32 = 4;

impl Placing {
    /// Finds the way by the place of a window as its program says it, and as it is.
    fn of(said: Option<Bounds>, window: Bounds) -> Self {
        let as_it_is = Self {
            scale: 1,
            x: 0,
            y: 0,
        };
        let Some(said) = said else { return as_it_is };
        let is_near = |one: i32, other: i32| (one - other).abs() <= other / 10;
        let fits = |scale: &i32| {
            is_near(said.width * scale, window.width) && is_near(said.height * scale, window.height)
        };
        // GTK 3 counts in pixels of its own.
        let scale = (1..=MAX_SCALE).find(fits).unwrap_or(1);
        let (width, height) = (said.width * scale, said.height * scale);
        // The place of a window at the corner may be told with its frame.
        let has_frame = said.x + width >= window.x + window.width
            && said.y + height >= window.y + window.height;
        let is_from_corner = (said.x, said.y) == (0, 0)
            && (window.x, window.y) != (0, 0)
            && (width - window.width).abs() < 80
            && !has_frame;
        if !is_from_corner {
            return Self { scale, ..as_it_is };
        }
        let margin = |whole: i32, shown: i32| (whole - shown).max(0) / 2;
        Self {
            scale,
            x: window.x + margin(window.width, width),
            y: window.y + margin(window.height, height),
        }
    }

    fn on_screen(self, said: Bounds) -> Bounds {
        Bounds {
            x: said.x * self.scale + self.x,
            y: said.y * self.scale + self.y,
            width: said.width * self.scale,
            height: said.height * self.scale,
        }
    }
}

fn element(
    item: &Item,
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

/// Returns the part of a table below one of its heads.
fn below(table: Bounds, head: Bounds) -> Bounds {
    let hidden = (head.y + head.height - table.y).clamp(0, table.height);
    Bounds {
        y: table.y + hidden,
        height: table.height - hidden,
        ..table
    }
}

/// Returns the rectangle that two have in common, if there is one.
fn common(one: Bounds, other: Bounds) -> Option<Bounds> {
    let (x, y) = (one.x.max(other.x), one.y.max(other.y));
    let width = (one.x + one.width).min(other.x + other.width) - x;
    let height = (one.y + one.height).min(other.y + other.height) - y;
    (width > 0 && height > 0).then_some(Bounds {
        x,
        y,
        width,
        height,
    })
}

/// Whether a rectangle lies within another, give or take a border: then an element may be one of
/// the menu that is drawn there.
pub(super) fn is_within(bounds: Bounds, around: Bounds) -> bool {
    const BORDER: i32 = 6;
    bounds.x >= around.x - BORDER
        && bounds.y >= around.y - BORDER
        && bounds.x + bounds.width <= around.x + around.width + BORDER
        && bounds.y + bounds.height <= around.y + around.height + BORDER
}

/// Returns a text as elements have it.
pub(super) fn shorten(text: &str) -> String {
    gyrus_text::shorten(text.trim(), MAX_TEXT).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_programs_are_those_on_the_screen() {
        let bounds = |(x, y, width, height): (i32, i32, i32, i32)| Bounds {
            x,
            y,
            width,
            height,
        };
        let window = bounds((100, 50, 400, 300));
        for (said, expected) in [
            // As it is; half the size for a pixel ratio of 2; from the corner; both; with a shadow.
            (Some((100, 50, 400, 300)), (10, 10, 20, 20)),
            (Some((50, 25, 200, 150)), (20, 20, 40, 40)),
            (Some((0, 0, 400, 300)), (110, 60, 20, 20)),
            (Some((0, 0, 200, 150)), (120, 70, 40, 40)),
            (Some((0, 0, 380, 280)), (120, 70, 20, 20)),
            // A dialog that says something else.
            (Some((7, 7, 20, 1_000)), (10, 10, 20, 20)),
            (None, (10, 10, 20, 20)),
        ] {
            let placing = Placing::of(said.map(bounds), window);
            let placed = placing.on_screen(bounds((10, 10, 20, 20)));
            assert_eq!(placed, bounds(expected), "{said:?}");
        }
        let framed = Placing::of(Some(bounds((0, 0, 1280, 800))), bounds((0, 19, 1280, 781)));
        assert_eq!(framed.on_screen(window), window);
        let pane = [
            Some(bounds((0, 44, 1280, 756))),
            Some(bounds((0, 19, 1280, 756))),
        ];
        let bar = Shift::of(&pane).correct(bounds((0, 97, 1220, 42)), None);
        assert_eq!(bar, bounds((0, 122, 1220, 42)));
        for (said, expected) in [
            // A button of the bar, and a field that is GTK's.
            ((4, 103, 27, 27), (4, 128, 27, 27)),
            ((30, 124, 126, 34), (30, 124, 126, 34)),
        ] {
            let placed = Shift::of(&pane).correct(bounds(said), Some(bar));
            assert_eq!(placed, bounds(expected), "{said:?}");
        }
    }
}
