#![expect(clippy::print_stdout, reason = "it tells the test outside")]
//! The process inside a sandbox that connects to whatever it can, and says what it reached.

use std::{
    fs, io,
    net::TcpListener,
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::{
            fs::symlink,
            net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use rustix::{
    fs::{CWD, Mode, OFlags, RenameFlags, open, renameat_with},
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
        connect, sendmsg_addr, sendto, socket, socket_with, socketpair,
    },
    process::{Pid, Signal, getppid, kill_process},
};
use serde::{Deserialize, Serialize};

use super::{process, sockets::fits};

/// Asks this program to be the intruder.
pub(crate) const ARGUMENT: &str = "--intruder";

/// Ways to change what a connection leads to while it is made.
pub(crate) const WAYS: usize = 4;

/// An attack to be tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Sockets in files.
    pub(crate) paths: Vec<PathBuf>,
    /// One of them, outside.
    pub(crate) plain: PathBuf,
    /// An abstract one.
    pub(crate) name: String,
    /// One that takes messages from anybody.
    pub(crate) datagrams: PathBuf,
    /// Connections to try for each race.
    pub(crate) races: usize,
}

/// Does a part of what is to be tried and returns the code to exit with.
pub(crate) fn act(part: &str, task: &str) -> i32 {
    let task: Task = serde_json::from_str(task).unwrap();
    match part {
        "try" => {
            check_inherited();
            try_all(&task);
        }
        "reach" => {
            for path in &task.paths {
                UnixStream::connect(path).unwrap();
            }
        }
        "race" => race_all(&task),
        "use" => use_all(&task),
        "attack" => attack(&task),
        _ => return 1,
    }
    println!("{}", if part == "race" { "" } else { "done" });
    0
}

/// Connections to try, at most, until one of a race reaches anybody.
const MAX_ATTEMPTS: usize = 100_000;

const KINDS: [SocketType; 2] = [SocketType::STREAM, SocketType::SEQPACKET];

fn connect_as(kind: SocketType, path: &Path) -> Result<OwnedFd, Errno> {
    let socket = socket(AddressFamily::UNIX, kind, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Tells of what must not work.
fn refused<T, E>(what: &str, done: Result<T, E>) {
    if done.is_ok() {
        println!("BROKEN: {what}");
    }
}

fn try_all(task: &Task) {
    for path in &task.paths {
        try_path(path);
    }
    let address = SocketAddr::from_abstract_name(&task.name).unwrap();
    refused("abstract", UnixStream::connect_addr(&address));
    let target = SocketAddrUnix::new(&task.datagrams).unwrap();
    for kind in [SocketType::DGRAM, SocketType::RAW, SocketType::RDM] {
        refused("datagram socket", socket(AddressFamily::UNIX, kind, None));
        let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None);
        if let Ok((one, _other)) = pair {
            println!("BROKEN: pair of datagram sockets");
            refused("to a name", sendto(&one, b"x", SendFlags::empty(), &target));
        }
    }
    refused("datagram", UnixDatagram::unbound());
    // Those that may be had send to nobody but their peer.
    for kind in KINDS {
        let (one, _other) =
            socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None).unwrap();
        for path in [&task.plain, &task.datagrams] {
            let name = SocketAddrUnix::new(path).unwrap();
            let _ = sendto(&one, b"x", SendFlags::empty(), &name);
            let mut nothing = SendAncillaryBuffer::new(&mut []);
            let message = [io::IoSlice::new(b"x")];
            let _ = sendmsg_addr(&one, &name, &message, &mut nothing, SendFlags::empty());
            refused("connect again", connect(&one, &name));
            let single = socket(AddressFamily::UNIX, kind, None).unwrap();
            let sent = sendto(&single, b"x", SendFlags::empty(), &name);
            refused("send without connecting", sent);
        }
    }
}

/// Whatever was open when this process started could lead anywhere.
fn check_inherited() {
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        if target.to_string_lossy().starts_with("socket:") {
            println!("BROKEN: {} is inherited", entry.path().display());
        }
    }
}

/// Tries to connect to a socket by everything that leads there.
fn try_path(path: &Path) {
    let home = std::env::current_dir().unwrap();
    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let inner = path.strip_prefix("/").unwrap();
    let mut ways = vec![path.to_owned()];
    for link in ["/proc/self/root", "/proc/thread-self/root", "/proc/1/root"] {
        ways.push(Path::new(link).join(inner));
    }
    let _ = fs::remove_file("way");
    symlink(path, "way").unwrap();
    ways.push("way".into());
    ways.push(home.join("way"));
    if let Ok(opened) = open(folder, OFlags::PATH, Mode::empty()) {
        ways.push(format!("/proc/self/fd/{}", opened.as_raw_fd()).into());
        let through = ways.last().unwrap().join(name);
        ways.push(through);
        std::mem::forget(opened);
    }
    if let Ok(opened) = open(path, OFlags::PATH, Mode::empty()) {
        ways.push(format!("/proc/self/fd/{}", opened.as_raw_fd()).into());
        ways.push(format!("/dev/fd/{}", opened.as_raw_fd()).into());
        std::mem::forget(opened);
    }
    let linked = fs::hard_link(path, "again");
    ways.push("again".into());
    let try_ways = |ways: &[PathBuf]| {
        for way in ways.iter().filter(|way| fits(way)) {
            for kind in KINDS {
                refused(
                    &format!("{} by {}", path.display(), way.display()),
                    connect_as(kind, way),
                );
            }
        }
    };
    try_ways(&ways);
    if linked.is_ok() {
        fs::rename("again", "later").unwrap();
        try_ways(&["later".into()]);
        fs::remove_file("later").unwrap();
    }
    if std::env::set_current_dir(folder).is_ok() {
        let up = Path::new("..").join(folder.file_name().unwrap()).join(name);
        try_ways(&[
            name.into(),
            Path::new(".").join(name),
            up,
            Path::new("/proc/self/cwd").join(name),
        ]);
        std::env::set_current_dir(home).unwrap();
    }
}

/// Makes connections while a thread changes what they lead to, between a socket inside and one
/// outside. Says how many reached the one inside; those who listen outside know of theirs.
fn race_all(task: &Task) {
    let mine = std::env::current_dir().unwrap().join("mine");
    let listener = UnixListener::bind(&mine).unwrap();
    thread::spawn(move || listener.incoming().for_each(drop));
    let (mine, theirs) = (mine.as_path(), task.plain.as_path());
    let races: [fn(&Path, &Path, usize) -> usize; WAYS] =
        [race_memory, race_link, race_folder, race_descriptor];
    for race in races {
        print!("{} ", race(mine, theirs, task.races));
    }
}

/// Repeats `change` in a thread while `tries` connections are made.
fn race(
    tries: usize,
    mut change: impl FnMut() + Send + 'static,
    mut attempt: impl FnMut() -> bool,
) -> usize {
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    let changing = thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            change();
        }
    });
    let mut reached = (0..tries).filter(|_| attempt()).count();
    // That some get through is half of the test.
    for _ in 0..MAX_ATTEMPTS {
        if reached == 0 && attempt() {
            reached = 1;
        }
    }
    over.store(true, Ordering::Relaxed);
    changing.join().unwrap();
    reached
}

/// The address in memory.
fn race_memory(mine: &Path, theirs: &Path, tries: usize) -> usize {
    let addresses = [process::unix_address(mine), process::unix_address(theirs)];
    let shared = process::Changing::new(&addresses[0]);
    let (change, mut turn) = (shared.clone(), 0);
    race(
        tries,
        move || {
            turn = 1 - turn;
            change.set(&addresses[turn]);
        },
        || {
            let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            shared.connect(&socket)
        },
    )
}

/// A link on the way.
fn race_link(mine: &Path, theirs: &Path, tries: usize) -> usize {
    for (name, target) in [("one", mine), ("other", theirs)] {
        symlink(target, name).unwrap();
    }
    let change = || {
        let _ = renameat_with(CWD, "one", CWD, "other", RenameFlags::EXCHANGE);
    };
    race(tries, change, || {
        connect_as(SocketType::STREAM, Path::new("one")).is_ok()
    })
}

/// The folder around the socket.
fn race_folder(mine: &Path, theirs: &Path, tries: usize) -> usize {
    fs::create_dir("here").unwrap();
    fs::create_dir("there").unwrap();
    fs::hard_link(mine, "here/socket").unwrap();
    // Outside as well, though its name is in the workspace.
    fs::hard_link(
        theirs
            .parent()
            .unwrap()
            .parent()
            .unwrap()
            .join("workspace/linked"),
        "there/socket",
    )
    .unwrap();
    let change = || {
        let _ = renameat_with(CWD, "here", CWD, "there", RenameFlags::EXCHANGE);
    };
    race(tries, change, || {
        connect_as(SocketType::STREAM, Path::new("here/socket")).is_ok()
    })
}

/// The socket under the number, and the address with it: what is good for one network is not for
/// the other.
fn race_descriptor(_mine: &Path, theirs: &Path, tries: usize) -> usize {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let internet = process::internet_address(server.local_addr().unwrap().port());
    thread::spawn(move || server.incoming().for_each(drop));
    let addresses = [internet, process::unix_address(theirs)];
    let shared = process::Changing::new(&addresses[0]);
    let place = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let number = place.as_raw_fd();
    let (change, mut turn) = (shared.clone(), 0);
    race(
        tries,
        move || {
            turn = 1 - turn;
            let family = [AddressFamily::INET, AddressFamily::UNIX][turn];
            let other =
                socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
            process::put_at(&other, number);
            change.set(&addresses[turn]);
        },
        || shared.connect(&place),
    )
}

/// Connects to sockets of its own in all the usual ways.
fn use_all(task: &Task) {
    for path in &task.paths {
        let renamed = path.with_extension("renamed");
        let linked = path.with_extension("linked");
        let listener = UnixListener::bind(path).unwrap();
        fs::hard_link(path, &linked).unwrap();
        fs::rename(path, &renamed).unwrap();
        let link = path.with_extension("link");
        symlink(&renamed, &link).unwrap();
        for name in [&renamed, &linked, &link] {
            exchange(&listener, &UnixStream::connect(name).unwrap());
        }
        std::env::set_current_dir(path.parent().unwrap()).unwrap();
        let relative = Path::new(renamed.file_name().unwrap());
        exchange(&listener, &UnixStream::connect(relative).unwrap());
        let through = Path::new("/proc/self/cwd").join(relative);
        exchange(&listener, &UnixStream::connect(through).unwrap());
        // A server that has ended leaves its file, which must look like that.
        drop(listener);
        let error = UnixStream::connect(&renamed).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let missing = UnixStream::connect(path).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
    let address = SocketAddr::from_abstract_name(&task.name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    exchange(&listener, &UnixStream::connect_addr(&address).unwrap());
    forked_daemon(&task.paths[0].with_extension("daemon"));
    blocked_connections(&task.paths[0].with_extension("full"));
}

fn exchange(listener: &UnixListener, client: &UnixStream) {
    use io::{Read, Write};
    let (mut server, _) = listener.accept().unwrap();
    (&*client).write_all(b"x").unwrap();
    server.read_exact(&mut [0]).unwrap();
}

/// Whoever called listen(2) has ended when somebody connects.
fn forked_daemon(path: &Path) {
    let code = process::in_child(|| {
        let listener = UnixListener::bind(path).unwrap();
        // Its child serves on, as daemons do.
        let serving = process::in_background(|| i32::from(listener.accept().is_err()));
        i32::from(serving.is_err())
    });
    assert_eq!(code.unwrap(), 0);
    UnixStream::connect(path).unwrap();
}

/// Clients that wait for a busy server keep nobody from connecting to another one.
fn blocked_connections(path: &Path) {
    let busy = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&busy, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::listen(&busy, 0).unwrap();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let path = path.to_owned();
            thread::spawn(move || UnixStream::connect(path).unwrap())
        })
        .collect();
    let other = path.with_extension("other");
    let listener = UnixListener::bind(&other).unwrap();
    for _ in 0..16 {
        exchange(&listener, &UnixStream::connect(&other).unwrap());
    }
    let busy = UnixListener::from(busy);
    for _ in 0..waiting.len() {
        busy.accept().unwrap();
    }
    for client in waiting {
        client.join().unwrap();
    }
}

/// Tries to take over what connects on its behalf, and then ends it.
fn attack(task: &Task) {
    let keeper = getppid().unwrap().as_raw_nonzero().get().unsigned_abs();
    // Where the machine's processes are in sight, it is the keeper's parent; else a thread of the
    // keeper's.
    let supervisor = match parent_of(keeper) {
        0 => keeper,
        parent => parent,
    };
    let folder = PathBuf::from(format!("/proc/{supervisor}"));
    look_into(&folder);
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten();
    let threads: Vec<_> = threads.flatten().map(|thread| thread.path()).collect();
    assert!(parent_of(keeper) != 0 || threads.len() > 1, "{threads:?}");
    threads.iter().for_each(|thread| look_into(thread));
    let number = Pid::from_raw(supervisor.cast_signed()).unwrap();
    process::interfere(number)
        .into_iter()
        .for_each(|what| println!("BROKEN: {what}"));
    if parent_of(keeper) == 0 {
        process::burden(number)
            .into_iter()
            .for_each(|what| println!("BROKEN: {what}"));
    }
    let mine = std::env::current_dir().unwrap().join("own");
    let _listener = UnixListener::bind(&mine).unwrap();
    UnixStream::connect(&mine).unwrap();
    let threads = threads.iter().filter_map(|thread| {
        let number = thread.file_name()?.to_str()?.parse().ok()?;
        Pid::from_raw(number)
    });
    for number in threads.chain([number]) {
        for signal in [Signal::KILL, Signal::STOP, Signal::USR1] {
            match kill_process(number, signal) {
                // It is what ends the command, and out of reach of its signals.
                Err(Errno::PERM) if parent_of(keeper) != 0 => {}
                // The first process of a namespace gets none from within.
                Ok(()) if parent_of(keeper) == 0 => {}
                other => println!("BROKEN: {signal:?} to {number:?}: {other:?}"),
            }
        }
    }
    UnixStream::connect(&mine).unwrap();
    try_all(task);
}

/// Tries to look into a process, or into a thread of one.
fn look_into(folder: &Path) {
    for name in [
        "mem", "environ", "maps", "auxv", "syscall", "stack", "fd/0", "exe",
    ] {
        let opened = fs::File::open(folder.join(name));
        let read = opened.and_then(|mut file| io::Read::read_exact(&mut file, &mut [0]));
        refused(&format!("read {name}"), read);
    }
    for name in ["mem", "fd/0", "oom_score_adj", "clear_refs", "attr/current"] {
        let opened = fs::OpenOptions::new().write(true).open(folder.join(name));
        refused(&format!("write to {name}"), opened);
    }
    for name in ["fdinfo", "map_files"] {
        let listed = fs::read_dir(folder.join(name));
        if listed.is_ok_and(|entries| entries.flatten().next().is_some()) {
            println!("BROKEN: list {name}");
        }
    }
    for name in ["cwd", "root", "exe", "ns/net", "fd/3"] {
        refused(name, fs::read_link(folder.join(name)));
    }
}

fn parent_of(process: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}
