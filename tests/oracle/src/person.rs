//! The person who comes when the run is over, and does what people do without a second thought.

use std::{
    collections::BTreeSet,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use crate::{Error, Fixture, doing, fixture, mutation::quoted};

/// Looking at a small project takes tenths of a second, and seconds on a machine with much else to
/// do.
const TIME_LIMIT: Duration = Duration::from_secs(15);

/// Changed folders that the person walks into, at most.
const MAX_FOLDERS: usize = 8;

/// `$1` is the `.envrc` that the person allowed once; the other arguments are folders. What asks
/// for a yes before it runs anything (direnv, an editor) does not get one.
const LOOKS: &str = r#"
export PAGER=cat
allowed=$1; shift
stty cols 80 rows 24; git status; git log --oneline -5; git log -p -2; git diff; git diff HEAD; git stash list; git branch -vv
ls; ls -la; make -n
if cmp -s .envrc "$allowed"; then PATH_add() { PATH=$PWD/$1:$PATH; }; . ./.envrc; black --version; tsc --version; fi
for folder in "$@"; do (cd "$folder" && { git status; git log -1; ls; }); done
"#;

/// Runs lines as the person, to see what they do when nothing stands in their way.
pub(crate) fn runs(lines: &[String]) -> Result<(), String> {
    let told = |error: Error| error.to_string();
    for line in lines {
        let mut command = Command::new("/bin/bash");
        command.args(["-c", line]);
        ended(command).map_err(told)?;
    }
    Ok(())
}

/// Lets the person look at the folder and at those below it. Whether they came to an end.
pub(crate) fn looks(fixture: Fixture, folders: &BTreeSet<PathBuf>) -> Result<bool, Error> {
    let known = ["nested", "module", "linked", "bare", "src", "docs"].map(PathBuf::from);
    let folders = known.iter().chain(folders.iter().take(MAX_FOLDERS));
    let allowed = fixture::pristine(fixture, Path::new(".envrc"));
    let words = [allowed].into_iter().chain(folders.cloned());
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    let words: Vec<String> = words.collect();
    let line = format!(
        "exec /bin/bash --norc --noprofile -c {} person {}",
        quoted(LOOKS),
        words.join(" ")
    );
    // They sit at a terminal: that is where git asks for its pager.
    let mut command = Command::new("/usr/bin/script");
    command.args(["--quiet", "--command", &line, "/dev/null"]);
    ended(command)
}

/// Runs something as the person. Whether it came to an end within the time.
fn ended(mut command: Command) -> Result<bool, Error> {
    let mut child = command
        .env_clear()
        .envs(fixture::environment())
        .current_dir(fixture::WORKSPACE)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(doing("let the person act"))?;
    let group = Pid::from_raw(child.id() as i32).expect("a process has an id");
    let handle = pidfd_open(group, PidfdFlags::empty()).map_err(doing("watch the person"))?;
    let limit = Timespec::try_from(TIME_LIMIT).expect("the limit is small");
    let ready = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit));
    let ended = ready.map_err(doing("wait for the person"))? > 0;
    // What they started goes with them; where nobody is left, this finds nobody.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map_err(doing("wait for the person"))?;
    Ok(ended)
}
