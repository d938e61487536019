//! Changes of a call that were reverted, and the question to a person about them, which is an
//! effect of its own within the call. An approval applies them again.

use std::path::PathBuf;

use gyrus_contract::{BlobId, Digest, EffectId, Mode, Origin, Text};
use gyrus_workspace::{
    ChangeSet,
    layer::KeptFiles,
    repository::{self, CarryRecord, WithheldHistory},
};
use serde::{Deserialize, Serialize};

use super::{
    approval,
    file_groups::{MAX_NAMED, named_files},
    folder, layers,
    repositories::RepositoryFacts,
    to_undo::{holds_secret, keep_for_undo},
};
use crate::{ApprovalCard, Entry, Fact, Stop, ToolResulted, contents, core::Core, log_name};

/// The kind of the fact that withheld changes were applied, or the reason why they were not.
pub(crate) const APPLIED: &str = "changes.applied";

/// The kind of the fact with the blob of an applied change's effects on a repository.
pub(crate) const CARRIED: &str = "changes.carried";

/// The folder below the run's own for copies of files that its changes replaced.
pub(crate) const FOLDER: &str = "withheld";

/// Maximum number of characters of a diff on a card.
const MAX_DIFF_CHARS: usize = 16_000;

/// Changes of one call that were reverted until a person approves them. Stored in a blob that the
/// call's outcome names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WithheldCallChanges {
    /// The changes of files of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<ChangeSet>,
    /// The changed files, each with the reason why it may not stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasons: Vec<(String, String)>,
    /// Files that were reverted and cannot be applied again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_kept: Vec<PathBuf>,
    /// Files that could not be reverted, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<(String, String)>,
    /// The changes of repositories, which were never carried over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) repositories: Vec<repository::WithheldPath>,
    /// Commits and entries of indexes with such files: what would lead to them stayed as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) history: Vec<WithheldHistory>,
}

impl WithheldCallChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.reasons.is_empty() && self.repositories.is_empty() && self.history.is_empty()
    }

    /// Returns the names of what stays in place because of commits, for a sentence; empty if
    /// nothing does.
    fn held(&self) -> String {
        let held = self.history.iter().flat_map(WithheldHistory::held);
        let mut held: Vec<String> = held.map(|name| format!("`{name}`")).collect();
        let more = held.len().saturating_sub(MAX_NAMED);
        held.truncate(MAX_NAMED);
        if more > 0 {
            held.push(format!("{more} more"));
        }
        held.join(", ")
    }

    /// Returns each changed file with the reason why it may not stay.
    fn all_reasons(&self, core: &Core) -> Vec<(String, String)> {
        let below = &core.started.workspace;
        let in_repositories = self.repositories.iter();
        let in_repositories =
            in_repositories.map(|change| (change.name(below), change.reason.clone()));
        let committed = self.history.iter().flat_map(|history| &history.files);
        let committed = committed.map(|file| (file.name(), file.reason.clone()));
        self.reasons
            .iter()
            .cloned()
            .chain(in_repositories)
            .chain(committed)
            .collect()
    }

    fn names(&self, core: &Core) -> String {
        let reasons = self.all_reasons(core);
        let paths: Vec<&str> = reasons.iter().map(|(path, _)| path.as_str()).collect();
        named_files(&paths).join(", ")
    }

    /// Returns the changes that an approval can apply.
    fn offered(&self) -> ApprovedChanges {
        let files = self.changes.as_ref();
        let files = files.map(|changes| changes.without(&self.not_kept));
        let in_repositories = self.repositories.iter();
        let in_repositories = in_repositories.filter(|change| change.can_be_applied());
        ApprovedChanges {
            files: files.filter(|files| !files.is_empty()),
            repositories: in_repositories.cloned().collect(),
            history: self.history.clone(),
        }
    }

    /// Removes the content from changes in a repository that hold a secret.
    pub(super) fn leave_out_secrets(&mut self, core: &Core) -> Result<(), Stop> {
        for change in &mut self.repositories {
            let json = serde_json::to_string(change);
            let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
            if holds_secret(core, &json) {
                change.leave_out_content();
            }
        }
        for history in &mut self.history {
            if history
                .files
                .iter()
                .any(|file| holds_secret(core, &file.diff))
            {
                history.leave_out_content();
            }
        }
        Ok(())
    }
}

/// The result of applying changes that a person allowed.
#[derive(Debug, Default)]
struct AppliedChanges {
    repositories: Vec<CarryRecord>,
    files: Option<KeptFiles>,
    /// Changes that could not be applied, each with the reason.
    refused: Vec<(String, String)>,
}

struct ApprovedChanges {
    files: Option<ChangeSet>,
    repositories: Vec<repository::WithheldPath>,
    history: Vec<WithheldHistory>,
}

impl ApprovedChanges {
    fn is_empty(&self) -> bool {
        self.files.is_none() && self.repositories.is_empty() && self.history.is_empty()
    }

    /// Returns the changes as text for a person.
    fn diff(&self, core: &Core) -> Result<String, Stop> {
        let load = |id: &BlobId| contents::load(core.log.reader(), id);
        let mut diff = match &self.files {
            None => String::new(),
            Some(files) => files
                .diff(&load)
                .map_err(|error| Stop::Failed(error.to_string()))?,
        };
        for change in &self.repositories {
            diff.push_str(&change.diff(&core.started.workspace));
        }
        for file in self.history.iter().flat_map(|history| &history.files) {
            // Most often the work tree has the same.
            if diff.contains(&file.diff) {
                diff.push_str(&format!("The same: {}\n", file.name()));
            } else {
                diff.push_str(&format!("{}:\n{}", file.name(), file.diff));
            }
        }
        Ok(diff)
    }

    fn apply(&self, core: &Core, asking: &EffectId) -> Result<AppliedChanges, String> {
        let load = |id: &BlobId| contents::load(core.log.reader(), id);
        let workspace = &core.started.workspace;
        let mut applied = AppliedChanges::default();
        if let Some(files) = &self.files {
            let copies = if layers::keep_files(core) {
                Some(layers::copy(core, asking, &files.below()))
            } else {
                None
            };
            let copies = copies.transpose().map_err(|stop| stop.to_string())?;
            let done = files.apply(workspace, &load, &trash(core, asking));
            let done = done.map_err(|error| error.to_string())?;
            let refused = done.refused.into_iter();
            applied
                .refused
                .extend(refused.map(|one| (one.path, one.why)));
            let kept = copies.map(layers::changed).transpose();
            applied.files = kept.map_err(|stop| stop.to_string())?;
        }
        let facts = facts(core);
        let in_repositories =
            core.repositories
                .lock()
                .apply(&facts, &self.repositories, &self.history);
        applied.refused.extend(in_repositories.refused);
        applied.repositories = in_repositories.carried;
        Ok(applied)
    }
}

pub(super) fn facts(core: &Core) -> RepositoryFacts<'_> {
    let folder = core.kernel.store().folder(&log_name(core.started.run));
    let real_objects = &*core.kernel.organs().real_objects;
    RepositoryFacts::new(&core.started, &folder, real_objects, |changes| {
        core.withhold(changes)
    })
}

/// Returns the run's folder for copies of files that are replaced in the workspace.
pub(super) fn trash(core: &Core, effect: &EffectId) -> PathBuf {
    let run = core.kernel.store().folder(&log_name(core.started.run));
    run.join(FOLDER)
        .join(format!("{effect}-{}", crate::clock::now_ms()))
}

/// Returns the effect of the question about the changes of `effect`.
pub(crate) fn asking(effect: &EffectId) -> EffectId {
    effect.then(0).then(1)
}

/// Asks about the withheld changes of a call, and applies them on an approval. Returns the result
/// as text for the model. `past` are the recorded entries of the question.
pub(super) async fn decide(
    core: &Core,
    effect: &EffectId,
    past: Vec<Entry>,
    resulted: &ToolResulted,
) -> Result<Option<String>, Stop> {
    let Some(blob) = &resulted.withheld else {
        return Ok(None);
    };
    let bytes = core.log.reader().blob(blob)?;
    let withheld: WithheldCallChanges = serde_json::from_slice(&bytes)
        .map_err(|error| Stop::Failed(format!("the changes {blob} of a call: {error}")))?;
    let mut note = format!(
        "[The command changed files by which other programs run things or agents are instructed: \
         {}. These changes were taken back",
        withheld.names(core)
    );
    for (path, why) in withheld.left.iter().take(MAX_NAMED) {
        note.push_str(&format!("; `{path}` could not be: {why}"));
    }
    if !withheld.history.is_empty() {
        let held = withheld.held();
        note.push_str(&format!(
            ". Commits and staged files with them wait, too: in the repository, {held} stay as \
             they were before the command"
        ));
    }
    let outcome = ask(core, &asking(effect), past, blob, &withheld).await?;
    Ok(Some(format!("{note}; {outcome}]")))
}

async fn ask(
    core: &Core,
    asking: &EffectId,
    past: Vec<Entry>,
    blob: &BlobId,
    withheld: &WithheldCallChanges,
) -> Result<String, Stop> {
    let offered = withheld.offered();
    if offered.is_empty() {
        return Ok("they are not plain files or are too large, and were not kept.".to_owned());
    }
    if matches!(core.settings.mode, Mode::Never | Mode::ReadOnly) {
        return Ok(format!(
            "mode `{}` lets nobody be asked about them.",
            core.settings.mode
        ));
    }
    // A run that was imported without its files is replayed without them; changes that cannot be
    // read cannot be applied either.
    let diff = offered
        .diff(core)
        .unwrap_or_else(|error| format!("[the changes cannot be shown: {error}]"));
    let card = card(core, withheld, &diff);
    let digest = Digest::of_json(&(asking, blob));
    let mut applied = None;
    let mut questions = Vec::new();
    for entry in past {
        match entry {
            Entry::Noted { kind, fact, .. } if kind == APPLIED => {
                applied = fact.fact.as_str().map(str::to_owned);
            }
            Entry::Noted { kind, .. } if kind == CARRIED || kind == folder::FOLDER_RECORDED => {}
            other => questions.push(other),
        }
    }
    if let Some(applied) = applied {
        return Ok(applied);
    }
    let answer = approval::perform_about(core, asking.clone(), questions, digest, card).await?;
    if !answer.approved {
        return Ok(match (&answer.by, &answer.reason) {
            (None, _) => "nobody could be asked about them. Do without them, and say so at the \
                          end."
                .to_owned(),
            (Some(_), Some(words)) => format!("a person said no to them: {words}"),
            (Some(_), None) => "a person said no to them. Do not make them again.".to_owned(),
        });
    }
    apply(core, asking, &offered)
}

/// Applies changes that a person allowed, and records the result.
fn apply(core: &Core, asking: &EffectId, allowed: &ApprovedChanges) -> Result<String, Stop> {
    core.may_act()?;
    let mut applied = allowed.apply(core, asking);
    if let Ok(applied) = &mut applied {
        let repositories = std::mem::take(&mut applied.repositories);
        if let Some(blob) = keep_for_undo(core, repositories, applied.files.take())? {
            core.log.append(noted(CARRIED, asking, blob.to_string()))?;
        }
    }
    let outcome = match applied {
        Ok(applied) if applied.refused.is_empty() => {
            "then a person allowed them, and they were applied.".to_owned()
        }
        Ok(applied) => {
            let left: Vec<_> = applied
                .refused
                .iter()
                .map(|(path, why)| format!("`{path}` ({why})"))
                .collect();
            format!(
                "then a person allowed them, and they were applied but for {}.",
                left.join(", ")
            )
        }
        Err(error) => format!("a person allowed them, but they could not be applied: {error}"),
    };
    core.shared().world_changed = true;
    folder::record_change(core, asking)?;
    core.log.append(noted(APPLIED, asking, outcome.clone()))?;
    Ok(outcome)
}

fn noted(kind: &str, asking: &EffectId, fact: String) -> Entry {
    Entry::Noted {
        kind: kind.to_owned(),
        version: 1,
        fact: Fact {
            effect: asking.clone(),
            fact: fact.into(),
        },
    }
}

fn card(core: &Core, withheld: &WithheldCallChanges, diff: &str) -> ApprovalCard {
    let redactor = &core.kernel.organs().redactor;
    let mut shown = gyrus_text::first_chars(diff, MAX_DIFF_CHARS).to_owned();
    if shown.len() < diff.len() {
        shown.push_str("\n[the rest of the diff is left out]");
    }
    let of_command = Origin::Tool {
        name: "shell".to_owned(),
    };
    let all = withheld.all_reasons(core);
    let mut reasons: Vec<String> = all
        .iter()
        .take(MAX_NAMED)
        .map(|(path, why)| format!("`{path}`: {why}"))
        .collect();
    let more = all.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more of that kind"));
    }
    ApprovalCard {
        sentence: format!(
            "A command changed {}; the change was taken back, and your yes applies it again{}",
            withheld.names(core),
            match withheld.held() {
                held if held.is_empty() => String::new(),
                held => format!(" and moves {held}"),
            }
        ),
        reasons,
        details: vec![Text::new(redactor.redact(&shown).into_owned(), of_command)],
        ..ApprovalCard::default()
    }
}
