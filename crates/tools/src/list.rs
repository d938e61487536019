//! The tool `list`: shows the tree of a folder.

use std::{fmt::Write as _, time::Duration};

use gyrus_contract::{
    Arguments, PathList, Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use gyrus_text::counted;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    background::{self, Deadline},
    failure::ToolFailure,
    listing,
    place::AccessPlace,
    walk::{FolderWalk, WalkExtent, shown},
};

/// Maximum number of lines of a tree.
const MAX_LINES: usize = 1_000;

/// Maximum number of lines of one folder in a tree, without its subfolders' contents: a large
/// folder must not crowd out the rest.
const MAX_IN_FOLDER: usize = 200;

/// Maximum bytes of text of a tree; no further line is added after it.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Default depth of a tree.
const DEFAULT_DEPTH: usize = 2;

/// Maximum depth of a tree.
const MAX_DEPTH: usize = 20;

/// Time limit of one call.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Lists a folder and the folders in it.
pub struct List;

/// Shows a folder as a tree with sizes; ignored files are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArguments {
    #[serde(rename = "path", default = "here")]
    _path: String,
    /// Default: 2.
    #[schemars(range(min = 1, max = MAX_DEPTH))]
    depth: Option<usize>,
    /// Hidden and ignored files, too.
    #[serde(default)]
    hidden: bool,
}

fn here() -> String {
    ".".to_owned()
}

impl Arguments for ListArguments {
    const TOOL: &'static str = "list";
    const EXAMPLE: &'static str = r#"{"path": ".", "depth": 3}"#;
}

impl TypedTool for List {
    type Arguments = ListArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Reads("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: ListArguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let ListArguments { depth, hidden, .. } = arguments;
        let levels = depth.unwrap_or(DEFAULT_DEPTH).clamp(1, MAX_DEPTH);
        let place = AccessPlace::of(call, site.workspace())?;
        let extent = WalkExtent { hidden, levels };
        let walk = FolderWalk::below(&place, extent, ", not a folder; use `read`")?;
        let given = place.given().to_owned();
        let (text, paths) =
            background::work(TIME_LIMIT, move |deadline| tree(walk, &given, deadline)).await;
        Ok(ToolOutput::read(text).with_value(&PathList { paths }))
    }
}

/// Returns the tree as text, and the paths in it.
fn tree(mut walk: FolderWalk, given: &str, deadline: &Deadline) -> (String, Vec<String>) {
    let mut paths = Vec::new();
    let mut text = String::new();
    let mut lines = 0;
    let mut not_entered = false;
    // Lines of the current folder and of those around it.
    let mut counts: Vec<usize> = Vec::new();
    while let Some(found) = walk.next(deadline) {
        counts.resize(found.depth + 1, 0);
        let indent = "  ".repeat(found.depth);
        if counts[found.depth] == MAX_IN_FOLDER {
            let more = 1 + walk.skip_folder();
            let _ = writeln!(
                text,
                "{indent}[{} in this folder]",
                counted(more, "more name")
            );
            continue;
        }
        if lines == MAX_LINES || text.len() >= MAX_TEXT_BYTES {
            let _ = writeln!(
                text,
                "[cut after {lines} lines; take a smaller depth or a folder further down]"
            );
            return (text + &walk.note(), paths);
        }
        counts[found.depth] += 1;
        let end = if found.kind == FileType::Directory {
            "/"
        } else {
            ""
        };
        paths.push(shown(given, &found.path) + end);
        lines += 1;
        let Some(folder) = walk.folder() else { break };
        text.push_str(&indent);
        text.push_str(&listing::line(folder, found.name()));
        if found.kind == FileType::Directory && !found.is_entered {
            text.push_str(" …");
            not_entered = true;
        }
        text.push('\n');
    }
    if lines == 0 {
        text.push_str("(nothing to show)\n");
    }
    if not_entered {
        text.push_str("[folders with … were not entered]\n");
    }
    (text + &walk.note(), paths)
}
