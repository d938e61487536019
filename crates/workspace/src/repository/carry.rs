//! Carries the changes of commands from a private copy over into the real repository, so that a
//! kill or a loss of power at any point leaves it intact.
//!
//! In this order, for each store, submodules first: the plan, on disk; new objects, checked one by
//! one and then for completeness; the locks; and under them references, `HEAD`, state, logs,
//! settings and last the index, as [`super::decide`] judges them. The locks are held to the end, so
//! that no other process acts on a partial result. Repeating all of it after a kill has the same
//! result.

use std::{collections::BTreeSet, path::Path};

use super::{
    RepositoryError, apply,
    carried::{CarryError, CarryRecord, UncarriedChange},
    changes::{RepositoryChanges, StoreChanges},
    decide::{self, ChangeFate, StoreDecision},
    folder::GitFolder,
    git::Git,
    history::Examination,
    history_rule::HistoryRule,
    keep,
    locks::{LockResult, Locks},
    log::CommitLog,
    names::ObjectId,
    objects::{self, Objects},
    plan::{CarryPlan, PlanPurpose},
    private_copy::{COPY, PrivateCopy},
    refs, stage,
    withheld_history::WithheldHistory,
};

/// Maximum bytes of the list of commits at which a shallow clone ends.
const MAX_SHALLOW: u64 = 4 << 20;

impl PrivateCopy {
    /// Carries `changes` over, which [`PrivateCopy::changes`] has returned since the last command.
    /// `git` is the absolute path of the program, and `rule` decides which files in commits wait.
    /// `steps` is called after each step; it may end the process.
    ///
    /// Afterwards [`PrivateCopy::refresh`] brings the copy up to date.
    ///
    /// # Errors
    /// See [`CarryError`].
    pub fn carry(
        &self,
        changes: RepositoryChanges,
        git: &Path,
        rule: HistoryRule<'_>,
        steps: &mut dyn FnMut(&'static str),
    ) -> Result<CarryRecord, CarryError> {
        if CarryPlan::read(&self.folder)?.is_some() {
            return Err(CarryError::Unfinished);
        }
        if changes.stores.is_empty() {
            self.settle()?;
            return Ok(CarryRecord {
                repository: self.directory.path.clone(),
                stores: Vec::new(),
                kept: Vec::new(),
                withheld: changes.withheld,
                history: Vec::new(),
                notes: changes.notes,
            });
        }
        let plan = CarryPlan::new(PlanPurpose::Carry, &self.directory.path, &self.run, changes);
        plan.write(&self.folder)?;
        steps("plan written");
        execute(&self.folder, plan, git, Some(rule), steps)
    }
}

/// Finishes a carry-over interrupted by a kill in the folder of a private copy; `None` if none was.
/// To be called when a run is taken up, before its private copy is prepared, and before each
/// command.
///
/// # Errors
/// See [`CarryError`]. [`CarryError::Unfinished`] if commits have to be judged, and there is no
/// `rule`.
pub fn recover(
    folder: &Path,
    git: &Path,
    rule: Option<HistoryRule<'_>>,
    steps: &mut dyn FnMut(&'static str),
) -> Result<Option<CarryRecord>, CarryError> {
    match CarryPlan::read(folder)? {
        None => Ok(None),
        Some(plan) => execute(folder, plan, git, rule, steps).map(Some),
    }
}

/// Carries out a stored plan, and removes it.
pub(super) fn execute(
    folder: &Path,
    mut plan: CarryPlan,
    git: &Path,
    rule: Option<HistoryRule<'_>>,
    steps: &mut dyn FnMut(&'static str),
) -> Result<CarryRecord, CarryError> {
    if plan.purpose == PlanPurpose::Carry && rule.is_none() {
        return Err(CarryError::Unfinished);
    }
    let live = GitFolder::open(&plan.repository)?;
    let stores = std::mem::take(&mut plan.changes.stores);
    let mut carried = CarryRecord {
        repository: plan.repository.clone(),
        stores: Vec::new(),
        kept: Vec::new(),
        withheld: std::mem::take(&mut plan.changes.withheld),
        history: Vec::new(),
        notes: std::mem::take(&mut plan.changes.notes),
    };
    for mut changes in stores {
        let store = StoreCarry {
            folder,
            plan: &plan,
            live: &live,
            rule: rule.filter(|_| plan.purpose == PlanPurpose::Carry),
        };
        let outcome = store.run(&mut changes, git, steps);
        match outcome {
            Ok(outcome) => {
                carried.stores.extend(outcome.done);
                carried.kept.extend(outcome.kept);
                carried.history.extend(outcome.history);
            }
            Err(Halt::Before(error)) => {
                CarryPlan::remove(folder)?;
                return Err(error);
            }
            // The locks stay held; the next process finishes it.
            Err(Halt::Within(error)) => return Err(error),
        }
    }
    if plan.purpose == PlanPurpose::Carry {
        let marked = std::fs::write(folder.join(super::private_copy::CARRIED), "1\n");
        marked.map_err(|error| RepositoryError::io(folder, &error))?;
        steps("copy marked");
    }
    CarryPlan::remove(folder)?;
    steps("plan removed");
    Ok(carried)
}

/// Point at which a carry-over of a store ended.
enum Halt {
    /// Before any change, or with the repository as it was found: the plan is dropped.
    Before(CarryError),
    /// After some changes: the plan is kept.
    Within(CarryError),
}

impl From<CarryError> for Halt {
    fn from(error: CarryError) -> Self {
        Self::Before(error)
    }
}

struct StoreCarry<'a> {
    folder: &'a Path,
    plan: &'a CarryPlan,
    live: &'a GitFolder,
    /// Decides about new commits; `None` if a person has approved them.
    rule: Option<HistoryRule<'a>>,
}

/// Result of carrying over the changes of a store.
struct StoreOutcome {
    done: Option<StoreChanges>,
    kept: Vec<UncarriedChange>,
    history: Option<WithheldHistory>,
}

impl StoreCarry<'_> {
    fn run(
        &self,
        changes: &mut StoreChanges,
        git: &Path,
        steps: &mut dyn FnMut(&'static str),
    ) -> Result<StoreOutcome, Halt> {
        // A process that was killed may hold the locks of what is withheld now.
        let files = decide::files_to_lock(changes);
        let mut locks = Locks::new(self.live, &changes.store, self.plan)?;
        let history = match self.import(changes, git, steps) {
            Ok(history) => history,
            Err(error) => {
                locks.release(&files)?;
                return Err(match error {
                    // Something odd in the copy: trying again will not help.
                    CarryError::Repository(error) => Halt::Before(CarryError::Refused {
                        reason: error.to_string(),
                    }),
                    error => Halt::Before(error),
                });
            }
        };
        match self.locked(changes, &mut locks, steps) {
            Ok((done, kept)) => {
                let withheld = history.as_ref().map_or(&[][..], |_| &files);
                locks.release(withheld)?;
                steps("locks released");
                apply::tidy(self.live, changes);
                Ok(StoreOutcome {
                    done,
                    kept,
                    history,
                })
            }
            Err(Halt::Within(error)) => Err(Halt::Within(error)),
            Err(Halt::Before(error)) => {
                locks.release(&files)?;
                apply::tidy(self.live, changes);
                Err(Halt::Before(error))
            }
        }
    }

    fn locked(
        &self,
        changes: &StoreChanges,
        locks: &mut Locks<'_>,
        steps: &mut dyn FnMut(&'static str),
    ) -> Result<(Option<StoreChanges>, Vec<UncarriedChange>), Halt> {
        locks.prepare()?;
        steps("locks prepared");
        for file in decide::files_to_lock(changes) {
            if locks.take(&file)? == LockResult::Held {
                steps("lock taken");
            }
        }
        let decision = decide::decide(self.live, changes, self.plan.purpose)?;
        if self.plan.purpose != PlanPurpose::Carry && !decision.is_whole() {
            return Err(moved(changes, &decision).into());
        }
        let kept = keep::keep(self.live, changes, &decision, locks, &self.plan.run)?;
        steps("kept apart");
        let todo = stage::stage(self.live, changes, &decision, locks)?;
        steps("staged");
        apply::apply(self.live, todo, locks, steps).map_err(Halt::Within)?;
        let done = done(changes, &decision);
        Ok(((!done.is_empty()).then_some(done), kept))
    }

    /// Copies the objects of the changes, and withholds the changes that need an approval.
    fn import(
        &self,
        changes: &mut StoreChanges,
        git: &Path,
        steps: &mut dyn FnMut(&'static str),
    ) -> Result<Option<WithheldHistory>, CarryError> {
        let known = refs::named(self.live, &changes.store)?;
        let new =
            |ids: BTreeSet<ObjectId>| -> BTreeSet<_> { ids.difference(&known).copied().collect() };
        let mut tips = new(changes.tips());
        let logged: BTreeSet<_> = new(changes.logged()).difference(&tips).copied().collect();
        let stages = changes.worktrees.iter().any(|tree| !tree.index.is_empty());
        if tips.is_empty() && logged.is_empty() && !stages {
            return Ok(None);
        }
        let git = Git::new(git, self.folder)?;
        let shallow = self
            .live
            .read(&changes.store.join("shallow"), MAX_SHALLOW)?;
        git.set_shallow(shallow.as_deref())?;
        let copy = self.folder.join(COPY);
        let real = self.live.path().join(&changes.store).join("objects");
        let objects = match self.plan.purpose {
            PlanPurpose::Carry | PlanPurpose::Approved => Objects {
                git: &git,
                private: copy.join(&changes.store).join("objects"),
                real,
            },
            // All objects are in the real store already.
            PlanPurpose::Restore => Objects {
                git: &git,
                private: real.clone(),
                real,
            },
        };
        if self.plan.purpose != PlanPurpose::Restore {
            objects::sweep(&GitFolder::open(&copy)?, &changes.store)?;
        }
        if !logged.is_empty() {
            // A log may name what was collected long ago.
            let missing = objects.missing(&logged)?;
            for log in changes.logs_mut() {
                log.retain(|id| !missing.contains(id));
            }
            tips.extend(logged.difference(&missing));
        }
        if self.plan.purpose != PlanPurpose::Restore {
            // A process that was killed may have brought them over already.
            if let Err(error) = objects.import(&tips, &known)
                && objects.check(&tips, &known).is_err()
            {
                return Err(error);
            }
            steps("objects imported");
        }
        let commits = new(changes.commit_tips());
        let examination = self.rule.map(|rule| Examination {
            objects: &objects,
            rule,
            live: self.live,
            known: &known,
        });
        // Two processes at once cost hardly more time than one.
        let log = self.rule.filter(|_| !commits.is_empty());
        let log = log.map(|_| CommitLog::start(&objects, &commits, &known));
        objects.check(&tips, &known)?;
        steps("objects checked");
        let log = log.transpose()?;
        examination.map_or(Ok(None), |examination| examination.examine(changes, log))
    }
}

/// Returns the changes that are now in the real repository.
fn done(changes: &StoreChanges, decision: &StoreDecision) -> StoreChanges {
    let is_done = |fate: &ChangeFate| !matches!(fate, ChangeFate::Kept(_));
    let refs = changes
        .refs
        .iter()
        .zip(&decision.refs)
        .filter(|(_, fate)| is_done(fate));
    let settings = changes
        .settings
        .iter()
        .zip(&decision.settings)
        .filter(|(_, fate)| is_done(fate));
    let files = changes
        .files
        .iter()
        .zip(&decision.files)
        .filter(|(_, fate)| is_done(fate));
    let worktrees = changes.worktrees.iter().zip(&decision.worktrees);
    StoreChanges {
        store: changes.store.clone(),
        refs: refs.map(|(change, _)| change.clone()).collect(),
        worktrees: worktrees
            .filter(|(_, fate)| fate.is_ok())
            .map(|(change, _)| change.clone())
            .collect(),
        settings: settings.map(|(change, _)| change.clone()).collect(),
        files: files.map(|(change, _)| change.clone()).collect(),
    }
}

/// Returns the error for the first change that cannot be undone.
pub(super) fn moved(changes: &StoreChanges, decision: &StoreDecision) -> CarryError {
    let refs = changes
        .refs
        .iter()
        .map(|change| change.name.to_string())
        .zip(&decision.refs);
    let settings = changes
        .settings
        .iter()
        .map(|change| change.name.to_string())
        .zip(&decision.settings);
    let files = changes
        .files
        .iter()
        .map(|change| change.path.display().to_string())
        .zip(&decision.files);
    let kept = refs
        .chain(settings)
        .chain(files)
        .find_map(|(what, fate)| match fate {
            ChangeFate::Kept(reason) => Some((what, *reason)),
            ChangeFate::Done | ChangeFate::Carried => None,
        });
    let worktrees = changes.worktrees.iter().zip(&decision.worktrees);
    let mut heads = worktrees.filter_map(|(change, fate)| {
        let reason = fate.as_ref().err()?;
        Some((change.file("HEAD").display().to_string(), *reason))
    });
    let (what, reason) = kept.or_else(|| heads.next()).unwrap_or_default();
    CarryError::Moved {
        what,
        reason: reason.to_owned(),
    }
}
