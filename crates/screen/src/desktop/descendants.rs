//! Elements that a list makes only when somebody asks for them: the rows and cells of lists, trees
//! and tables, which the cache of their program does not hold.

use std::collections::{BTreeMap, HashMap};

use futures_util::{StreamExt as _, stream};
use zbus::OwnedVariant;

use super::{
    accessible::{AT_ONCE, Accessible, Item, Reference},
    roles::{self, States},
};

/// Maximum number of elements of a list that are asked for.
const MAX_CHILDREN: i32 = 600;

/// Maximum number of levels below a list: its rows, their cells, and the parts of these.
const MAX_LEVELS: usize = 3;

/// Distance of the first row that is shown from the upper edge of a list with a header, in pixels.
const HEADER: i32 = 40;

/// Number of elements that may be shown before the one at that place.
const BEFORE: i32 = 60;

const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
const COMPONENT: &str = "org.a11y.atspi.Component";

impl Accessible {
    /// Returns what is shown in the lists among the elements of a program that make their parts
    /// only when they are asked.
    pub(super) async fn descendants(&self, program: &str, items: &[Item]) -> Vec<Item> {
        let makes = |item: &&Item| {
            item.states.has(roles::MANAGES_DESCENDANTS) && roles::is_shown(item.states)
        };
        let mut found = Vec::new();
        for list in items.iter().filter(makes) {
            let mut level = self.first_level(program, list).await;
            for _ in 1..MAX_LEVELS {
                let below = level.iter().filter(|(_, children)| *children > 0);
                let below: Vec<_> = below
                    .map(|(item, _)| self.children(program, item))
                    .collect();
                let below: Vec<_> = stream::iter(below).buffered(AT_ONCE).collect().await;
                found.extend(level.into_iter().map(|(item, _)| item));
                level = below.into_iter().flatten().collect();
            }
            found.extend(level.into_iter().map(|(item, _)| item));
        }
        found
    }

    /// Returns the parts of a list that are shown, each with the number of its own parts.
    async fn first_level(&self, program: &str, list: &Item) -> Vec<(Item, i32)> {
        let count = self.child_count(program, &list.path).await;
        if count <= MAX_CHILDREN {
            return self.children(program, list).await;
        }
        // Of a long list, those from the first that is shown.
        let first = self.first_shown(program, list).await.unwrap_or_default();
        let numbers = first..count.min(first.saturating_add(MAX_CHILDREN));
        let asked = numbers.map(async |number| {
            let at = "GetChildAtIndex";
            let child: Reference = self
                .ask(program, &list.path, ACCESSIBLE, at, &number)
                .await?;
            Ok::<_, String>((number, child))
        });
        let asked: Vec<_> = asked.collect();
        let children: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let children = children.into_iter().filter_map(Result::ok);
        self.described(program, list, children.collect()).await
    }

    /// Returns the number of a part that is shown at the beginning of a long list, or of one shortly
    /// before it.
    async fn first_shown(&self, program: &str, list: &Item) -> Option<i32> {
        let (x, y, width, _): (i32, i32, i32, i32) = self
            .ask(program, &list.path, COMPONENT, "GetExtents", &0_u32)
            .await
            .ok()?;
        let point = (x + width / 2, y + HEADER, 0_u32);
        let at = "GetAccessibleAtPoint";
        let (_, path): Reference = self
            .ask(program, &list.path, COMPONENT, at, &point)
            .await
            .ok()?;
        let number: i32 = self
            .ask(program, path.as_str(), ACCESSIBLE, "GetIndexInParent", &())
            .await
            .ok()?;
        Some((number - BEFORE).max(0))
    }

    async fn child_count(&self, program: &str, path: &str) -> i32 {
        let properties = "org.freedesktop.DBus.Properties";
        let asked: Result<OwnedVariant, _> = self
            .ask(
                program,
                path,
                properties,
                "Get",
                &(ACCESSIBLE, "ChildCount"),
            )
            .await;
        asked
            .ok()
            .and_then(|count| i32::try_from(count).ok())
            .unwrap_or_default()
    }

    /// Returns the parts of an element that are shown, each with the number of its own parts.
    async fn children(&self, program: &str, parent: &Item) -> Vec<(Item, i32)> {
        let children: Result<Vec<Reference>, _> = self
            .ask(program, &parent.path, ACCESSIBLE, "GetChildren", &())
            .await;
        let numbered = (0..).zip(children.unwrap_or_default());
        self.described(program, parent, numbered.collect()).await
    }

    async fn described(
        &self,
        program: &str,
        parent: &Item,
        children: Vec<(i32, Reference)>,
    ) -> Vec<(Item, i32)> {
        let asked = children.into_iter().map(async |(index, (_, path))| {
            self.describe(program, parent, index, path.to_string())
                .await
        });
        let asked: Vec<_> = asked.collect();
        let described: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        described.into_iter().flatten().collect()
    }

    /// Describes an element; `None` if it is not shown.
    async fn describe(
        &self,
        program: &str,
        parent: &Item,
        index: i32,
        path: String,
    ) -> Option<(Item, i32)> {
        let states: Vec<u32> = self
            .ask(program, &path, ACCESSIBLE, "GetState", &())
            .await
            .ok()?;
        let states = States::of(&states);
        if !roles::is_shown(states) {
            return None;
        }
        let role: u32 = self
            .ask(program, &path, ACCESSIBLE, "GetRole", &())
            .await
            .ok()?;
        let properties = "org.freedesktop.DBus.Properties";
        let known: HashMap<String, OwnedVariant> = self
            .ask(program, &path, properties, "GetAll", &ACCESSIBLE)
            .await
            .ok()?;
        let mut known: BTreeMap<_, _> = known.into_iter().collect();
        let name = known.remove("Name");
        let count = known.remove("ChildCount");
        let item = Item {
            path,
            parent: parent.path.clone(),
            index,
            name: name
                .and_then(|name| String::try_from(name).ok())
                .unwrap_or_default(),
            role,
            states,
            has_place: true,
            has_text: false,
        };
        let count = count.and_then(|count| i32::try_from(count).ok());
        Some((item, count.unwrap_or_default()))
    }
}
