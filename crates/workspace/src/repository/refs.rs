//! References as git keeps them in files: one a file below `refs/`, or many in `packed-refs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    RepositoryError,
    folder::{GitFolder, PathKind},
    names::{ObjectId, RefName, RefValue},
};

/// Maximum number of references of a repository.
const MAX_REFS: usize = 200_000;
/// Maximum depth of folders below `refs/`.
const MAX_DEPTH: usize = 32;
/// Maximum bytes of the file of one reference.
const MAX_LOOSE: u64 = 4_096;
/// Maximum bytes of `packed-refs`.
const MAX_PACKED: u64 = 64 << 20;
/// Maximum number of files below `refs/` that are not references.
const MAX_ODD: usize = 20;

/// The name of the file with many references.
pub(super) const PACKED: &str = "packed-refs";

/// All references below one git directory.
#[derive(Debug, Default)]
pub(super) struct Refs {
    pub(super) all: BTreeMap<RefName, RefValue>,
    /// Files below `refs/` that are not references, each with the reason.
    pub(super) odd: Vec<(String, &'static str)>,
}

impl Refs {
    /// Returns the object of a value, after resolving symbolic references.
    pub(super) fn resolve(&self, value: &RefValue) -> Option<ObjectId> {
        let mut value = value;
        // Git follows five.
        for _ in 0..5 {
            match value {
                RefValue::Object(id) => return Some(*id),
                RefValue::Symbolic(name) => value = self.all.get(name)?,
            }
        }
        None
    }
}

/// Reads all references of the store at `store`.
///
/// # Errors
/// When there are too many, or `packed-refs` is damaged. Odd files are listed instead.
pub(super) fn read_all(git: &GitFolder, store: &Path) -> Result<Refs, RepositoryError> {
    let mut refs = Refs::default();
    let folder = store.join("refs");
    if git.kind(&folder)? != PathKind::Folder {
        // An error, because a missing folder would mean that there are no references.
        return Err(RepositoryError::Damaged {
            path: git.path().join(folder),
            reason: "it is not a folder".to_owned(),
        });
    }
    let packed = read_packed(git, store)?;
    let values = packed
        .into_iter()
        .map(|(name, id)| (name, RefValue::Object(id)));
    refs.all.extend(values);
    walk(git, store, "refs", 0, &mut refs)?;
    Ok(refs)
}

/// Returns the objects named by the references of a real store and by `HEAD` of its work trees,
/// from which everything reachable exists.
pub(super) fn named(live: &GitFolder, store: &Path) -> Result<BTreeSet<ObjectId>, RepositoryError> {
    let refs = read_all(live, store)?;
    let mut named: BTreeSet<_> = refs.all.values().filter_map(RefValue::object).collect();
    let mut worktrees = linked_worktrees(live, store)?;
    worktrees.push(store.to_owned());
    for own in worktrees {
        let head = read_head(live, &own).ok();
        named.extend(head.and_then(|head| head.object()));
    }
    Ok(named)
}

fn walk(
    git: &GitFolder,
    store: &Path,
    name: &str,
    depth: usize,
    refs: &mut Refs,
) -> Result<(), RepositoryError> {
    let folder = store.join(name);
    for entry in git.names(&folder)? {
        let Ok(entry) = String::from_utf8(entry) else {
            refs.find_odd(format!("{name}/…"), "its name is not UTF-8");
            continue;
        };
        // Git's own, while it works.
        if entry.ends_with(".lock") {
            continue;
        }
        let name = format!("{name}/{entry}");
        let path = store.join(&name);
        match git.kind(&path)? {
            PathKind::Folder if depth < MAX_DEPTH => walk(git, store, &name, depth + 1, refs)?,
            PathKind::Folder => refs.find_odd(name, "it lies too deep"),
            PathKind::Link => refs.find_odd(name, "it is a symbolic link"),
            PathKind::Missing => {}
            PathKind::Other => refs.find_odd(name, "it is not a regular file"),
            PathKind::File => match (RefName::parse(&name), read_loose(git, &path)?) {
                (Ok(name), Some(Ok(value))) => {
                    refs.all.insert(name, value);
                }
                (Ok(_), None) => {}
                (Err(why), _) | (_, Some(Err(why))) => refs.find_odd(name, why),
            },
        }
        let limit = if refs.odd.len() > MAX_ODD {
            MAX_ODD
        } else {
            MAX_REFS
        };
        if refs.all.len() > MAX_REFS || refs.odd.len() > MAX_ODD {
            let path = git.path().join(store).join("refs");
            return Err(RepositoryError::TooMany { path, limit });
        }
    }
    Ok(())
}

impl Refs {
    fn find_odd(&mut self, name: String, why: &'static str) {
        self.odd.push((name, why));
    }
}

fn read_loose(
    git: &GitFolder,
    path: &Path,
) -> Result<Option<Result<RefValue, &'static str>>, RepositoryError> {
    match git.read(path, MAX_LOOSE) {
        Ok(content) => Ok(content.map(|content| RefValue::parse(&content))),
        Err(RepositoryError::NotRegular(_)) => Ok(Some(Err("it is not a regular file"))),
        Err(RepositoryError::TooLarge { .. }) => Ok(Some(Err("it is too large"))),
        Err(error) => Err(error),
    }
}

/// Reads one reference from its file, or else from its line in `packed`.
pub(super) fn read_one(
    git: &GitFolder,
    store: &Path,
    name: &RefName,
    packed: &BTreeMap<RefName, ObjectId>,
) -> Result<Option<RefValue>, RepositoryError> {
    let path = store.join(name.as_str());
    let packed = || packed.get(name).copied().map(RefValue::Object);
    match git.kind(&path)? {
        PathKind::Missing | PathKind::Folder => Ok(packed()),
        PathKind::File | PathKind::Link | PathKind::Other => match read_loose(git, &path)? {
            None => Ok(packed()),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(reason)) => Err(RepositoryError::Damaged {
                path: git.path().join(path),
                reason: reason.to_owned(),
            }),
        },
    }
}

/// Reads `HEAD` of the work tree whose own files are at `worktree`.
pub(super) fn read_head(git: &GitFolder, worktree: &Path) -> Result<RefValue, RepositoryError> {
    let path = worktree.join("HEAD");
    let damaged = |reason: &str| RepositoryError::Damaged {
        path: git.path().join(&path),
        reason: reason.to_owned(),
    };
    let content = git
        .read(&path, MAX_LOOSE)?
        .ok_or_else(|| damaged("it is missing"))?;
    let value = RefValue::parse(&content).map_err(damaged)?;
    match &value {
        RefValue::Symbolic(name) if !name.as_str().starts_with("refs/heads/") => {
            Err(damaged("it does not name a branch"))
        }
        RefValue::Symbolic(_) | RefValue::Object(_) => Ok(value),
    }
}

pub(super) fn read_packed(
    git: &GitFolder,
    store: &Path,
) -> Result<BTreeMap<RefName, ObjectId>, RepositoryError> {
    let path = store.join(PACKED);
    let content = git.read(&path, MAX_PACKED)?.unwrap_or_default();
    let damaged = |line: usize| RepositoryError::Damaged {
        path: git.path().join(&path),
        reason: format!("line {line} is not a reference"),
    };
    let mut refs = BTreeMap::new();
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") {
            continue;
        }
        let (id, name) = packed_line(line).ok_or_else(|| damaged(index + 1))?;
        refs.insert(name, id);
        if refs.len() > MAX_REFS {
            let path = git.path().join(path);
            return Err(RepositoryError::TooMany {
                path,
                limit: MAX_REFS,
            });
        }
    }
    Ok(refs)
}

fn packed_line(line: &[u8]) -> Option<(ObjectId, RefName)> {
    let line = std::str::from_utf8(line).ok()?;
    let (id, name) = line.split_once(' ')?;
    Some((ObjectId::parse(id)?, RefName::parse(name.trim_end()).ok()?))
}

/// Returns the content of `packed-refs` without some names; `None` if none of them is in it.
pub(super) fn packed_without(
    git: &GitFolder,
    store: &Path,
    names: &BTreeSet<&RefName>,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    let content = git
        .read(&store.join(PACKED), MAX_PACKED)?
        .unwrap_or_default();
    let mut kept = Vec::with_capacity(content.len());
    let mut found = false;
    let mut drops = false;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        // The object of an annotated tag follows it on a line of its own.
        if !line.starts_with(b"^") {
            let parsed = packed_line(line.trim_ascii_end());
            drops = parsed.is_some_and(|(_, name)| names.contains(&name));
        }
        found |= drops;
        if !drops {
            kept.extend_from_slice(line);
        }
    }
    Ok(found.then_some(kept))
}

/// Returns the work trees linked to a repository, by the folders of their own files, such as
/// `worktrees/feature`.
pub(super) fn linked_worktrees(
    git: &GitFolder,
    store: &Path,
) -> Result<Vec<PathBuf>, RepositoryError> {
    let folder = store.join("worktrees");
    let mut found = Vec::new();
    for name in git.names(&folder)? {
        let Ok(name) = String::from_utf8(name) else {
            continue;
        };
        let path = folder.join(name);
        if git.kind(&path)? == PathKind::Folder {
            found.push(path);
        }
    }
    Ok(found)
}
