//! The surroundings of a run, as its model is told them: folder, branch, system and date.

use std::{env::consts, fs, path::Path};

use gyrus_contract::{Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_process::read_regular_text;
use gyrus_text::visible;
use jiff::tz::TimeZone;

/// Maximum length of the name of a branch, in characters.
const LONGEST_BRANCH: usize = 60;

/// Returns the text that comes with the goal of a run in `workspace`.
pub(crate) fn attachment(workspace: &Path) -> Attachment {
    let folder = visible(&workspace.display().to_string()).into_owned();
    let branch = branch(workspace).map_or(String::new(), |name| format!(" (git branch `{name}`)"));
    let today = gyrus_text::now().to_zoned(TimeZone::system());
    let today = today.strftime("%A, %F");
    let words = format!(
        "You are in `{folder}`{branch} on {} {}. Today is {today}.",
        consts::OS,
        consts::ARCH,
    );
    Attachment::Text(Text::new(words, Origin::Kernel))
}

/// Returns the branch that is checked out, without starting git, which would start what the
/// folder's settings name. A name with signs that branches seldom have is left out: a stranger may
/// have chosen it.
pub(crate) fn branch(workspace: &Path) -> Option<String> {
    let git = (workspace.ancestors())
        .map(|folder| folder.join(".git"))
        .find(|git| git.exists())?;
    let head = git.join("HEAD");
    let is_short = fs::metadata(&head).ok()?.len() < 1_000;
    let head = is_short.then(|| read_regular_text(&head).ok()).flatten()?;
    let name = head.trim().strip_prefix("ref: refs/heads/")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    (name.len() <= LONGEST_BRANCH && name.chars().all(is_plain)).then(|| name.to_owned())
}
