//! The tool `edit`: replaces an exact text in a file.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use gyrus_contract::{
    ActionVerdict, Arguments, Artifact, Digest, Probe, Repeat, ResolvedCall, Site, ToolOutput,
    Touch, TypedTool,
};
use memchr::memmem;
use rustix::{fs::FileType, io::Errno};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    exact::{AppliedReplacement, ExactError, MAX_FILE_BYTES, Replacement, line_list},
    failure::ToolFailure,
    place::{AccessPlace, PlaceError},
    replace,
};

/// Replaces a text in a file.
pub struct Edit;

/// Replaces an exact text of a file that you have read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArguments {
    #[serde(rename = "path")]
    _path: String,
    /// As it stands in the file, once, without line numbers.
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

impl Arguments for EditArguments {
    const TOOL: &'static str = "edit";
    const EXAMPLE: &'static str =
        r#"{"path": "src/main.rs", "old_text": "let limit = 10;", "new_text": "let limit = 20;"}"#;
}

impl TypedTool for Edit {
    type Arguments = EditArguments;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Probe;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Writes("path".to_owned())]
    }

    async fn run(
        &self,
        arguments: EditArguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        edit(arguments, call, site)
    }

    fn preview(&self, call: &ResolvedCall, workspace: &Path) -> Option<String> {
        let arguments = EditArguments::parse(&call.arguments).ok()?;
        let place = AccessPlace::of(call, workspace).ok()?;
        let content = content(&place).ok()?;
        let change = Replacement {
            old: arguments.old_text,
            new: arguments.new_text,
            all: arguments.replace_all,
        };
        let made = change.made_in(place.given(), &content).ok()?;
        place.diff(Some(&content), &made.content)
    }

    async fn probe(&self, call: &ResolvedCall, site: &dyn Site) -> Probe {
        probe(call, site)
    }
}

/// Returns the texts of a call, with the values of their secrets.
fn replacement(arguments: &EditArguments, site: &dyn Site) -> Result<Replacement, ToolFailure> {
    let reveal = |text: &str| {
        let revealed = site.reveal(text);
        revealed.map_err(|error| ToolFailure::from(error).and("; nothing was changed"))
    };
    Ok(Replacement {
        old: reveal(&arguments.old_text)?,
        new: reveal(&arguments.new_text)?,
        all: arguments.replace_all,
    })
}

fn edit(
    arguments: EditArguments,
    call: &ResolvedCall,
    site: &dyn Site,
) -> Result<ToolOutput, ToolFailure> {
    let change = replacement(&arguments, site)?;
    let place = AccessPlace::of(call, site.workspace())?;
    let content = content(&place)?;
    let AppliedReplacement {
        replacement: change,
        places,
        content: changed,
    } = change
        .made_in(place.given(), &content)
        .map_err(|error| hint(error).and(not_text(&content)))?;
    let parent = place.parent()?;
    let written = replace::target(&place, &parent).and_then(|before| {
        replace::replace(&parent, before.as_ref(), &changed).map_err(|error| place.error(error))
    });
    if let Err(error) = written {
        parent.undo();
        return Err(error.into());
    }
    let diff = place.diff(Some(&content), &changed);
    let what = what(&change, &content, &places) + &place.note(call);
    Ok(output(&place, &changed, what, diff))
}

/// Adds the alternatives to a single replacement.
fn hint(error: ExactError) -> ToolFailure {
    let more = match &error {
        ExactError::Empty => ", or use `write` for a whole file",
        ExactError::Several { .. } => ", or set `replace_all`",
        ExactError::Same | ExactError::Missing { .. } | ExactError::TooLarge { .. } => "",
    };
    ToolFailure::from(error).and(more)
}

/// Returns a hint for a file in an old encoding, whose texts cannot be quoted.
fn not_text(content: &[u8]) -> &'static str {
    if std::str::from_utf8(content).is_ok() {
        return "";
    }
    ". The file is not UTF-8, so a quotation with other letters than those of ASCII does not match: \
     convert it with `iconv` in the shell, or use `sed`"
}

fn content(place: &AccessPlace<'_>) -> Result<Vec<u8>, ToolFailure> {
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
        return Err(ToolFailure::new(words));
    }
    Ok(content)
}

/// Describes the changed lines, for a person and a model.
fn what(change: &Replacement, content: &[u8], places: &[usize]) -> String {
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

fn output(
    place: &AccessPlace<'_>,
    changed: &[u8],
    what: String,
    diff: Option<String>,
) -> ToolOutput {
    let artifact = place.in_workspace().map(|path| Artifact {
        path: path.display().to_string(),
        digest: Digest::of(changed),
    });
    ToolOutput {
        verdict: ActionVerdict::Changed,
        artifacts: artifact.into_iter().collect(),
        ..ToolOutput::read(format!("edited `{}`: {what}", place.given()))
            .with_value(&place.value(diff))
    }
}

/// Compares with the file's content: it has either the old text only, or the new one only. With
/// both, or with neither after a deletion, the result is unknown.
fn probe(call: &ResolvedCall, site: &dyn Site) -> Probe {
    let arguments = EditArguments::parse(&call.arguments).map_err(ToolFailure::from);
    let Ok(change) = arguments.and_then(|arguments| replacement(&arguments, site)) else {
        return Probe::Unknown;
    };
    let Ok(place) = AccessPlace::of(call, site.workspace()) else {
        return Probe::Unknown;
    };
    let content = match place.open() {
        // A file that cannot be edited was not edited.
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
            let reverse = Replacement {
                old: change.new,
                new: change.old,
                all: change.all,
            };
            let places = reverse.places(&content);
            let what = format!("the new text is in lines {}", line_list(&content, &places));
            Probe::Happened(Box::new(output(&place, &content, what, None)))
        }
        (false, false) if change.new.is_empty() => Probe::Unknown,
        (false, false) => Probe::DidNotHappen,
    }
}
