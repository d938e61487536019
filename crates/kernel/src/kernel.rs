//! The kernel: a store of runs, and the organs that they use.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gyrus_contract::{
    DEFAULT_AGENT, Gate, Grant, Image, KeeperError, Limits, Mode, OnAsk, Outlet, Part, Router,
    RunId, Screen, Text, Tool, ToolSpec, Touch,
};
use gyrus_journal::{LogName, Store, Take};
use gyrus_process::{ProcessIdentity, keeper::Keeper};
use gyrus_workspace::repository::RealObjects;
use serde_json::Value;

use crate::{
    Appended, Ending, Entry, ErasedLoop, Inline, Live, LoopFactory, ParentRun, Pins, Ready,
    RunResumed, RunStarted, Settings, Stop,
    before::Before,
    driver,
    latch::{Latch, Latched},
    log::Log,
    position::Position,
    redact::Redactor,
};

/// The kind of log in which runs are stored.
pub const RUNS: &str = "runs";

/// The organs with which a process equips its runs.
pub struct Organs {
    /// Chooses the models that runs ask.
    pub router: Arc<dyn Router>,
    /// Chooses the model for a second look at calls that the gate does not understand whole; `None`
    /// means that there is no second look.
    pub assessor: Option<Arc<dyn Router>>,
    /// The tools by name.
    pub tools: BTreeMap<String, Arc<dyn Tool>>,
    /// The tools' specifications, in order of name.
    pub specs: Vec<Arc<ToolSpec>>,
    /// Decides which calls may run.
    pub gate: Arc<dyn Gate>,
    /// Keeps secrets out of journals and prompts.
    pub redactor: Arc<Redactor>,
    /// Creates the loops.
    pub loops: LoopFactory,
    /// The program that serves as keeper; `None` means this executable.
    pub keeper_program: Option<PathBuf>,
    /// Hashes of inputs that the kernel cannot see: this binary, the prompts, the configuration.
    pub pins: Pins,
    /// Receives the replies of models while they arrive.
    pub live: Option<Live>,
    /// Serves the connections of sandboxes.
    pub outlet: Option<Arc<dyn Outlet>>,
    /// Returns the places in which commands find the objects of a repository that they have a
    /// private copy of. Called before the first command.
    pub real_objects: Arc<dyn Fn() -> RealObjects + Send + Sync>,
    /// The screen that runs look at; `None` means that they have none.
    pub screen: Option<Arc<dyn Screen>>,
    /// The emergency stop for all runs.
    pub latch: Option<Latch>,
    /// Time for which an answer to a question counts, including the time that a run is parked.
    pub questions_last: Duration,
}

/// Default time for which an answer to a question counts.
pub const QUESTIONS_LAST: Duration = Duration::from_secs(24 * 60 * 60);

impl Organs {
    /// Creates organs from these parts; tools may come in any order. For a single model, use
    /// [`SingleModel`](crate::Only).
    pub fn new(
        router: Arc<dyn Router>,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        gate: Arc<dyn Gate>,
        redactor: Arc<Redactor>,
        loops: LoopFactory,
    ) -> Self {
        let tools: BTreeMap<_, _> = tools
            .into_iter()
            .map(|tool| (tool.spec().name.clone(), tool))
            .collect();
        let offered = |tool: &&Arc<dyn Tool>| !tool.spec().touches(Touch::is_for_person_only);
        let specs = tools
            .values()
            .filter(offered)
            .map(|tool| Arc::new(tool.spec().clone()))
            .collect();
        Self {
            router,
            assessor: None,
            tools,
            specs,
            gate,
            redactor,
            loops,
            keeper_program: None,
            pins: Pins::new(),
            live: None,
            outlet: None,
            real_objects: Arc::new(|| RealObjects::Bound),
            screen: None,
            latch: None,
            questions_last: QUESTIONS_LAST,
        }
    }

    /// Stores the specifications of the tools of servers, if there are any.
    pub(crate) fn pin_served(&self, log: &Log) -> Result<Option<Inline<Vec<Arc<ToolSpec>>>>, Stop> {
        let mut served = self.specs.clone();
        served.retain(|spec| spec.touches(|touch| touch.service().is_some()));
        match served.is_empty() {
            true => Ok(None),
            false => Inline::store(&served, log).map(Some),
        }
    }

    pub(crate) fn start_keeper(&self) -> Result<Keeper, KeeperError> {
        match &self.keeper_program {
            Some(program) => Keeper::with_program(program),
            None => Keeper::start(),
        }
    }
}

/// Material that comes with a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// A text.
    Text(Text),
    /// A picture.
    Picture {
        /// The file's content.
        bytes: Vec<u8>,
        /// `image/png`, `image/webp` or `image/jpeg`.
        media_type: String,
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
}

/// A run to be created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The goal.
    pub goal: Text,
    /// The material that comes with the goal: files, pictures, standard input.
    pub context: Vec<Attachment>,
    /// The previous run in its session, whose memory this one continues with.
    pub continues: Option<RunId>,
    /// The name of its loop.
    pub cognitive_loop: String,
    /// The loop's configuration.
    pub loop_config: Value,
    /// The folder it works in: a real and absolute path.
    pub workspace: PathBuf,
    /// The approval mode.
    pub mode: Mode,
    /// Whether the person named the workspace as one that may be lost.
    pub throwaway: bool,
    /// The way to proceed when a person must be asked.
    pub on_ask: OnAsk,
    /// The limits.
    pub limits: Limits,
    /// Hashes of inputs that the kernel cannot know: the binary, its configuration.
    pub pins: Pins,
    /// The run that delegates it.
    pub parent: Option<ParentRun>,
    /// Whether the run that starts it has read untrusted text.
    pub exposed: bool,
    /// The grants that the person gave beforehand. Those of the previous run in the session are
    /// added.
    pub grants: Vec<Grant>,
    /// The configuration of its screen, opaque here.
    pub screen: Option<Value>,
    /// The texts that the person typed beside the goal: an address to begin at, and for a child
    /// those typed for its parent.
    pub trusted: Vec<String>,
    /// The name of the agent whose trust the run has.
    pub agent: String,
}

impl NewRun {
    /// Creates a run with a new id for a person's goal, without limits, that denies what needs
    /// approval.
    pub fn new(
        goal: Text,
        cognitive_loop: impl Into<String>,
        loop_config: Value,
        workspace: PathBuf,
    ) -> Self {
        Self {
            id: RunId::new(),
            goal,
            context: Vec::new(),
            continues: None,
            cognitive_loop: cognitive_loop.into(),
            loop_config,
            workspace,
            mode: Mode::default(),
            throwaway: false,
            on_ask: OnAsk::Deny,
            limits: Limits::default(),
            pins: Pins::new(),
            parent: None,
            exposed: false,
            grants: Vec::new(),
            screen: None,
            trusted: Vec::new(),
            agent: DEFAULT_AGENT.to_owned(),
        }
    }
}

/// The changes that a person makes when a run is resumed; `None` keeps the present value.
#[derive(Debug, Clone, Default)]
pub struct ResumeChanges {
    /// The new limits; those that are `None` in here stay as they were.
    pub limits: Limits,
    /// The new mode.
    pub mode: Option<Mode>,
    /// The new way to proceed when a person must be asked.
    pub on_ask: Option<OnAsk>,
    /// Hashes of the present binary and configuration.
    pub pins: Option<Pins>,
}

/// The reason why a run cannot be started, taken up or read.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// The loop does not exist, or its configuration is invalid.
    #[error("{0}")]
    Loop(String),
    /// A limit on cost needs prices, or a limit on tokens beside it.
    #[error(
        "the price of the model `{model}` is unknown, so a limit on cost cannot be kept; set a \
         limit on tokens too"
    )]
    UnknownPrice {
        /// The model.
        model: String,
    },
    /// The run has ended, so it cannot be resumed.
    #[error("run {run} is over: {what}")]
    Over {
        /// The run.
        run: RunId,
        /// The ending.
        what: String,
    },
    /// The log does not hold a run.
    #[error("run {run} cannot be read: {reason}")]
    NotARun {
        /// The run.
        run: RunId,
        /// The reason.
        reason: String,
    },
    /// A person stopped all runs, and nobody has lifted the stop.
    #[error(transparent)]
    Latched(#[from] Latched),
    /// The run stopped where it must not.
    #[error(transparent)]
    Stop(#[from] Stop),
}

/// Starts, takes up, replays and forks runs. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    organs: Organs,
    pins: Last<Pins>,
    loop_config: Last<Value>,
}

/// The value that the latest run had. A process mostly uses the same value for all its runs, and
/// may have thousands of them.
#[derive(Default)]
struct Last<T>(Mutex<Arc<T>>);

impl<T: PartialEq> Last<T> {
    /// Returns `value`, shared with the latest run if it is equal.
    fn share(&self, value: T) -> Arc<T> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if **last != value {
            *last = Arc::new(value);
        }
        last.clone()
    }
}

impl Kernel {
    /// Creates a kernel over this store, with these organs.
    pub fn new(store: Store, organs: Organs) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                organs,
                pins: Last::default(),
                loop_config: Last::default(),
            }),
        }
    }

    /// Returns the store of runs.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Returns the organs.
    pub fn organs(&self) -> &Organs {
        &self.inner.organs
    }

    /// Whether the run exists.
    pub fn exists(&self, run: RunId) -> bool {
        self.store().exists(&log_name(run))
    }

    /// Returns the hashes of the parts that decide how a run continues.
    pub(crate) fn pins(&self, cognitive_loop: &dyn ErasedLoop, given: &Pins) -> Arc<Pins> {
        let mut pins = given.clone();
        let organs = self.organs();
        pins.extend(organs.pins.clone());
        let name = format!("{} {}", cognitive_loop.name(), cognitive_loop.version());
        pins.insert("loop".to_owned(), name);
        pins.insert(
            "tools".to_owned(),
            gyrus_contract::Digest::of_json(&organs.specs).to_string(),
        );
        self.inner.pins.share(pins)
    }

    pub(crate) fn make_loop(
        &self,
        name: &str,
        config: &Value,
    ) -> Result<Box<dyn ErasedLoop>, KernelError> {
        (self.organs().loops)(name, config).map_err(KernelError::Loop)
    }

    /// Creates a run. When this returns, its first entry is on disk; no effect has happened yet.
    ///
    /// # Errors
    /// Returns an error when the loop, the limits or the journal do not allow it. Nothing is left
    /// behind then.
    pub fn create(&self, new: NewRun) -> Result<Ready, KernelError> {
        self.check_latch()?;
        let mut new = new;
        let redactor = &self.organs().redactor;
        redactor.redact_json(&mut new.loop_config);
        let cognitive_loop = self.make_loop(&new.cognitive_loop, &new.loop_config)?;
        self.check_price(&new.limits)?;
        let goal = Text::new(redactor.redact(&new.goal.text), new.goal.origin);
        let before = match new.continues {
            Some(run) => Some(Before::read(self, run)?),
            None => None,
        };
        let writer = self.store().create(&log_name(new.id))?;
        let log = Log::live(writer.clone())?;
        let context: Vec<Part> = new
            .context
            .into_iter()
            .map(|given| store_attachment(given, redactor, &log))
            .collect::<Result<_, _>>()?;
        let served = self.organs().pin_served(&log)?;
        // The descriptions that servers give of their tools are part of every prompt.
        let exposed = new.exposed
            || served.is_some()
            || !goal.origin.is_trusted()
            || context.iter().any(is_untrusted)
            || before.as_ref().is_some_and(|before| before.exposed);
        let memory = match &before {
            Some(before) => before.carry_into(&log)?,
            None => Appended::default(),
        };
        let mut grants = new.grants;
        grants.extend(before.into_iter().flat_map(|before| before.grants));
        let snapshot = driver::first_snapshot(self, &log, &new.workspace)?;
        let started = RunStarted {
            run: new.id,
            goal: Inline::store(&goal, &log)?,
            context: context
                .iter()
                .map(|part| Inline::store(part, &log))
                .collect::<Result<_, _>>()?,
            continues: new.continues,
            memory,
            exposed,
            grants,
            trusted: new.trusted,
            screen: new.screen,
            agent: new.agent,
            loop_config: self.inner.loop_config.share(new.loop_config),
            workspace: new.workspace,
            throwaway: new.throwaway,
            settings: Settings {
                limits: new.limits,
                mode: new.mode,
                on_ask: new.on_ask,
                pins: self.pins(&*cognitive_loop, &new.pins),
            },
            tools: self.organs().tools.keys().cloned().collect(),
            served,
            model: self.organs().router.name().to_owned(),
            parent: new.parent,
            forked_from: None,
            snapshot,
            cognitive_loop: new.cognitive_loop,
        };
        log.append(started.clone())?;
        writer.barrier_blocking()?;
        Ready::new(self.clone(), writer, Position::fresh(started), None, false)
    }

    /// Checks that runs are not stopped by the latch.
    pub(crate) fn check_latch(&self) -> Result<(), Latched> {
        self.organs().latch.as_ref().map_or(Ok(()), Latch::check)
    }

    fn check_price(&self, limits: &Limits) -> Result<(), KernelError> {
        if limits.cost.is_none() || limits.tokens.is_some() {
            return Ok(());
        }
        let organs = self.organs();
        let all = [Some(&organs.router), organs.assessor.as_ref()];
        match all
            .into_iter()
            .flatten()
            .find_map(|router| router.unpriced())
        {
            Some(model) => Err(KernelError::UnknownPrice { model }),
            None => Ok(()),
        }
    }

    /// Takes a run up after a crash, a pause, a limit or an open question.
    ///
    /// # Errors
    /// Returns an error when another process holds it, when it has ended, or when its journal is
    /// damaged.
    pub fn take(
        &self,
        run: RunId,
        how: Take,
        changes: ResumeChanges,
    ) -> Result<Ready, KernelError> {
        self.check_latch()?;
        let name = log_name(run);
        let (writer, recovery) = self.store().take(&name, how)?;
        let reader = writer.reader()?;
        let mut position = Position::read(run, &reader)?;
        if let Some((ending, _)) = position.over() {
            return Err(KernelError::Over {
                run,
                what: summary(&ending),
            });
        }
        let config = &position.started.loop_config;
        let cognitive_loop = self.make_loop(&position.started.cognitive_loop, config)?;
        let before = position.settings.clone();
        position.settings = self.changed(&before, &*cognitive_loop, changes);
        self.check_price(&position.settings.limits)?;
        let process = ProcessIdentity::current()
            .map_err(|error| Stop::Failed(format!("this process cannot be identified: {error}")))?;
        let log = Log::live(writer.clone())?;
        log.append(RunResumed {
            process,
            settings: position.settings.clone(),
            set_aside_bytes: recovery.set_aside.as_ref().map(|tail| tail.bytes),
        })?;
        writer.barrier_blocking()?;
        let other_code = position.other_code(&position.settings.pins);
        Ready::new(self.clone(), writer, position, Some(recovery), other_code)
    }

    /// Returns the settings of a run after a person's changes.
    pub(crate) fn changed(
        &self,
        before: &Settings,
        cognitive_loop: &dyn ErasedLoop,
        changes: ResumeChanges,
    ) -> Settings {
        let limits = Limits {
            steps: changes.limits.steps.or(before.limits.steps),
            tokens: changes.limits.tokens.or(before.limits.tokens),
            cost: changes.limits.cost.or(before.limits.cost),
            time_ms: changes.limits.time_ms.or(before.limits.time_ms),
        };
        let pins = changes.pins.unwrap_or_else(|| Pins::clone(&before.pins));
        Settings {
            limits,
            mode: changes.mode.unwrap_or(before.mode),
            on_ask: changes.on_ask.unwrap_or(before.on_ask),
            pins: self.pins(cognitive_loop, &pins),
        }
    }
}

/// Redacts material that came with a goal as it enters the run, and stores its pictures.
fn store_attachment(attachment: Attachment, redactor: &Redactor, log: &Log) -> Result<Part, Stop> {
    Ok(match attachment {
        Attachment::Text(text) => Part::Text(Text::new(redactor.redact(&text.text), text.origin)),
        Attachment::Picture {
            bytes,
            media_type,
            width,
            height,
        } => Part::Image(Image {
            blob: log.put_blob(&bytes)?,
            media_type,
            width,
            height,
        }),
    })
}

/// Whether a part may hold untrusted text. A picture may show any.
fn is_untrusted(part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.origin.is_trusted(),
        Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => true,
    }
}

/// Returns the name of the log that holds a run.
pub fn log_name(run: RunId) -> LogName {
    LogName::new(RUNS, &run.to_string()).expect("a run id is a valid name of a log")
}

/// Returns all runs of a store, in order of id: those that people started by time, with children in
/// between.
pub fn runs(store: &Store) -> Result<Vec<RunId>, gyrus_journal::Error> {
    let names = store.names(RUNS)?;
    let ids = names.iter().filter_map(|name| name.id().parse().ok());
    Ok(ids.collect())
}

/// Returns the folders in which the newest runs that people started have worked, for at most
/// `of_runs` runs. A journal that cannot be read is skipped.
pub fn workspaces(store: &Store, of_runs: usize) -> Result<Vec<PathBuf>, gyrus_journal::Error> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let roots = runs(store)?.into_iter().rev().filter(|run| run.is_root());
    for run in roots.take(of_runs) {
        let first = store
            .reader(&log_name(run))
            .and_then(|reader| reader.entry(1));
        if let Ok(Some(first)) = first
            && let Ok(Entry::RunStarted(started)) = crate::parse(&first)
            && !folders.contains(&started.workspace)
        {
            folders.push(started.workspace);
        }
    }
    Ok(folders)
}

/// Returns a run and the runs below it, itself last, so that removing them in order leaves no
/// orphans.
pub fn family(store: &Store, run: RunId) -> Result<Vec<RunId>, gyrus_journal::Error> {
    let mut children = BTreeSet::new();
    for entry in store.reader(&log_name(run))?.entries(1)? {
        if let Ok(Entry::ChildStarted(child)) = crate::parse(&entry?) {
            children.insert(child.child);
        }
    }
    let mut found = Vec::new();
    let kept = |child: &RunId| store.exists(&log_name(*child));
    for child in children.into_iter().filter(kept) {
        found.extend(family(store, child)?);
    }
    found.push(run);
    Ok(found)
}

/// Describes an ending in one line.
pub fn summary(ending: &Ending) -> String {
    match ending {
        Ending::Reached { claim, strength } => {
            format!("{}: {}", strength.word(), first_line(&claim.answer))
        }
        Ending::Failed { reason, .. } => format!("failed: {}", first_line(reason)),
        Ending::Limit { what } => format!("limit reached: {what}"),
        Ending::Waiting {
            effect, question, ..
        } => format!("waits at {effect}: {question}"),
        Ending::Sleeping {
            signal: Some(signal),
            ..
        } => format!("waits for `{signal}`"),
        Ending::Sleeping { .. } => "sleeps".to_owned(),
        Ending::Stuck { what } => format!("stuck: {}", first_line(what)),
        Ending::ModelUnreachable { error } => error.to_string(),
        Ending::Stopped { by } => format!("stopped by {} ({})", by.id, by.surface),
        Ending::Interrupted => "interrupted".to_owned(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the entries of a run that this version of gyrus can read, from `from` on.
///
/// # Errors
/// Returns an error when the journal is damaged or holds an unreadable entry.
pub fn entries(
    reader: &gyrus_journal::Reader,
    from: u64,
) -> Result<impl Iterator<Item = Result<(u64, Entry), Stop>>, Stop> {
    Ok(reader.entries(from)?.map(|entry| {
        let entry = entry?;
        Ok((entry.seq, crate::log::parse(&entry)?))
    }))
}
