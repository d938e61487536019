//! One run of the whole: servers, workers, runs, faults, and then the checks.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use fastrand::Rng;
use gyrus_fleet::{
    FleetQueue, OsMachine, SharedLog,
    nats::{FleetAddress, FleetConnection, NatsLog, prepare_streams},
};
use gyrus_journal::Store;
use gyrus_runtime::queue::{CommandStage, Gateway, QueueError, QueueWorker};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    answers,
    appends::{self, History},
    check::{self, Evidence, effects, mistakes, run, takeovers::Circumstances},
    faults::Faults,
    harms::Harms,
    options::Options,
    proxy::Link,
    reader::{self, Recorder},
    report::{Appends, Report},
    runs::{self, Submitted},
    servers::Servers,
    workers::{WorkerMachine, WorkerSettings, kill_all, processes_of},
};

/// Number of writers of the workload of appends.
const APPENDERS: usize = 3;

/// Time after which runs of which nothing is heard are stuck: longer than the rests of commands whose
/// processes died.
const STUCK: Duration = Duration::from_secs(180);

/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Interval between two words about how far it is.
const TELL: Duration = Duration::from_secs(30);

/// The folder of everything, whose processes end with this.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        kill_all(&self.0.join("worker"));
    }
}

/// Lives everything; returns whether all held.
pub(crate) async fn live(options: Options) -> anyhow::Result<bool> {
    let folder = tempfile::Builder::new().prefix("gyrus-faults-").tempdir()?;
    let folder = Folder(folder.keep());
    let lived = tokio::select! {
        lived = live_in(&folder.0, &options) => lived,
        ended = interrupted() => ended.and_then(|()| bail!("it was interrupted")),
    };
    // What is killed at last is killed here, whatever the reason.
    kill_all(&folder.0.join("worker"));
    let mut report = lived.with_context(|| format!("everything is in {}", folder.0.display()))?;
    report.left_over = left_over(&folder.0).await;
    if report.left_over > 0 {
        report.wrong.push("processes outlived the test".to_owned());
    }
    print!("{}", report.text());
    if report.wrong.is_empty() {
        fs::remove_dir_all(&folder.0)?;
        return Ok(true);
    }
    fs::write(folder.0.join("wrong.txt"), report.wrong.join("\n"))?;
    println!("everything is in {}", folder.0.display());
    Ok(false)
}

async fn interrupted() -> anyhow::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminated.recv() => {}
    }
    Ok(())
}

/// Returns the number of processes that did not end.
async fn left_over(folder: &Path) -> usize {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let left = processes_of(&folder.join("worker")).len();
        if left == 0 || Instant::now() > until {
            return left;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Everything that lives.
struct World {
    servers: Arc<Servers>,
    workers: Vec<Arc<WorkerMachine>>,
    keeping: JoinSet<anyhow::Result<()>>,
    appending: JoinSet<()>,
    history: Arc<History>,
    over: Arc<AtomicBool>,
    others: Arc<Vec<Vec<Link>>>,
    harms: Arc<Harms>,
    recorder: Arc<Recorder>,
    recording: JoinSet<()>,
    gateway: Gateway,
}

async fn live_in(folder: &Path, options: &Options) -> anyhow::Result<Report> {
    let mut rng = Rng::with_seed(options.seed);
    let lease = options.lease().map_err(anyhow::Error::msg)?;
    fs::create_dir_all(folder.join("person"))?;
    let mut world = World::begin(folder, options, &mut rng).await?;
    let began = Instant::now();
    let calls = Arc::new(AtomicUsize::new(usize::MAX));
    let (recorder, wanted) = (Arc::clone(&world.recorder), Arc::clone(&calls));
    let faults = Arc::new(Faults {
        servers: Arc::clone(&world.servers),
        workers: world.workers.clone(),
        others: Arc::clone(&world.others),
        harms: Arc::clone(&world.harms),
        lease,
        progress: Box::new(move || {
            recorder.results() as f64 / wanted.load(Ordering::Relaxed).max(1) as f64
        }),
        over: AtomicBool::new(false),
        record: Mutex::default(),
    });
    // The estimate of all calls, until the number is known.
    calls.store(options.runs * options.steps, Ordering::Relaxed);
    let lanes = faults.begin(options.faults, &mut rng);
    let mut submitted = Vec::new();
    let mut number_of_calls = 0;
    for number in 0..options.runs {
        let put = runs::submit(number, options.steps, folder, &world.gateway, &mut rng).await;
        let (run, calls) = put.context("a run cannot be put into the queue")?;
        submitted.push(run);
        number_of_calls += calls;
    }
    calls.store(number_of_calls, Ordering::Relaxed);
    let is_stuck = world.wait(options, began, &faults).await?;
    let seconds = began.elapsed().as_secs_f64();
    faults.over.store(true, Ordering::Relaxed);
    for lane in lanes {
        lane.await??;
    }
    world.over.store(true, Ordering::Relaxed);
    while world.appending.join_next().await.is_some() {}
    let evidence = world.evidence(submitted).await?;
    world.end().await?;
    let record = faults.record();
    fs::write(folder.join("faults.json"), serde_json::to_string(&record)?)?;
    let mut report = checked(&evidence, &world, &record, options)?;
    if is_stuck {
        report
            .wrong
            .push("the runs do not get any further".to_owned());
    }
    report.seconds = seconds;
    report.asked = (options.runs, number_of_calls, options.workers);
    report.faults = faults.by_kind();
    report.wanted = wanted_and_done(&report, options);
    Ok(report)
}

fn wanted_and_done(report: &Report, options: &Options) -> [(&'static str, u64, u64); 3] {
    let count = |is_one: fn(&str) -> bool| {
        let kinds = report.faults.iter();
        kinds
            .filter(|(kind, _)| is_one(kind))
            .map(|(_, count)| count)
            .sum()
    };
    let is_partition = |kind: &str| kind.contains(':');
    let is_server = |kind: &str| kind.contains("server") && !kind.contains(':');
    let is_worker = |kind: &str| !kind.contains("server") && !kind.contains(':');
    [
        (
            "workers killed or stopped",
            count(is_worker),
            options.faults.workers,
        ),
        (
            "servers killed or stopped",
            count(is_server),
            options.faults.servers,
        ),
        ("partitions", count(is_partition), options.faults.partitions),
    ]
}

impl World {
    async fn begin(folder: &Path, options: &Options, rng: &mut Rng) -> anyhow::Result<Self> {
        let servers = Arc::new(Servers::start(&options.nats, folder).await?);
        let direct = servers.address(&servers.client_ports());
        let log = prepared(&direct).await?;
        let queue = FleetQueue::open(Arc::clone(&log), Arc::new(OsMachine), None).await?;
        let mut recording = JoinSet::new();
        let following = Arc::clone(&queue);
        recording.spawn(async move { following.follow().await });
        let client = QueueWorker {
            name: "client".to_owned(),
            machine: "client".to_owned(),
            has: Arc::new(|_| false),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let store = Store::open(&folder.join("client"))?;
        let gateway = Gateway::share(&store, queue, client);
        let asked = Store::open(&folder.join("asked"))?;
        recording.spawn(answers::answer(gateway.clone(), log, asked));
        let recorder = Arc::new(Recorder::default());
        let (recorded, client) = (Arc::clone(&recorder), servers.client().await?);
        recording.spawn(async move { recorded.record(&client).await });

        let harms = Arc::new(Harms::default());
        let settings = WorkerSettings {
            program: options.gyrus.clone(),
            folder: folder.to_owned(),
            lease: options.lease.clone(),
            at_once: options.at_once,
        };
        let mut workers = Vec::new();
        let mut keeping = JoinSet::new();
        for number in 0..options.workers {
            let (settings, harms) = (settings.clone(), Arc::clone(&harms));
            let worker = WorkerMachine::new(number, &servers, settings, harms).await?;
            let kept = Arc::clone(&worker);
            keeping.spawn(async move { kept.keep().await });
            workers.push(worker);
        }
        let (history, over) = (Arc::default(), Arc::default());
        let mut appending = JoinSet::new();
        let mut others = Vec::new();
        for _ in 0..APPENDERS {
            let mut links = Vec::new();
            for port in servers.client_ports() {
                links.push(Link::open(port).await?);
            }
            let ports: Vec<u16> = links.iter().map(|link| link.port).collect();
            let log = connect(&servers.address(&ports)).await?;
            let (history, over) = (Arc::clone(&history), Arc::clone(&over));
            appending.spawn(appends::write(log, history, over, rng.u64(..)));
            others.push(links);
        }
        Ok(Self {
            servers,
            workers,
            keeping,
            appending,
            history,
            over,
            others: Arc::new(others),
            harms,
            recorder,
            recording,
            gateway,
        })
    }

    /// Waits until all commands are over; returns whether they are stuck.
    async fn wait(
        &mut self,
        options: &Options,
        began: Instant,
        faults: &Faults,
    ) -> anyhow::Result<bool> {
        let runs = options.runs;
        let mut within = options.within;
        let heard = AtomicU64::new(0);
        let (mut last, mut told) = (Instant::now(), Instant::now());
        loop {
            let open = self.gateway.with(|queue| queue.open());
            if open == 0 {
                return Ok(false);
            }
            let results = self.recorder.results() + u64::try_from(runs - open)?;
            if heard.swap(results, Ordering::Relaxed) != results {
                last = Instant::now();
            }
            if last.elapsed() > STUCK {
                return Ok(true);
            }
            if within.is_some_and(|within| began.elapsed() > within) {
                within = None;
                faults.over.store(true, Ordering::Relaxed);
                self.take_back().await?;
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                println!(
                    "{:.0} s: {} calls, {} runs over",
                    began.elapsed().as_secs_f64(),
                    self.recorder.results(),
                    runs - open
                );
            }
            tokio::select! {
                Some(kept) = self.keeping.join_next() => {
                    kept??;
                    bail!("a worker is kept at work no longer");
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Takes back what waits for its turn.
    async fn take_back(&self) -> anyhow::Result<()> {
        let waiting: Vec<String> = self.gateway.with(|queue| {
            let all = queue.all().into_iter();
            let waiting = all.filter(|one| matches!(one.stage, CommandStage::Queued));
            waiting.map(|one| one.command.id.clone()).collect()
        });
        for id in waiting {
            match self.gateway.cancel(&id, runs::person()).await {
                Ok(()) | Err(QueueError::Begun { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what the servers have.
    async fn evidence(&self, runs: Vec<Submitted>) -> anyhow::Result<Evidence> {
        let client = self.servers.client().await?;
        let seen = self.recorder.seen();
        let mut streams = std::collections::BTreeMap::new();
        for stream in reader::STREAMS {
            streams.insert(stream, reader::read_all(&client, stream).await?);
        }
        Ok(Evidence {
            streams,
            seen,
            history: self.history.all(),
            runs,
        })
    }

    /// Ends all processes.
    async fn end(&mut self) -> anyhow::Result<()> {
        for worker in &self.workers {
            worker.end();
        }
        while let Some(kept) = self.keeping.join_next().await {
            kept??;
        }
        for worker in &self.workers {
            worker.end();
        }
        self.recording.abort_all();
        Ok(())
    }
}

async fn connect(address: &str) -> anyhow::Result<Arc<dyn SharedLog>> {
    let address = FleetAddress::parse(address)?;
    let connection = FleetConnection::open(&address).await?;
    Ok(Arc::new(NatsLog::new(connection)))
}

/// Returns the log once the servers are a cluster and have the streams.
async fn prepared(address: &str) -> anyhow::Result<Arc<dyn SharedLog>> {
    let until = Instant::now() + Duration::from_secs(60);
    let address = FleetAddress::parse(address)?;
    loop {
        let why = match FleetConnection::open(&address).await {
            Ok(connection) => match prepare_streams(&connection).await {
                Ok(()) => return Ok(Arc::new(NatsLog::new(connection))),
                Err(error) => anyhow::Error::from(error),
            },
            Err(error) => anyhow::Error::from(error),
        };
        if Instant::now() > until {
            return Err(why.context("the servers are not ready"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Compares everything with everything.
fn checked(
    evidence: &Evidence,
    world: &World,
    faults: &[Value],
    options: &Options,
) -> anyhow::Result<Report> {
    let mut report = Report {
        seed: options.seed,
        seen: evidence.seen.len(),
        ..Report::default()
    };
    for stream in reader::STREAMS {
        let messages = evidence.of(stream);
        report.messages.insert(stream, messages.len());
        let wrong = check::streams::check(stream, messages, &evidence.seen);
        report.wrong.extend(wrong);
    }
    let (wrong, commands) = check::queue::check(&evidence.runs, evidence.of("queue"));
    report.wrong.extend(wrong);
    report.commands = commands;
    report.appends = numbers(evidence);
    let wrong = check::appends::check(&evidence.history, evidence.of("inbox"));
    report.wrong.extend(wrong);

    let folder = tempfile::tempdir_in(run::copies_folder())?;
    let copies = Store::open(folder.path())?;
    let mut by_subject = std::collections::BTreeMap::<&str, Vec<_>>::new();
    for message in evidence.of("runs") {
        by_subject
            .entry(&message.subject)
            .or_default()
            .push(message);
    }
    let mut takeovers = Vec::new();
    for submitted in &evidence.runs {
        let subject = gyrus_fleet::run_subject(submitted.run, submitted.run);
        let messages = by_subject.remove(subject.as_str()).unwrap_or_default();
        let ledger = match effects::ledger(submitted) {
            Ok(ledger) => ledger,
            Err(why) => {
                report.wrong.push(why);
                continue;
            }
        };
        let (wrong, findings) = run::check(submitted, &messages, &ledger, &copies);
        report.wrong.extend(wrong);
        report.add(&findings);
        if report.commands.reached.contains(&submitted.id) && !findings.is_over {
            let run = submitted.run;
            report.wrong.push(format!(
                "run {run} is said to have reached its goal, and its log has no end"
            ));
        }
        takeovers.extend(findings.takeovers);
    }
    for subject in by_subject.keys() {
        report
            .wrong
            .push(format!("nobody asked for the run {subject}"));
    }
    let circumstances = Circumstances {
        harms: &world.harms,
        workers: options.workers,
        lease: options.lease().map_err(anyhow::Error::msg)?,
        messages: evidence.of("runs"),
        faults,
    };
    let (wrong, times) = check::takeovers::check(&takeovers, &circumstances);
    report.wrong.extend(wrong);
    report.times = times;
    report.mistakes = mistakes::check(evidence)?;
    for (mistake, found) in &report.mistakes {
        if *found == Some(false) {
            report
                .wrong
                .push(format!("the checks do not find {mistake}"));
        }
    }
    let sum = |count: fn(&WorkerMachine) -> &AtomicU64| {
        let counts = world.workers.iter();
        counts
            .map(|worker| count(worker).load(Ordering::Relaxed))
            .sum()
    };
    report.worker_starts = (sum(|worker| &worker.starts), sum(|worker| &worker.refused));
    Ok(report)
}

fn numbers(evidence: &Evidence) -> Appends {
    let mut numbers = Appends {
        messages: evidence.history.len(),
        ..Appends::default()
    };
    for attempted in &evidence.history {
        numbers.stored += attempted.stored.len();
        numbers.refused += attempted.refused as usize;
        numbers.unknown += attempted.unknown as usize;
        numbers.stale += usize::from(attempted.is_stale);
    }
    numbers
}
