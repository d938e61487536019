//! A look at a desktop: windows of the X server joined with elements of the accessibility bus.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use gyrus_contract::{
    Bounds, Element, ElementState, LookOptions, Picture, Rest, ScreenError, Scroll, Tab, View,
    ViewWithPicture,
};
use tokio::task::{JoinHandle, spawn_blocking};

use super::{
    accessible::BusProgram,
    display::WaitResult,
    numbers::ElementNumbers,
    reading::DesktopReading,
    session::{DesktopSession, lost},
    trees::WindowTree,
    window_tree::{self, shorten},
    windows::{DesktopWindow, other_user},
};
use crate::view::Pixels;

/// Maximum number of characters of a title in a message.
const MAX_TITLE: usize = 100;

/// Time after which a program that reports no element counts as one without elements.
const WITHOUT_ELEMENTS: Duration = Duration::from_secs(3);

/// Reads the desktop once it has settled.
pub(super) async fn look(
    session: &mut DesktopSession,
    wanted: LookOptions,
) -> Result<ViewWithPicture, ScreenError> {
    let settled = session.display.settle().await.map_err(lost)?;
    session.numbers.begin_after(wanted.documents);
    let picture = wanted
        .frame
        .then(|| BegunPicture::of(session))
        .transpose()?;
    let reading = read(session).await?;
    let (hash, frame) = match picture {
        Some(picture) => {
            let (hash, picture) = picture.without_secrets(&reading.elements).await?;
            (Some(hash), Some(picture))
        }
        None => (None, None),
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
    Ok(ViewWithPicture { view, frame })
}

/// Returns the reason why waiting ended, as views have it.
pub(super) fn rest(settled: WaitResult) -> Rest {
    match settled {
        WaitResult::Quiet => Rest::Quiet,
        WaitResult::Restless => Rest::GaveUp {
            waiting_for: "something on the desktop keeps changing".to_owned(),
        },
    }
}

/// Reads the desktop at once, settled or not.
pub(super) async fn read(session: &mut DesktopSession) -> Result<DesktopReading, ScreenError> {
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
    let mut reading = DesktopReading {
        windows,
        elements: Vec::new(),
        limits: BTreeMap::new(),
        unread: Vec::new(),
        size: (i32::from(width), i32::from(height)),
    };
    reading.add_elements(session).await;
    reading.unread.extend(reading.locked());
    Ok(reading)
}

impl DesktopReading {
    /// Adds the windows as elements, with the elements in them.
    async fn add_elements(&mut self, session: &mut DesktopSession) {
        let (programs, unread) = programs(session, &self.windows).await;
        self.unread = unread;
        // The menus of a program are told with its uppermost window.
        let mut told = BTreeSet::new();
        for (place, window) in self.windows.iter().enumerate() {
            if window.is_popup {
                continue;
            }
            let (numbers, above) = (&mut session.numbers, &self.windows[..place]);
            let document = numbers.document(window.id);
            self.elements.push(window_element(numbers, window));
            let (Ok(accessible), Some(tree), true) = (
                &session.accessible,
                WindowTree::of(window, &self.windows, &programs),
                window.is_shown,
            ) else {
                continue;
            };
            let of = (window, document);
            let mut tops = vec![tree.root];
            if told.insert(&tree.program.bus_name) {
                tops.extend(tree.menus());
            }
            let tree = (&tree, &*tops);
            let inside = window_tree::inside(accessible, numbers, of, above, tree).await;
            self.elements.extend(inside.elements);
            self.limits.extend(inside.limits);
            if !inside.is_whole {
                let title = gyrus_text::shorten(&window.title, MAX_TITLE);
                self.unread.push(format!(
                    "the places of all elements of “{title}”: its program is slow or hangs"
                ));
            }
        }
    }
}

/// Returns the programs on the accessibility bus, and a description of what is missing.
async fn programs(
    session: &mut DesktopSession,
    windows: &[DesktopWindow],
) -> (Vec<BusProgram>, Vec<String>) {
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

/// Waits until the uppermost window reports its elements, shortly after it was drawn.
pub(super) async fn wait_for_elements(session: &mut DesktopSession, most: Duration) {
    let Ok(accessible) = &session.accessible else {
        return;
    };
    let began = Instant::now();
    let telling = async {
        while let Ok(windows) = session.display.windows()
            && let Some(window) = windows.last()
            && let Ok((programs, _)) = accessible.programs().await
        {
            let tree = WindowTree::of(window, &windows, &programs);
            let has_told = tree.as_ref().is_some_and(WindowTree::has_elements);
            let is_loading = tree.is_some_and(|tree| tree.has_page());
            if has_told || (!is_loading && began.elapsed() > WITHOUT_ELEMENTS) {
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

/// A captured picture of the desktop, which is encoded while the elements are read.
pub(super) struct BegunPicture(JoinHandle<EncodedPixels>);

/// Pixels, and the result of encoding them.
type EncodedPixels = (Pixels, Result<Vec<u8>, String>);

impl BegunPicture {
    /// Captures the desktop without gyrus's own windows.
    pub(super) fn of(session: &DesktopSession) -> Result<Self, ScreenError> {
        let mut pixels = session.display.capture().map_err(lost)?;
        for bounds in session.display.own_windows().map_err(lost)? {
            pixels.cover(bounds);
        }
        Ok(Self(spawn_blocking(|| {
            let bytes = pixels.encode();
            (pixels, bytes)
        })))
    }

    /// Returns the picture and its hash, with secret fields painted over.
    pub(super) async fn without_secrets(
        self,
        elements: &[Element],
    ) -> Result<(u64, Picture), ScreenError> {
        let (mut pixels, mut bytes) = self.0.await.map_err(lost)?;
        let masked = |element: &&Element| element.states.contains(&ElementState::Masked);
        let masked = elements.iter().filter(masked);
        let secrets: Vec<Bounds> = masked.filter_map(|element| element.bounds).collect();
        if !secrets.is_empty() {
            for bounds in secrets {
                pixels.cover(bounds);
            }
            bytes = pixels.encode();
        }
        let picture = Picture {
            bytes: bytes.map_err(lost)?,
            media_type: "image/png",
            width: pixels.width,
            height: pixels.height,
        };
        Ok((pixels.average_hash(), picture))
    }
}

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
