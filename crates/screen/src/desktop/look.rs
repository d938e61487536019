//! A look at a desktop: windows of the X server joined with elements of the accessibility bus.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    time::{Duration, Instant},
};

use gyrus_contract::{
    Bounds, Element, ElementId, ElementState, Look, Picture, Rest, ScreenError, Scroll, Seen, Tab,
    View,
};

use super::{
    accessible::{Accessible, Details, Item, Program},
    display::Settled,
    numbers::ElementNumbers,
    pointer::Point,
    roles,
    session::{Session, lost},
    trees::Tree,
    windows::{DesktopWindow, other_user},
};

/// Maximum number of characters of a name or a value.
const MAX_TEXT: usize = 400;

/// Maximum number of characters of a title in a message.
const MAX_TITLE: usize = 100;

/// Time after which a program that is not on the accessibility bus is taken for one without
/// elements.
const WITHOUT_ELEMENTS: Duration = Duration::from_secs(3);

/// Contents of a desktop at one moment.
pub(super) struct Reading {
    /// The windows with menus and hints, the uppermost first.
    pub(super) windows: Vec<DesktopWindow>,
    pub(super) elements: Vec<Element>,
    pub(super) unread: Vec<String>,
    /// The width and the height of the screen in pixels.
    pub(super) size: (i32, i32),
}

impl Reading {
    /// Returns the uppermost window at a point.
    pub(super) fn top(&self, (x, y): Point) -> Option<&DesktopWindow> {
        let is_there = |window: &&DesktopWindow| window.is_shown && window.bounds.contains(x, y);
        self.windows.iter().find(is_there)
    }

    /// Returns the reason, in words, why nothing on the desktop can be used, if a window that no
    /// window manager knows covers all of it: that is how programs lock a screen.
    pub(super) fn locked(&self) -> Option<String> {
        let (width, height) = self.size;
        let covers = |window: &&DesktopWindow| {
            let bounds = window.bounds;
            window.is_popup
                && bounds.x <= 0
                && bounds.y <= 0
                && bounds.x + bounds.width >= width
                && bounds.y + bounds.height >= height
        };
        let cover = self.windows.iter().find(covers)?;
        let by = match cover.class.as_str() {
            "" => "a window without a name",
            class => class,
        };
        Some(format!(
            "the whole screen is covered by {by}, as a lock does; only a person can take that away"
        ))
    }
}

/// Looks at the desktop once it has settled.
pub(super) async fn look(session: &mut Session, wanted: Look) -> Result<Seen, ScreenError> {
    let settled = session.display.settle().await.map_err(lost)?;
    session.numbers.begin_after(wanted.documents);
    let reading = read(session).await?;
    let (hash, frame) = if wanted.frame {
        picture(session, &reading.elements)?
    } else {
        (None, None)
    };
    let listed = || reading.windows.iter().filter(|window| !window.is_popup);
    let active = listed().find(|window| window.is_active);
    let active = active.or(listed().next());
    let (width, height) = reading.size;
    let (width, height) = (width.unsigned_abs(), height.unsigned_abs());
    let view = View {
        session: session.id.clone(),
        address: session.address(active),
        title: active.map_or_else(String::new, |window| window.title.clone()),
        width,
        height,
        frame: None,
        hash,
        scroll: Scroll {
            x: 0,
            y: 0,
            width,
            height,
        },
        tabs: listed()
            .map(|window| Tab {
                number: session.numbers.document(window.id),
                title: window.title.clone(),
                address: session.address(Some(window)),
                is_active: window.is_active,
            })
            .collect(),
        elements: reading.elements,
        dialog: None,
        downloads: Vec::new(),
        held: Vec::new(),
        rest: rest(settled),
        documents: session.numbers.documents(),
        unread: reading.unread,
    };
    Ok(Seen { view, frame })
}

/// Returns the reason why waiting ended, as views have it.
pub(super) fn rest(settled: Settled) -> Rest {
    match settled {
        Settled::Quiet => Rest::Quiet,
        Settled::Restless => Rest::GaveUp {
            waiting_for: "something on the desktop keeps changing".to_owned(),
        },
    }
}

/// Reads the desktop as it is now.
pub(super) async fn read(session: &mut Session) -> Result<Reading, ScreenError> {
    let mut windows = session.display.windows_and_popups().map_err(lost)?;
    let (width, height) = session.display.size().map_err(lost)?;
    // The uppermost first, as a person reads them.
    windows.reverse();
    let nested = session.nested.as_ref();
    // In a sandbox processes have other numbers, and all are the run's.
    if nested.is_none_or(|nested| !nested.enclosure().is_confined()) {
        for window in &mut windows {
            window.other_user = other_user(window.process);
        }
    }
    let (elements, unread) = elements(session, &windows).await;
    let mut reading = Reading {
        windows,
        elements,
        unread,
        size: (i32::from(width), i32::from(height)),
    };
    reading.unread.extend(reading.locked());
    Ok(reading)
}

/// Returns the windows with what is shown in them, and what could not be read.
async fn elements(session: &mut Session, windows: &[DesktopWindow]) -> (Vec<Element>, Vec<String>) {
    let (programs, mut unread) = programs(session, windows).await;
    let mut elements = Vec::new();
    // The menus of a program are told with its uppermost window.
    let mut told = BTreeSet::new();
    for (place, window) in windows.iter().enumerate() {
        if window.is_popup {
            continue;
        }
        let (numbers, above) = (&mut session.numbers, &windows[..place]);
        let document = numbers.document(window.id);
        elements.push(window_element(numbers, window));
        if let (Ok(accessible), Some(tree), true) = (
            &session.accessible,
            Tree::of(window, windows, &programs),
            window.is_shown,
        ) {
            let of = (window, document);
            let mut tops = vec![tree.root];
            if told.insert(&tree.program.bus_name) {
                tops.extend(tree.menus());
            }
            let (inside, is_whole) =
                window_elements(accessible, numbers, of, above, (&tree, &tops)).await;
            elements.extend(inside);
            if !is_whole {
                let title = gyrus_text::shorten(&window.title, MAX_TITLE);
                unread.push(format!(
                    "the places of all elements of “{title}”: its program is slow or hangs"
                ));
            }
        }
    }
    (elements, unread)
}

/// Returns the programs on the accessibility bus, and in words what is missing.
async fn programs(session: &mut Session, windows: &[DesktopWindow]) -> (Vec<Program>, Vec<String>) {
    let asked = match &session.accessible {
        Ok(accessible) => accessible.programs().await,
        Err(why) => Err(why.clone()),
    };
    let told = match asked {
        Ok(told) => told,
        Err(why) => {
            session.reconnect(why).await;
            let again = match &session.accessible {
                Ok(accessible) => accessible.programs().await,
                Err(why) => Err(why.clone()),
            };
            match again {
                Ok(told) => told,
                Err(why) => return (Vec::new(), vec![format!("all elements: {why}")]),
            }
        }
    };
    let (programs, silent) = told;
    let mut unread: Vec<_> = silent
        .iter()
        .map(|one| {
            let shown = windows.iter().find(|window| window.process == one.process);
            let name = shown.map_or("a program without a window", |window| &window.class);
            let (process, why) = (one.process, &one.why);
            format!("the elements of {name} (process {process}): {why}")
        })
        .collect();
    if session.has_new_bus {
        unread.push(
            "the elements of programs that were open when the accessibility bus ended: open them \
             again to see theirs"
                .to_owned(),
        );
    }
    (programs, unread)
}

/// Waits until the uppermost window tells its elements: programs do so a moment after they have
/// drawn it.
pub(super) async fn wait_for_elements(session: &mut Session, most: Duration) {
    let Ok(accessible) = &session.accessible else {
        return;
    };
    let began = Instant::now();
    let telling = async {
        while let Ok(windows) = session.display.windows()
            && let Some(window) = windows.last()
            && let Ok((programs, _)) = accessible.programs().await
        {
            let tree = Tree::of(window, &windows, &programs);
            let has_told =
                tree.is_some_and(|tree| tree.children.contains_key(tree.root.path.as_str()));
            let is_there = programs.iter().any(|one| one.process == window.process);
            if has_told || (!is_there && began.elapsed() > WITHOUT_ELEMENTS) {
                return;
            }
            // Whoever draws is likely to have told more.
            if session.display.settle().await.is_err() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(most, telling).await;
}

pub(super) fn picture(
    session: &Session,
    elements: &[Element],
) -> Result<(Option<u64>, Option<Picture>), ScreenError> {
    let mut pixels = session.display.capture().map_err(lost)?;
    for element in elements {
        if let (true, Some(bounds)) = (
            element.states.contains(&ElementState::Masked),
            element.bounds,
        ) {
            pixels.cover(bounds);
        }
    }
    for bounds in session.display.own_windows().map_err(lost)? {
        pixels.cover(bounds);
    }
    let bytes = pixels.encode().map_err(lost)?;
    let picture = Picture {
        bytes,
        media_type: "image/png",
        width: pixels.width,
        height: pixels.height,
    };
    Ok((Some(pixels.average_hash()), Some(picture)))
}

/// Returns a window as an element.
fn window_element(numbers: &mut ElementNumbers, window: &DesktopWindow) -> Element {
    let document = numbers.document(window.id);
    let active = window.is_active.then_some(ElementState::Focused);
    let hidden = (!window.is_shown).then_some(ElementState::OutOfView);
    Element {
        id: numbers.id(document, String::new()),
        role: "window".to_owned(),
        name: shorten(&window.title),
        value: None,
        address: None,
        states: active.into_iter().chain(hidden).collect(),
        bounds: window.is_shown.then_some(window.bounds),
        depth: 0,
    }
}

/// Returns what is shown in a window, which has this number, and whether that is all of it.
async fn window_elements(
    accessible: &Accessible,
    numbers: &mut ElementNumbers,
    (window, document): (&DesktopWindow, u32),
    above: &[DesktopWindow],
    (tree, tops): (&Tree<'_>, &[&Item]),
) -> (Vec<Element>, bool) {
    let mut listed = Vec::new();
    let top = Place {
        depth: 1,
        is_scrolled: false,
    };
    for below in tops {
        list(tree, below, top, &mut listed);
    }
    let listed = with_cells(accessible, tree, listed).await;
    let asked: Vec<_> = std::iter::once(tree.root)
        .chain(listed.iter().map(|(item, _)| &**item))
        .collect();
    let details = accessible.details(&tree.program.bus_name, &asked).await;
    let is_whole = details.len() == asked.len();
    let of_root = details.first().and_then(|details| details.bounds);
    let shift = shift(of_root, window.bounds);
    let details = details.into_iter().skip(1);
    let details = details.chain(std::iter::repeat_with(Details::default));
    let mut elements = Vec::new();
    for ((item, depth), details) in listed.into_iter().zip(details) {
        let key = format!("{} {}", tree.program.bus_name, item.path);
        let id = numbers.id(document, key);
        elements.extend(element(&item, id, depth, details, shift, above));
    }
    (elements, is_whole)
}

/// Adds the cells of tables that were not handed out with the other elements.
async fn with_cells<'a>(
    accessible: &Accessible,
    tree: &Tree<'a>,
    listed: Vec<(&'a Item, u16)>,
) -> Vec<(Cow<'a, Item>, u16)> {
    let mut all = Vec::new();
    for (item, depth) in listed {
        let is_empty = !tree.children.contains_key(item.path.as_str());
        let has_cells = roles::has_cells(item.role) && is_empty && roles::is_shown(item.states);
        all.push((Cow::Borrowed(item), depth));
        if has_cells {
            let cells = accessible.cells(&tree.program.bus_name, item).await;
            all.extend(cells.into_iter().map(|cell| (Cow::Owned(cell), depth + 1)));
        }
    }
    all
}

/// The place of an item in its tree.
#[derive(Clone, Copy)]
struct Place {
    depth: u16,
    /// Whether it lies in a box that scrolls.
    is_scrolled: bool,
}

/// Lists what is shown below an item, or would be after scrolling, parents first, with its depth.
fn list<'a>(tree: &Tree<'a>, below: &'a Item, at: Place, listed: &mut Vec<(&'a Item, u16)>) {
    // A program may say that an element is its own ancestor.
    if at.depth > 60 || listed.len() > 4_000 {
        return;
    }
    for item in tree.children.get(below.path.as_str()).into_iter().flatten() {
        let is_out_of_view = at.is_scrolled && roles::is_visible(item.states);
        if !roles::is_shown(item.states) && !is_out_of_view {
            continue;
        }
        let says_something = roles::role(item.role).is_some() || !item.name.trim().is_empty();
        if says_something {
            listed.push((item, at.depth));
        }
        let inside = Place {
            depth: at.depth + u16::from(says_something),
            is_scrolled: at.is_scrolled || roles::scrolls(item.role),
        };
        list(tree, item, inside, listed);
    }
}

/// Returns by how much the places of a program's elements are shifted: some toolkits say them from
/// the corner of the window.
fn shift(root: Option<Bounds>, window: Bounds) -> (i32, i32) {
    match root {
        Some(root)
            if (root.x, root.y) == (0, 0)
                && (window.x, window.y) != (0, 0)
                && (root.width - window.width).abs() < 80 =>
        {
            let margin = |whole: i32, shown: i32| (whole - shown).max(0) / 2;
            (
                window.x + margin(window.width, root.width),
                window.y + margin(window.height, root.height),
            )
        }
        Some(_) | None => (0, 0),
    }
}

fn element(
    item: &Item,
    id: ElementId,
    depth: u16,
    details: Details,
    shift: (i32, i32),
    above: &[DesktopWindow],
) -> Option<Element> {
    let role = roles::role(item.role).unwrap_or("group");
    let bounds = details.bounds.map(|bounds| Bounds {
        x: bounds.x + shift.0,
        y: bounds.y + shift.1,
        ..bounds
    });
    let mut states = roles::states(item.role, item.states);
    let is_hidden_cell = roles::is_cell(item.role) && bounds.is_none();
    if is_hidden_cell {
        // It has a place once it is drawn; programs call it shown all the same.
        states.insert(ElementState::OutOfView);
    } else if !roles::is_shown(item.states) {
        // What has no place is in a part that is not open.
        bounds?;
        states.insert(ElementState::OutOfView);
    } else if let Some(bounds) = bounds {
        let (x, y) = (bounds.x + bounds.width / 2, bounds.y + bounds.height / 2);
        let covers = |window: &&DesktopWindow| {
            window.is_shown
                && window.bounds.contains(x, y)
                && !(window.is_popup && is_within(bounds, window.bounds))
        };
        if above.iter().any(|window| covers(&window)) {
            states.insert(ElementState::Covered);
        }
    }
    let is_text = role == "text";
    let takes_text = roles::takes_text(item.role) && !roles::is_secret(item.role);
    let said = details.value.filter(|value| !value.is_empty());
    let mut name = shorten(&item.name);
    if is_text && name.is_empty() {
        name = said.as_deref().map(shorten).unwrap_or_default();
    }
    let value = said.filter(|_| takes_text).map(|value| shorten(&value));
    // A drawing without a name, text without words and an empty cell say nothing.
    if name.is_empty() && value.is_none() && matches!(role, "img" | "text" | "group" | "cell") {
        return None;
    }
    Some(Element {
        id,
        role: role.to_owned(),
        name,
        value,
        address: None,
        states,
        bounds,
        depth,
    })
}

/// Whether a rectangle lies within another, give or take a border: then an element may be one of
/// the menu that is drawn there.
pub(super) fn is_within(bounds: Bounds, around: Bounds) -> bool {
    const BORDER: i32 = 6;
    bounds.x >= around.x - BORDER
        && bounds.y >= around.y - BORDER
        && bounds.x + bounds.width <= around.x + around.width + BORDER
        && bounds.y + bounds.height <= around.y + around.height + BORDER
}

fn shorten(text: &str) -> String {
    gyrus_text::shorten(text.trim(), MAX_TEXT).into_owned()
}
