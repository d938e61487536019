//! Browsers as programs of a nested desktop: what they are started with.

use std::path::Path;

use crate::launch::PROGRAMS;

/// Options that make Chromium report the elements of its pages on the accessibility bus, ask
/// nothing at the start, and connect only where its pages do.
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

/// Options for a Chromium in a sandbox, inside of which it cannot build its own. The second option
/// hides the warning about that.
const IN_SANDBOX: [&str; 2] = ["--no-sandbox", "--test-type"];

/// Returns the options for starting a program if it is a Chromium, and none for others.
pub(super) fn options(program: &Path, is_confined: bool) -> impl Iterator<Item = &'static str> {
    let name = program.file_name().unwrap_or_default();
    let is_chromium = PROGRAMS.iter().any(|known| name == *known);
    let sandbox = IN_SANDBOX.into_iter().filter(move |_| is_confined);
    let all = ALWAYS.into_iter().chain(sandbox);
    all.filter(move |_| is_chromium)
}
