//! The cells of tables, lists and trees, which programs do not hand out with their other elements:
//! there may be millions. Those between the first and the last that are drawn are asked for.

use futures_util::{StreamExt as _, future::join3, stream};
use gyrus_contract::Bounds;
use tokio::time::Instant;
use zbus::OwnedVariant;

use super::{
    accessible::{
        ACCESSIBLE, AT_ONCE, Accessible, AccessibleItem, COMPONENT, DETAILS, ObjectReference,
        PROPERTIES, states,
    },
    questions::ProgramQuestions,
    roles,
};

/// Maximum number of cells of a table that is read whole, including cells out of view.
const ALL: i32 = 100;

/// Minimum number of cells of a spreadsheet, whose cells have texts and positions as names.
const SHEET: i32 = 1_000_000_000;

/// Maximum number of cells of a table that are read.
const MAX_CELLS: usize = 600;

/// Maximum number of parts of a cell that are read.
const MAX_PARTS: usize = 8;

/// Distance of the points at which the first and the last cell are sought, in pixels, and their
/// number.
const STEP: i32 = 10;
const POINTS: i32 = 12;

impl Accessible {
    /// Returns the drawn cells of a table, or all cells of a small one.
    pub(super) async fn cells(&self, name: &str, table: &AccessibleItem) -> Vec<AccessibleItem> {
        let path = table.path.as_str();
        let count: Option<OwnedVariant> = self.property(name, path, "ChildCount").await;
        let count = count.and_then(|count| i32::try_from(count).ok());
        let Some(count @ 1..) = count else {
            return Vec::new();
        };
        let wanted = if count <= ALL {
            (0..count).collect()
        } else {
            let Some(bounds) = self.extents(name, path).await else {
                return Vec::new();
            };
            self.drawn(name, path, bounds, count).await
        };
        self.cells_at(name, table, &wanted, count >= SHEET).await
    }

    /// Returns the numbers of the cells of a large table that are drawn.
    async fn drawn(&self, name: &str, path: &str, bounds: Bounds, count: i32) -> Vec<i32> {
        let (first, right, last) = join3(
            self.cell_from(name, path, bounds, Corner::UpperLeft),
            self.cell_from(name, path, bounds, Corner::UpperRight),
            self.cell_from(name, path, bounds, Corner::LowerRight),
        )
        .await;
        let first = first.unwrap_or(0);
        // Below the last row there may be nothing.
        let last = last.unwrap_or(count - 1).min(count - 1);
        let length = usize::try_from(last.saturating_sub(first)).unwrap_or(0);
        let Some(right) = right.filter(|right| length >= MAX_CELLS && *right >= first) else {
            return (first..=last).take(MAX_CELLS).collect();
        };
        // Of each row a part is drawn.
        let row = self.row_length(name, path, first).await;
        let row = row.unwrap_or_else(|| right.saturating_sub(first).saturating_add(1));
        let rows = (first..=last).step_by(usize::try_from(row).unwrap_or(1).max(1));
        let width = right - first;
        let cells = rows.flat_map(|start| start..=start.saturating_add(width));
        cells.take(MAX_CELLS).collect()
    }

    /// Returns the number of cells from one cell to the cell below it.
    async fn row_length(&self, name: &str, table: &str, cell: i32) -> Option<i32> {
        let asked = self.ask(name, table, ACCESSIBLE, "GetChildAtIndex", &cell);
        let (_, child): ObjectReference = asked.await.ok()?;
        let place = self.extents(name, child.as_str()).await?;
        let below = (place.x + place.width / 2, place.y + place.height + 3);
        let below = self.cell_at_point(name, table, below).await?;
        (below > cell).then_some(below - cell)
    }

    /// Returns the number of the first cell found on the way from a corner of a table.
    async fn cell_from(
        &self,
        name: &str,
        path: &str,
        bounds: Bounds,
        corner: Corner,
    ) -> Option<i32> {
        for away in (0..POINTS).map(|point| 4 + point * STEP) {
            let (left, right) = (bounds.x + 4, bounds.x + bounds.width - 4);
            let (top, bottom) = (bounds.y + away, bounds.y + bounds.height - away);
            let at = match corner {
                Corner::UpperLeft => (left, top),
                Corner::UpperRight => (right, top),
                Corner::LowerRight => (right, bottom),
            };
            if let Some(index) = self.cell_at_point(name, path, at).await {
                return Some(index);
            }
        }
        None
    }

    async fn cell_at_point(&self, name: &str, table: &str, (x, y): (i32, i32)) -> Option<i32> {
        let at = (x, y, 0_u32);
        let there = self.ask(name, table, COMPONENT, "GetAccessibleAtPoint", &at);
        let (_, there): ObjectReference = there.await.ok()?;
        let index = self.ask(name, there.as_str(), ACCESSIBLE, "GetIndexInParent", &());
        let parent = self.property(name, there.as_str(), "Parent").await?;
        let (_, parent) = ObjectReference::try_from(parent).ok()?;
        let index: i32 = index.await.ok()?;
        (index >= 0 && parent.as_str() == table).then_some(index)
    }

    /// Returns the text of a cell that consists of parts, such as an icon and a name.
    async fn parts_of_cell(&self, name: &str, path: &str) -> String {
        let mut words: Vec<String> = Vec::new();
        for (_, part) in self.children(name, path).await.iter().take(MAX_PARTS) {
            let said = self.property(name, part.as_str(), "Name").await;
            let said = said.and_then(|said| String::try_from(said).ok());
            words.extend(said.filter(|said| !said.is_empty() && !words.contains(said)));
        }
        words.join(" ")
    }

    /// Returns those cells of a table with these numbers that are visible or showing.
    async fn cells_at(
        &self,
        name: &str,
        table: &AccessibleItem,
        wanted: &[i32],
        is_sheet: bool,
    ) -> Vec<AccessibleItem> {
        let until = Instant::now() + DETAILS;
        let mut questions = ProgramQuestions::to(name);
        for index in wanted {
            questions.add(&table.path, ACCESSIBLE, "GetChildAtIndex", index);
        }
        let answers = questions.ask(self.connection(), until).await;
        let found = wanted.iter().zip(answers).filter_map(|(index, answer)| {
            let (_, path): ObjectReference = answer.read()?;
            Some((*index, path))
        });
        let found: Vec<_> = found.collect();
        let mut questions = ProgramQuestions::to(name);
        for (_, path) in &found {
            questions.add(path.as_str(), ACCESSIBLE, "GetState", &());
            questions.add(path.as_str(), ACCESSIBLE, "GetRole", &());
            questions.add(path.as_str(), PROPERTIES, "Get", &(ACCESSIBLE, "Name"));
        }
        let answers = questions.ask(self.connection(), until).await;
        let told = answers.chunks_exact(3).zip(found);
        let cells = told.filter_map(|(answers, (index, path))| {
            let said: OwnedVariant = answers[2].read()?;
            let cell = AccessibleItem {
                path: path.to_string(),
                parent: table.path.clone(),
                index,
                name: String::try_from(said).ok()?,
                role: answers[1].read()?,
                states: states(&answers[0].read::<Vec<u32>>()?),
                children: 0,
                has_place: true,
                has_text: is_sheet,
            };
            (roles::is_visible(cell.states) || roles::is_shown(cell.states)).then_some(cell)
        });
        let named = cells.map(async |mut cell| {
            if cell.name.is_empty() {
                cell.name = self.parts_of_cell(name, &cell.path).await;
            }
            cell
        });
        let named: Vec<_> = named.collect();
        stream::iter(named).buffered(AT_ONCE).collect().await
    }
}

/// The corner of a table from which a cell is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Corner {
    UpperLeft,
    UpperRight,
    LowerRight,
}
