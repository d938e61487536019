//! The processes that carry out commands of the queue: copies of this program, which outlive the
//! server.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    pin::Pin,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use gyrus_journal::Holder;
use gyrus_runtime::queue::{Command, RUN_IS_ELSEWHERE, Worker, WorkerEnd, Workers};
use gyrus_surfaces::console::put;
use tokio::{io::AsyncWriteExt as _, sync::Notify};

use crate::{
    commands::work::{FleetOrder, WorkOrder},
    env::GYRUS_TOKEN,
};

/// Bytes of the end of what a process said that are kept.
const SAID: u64 = 4 << 10;

/// Starts processes of this program.
pub(crate) struct Processes {
    /// The program, as it was when the server started.
    program: PathBuf,
    /// The folder for what the processes say. It is a folder of files, because a process that
    /// outlives its server could not say anything into a pipe.
    said: PathBuf,
    /// The fleet for which the commands are carried out.
    fleet: Option<FleetOrder>,
    /// Words that stand before those of a command that is carried out.
    before: Vec<String>,
    /// The commands whose processes are alive, with what kills each.
    alive: Arc<Mutex<BTreeMap<String, Arc<Notify>>>>,
}

impl Processes {
    pub(crate) fn new(
        state: &Path,
        fleet: Option<FleetOrder>,
        before: Vec<String>,
    ) -> io::Result<Self> {
        let said = state.join("serve");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&said)?;
        Ok(Self {
            program: PathBuf::from("/proc/self/exe"),
            said,
            fleet,
            before,
            alive: Arc::default(),
        })
    }

    /// Returns a command of this program as a person would type it here, with these words.
    pub(super) fn typed(&self, words: &[String]) -> tokio::process::Command {
        self.command(&[&self.before, words].concat())
    }

    /// Returns a command of this program with these words.
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
    fn start(&self, command: &Command) -> io::Result<Worker> {
        let order = WorkOrder {
            command: command.clone(),
            fleet: self.fleet.clone(),
        };
        let order = serde_json::to_vec(&order).map_err(io::Error::other)?;
        let path = self.said.join(format!("{}.txt", command.id));
        let said = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path)?;
        let mut child = self
            .command(&["work".to_owned()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()?;
        let kill = Arc::new(Notify::new());
        let (alive, id) = (Arc::clone(&self.alive), command.id.clone());
        let mut locked = alive.lock().unwrap_or_else(PoisonError::into_inner);
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
            let mut alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
            alive.remove(&id);
            drop(alive);
            let said = end_of(&path).unwrap_or_default();
            if code == Some(RUN_IS_ELSEWHERE) {
                // Whoever runs this worker is told why it has the run no more.
                let _ = put(said.trim_start());
            }
            let _ = fs::remove_file(&path);
            WorkerEnd { code, said }
        }))
    }

    fn kill(&self, command: &Command) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kill) = alive.get(&command.id) {
            kill.notify_one();
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

fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SAID)))?;
    let mut bytes = Vec::new();
    file.take(SAID).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
