//! Saying yes to something as one has changed it: in an editor, or in a file.

use std::{fs, io::Write, path::Path, process::Stdio};

use gyrus_contract::Answer;
use gyrus_kernel::{
    ApprovalCard,
    approvals::{self, AnswerMismatch, VoidAnswer},
};
use gyrus_process::Programs;

use crate::error::SurfaceError;

/// Editor used if the environment names none, as POSIX specifies.
const DEFAULT_EDITOR: &str = "vi";

/// Opens the card's text in the person's editor and returns the answer: a plain yes if the text was
/// not changed.
pub fn in_editor(card: &ApprovalCard, editor: Option<&str>) -> Result<Answer, SurfaceError> {
    let Some(before) = card.edit.as_deref() else {
        return Err(VoidAnswer::from(AnswerMismatch::NothingToEdit).into());
    };
    let after = write_in_editor(before, editor)?;
    Ok(approvals::edited(card, after)?)
}

/// Opens a text in the person's editor and returns the edited text.
///
/// # Errors
/// The editor cannot be started, fails, or leaves no text.
pub fn write_in_editor(before: &str, editor: Option<&str>) -> Result<String, SurfaceError> {
    let failed = |source| SurfaceError::File {
        message: "the text cannot be edited".to_owned(),
        source,
        hint: None,
    };
    let mut file = tempfile::Builder::new()
        .prefix("gyrus-edit-")
        .suffix(suffix(before))
        .tempfile()
        .map_err(failed)?;
    file.write_all(before.as_bytes()).map_err(failed)?;
    let editor = editor.unwrap_or(DEFAULT_EDITOR);
    // It may be a command with arguments of its own, as `code --wait`.
    let ended = Programs::of_this_process()
        .shell(&format!("{editor} \"$1\""))?
        .arg("sh")
        .arg(file.path())
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .status()
        .map_err(failed)?;
    if !ended.success() {
        return Err(SurfaceError::Usage {
            message: format!("the editor `{editor}` failed; nothing was sent"),
            source: None,
            hint: Some(
                "name another one in VISUAL or EDITOR, by its absolute path if it is not found",
            ),
        });
    }
    fs::read_to_string(file.path()).map_err(failed)
}

/// Returns the file extension by which an editor recognises the kind of text.
fn suffix(text: &str) -> &'static str {
    if text.starts_with('{') {
        ".json"
    } else if text.lines().any(|line| line.starts_with("diff ")) {
        ".diff"
    } else {
        ".txt"
    }
}

/// Reads the answer from an edited file.
pub fn from_file(card: &ApprovalCard, path: &Path) -> Result<Answer, SurfaceError> {
    let after = gyrus_process::read_regular_text(path).map_err(|error| SurfaceError::Usage {
        message: format!("{} cannot be read", path.display()),
        source: Some(error),
        hint: None,
    })?;
    Ok(approvals::edited(card, after)?)
}
