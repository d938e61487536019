//! The folder of a run as a commit of a git repository: its address and commit are sent, and the worker
//! fetches it with its own credentials.
//!
//! Git's settings of the repository run programs (hooks, filters, monitors). None does here: hooks are
//! off, files are written without the worker's settings, submodules are not followed, and only
//! transports that are encrypted are allowed.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gyrus_process::Programs;
use gyrus_runtime::request::FolderBase;

use crate::failure::Failure;

/// Time limit for one command of git.
const WITHIN: Duration = Duration::from_secs(600);

/// Interval at which a command is checked for its end.
const LOOK: Duration = Duration::from_millis(10);

/// Maximum number of bytes of git's messages.
const SAID: usize = 600;

const TRANSPORTS: [&str; 2] = ["https", "ssh"];

const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "transfer.fsckObjects=true",
];

/// Returns the commit that is checked out in a folder, as a worker elsewhere can clone it.
pub(super) fn of_checkout(folder: &Path) -> Result<FolderBase, Failure> {
    let ask = |words: &[&str]| -> Result<String, Failure> {
        let said = run(git(folder)?.args(words))?;
        Ok(said.trim().to_owned())
    };
    let shown = folder.display();
    let top = ask(&["rev-parse", "--show-toplevel"])
        .map_err(|error| error.hint("to send the folder itself: --upload"))?;
    if Path::new(&top) != folder {
        return Err(
            Failure::usage(format!("{shown} is a folder of the repository in {top}"))
                .hint(format!("clone the whole of it: --workdir {top}")),
        );
    }
    let commit = ask(&["rev-parse", "--verify", "HEAD^{commit}"])?;
    // Of files that are tracked, by their times alone: what filters say is not asked.
    let changed = ask(&["diff-files", "--name-only"])?;
    let staged = ask(&["diff-index", "--cached", "--name-only", "HEAD"])?;
    let new = ask(&["ls-files", "--others", "--exclude-standard"])?;
    if let Some(first) = changed
        .lines()
        .chain(staged.lines())
        .chain(new.lines())
        .next()
    {
        return Err(Failure::usage(format!(
            "{shown} has changes that are in no commit, as `{first}`"
        ))
        .hint("commit and push them, or send the folder as it is: --upload"));
    }
    let branches = ask(&[
        "for-each-ref",
        "--contains",
        &commit,
        "--format=%(refname)",
        "refs/remotes",
    ])?;
    let remote = branches.lines().find_map(|name| {
        let name = name.strip_prefix("refs/remotes/")?;
        Some(name.split_once('/')?.0.to_owned())
    });
    let remote = remote.ok_or_else(|| {
        Failure::usage(format!(
            "the commit of {shown} is on no branch of a remote that is known here"
        ))
        .hint("push it first, or send the folder as it is: --upload")
    })?;
    let url = ask(&["config", "--get", &format!("remote.{remote}.url")])?;
    check_url(&url)?;
    let branch = ask(&["symbolic-ref", "--quiet", "--short", "HEAD"]).ok();
    Ok(FolderBase::Commit {
        url,
        commit,
        branch: branch.filter(|branch| is_branch(branch)),
    })
}

/// Writes a commit of a repository into an empty folder, as a clone without its history.
pub(super) fn check_out(
    url: &str,
    commit: &str,
    branch: Option<&str>,
    into: &Path,
) -> Result<(), Failure> {
    check_url(url)?;
    fetch(url, commit, branch, into, &TRANSPORTS)
}

fn fetch(
    url: &str,
    commit: &str,
    branch: Option<&str>,
    into: &Path,
    transports: &[&str],
) -> Result<(), Failure> {
    let is_commit =
        matches!(commit.len(), 40 | 64) && commit.bytes().all(|one| one.is_ascii_hexdigit());
    if !is_commit || branch.is_some_and(|branch| !is_branch(branch)) {
        return Err(Failure::usage(format!("`{commit}` is not a commit")));
    }
    run(without_settings(&mut git(into)?).args(["init", "--quiet", "--template="]))?;
    let mut fetching = git(into)?;
    for transport in transports {
        fetching.args(["-c", &format!("protocol.{transport}.allow=always")]);
    }
    run(fetching.args([
        "fetch",
        "--quiet",
        "--depth=1",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--",
        url,
        commit,
    ]))
    .map_err(|error| error.hint("the worker fetches it with its own credentials: can it?"))?;
    let mut writing = git(into)?;
    without_settings(&mut writing).args(["checkout", "--quiet"]);
    match branch {
        Some(branch) => writing.args(["-B", branch, commit, "--"]),
        None => writing.args(["--detach", commit, "--"]),
    };
    run(&mut writing)?;
    run(without_settings(&mut git(into)?).args(["remote", "add", "--", "origin", url])).map(drop)
}

/// Checks that an address may be sent, and be fetched from.
fn check_url(url: &str) -> Result<(), Failure> {
    let refused = |why: &str| {
        Err(
            Failure::usage(format!("the address of the git remote {why}"))
                .hint("to send the folder itself: --upload"),
        )
    };
    if url.len() > 2_000
        || url
            .chars()
            .any(|one| one.is_whitespace() || one.is_control())
    {
        return refused("is not an address that can be sent to a worker");
    }
    let (scheme, rest) = match url.split_once("://") {
        Some(parts) => parts,
        // As in `git@example.org:a/b.git`.
        None => match url.split_once(':') {
            Some((host, _))
                if !host.contains('/') && !host.starts_with('-') && !url.contains("::") =>
            {
                ("ssh", url)
            }
            _ => return refused("is a folder of this machine"),
        },
    };
    if !TRANSPORTS.contains(&scheme) {
        return refused("is neither https nor ssh");
    }
    let place = rest.split('/').next().unwrap_or_default();
    let person = place.rsplit_once('@').map(|(person, _)| person);
    if person.is_some_and(|person| scheme == "https" || person.contains(':')) {
        return refused("has a password or token in it, which is not sent");
    }
    if place.is_empty() || place.starts_with('-') {
        return refused("names no machine");
    }
    Ok(())
}

/// Whether git accepts a branch name, by a stricter rule that excludes names of another meaning.
fn is_branch(name: &str) -> bool {
    let plain = |one: char| one.is_ascii_alphanumeric() || "/._-+#".contains(one);
    let parts = || name.split('/');
    name.len() <= 200
        && name.chars().all(plain)
        && !name.starts_with('-')
        && !name.contains("..")
        && parts()
            .all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
        && !name.ends_with('.')
        && name != "HEAD"
}

fn git(folder: &Path) -> Result<Command, Failure> {
    let found = Programs::of_this_process().find("git");
    let found = found.map_err(|error| Failure::failed("git is not here").because(&error))?;
    let mut command = Command::new(found.path);
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF",
        "GIT_TEMPLATE_DIR",
    ] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("LC_ALL", "C");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    Ok(command)
}

/// Makes a command of git ignore settings other than its own and the repository's.
fn without_settings(command: &mut Command) -> &mut Command {
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
}

fn run(command: &mut Command) -> Result<String, Failure> {
    let failed = |error: &std::io::Error| Failure::failed("git cannot be run").because(error);
    let (out, err) = (tempfile::tempfile(), tempfile::tempfile());
    let (mut out, mut err) = (out.map_err(|e| failed(&e))?, err.map_err(|e| failed(&e))?);
    let share = |file: &std::fs::File| file.try_clone().map(Stdio::from);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(share(&out).map_err(|e| failed(&e))?)
        .stderr(share(&err).map_err(|e| failed(&e))?)
        .spawn()
        .map_err(|error| failed(&error))?;
    let until = Instant::now() + WITHIN;
    let status = loop {
        match child.try_wait().map_err(|error| failed(&error))? {
            Some(status) => break status,
            None if Instant::now() >= until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::failed("git did not end within ten minutes"));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    if status.success() {
        return read(&mut out).map_err(|error| failed(&error));
    }
    let said = read(&mut err).unwrap_or_default();
    let said = gyrus_text::shorten(&gyrus_text::one_line(said.trim()), SAID).to_string();
    Err(Failure::failed(format!("git failed: {said}")))
}

fn read(file: &mut std::fs::File) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _};
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(1 << 20).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn addresses_are_sent_only_if_others_can_use_them_and_hold_no_password() {
        let check = |url: &str, may: bool| assert_eq!(check_url(url).is_ok(), may, "{url}");
        check("https://example.org/a/b.git", true);
        check("ssh://git@example.org:22/a/b.git", true);
        check("git@example.org:a/b.git", true);
        check("https://token@example.org/a", false);
        check("https://ada:secret@example.org/a", false);
        check("ssh://ada:secret@example.org/a", false);
        check("http://example.org/a", false);
        check("git://example.org/a", false);
        check("file:///etc", false);
        check("/home/ada/a", false);
        check("../a", false);
        check("ext::sh -c touch% /tmp/x", false);
        check("ext::x", false);
        check("ssh://-oProxyCommand=x/a", false);
        check("-u:x", false);
        check("https://", false);
        check("", false);
    }

    #[test]
    fn names_of_branches_mean_nothing_else() {
        for name in ["main", "feature/a-1", "v1.2"] {
            assert!(is_branch(name), "{name}");
        }
        for name in [
            "", "-b", "a..b", "HEAD", "a/.b", "a.lock", "a b", "a//b", "refs@{1}",
        ] {
            assert!(!is_branch(name), "{name}");
        }
    }

    #[test]
    fn a_commit_is_written_without_hooks_filters_or_history() {
        let folder = tempfile::tempdir().unwrap();
        let origin = folder.path().join("origin");
        fs::create_dir(&origin).unwrap();
        let at = |words: &[&str]| {
            let mut command = git(&origin).unwrap();
            let command = without_settings(&mut command);
            let person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
            run(command.args(person).args(words)).unwrap()
        };
        at(&["init", "--quiet", "-b", "main"]);
        for text in ["one", "two"] {
            fs::write(origin.join("a.txt"), text).unwrap();
            fs::write(origin.join(".gitattributes"), "*.txt filter=evil\n").unwrap();
            at(&["add", "."]);
            at(&["commit", "--quiet", "-m", text]);
        }
        let commit = at(&["rev-parse", "HEAD"]).trim().to_owned();
        let into = folder.path().join("into");
        fs::create_dir(&into).unwrap();
        let url = format!("file://{}", origin.display());
        // Only these tests fetch from this machine.
        assert!(check_out(&url, &commit, None, &into).is_err());
        fetch(&url, &commit, Some("main"), &into, &["file"]).unwrap();
        assert_eq!(fs::read_to_string(into.join("a.txt")).unwrap(), "two");
        assert!(!into.join(".git/hooks").exists());
        let log = run(git(&into).unwrap().args(["log", "--format=%s %D"])).unwrap();
        assert!(
            log.starts_with("two ") && log.contains("HEAD -> main"),
            "{log}"
        );
        assert_eq!(log.lines().count(), 1, "{log}");
        // What is checked out here is on no remote.
        let mine = of_checkout(&origin.canonicalize().unwrap()).unwrap_err();
        assert!(mine.message.contains("on no branch of a remote"), "{mine}");
        fs::write(origin.join("new.txt"), "x").unwrap();
        let mine = of_checkout(&origin.canonicalize().unwrap()).unwrap_err();
        assert!(mine.message.contains("new.txt"), "{mine}");
        let missing = "0".repeat(40);
        let empty = folder.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert!(fetch(&url, &missing, None, &empty, &["file"]).is_err());
        assert!(fetch(&url, "--upload-pack=x", None, &empty, &["file"]).is_err());
    }
}
