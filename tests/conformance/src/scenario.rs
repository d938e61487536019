//! A task, and benches to run it on: each with a fresh store and kernel, as a fresh process has.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use gyrus_contract::{CommandReading, MessageBody};
use gyrus_contract::{Mode, Origin, Price, Principal, RunId, SurfaceMessage, Text, Tool};
use gyrus_gate::{
    OwnPaths, PolicyGate,
    policy::{self, LineReader, Policy},
};
use gyrus_journal::{Error, LockWait, Replicas, Store};
use gyrus_kernel::{
    DrivableRun, DriveResult, Kernel, KernelError, LoopFactory, NewRun, Organs, QUESTIONS_LAST,
    ResumeChanges, SingleModel, log_name,
    redact::{Redactor, Secret},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    recording::Recording,
    script::{Script, Scripted},
    workflow,
    world::{Deed, World},
};

/// Hashes secrets' names; a fixed one, so that recordings are comparable.
const REDACTION_KEY: [u8; 32] = [7; 32];

/// A busy machine may take this long to end a flush; nothing waits so long when it works.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A task and everything that decides how it goes.
#[derive(Clone)]
pub struct Scenario {
    /// For messages of failing tests.
    pub name: String,
    /// Start of the run.
    pub new: NewRun,
    /// Replies of the model.
    pub script: Script,
    /// Price of the model.
    pub price: Option<Price>,
    /// Context window of the model, in tokens.
    pub window: Option<u64>,
    /// Time for which an answer to a question counts.
    pub questions_last: Duration,
    /// The rules of the person's policy, as TOML.
    pub policy: &'static str,
    /// Redactor of secrets.
    redactor: Arc<Redactor>,
    /// Tools of its runs in the world.
    pub tools: fn(&World) -> Vec<Arc<dyn Tool>>,
    /// Loops of its runs.
    pub loops: LoopFactory,
    #[expect(dead_code, reason = "the folder lives as long as the last clone")]
    workspace: Arc<TempDir>,
}

impl Scenario {
    /// A task for the loop `cognitive_loop`, with a model that plays `script`.
    pub fn new(cognitive_loop: &str, script: Script) -> Self {
        let workspace = scratch();
        let real = workspace.path().canonicalize().expect("it was just made");
        Self {
            name: cognitive_loop.to_owned(),
            new: NewRun {
                mode: Mode::Edits,
                ..NewRun::new(
                    Text::new("bring the world into order", Origin::Person),
                    cognitive_loop,
                    json!({ "strategy": "react" }),
                    real,
                )
            },
            script,
            price: None,
            window: None,
            questions_last: QUESTIONS_LAST,
            policy: "",
            redactor: without_secrets(),
            tools: World::tools,
            loops: workflow::factory(),
            workspace: Arc::new(workspace),
        }
    }

    /// Under another name in messages.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// With this configuration of the loop.
    #[must_use]
    pub fn configured(mut self, config: Value) -> Self {
        self.new.loop_config = config;
        self
    }

    /// With these configured secrets.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Vec<Secret>) -> Self {
        self.redactor = Arc::new(Redactor::new(REDACTION_KEY, secrets));
        self
    }

    /// With these loops beside the usual ones.
    #[must_use]
    pub fn thinking(mut self, loops: LoopFactory) -> Self {
        self.loops = loops;
        self
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.new.id
    }

    /// A bench where nothing has happened yet.
    pub fn bench(&self) -> Bench {
        self.bench_in(World::after(Vec::new()))
    }

    /// A bench over a world that this run's earlier processes left behind.
    pub fn bench_after(&self, deeds: Vec<Deed>) -> Bench {
        self.bench_in(World::after(deeds))
    }

    /// A bench over this world, on a machine of its own.
    pub fn bench_in(&self, world: World) -> Bench {
        let home = scratch();
        let store = Store::open(&home.path().join("state")).expect("a fresh folder is a store");
        Bench::new(self.clone(), Arc::new(home), store, world)
    }
}

/// A policy under which a person is asked before anything is changed.
pub const ASKS: &str = r#"
    [[rule]]
    decide = "ask"
    why = "the person wants to be asked"
    tool = ["append", "put", "hold"]
"#;

fn gate(scenario: &Scenario, home: &Path) -> PolicyGate {
    let origin = policy::PolicyOrigin {
        file: "policy.toml".into(),
        may_loosen: true,
        home: None,
    };
    let lines = LineReader {
        workspace: &scenario.new.workspace,
        read: &|_| CommandReading::default(),
    };
    let policy = Policy::parse(scenario.policy, &origin, lines).expect("the policy is good");
    PolicyGate::new(OwnPaths {
        own: vec![home.join("state")],
        person: None,
    })
    .under(policy)
}

/// One for all tests that configure none: making it takes longer than many a test.
fn without_secrets() -> Arc<Redactor> {
    static SHARED: OnceLock<Arc<Redactor>> = OnceLock::new();
    SHARED
        .get_or_init(|| Arc::new(Redactor::new(REDACTION_KEY, Vec::new())))
        .clone()
}

/// A folder in memory where there is one: a test waits for the disk hundreds of times.
fn scratch() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let made = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    made.expect("there is a folder for temporary files")
}

/// One process of a scenario: a kernel over a store, with its own model in front of a world.
pub struct Bench {
    /// The scenario that is played.
    pub scenario: Scenario,
    /// Store of the runs.
    pub store: Store,
    /// The world that tools act on.
    pub world: World,
    /// The model that is asked.
    pub model: Arc<Scripted>,
    /// The kernel that drives the runs.
    pub kernel: Kernel,
    home: Arc<TempDir>,
}

impl Bench {
    fn new(scenario: Scenario, home: Arc<TempDir>, store: Store, world: World) -> Self {
        let model = Arc::new(Scripted::new(
            scenario.script.clone(),
            scenario.price,
            scenario.window,
        ));
        let mut organs = Organs::new(
            Arc::new(SingleModel(model.clone())),
            (scenario.tools)(&world),
            Arc::new(gate(&scenario, home.path())),
            scenario.redactor.clone(),
            scenario.loops.clone(),
        );
        organs.questions_last = scenario.questions_last;
        let kernel = Kernel::new(store.clone(), organs);
        Self {
            scenario,
            store,
            world,
            model,
            kernel,
            home,
        }
    }

    /// Another process over the same store and world.
    pub fn again(&self) -> Self {
        self.again_as(self.scenario.clone())
    }

    /// Another process with other code or another model.
    pub fn again_as(&self, scenario: Scenario) -> Self {
        Self::new(
            scenario,
            self.home.clone(),
            self.store.clone(),
            self.world.clone(),
        )
    }

    /// The same process, whose logs are also kept by these replicas.
    pub fn replicated(&self, replicas: Arc<dyn Replicas>) -> Self {
        Self::new(
            self.scenario.clone(),
            self.home.clone(),
            self.store.clone().with_replicas(replicas),
            self.world.clone(),
        )
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.scenario.run()
    }

    /// Creates the run.
    pub fn create(&self) -> DrivableRun {
        self.kernel
            .create(self.scenario.new.clone())
            .expect("the run can be created")
    }

    /// Takes the run up as it is.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn take(&self) -> Result<DrivableRun, KernelError> {
        self.kernel
            .take(self.run(), LockWait::IfFree, ResumeChanges::default())
    }

    /// Starts the run and drives it until it ends or parks.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn start(&self) -> Result<DriveResult, KernelError> {
        self.create().drive().await
    }

    /// Takes the run up and drives it until it ends or parks.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn resume(&self) -> Result<DriveResult, KernelError> {
        self.resume_with(ResumeChanges::default()).await
    }

    /// As [`resume`](Self::resume), with changes.
    ///
    /// # Errors
    /// What the kernel says.
    pub async fn resume_with(&self, changes: ResumeChanges) -> Result<DriveResult, KernelError> {
        self.take_when_free(changes).await?.drive().await
    }

    /// Takes the run up as soon as nobody holds it: a flush that was under way when a run was
    /// dropped in this process holds it a moment longer.
    async fn take_when_free(&self, changes: ResumeChanges) -> Result<DrivableRun, KernelError> {
        let since = Instant::now();
        loop {
            match self
                .kernel
                .take(self.run(), LockWait::IfFree, changes.clone())
            {
                Err(KernelError::Journal(Error::Held { .. })) if since.elapsed() < TIMEOUT => {
                    tokio::task::yield_now().await;
                }
                taken => return taken,
            }
        }
    }

    /// The run's journal, with its children's.
    pub fn recording(&self) -> Recording {
        Recording::read(&self.store, self.run())
    }

    /// Puts a message into the run's inbox and returns its id.
    pub fn send(&self, body: MessageBody) -> String {
        let id = uuid::Uuid::now_v7().to_string();
        self.send_as(&id, body);
        id
    }

    /// Puts a message with this id into the run's inbox.
    pub fn send_as(&self, id: &str, body: MessageBody) {
        self.put(id, &self.message(id, body));
    }

    /// A message from Ann as it is sent.
    pub fn message(&self, id: &str, body: MessageBody) -> String {
        let from = Principal {
            surface: "test".to_owned(),
            id: "ann".to_owned(),
        };
        let id = id.to_owned();
        let message = SurfaceMessage { id, from, body };
        serde_json::to_string(&message).expect("a message is JSON")
    }

    /// Puts anything into the run's inbox under this id.
    pub fn put(&self, id: &str, body: &str) {
        let inbox = self
            .store
            .inbox(&log_name(self.run()))
            .expect("the run exists");
        inbox.send(id, body).expect("the inbox has room");
    }

    /// Returns the number of messages that wait in the run's inbox.
    pub fn waiting(&self) -> usize {
        let inbox = self
            .store
            .inbox(&log_name(self.run()))
            .expect("the run exists");
        inbox.messages().expect("it can be read").len()
    }
}
