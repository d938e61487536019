//! The cells of tables, lists and trees, which programs do not hand out with their other elements:
//! there may be millions. Those between the first and the last that are drawn are asked for.

use futures_util::{StreamExt as _, future::join, stream};
use gyrus_contract::Bounds;
use zbus::OwnedVariant;

use super::{
    accessible::{ACCESSIBLE, AT_ONCE, Accessible, COMPONENT, Item, Reference, states},
    roles,
};

/// Maximum number of cells up to which all of a table are read, also those out of view.
const ALL: i32 = 100;

/// Maximum number of cells of a table that are read.
const MAX_CELLS: i32 = 600;

/// Maximum number of parts of a cell that are read.
const MAX_PARTS: usize = 8;

/// Distance of the points at which the first and the last cell are sought, in pixels, and their
/// number.
const STEP: i32 = 10;
const POINTS: i32 = 12;

impl Accessible {
    /// Returns the cells of a table that are drawn; of a small one all.
    pub(super) async fn cells(&self, name: &str, table: &Item) -> Vec<Item> {
        let path = table.path.as_str();
        let count: Option<OwnedVariant> = self.property(name, path, "ChildCount").await;
        let count = count.and_then(|count| i32::try_from(count).ok());
        let Some(count @ 1..) = count else {
            return Vec::new();
        };
        let (first, last) = if count <= ALL {
            (0, count - 1)
        } else {
            let Some(bounds) = self.extents(name, path).await else {
                return Vec::new();
            };
            let ends = join(
                self.cell_from(name, path, bounds, End::First),
                self.cell_from(name, path, bounds, End::Last),
            );
            let (first, last) = ends.await;
            let first = first.unwrap_or(0);
            // Below the last row there may be nothing.
            (first, last.unwrap_or(count - 1))
        };
        let last = last.min(count - 1).min(first.saturating_add(MAX_CELLS));
        let cells: Vec<_> = (first..=last)
            .map(|index| self.cell(name, path, index))
            .collect();
        let cells = stream::iter(cells).buffered(AT_ONCE).collect::<Vec<_>>();
        cells.await.into_iter().flatten().collect()
    }

    /// Returns the number of the first cell that is found on the way from a corner of a table.
    async fn cell_from(&self, name: &str, path: &str, bounds: Bounds, end: End) -> Option<i32> {
        for away in (0..POINTS).map(|point| 4 + point * STEP) {
            let (x, y) = match end {
                End::First => (bounds.x + 4, bounds.y + away),
                End::Last => (bounds.x + bounds.width - 4, bounds.y + bounds.height - away),
            };
            let at = (x, y, 0_u32);
            let there = self.ask(name, path, COMPONENT, "GetAccessibleAtPoint", &at);
            let Ok::<Reference, _>((_, there)) = there.await else {
                continue;
            };
            let index = self.ask(name, there.as_str(), ACCESSIBLE, "GetIndexInParent", &());
            let parent = self.property(name, there.as_str(), "Parent").await;
            let parent = parent.and_then(|parent| Reference::try_from(parent).ok());
            if let (Ok(index @ 0..), true) = (
                index.await,
                parent.is_some_and(|(_, parent)| parent.as_str() == path),
            ) {
                return Some(index);
            }
        }
        None
    }

    /// Returns the words in a cell that consists of others, as one with an icon and a name does.
    async fn parts_of_cell(&self, name: &str, path: &str) -> String {
        let mut words: Vec<String> = Vec::new();
        for (_, part) in self.children(name, path).await.iter().take(MAX_PARTS) {
            let said = self.property(name, part.as_str(), "Name").await;
            let said = said.and_then(|said| String::try_from(said).ok());
            words.extend(said.filter(|said| !said.is_empty() && !words.contains(said)));
        }
        words.join(" ")
    }

    async fn cell(&self, name: &str, table: &str, index: i32) -> Option<Item> {
        let child = self.ask(name, table, ACCESSIBLE, "GetChildAtIndex", &index);
        let (_, child): Reference = child.await.ok()?;
        let path = child.as_str();
        let words: Vec<u32> = self
            .ask(name, path, ACCESSIBLE, "GetState", &())
            .await
            .ok()?;
        let role: u32 = self
            .ask(name, path, ACCESSIBLE, "GetRole", &())
            .await
            .ok()?;
        let said = self.property(name, path, "Name").await?;
        let mut said = String::try_from(said).ok()?;
        if said.is_empty() {
            said = self.parts_of_cell(name, path).await;
        }
        Some(Item {
            path: path.to_owned(),
            parent: table.to_owned(),
            index,
            name: said,
            role,
            states: states(&words),
            children: 0,
            has_place: true,
            has_text: false,
        })
        .filter(|cell| roles::is_visible(cell.states) || roles::is_shown(cell.states))
    }
}

/// The corner of a table from which a cell is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// From the upper left one.
    First,
    /// From the lower right one.
    Last,
}
