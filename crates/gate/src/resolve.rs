//! Looking up what a call points at.
//!
//! What is found here is what is judged and what is executed. Between the two the world can still
//! change; a tool therefore opens the *real* path without following links, and a command runs in
//! the containment that was judged.

use std::{collections::BTreeMap, path::Path};

use gyrus_contract::{
    CallPlace, CommandFact, CommandReading, Does, ResolvedCall, ResolvedPath, ToolCall, ToolSpec,
    Touch, Unresolvable, path_in_list,
};
use serde_json::{Map, Value};

use crate::{
    own_paths::OwnPaths,
    paths::{self, FileKind, real_path},
};

/// Maximum number of paths in a command line that are looked up; a line that names more is not
/// understood.
const MAX_PATHS: usize = 1_000;

/// Resolves everything in a call but its command line.
pub(crate) fn call(
    own_paths: &OwnPaths,
    call: &ToolCall,
    spec: &ToolSpec,
    place: CallPlace<'_>,
) -> Result<ResolvedCall, Unresolvable> {
    let mut arguments = object(&call.arguments)?;
    fill_in_folders(&mut arguments, spec);
    let workspace = real_path(place.workspace).map_err(|e| Unresolvable {
        reason: format!(
            "the workspace {} cannot be looked up: {e}",
            place.workspace.display()
        ),
    })?;
    let mut paths = BTreeMap::new();
    for touch in &spec.touches {
        match touch {
            // Nothing is started: the tool says so, or looks at what it started before.
            Touch::Starts(argument) if is_blank(&arguments, argument) => {}
            Touch::Reads(argument)
                if !arguments.contains_key(argument) && !required(spec, argument) => {}
            Touch::Starts(argument)
            | Touch::Connects(argument)
            | Touch::Submits(argument)
            | Touch::Asks(argument)
            | Touch::HandsOver(argument) => {
                text(&arguments, argument)?;
            }
            Touch::RunsAsUser { program: given, .. } | Touch::Searches { query: given, .. } => {
                text(&arguments, given)?;
            }
            Touch::Clipboard
            | Touch::Recalls
            | Touch::Remembers
            | Touch::Screen
            | Touch::Desktop
            | Touch::Evaluates(_)
            | Touch::Serves(_) => {}
            Touch::Reads(argument) | Touch::Writes(argument) => {
                let writes = matches!(touch, Touch::Writes(_));
                let given = text(&arguments, argument)?;
                let resolved = path(own_paths, given, argument, &workspace, writes)?;
                paths.insert(argument.clone(), resolved);
            }
            Touch::Changes(argument) | Touch::Compares(argument) => {
                let writes = matches!(touch, Touch::Changes(_));
                for (index, given) in listed(&arguments, argument)?.into_iter().enumerate() {
                    let name = path_in_list(argument, index);
                    let resolved = path(own_paths, given, &name, &workspace, writes)?;
                    // Nobody need be asked about what could not be changed later.
                    if !writes && resolved.in_workspace.is_none() {
                        return Err(Unresolvable {
                            reason: format!("`{name}`: `{given}` is outside the workspace"),
                        });
                    }
                    paths.insert(name, resolved);
                }
            }
        }
    }
    Ok(ResolvedCall {
        tool: call.tool.clone(),
        arguments: Value::Object(arguments),
        paths,
        command: None,
        files: Vec::new(),
        aim: None,
    })
}

fn path(
    own_paths: &OwnPaths,
    given: &str,
    argument: &str,
    workspace: &Path,
    writes: bool,
) -> Result<ResolvedPath, Unresolvable> {
    let wrong = |what: String| Unresolvable {
        reason: format!("`{argument}`: {what}"),
    };
    if given == "~" || given.starts_with("~/") {
        return Err(wrong(format!(
            "`~` is not expanded; write the absolute path, or a path relative to the workspace {} \
             (`./~` for a file of that name)",
            workspace.display()
        )));
    }
    let meant = without_workspace(given, workspace);
    let given = meant.as_deref().unwrap_or(given);
    let real = real_path(&workspace.join(given)).map_err(|e| wrong(e.to_string()))?;
    let (given, real) = match paths::alike(&real) {
        Some(name) => {
            let named = Path::new(given).with_file_name(&name);
            (named.display().to_string(), real.with_file_name(name))
        }
        None => (given.to_owned(), real),
    };
    let real = own_paths.by_its_own_name(real);
    match paths::kind(&real).map_err(|e| wrong(format!("`{given}` cannot be looked at: {e}")))? {
        FileKind::Special => {
            return Err(wrong(format!(
                "`{given}` is a pipe, socket or device; only files and folders can be named"
            )));
        }
        FileKind::Folder if writes => {
            return Err(wrong(format!(
                "`{given}` is a folder; name the file to write"
            )));
        }
        FileKind::File { names } if writes && names > 1 => {
            return Err(wrong(format!(
                "`{given}` is one of {names} hard links to the same file, so writing it could \
                 change a file elsewhere; write a new file instead"
            )));
        }
        FileKind::Folder | FileKind::File { .. } | FileKind::Missing => {}
    }
    let in_workspace = real.strip_prefix(workspace).ok().map(Path::to_path_buf);
    Ok(ResolvedPath {
        given,
        real,
        in_workspace,
        withheld: None,
    })
}

/// Returns a path that repeats the workspace's own, without its first slash, as what it means below the
/// workspace: small models write `home/ada/work/a.txt`. Where there is such a folder, it is meant.
fn without_workspace(given: &str, workspace: &Path) -> Option<String> {
    let top = Path::new(given).components().next()?;
    let below = Path::new(given)
        .strip_prefix(workspace.strip_prefix("/").ok()?)
        .ok()?;
    let is_there = workspace.join(top).symlink_metadata().is_ok();
    let below = Some(below).filter(|below| !below.as_os_str().is_empty());
    (!is_there).then(|| below.unwrap_or(Path::new(".")).display().to_string())
}

/// Follows the links in the paths of a reading. What cannot be looked up is not understood.
pub(crate) fn follow_links(own_paths: &OwnPaths, reading: &mut CommandReading) {
    let mut looked_up = 0;
    for fact in &mut reading.facts {
        let CommandFact { does, why, .. } = fact;
        let (Does::Reads { path } | Does::Writes { path } | Does::Removes { path }) = &mut *does
        else {
            continue;
        };
        looked_up += 1;
        let real = if looked_up > MAX_PATHS {
            Err(format!("the line names more than {MAX_PATHS} paths"))
        } else {
            real_path(path).map_err(|error| error.to_string())
        };
        match real {
            Ok(real) => *path = own_paths.by_its_own_name(real),
            // What goes on below a file, for one, fails by itself; but nothing guarantees that.
            Err(error) => {
                *why = error;
                *does = Does::Hides;
            }
        }
    }
}

/// The arguments as an object. Some models send the object as a string.
fn object(arguments: &Value) -> Result<Map<String, Value>, Unresolvable> {
    let parsed = match arguments {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    parsed.ok_or_else(|| Unresolvable {
        reason: "the arguments must be one JSON object, such as {\"path\": \"notes.txt\"}".into(),
    })
}

/// Adds the folders that arguments mean which are left out: those that the schema names. What is
/// judged and executed is a call with that path.
fn fill_in_folders(arguments: &mut Map<String, Value>, spec: &ToolSpec) {
    for argument in spec.touches.iter().filter_map(Touch::paths) {
        let folder = &spec.parameters["properties"][argument.name]["default"];
        if folder.is_string() && arguments.get(argument.name).is_none_or(Value::is_null) {
            arguments.insert(argument.name.to_owned(), folder.clone());
        }
    }
}

pub(crate) fn leaves_file(change: &Value) -> bool {
    ["content", "diff"]
        .iter()
        .any(|after| change.get(after).is_some_and(|after| !after.is_null()))
}

/// Returns the files of the workspace that a call writes or removes, by the names of their
/// arguments, each with whether it remains.
pub(crate) fn written(call: &ResolvedCall, spec: &ToolSpec) -> Vec<(String, bool)> {
    let mut written = Vec::new();
    for touch in &spec.touches {
        if let Touch::Writes(argument) = touch {
            written.push((argument.clone(), true));
        } else if let Touch::Changes(argument) = touch {
            let changes = call.arguments[argument].as_array().into_iter().flatten();
            let named = |(index, change)| (path_in_list(argument, index), leaves_file(change));
            written.extend(changes.enumerate().map(named));
        }
    }
    written.retain(|(name, _)| call.paths.contains_key(name));
    written
}

/// Whether a touch reads the file of an argument that need not be there, and is not.
pub(crate) fn reads_nothing(touch: &Touch, call: &ResolvedCall, spec: &ToolSpec) -> bool {
    matches!(touch, Touch::Reads(argument)
        if !call.paths.contains_key(argument)
            && call.arguments.get(argument).is_none()
            && !required(spec, argument))
}

/// Whether an argument is missing, or a text without a word: no command line.
pub(crate) fn is_blank(arguments: &Map<String, Value>, name: &str) -> bool {
    arguments
        .get(name)
        .is_none_or(|given| given.as_str().is_some_and(|text| text.trim().is_empty()))
}

/// Whether a call needs this argument.
fn required(spec: &ToolSpec, argument: &str) -> bool {
    let required = spec.parameters["required"].as_array();
    // A schema that says nothing of it is taken strictly.
    required.is_none_or(|names| names.iter().any(|name| name == argument))
}

/// The paths of a list of changes.
fn listed<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<Vec<&'a str>, Unresolvable> {
    let changes = arguments.get(name).and_then(Value::as_array);
    let changes = changes.ok_or_else(|| Unresolvable {
        reason: format!("`{name}` must be a list of objects, each with a `path`"),
    })?;
    let path = |(index, change): (usize, &'a Value)| match change.as_object() {
        Some(change) => text(change, "path").map_err(|wrong| Unresolvable {
            reason: format!("`{}`: {}", path_in_list(name, index), wrong.reason),
        }),
        None => Err(Unresolvable {
            reason: format!("`{}` must be an object", path_in_list(name, index)),
        }),
    };
    changes.iter().enumerate().map(path).collect()
}

/// Returns an argument as text that can be a name.
fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, Unresolvable> {
    let wrong = |what: &str| {
        Err(Unresolvable {
            reason: format!("`{name}` {what}"),
        })
    };
    match arguments.get(name) {
        None => wrong("is missing; it must be a text"),
        Some(Value::String(text)) if text.trim().is_empty() => wrong("must not be empty"),
        Some(Value::String(text)) if text.contains('\0') => {
            wrong("contains a NUL character; leave it out")
        }
        Some(Value::String(text)) => Ok(text),
        Some(_) => wrong("must be a text in quotes"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_path_that_repeats_the_workspace_means_what_is_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        let without_slash = workspace.to_str().unwrap()[1..].to_owned();
        let meant = |given: &str| without_workspace(given, &workspace);
        assert_eq!(
            meant(&format!("{without_slash}/a/b.txt")).as_deref(),
            Some("a/b.txt")
        );
        assert_eq!(meant(&without_slash).as_deref(), Some("."));
        assert_eq!(meant("a/b.txt"), None);
        assert_eq!(meant(&format!("/{without_slash}/a")), None);
        // It is there under just that name.
        let top = Path::new(&without_slash).components().next().unwrap();
        fs::create_dir(workspace.join(top)).unwrap();
        assert_eq!(meant(&format!("{without_slash}/a")), None);
    }
}
