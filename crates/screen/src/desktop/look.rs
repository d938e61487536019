//! A look at a desktop: windows of the X server joined with elements of the accessibility bus.

use std::{
    collections::{BTreeMap, BTreeSet},
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
    roles,
    session::{Session, lost},
    windows::DesktopWindow,
};

/// Maximum number of characters of a name or a value.
const MAX_TEXT: usize = 400;

/// Time after which a program that is not on the accessibility bus is taken for one without
/// elements.
const WITHOUT_ELEMENTS: Duration = Duration::from_secs(3);

/// Elements of one window, found on the accessibility bus.
struct Tree<'a> {
    program: &'a Program,
    /// The items by the path of their parent, in their order.
    children: BTreeMap<&'a str, Vec<&'a Item>>,
    root: &'a Item,
}

impl<'a> Tree<'a> {
    /// Returns the menus of the program that hang at no other element: they are windows without a
    /// name.
    fn menus(&self) -> impl Iterator<Item = &'a Item> {
        let root = &self.root.path;
        let items = self.program.items.iter();
        items.filter(move |item| {
            item.role == roles::WINDOW
                && item.name.is_empty()
                && item.path != *root
                && roles::is_shown(item.states)
        })
    }
}

/// Contents of a desktop at one moment.
pub(super) struct Reading {
    /// The windows with menus and hints, the uppermost first.
    pub(super) windows: Vec<DesktopWindow>,
    pub(super) elements: Vec<Element>,
    pub(super) unread: Vec<String>,
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
    let (width, height) = (
        u32::from(session.display.screen.width_in_pixels),
        u32::from(session.display.screen.height_in_pixels),
    );
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
    // The uppermost first, as a person reads them.
    windows.reverse();
    let (elements, unread) = elements(session, &windows).await;
    Ok(Reading {
        windows,
        elements,
        unread,
    })
}

/// Returns the windows with what is shown in them, and what could not be read.
async fn elements(session: &mut Session, windows: &[DesktopWindow]) -> (Vec<Element>, Vec<String>) {
    let (programs, unread) = match &session.accessible {
        Ok(accessible) => match accessible.programs().await {
            Ok(found) => found,
            Err(why) => (Vec::new(), vec![why]),
        },
        Err(why) => (Vec::new(), vec![why.clone()]),
    };
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
            tree_of(window, windows, &programs),
            window.is_shown,
        ) {
            let of = (window, document);
            let mut tops = vec![tree.root];
            if told.insert(&tree.program.bus_name) {
                tops.extend(tree.menus());
            }
            elements.extend(window_elements(accessible, numbers, of, above, (&tree, &tops)).await);
        }
    }
    (elements, unread)
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
            let tree = tree_of(window, &windows, &programs);
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

fn picture(
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

/// Returns what is shown in a window, which has this number.
async fn window_elements(
    accessible: &Accessible,
    numbers: &mut ElementNumbers,
    (window, document): (&DesktopWindow, u32),
    above: &[DesktopWindow],
    (tree, tops): (&Tree<'_>, &[&Item]),
) -> Vec<Element> {
    let mut listed = Vec::new();
    for top in tops {
        list(tree, top, 1, &mut listed);
    }
    let asked: Vec<_> = listed
        .iter()
        .map(|(item, _)| (tree.program.bus_name.as_str(), *item))
        .chain([(tree.program.bus_name.as_str(), tree.root)])
        .collect();
    let mut details = accessible.details(&asked).await;
    let of_root = details.pop().and_then(|details| details.bounds);
    let shift = shift(of_root, window.bounds);
    let mut elements = Vec::new();
    for ((item, depth), details) in listed.into_iter().zip(details) {
        let key = format!("{} {}", tree.program.bus_name, item.path);
        let id = numbers.id(document, key);
        elements.extend(element(item, id, depth, details, shift, above));
    }
    elements
}

/// Returns the tree of a window: the top with its title. Of several the one of its program counts,
/// which is known by its process, or, as a program under a keeper tells another number than the bus,
/// by its other windows. A message has a top with another name than its window, so then those that
/// are called like other windows come last, and the one that is active like the window first.
fn tree_of<'a>(
    window: &DesktopWindow,
    windows: &[DesktopWindow],
    programs: &'a [Program],
) -> Option<Tree<'a>> {
    let tops = programs.iter().flat_map(|program| {
        let tops = program.items.iter().filter(|item| is_top(item));
        tops.filter(|item| roles::is_shown(item.states))
            .map(move |item| (program, item))
    });
    let is_named = |item: &Item| item.name == window.title;
    let others = || windows.iter().filter(|other| other.id != window.id);
    let is_of_program = |program: &Program| {
        let mut own = others().filter(|other| other.client == window.client);
        let has = |title: &str| {
            program
                .items
                .iter()
                .any(|item| is_top(item) && item.name == title)
        };
        program.process == window.process || own.any(|other| has(&other.title))
    };
    let fits = |(program, item): &(&Program, &Item)| (is_named(item), is_of_program(program));
    let is_of_another = |item: &Item| others().any(|other| other.title == item.name);
    let is_alike = |item: &Item| item.states.has(roles::ACTIVE) == window.is_active;
    let rank = |top: &(&Program, &Item)| (fits(top), !is_of_another(top.1), is_alike(top.1));
    let (program, root) = tops
        .filter(|top| fits(top) != (false, false))
        .max_by_key(rank)?;
    let mut children: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in &program.items {
        children.entry(&item.parent).or_default().push(item);
    }
    for items in children.values_mut() {
        // Some entries of menus do not tell their place among the others.
        let is_numbered = items.iter().all(|item| item.index >= 0);
        items.sort_by_key(|item| {
            if is_numbered {
                i64::from(item.index)
            } else {
                made_as(item)
            }
        });
    }
    Some(Tree {
        program,
        children,
        root,
    })
}

/// Whether an element is one that a window is.
fn is_top(item: &Item) -> bool {
    matches!(item.role, 2 | 16 | 19 | 23 | roles::WINDOW)
}

/// Returns the number that a program gave an element when it made it, which ends its path.
fn made_as(item: &Item) -> i64 {
    let number = item.path.rsplit('/').next();
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or(i64::MAX)
}

/// Lists what is shown below an item, parents first, with its depth.
fn list<'a>(tree: &Tree<'a>, below: &'a Item, depth: u16, listed: &mut Vec<(&'a Item, u16)>) {
    // A program may say that an element is its own ancestor.
    if depth > 60 || listed.len() > 4_000 {
        return;
    }
    for item in tree.children.get(below.path.as_str()).into_iter().flatten() {
        if !roles::is_shown(item.states) {
            continue;
        }
        let says_something = roles::role(item.role).is_some() || !item.name.trim().is_empty();
        let deeper = if says_something {
            listed.push((item, depth));
            depth + 1
        } else {
            depth
        };
        list(tree, item, deeper, listed);
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
    if let Some(bounds) = bounds {
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
    // A drawing without a name, text without words and what only arranges cells say nothing.
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
