//! Our view beside the oracle, and the text that a model gets beside both.

use std::{collections::BTreeMap, fmt::Write as _};

use gyrus_contract::{Bounds, Element, ElementState, View};

use crate::oracle::{Excluded, Usable};

/// Maximum distance of an edge from where the browser says it is, in pixels.
const NEAR: f64 = 2.0;

/// Comparison of one or more states.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) usable: usize,
    pub(crate) found: usize,
    /// Usable elements of ours that the oracle does not know.
    extra: usize,
    pub(crate) in_view: usize,
    /// Elements among these that stand in the text.
    in_text: usize,
    /// Elements among the others that have a name to be found by.
    findable: usize,
    excluded: BTreeMap<Excluded, usize>,
    left_out: Vec<String>,
    unknown: Vec<String>,
    missed: Vec<String>,
    /// In view and found, but not in the text.
    unsaid: Vec<String>,
    /// States that could not be reached.
    pub(crate) failed: Vec<String>,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self, state: &str) {
        self.usable += other.usable;
        self.found += other.found;
        self.extra += other.extra;
        self.in_view += other.in_view;
        self.in_text += other.in_text;
        self.findable += other.findable;
        for (why, count) in other.excluded {
            *self.excluded.entry(why).or_default() += count;
        }
        let of_state = |one: String| format!("{state}: {one}");
        self.left_out
            .extend(other.left_out.into_iter().map(of_state));
        self.unknown.extend(other.unknown.into_iter().map(of_state));
        self.missed.extend(other.missed.into_iter().map(of_state));
        self.unsaid.extend(other.unsaid.into_iter().map(of_state));
    }

    pub(crate) fn misses(&self, name: &str) -> String {
        let mut text = String::new();
        for (what, all) in [
            ("failed", &self.failed),
            ("left out", &self.left_out),
            ("extra", &self.unknown),
            ("missed", &self.missed),
            ("not in the text", &self.unsaid),
        ] {
            for one in all {
                let _ = writeln!(text, "{name}, {what}: {one}");
            }
        }
        text
    }
}

fn is_near(bounds: Bounds, [left, top, width, height]: [f64; 4]) -> bool {
    let near = |own: i32, other: f64| (f64::from(own) - other).abs() <= NEAR;
    near(bounds.x, left)
        && near(bounds.y, top)
        && near(bounds.x + bounds.width, left + width)
        && near(bounds.y + bounds.height, top + height)
}

/// Whether we say that it can be used.
fn is_usable(element: &Element) -> bool {
    use ElementState::{Clickable, Draggable, Opens, Scrolls};
    let uses = [Clickable, Draggable, Opens, Scrolls]
        .iter()
        .any(|state| element.states.contains(state));
    uses || matches!(
        element.role.as_str(),
        "button"
            | "link"
            | "textbox"
            | "searchbox"
            | "combobox"
            | "listbox"
            | "checkbox"
            | "radio"
            | "switch"
            | "slider"
            | "spinbutton"
            | "menuitem"
            | "menuitemcheckbox"
            | "menuitemradio"
            | "tab"
            | "treeitem"
            | "option"
            | "file"
            | "color"
            | "date"
            | "time"
            | "month"
            | "week"
            | "datetime"
            | "canvas"
            | "video"
            | "audio"
            | "iframe"
    )
}

fn at(element: &Element, usable: &Usable) -> bool {
    let bounds = element.bounds;
    bounds.is_some_and(|bounds| usable.boxes.iter().any(|one| is_near(bounds, *one)))
}

pub(crate) fn compare(view: &View, all: &[Usable]) -> Count {
    let mut count = Count::default();
    let text = gyrus_loops::shown(view, gyrus_loops::FRESH);
    // An id begins its line, or follows the kind that it is an example of.
    let said: Vec<&str> = text
        .split(|one: char| !one.is_ascii_alphanumeric())
        .collect();
    for one in all {
        if let Some(why) = one.excluded() {
            *count.excluded.entry(why).or_default() += 1;
            count.left_out.push(format!(
                "{why:?} {} {} at {:?}",
                one.why, one.what, one.boxes[0]
            ));
            continue;
        }
        count.usable += 1;
        count.in_view += usize::from(one.seen);
        let here = |element: &&Element| at(element, one);
        let Some(own) = view
            .elements
            .iter()
            .find(|element| is_usable(element) && here(element))
        else {
            let there = view.elements.iter().find(here);
            let told = there.map_or("nothing".to_owned(), |own| {
                format!("{} {:?}", own.role, own.name)
            });
            let view = if one.in_view {
                "in view"
            } else {
                "out of view"
            };
            count.missed.push(format!(
                "{} {} at {:?}, {view}: {told} stands there",
                one.why, one.what, one.boxes[0]
            ));
            continue;
        };
        count.found += 1;
        if !one.seen {
            continue;
        }
        let ids = view
            .elements
            .iter()
            .filter(|element| is_usable(element) && here(element));
        if ids
            .map(|own| own.id.to_string())
            .any(|id| said.contains(&id.as_str()))
        {
            count.in_text += 1;
        } else {
            count.findable += usize::from(!own.name.is_empty());
            count.unsaid.push(format!(
                "{} {} {:?}: {}",
                own.id, own.role, own.name, one.what
            ));
        }
    }
    let known = |element: &&Element| all.iter().any(|one| at(element, one));
    let extra = view
        .elements
        .iter()
        .filter(|element| is_usable(element) && element.bounds.is_some() && !known(element));
    count.unknown = extra
        .map(|own| format!("{} {} {:?} at {:?}", own.id, own.role, own.name, own.bounds))
        .collect();
    count.extra = count.unknown.len();
    count
}

fn percent(part: usize, whole: usize) -> String {
    // Tables stay far below 2^52.
    // Counts of elements.
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    format!("{share:.1} %")
}

pub(crate) fn table(counts: &[(&str, usize, Count)]) -> String {
    let mut text = "| application | states | usable | found | | in view | in the text | | by name | extra |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n".to_owned();
    let mut whole = Count::default();
    let mut states = 0;
    let row = |text: &mut String, name: &str, states: usize, one: &Count| {
        let (found, said) = (
            percent(one.found, one.usable),
            percent(one.in_text, one.in_view),
        );
        let _ = writeln!(
            text,
            "| {name} | {states} | {} | {} | {found} | {} | {} | {said} | {} | {} |",
            one.usable, one.found, one.in_view, one.in_text, one.findable, one.extra
        );
    };
    for (name, count_of, one) in counts {
        let reached = count_of - one.failed.len();
        row(&mut text, name, reached, one);
        states += reached;
        let Count {
            usable,
            found,
            extra,
            in_view,
            in_text,
            findable,
            ..
        } = one;
        let sum = Count {
            usable: *usable,
            found: *found,
            extra: *extra,
            in_view: *in_view,
            in_text: *in_text,
            findable: *findable,
            excluded: one.excluded.clone(),
            ..Count::default()
        };
        whole.add(sum, "");
    }
    row(&mut text, "all", states, &whole);
    let _ = writeln!(text, "\nleft out: {:?}", whole.excluded);
    text
}
