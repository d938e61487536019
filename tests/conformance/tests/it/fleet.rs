//! The six properties over a fleet's log on a real server: each process works on a machine of its own,
//! which has nothing of the run but what the log has.

use std::{
    cell::{Cell, RefCell},
    path::Path,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use gyrus_conformance::{
    ours::{approval, scenario, step},
    properties::{Property, check},
    recording::{Cut, Recording},
    scenario::{Bench, Scenario},
    subject::{Step, Subject, Task},
    world::World,
};
use gyrus_contract::RunId;
use gyrus_fleet::{
    AppendAnswer, ClaimWords, DriveOrder, Driven, FleetCopy, FleetMessage, LogSubject,
    LogUnreachable, Machine, MachineTime, MessageId, OsMachine, SharedLog, StoredMessage, Wait,
    nats::{FleetAddress, FleetConnection, LocalServer, NatsLog, ServerOptions, prepare_streams},
    send_message,
};
use gyrus_journal::Store;
use gyrus_kernel::{ForkInto, ResumeChanges, log_name};
use tempfile::TempDir;
use tokio::{runtime::Handle, sync::watch, task::block_in_place};

/// Longer than any of these runs: nothing is taken over because somebody is slow.
const LEASE: Duration = Duration::from_secs(60);

async fn holds(property: Property) {
    // Without the server's program there is nothing to try it on.
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let checked = check(&fleet, property).await;
    checked.unwrap_or_else(|violation| panic!("{violation}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_run_continues_the_same_prefix() {
    holds(Property::SamePrefix).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_happen_exactly_once() {
    holds(Property::ExactlyOnce).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forks_agree() {
    holds(Property::ForksAgree).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_entry_is_a_valid_resume_point() {
    holds(Property::ResumesAnywhere).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_used_once() {
    holds(Property::ApprovedOnce).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recovery_is_deterministic() {
    holds(Property::RecoversTheSame).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_a_run_reaches_no_other_run_of_its_machine() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let run = fleet.start(Task::NeedsApproval).await;
    let machine = scenario(Task::NeedsApproval).bench();
    machine.start().await.unwrap();
    let id = uuid::Uuid::now_v7().to_string();
    run.send(FleetMessage {
        run: machine.run(),
        body: machine.message(&id, approval(&machine.recording())),
        id,
    });
    fleet.approve(&run);
    let driven = Driven::take(run.driving(&machine.store, Wait::Dead), later()).await;
    assert_eq!(machine.waiting(), 0);
    let inbox = machine.store.inbox(&log_name(run.id())).unwrap();
    assert_eq!(inbox.messages().unwrap().len(), 2, "its own are there");
    driven.unwrap().end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lets_a_run_go_does_not_hear_that_it_is_lost() {
    let Some(fleet) = Fleet::start().await else {
        return;
    };
    let run = fleet.start(Task::NeedsApproval).await;
    let machine = run.scenario.bench();
    let driven = Driven::take(run.driving(&machine.store, Wait::No), later()).await;
    let driven = driven.unwrap();
    let lost = driven.lost();
    driven.end().await.unwrap();
    let told = tokio::time::timeout(Duration::from_millis(300), lost).await;
    assert!(told.is_err(), "{told:?}");
}

/// A server, and as many fleets on it as there are handles.
struct Fleet {
    log: Arc<dyn SharedLog>,
    count: Cell<u32>,
    _server: LocalServer,
    _folder: TempDir,
}

/// A run of a fleet of its own.
struct FleetRun {
    log: Arc<dyn SharedLog>,
    scenario: Scenario,
    world: World,
    /// The processes that drove it, oldest first.
    processes: RefCell<Vec<Bench>>,
    sent: RefCell<Vec<FleetMessage>>,
}

impl Fleet {
    /// Starts a server; `None` if its program is not installed.
    async fn start() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = root.join("target/nats-server/bin/nats-server");
        if !program.exists() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let options = ServerOptions {
            program,
            folder: folder.path().to_owned(),
            name: "conformance".to_owned(),
            port: None,
            token: Some("secret-of-the-tests".to_owned()),
            more: String::new(),
            syncs_always: true,
        };
        let server = LocalServer::start(&options).unwrap();
        let address = FleetAddress::parse(&server.address()).unwrap();
        let connection = FleetConnection::open(&address).await.unwrap();
        prepare_streams(&connection).await.unwrap();
        Some(Self {
            log: Arc::new(NatsLog::new(connection)),
            count: Cell::new(0),
            _server: server,
            _folder: folder,
        })
    }

    /// Returns a run that nobody has written anything of.
    fn apart(&self, scenario: Scenario, world: World) -> FleetRun {
        self.count.set(self.count.get() + 1);
        FleetRun {
            log: Arc::new(Apart {
                log: Arc::clone(&self.log),
                name: format!("handle-{}", self.count.get()),
            }),
            scenario,
            world,
            processes: RefCell::default(),
            sent: RefCell::default(),
        }
    }

    /// Returns a run as a worker leaves it that wrote these entries, and died.
    fn planted(&self, run: FleetRun, entries: &Recording, from: &Store) -> FleetRun {
        let machine = run.scenario.bench();
        let driven = blocking(Driven::take(run.driving(&machine.store, Wait::No), later()));
        let driven = driven.unwrap();
        let store = machine.store.clone().with_replicas(driven.replicas());
        block_in_place(|| entries.plant(from, &store));
        run
    }
}

impl FleetRun {
    fn id(&self) -> RunId {
        self.scenario.run()
    }

    fn driving(&self, store: &Store, wait: Wait) -> DriveOrder {
        DriveOrder {
            log: Arc::clone(&self.log),
            machine: Arc::new(OsMachine),
            store: store.clone(),
            root: self.id(),
            claimed: ClaimWords {
                worker: "one".to_owned(),
                lease_ms: u64::try_from(LEASE.as_millis()).unwrap(),
                build: "test".to_owned(),
            },
            wait,
        }
    }

    /// A worker on a machine that never saw the run takes it, and drives it until it ends or parks.
    async fn drive(&self, wait: Wait) -> Result<(), String> {
        let machine = self.scenario.bench_in(self.world.clone());
        let driving = self.driving(&machine.store, wait);
        let driven = Driven::take(driving, later()).await;
        let driven = driven.map_err(|error| error.to_string())?;
        let process = machine.replicated(driven.replicas());
        let is_there = machine.store.exists(&log_name(self.id()));
        let done = if is_there {
            process.resume().await
        } else {
            process.start().await
        };
        self.processes.borrow_mut().push(process);
        driven.end().await.map_err(|error| error.to_string())?;
        done.map(drop).map_err(|error| error.to_string())
    }

    /// What the log has of it, on a machine of a person who looks.
    fn copy(&self) -> (Bench, Recording) {
        let machine = self.scenario.bench();
        let copy = FleetCopy {
            log: Arc::clone(&self.log),
            machine: Arc::new(OsMachine),
            store: machine.store.clone(),
            root: self.id(),
        };
        blocking(copy.refresh()).unwrap();
        let recording = machine.recording();
        (machine, recording)
    }

    fn send(&self, message: FleetMessage) {
        let machine: Arc<dyn Machine> = Arc::new(OsMachine);
        let sending = send_message(&self.log, &machine, self.id(), &message, later());
        blocking(sending).unwrap();
        self.sent.borrow_mut().push(message);
    }
}

impl Subject for Fleet {
    type Run = FleetRun;

    async fn start(&self, task: Task) -> FleetRun {
        let run = self.apart(scenario(task), World::after(Vec::new()));
        run.drive(Wait::No).await.unwrap();
        run
    }

    fn steps(&self, run: &FleetRun) -> Vec<Step> {
        run.copy().1.lines.iter().map(step).collect()
    }

    fn is_over(&self, run: &FleetRun) -> bool {
        run.copy().1.count("run.ended") == 1
    }

    fn performed(&self, run: &FleetRun) -> Vec<String> {
        let deeds = run.world.deeds();
        deeds.iter().map(|deed| deed.effect.to_string()).collect()
    }

    fn prompts(&self, run: &FleetRun) -> Vec<String> {
        let processes = run.processes.borrow();
        let heard = processes.iter().flat_map(|process| process.model.heard());
        heard
            .map(|prompt| serde_json::to_string(&prompt).unwrap())
            .collect()
    }

    fn crash(&self, run: &FleetRun, kept: usize) -> FleetRun {
        let (machine, whole) = run.copy();
        let cut = whole.cut(Cut {
            entries: kept,
            of_child: None,
        });
        let deeds = run.world.deeds().into_iter();
        let deeds = deeds.filter(|deed| cut.has_settled(deed)).collect();
        let crashed = self.apart(run.scenario.clone(), World::after(deeds));
        let crashed = self.planted(crashed, &cut, &machine.store);
        for message in run.sent.borrow().iter() {
            crashed.send(message.clone());
        }
        crashed
    }

    async fn resume(&self, run: &FleetRun) -> Result<(), String> {
        // The worker before is gone. That others find this out is tried elsewhere.
        run.drive(Wait::Dead).await
    }

    async fn resume_twice(&self, run: &FleetRun) -> [Result<(), String>; 2] {
        let (one, other) = tokio::join!(run.drive(Wait::No), run.drive(Wait::No));
        [one, other]
    }

    fn fork(&self, run: &FleetRun, cycle: u32) -> FleetRun {
        let (machine, _) = run.copy();
        let changes = ResumeChanges::default();
        let forked = machine
            .kernel
            .fork(run.id(), cycle, ForkInto::InPlace, changes);
        let id = forked.unwrap().ready.id();
        let mut scenario = run.scenario.clone();
        scenario.new.id = id;
        let fork = self.apart(scenario, run.world.clone());
        self.planted(fork, &Recording::read(&machine.store, id), &machine.store)
    }

    fn approve(&self, run: &FleetRun) {
        let (machine, recording) = run.copy();
        let id = || uuid::Uuid::now_v7().to_string();
        let message = |run: RunId, id: String, body: &str| FleetMessage {
            run,
            id,
            body: body.to_owned(),
        };
        // What nobody takes is not in the way of what follows.
        run.send(message(run.id(), "not an id".to_owned(), "hello"));
        run.send(message(RunId::new(), id(), "of a run that is nowhere"));
        run.send(message(run.id(), id(), "not what a person says"));
        let id = id();
        let body = machine.message(&id, approval(&recording));
        run.send(message(run.id(), id, &body));
    }
}

fn later() -> MachineTime {
    OsMachine.now() + LEASE / 2
}

fn blocking<T>(future: impl Future<Output = T>) -> T {
    block_in_place(|| Handle::current().block_on(future))
}

/// The part of a log that belongs to one handle: two of them may have a run with the same id.
struct Apart {
    log: Arc<dyn SharedLog>,
    name: String,
}

impl Apart {
    fn subject(&self, subject: &LogSubject) -> LogSubject {
        let (kind, rest) = subject.as_str().split_once('.').unwrap();
        LogSubject::new(&format!("{kind}.{}.{rest}", self.name)).unwrap()
    }
}

#[async_trait]
impl SharedLog for Apart {
    async fn append_if(
        &self,
        id: &MessageId,
        expected: u64,
        body: &Arc<[u8]>,
        until: MachineTime,
    ) -> AppendAnswer {
        let id = MessageId {
            subject: self.subject(&id.subject),
            ..id.clone()
        };
        self.log.append_if(&id, expected, body, until).await
    }

    async fn read_from(
        &self,
        subject: &LogSubject,
        after: u64,
        until: MachineTime,
    ) -> Result<Vec<StoredMessage>, LogUnreachable> {
        self.log
            .read_from(&self.subject(subject), after, until)
            .await
    }

    fn news(&self, subject: &LogSubject) -> watch::Receiver<u64> {
        self.log.news(&self.subject(subject))
    }
}
