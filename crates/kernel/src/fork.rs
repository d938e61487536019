//! Forking: a new run that shares a prefix with another and continues live.

use std::{path::PathBuf, sync::Arc};

use gyrus_contract::{Digest, FollowedSkill, MemoryItem, RunId, Spent, Strength};
use gyrus_journal::LogReader;
use gyrus_workspace::snapshot::{Difference, differences, materialise};

use crate::{
    CycleEnded, DrivableRun, Entry, ForkedFrom, Inline, Kernel, KernelError, KernelState,
    MessagesAppended, RunStarted, Snapshot, Stop,
    before::carry_parts,
    contents,
    log::{RunLog, parse},
    position::{RunPosition, memory_at},
    register,
    runs::{check_workspace, log_name, own_reader},
};

/// The workspace of a fork.
#[derive(Debug, Clone)]
pub enum ForkInto {
    /// A new folder, filled with the workspace as it was at the cycle's end.
    Folder(PathBuf),
    /// The workspace as it is now.
    InPlace,
}

/// The comparison of a fork's workspace with the workspace at the cycle's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkedFiles {
    /// The workspace was created from the snapshot.
    LaidOut {
        /// Files that are missing because they are or held secrets, and their contents, which were
        /// stored separately, are gone.
        left_out: Vec<String>,
    },
    /// The workspace has these differences.
    Differ(Vec<Difference>),
    /// The workspaces could not be compared, for this reason.
    Unknown(String),
}

/// The reason why the files of a snapshot that an entry names cannot be read.
const NOT_HERE: &str = "the run was imported without its files, or they were pruned";

/// A fork that can be driven.
pub struct DrivableFork {
    /// The new run.
    pub ready: DrivableRun,
    /// The comparison of the new run's workspace.
    pub files: ForkedFiles,
}

impl Kernel {
    /// Forks `run` at the end of `cycle`; cycle 0 is its start. The new run has `settings`; grants,
    /// answers, messages and keys of the old one are not inherited.
    ///
    /// # Errors
    /// Returns an error when the run is a record, when there is no such cycle, or no snapshot of the
    /// workspace to fill a folder with.
    pub fn fork(
        &self,
        run: RunId,
        cycle: u32,
        into: ForkInto,
        changes: crate::ResumeChanges,
    ) -> Result<DrivableFork, KernelError> {
        self.check_latch()?;
        let reader = own_reader(self.store(), run)?;
        let source = ForkSource::read(run, &reader, cycle)?;
        let (workspace, files) = source.workspace(&reader, into)?;
        let cognitive_loop =
            self.make_loop(&source.started.cognitive_loop, &source.started.loop_config)?;
        let settings = self.changed(&source.started.settings, &*cognitive_loop, changes);
        let id = RunId::new();
        let log = RunLog::new(self.store().prepare(&log_name(id))?);
        let source_log = RunLog::recorded(reader);
        let store = |item: &MemoryItem| -> Result<Inline<MemoryItem>, Stop> {
            carry_parts(&item.message.parts, source_log.reader(), &log)?;
            Inline::store(item, &log)
        };
        let memory: Vec<_> = source.started.memory_items(source_log.reader())?;
        let context = source.started.context_parts(source_log.reader())?;
        carry_parts(&context, source_log.reader(), &log)?;
        let started = RunStarted {
            run: id,
            goal: Inline::store(&source.started.goal.load(&source_log)?, &log)?,
            context: context
                .iter()
                .map(|part| Inline::store(part, &log))
                .collect::<Result<_, _>>()?,
            memory: MessagesAppended {
                first: source.started.memory.first,
                items: memory.iter().map(store).collect::<Result<_, _>>()?,
            },
            workspace: workspace.clone(),
            served: self.organs().pin_served(&log)?,
            model: self.organs().router.name().to_owned(),
            settings: settings.clone(),
            parent: None,
            worktree: None,
            grants: Vec::new(),
            skills: without_grants(&source.started.skills),
            forked_from: Some(ForkedFrom {
                run,
                cycle,
                head: source.head,
            }),
            snapshot: Some(crate::driver::first_snapshot(self, &log, &workspace)?),
            ..RunStarted::clone(&source.started)
        };
        let mut first: Vec<Entry> = vec![started.clone().into()];
        let mut position = RunPosition::fresh(started);
        if let Some(last) = source.last {
            let capacity = cognitive_loop.memory().capacity();
            let (number, items) = memory_at(source_log.reader(), &last, capacity)?;
            let items = items.iter().map(store).collect::<Result<_, _>>()?;
            let appended = MessagesAppended {
                first: number,
                items,
            };
            let ended = inherited(last, appended);
            first.push(ended.clone().into());
            position.cycle = ended.cycle + 1;
            position.last = Some(ended);
        }
        let writer = register::publish(self.store(), log, &position.started, &first)?;
        let ready = DrivableRun::new(self.clone(), writer, position, None, false)?;
        Ok(DrivableFork { ready, files })
    }
}

/// Returns the end of the shared prefix as the new run's own entry.
fn inherited(last: CycleEnded, appended: MessagesAppended) -> CycleEnded {
    CycleEnded {
        appended,
        kernel: KernelState {
            // The other run paid for the prefix.
            spent: Spent::default(),
            denied: Vec::new(),
            grants: Vec::new(),
            permits: Vec::new(),
            // What is there today joins again.
            added_tools: Vec::new(),
            settings: None,
            ..last.kernel
        },
        claim: None,
        strength: Strength::default(),
        error: None,
        snapshot: None,
        ..last
    }
}

/// The run to fork from, up to its cycle.
struct ForkSource {
    started: Arc<RunStarted>,
    last: Option<CycleEnded>,
    /// The workspace at the cycle's end.
    snapshot: Snapshot,
    head: Digest,
}

impl ForkSource {
    fn read(run: RunId, reader: &LogReader, cycle: u32) -> Result<Self, KernelError> {
        let position = RunPosition::read(run, reader)?;
        let mut source = Self {
            snapshot: position.started.snapshot_or_why(),
            started: position.started,
            last: None,
            head: Digest::of(b""),
        };
        for entry in reader.entries(1)? {
            let entry = entry?;
            match parse(&entry).map_err(Stop::from)? {
                Entry::RunStarted(_) if cycle == 0 => {
                    source.head = entry.hash;
                    return Ok(source);
                }
                Entry::CycleEnded(ended) => {
                    if let Some(snapshot) = &ended.snapshot {
                        source.snapshot = snapshot.clone();
                    }
                    let number = ended.cycle;
                    if number == cycle {
                        source.head = entry.hash;
                        source.last = Some(ended);
                        return Ok(source);
                    }
                }
                _ => {}
            }
        }
        Err(KernelError::NoStep {
            run,
            step: cycle,
            last: position.last.map_or(0, |last| last.cycle),
        })
    }

    fn workspace(
        &self,
        reader: &LogReader,
        into: ForkInto,
    ) -> Result<(PathBuf, ForkedFiles), KernelError> {
        let unreadable = |error: String| {
            KernelError::Stop(Stop::Failed(format!("the workspace's snapshot: {error}")))
        };
        let snapshot = match &self.snapshot {
            Snapshot::Blob(id) => match reader.blob(id) {
                Err(gyrus_journal::Error::BlobMissing { .. }) => Err(NOT_HERE.to_owned()),
                _ => Ok(id),
            },
            Snapshot::Missing(why) => Err(why.clone()),
        };
        let load = |id: &gyrus_contract::BlobId| contents::load(reader, id);
        match into {
            ForkInto::InPlace => {
                let workspace = self.started.workspace.clone();
                check_workspace(&workspace)?;
                // It is for information only, and a prune drops it.
                let compared = snapshot.and_then(|id| {
                    let compared = differences(id, load, &workspace);
                    compared.map_err(|error| error.to_string())
                });
                let files = match compared {
                    Ok(files) => ForkedFiles::Differ(files),
                    Err(why) => ForkedFiles::Unknown(why),
                };
                Ok((workspace, files))
            }
            ForkInto::Folder(folder) => {
                let id =
                    snapshot.map_err(|why| unreadable(format!("{why}; fork with --in-place")))?;
                let left_out = materialise(id, load, &folder)
                    .map_err(|error| unreadable(error.to_string()))?;
                let folder = folder
                    .canonicalize()
                    .map_err(|error| unreadable(format!("{}: {error}", folder.display())))?;
                Ok((folder, ForkedFiles::LaidOut { left_out }))
            }
        }
    }
}

/// Returns the skills as they limit a run, without the rights that they were granted.
fn without_grants(skills: &[FollowedSkill]) -> Vec<FollowedSkill> {
    let bare = |skill: &FollowedSkill| FollowedSkill {
        grants: Vec::new(),
        ..skill.clone()
    };
    skills.iter().map(bare).collect()
}
