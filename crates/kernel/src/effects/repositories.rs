//! The workspace's repositories, of which commands see private copies only.
//!
//! Before a command the copies are brought up to date; while it runs they are mounted over the real
//! git directories; when it has ended, git's own data is carried over, and files that control
//! programs wait for a person's approval. Concurrent calls share the copies, so they are brought up
//! to date before the first of them and carried over after the last.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use gyrus_contract::{ChangedPath, Containment, PathChange, WithheldChange};
use gyrus_process::Programs;
use gyrus_workspace::repository::{
    self, CarryError, CarryRecord, Discovery, GitDirectory, HistoryRule, PrivateCopy, RealObjects,
    RefreshResult, RepositoryError, Support, WithheldHistory, WithheldPath,
};

use crate::RunStarted;

/// The folder below the run's own that holds its private copies.
pub(crate) const FOLDER: &str = "repositories";

/// The list of repositories that was made before the first command.
const FOUND: &str = "found.json";

/// Maximum wait for a lock that another program holds.
const LOCKED_FOR: Duration = Duration::from_secs(2);

/// Interval at which such a lock is checked.
const LOCK_LOOKED_AT: Duration = Duration::from_millis(20);

/// Number of digits of a path's hash that name the folder of its copy.
const NAME_DIGITS: usize = 16;

/// The repositories of one run's workspace.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    /// The known repositories; `None` until the first command.
    known: Option<Vec<RepositoryBefore>>,
    /// The time before the start of the first command in progress.
    began: Option<SystemTime>,
    /// The result of carrying over before a command, which is reported at the command's end.
    waiting: CarryOverResult,
}

#[derive(Debug)]
struct RepositoryBefore {
    directory: GitDirectory,
    /// Device and inode number of the repository's folder, before the commands in progress.
    identity: Option<(u64, u64)>,
    copy: Option<PrivateCopy>,
    /// The reason why commands may only read the real repository.
    only_readable: Option<String>,
}

/// The result of carrying over at the end of a command.
#[derive(Debug, Default)]
pub(super) struct CarryOverResult {
    /// Notes for the model, in whole sentences.
    pub(super) notes: Vec<String>,
    pub(super) withheld: Vec<WithheldPath>,
    /// Commits and entries of indexes that wait.
    pub(super) history: Vec<WithheldHistory>,
    /// The changes that an undo reverts, in its order.
    pub(super) carried: Vec<CarryRecord>,
}

impl CarryOverResult {
    fn add(&mut self, directory: &GitDirectory, carried: CarryRecord) {
        self.notes.extend(told(directory, &carried));
        self.carried.extend(carried.to_take_back());
        self.withheld.extend(carried.withheld);
        self.history.extend(carried.history);
    }
}

/// The result of applying changes that a person allowed.
#[derive(Debug, Default)]
pub(super) struct ApplyResult {
    /// The changes that an undo reverts, in its order.
    pub(super) carried: Vec<CarryRecord>,
    /// Changes that could not be applied, each with the reason.
    pub(super) refused: Vec<(String, String)>,
}

/// The changes of paths in a `.git` that may not stay.
#[derive(Debug, Default)]
pub(super) struct WithheldPaths {
    /// Git directories below the workspace about whose files the gate need not decide.
    pub(super) git_directories: Vec<PathBuf>,
    pub(super) withheld: Vec<WithheldPath>,
}

impl RepositoryBefore {
    fn new(directory: GitDirectory) -> Self {
        let only_readable = match &directory.support {
            Support::Carried => None,
            Support::NotCarried { reason } => Some(reason.clone()),
            Support::Bare => Some("it has no work tree".to_owned()),
        };
        Self {
            identity: identity(&directory.path),
            directory,
            copy: None,
            only_readable,
        }
    }

    /// Prepares the copy for a command, if there can be one.
    fn take_up(&mut self, run: &RepositoryFacts<'_>, ended: &mut CarryOverResult) {
        self.identity = identity(&self.directory.path);
        if self.directory.support != Support::Carried || self.identity.is_none() {
            return;
        }
        let before = self.only_readable.take();
        if let Err(error) = self.prepare(run, ended) {
            let why = error.to_string();
            if before.as_ref() != Some(&why) {
                let name = self.directory.name();
                let note = format!("Commands can read `{name}` and not change it now: {why}.");
                ended.notes.push(note);
            }
            self.only_readable = Some(why);
        }
    }

    /// Updates the copy from the real repository. Changes that a lock or a kill kept from being
    /// carried over are carried over first.
    fn prepare(
        &mut self,
        run: &RepositoryFacts<'_>,
        ended: &mut CarryOverResult,
    ) -> Result<(), CarryError> {
        let folder = run.folder(&self.directory.path);
        make_private(&folder)?;
        if let Some(finished) =
            repository::recover(&folder, run.git()?, Some(run.rule(None)), &mut |_| {})?
        {
            ended.add(&self.directory, finished);
        }
        let mut copy = match self.copy.take() {
            Some(copy) => copy,
            None => {
                let real = (run.real_objects)();
                PrivateCopy::prepare(&self.directory, &folder, &run.name, real)?
            }
        };
        let mut refreshed = copy.refresh()?;
        if refreshed == RefreshResult::Pending
            && let Some(changes) = copy.changes()?
        {
            let carried = copy.carry(changes, run.git()?, run.rule(None), &mut |_| {})?;
            ended.add(&self.directory, carried);
            refreshed = copy.refresh()?;
        }
        if let RefreshResult::Updated { dropped, .. } = refreshed {
            ended.notes.extend(dropped);
        }
        self.copy = Some(copy);
        Ok(())
    }

    /// Carries over the changes of commands.
    fn carry(
        &mut self,
        run: &RepositoryFacts<'_>,
        rule: HistoryRule<'_>,
    ) -> Result<Option<CarryRecord>, CarryError> {
        let Some(copy) = &mut self.copy else {
            return Ok(None);
        };
        if identity(&self.directory.path) != self.identity {
            // The folder around it was moved or replaced, and the copy with it.
            self.copy = None;
            return Err(CarryError::Moved {
                what: self.directory.name(),
                reason: "the folder around it was moved or replaced".to_owned(),
            });
        }
        let until = Instant::now() + LOCKED_FOR;
        loop {
            let Some(changes) = copy.changes()? else {
                return Ok(None);
            };
            match copy.carry(changes, run.git()?, rule, &mut |_| {}) {
                Err(CarryError::Locked { .. }) if Instant::now() < until => {
                    thread::sleep(LOCK_LOOKED_AT);
                }
                Err(CarryError::Unfinished) => {
                    let folder = run.folder(&self.directory.path);
                    return repository::recover(&folder, run.git()?, Some(rule), &mut |_| {});
                }
                Err(refused @ CarryError::Refused { .. }) => {
                    copy.discard()?;
                    return Err(refused);
                }
                carried => return carried.map(Some),
            }
        }
    }

    /// Returns the text for the model where nothing was carried over.
    fn not_carried(&self, error: &CarryError) -> String {
        let name = self.directory.name();
        match error {
            CarryError::Locked { .. } => format!(
                "What the command did in `{name}` is not there yet, because {error}. It is kept, \
                 and carried over before the next command."
            ),
            CarryError::Moved { reason, .. } => format!(
                "What the command did in `{name}` was dropped, because {reason}. Its files in the \
                 work tree stay."
            ),
            CarryError::Refused { .. } => format!(
                "What the command did in `{name}` was dropped, because {error}. Its files in the \
                 work tree stay."
            ),
            error => format!(
                "What the command did in `{name}` could not be carried over: {error}. It is tried \
                 again before the next command."
            ),
        }
    }
}

/// Decides which changes of files may not stay.
type Withhold<'a> = dyn Fn(&[ChangedPath]) -> Vec<WithheldChange> + 'a;

pub(super) struct RepositoryFacts<'a> {
    workspace: &'a Path,
    /// The folder of the private copies.
    folder: PathBuf,
    name: String,
    /// The program git, looked up at its first use: most commands have nothing to carry over.
    git: OnceCell<Result<PathBuf, String>>,
    real_objects: &'a (dyn Fn() -> RealObjects + Send + Sync),
    /// The gate's rule for changes of files of the workspace.
    withhold: Box<Withhold<'a>>,
}

impl<'a> RepositoryFacts<'a> {
    /// `folder` is the run's own.
    pub(super) fn new(
        started: &'a RunStarted,
        folder: &Path,
        real_objects: &'a (dyn Fn() -> RealObjects + Send + Sync),
        withhold: impl Fn(&[ChangedPath]) -> Vec<WithheldChange> + 'a,
    ) -> Self {
        Self {
            workspace: &started.workspace,
            folder: folder.join(FOLDER),
            name: started.run.to_string(),
            git: OnceCell::new(),
            real_objects,
            withhold: Box::new(withhold),
        }
    }

    /// Returns the rule for commits of commands that began after this time.
    fn rule(&self, began: Option<SystemTime>) -> HistoryRule<'_> {
        HistoryRule {
            workspace: self.workspace,
            withhold: &*self.withhold,
            began,
        }
    }

    fn git(&self) -> Result<&Path, CarryError> {
        let found = self.git.get_or_init(|| {
            let programs = Programs::of_this_process();
            // A command may have put a program there that was not judged yet.
            programs.keep_out_of(self.workspace);
            let found = programs.find("git");
            found
                .map(|program| program.path)
                .map_err(|error| error.to_string())
        });
        found.as_deref().map_err(|reason| CarryError::Git {
            path: "git".into(),
            source: io::Error::other(reason.clone()),
        })
    }

    /// Returns the folder of a repository's private copy.
    fn folder(&self, directory: &Path) -> PathBuf {
        self.folder.join(folder_name(directory))
    }

    /// Applies changes of one repository that a person allowed.
    fn apply(
        &self,
        repository: &Path,
        allowed: &[WithheldPath],
    ) -> Result<Option<CarryRecord>, CarryError> {
        let folder = self.folder(repository);
        make_private(&folder)?;
        repository::recover(&folder, self.git()?, None, &mut |_| {})?;
        let applied = repository::apply_withheld(allowed, &folder, self.git()?, &mut |_| {})?;
        Ok(applied.and_then(|carried| carried.to_take_back()))
    }

    /// Applies changes of references, `HEAD` and indexes that a person allowed.
    fn apply_history(&self, allowed: &WithheldHistory) -> Result<Option<CarryRecord>, CarryError> {
        let folder = self.folder(&allowed.repository);
        make_private(&folder)?;
        repository::recover(&folder, self.git()?, None, &mut |_| {})?;
        let applied = repository::apply_history(allowed, &folder, self.git()?, &mut |_| {})?;
        Ok(applied.to_take_back())
    }

    /// Searches the workspace, and stores the result for later processes.
    fn search(&self) -> Result<Vec<RepositoryBefore>, String> {
        let found = repository::find(self.workspace).map_err(|error| error.to_string())?;
        self.keep(&found).map_err(|error| error.to_string())?;
        Ok(found
            .directories
            .into_iter()
            .map(RepositoryBefore::new)
            .collect())
    }

    fn keep(&self, found: &Discovery) -> Result<(), RepositoryError> {
        make_private(&self.folder)?;
        let new = self.folder.join("found.new");
        let written = || {
            fs::write(&new, serde_json::to_vec(found)?)?;
            fs::File::open(&new)?.sync_all()?;
            fs::rename(&new, self.folder.join(FOUND))
        };
        written().map_err(|error| RepositoryError::io(&new, &error))
    }

    /// Returns the repositories that an earlier process found; `None` if there were none before the
    /// first command.
    fn found_before(&self) -> Option<Vec<RepositoryBefore>> {
        let found = fs::read(self.folder.join(FOUND)).ok()?;
        let found: Discovery = serde_json::from_slice(&found).ok()?;
        Some(
            found
                .directories
                .into_iter()
                .map(RepositoryBefore::new)
                .collect(),
        )
    }
}

impl Repositories {
    /// Updates the copies from the real repositories, before a command when no other is in
    /// progress.
    pub(super) fn begin(&mut self, run: &RepositoryFacts<'_>) -> Result<(), String> {
        let top = run.workspace.join(".git");
        let is_new = |known: &Vec<RepositoryBefore>| {
            identity(&top).is_some() && known.iter().all(|one| !one.leads_from(&top))
        };
        let known = self.known.take().or_else(|| run.found_before());
        let mut known = match known.filter(|known| !is_new(known)) {
            Some(known) => known,
            None => {
                let found = run.search()?;
                self.waiting
                    .notes
                    .extend(found.iter().filter_map(RepositoryBefore::why_not_carried));
                found
            }
        };
        for one in &mut known {
            one.take_up(run, &mut self.waiting);
        }
        self.known = Some(known);
        self.began = Some(SystemTime::now());
        Ok(())
    }

    /// Mounts the private copies over the real repositories for a command, where it could change
    /// them.
    pub(super) fn stand_in(&self, containment: &mut Containment) {
        for one in self.known.iter().flatten() {
            let directory = &one.directory;
            let may_write = |folder: &PathBuf| directory.workspace.starts_with(folder);
            if !containment.writable.iter().any(may_write) || identity(&directory.path).is_none() {
                continue;
            }
            match &one.copy {
                Some(copy) if one.only_readable.is_none() => {
                    containment.binds.extend(copy.binds());
                }
                _ => containment.read_only.push(directory.path.clone()),
            }
        }
    }

    /// Carries over the changes of commands when the last of them has ended.
    pub(super) fn end(&mut self, run: &RepositoryFacts<'_>) -> CarryOverResult {
        let mut ended = std::mem::take(&mut self.waiting);
        if self.known.is_none() {
            // This process has run no command yet, and settles one of a process that died.
            self.known = run.found_before();
            for one in self.known.iter_mut().flatten() {
                if run.folder(&one.directory.path).exists() {
                    one.take_up(run, &mut ended);
                }
            }
            return ended;
        }
        let rule = run.rule(self.began.take());
        // Those within others first: a commit of the outer one may name a commit of theirs.
        for one in self.known.iter_mut().flatten().rev() {
            match one.carry(run, rule) {
                Ok(None) => {}
                Ok(Some(carried)) => ended.add(&one.directory, carried),
                Err(error) => ended.notes.push(one.not_carried(&error)),
            }
        }
        ended
    }

    /// Judges changes of paths in a `.git`. In a known repository, only gyrus and the person change
    /// anything; in a new one, files that control programs are reverted. The paths lie below
    /// `folder`: the workspace, or a layer over it.
    pub(super) fn examine(
        &mut self,
        run: &RepositoryFacts<'_>,
        changed: &[ChangedPath],
        folder: &Path,
    ) -> WithheldPaths {
        let mut groups: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
        for (index, change) in changed.iter().enumerate() {
            if let Some(git) = git_part(&change.path) {
                groups.entry(git).or_default().push(index);
            }
        }
        let mut examined = WithheldPaths::default();
        let mut is_moved = false;
        for (git, indexes) in groups {
            let place = folder.join(&git);
            let now = identity(&place);
            let mut known = self.known.iter().flatten();
            let same = known.find(|one| match now {
                Some(now) => one.identity == Some(now),
                None => one.directory.path == run.workspace.join(&git),
            });
            let mut of_group = indexes.iter().filter_map(|index| changed.get(*index));
            let is_new =
                of_group.any(|change| change.path == git && change.change == PathChange::Created);
            if let Some(same) = same {
                is_moved |= now.is_none() || same.directory.path != place;
                examined.git_directories.push(git);
            } else if is_new
                && place.symlink_metadata().is_ok_and(|data| data.is_dir())
                && let Ok(withheld) = repository::take_back_new(&place)
            {
                is_moved = true;
                let real = run.workspace.join(&git);
                examined.git_directories.push(git);
                let withheld = withheld.into_iter().map(|change| WithheldPath {
                    repository: real.clone(),
                    ..change
                });
                examined.withheld.extend(withheld);
            }
        }
        if is_moved && let Ok(found) = run.search() {
            self.adopt(found);
        }
        examined
    }

    /// Adopts a new list of repositories, and keeps the copies of those that still exist.
    fn adopt(&mut self, found: Vec<RepositoryBefore>) {
        let mut before = self.known.take().unwrap_or_default();
        let known = found.into_iter().map(|mut one| {
            let same = before.iter_mut().find(|old| old.directory == one.directory);
            if let Some(old) = same {
                one.copy = old.copy.take();
                one.only_readable = old.only_readable.take();
            }
            one
        });
        self.known = Some(known.collect());
    }

    /// Applies changes that a person allowed.
    pub(super) fn apply(
        &mut self,
        run: &RepositoryFacts<'_>,
        allowed: &[WithheldPath],
        history: &[WithheldHistory],
    ) -> ApplyResult {
        let mut applied = ApplyResult::default();
        let mut of_one: BTreeMap<&Path, Vec<WithheldPath>> = BTreeMap::new();
        for change in allowed {
            let group = of_one.entry(&change.repository).or_default();
            group.push(change.clone());
        }
        for (repository, changes) in of_one {
            let done = run.apply(repository, &changes);
            match done {
                Ok(carried) => applied.carried.extend(carried),
                Err(error) => {
                    let names = changes.iter().map(|change| change.name(run.workspace));
                    let refused = names.map(|name| (name, error.to_string()));
                    applied.refused.extend(refused);
                }
            }
        }
        for one in history {
            match run.apply_history(one) {
                Ok(carried) => applied.carried.extend(carried),
                Err(error) => {
                    let held = one.held().into_iter();
                    let refused = held.map(|name| (name, error.to_string()));
                    applied.refused.extend(refused);
                }
            }
        }
        applied
    }
}

impl RepositoryBefore {
    /// Returns the text for the model about a repository that commands cannot change.
    fn why_not_carried(&self) -> Option<String> {
        let Support::NotCarried { reason } = &self.directory.support else {
            return None;
        };
        let name = self.directory.name();
        Some(format!(
            "Commands can read `{name}` and not change it: {reason}."
        ))
    }

    /// Whether the `.git` at `place` is this repository, or points to it.
    fn leads_from(&self, place: &Path) -> bool {
        let pointers = &self.directory.pointers;
        self.directory.path == place || pointers.iter().any(|pointer| pointer == place)
    }
}

/// Returns the text for the model about the changes that were carried over.
fn told(directory: &GitDirectory, carried: &CarryRecord) -> Vec<String> {
    let name = directory.name();
    let kept = carried.kept.iter().map(|kept| {
        let under: Vec<String> = kept
            .under
            .iter()
            .map(|under| format!("`{under}`"))
            .collect();
        let under = match under.join(", ") {
            none if none.is_empty() => none,
            under => format!(" What the command made of it is kept under {under}."),
        };
        format!(
            "`{}` in `{name}` stays as somebody else left it: {}.{under}",
            kept.what, kept.reason
        )
    });
    carried.notes.iter().cloned().chain(kept).collect()
}

/// Returns the path up to and including its first `.git`.
fn git_part(path: &Path) -> Option<PathBuf> {
    let at = path.iter().position(|part| part == ".git")?;
    Some(path.iter().take(at + 1).collect())
}

/// Returns the name of the folder of a repository's private copy.
fn folder_name(directory: &Path) -> String {
    let hash = blake3::hash(directory.as_os_str().as_bytes()).to_hex();
    hash[..NAME_DIGITS].to_owned()
}

/// Returns the folder of a repository's private copy below the folder of a run, creating it if it
/// does not exist.
pub(crate) fn copy_folder(run: &Path, directory: &Path) -> Result<PathBuf, RepositoryError> {
    let folder = run.join(FOLDER).join(folder_name(directory));
    make_private(&folder)?;
    Ok(folder)
}

/// Returns device and inode number of the file or folder at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let data = path.symlink_metadata().ok()?;
    Some((data.dev(), data.ino()))
}

/// Creates a folder that only this user can access.
fn make_private(folder: &Path) -> Result<(), RepositoryError> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(|error| RepositoryError::io(folder, &error))
}
