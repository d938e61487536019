//! The agents of a server: those that files describe. Their runs are commands of the queue.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use futures_util::{StreamExt as _, stream};
use gyrus::runtime::Home;
use gyrus_contract::{Origin, Principal, RunId, Text};
use gyrus_journal::os::watch::{self, FolderWatch};
use gyrus_kernel::{Ending, RunState, log_name, summary};
use gyrus_runtime::{
    Event, EventBus, EventId, HistoryLimits,
    agents::{
        AgentAction, AgentBehavior, AgentError, AgentRun, AgentRunEnd, AgentRuns, AgentStage,
        AgentState, AgentWork, Agents, BehaviorError,
    },
    blocking,
    ledger::{TRY_AGAIN, is_of_disk},
    queue::{CommandStage, Gateway, QueueCommand, QueueError, QueueWork, day_of},
    request::ContextText,
    triggers::{SystemClock, Triggers},
};
use gyrus_server::AgentFileView;
use gyrus_surfaces::console::put;
use parking_lot::Mutex;
use tokio::{task::AbortHandle, time::sleep};

use super::desktop_clipboard::DesktopClipboard;
use crate::{
    Gyrus,
    agent_files::{self, AgentFile, AgentFileResult, HookSecrets, Mistake},
    failure::Failure,
};

/// Number of agents that are created at once: they wait for the disk together.
const CREATED_AT_ONCE: usize = 64;

/// The end of the goal of a run that a trigger woke.
const TRIGGERED: &str = include_str!("triggered.md");

/// The settings of an agent, which its file may change at any time.
type AgentSettings = Arc<Mutex<Arc<AgentFile>>>;

/// The files as last read, for pages that show them.
pub(super) type ReadFiles = Arc<Mutex<Vec<AgentFileView>>>;

struct FileAgents {
    gyrus: Gyrus,
    home: Home,
    gateway: Gateway,
    agents: Agents,
    triggers: Triggers,
    living: BTreeMap<String, AgentSettings>,
    secrets: HookSecrets,
    /// The agent that each file described when the file was last valid.
    described: BTreeMap<PathBuf, String>,
    files: ReadFiles,
    /// Messages about the last look at the files, and about this one: each is said once.
    told: (BTreeSet<String>, BTreeSet<String>),
    /// Whether the disk refused some of it.
    is_refused: bool,
}

/// Creates the agents that files describe, begins to deliver events to them, and follows the files
/// until the handle is aborted.
pub(super) async fn begin(
    gyrus: &Gyrus,
    home: &Home,
    gateway: &Gateway,
) -> Result<(Triggers, ReadFiles, AbortHandle), Failure> {
    let store = gateway.store();
    let bus = EventBus::open(store, HistoryLimits::default())?;
    let agents = Agents::open(store, bus);
    let clock = Arc::new(SystemClock::new(gyrus.environment.clock_ahead_ms));
    let clipboard = Arc::new(DesktopClipboard);
    let triggers = Triggers::open(&agents, gateway, clock, clipboard)?;
    let mut files = FileAgents {
        gyrus: gyrus.clone(),
        home: home.clone(),
        gateway: gateway.clone(),
        agents: agents.clone(),
        triggers: triggers.clone(),
        living: BTreeMap::new(),
        secrets: HookSecrets::new(),
        described: BTreeMap::new(),
        files: ReadFiles::default(),
        told: (BTreeSet::new(), BTreeSet::new()),
        is_refused: false,
    };
    let read = Arc::clone(&files.files);
    let watch = watch_files(home);
    // All of them live before the first event is delivered.
    files.load().await;
    agents.begin().await?;
    triggers.begin().await?;
    let following = tokio::spawn(files.follow(watch)).abort_handle();
    Ok((triggers, read, following))
}

impl FileAgents {
    /// Follows the files for as long as the server lives.
    async fn follow(mut self, mut watch: io::Result<FolderWatch>) {
        loop {
            match watch {
                Ok(mut watch) if !self.is_refused => watch.changed().await,
                Ok(_) => sleep(TRY_AGAIN).await,
                Err(error) => {
                    let folder = agent_files::folder(&self.home);
                    let folder = folder.display();
                    self.tell(format!("changes in {folder} are not followed: {error}"));
                    sleep(TRY_AGAIN).await;
                }
            }
            // Before the look, so that what comes after it is not missed.
            watch = watch_files(&self.home);
            self.load().await;
        }
    }

    fn tell(&mut self, text: String) {
        if !self.told.0.contains(&text) {
            say(&format!("{text}\n"));
        }
        self.told.1.insert(text);
    }

    fn failed(&mut self, name: &str, error: &(dyn Error + 'static)) {
        self.is_refused |= is_of_disk(error);
        self.tell(format!("agent {name}: {}", gyrus_net::causes(error)));
    }

    /// Reads all files, and creates, changes or pauses agents accordingly.
    async fn load(&mut self) {
        self.is_refused = false;
        self.bring_up_to_date().await;
        self.told = (std::mem::take(&mut self.told.1), BTreeSet::new());
    }

    async fn bring_up_to_date(&mut self) {
        let (gyrus, home) = (self.gyrus.clone(), self.home.clone());
        let reading = blocking(move || {
            let readings = agent_files::read_all(&gyrus, &home)?;
            let secrets = agent_files::secrets(&gyrus, &readings);
            Ok::<_, io::Error>((readings, secrets))
        });
        let (readings, secrets) = match reading.await {
            Ok(read) => read,
            Err(error) => {
                self.is_refused = true;
                return self.tell(format!("the agent files cannot be read: {error}"));
            }
        };
        self.take_secrets(secrets);
        let (mut named, mut new) = (BTreeSet::new(), Vec::new());
        let mut views = Vec::new();
        for AgentFileResult { path, agent } in readings {
            match agent {
                Ok(file) => {
                    let name = file.config.name.clone();
                    views.push(view(&path, &file));
                    match self.living.get(&name).cloned() {
                        Some(settings) => self.change(&settings, file).await,
                        None => new.push(file),
                    }
                    self.described.insert(path, name.clone());
                    named.insert(name);
                }
                Err(mistakes) => {
                    views.push(view_of_invalid(&path, self.described.get(&path), &mistakes));
                    // It may be half written, so the agent stays as it was.
                    named.extend(self.described.get(&path).cloned());
                    for mistake in &mistakes {
                        self.tell(format!("{}, {mistake}", path.display()));
                    }
                }
            }
        }
        *self.files.lock() = views;
        let creating = stream::iter(new).map(|file| self.create(file));
        let created: Vec<_> = creating.buffer_unordered(CREATED_AT_ONCE).collect().await;
        for (name, created) in created {
            match created {
                Ok(settings) => drop(self.living.insert(name, settings)),
                Err(error) => self.failed(&name, &error),
            }
        }
        for (name, settings) in self.living.clone() {
            if !named.contains(&name) {
                self.triggers.silence(&name);
                self.removed(&name).await;
                continue;
            }
            let file = current(&settings);
            let triggers = file.triggers(&self.secrets);
            if let Err(error) = self.triggers.set(&name, file.budget, &triggers).await {
                self.failed(&name, &error);
            }
        }
    }

    /// Stores the secrets of webhooks, and reports those that cannot be used.
    fn take_secrets(&mut self, secrets: HookSecrets) {
        for (variable, secret) in &secrets {
            if let Err(error) = secret {
                let hint = format!("store one: gyrus agents secret {variable}");
                self.tell(format!(
                    "the secret {variable} of a webhook cannot be used: {error}; {hint}"
                ));
            }
        }
        self.secrets.extend(secrets);
    }

    async fn create(&self, file: AgentFile) -> (String, Result<AgentSettings, AgentError>) {
        let config = file.config.clone();
        let name = config.name.clone();
        let settings: AgentSettings = Arc::new(Mutex::new(Arc::new(file)));
        let behavior = Box::new(FileAgent(Arc::clone(&settings)));
        let runs = Arc::new(QueuedRuns {
            gateway: self.gateway.clone(),
            settings: Arc::clone(&settings),
        });
        let created = self.agents.create_agent(config, behavior, runs).await;
        if created.is_ok() {
            self.is_back(&name).await;
        }
        (name, created.map(|()| settings))
    }

    async fn change(&mut self, settings: &AgentSettings, file: AgentFile) {
        let config = file.config.clone();
        let name = config.name.clone();
        *settings.lock() = Arc::new(file);
        if let Err(error) = self.agents.configure(config).await {
            self.failed(&name, &error);
        }
        self.is_back(&name).await;
    }

    /// Resumes an agent that was paused because its file was removed.
    async fn is_back(&self, name: &str) {
        let was_removed = self.agents.look(name, |record| {
            matches!(&record.stage, Some(AgentStage::Paused { by, .. }) if *by == keeper())
        });
        if matches!(was_removed, Ok(true))
            && let Err(error) = self.agents.resume(name).await
        {
            say(&format!("agent {name}: {error}\n"));
        }
    }

    async fn removed(&self, name: &str) {
        let is_active = self.agents.look(name, |record| record.is_active());
        if !matches!(is_active, Ok(true)) {
            return;
        }
        let why = Some("its file was removed".to_owned());
        match self.agents.pause(name, keeper(), why).await {
            Ok(()) => say(&format!("agent {name} is paused: its file was removed\n")),
            Err(error) => say(&format!("agent {name}: {error}\n")),
        }
    }
}

fn view(path: &Path, file: &AgentFile) -> AgentFileView {
    AgentFileView {
        path: path.to_owned(),
        agent: Some(file.config.name.clone()),
        workdir: Some(file.workdir.clone()),
        instructions: file.instructions.clone(),
        most_runs: file.budget.runs,
        most_tokens: file.budget.tokens,
        most_cost_microdollars: file.budget.cost_microdollars,
        mistakes: Vec::new(),
    }
}

fn view_of_invalid(path: &Path, agent: Option<&String>, mistakes: &[Mistake]) -> AgentFileView {
    AgentFileView {
        path: path.to_owned(),
        agent: agent.cloned(),
        mistakes: mistakes.iter().map(ToString::to_string).collect(),
        ..AgentFileView::default()
    }
}

/// Watches the folder of the files, which is created if there is none.
fn watch_files(home: &Home) -> io::Result<FolderWatch> {
    let folder = agent_files::folder(home);
    fs::create_dir_all(&folder)?;
    watch::watch(&folder)
}

/// Returns the principal that pauses agents whose files are removed.
fn keeper() -> Principal {
    Principal {
        surface: "agent files".to_owned(),
        id: "server".to_owned(),
    }
}

/// Writes to standard error; a failure is ignored, since a server without it goes on.
fn say(text: &str) {
    let _ = put(text);
}

fn current(settings: &AgentSettings) -> Arc<AgentFile> {
    let settings = settings.lock();
    Arc::clone(&settings)
}

struct FileAgent(AgentSettings);

impl AgentBehavior for FileAgent {
    async fn on_event(
        &mut self,
        event: Event,
        _: &mut AgentState,
    ) -> Result<Vec<AgentAction>, BehaviorError> {
        let file = current(&self.0);
        let inbox = format!("agent.{}.inbox", file.config.name);
        // What a person says to the agent itself belongs to its goal; everything else is data.
        let said = match event.payload.as_str() {
            Some(said) if event.origin == Origin::Person && event.topic.as_str() == inbox => said,
            _ => {
                let (mut goal, mut name) =
                    (file.instructions.clone(), format!("event {}", event.topic));
                if let Some(trigger) = event.from.strip_prefix("trigger ") {
                    name = format!("trigger {trigger}");
                    goal = format!("{goal}\n\n{}", TRIGGERED.trim());
                }
                let text = Text::new(event.payload.to_string(), event.origin);
                return Ok(vec![AgentAction::Run {
                    goal: Text::new(goal, Origin::Configuration),
                    context: vec![ContextText { name, text }],
                }]);
            }
        };
        let goal = format!("{}\n\n{said}", file.instructions);
        Ok(vec![AgentAction::Run {
            goal: Text::new(goal, Origin::Person),
            context: Vec::new(),
        }])
    }
}

/// Drives runs of an agent through the queue. A run's id is the key of its command, so it is
/// submitted once, whatever happens in between.
struct QueuedRuns {
    gateway: Gateway,
    settings: AgentSettings,
}

impl AgentRuns for QueuedRuns {
    fn place<'a>(
        &'a self,
        run: &'a AgentRun,
        cause: EventId,
    ) -> Pin<Box<dyn Future<Output = RunId> + Send + 'a>> {
        Box::pin(async move {
            let mut changes = self.gateway.changes();
            // Servers of a fleet may each have this agent: its command for an event is one command.
            while self.gateway.is_shared() {
                changes.borrow_and_update();
                let key = format!("agent/{}/event/{cause}", run.agent);
                match self.submit(run.clone(), key).await {
                    Ok(run) => return run,
                    Err(QueueError::Full) if changes.changed().await.is_ok() => {}
                    Err(error) if is_of_disk(&error) => sleep(TRY_AGAIN).await,
                    Err(_) => break,
                }
            }
            run.run
        })
    }

    fn drive(&self, run: AgentRun) -> Pin<Box<dyn Future<Output = AgentRunEnd> + Send + '_>> {
        Box::pin(async move {
            loop {
                match self.to_its_end(run.clone()).await {
                    Ok(end) => return end,
                    // What is not in the queue yet has not failed.
                    Err(error) if is_of_disk(&error) => sleep(TRY_AGAIN).await,
                    Err(error) => return failed(error.to_string()),
                }
            }
        })
    }
}

fn failed(summary: String) -> AgentRunEnd {
    AgentRunEnd::new(summary, None)
}

impl QueuedRuns {
    async fn to_its_end(&self, run: AgentRun) -> Result<AgentRunEnd, QueueError> {
        let id = run.run;
        let mut changes = self.gateway.changes();
        let mut run = Some(run);
        loop {
            changes.borrow_and_update();
            let stage = self
                .gateway
                .with(|queue| queue.of_run(id).map(|standing| standing.stage.clone()));
            match (stage, run.take()) {
                (Some(CommandStage::Ended { summary, .. }), _) => {
                    return Ok(self.end(id)?.unwrap_or_else(|| failed(summary)));
                }
                (Some(CommandStage::Cancelled { by, .. }), _) => {
                    return Ok(failed(format!("taken back by {}", by.id)));
                }
                (
                    Some(
                        CommandStage::Queued
                        | CommandStage::Running { .. }
                        | CommandStage::Parked { .. },
                    ),
                    _,
                ) => {}
                (None, Some(new)) => {
                    // The queue forgets what ended long ago.
                    if let Some(end) = self.end(id)? {
                        return Ok(end);
                    }
                    match self.submit(new.clone(), id.to_string()).await {
                        Ok(_) => continue,
                        Err(QueueError::Full) => run = Some(new),
                        Err(error) => return Err(error),
                    }
                }
                (None, None) => {
                    let gone = || failed("its command is forgotten".to_owned());
                    return Ok(self.end(id)?.unwrap_or_else(gone));
                }
            }
            if changes.changed().await.is_err() {
                // The queue is closed with the server; the next one goes on.
                std::future::pending().await
            }
        }
    }

    fn end(&self, run: RunId) -> Result<Option<AgentRunEnd>, QueueError> {
        let store = self.gateway.store();
        if !store.exists(&log_name(run)) {
            return Ok(None);
        }
        let RunState::Over(ending) = RunState::of(store, run)? else {
            return Ok(None);
        };
        let answer = match &ending {
            Ending::Reached { claim, .. } => Some(claim.answer.clone()),
            _ => None,
        };
        Ok(Some(AgentRunEnd::new(summary(&ending), answer)))
    }

    /// Submits a run; returns the run of the command that has this key.
    async fn submit(&self, run: AgentRun, key: String) -> Result<RunId, QueueError> {
        let file = current(&self.settings);
        let work = match run.work {
            _ if self.gateway.store().exists(&log_name(run.run)) => QueueWork::Resume,
            AgentWork::Goal { goal, context, .. } => {
                let mut request = file.request(goal);
                request.context = context;
                QueueWork::Start(Box::new(request))
            }
            // An agent of a file calls nothing itself.
            AgentWork::Calls(_) => return Ok(run.run),
        };
        let not_before_ms = self.not_before(&file).await;
        let from = Principal {
            surface: "agent".to_owned(),
            id: run.agent.clone(),
        };
        let new = QueueCommand {
            not_before_ms,
            key: Some(key),
            correlation: run.correlation,
            ..QueueCommand::new(work, Some(run.run), from, run.agent)
        };
        let queued = self.gateway.submit(new).await?;
        Ok(queued.command.run)
    }

    /// Returns the start of the next day if today's budget is used up.
    async fn not_before(&self, file: &AgentFile) -> Option<i64> {
        let budget = file.budget;
        let (gateway, name) = (self.gateway.clone(), file.config.name.clone());
        let now = gyrus_kernel::now_ms();
        let used = blocking(move || gateway.used_on_day_of(&name, now)).await;
        budget.is_used_up(used).then(|| day_of(now).end)
    }
}
