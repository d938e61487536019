//! Client side of a keeper, in the run's process.

use std::{
    fmt,
    io::{self, BufRead, BufReader},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

use gyrus_contract::{
    CommandOutcome, CommandSpec, ConnectionPolicy, Containment, KeeperError, Listeners, Outlet,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};

use super::{
    CommandSite, DIALER, FORWARDED, Hello, KILL_LIMIT, KeeperLevel, KeeperOrder, PROXY, STAYS,
    TreeReply, attached, nursery, standing::StandingSandbox, wait_until_gone,
};
use crate::ProcessIdentity;

/// Maximum time until a keeper's hello. It takes milliseconds; a program that is not a keeper may
/// never send one.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Maximum number of sockets accepted from a server.
const MAX_FORWARDED: usize = 128;

/// The sandbox of a command.
pub struct KeeperSandbox<'a> {
    /// The paths and addresses that the command may reach.
    pub containment: &'a Containment,
    /// Serves the sandbox's proxy, if there is one.
    pub outlet: &'a dyn Outlet,
    /// Decides which requests the proxy forwards.
    pub policy: &'a dyn ConnectionPolicy,
    /// A file that the keeper writes when the command's process tree has ended, even if this
    /// process has ended by then. Its time tells what the command cannot have changed.
    pub ended: Option<&'a Path>,
}

/// A keeper that waits for a command. Dropping it ends it shortly after;
/// [`super::wait_until_gone`] waits for that.
#[derive(Debug)]
pub struct Keeper {
    identity: ProcessIdentity,
    level: KeeperLevel,
    control: UnixStream,
    /// The sandbox of the keeper's commands, once it was created.
    stands: Option<StandingSandbox>,
}

impl Keeper {
    /// Starts a keeper from this very program, whose `main` must begin with
    /// [`super::serve_if_asked`]. Takes a few milliseconds, during which the thread is blocked.
    ///
    /// # Errors
    /// No process can be started, or `main` does not begin so.
    pub fn start() -> Result<Self, KeeperError> {
        if !nursery::serves() {
            return Err(KeeperError::Keeper {
                reason: "the first statement of this program's `main` must be `gyrus::init()`, by \
                         which a copy of it starts and confines commands"
                    .to_owned(),
            });
        }
        // The link still works when the file was replaced by an upgrade.
        Self::with_program(Path::new("/proc/self/exe"))
    }

    /// Does the same as [`Self::start`] on another thread, for callers that must not block.
    pub async fn start_beside() -> Result<Self, KeeperError> {
        let started = tokio::task::spawn_blocking(Self::start).await;
        started.map_err(|error| KeeperError::Keeper {
            reason: error.to_string(),
        })?
    }

    /// Starts a keeper from another program, which begins with [`super::serve_if_asked`].
    pub fn with_program(program: &Path) -> Result<Self, KeeperError> {
        match launch(program, KeeperLevel::Namespace)? {
            GuardStart::Keeper(keeper) => Ok(*keeper),
            GuardStart::Refused(_) => Self::at_level(program, KeeperLevel::Subreaper),
        }
    }

    /// Like [`Self::with_program`], but at this level only.
    pub fn at_level(program: &Path, level: KeeperLevel) -> Result<Self, KeeperError> {
        match launch(program, level)? {
            GuardStart::Keeper(keeper) => Ok(*keeper),
            GuardStart::Refused(reason) => Err(KeeperError::Keeper { reason }),
        }
    }

    /// Returns the process whose end proves that the command's process tree has ended. Record it on
    /// disk before [`Self::run`].
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Returns the means by which this keeper ends the whole process tree.
    pub fn level(&self) -> KeeperLevel {
        self.level
    }

    /// Runs the command and waits until its whole process tree has ended, also on an error. Needs a
    /// tokio runtime with IO. Dropping the future kills the tree, and blocks for the few
    /// milliseconds that this takes.
    pub async fn run(self, command: CommandSpec) -> Result<CommandOutcome, KeeperError> {
        self.run_with_grace(command, Duration::ZERO).await
    }

    /// Runs the command like [`Self::run`]. When the future is dropped, or this process dies, the
    /// command's main process gets a `SIGINT` and `grace` to end before its tree is killed.
    pub async fn run_with_grace(
        self,
        command: CommandSpec,
        grace: Duration,
    ) -> Result<CommandOutcome, KeeperError> {
        let (outcome, _ends) = self.run_order(command, None, grace).await?;
        Ok(outcome)
    }

    /// Runs the command like [`Self::run`], confined by `sandbox`. Also returns the keeper if
    /// another command may run in the same sandbox: nothing of this command is left in it, and all
    /// that the containment names is still in place.
    pub async fn run_in(
        self,
        command: CommandSpec,
        sandbox: Option<KeeperSandbox<'_>>,
    ) -> Result<(CommandOutcome, Option<Self>), KeeperError> {
        self.run_order(command, sandbox, Duration::ZERO).await
    }

    async fn run_order(
        self,
        command: CommandSpec,
        sandbox: Option<KeeperSandbox<'_>>,
        grace: Duration,
    ) -> Result<(CommandOutcome, Option<Self>), KeeperError> {
        let Self {
            identity,
            level,
            control,
            stands,
        } = self;
        let gone = GoneOnDrop(&identity, grace + KILL_LIMIT);
        let exchanged = exchange(control, stands, command, sandbox, grace).await?;
        let Some((outcome, stays)) = exchanged else {
            // If guard and server were killed at once, the socket closed before the tree was gone.
            wait_until_gone(&identity, KILL_LIMIT).await;
            let reason = "it ended without an answer, probably killed".to_owned();
            return Err(KeeperError::Keeper { reason });
        };
        let Some((control, standing)) = stays else {
            return Ok((outcome, None));
        };
        std::mem::forget(gone);
        let keeper = Self {
            identity,
            level,
            control,
            stands: Some(standing),
        };
        Ok((outcome, Some(keeper)))
    }

    /// Whether the sandbox of this keeper suits a command that asks for `containment`.
    pub(super) fn suits(&self, containment: &Containment) -> bool {
        let stands = self.stands.as_ref();
        stands.is_some_and(|standing| standing.is(containment) && standing.is_intact())
    }

    /// Ends the keeper, and waits until it has ended.
    pub fn end(self) {
        let Self {
            identity, control, ..
        } = self;
        let _gone = GoneOnDrop(&identity, KILL_LIMIT);
        drop(control);
    }
}

/// A keeper that can run another command: its socket and its sandbox.
type Stays = (UnixStream, StandingSandbox);

/// Sends a command to the keeper, serves its proxy, and waits for its end. Returns `None` if no
/// answer came.
async fn exchange(
    control: UnixStream,
    stands: Option<StandingSandbox>,
    command: CommandSpec,
    sandbox: Option<KeeperSandbox<'_>>,
    grace: Duration,
) -> Result<Option<(CommandOutcome, Option<Stays>)>, KeeperError> {
    let place = match (&sandbox, &stands) {
        (Some(sandbox), Some(standing)) if standing.is(sandbox.containment) => {
            let mut layers = sandbox.containment.layered.iter();
            CommandSite::AsBefore(layers.find(|layer| layer.required).cloned())
        }
        (_, Some(_)) => return Err(failed("ordering a command")(&"its sandbox is another")),
        (Some(sandbox), None) => CommandSite::Sandbox(Box::new(sandbox.containment.clone())),
        (None, None) => CommandSite::Bare,
    };
    let order = KeeperOrder {
        command,
        place,
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        ended: sandbox
            .as_ref()
            .and_then(|sandbox| sandbox.ended.map(Path::to_owned)),
    };
    let mut line = serde_json::to_vec(&order).map_err(failed("ordering a command"))?;
    line.push(b'\n');
    let exchange = async {
        control.set_nonblocking(true)?;
        let mut control = tokio::net::UnixStream::from_std(control)?;
        // Marks are taken before the sandbox is made, so that anything replaced from here on is
        // noticed.
        let mut standing = match (stands, &sandbox) {
            (None, Some(sandbox)) => Some(StandingSandbox::new(sandbox.containment)),
            (stands, _) => stands,
        };
        control.write_all(&line).await?;
        let mut reply = Vec::new();
        if let (CommandSite::Sandbox(_), Some(standing)) = (&order.place, &mut standing) {
            standing.listeners = listeners(&control, &mut reply).await?;
        }
        let replied = read_reply(&mut control, &mut reply);
        let listening = standing.as_ref().map(StandingSandbox::try_clone_listeners);
        match (listening.transpose()?.flatten(), sandbox) {
            (Some(listeners), Some(sandbox)) => {
                let served = sandbox.outlet.serve(listeners, sandbox.policy);
                tokio::select! {
                    biased;
                    replied = replied => replied?,
                    () = async { served.await; std::future::pending().await } => {}
                }
            }
            _ => replied.await?,
        }
        io::Result::Ok((reply, control.into_std()?, standing))
    };
    let (mut reply, control, standing) = exchange.await.map_err(failed("talking to it"))?;
    let stays = reply.pop_if(|last| *last == STAYS).is_some();
    if !reply.ends_with(b"\n") {
        return Ok(None);
    }
    let reply: TreeReply = serde_json::from_slice(&reply).map_err(failed("reading its answer"))?;
    let outcome = reply?;
    let standing = standing.filter(|standing| stays && standing.hang_up().is_ok());
    Ok(Some((
        outcome,
        standing.map(|standing| (control, standing)),
    )))
}

/// Reads a reply, and up to the end of the stream if the server does not stay, after which guard,
/// server and tree are gone.
async fn read_reply(control: &mut tokio::net::UnixStream, reply: &mut Vec<u8>) -> io::Result<()> {
    loop {
        if reply.ends_with(&[b'\n', STAYS]) || control.read_buf(reply).await? == 0 {
            return Ok(());
        }
    }
}

/// Waits on drop until the keeper is gone. A caller that abandons a command may restore files at
/// once, so no process of the command may still write. Must be dropped after the socket, whose
/// closing kills them.
struct GoneOnDrop<'a>(&'a ProcessIdentity, Duration);

impl Drop for GoneOnDrop<'_> {
    fn drop(&mut self) {
        // If waiting fails, waiting longer would not help.
        let _ = self.0.wait_gone(self.1);
    }
}

/// The answer of a started guard, which may refuse its level for a reason.
enum GuardStart {
    Keeper(Box<Keeper>),
    Refused(String),
}

/// Starts a guard and waits for its hello.
fn launch(program: &Path, level: KeeperLevel) -> Result<GuardStart, KeeperError> {
    let (control, theirs) = UnixStream::pair().map_err(failed("making a socket"))?;
    nursery::bear(program, level, &theirs.into()).map_err(failed("starting it"))?;
    match hello(&control) {
        Ok(Ok(identity)) => Ok(GuardStart::Keeper(Box::new(Keeper {
            identity,
            level,
            control,
            stands: None,
        }))),
        Ok(Err(refusal)) => Ok(GuardStart::Refused(refusal)),
        Err(error) => {
            let reason = format!(
                "`{}` did not answer as a keeper ({error}); its main must begin with \
                 `serve_if_asked`",
                program.display()
            );
            Err(KeeperError::Keeper { reason })
        }
    }
}

/// Receives the sockets that come before a reply. If the reply's first byte comes instead, it is
/// appended to `reply`.
async fn listeners(
    control: &tokio::net::UnixStream,
    reply: &mut Vec<u8>,
) -> io::Result<Option<Listeners>> {
    let mut forwarded: Vec<OwnedFd> = Vec::new();
    let mut dialer = None;
    loop {
        let readable = Interest::READABLE;
        let receive = || attached::receive(control);
        match control.async_io(readable, receive).await? {
            Some((PROXY, Some(proxy))) => {
                return Ok(Some(Listeners {
                    proxy,
                    forwarded,
                    dialer,
                }));
            }
            Some((DIALER, Some(channel))) => dialer = Some(channel),
            Some((FORWARDED, Some(listener))) if forwarded.len() < MAX_FORWARDED => {
                forwarded.push(listener);
            }
            Some((byte, _)) => {
                reply.push(byte);
                return Ok(None);
            }
            None => return Ok(None),
        }
    }
}

fn hello(control: &UnixStream) -> io::Result<Hello> {
    control.set_read_timeout(Some(START_LIMIT))?;
    let mut line = String::new();
    // Nothing follows the line until a command was sent, so the buffer loses nothing.
    BufReader::new(control).read_line(&mut line)?;
    control.set_read_timeout(None)?;
    Ok(serde_json::from_str(&line)?)
}

fn failed<E: fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> KeeperError {
    move |error| KeeperError::Keeper {
        reason: format!("{doing}: {error}"),
    }
}
