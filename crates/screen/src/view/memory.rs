//! The data that one look keeps for the next.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{Bounds, Picture};

/// Maximum width of a picture, in pixels.
pub(crate) const MAX_WIDTH: u32 = 1280;

/// Data that each look passes on to the next.
#[derive(Default)]
pub(crate) struct LookMemory {
    /// Frames whose elements are known to the document around them, each with that document.
    pub(super) owned: BTreeSet<(u32, String)>,
    /// Known listeners, by document.
    pub(super) heard: BTreeMap<u32, KnownListeners>,
    /// Ids of the frames that could be seen when the page last came to rest.
    pub(crate) shown: BTreeSet<String>,
    /// Scaling of the last page.
    pub(super) scaling: Option<PageScale>,
    pub(super) picture: Option<LastPicture>,
    /// Whether the last look found secrets, or fields for secrets.
    pub(super) had_secrets: bool,
}

pub(crate) struct KnownListeners {
    /// The document as an object of the page's own. It belongs to no group: then the browser
    /// reports listeners without creating an object for each of their functions.
    pub(super) document: String,
    /// The shadow roots in the document, also as objects of the page's own.
    pub(super) roots: Vec<String>,
    /// Listening elements by the browser's node numbers, with the uses that their listeners show.
    pub(super) known: BTreeMap<i64, u8>,
}

#[derive(Clone)]
pub(crate) struct HashedPicture {
    pub(super) picture: Picture,
    pub(super) hash: u64,
}

/// The last picture: the browser's data, the covered areas, and the result.
pub(crate) struct LastPicture {
    pub(super) data: String,
    pub(super) covered: Vec<Bounds>,
    pub(super) frame: HashedPicture,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PageScale {
    /// Size of the viewport, in CSS pixels.
    pub(super) width: f64,
    /// Device pixels per CSS pixel.
    pub(super) density: f64,
    /// Pinch zoom: magnification of the visible part of the viewport.
    pub(super) zoom: f64,
}
