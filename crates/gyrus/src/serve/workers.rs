//! The processes that carry out commands of the queue: copies of this program, which outlive the
//! server.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    pin::Pin,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gyrus_journal::Holder;
use gyrus_runtime::queue::{DrivingProcess, QueueCommand, RUN_IS_ELSEWHERE, WorkerEnd, Workers};
use gyrus_surfaces::console::put;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::{io::AsyncWriteExt as _, sync::Notify};

use crate::{
    commands::work::{FleetOrder, WorkOrder},
    env::GYRUS_TOKEN,
};

/// Maximum number of bytes of a process's last messages that are kept.
const SAID: u64 = 4 << 10;

/// Starts processes of this program.
pub(crate) struct Processes {
    /// The program, as it was when the server started.
    program: PathBuf,
    fleet: Option<FleetOrder>,
    /// Words of the command line before those of the command.
    before: Vec<String>,
    /// The commands whose processes are alive, each with the notification that kills its process.
    alive: Arc<Mutex<BTreeMap<String, Arc<Notify>>>>,
    /// Whether it was reported why commands cannot begin, and none has begun since.
    is_want_told: Arc<AtomicBool>,
}

impl Processes {
    pub(crate) fn new(fleet: Option<FleetOrder>, before: Vec<String>) -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
            fleet,
            before,
            alive: Arc::default(),
            is_want_told: Arc::default(),
        }
    }

    /// Returns a command of this program as a person would type it here, with these words.
    pub(super) fn typed(&self, words: &[String]) -> tokio::process::Command {
        self.command(&[&self.before, words].concat())
    }

    fn command(&self, words: &[String]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        // A signal from the server's terminal means the server.
        // What a client was started with is no run's business.
        command
            .arg0("gyrus")
            .process_group(0)
            .env_remove(GYRUS_TOKEN)
            .args(words);
        command
    }
}

impl Workers for Processes {
    fn start(&self, command: &QueueCommand) -> io::Result<DrivingProcess> {
        let order = WorkOrder {
            command: command.clone(),
            fleet: self.fleet.clone(),
        };
        let order = serde_json::to_vec(&order).map_err(io::Error::other)?;
        // Memory, because a disk may be what is full, and a process that outlives its server could not
        // say anything into a pipe.
        let mut said = File::from(memfd_create("said", MemfdFlags::CLOEXEC)?);
        let mut child = self
            .command(&["work".to_owned()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(said.try_clone()?)
            .spawn()?;
        let kill = Arc::new(Notify::new());
        let (alive, id) = (Arc::clone(&self.alive), command.id.clone());
        let is_want_told = Arc::clone(&self.is_want_told);
        let mut locked = alive.lock();
        locked.insert(id.clone(), Arc::clone(&kill));
        drop(locked);
        Ok(Box::pin(async move {
            if let Some(mut stdin) = child.stdin.take() {
                // Who ends before it has read all says why.
                let _ = stdin.write_all(&order).await;
            }
            let status = tokio::select! {
                status = child.wait() => status,
                () = kill.notified() => {
                    // Its lease sees to what it started: the kernel kills all of it with it.
                    let _ = child.start_kill();
                    child.wait().await
                }
            };
            let code = status.ok().and_then(|status| status.code());
            let mut alive = alive.lock();
            alive.remove(&id);
            drop(alive);
            if code == Some(0) {
                is_want_told.store(false, Ordering::Relaxed);
            }
            let said = end_of(&mut said).unwrap_or_default();
            if code == Some(RUN_IS_ELSEWHERE) {
                // Whoever runs this worker is told why it has the run no more.
                let _ = put(said.trim_start());
            }
            WorkerEnd { code, said }
        }))
    }

    fn kill(&self, command: &QueueCommand) {
        let alive = self.alive.lock();
        if let Some(kill) = alive.get(&command.id) {
            kill.notify_one();
        }
    }

    fn cannot_begin(&self, why: &str) {
        if !self.is_want_told.swap(true, Ordering::Relaxed) {
            let why = why.strip_prefix("error: ").unwrap_or(why);
            let _ = put(&format!(
                "no queued run can begin, and gyrus tries again until one can: {why}\n"
            ));
        }
    }

    fn ended(&self, holder: &Holder) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let process = holder.process.clone();
        Box::pin(async move {
            // One that cannot be watched counts as ended: its run is then looked at again.
            let _ = process.ended().await;
        })
    }
}

fn end_of(file: &mut File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SAID)))?;
    let mut bytes = Vec::new();
    file.take(SAID).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
