//! Says where an element without a name is, for a model that has to choose it.

use gyrus_contract::View;

use super::words::quoted;

/// Number of elements before and after an element among which the nearest words are searched for.
const NEARBY: usize = 12;

/// Maximum distance in pixels of the words that locate an element.
const FAR: i32 = 200;

/// Maximum height of a container around an element, as a multiple of the element's height.
const ROW: i32 = 3;

/// Maximum number of characters of the words that locate an element.
const WORDS: usize = 24;

/// Returns the middle of an element; empty if nothing of it is painted.
pub(super) fn middle(view: &View, index: usize) -> String {
    let Some(own) = view.elements[index].bounds else {
        return String::new();
    };
    let (x, y) = (
        own.x.saturating_add(own.width / 2),
        own.y.saturating_add(own.height / 2),
    );
    format!(" at {x},{y}")
}

/// Describes an element's position relative to the nearest words, if some are near.
pub(super) fn beside(view: &View, index: usize) -> Option<String> {
    let own = view.elements[index].bounds?;
    let before = view.elements[..index].iter().rev().take(NEARBY);
    let around = before.chain(view.elements[index + 1..].iter().take(NEARBY));
    let near = around.filter_map(|other| {
        let bounds = other.bounds.filter(|_| !other.name.trim().is_empty())?;
        let across = gap((own.x, own.width), (bounds.x, bounds.width));
        let down = gap((own.y, own.height), (bounds.y, bounds.height));
        let side = match (across, down) {
            // What lies in large things is not told apart by their names.
            (0, 0) if bounds.height / ROW > own.height => return None,
            (0, 0) if bounds.height >= own.height && bounds.width > own.width => "in",
            (0, 0) => "around",
            (1.., 0) => "right of",
            (_, 0) => "left of",
            (0, 1..) => "below",
            (0, _) => "above",
            _ => return None,
        };
        let (across, down) = (across.saturating_abs(), down.saturating_abs());
        // Words in the same line say more.
        let rank = across.max(down.saturating_mul(2));
        (across.max(down) <= FAR).then_some((rank, side, &other.name))
    });
    let (_, side, name) = near.min_by_key(|(rank, ..)| *rank)?;
    Some(format!(", {side} {}", quoted(name, WORDS)))
}

/// Returns the distance of a range, by start and length, from another before it; negative if the
/// other comes after it, 0 if they overlap.
fn gap(own: (i32, i32), other: (i32, i32)) -> i32 {
    let end = |(start, length): (i32, i32)| start.saturating_add(length);
    if own.0 >= end(other) {
        own.0.saturating_sub(end(other)).saturating_add(1)
    } else if end(own) <= other.0 {
        end(own).saturating_sub(other.0).saturating_sub(1)
    } else {
        0
    }
}
