//! The tasks on programs of a desktop, as they stand in `suite-of-desktops/`, and their files.

/// Name and text of each file of tasks.
const TASKS: [(&str, &str); 2] = [
    (
        "calculator.toml",
        include_str!("../../suite-of-desktops/calculator.toml"),
    ),
    (
        "editor.toml",
        include_str!("../../suite-of-desktops/editor.toml"),
    ),
];

/// Name and content of each file that the folder of an attempt holds.
const FILES: [(&str, &[u8]); 2] = [
    (
        "notes.txt",
        include_bytes!("../../suite-of-desktops/files/notes.txt"),
    ),
    (
        "prices.txt",
        include_bytes!("../../suite-of-desktops/files/prices.txt"),
    ),
];

/// Returns the files of tasks, each with its name.
pub(super) fn tasks() -> impl Iterator<Item = (&'static str, &'static str)> {
    TASKS.into_iter()
}

/// Returns the files of the folder that a task is done in: name and content.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.into_iter()
}
