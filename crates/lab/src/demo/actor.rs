//! gyrus itself as a process of the demo: started, watched through its journal, and killed.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use gyrus_contract::{EffectId, RunId};
use gyrus_journal::{Store, os::watch};
use gyrus_kernel::{Entry, RUNS, log_name};
use gyrus_process::ProcessIdentity;

use crate::{Installation, LabError};

/// Time limit of everything that the demo waits for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// A process of gyrus. Dropping it kills it.
pub(super) struct Actor {
    child: Child,
}

impl Drop for Actor {
    fn drop(&mut self) {
        // That it has ended already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Actor {
    /// Starts gyrus. `seen` lets its console through.
    pub(super) fn start(
        gyrus: &dyn Installation,
        arguments: &[&str],
        seen: bool,
    ) -> Result<Self, LabError> {
        let show = |seen: bool| {
            if seen {
                Stdio::inherit()
            } else {
                Stdio::null()
            }
        };
        let child = gyrus
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(show(seen))
            .stderr(show(seen))
            .spawn()
            .map_err(|error| LabError::failed("gyrus cannot be started").because(error))?;
        Ok(Self { child })
    }

    /// Waits for the process to end, without keeping it, and returns its exit code; `None` if a
    /// signal ended it.
    pub(super) async fn end(mut self) -> Result<Option<i32>, LabError> {
        if let Some(process) = ProcessIdentity::of(self.child.id())? {
            // Waiting blocks a thread; the child stays here, so that it dies if we give up.
            let gone = tokio::task::spawn_blocking(move || process.wait_gone(TIMEOUT));
            if !gone.await.map_err(LabError::failed)?? {
                return Err(LabError::failed("a process of the demo does not end"));
            }
        }
        Ok(self.child.wait()?.code())
    }

    /// Waits for the process to end, and returns its exit code.
    pub(super) async fn ended(&mut self) -> Result<Option<i32>, LabError> {
        let Some(process) = ProcessIdentity::of(self.child.id())? else {
            return Ok(self.child.wait()?.code());
        };
        // Long enough for whatever else is waited for to happen or to be given up.
        let gone = tokio::task::spawn_blocking(move || process.wait_gone(TIMEOUT * 2));
        gone.await.map_err(LabError::failed)??;
        Ok(self.child.wait()?.code())
    }

    /// Returns the process and all its descendants.
    pub(super) fn tree(&self) -> Vec<ProcessIdentity> {
        let children = children();
        let mut tree = Vec::new();
        let mut next = vec![self.child.id()];
        while let Some(pid) = next.pop() {
            tree.extend(ProcessIdentity::of(pid).ok().flatten());
            next.extend(children.get(&pid).into_iter().flatten());
        }
        tree
    }

    /// SIGKILL, no chance to clean up: whether nothing of `tree` outlives it, and in words.
    pub(super) async fn kill_all(
        mut self,
        tree: Vec<ProcessIdentity>,
    ) -> Result<(bool, String), LabError> {
        let killed = Instant::now();
        self.child.kill()?;
        self.child.wait()?;
        let processes = tree.len();
        let gone = tokio::task::spawn_blocking(move || all_gone(&tree));
        let gone = gone.await.map_err(LabError::failed)??;
        let detail = format!(
            "none of its {processes} processes is alive, what they started included, {} ms later",
            killed.elapsed().as_millis()
        );
        Ok((gone && processes > 1, detail))
    }
}

/// Waits until all processes are gone; returns whether they are.
fn all_gone(tree: &[ProcessIdentity]) -> Result<bool, LabError> {
    let deadline = Instant::now() + TIMEOUT;
    for process in tree {
        let left = deadline.saturating_duration_since(Instant::now());
        if !process.wait_gone(left)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn children() -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        if let Some(parent) = parent.and_then(|parent| parent.trim().parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

pub(super) async fn first_run(store: &Store) -> Result<RunId, LabError> {
    let appears = async {
        loop {
            let runs = store.root().join(RUNS);
            let folder = if runs.is_dir() {
                runs.as_path()
            } else {
                store.root()
            };
            let mut changes = watch::watch(folder)?;
            if let Some(run) = gyrus_kernel::runs(store)?.first() {
                return Ok(*run);
            }
            if folder == store.root() && runs.is_dir() {
                continue;
            }
            changes.changed().await;
        }
    };
    within(appears, "the run does not begin").await?
}

/// Waits until a command of this step is running and has written its first output into `folder`, or
/// into its layer.
pub(super) async fn in_the_middle(
    store: &Store,
    run: RunId,
    step: u32,
    mut has_begun: impl FnMut(&Path) -> bool,
    folder: &Path,
) -> Result<EffectId, LabError> {
    let begins = async {
        let mut follower = store.reader(&log_name(run))?.follow(1)?;
        let effect = loop {
            match gyrus_kernel::parse(&follower.next().await?) {
                Ok(Entry::ToolStarted(started)) if started.effect.cycle_number() == step => {
                    break started.effect;
                }
                _ => {}
            }
        };
        let layer = gyrus_kernel::layer_of(store, run, &effect);
        let folder = layer.as_deref().unwrap_or(folder);
        let mut changes = watch::watch(folder)?;
        while !has_begun(folder) {
            changes.changed().await;
        }
        Ok(effect)
    };
    within(
        begins,
        "the run does not come to the step that is to be cut off",
    )
    .await?
}

/// Returns the output of `done`, or an error after the time limit.
pub(super) async fn within<T>(
    done: impl Future<Output = T>,
    too_long: &str,
) -> Result<T, LabError> {
    tokio::time::timeout(TIMEOUT, done)
        .await
        .map_err(|_| LabError::failed(format!("{too_long}, after {} s", TIMEOUT.as_secs())))
}
