//! What a command may not change in a workspace that it may change: the files by which git runs
//! programs as the person, and the folder's own rules for runs.
//!
//! Whoever reads a line sees a plain write to such a file, and it is asked about. Code that the
//! line runs is not read; for that, they are read-only.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gyrus_contract::{CommandFact, CommandReading, Containment, Does};

use gyrus_workspace::snapshot::is_left_out;

use crate::{
    shell,
    weigh::{has_git_part, is_rule},
};

/// Where a project keeps its rules.
const RULES: &str = ".gyrus";

/// Entries of folders that are looked at for repositories within the workspace.
const MAX_LOOKED_AT: usize = 2_000;

/// Repositories that are guarded.
const MAX_REPOSITORIES: usize = 64;

/// What in a repository makes git run programs.
const RUNS: [&str; 3] = ["hooks", "config", "config.worktree"];

/// Makes what runs by itself read-only, unless the line says plainly that it changes it: then that
/// was asked about.
pub(crate) fn protect(workspace: &Path, reading: &CommandReading, containment: &mut Containment) {
    let changed = |wanted: fn(&Path) -> bool| {
        reading.facts.iter().any(|fact| match &fact.does {
            Does::Writes { path } | Does::Removes { path } => {
                path.strip_prefix(workspace).is_ok_and(wanted)
            }
            _ => false,
        })
    };
    if reading.only_reads() {
        return;
    }
    let rules = workspace.join(RULES);
    if !changed(is_rule) && is_real(&rules) {
        containment.read_only.push(rules);
    }
    if changed(has_git_part) {
        return;
    }
    let does = |wanted: &Does| reading.facts.iter().any(|fact| fact.does == *wanted);
    let by_git = does(&Does::ChangesRepository);
    for git in repositories(workspace) {
        if !by_git || !git.is_dir() {
            containment.read_only.push(git);
            continue;
        }
        // As a mount of its own it cannot be moved aside and replaced.
        containment.writable.push(git.clone());
        // Git by itself changes its settings for a new branch or remote.
        let kept = if shell::only_git_changes(reading) {
            &RUNS[..1]
        } else {
            &RUNS
        };
        let kept = kept.iter().map(|name| git.join(name));
        containment
            .read_only
            .extend(kept.filter(|path| is_real(path)));
    }
}

/// Makes folders read-only in which the person's shell finds programs and which no snapshot holds,
/// so that what a command leaves there could not be told and taken back.
pub(crate) fn protect_programs(
    workspace: &Path,
    programs: &[PathBuf],
    containment: &mut Containment,
) {
    let unseen = programs.iter().filter(|folder| {
        let below = folder.strip_prefix(workspace);
        below.is_ok_and(|below| is_left_out(workspace, below)) && is_real(folder)
    });
    containment.read_only.extend(unseen.cloned());
}

/// As for code that a line runs: for a program of which nothing is read.
pub fn protect_from_code(workspace: &Path, containment: &mut Containment) {
    let code = CommandFact {
        does: Does::RunsCode,
        part: String::new(),
        why: String::new(),
    };
    let reading = CommandReading {
        facts: vec![code],
        ..CommandReading::default()
    };
    protect(workspace, &reading, containment);
}

/// The `.git` of the workspace and of folders one and two below it.
fn repositories(workspace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut folders = vec![(workspace.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let git = folder.join(".git");
        if is_real(&git) {
            found.push(git);
        }
        if depth == 2 || found.len() == MAX_REPOSITORIES {
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MAX_LOOKED_AT {
                return found;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && entry.file_name() != ".git" && entry.file_name() != RULES {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Whether it is there and no link, over which nothing can be laid.
fn is_real(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|data| data.is_dir() || data.is_file())
}
