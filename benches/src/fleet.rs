//! A fleet on this machine: from submitting a run to its first step, the rate of one worker and of
//! eight where steps wait for their model, what a step costs beside a step at home, and a queue with
//! many workers.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    pin::Pin,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::post,
};
use gyrus_contract::{DEFAULT_AGENT, Mode, Origin, Principal, Text};
use gyrus_fleet::{
    FleetQueue, OsMachine,
    nats::{FleetAddress, FleetConnection, LocalServer, NatsLog, ServerOptions, prepare_streams},
};
use gyrus_journal::{Holder, Store};
use gyrus_kernel::latch::Latch;
use gyrus_runtime::queue::{
    AtOnce, Dispatcher, DrivingProcess, Gateway, QueueCommand, QueueWork, QueueWorker, WorkerEnd,
    Workers,
};
use gyrus_runtime::request::{Approve, RunRequest, ScreenWord};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

use crate::{Row, provider::call, row, start::gyrus};

/// Time that the model takes for each answer where the rate is measured.
const THINKS: Duration = Duration::from_millis(50);

/// Runs, one after the other, whose first step is waited for.
const FIRST_STEPS: usize = 20;

/// Steps of a run where the rate is measured, and runs for each worker.
const STEPS: usize = 20;
const RUNS: usize = 6;

/// Steps of a run whose processor time is measured, and rounds.
const LONG: usize = 200;
const ROUNDS: usize = 5;

/// Commands and workers of the large queue.
const COMMANDS: usize = 10_000;
const WORKERS: usize = 100;

const TOKEN: &str = "secret-of-the-benchmark";

/// A model that calls a tool as often as its name says, and finishes.
struct Models {
    answered: Mutex<HashMap<String, usize>>,
    asked: mpsc::UnboundedSender<(String, Instant)>,
}

#[derive(Deserialize)]
struct Request {
    model: String,
}

async fn answer(State(models): State<Arc<Models>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request>(&body) else {
        return axum::http::StatusCode::BAD_REQUEST.into_response();
    };
    let number = {
        let mut answered = models.answered.lock();
        let number = answered.entry(request.model.clone()).or_default();
        *number += 1;
        *number
    };
    let _ = models.asked.send((request.model.clone(), Instant::now()));
    // "NAME-THINKS-STEPS"
    let mut parts = request.model.rsplit('-');
    let steps = parts
        .next()
        .and_then(|steps| steps.parse().ok())
        .unwrap_or(0);
    let thinks = parts.next().and_then(|ms| ms.parse().ok()).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(thinks)).await;
    let stream = if number < steps {
        let content = format!("line {number} of a note, as a model may write one\n");
        call(
            "write",
            json!({ "path": format!("note-{}.txt", number % 10), "content": content }),
        )
    } else {
        call("finish", json!({ "reached": true, "answer": "done" }))
    };
    ([(CONTENT_TYPE, "text/event-stream")], stream).into_response()
}

/// A fleet with one server, and a model.
struct Fleet {
    folder: tempfile::TempDir,
    server: LocalServer,
    models: String,
    asked: mpsc::UnboundedReceiver<(String, Instant)>,
    door: Gateway,
    named: AtomicUsize,
}

/// A process of the program. Dropping it kills it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Fleet {
    async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let server = server(folder.path())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let models = format!("http://{}/v1", listener.local_addr()?);
        let (sender, asked) = mpsc::unbounded_channel();
        let state = Models {
            answered: Mutex::default(),
            asked: sender,
        };
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::new(state));
        tokio::spawn(async { axum::serve(listener, router).await });
        let store = Store::open(&folder.path().join("door"))?;
        let door = Gateway::share(&store, queue(&server).await?, worker("door"));
        Ok(Self {
            folder,
            server,
            models,
            asked,
            door,
            named: AtomicUsize::new(0),
        })
    }

    /// Returns gyrus with a home of its own.
    fn command(&self, home: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(gyrus()?);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("GYRUS_HOME", self.folder.path().join(home))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(command)
    }

    /// Starts a worker, and returns when it takes runs.
    fn worker(&self, name: &str) -> anyhow::Result<Process> {
        let mut child = self
            .command(name)?
            .args([
                "worker",
                "--at-once",
                "1",
                "--fleet",
                &self.server.address(),
            ])
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take();
        let process = Process(child);
        let mut line = String::new();
        BufReader::new(stderr.ok_or_else(|| anyhow::anyhow!("it says nothing"))?)
            .read_line(&mut line)?;
        anyhow::ensure!(
            line.contains("takes runs"),
            "a worker says: {line} (build it with: cargo build --profile dist)"
        );
        Ok(process)
    }

    /// Returns the name of a model that nobody has used, and a folder for its run.
    fn model(&self, thinks: Duration, steps: usize) -> anyhow::Result<(String, PathBuf)> {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(format!("work-{number}"));
        fs::create_dir(&folder)?;
        Ok((format!("m{number}-{}-{steps}", thinks.as_millis()), folder))
    }

    /// Submits a run; returns the name of its model.
    async fn submit(&self, thinks: Duration, steps: usize) -> anyhow::Result<String> {
        let (model, folder) = self.model(thinks, steps)?;
        let mut request = RunRequest::new(Text::new("write a note", Origin::Person), folder);
        let flags = &mut request.options.flags;
        flags.model.names = vec![format!("{}#{model}", self.models)];
        flags.approvals.approve = Some(Approve::Mode(Mode::Auto));
        flags.screen.screen = Some(ScreenWord::None);
        flags.limits.max_steps = Some(1_000);
        self.door
            .submit(new_command(request, DEFAULT_AGENT))
            .await?;
        Ok(model)
    }

    /// Waits until no command is open.
    async fn done(&self) -> anyhow::Result<()> {
        let mut changes = self.door.changes();
        while self.door.with(|queue| queue.open()) > 0 {
            changes.changed().await?;
        }
        Ok(())
    }
}

fn server(folder: &Path) -> anyhow::Result<LocalServer> {
    let found = std::env::current_dir()?.join("target/nats-server/bin/nats-server");
    anyhow::ensure!(found.exists(), "install the server first: cargo xtask test");
    let options = ServerOptions {
        program: found,
        folder: folder.join("server"),
        name: "bench".to_owned(),
        port: None,
        token: Some(TOKEN.to_owned()),
        more: String::new(),
        syncs_always: true,
    };
    Ok(LocalServer::start(&options)?)
}

fn worker(name: &str) -> QueueWorker {
    QueueWorker {
        name: name.to_owned(),
        machine: "here".to_owned(),
        build: "0.1.0".to_owned(),
        has: Arc::new(|_| true),
    }
}

fn new_command(request: RunRequest, agent: &str) -> QueueCommand {
    let from = Principal {
        surface: "benchmark".to_owned(),
        id: "bench".to_owned(),
    };
    QueueCommand::new(
        QueueWork::Start(Box::new(request)),
        None,
        from,
        agent.to_owned(),
    )
}

/// Returns the fleet's queue over a connection of its own, kept up to date.
async fn queue(server: &LocalServer) -> anyhow::Result<Arc<FleetQueue>> {
    let address = FleetAddress::parse(&server.address())?;
    let connection = FleetConnection::open(&address).await?;
    prepare_streams(&connection).await?;
    let log = Arc::new(NatsLog::new(connection));
    let queue = FleetQueue::open(log, Arc::new(OsMachine), None).await?;
    let follower = Arc::clone(&queue);
    tokio::spawn(async move { follower.follow().await });
    Ok(queue)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?)
}

/// The first step, the rate, and the cost of a step.
pub(crate) fn runs() -> anyhow::Result<Vec<Row>> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut fleet = Fleet::start().await?;
        let first = first_steps(&mut fleet).await?;
        let rate = rates(&fleet).await?;
        let cost = cost(&fleet).await?;
        Ok(vec![first, rate, cost])
    })
}

async fn first_steps(fleet: &mut Fleet) -> anyhow::Result<Row> {
    let _worker = fleet.worker("first")?;
    let mut times = Vec::new();
    // The first run reads the binary from the disk and does not count.
    for _ in 0..=FIRST_STEPS {
        let since = Instant::now();
        let model = fleet.submit(Duration::ZERO, 1).await?;
        let asked = loop {
            match fleet.asked.recv().await {
                Some((name, at)) if name == model => break at,
                Some(_) => {}
                None => anyhow::bail!("the model is gone"),
            }
        };
        times.push(asked.duration_since(since));
        fleet.done().await?;
    }
    times.remove(0);
    times.sort_unstable();
    Ok(row(
        "from submitting a run to an empty queue to its first request at the model (median, slowest of 20)",
        format!(
            "{:.0} ms, {:.0} ms",
            times[FIRST_STEPS / 2].as_secs_f64() * 1e3,
            times[FIRST_STEPS - 1].as_secs_f64() * 1e3
        ),
        "≤ 200 ms",
    ))
}

async fn rates(fleet: &Fleet) -> anyhow::Result<Row> {
    let one = rate(fleet, 1).await?;
    let eight = rate(fleet, 8).await?;
    Ok(row(
        format!(
            "rate of eight workers beside one, steps that wait {} ms for their model",
            THINKS.as_millis()
        ),
        format!("{:.1}× ({eight:.1} beside {one:.1} steps/s)", eight / one),
        "≥ 5×",
    ))
}

/// Returns the steps a second of this many workers, one run at a time each.
async fn rate(fleet: &Fleet, workers: usize) -> anyhow::Result<f64> {
    let names = (0..workers).map(|number| format!("rate-{workers}-{number}"));
    let processes: Vec<_> = names
        .map(|name| fleet.worker(&name))
        .collect::<Result<_, _>>()?;
    let since = Instant::now();
    for _ in 0..workers * RUNS {
        fleet.submit(THINKS, STEPS).await?;
    }
    fleet.done().await?;
    let took = since.elapsed();
    drop(processes);
    Ok((workers * RUNS * STEPS) as f64 / took.as_secs_f64())
}

/// Processor time of a step in a fleet and at home, in turns.
async fn cost(fleet: &Fleet) -> anyhow::Result<Row> {
    let worker = fleet.worker("cost")?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = children_ms(worker.0.id())?;
        fleet.submit(Duration::ZERO, LONG).await?;
        fleet.done().await?;
        ours.push((children_ms(worker.0.id())? - before) / LONG as f64);

        let (model, folder) = fleet.model(Duration::ZERO, LONG)?;
        let model = format!("{}#{model}", fleet.models);
        let before = children_ms(std::process::id())?;
        let mut command = fleet.command("alone")?;
        command
            .args([
                "run",
                "write a note",
                "--approve",
                "auto",
                "--screen",
                "none",
            ])
            .args([
                "--max-steps",
                "1000",
                "--json",
                "--model",
                &model,
                "--workdir",
            ])
            .arg(&folder)
            .stderr(Stdio::null());
        let status = tokio::task::spawn_blocking(move || command.status()).await??;
        anyhow::ensure!(status.success(), "a run at home ended with {status}");
        theirs.push((children_ms(std::process::id())? - before) / LONG as f64);
    }
    ours.sort_unstable_by(f64::total_cmp);
    theirs.sort_unstable_by(f64::total_cmp);
    let (ours, theirs) = (ours[ROUNDS / 2], theirs[ROUNDS / 2]);
    Ok(row(
        "processor time of a step beside one at home (medians of 5 runs of 200 steps)",
        format!("{:+.2} ms ({ours:.2} beside {theirs:.2} ms)", ours - theirs),
        "≤ +1.5 ms",
    ))
}

/// Returns the processor time of the children of a process that it has waited for, in milliseconds.
fn children_ms(pid: u32) -> anyhow::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat
        .rsplit_once(')')
        .ok_or_else(|| anyhow::anyhow!("unreadable: {stat}"))?;
    // Fields 16 and 17 of all, in hundredths of a second.
    let ticks = fields.split_whitespace().skip(13).take(2);
    let ticks: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Ok(ticks * 10.0)
}

/// Workers whose processes are over at once, and that count what they start.
struct Counted(mpsc::UnboundedSender<String>);

impl Workers for Counted {
    fn start(&self, command: &QueueCommand) -> std::io::Result<DrivingProcess> {
        let _ = self.0.send(command.id.clone());
        Ok(Box::pin(std::future::ready(WorkerEnd {
            // There is no run: the command ends with this.
            code: Some(2),
            said: String::new(),
        })))
    }

    fn kill(&self, _: &QueueCommand) {}

    fn cannot_begin(&self, _: &str) {}

    fn ended(&self, _: &Holder) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// Many commands, many workers, one queue.
pub(crate) fn queued() -> anyhow::Result<Vec<Row>> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let server = server(folder.path())?;
        let store = Store::open(&folder.path().join("store"))?;
        let (begun, mut starts) = mpsc::unbounded_channel();
        let (stop, stopping) = watch::channel(false);
        let mut dispatching = Vec::new();
        for number in 0..WORKERS {
            let name = worker(&format!("worker-{number}"));
            let gateway = Gateway::share(&store, queue(&server).await?, name);
            let limits = AtOnce {
                in_all: 4,
                per_agent: usize::MAX,
            };
            let latch = Latch::of(folder.path());
            let counted = Arc::new(Counted(begun.clone()));
            let dispatcher = Dispatcher::new(gateway, counted, limits, latch);
            dispatching.push(tokio::spawn(dispatcher.run(stopping.clone())));
        }
        let door = Gateway::share(&store, queue(&server).await?, worker("door"));
        let since = Instant::now();
        for number in 0..COMMANDS {
            let goal = Text::new("a goal", Origin::Person);
            let request = RunRequest::new(goal, PathBuf::from("/"));
            door.submit(new_command(request, &format!("agent-{}", number % 20)))
                .await?;
        }
        let submitted = since.elapsed();
        let mut changes = door.changes();
        while door.with(|queue| queue.open()) > 0 {
            changes.changed().await?;
        }
        let took = since.elapsed();
        stop.send(true)?;
        for one in dispatching {
            one.await??;
        }
        let mut times: HashMap<String, usize> = HashMap::new();
        while let Ok(id) = starts.try_recv() {
            *times.entry(id).or_default() += 1;
        }
        let twice = times.values().filter(|count| **count > 1).count();
        Ok(vec![row(
            format!("{COMMANDS} commands, {WORKERS} workers in one process: begun, begun twice"),
            format!(
                "{} and {twice}; submitted in {:.0} s, all over after {:.0} s",
                times.len(),
                submitted.as_secs_f64(),
                took.as_secs_f64()
            ),
            "10,000 and 0",
        )])
    })
}
