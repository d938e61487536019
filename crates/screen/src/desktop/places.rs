//! The places of a window's elements on the screen, from those that its program tells.

use std::collections::BTreeMap;

use gyrus_contract::Bounds;

use super::{accessible::AccessibleItem, roles, windows::DesktopWindow};

/// The place of an element, or that it is in a part that is not drawn.
pub(super) enum ElementPlace {
    /// The element is drawn at this place, if the place is known.
    At(Option<Bounds>),
    Not,
}

/// The places of the elements of a window, which are gone through parents first.
pub(super) struct ElementPlaces<'a> {
    placing: CoordinateMap,
    /// The offset of each pane.
    panes: Vec<Shift>,
    /// The ancestors of the next element with their depth, outermost first.
    around: Vec<(u16, Option<Bounds>)>,
    /// The depth of the popup around the elements, and its offset.
    opened: Option<(u16, Shift)>,
    /// The depth of the menu bar around the elements that is not drawn.
    undrawn: Option<u16>,
    window: &'a DesktopWindow,
    above: &'a [DesktopWindow],
}

impl<'a> ElementPlaces<'a> {
    /// Starts with a window, the windows above it, and for each pane the bounds of its surroundings
    /// and its own.
    pub(super) fn new(
        placing: CoordinateMap,
        panes: &[Option<Bounds>],
        window: &'a DesktopWindow,
        above: &'a [DesktopWindow],
    ) -> Self {
        Self {
            placing,
            panes: panes.chunks_exact(2).map(Shift::of).collect(),
            around: Vec::new(),
            opened: None,
            undrawn: None,
            window,
            above,
        }
    }

    /// Returns the place of the next element, at this depth and in the pane of this number.
    pub(super) fn next(
        &mut self,
        (depth, pane): (u16, Option<usize>),
        item: &AccessibleItem,
        said: Option<Bounds>,
    ) -> ElementPlace {
        self.around.retain(|(around, _)| *around < depth);
        let outer = self.around.last().and_then(|(_, bounds)| *bounds);
        let shift = pane.map(|number| self.panes[number]).unwrap_or_default();
        let place = said.map(|bounds| self.placing.on_screen(bounds));
        let place = place.map(|bounds| shift.correct(bounds, outer));
        self.opened = self.opened.filter(|(popup, _)| depth > *popup);
        let popup = || Some((depth, Shift::to_popup(place?, self.window, self.above)?));
        self.opened = self.opened.or_else(popup);
        let opened = self.opened;
        let place = place.map(|bounds| opened.map_or(bounds, |(_, by)| by.moved(bounds)));
        self.around.push((depth, place));
        let is_undrawn = place.is_none() && roles::role(item.role) == Some("menubar");
        if self.undrawn.is_some_and(|bar| depth > bar) || is_undrawn {
            self.undrawn = self.undrawn.or(Some(depth));
            return ElementPlace::Not;
        }
        self.undrawn = None;
        ElementPlace::At(place)
    }
}

/// The places of tables without their column heads.
#[derive(Default)]
pub(super) struct TablePlaces(BTreeMap<String, Bounds>);

impl TablePlaces {
    /// Returns the place of the table around a cell.
    pub(super) fn around(&self, item: &AccessibleItem) -> Option<Bounds> {
        let table = self.0.get(&item.parent);
        table.filter(|_| roles::is_cell(item.role)).copied()
    }

    /// Adds an element that is a table or the header of one.
    pub(super) fn add(&mut self, item: &AccessibleItem, bounds: Option<Bounds>) {
        let Some(bounds) = bounds else { return };
        if roles::has_cells(item.role) {
            self.0.insert(item.path.clone(), bounds);
        }
        if let (true, Some(table)) = (roles::is_head(item.role), self.0.get_mut(&item.parent)) {
            *table = below(*table, bounds);
        }
    }
}

/// Conversion of coordinates that a program reports to those of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoordinateMap {
    /// The number of screen pixels for each pixel of the program.
    scale: i32,
    /// The corner of the window, if the program counts from there.
    x: i32,
    y: i32,
}

/// Conversion of coordinates in a pane, as a program reports them, to those of the screen.
/// LibreOffice does not count its menu bar: its pane is as large as what is around it, and stands
/// elsewhere. It says the right places of fields that are GTK's, and of documents sometimes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Shift {
    x: i32,
    y: i32,
}

impl Shift {
    /// Computes the shift from the bounds of a pane and of what is around it.
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

    /// Finds the offset of the elements in a popup of the window's program, which must have the
    /// same size: GTK 4 reports where they would be in the window.
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

impl CoordinateMap {
    /// Computes the conversion from the bounds of a window as its program reports them and as the
    /// server does.
    pub(super) fn of(said: Option<Bounds>, window: Bounds) -> Self {
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

    pub(super) fn on_screen(self, said: Bounds) -> Bounds {
        Bounds {
            x: said.x * self.scale + self.x,
            y: said.y * self.scale + self.y,
            width: said.width * self.scale,
            height: said.height * self.scale,
        }
    }
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
pub(super) fn common(one: Bounds, other: Bounds) -> Option<Bounds> {
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

/// Whether a rectangle lies within another, give or take a border: then the element may be part of
/// the menu that is drawn there.
pub(super) fn is_within(bounds: Bounds, around: Bounds) -> bool {
    const BORDER: i32 = 6;
    bounds.x >= around.x - BORDER
        && bounds.y >= around.y - BORDER
        && bounds.x + bounds.width <= around.x + around.width + BORDER
        && bounds.y + bounds.height <= around.y + around.height + BORDER
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
            let placing = CoordinateMap::of(said.map(bounds), window);
            let placed = placing.on_screen(bounds((10, 10, 20, 20)));
            assert_eq!(placed, bounds(expected), "{said:?}");
        }
        let framed = CoordinateMap::of(Some(bounds((0, 0, 1280, 800))), bounds((0, 19, 1280, 781)));
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
