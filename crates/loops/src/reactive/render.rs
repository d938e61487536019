//! Formats a view as text for a model: first the usable elements, then readable text, within a
//! budget of tokens.
//!
//! Every usable element in view has a line, whatever it costs; text fills the rest in reading
//! order, headings and alerts first. Elements out of view are counted by kind. Rows beyond the
//! first eight are folded, unless something in them is usable. All text of the page is in quotation
//! marks (see `words`).

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use gyrus_contract::{Download, DownloadState, Element, ElementState, Rest, View};
use gyrus_text::{first_chars, tokens};

use super::{
    line::{BESIDE_PICTURE, OPERABLE, boxed, operable, role, said},
    words::quoted,
};

/// Maximum number of rows of a list or table whose text is shown.
const ROWS: usize = 8;

/// Maximum number of usable elements with a line; a page with more is a grid of hundreds of cells.
const MOST: usize = 250;

/// Roles of elements that are only usable because they react to clicks.
const CLICKED: [&str; 5] = ["generic", "row", "cell", "gridcell", "listitem"];

/// Roles of containers that are listed even beside a picture: a list has an id, the others block
/// the page or are documents of their own.
const TOLD: [&str; 4] = ["dialog", "alertdialog", "listbox", "iframe"];

/// Maximum size in tokens of a page that is listed in full even beside a picture.
const SMALL: usize = 320;

/// Maximum number of characters of a text.
const SAID: usize = 200;

/// The limits for showing a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct RenderBudget<'a> {
    /// Number of tokens for everything but usable elements.
    pub(super) tokens: usize,
    /// Whether the model sees the picture as well, and can read the text there.
    pub(super) with_picture: bool,
    /// The goal; elements out of view that share a word with it are named first.
    pub(super) goal: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ElementClass {
    /// A usable element.
    Operable,
    /// An important text, shown before other texts.
    Loud,
    Plain,
    /// A container whose kind is worth showing.
    Box,
    /// One of many similar rows.
    Row,
    Nothing,
}

fn class(element: &Element) -> ElementClass {
    let uses = [
        ElementState::Clickable,
        ElementState::Draggable,
        ElementState::Droppable,
        ElementState::Opens,
        ElementState::Scrolls,
    ];
    match element.role.as_str() {
        "button" | "link" | "textbox" | "searchbox" | "combobox" | "checkbox" | "radio"
        | "switch" | "slider" | "spinbutton" | "menuitem" | "menuitemcheckbox"
        | "menuitemradio" | "tab" | "treeitem" | "option" | "file" | "color" | "date" | "time"
        | "month" | "week" | "datetime" | "canvas" | "application" | "scrollbar" => {
            ElementClass::Operable
        }
        _ if uses.iter().any(|state| element.states.contains(state)) => ElementClass::Operable,
        "heading" | "alert" | "status" | "log" | "timer" | "progressbar" | "meter" => {
            ElementClass::Loud
        }
        "dialog" | "alertdialog" | "table" | "grid" | "treegrid" | "menu" | "menubar"
        | "toolbar" | "tablist" | "radiogroup" | "listbox" | "tree" | "iframe" => ElementClass::Box,
        "form" | "navigation" | "region" | "search" | "group" | "article" | "complementary"
            if !element.name.is_empty() =>
        {
            ElementClass::Box
        }
        "row" | "listitem" => ElementClass::Row,
        _ if element.name.is_empty() && element.value.is_none() => ElementClass::Nothing,
        "list" | "main" | "banner" | "contentinfo" | "generic" | "none" | "presentation"
        | "rowgroup" | "document" => ElementClass::Nothing,
        _ => ElementClass::Plain,
    }
}

fn is_in_view(element: &Element) -> bool {
    element.bounds.is_some() && !element.states.contains(&ElementState::OutOfView)
}

struct ViewLine {
    text: String,
    depth: usize,
    rank: Rank,
}

/// The priority of a line when not all can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Always,
    First,
    Then,
    /// A container, shown if something in it is shown.
    WithContent,
}

/// Formats the whole view in lines. A small page is shown whole, even beside a picture.
pub(super) fn render(view: &View, budget: RenderBudget<'_>) -> String {
    let whole = RenderBudget {
        tokens: SMALL,
        with_picture: false,
        ..budget
    };
    match budget.with_picture.then(|| lines(view, whole)) {
        Some((text, true)) if tokens(&text) <= SMALL => text,
        _ => lines(view, budget).0,
    }
}

/// Returns the lines that fit, and whether they are all.
fn lines(view: &View, budget: RenderBudget<'_>) -> (String, bool) {
    let mut head = header(view, budget);
    let mut walk = ElementWalk::new(view, budget);
    walk.elements();
    let (lines, more, behind) = (walk.lines, walk.more, walk.behind.len());
    let away = out_of_view(view, budget);
    let fixed: usize = head.iter().chain(&away).map(|line| tokens(line) + 1).sum();
    let (chosen, left_out) = choose(&lines, budget.tokens.saturating_sub(fixed));
    for (line, _) in lines.iter().zip(&chosen).filter(|(_, chosen)| **chosen) {
        head.push(format!("{}{}", " ".repeat(line.depth), line.text));
    }
    if more > 0 {
        head.push(format!(
            "({more} more controls in view; `find` shows them by name)"
        ));
    }
    if behind > 0 {
        let controls = gyrus_text::counted(behind, "control");
        let over = front(view).map_or("what lies over the page", |_| "the dialog");
        head.push(format!("({controls} behind {over})"));
    }
    if left_out > 0 && !budget.with_picture {
        head.push(format!(
            "({left_out} more texts in view; `extract` reads them)"
        ));
    }
    head.extend(away);
    (head.join("\n"), more == 0 && left_out == 0)
}

/// Returns whether each line is shown, and the number of hidden texts.
fn choose(lines: &[ViewLine], budget: usize) -> (Vec<bool>, usize) {
    let mut chosen: Vec<bool> = lines.iter().map(|line| line.rank == Rank::Always).collect();
    let mut left = budget;
    let mut left_out = 0;
    for rank in [Rank::First, Rank::Then] {
        for (index, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.rank == rank)
        {
            let cost = tokens(&line.text) + 1;
            match left.checked_sub(cost) {
                Some(rest) => (left, chosen[index]) = (rest, true),
                None => left_out += 1,
            }
        }
    }
    for index in (0..lines.len()).rev() {
        if lines[index].rank == Rank::WithContent {
            let inner =
                (index + 1..lines.len()).take_while(|at| lines[*at].depth > lines[index].depth);
            chosen[index] = inner.into_iter().any(|at| chosen[at]);
        }
    }
    (chosen, left_out)
}

/// Returns the lines about the page as a whole.
fn header(view: &View, budget: RenderBudget<'_>) -> Vec<String> {
    let mut lines = vec![if budget.with_picture {
        format!("page at {}", quoted(&view.address, 80))
    } else {
        let (title, address) = (quoted(&view.title, 80), quoted(&view.address, 160));
        format!("page {title} at {address}")
    }];
    if let Some(dialog) = &view.dialog {
        let kind = quoted(&dialog.kind, 20);
        let offered = if dialog.offered.is_empty() {
            String::new()
        } else {
            format!(", offering {}", quoted(&dialog.offered, 80))
        };
        let message = quoted(&dialog.message, 300);
        lines.push(match dialog.kind.as_str() {
            "permission" => format!(
                "the page asks: {message}; use answer_dialog (`text` for a position: \
                 LATITUDE,LONGITUDE), or go on without"
            ),
            "login" => format!(
                "dialog {kind} holds the page up: {message}; ask a person to log in with \
                 hand_over, or answer_dialog no"
            ),
            _ => format!("dialog {kind} holds the page up: {message}{offered}; use answer_dialog"),
        });
    }
    lines.extend(view.held.iter().map(|held| {
        let up = if held.blocks {
            " and holds the page up"
        } else {
            ""
        };
        let request = quoted(&held.to_string(), 200);
        format!("{request} waits{up}; use answer_request")
    }));
    if view.tabs.len() > 1 {
        let tabs: Vec<_> = view
            .tabs
            .iter()
            .map(|tab| {
                let here = if tab.is_active { " (this)" } else { "" };
                format!("{} {}{here}", tab.number, quoted(&tab.title, 30))
            })
            .collect();
        lines.push(format!("tabs {}", tabs.join(", ")));
    }
    lines.extend(scrolled(view));
    lines.extend(view.downloads.iter().rev().take(3).map(download));
    match &view.rest {
        Rest::GaveUp { waiting_for } => {
            lines.push(format!("still busy: {}", quoted(waiting_for, 80)))
        }
        Rest::Gone => lines.push("the page went away while it was read".to_owned()),
        Rest::Quiet if is_blank(view) => {
            lines.push("nothing is on the page yet; it may still be drawing".to_owned())
        }
        Rest::Quiet | Rest::Dialog | Rest::Held => {}
    }
    lines.extend(
        view.unread
            .iter()
            .take(3)
            .map(|what| format!("not readable: {}", quoted(what, 80))),
    );
    lines
}

/// Whether a page was read, and was empty.
fn is_blank(view: &View) -> bool {
    let is_page = !["", "about:blank"].contains(&view.address.as_str());
    is_page && view.elements.is_empty() && view.unread.is_empty()
}

fn scrolled(view: &View) -> Option<String> {
    let page = view.height.max(1);
    let above = view.scroll.y;
    let below = view
        .scroll
        .height
        .saturating_sub(above.saturating_add(view.height));
    let pages = |pixels: u32| f64::from(pixels) / f64::from(page);
    (above > 0 || below > page / 20).then(|| {
        format!(
            "scrolled: {:.1} pages above, {:.1} below",
            pages(above),
            pages(below)
        )
    })
}

fn download(download: &Download) -> String {
    let name = quoted(&download.name, 60);
    match (&download.path, download.state) {
        (Some(path), DownloadState::Done) => format!("downloaded {name} to {}", quoted(path, 100)),
        (None, DownloadState::Done) => format!("downloaded {name}"),
        (_, DownloadState::Running) => format!("downloading {name}"),
        (_, DownloadState::Failed) => format!("download failed: {name}"),
    }
}

/// An ancestor of the present element.
struct Above<'a> {
    depth: u16,
    /// The text of an ancestor, if its line contains it already.
    says: Option<&'a str>,
    is_shown_box: bool,
    /// Number of rows seen directly below the element.
    rows: usize,
}

/// Returns the usable elements with a line, if there are too many: first those that stand alone,
/// then those in rows, last those that only react to clicks. A pager below a large grid is worth
/// more than one of its cells.
fn with_line(view: &View) -> BTreeSet<usize> {
    let mut rows: Vec<u16> = Vec::new();
    let mut ranked = Vec::new();
    let behind = behind(view);
    for (index, element) in view.elements.iter().enumerate() {
        while rows.last().is_some_and(|row| *row >= element.depth) {
            rows.pop();
        }
        let class = class(element);
        if class == ElementClass::Operable && is_in_view(element) && !behind.contains(&index) {
            let only_clicks = CLICKED.contains(&element.role.as_str());
            ranked.push((only_clicks, !rows.is_empty(), index));
        }
        if ["row", "listitem"].contains(&element.role.as_str()) {
            rows.push(element.depth);
        }
    }
    ranked.sort_unstable();
    let first = ranked.into_iter().take(MOST);
    first.map(|(_, _, index)| index).collect()
}

/// Returns the range of the dialog in front, with its content.
fn front(view: &View) -> Option<Range<usize>> {
    let is_dialog = |one: &Element| {
        ["dialog", "alertdialog"].contains(&one.role.as_str())
            && is_in_view(one)
            && !one.states.contains(&ElementState::Covered)
    };
    let start = view.elements.iter().rposition(is_dialog)?;
    let depth = view.elements[start].depth;
    let inner = view.elements[start + 1..]
        .iter()
        .take_while(|it| it.depth > depth);
    let end = start + 1 + inner.count();
    (end > start + 1).then_some(start..end)
}

/// Returns the elements that are unusable until another one is closed: those behind a dialog, or
/// behind anything else that lies over most of the page.
fn behind(view: &View) -> BTreeSet<usize> {
    let front = front(view);
    let is_outside = |index: &usize| front.as_ref().is_none_or(|front| !front.contains(index));
    let used = (0..view.elements.len()).filter(|index| {
        let element = &view.elements[*index];
        class(element) == ElementClass::Operable && is_in_view(element)
    });
    let (covered, others): (BTreeSet<usize>, BTreeSet<usize>) =
        used.filter(is_outside).partition(|index| {
            view.elements[*index]
                .states
                .contains(&ElementState::Covered)
        });
    let is_overlay = covered.len() >= OVERLAID && covered.len() > others.len();
    if front.is_some() || is_overlay {
        covered
    } else {
        BTreeSet::new()
    }
}

/// Minimum number of covered elements for which the cover counts as lying over the page.
const OVERLAID: usize = 3;

/// Whether everything usable outside of the dialog lies behind it.
fn is_modal(view: &View, front: &Range<usize>, behind: &BTreeSet<usize>) -> bool {
    let mut outside = (0..view.elements.len()).filter(|index| !front.contains(index));
    !behind.is_empty()
        && outside.all(|index| {
            let element = &view.elements[index];
            class(element) != ElementClass::Operable
                || !is_in_view(element)
                || behind.contains(&index)
        })
}

/// Visits the elements that are in view.
struct ElementWalk<'a> {
    view: &'a View,
    budget: RenderBudget<'a>,
    above: Vec<Above<'a>>,
    lines: Vec<ViewLine>,
    /// The usable elements with a line.
    with_line: BTreeSet<usize>,
    /// Number of usable elements in view by their name in the listing beside a picture.
    named: BTreeMap<&'a str, usize>,
    more: usize,
    /// Number of elements still to come in the present row.
    rest_of_row: usize,
    /// Indices of usable elements behind a dialog.
    behind: BTreeSet<usize>,
    /// A dialog that covers everything else.
    modal: Option<Range<usize>>,
}

impl<'a> ElementWalk<'a> {
    fn new(view: &'a View, budget: RenderBudget<'a>) -> Self {
        let mut named = BTreeMap::new();
        let used =
            |element: &&Element| class(element) == ElementClass::Operable && is_in_view(element);
        for element in view.elements.iter().filter(used) {
            *named
                .entry(first_chars(&element.name, BESIDE_PICTURE))
                .or_default() += 1;
        }
        let behind = behind(view);
        let modal = front(view).filter(|front| is_modal(view, front, &behind));
        Self {
            behind,
            modal,
            named,
            view,
            budget,
            above: Vec::new(),
            lines: Vec::new(),
            with_line: with_line(view),
            more: 0,
            rest_of_row: 0,
        }
    }

    fn elements(&mut self) {
        for index in 0..self.view.elements.len() {
            let depth = self.view.elements[index].depth;
            while self.above.last().is_some_and(|above| above.depth >= depth) {
                self.leave();
            }
            self.element(index);
        }
        while !self.above.is_empty() {
            self.leave();
        }
    }

    /// Leaves the innermost element, and adds a line with the number of its folded rows.
    fn leave(&mut self) {
        let folded = self
            .above
            .pop()
            .map_or(0, |above| above.rows.saturating_sub(ROWS));
        if folded > 0 && !self.budget.with_picture {
            let text = format!("({folded} more rows in view; `extract` or `find` shows them)");
            self.push(text, self.depth(), Rank::First);
        }
    }

    fn depth(&self) -> usize {
        let boxes = self.above.iter().filter(|above| above.is_shown_box);
        boxes.count().min(3)
    }

    fn element(&mut self, index: usize) {
        let element = &self.view.elements[index];
        let class = class(element);
        let depth = self.depth();
        let mut here = Above {
            depth: element.depth,
            says: None,
            is_shown_box: false,
            rows: 0,
        };
        let in_row = self.rest_of_row > 0;
        self.rest_of_row = self.rest_of_row.saturating_sub(1);
        let is_front = self.modal.as_ref().map(|modal| modal.contains(&index));
        // The words of a dialog that covers everything come before all others.
        let (loud, plain) = if is_front == Some(true) {
            (Rank::Always, Rank::Always)
        } else {
            (Rank::First, Rank::Then)
        };
        match class {
            ElementClass::Nothing => {}
            ElementClass::Operable if self.behind.contains(&index) => {}
            ElementClass::Loud | ElementClass::Plain | ElementClass::Row
                if is_front == Some(false) => {}
            _ if !is_in_view(element) && class != ElementClass::Box => {}
            ElementClass::Operable => {
                here.says = Some(first_chars(&element.name, OPERABLE));
                if !self.with_line.contains(&index) {
                    self.more += 1
                } else {
                    self.push(operable(self.view, index, self.budget), depth, Rank::Always)
                }
            }
            // The picture shows groups, except for containers that cover everything else.
            ElementClass::Box
                if self.budget.with_picture && !TOLD.contains(&element.role.as_str()) => {}
            ElementClass::Box => {
                here.is_shown_box = true;
                // An option is chosen by the id of its list, whatever part of the list is in view.
                let rank = if element.role == "listbox" && is_in_view(element) {
                    Rank::Always
                } else {
                    Rank::WithContent
                };
                self.push(boxed(element), depth, rank);
            }
            ElementClass::Row => self.row(index, depth),
            ElementClass::Loud if self.budget.with_picture && element.role == "heading" => {}
            ElementClass::Loud if !self.is_said(element) && !in_row => {
                here.says = Some(first_chars(&element.name, SAID));
                self.push(said(element, SAID), depth, loud);
            }
            ElementClass::Plain
                if !self.is_said(element) && !in_row && !self.budget.with_picture =>
            {
                here.says = Some(first_chars(&element.name, SAID));
                self.push(said(element, SAID), depth, plain);
            }
            ElementClass::Loud | ElementClass::Plain => {}
        }
        self.above.push(here);
    }

    fn push(&mut self, text: String, depth: usize, rank: Rank) {
        self.lines.push(ViewLine { text, depth, rank });
    }

    /// Whether an ancestor shows the text already, as a link does with the text in it.
    fn is_said(&self, element: &Element) -> bool {
        let name = element.name.trim();
        self.above
            .iter()
            .any(|above| above.says.is_some_and(|says| says.contains(name)))
    }

    /// Formats a row in one line; usable elements in it have lines of their own.
    fn row(&mut self, index: usize, depth: usize) {
        let row = &self.view.elements[index];
        let inner = &self.view.elements[index + 1..];
        let inner = &inner[..inner.iter().take_while(|it| it.depth > row.depth).count()];
        // A list item that contains a list is not a row.
        if inner
            .iter()
            .any(|it| matches!(class(it), ElementClass::Row | ElementClass::Box))
        {
            return;
        }
        let used = inner
            .iter()
            .any(|it| class(it) == ElementClass::Operable && is_in_view(it));
        let mut words: Vec<&str> = Vec::new();
        let texts = inner
            .iter()
            .filter(|it| matches!(class(it), ElementClass::Plain | ElementClass::Loud));
        // The row's own name tells what its usable elements are about.
        let own = used.then_some(row.name.trim());
        for text in own.into_iter().chain(texts.map(|it| it.name.trim())) {
            let known = inner
                .iter()
                .filter(|it| class(it) == ElementClass::Operable)
                .any(|it| it.name.contains(text));
            if !text.is_empty() && !known && !words.iter().any(|word| word.contains(text)) {
                words.push(text);
            }
        }
        if words.is_empty() && !used && !row.name.is_empty() {
            words.push(&row.name);
        }
        self.rest_of_row = inner.len();
        let rows = match self.above.last_mut() {
            Some(above) => {
                above.rows += usize::from(!used);
                above.rows
            }
            None => 1,
        };
        if words.is_empty() || (rows > ROWS && !used) {
            return;
        }
        // Beside a picture, a name that no other element has identifies the row.
        let is_known = |it: &Element| {
            let count = self
                .named
                .get(first_chars(&it.name, BESIDE_PICTURE))
                .copied();
            class(it) == ElementClass::Operable
                && is_in_view(it)
                && !it.name.is_empty()
                && count == Some(1)
        };
        if self.budget.with_picture && inner.iter().any(is_known) {
            return;
        }
        // The row tells what a button in it is about.
        let (most, rank) = match (used, self.budget.with_picture) {
            (true, false) => (80, Rank::Always),
            (true, true) => (30, Rank::Always),
            (false, false) => (160, Rank::Then),
            (false, true) => return,
        };
        self.push(
            format!("row {}", quoted(&words.join(" | "), most)),
            depth,
            rank,
        );
    }
}

/// Returns lines about the usable elements elsewhere on the page, by side and kind.
fn out_of_view(view: &View, budget: RenderBudget<'_>) -> Vec<String> {
    let height = i64::from(view.height);
    let side = |element: &Element| {
        let bounds = element
            .bounds
            .filter(|_| element.states.contains(&ElementState::OutOfView))?;
        let (top, bottom) = (
            i64::from(bounds.y),
            i64::from(bounds.y) + i64::from(bounds.height),
        );
        Some(match (bottom <= 0, top >= height) {
            (true, _) => "above",
            (_, true) => "below",
            (false, false) => "beside",
        })
    };
    let wanted = words_of(budget.goal);
    let mut lines = Vec::new();
    for place in ["above", "beside", "below"] {
        let mut kinds: Vec<(&str, Vec<&Element>)> = Vec::new();
        let there = view
            .elements
            .iter()
            .filter(|it| class(it) == ElementClass::Operable);
        for element in there.filter(|element| side(element) == Some(place)) {
            match kinds.iter_mut().find(|(role, _)| *role == element.role) {
                Some((_, found)) => found.push(element),
                None => kinds.push((&element.role, vec![element])),
            }
        }
        if kinds.is_empty() {
            continue;
        }
        let all: usize = kinds.iter().map(|(_, found)| found.len()).sum();
        let kinds: Vec<_> = kinds
            .iter()
            .filter_map(|(_, found)| group(found, &wanted, budget.with_picture))
            .collect();
        lines.push(match (kinds.is_empty(), budget.with_picture) {
            (true, _) => format!("{place}: {all} controls"),
            (false, true) => format!("{place}: {all} controls, among them {}", kinds.join("; ")),
            (false, false) => format!("{place}: {}", kinds.join("; ")),
        });
    }
    lines
}

/// Number of named elements out of view, by side and kind; and the maximum where several share the
/// most words with the goal.
const EXAMPLES: usize = 3;
const WANTED: usize = 6;

/// Minimum length of a compared word, except for numbers.
const SHORTEST: usize = 3;

/// Words that goals and controls have in common without being related.
const COMMON: [&str; 20] = [
    "and", "the", "for", "with", "from", "into", "that", "this", "then", "all", "click", "select",
    "find", "enter", "press", "button", "link", "page", "text", "one",
];

/// Returns the words of a text for comparisons.
fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit());
    let words = words.filter(|word| word.chars().count() >= SHORTEST || is_number(word));
    let words = words.map(str::to_lowercase);
    words
        .filter(|word| !COMMON.contains(&word.as_str()))
        .collect()
}

/// Describes a group of elements with some of their names: first those that share the most words
/// with the goal. Beside a picture only those are named.
fn group(found: &[&Element], goal: &BTreeSet<String>, only_wanted: bool) -> Option<String> {
    let shared = |element: &Element| words_of(&element.name).intersection(goal).count();
    let mut named: Vec<(usize, &Element)> = found
        .iter()
        .filter(|element| !element.name.trim().is_empty())
        .map(|element| (shared(element), *element))
        .filter(|(shared, _)| *shared > 0 || !only_wanted)
        .collect();
    named.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    let mut names = BTreeSet::new();
    named.retain(|(_, element)| names.insert(&element.name));
    let best = named.first().map_or(0, |(shared, _)| *shared);
    let is_best = |shared: usize| shared > 0 && shared == best;
    let wanted = named.iter().filter(|(shared, _)| is_best(*shared)).count();
    named.truncate(wanted.clamp(EXAMPLES, WANTED));
    let examples: Vec<String> = named
        .iter()
        .map(|(_, element)| format!("{} {}", element.id, quoted(&element.name, 24)))
        .collect();
    let kind = found
        .first()
        .map(|element| role(element))
        .unwrap_or_default();
    let such = match (examples.is_empty(), examples.len() < found.len()) {
        (true, _) if only_wanted => return None,
        (true, _) => String::new(),
        (false, true) => format!(", e.g. {}", examples.join(", ")),
        (false, false) => format!(": {}", examples.join(", ")),
    };
    Some(format!("{} {kind}{such}", found.len()))
}

/// Whether the tree shows so little of a view that a picture is worth its price.
pub(super) fn says_little(view: &View) -> bool {
    // What covers them without being a dialog may have to be seen.
    let behind = front(view).map_or_else(BTreeSet::new, |_| behind(view));
    let operable = || {
        let reached = view.elements.iter().enumerate();
        let reached = reached.filter(|(index, _)| !behind.contains(index));
        let in_view = reached
            .map(|(_, element)| element)
            .filter(|element| is_in_view(element));
        in_view.filter(|element| class(element) == ElementClass::Operable)
    };
    let named = operable()
        .filter(|element| !element.name.trim().is_empty())
        .count();
    let unnamed = operable().count() - named;
    let covered = operable()
        .filter(|element| element.states.contains(&ElementState::Covered))
        .count();
    let frame = i64::from(view.width) * i64::from(view.height);
    let paints = |element: &Element| {
        let drawn = [
            "canvas",
            "application",
            "graphics-document",
            "video",
            "embed",
            "object",
        ];
        let bounds = element
            .bounds
            .filter(|_| drawn.contains(&element.role.as_str()));
        bounds.is_some_and(|at| i64::from(at.width) * i64::from(at.height) * 10 >= frame)
    };
    let text = || {
        let shown = view.elements.iter().filter(|element| is_in_view(element));
        shown.map(|element| element.name.len()).sum::<usize>()
    };
    let is_blank = view.elements.is_empty() && ["", "about:blank"].contains(&view.address.as_str());
    if is_blank {
        return false;
    }
    !view.unread.is_empty()
        || view.elements.iter().any(paints)
        || (named < 3 && text() < 200)
        || unnamed > named
        || covered * 4 > named + unnamed
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
