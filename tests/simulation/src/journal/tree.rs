//! The names on the simulated disk, those that are not synced yet, and the effect of a power cut on
//! them.
//!
//! Each change of names is atomic; changes that were not synced survive or vanish one by one, but
//! never out of order for the same name. The effect on a file's contents is described in
//! `contents`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Component, Path},
};

use fastrand::Rng;

use super::contents::Contents;

/// The id of the root folder.
const ROOT: u64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    File(u64),
    Folder(u64),
}

type Folders = BTreeMap<u64, BTreeMap<String, Node>>;

/// A change of one name.
#[derive(Debug, Clone)]
struct Change {
    folder: u64,
    name: String,
    to: Option<Node>,
}

#[derive(Debug, Clone)]
pub(super) struct Tree {
    now: Folders,
    disk: Folders,
    /// Changes of names that are not on disk, oldest first; each group is atomic.
    pending: Vec<Vec<Change>>,
    files: BTreeMap<u64, Contents>,
    next: u64,
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Tree {
    pub(super) fn new() -> Self {
        let root = Folders::from([(ROOT, BTreeMap::new())]);
        Self {
            now: root.clone(),
            disk: root,
            pending: Vec::new(),
            files: BTreeMap::new(),
            next: 1,
        }
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<Node> {
        let mut node = Node::Folder(ROOT);
        for component in path.components() {
            let Component::Normal(name) = component else {
                continue;
            };
            let Node::Folder(folder) = node else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            let name = name.to_str().ok_or_else(not_found)?;
            node = *self
                .now
                .get(&folder)
                .and_then(|f| f.get(name))
                .ok_or_else(not_found)?;
        }
        Ok(node)
    }

    pub(super) fn folder(&self, path: &Path) -> io::Result<u64> {
        match self.find(path)? {
            Node::Folder(id) => Ok(id),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<u64> {
        match self.find(path)? {
            Node::File(id) => Ok(id),
            Node::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        let folder = self.folder(path)?;
        Ok(self
            .now
            .get(&folder)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .cloned()
            .collect())
    }

    pub(super) fn contents(&mut self, id: u64) -> &mut Contents {
        self.files.entry(id).or_default()
    }

    /// Returns the folder that a path's last name is in, and that name.
    fn place(&self, path: &Path) -> io::Result<(u64, String)> {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(not_found)?;
        Ok((
            self.folder(path.parent().ok_or_else(not_found)?)?,
            name.to_owned(),
        ))
    }

    fn change(&mut self, changes: Vec<Change>) {
        for change in &changes {
            let names = self.now.entry(change.folder).or_default();
            let was = match change.to {
                Some(node) => names.insert(change.name.clone(), node),
                None => names.remove(&change.name),
            };
            if let Some(Node::File(id)) = was {
                self.contents(id).links -= 1;
            }
            if let Some(Node::File(id)) = change.to {
                self.contents(id).links += 1;
            }
        }
        self.pending.push(changes);
    }

    pub(super) fn create(&mut self, path: &Path, is_folder: bool) -> io::Result<u64> {
        if self.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (folder, name) = self.place(path)?;
        let id = self.next;
        self.next += 1;
        let node = if is_folder {
            self.now.insert(id, BTreeMap::new());
            Node::Folder(id)
        } else {
            Node::File(id)
        };
        self.change(vec![Change {
            folder,
            name,
            to: Some(node),
        }]);
        Ok(id)
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.file(from)?;
        if self.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (folder, name) = self.place(to)?;
        self.change(vec![Change {
            folder,
            name,
            to: Some(Node::File(id)),
        }]);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        if let Ok(Node::Folder(there)) = self.find(to)
            && self.now.get(&there).is_some_and(|names| !names.is_empty())
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (from_folder, from_name) = self.place(from)?;
        let (folder, name) = self.place(to)?;
        self.change(vec![
            Change {
                folder,
                name,
                to: Some(node),
            },
            Change {
                folder: from_folder,
                name: from_name,
                to: None,
            },
        ]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        if let Node::Folder(id) = self.find(path)?
            && self.now.get(&id).is_some_and(|names| !names.is_empty())
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (folder, name) = self.place(path)?;
        self.change(vec![Change {
            folder,
            name,
            to: None,
        }]);
        Ok(())
    }

    /// Puts the names in a folder on disk, with the changes that must precede them.
    pub(super) fn sync_folder(&mut self, path: &Path) -> io::Result<()> {
        let folder = self.folder(path)?;
        let mut names = BTreeSet::new();
        let mut needed = vec![false; self.pending.len()];
        for (needed, changes) in needed.iter_mut().zip(&self.pending).rev() {
            *needed = changes.iter().any(|change| {
                change.folder == folder || names.contains(&(change.folder, change.name.clone()))
            });
            if *needed {
                names.extend(
                    changes
                        .iter()
                        .map(|change| (change.folder, change.name.clone())),
                );
            }
        }
        let mut needed = needed.into_iter();
        let pending = std::mem::take(&mut self.pending);
        for changes in pending {
            if needed.next() == Some(true) {
                apply(&mut self.disk, changes);
            } else {
                self.pending.push(changes);
            }
        }
        Ok(())
    }

    /// Returns the tree after a power cut.
    pub(super) fn crash(&self, random: &mut Rng) -> Self {
        let mut disk = self.disk.clone();
        let kept = random.u64(..4);
        let mut until = random.usize(..=self.pending.len());
        let mut gone: BTreeSet<(u64, &str)> = BTreeSet::new();
        for changes in &self.pending {
            let mut keep = match kept {
                0 => true,
                1 => false,
                2 => until > 0,
                _ => random.bool(),
            };
            until = until.saturating_sub(1);
            keep &= changes
                .iter()
                .all(|change| !gone.contains(&(change.folder, &change.name)));
            if keep {
                apply(&mut disk, changes.clone());
            } else {
                gone.extend(
                    changes
                        .iter()
                        .map(|change| (change.folder, change.name.as_str())),
                );
            }
        }
        let mut after = Self {
            now: Folders::new(),
            files: BTreeMap::new(),
            ..Self::new()
        };
        after.next = self.next;
        after.reach(self, &disk, ROOT, random);
        after.disk = after.now.clone();
        after
    }

    /// Copies what can be reached from a folder.
    fn reach(&mut self, before: &Self, disk: &Folders, folder: u64, random: &mut Rng) {
        let names = disk.get(&folder).cloned().unwrap_or_default();
        for node in names.values() {
            match node {
                Node::Folder(id) if !self.now.contains_key(id) => {
                    self.reach(before, disk, *id, random);
                }
                Node::Folder(_) => {}
                Node::File(id) => {
                    let file = self.files.entry(*id).or_insert_with(|| {
                        before
                            .files
                            .get(id)
                            .map(|file| file.crash(random))
                            .unwrap_or_default()
                    });
                    file.links += 1;
                }
            }
        }
        self.now.insert(folder, names);
    }
}

fn apply(folders: &mut Folders, changes: Vec<Change>) {
    for Change { folder, name, to } in changes {
        if let Some(Node::Folder(id)) = to {
            folders.entry(id).or_default();
        }
        let names = folders.entry(folder).or_default();
        match to {
            Some(node) => names.insert(name, node),
            None => names.remove(&name),
        };
    }
}
