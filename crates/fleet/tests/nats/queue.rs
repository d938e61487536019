//! The shared queue over a real server.

use std::{
    collections::BTreeSet,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::{Origin, Principal, Text};
use gyrus_fleet::{FleetQueue, LogSubject, Machine as _, OsMachine};
use gyrus_journal::Store;
use gyrus_runtime::ledger::Fold as _;
use gyrus_runtime::queue::{
    AtOnce, CommandQueue, CommandStage, Dispatcher, DrivingProcess, Gateway, QueueCommand,
    QueueWork, QueueWorker, SharedQueue as _, WorkerEnd, Workers,
};
use gyrus_runtime::request::RunRequest;
use tokio::sync::{mpsc, watch};

use crate::servers::Servers;

fn command(agent: &str, key: Option<String>) -> QueueCommand {
    let request = RunRequest::new(Text::new("a goal", Origin::Person), "/".into());
    let from = Principal {
        id: "tester".to_owned(),
        surface: "test".to_owned(),
    };
    let work = QueueWork::Start(Box::new(request));
    QueueCommand {
        key,
        ..QueueCommand::new(work, None, from, agent.to_owned())
    }
}

/// Begins and ends commands, and tells of it.
struct Recorder {
    begun: mpsc::UnboundedSender<(String, String)>,
    at_work: Arc<parking_lot::Mutex<BTreeSet<String>>>,
}

impl Workers for Recorder {
    fn start(&self, command: &QueueCommand) -> std::io::Result<DrivingProcess> {
        let (id, agent) = (command.id.clone(), command.agent.clone());
        let (begun, at_work) = (self.begun.clone(), Arc::clone(&self.at_work));
        Ok(Box::pin(async move {
            assert!(
                at_work.lock().insert(agent.clone()),
                "two runs of {agent} at once"
            );
            begun.send((id, agent.clone())).unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            at_work.lock().remove(&agent);
            WorkerEnd {
                // There is no run: the command ends with this.
                code: Some(2),
                said: String::new(),
            }
        }))
    }

    fn kill(&self, _: &QueueCommand) {}

    fn cannot_begin(&self, why: &str) {
        panic!("{why}");
    }

    fn ended(
        &self,
        _: &gyrus_journal::Holder,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// Number of facts after which the queue goes on under another subject.
const GENERATION: u64 = 20;

async fn shared(servers: &Servers) -> Arc<FleetQueue> {
    let (log, machine) = (servers.log().await, Arc::new(OsMachine));
    let queue = FleetQueue::open_shortened(log, machine, None, GENERATION).await;
    let queue = queue.unwrap();
    let follower = Arc::clone(&queue);
    tokio::spawn(async move { follower.follow().await });
    queue
}

/// A worker that has whatever is needed.
fn worker(number: u8) -> QueueWorker {
    QueueWorker {
        name: format!("worker-{number}"),
        machine: "here".to_owned(),
        build: "0.1.0".to_owned(),
        has: Arc::new(|_| true),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_a_queue_and_start_each_command_once() {
    let Some(servers) = Servers::start(1) else {
        return eprintln!("nats-server is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (begun, mut starts) = mpsc::unbounded_channel();
    let at_work = Arc::default();
    let (stop, stopping) = watch::channel(false);
    let mut dispatchers = Vec::new();
    for number in 0..6 {
        let gateway = Gateway::share(&store, shared(&servers).await, worker(number));
        let recorder = Recorder {
            begun: begun.clone(),
            at_work: Arc::clone(&at_work),
        };
        let at_once = AtOnce {
            in_all: 2,
            per_agent: 1,
        };
        let latch = gyrus_kernel::latch::Latch::of(folder.path());
        let dispatcher = Dispatcher::new(gateway, Arc::new(recorder), at_once, latch);
        let dispatching = tokio::spawn(dispatcher.run(stopping.clone()));
        dispatchers.push(dispatching);
    }
    let door = Gateway::share(&store, shared(&servers).await, worker(6));
    // One alone is begun soon.
    let submitted = Instant::now();
    door.submit(command("first", None)).await.unwrap();
    starts.recv().await.unwrap();
    eprintln!("begun after {:?}", submitted.elapsed());

    let mut wanted = BTreeSet::new();
    for number in 0..90 {
        if number % 40 == 0 {
            servers.disturb("queue.main").await;
            servers.disturb("queue.next").await;
        }
        let key = (number % 3 == 0).then(|| format!("key-{}", number / 6));
        let agent = format!("agent-{}", number % 7);
        let queued = door.submit(command(&agent, key)).await.unwrap();
        wanted.insert(queued.command.id.clone());
    }
    // Thirty had a key, and every two of them the same.
    assert_eq!(wanted.len(), 75);
    let mut seen = BTreeSet::new();
    while seen.len() < wanted.len() {
        let start = tokio::time::timeout(Duration::from_secs(30), starts.recv());
        let (id, _) = start.await.expect("a command never began").unwrap();
        assert!(seen.insert(id), "a command began twice");
    }
    assert_eq!(seen, wanted);
    let mut changes = door.changes();
    while door.with(|queue| queue.open()) > 0 {
        changes.changed().await.unwrap();
    }
    let ended = door.with(|queue| {
        let all = queue.all().into_iter();
        all.filter(|one| matches!(one.stage, CommandStage::Ended { .. }))
            .count()
    });
    assert_eq!(ended, 76);
    stop.send(true).unwrap();
    for dispatcher in dispatchers {
        dispatcher.await.unwrap().unwrap();
    }
    assert!(starts.try_recv().is_err(), "a command began twice");
    begins_with_what_matters(&servers, &door).await;
}

/// Checks that a worker which starts now knows what the others know, and has not read everything.
async fn begins_with_what_matters(servers: &Servers, door: &Gateway) {
    let log = servers.log().await;
    let names = LogSubject::new("queue.next").unwrap();
    let until = OsMachine.now() + Duration::from_secs(10);
    let subjects = log.read_from(&names, 0, until).await.unwrap();
    // 76 commands, three facts each.
    assert!(subjects.len() >= 3, "{}", subjects.len());
    let late = shared(servers).await;
    let facts = |queue: &CommandQueue| serde_json::to_value(queue.facts()).unwrap();
    let mut seen = None;
    late.look(&mut |queue| seen = Some(facts(queue)));
    assert_eq!(seen, Some(door.with(facts)));
    let first = LogSubject::new("queue.main").unwrap();
    let first = log.read_from(&first, 0, until).await.unwrap();
    assert!(first.len() < 100, "{}", first.len());
}
