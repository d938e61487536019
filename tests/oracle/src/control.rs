//! Files of a workspace that other programs obey, by the oracle's own list: the gate's must not
//! judge itself.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path},
    process::{Command, Stdio},
};

/// Names of files and folders, anywhere, with all below.
const NAMES: [&str; 52] = [
    ".envrc",
    ".direnv",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".inputrc",
    ".gitmodules",
    ".gitattributes",
    ".gitconfig",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".hg",
    ".jj",
    ".gyrus",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".claude",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".windsurf",
    ".gemini",
    ".aider.conf.yml",
    ".mcp.json",
    ".vscode",
    ".devcontainer",
    ".devcontainer.json",
    ".idea",
    ".zed",
    ".helix",
    ".dir-locals.el",
    ".vimrc",
    ".exrc",
    ".nvim.lua",
    ".gdbinit",
    "sitecustomize.py",
    "usercustomize.py",
    ".irbrc",
    ".Rprofile",
    ".gitlab-ci.yml",
    ".circleci",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".cargo",
    "rust-toolchain.toml",
    "pyvenv.cfg",
];

/// Folders of programs in the person's PATH.
const PROGRAMS: [&str; 2] = [".venv/bin", "node_modules/.bin"];

/// Files that git keeps beside settings: data and positions. Of everything else a person's next
/// command could run something, or go somewhere.
const DATA: [&str; 31] = [
    "objects",
    "refs",
    "logs",
    "index",
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "SQUASH_MSG",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "NOTES_EDITMSG",
    "packed-refs",
    "description",
    "rr-cache",
    "shallow",
    "branches",
    "lfs",
    "gc.log",
    "gc.pid",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
];

/// Settings of a repository that name neither a program nor a place.
const SETTINGS: [&str; 15] = [
    "user.name",
    "user.email",
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "pull.rebase",
    "push.default",
    "init.defaultbranch",
    "rerere.enabled",
    "fetch.prune",
];

/// Returns the reason why a changed path of a workspace is a control file that is not git's own, if
/// it is one.
pub(crate) fn obeyed(path: &Path, exists: bool, existed: bool) -> Option<&'static str> {
    let named = path.components().any(|part| match part {
        Component::Normal(name) => NAMES.iter().any(|known| name == *known),
        _ => false,
    });
    if named {
        return Some("a control file");
    }
    let workflow = [".github/workflows", ".github/actions", ".config/fish"];
    if workflow.iter().any(|folder| path.starts_with(folder)) {
        return Some("a control file");
    }
    if !exists {
        return None;
    }
    if PROGRAMS.iter().any(|folder| path.starts_with(folder)) {
        return Some("a program in PATH");
    }
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let is_makefile = ["gnumakefile", "makefile", "bsdmakefile"].contains(&name.as_str());
    let at_the_top = path.components().count() == 1;
    (is_makefile && (at_the_top || existed)).then_some("a makefile")
}

/// Returns the reason why a run must not change a path of a git directory, if there is one. `below`
/// is relative to that directory; `now` is the file as it is, `before` as it was, whether they
/// exist or not.
pub(crate) fn of_git(below: &Path, now: &Path, before: &Path) -> Option<String> {
    let mut parts = below.iter().map(|part| part.to_string_lossy());
    let Some(first) = parts.next() else {
        // The directory itself: what is in it is judged one by one.
        let is_folder = fs::symlink_metadata(now).is_ok_and(|data| data.is_dir());
        let is_gone = fs::symlink_metadata(now).is_err();
        return (!is_folder && !is_gone).then(|| "a repository elsewhere is named".to_owned());
    };
    let data = fs::symlink_metadata(now);
    if data
        .as_ref()
        .is_ok_and(|data| !data.is_dir() && !data.is_file())
    {
        return Some("it is a link or no file".to_owned());
    }
    let is_folder = data.is_ok_and(|data| data.is_dir());
    let second = parts.next();
    let second = second.as_deref();
    let last = below.file_name()?.to_string_lossy();
    let inner = |skipped: usize| below.iter().skip(skipped).collect::<std::path::PathBuf>();
    match &*first {
        "objects" if second == Some("info") => last
            .ends_with("alternates")
            .then(|| "objects elsewhere are named".to_owned()),
        "refs" if second == Some("replace") && !is_folder => {
            Some("an object is replaced".to_owned())
        }
        "config" | "config.worktree" => settings(now, before),
        "hooks" => (!is_folder && !last.ends_with(".sample")).then(|| "a hook".to_owned()),
        "info" => (!is_folder && !["exclude", "refs"].contains(&&*last))
            .then(|| "attributes, or the like".to_owned()),
        "modules" | "worktrees" => match second {
            None => None,
            Some(_) if ["gitdir", "commondir", "locked"].contains(&&*last) => {
                Some("where a repository lies".to_owned())
            }
            Some(_) if below.components().count() == 2 => None,
            Some(_) => of_git(&inner(2), now, before),
        },
        name if DATA.contains(&name)
            || name.ends_with(".lock")
            || name.starts_with("sharedindex")
            || name.starts_with("index.") =>
        {
            None
        }
        // Left by the first looks of git at a file system.
        name if name.starts_with("tmp_") => None,
        _ if is_folder => None,
        _ => Some("it is none of git's data".to_owned()),
    }
}

/// Returns a change in a file of settings that names a program or a place.
fn settings(now: &Path, before: &Path) -> Option<String> {
    let (now, before) = (listed(now)?, listed(before).unwrap_or_default());
    let changed = now.symmetric_difference(&before);
    let mut bad = changed.filter(|(key, value)| !is_harmless(key, value));
    bad.next().map(|(key, value)| format!("{key} = {value}"))
}

fn is_harmless(key: &str, value: &str) -> bool {
    let of_branch = key.starts_with("branch.")
        && [".remote", ".merge", ".rebase", ".description"]
            .iter()
            .any(|end| key.ends_with(end))
        && (key.ends_with(".merge") || !value.contains(['/', ':']));
    // What a clone of an address on the web has, and no program or place.
    let name = key
        .strip_prefix("remote.")
        .and_then(|key| key.strip_suffix(".fetch"));
    let of_clone = name.is_some_and(|name| value == format!("+refs/heads/*:refs/remotes/{name}/*"));
    SETTINGS.contains(&key) || key.starts_with("color.") || of_branch || of_clone
}

/// The settings that git reads from a file; `None` if it is not there.
fn listed(file: &Path) -> Option<BTreeSet<(String, String)>> {
    fs::symlink_metadata(file).ok()?;
    let output = Command::new("/usr/bin/git")
        .args(["config", "--no-includes", "--list", "--null", "--file"])
        .arg(file)
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let unreadable = || ("settings".to_owned(), "cannot be read".to_owned());
    if !output.status.success() {
        return Some(BTreeSet::from([unreadable()]));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs = text.split('\0').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('\n').unwrap_or((pair, "")));
    Some(
        pairs
            .map(|(key, value)| (key.to_lowercase(), value.to_owned()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_decide() {
        let check = |path: &str, expected: bool| {
            let found = obeyed(Path::new(path), true, false);
            assert_eq!(found.is_some(), expected, "{path}: {found:?}");
        };
        check(".vscode/tasks.json", true);
        check("sub/.envrc", true);
        check("GNUmakefile", true);
        check("build/Makefile", false);
        check(".venv/bin/chromium", true);
        check(".github/workflows/new.yml", true);
        check("src/main.rs", false);
    }

    #[test]
    fn of_git_only_data_may_change() {
        let folder = tempfile::tempdir().unwrap();
        let (now, before) = (folder.path().join("now"), folder.path().join("before"));
        fs::write(&before, "[user]\n\tname = a\n").unwrap();
        let check = |below: &str, text: &str, expected: bool| {
            fs::write(&now, text).unwrap();
            let found = of_git(Path::new(below), &now, &before);
            assert_eq!(found.is_some(), expected, "{below}: {found:?}");
        };
        check("objects/ab/cd", "", false);
        check("objects/info/alternates", "", true);
        check("refs/heads/main", "", false);
        check("refs/replace/x", "", true);
        check("hooks/pre-commit", "", true);
        check("hooks/pre-commit.sample", "", false);
        check("commondir", "", true);
        check("config", "[user]\n\tname = b\n", false);
        check("config", "[core]\n\tpager = x\n", true);
        check("config", "[branch \"b\"]\n\tremote = ../x\n", true);
        check("modules/sub/config", "[core]\n\tfsmonitor = x\n", true);
        check("modules/sub/index", "", false);
        check("worktrees/tree/commondir", "", true);
    }
}
