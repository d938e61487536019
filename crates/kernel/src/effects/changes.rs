//! What a call changed in the workspace is judged when it ends, before anything else of the run
//! happens.
//!
//! A command may write whatever it likes while it runs; nothing outside its sandbox looks at it.
//! When it has ended, the gate says which of its changes may not stay without a person's yes. Those
//! are taken back at once, and the call's outcome says which they were. Then a person is asked, as
//! an effect of its own within the call, and a yes applies them again.

use std::path::PathBuf;

use gyrus_contract::{
    BlobId, ChangedPath, Digest, EffectId, Mode, Origin, ResolvedCall, Text, Tool, Touch,
};
use gyrus_workspace::{
    ChangeSet, Recorded,
    layer::{Applied, Copies, KeptFiles, Layer},
    repository::{self, Carried},
    snapshot::{SnapshotError, Taken},
    undo::Refused,
};
use serde::{Deserialize, Serialize};

use super::{approval, execute::changes_the_workspace, layers, repositories};
use crate::{Card, Entry, Fact, Stop, ToolResulted, contents, core::Core, log_name};

/// The kind of the fact that withheld changes were applied, or why they were not.
const APPLIED: &str = "changes.applied";

/// The kind of the fact that says, by a blob, what an applied change did in a repository.
pub(crate) const CARRIED: &str = "changes.carried";

/// The most characters of a diff on a card.
const MAX_DIFF_CHARS: usize = 16_000;

/// The most files that a text names.
const MAX_NAMED: usize = 20;

/// Changes of one call that were taken back until a person says yes. A blob that the call's outcome
/// names.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Withheld {
    /// Of files of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<ChangeSet>,
    /// The changed files, each with the reason why it may not stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<(String, String)>,
    /// Files that were taken back and cannot be applied again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_kept: Vec<PathBuf>,
    /// Files that could not be taken back, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left: Vec<(String, String)>,
    /// Of repositories: these never got there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<repository::Withheld>,
}

/// What is to be said of the changes of a call when it has ended.
#[derive(Debug, Default)]
pub(crate) struct JudgedChanges {
    /// The blob for the call's outcome, if something was taken back.
    pub(crate) withheld: Option<BlobId>,
    /// The blob for the call's outcome, if something of a repository can be taken back.
    pub(crate) carried: Option<BlobId>,
    /// For the model, in whole sentences, without secrets.
    notes: Vec<String>,
}

impl JudgedChanges {
    /// The notes, to stand below the text of an outcome; empty if there are none.
    pub(crate) fn told(&self) -> String {
        match self.notes.is_empty() {
            true => String::new(),
            false => format!("\n[{}]", self.notes.join(" ")),
        }
    }
}

impl Withheld {
    fn is_empty(&self) -> bool {
        self.reasons.is_empty() && self.repositories.is_empty()
    }

    /// Each changed file with the reason why it may not stay.
    fn all_reasons(&self, core: &Core) -> Vec<(String, String)> {
        let below = &core.started.workspace;
        let in_repositories = self.repositories.iter();
        let in_repositories =
            in_repositories.map(|change| (change.name(below), change.reason.clone()));
        self.reasons
            .iter()
            .cloned()
            .chain(in_repositories)
            .collect()
    }

    fn names(&self, core: &Core) -> String {
        let reasons = self.all_reasons(core);
        let named = reasons.iter().take(MAX_NAMED);
        let mut names: Vec<String> = named.map(|(path, _)| format!("`{path}`")).collect();
        let more = reasons.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.join(", ")
    }

    /// The changes that a yes can apply.
    fn offered(&self) -> Offered {
        let files = self.changes.as_ref();
        let files = files.map(|changes| changes.without(&self.not_kept));
        let in_repositories = self.repositories.iter();
        let in_repositories = in_repositories.filter(|change| change.can_be_applied());
        Offered {
            files: files.filter(|files| !files.is_empty()),
            repositories: in_repositories.cloned().collect(),
        }
    }

    /// A change in a repository that holds a secret is told without its content.
    fn leave_out_secrets(&mut self, core: &Core) -> Result<(), Stop> {
        for change in &mut self.repositories {
            let json = serde_json::to_string(change);
            let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
            if holds_secret(core, &json) {
                change.leave_out_content();
            }
        }
        Ok(())
    }
}

/// What became of changes that a person allowed.
#[derive(Debug, Default)]
struct AppliedChanges {
    repositories: Vec<Carried>,
    files: Option<KeptFiles>,
    /// Those that could not be applied, each with the reason.
    refused: Vec<(String, String)>,
}

/// Withheld changes that a yes applies.
struct Offered {
    files: Option<ChangeSet>,
    repositories: Vec<repository::Withheld>,
}

impl Offered {
    fn is_empty(&self) -> bool {
        self.files.is_none() && self.repositories.is_empty()
    }

    /// As text for a person.
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
        Ok(diff)
    }

    /// Applies them.
    fn apply(&self, core: &Core, asking: &EffectId) -> Result<AppliedChanges, String> {
        let load = |id: &BlobId| contents::load(core.log.reader(), id);
        let workspace = &core.started.workspace;
        let mut applied = AppliedChanges::default();
        if let Some(files) = &self.files {
            let copies = match layers::are_used(core) {
                true => Some(layers::copy(core, asking, &files.below())),
                false => None,
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
        let in_repositories = core.repositories().apply(core, &self.repositories);
        applied.refused.extend(in_repositories.refused);
        applied.repositories = in_repositories.carried;
        Ok(applied)
    }
}

/// Whether the changes of this call are judged when it ends: those of what runs contained in the
/// workspace. What runs with a person's rights was allowed by that person.
pub(super) fn are_judged(tool: &dyn Tool, resolved: &ResolvedCall) -> bool {
    let contained = resolved
        .command
        .as_ref()
        .is_some_and(|command| command.containment.is_some());
    let serves = |touch: &Touch| matches!(touch, Touch::Serves(_));
    changes_the_workspace(tool) && (contained || tool.spec().touches.iter().any(serves))
}

/// Keeps what the workspace holds before a call, and makes the private copies of its repositories
/// ready. Returns the snapshot, which is to be on disk with the call's start; `None` where the
/// folder is too large for one, which the verdict knew.
///
/// # Errors
/// `Ok(Err(…))` if the folder cannot be kept although the verdict relied on that.
pub(super) fn begin(
    core: &Core,
    effect: &EffectId,
) -> Result<Result<Option<BlobId>, String>, Stop> {
    let mut began = core.judged_calls();
    // What changes while another call goes on is compared with what was there before both.
    let kept = match began.first() {
        Some((_, before)) => Ok(*before),
        None => match core.repositories().begin(core) {
            Ok(()) if layers::are_used(core) => layers::begin(core, effect).map(|()| None),
            Ok(()) => keep(core)?,
            Err(why) => Err(format!("the folder's repositories cannot be read: {why}")),
        },
    };
    if let Ok(before) = &kept {
        began.push((effect.clone(), *before));
    }
    Ok(kept)
}

/// Takes back what may not stay of what changed since [`begin`], once the call's processes are
/// gone. `copies` are those of files that it named.
pub(super) fn end(
    core: &Core,
    effect: &EffectId,
    copies: Option<Copies>,
) -> Result<JudgedChanges, Stop> {
    let mut began = core.judged_calls();
    let Some(place) = began.iter().position(|(call, _)| call == effect) else {
        let kept = copies.map(layers::changed).transpose()?;
        return Ok(JudgedChanges {
            carried: keep_for_undo(core, Vec::new(), kept)?,
            ..JudgedChanges::default()
        });
    };
    // A private copy is read when no command has it any more.
    let carried = match began.len() {
        1 => core.repositories().end(core),
        _ => repositories::Ended::default(),
    };
    let changed = match layers::take(core) {
        Some(layer) => of_layer(core, &layer)?,
        None => take_back(core, effect)?,
    };
    began.remove(place);
    judge(core, carried, changed)
}

/// As [`end`], for a call of an earlier process.
pub(super) fn end_of_the_dead(
    core: &Core,
    effect: &EffectId,
    before: Option<&BlobId>,
) -> Result<JudgedChanges, Stop> {
    let carried = core.repositories().end(core);
    let changed = match (before, layers::of_the_dead(core, effect)) {
        (Some(before), _) => {
            go_on_from(core, before)?;
            take_back(core, effect)?
        }
        (None, Some(layer)) => match layers::recover(&layer)? {
            Some(applied) => ChangedFiles::applied(applied),
            None => of_layer(core, &layer)?,
        },
        (None, None) => ChangedFiles {
            kept: match layers::copies_of_the_dead(core, effect) {
                Some(copies) => Some(layers::changed(copies)?),
                None => None,
            },
            ..ChangedFiles::default()
        },
    };
    judge(core, carried, changed)
}

fn keep(core: &Core) -> Result<Result<Option<BlobId>, String>, Stop> {
    match core.snapshots().take(&mut core.contents()) {
        Ok(Taken::New(id) | Taken::Same(id)) => Ok(Ok(Some(id))),
        Ok(Taken::TooLarge { files, bytes }) => {
            let known = core.shared().not_undoable.is_some();
            let why = format!("the folder has become too large ({files} files, {bytes} bytes)");
            core.shared().not_undoable = Some(why.clone());
            Ok(match known {
                true => Ok(None),
                false => Err(format!(
                    "{why}, so its changes cannot be undone; call it again"
                )),
            })
        }
        Err(SnapshotError::Store(stop)) => Err(stop),
        Err(error) => {
            let known = core.shared().not_undoable.is_some();
            Ok(if known {
                Ok(None)
            } else {
                Err(error.to_string())
            })
        }
    }
}

/// Goes on from the snapshot that an earlier process took before a call.
fn go_on_from(core: &Core, before: &BlobId) -> Result<(), Stop> {
    let load = |id: &BlobId| contents::load(core.log.reader(), id);
    core.snapshots()
        .go_on_from(before, load)
        .map_err(|error| Stop::Failed(format!("what the folder held before a command: {error}")))
}

/// What became of the files that a call changed.
#[derive(Debug, Default)]
struct ChangedFiles {
    withheld: Withheld,
    /// What stood there before, where no snapshot holds it.
    kept: Option<KeptFiles>,
    /// What somebody else changed meanwhile.
    refused: Vec<Refused>,
}

impl ChangedFiles {
    fn applied(applied: Applied) -> Self {
        Self {
            withheld: Withheld::default(),
            kept: Some(applied.kept),
            refused: applied.refused,
        }
    }

    /// For the model: what was not applied.
    fn notes(&self) -> Option<String> {
        let named = self.refused.iter().take(MAX_NAMED);
        let named: Vec<String> = named
            .map(|one| format!("`{}` ({})", one.path, one.why))
            .collect();
        let more = match self.refused.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "What the command did to {}{more} was not applied.",
                named.join(", ")
            )
        })
    }
}

/// What an undo needs beside snapshots. A blob that the call's outcome names.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ToUndo {
    /// What was carried over into repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) repositories: Vec<Carried>,
    /// What stood in the workspace before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<KeptFiles>,
}

/// Records what came of a call's changes.
fn judge(
    core: &Core,
    carried: repositories::Ended,
    changed: ChangedFiles,
) -> Result<JudgedChanges, Stop> {
    let not_applied = changed.notes();
    let mut withheld = changed.withheld;
    withheld.repositories.extend(carried.withheld);
    withheld.leave_out_secrets(core)?;
    let blob = match withheld.is_empty() {
        true => None,
        false => {
            let json = serde_json::to_vec(&withheld);
            let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
            Some(core.log.put_blob(&json)?)
        }
    };
    let redactor = &core.kernel.organs().redactor;
    let notes = carried.notes.iter().chain(&not_applied);
    let notes = notes.map(|note| redactor.redact(note).into_owned());
    Ok(JudgedChanges {
        withheld: blob,
        carried: keep_for_undo(core, carried.carried, changed.kept)?,
        notes: notes.collect(),
    })
}

/// Keeps what an undo needs; with a secret of a repository in it, apart from the journal.
fn keep_for_undo(
    core: &Core,
    repositories: Vec<Carried>,
    files: Option<KeptFiles>,
) -> Result<Option<BlobId>, Stop> {
    if repositories.is_empty() && files.is_none() {
        return Ok(None);
    }
    let json = serde_json::to_string(&ToUndo {
        repositories,
        files,
    });
    let json = json.map_err(|error| Stop::Failed(error.to_string()))?;
    match holds_secret(core, &json) {
        true => core.log.put_private(json.as_bytes()).map(Some),
        false => core.log.put_blob(json.as_bytes()).map(Some),
    }
}

/// Moves what a command changed in its layer into the workspace, but for what may not stay.
fn of_layer(core: &Core, layer: &Layer) -> Result<ChangedFiles, Stop> {
    let mut withheld = Withheld::default();
    let mut listed = layers::list(layer)?;
    let examined = core
        .repositories()
        .examine(core, &listed.changed, &layer.upper());
    if !examined.withheld.is_empty() {
        listed = layers::list(layer)?;
    }
    withheld.repositories = examined.withheld;
    let mut of_gate = listed.changed.clone();
    let settled = examined.git_directories;
    of_gate.retain(|change| !settled.iter().any(|git| change.path.starts_with(git)));
    let found = core.withhold(&of_gate);
    let paths: Vec<&ChangedPath> = found
        .iter()
        .filter_map(|withheld| of_gate.get(withheld.index))
        .collect();
    let recorded = ChangeSet::record_layer(layer, &paths, &mut core.contents())?;
    let reasons = found.iter().filter_map(|withheld| {
        let path = &of_gate.get(withheld.index)?.path;
        Some((path.display().to_string(), withheld.reason.clone()))
    });
    withheld.reasons = reasons.collect();
    withheld.changes = (!recorded.changes.is_empty()).then_some(recorded.changes);
    withheld.not_kept = recorded.not_kept;
    let applied = layers::apply(layer, listed, &paths)?;
    Ok(ChangedFiles {
        withheld,
        ..ChangedFiles::applied(applied)
    })
}

/// Takes back what may not stay of the files that changed since the last snapshot.
fn take_back(core: &Core, effect: &EffectId) -> Result<ChangedFiles, Stop> {
    let mut changed_files = ChangedFiles::default();
    let withheld = &mut changed_files.withheld;
    let snapshots = core.snapshots();
    let failed = |error: std::io::Error| {
        Stop::Failed(format!(
            "what a command changed cannot be looked at: {error}"
        ))
    };
    let Some(mut changed) = snapshots.changed_paths().map_err(failed)? else {
        return Ok(changed_files);
    };
    let workspace = &core.started.workspace;
    let examined = core.repositories().examine(core, &changed, workspace);
    withheld.repositories = examined.withheld;
    let settled = examined.git_directories;
    changed.retain(|change| !settled.iter().any(|git| change.path.starts_with(git)));
    let found = core.withhold(&changed);
    if found.is_empty() {
        return Ok(changed_files);
    }
    let paths: Vec<_> = found
        .iter()
        .filter_map(|withheld| changed.get(withheld.index))
        .collect();
    let recorded = ChangeSet::record(&snapshots, &paths, &mut core.contents())?;
    let Some(Recorded { changes, not_kept }) = recorded else {
        return Ok(changed_files);
    };
    if changes.is_empty() && not_kept.is_empty() {
        return Ok(changed_files);
    }
    let load = |id: &BlobId| contents::load(core.log.reader(), id);
    let done = changes
        .take_back(&core.started.workspace, &load, &trash(core, effect))
        .map_err(|error| Stop::Failed(format!("changes of a command remain: {error}")))?;
    let really = changes.paths();
    let reasons = found.iter().filter_map(|withheld| {
        let path = &changed.get(withheld.index)?.path;
        let text = path.display().to_string();
        let differs = really.contains(&text.as_str()) || not_kept.contains(path);
        differs.then(|| (text, withheld.reason.clone()))
    });
    withheld.reasons = reasons.collect();
    let refused = done.refused.into_iter();
    withheld.left = refused.map(|refused| (refused.path, refused.why)).collect();
    withheld.changes = Some(changes);
    withheld.not_kept = not_kept;
    Ok(changed_files)
}

fn holds_secret(core: &Core, text: &str) -> bool {
    core.kernel.organs().redactor.recognises(text.as_bytes())
}

/// A folder of the run's for copies of what is replaced in the workspace.
fn trash(core: &Core, effect: &EffectId) -> PathBuf {
    let run = core.kernel.store().folder(&log_name(core.started.run));
    run.join("withheld")
        .join(format!("{effect}-{}", crate::core::now_ms()))
}

/// The effect under which a person is asked about what `effect` changed.
pub(super) fn asking(effect: &EffectId) -> EffectId {
    effect.then(0).then(1)
}

/// Asks about the changes that were withheld of a call, and applies them on a yes. Returns what
/// became of them, for the model. `past` is what the journal holds of that.
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
    let withheld: Withheld = serde_json::from_slice(&bytes)
        .map_err(|error| Stop::Failed(format!("the changes {blob} of a call: {error}")))?;
    let mut note = format!(
        "[The command changed files by which other programs run things or agents are instructed: \
         {}. These changes were taken back",
        withheld.names(core)
    );
    for (path, why) in withheld.left.iter().take(MAX_NAMED) {
        note.push_str(&format!("; `{path}` could not be: {why}"));
    }
    let outcome = ask(core, &asking(effect), past, blob, &withheld).await?;
    Ok(Some(format!("{note}; {outcome}]")))
}

async fn ask(
    core: &Core,
    asking: &EffectId,
    past: Vec<Entry>,
    blob: &BlobId,
    withheld: &Withheld,
) -> Result<String, Stop> {
    let offered = withheld.offered();
    if offered.is_empty() {
        return Ok("they are no plain files or too large, and were not kept.".to_owned());
    }
    if matches!(core.settings.mode, Mode::Never | Mode::ReadOnly) {
        return Ok(format!(
            "mode `{}` lets nobody be asked about them.",
            core.settings.mode
        ));
    }
    // A run that was imported without its files is replayed without them; what cannot be read
    // cannot be applied either.
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
            Entry::Noted { kind, .. } if kind == CARRIED => {}
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

/// Applies changes that a person allowed, and notes what came of it.
fn apply(core: &Core, asking: &EffectId, allowed: &Offered) -> Result<String, Stop> {
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

fn card(core: &Core, withheld: &Withheld, diff: &str) -> Card {
    let redactor = &core.kernel.organs().redactor;
    let mut shown: String = diff.chars().take(MAX_DIFF_CHARS).collect();
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
    Card {
        sentence: format!(
            "A command changed {}; the change was taken back, and your yes applies it again",
            withheld.names(core)
        ),
        reasons,
        details: vec![Text::new(redactor.redact(&shown).into_owned(), of_command)],
        question: false,
        wider: Vec::new(),
        edit: None,
    }
}
