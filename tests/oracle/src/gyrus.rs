//! The path under test: a kernel with its gate, tools and sandbox, as the program wires them, and a
//! loop that calls the shell with one line after the other.

use std::{fs, path::Path, sync::Arc};

use ::gyrus::runtime::{self, Home, sandbox};
use gyrus_contract::{
    BoxedFuture, Decision, Delta, ExecutionResult, MemoryBuffer, Mode, Model, ModelError,
    Observation, Origin, Perception, Plan, Price, Prompt, Reply, ResourceLimits, Risk, RunId, Text,
    ToolCall,
};
use gyrus_gate::{Contain, PolicyGate};
use gyrus_journal::{LockWait, Store};
use gyrus_kernel::{
    CognitiveLoop, Entry, ErasedLoop, FolderTravels, Kernel, KernelError, NewRun, Organs,
    ResumeChanges, Run, SingleModel, Stop, entries, log_name, redact::Redactor,
};
use gyrus_tools::ToolRegistry;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    Error, doing,
    fixture::{HOME, STATE, WORKSPACE, program_folders},
    listeners::NAMED,
    worker::Between,
};

/// Maximum duration of a line, in seconds.
const TIME_LIMIT: u64 = 2;

/// Limits for the commands of a line, so that a miss does not exhaust the machine.
const LIMITS: ResourceLimits = ResourceLimits {
    processes: 256,
    memory_bytes: 2 << 30,
    cpu_seconds: 4,
    file_bytes: 32 << 20,
};

const NAME: &str = "scripted";

/// Outcome of the call with one line.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    pub(crate) decision: Decision,
    /// Risk that the gate found.
    pub(crate) risk: Risk,
    /// Text for the model.
    pub(crate) text: String,
}

/// A person's gyrus.
pub(crate) struct Gyrus {
    runtime: Runtime,
    contained: Kernel,
    bare: Kernel,
    seen: Arc<Mutex<Vec<Observation>>>,
}

impl Gyrus {
    /// Wires it.
    pub(crate) fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(doing("start the runtime"))?;
        let home = Home {
            state: STATE.into(),
            config: Path::new(HOME).join(".config/gyrus/config.toml"),
            person: Some(HOME.into()),
            beside: None,
            vault: None,
            journal: None,
            replicas: None,
            travels: FolderTravels::No,
            sockets: Vec::new(),
        };
        let store = Store::open(&home.state.join("journal"))
            .map_err(|error| Error::Lost(error.to_string()))?;
        let seen = Arc::default();
        let contained = runtime::bare_gate(&home)
            .finding_programs_in(program_folders())
            .confining(contain(&home));
        let bare = runtime::bare_gate(&home).finding_programs_in(program_folders());
        let kernel = |gate| Kernel::new(store.clone(), organs(gate, &seen));
        let (contained, bare) = (kernel(contained), kernel(bare));
        Ok(Self {
            runtime,
            contained,
            bare,
            seen,
        })
    }

    /// Calls the shell with each line, in one run.
    pub(crate) fn run(&self, lines: &[String], between: Between) -> Result<Vec<Called>, String> {
        self.run_as(RunId::new(), lines, between)
    }

    /// The same, as the run with this id.
    pub(crate) fn run_as(
        &self,
        run: RunId,
        lines: &[String],
        between: Between,
    ) -> Result<Vec<Called>, String> {
        let kernel = self.kernel(between);
        self.seen().clear();
        let driven = self.runtime.block_on(async {
            let ready = kernel.create(new_run(run, lines))?;
            ready.drive().await
        });
        driven.map_err(|error| error.to_string())?;
        self.called(kernel, run)
    }

    /// Takes up a run whose process was killed.
    pub(crate) fn resume(&self, run: RunId, between: Between) -> Result<Vec<Called>, String> {
        let kernel = self.kernel(between);
        self.seen().clear();
        // It was killed before it had begun.
        if !kernel.exists(run) {
            return Ok(Vec::new());
        }
        let driven = self.runtime.block_on(async {
            match kernel.take(run, LockWait::IfFree, ResumeChanges::default()) {
                Err(KernelError::Over { .. }) => Ok(()),
                Err(error) => Err(error),
                Ok(ready) => ready.drive().await.map(|_| ()),
            }
        });
        driven.map_err(|error| error.to_string())?;
        self.called(kernel, run)
    }

    fn kernel(&self, between: Between) -> &Kernel {
        match between {
            Between::Sandbox | Between::Landlock => &self.contained,
            Between::Gate | Between::Nothing => &self.bare,
        }
    }

    fn called(&self, kernel: &Kernel, run: RunId) -> Result<Vec<Called>, String> {
        let seen = self.seen();
        if seen.is_empty() {
            return Ok(Vec::new());
        }
        // Of a run that was taken up, the last calls are those that were seen here.
        let verdicts = verdicts(kernel, run)?;
        let before = verdicts.len().saturating_sub(seen.len());
        let texts = seen.iter().map(|seen| seen.text.text.clone());
        let verdicts = verdicts.into_iter().skip(before);
        let called = texts.zip(verdicts).map(|(text, (decision, risk))| Called {
            decision,
            risk,
            text,
        });
        Ok(called.collect())
    }

    /// Removes what the runs so far left in gyrus's own state, but for its keys.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        for folder in ["journal/runs", "sandbox"] {
            let folder = Path::new(STATE).join(folder);
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_name() != "proof.json" {
                    crate::fixture::remove(&entry.path()).map_err(doing("remove a run"))?;
                }
            }
        }
        Ok(())
    }

    fn seen(&self) -> parking_lot::MutexGuard<'_, Vec<Observation>> {
        self.seen.lock()
    }
}

/// As the program confines commands, with smaller limits.
fn contain(home: &Home) -> Arc<Contain> {
    let contain = sandbox::contain(home);
    Arc::new(move |run: RunId, workspace: &Path| {
        let mut containment = contain(run, workspace)?;
        containment.limits = LIMITS;
        Ok(containment)
    })
}

fn organs(gate: PolicyGate, seen: &Arc<Mutex<Vec<Observation>>>) -> Organs {
    let registry = ToolRegistry::builtin();
    let tools = registry.all();
    let seen = Arc::clone(seen);
    let loops = Arc::new(move |_: &str, config: &Value| {
        let lines = config["lines"].as_array().into_iter().flatten();
        let lines = lines.filter_map(|line| line.as_str().map(str::to_owned));
        Ok(Box::new(Scripted {
            lines: lines.collect(),
            next: 0,
            memory: MemoryBuffer::new(1),
            seen: Arc::clone(&seen),
        }) as Box<dyn ErasedLoop>)
    });
    let redactor = Arc::new(Redactor::new([7; 32], Vec::new()));
    let router = Arc::new(SingleModel(Arc::new(NoModel)));
    let mut organs = Organs::new(router, tools, Arc::new(gate), redactor, loops);
    organs.outlet = Some(Arc::new(sandbox::Proxy));
    organs
}

fn new_run(id: RunId, lines: &[String]) -> NewRun {
    let goal = Text::new(format!("Look at {NAMED}"), Origin::Person);
    NewRun {
        id,
        mode: Mode::Ask,
        ..NewRun::new(goal, NAME, json!({ "lines": lines }), WORKSPACE.into())
    }
}

/// Returns the gate's verdict on each call, in order; the last one counts.
fn verdicts(kernel: &Kernel, run: RunId) -> Result<Vec<(Decision, Risk)>, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let reader = kernel
        .store()
        .reader(&log_name(run))
        .map_err(|error| told(&error))?;
    let mut verdicts = Vec::new();
    for entry in entries(&reader, 1).map_err(|error| told(&error))? {
        match entry.map_err(|error| told(&error))?.1 {
            // What cannot even be looked up has no verdict.
            Entry::ToolCalled(_) => verdicts.push((Decision::Deny, Risk::High)),
            Entry::GateVerdict(judged) => {
                if let Some(last) = verdicts.last_mut() {
                    *last = (judged.verdict.decision, judged.verdict.risk);
                }
            }
            _ => {}
        }
    }
    Ok(verdicts)
}

/// A loop without thoughts: a cycle a line.
struct Scripted {
    lines: Vec<String>,
    next: usize,
    memory: MemoryBuffer,
    seen: Arc<Mutex<Vec<Observation>>>,
}

impl CognitiveLoop for Scripted {
    type State = usize;

    fn name(&self) -> &'static str {
        NAME
    }
    fn version(&self) -> u32 {
        1
    }
    fn state(&self) -> &usize {
        &self.next
    }
    fn restore(&mut self, state: usize) {
        self.next = state;
    }
    fn memory_buffer(&self) -> &MemoryBuffer {
        &self.memory
    }
    fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer {
        &mut self.memory
    }

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        Ok(run.perception())
    }

    async fn think(&mut self, _: &mut Run, _: &Perception) -> Result<Plan, Stop> {
        let mut plan = Plan::with_goal("call the shell");
        if self.next + 1 >= self.lines.len() {
            plan.complete_with_answer("called");
        }
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        if let Some(line) = self.lines.get(self.next) {
            let arguments = json!({ "command": line, "timeout_seconds": TIME_LIMIT });
            let seen = run.call(&ToolCall::new("shell", arguments)).await?;
            let mut all = self.seen.lock();
            all.push(seen);
        }
        self.next += 1;
        Ok(ExecutionResult {
            claim: plan.claim.clone(),
            ..ExecutionResult::default()
        })
    }
}

/// The model of runs that ask none.
struct NoModel;

impl Model for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn reply<'a>(
        &'a self,
        _prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        let message = "these runs ask no model".to_owned();
        Box::pin(async { Err(ModelError::Network { message }) })
    }
}
