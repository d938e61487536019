//! A view as a tree: what lies in what, and beside what.

use std::{collections::BTreeSet, ops::Range};

use gyrus_contract::{Bounds, Element, ElementId, ElementState, View};

use crate::{desktop, template::one_spaced};

const FIELDS: [&str; 16] = [
    "textbox",
    "searchbox",
    "combobox",
    "listbox",
    "checkbox",
    "radio",
    "switch",
    "slider",
    "spinbutton",
    "file",
    "color",
    "date",
    "time",
    "month",
    "week",
    "datetime",
];

/// Roles of elements that group others.
const GROUPS: [&str; 14] = [
    "dialog",
    "alertdialog",
    "form",
    "tabpanel",
    "main",
    "complementary",
    "region",
    "search",
    "banner",
    "navigation",
    "contentinfo",
    "article",
    "tablist",
    "toolbar",
];

/// Roles of elements that are one of several equal ones.
const ROWS: [&str; 7] = [
    "listitem", "row", "article", "treeitem", "gridcell", "cell", "option",
];

/// Maximum number of pixels between a field and the text over it.
const MOST_OVER: i32 = 24;

/// A view with the ancestors of its elements.
pub(crate) struct PlacedView<'a> {
    pub(crate) view: &'a View,
    parents: Vec<Option<usize>>,
}

impl<'a> PlacedView<'a> {
    pub(crate) fn new(view: &'a View) -> Self {
        let mut open: Vec<usize> = Vec::new();
        let parents = view.elements.iter().enumerate().map(|(index, element)| {
            while open
                .last()
                .is_some_and(|above| view.elements[*above].depth >= element.depth)
            {
                open.pop();
            }
            let parent = open.last().copied();
            open.push(index);
            parent
        });
        let parents = parents.collect();
        Self { view, parents }
    }

    pub(crate) fn element(&self, index: usize) -> &'a Element {
        &self.view.elements[index]
    }

    pub(crate) fn index(&self, id: ElementId) -> Option<usize> {
        self.view
            .elements
            .iter()
            .position(|element| element.id == id)
    }

    /// Returns the ancestors of an element, the nearest first.
    pub(crate) fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parents[index], |above| self.parents[*above])
    }

    pub(crate) fn subtree(&self, index: usize) -> Range<usize> {
        let depth = self.element(index).depth;
        let inner = self.view.elements[index + 1..].iter();
        index..index + 1 + inner.take_while(|inner| inner.depth > depth).count()
    }

    /// Returns the group around an element; `None` is the page.
    pub(crate) fn group(&self, index: usize) -> Option<usize> {
        self.ancestors(index)
            .find(|above| GROUPS.contains(&self.element(*above).role.as_str()))
    }

    /// Returns the elements of a role in a group, but not those in a group inside of it.
    pub(crate) fn in_group(&self, group: Option<usize>, role: &str) -> Vec<usize> {
        let all = 0..self.view.elements.len();
        let of_role =
            all.filter(|index| self.element(*index).role == role && is_shown(self.element(*index)));
        of_role
            .filter(|index| self.group(*index) == group)
            .collect()
    }

    /// Returns the elements that describe one of several equal ones: the row or list item around
    /// it, or the elements after it up to the next of its kind.
    pub(crate) fn row(&self, index: usize) -> Range<usize> {
        let is_row = |above: &usize| ROWS[..4].contains(&self.element(*above).role.as_str());
        if let Some(row) = self.ancestors(index).find(is_row) {
            return self.subtree(row);
        }
        let own = self.element(index);
        let after = self.view.elements[index + 1..].iter();
        let is_beside = |other: &&Element| other.depth >= own.depth && other.role != own.role;
        index..index + 1 + after.take_while(is_beside).count()
    }

    /// Returns the text before or above a one-line field, by their positions.
    pub(crate) fn label(&self, index: usize) -> Option<String> {
        let field = self.element(index);
        if field.states.contains(&ElementState::Multiple) {
            return None;
        }
        let field = field.bounds?;
        let texts = self.view.elements.iter().filter(|it| it.role == "text");
        let texts = texts.filter(|it| is_shown(it) && !name_of(it).is_empty());
        let placed = texts.filter_map(|it| Some((it.bounds?, it)));
        let before = |at: &Bounds| {
            let middle = at.y + at.height / 2;
            let is_beside = (field.y..field.y + field.height).contains(&middle);
            is_beside && at.x + at.width <= field.x
        };
        let over = |at: &Bounds| {
            let end = at.y + at.height;
            let is_over = (end..=end + MOST_OVER).contains(&field.y);
            is_over && at.x < field.x + field.width && at.x + at.width > field.x
        };
        let nearest = placed.clone().filter(|(at, _)| before(at));
        let nearest = nearest.max_by_key(|(at, _)| at.x + at.width);
        let nearest = nearest.or_else(|| {
            let above = placed.filter(|(at, _)| over(at));
            above.max_by_key(|(at, _)| at.y)
        });
        nearest.map(|(_, text)| name_of(text))
    }

    /// Whether an element is one of several equal ones, such as a row of a list or a choice, and
    /// not a part of the site's controls.
    pub(crate) fn is_data(&self, index: usize) -> bool {
        let role = self.element(index).role.as_str();
        let is_in = |roles: &[&str]| {
            self.ancestors(index)
                .any(|above| roles.contains(&self.element(above).role.as_str()))
        };
        let is_of_site = is_in(&[
            "navigation",
            "banner",
            "contentinfo",
            "tablist",
            "menubar",
            "toolbar",
        ]);
        matches!(
            role,
            "radio" | "option" | "row" | "listitem" | "gridcell" | "treeitem"
        ) || (role == "cell" && desktop::is_desktop(self.view))
            || (!is_of_site && is_in(&ROWS))
    }

    /// Whether an element is a row of a list or a table, or inside one.
    pub(crate) fn is_in_row(&self, index: usize) -> bool {
        let mut all = std::iter::once(index).chain(self.ancestors(index));
        all.any(|above| ROWS.contains(&self.element(above).role.as_str()))
    }

    /// Returns the fields of the page with their values, except search fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'a Element> {
        let fields = self.view.elements.iter();
        fields.filter(|element| is_field(element) && element.role != "searchbox")
    }
}

pub(crate) fn is_field_role(role: &str) -> bool {
    FIELDS.contains(&role)
}

pub(crate) fn is_field(element: &Element) -> bool {
    is_field_role(&element.role)
}

/// Whether an element is painted somewhere, perhaps outside of the frame.
pub(crate) fn is_shown(element: &Element) -> bool {
    element
        .bounds
        .is_some_and(|at| at.width > 0 && at.height > 0)
}

/// Whether an element can be used now.
pub(crate) fn is_usable(element: &Element) -> bool {
    is_shown(element) && !element.states.contains(&ElementState::Disabled)
}

pub(crate) fn is_on(element: &Element) -> bool {
    let on = [
        ElementState::Checked,
        ElementState::Selected,
        ElementState::Pressed,
    ];
    on.iter().any(|state| element.states.contains(state))
}

/// Returns the name with single spaces.
pub(crate) fn name_of(element: &Element) -> String {
    one_spaced(&element.name)
}

/// Signs and codes of currencies.
const CURRENCIES: [&str; 16] = [
    "€", "$", "£", "¥", "₹", "₽", "₩", "EUR", "USD", "GBP", "CHF", "JPY", "SEK", "kr", "zł", "Fr.",
];

/// Whether a number is written as an amount without its currency is: `1,234.50`.
fn is_amount(number: &str) -> bool {
    let Some(at) = number.rfind([',', '.']) else {
        return false;
    };
    let (whole, cents) = (&number[..at], &number[at + 1..]);
    let mut groups = whole.split([',', '.', '\'', '’']);
    let is_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    cents.len() == 2
        && is_digits(cents)
        && groups
            .next()
            .is_some_and(|first| (1..=6).contains(&first.len()) && is_digits(first))
        && groups.all(|group| group.len() == 3 && is_digits(group))
}

pub(crate) struct SeenNumber {
    pub(crate) at: Range<usize>,
    /// The amount of money, as written in the text without spaces; `None` for other numbers.
    pub(crate) amount: Option<String>,
}

pub(crate) fn numbers(text: &str) -> Vec<SeenNumber> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..]
        .find(|c: char| c.is_numeric())
        .map(|at| from + at)
    {
        let is_part = |c: char| c.is_numeric() || [',', '.', '\'', '’'].contains(&c);
        let end = text[start..]
            .find(|c: char| !is_part(c))
            .map_or(text.len(), |at| start + at);
        let number = text[start..end].trim_end_matches(|c: char| !c.is_numeric());
        let before = text[..start].trim_end();
        let after = text[start + number.len()..].trim_start();
        let before = CURRENCIES.iter().find(|sign| before.ends_with(**sign));
        let sign = before.or_else(|| CURRENCIES.iter().find(|sign| after.starts_with(**sign)));
        let amount = match sign {
            Some(sign) => Some(format!("{sign}{number}")),
            None => is_amount(number).then(|| number.to_owned()),
        };
        let at = start..start + number.len();
        found.push(SeenNumber { at, amount });
        from = end;
    }
    found
}

/// Returns the amounts of money in a text, as written, without spaces.
pub(crate) fn amounts(text: &str) -> Vec<String> {
    let numbers = numbers(text).into_iter();
    numbers.filter_map(|number| number.amount).collect()
}

pub(crate) fn amounts_of<'e>(elements: impl IntoIterator<Item = &'e Element>) -> BTreeSet<String> {
    let shown = elements.into_iter().filter(|element| is_shown(element));
    shown.flat_map(|element| amounts(&element.name)).collect()
}

pub(crate) fn amounts_of_page(page: &PlacedView<'_>, without_rows: bool) -> BTreeSet<String> {
    let all = 0..page.view.elements.len();
    let counted = all.filter(|at| !without_rows || !page.is_in_row(*at));
    amounts_of(counted.map(|at| page.element(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_found_with_and_without_their_currency() {
        let check = |text: &str, expected: &[&str]| assert_eq!(amounts(text), expected, "{text}");
        check("Total €54.00", &["€54.00"]);
        check("2 × Lamp – 1.234,50 € to Ada", &["€1.234,50"]);
        check("USD 12, or 11 GBP", &["USD12", "GBP11"]);
        check("89.00 and 1'250.00", &["89.00", "1'250.00"]);
        check("09:40, 2031-06-24, 12.05.2031, 3.5, v1.2.3, 4 h 02", &[]);
        check("", &[]);
        check("€", &[]);
    }
}
