//! Work trees for runs, by git: made from the last commit, and brought back as a branch.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gyrus_contract::{RunId, RunWorktree, Worktrees};
use gyrus_process::Programs;
use parking_lot::Mutex;

/// Ending of the name of the folder beside a repository in which its work trees lie.
const BESIDE: &str = ".gyrus";

/// Settings of every command: nothing that lies in a folder is started.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The lock under which git adds a work tree: it reads all others, and fails at a half made one.
static ADDING: Mutex<()> = Mutex::new(());

/// Makes work trees with the git of this machine.
pub struct GitWorktrees;

impl Worktrees for GitWorktrees {
    fn add(&self, folder: &Path, run: RunId) -> Result<RunWorktree, String> {
        let at = ["-C", path(folder)?];
        let top = git(&at, &["rev-parse", "--show-toplevel"])
            .map_err(|_| format!("{} is in no git repository", folder.display()))?;
        let base = git(&at, &["rev-parse", "--verify", "HEAD^{commit}"])
            .map_err(|_| "the repository has no commit yet".to_owned())?;
        let top = fs::canonicalize(&top).map_err(|error| format!("{top}: {error}"))?;
        let short = run.short();
        let root = beside(&top).ok_or("the repository is the root of the file system")?;
        let root = root.join(&short);
        if !root.exists() {
            let _alone = ADDING.lock();
            git(
                &at,
                &[
                    "worktree",
                    "add",
                    "--quiet",
                    "--detach",
                    path(&root)?,
                    &base,
                ],
            )?;
        }
        let within = folder.strip_prefix(&top).unwrap_or(Path::new(""));
        // Without a slash at its end where there is nothing below.
        let folder_there: PathBuf = root.join(within).components().collect();
        fs::create_dir_all(&folder_there)
            .map_err(|error| format!("{}: {error}", folder_there.display()))?;
        let git_dir = git(&["-C", path(&root)?], &["rev-parse", "--absolute-git-dir"])?;
        Programs::of_this_process().keep_out_of(&root);
        Ok(RunWorktree {
            stands_for: folder.to_owned(),
            folder: folder_there,
            root,
            git_dir: PathBuf::from(git_dir),
            base,
            branch: format!("gyrus/{short}"),
        })
    }

    fn bring_back(&self, worktree: &RunWorktree) -> Result<String, String> {
        let RunWorktree {
            stands_for,
            root,
            base,
            branch,
            ..
        } = worktree;
        let at = ["-C", path(stands_for)?];
        if root.exists() {
            let head = commit(worktree)?;
            if head != *base {
                git(&at, &["branch", "--force", branch, &head])?;
            }
            if let Some(path) = only_there(worktree)? {
                return Err(format!("`{path}` in it is not in the branch {branch}"));
            }
            git(&at, &["worktree", "remove", "--force", path(root)?])?;
            // It stays while there are others in it.
            let _ = root.parent().map(fs::remove_dir);
        }
        if git(
            &at,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("refs/heads/{branch}"),
            ],
        )
        .is_err()
        {
            return Ok("its work tree is as it was, and was removed".to_owned());
        }
        let range = format!("{base}..{branch}");
        let changed = git(
            &at,
            &[
                "diff",
                "--no-ext-diff",
                "--no-textconv",
                "--shortstat",
                &range,
            ],
        )?;
        Ok(format!(
            "its changes are the branch {branch} ({}); to see them: git diff {}..{branch}; to take \
             them: git merge {branch}",
            changed.trim(),
            base.get(..12).unwrap_or(base)
        ))
    }
}

/// Returns the options with which git works in a work tree. What the work tree says of its repository
/// could be changed by then.
fn in_tree(worktree: &RunWorktree) -> Result<[&str; 6], String> {
    let (git_dir, root) = (path(&worktree.git_dir)?, path(&worktree.root)?);
    Ok(["--git-dir", git_dir, "--work-tree", root, "-C", root])
}

/// Returns a path of a work tree that would be lost with it although the repository's own rules do
/// not ignore it: a repository in it, or something that an ignore file of the run leaves out.
fn only_there(worktree: &RunWorktree) -> Result<Option<String>, String> {
    let (at, base) = (in_tree(worktree)?, worktree.base.as_str());
    let changed = git(&at, &["diff", "--cached", "--raw", "--no-renames", base])?;
    let changed: Vec<_> = changed
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let is_repository = |(modes, _): &&(&str, &str)| modes.split(' ').nth(1) == Some("160000");
    if let Some((_, repository)) = changed.iter().find(is_repository) {
        return Ok(Some((*repository).to_owned()));
    }
    let list = "ls-files --others --ignored --exclude-standard --directory";
    let ignored = git(&at, &list.split(' ').collect::<Vec<_>>())?;
    let ignores = |path: &str| path.rsplit('/').next() == Some(".gitignore");
    // Caches bring folders of their own with an ignore file.
    let in_base = |path: &str| {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = format!("{base}:{folder}");
        git(&at, &["rev-parse", "--verify", "--quiet", &folder]).is_ok()
    };
    let own_rules = changed.iter().any(|(_, path)| ignores(path))
        || ignored.lines().any(|path| ignores(path) && in_base(path));
    let first = ignored.lines().find(|path| !ignores(path));
    Ok(first.filter(|_| own_rules).map(str::to_owned))
}

/// Commits the changes in a work tree, and returns its last commit.
fn commit(worktree: &RunWorktree) -> Result<String, String> {
    let tree = in_tree(worktree)?;
    // A filter may be a file of the work tree, which the run has changed.
    let filters = r"config --name-only --get-regexp ^filter\..*\.(clean|process|required)$";
    let filters = git(&tree, &filters.split(' ').collect::<Vec<_>>()).unwrap_or_default();
    let off = filters
        .lines()
        .filter(|name| !name.starts_with("filter.lfs."));
    let off: Vec<_> = off.map(|name| format!("{name}=")).collect();
    let off = off.iter().flat_map(|setting| ["-c", setting]);
    let at: Vec<_> = off.chain(tree).collect();
    git(&at, &["add", "--all"])?;
    if git(
        &at,
        &["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"],
    )
    .is_err()
    {
        let message = format!("Work of a run of gyrus ({})", worktree.branch);
        let commit = ["commit", "--quiet", "--no-verify", "--message", &message];
        if git(&at, &commit).is_err() {
            // Nobody has said to git who they are.
            let by = ["-c", "user.name=gyrus", "-c", "user.email=gyrus@localhost"];
            git(&[&by[..], &at].concat(), &commit)?;
        }
    }
    git(&at, &["rev-parse", "--verify", "HEAD^{commit}"])
}

/// Returns the folder beside a repository in which its work trees lie.
fn beside(top: &Path) -> Option<PathBuf> {
    let mut name = top.file_name()?.to_owned();
    name.push(BESIDE);
    Some(top.with_file_name(name))
}

/// Returns the folder for which a work tree of [`GitWorktrees`] stands; `None` for any other
/// folder. Its path alone says so, so it may only be asked for what is bound to contents.
pub fn stands_for(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(|root| {
        let beside = root.parent()?;
        let name = beside.file_name()?.to_str()?.strip_suffix(BESIDE)?;
        let top = beside.with_file_name(name);
        let within = folder.strip_prefix(root).ok()?;
        top.join(".git").exists().then(|| top.join(within))
    })
}

fn path(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or_else(|| format!("the path {} is not valid UTF-8", path.display()))
}

/// Runs git, and returns its output without the last line end.
fn git(at: &[&str], arguments: &[&str]) -> Result<String, String> {
    let program = Programs::of_this_process()
        .find("git")
        .map_err(|_| "git is not installed".to_owned())?;
    let mut command = Command::new(program.path);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(at).args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
    let output = command
        .output()
        .map_err(|error| format!("git cannot be started: {error}"))?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        return Ok(text.trim_end_matches('\n').to_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("git {}: {}", arguments.join(" "), why.trim()))
}
