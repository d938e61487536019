//! The files that an approval names: what a card says of them, and what changed since an earlier
//! card.
//!
//! They are part of the digest of a call, so a file that changes between card and answer makes it
//! another call, which is asked about anew with the difference. Just before the start the call is
//! looked up once more.

use std::path::Path;

use gyrus_contract::{BlobId, FileState, NamedFile, Origin, ResolvedCall, Text, Tool, ToolCall};
use gyrus_text::{counted, first_chars};
use gyrus_workspace::text_diff;

use super::to_undo::holds_secret;
use crate::{Stop, contents, core::Core};

/// Maximum size of a file that is kept to show a difference, in bytes.
const MAX_KEPT: u64 = 256 << 10;
/// Maximum number of characters of the differences on a card.
const MAX_DIFF_CHARS: usize = 16_000;
/// Number of digits of a digest that a card shows.
const SHOWN_DIGITS: usize = 12;

/// Keeps the contents of files that a card names, so that a later card can show the changes. They
/// are never exported.
pub(super) fn keep(core: &Core, files: &[NamedFile]) -> Result<(), Stop> {
    for file in files {
        let FileState::Content { hash, bytes, .. } = &file.state else {
            continue;
        };
        if *bytes > MAX_KEPT {
            continue;
        }
        let content = gyrus_process::read_regular(&file.real).unwrap_or_default();
        let text = std::str::from_utf8(&content).is_ok_and(|text| !holds_secret(core, text));
        if text && BlobId::of(&content) == *hash {
            core.log.put_private(&content)?;
        }
    }
    Ok(())
}

pub(super) fn lines(files: &[NamedFile]) -> Vec<Text> {
    let line = |file: &NamedFile| {
        let state = match &file.state {
            FileState::Content { hash, bytes, .. } => format!(
                "{}, {}",
                counted(*bytes, "byte"),
                first_chars(&hash.to_string(), SHOWN_DIGITS)
            ),
            FileState::Identity(file) => counted(file.bytes, "byte"),
        };
        let (given, real) = (&file.given, file.real.display());
        let line = format!("file {given}: {real} ({state}), as it is now");
        Text::new(gyrus_text::one_line(&line).into_owned(), Origin::Kernel)
    };
    files.iter().map(line).collect()
}

/// The difference between the files that an earlier card named and those that the call names now.
#[derive(Debug, Default)]
pub(super) struct NamedFileChange {
    pub(super) reasons: Vec<String>,
    pub(super) details: Vec<Text>,
}

/// Compares the files of two cards about a call.
pub(super) fn changed(core: &Core, before: &[NamedFile], now: &[NamedFile]) -> NamedFileChange {
    let mut changed = NamedFileChange::default();
    let mut diffs = String::new();
    let find = |files: &[NamedFile], given: &str| {
        let found = files.iter().find(|file| file.given == given);
        found.cloned()
    };
    let mut names: Vec<&str> = before
        .iter()
        .chain(now)
        .map(|file| file.given.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    for given in names {
        let (old, new) = (find(before, given), find(now, given));
        if old == new {
            continue;
        }
        let what = match (&old, &new) {
            (Some(_), None) => "is gone, or was replaced by something else than a plain file",
            (None, _) => "did not exist",
            (Some(_), Some(_)) => "was another file or held something else",
        };
        let reason = format!("`{given}` {what} when you were asked before");
        changed.reasons.push(reason);
        let content = |file: &Option<NamedFile>| file.as_ref().map(|file| kept(core, file));
        match (content(&old), content(&new)) {
            (Some(None), _) | (_, Some(None)) => {}
            (old, new) => {
                let text = |content: Option<Option<String>>| content.flatten().unwrap_or_default();
                diffs.push_str(&text_diff(given, &text(old), &text(new)));
            }
        }
    }
    if !diffs.is_empty() {
        let redacted = core.kernel.organs().redactor.redact(&diffs).into_owned();
        let mut shown = first_chars(&redacted, MAX_DIFF_CHARS).to_owned();
        if shown.len() < redacted.len() {
            shown.push_str("\n[the rest of the difference is left out]");
        }
        let of_file = Origin::Tool {
            name: "read".to_owned(),
        };
        changed.details.push(Text::new(shown, of_file));
    }
    changed
}

/// Returns the content of a file in the state that a card named, if it was stored or still exists.
fn kept(core: &Core, file: &NamedFile) -> Option<String> {
    let FileState::Content { hash, bytes, .. } = &file.state else {
        return None;
    };
    let is_it = |content: &Vec<u8>| BlobId::of(content) == *hash;
    let now = |path: &Path| gyrus_process::read_regular(path).ok();
    let content = match now(&file.real).filter(|_| *bytes <= MAX_KEPT) {
        Some(content) if is_it(&content) => content,
        _ => contents::load(core.log.reader(), hash).ok()?,
    };
    String::from_utf8(content).ok()
}

/// Returns the reason why an approved call is not the same any more, if it is not.
pub(super) fn differs_now(core: &Core, tool: &dyn Tool, resolved: &ResolvedCall) -> Option<String> {
    let command = resolved.command.as_ref();
    let is_program = command.is_some_and(|command| command.program.is_some());
    if resolved.files.is_empty() && !is_program {
        return None;
    }
    let call = ToolCall::new(&resolved.tool, resolved.arguments.clone());
    let gate = &core.kernel.organs().gate;
    let why = match gate.resolve(&call, tool.spec(), core.place()) {
        Err(error) => error.reason,
        Ok(now) if now.files == resolved.files => return None,
        Ok(now) => changed(core, &resolved.files, &now.files)
            .reasons
            .join("; "),
    };
    Some(format!(
        "nothing was started, because what it names changed at the last moment: {why}. Call it \
         again; the person is then asked again."
    ))
}
