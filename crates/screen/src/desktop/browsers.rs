//! Browsers as programs of a nested desktop: what they are started with.

use std::path::Path;

use crate::launch::PROGRAMS;

/// Makes a Chromium tell the elements of its pages on the accessibility bus, ask nothing when it
/// starts, and connect only where its pages do.
const ALWAYS: [&str; 8] = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-renderer-accessibility",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-crash-restore-bubble",
    "--password-store=basic",
];

/// A Chromium cannot build its sandbox in one that exists already, which then holds instead. The
/// second hides the warning about that.
const IN_SANDBOX: [&str; 2] = ["--no-sandbox", "--test-type"];

/// Returns the options that a program needs if it is a Chromium; none for any other.
pub(super) fn options(program: &Path, is_confined: bool) -> impl Iterator<Item = &'static str> {
    let name = program.file_name().unwrap_or_default();
    let is_chromium = PROGRAMS.iter().any(|known| name == *known);
    let sandbox = IN_SANDBOX.into_iter().filter(move |_| is_confined);
    let all = ALWAYS.into_iter().chain(sandbox);
    all.filter(move |_| is_chromium)
}
