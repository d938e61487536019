//! Planning an undo: the two moments of a run that are compared.

use std::path::{Path, PathBuf};

use gyrus_contract::{BlobId, RunId};
use gyrus_journal::{LogReader, Store};
use gyrus_workspace::{
    layer::{self, KeptFiles},
    undo::{UndoChange, UndoPlan, patch_between},
};

use super::{
    RunUndoError,
    repositories::{self, RepositoryUndo},
};
use crate::{
    Entry as Recorded, Snapshot, Stop, contents, effects::withheld::CARRIED, log_name, parse,
    runs::check_workspace,
};

/// The plan to undo one run, under the present facts.
#[derive(Debug)]
pub struct RunUndo {
    pub run: RunId,
    /// The step after which the workspace was as it will be; 0 means before the run.
    pub to: u32,
    /// The files that are reverted, and those that are not.
    pub plan: UndoPlan,
    /// The changes of repositories that are reverted.
    pub repositories: Vec<RepositoryUndo>,
    /// The changes of calls to files that no snapshot contains, oldest first.
    pub(super) files: Vec<KeptFiles>,
    /// File changes inside these repositories that are reverted.
    pub(super) files_back: Vec<UndoChange>,
    /// The step in which the run was interrupted; its changes are in no snapshot.
    pub unfinished: Option<u32>,
    /// Whether the run has ended for good, so that it cannot be resumed.
    pub is_over: bool,
}

/// Plans to revert the changes of `run` after its step `to`. Earlier undos went back to the ends of
/// the steps `back_to`, oldest first.
pub(super) fn plan(
    store: &Store,
    run: RunId,
    to: u32,
    back_to: &[u32],
) -> Result<RunUndo, RunUndoError> {
    let reader = store.reader(&log_name(run))?;
    let Moments {
        workspace,
        before,
        after,
        unfinished,
        is_over,
        to_undo,
        moments,
    } = Moments::read(run, &reader, to)?;
    check_workspace(&workspace)?;
    let (carried, files) = repositories::read(&reader, &to_undo)?;
    let places = repositories::in_folder(&carried, &workspace);
    let load = |id: &BlobId| contents::load(&reader, id);
    let restored = restored(back_to, &moments);
    let mut plan = match (kept(before), kept(after)) {
        (Ok(before), Ok(after)) => {
            UndoPlan::new(workspace, &before, &after, &places, &restored, load)?
        }
        // Too large for snapshots: each call kept the files that it changed.
        (Err(_), Err(_)) if !files.is_empty() => UndoPlan::of_nothing(workspace, &places),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    let looked = layer::take_back(&plan.workspace, &files, false, &mut || {});
    let looked = looked.map_err(|error| Stop::Failed(error.to_string()))?;
    plan.already += looked.already;
    plan.refused.extend(looked.refused);
    let repositories = repositories::plan(carried, &mut plan);
    Ok(RunUndo {
        run,
        to,
        plan,
        repositories,
        files,
        files_back: looked.done,
        unfinished,
        is_over,
    })
}

/// Plans to make the changes of a run in another folder.
pub(super) fn plan_in(store: &Store, run: RunId, folder: &Path) -> Result<UndoPlan, RunUndoError> {
    let reader = store.reader(&log_name(run))?;
    let Moments { before, after, .. } = Moments::read(run, &reader, 0)?;
    let (before, after) = (kept(before)?, kept(after)?);
    let load = |id: &BlobId| contents::load(&reader, id);
    Ok(UndoPlan::carry_over(folder, &before, &after, &load)?)
}

/// Returns the changes of a run after a step, from its snapshots.
pub(super) fn recorded_patch(
    store: &Store,
    run: RunId,
    since: u32,
) -> Result<(String, Vec<String>), RunUndoError> {
    let reader = store.reader(&log_name(run))?;
    let Moments { before, after, .. } = Moments::read(run, &reader, since)?;
    let (before, after) = (kept(before)?, kept(after)?);
    Ok(patch_between(&before, &after, &|id| {
        contents::load(&reader, id)
    })?)
}

/// Returns the snapshots after these steps.
fn restored(steps: &[u32], moments: &[(Snapshot, u32)]) -> Vec<BlobId> {
    let then = steps.iter().filter_map(|wanted| {
        let then = moments.iter().rfind(|(_, step)| step <= wanted)?;
        kept(then.clone()).ok()
    });
    then.collect()
}

/// The two moments of a run that are compared.
struct Moments {
    workspace: PathBuf,
    before: (Snapshot, u32),
    after: (Snapshot, u32),
    unfinished: Option<u32>,
    is_over: bool,
    /// Blobs in which later calls stored data for an undo, in their order.
    to_undo: Vec<BlobId>,
    /// Every snapshot with the step after which it was taken.
    moments: Vec<(Snapshot, u32)>,
}

impl Moments {
    fn read(run: RunId, reader: &LogReader, to: u32) -> Result<Self, RunUndoError> {
        let mut workspace = PathBuf::new();
        let mut before = None;
        // The last snapshot so far, and the step after which it was taken.
        let mut latest = (Snapshot::Missing("the run has no start".to_owned()), 0);
        let (mut last, mut began, mut is_over) = (0, false, false);
        let (mut to_undo, mut moments) = (Vec::new(), Vec::new());
        for entry in reader.entries(1)? {
            match parse(&entry?).map_err(Stop::from)? {
                Recorded::RunStarted(started) => {
                    workspace.clone_from(&started.workspace);
                    latest = (started.snapshot_or_why(), 0);
                    moments.push(latest.clone());
                }
                Recorded::WorkspaceRecorded(recorded) => {
                    latest = (recorded.snapshot, 0);
                    moments.push(latest.clone());
                }
                Recorded::CycleEnded(ended) => {
                    if ended.cycle > to {
                        before.get_or_insert_with(|| latest.clone());
                    }
                    (last, began) = (ended.cycle, false);
                    if let Some(snapshot) = ended.snapshot {
                        latest = (snapshot, ended.cycle);
                        moments.push(latest.clone());
                    }
                }
                Recorded::ToolStarted(_) => began = true,
                Recorded::ToolResulted(resulted) if resulted.effect.cycle_number() > to => {
                    to_undo.extend(resulted.to_undo);
                }
                Recorded::Noted { kind, fact, .. }
                    if kind == CARRIED && fact.effect.cycle_number() > to =>
                {
                    to_undo.extend(fact.fact.as_str().and_then(|id| id.parse::<BlobId>().ok()));
                }
                Recorded::RunEnded(_) => is_over = true,
                _ => {}
            }
        }
        if to > last {
            return Err(RunUndoError::NoStep {
                run,
                step: to,
                last,
            });
        }
        let before = before.unwrap_or_else(|| latest.clone());
        Ok(Self {
            workspace,
            before,
            after: latest,
            unfinished: began.then_some(last + 1),
            is_over,
            to_undo,
            moments,
        })
    }
}

fn kept((snapshot, step): (Snapshot, u32)) -> Result<BlobId, RunUndoError> {
    match snapshot {
        Snapshot::Blob(id) => Ok(id),
        Snapshot::Missing(why) => {
            let when = match step {
                0 => "before the run".to_owned(),
                step => format!("after step {step}"),
            };
            Err(RunUndoError::NotKept { when, why })
        }
    }
}
