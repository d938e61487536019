//! The tool `search`: finds lines that match a regular expression.

mod matches;

use std::{fs::File, io, os::fd::OwnedFd, path::Path, time::Duration};

use globset::GlobSet;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use gyrus_contract::{
    Repeat, ResolvedCall, SearchCall, SearchResult, Site, ToolOutput, Touch, TypedTool,
};
use rustix::fs::{FileType, Stat};

use self::matches::Matches;
use crate::{
    background::{self, Deadline},
    failure::ToolFailure,
    glob,
    listing::printable,
    place::AccessPlace,
    walk::{FolderWalk, WalkExtent, shown},
};

const MAX_PATTERN_BYTES: usize = 2_000;

/// Maximum bytes of a compiled pattern. The time of a search grows with it.
const MAX_PROGRAM_BYTES: usize = 512 * 1024;

/// Default number of matching lines, or of files.
const DEFAULT_MATCHES: usize = 100;

/// Maximum bytes of a file that is searched.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Searches files for a pattern.
pub struct Search;

impl TypedTool for Search {
    type Arguments = SearchCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Reads("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: SearchCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let pattern = compile(&arguments)?;
        let glob = arguments.glob.as_deref().map(glob::compile).transpose()?;
        let place = AccessPlace::of(call, site.workspace())?;
        let (opened, stat) = place.open()?;
        let limit = arguments
            .max_matches
            .unwrap_or(DEFAULT_MATCHES)
            .clamp(1, SearchCall::MAX_MATCHES);
        let context = arguments.context.min(SearchCall::MAX_CONTEXT);
        let matches = Matches::new(pattern, arguments.mode, context, limit);
        let given = place.given().to_owned();
        let (text, value) = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let walk = FolderWalk::new(&place, opened, WalkExtent::everywhere(arguments.hidden))
                .map_err(|error| place.error(error))?;
            background::work(TIME_LIMIT, move |deadline| {
                in_folder(walk, glob.as_ref(), &given, matches, deadline)
            })
            .await
        } else {
            background::work(TIME_LIMIT, move |deadline| {
                in_file(opened, &stat, &given, matches, deadline)
            })
            .await
        };
        Ok(ToolOutput::read(text).with_value(&value))
    }
}

fn compile(arguments: &SearchCall) -> Result<RegexMatcher, ToolFailure> {
    let pattern = &arguments.pattern;
    if pattern.is_empty() {
        let words = "`pattern` is empty and would match every line; use `read` to see a file";
        return Err(ToolFailure::new(words));
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        let words = format!("`pattern` is longer than {MAX_PATTERN_BYTES} bytes; search for less");
        return Err(ToolFailure::new(words));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(arguments.ignore_case)
        .multi_line(true)
        .size_limit(MAX_PROGRAM_BYTES)
        .line_terminator(Some(b'\n'));
    builder.build(pattern).map_err(|error| {
        ToolFailure::new(format!(
            "`pattern` cannot be searched for: {error}. Escape special characters with `\\` to \
             find them as they are, and keep repetitions small"
        ))
    })
}

fn in_folder(
    mut walk: FolderWalk,
    glob: Option<&GlobSet>,
    given: &str,
    mut matches: Matches,
    deadline: &Deadline,
) -> (String, SearchResult) {
    while !matches.is_full()
        && let Some(found) = walk.next(deadline)
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
            Ok(file) => matches.search(&shown(given, &found.path), file, deadline),
            Err(_) => matches.unreadable += 1,
        }
    }
    (matches.text() + &walk.note(), matches.into_value())
}

fn in_file(
    file: OwnedFd,
    stat: &Stat,
    given: &str,
    mut matches: Matches,
    deadline: &Deadline,
) -> (String, SearchResult) {
    if is_too_large(stat) {
        matches.too_large += 1;
    } else {
        let name = printable(Path::new(given).as_os_str());
        matches.search(&name, File::from(file), deadline);
    }
    (matches.text(), matches.into_value())
}

fn is_too_large(stat: &Stat) -> bool {
    u64::try_from(stat.st_size).unwrap_or(0) > MAX_FILE_BYTES
}

/// A file whose reading ends at the time limit and at the size limit: one that grows, or has no
/// size, may be endless.
struct TimedFile<'a> {
    file: io::Take<File>,
    deadline: &'a Deadline,
}

impl<'a> TimedFile<'a> {
    fn new(file: File, deadline: &'a Deadline) -> Self {
        let file = io::Read::take(file, MAX_FILE_BYTES);
        Self { file, deadline }
    }
}

impl io::Read for TimedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}
