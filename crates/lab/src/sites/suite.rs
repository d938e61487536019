//! The tasks that come with the sites, as they stand in `suite/`, and the files that they need.

/// Name and text of each file with tasks.
const TASKS: [(&str, &str); 20] = [
    ("calendar.toml", include_str!("../../suite/calendar.toml")),
    ("endless.toml", include_str!("../../suite/endless.toml")),
    ("flaky.toml", include_str!("../../suite/flaky.toml")),
    ("frames.toml", include_str!("../../suite/frames.toml")),
    ("grid.toml", include_str!("../../suite/grid.toml")),
    ("login.toml", include_str!("../../suite/login.toml")),
    ("mail.toml", include_str!("../../suite/mail.toml")),
    ("map.toml", include_str!("../../suite/map.toml")),
    ("microblog.toml", include_str!("../../suite/microblog.toml")),
    ("modals.toml", include_str!("../../suite/modals.toml")),
    ("pad.toml", include_str!("../../suite/pad.toml")),
    ("quiz.toml", include_str!("../../suite/quiz.toml")),
    ("settings.toml", include_str!("../../suite/settings.toml")),
    ("shadow.toml", include_str!("../../suite/shadow.toml")),
    ("shop.toml", include_str!("../../suite/shop.toml")),
    ("slow.toml", include_str!("../../suite/slow.toml")),
    ("table.toml", include_str!("../../suite/table.toml")),
    ("text.toml", include_str!("../../suite/text.toml")),
    ("upload.toml", include_str!("../../suite/upload.toml")),
    ("wizard.toml", include_str!("../../suite/wizard.toml")),
];

/// Name and content of each file that a task uploads.
const FILES: [(&str, &str); 2] = [
    ("invoice.txt", include_str!("../../suite/files/invoice.txt")),
    ("notes.txt", include_str!("../../suite/files/notes.txt")),
];

/// Returns the files with tasks, each with its name.
pub fn tasks() -> impl Iterator<Item = (&'static str, &'static str)> {
    TASKS.into_iter()
}

/// Returns the name and content of each file in the folder of a task.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.into_iter()
}
