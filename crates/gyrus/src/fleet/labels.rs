//! Labels: a run of a fleet goes to a machine that has the ones it needs.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use gyrus::runtime::Home;
use gyrus_runtime::{
    queue::{HasLabel, is_label, machine_label},
    request::TRAVELLING_FOLDERS,
};

use super::folder;
use crate::browser;

/// Returns the name of this machine among those of a fleet.
pub(crate) fn machine() -> String {
    let host = rustix::system::uname();
    host.nodename().to_string_lossy().into_owned()
}

pub(crate) fn this_machine() -> String {
    machine_label(&machine())
}

/// Returns the function that tells whether this machine has a label: those that a person gave it,
/// and folders, browser profiles, a browser, and an X server for desktops, which are looked for
/// when asked about.
pub(super) fn of_this_machine(home: &Home, given: BTreeSet<String>) -> HasLabel {
    let home = home.clone();
    Arc::new(move |label| {
        given.contains(label)
            || match label.split_once(':') {
                Some(("folder", path)) => Path::new(path).is_dir(),
                Some(("profile", name)) => browser::has_profile(&home, name),
                Some(_) => false,
                None if label == TRAVELLING_FOLDERS => Path::new(folder::PLACE).is_dir(),
                None => match label {
                    "browser" => browser::missing().is_none(),
                    "x11" => has_x_server(),
                    _ => false,
                },
            }
    })
}

/// Returns the labels of the machine that are shown to people.
pub(super) fn shown(has: &HasLabel, given: &BTreeSet<String>) -> BTreeSet<String> {
    let mut shown = given.clone();
    shown.extend(
        ["browser", "x11"]
            .into_iter()
            .filter(|label| has(label))
            .map(str::to_owned),
    );
    shown
}

#[cfg(feature = "desktop")]
fn has_x_server() -> bool {
    gyrus_screen::nested_parts().is_ok()
}

/// Returns `false`, since this build has no desktops.
#[cfg(not(feature = "desktop"))]
fn has_x_server() -> bool {
    false
}

pub(crate) fn parse(text: &str) -> Result<String, String> {
    if !is_label(text) {
        return Err(
            "a label is one word, as `gpu` or `region:eu`, of at most 200 bytes".to_owned(),
        );
    }
    Ok(text.to_owned())
}
