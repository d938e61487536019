//! The roles and states of the accessibility bus (`AtspiRole` and `AtspiStateType` of
//! at-spi2-core), in the words of ARIA.

use std::collections::BTreeSet;

use gyrus_contract::ElementState;

/// The states of an element, as bits in the order of `AtspiStateType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementStates(pub(super) u64);

impl ElementStates {
    /// Whether the state of this number is set.
    pub(super) fn has(self, number: u32) -> bool {
        self.0 & (1 << number) != 0
    }
}

/// The role of a window that is neither frame nor dialog, such as a menu's.
pub(super) const WINDOW: u32 = 69;

/// Role number of a menu, which also holds the options of an open list.
pub(super) const MENU: u32 = 33;

/// The role of a page in a browser.
pub(super) const PAGE: u32 = 95;

pub(super) const ACTIVE: u32 = 1;
const BUSY: u32 = 3;
pub(super) const FOCUSED: u32 = 12;
const SELECTED: u32 = 23;
const SHOWING: u32 = 25;
const VISIBLE: u32 = 30;

/// Returns the ARIA role of a role; `None` for a part that only arranges others.
pub(super) fn role(number: u32) -> Option<&'static str> {
    Some(match number {
        2 | 101 | 102 => "alert",
        5 => "grid",
        7 => "checkbox",
        8 => "menuitemcheckbox",
        10 | 57 => "columnheader",
        11 => "combobox",
        6 | 18 | 26 | 27 => "img",
        16 | 19 => "dialog",
        23 | 69 => "window",
        29 | 73 | 81 | 116 => "text",
        31 | 98 => "list",
        32 => "listitem",
        MENU => "menu",
        34 => "menubar",
        35 => "menuitem",
        37 => "tab",
        38 => "tablist",
        40 | 61 | 79 => "textbox",
        41 => "menu",
        42 => "progressbar",
        43 | 62 => "button",
        44 => "radio",
        45 => "menuitemradio",
        47 | 58 => "rowheader",
        51 => "slider",
        52 => "spinbutton",
        54 => "status",
        55 | 66 => "table",
        56 => "cell",
        60 => "terminal",
        63 => "toolbar",
        64 => "tooltip",
        65 => "tree",
        82 | 92..=96 => "document",
        83 => "heading",
        87 => "form",
        88 => "link",
        90 => "row",
        91 => "treeitem",
        99 => "group",
        _ => return None,
    })
}

/// Whether the role is that of text that a person can edit.
pub(super) fn takes_text(number: u32) -> bool {
    matches!(number, 11 | 12 | 40 | 52 | 60 | 61 | 79)
}

/// Whether the text of an element of this role is read: what a person can enter, or reads there.
/// Never a secret.
pub(super) fn shows_text(number: u32) -> bool {
    let is_read = takes_text(number) || role(number) == Some("text");
    is_read && !is_secret(number)
}

/// Whether elements of this role hold secrets.
pub(super) fn is_secret(number: u32) -> bool {
    number == 40
}

/// Whether a person clicks elements of this role although its counterpart in ARIA is only read: a
/// menu, an icon, an item of a list, a cell, a terminal.
fn is_clicked(number: u32) -> bool {
    matches!(number, 10 | 26 | 32 | 33 | 41 | 56 | 57 | 60)
}

/// Whether the role is that of a pane with all that a window shows.
pub(super) fn is_pane(number: u32) -> bool {
    number == 46
}

/// Whether the role is that of a box that shows a part of its content.
pub(super) fn scrolls(number: u32) -> bool {
    matches!(number, 49 | 68 | PAGE)
}

/// Whether elements of this role are tables, lists or trees, whose cells are queried separately.
pub(super) fn has_cells(number: u32) -> bool {
    matches!(number, 31 | 55 | 65 | 66 | 98)
}

/// Whether the role is that of a head of a column.
pub(super) fn is_head(number: u32) -> bool {
    matches!(number, 10 | 57)
}

/// Whether the role is that of a menu, also one that opens by a right click.
pub(super) fn is_menu(number: u32) -> bool {
    matches!(number, MENU | 41)
}

/// Whether the role is that of a cell or an item of a list.
pub(super) fn is_cell(number: u32) -> bool {
    matches!(number, 32 | 56 | 91)
}

/// Whether the role is that of a field with a list that opens.
pub(super) fn is_combo_box(number: u32) -> bool {
    number == 11
}

/// Whether an element with these states is about to change.
pub(super) fn is_busy(states: ElementStates) -> bool {
    states.has(BUSY)
}

/// Whether an element with these states is chosen among others.
pub(super) fn is_chosen(states: ElementStates) -> bool {
    states.has(SELECTED)
}

/// Whether an element with these states is drawn once it is scrolled to.
pub(super) fn is_visible(states: ElementStates) -> bool {
    states.has(VISIBLE)
}

/// Whether an element with these states is drawn.
pub(super) fn is_shown(states: ElementStates) -> bool {
    states.has(SHOWING) && states.has(VISIBLE)
}

impl ElementStates {
    /// Marks an element as drawn.
    pub(super) fn show(&mut self) {
        self.0 |= 1 << SHOWING;
    }
}

pub(super) fn states(role: u32, states: ElementStates) -> BTreeSet<ElementState> {
    let named = [
        (FOCUSED, ElementState::Focused),
        (4, ElementState::Checked),
        (32, ElementState::Mixed),
        (SELECTED, ElementState::Selected),
        (20, ElementState::Pressed),
        (10, ElementState::Expanded),
        (5, ElementState::Collapsed),
        (43, ElementState::ReadOnly),
        (33, ElementState::Required),
        (36, ElementState::Invalid),
        (42, ElementState::Opens),
        (17, ElementState::Multiple),
        (BUSY, ElementState::Busy),
    ];
    let mut found: BTreeSet<_> = named
        .into_iter()
        .filter(|(number, _)| states.has(*number))
        .map(|(_, state)| state)
        .collect();
    if is_clicked(role) {
        found.insert(ElementState::Clickable);
    }
    // SENSITIVE and ENABLED: some toolkits set only one of them.
    if !states.has(24) && !states.has(8) {
        found.insert(ElementState::Disabled);
    }
    if is_secret(role) {
        found.insert(ElementState::Masked);
    }
    found
}
