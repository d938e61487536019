//! The tool `write`: writes a whole file atomically.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use gyrus_contract::{
    ActionVerdict, Arguments, Artifact, Digest, Probe, Repeat, ResolvedCall, Site, ToolOutput,
    Touch, TypedTool,
};
use gyrus_text::{counted, first_bytes};
use gyrus_workspace::Parent;
use rustix::fs::{Mode, OFlags, Stat, openat};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    failure::ToolFailure,
    place::{AccessPlace, MAX_COMPARED_BYTES, PlaceError},
    replace,
};

/// Maximum number of lines of an unread file that are shown when it was to be replaced.
const MAX_START_LINES: usize = 5;

/// Maximum bytes of such a line.
const MAX_START_LINE_BYTES: usize = 200;

/// Creates or replaces a file.
pub struct Write;

/// Creates a file, or replaces all of it; for a part of one use `edit`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArguments {
    #[serde(rename = "path")]
    _path: String,
    content: String,
}

impl Arguments for WriteArguments {
    const TOOL: &'static str = "write";
    const EXAMPLE: &'static str = r#"{"path": "notes/summary.md", "content": "the whole text\n"}"#;
}

enum WriteResult {
    /// The file was created, with the change if it can be shown.
    Created(Option<String>),
    Overwritten(Option<String>),
    /// The file was created or overwritten by an earlier call whose outcome was lost.
    Before,
    Unchanged,
}

impl TypedTool for Write {
    type Arguments = WriteArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Probe;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Writes("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: WriteArguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let revealed = site.reveal(&arguments.content);
        let content =
            revealed.map_err(|error| ToolFailure::from(error).and("; nothing was written"))?;
        let place = AccessPlace::of(call, site.workspace())?;
        let known = site.is_known(place.real());
        let written = write(&place, content.as_bytes(), known)?;
        let mut output = output(&place, &content, written);
        output.text.push_str(&place.note(call));
        Ok(output)
    }

    fn preview(&self, call: &ResolvedCall, workspace: &Path) -> Option<String> {
        let content = WriteArguments::parse(&call.arguments).ok()?.content;
        let place = AccessPlace::of(call, workspace).ok()?;
        let old = match place.open() {
            Ok((file, stat)) => Some(present(file.into(), &stat, content.len())?),
            Err(PlaceError::Missing { .. } | PlaceError::NoFolder { .. }) => None,
            Err(_) => return None,
        };
        place.diff(old.as_deref(), content.as_bytes())
    }

    async fn probe(&self, call: &ResolvedCall, site: &dyn Site) -> Probe {
        // Arguments that are invalid now were invalid then, so nothing was written.
        let Ok(WriteArguments { content, .. }) = WriteArguments::parse(&call.arguments) else {
            return Probe::DidNotHappen;
        };
        let Ok(content) = site.reveal(&content) else {
            return Probe::Unknown;
        };
        let Ok(place) = AccessPlace::of(call, site.workspace()) else {
            return Probe::Unknown;
        };
        match place.open() {
            Ok((file, stat)) => match same(file.into(), &stat, content.as_bytes()) {
                Ok(true) => {
                    Probe::Happened(Box::new(output(&place, &content, WriteResult::Before)))
                }
                Ok(false) => Probe::DidNotHappen,
                Err(_) => Probe::Unknown,
            },
            Err(PlaceError::Missing { .. } | PlaceError::Special { .. }) => Probe::DidNotHappen,
            Err(_) => Probe::Unknown,
        }
    }
}

fn output(place: &AccessPlace<'_>, content: &str, written: WriteResult) -> ToolOutput {
    let (bytes, lines) = (content.len(), content.lines().count());
    let size = format!("{}, {}", counted(bytes, "byte"), counted(lines, "line"));
    let path = place.given();
    let mut verdict = ActionVerdict::Changed;
    let (text, diff) = match written {
        WriteResult::Created(diff) => (format!("created `{path}` ({size})"), diff),
        WriteResult::Overwritten(diff) => (format!("overwrote `{path}` ({size})"), diff),
        WriteResult::Before => (format!("wrote `{path}` ({size})"), None),
        WriteResult::Unchanged => {
            verdict = ActionVerdict::NoEffect;
            let text = format!("unchanged: `{path}` has exactly this content already ({size})");
            (text, None)
        }
    };
    let artifact = place.in_workspace().map(|path| Artifact {
        path: path.display().to_string(),
        digest: Digest::of(content.as_bytes()),
    });
    ToolOutput {
        verdict,
        artifacts: artifact.into_iter().collect(),
        ..ToolOutput::read(text).with_value(&place.value(diff))
    }
}

/// Writes the content. A file that the run does not know is not replaced.
fn write(place: &AccessPlace<'_>, content: &[u8], known: bool) -> Result<WriteResult, PlaceError> {
    let parent = place.parent()?;
    match write_in(place, &parent, content, known) {
        Ok(written) => Ok(written),
        Err(error) => {
            parent.undo();
            Err(error)
        }
    }
}

fn write_in(
    place: &AccessPlace<'_>,
    parent: &Parent<'_>,
    content: &[u8],
    known: bool,
) -> Result<WriteResult, PlaceError> {
    let before = replace::target(place, parent)?;
    let Some(stat) = &before else {
        replace::replace(parent, None, content).map_err(|error| place.error(error))?;
        return Ok(WriteResult::Created(place.diff(None, content)));
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // A file that may be written but not read counts as different.
    let old = openat(&parent.folder, parent.name, flags, Mode::empty()).ok();
    let old = old.and_then(|file| present(file.into(), stat, content.len()));
    if old.as_deref() == Some(content) {
        return Ok(WriteResult::Unchanged);
    }
    if !known && stat.st_size > 0 {
        return Err(not_read(place, stat, old.as_deref()));
    }
    replace::replace(parent, Some(stat), content).map_err(|error| place.error(error))?;
    let diff = old.and_then(|old| place.diff(Some(&old), content));
    Ok(WriteResult::Overwritten(diff))
}

/// Returns the error for a file whose content the run would replace without having seen it. The
/// start of a file outside the workspace is not shown: nobody has decided that it may be read.
fn not_read(place: &AccessPlace<'_>, stat: &Stat, old: Option<&[u8]>) -> PlaceError {
    let bytes = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
    let mut size = counted(bytes, "byte");
    let mut start = String::new();
    let old = old.filter(|_| place.in_workspace().is_some());
    if let Some(text) = old.and_then(|old| std::str::from_utf8(old).ok()) {
        let lines = text.lines().count();
        size += &format!(", {}", counted(lines, "line"));
        start.push_str(" It begins:");
        for (number, line) in (1..).zip(text.lines().take(MAX_START_LINES)) {
            start += &format!("\n{number:>6}\t{}", first_bytes(line, MAX_START_LINE_BYTES));
        }
    }
    PlaceError::NotRead {
        path: place.given().to_owned(),
        size,
        start,
    }
}

/// Returns the content of a file, unless it is both longer than `most` bytes and too large to be
/// compared.
fn present(file: File, stat: &Stat, most: usize) -> Option<Vec<u8>> {
    let most = most.max(MAX_COMPARED_BYTES) as u64;
    let mut content = Vec::new();
    let is_small = u64::try_from(stat.st_size).is_ok_and(|size| size <= most);
    let read = is_small.then(|| file.take(most + 1).read_to_end(&mut content))?;
    read.ok().map(|_| content)
}

fn same(file: File, stat: &Stat, content: &[u8]) -> io::Result<bool> {
    if u64::try_from(stat.st_size) != Ok(content.len() as u64) {
        return Ok(false);
    }
    let mut present = Vec::with_capacity(content.len());
    file.take(content.len() as u64 + 1)
        .read_to_end(&mut present)?;
    Ok(present == content)
}
