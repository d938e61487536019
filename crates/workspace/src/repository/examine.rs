//! Finds the parts of a repository made by a command that need a person's approval.

use std::path::Path;

use rustix::fs::Mode;

use super::{
    RepositoryError, alternates, config_edit,
    find::read_config,
    folder::{GitFolder, PathKind},
    protected::{self, MAX_SETTINGS, split},
    settings::{self, SettingChange},
    stamps::Stamps,
    state,
    withheld::{FileContent, WithheldPath},
};

/// Examines a new git directory: a folder called `.git`, a bare repository, or a file or link
/// called `.git`. Each [`WithheldPath::old`] is its replacement until a person approves the change.
///
/// Git's own data, ordinary settings and a remote at an `https` address are allowed.
///
/// # Errors
/// When it cannot be read. Then all of it must be removed.
pub fn examine_new(git_directory: &Path) -> Result<Vec<WithheldPath>, RepositoryError> {
    let is_folder = std::fs::symlink_metadata(git_directory)
        .map_err(|error| RepositoryError::io(git_directory, &error))?
        .is_dir();
    if !is_folder {
        let (Some(above), Some(name)) = (git_directory.parent(), git_directory.file_name()) else {
            return Err(RepositoryError::NotRegular(git_directory.to_owned()));
        };
        let above = GitFolder::open(above)?;
        return Ok(vec![WithheldPath {
            repository: above.path().to_owned(),
            path: name.into(),
            reason: "it leads to a repository in another place".to_owned(),
            old: None,
            new: FileContent::read(&above, Path::new(name))?,
            settings: Vec::new(),
        }]);
    }
    let git = GitFolder::open(git_directory)?;
    let stamps = Stamps::take(&git)?;
    let mut withheld = Vec::new();
    for (path, stamp) in &stamps.entries {
        let (_, below) = split(path, &stamps.stores);
        if stamp.kind == PathKind::Folder {
            continue;
        }
        if below == Path::new("config") || below.ends_with("config.worktree") {
            withheld.extend(examine_config(&git, path)?);
        } else if stamp.kind != PathKind::File || !may_stay(&git, path, below)? {
            withheld.push(WithheldPath {
                repository: git_directory.to_owned(),
                path: path.clone(),
                reason: reason(stamp.kind, below).to_owned(),
                old: None,
                new: FileContent::read(&git, path)?,
                settings: Vec::new(),
            });
        }
    }
    for store in &stamps.stores {
        for name in ["alternates", "http-alternates"] {
            let path = store.join("objects/info").join(name);
            if git.kind(&path)? != PathKind::Missing {
                withheld.push(WithheldPath {
                    repository: git_directory.to_owned(),
                    reason: protected::reason(Path::new("objects/info/alternates")).to_owned(),
                    old: None,
                    new: FileContent::read(&git, &path)?,
                    path,
                    settings: Vec::new(),
                });
            }
        }
    }
    Ok(withheld)
}

/// Examines a new git directory, and replaces each change that is not allowed by its
/// [`WithheldPath::old`]. Returns the changes for [`super::apply_withheld`].
///
/// # Errors
/// When it is not a folder, or cannot be read or changed. Then all of it must be removed.
pub fn take_back_new(git_directory: &Path) -> Result<Vec<WithheldPath>, RepositoryError> {
    let git = GitFolder::open(git_directory)?;
    for store in &Stamps::take(&git)?.stores {
        alternates::make_whole(&git, store)?;
    }
    let withheld = examine_new(git_directory)?;
    for change in &withheld {
        git.remove_tree(&change.path)?;
        if let Some((content, _)) = change.old.as_ref().and_then(FileContent::bytes) {
            git.write_new(&change.path, &content, Mode::from_raw_mode(0o644))?;
        }
    }
    Ok(withheld)
}

fn reason(kind: PathKind, below: &Path) -> &'static str {
    if kind != PathKind::File {
        return "it is not a regular file";
    }
    if below.starts_with("refs/replace") {
        return "it would put other objects in the place of those that are asked for";
    }
    if state::is_private(below) {
        return "a list of what is to be done may name programs";
    }
    protected::reason(below)
}

/// Whether a regular file may remain unchanged.
fn may_stay(git: &GitFolder, path: &Path, below: &Path) -> Result<bool, RepositoryError> {
    if below.starts_with("refs/replace") || is_list_of_steps(below) {
        return Ok(false);
    }
    let plain = ["description", "shallow", "branches"];
    if protected::is_data(below) || plain.iter().any(|file| below.starts_with(file)) {
        return Ok(true);
    }
    // The template has only comments.
    let is_comment = |line: &&str| line.is_empty() || line.starts_with('#');
    if below != Path::new("info/exclude") {
        return Ok(false);
    }
    let content = FileContent::read(git, path)?.and_then(|content| content.bytes());
    let text = content.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
    Ok(text.is_some_and(|text| text.lines().map(str::trim).all(|line| is_comment(&line))))
}

fn is_list_of_steps(below: &Path) -> bool {
    ["rebase-merge", "rebase-apply", "sequencer", "BISECT_RUN"]
        .iter()
        .any(|list| below.starts_with(list))
}

fn examine_config(git: &GitFolder, path: &Path) -> Result<Option<WithheldPath>, RepositoryError> {
    let text = |text: &str| {
        Some(FileContent::Text {
            text: text.to_owned(),
            executable: false,
        })
    };
    let withheld = |old, settings| -> Result<_, RepositoryError> {
        Ok(Some(WithheldPath {
            repository: git.path().to_owned(),
            path: path.to_owned(),
            reason: "a setting may name a program, or a place".to_owned(),
            old,
            new: FileContent::read(git, path)?,
            settings,
        }))
    };
    let Ok(config) = read_config(git, path) else {
        return withheld(None, Vec::new());
    };
    let values = config.values().into_iter();
    let asked = values.filter(|(name, values)| !settings::is_allowed_in_new(name, values));
    let asked: Vec<_> = asked
        .map(|(name, after)| SettingChange {
            name,
            before: Vec::new(),
            after,
        })
        .collect();
    if asked.is_empty() {
        return Ok(None);
    }
    let removals: Vec<_> = asked
        .iter()
        .map(|change| SettingChange {
            name: change.name.clone(),
            before: change.after.clone(),
            after: Vec::new(),
        })
        .collect();
    if removals.len() > MAX_SETTINGS {
        return withheld(None, Vec::new());
    }
    let rest = config_edit::edit(&config.text, &removals.iter().collect::<Vec<_>>());
    withheld(rest.ok().and_then(|rest| text(&rest)), asked)
}
