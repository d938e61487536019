//! The tool `search`: finds lines that match a regular expression.

mod matches;

use std::{fs::File, io, os::fd::OwnedFd, path::Path, time::Duration};

use globset::GlobSet;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use gyrus_contract::{
    Boxed, Cleared, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec, Touch,
};
use rustix::fs::{FileType, Stat};
use serde::Deserialize;
use serde_json::json;

use self::matches::{Matches, Mode};
use crate::{
    arguments,
    background::{self, Patience},
    failure::{self, Failure},
    glob,
    listing::printable,
    place::Place,
    walk::{Reach, Walk, shown},
};

/// Maximum bytes of a pattern.
const MAX_PATTERN_BYTES: usize = 2_000;

/// Maximum bytes of a compiled pattern. The time of a search grows with it.
const MAX_PROGRAM_BYTES: usize = 512 * 1024;

/// Maximum number of lines of context around a match.
const MAX_CONTEXT: usize = 20;

/// Default number of matching lines, or of files.
const DEFAULT_MATCHES: usize = 100;

/// Maximum number of matching lines, or of files.
const MAX_MATCHES: usize = 1_000;

/// Maximum bytes of a file that is searched.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(30);

const EXAMPLE: &str = r#"{"pattern": "fn main\\b", "path": ".", "glob": "*.rs", "context": 2}"#;

/// Searches files for a pattern.
pub struct Search {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    /// The raw path is not used; the resolved path of the call is.
    #[serde(rename = "path")]
    _path: String,
    glob: Option<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: usize,
    max_matches: Option<usize>,
    #[serde(default)]
    hidden: bool,
}

impl Search {
    /// Creates the tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "search".to_owned(),
            description: "Searches a file, or all files below a folder, for lines that match a \
                          regular expression, and shows them with line numbers. Leaves out \
                          binary files and what `.gitignore` excludes, and says how much. Prefer \
                          it to `grep` or `rg` in the shell."
                .to_owned(),
            parameters: arguments::schema(properties(), &["pattern", "path"]),
            touches: vec![Touch::Reads("path".to_owned())],
            repeat: Repeat::Freely,
        };
        Self { spec }
    }
}

fn properties() -> serde_json::Value {
    json!({
        "pattern": {
            "type": "string",
            "description": "The regular expression, without look-around and back-references; it \
                            matches within a line."
        },
        "path": {
            "type": "string",
            "description": "The file or folder, relative to the workspace or absolute; `.` for \
                            the workspace."
        },
        "glob": {
            "type": "string",
            "description": "Only files whose path below the folder matches, as in `*.rs` or \
                            `src/**/*.{c,h}`."
        },
        "mode": {
            "type": "string",
            "enum": ["lines", "files", "count"],
            "description": "`lines` shows the matching lines, `files` only names files with a \
                            match, `count` counts matching lines by file. Default: lines."
        },
        "ignore_case": {
            "type": "boolean",
            "description": "Whether upper and lower case are the same. Default: false."
        },
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_CONTEXT,
            "description": "Lines to show before and after each match. Default: 0."
        },
        "max_matches": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_MATCHES,
            "description": format!(
                "Stops after so many matching lines, or files. Default: {DEFAULT_MATCHES}."
            )
        },
        "hidden": {
            "type": "boolean",
            "description": "Also names with a leading dot, and what `.gitignore` excludes. \
                            Default: false."
        }
    })
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(run(&call, site).await) })
    }
}

async fn run(call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
    let arguments: Arguments = arguments::parse(call, EXAMPLE)?;
    let pattern = compile(&arguments)?;
    let glob = arguments.glob.as_deref().map(glob::compile).transpose()?;
    let place = Place::of(call, site.workspace())?;
    let (opened, stat) = place.open()?;
    let limit = arguments
        .max_matches
        .unwrap_or(DEFAULT_MATCHES)
        .clamp(1, MAX_MATCHES);
    let context = arguments.context.min(MAX_CONTEXT);
    let matches = Matches::new(pattern, arguments.mode, context, limit);
    let given = place.given().to_owned();
    let text = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let walk = Walk::new(&place, opened, Reach::everywhere(arguments.hidden))
            .map_err(|error| place.error(error))?;
        background::work(TIME_LIMIT, move |patience| {
            in_folder(walk, glob.as_ref(), &given, matches, patience)
        })
        .await
    } else {
        background::work(TIME_LIMIT, move |patience| {
            in_file(opened, &stat, &given, matches, patience)
        })
        .await
    };
    Ok(ToolOutput::read(text))
}

fn compile(arguments: &Arguments) -> Result<RegexMatcher, Failure> {
    let pattern = &arguments.pattern;
    if pattern.is_empty() {
        let words = "`pattern` is empty and would match every line; use `read` to see a file";
        return Err(Failure::new(words));
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        let words = format!("`pattern` is longer than {MAX_PATTERN_BYTES} bytes; search for less");
        return Err(Failure::new(words));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(arguments.ignore_case)
        .multi_line(true)
        .size_limit(MAX_PROGRAM_BYTES)
        .line_terminator(Some(b'\n'));
    builder.build(pattern).map_err(|error| {
        Failure::new(format!(
            "`pattern` cannot be searched for: {error}. Escape special characters with `\\` to \
             find them as they are, and keep repetitions small"
        ))
    })
}

fn in_folder(
    mut walk: Walk,
    glob: Option<&GlobSet>,
    given: &str,
    mut matches: Matches,
    patience: &Patience,
) -> String {
    while !matches.is_full()
        && let Some(found) = walk.next(patience)
    {
        let is_wanted = glob.is_none_or(|glob| glob.is_match(&found.path));
        if found.kind != FileType::RegularFile || !is_wanted {
            continue;
        }
        if is_too_large(&found.stat) {
            matches.too_large += 1;
            continue;
        }
        match walk.open(&found) {
            Ok(file) => matches.search(&shown(given, &found.path), file, patience),
            Err(_) => matches.unreadable += 1,
        }
    }
    matches.text() + &walk.note()
}

fn in_file(
    file: OwnedFd,
    stat: &Stat,
    given: &str,
    mut matches: Matches,
    patience: &Patience,
) -> String {
    if is_too_large(stat) {
        matches.too_large += 1;
    } else {
        let name = printable(Path::new(given).as_os_str());
        matches.search(&name, File::from(file), patience);
    }
    matches.text()
}

fn is_too_large(stat: &Stat) -> bool {
    u64::try_from(stat.st_size).unwrap_or(0) > MAX_FILE_BYTES
}

/// A file whose reading ends when the time is up, and at the size limit: one that grows, or has no
/// size, may be endless.
struct Bounded<'a> {
    file: io::Take<File>,
    patience: &'a Patience,
}

impl<'a> Bounded<'a> {
    fn new(file: File, patience: &'a Patience) -> Self {
        let file = io::Read::take(file, MAX_FILE_BYTES);
        Self { file, patience }
    }
}

impl io::Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.patience.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}
