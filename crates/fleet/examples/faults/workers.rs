//! Workers: real processes, each with a home of its own, whose ways to the servers are links.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    harms::{Harms, Subject, now_us},
    proxy::Link,
    servers::{Servers, bound_to_this_thread},
};

/// Interval between two looks at a worker.
const LOOK: Duration = Duration::from_millis(25);

/// The words that a worker says when it is at work.
const READY: &str = "takes runs of";

/// The settings of all workers.
#[derive(Clone)]
pub(crate) struct WorkerSettings {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) lease: String,
    pub(crate) at_once: usize,
}

/// A machine with a worker, which is started again whenever it has ended.
pub(crate) struct WorkerMachine {
    pub(crate) number: usize,
    pub(crate) links: Vec<Link>,
    settings: WorkerSettings,
    address: String,
    home: PathBuf,
    pid: Mutex<Option<Pid>>,
    /// The time before which the worker is not started again, in microseconds.
    down_until: Mutex<i64>,
    harms: Arc<Harms>,
    ending: AtomicBool,
    pub(crate) starts: AtomicU64,
    /// Number of starts that ended before the worker was at work.
    pub(crate) refused: AtomicU64,
}

impl WorkerMachine {
    /// Creates a machine; nothing runs on it yet.
    pub(crate) async fn new(
        number: usize,
        servers: &Servers,
        settings: WorkerSettings,
        harms: Arc<Harms>,
    ) -> anyhow::Result<Arc<Self>> {
        let mut links = Vec::new();
        for port in servers.client_ports() {
            links.push(Link::open(port).await?);
        }
        let ports: Vec<u16> = links.iter().map(|link| link.port).collect();
        let home = settings.folder.join(format!("worker-{number}"));
        fs::create_dir_all(&home)?;
        Ok(Arc::new(Self {
            number,
            address: servers.address(&ports),
            links,
            settings,
            home,
            pid: Mutex::new(None),
            down_until: Mutex::new(0),
            harms,
            ending: AtomicBool::new(false),
            starts: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Keeps a worker at work until [`WorkerMachine::end`].
    pub(crate) async fn keep(&self) -> anyhow::Result<()> {
        let subject = Subject::Worker(self.number);
        let mut harm = Some(self.harms.begin(subject, 0));
        while !self.ending.load(Ordering::Relaxed) {
            if now_us() < *self.down_until.lock() {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let start = self.starts.fetch_add(1, Ordering::Relaxed);
            let said = self.home.join(format!("said-{start}.txt"));
            let mut child = self.start(&said)?;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            *self.pid.lock() = pid;
            let mut is_ready = false;
            while child.try_wait()?.is_none() && !self.ending.load(Ordering::Relaxed) {
                if !is_ready && fs::read_to_string(&said)?.contains(READY) {
                    is_ready = true;
                    if let Some(harm) = harm.take() {
                        self.harms.end(harm);
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
            *self.pid.lock() = None;
            let _ = child.kill();
            child.wait()?;
            harm.get_or_insert_with(|| self.harms.begin(subject, now_us()));
            if !is_ready {
                self.refused.fetch_add(1, Ordering::Relaxed);
                // As whatever looks after services does.
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
        Ok(())
    }

    fn start(&self, said: &Path) -> anyhow::Result<std::process::Child> {
        let said = fs::File::create(said)?;
        let mut command = bound_to_this_thread(&self.settings.program);
        command
            .args(["worker", "--fleet", &self.address])
            .args(["--lease", &self.settings.lease])
            .args(["--at-once", &self.settings.at_once.to_string()])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.settings.folder.join("person"))
            .env("GYRUS_HOME", &self.home)
            .env("USER", "tester")
            .env("GYRUS_BROWSER", "/nowhere/browser")
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said);
        Ok(command.spawn()?)
    }

    /// Returns the process of the worker, if there is one.
    pub(crate) fn worker(&self) -> Option<Pid> {
        *self.pid.lock()
    }

    /// Returns the processes that drive runs on this machine.
    pub(crate) fn drivers(&self) -> Vec<Pid> {
        processes_of(&self.home)
            .into_iter()
            .filter(|(_, words)| words == b"gyrus\0work\0")
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Does not start the worker again before some time is over.
    pub(crate) fn stay_down(&self, time: Duration) {
        let until = now_us() + i64::try_from(time.as_micros()).unwrap_or(0);
        *self.down_until.lock() = until;
    }

    /// Lets the worker end, and kills everything of this machine.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        kill_all(&self.home);
    }
}

/// Returns the processes whose environment names a folder, or one in it, as the home of gyrus, with their
/// command lines.
pub(crate) fn processes_of(home: &Path) -> Vec<(Pid, Vec<u8>)> {
    let wanted = format!("GYRUS_HOME={}", home.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        // A process that has ended meanwhile has neither.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_of = environment.split(|byte| *byte == 0).any(|variable| {
            let rest = variable.strip_prefix(wanted.as_bytes());
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"-")
            })
        });
        if is_of {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, words));
        }
    }
    found
}

/// Kills the processes of a home.
pub(crate) fn kill_all(home: &Path) {
    for (pid, _) in processes_of(home) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
