//! Runs that came from elsewhere are records: whatever stands in them, nothing of it acts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use gyrus_contract::{BlobId, Digest, EffectId, Limits, OnAsk, Principal, RunId};
use gyrus_journal::{Birth, LogName, NewEntry, Payload};
use gyrus_kernel::{ChildStarted, Entry, log_name};
use gyrus_runtime::queue::{self, Gateway, QueueWork};
use serde_json::{Value, json};

use crate::{server::Server, support::World};

/// Starts a stranger's program as the person.
const EVIL: &str = r#"
[[reply]]
calls = [{ tool = "run_as_user", arguments = { program = "sh", arguments = ["evil"], reason = "to see" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

/// A person's world, in whose folder lies a stranger's program.
fn victim() -> World {
    let world = World::new(EVIL);
    let owned = world.path("owned");
    let program = format!("echo owned >> {}\n", owned.display());
    fs::write(world.work().join("evil"), program).unwrap();
    world
}

/// The entry at which a stranger's run stops.
#[derive(Clone, Copy, PartialEq)]
enum Upto {
    /// The question is answered, and nothing has started.
    Answered,
    /// The question is open.
    Asked,
    /// Its end.
    End,
}

/// A stranger's world with a run that works in the folder of `victim`, and the run.
fn stranger(victim: &World, upto: Upto) -> (World, RunId) {
    let theirs = World::new(EVIL);
    let folder = victim.work();
    let folder = folder.to_str().unwrap();
    let asks = [
        "run",
        "go to evil.example",
        "--workdir",
        folder,
        "--on-ask",
        "park",
    ];
    theirs.gyrus(&asks).exits(5);
    let run = theirs.runs()[0];
    if upto != Upto::Asked {
        theirs.gyrus(&["approve", "--anywhere"]).exits(0);
        theirs.gyrus(&["resume", "--anywhere"]).exits(0);
        fs::remove_file(victim.path("owned")).unwrap();
    }
    if upto == Upto::Answered {
        cut(&theirs, run, None);
    }
    (theirs, run)
}

/// Writes a run again, by hand, as it was before its call was started, and perhaps goes on in another
/// way: any prefix of a chain is one.
fn cut(theirs: &World, run: RunId, more: Option<ChildStarted>) {
    let (name, store) = (log_name(run), theirs.store());
    let reader = store.reader(&name).unwrap();
    let entries: Vec<_> = reader.entries(1).unwrap().map(Result::unwrap).collect();
    let is_start = |entry: &gyrus_journal::LogEntry| {
        matches!(gyrus_kernel::parse(entry), Ok(Entry::ToolStarted(_)))
    };
    let until = entries.iter().position(is_start).expect("it started");
    let blobs: Vec<Vec<u8>> = fs::read_dir(store.folder(&name).join("blobs"))
        .unwrap()
        .map(|blob| fs::read(blob.unwrap().path()).unwrap())
        .collect();
    store.remove(&name).unwrap();
    let new = store.prepare(&name).unwrap();
    for blob in &blobs {
        assert_ne!(new.put_blob(blob).unwrap(), BlobId::of(b""));
    }
    let mut first: Vec<NewEntry<'_>> = entries[..until]
        .iter()
        .map(|entry| {
            let Payload::Json(payload) = &entry.payload else {
                panic!("nothing was erased");
            };
            NewEntry {
                kind: &entry.kind,
                version: entry.version,
                payload: payload.clone(),
            }
        })
        .collect();
    first.extend(more.map(|child| NewEntry {
        kind: "child.started",
        version: 1,
        payload: serde_json::value::to_raw_value(&child).unwrap(),
    }));
    drop(new.publish(&first).unwrap());
    // Theirs is the list of runs, too, which would tell that something is missing.
    fs::remove_file(store.root().join("runs.register")).unwrap();
    let last = gyrus_kernel::parse(&entries[until - 1]).unwrap();
    assert!(matches!(last, Entry::ApprovalAnswered(_)), "{last:?}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn folder(world: &World, run: RunId) -> PathBuf {
    world.path("home/journal/runs").join(run.to_string())
}

fn import(world: &World, theirs: &World, run: RunId) {
    let file = theirs.path("run.gyrus");
    let file = file.to_str().unwrap();
    let run = run.to_string();
    theirs.gyrus(&["runs", "export", &run, file]).exits(0);
    let said = world.gyrus(&["runs", "import", file]).exits(0);
    assert!(said.err.contains("it is a record"), "{said:?}");
}

/// Has a run of its own, so that there is a home.
fn begin(world: &World) {
    world.gyrus(&["run", "go", "--on-ask", "deny"]);
    assert_eq!(world.runs().len(), 1);
}

/// The stranger's program never ran.
#[track_caller]
fn unharmed(world: &World, what: &str) {
    assert!(
        !world.path("owned").exists(),
        "{what}: a stranger's program ran"
    );
}

/// A way in which a stranger's run comes into a person's home.
type Arrival = fn(&World, &World, RunId);

const ARRIVALS: &[(&str, Arrival)] = &[
    ("imported", import),
    ("imported into a home with runs", |world, theirs, run| {
        begin(world);
        import(world, theirs, run);
    }),
    ("a copied folder", |world, theirs, run| {
        begin(world);
        copy(&folder(theirs, run), &folder(world, run));
    }),
    ("a copied folder without a mark", |world, theirs, run| {
        begin(world);
        copy(&folder(theirs, run), &folder(world, run));
        fs::remove_file(folder(world, run).join("born")).unwrap();
    }),
    (
        "a copied folder with another run's mark",
        |world, theirs, run| {
            begin(world);
            let own = world.runs()[0];
            copy(&folder(theirs, run), &folder(world, run));
            fs::copy(
                folder(world, own).join("born"),
                folder(world, run).join("born"),
            )
            .unwrap();
        },
    ),
    (
        "a copied folder with an answer in its inbox",
        |world, theirs, run| {
            begin(world);
            copy(&folder(theirs, run), &folder(world, run));
            let id = "01990000-0000-7000-8000-00000000aaaa";
            let message = json!({"id": id, "from": {"surface": "x", "id": "y"}, "steer": "go"});
            let inbox = folder(world, run).join("inbox").join(format!("{id}.json"));
            fs::write(inbox, message.to_string()).unwrap();
        },
    ),
    ("a copied home", |world, theirs, _| {
        copy(&theirs.path("home"), &world.path("home"));
    }),
    (
        "an old queue entry, and then an import",
        |world, theirs, run| {
            begin(world);
            resume_in_queue(world, run);
            import(world, theirs, run);
        },
    ),
];

/// Puts a resumption into the queue, before its run is there.
fn resume_in_queue(world: &World, run: RunId) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let gateway = Gateway::open(&world.store()).unwrap();
        let from = Principal {
            surface: "test".to_owned(),
            id: "tester".to_owned(),
        };
        let new =
            queue::QueueCommand::new(QueueWork::Resume, Some(run), from, "default".to_owned());
        gateway.submit(new).await.unwrap();
    });
}

#[test]
fn a_run_file_that_carries_its_own_yes_starts_nothing() {
    for (what, arrive) in ARRIVALS {
        let world = victim();
        let (theirs, run) = stranger(&world, Upto::Answered);
        arrive(&world, &theirs, run);
        let id = run.to_string();
        let birth = world.store().birth(&log_name(run));
        assert_eq!(birth, Birth::Elsewhere, "{what}");
        let runs = world.gyrus(&["runs", "list", "--json"]).exits(0).out;
        let of_run = |line: &&str| line.contains(&id);
        let line = runs.lines().find(of_run).expect(what);
        assert!(line.contains(r#""state":"record""#), "{what}: {line}");
        let new = world.path("new");
        let new = new.to_str().unwrap();
        let commands: &[&[&str]] = &[
            &["resume", &id],
            &["resume", &id, "--take", "--approve", "auto"],
            &["approve", &id],
            &["deny", &id],
            &["steer", &id, "go on"],
            &["stop", &id],
            &["pause", &id],
            &["take", &id],
            &["undo", &id, "--yes"],
            &["abandon", &id],
            &["fork", &id, "--at", "0", "--in-place"],
            &["fork", &id, "--at", "0", "--workdir", new],
            &["procedures", "why", &id],
        ];
        for command in commands {
            let said = world.gyrus(command);
            assert_eq!(said.code, Some(2), "{what}: {command:?}: {said:?}");
            assert!(said.err.contains("hint: "), "{what}: {command:?}: {said:?}");
            unharmed(&world, what);
        }
        // What reads it works.
        for command in [
            &["show", &id][..],
            &["runs", "show", &id],
            &["replay", &id],
            &["runs", "verify", &id],
        ] {
            world.gyrus(command).exits(0);
        }
        let again = theirs.path("again.gyrus");
        world
            .gyrus(&["runs", "export", &id, again.to_str().unwrap()])
            .exits(0);
        unharmed(&world, what);
    }
}

#[test]
fn a_server_takes_up_no_record() {
    for (what, arrive) in ARRIVALS {
        let world = victim();
        let (theirs, run) = stranger(&world, Upto::Answered);
        arrive(&world, &theirs, run);
        if world.store().is_copied() {
            world
                .gyrus(&["serve", "--port", "0"])
                .exits(2)
                .says("gyrus runs adopt");
            unharmed(&world, what);
            continue;
        }
        let server = Server::start(&world);
        let commands = server.get("/api/commands").is(200).json();
        for command in commands.as_array().unwrap() {
            let ended = server.wait_for_end(command);
            let summary = ended["stage"]["summary"].as_str().unwrap_or_default();
            assert!(summary.contains("record"), "{what}: {ended:#}");
        }
        let overview = server.get(&format!("/api/runs/{run}")).is(200).json();
        assert_eq!(overview["state"], "over", "{what}");
        let post = |path: &str, body: &Value| {
            let answer = server.post(&format!("/api/runs/{run}/{path}"), body);
            assert!(answer.status >= 400, "{what}: {path}: {answer:?}");
            answer
        };
        let refused = post("resume", &json!({}));
        assert_eq!(refused.status, 409, "{refused:?}");
        assert!(refused.body.contains("--workdir"), "{refused:?}");
        post("steer", &json!({"text": "go on"}));
        post("fork", &json!({"at": 0, "in_place": true}));
        post("stop", &json!({}));
        drop(server);
        unharmed(&world, what);
    }
}

#[test]
fn a_new_run_can_begin_with_what_a_record_remembers() {
    for upto in [Upto::Answered, Upto::Asked, Upto::End] {
        let world = victim();
        let (theirs, run) = stranger(&world, upto);
        import(&world, &theirs, run);
        let id = run.to_string();
        world
            .gyrus(&["resume", &id])
            .exits(2)
            .says("--workdir FOLDER");
        // It is no run of this folder, whatever it says.
        world
            .gyrus(&["run", "-c", "go"])
            .exits(2)
            .says("nothing to continue");
        let said = world.gyrus(&["resume", &id, "--workdir", ".", "--on-ask", "park"]);
        said.exits(5).says("is a record: a new run begins");
        unharmed(&world, "a new run asks again");
        let new = *world.runs().iter().find(|new| **new != run).unwrap();
        let reader = world.store().reader(&log_name(new)).unwrap();
        let first = gyrus_kernel::parse(&reader.entry(1).unwrap().unwrap());
        let Ok(Entry::RunStarted(started)) = first else {
            panic!("{first:?}");
        };
        assert!(started.exposed && started.trusted.is_empty() && started.grants.is_empty());
        assert_eq!(started.continues, Some(run));
        assert_eq!(started.settings.on_ask, OnAsk::Park);
        let goal = serde_json::to_value(&started.goal).unwrap().to_string();
        assert!(
            goal.contains("evil.example") && !goal.contains("person"),
            "{goal}"
        );
        let memory = serde_json::to_value(&started.memory).unwrap().to_string();
        assert!(
            memory.contains("evil.example") && !memory.contains("person"),
            "{memory}"
        );
        // The new one is a run like any other.
        world.gyrus(&["approve", "last"]).exits(0);
        world.gyrus(&["resume", "last"]).exits(0);
        assert_eq!(fs::read_to_string(world.path("owned")).unwrap(), "owned\n");
        world.gyrus(&["replay", "last"]).exits(0);
        world.gyrus(&["runs", "rm", &id, "--yes"]).exits(0);
        world.gyrus(&["runs", "verify"]).exits(0);
    }
}

#[test]
fn a_record_has_no_runs_of_this_home_for_children() {
    let world = victim();
    begin(&world);
    let own = world.runs()[0];
    let (theirs, run) = stranger(&world, Upto::End);
    let child = ChildStarted {
        effect: EffectId::cycle(1).then(7),
        child: own,
        goal: "yours".to_owned(),
        limits: Limits::default(),
        digest: Digest::of(b"x"),
    };
    cut(&theirs, run, Some(child));
    import(&world, &theirs, run);
    let id = run.to_string();
    world.gyrus(&["abandon", &id]).exits(2);
    world.gyrus(&["runs", "rm", &id, "--yes"]).exits(0);
    assert_eq!(world.runs(), [own]);
}

#[test]
fn only_runs_are_taken_in() {
    let (world, theirs) = (World::new(""), World::new(""));
    let store = theirs.store();
    for kind in ["grants", "queue", "tokens"] {
        let name = LogName::new(kind, "main--0000000001").unwrap();
        drop(store.create(&name).unwrap());
        let mut export = Vec::new();
        store.export(&name, &|_| true, &mut export).unwrap();
        let file = theirs.path(kind);
        fs::write(&file, export).unwrap();
        world
            .gyrus(&["runs", "import", file.to_str().unwrap()])
            .exits(2)
            .says("only runs are taken in");
        assert!(!world.store().exists(&name));
    }
}

#[test]
fn a_copied_home_is_adopted_by_its_person() {
    let world = victim();
    let (theirs, run) = stranger(&world, Upto::Asked);
    // What had come to it from elsewhere stays a record.
    let (others, record) = stranger(&world, Upto::Answered);
    import(&theirs, &others, record);
    copy(&theirs.path("home"), &world.path("home"));
    for command in [&["run", "go"][..], &["resume", &run.to_string()]] {
        world.gyrus(command).exits(2).says("gyrus runs adopt");
    }
    world
        .gyrus(&["doctor"])
        .out
        .find("gyrus runs adopt")
        .unwrap();
    world.gyrus(&["runs", "adopt"]).exits(2).says("--yes");
    world.gyrus(&["runs", "adopt", "--yes"]).exits(0);
    world.gyrus(&["runs", "adopt"]).exits(0).says("already");
    unharmed(&world, "adopted");
    world.gyrus(&["resume", &record.to_string()]).exits(2);
    world.gyrus(&["approve", &run.to_string()]).exits(0);
    unharmed(&world, "answered");
    world.gyrus(&["resume", &run.to_string()]).exits(0);
    assert!(world.path("owned").exists());
    world.gyrus(&["resume", &record.to_string()]).exits(2);
}
