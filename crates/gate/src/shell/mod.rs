//! Reading command lines: what a line would do, told without running it.
//!
//! A reading never makes anything looser. It finds the commands and the paths that rules of a policy
//! speak of, the few lines that destroy for good, and the words of a card; and a line that claims to
//! do nothing but read runs where nothing can be changed. What is not understood is
//! [`Does::Hides`]. Only where no sandbox contains a line it matters whether the line is one of the few
//! that are plain: these are a table of their own.
//!
//! It looks at nothing but which paths are links, and at the files that a plain line names.

mod git;
pub(crate) mod names;
mod paths;
mod plain;
mod programs;
mod read;
mod reader;
mod scan;
mod words;

use std::path::Path;

use gyrus_contract::{CommandFact, CommandReading, Does, NamedPaths};

pub use self::read::ShellPlace;
pub(crate) use self::read::{LineReading, OF_OTHERS, SOME};

/// Longer lines are not read.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Reads a command line without running it. Total: whatever the text is, there is a reading.
pub fn read(line: &str, place: &ShellPlace) -> CommandReading {
    read_whole(line, place).reading
}

/// Reads a command line without running it, and collects all paths that its words may mean.
pub fn read_with_names(line: &str, place: &ShellPlace) -> CommandReading {
    let LineReading { mut reading, names } = read_whole(line, place);
    reading.named = NamedPaths {
        paths: names.paths(place.home.as_deref()).into_iter().collect(),
        any: names.any,
    };
    reading
}

/// Reads a command line without running it, with the possible meanings of its words.
pub(crate) fn read_whole(line: &str, place: &ShellPlace) -> LineReading {
    let mut reader = reader::ShellReader::new(line, place);
    if line.len() > MAX_LINE_BYTES {
        reader.hides(line, "the line is too long to be read");
    } else {
        reader.text(line);
    }
    let mut read = reader.finish();
    if let Some(paths) = plain::reads(line, place) {
        let fact = |path| CommandFact {
            does: Does::Reads { path },
            part: gyrus_text::shorten(line.trim(), 120).into_owned(),
            why: "it reads this".to_owned(),
        };
        read.reading.facts = paths.into_iter().map(fact).collect();
        read.reading.environment = plain::environment();
        read.reading.plain = true;
    }
    read
}

/// Whether the path is a system path that anybody may read.
pub fn is_system_path(path: &Path) -> bool {
    paths::is_system(path)
}

/// Whether a path is a usual place for keys, passwords or tokens. `home` is the person's.
pub fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    paths::is_secret(path, home)
}
