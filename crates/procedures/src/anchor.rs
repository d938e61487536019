//! Describing an element so that it can be found again on a page that has changed since.

use gyrus_contract::{Element, ElementId, View};
use serde::{Deserialize, Serialize};

use crate::{SlotValues, Template};

/// The description of an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The role.
    pub role: String,
    /// The name, with slots.
    pub name: Template,
}

/// The reason why an anchor fits no element, or more than one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnchorMiss {
    /// Nothing fits well enough.
    #[error("{wanted} is not there")]
    Missing {
        /// The element, in words.
        wanted: String,
    },
    /// Several fit about equally well.
    #[error("{wanted} could be {count} elements")]
    Ambiguous {
        /// The element, in words.
        wanted: String,
        /// Number of elements.
        count: usize,
    },
}

impl Anchor {
    /// Describes an element of a view.
    pub fn of(view: &View, element: &Element, slots: &[crate::Slot]) -> Self {
        let _ = (view, slots);
        Self {
            role: element.role.clone(),
            name: Template(vec![crate::TemplatePart::Words(element.name.clone())]),
        }
    }

    /// Returns the one element of a view that fits.
    ///
    /// # Errors
    /// None fits well enough, or the best is not clearly better than the next.
    pub fn find(&self, view: &View, values: &SlotValues) -> Result<ElementId, AnchorMiss> {
        let _ = view;
        Err(AnchorMiss::Missing {
            wanted: format!("{} “{}”", self.role, self.name.filled(values)),
        })
    }
}
