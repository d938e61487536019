//! The second of a keeper's two processes: runs the command, captures its output, and kills its
//! tree.

use std::{
    any::Any,
    fs::{self, File},
    io::{self, BufRead, BufReader, ErrorKind, PipeReader, PipeWriter, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, Sender},
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::{CommandOutcome, CommandSpec, Confine, Exit, KeeperError, Relayer};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::{
        Pid, Resource, Signal, WaitOptions, getpid, getrlimit, kill_process, set_child_subreaper,
        setsid, wait,
    },
    thread::UnshareFlags,
};

use super::{
    CommandSite, DIALER, FORWARDED, KeeperLevel, KeeperOrder, PROXY, STAYS, TreeReply, attached,
    capture::Capture, dialer, linux, tree, tree::SignalReach,
};

/// Bytes read at once from the command's output.
const CHUNK_BYTES: usize = 64 * 1024;

/// Maximum bytes read from the output after the command's end. A pipe holds no more unless a
/// privileged process raised the limit; so what the command left behind cannot hold us with a
/// flood.
const REMAINDER_BYTES: usize = 1024 * 1024;

/// Interval at which a running command gets to see the files that others have made in the folder
/// below its layer.
const REFRESHED_AFTER: Duration = Duration::from_secs(1);

/// Time that killed processes may take to die before they are killed again.
const REKILL_AFTER: Duration = Duration::from_millis(100);

/// All resources for which a process can have limits.
const LIMITED: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// Serves one command after another, and returns when the process tree of the last has ended.
/// `guard` is readable when the guard has ended.
pub(super) fn serve(
    level: KeeperLevel,
    guard: &OwnedFd,
    mut control: UnixStream,
    confine: Confine,
) -> io::Result<()> {
    // The command must have no terminal, and must not be able to get one: we are the leader.
    setsid()?;
    match level {
        // Without its own /proc the command sees the processes of the system around it: a flaw, not
        // a danger.
        KeeperLevel::Namespace => drop(mount_proc()),
        KeeperLevel::Subreaper => set_child_subreaper(Some(getpid()))?,
    }
    let mut surroundings = CommandSurroundings::default();
    // No line: the run's process has ended or dropped this keeper.
    while let Some(line) = next_line(&control, guard)? {
        let reply = match serde_json::from_str::<KeeperOrder>(&line) {
            Ok(order) => {
                // Opened before this process is confined to where it cannot be reached.
                let mut ended = order.ended.and_then(|path| File::create(path).ok());
                let reply = match surroundings.enter(order.place, &control, confine) {
                    Ok(()) => {
                        let grace = Duration::from_millis(order.grace_ms);
                        let command = (&order.command, grace);
                        run(level, command, &surroundings, [&control, guard])
                    }
                    Err(reason) => Some(Err(KeeperError::Keeper { reason })),
                };
                if let Some(ended) = &mut ended {
                    // Without the mark, whoever judges the command knows less.
                    let _ = ended.write_all(b"1");
                }
                reply
            }
            Err(error) => Some(keeper_error("reading the command", &error)),
        };
        let Some(reply) = reply else { return Ok(()) };
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        let has_ended = matches!(&reply, Ok(outcome) if matches!(outcome.exit, Exit::Code(_)));
        let stays = has_ended
            && surroundings.may_stay
            && surroundings.limits == limits()
            && leaves_no_shared_memory();
        if stays {
            line.push(STAYS);
        }
        control.write_all(&line)?;
        if !stays {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the next order; `None` when there will be no more.
fn next_line(control: &UnixStream, guard: &OwnedFd) -> io::Result<Option<String>> {
    let mut watched = [
        PollFd::new(control, PollFlags::IN),
        PollFd::new(guard, PollFlags::IN),
    ];
    while let Err(error) = poll(&mut watched, None) {
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    if !watched[1].revents().is_empty() {
        return Ok(None);
    }
    let mut line = String::new();
    // Nothing follows the line until it was answered, so the buffer loses nothing.
    BufReader::new(control).read_line(&mut line)?;
    Ok(line.ends_with('\n').then_some(line))
}

/// Whether no System V shared memory, queue or semaphore remains. Only the end of the IPC namespace
/// would free one.
fn leaves_no_shared_memory() -> bool {
    ["shm", "msg", "sem"].iter().all(|kind| {
        let listed = fs::read_to_string(format!("/proc/sysvipc/{kind}"));
        // The first line names the columns.
        listed.is_ok_and(|listed| listed.lines().count() <= 1)
    })
}

/// Returns the resource limits of this process, which its commands inherit. A command can lower
/// them by the number of any of its threads.
fn limits() -> Vec<(Option<u64>, Option<u64>)> {
    LIMITED
        .iter()
        .map(|resource| {
            let limit = getrlimit(*resource);
            (limit.current, limit.maximum)
        })
        .collect()
}

/// The environment, reach and sandbox of the commands of this process.
#[derive(Default)]
struct CommandSurroundings {
    environment: Vec<(String, String)>,
    reach: SignalReach,
    /// Landlock ruleset that only the command's process enters.
    rules: Option<OwnedFd>,
    /// Replaces the layer over the workspace, if there is one.
    relayer: Option<Box<dyn Relayer>>,
    may_stay: bool,
    /// Limits with which each command starts.
    limits: Vec<(Option<u64>, Option<u64>)>,
    /// Resources to hold until the last tree has ended.
    _held: Option<Box<dyn Any>>,
}

impl CommandSurroundings {
    /// Confines this process, if ordered, and returns the sockets that listen inside.
    fn enter(
        &mut self,
        place: CommandSite,
        control: &UnixStream,
        confine: Confine,
    ) -> Result<(), String> {
        let containment = match place {
            CommandSite::Bare | CommandSite::AsBefore(None) => return Ok(()),
            CommandSite::AsBefore(Some(layer)) => {
                let relayer = self.relayer.as_ref();
                let relayer = relayer.ok_or("its sandbox has no layer")?;
                self.rules = relayer.replace(&layer)?;
                return Ok(());
            }
            CommandSite::Sandbox(containment) => containment,
        };
        let network = own_network();
        let confined = confine(&containment)?;
        let is_own = network.is_some() && own_network() != network;
        let dialer = (containment.serves && is_own).then(dialer::start);
        *self = Self {
            environment: confined.environment,
            reach: if confined.signals_contained {
                SignalReach::of_contained()
            } else {
                SignalReach::Machine
            },
            rules: confined.command_rules,
            relayer: confined.relayer,
            may_stay: confined.may_stay,
            limits: limits(),
            _held: confined.held,
        };
        let Some(listeners) = confined.listeners else {
            return Ok(());
        };
        let forwarded = listeners.forwarded.into_iter();
        let forwarded = forwarded.map(|listener| (FORWARDED, listener));
        let dialer = dialer.and_then(Result::ok).map(|channel| (DIALER, channel));
        let sockets = forwarded.chain(dialer).chain([(PROXY, listeners.proxy)]);
        for (word, listener) in sockets {
            attached::send(control, word, listener)
                .map_err(|error| format!("handing out a socket: {error}"))?;
        }
        Ok(())
    }
}

/// Returns the name of the network namespace that this process is in.
fn own_network() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/net").ok()
}

fn keeper_error(doing: &str, error: &dyn std::error::Error) -> TreeReply {
    Err(KeeperError::Keeper {
        reason: format!("{doing}: {error}"),
    })
}

/// Mounts a `/proc` in the namespace that shows only its own processes.
fn mount_proc() -> io::Result<()> {
    linux::unshare(UnshareFlags::NEWNS)?;
    // Mounts made here stay here; mounts made outside still arrive.
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", "/proc", "proc", flags, None)?)
}

enum ServingEnd {
    /// The command's main process ended.
    Exited(ExitStatus),
    TimedOut,
    /// The run's process or the guard has ended, so the reply has no receiver.
    Abandoned,
}

/// Runs the command until its process tree has ended. Returns `None` if no one waits for the reply.
fn run(
    level: KeeperLevel,
    (spec, grace): (&CommandSpec, Duration),
    surroundings: &CommandSurroundings,
    [control, guard]: [&dyn AsFd; 2],
) -> Option<TreeReply> {
    let reach = surroundings.reach;
    let deadline = Instant::now().checked_add(Duration::from_millis(spec.time_limit_ms));
    // Before there is a command, which may use up all processes at once.
    let reaper = match reap_children() {
        Ok(reaper) => reaper,
        Err(error) => return Some(keeper_error("keeping the command", &error)),
    };
    let (main, mut output) = match start(spec, surroundings) {
        Ok(started) => started,
        Err(error) => {
            let (program, reason) = (spec.program.clone(), error.to_string());
            return Some(Err(KeeperError::Start { program, reason }));
        }
    };
    let mut capture = Capture::new(spec.head_bytes, spec.tail_bytes);
    let served = (|| {
        let mut children = reaper.begin(main)?;
        let end = attend(
            &mut capture,
            &mut output,
            &mut children,
            [control, guard],
            (deadline, surroundings.relayer.as_deref()),
        )?;
        if matches!(end, ServingEnd::Abandoned) && !grace.is_zero() {
            end_gently(main, &mut children, grace)?;
        }
        // Read before the killing, which shells would report in the output.
        read_remainder(&mut capture, &mut output)?;
        // Only the absence of children proves that nothing is left: a scan of the system's
        // processes, one after the other, can miss one whose parent ends meanwhile.
        let mut wait = Duration::ZERO;
        while !is_closed(&mut children, wait)? {
            tree::kill_tree(level, reach)?;
            wait = REKILL_AFTER;
        }
        io::Result::Ok(end)
    })();
    let exit = match served {
        Ok(ServingEnd::Exited(status)) => match status.code() {
            Some(code) => Exit::Code(code),
            None => Exit::Signal(status.signal().unwrap_or(0)),
        },
        Ok(ServingEnd::TimedOut) => Exit::TimedOut,
        Ok(ServingEnd::Abandoned) => return None,
        Err(error) => {
            // The tree must not stay after an error either.
            let _ = tree::kill_tree(level, reach);
            return Some(keeper_error("keeping the command", &error));
        }
    };
    Some(Ok(CommandOutcome {
        exit,
        output: capture.finish(),
    }))
}

/// Asks the main process to end, as Ctrl-C does, and waits until it has ended or the time is over.
/// After a `SIGTERM`, browsers end without saving their cookies.
fn end_gently(main: Pid, children: &mut PipeReader, grace: Duration) -> io::Result<()> {
    match kill_process(main, Signal::INT) {
        Ok(()) => {}
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let deadline = Instant::now() + grace;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        // Readable once the main process was reaped.
        match poll(
            &mut [PollFd::new(&*children, PollFlags::IN)],
            Some(&timeout),
        ) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Starts the command; returns its main process and its output.
fn start(spec: &CommandSpec, surroundings: &CommandSurroundings) -> io::Result<(Pid, PipeReader)> {
    if !spec.folder.is_dir() {
        let text = format!(
            "its working folder `{}` does not exist",
            spec.folder.display()
        );
        return Err(io::Error::new(ErrorKind::NotFound, text));
    }
    let (output, writer) = io::pipe()?;
    fcntl_setfl(&output, fcntl_getfl(&output)? | OFlags::NONBLOCK)?;
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.arguments)
        .current_dir(&spec.folder)
        .env_clear()
        .envs(&spec.environment)
        .envs(
            surroundings
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        // A command that signals its own group must not hit us.
        .process_group(0)
        .stdin(standard_input(&spec.stdin)?)
        .stdout(writer.try_clone()?)
        .stderr(writer);
    if let Some(rules) = &surroundings.rules {
        linux::enter_rules(&mut command, rules.try_clone()?);
    }
    let child = command.spawn()?;
    Ok((Pid::from_child(&child), output))
}

/// Returns the text as a file in memory, which the command can read without a writer.
fn standard_input(text: &str) -> io::Result<Stdio> {
    if text.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    io::Seek::rewind(&mut file)?;
    Ok(Stdio::from(file))
}

/// A thread that will wait for children.
struct Reaper {
    main: Sender<Pid>,
    ended: PipeReader,
}

/// Prepares a thread that waits for all future children, including orphans of the tree.
fn reap_children() -> io::Result<Reaper> {
    let (ended, mut writer) = io::pipe()?;
    let (main, started) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        // Without a command there are no children to wait for.
        if let Ok(main) = started.recv() {
            reap(main, &mut writer);
        }
    })?;
    Ok(Reaper { main, ended })
}

impl Reaper {
    /// Starts reaping after the command has started. The pipe gives the wait status of `main` and
    /// closes when no child is left.
    fn begin(self, main: Pid) -> io::Result<PipeReader> {
        self.main.send(main).map_err(io::Error::other)?;
        Ok(self.ended)
    }
}

fn reap(main: Pid, writer: &mut PipeWriter) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => {
                // The reader lives as long as this process.
                let _ = writer.write_all(&status.as_raw().to_ne_bytes());
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_no_child_left) => return,
        }
    }
}

/// Reads a pipe to its end, if that comes within `limit` of silence.
fn is_closed(pipe: &mut PipeReader, limit: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(limit).map_err(io::Error::other)?;
    loop {
        match poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) if pipe.read(&mut [0; 4])? == 0 => return Ok(true),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Collects output until the main process ends, the time is up, or no one awaits the reply.
fn attend(
    capture: &mut Capture,
    output: &mut PipeReader,
    children: &mut PipeReader,
    [control, guard]: [&dyn AsFd; 2],
    (deadline, relayer): (Option<Instant>, Option<&dyn Relayer>),
) -> io::Result<ServingEnd> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut output_open = true;
    let mut refreshed = Instant::now();
    loop {
        if let Some(relayer) = relayer
            && refreshed.elapsed() >= REFRESHED_AFTER
        {
            relayer.refresh();
            refreshed = Instant::now();
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(ServingEnd::TimedOut);
        }
        let until_refresh = relayer.map(|_| REFRESHED_AFTER.saturating_sub(refreshed.elapsed()));
        let wait = left.into_iter().chain(until_refresh).min();
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        let mut watched = vec![
            PollFd::new(&control, PollFlags::IN),
            PollFd::new(&guard, PollFlags::IN),
            PollFd::new(&*children, PollFlags::IN),
        ];
        if output_open {
            watched.push(PollFd::new(&*output, PollFlags::IN));
        }
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] || ready[1] {
            return Ok(ServingEnd::Abandoned);
        }
        if output_open && ready[3] {
            output_open = read_chunk(capture, output, &mut chunk)? != Some(0);
        }
        if ready[2] {
            let mut status = [0; 4];
            children.read_exact(&mut status)?;
            return Ok(ServingEnd::Exited(ExitStatus::from_raw(
                i32::from_ne_bytes(status),
            )));
        }
    }
}

/// Reads the available bytes, at most a chunk. `None`: nothing now; `Some(0)`: end of the stream.
fn read_chunk(
    capture: &mut Capture,
    output: &mut PipeReader,
    chunk: &mut [u8],
) -> io::Result<Option<usize>> {
    match output.read(chunk) {
        Ok(count) => {
            capture.push(&chunk[..count]);
            Ok(Some(count))
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn read_remainder(capture: &mut Capture, output: &mut PipeReader) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut read = 0;
    while read < REMAINDER_BYTES {
        match read_chunk(capture, output, &mut chunk)? {
            None | Some(0) => break,
            Some(count) => read += count,
        }
    }
    Ok(())
}
