//! The tasks on programs of a desktop, as they stand in `suite-of-desktops/`, and their files.

/// Name and text of each file with tasks.
const TASKS: [(&str, &str); 9] = [
    (
        "both.toml",
        include_str!("../../suite-of-desktops/both.toml"),
    ),
    (
        "browser.toml",
        include_str!("../../suite-of-desktops/browser.toml"),
    ),
    (
        "calculator.toml",
        include_str!("../../suite-of-desktops/calculator.toml"),
    ),
    (
        "editor.toml",
        include_str!("../../suite-of-desktops/editor.toml"),
    ),
    (
        "files.toml",
        include_str!("../../suite-of-desktops/files.toml"),
    ),
    (
        "mail.toml",
        include_str!("../../suite-of-desktops/mail.toml"),
    ),
    (
        "pictures.toml",
        include_str!("../../suite-of-desktops/pictures.toml"),
    ),
    (
        "spreadsheet.toml",
        include_str!("../../suite-of-desktops/spreadsheet.toml"),
    ),
    (
        "terminal.toml",
        include_str!("../../suite-of-desktops/terminal.toml"),
    ),
];

/// Name and content of each file in the folder of an attempt.
const FILES: [(&str, &[u8]); 7] = [
    (
        "harbour.png",
        include_bytes!("../../suite-of-desktops/files/harbour.png"),
    ),
    (
        "inbox.mbox",
        include_bytes!("../../suite-of-desktops/files/inbox.mbox"),
    ),
    (
        "meadow.png",
        include_bytes!("../../suite-of-desktops/files/meadow.png"),
    ),
    (
        "notes.txt",
        include_bytes!("../../suite-of-desktops/files/notes.txt"),
    ),
    (
        "order.html",
        include_bytes!("../../suite-of-desktops/files/order.html"),
    ),
    (
        "prices.txt",
        include_bytes!("../../suite-of-desktops/files/prices.txt"),
    ),
    (
        "stock.csv",
        include_bytes!("../../suite-of-desktops/files/stock.csv"),
    ),
];

pub(super) fn tasks() -> impl Iterator<Item = (&'static str, &'static str)> {
    TASKS.into_iter()
}

/// Returns the name and content of each file in the folder of a task.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.into_iter()
}
