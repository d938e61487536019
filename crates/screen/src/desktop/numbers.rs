//! Ids of elements that stay the same from look to look.

use std::collections::BTreeMap;

use gyrus_contract::ElementId;

/// The numbers of elements, which stay the same for as long as the desktop is open.
#[derive(Debug, Default)]
pub(super) struct ElementNumbers {
    /// The numbers of windows, by window.
    documents: BTreeMap<u32, u32>,
    /// The numbers of elements, by window and by name on the bus and path, or by place in a table.
    elements: BTreeMap<(u32, String), u32>,
    /// The names on the bus and paths of elements, by their id.
    named: BTreeMap<ElementId, String>,
    /// The number of elements of each window.
    counts: BTreeMap<u32, u32>,
    /// The largest number of a window.
    last: u32,
}

impl ElementNumbers {
    /// Numbers windows from after this number: a run may have counted some in another session.
    pub(super) fn begin_after(&mut self, documents: u32) {
        self.last = self.last.max(documents);
    }

    /// Returns the largest number of a window.
    pub(super) fn documents(&self) -> u32 {
        self.last
    }

    /// Returns the number of a window.
    pub(super) fn document(&mut self, window: u32) -> u32 {
        *self.documents.entry(window).or_insert_with(|| {
            self.last += 1;
            self.last
        })
    }

    /// Returns the id of the element of a window with this name and path on the bus, or of the
    /// window itself for an empty path.
    pub(super) fn id(&mut self, document: u32, path: String) -> ElementId {
        self.id_by(document, path.clone(), path)
    }

    /// Returns the id of an element known by `key`, whatever its path is now.
    pub(super) fn id_by(&mut self, document: u32, key: String, path: String) -> ElementId {
        let count = self.counts.entry(document).or_default();
        let number = self.elements.entry((document, key));
        let number = *number.or_insert_with(|| {
            *count += 1;
            *count
        });
        let id = ElementId { document, number };
        self.named.insert(id, path);
        id
    }

    /// Returns the window of a number.
    pub(super) fn window(&self, document: u32) -> Option<u32> {
        let mut all = self.documents.iter();
        all.find(|(_, number)| **number == document)
            .map(|(window, _)| *window)
    }

    /// Returns the name on the bus and the path of an element; `None` for a window itself.
    pub(super) fn path(&self, id: ElementId) -> Option<(&str, &str)> {
        self.named.get(&id)?.split_once(' ')
    }
}
