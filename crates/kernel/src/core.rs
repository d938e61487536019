//! The state shared by all effects of one run.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
};

use gyrus_contract::{
    BlobId, CallPlace, ChangedPath, Does, EffectId, Grant, Image, Part, Principal, Purpose,
    ResolvedCall, Router, RunId, SurfaceMessage, Text, ToolSpec,
};
use gyrus_journal::Inbox;
use gyrus_process::keeper::Spares;
use gyrus_workspace::{
    layer::{CallLayer, MovedPaths},
    snapshot::Snapshots,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Mutex as AsyncMutex, RwLockReadGuard};

use crate::{
    Controls, Ending, Entry, Kernel, KernelState, ModelReply, RunSettings, RunStarted, Stop,
    accounts::Account,
    contents::WorkspaceContents,
    effects::{plainer::Features, processes::Background, repositories::Repositories},
    links::RunLinks,
    log::RunLog,
    mandate::Provenance,
    recorded::RecordedCycle,
    run_tools::RunTools,
    typed::SecretFields,
};

/// Maximum number of remembered paths that a run knows; then it starts anew.
const MAX_KNOWN_PATHS: usize = 10_000;

/// One run while a process holds it.
pub(crate) struct Core {
    /// The tools of the run: those that its skills leave it.
    pub(crate) tools: RunTools,
    parts: CoreParts,
    pub(crate) recorded: Mutex<RecordedCycle>,
    shared: Mutex<CycleState>,
    pub(crate) links: Mutex<RunLinks>,
    /// The mandate, and the origins of the values that the run has read.
    pub(crate) provenance: Mutex<Provenance>,
    pub(crate) snapshots: Mutex<Snapshots>,
    /// The calls in progress whose changes are judged at their end, each with the snapshot before
    /// it, unless the folder is too large.
    pub(crate) judged_calls: Mutex<Vec<(EffectId, Option<BlobId>)>>,
    /// The workspace's repositories, of which commands see private copies.
    pub(crate) repositories: Mutex<Repositories>,
    /// Prepared sandboxes for the next commands.
    pub(crate) spares: Spares,
    /// The layers that receive the changes of commands.
    pub(crate) layers: Mutex<Layers>,
    /// Background processes, which outlive calls.
    pub(crate) background: Background,
    /// This run, for background processes that must find it.
    pub(crate) this: OnceLock<Weak<Core>>,
    /// A lock held by a call that changes a workspace which is too large for snapshots.
    pub(crate) layer_turn: AsyncMutex<()>,
}

/// The state that changes during a cycle, beside the account.
#[derive(Debug, Default)]
pub(crate) struct CycleState {
    /// The part that a cycle's last entry contains. The account counts what is spent and the
    /// children, and the settings do not change, so those three are not read here.
    pub(crate) state: KernelState,
    pub(crate) consumed: Vec<String>,
    /// The properties of requests that each model's server accepted in this process.
    pub(crate) accepted: BTreeMap<String, Features>,
    /// Whether this process has looked at a screen.
    pub(crate) looked: bool,
    /// The fields in which passwords are typed, as of the last look.
    pub(crate) secret_fields: SecretFields,
    /// The picture of the last look.
    pub(crate) picture: Option<Image>,
    /// The names of the tools that the last question offered, for telling a model that it named
    /// another tool.
    pub(crate) offered: Vec<String>,
    /// The message number in memory below which messages are in the journal.
    pub(crate) journaled_items: u64,
    /// Real paths that calls of this run named, read or wrote. It starts empty in each process.
    pub(crate) known_paths: BTreeSet<PathBuf>,
    /// Whether a live call of this cycle may have changed the workspace.
    pub(crate) world_changed: bool,
    /// Calls that began live and have no outcome yet, which a lost race interrupts.
    pub(crate) open_calls: Vec<EffectId>,
    /// Child runs that this process drives.
    pub(crate) open_children: Vec<OpenChild>,
    /// The reason why the journal of a child run that is over could not be sealed.
    pub(crate) unsealed: Option<String>,
    /// Requests without a reply yet, each in the form that is recorded if it is interrupted.
    pub(crate) open_asks: Vec<ModelReply>,
}

impl CycleState {
    /// Adds paths that the run knows from now on.
    pub(crate) fn know(&mut self, paths: impl Iterator<Item = PathBuf>) {
        for path in paths.take(MAX_KNOWN_PATHS) {
            if self.known_paths.len() >= MAX_KNOWN_PATHS {
                self.known_paths.clear();
            }
            self.known_paths.insert(path);
        }
    }

    /// Records the files that a command wrote as known.
    pub(crate) fn know_changed(&mut self, workspace: &Path, changes: &[ChangedPath]) {
        self.know(changes.iter().map(|change| workspace.join(&change.path)));
    }

    /// Records the paths in a call's arguments, and the files that its command reads, as known.
    pub(crate) fn know_named(&mut self, call: &ResolvedCall) {
        self.know(call.paths.values().map(|path| path.real.clone()));
        let facts = call
            .command
            .iter()
            .flat_map(|command| &command.reading.facts);
        self.know(facts.filter_map(|fact| {
            let Does::Reads { path } = &fact.does else {
                return None;
            };
            Some(path.clone())
        }));
    }
}

/// The layers of the calls in progress.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) current: BTreeMap<EffectId, CallLayer>,
    /// The paths that layers of this run were moved to while others were in progress.
    pub(crate) moved: MovedPaths,
    /// Layers of earlier calls that no undo needs, until the next call begins or the cycle ends.
    pub(crate) spent: Vec<CallLayer>,
    /// Whether the run is settled and not taken up: changes that were not moved yet never count, and
    /// those that were are kept for an undo.
    pub(crate) is_settling: bool,
    /// The reason why commands cannot have a layer here.
    pub(crate) refused: Option<String>,
    /// Whether files can be renamed from the run's folder into the workspace, if that is known.
    pub(crate) is_near: Option<bool>,
}

/// A child run while it is driven.
#[derive(Debug, Clone)]
pub(crate) struct OpenChild {
    pub(crate) effect: EffectId,
    pub(crate) child: RunId,
}

/// The parts of a run, before its first effect.
pub(crate) struct CoreParts {
    pub(crate) kernel: Kernel,
    pub(crate) started: Arc<RunStarted>,
    pub(crate) goal: Text,
    pub(crate) context: Vec<Part>,
    pub(crate) settings: RunSettings,
    pub(crate) log: RunLog,
    pub(crate) inbox: Option<Inbox>,
    pub(crate) account: Account,
    pub(crate) controls: Controls,
    /// Whether prompts may differ from the recorded ones, because the present prompts are others.
    /// Effects may not differ.
    pub(crate) prompts_may_differ: bool,
}

impl Deref for Core {
    type Target = CoreParts;

    fn deref(&self) -> &CoreParts {
        &self.parts
    }
}

impl Core {
    pub(crate) fn new(
        parts: CoreParts,
        (state, journaled_items): (KernelState, u64),
        snapshots: Snapshots,
    ) -> Self {
        let shared = CycleState {
            state,
            journaled_items,
            ..CycleState::default()
        };
        let allowed = |spec: &&Arc<ToolSpec>| {
            let mut skills = parts.started.skills.iter();
            skills.all(|skill| skill.allows(spec))
        };
        let specs = parts.kernel.organs().specs.iter().filter(allowed);
        Self {
            tools: RunTools::new(specs.cloned().collect()),
            parts,
            recorded: Mutex::default(),
            shared: Mutex::new(shared),
            links: Mutex::default(),
            provenance: Mutex::default(),
            snapshots: Mutex::new(snapshots),
            judged_calls: Mutex::default(),
            repositories: Mutex::default(),
            spares: Spares::default(),
            layers: Mutex::default(),
            background: Background::default(),
            this: OnceLock::new(),
            layer_turn: AsyncMutex::default(),
        }
    }

    pub(crate) fn shared(&self) -> MutexGuard<'_, CycleState> {
        self.shared.lock()
    }

    pub(crate) fn contents(&self) -> WorkspaceContents<'_> {
        let organs = self.kernel.organs();
        let workspace = &self.started.workspace;
        WorkspaceContents::new(&organs.redactor, &*organs.gate, &self.log, workspace)
    }

    /// Waits until no person controls the screen, without counting the time.
    pub(crate) async fn acting(&self) -> Result<RwLockReadGuard<'_, bool>, Ending> {
        let _waits = self.account.wait_for_a_person();
        self.controls.acting().await
    }

    /// Returns the kernel's part of a cycle's last entry.
    pub(crate) fn kernel_state(&self) -> KernelState {
        let mut state = self.shared().state.clone();
        state.spent = self.account.spent();
        state.children = self.account.children();
        state.plainer.retain(|_, plainness| !plainness.is_empty());
        state.settings = (self.settings != self.started.settings).then(|| self.settings.clone());
        state
    }

    /// Returns the texts that the person typed: the goal and its amendments, and those in the run's
    /// first entry.
    pub(crate) fn trusted(&self) -> Vec<String> {
        let amendments = self.shared().state.amendments.clone();
        iter::once(&self.goal)
            .chain(&amendments)
            .filter(|text| text.origin.is_trusted())
            .map(|text| text.text.clone())
            .chain(self.started.trusted.iter().cloned())
            .collect()
    }

    /// Returns the router of the models that the run asks.
    pub(crate) fn router(&self) -> Arc<dyn Router> {
        self.kernel.organs().router_of(&self.started.own_model)
    }

    /// Returns the run and folder in which its calls are made.
    pub(crate) fn place(&self) -> CallPlace<'_> {
        CallPlace {
            run: self.started.run,
            workspace: &self.started.workspace,
            agent: &self.started.agent,
            mode: self.settings.mode,
            skills: &self.started.skills,
            sandbox: &self.started.sandbox,
        }
    }

    /// Adds grants that the person gave.
    pub(crate) fn grant(&self, grants: &[Grant]) {
        let mut shared = self.shared();
        for grant in grants {
            if !shared.state.grants.contains(grant) {
                shared.state.grants.push(grant.clone());
            }
        }
    }

    /// Returns the number of the next question of this purpose, counted from 0.
    pub(crate) fn next_question(&self, purpose: Purpose) -> u64 {
        self.shared()
            .state
            .questions
            .get(&purpose)
            .copied()
            .unwrap_or(0)
    }

    /// Records that the question of this purpose with this number was asked.
    pub(crate) fn count_question(&self, purpose: Purpose, ordinal: u64) {
        let mut shared = self.shared();
        let next = shared.state.questions.entry(purpose).or_default();
        *next = (*next).max(ordinal.saturating_add(1));
    }

    /// Records that the loop is about to see untrusted text.
    pub(crate) fn expose(&self) {
        self.shared().state.exposed = true;
    }

    /// Returns the waiting inbox messages, oldest first. A message that cannot be read stays in the
    /// folder for a person to look at; it must not stop the run.
    pub(crate) fn messages(&self) -> Result<Vec<SurfaceMessage>, Stop> {
        let Some(inbox) = &self.inbox else {
            return Ok(Vec::new());
        };
        let messages = inbox.messages()?;
        let shared = self.shared();
        Ok(messages
            .into_iter()
            .filter(|(id, _)| !shared.consumed.contains(id))
            .filter_map(|(id, body)| {
                let message: SurfaceMessage = serde_json::from_str(&body).ok()?;
                // The inbox identifies a message by its file name, not by the id in its text.
                Some(SurfaceMessage { id, ..message })
            })
            .collect())
    }

    /// Removes a message from the inbox, which is durable in the journal.
    pub(crate) fn forget_message(&self, id: &str) -> Result<(), Stop> {
        if let Some(inbox) = &self.inbox {
            inbox.remove(id)?;
        }
        self.shared().consumed.push(id.to_owned());
        Ok(())
    }

    /// Checks that all runs have not been stopped meanwhile. Must be called before any live action.
    /// If they have, the run parks, and can be resumed when a person has lifted the stop.
    pub(crate) fn may_act(&self) -> Result<(), Stop> {
        if !self.log.is_live() {
            return Ok(());
        }
        Ok(self.kernel.check_latch().map_err(Ending::from)?)
    }

    /// Obeys pause and stop requests of the inbox, whatever effect is in progress.
    pub(crate) fn obey_messages(&self) -> Result<(), Stop> {
        use gyrus_contract::MessageBody::{Background, Pause, Stop};
        for message in self.messages()? {
            let by: Principal = message.from;
            match message.body {
                Pause => self.controls.pause(by),
                Stop => self.controls.stop(by),
                Background => self.controls.background(),
                _ => continue,
            }
            if let Some(inbox) = &self.inbox {
                inbox.remove(&message.id)?;
            }
        }
        Ok(())
    }

    /// Announces limits that are nearly used up.
    pub(crate) fn warn_of_limits(&self) -> Result<(), Stop> {
        for what in self.account.warnings() {
            self.log
                .append(Entry::BudgetWarning(crate::BudgetWarning { what }))?;
        }
        Ok(())
    }
}
