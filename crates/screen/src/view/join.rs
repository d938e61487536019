//! Joins the trees of a tab's frames into one, in pixels of the picture.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{Bounds, Element, ElementId, ElementState};
use serde::Deserialize;

use crate::{cdp::CdpError, state::PageFrame};

/// Result of the script that reads a frame.
#[derive(Debug, Deserialize)]
pub(super) struct FrameContent {
    pub(super) title: String,
    /// Size of the frame's own viewport.
    pub(super) width: f64,
    pub(super) height: f64,
    /// Pinch zoom, which only the main frame knows, and the corner of the visible part.
    pub(super) zoom: f64,
    pub(super) left: f64,
    pub(super) top: f64,
    /// Device pixels per pixel of the frame.
    pub(super) density: f64,
    pub(super) scroll: [f64; 4],
    pub(super) nodes: Vec<RawNode>,
    pub(super) frames: Vec<Child>,
    pub(super) unread: Vec<String>,
    /// Number of elements that may have a closed shadow root.
    pub(super) suspects: u32,
    /// Number of fields for secrets, filled or not.
    pub(super) secrets: u32,
    /// Description of the part that is not drawn yet in spite of waiting.
    pub(super) drawing: String,
}

/// An element of a frame: number, role, name, value, states, x, y, width, height, depth, link
/// target. A negative width means no box.
#[derive(Debug, Deserialize)]
pub(super) struct RawNode(
    u32,
    String,
    String,
    Option<String>,
    u32,
    f64,
    f64,
    f64,
    f64,
    u16,
    #[serde(default)] Option<String>,
);

/// A frame inside the frame: its id, the box of its content, the visible part of it, the covered
/// cells of an 8 by 8 grid over that (a byte per row; empty: nothing is visible), the node that it
/// follows, and its depth.
#[derive(Debug, Deserialize)]
pub(super) struct Child(String, [f64; 4], [f64; 4], Vec<u8>, usize, u16);

/// States of a node in the order of the script's bits.
const STATES: [ElementState; 21] = [
    ElementState::Focused,
    ElementState::Checked,
    ElementState::Mixed,
    ElementState::Selected,
    ElementState::Pressed,
    ElementState::Expanded,
    ElementState::Collapsed,
    ElementState::Disabled,
    ElementState::ReadOnly,
    ElementState::Required,
    ElementState::Invalid,
    ElementState::Opens,
    ElementState::Masked,
    ElementState::Scrolls,
    ElementState::OutOfView,
    ElementState::Covered,
    ElementState::Draggable,
    ElementState::Multiple,
    ElementState::Busy,
    ElementState::Clickable,
    ElementState::Droppable,
];

/// Position of a frame's content: a point of it is at `x + across * its x`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FramePlace {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) across: f64,
    pub(crate) down: f64,
}

impl FramePlace {
    fn of(self, x: f64, y: f64) -> (f64, f64) {
        (self.x + x * self.across, self.y + y * self.down)
    }

    fn area(self, [x, y, width, height]: [f64; 4]) -> Area {
        let (left, top) = self.of(x, y);
        let (right, bottom) = self.of(x + width, y + height);
        Area {
            left,
            top,
            right,
            bottom,
        }
    }

    /// Returns the whole pixels that a box touches.
    pub(super) fn bounds(self, corner: [f64; 4]) -> Bounds {
        let area = self.area(corner);
        // A rounding error must not touch a further pixel.
        let (left, top) = (
            pixels((area.left + 0.02).floor()),
            pixels((area.top + 0.02).floor()),
        );
        Bounds {
            x: left,
            y: top,
            width: (pixels((area.right - 0.02).ceil()) - left).max(0),
            height: (pixels((area.bottom - 0.02).ceil()) - top).max(0),
        }
    }
}

/// A rectangle in fractional pixels of the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    pub(super) fn sized(width: f64, height: f64) -> Self {
        Self {
            left: 0.0,
            top: 0.0,
            right: width,
            bottom: height,
        }
    }

    fn overlap(self, other: Self) -> Self {
        Self {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        }
    }

    fn is_empty(self) -> bool {
        self.right <= self.left || self.bottom <= self.top
    }
}

/// Rounds to whole pixels, and clamps to values that a screen can have.
pub(super) fn pixels(value: f64) -> i32 {
    value.clamp(-1e6, 1e6) as i32
}

/// Like [`pixels`], for values that are never negative.
pub(super) fn distance(value: f64) -> u32 {
    u32::try_from(pixels(value.round())).unwrap_or(0)
}

/// The part of a frame that the frames around it leave visible.
#[derive(Debug, Clone)]
struct VisiblePart {
    seen: Area,
    /// Grids of covered cells, each over its area.
    covers: Vec<(Area, Vec<u8>)>,
}

impl VisiblePart {
    fn is_covered(&self, area: Area) -> bool {
        let (x, y) = (
            f64::midpoint(area.left, area.right),
            f64::midpoint(area.top, area.bottom),
        );
        self.covers.iter().any(|(over, rows)| {
            let cell = |at: f64, from: f64, to: f64| {
                let cell = pixels(((at - from) / (to - from) * 8.0).floor());
                usize::try_from(cell.clamp(0, 7)).unwrap_or(0)
            };
            let row = rows.get(cell(y, over.top, over.bottom)).copied();
            row.unwrap_or(0) & (1 << cell(x, over.left, over.right)) != 0
        })
    }
}

/// Joins the trees of frames.
#[derive(Default)]
pub(super) struct Join {
    pub(super) frames: BTreeMap<String, PageFrame>,
    pub(super) walked: BTreeMap<String, Result<FrameContent, CdpError>>,
    pub(super) elements: Vec<Element>,
    pub(super) places: BTreeMap<String, FramePlace>,
    /// Ids of frames with fields for secrets.
    pub(super) secret: Vec<String>,
    pub(super) unread: Vec<String>,
}

impl Join {
    /// Adds the main frame and all nested frames.
    pub(super) fn add_main(
        &mut self,
        id: &str,
        walked: FrameContent,
        place: FramePlace,
        seen: Area,
    ) {
        let window = VisiblePart {
            seen,
            covers: Vec::new(),
        };
        self.add(id, walked, place, &window, 0);
    }

    fn add(
        &mut self,
        id: &str,
        walked: FrameContent,
        place: FramePlace,
        window: &VisiblePart,
        depth: u16,
    ) {
        self.places.insert(id.to_owned(), place);
        self.unread.extend(walked.unread);
        if walked.secrets > 0 {
            self.secret.push(id.to_owned());
        }
        let document = self.frames.get(id).map_or(0, |frame| frame.document);
        let mut children = walked.frames.into_iter().peekable();
        for (index, node) in walked.nodes.into_iter().enumerate() {
            while let Some(child) = children.next_if(|child| child.4 <= index) {
                self.add_child(child, place, window, depth);
            }
            self.elements
                .push(element(document, node, place, window, depth));
        }
        for child in children {
            self.add_child(child, place, window, depth);
        }
    }

    fn add_child(&mut self, child: Child, place: FramePlace, window: &VisiblePart, depth: u16) {
        let Child(id, content, seen, covered, _, inner) = child;
        let (x, y) = place.of(content[0], content[1]);
        match self.walked.remove(&id) {
            Some(Ok(walked)) => {
                // A frame counts whole pixels; a difference of more than rounding is scaling.
                let scale = |shown: f64, own: f64| {
                    if (shown - own).abs() < 1.0 || own < 1.0 {
                        1.0
                    } else {
                        shown / own
                    }
                };
                let inside = FramePlace {
                    x,
                    y,
                    across: place.across * scale(content[2], walked.width),
                    down: place.down * scale(content[3], walked.height),
                };
                let seen = place.area(seen);
                let mut window = VisiblePart {
                    seen: window.seen.overlap(seen),
                    covers: window.covers.clone(),
                };
                if covered.iter().any(|row| *row != 0) {
                    window.covers.push((seen, covered));
                }
                self.add(&id, walked, inside, &window, depth.saturating_add(inner));
            }
            Some(Err(error)) => self
                .unread
                .push(format!("a frame at {x:.0},{y:.0}: {error}")),
            None => self
                .unread
                .push(format!("a frame at {x:.0},{y:.0}: it is not known yet")),
        }
    }
}

fn element(
    document: u32,
    node: RawNode,
    place: FramePlace,
    window: &VisiblePart,
    depth: u16,
) -> Element {
    let RawNode(number, role, name, value, bits, x, y, width, height, inner, address) = node;
    let mut states: BTreeSet<ElementState> = STATES
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| bits & (1 << bit) != 0)
        .map(|(_, state)| state)
        .collect();
    let corner = [x, y, width, height];
    let bounds = (width >= 0.0).then(|| place.bounds(corner));
    if bounds.is_some() && !states.contains(&ElementState::OutOfView) {
        let seen = place.area(corner).overlap(window.seen);
        if seen.is_empty() {
            states.remove(&ElementState::Covered);
            states.insert(ElementState::OutOfView);
        } else if role != "text" && window.is_covered(seen) {
            states.insert(ElementState::Covered);
        }
    }
    Element {
        id: ElementId { document, number },
        role,
        name,
        value,
        address,
        states,
        bounds,
        depth: depth.saturating_add(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: FramePlace = FramePlace {
        x: 10.0,
        y: 0.0,
        across: 0.5,
        down: 0.5,
    };

    #[test]
    fn bounds_are_the_pixels_that_a_box_touches() {
        let bounds = HERE.bounds([1.0, 1.0, 3.0, 3.0]);
        let expected = Bounds {
            x: 10,
            y: 0,
            width: 2,
            height: 2,
        };
        assert_eq!(bounds, expected);
        assert_eq!(HERE.bounds([0.0, 0.0, 0.0, 0.0]).width, 0);
    }

    #[test]
    fn a_cover_hides_its_cells_only() {
        let window = VisiblePart {
            seen: Area::sized(80.0, 80.0),
            covers: vec![(
                Area::sized(80.0, 80.0),
                vec![0, 0b1000_0001, 0, 0, 0, 0, 0, 0],
            )],
        };
        let at = |x: f64, y: f64| Area {
            left: x,
            top: y,
            right: x + 2.0,
            bottom: y + 2.0,
        };
        assert!(window.is_covered(at(1.0, 14.0)) && window.is_covered(at(77.0, 14.0)));
        assert!(!window.is_covered(at(20.0, 14.0)) && !window.is_covered(at(1.0, 24.0)));
    }
}
