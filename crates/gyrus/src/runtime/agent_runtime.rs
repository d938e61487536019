//! Runs of an embedder: a folder of journals, a workspace, and loops that reach goals in it.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{DEFAULT_AGENT, Mode, OnAsk, Origin, RunId, Text};
use gyrus_gate::policy::PolicyFileError;
use gyrus_journal::{LockWait, Store};
use gyrus_kernel::{
    CognitiveLoop, DrivableRun, DriveResult, Kernel, LoopFactory, NewRun, ResumeChanges, family,
};
use gyrus_loops::CognitiveConfig;
use gyrus_runtime::{EventBus, agents::Agents};
use gyrus_tools::ToolRegistry;
use tokio::sync::OnceCell;

use super::{
    AgentContext, Confinement, Guidelines, Home, KernelParts, LlmClient, NoModel, RuntimeError,
    assembly, sandbox, sandbox_folders,
};

/// Serves as keeper or sandbox probe, and never returns, if this process was started as one: every
/// command of a run is kept and confined by a copy of this program. To be called as the first
/// statement of `main`, before any thread, file or output, by a program whose runs may start
/// processes.
pub fn init() {
    gyrus_process::keeper::share_arenas();
    gyrus_gate::sandbox::probe_if_asked();
    gyrus_process::keeper::serve_if_asked(sandbox::confine);
}

/// A loop with the models that it asks and the tools that it may call.
pub struct SimpleCognitiveLoop {
    config: CognitiveConfig,
    llm: Arc<LlmClient>,
    tools: Arc<ToolRegistry>,
    context: Option<AgentContext>,
}

impl SimpleCognitiveLoop {
    /// Creates a loop of the configuration's strategy.
    pub fn new(config: CognitiveConfig, llm: Arc<LlmClient>, tools: Arc<ToolRegistry>) -> Self {
        Self {
            config,
            llm,
            tools,
            context: None,
        }
    }

    /// Records what the loop's runs perceive and do, and gives each run the records of the runs
    /// before it in the session that matter for the goal.
    #[must_use]
    pub fn with_context(mut self, context: AgentContext) -> Self {
        self.context = Some(context);
        self
    }
}

/// A loop that an [`AgentRuntime`] drives: a [`SimpleCognitiveLoop`], or any [`CognitiveLoop`] of
/// one's own, of which each run gets a clone.
pub trait AgentLoop: Send + Sync + 'static {
    /// Returns the loop's name in the journal.
    fn loop_name(&self) -> &'static str;

    /// Returns the factory of the loop, and of those that child runs may have.
    fn factory(&self) -> LoopFactory;

    /// Returns the parts of a loop of gyrus; `None` for a loop of the embedder, which asks the
    /// models and calls the tools of the runtime.
    fn simple(&self) -> Option<&SimpleCognitiveLoop> {
        None
    }
}

impl AgentLoop for SimpleCognitiveLoop {
    fn loop_name(&self) -> &'static str {
        self.config.strategy.loop_name()
    }

    fn factory(&self) -> LoopFactory {
        gyrus_loops::factory()
    }

    fn simple(&self) -> Option<&SimpleCognitiveLoop> {
        Some(self)
    }
}

impl<L: CognitiveLoop + Clone + Sync + 'static> AgentLoop for L {
    fn loop_name(&self) -> &'static str {
        self.name()
    }

    fn factory(&self) -> LoopFactory {
        let (own, others) = (self.clone(), gyrus_loops::factory());
        Arc::new(move |name, config| {
            if name == own.name() {
                Ok(Box::new(own.clone()))
            } else {
                others(name, config)
            }
        })
    }
}

/// A place for runs: their journals, the folder that they work in, and what they may do there
/// without being asked.
///
/// The policy is `policy.toml` in the state folder, beside the one of the workspace.
///
/// It is also the place of agents that live ([`create_agent`](Self::create_agent)); clones are the
/// same place.
#[derive(Clone)]
pub struct AgentRuntime {
    home: Home,
    store: Store,
    pub(super) workspace: PathBuf,
    pub(super) mode: Mode,
    pub(super) on_ask: OnAsk,
    confinement: Confinement,
    /// The models and the tools of loops that bring none.
    llm: Arc<LlmClient>,
    tools: Arc<ToolRegistry>,
    /// The bus and the agents, created at their first use.
    pub(super) living: Arc<OnceCell<(EventBus, Agents)>>,
}

impl AgentRuntime {
    /// Opens the state folder `state`, which is created if there is none, for runs that work in
    /// `workspace`. Calls that need approval are denied, and commands are sandboxed.
    ///
    /// # Errors
    /// One of the folders cannot be used.
    pub fn open(
        state: impl AsRef<Path>,
        workspace: impl AsRef<Path>,
    ) -> Result<Self, RuntimeError> {
        let state = state.as_ref();
        let absolute = std::path::absolute(state).map_err(|source| RuntimeError::State {
            folder: state.to_owned(),
            source,
        })?;
        let person = env::var_os("HOME").map(PathBuf::from);
        let home = Home::at(absolute, person.filter(|person| person.is_absolute()));
        super::keep_out_of_workspaces(home.clone());
        Ok(Self {
            store: home.store()?,
            workspace: assembly::workspace(&home, workspace.as_ref())?,
            home,
            mode: Mode::default(),
            on_ask: OnAsk::Deny,
            confinement: Confinement::Sandboxed,
            llm: Arc::new(LlmClient::own(Arc::new(NoModel))),
            tools: Arc::new(ToolRegistry::builtin()),
            living: Arc::default(),
        })
    }

    /// Sets what runs may do without asking; [`Mode::default`] by default.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets what happens to a call that needs approval: it is denied (the default), it waits while
    /// the run's process lives, or the run parks. Questions are found and answered by
    /// [`gyrus_kernel::approvals`], from any process.
    #[must_use]
    pub fn with_on_ask(mut self, on_ask: OnAsk) -> Self {
        self.on_ask = on_ask;
        self
    }

    /// Sets whether commands are sandboxed.
    #[must_use]
    pub fn with_confinement(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }

    /// Sets the models and the tools of loops of one's own; by default there are no models, and the
    /// tools that come with gyrus.
    #[must_use]
    pub fn with_llm(mut self, llm: Arc<LlmClient>, tools: Arc<ToolRegistry>) -> Self {
        (self.llm, self.tools) = (llm, tools);
        self
    }

    /// Returns the journals, to follow, show, or answer questions in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Starts a run for `goal` and drives it until it ends or parks.
    ///
    /// # Errors
    /// The models cannot be connected to, or the run cannot be started or recorded. How the run
    /// itself ended, failed or not, stands in [`Finished::ending`].
    pub async fn run(
        &self,
        agent: &impl AgentLoop,
        goal: &str,
    ) -> Result<DriveResult, RuntimeError> {
        let new = self.run_of(agent, Text::new(goal, Origin::Person), None)?;
        let kernel = self.kernel(agent).await?;
        Self::join(agent, new.id)?;
        self.drive(kernel.create(new)?).await
    }

    /// Adds a run that is about to be created to the context of its loop, if the loop has one.
    pub(super) fn join(agent: &impl AgentLoop, run: RunId) -> Result<(), RuntimeError> {
        let context = agent.simple().and_then(|simple| simple.context.as_ref());
        context.map_or(Ok(()), |context| context.join(run))
    }

    /// Returns a run of this loop for a goal, which continues the memory of an earlier run if any.
    pub(super) fn run_of(
        &self,
        agent: &impl AgentLoop,
        goal: Text,
        continues: Option<RunId>,
    ) -> Result<NewRun, RuntimeError> {
        let simple = agent.simple();
        let config = serde_json::to_value(simple.map(|simple| &simple.config));
        let config = config.expect("it is plain data");
        let mut new = NewRun::new(goal, agent.loop_name(), config, self.workspace.clone());
        if !simple.is_some_and(|simple| simple.config.strategy.finds_guidelines())
            && let Some(found) = Guidelines::find(&self.workspace)
        {
            let trust = found.trust(&self.store, &self.workspace)?;
            new.context.push(found.attachment(&self.workspace, trust));
        }
        if let Some(context) = simple.and_then(|simple| simple.context.as_ref()) {
            context.open(&self.store)?;
            new.context
                .extend(context.for_goal(&new.goal.text, continues).attachment());
        }
        new.continues = continues;
        new.mode = self.mode;
        new.on_ask = self.on_ask;
        new.limits.steps = simple.and_then(|simple| simple.config.max_iterations);
        Ok(new)
    }

    /// Resumes a run, after a crash or where it parked, and drives it until it ends or parks.
    ///
    /// # Errors
    /// As for [`run`](Self::run); and another process holds the run, or it is over.
    pub async fn resume(
        &self,
        agent: &impl AgentLoop,
        run: RunId,
    ) -> Result<DriveResult, RuntimeError> {
        let kernel = self.kernel(agent).await?;
        let ready = kernel.take(run, LockWait::IfFree, ResumeChanges::default())?;
        self.drive(ready).await
    }

    pub(super) async fn drive(&self, ready: DrivableRun) -> Result<DriveResult, RuntimeError> {
        let home = self.home.clone();
        // What cannot be swept now is swept at the next start.
        let sweeping = tokio::task::spawn_blocking(move || sandbox_folders::sweep(&home));
        let run = ready.id();
        let finished = ready.drive().await;
        let _ = sweeping.await;
        let finished = finished?;
        #[cfg(feature = "program")]
        self.write_trace(run);
        if finished.ending.is_final() {
            let runs = family(&self.store, run).unwrap_or_default();
            sandbox_folders::remove(&self.home, &runs);
        }
        Ok(finished)
    }

    /// Writes the steps of a run beside its journal. One that cannot be written is made from the
    /// journal later: `gyrus trace RUN`.
    #[cfg(feature = "program")]
    fn write_trace(&self, run: RunId) {
        use gyrus_surfaces::trace_file;
        let _ = trace_file::write_own(&self.store, run);
    }

    /// Returns the kernel that drives runs of this loop, to replay, fork, or create them in ways
    /// that this type does not offer.
    ///
    /// # Errors
    /// The models cannot be connected to, or a policy file cannot be used.
    pub async fn kernel(&self, agent: &impl AgentLoop) -> Result<Kernel, RuntimeError> {
        let explain = |error: PolicyFileError| error.to_string();
        let gate = assembly::live_gate(
            &self.home,
            &self.store,
            &self.workspace,
            DEFAULT_AGENT,
            self.confinement,
            explain,
        )?;
        let (llm, tools) = match agent.simple() {
            Some(simple) => (&simple.llm, &simple.tools),
            None => (&self.llm, &self.tools),
        };
        let parts = KernelParts {
            router: llm.connect(&self.store).await?,
            assessor: None,
            secrets: Vec::new(),
            gate: Arc::new(gate),
            screen: None,
            tools: tools.all(),
        };
        let mut organs = assembly::organs(&self.home, parts)?;
        organs.loops = agent.factory();
        Ok(Kernel::new(self.store.clone(), organs))
    }
}
