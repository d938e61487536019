//! A repository, its private copy, and git inside of it and outside.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use gyrus_contract::{ChangedPath, WithheldChange};
use gyrus_workspace::repository::{
    CarryError, CarryRecord, HistoryRule, PrivateCopy, RealObjects, RefreshResult,
    RepositoryChanges, find,
};

/// Returns the git of this machine, by its absolute path. `GYRUS_TEST_GIT` names another one.
pub(crate) fn git_program() -> &'static Path {
    static GIT: OnceLock<PathBuf> = OnceLock::new();
    GIT.get_or_init(|| {
        if let Some(git) = std::env::var_os("GYRUS_TEST_GIT") {
            return PathBuf::from(git);
        }
        let path = std::env::var_os("PATH").unwrap();
        let programs = std::env::split_paths(&path).map(|folder| folder.join("git"));
        programs.into_iter().find(|git| git.is_file()).unwrap()
    })
}

/// A temporary folder with a workspace, and a place for private copies.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// Creates an empty world.
    pub(crate) fn empty() -> Self {
        // Git and this module sync much: on a busy disk the tests would mostly wait for that.
        let memory = tempfile::tempdir_in("/dev/shm");
        let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
        let world = Self { folder };
        fs::create_dir_all(world.path("home")).unwrap();
        fs::create_dir_all(world.path("copy")).unwrap();
        fs::create_dir_all(world.path("work")).unwrap();
        world
    }

    /// Creates a world with a repository of two commits, a branch and a tag in the workspace.
    pub(crate) fn with_repository() -> Self {
        let world = Self::empty();
        world.init(&world.work());
        world
    }

    /// Makes a repository of two commits, a branch and a tag.
    pub(crate) fn init(&self, folder: &Path) {
        fs::create_dir_all(folder.join("src")).unwrap();
        self.git(folder, "init -q -b main");
        fs::write(folder.join("a"), "one\n").unwrap();
        fs::write(folder.join("src/b"), "one\n").unwrap();
        self.git(folder, "add .");
        self.git(folder, "commit -qm first");
        fs::write(folder.join("a"), "one\ntwo\n").unwrap();
        self.git(folder, "commit -qam second");
        self.git(folder, "branch side HEAD~1");
        self.git(folder, "tag -a v1 -m v1");
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    /// Returns the workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Prepares a private copy of the only repository of the workspace.
    pub(crate) fn prepare(&self) -> PrivateCopy {
        let found = find(&self.work()).unwrap();
        assert!(found.complete);
        let [directory] = found.directories.as_slice() else {
            panic!("{found:#?}");
        };
        let folder = self.path("copy");
        PrivateCopy::prepare(directory, &folder, "run-1", RealObjects::InPlace).unwrap()
    }

    /// Runs a person's git.
    pub(crate) fn git(&self, folder: &Path, arguments: &str) -> String {
        let output = self.run(folder, None, arguments);
        assert!(output.status.success(), "git {arguments}: {output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Runs a command's git, which works on the private copy.
    pub(crate) fn inside(&self, copy: &PrivateCopy, arguments: &str) -> String {
        let output = self.try_inside(copy, arguments);
        assert!(output.status.success(), "git {arguments}: {output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub(crate) fn try_inside(&self, copy: &PrivateCopy, arguments: &str) -> Output {
        self.run(&self.work(), Some((&copy.path(), &self.work())), arguments)
    }

    /// Runs git, in another repository than that of the folder if one is named, with its work tree.
    pub(crate) fn run(
        &self,
        folder: &Path,
        repository: Option<(&Path, &Path)>,
        arguments: &str,
    ) -> Output {
        let mut command = Command::new(git_program());
        command
            .args(words(arguments))
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "C")
            .env("GIT_COMMITTER_EMAIL", "c@example.org")
            .env("GIT_EDITOR", "true")
            .env("GIT_SEQUENCE_EDITOR", "true")
            .env("FILTER_BRANCH_SQUELCH_WARNING", "1")
            .env("LC_ALL", "C");
        if let Some((repository, work)) = repository {
            command
                .env("GIT_DIR", repository)
                .env("GIT_WORK_TREE", work);
        }
        command.output().unwrap()
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Returns a person's view of a repository: references, `HEAD`, index, stashes, state.
    pub(crate) fn view(&self, folder: &Path, repository: Option<(&Path, &Path)>) -> String {
        let show = |arguments: &str| {
            let output = self.run(folder, repository, arguments);
            let text = String::from_utf8(output.stdout).unwrap();
            format!("$ git {arguments}\n{text}")
        };
        [
            "for-each-ref --format=%(refname):%(objectname):%(symref) --exclude=refs/gyrus",
            "ls-files -s",
            "stash list",
            "reflog show --format=%H:%gs HEAD",
            "rev-parse -q --verify MERGE_HEAD",
            "status --porcelain=v2 --branch",
        ]
        .map(show)
        .join("")
    }

    pub(crate) fn view_outside(&self) -> String {
        self.view(&self.work(), None)
    }

    pub(crate) fn view_inside(&self, copy: &PrivateCopy) -> String {
        self.view(&self.work(), Some((&copy.path(), &self.work())))
    }

    /// Checks that a repository is intact and clean.
    pub(crate) fn check_whole(&self, repository: &Path) {
        let output = self.run(repository, None, "fsck --full --strict");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !said.contains("error") && !said.contains("missing"),
            "{output:?}"
        );
        self.check_clean(repository);
    }

    /// Checks that no lock or other temporary file of ours is left.
    pub(crate) fn check_clean(&self, repository: &Path) {
        for name in files(repository) {
            assert!(
                !name.ends_with(".lock") && !name.contains("gyrus-"),
                "{name}"
            );
        }
    }
}

/// Splits text into words, of which those in single quotes may contain blanks.
fn words(arguments: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in arguments.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Paths of all files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            let path = entry.path();
            found.push(path.strip_prefix(folder).unwrap().display().to_string());
        }
    }
    found.sort();
    found
}

/// Carries the changes over.
pub(crate) fn carry(copy: &mut PrivateCopy) -> CarryRecord {
    try_carry(copy).unwrap()
}

pub(crate) fn try_carry(copy: &mut PrivateCopy) -> Result<CarryRecord, CarryError> {
    let changes = copy.changes().unwrap().expect("something changed");
    carry_those(copy, changes)
}

pub(crate) fn carry_those(
    copy: &PrivateCopy,
    changes: RepositoryChanges,
) -> Result<CarryRecord, CarryError> {
    copy.carry(changes, git_program(), rule(copy), &mut |_| ())
}

/// Control files of these tests.
fn withhold(changes: &[ChangedPath]) -> Vec<WithheldChange> {
    let is_one = |change: &&ChangedPath| {
        let first = change.path.iter().next();
        change.path.ends_with(".envrc") || first.is_some_and(|first| first == ".github")
    };
    let places = changes.iter().enumerate();
    let found = places.filter(|(_, change)| is_one(change));
    let reason = "it is obeyed by a test".to_owned();
    found
        .map(|(index, _)| WithheldChange {
            index,
            reason: reason.clone(),
        })
        .collect()
}

/// Returns the rule by which commits of a copy are judged.
pub(crate) fn rule(copy: &PrivateCopy) -> HistoryRule<'_> {
    rule_in(&copy.directory().workspace)
}

pub(crate) fn rule_in(workspace: &Path) -> HistoryRule<'_> {
    HistoryRule {
        workspace,
        withhold: &withhold,
        began: None,
    }
}

/// Brings a copy up to date.
pub(crate) fn refresh(copy: &mut PrivateCopy) -> Vec<String> {
    match copy.refresh().unwrap() {
        RefreshResult::Updated { dropped, .. } => dropped,
        other => panic!("{other:?}"),
    }
}
