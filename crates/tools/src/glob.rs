//! The tool `glob`: finds files by name.

use std::{cmp::Reverse, fmt::Write as _, path::PathBuf, time::Duration};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use gyrus_contract::{
    GlobCall, PathList, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use rustix::fs::FileType;

use crate::{
    background::{self, Deadline},
    failure::ToolFailure,
    place::AccessPlace,
    walk::{FolderWalk, WalkExtent, shown},
};

/// Maximum number of files that are listed.
const MAX_SHOWN: usize = 500;

/// Maximum bytes of text in an answer; no further file is listed after it.
const MAX_TEXT_BYTES: usize = 32 * 1024;

const MAX_PATTERN_BYTES: usize = 1_000;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Finds files by a pattern of their names.
pub struct Glob;

impl TypedTool for Glob {
    type Arguments = GlobCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Reads("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: GlobCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let GlobCall {
            pattern, hidden, ..
        } = arguments;
        let matcher = compile(&pattern)?;
        let place = AccessPlace::of(call, site.workspace())?;
        let extent = WalkExtent::everywhere(hidden);
        let walk = FolderWalk::below(&place, extent, "; name the folder above")?;
        let given = place.given().to_owned();
        let found = background::work(TIME_LIMIT, move |deadline| {
            find(walk, &matcher, &given, deadline)
        });
        let (text, paths) = found.await;
        Ok(ToolOutput::read(text).with_value(&PathList { paths }))
    }
}

/// Compiles a pattern of paths below a folder, for this tool and for `search`.
pub(crate) fn compile(pattern: &str) -> Result<GlobSet, ToolFailure> {
    let wrong = |what: &str| ToolFailure::new(format!("the glob pattern {what}"));
    if pattern.trim().is_empty() {
        return Err(wrong("is empty; `*` matches every file"));
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        let what = format!("is longer than {MAX_PATTERN_BYTES} bytes");
        return Err(wrong(&what));
    }
    let below = pattern.strip_prefix("./").unwrap_or(pattern);
    if below.starts_with('/') || below.split('/').any(|part| part == "..") {
        return Err(wrong(
            "leads out of the folder; name the folder in `path` and match what is below it",
        ));
    }
    let below = if below.contains('/') {
        below.to_owned()
    } else {
        format!("**/{below}")
    };
    let invalid =
        |error: globset::Error| wrong(&format!("`{pattern}` is invalid: {}", error.kind()));
    let mut builder = GlobBuilder::new(&below);
    let glob = builder.literal_separator(true).build().map_err(invalid)?;
    // The glob's own matcher is not used: it panics where this one returns an error.
    let mut set = GlobSetBuilder::new();
    set.add(glob).build().map_err(invalid)
}

/// Returns the output text, and the paths in it.
fn find(
    mut walk: FolderWalk,
    matcher: &GlobSet,
    given: &str,
    deadline: &Deadline,
) -> (String, Vec<String>) {
    let mut found: Vec<(Reverse<(i64, u64)>, PathBuf)> = Vec::new();
    while let Some(next) = walk.next(deadline) {
        if next.kind != FileType::Directory && matcher.is_match(&next.path) {
            let stat = &next.stat;
            found.push((Reverse((stat.st_mtime, stat.st_mtime_nsec)), next.path));
        }
    }
    // Files of the same time are sorted by name.
    found.sort_unstable();
    let mut text = String::new();
    let mut paths = Vec::new();
    for (_, path) in found.iter().take(MAX_SHOWN) {
        if text.len() >= MAX_TEXT_BYTES {
            break;
        }
        let path = shown(given, path);
        let _ = writeln!(text, "{path}");
        paths.push(path);
    }
    if found.is_empty() {
        text.push_str("(no file matches)\n");
    } else if paths.len() < found.len() {
        let _ = writeln!(
            text,
            "[{} of {} files, those changed last; narrow the pattern for others]",
            paths.len(),
            found.len()
        );
    }
    (text + &walk.note(), paths)
}
