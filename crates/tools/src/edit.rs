//! The tool `edit`: an exact text in a file becomes another.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read as _},
};

use gyrus_contract::{
    ActionVerdict, Artifact, Boxed, Cleared, Digest, Probe, Repeat, ResolvedCall, Site, Tool,
    ToolOutput, ToolSpec, Touch,
};
use memchr::memmem;
use rustix::{fs::FileType, io::Errno};
use serde::Deserialize;
use serde_json::json;

use crate::{
    arguments,
    failure::{self, Failure},
    place::{Place, PlaceError},
    replace, similar,
};

/// Larger files are not edited, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// What a file may become, in bytes.
const MAX_CHANGED_BYTES: usize = 64 * 1024 * 1024;

/// Places that are counted where only one may be: they can overlap, and be very many.
const MAX_COUNTED: usize = 1_000;

/// Places that are named by their lines.
const MAX_NAMED: usize = 20;

const EXAMPLE: &str =
    r#"{"path": "src/main.rs", "old_text": "let limit = 10;", "new_text": "let limit = 20;"}"#;

/// Replaces a text in a file.
pub struct Edit {
    spec: ToolSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Used as it was resolved only.
    #[serde(rename = "path")]
    _path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

impl Edit {
    /// The tool.
    #[expect(clippy::new_without_default, reason = "tools are made in one way")]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: "edit".to_owned(),
            description: "Replaces an exact text in a file by another; the rest stays as it is, \
                          byte for byte. `read` the file first. It happens completely or not at \
                          all. Prefer it to `sed` or `patch` in the shell, and to `write` for \
                          changing a part of a file."
                .to_owned(),
            parameters: arguments::schema(
                json!({
                    "path": {
                        "type": "string",
                        "description": "The file, relative to the workspace or absolute."
                    },
                    "old_text": {
                        "type": "string",
                        "description": "What to replace, exactly as it stands in the file, with \
                                        its indentation, without line numbers. It must occur \
                                        once: quote enough lines around it. A marker like \
                                        ⟦secret:NAME⟧ stands for the secret."
                    },
                    "new_text": {
                        "type": "string",
                        "description": "What it becomes; empty to delete it."
                    },
                    "replace_all": {
                        "type": "boolean",
                        "description": "Replace every occurrence. Default: false."
                    }
                }),
                &["path", "old_text", "new_text"],
            ),
            touches: vec![Touch::Writes("path".to_owned())],
            repeat: Repeat::Probe,
        };
        Self { spec }
    }
}

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> Boxed<'a, ToolOutput> {
        Box::pin(async move { failure::output(run(&call, site)) })
    }

    fn probe<'a>(&'a self, call: &'a ResolvedCall, site: &'a dyn Site) -> Boxed<'a, Probe> {
        Box::pin(async move { probe(call, site) })
    }
}

/// The texts of a call, with secrets in their places.
struct Change {
    old: String,
    new: String,
    all: bool,
}

impl Change {
    fn of(call: &ResolvedCall, site: &dyn Site) -> Result<Self, Failure> {
        let arguments: Arguments = arguments::parse(call, EXAMPLE)?;
        let reveal = |text: &str| {
            let revealed = site.reveal(text);
            revealed.map_err(|error| Failure::from(error).and("; nothing was changed"))
        };
        Ok(Self {
            old: reveal(&arguments.old_text)?,
            new: reveal(&arguments.new_text)?,
            all: arguments.replace_all,
        })
    }

    /// As it is meant in a file with these line ends: models write `\n` where all of a file's
    /// lines end with `\r\n`.
    fn fit(self, content: &[u8]) -> Self {
        let has_crlf = memmem::find(content, b"\r\n").is_some();
        let is_crlf = |at| at > 0 && content[at - 1] == b'\r';
        if !has_crlf || !memchr::memchr_iter(b'\n', content).all(is_crlf) {
            return self;
        }
        let with_crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
        Self {
            old: with_crlf(&self.old),
            new: with_crlf(&self.new),
            all: self.all,
        }
    }

    /// Where the old text is. For a single replacement also where two overlap, as either could be
    /// meant, and not all of very many.
    fn places(&self, content: &[u8]) -> Vec<usize> {
        let finder = memmem::Finder::new(&self.old);
        if self.all {
            return finder.find_iter(content).collect();
        }
        let mut places = Vec::new();
        let mut from = 0;
        while places.len() < MAX_COUNTED
            && let Some(at) = finder.find(&content[from..])
        {
            places.push(from + at);
            from += at + 1;
        }
        places
    }

    /// The new content; `None` if that would be too large.
    fn apply(&self, content: &[u8], places: &[usize]) -> Option<Vec<u8>> {
        let kept = content.len() - places.len() * self.old.len();
        let size = kept.checked_add(places.len().checked_mul(self.new.len())?)?;
        if size > MAX_CHANGED_BYTES {
            return None;
        }
        let mut changed = Vec::with_capacity(size);
        let mut from = 0;
        for &at in places {
            changed.extend_from_slice(&content[from..at]);
            changed.extend_from_slice(self.new.as_bytes());
            from = at + self.old.len();
        }
        changed.extend_from_slice(&content[from..]);
        Some(changed)
    }
}

fn run(call: &ResolvedCall, site: &dyn Site) -> Result<ToolOutput, Failure> {
    let change = Change::of(call, site)?;
    if change.old.is_empty() {
        let words = "`old_text` is empty: quote what to replace, or use `write` for a whole file";
        return Err(Failure::new(words));
    }
    if change.old == change.new {
        let words = "`old_text` and `new_text` are the same; nothing was changed";
        return Err(Failure::new(words));
    }
    let place = Place::of(call, site.workspace())?;
    let content = content(&place)?;
    let change = change.fit(&content);
    let places = change.places(&content);
    match places.len() {
        0 => return Err(no_match(&place, &content, &change.old)),
        1 => {}
        _ if change.all => {}
        count => {
            let least = if count == MAX_COUNTED {
                "at least "
            } else {
                ""
            };
            let words = format!(
                "`old_text` occurs {least}{count} times in `{}`, in lines {}; nothing was changed. Quote \
                 more lines around the one that is meant, or set `replace_all`",
                place.given(),
                line_list(&content, &places)
            );
            return Err(Failure::new(words));
        }
    }
    let Some(changed) = change.apply(&content, &places) else {
        return Err(Failure::new(format!(
            "`{}` would become larger than {} MB; nothing was changed",
            place.given(),
            MAX_CHANGED_BYTES >> 20
        )));
    };
    let parent = place.parent()?;
    let written = replace::target(&place, &parent).and_then(|before| {
        replace::replace(&parent, before.as_ref(), &changed).map_err(|error| place.error(error))
    });
    if let Err(error) = written {
        parent.undo();
        return Err(error.into());
    }
    Ok(output(&place, &changed, what(&change, &content, &places)))
}

/// The whole file.
fn content(place: &Place<'_>) -> Result<Vec<u8>, Failure> {
    let (file, stat) = place.open()?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        let path = place.given().to_owned();
        let kind = "a folder; name a file in it";
        return Err(PlaceError::Special { path, kind }.into());
    }
    let mut content = Vec::new();
    let failed = |error: io::Error| place.error(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    File::from(file)
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        let words = format!(
            "`{}` is larger than {} MB, too large to edit; use `sed` in the shell",
            place.given(),
            MAX_FILE_BYTES >> 20
        );
        return Err(Failure::new(words));
    }
    Ok(content)
}

fn no_match(place: &Place<'_>, content: &[u8], old: &str) -> Failure {
    let mut words = format!(
        "`old_text` does not occur in `{}`; nothing was changed. ",
        place.given()
    );
    let text = String::from_utf8_lossy(content);
    let near = similar::nearest(&text, old);
    if near.is_empty() {
        words.push_str("Nothing in it is like it: `read` the file, or `search` for where it is");
    } else {
        words.push_str(&near);
        words.push_str("Quote it exactly as it stands there");
        if old.contains('\n') && content.contains(&b'\r') {
            words.push_str("; some lines of the file end with \\r\\n");
        }
    }
    Failure::new(words)
}

/// Which lines changed, for a person and a model.
fn what(change: &Change, content: &[u8], places: &[usize]) -> String {
    let breaks = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
    if let [at] = places {
        let first = 1 + breaks(&content[..*at]);
        // A text that ends with a line break does not touch the line after it.
        let last = |text: &str| first + breaks(text.trim_end_matches('\n').as_bytes());
        let before = lines(first, last(&change.old));
        if change.new.is_empty() {
            return format!("{before}: the text was deleted");
        }
        return format!("{before} became {}", lines(first, last(&change.new)));
    }
    format!(
        "{} replacements, in what were lines {}",
        places.len(),
        line_list(content, places)
    )
}

fn lines(first: usize, last: usize) -> String {
    if first == last {
        format!("line {first}")
    } else {
        format!("lines {first} to {last}")
    }
}

/// The lines, counted from 1, that these places are in.
fn line_list(content: &[u8], places: &[usize]) -> String {
    let mut list = String::new();
    let (mut line, mut from) = (1, 0);
    for (index, &at) in places.iter().take(MAX_NAMED).enumerate() {
        line += memchr::memchr_iter(b'\n', &content[from..at]).count();
        from = at;
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(list, "{separator}{line}");
    }
    if places.len() > MAX_NAMED {
        let _ = write!(list, " and {} more", places.len() - MAX_NAMED);
    }
    list
}

fn output(place: &Place<'_>, changed: &[u8], what: String) -> ToolOutput {
    let artifact = place.in_workspace().map(|path| Artifact {
        path: path.display().to_string(),
        digest: Digest::of(changed),
    });
    ToolOutput {
        verdict: ActionVerdict::Changed,
        artifacts: artifact.into_iter().collect(),
        ..ToolOutput::read(format!("edited `{}`: {what}", place.given()))
    }
}

/// By what is in the file: the old text only, or the new one only. With both, or with neither
/// after a deletion, nobody can tell.
fn probe(call: &ResolvedCall, site: &dyn Site) -> Probe {
    let Ok(change) = Change::of(call, site) else {
        return Probe::Unknown;
    };
    let Ok(place) = Place::of(call, site.workspace()) else {
        return Probe::Unknown;
    };
    let content = match place.open() {
        // What could not be edited then was not.
        Err(PlaceError::Missing { .. } | PlaceError::Special { .. }) => return Probe::DidNotHappen,
        Err(_) => return Probe::Unknown,
        Ok(_) => match content(&place) {
            Ok(content) => content,
            Err(_) => return Probe::Unknown,
        },
    };
    let change = change.fit(&content);
    let occurs = |text: &str| !text.is_empty() && memmem::find(&content, text.as_bytes()).is_some();
    match (occurs(&change.old), occurs(&change.new)) {
        (true, true) => Probe::Unknown,
        (true, false) => Probe::DidNotHappen,
        (false, true) => {
            let reverse = Change {
                old: change.new,
                new: change.old,
                all: change.all,
            };
            let places = reverse.places(&content);
            let what = format!("the new text is in lines {}", line_list(&content, &places));
            Probe::Happened(output(&place, &content, what))
        }
        (false, false) if change.new.is_empty() => Probe::Unknown,
        (false, false) => Probe::DidNotHappen,
    }
}
