//! What a call changed in the workspace is judged when it ends, before anything else of the run
//! happens.
//!
//! A command may write whatever it likes while it runs; nothing outside its sandbox looks at it.
//! When it has ended, the gate says which of its changes may not stay without a person's yes. Those
//! are taken back at once, and the call's outcome says which they were. Then a person is asked, as
//! an effect of its own within the call, and a yes applies them again.

use std::path::PathBuf;

use gyrus_contract::{BlobId, Digest, EffectId, Mode, Origin, ResolvedCall, Text, Tool, Touch};
use gyrus_workspace::{
    ChangeSet, Recorded,
    snapshot::{SnapshotError, Taken},
};
use serde::{Deserialize, Serialize};

use super::{approval, execute::changes_the_workspace};
use crate::{Card, Entry, Fact, Stop, ToolResulted, core::Core, log_name};

/// The kind of the fact that withheld changes were applied, or why they were not.
const APPLIED: &str = "changes.applied";

/// The most characters of a diff on a card.
const MAX_DIFF_CHARS: usize = 16_000;

/// The most files that a text names.
const MAX_NAMED: usize = 20;

/// Changes of one call that were taken back until a person says yes. A blob that the call's outcome
/// names.
#[derive(Debug, Serialize, Deserialize)]
struct Withheld {
    changes: ChangeSet,
    /// The changed files, each with the reason why it may not stay.
    reasons: Vec<(String, String)>,
    /// Files that were taken back and cannot be applied again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_kept: Vec<PathBuf>,
    /// Files that could not be taken back, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left: Vec<(String, String)>,
}

impl Withheld {
    fn names(&self) -> String {
        let mut names: Vec<String> = self
            .reasons
            .iter()
            .take(MAX_NAMED)
            .map(|(path, _)| format!("`{path}`"))
            .collect();
        let more = self.reasons.len().saturating_sub(MAX_NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.join(", ")
    }

    /// The changes that a yes can apply.
    fn offered(&self) -> ChangeSet {
        self.changes.without(&self.not_kept)
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

/// Keeps what the workspace holds before a call. Returns the snapshot, which is to be on disk with
/// the call's start; `None` where the folder is too large for one, which the verdict knew.
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
        Some((_, before)) => Ok(Some(*before)),
        None => keep(core)?,
    };
    if let Ok(Some(before)) = &kept {
        began.push((effect.clone(), *before));
    }
    Ok(kept)
}

/// Takes back what may not stay of what changed since [`begin`], once the call's processes are
/// gone. Returns the blob for its outcome, if there was anything.
pub(super) fn end(core: &Core, effect: &EffectId) -> Result<Option<BlobId>, Stop> {
    let mut began = core.judged_calls();
    if !began.iter().any(|(call, _)| call == effect) {
        return Ok(None);
    }
    let withheld = judge(core, effect)?;
    began.retain(|(call, _)| call != effect);
    Ok(withheld)
}

fn keep(core: &Core) -> Result<Result<Option<BlobId>, String>, Stop> {
    match core.snapshots().take(|bytes| core.log.put_blob(bytes)) {
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
pub(super) fn go_on_from(core: &Core, before: &BlobId) -> Result<(), Stop> {
    let load = |id: &BlobId| core.log.reader().blob(id);
    core.snapshots()
        .go_on_from(before, load)
        .map_err(|error| Stop::Failed(format!("what the folder held before a command: {error}")))
}

/// Takes back what may not stay of all that changed since the last snapshot. Returns the blob for
/// the outcome of a call, if there was anything.
pub(super) fn judge(core: &Core, effect: &EffectId) -> Result<Option<BlobId>, Stop> {
    let snapshots = core.snapshots();
    let failed = |error: std::io::Error| {
        Stop::Failed(format!(
            "what a command changed cannot be looked at: {error}"
        ))
    };
    let Some(changed) = snapshots.changed_paths().map_err(failed)? else {
        return Ok(None);
    };
    let found = core.withhold(&changed);
    if found.is_empty() {
        return Ok(None);
    }
    let paths: Vec<_> = found
        .iter()
        .filter_map(|withheld| changed.get(withheld.index))
        .collect();
    let redactor = &core.kernel.organs().redactor;
    let recorded = ChangeSet::record(&snapshots, &paths, |_, content| {
        // A file with a secret is no blob of the journal.
        let text = String::from_utf8_lossy(content);
        match redactor.redact(&text) == text {
            true => core.log.put_blob(content).map(Some),
            false => Ok(None),
        }
    })?;
    let Some(Recorded { changes, not_kept }) = recorded else {
        return Ok(None);
    };
    if changes.is_empty() && not_kept.is_empty() {
        return Ok(None);
    }
    let load = |id: &BlobId| core.log.reader().blob(id);
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
    let withheld = Withheld {
        reasons: reasons.collect(),
        left: done
            .refused
            .into_iter()
            .map(|refused| (refused.path, refused.why))
            .collect(),
        changes,
        not_kept,
    };
    let json = serde_json::to_vec(&withheld).map_err(|error| Stop::Failed(error.to_string()))?;
    core.log.put_blob(&json).map(Some)
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
        withheld.names()
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
        return Ok("they hold a secret, or are no plain files, and were not kept.".to_owned());
    }
    if matches!(core.settings.mode, Mode::Never | Mode::ReadOnly) {
        return Ok(format!(
            "mode `{}` lets nobody be asked about them.",
            core.settings.mode
        ));
    }
    let load = |id: &BlobId| core.log.reader().blob(id);
    let diff = offered
        .diff(&load)
        .map_err(|error| Stop::Failed(error.to_string()))?;
    let card = card(core, withheld, &diff);
    let digest = Digest::of_json(&(asking, blob));
    let mut applied = None;
    let mut questions = Vec::new();
    for entry in past {
        match entry {
            Entry::Noted { kind, fact, .. } if kind == APPLIED => {
                applied = fact.fact.as_str().map(str::to_owned);
            }
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
fn apply(core: &Core, asking: &EffectId, allowed: &ChangeSet) -> Result<String, Stop> {
    core.may_act()?;
    let load = |id: &BlobId| core.log.reader().blob(id);
    let outcome = match allowed.apply(&core.started.workspace, &load, &trash(core, asking)) {
        Ok(done) if done.refused.is_empty() => {
            "then a person allowed them, and they were applied.".to_owned()
        }
        Ok(done) => {
            let left: Vec<_> = done
                .refused
                .iter()
                .map(|refused| format!("`{}` ({})", refused.path, refused.why))
                .collect();
            format!(
                "then a person allowed them, and they were applied but for {}.",
                left.join(", ")
            )
        }
        Err(error) => format!("a person allowed them, but they could not be applied: {error}"),
    };
    core.shared().world_changed = true;
    core.log.append(Entry::Noted {
        kind: APPLIED.to_owned(),
        version: 1,
        fact: Fact {
            effect: asking.clone(),
            fact: outcome.clone().into(),
        },
    })?;
    Ok(outcome)
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
    let mut reasons: Vec<String> = withheld
        .reasons
        .iter()
        .take(MAX_NAMED)
        .map(|(path, why)| format!("`{path}`: {why}"))
        .collect();
    let more = withheld.reasons.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        reasons.push(format!("and {more} more of that kind"));
    }
    Card {
        sentence: format!(
            "A command changed {}; the change was taken back, and your yes applies it again",
            withheld.names()
        ),
        reasons,
        details: vec![Text::new(redactor.redact(&shown).into_owned(), of_command)],
        question: false,
        wider: Vec::new(),
        edit: None,
    }
}
