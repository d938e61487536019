//! A desktop as a procedure knows it: its windows, and what the one with the keyboard shows.
//!
//! Programs build their windows the same way each time, so here is no name for the same thing and no
//! element that is left over: what is called otherwise is another thing.

use std::borrow::Cow;

use gyrus_contract::View;

/// The beginning of the addresses of windows.
const SCHEME: &str = "x11:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenWindow {
    pub(crate) program: String,
    pub(crate) title: String,
    pub(crate) is_active: bool,
}

pub(crate) fn is_desktop(view: &View) -> bool {
    view.address.starts_with(SCHEME)
}

/// Returns the windows of a desktop, the uppermost first; none for a page.
pub(crate) fn windows(view: &View) -> Vec<SeenWindow> {
    let listed = view.tabs.iter().filter(|_| is_desktop(view));
    let windows = listed.map(|window| SeenWindow {
        program: program(&window.address).to_owned(),
        title: window.title.clone(),
        is_active: window.is_active,
    });
    windows.collect()
}

/// Returns the program of an address: the same in every place of a desktop.
fn program(address: &str) -> &str {
    address.split_once('/').map_or("", |(_, program)| program)
}

/// Returns the part of a view that procedures use: of a desktop, the elements of the window that
/// has the keyboard.
pub fn in_use(view: &View) -> Cow<'_, View> {
    if !is_desktop(view) {
        return Cow::Borrowed(view);
    }
    let active = view.tabs.iter().find(|window| window.is_active);
    let active = active.map(|window| window.number);
    let mut view = view.clone();
    view.elements
        .retain(|element| Some(element.id.document) == active);
    Cow::Owned(view)
}
