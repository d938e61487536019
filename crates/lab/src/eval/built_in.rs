//! The suites that come with gyrus: files with tasks, and the files that a task's folder is given.

/// Expands to the names and contents of files in a folder of this package.
macro_rules! files {
    ($include:ident, $folder:literal, $ending:literal: $($name:literal)*) => {
        &[$((
            concat!($name, $ending),
            $include!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, "/", $name, $ending)),
        )),*]
    };
}

/// A suite that comes with gyrus.
pub(super) struct BuiltInSuite {
    /// The word by which a person names it.
    pub(super) name: &'static str,
    pub(super) tasks: &'static [(&'static str, &'static str)],
    pub(super) files: &'static [(&'static str, &'static [u8])],
}

/// The suite of tasks on the practice sites, which is played by default.
pub(super) const SITES: BuiltInSuite = BuiltInSuite {
    name: "demo-site",
    tasks: files!(include_str, "suite", ".toml":
        "calendar" "endless" "flaky" "frames" "grid" "login" "mail" "map" "microblog" "modals" "pad"
        "quiz" "settings" "shadow" "shop" "slow" "table" "text" "upload" "wizard"),
    files: files!(include_bytes, "suite/files", "": "invoice.txt" "notes.txt"),
};

pub(super) const BUILT_IN: [BuiltInSuite; 4] = [
    SITES,
    BuiltInSuite {
        name: "skills",
        tasks: files!(include_str, "suite-of-skills", ".toml": "tasks"),
        files: SITES.files,
    },
    BuiltInSuite {
        name: "desktop",
        tasks: files!(include_str, "suite-of-desktops", ".toml":
            "both" "browser" "calculator" "editor" "files" "mail" "pictures" "spreadsheet" "terminal"),
        files: files!(include_bytes, "suite-of-desktops/files", "":
            "harbour.png" "inbox.mbox" "meadow.png" "notes.txt" "order.html" "prices.txt" "stock.csv"),
    },
    BuiltInSuite {
        name: "everyday",
        tasks: files!(include_str, "../../examples/eval/everyday", ".toml":
            "writing" "editing" "moving" "counting" "sorting" "converting" "extracting" "scripts"
            "git" "logs" "knowing" "impossible" "injected" "several" "names" "large"),
        files: &[],
    },
];
