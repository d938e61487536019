//! The process inside a sandbox that tries to get out, for [`prove`](super::prove()).

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, UNIX_EPOCH},
};

use gyrus_contract::{Network, ResourceLimits};
use rustix::{
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount, unmount},
    net::{AddressFamily, SocketType, socket},
    process::{Pid, Resource, Rlimit, chroot, prlimit, test_kill_process},
    thread::{UnshareFlags, sched_getaffinity, sched_setaffinity},
};
use serde::{Deserialize, Serialize};

use super::{
    Promise,
    finding::{AttemptCollector, SandboxFinding, Wall},
    linux,
    reach::{OutsideServices, try_services},
};

/// Argument that makes a program run as the probe.
pub(super) const ARGUMENT: &str = "--gyrus-sandbox-probe";

/// The argument that makes the probe write a file that is too long.
const LONG_FILE: &str = "--gyrus-sandbox-long-file";

/// Number of processes that must be left when their number is limited, see `mounts.rs`, with some
/// room.
const SPARE_PROCESSES: u64 = 310;

/// Time limit of one connection; nothing that is reachable takes so long.
const CONNECT_LIMIT: Duration = Duration::from_millis(20);

/// The attempts that the probe is to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ProbeTask {
    pub(super) workspace: PathBuf,
    /// A file that may be read but not changed.
    pub(super) outside: PathBuf,
    /// A file that may not be read.
    pub(super) secret: PathBuf,
    /// Services outside, with their sockets.
    pub(super) services: OutsideServices,
    /// A service on the machine's loopback interface.
    pub(super) port: u16,
    /// A process outside, with its start time.
    pub(super) process: (u32, String),
    /// The process's limits on dumps of its memory.
    pub(super) core_bytes: (Option<u64>, Option<u64>),
    /// The IPC namespace of the process outside.
    pub(super) around: Option<PathBuf>,
    pub(super) network: Network,
    pub(super) limits: ResourceLimits,
}

impl ProbeTask {
    /// Returns the words by which a service outside knows this probe.
    pub(super) fn greeting(&self) -> String {
        format!("gyrus-probe {}", self.workspace.display())
    }
}

/// Tries to break a sandbox, harmlessly if it succeeds, and never returns, if this process was
/// started for it. To be called first in `main`, as the keeper's.
pub fn probe_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    let (asked, given) = (arguments.next(), arguments.next());
    match (asked.as_deref().and_then(OsStr::to_str), given) {
        (Some(ARGUMENT), Some(task)) => {
            let said = serde_json::from_slice(task.as_encoded_bytes())
                .map_err(io::Error::other)
                .and_then(|task| {
                    let wall = wall(&task);
                    let findings = try_all(&task);
                    let said = serde_json::to_vec(&ProbeAnswer { findings, wall })?;
                    io::stdout().write_all(&said)
                });
            std::process::exit(i32::from(said.is_err()));
        }
        (Some(LONG_FILE), Some(file)) => {
            let bytes = arguments
                .next()
                .and_then(|bytes| bytes.to_str()?.parse().ok());
            let made =
                fs::File::create(file).and_then(|file| file.set_len(bytes.unwrap_or(u64::MAX / 2)));
            std::process::exit(i32::from(made.is_err()));
        }
        _ => {}
    }
}

/// Returns the start time of a process, by its number, in the words of proc_pid_stat(5).
pub(super) fn start_of(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name may hold anything but ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19).map(str::to_owned)
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProbeAnswer {
    pub(super) findings: Vec<SandboxFinding>,
    pub(super) wall: Wall,
}

/// Returns the namespace that every sandbox enters, whatever its network.
pub(super) fn surroundings() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/ipc").ok()
}

/// The walls around this process.
fn wall(task: &ProbeTask) -> Wall {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_filtered = status.lines().any(|line| line == "Seccomp:\t2");
    match surroundings() {
        Some(inner) if task.around.as_ref().is_some_and(|outer| *outer != inner) => {
            Wall::Namespaces
        }
        _ if is_filtered => Wall::Landlock,
        _ => Wall::Nothing,
    }
}

fn try_all(task: &ProbeTask) -> Vec<SandboxFinding> {
    let mut attempts = AttemptCollector::default();
    try_writes(task, &mut attempts);
    try_hidden(task, &mut attempts);
    try_network(task, &mut attempts);
    try_processes(task, &mut attempts);
    try_limits(task, &mut attempts);
    // If these work, hardly anything can be tried after them.
    try_privileges(task, &mut attempts);
    attempts.0
}

fn try_writes(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Writes;
    let inside = task.workspace.join("inside");
    attempts.needed(promise, "write in the workspace", fs::write(&inside, "x"));
    let temporary = Path::new(&std::env::var_os("TMPDIR").unwrap_or("/tmp".into())).join("inside");
    attempts.needed(promise, "write a temporary file", fs::write(temporary, "x"));
    let append = OpenOptions::new().append(true).open(&task.outside);
    attempts.forbidden(promise, "open a file outside for writing", append);
    let rights = fs::set_permissions(&task.outside, fs::Permissions::from_mode(0o600));
    attempts.forbidden(promise, "change a file's rights outside", rights);
    let time = fs::File::open(&task.outside).and_then(|file| file.set_modified(UNIX_EPOCH));
    attempts.forbidden(promise, "change a file's time outside", time);
    let moved = fs::rename(&task.outside, task.workspace.join("moved"));
    attempts.forbidden(promise, "move a file in from outside", moved);
    let linked = fs::hard_link(&task.outside, task.workspace.join("linked"));
    attempts.forbidden(promise, "link a file in from outside", linked);
    let link = task.workspace.join("link");
    let followed = std::os::unix::fs::symlink(&task.outside, &link)
        .and_then(|()| OpenOptions::new().append(true).open(&link));
    attempts.forbidden(promise, "write outside through a link", followed);
    let made = fs::File::create_new("/gyrus-probe");
    if made.is_ok() {
        // Nobody but us would take it away.
        let _ = fs::remove_file("/gyrus-probe");
    }
    attempts.forbidden(promise, "make a file at the root", made);
}

fn try_hidden(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Hidden;
    let read = fs::read(&task.secret);
    attempts.forbidden(promise, "read a hidden file", read);
    try_services(&task.services, &task.workspace, attempts);
}

fn try_network(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Network;
    match task.network {
        Network::None | Network::Proxy => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, task.port));
            // Something of the sandbox may listen at this port of its own network. Whoever looks
            // from outside knows whether this got there.
            let _ = TcpStream::connect_timeout(&address, CONNECT_LIMIT)
                .and_then(|mut stream| stream.write_all(task.greeting().as_bytes()));
            // Finds a way there, and sends nothing. The address is for examples only.
            let routed = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
                .and_then(|socket| socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)));
            attempts.forbidden(promise, "find a way to another machine", routed);
        }
        Network::Open => {}
    }
    for (family, what) in [
        (AddressFamily::VSOCK, "reach the host of a virtual machine"),
        (AddressFamily::PACKET, "read raw packets"),
    ] {
        let made = socket(family, SocketType::STREAM, None);
        attempts.forbidden(promise, what, made);
    }
}

fn try_processes(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Processes;
    let (process, start) = &task.process;
    let seen = start_of(*process).filter(|seen| seen == start);
    let seen = seen.ok_or("no such process");
    attempts.forbidden(Promise::Sight, "see a process outside", seen);
    touch_process(task, attempts);
    let read = fs::read("/proc/1/environ");
    attempts.forbidden(promise, "read another process's environment", read);
    let read = fs::File::open("/proc/1/mem");
    attempts.forbidden(promise, "read another process's memory", read);
}

/// Tries to reach a process outside, without changing anything of it. Where its number is not even
/// seen, another one may have it.
fn touch_process(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Processes;
    let (process, start) = &task.process;
    let pid = i32::try_from(*process).ok().and_then(Pid::from_raw);
    let pid = pid.filter(|_| start_of(*process).is_some_and(|seen| seen == *start));
    let try_on = |act: &dyn Fn(Pid) -> rustix::io::Result<()>| match pid {
        Some(pid) => act(pid).map_err(|error| error.to_string()),
        None => Err("no such process".to_owned()),
    };
    let works_in = try_on(&|pid| {
        let link = format!("/proc/{}/cwd", pid.as_raw_pid());
        fs::read_link(link).map(drop).map_err(|_| Errno::ACCESS)
    });
    attempts.forbidden(promise, "see where a process outside works", works_in);
    // Where /proc is that of the machine around, as in containers, its numbers mean nobody here, or
    // somebody else.
    let own = fs::read_link("/proc/self").ok();
    let counts_as_we_do =
        own.is_some_and(|own| own.to_str() == Some(&std::process::id().to_string()));
    let try_on = |act: &dyn Fn(Pid) -> rustix::io::Result<()>| {
        if counts_as_we_do || pid.is_none() {
            try_on(act)
        } else {
            Err("its number means another process here".to_owned())
        }
    };
    let signalled = try_on(&test_kill_process);
    attempts.forbidden(promise, "signal a process outside", signalled);
    // As it is already.
    let (current, maximum) = task.core_bytes;
    let limit = || Rlimit { current, maximum };
    let limited = try_on(&|pid| prlimit(Some(pid), Resource::Core, limit()).map(drop));
    attempts.forbidden(promise, "limit a process outside", limited);
    let moved = try_on(&|pid| sched_setaffinity(Some(pid), &sched_getaffinity(None)?));
    attempts.forbidden(promise, "move a process outside to a processor", moved);
}

fn try_privileges(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Privileges;
    let mounted = mount(
        c"none",
        &task.workspace,
        c"tmpfs",
        MountFlags::empty(),
        None,
    );
    if mounted.is_ok() {
        let _ = unmount(&task.workspace, UnmountFlags::DETACH);
    }
    attempts.forbidden(promise, "mount a file system", mounted);
    let planted = task.workspace.join("planted");
    let made = fs::File::create(&planted)
        .and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o4755)));
    let _ = fs::remove_file(planted);
    attempts.forbidden(promise, "make a setuid program", made);
    // Opening it changes nothing yet.
    let setting = OpenOptions::new()
        .write(true)
        .open("/proc/sys/kernel/core_pattern");
    attempts.forbidden(promise, "change a setting of the kernel", setting);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = |line: &str| status.lines().any(|known| known == line);
    let gained = if set("NoNewPrivs:\t1") {
        Err("not with setuid programs")
    } else {
        Ok(())
    };
    attempts.forbidden(promise, "gain rights by starting a program", gained);
    attempts.forbidden(promise, "change the root folder", chroot(&task.workspace));
    let entered = linux::unshare(UnshareFlags::NEWUSER);
    attempts.forbidden(promise, "enter a user namespace", entered);
}

fn try_limits(task: &ProbeTask, attempts: &mut AttemptCollector) {
    let promise = Promise::Limits;
    let bytes = usize::try_from(task.limits.memory_bytes).unwrap_or(usize::MAX);
    let taken = Vec::<u8>::new().try_reserve_exact(bytes);
    attempts.forbidden(promise, "take more memory", taken);
    let wanted = task.limits.processes.saturating_add(SPARE_PROCESSES);
    attempts.forbidden(promise, "start more threads", start_threads(wanted));
    let file = task.workspace.join("long");
    let ended = Command::new("/proc/self/exe")
        .arg(LONG_FILE)
        .arg(&file)
        .arg(task.limits.file_bytes.saturating_add(1).to_string())
        .status();
    let made = match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ended by signal {:?}", status.signal())),
        Err(error) => Err(error.to_string()),
    };
    attempts.forbidden(promise, "write a longer file", made);
}

fn start_threads(wanted: u64) -> io::Result<()> {
    const STACK_BYTES: usize = 32 * 1024;
    // They wait for the writer to be dropped.
    let (waiting, release) = io::pipe()?;
    let waiting = Arc::new(waiting);
    let mut started = Vec::new();
    let mut failed = None;
    for _ in 0..wanted {
        let waiting = Arc::clone(&waiting);
        let thread = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let _ = io::Read::read(&mut &*waiting, &mut [0]);
            });
        match thread {
            Ok(thread) => started.push(thread),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    drop(release);
    for thread in started {
        // It ends with the pipe.
        let _ = thread.join();
    }
    failed.map_or(Ok(()), Err)
}
