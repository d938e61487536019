//! A machine that may be spoiled: namespaces of its own, an overlay over the whole file system, and
//! empty folders where people and services keep what is theirs.
//!
//! Its process 1 makes the mounts, then starts the [`worker`](crate::worker) in them as an ordinary
//! user and collects what dies. Everything ends with it.

use std::{
    ffi::{CStr, CString},
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            fs::{chown, symlink},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
    mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount},
    process::{WaitOptions, geteuid, wait},
};

use crate::{
    Between, Error, doing,
    fixture::{self, HOME},
    refusing, worker,
};

/// The argument that asks a program to be a machine.
const ARGUMENT: &str = "--oracle-machine";

/// The argument after the number of a machine whose worker is refused namespaces.
const REFUSING: &str = "--refusing-namespaces";

/// Folder of the overlay's parts before it becomes the root; every Linux has it.
const STORE: &str = "/mnt";

/// Folders that are empty in a machine, with their modes.
const EMPTY: [(&str, u32); 5] = [
    ("tmp", 0o1777),
    ("var/tmp", 0o1777),
    ("run", 0o755),
    ("home", 0o755),
    ("dev/shm", 0o1777),
];

/// Device nodes that a machine has: those that hold nothing.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// File systems that exist only in the kernel; the others are seen in a machine, too.
const VIRTUAL: [&str; 12] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "tmpfs",
    "cgroup",
    "cgroup2",
    "mqueue",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
];

/// User ids of the people in machines begin here: limits on processes count by user, so each
/// machine has another one.
const FIRST_USER: u32 = 61_000;

/// The start of a command line that runs the rest in namespaces of its own.
fn in_namespaces() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--net", "--ipc", "--uts"]);
    command.arg("--kill-child");
    if !geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
}

/// Returns the reason why no machine can be made here, if there is one. It tries.
pub fn why_not() -> Option<String> {
    let script = "mount -t tmpfs none /mnt && mkdir /mnt/a /mnt/b /mnt/c && \
                  mount -t overlay o -o lowerdir=/,upperdir=/mnt/a,workdir=/mnt/b /mnt/c && \
                  ip link set lo up && git --version";
    let mut command = in_namespaces();
    command.args(["sh", "-c", script]).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("no machine can be made here: {}", said.trim()))
        }
        Err(error) => Some(format!("cannot run unshare (of util-linux): {error}")),
    }
}

/// Starts a machine from this program, whose `main` begins with [`crate::serve_if_asked`]. Its
/// worker talks over the other end of `socket`.
pub(crate) fn start(
    socket: OwnedFd,
    number: usize,
    between: Between,
) -> io::Result<std::process::Child> {
    let program = std::env::current_exe()?;
    in_namespaces()
        .arg(program)
        .args([ARGUMENT, &number.to_string()])
        .args((between == Between::Landlock).then_some(REFUSING))
        .stdin(socket)
        .stdout(Stdio::null())
        .spawn()
}

/// Becomes a machine, if this process was started as one.
pub(crate) fn serve_if_asked() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ARGUMENT) {
        return;
    }
    let number = arguments.next().and_then(|number| number.parse().ok());
    let refusing = arguments.next().as_deref() == Some(REFUSING);
    let code = match serve(number.unwrap_or(0), refusing) {
        Ok(code) => code,
        Err(error) => {
            worker::refuse(&error);
            1
        }
    };
    std::process::exit(code);
}

fn serve(number: u32, refusing: bool) -> Result<i32, Error> {
    // Only root of the real machine has more users than one.
    let user = has_users().then_some(FIRST_USER + number);
    let upper = mounts(user)?;
    network()?;
    // Its own folder may be one that is empty here.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(worker::ARGUMENT)
        .stdout(Stdio::from(upper))
        .env_clear()
        .envs(fixture::environment())
        .current_dir("/");
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    if refusing {
        refusing::refuse_namespaces(&mut command);
    }
    let worker = command.spawn().map_err(doing("start the worker"))?;
    drop(command);
    // Everything that loses its parent ends up here.
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended.as_raw_pid() as u32 == worker.id() => {
                return Ok(status.exit_status().unwrap_or(1));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(doing("wait for the worker")(error)),
        }
    }
}

fn has_users() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().nth(2) != Some("1")
}

/// Puts the overlay in the place of the root, and returns the folder that takes its changes.
fn mounts(user: Option<u32>) -> Result<OwnedFd, Error> {
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    let others = file_systems()?;
    mount("tmpfs", STORE, "tmpfs", quiet, c"size=256m,mode=755").map_err(doing("mount a tmpfs"))?;
    for name in ["upper", "work", "root"] {
        fs::create_dir(format!("{STORE}/{name}")).map_err(doing("make a folder"))?;
    }
    let root = PathBuf::from(format!("{STORE}/root"));
    let options = format!("lowerdir=/,upperdir={STORE}/upper,workdir={STORE}/work");
    let options = CString::new(options).expect("it holds no NUL");
    mount(
        "overlay",
        &root,
        "overlay",
        MountFlags::empty(),
        options.as_c_str(),
    )
    .map_err(doing("mount an overlay"))?;
    for other in others {
        // A place that cannot be shown is missing in the machine; lines do without it.
        if mount_bind(&other, root.join(other.strip_prefix("/").unwrap_or(&other))).is_ok() {
            let at = root.join(other.strip_prefix("/").unwrap_or(&other));
            mount_remount(at, MountFlags::BIND | MountFlags::RDONLY, c"")
                .map_err(doing("protect a file system"))?;
        }
    }
    devices(&root)?;
    for (name, mode) in EMPTY {
        let place = root.join(name);
        fs::create_dir_all(&place).map_err(doing("make a folder"))?;
        let options = CString::new(format!("size=512m,nr_inodes=200k,mode={mode:o}"));
        let options = options.expect("it holds no NUL");
        mount("tmpfs", &place, "tmpfs", quiet, options.as_c_str())
            .map_err(doing(format!("mount an empty /{name}")))?;
    }
    home(&root)?;
    proc(&root)?;
    settings(&root, user)?;
    let upper = rustix::fs::openat(
        CWD,
        format!("{STORE}/upper"),
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(doing("open the overlay's changes"))?;
    std::env::set_current_dir(&root).map_err(doing("enter the machine"))?;
    rustix::process::pivot_root(".", ".").map_err(doing("enter the machine"))?;
    unmount(".", UnmountFlags::DETACH).map_err(doing("leave the machine below"))?;
    std::env::set_current_dir("/").map_err(doing("enter the machine"))?;
    Ok(upper)
}

/// Makes the person's home a small file system of its own: on an overlay there could be no other
/// for commands, and a line may fill it.
fn home(root: &Path) -> Result<(), Error> {
    let place = root.join(HOME.trim_start_matches('/'));
    fs::create_dir_all(&place).map_err(doing("make the home"))?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    let options = c"size=96m,nr_inodes=60k,mode=755";
    mount("tmpfs", &place, "tmpfs", quiet, options).map_err(doing("mount the home"))
}

/// Returns the mount points of further file systems with files; an overlay does not show them.
fn file_systems() -> Result<Vec<PathBuf>, Error> {
    let table = fs::read_to_string("/proc/self/mounts").map_err(doing("read the mounts"))?;
    let mut places: Vec<PathBuf> = table
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (place, kind) = (fields.next()?, fields.next()?);
            let is_virtual = VIRTUAL.contains(&kind) || place.contains('\\');
            let covered = EMPTY.iter().any(|(name, _)| {
                let empty = Path::new("/").join(name);
                Path::new(place).starts_with(empty)
            });
            (place != "/" && !is_virtual && !covered).then(|| PathBuf::from(place))
        })
        .collect();
    places.sort();
    places.dedup();
    Ok(places)
}

fn devices(root: &Path) -> Result<(), Error> {
    let dev = root.join("dev");
    mount(
        "tmpfs",
        &dev,
        "tmpfs",
        MountFlags::NOSUID,
        c"size=1m,mode=755",
    )
    .map_err(doing("mount /dev"))?;
    for device in DEVICES {
        let place = dev.join(device);
        fs::write(&place, "").map_err(doing("make a device"))?;
        mount_bind(Path::new("/dev").join(device), &place).map_err(doing("bind a device"))?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, dev.join(name)).map_err(doing("make a link"))?;
    }
    let pts = dev.join("pts");
    fs::create_dir(&pts).map_err(doing("make a folder"))?;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount(
        "devpts",
        &pts,
        "devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        options,
    )
    .map_err(doing("mount /dev/pts"))
}

fn proc(root: &Path) -> Result<(), Error> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let place = root.join("proc");
    mount("proc", &place, "proc", flags, None::<&CStr>).map_err(doing("mount /proc"))
}

/// Writes the settings that the machine's people and programs look up.
fn settings(root: &Path, user: Option<u32>) -> Result<(), Error> {
    let etc = root.join("etc");
    // Where it is a link into `/run`, nothing is there any more.
    let _ = fs::remove_file(etc.join("resolv.conf"));
    fs::write(etc.join("resolv.conf"), "nameserver 127.0.0.1\n")
        .map_err(doing("write a setting"))?;
    chown(root.join("run"), user, user).map_err(doing("make a home"))?;
    for place in ["home/person", "run/oracle"] {
        let place = root.join(place);
        fs::create_dir_all(&place).map_err(doing("make a home"))?;
        chown(&place, user, user).map_err(doing("make a home"))?;
    }
    let Some(user) = user else { return Ok(()) };
    for (name, line) in [
        (
            "passwd",
            format!("person:x:{user}:{user}::/home/person:/bin/bash\n"),
        ),
        ("group", format!("person:x:{user}:\n")),
    ] {
        let path = etc.join(name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, before + &line).map_err(doing("write a setting"))?;
    }
    Ok(())
}

/// The machine's own loopback interface, and one that leads nowhere.
fn network() -> Result<(), Error> {
    let script = "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start; ip link set lo up; ip link add outside type dummy 2> /dev/null && \
                  ip addr add 192.0.2.1/24 dev outside && ip link set outside up; true";
    let status = Command::new("sh").args(["-c", script]).status();
    status
        .map(|_| ())
        .map_err(doing("start the loopback interface"))
}

/// Takes over a standard stream that is something else than text.
pub(crate) fn take(stream: impl AsFd) -> Result<OwnedFd, Error> {
    let taken = stream.as_fd().try_clone_to_owned();
    taken.map_err(doing("take over a standard stream"))
}
