//! The tool `write`: a whole file at once, or nothing.

use std::{
    fs::File,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read as _, Write as _},
};

use gyrus_contract::{
    ActionVerdict, Artifact, Boxed, Cleared, Digest, Probe, Repeat, ResolvedCall, Site, Tool,
    ToolOutput, ToolSpec, Touch,
};
use rustix::{
    fs::{
        Access, AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, accessat, fchmod, fchown, fsync,
        openat, renameat, statat, unlinkat,
    },
    io::Errno,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    arguments,
    place::{Parent, Place, PlaceError, special},
};

/// Attempts at a name for the temporary file that nobody else has.
const MAX_NAME_ATTEMPTS: u32 = 8;

const EXAMPLE: &str = r#"{"path": "notes/summary.md", "content": "the whole text\n"}"#;

/// Creates or replaces a file.
pub struct Write {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Used as it was resolved only.
    #[serde(rename = "path")]
    _path: String,
    content: String,
}

/// What was done.
enum Written {
    Created,
    Overwritten,
    /// One of these two, by a call whose outcome was lost.
    Before,
    Unchanged,
}

impl Write {
    /// The tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "write".to_owned(),
            description: "Creates a file with exactly this content, or replaces the whole content \
                          of an existing one; missing folders in the workspace are made. It \
                          happens completely or not at all. To change a part of a file, read it \
                          first and write all of it."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, relative to the workspace or absolute."
                    },
                    "content": {
                        "type": "string",
                        "description": "The whole new content, with a newline at its end for \
                                        text. A marker like ⟦secret:NAME⟧ becomes the secret."
                    }
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
            touches: vec![Touch::Writes("path".to_owned())],
            repeat: Repeat::Probe,
        };
        Self { spec }
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move {
            let arguments: Arguments =
                match arguments::parse(&self.spec.name, &call.arguments, EXAMPLE) {
                    Ok(arguments) => arguments,
                    Err(wrong) => return ToolOutput::error(wrong),
                };
            let content = match site.reveal(&arguments.content) {
                Ok(content) => content,
                Err(error) => {
                    let text = format!("{error}; nothing was written");
                    return ToolOutput::error(text);
                }
            };
            let written = Place::of(&call, site.workspace()).and_then(|place| {
                let written = write(&place, content.as_bytes())?;
                Ok(output(&place, &content, &written))
            });
            written.unwrap_or_else(|error| ToolOutput::error(error.to_string()))
        })
    }

    fn probe<'a>(&'a self, call: &'a ResolvedCall, site: &'a dyn Site) -> Boxed<'a, Probe> {
        Box::pin(async move {
            let parsed = arguments::parse(&self.spec.name, &call.arguments, EXAMPLE);
            // What could not be written then was not.
            let Ok(Arguments { content, .. }) = parsed else {
                return Probe::DidNotHappen;
            };
            let Ok(content) = site.reveal(&content) else {
                return Probe::Unknown;
            };
            let Ok(place) = Place::of(call, site.workspace()) else {
                return Probe::Unknown;
            };
            match place.open() {
                Ok((file, stat)) => match same(file.into(), &stat, content.as_bytes()) {
                    Ok(true) => Probe::Happened(output(&place, &content, &Written::Before)),
                    Ok(false) => Probe::DidNotHappen,
                    Err(_) => Probe::Unknown,
                },
                Err(PlaceError::Missing { .. } | PlaceError::Special { .. }) => Probe::DidNotHappen,
                Err(_) => Probe::Unknown,
            }
        })
    }
}

fn output(place: &Place<'_>, content: &str, written: &Written) -> ToolOutput {
    let (bytes, lines) = (content.len(), content.lines().count());
    let size = format!("{bytes} bytes, {lines} lines");
    let path = place.given();
    let (text, verdict) = match written {
        Written::Created => (format!("created `{path}` ({size})"), ActionVerdict::Changed),
        Written::Overwritten => (
            format!("overwrote `{path}` ({size})"),
            ActionVerdict::Changed,
        ),
        Written::Before => (format!("wrote `{path}` ({size})"), ActionVerdict::Changed),
        Written::Unchanged => (
            format!("unchanged: `{path}` has exactly this content already ({size})"),
            ActionVerdict::NoEffect,
        ),
    };
    let artifact = place.in_workspace().map(|path| Artifact {
        path: path.display().to_string(),
        digest: Digest::of(content.as_bytes()),
    });
    ToolOutput {
        verdict,
        artifacts: artifact.into_iter().collect(),
        ..ToolOutput::read(text)
    }
}

fn write(place: &Place<'_>, content: &[u8]) -> Result<Written, PlaceError> {
    let parent = place.parent()?;
    match write_in(place, &parent, content) {
        Ok(written) => Ok(written),
        Err(error) => {
            parent.undo();
            Err(error)
        }
    }
}

fn write_in(place: &Place<'_>, parent: &Parent<'_>, content: &[u8]) -> Result<Written, PlaceError> {
    let failed = |error| place.error(error);
    let before = match statat(&parent.folder, parent.name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(failed(error)),
    };
    if let Some(stat) = &before {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Some("a folder; name a file in it"),
            FileType::Symlink => return Err(failed(Errno::LOOP)),
            _ => special(stat),
        };
        if let Some(kind) = kind {
            let path = place.given().to_owned();
            return Err(PlaceError::Special { path, kind });
        }
        // Replacing needs no right to the file itself, but its owner meant something by it.
        accessat(
            &parent.folder,
            parent.name,
            Access::WRITE_OK,
            AtFlags::empty(),
        )
        .map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        // One that may be written but not read is taken as different.
        if let Ok(file) = openat(&parent.folder, parent.name, flags, Mode::empty())
            && same(file.into(), stat, content).unwrap_or(false)
        {
            return Ok(Written::Unchanged);
        }
    }
    replace(parent, before.as_ref(), content).map_err(failed)?;
    Ok(if before.is_some() {
        Written::Overwritten
    } else {
        Written::Created
    })
}

/// Whether the file has this content.
fn same(file: File, stat: &Stat, content: &[u8]) -> io::Result<bool> {
    if u64::try_from(stat.st_size) != Ok(content.len() as u64) {
        return Ok(false);
    }
    let mut present = Vec::with_capacity(content.len());
    file.take(content.len() as u64 + 1)
        .read_to_end(&mut present)?;
    Ok(present == content)
}

/// Writes beside the file, then renames: at every moment there is the old content or the new.
fn replace(parent: &Parent<'_>, before: Option<&Stat>, content: &[u8]) -> Result<(), Errno> {
    // A descriptor for the path alone cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(&parent.folder, ".", flags, Mode::empty())?;
    let (mut file, name) = temporary(&parent.folder)?;
    let written = fill(&mut file, before, content)
        .and_then(|()| renameat(&parent.folder, &name, &parent.folder, parent.name));
    if let Err(error) = written {
        // It was never under its real name; if even this fails, a stray file is all there is.
        let _ = unlinkat(&parent.folder, &name, AtFlags::empty());
        return Err(error);
    }
    fsync(&folder)
}

/// A new file with a name of its own. The name of the target may be too long to append to.
fn temporary(folder: &impl std::os::fd::AsFd) -> Result<(File, String), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_NAME_ATTEMPTS {
        // Its keys are random in each process and differ each time.
        let name = format!(
            ".gyrus-write-{:016x}",
            RandomState::new().build_hasher().finish()
        );
        match openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((file.into(), name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

fn fill(file: &mut File, before: Option<&Stat>, content: &[u8]) -> Result<(), Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(content).map_err(errno)?;
    if let Some(stat) = before {
        // Only root can keep another owner; for anybody else the file becomes theirs.
        let owner = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        let _ = fchown(&*file, Some(owner.0), Some(owner.1));
        fchmod(&*file, Mode::from_raw_mode(stat.st_mode))?;
    }
    fsync(&*file)
}
