//! The kernel's side of a keeper.

use std::{
    fmt,
    io::{self, BufRead, BufReader},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use gyrus_contract::{CommandOutcome, CommandSpec, KeeperError};
use gyrus_journal::os::process::ProcessIdentity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Hello, KILL_LIMIT, Level, Reply, wait_until_gone};

/// How long a keeper may take to say hello. It takes milliseconds; a program that is no keeper
/// may never do it.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A keeper that waits for its one command. Dropping it, or the future of [`Keeper::run`], kills
/// the command's whole process tree, shortly after; [`super::wait_until_gone`] waits for that.
#[derive(Debug)]
pub struct Keeper {
    identity: ProcessIdentity,
    level: Level,
    control: UnixStream,
    guard: Guard,
}

impl Keeper {
    /// Starts a keeper from this very program, whose `main` must begin with
    /// [`super::serve_if_asked`]. Takes a few milliseconds, during which the thread is blocked.
    pub fn start() -> Result<Self, KeeperError> {
        // The link still works when the file was replaced by an upgrade.
        Self::with_program(Path::new("/proc/self/exe"))
    }

    /// Starts a keeper from another program that begins with [`super::serve_if_asked`].
    pub fn with_program(program: &Path) -> Result<Self, KeeperError> {
        match launch(program, Level::Namespace)? {
            Ok(keeper) => Ok(keeper),
            Err(_refused) => Self::at_level(program, Level::Subreaper),
        }
    }

    /// As [`Self::with_program`], at this level or not at all.
    pub fn at_level(program: &Path, level: Level) -> Result<Self, KeeperError> {
        launch(program, level)?.map_err(|reason| KeeperError::Keeper { reason })
    }

    /// The process whose end proves that the command's tree is gone. It is to be on disk before
    /// [`Self::run`].
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// How this keeper makes sure of the tree.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Runs the command and waits until its whole tree is gone, also on an error. Needs a tokio
    /// runtime with IO. Dropping the future kills the tree.
    pub async fn run(self, command: CommandSpec) -> Result<CommandOutcome, KeeperError> {
        let Self {
            identity,
            control,
            guard: _guard,
            ..
        } = self;
        let mut line = serde_json::to_vec(&command).map_err(failed("ordering a command"))?;
        line.push(b'\n');
        let exchange = async {
            control.set_nonblocking(true)?;
            let mut control = tokio::net::UnixStream::from_std(control)?;
            control.write_all(&line).await?;
            let mut reply = Vec::new();
            // To the very end: guard and server are gone then, and so is the tree.
            control.read_to_end(&mut reply).await?;
            io::Result::Ok(reply)
        };
        let reply = exchange.await.map_err(failed("talking to it"))?;
        if !reply.ends_with(b"\n") {
            // If both were killed at once, the socket closed before the tree was gone.
            wait_until_gone(&identity, KILL_LIMIT).await;
            let reason = "it ended without an answer, probably killed".to_owned();
            return Err(KeeperError::Keeper { reason });
        }
        serde_json::from_slice::<Reply>(&reply).map_err(failed("reading its answer"))?
    }
}

/// Starts a guard and waits for its hello; the inner error is its refusal of the level.
fn launch(program: &Path, level: Level) -> Result<Result<Keeper, String>, KeeperError> {
    let (control, theirs) = UnixStream::pair().map_err(failed("making a socket"))?;
    let child = Command::new(program)
        .arg0("gyrus")
        .arg(level.argument())
        // Keys in our environment are none of the command's business.
        .env_clear()
        .current_dir("/")
        // Out of reach of a terminal's Ctrl-C, which is for us to handle.
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed("starting it"))?;
    let mut guard = Guard(Some(child));
    match hello(&control) {
        Ok(Ok(identity)) => Ok(Ok(Keeper {
            identity,
            level,
            control,
            guard,
        })),
        Ok(Err(refusal)) => Ok(Err(refusal)),
        Err(error) => {
            guard.kill();
            let reason = format!(
                "`{}` did not answer as a keeper ({error}); its main must begin with \
                 `serve_if_asked`",
                program.display()
            );
            Err(KeeperError::Keeper { reason })
        }
    }
}

fn hello(control: &UnixStream) -> io::Result<Hello> {
    control.set_read_timeout(Some(START_LIMIT))?;
    let mut line = String::new();
    // Nothing follows the line until a command was sent, so the buffer swallows nothing.
    BufReader::new(control).read_line(&mut line)?;
    control.set_read_timeout(None)?;
    Ok(serde_json::from_str(&line)?)
}

fn failed<E: fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> KeeperError {
    move |error| KeeperError::Keeper {
        reason: format!("{doing}: {error}"),
    }
}

/// Our child, which must be waited for, or it stays as a zombie for as long as we live.
#[derive(Debug)]
struct Guard(Option<Child>);

impl Guard {
    /// For what never said hello: it has no tree to look after.
    fn kill(&mut self) {
        if let Some(child) = &mut self.0 {
            // That it has ended already is what we want.
            let _ = child.kill();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else {
            return;
        };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        // The socket is closing, so it ends soon; but its tree may take a while to die. Without
        // a thread to spare it stays a zombie, which harms nobody.
        let _ = thread::Builder::new()
            .name("keeper-reaper".to_owned())
            .spawn(move || child.wait());
    }
}
