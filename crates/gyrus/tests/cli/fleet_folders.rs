//! Runs of a fleet whose folder goes from machine to machine: what one worker changed, the next one
//! finds, and the person has it brought home.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

use gyrus_contract::{BlobId, DEFAULT_AGENT, Origin, Principal, Text};
use gyrus_fleet::{
    FleetQueue, Machine, OsMachine, SharedLog,
    nats::{FleetAddress, FleetConnection, NatsLog},
    store_blob,
};
use gyrus_journal::Store;
use gyrus_runtime::{
    queue::{CommandStage, Gateway, QueueCommand, QueueWork, QueueWorker},
    request::{FolderBase, RunRequest},
};
use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::{Signal, kill_process},
};

use crate::{
    fleet::{Fleet, SHORT, at, eventually, exits, no_server},
    support::{Running, Said, TIMEOUT, said},
};

/// Submits a run on a copy of the folder, and watches it.
fn upload(fleet: &Fleet) -> JoinHandle<Said> {
    let mut submit = fleet.submit(&["--upload"]);
    std::thread::spawn(move || said(submit.output().unwrap()))
}

/// The folder of a run. It goes with this, for a test that fails.
struct Folder(PathBuf);

impl std::ops::Deref for Folder {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The folder of the only run.
fn folder(fleet: &Fleet) -> Folder {
    let copies = fleet.world.path("client/fleet/copies");
    let names = || {
        let store = Store::open(&copies).ok()?;
        store
            .names("runs")
            .ok()?
            .first()
            .map(|name| name.id().to_owned())
    };
    eventually("the run does not begin", || names().is_some());
    Folder(PathBuf::from(format!(
        "/var/tmp/gyrus-{}",
        names().unwrap()
    )))
}

/// Kills a worker and what it drives.
fn kill(fleet: &Fleet, home: &str, worker: Running) {
    let drivers = fleet.drivers(home);
    worker.signal(Signal::KILL);
    for driver in drivers {
        kill_process(driver, Signal::KILL).unwrap();
    }
}

/// A command on the fleet's runs in the person's folder.
fn client(fleet: &Fleet, words: &[&str]) -> Said {
    let words = [&["--fleet", &fleet.address], words].concat();
    exits(at(&fleet.world, "client", &words))
}

const KILLED_IN_A_STEP: &str = r#"
[[reply]]
text = "A file."
calls = [{ tool = "write", arguments = { path = "out.txt", content = "one\n" } }]
[[reply]]
text = "Two calls in one step, and the second one is never done."
calls = [
  { tool = "shell", arguments = { command = "echo two >> out.txt; mkdir sub; echo new > sub/new.txt; rm old.txt" } },
  { tool = "shell", arguments = { command = "touch begun; sleep 25" } },
]
[[reply]]
text = "Look."
calls = [{ tool = "shell", arguments = { command = "cat out.txt > seen.txt; ls >> seen.txt" } }]
[[reply]]
text = "That is all."
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

#[test]
fn the_next_worker_finds_what_the_dead_one_changed_and_it_comes_home() {
    let Some(fleet) = Fleet::start(KILLED_IN_A_STEP) else {
        return no_server();
    };
    let work = fleet.world.work();
    fs::write(work.join("old.txt"), "old\n").unwrap();
    fs::write(work.join("run.sh"), "true\n").unwrap();
    fs::set_permissions(work.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let worker = fleet.worker("one", SHORT);
    let watched = upload(&fleet);
    let folder = folder(&fleet);
    fleet.world.wait_for_layer("begun");
    kill(&fleet, "one", worker);
    // On the other machine there is nothing of it.
    fs::write(folder.join("canary"), "x").unwrap();
    let _other = fleet.worker("two", SHORT);
    let told = watched.join().unwrap().exits(0);
    assert_eq!(told.out.trim(), "finished");
    assert!(told.err.contains("apply"), "{told:?}");
    eventually("the folder of a run that is over stays", || {
        !folder.exists()
    });
    // The person's own folder is as it was.
    assert_eq!(fleet.world.file("old.txt"), "old\n");
    assert!(!work.join("out.txt").exists());
    let patch = client(&fleet, &["diff", "last"]).exits(0).out;
    assert!(patch.contains("+two") && patch.contains("-old"), "{patch}");
    let asked = client(&fleet, &["apply", "last"]).exits(0);
    assert!(asked.err.contains("nothing was changed"), "{asked:?}");
    assert!(!work.join("out.txt").exists());
    client(&fleet, &["apply", "last", "--yes"]).exits(0);
    assert_eq!(fleet.world.file("out.txt"), "one\ntwo\n");
    assert_eq!(fleet.world.file("sub/new.txt"), "new\n");
    assert!(!work.join("old.txt").exists());
    let seen = "one\ntwo\nout.txt\nrun.sh\nseen.txt\nsub\n";
    assert_eq!(fleet.world.file("seen.txt"), seen);
    // Its journal says what every call did, so it replays.
    let replayed = client(&fleet, &["replay", "last"]).exits(0).out;
    assert!(replayed.contains("0 differences"), "{replayed}");
    // Once more, there is nothing to do.
    let again = client(&fleet, &["apply", "last", "--yes"]).exits(0);
    assert!(
        again.err.contains("there is nothing to change"),
        "{again:?}"
    );
}

const TURNS: &str = r#"
[[reply]]
text = "a"
calls = [{ tool = "shell", arguments = { command = "echo a >> turns.txt; touch at-1; sleep 25" } }]
[[reply]]
text = "b"
calls = [{ tool = "shell", arguments = { command = "echo b >> turns.txt" } }]
[[reply]]
text = "wait"
calls = [{ tool = "shell", arguments = { command = "touch at-2; sleep 25" } }]
[[reply]]
text = "c"
calls = [{ tool = "shell", arguments = { command = "echo c >> turns.txt; touch at-3; sleep 25" } }]
[[reply]]
text = "Look."
calls = [{ tool = "shell", arguments = { command = "ls >> turns.txt" } }]
[[reply]]
text = "That is all."
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

#[test]
fn two_machines_take_turns_with_one_folder() {
    let Some(fleet) = Fleet::start(TURNS) else {
        return no_server();
    };
    let lease = "3s";
    let one = fleet.worker("one", lease);
    let watched = upload(&fleet);
    let reaches = |file: &str| fleet.world.wait_for_layer(file);
    let gives_back = |mut worker: Running| {
        worker.signal(Signal::INT);
        worker.hears("parking what is at work");
        worker.end();
    };
    reaches("at-1");
    gives_back(one);
    let two = fleet.worker("two", lease);
    reaches("at-2");
    kill(&fleet, "two", two);
    // This one has a folder and a journal of the first turn, and neither counts.
    let one = fleet.worker("one", lease);
    reaches("at-3");
    gives_back(one);
    let _two = fleet.worker("two", lease);
    watched.join().unwrap();
    eventually("the run does not end", || {
        client(&fleet, &["show", "last"]).out.contains("finished")
    });
    client(&fleet, &["apply", "last", "--yes"]).exits(0);
    assert_eq!(
        fleet.world.file("turns.txt"),
        "a\nb\nc\nat-1\nat-3\nturns.txt\n"
    );
}

/// All bytes of the files below a folder.
fn all_bytes(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => bytes.extend(all_bytes(&entry.path())),
            kind if kind.is_file() => bytes.extend(fs::read(entry.path()).unwrap_or_default()),
            _ => {}
        }
    }
    bytes
}

const LOOKS: &str = r#"
[[reply]]
text = "Look."
calls = [{ tool = "shell", arguments = { command = "find . | sort > found.txt; echo more >> kept.txt; echo more >> edited.txt" } }]
[[reply]]
text = "That is all."
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

#[test]
fn secrets_and_what_is_no_file_stay_and_nothing_here_is_overwritten() {
    let Some(fleet) = Fleet::start(LOOKS) else {
        return no_server();
    };
    let work = fleet.world.work();
    let write = |name: &str, text: &str| fs::write(work.join(name), text).unwrap();
    write(".env", "PASSWORD=correct-horse-battery\n");
    write("empty.txt", "");
    write("kept.txt", "as it was\n");
    write("edited.txt", "as it was\n");
    symlink("/etc/passwd", work.join("outside")).unwrap();
    mkfifoat(CWD, work.join("pipe"), Mode::RWXU).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff-name");
    fs::write(work.join(odd), "x").unwrap();
    // Where a command of git would start it, nothing does.
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    write(
        ".git/hooks/post-checkout",
        "#!/bin/sh\ntouch /var/tmp/gyrus-hook\n",
    );
    write(
        ".git/config",
        "[core]\n\tfsmonitor = touch /var/tmp/gyrus-hook\n",
    );
    let _worker = fleet.worker("one", SHORT);
    let told = upload(&fleet).join().unwrap().exits(0);
    assert!(told.err.contains("secret: .env"), "{told:?}");
    // Neither it nor its hash is on the servers.
    let server = all_bytes(&fleet.world.path("server/fleet"));
    let has = |text: &str| server.windows(text.len()).any(|one| one == text.as_bytes());
    let hash = BlobId::of(b"PASSWORD=correct-horse-battery\n").to_string();
    assert!(has("as it was") && !has("correct-horse") && !has(&hash));
    assert!(told.err.contains("nor a folder: pipe"), "{told:?}");
    write("edited.txt", "changed meanwhile\n");
    let refused = client(&fleet, &["apply", "last", "--yes"]).exits(1);
    assert!(
        refused.err.contains("edited.txt: it was changed since"),
        "{refused:?}"
    );
    assert_eq!(fleet.world.file("kept.txt"), "as it was\n");
    client(&fleet, &["apply", "last", "--yes", "--rest"]).exits(0);
    assert_eq!(fleet.world.file("kept.txt"), "as it was\nmore\n");
    assert_eq!(fleet.world.file("edited.txt"), "changed meanwhile\n");
    let found = fs::read(work.join("found.txt")).unwrap();
    let found = String::from_utf8_lossy(&found);
    for (name, there) in [
        ("./.env\n", false),
        ("./pipe\n", false),
        ("./empty.txt\n", true),
        ("./outside\n", true),
        ("./odd-\u{fffd}-name\n", true),
    ] {
        assert_eq!(found.contains(name), there, "{name} {found}");
    }
    assert!(!PathBuf::from("/var/tmp/gyrus-hook").exists());
    // In another folder nothing is as the run found it.
    let elsewhere = fleet.world.path("elsewhere-folder");
    fs::create_dir(&elsewhere).unwrap();
    let wrong = [
        "apply",
        "last",
        "--yes",
        "--workdir",
        elsewhere.to_str().unwrap(),
    ];
    client(&fleet, &wrong).exits(1);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

/// Puts a run into the queue whose folder begins with this snapshot, and returns how it ended.
async fn with_snapshot(fleet: &Fleet, manifest: &[u8], is_stored: bool) -> String {
    let address = FleetAddress::parse(&fleet.address).unwrap();
    let connection = FleetConnection::open(&address).await.unwrap();
    let log: Arc<dyn SharedLog> = Arc::new(NatsLog::new(connection));
    let machine: Arc<dyn Machine> = Arc::new(OsMachine);
    if is_stored {
        let until = machine.now() + TIMEOUT;
        store_blob(&log, &machine, manifest, until).await.unwrap();
    }
    let queue = FleetQueue::open(log, machine, None).await.unwrap();
    let follower = Arc::clone(&queue);
    let following = tokio::spawn(async move { follower.follow().await });
    let client = QueueWorker {
        name: "client".to_owned(),
        machine: "here".to_owned(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        has: Arc::new(|_| false),
    };
    let store = Store::open(&fleet.world.path("crafted")).unwrap();
    let gateway = Gateway::share(&store, queue, client);
    let request = RunRequest {
        base: Some(FolderBase::Uploaded {
            snapshot: BlobId::of(manifest),
        }),
        ..RunRequest::new(Text::new("go", Origin::Person), fleet.world.work())
    };
    let from = Principal {
        surface: "test".to_owned(),
        id: "ada".to_owned(),
    };
    let work = QueueWork::Start(Box::new(request));
    let new = QueueCommand::new(work, None, from, DEFAULT_AGENT.to_owned());
    let queued = gateway.submit(new).await.unwrap();
    let mut changes = gateway.changes();
    let ended = async {
        loop {
            let stage = gateway.with(|queue| queue.get(&queued.command.id).unwrap().stage.clone());
            if let CommandStage::Ended { summary, .. } = stage {
                return summary;
            }
            changes.changed().await.unwrap();
        }
    };
    let summary = tokio::time::timeout(TIMEOUT, ended).await.unwrap();
    following.abort();
    let folder = format!("gyrus-{}", queued.command.run);
    let left = fs::read_dir("/var/tmp").unwrap().flatten();
    let left = left.filter(|one| one.file_name().to_string_lossy().starts_with(&folder));
    assert_eq!(left.count(), 0);
    summary
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_whole_on_the_servers_is_no_folder_and_no_run() {
    let Some(fleet) = Fleet::start(LOOKS) else {
        return no_server();
    };
    let _worker = fleet.worker("one", SHORT);
    let file = |path: &str| {
        let blob = BlobId::of(b"never stored");
        format!(r#""{path}":{{"kind":"file","blob":"{blob}","bytes":12}}"#)
    };
    let of = |entries: &str| format!(r#"{{"version":4,"entries":{{{entries}}}}}"#);
    let link = r#""a":{"kind":"link","target":"/etc"},"a/b":{"kind":"link","target":"x"}"#;
    for (manifest, is_stored, words) in [
        (of(""), false, "is not there"),
        ("nonsense".to_owned(), true, "is not a snapshot"),
        (of(&file("a")), true, "is not there"),
        (of(&file("../a")), true, "leaves the folder"),
        (of(&file("/etc/a")), true, "leaves the folder"),
        (of(link), true, "does not lie in a folder"),
    ] {
        let summary = with_snapshot(&fleet, manifest.as_bytes(), is_stored).await;
        assert!(summary.contains(words), "{manifest}: {summary}");
    }
}

#[test]
fn a_folder_that_cannot_travel_is_refused_before_anything_is_queued() {
    let Some(fleet) = Fleet::start(LOOKS) else {
        return no_server();
    };
    let sparse = fs::File::create(fleet.world.work().join("sparse")).unwrap();
    sparse.set_len(5 << 30).unwrap();
    let told = exits(fleet.submit(&["--upload"])).exits(2);
    assert!(told.err.contains("is too large to be uploaded"), "{told:?}");
    assert!(!told.err.contains("is in the queue"), "{told:?}");
    let told = exits(fleet.submit(&["--clone"]));
    assert!(
        told.code != Some(0) && told.err.contains("--upload"),
        "{told:?}"
    );
    // Both are for a fleet.
    let alone = exits(at(&fleet.world, "client", &["run", "go", "--upload"])).exits(2);
    assert!(alone.err.contains("--fleet"), "{alone:?}");
}
