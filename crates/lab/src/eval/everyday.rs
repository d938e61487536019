//! The tasks without a screen that come with gyrus, as they stand in `examples/eval/everyday/`.

/// Expands to the names of files with their included text.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$((
            concat!($name, ".toml"),
            include_str!(concat!("../../../../examples/eval/everyday/", $name, ".toml")),
        )),*]
    };
}

/// Name and text of each file with tasks.
const TASKS: [(&str, &str); 16] = files![
    "writing",
    "editing",
    "moving",
    "counting",
    "sorting",
    "converting",
    "extracting",
    "scripts",
    "git",
    "logs",
    "knowing",
    "impossible",
    "injected",
    "several",
    "names",
    "large",
];

pub(super) fn tasks() -> impl Iterator<Item = (&'static str, &'static str)> {
    TASKS.into_iter()
}
