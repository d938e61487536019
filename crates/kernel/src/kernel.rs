//! The kernel: a store of runs, and the organs that they use.

use std::{collections::BTreeMap, iter, path::PathBuf, sync::Arc, time::Duration};

use gyrus_contract::{
    ChildModel, DEFAULT_AGENT, FollowedSkill, Gate, Grant, Hooks, KeeperError, LateTools, Limits,
    Mode, OnAsk, Outlet, Router, RunId, RunWorktree, SandboxOptions, Screen, Text, Tool,
    ToolAction, ToolMeaning, ToolSpec, Touch, Worktrees,
};
use gyrus_journal::Store;
use gyrus_process::keeper::Keeper;
use gyrus_workspace::repository::RealObjects;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    CodePins, ErasedLoop, Inline, KernelError, Live, LoopFactory, ParentRun, Stop,
    UnreachableModel,
    latch::{AllStopped, Latch},
    log::RunLog,
    redact::Redactor,
    runs::log_name,
};

/// The organs with which a process equips its runs.
pub struct Organs {
    /// Chooses the models that runs ask.
    pub router: Arc<dyn Router>,
    /// Routers for child runs that ask another model than their parent, by the name of the model.
    pub child_routers: BTreeMap<String, Arc<dyn Router>>,
    /// Chooses the model for a second look at calls that the gate does not fully understand; `None`
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
    pub pins: CodePins,
    /// Receives the replies of models as they arrive.
    pub live: Option<Live>,
    /// Serves the connections of sandboxes.
    pub outlet: Option<Arc<dyn Outlet>>,
    /// Returns the places in which commands find the objects of a repository that they have a
    /// private copy of. Called before the first command.
    pub real_objects: Arc<dyn Fn() -> RealObjects + Send + Sync>,
    /// The screen that runs look at; `None` if they have none.
    pub screen: Option<Arc<dyn Screen>>,
    /// The emergency stop for all runs.
    pub latch: Option<Latch>,
    /// Makes work trees for child runs with a work tree of their own.
    pub worktrees: Option<Arc<dyn Worktrees>>,
    /// Hooks for calls and for the end of runs; `None` if there are none.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Time for which an answer to a question counts, including the time that a run is parked.
    pub questions_last: Duration,
    /// The tools of servers that may join runs after their start.
    pub late_tools: Option<Arc<dyn LateTools>>,
    /// Whether other machines may continue the runs in folders of their own.
    pub travels: FolderTravels,
    /// Values of the person's variables that commands of runs may see.
    pub variables: BTreeMap<String, String>,
}

/// Whether other machines may continue runs, in folders of their own created from the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FolderTravels {
    /// The folder stays on this machine, and after a crash is as the calls left it.
    #[default]
    No,
    /// The folder travels, and this process works in it as the previous one did.
    Stayed,
    /// The folder was made from the journal for this process.
    Arrived,
}

impl FolderTravels {
    /// Returns the text for the model about a call that was interrupted.
    pub(crate) fn told(&self) -> &'static str {
        match self {
            FolderTravels::No | FolderTravels::Stayed => "",
            FolderTravels::Arrived => {
                " The run goes on on another machine now: there the folder is as it was before this \
                 call, and nothing of what the call did to files is in it."
            }
        }
    }
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
            child_routers: BTreeMap::new(),
            assessor: None,
            tools,
            specs,
            gate,
            redactor,
            loops,
            keeper_program: None,
            pins: CodePins::new(),
            live: None,
            outlet: None,
            real_objects: Arc::new(|| RealObjects::Bound),
            screen: None,
            latch: None,
            worktrees: None,
            hooks: None,
            questions_last: QUESTIONS_LAST,
            late_tools: None,
            travels: FolderTravels::No,
            variables: BTreeMap::new(),
        }
    }

    /// Returns the router of a run that asks this model.
    pub(crate) fn router_of(&self, model: &ChildModel) -> Arc<dyn Router> {
        let Some(name) = &model.name else {
            return self.router.clone();
        };
        let known = self.child_routers.get(name).cloned();
        known.unwrap_or_else(|| {
            let why = format!("the model `{name}` of this child run is not configured");
            Arc::new(UnreachableModel { why })
        })
    }

    /// Stores the specifications of the tools of servers, if there are any.
    pub(crate) fn pin_served(
        &self,
        log: &RunLog,
    ) -> Result<Option<Inline<Vec<Arc<ToolSpec>>>>, Stop> {
        let mut served = self.specs.clone();
        served.retain(|spec| spec.is_served());
        if served.is_empty() {
            Ok(None)
        } else {
            Inline::store(&served, log).map(Some)
        }
    }

    /// Stores the meanings that a person confirmed of the tools of servers, and of the forms of the
    /// origins that they named, if a mandate is needed: one of them does more than read, and a
    /// person typed the goal.
    pub(crate) fn pin_meanings(
        &self,
        goal: &Text,
        trusted: &[String],
        log: &RunLog,
    ) -> Result<PinnedMeanings, Stop> {
        if !goal.origin.is_trusted() {
            return Ok(PinnedMeanings::default());
        }
        let served = self.specs.iter().filter(|spec| spec.is_served());
        let meant = served.filter_map(|spec| Some((spec.name.clone(), self.gate.meaning(spec)?)));
        let mut meant: BTreeMap<_, _> = meant.collect();
        let mut forms = Vec::new();
        if self
            .specs
            .iter()
            .any(|spec| spec.touches(Touch::is_screen_input))
        {
            let trusted = iter::once(&goal.text).chain(trusted);
            let trusted: Vec<&str> = trusted.map(String::as_str).collect();
            for (spec, meaning) in self.gate.forms(&trusted) {
                meant.insert(spec.name.clone(), meaning);
                forms.push(spec);
            }
        }
        let mut actions = meant.values().map(|meaning| meaning.action);
        if !actions.any(|action| action != ToolAction::Reads) {
            return Ok(PinnedMeanings::default());
        }
        let has_forms = !forms.is_empty();
        Ok(PinnedMeanings {
            meanings: Some(Inline::store(&meant, log)?),
            forms: has_forms.then(|| Inline::store(&forms, log)).transpose()?,
        })
    }

    pub(crate) fn start_keeper(&self) -> Result<Keeper, KeeperError> {
        match &self.keeper_program {
            Some(program) => Keeper::with_program(program),
            None => Keeper::start(),
        }
    }
}

/// The stored meanings of the tools and forms that a mandate can cover.
#[derive(Default)]
pub(crate) struct PinnedMeanings {
    pub(crate) meanings: Option<Inline<BTreeMap<String, ToolMeaning>>>,
    /// The forms among them, as tools.
    pub(crate) forms: Option<Inline<Vec<ToolSpec>>>,
}

/// Material that comes with a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    Text(Text),
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
    pub id: RunId,
    pub goal: Text,
    /// The material that comes with the goal: files, pictures, standard input.
    pub context: Vec<Attachment>,
    /// The previous run in its session, whose memory this one continues with.
    pub continues: Option<RunId>,
    /// The name of the run's loop.
    pub cognitive_loop: String,
    /// The loop's configuration.
    pub loop_config: Value,
    /// The folder in which the run works: a real and absolute path.
    pub workspace: PathBuf,
    /// The approval mode.
    pub mode: Mode,
    /// Whether the person named the workspace as one that may be lost.
    pub throwaway: bool,
    /// The way to proceed when a person must be asked.
    pub on_ask: OnAsk,
    pub limits: Limits,
    /// Hashes of inputs that the kernel cannot know: the binary, its configuration.
    pub pins: CodePins,
    /// The run that delegates to this one.
    pub parent: Option<ParentRun>,
    /// Whether the run that starts this one has read untrusted text.
    pub exposed: bool,
    /// The grants that the person gave beforehand. Those of the previous run in the session are
    /// added.
    pub grants: Vec<Grant>,
    /// The skills that the run follows. Those of the previous run are not.
    pub skills: Vec<FollowedSkill>,
    /// The configuration of the run's screen, opaque here.
    pub screen: Option<Value>,
    /// The texts that the person typed beside the goal: an address to begin at, and for a child
    /// those typed for its parent.
    pub trusted: Vec<String>,
    /// The name of the agent whose trust the run has.
    pub agent: String,
    /// The priority of the command that asked for the run, from -100 to 100.
    pub priority: i32,
    /// The additions of the person to the sandbox of its commands.
    pub sandbox: SandboxOptions,
    /// The model of a child run that has one of its own.
    pub model: ChildModel,
    /// The work tree in which the run works, if one was made for it.
    pub worktree: Option<RunWorktree>,
}

impl NewRun {
    /// Creates a run with a new id for a person's goal, without limits, that denies calls which
    /// need approval.
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
            pins: CodePins::new(),
            parent: None,
            exposed: false,
            grants: Vec::new(),
            skills: Vec::new(),
            screen: None,
            trusted: Vec::new(),
            agent: DEFAULT_AGENT.to_owned(),
            priority: 0,
            sandbox: SandboxOptions::default(),
            model: ChildModel::default(),
            worktree: None,
        }
    }
}

/// The changes that a person makes when a run is resumed; `None` keeps the present value.
#[derive(Debug, Clone, Default)]
pub struct ResumeChanges {
    /// The new limits; those that are `None` are not changed.
    pub limits: Limits,
    /// The new mode.
    pub mode: Option<Mode>,
    /// The new way to proceed when a person must be asked.
    pub on_ask: Option<OnAsk>,
    /// Hashes of the present binary and configuration.
    pub pins: Option<CodePins>,
}

/// Starts, takes up, replays and forks runs. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    inner: Arc<KernelInner>,
}

struct KernelInner {
    store: Store,
    organs: Organs,
    pins: LastValue<CodePins>,
    loop_config: LastValue<Value>,
}

/// The value of the latest run. A process mostly uses the same value for all its runs, and may have
/// thousands of them.
#[derive(Default)]
struct LastValue<T>(Mutex<Arc<T>>);

impl<T: PartialEq> LastValue<T> {
    /// Returns `value`, shared with the latest run if it is equal.
    fn share(&self, value: T) -> Arc<T> {
        let mut last = self.0.lock();
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
            inner: Arc::new(KernelInner {
                store,
                organs,
                pins: LastValue::default(),
                loop_config: LastValue::default(),
            }),
        }
    }

    /// Returns the store of runs.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub fn organs(&self) -> &Organs {
        &self.inner.organs
    }

    /// Whether the run exists.
    pub fn exists(&self, run: RunId) -> bool {
        self.store().exists(&log_name(run))
    }

    /// Returns the hashes of the parts that decide how a run continues.
    pub(crate) fn pins(&self, cognitive_loop: &dyn ErasedLoop, given: &CodePins) -> Arc<CodePins> {
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

    /// Returns a loop's configuration, shared with the latest run if it is equal.
    pub(crate) fn share_config(&self, config: Value) -> Arc<Value> {
        self.inner.loop_config.share(config)
    }

    pub(crate) fn check_latch(&self) -> Result<(), AllStopped> {
        self.organs().latch.as_ref().map_or(Ok(()), Latch::check)
    }
}
