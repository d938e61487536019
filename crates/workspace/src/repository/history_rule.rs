//! The rule by which files in commits and indexes wait for a person's approval.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gyrus_contract::{ChangedPath, PathChange, WithheldChange};
use sha1::{Digest as _, Sha1};

use super::{
    folder::GitFolder,
    log::{GITLINK, RawChange},
    names::ObjectId,
    withheld::FileContent,
};

/// Maximum time by which the clock of a file system is late.
const CLOCK_STEP: Duration = Duration::from_millis(12);

/// The rule for files in commits and indexes.
#[derive(Clone, Copy)]
pub struct HistoryRule<'a> {
    /// The folder to which paths are relative.
    pub workspace: &'a Path,
    /// Returns the changes that need a person's approval.
    pub withhold: &'a dyn Fn(&[ChangedPath]) -> Vec<WithheldChange>,
    /// The time before the first command with these changes; `None` if unknown.
    pub began: Option<SystemTime>,
}

impl HistoryRule<'_> {
    /// Returns mode and object of a plain file as git would store it, if it stood so in the
    /// workspace before the commands: no program can set the time of the last change of file or
    /// folder, and renaming one counts.
    pub(super) fn untouched(&self, path: &Path) -> Option<(u32, ObjectId)> {
        let before = self.began?.checked_sub(CLOCK_STEP)?;
        let before = before.duration_since(UNIX_EPOCH).ok()?;
        let folder = GitFolder::open(self.workspace).ok()?;
        let content = FileContent::read(&folder, path).ok()??;
        let is_older = |path: &Path| {
            let found = self.workspace.join(path).symlink_metadata().ok()?;
            let nanos = u64::try_from(found.ctime_nsec()).ok()?;
            let changed = Duration::from_secs(u64::try_from(found.ctime()).ok()?);
            Some(changed + Duration::from_nanos(nanos) < before)
        };
        let mut parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
        if !parts.all(|part| is_older(part).unwrap_or(false)) {
            return None;
        }
        let (bytes, executable) = content.bytes()?;
        let mut hash = Sha1::new();
        hash.update(format!("blob {}\0", bytes.len()));
        hash.update(&bytes);
        let mode = if executable { 0o100_755 } else { 0o100_644 };
        Some((mode, ObjectId::from_bytes(&hash.finalize())?))
    }
}

#[derive(Debug, Clone)]
pub(super) struct NewHistoryFile {
    pub(super) commit: Option<ObjectId>,
    pub(super) change: RawChange,
    pub(super) reason: String,
}

impl NewHistoryFile {
    /// Creates an entry for a tree or a file that a reference names without a commit.
    pub(super) fn unread(id: ObjectId) -> Self {
        Self {
            commit: Some(id),
            change: RawChange {
                path: b"something".to_vec(),
                old: (0, ObjectId::NULL),
                new: (0, ObjectId::NULL),
            },
            reason: "it is not a commit, so its files were not looked at".to_owned(),
        }
    }

    pub(super) fn content(&self) -> (&[u8], u32, ObjectId) {
        let RawChange { path, new, .. } = &self.change;
        (path, new.0, new.1)
    }
}

/// Judges each path once.
pub(super) struct PathJudge<'a> {
    rule: HistoryRule<'a>,
    /// The work tree below the workspace; `None` if it is elsewhere or not known.
    pub(super) files: Option<PathBuf>,
    judged: BTreeMap<(Vec<u8>, u8), Option<String>>,
}

impl<'a> PathJudge<'a> {
    /// `repository` is the real git directory.
    pub(super) fn new(rule: HistoryRule<'a>, repository: &Path, store: &Path) -> Self {
        let is_main = store.as_os_str().is_empty() && repository.ends_with(".git");
        let tree = repository.parent().filter(|_| is_main);
        let below = tree.and_then(|tree| tree.strip_prefix(rule.workspace).ok());
        Self {
            rule,
            files: below.map(Path::to_path_buf),
            judged: BTreeMap::new(),
        }
    }

    /// Returns the changes that need an approval.
    pub(super) fn judge(
        &mut self,
        commit: Option<ObjectId>,
        changes: &[RawChange],
    ) -> Vec<NewHistoryFile> {
        let key = |change: &RawChange| (change.path.clone(), change.kind() as u8);
        let new = changes
            .iter()
            .filter(|change| !self.judged.contains_key(&key(change)));
        let new: Vec<&RawChange> = new.collect();
        // A clone, or a checkout elsewhere, has the file at the top.
        let below = [
            Path::new(""),
            self.files.as_deref().unwrap_or(Path::new("")),
        ];
        let asked: Vec<ChangedPath> = below
            .iter()
            .flat_map(|below| {
                new.iter().map(|change| ChangedPath {
                    path: below.join(OsStr::from_bytes(&change.path)),
                    change: change.kind(),
                })
            })
            .collect();
        for change in &new {
            self.judged.insert(key(change), None);
        }
        for withheld in (self.rule.withhold)(&asked) {
            if let Some(change) = new.get(withheld.index % new.len().max(1)) {
                self.judged.insert(key(change), Some(withheld.reason));
            }
        }
        let reasons = changes.iter().filter_map(|change| {
            let by_name = self.judged.get(&key(change)).cloned().flatten();
            Some(NewHistoryFile {
                commit,
                reason: by_name.or_else(|| by_form(change))?,
                change: change.clone(),
            })
        });
        reasons.collect()
    }
}

/// Returns the reason why a change matters to git itself, if it does.
fn by_form(change: &RawChange) -> Option<String> {
    if change.new.0 == GITLINK && change.new != change.old {
        // The commit may be one that waits in the repository of the submodule.
        let why = "git starts in that folder, and a person's git checks that commit out there";
        return Some(why.to_owned());
    }
    let name = change.path.rsplit(|byte| *byte == b'/').next()?;
    let is_head = name.eq_ignore_ascii_case(b"HEAD") && change.kind() != PathChange::Deleted;
    is_head.then(|| "git takes a folder with it for a repository, and obeys it there".to_owned())
}

impl RawChange {
    pub(super) fn kind(&self) -> PathChange {
        match (self.old.0, self.new.0) {
            (_, 0) => PathChange::Deleted,
            (0, _) => PathChange::Created,
            _ => PathChange::Changed,
        }
    }
}
