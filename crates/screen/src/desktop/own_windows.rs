//! Windows of gyrus itself, which no run sees.

use gyrus_contract::Bounds;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};

use super::display::{Display, DisplayError};

/// The property that marks a window of gyrus.
pub(super) const OWN_WINDOW: &str = "_GYRUS_OWN_WINDOW";

impl Display {
    /// Returns the bounds of gyrus's own windows in view, which are painted over in pictures.
    pub(super) fn own_windows(&self) -> Result<Vec<Bounds>, DisplayError> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let mark = self.atom(OWN_WINDOW)?;
        let asked = self.connection.query_tree(self.screen.root);
        let tree = asked.map_err(|error| words(&error))?.reply();
        let children = tree.map_err(|error| words(&error))?.children;
        // All questions before the first answer: there may be hundreds of windows.
        let mut asked = Vec::new();
        for window in children {
            let marked = self
                .connection
                .get_property(false, window, mark, AtomEnum::ANY, 0, 1);
            let place = self.connection.get_geometry(window);
            asked.push((
                marked.map_err(|error| words(&error))?,
                place.map_err(|error| words(&error))?,
            ));
        }
        let mut own = Vec::new();
        for (marked, place) in asked {
            // A window may be gone by now.
            let (Ok(marked), Ok(place)) = (marked.reply(), place.reply()) else {
                continue;
            };
            if marked.value_len > 0 {
                own.push(Bounds {
                    x: i32::from(place.x),
                    y: i32::from(place.y),
                    width: i32::from(place.width),
                    height: i32::from(place.height),
                });
            }
        }
        Ok(own)
    }
}
