//! Sockets of processes outside, under every name and by every way, and those of the command.

use std::{
    fs,
    os::{
        fd::AsRawFd,
        linux::net::SocketAddrExt,
        unix::{
            fs::{PermissionsExt, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
};

use gyrus_contract::{Bind, Containment, Network};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

use super::{
    intruder::{self, Task},
    start::{Around, User},
    world::World,
};

/// Connections that are tried while another thread changes what they lead to, for each way to do
/// so. `GYRUS_RACES` asks for more.
const RACES: usize = 750;

/// Listens outside, in many places.
struct Outside {
    listeners: Vec<(PathBuf, UnixListener)>,
    datagrams: UnixDatagram,
    task: Task,
}

impl Outside {
    fn new(world: &World) -> Self {
        let outside = world.path("outside");
        fs::create_dir(outside.join("folder")).unwrap();
        for name in ["workspace/bound", "outside/bound"] {
            fs::create_dir_all(world.path(name)).unwrap();
        }
        let mut listeners = Vec::new();
        let mut listen_at = |path: PathBuf| {
            listeners.push((path.clone(), UnixListener::bind(&path).unwrap()));
            path
        };
        let plain = listen_at(outside.join("plain"));
        // The kernel notes the name that was given, which leads nowhere by now.
        let folder = fs::File::open(&outside).unwrap();
        let given = format!("/proc/self/fd/{}/folder/relative", folder.as_raw_fd());
        listen_at(given.into());
        drop(folder);
        let renamed = outside.join("renamed");
        fs::rename(listen_at(outside.join("old")), &renamed).unwrap();
        let workspace = listen_at(world.path("workspace/theirs"));
        fs::hard_link(&plain, outside.join("linked")).unwrap();
        fs::hard_link(&plain, world.path("workspace/linked")).unwrap();
        symlink(&plain, world.path("workspace/symlink")).unwrap();
        let temporary = listen_at(world.path("temporary/theirs"));
        let layered = listen_at(world.path("cache/theirs"));
        listen_at(outside.join("bound/socket"));
        let name = format!("gyrus-test-{}", outside.display());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden_name = UnixListener::bind_addr(&address).unwrap();
        listeners.push((PathBuf::from("abstract"), hidden_name));
        let packets = outside.join("packets");
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let listener = socket_with(family, SocketType::SEQPACKET, flags, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&packets).unwrap()).unwrap();
        listen(&listener, 128).unwrap();
        listeners.push((packets.clone(), listener.into()));
        let datagrams = outside.join("datagrams");
        let receiver = UnixDatagram::bind(&datagrams).unwrap();
        let mut paths = vec![
            plain.clone(),
            outside.join("folder/relative"),
            renamed,
            outside.join("linked"),
            packets,
            workspace,
            temporary,
            layered,
        ];
        for path in &paths {
            // If anything went wrong, rights must not be what saves us.
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        paths.extend(
            ["linked", "symlink", "bound/socket"].map(|name| world.path("workspace").join(name)),
        );
        paths.extend(["/tmp/theirs".into(), "/var/tmp/theirs".into()]);
        fs::set_permissions(&datagrams, fs::Permissions::from_mode(0o777)).unwrap();
        for (_, listener) in &listeners {
            listener.set_nonblocking(true).unwrap();
        }
        receiver.set_nonblocking(true).unwrap();
        let races = std::env::var("GYRUS_RACES");
        Self {
            listeners,
            datagrams: receiver,
            task: Task {
                paths,
                plain,
                name,
                datagrams,
                races: races.map_or(RACES, |races| races.parse().unwrap()),
            },
        }
    }

    #[track_caller]
    fn check_nobody_came(&self) {
        for (path, listener) in &self.listeners {
            assert!(listener.accept().is_err(), "{}", path.display());
        }
        assert!(self.datagrams.recv(&mut [0]).is_err(), "datagrams");
    }
}

fn containment(world: &World) -> Containment {
    let mut containment = world.containment();
    containment.binds = vec![Bind {
        place: world.path("workspace/bound"),
        source: world.path("outside/bound"),
        writable: true,
    }];
    containment
}

/// Runs this program within the sandbox and returns what it says.
fn intrude(world: &World, containment: &Containment, part: &str, task: &Task) -> String {
    let task = serde_json::to_string(task).unwrap();
    world.start(|start| {
        let mut start = start.clone();
        start.containment = containment;
        let ran = start.run("/proc/self/exe", &[intruder::ARGUMENT, part, &task], drop);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let whole = start.around.has_namespaces();
        assert_eq!(ran.gaps.is_empty(), whole, "{ran:?}");
        ran.output
    })
}

pub(crate) fn outside_are_out_of_reach(user: User, around: Around) {
    for network in [Network::None, Network::Open] {
        let mut world = World::new(user, around);
        world.network = network;
        let outside = Outside::new(&world);
        world.give("workspace");
        let said = intrude(&world, &containment(&world), "try", &outside.task);
        assert_eq!(said, "done\n", "{network:?}");
        outside.check_nobody_came();
    }
}

pub(crate) fn races_reach_nobody_outside(user: User, around: Around) {
    let world = World::new(user, around);
    let outside = Outside::new(&world);
    world.give("workspace");
    let said = intrude(&world, &containment(&world), "race", &outside.task);
    // With none that got through, the races would show nothing.
    let counts: Vec<usize> = said
        .split_whitespace()
        .map(|count| count.parse().expect(&said))
        .collect();
    assert_eq!(counts.len(), intruder::WAYS, "{said}");
    assert!(counts.iter().all(|count| *count > 0), "{said}");
    outside.check_nobody_came();
}

pub(crate) fn inside_can_be_reached(user: User, around: Around) {
    for network in [Network::None, Network::Open] {
        let mut world = World::new(user, around);
        world.network = network;
        let mut places = vec![world.path("workspace/mine")];
        if around.has_namespaces() {
            places.extend(["/tmp/mine".into(), "/dev/shm/shared".into()]);
            // A layer, whose files have other numbers.
            places.push(world.path("cache/mine"));
        }
        let task = Task {
            paths: places,
            plain: PathBuf::new(),
            name: "gyrus-test-inside".to_owned(),
            datagrams: PathBuf::new(),
            races: 0,
        };
        let said = intrude(&world, &world.containment(), "use", &task);
        assert_eq!(said, "done\n", "{network:?}");
    }
}

pub(crate) fn only_what_is_let_in_is_reached(user: User, around: Around) {
    let world = World::new(user, around);
    let outside = Outside::new(&world);
    let agent = world.path("secret/agent");
    let listener = UnixListener::bind(&agent).unwrap();
    listener.set_nonblocking(true).unwrap();
    for folder in ["workspace", "secret"] {
        world.give(folder);
    }
    let mut containment = containment(&world);
    containment.sockets = vec![agent.clone(), world.path("missing")];
    let said = intrude(&world, &containment, "try", &outside.task);
    assert_eq!(said, "done\n");
    outside.check_nobody_came();
    assert!(listener.accept().is_err());
    let task = Task {
        paths: vec![agent],
        ..outside.task.clone()
    };
    assert_eq!(intrude(&world, &containment, "reach", &task), "done\n");
    listener.accept().unwrap();
    outside.check_nobody_came();
}

pub(crate) fn the_supervisor_is_out_of_reach(user: User, around: Around) {
    let world = World::new(user, around);
    let outside = Outside::new(&world);
    world.give("workspace");
    let said = intrude(&world, &containment(&world), "attack", &outside.task);
    assert_eq!(said, "done\n");
    outside.check_nobody_came();
}

/// Whether a path is short enough for an address.
pub(crate) fn fits(path: &Path) -> bool {
    path.as_os_str().len() < 108
}
