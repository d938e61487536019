//! The private copy of a repository that commands get in the place of the real one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::Bind;

use super::{
    RepositoryError,
    alternates::{self, RealObjects},
    changes::RepositoryChanges,
    compare,
    find::{self, GitDirectory, Support},
    folder::GitFolder,
    plan,
    protected::Sides,
    stamps::{BOUND, REAL_OBJECTS, Stamps},
    sync::{Sync, SyncResult},
    worktree,
};

/// The folders and files of a private copy.
pub(super) const COPY: &str = "copy";
const BASE: &str = "base";
const READY: &str = "ready";
/// Name of the file that marks that all changes of the copy were carried over.
pub(super) const CARRIED: &str = "carried";
/// Content of that file while the copy is being brought up to date.
const SYNCING: &str = "syncing\n";

/// A copy of a git directory without its objects, for the commands of one run.
///
/// In its folder stand the copy itself, which commands may change at will, and the state from which
/// it was made, with which it is compared. Between two commands it is brought up to date with the
/// real one ([`PrivateCopy::refresh`]); an operation that a command left unfinished, such as a
/// rebase, stays in it.
///
/// No command may be running with the copy while any of these methods is called.
#[derive(Debug)]
pub struct PrivateCopy {
    pub(super) directory: GitDirectory,
    pub(super) folder: PathBuf,
    pub(super) run: String,
    real: RealObjects,
    /// Stamps of the real directory; `None` until this process has taken them.
    live_stamps: Option<Stamps>,
    private_stamps: Option<Stamps>,
    /// Stores of the real git directory: the path below it, and the content of its list of
    /// alternates.
    stores: Vec<(PathBuf, Vec<u8>)>,
}

/// Result of [`PrivateCopy::refresh`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshResult {
    /// The real directory had not changed.
    Unchanged,
    /// The copy is up to date with the real git directory again.
    Updated {
        /// Number of copied files.
        copied: usize,
        /// Sentences for the model about changes that were dropped from the copy.
        dropped: Vec<String>,
    },
    /// Nothing was refreshed, because changes of commands are not carried over yet, or only partly.
    Pending,
}

impl PrivateCopy {
    /// Makes a private copy of a git directory in `folder`, or opens the existing one. `folder`
    /// belongs to the run, lies where no command can see it but by [`PrivateCopy::binds`], and
    /// exists. `run` names the run in references.
    ///
    /// # Errors
    /// When the git directory is not supported, or cannot be read or copied.
    pub fn prepare(
        directory: &GitDirectory,
        folder: &Path,
        run: &str,
        real: RealObjects,
    ) -> Result<Self, RepositoryError> {
        let not = |reason: &str| RepositoryError::NotSupported {
            path: directory.path.clone(),
            reason: reason.to_owned(),
        };
        match &directory.support {
            Support::Carried => {}
            Support::NotCarried { reason } => return Err(not(reason)),
            Support::Bare => return Err(not("it has no work tree")),
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if run.is_empty() || run.len() > 100 || !run.chars().all(is_plain) || run.starts_with('-') {
            return Err(not("the run's name cannot be part of a reference"));
        }
        let mut copy = Self {
            directory: directory.clone(),
            folder: folder.to_owned(),
            run: run.to_owned(),
            real,
            live_stamps: None,
            private_stamps: None,
            stores: Vec::new(),
        };
        if copy.at(READY).exists() {
            copy.stores = copy.read_stores()?;
        } else {
            copy.start_anew()?;
        }
        copy.refresh()?;
        copy.check_indexes()?;
        Ok(copy)
    }

    /// Checks that the indexes can be carried over.
    fn check_indexes(&self) -> Result<(), RepositoryError> {
        let (live, base, _) = self.open()?;
        for (store, _) in &self.stores {
            for own in worktree::in_workspace(&live, store, &self.directory)? {
                worktree::read_index(&base, &own)?;
            }
        }
        Ok(())
    }

    /// Returns the real git directory.
    pub fn directory(&self) -> &GitDirectory {
        &self.directory
    }

    /// Returns the path of the private copy.
    pub fn path(&self) -> PathBuf {
        self.at(COPY)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn start_anew(&self) -> Result<(), RepositoryError> {
        let failed = |error: io::Error| RepositoryError::io(&self.folder, &error);
        remove(&self.at(READY)).map_err(failed)?;
        let folder = GitFolder::open(&self.folder)?;
        for name in [BASE, COPY] {
            // A tree too deep to be removed is moved aside.
            if folder.remove_tree(Path::new(name)).is_err() {
                let aside = (0..)
                    .map(|n| self.at(&format!("old-{n}")))
                    .find(|path| !path.exists());
                fs::rename(self.at(name), aside.expect("numbers do not end")).map_err(failed)?;
            }
            fs::create_dir(self.at(name)).map_err(failed)?;
        }
        remove(&self.at(CARRIED)).map_err(failed)
    }

    pub(super) fn open(&self) -> Result<(GitFolder, GitFolder, GitFolder), RepositoryError> {
        let live = GitFolder::open(&self.directory.path)?;
        Ok((
            live,
            GitFolder::open(&self.at(BASE))?,
            GitFolder::open(&self.at(COPY))?,
        ))
    }

    /// Updates the copy from the real git directory, before a command. If nothing changed, this
    /// examines each file but objects once.
    ///
    /// Changes of commands that were carried over, or were refused, are as in the real one
    /// afterwards. An unfinished operation stays, unless another process moved `HEAD`, its branch
    /// or the index of the real one meanwhile. A lock that a person holds is not copied.
    ///
    /// # Errors
    /// When a folder cannot be read or written, or the real git directory has changed its form.
    pub fn refresh(&mut self) -> Result<RefreshResult, RepositoryError> {
        let (live, base, private) = self.open()?;
        if self.at(plan::FILE).exists() {
            return self.pending(&private);
        }
        let own = self.folder.clone();
        let failed = |error: io::Error| RepositoryError::io(&own, &error);
        let marker = match fs::read(self.at(CARRIED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(failed)?),
        };
        let is_carried = marker.is_some();
        let was_cut_off = marker.as_deref() == Some(SYNCING.as_bytes());
        let is_first = !self.at(READY).exists();
        let untouched = holds(self.private_stamps.as_mut(), &private, &base)?;
        if !untouched && !is_carried && !is_first && self.compare()?.is_some() {
            return self.pending(&private);
        }
        let unmoved = holds(self.live_stamps.as_mut(), &live, &base)?;
        if untouched && unmoved && !is_carried {
            for (store, list) in &self.stores {
                alternates::restore(&private, store, list)?;
            }
            return Ok(RefreshResult::Unchanged);
        }
        let sync = Sync {
            directory: &self.directory,
            live: &live,
            base: &base,
            private: &private,
            live_stamps: self.live_stamps.as_ref(),
            private_stamps: self.private_stamps.as_ref(),
            may_retain: !was_cut_off,
        };
        find::check(&self.directory.path)?;
        // From here on, differences between the copy and its base are not changes of a command.
        fs::write(self.at(CARRIED), SYNCING).map_err(failed)?;
        let synced = match sync.run() {
            Ok(synced) => synced,
            // A command left something in the way that cannot be removed.
            Err(_) if !is_first => {
                self.start_anew()?;
                self.live_stamps = None;
                self.private_stamps = None;
                let mut refreshed = self.refresh()?;
                if let RefreshResult::Updated { dropped, .. } = &mut refreshed {
                    let name = self.directory.name();
                    dropped.push(format!("the private copy of `{name}` had to be made anew"));
                }
                return Ok(refreshed);
            }
            Err(error) => return Err(error),
        };
        self.finish(&live, &private, synced)
    }

    /// Leaves the copy unchanged, except for its list of alternates.
    fn pending(&self, private: &GitFolder) -> Result<RefreshResult, RepositoryError> {
        for (store, list) in &self.stores {
            alternates::restore(private, store, list)?;
        }
        Ok(RefreshResult::Pending)
    }

    fn finish(
        &mut self,
        live: &GitFolder,
        private: &GitFolder,
        synced: SyncResult,
    ) -> Result<RefreshResult, RepositoryError> {
        self.stores = self.lists(live, &synced.live.stores)?;
        for (store, list) in &self.stores {
            alternates::restore(private, store, list)?;
        }
        for name in BOUND
            .iter()
            .filter(|name| self.directory.path.join(name).is_dir())
        {
            super::copying::make_folder(private, Path::new(name))?;
        }
        self.live_stamps = Some(synced.live);
        let mut stamps = Stamps::take(private)?;
        stamps.remember(private)?;
        self.private_stamps = Some(stamps);
        let failed = |error: io::Error| RepositoryError::io(&self.folder, &error);
        fs::write(self.at(READY), "1\n").map_err(failed)?;
        remove(&self.at(CARRIED)).map_err(failed)?;
        Ok(RefreshResult::Updated {
            copied: synced.copied,
            dropped: synced.dropped,
        })
    }

    fn read_stores(&self) -> Result<Vec<(PathBuf, Vec<u8>)>, RepositoryError> {
        let (live, base, _) = self.open()?;
        self.lists(&live, &Stamps::take(&base)?.stores)
    }

    fn lists(
        &self,
        live: &GitFolder,
        stores: &[PathBuf],
    ) -> Result<Vec<(PathBuf, Vec<u8>)>, RepositoryError> {
        let lists = stores.iter().map(|store| {
            let list = alternates::list(live, store, self.real)?;
            Ok((store.clone(), list))
        });
        lists.collect()
    }

    /// Returns the changes of commands since the copy was last up to date; `None` if there are none
    /// of interest. If nothing changed, this examines each file but objects once.
    ///
    /// # Errors
    /// When a folder cannot be read. Invalid data in the copy is reported in the changes' notes.
    pub fn changes(&mut self) -> Result<Option<RepositoryChanges>, RepositoryError> {
        if self.at(CARRIED).exists() {
            return Ok(None);
        }
        let (_, base, private) = self.open()?;
        let is_intact = self
            .stores
            .iter()
            .all(|(store, list)| alternates::is_intact(&private, store, list));
        if is_intact && holds(self.private_stamps.as_mut(), &private, &base)? {
            return Ok(None);
        }
        self.compare()
    }

    fn compare(&self) -> Result<Option<RepositoryChanges>, RepositoryError> {
        let (live, base, private) = self.open()?;
        let sides = Sides {
            directory: &self.directory,
            base: &base,
            private: &private,
        };
        let changes = compare::compare(&sides, &live, self.real)?;
        Ok((!changes.is_empty()).then_some(changes))
    }

    /// Drops all changes of commands in the copy. [`RefreshResult::Pending`] if a carry-over of it
    /// was interrupted, which [`super::recover`] has to finish first.
    pub fn discard(&mut self) -> Result<RefreshResult, RepositoryError> {
        if self.at(plan::FILE).exists() {
            return Ok(RefreshResult::Pending);
        }
        self.settle()?;
        // No stamp is valid for a copy that is made again.
        self.live_stamps = None;
        self.private_stamps = None;
        self.start_anew()?;
        self.refresh()
    }

    /// Records that all changes of the copy were carried over.
    pub(super) fn settle(&self) -> Result<(), RepositoryError> {
        let failed = |error: io::Error| RepositoryError::io(&self.folder, &error);
        fs::write(self.at(CARRIED), "1\n").map_err(failed)
    }

    /// Returns the binds for a command, in this order: the copy over the real git directory, and in
    /// it, read-only, the real objects of the repository and of each of its submodules.
    ///
    /// The sources of the later ones are below the place of the first: they have to be opened
    /// before.
    pub fn binds(&self) -> Vec<Bind> {
        let real = &self.directory.path;
        let mut binds = vec![Bind {
            place: real.clone(),
            source: self.path(),
            writable: true,
        }];
        let read_only = |place: PathBuf, source: PathBuf| Bind {
            place,
            source,
            writable: false,
        };
        for (store, _) in &self.stores {
            let store = real.join(store);
            binds.push(read_only(store.join(REAL_OBJECTS), store.join("objects")));
        }
        let bound = BOUND
            .iter()
            .map(|name| real.join(name))
            .filter(|path| path.is_dir());
        binds.extend(bound.map(|path| read_only(path.clone(), path)));
        binds
    }
}

fn holds(
    stamps: Option<&mut Stamps>,
    git: &GitFolder,
    reference: &GitFolder,
) -> Result<bool, RepositoryError> {
    stamps.map_or(Ok(false), |stamps| stamps.hold(git, reference))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
