//! Finds the repositories of a workspace.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    RepositoryError,
    config::{GitConfig, MAX_CONFIG},
    folder::{GitFolder, PathKind},
    pointer, refs,
};

/// Maximum depth of folders of a workspace that are searched.
pub const MAX_DEPTH: usize = 10;
/// Maximum number of folders of a workspace that are searched, those near the top first.
pub const MAX_FOLDERS: usize = 10_000;
/// Maximum number of repositories of a workspace.
pub const MAX_REPOSITORIES: usize = 64;

/// The repositories of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    /// The repositories, sorted by path.
    pub directories: Vec<GitDirectory>,
    /// Whether the whole workspace was searched; otherwise a limit was reached.
    pub complete: bool,
}

/// Support for a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Commands get a private copy, whose changes are carried over.
    Carried,
    /// Commands may only read the real repository.
    NotCarried {
        /// The reason, in a few words.
        reason: String,
    },
    /// A repository without a work tree, embedded in the workspace. Git uses it when it is started
    /// in its folder: its settings and hooks are control files.
    Bare,
}

/// A repository that a workspace uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDirectory {
    /// The real path of the git directory, possibly outside of the workspace. For a linked work
    /// tree it is the common directory, not the work tree's own.
    pub path: PathBuf,
    /// The workspace in which the directory was found, without links in its path.
    pub workspace: PathBuf,
    /// The `.git` files and links in the workspace that lead to it. They are control files.
    pub pointers: Vec<PathBuf>,
    /// Whether a symbolic link names the directory, which makes a folder of the workspace its work
    /// tree.
    pub by_link: bool,
    /// Support for the repository.
    pub support: Support,
}

impl GitDirectory {
    /// Returns the name of the repository for a person: its path below the workspace, otherwise the
    /// whole path.
    pub fn name(&self) -> String {
        let path = self
            .path
            .strip_prefix(&self.workspace)
            .unwrap_or(&self.path);
        path.display().to_string()
    }
}

/// Finds the repositories of a workspace: folders, files and links called `.git` (of the workspace
/// itself, of nested repositories, of submodules, of linked work trees), and bare repositories.
///
/// Where `.git` files and links lead is taken as it is now. So this has to be called before a
/// command of the run had the workspace, and its result kept: a pointer that a command makes later
/// leads nowhere. Even so, a linked work tree counts only if its repository names it back.
///
/// # Errors
/// When the workspace cannot be read. Problems of one repository are in its
/// [`GitDirectory::support`].
pub fn find(workspace: &Path) -> Result<Discovery, RepositoryError> {
    let real =
        fs::canonicalize(workspace).map_err(|error| RepositoryError::io(workspace, &error))?;
    let mut search = RepositorySearch {
        counted: counting(&real),
        workspace: real.clone(),
        found: BTreeMap::new(),
        complete: true,
    };
    let mut folders = VecDeque::from([(real, 0)]);
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop_front() {
        seen += 1;
        if seen > MAX_FOLDERS || search.found.len() > MAX_REPOSITORIES {
            search.complete = false;
            break;
        }
        let below = match search.look(&folder) {
            Ok(below) => below,
            // The commands cannot read it either.
            Err(_) if depth > 0 => continue,
            Err(error) => return Err(error),
        };
        if depth < MAX_DEPTH {
            folders.extend(below.into_iter().map(|folder| (folder, depth + 1)));
        } else {
            search.complete &= below.is_empty();
        }
    }
    Ok(search.finish())
}

struct RepositorySearch {
    workspace: PathBuf,
    /// Device of file systems that count folders by links: a folder without folders has two.
    counted: Option<u64>,
    found: BTreeMap<PathBuf, GitDirectory>,
    complete: bool,
}

/// File systems on which a folder without subfolders has two links.
const COUNTING: [i64; 3] = [
    // Ext4, XFS, tmpfs.
    0xef53,
    0x5846_5342,
    0x0102_1994,
];

/// Returns the device of a folder whose file system counts folders by links.
fn counting(folder: &Path) -> Option<u64> {
    let kind = rustix::fs::statfs(folder).ok()?.f_type;
    let data = fs::symlink_metadata(folder).ok()?;
    COUNTING.contains(&kind).then(|| data.dev())
}

impl RepositorySearch {
    /// Searches a folder for a repository, and returns its subfolders.
    fn look(&mut self, folder: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
        if self.has_no_folders(folder) {
            // Resolves the `.git` of a folder.
            if let Ok(data) = fs::symlink_metadata(folder.join(".git")) {
                self.follow(folder, data.file_type());
            }
            return Ok(Vec::new());
        }
        let listed = fs::read_dir(folder).map_err(|error| RepositoryError::io(folder, &error))?;
        let mut below = Vec::new();
        let mut bare = 0;
        for entry in listed.filter_map(Result::ok) {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                continue;
            };
            match name.to_str() {
                Some(".git") => self.follow(folder, kind),
                Some("HEAD") if kind.is_file() => bare += 1,
                Some("objects" | "refs") if kind.is_dir() => {
                    bare += 1;
                    below.push(entry.path());
                }
                _ if kind.is_dir() => below.push(entry.path()),
                _ => {}
            }
        }
        if bare == 3 {
            self.add(folder.to_owned(), None, Some(Support::Bare));
            return Ok(Vec::new());
        }
        below.sort();
        Ok(below)
    }

    fn has_no_folders(&self, folder: &Path) -> bool {
        let data = fs::symlink_metadata(folder);
        data.is_ok_and(|data| Some(data.dev()) == self.counted && data.nlink() == 2)
    }

    /// Follows an entry called `.git` in a folder.
    fn follow(&mut self, folder: &Path, kind: fs::FileType) {
        let entry = folder.join(".git");
        if kind.is_dir() {
            match read_commondir(&entry) {
                Ok(None) => self.add(entry, None, None),
                Ok(Some(_)) => {
                    self.refuse(entry, None, "it shares the files of another repository")
                }
                Err(error) => self.refuse(entry, None, error),
            }
            return;
        }
        let target = fs::canonicalize(&entry).map_err(|error| RepositoryError::io(&entry, &error));
        let target = target.and_then(|target| {
            if target.is_dir() {
                Ok(target)
            } else {
                git_file(&target)
            }
        });
        let found = target.and_then(|target| {
            let common = match read_commondir(&target)? {
                Some(common) => names_back(&common, &target, &entry)?,
                None => target,
            };
            Ok(common)
        });
        match found {
            Ok(common) => self.add(common, Some(entry), None),
            Err(error) => self.refuse(entry.clone(), Some(entry), error),
        }
    }

    fn refuse(&mut self, path: PathBuf, pointer: Option<PathBuf>, reason: impl ToString) {
        let reason = reason.to_string();
        self.add(path, pointer, Some(Support::NotCarried { reason }));
    }

    fn add(&mut self, path: PathBuf, pointer: Option<PathBuf>, support: Option<Support>) {
        let support = support.unwrap_or_else(|| match check(&path) {
            Ok(()) => Support::Carried,
            Err(error) => Support::NotCarried {
                reason: error.to_string(),
            },
        });
        let directory = self
            .found
            .entry(path.clone())
            .or_insert_with(|| GitDirectory {
                path,
                workspace: self.workspace.clone(),
                pointers: Vec::new(),
                by_link: false,
                support,
            });
        let is_link = |path: &PathBuf| path.is_symlink();
        directory.by_link |= pointer.as_ref().is_some_and(is_link);
        directory.pointers.extend(pointer);
    }

    fn finish(mut self) -> Discovery {
        // Submodules' folders lie in the repository that they are part of, and go with it.
        let paths: Vec<_> = self.found.keys().cloned().collect();
        for path in paths {
            let mut outer = path
                .ancestors()
                .skip(1)
                .filter(|above| self.found.contains_key(*above));
            let Some(outer) = outer
                .find(|above| path.starts_with(above.join("modules")))
                .map(Path::to_owned)
            else {
                continue;
            };
            let pointers = self.found.remove(&path).map(|inner| inner.pointers);
            if let Some(outer) = self.found.get_mut(&outer) {
                outer.pointers.extend(pointers.unwrap_or_default());
            }
        }
        let mut directories: Vec<_> = self.found.into_values().collect();
        for directory in &mut directories {
            directory.pointers.sort();
        }
        Discovery {
            directories,
            complete: self.complete,
        }
    }
}

fn read_commondir(path: &Path) -> Result<Option<PathBuf>, RepositoryError> {
    let common = pointer::of_commondir(&GitFolder::open(path)?)?;
    let real =
        |path: PathBuf| fs::canonicalize(&path).map_err(|error| RepositoryError::io(&path, &error));
    common.map(real).transpose()
}

/// Returns the real folder that a `.git` file names.
fn git_file(file: &Path) -> Result<PathBuf, RepositoryError> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(RepositoryError::NotRegular(file.to_owned()));
    };
    let path = pointer::of_git_file(&GitFolder::open(folder)?, Path::new(name))?;
    fs::canonicalize(&path).map_err(|error| RepositoryError::io(&path, &error))
}

/// Returns the common directory if it lists the work tree whose own folder is `own`.
fn names_back(common: &Path, own: &Path, entry: &Path) -> Result<PathBuf, RepositoryError> {
    let refused = |reason: &str| RepositoryError::Damaged {
        path: entry.to_owned(),
        reason: reason.to_owned(),
    };
    let below = own.strip_prefix(common).ok();
    let below = below.filter(|below| below.starts_with("worktrees") && below.iter().count() == 2);
    let below = below.ok_or_else(|| refused("it does not lead to a linked work tree's folder"))?;
    let named = pointer::of_worktree(&GitFolder::open(common)?, below)?;
    let named = named.and_then(|named| fs::canonicalize(named).ok());
    match fs::canonicalize(entry).ok() {
        Some(real) if named.as_ref() == Some(&real) => Ok(common.to_owned()),
        _ => Err(refused(
            "the repository that it leads to does not name this work tree",
        )),
    }
}

/// Supported extensions, with their supported values; an empty list for any.
const EXTENSIONS: [(&str, &[&str]); 6] = [
    ("noop", &[]),
    ("preciousobjects", &[]),
    ("worktreeconfig", &[]),
    ("relativeworktrees", &[]),
    ("objectformat", &["sha1"]),
    ("refstorage", &["files"]),
];

/// Checks that the store at `path` has a supported form.
pub(super) fn check(path: &Path) -> Result<(), RepositoryError> {
    let git = GitFolder::open(path)?;
    let not = |reason: String| {
        Err(RepositoryError::NotSupported {
            path: path.to_owned(),
            reason,
        })
    };
    // Journals and lists of alternates could not name it.
    let is_plain = path
        .to_str()
        .is_some_and(|path| !path.chars().any(char::is_control));
    if !is_plain {
        return not("its path is not plain text".to_owned());
    }
    for folder in ["objects", "refs"] {
        if git.kind(Path::new(folder))? != PathKind::Folder {
            return not(format!("its `{folder}` is not a folder"));
        }
    }
    if git.kind(Path::new("commondir"))? != PathKind::Missing {
        return not("it shares the files of another repository".to_owned());
    }
    let config = read_config(&git, Path::new("config"))?;
    let version = config
        .last("core", "repositoryformatversion")
        .unwrap_or("0");
    if !matches!(version, "0" | "1") {
        return not(format!("its format {version} is unknown"));
    }
    let mut set = config
        .settings
        .iter()
        .filter(|setting| setting.name.section == "extensions");
    let unknown = set.find(|setting| {
        let value = setting
            .value
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let known = EXTENSIONS
            .iter()
            .find(|(name, _)| *name == setting.name.name);
        known.is_none_or(|(_, values)| !values.is_empty() && !values.contains(&value.as_str()))
    });
    if let Some(setting) = unknown {
        let value = setting.value.as_deref().unwrap_or_default();
        return not(format!(
            "it uses {} = {value}, which is not supported",
            setting.name
        ));
    }
    refs::read_head(&git, Path::new(""))?;
    Ok(())
}

/// Reads a configuration file; an empty one if it is missing.
pub(super) fn read_config(git: &GitFolder, path: &Path) -> Result<GitConfig, RepositoryError> {
    let content = git.read(path, MAX_CONFIG)?.unwrap_or_default();
    GitConfig::parse(&content).map_err(|error| RepositoryError::Damaged {
        path: git.path().join(path),
        reason: error.to_string(),
    })
}
