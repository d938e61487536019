//! Executing a cleared call, and settling one that a crash interrupted.

use std::{
    fs::{self, Permissions},
    net::SocketAddr,
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::{
    ActionVerdict, AttendedEnd, BlobId, BoxedFuture, CallSource, ChangedPath, Cleared,
    CommandOutcome, CommandSpec, Containment, Decision, Destination, EffectId, KeeperError, Layer,
    PathChange, PersonReply, Probe, ProcessAction, ProcessReport, Purpose, Repeat, Reply,
    ResolvedCall, ResolvedCommand, ServerPrompt, ServerQuestion, Site, Starts, Tool, ToolOutput,
    ToolSpec, Touch, UnknownSecret,
};
use gyrus_process::{
    ProcessIdentity,
    keeper::{Keeper, wait_until_gone},
};
use gyrus_text::{counted, first_bytes};
use gyrus_workspace::layer::Copies;
use parking_lot::Mutex;

use super::{
    added_folders::AddedLayers,
    ask::cut_off_asks,
    attended, background,
    changes::{self, JudgedChanges},
    destinations::{ConnectionQuestions, Destinations},
    doors, folder, layers, named_files,
    server_requests::{CallRequests, RequestHandler},
};
use crate::{
    CallEnd, Ending, Inline, LiveEvent, LivePiece, Stop, ToolResulted, ToolStarted, core::Core,
};

/// Maximum time for which resuming waits until the process tree of a dead gyrus has ended.
const TREE_GONE_WITHIN: Duration = Duration::from_secs(30);

/// Maximum length of a tool's text in bytes, at which the kernel cuts it if the tool did not. A
/// diff that a person reviews is never cut: it fits, with markers in the place of secrets.
const OUTPUT_LIMIT: usize = 2 << 20;

/// Maximum length of a tool's value as JSON in bytes; a longer one is dropped. It holds a text at
/// the limit in JSON.
const VALUE_LIMIT: usize = 2 * OUTPUT_LIMIT;

/// The environment of a tool during one call.
struct CallSite<'a> {
    core: &'a Core,
    effect: EffectId,
    keeper: Mutex<Option<Keeper>>,
    answer: Option<String>,
    command: Option<ResolvedCommand>,
    /// The containment of the call's command.
    containment: Option<Containment>,
    sending: PageData,
    /// Decides about the command's connections.
    destinations: Option<Destinations<'a>>,
    /// Handles the requests of the server that the tool belongs to.
    requests: Option<RequestHandler<'a>>,
    /// A text for the model about changes in added folders, and those that were discarded.
    thrown_away: Mutex<String>,
}

impl<'a> CallSite<'a> {
    fn new(
        core: &'a Core,
        effect: &EffectId,
        keeper: Option<Keeper>,
        answer: Option<String>,
        command: Option<ResolvedCommand>,
    ) -> Self {
        Self {
            core,
            effect: effect.clone(),
            keeper: Mutex::new(keeper),
            answer,
            command,
            containment: None,
            sending: PageData::default(),
            destinations: None,
            requests: None,
            thrown_away: Mutex::default(),
        }
    }

    /// Adds the texts about refused connections and discarded changes to a tool's output.
    fn with_refused(&self, mut output: ToolOutput) -> ToolOutput {
        let thrown_away = self.thrown_away.lock();
        output.text.push_str(&thrown_away);
        let destinations = self.destinations.as_ref();
        if let Some(limit) = destinations.and_then(Destinations::told_of_refused) {
            output.limited(limit);
        }
        output
    }
}

impl Site for CallSite<'_> {
    fn workspace(&self) -> &Path {
        &self.core.started.workspace
    }

    fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    fn longest_command(&self) -> u64 {
        self.core.started.sandbox.longest_command()
    }

    fn source(&self) -> Option<CallSource> {
        Some(CallSource {
            run: self.core.started.run,
            effect: self.effect.clone(),
            exposed: self.core.shared().state.exposed,
        })
    }

    fn is_known(&self, path: &Path) -> bool {
        self.core.shared().known_paths.contains(path)
    }

    fn withheld(&self, path: &Path) -> Option<String> {
        let change = ChangedPath {
            path: path.to_owned(),
            change: PathChange::Created,
        };
        let withheld = self.core.withhold(&[change]).into_iter().next();
        withheld.map(|one| one.reason)
    }

    fn sends_to(&self) -> &[String] {
        &self.sending.to
    }

    fn sends_only_the_form(&self) -> bool {
        self.sending.only_the_form
    }

    fn keep(&self, bytes: &[u8]) -> Result<BlobId, String> {
        self.core
            .log
            .put_blob(bytes)
            .map_err(|stop| stop.to_string())
    }

    fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        self.core.kernel.organs().redactor.reveal(text)
    }

    fn tell(&self, words: &str) {
        let words = self.core.kernel.organs().redactor.redact(words);
        let said = LivePiece::Progress(words.into_owned());
        self.core.tell(&self.effect, said);
    }

    fn ask_person(&self, question: ServerQuestion) -> BoxedFuture<'_, PersonReply> {
        Box::pin(async move {
            match &self.requests {
                Some(requests) => requests.ask_person(question).await,
                None => PersonReply::NotAsked("nobody can be asked now".to_owned()),
            }
        })
    }

    fn ask_model(&self, prompt: ServerPrompt) -> BoxedFuture<'_, Result<Reply, String>> {
        Box::pin(async move {
            match &self.requests {
                Some(requests) => requests.ask_model(prompt).await,
                None => Err("no model can be asked now".to_owned()),
            }
        })
    }

    fn changes_follow(&self) -> bool {
        layers::changes_follow(self.core, &self.effect)
    }

    fn served(&self, at: SocketAddr) -> Option<OwnedFd> {
        self.core.background.socket(&Destination {
            host: at.ip().to_string(),
            port: at.port(),
            name: None,
        })
    }

    fn start_process(&self, command: CommandSpec) -> BoxedFuture<'_, Result<String, KeeperError>> {
        // It may stand in a sandbox for commands that end with their calls.
        let keeper = self.keeper.lock().take();
        keeper
            .into_iter()
            .for_each(|keeper| self.core.spares.put(keeper));
        let started = match (&self.command, &self.destinations, self.containment.clone()) {
            (Some(resolved), Some(destinations), Some(containment)) => {
                let command = with_variables(self.core, command, resolved);
                let call = destinations.call();
                background::start(self.core, &self.effect, call, command, containment)
            }
            _ => Err(KeeperError::Keeper {
                reason: "without the sandbox, nothing outlives its call".to_owned(),
            }),
        };
        Box::pin(std::future::ready(started))
    }

    fn process<'a>(
        &'a self,
        name: &'a str,
        action: ProcessAction,
    ) -> BoxedFuture<'a, Result<ProcessReport, String>> {
        Box::pin(background::act(self.core, &self.effect, name, action))
    }

    fn run_attended(
        &self,
        command: CommandSpec,
    ) -> BoxedFuture<'_, Result<AttendedEnd, KeeperError>> {
        let may_go_on = |it: &Containment| attended::may_go_on(self.core, &self.effect, it);
        let containment = self.containment.clone().filter(may_go_on);
        let (Some(resolved), Some(destinations), Some(containment)) =
            (&self.command, &self.destinations, containment)
        else {
            return Box::pin(async { self.run_command(command).await.map(AttendedEnd::Ended) });
        };
        let keeper = self.keeper.lock().take();
        Box::pin(async move {
            let Some(keeper) = keeper else {
                return self.run_command(command).await.map(AttendedEnd::Ended);
            };
            let command = with_variables(self.core, command, resolved);
            let ran = (keeper, command, containment.clone());
            let ran = attended::run(self.core, &self.effect, ran, (destinations, self)).await;
            match ran {
                Ok((end, keeper)) => {
                    keep_standing(self.core, keeper, &containment);
                    Ok(end)
                }
                Err(error) => {
                    layers::refuse(self.core, &self.effect, &error.to_string());
                    Err(error)
                }
            }
        })
    }

    fn run_command(
        &self,
        command: CommandSpec,
    ) -> BoxedFuture<'_, Result<CommandOutcome, KeeperError>> {
        let keeper = self.keeper.lock().take();
        Box::pin(async move {
            let Some(keeper) = keeper else {
                let reason = "a call may run one command, and only if its specification says so";
                return Err(KeeperError::Keeper {
                    reason: reason.to_owned(),
                });
            };
            let Some(resolved) = &self.command else {
                return keeper.run(command).await;
            };
            let command = with_variables(self.core, command, resolved);
            let Some(mut containment) = self.containment.clone() else {
                return keeper.run(command).await;
            };
            let Some(destinations) = &self.destinations else {
                let reason = "nothing decides where its command may connect".to_owned();
                return Err(KeeperError::Keeper { reason });
            };
            let thrown_away = layers::to_throw_away(self.core, &self.effect, &mut containment);
            let added = AddedLayers::mount(self.core, &self.effect, &mut containment);
            layers::command_begins(self.core, &self.effect);
            let _mode = KeptMode::of(&self.core.started.workspace);
            // Where there is no layer, the time of the end tells whose a change is.
            let is_layered = containment.layered.iter().any(|layer| layer.required);
            let ended = (!is_layered).then(|| changes::end_mark(self.core, &self.effect));
            let ran = destinations
                .run(keeper, command, &containment, ended.as_deref())
                .await;
            let outcome = ran.map(|(outcome, keeper)| {
                keep_standing(self.core, keeper, &containment);
                outcome
            });
            let mut told = added.settle(self.core);
            told.extend(thrown_away.map(layers::throw_away));
            *self.thrown_away.lock() = told;
            if let Err(error) = &outcome {
                layers::refuse(self.core, &self.effect, &error.to_string());
            }
            outcome
        })
    }
}

impl Core {
    /// Tells whoever follows the run live about a call.
    pub(super) fn tell(&self, effect: &EffectId, said: LivePiece) {
        if let Some(live) = &self.kernel.organs().live {
            live(LiveEvent {
                run: self.started.run,
                effect,
                purpose: Purpose::Agent,
                said,
            });
        }
    }
}

/// Adds the variables that the command of this call sees beside those of every command.
fn with_variables(core: &Core, mut command: CommandSpec, of: &ResolvedCommand) -> CommandSpec {
    // A program with the person's own rights has the person's own variables.
    if of.program.is_none() {
        let values = &core.kernel.organs().variables;
        let seen = core.started.sandbox.variables.iter();
        let seen = seen.filter_map(|name| Some((name.clone(), values.get(name)?.clone())));
        command.environment.extend(seen);
    }
    command.environment.extend(of.reading.environment.clone());
    command
}

/// Restores the mode of a folder. No snapshot holds that of the workspace itself, and without it
/// neither the person nor gyrus might be able to access it again.
struct KeptMode<'a> {
    folder: &'a Path,
    before: Option<Permissions>,
}

impl<'a> KeptMode<'a> {
    fn of(folder: &'a Path) -> Self {
        let before = fs::metadata(folder).ok().map(|found| found.permissions());
        Self { folder, before }
    }
}

impl Drop for KeptMode<'_> {
    fn drop(&mut self) {
        let now = fs::metadata(self.folder)
            .ok()
            .map(|found| found.permissions());
        if let Some(before) = self
            .before
            .take()
            .filter(|before| now.as_ref() != Some(before))
        {
            // If this fails, the comparison of the workspace reports it.
            let _ = fs::set_permissions(self.folder, before);
        }
    }
}

/// Returns the containment of a call's command: the gate's, with the copies and layers that cover
/// what it would change, and the addresses that it finds.
fn containment(
    core: &Core,
    effect: &EffectId,
    resolved: &ResolvedCall,
    spec: &ToolSpec,
) -> Option<Containment> {
    let mut containment = resolved.command.as_ref()?.containment.clone()?;
    core.repositories.lock().stand_in(&mut containment);
    layers::stand_in(core, effect, &mut containment);
    let loopback = core.forwarded(resolved, spec).into_iter();
    let (allowed, asked): (Vec<_>, Vec<_>) =
        loopback.partition(|(_, decision)| *decision == Decision::Allow);
    // What the run serves itself comes before what others serve at the same port.
    containment.forwarded = core.background.served();
    containment
        .forwarded
        .extend(allowed.into_iter().map(|(at, _)| at));
    // What is put into the background later is to be reached as any process there is.
    containment.serves = attended::may_go_on(core, effect, &containment);
    containment.asked = asked.into_iter().map(|(at, _)| at).collect();
    Some(containment)
}

/// Returns a keeper for a call that starts processes; if possible, one whose sandbox is already
/// prepared.
fn keeper_for(
    core: &Core,
    tool: &dyn Tool,
    containment: Option<&Containment>,
) -> Result<Option<Keeper>, KeeperError> {
    if !tool.spec().touches(Touch::starts_processes) {
        return Ok(None);
    }
    match containment.and_then(|containment| core.spares.take(containment)) {
        Some(keeper) => Ok(Some(keeper)),
        None => core.kernel.organs().start_keeper().map(Some),
    }
}

/// Keeps a sandbox for the next command, unless the layer over the workspace is to be discarded.
fn keep_standing(core: &Core, keeper: Option<Keeper>, containment: &Containment) {
    let thrown_away = |layer: &Layer| layer.lower == core.started.workspace && !layer.required;
    match keeper {
        Some(keeper) if containment.layered.iter().any(thrown_away) => keeper.end(),
        // Only one layer can be replaced by another.
        Some(keeper)
            if containment
                .layered
                .iter()
                .filter(|layer| layer.required)
                .count()
                > 1 =>
        {
            keeper.end();
        }
        Some(keeper) => core.spares.put(keeper),
        None => {}
    }
}

/// A call that the gate allowed, with the person if one was asked.
pub(super) struct Clearance {
    pub(super) resolved: ResolvedCall,
    /// The person's answer beside the approval.
    pub(super) answer: Option<String>,
    pub(super) attempt: u32,
    pub(super) sending: PageData,
}

/// The data that a page may send because of a call.
#[derive(Default)]
pub(super) struct PageData {
    /// The origins to which the page may send.
    pub(super) to: Vec<String>,
    /// Whether the page may send nothing but the form that was judged.
    pub(super) only_the_form: bool,
}

/// Executes a call that the gate allowed: from its durable start to its outcome.
pub(super) async fn start(
    core: &Core,
    effect: &EffectId,
    tool: &Arc<dyn Tool>,
    allowed: Clearance,
    (questions, requests): (&mut ConnectionQuestions, &mut CallRequests),
) -> Result<ToolResulted, Stop> {
    let Clearance {
        resolved,
        answer,
        attempt,
        sending,
    } = allowed;
    let _acting = core.acting().await?;
    // A person may have been asked in between, for hours.
    core.may_act()?;
    let _turn = layers::turn(core, tool.spec()).await;
    let copies = layers::copy_before(core, effect, &resolved, tool.spec())?;
    let mut before = None;
    if changes::are_judged(&**tool, &resolved) {
        match changes::begin(core, effect, &resolved, tool.spec()) {
            Ok(snapshot) => before = snapshot,
            Err(error) => return Ok(refused(core, effect, error.handled()?)),
        }
    }
    for starts in resolved.aim.iter().flat_map(|aim| &aim.starts) {
        if matches!(starts, Starts::Opens { address } if core.background.serves(address)) {
            doors::open(core).await;
        }
    }
    let containment = containment(core, effect, &resolved, tool.spec());
    let keeper = match keeper_for(core, &**tool, containment.as_ref()) {
        Ok(keeper) => keeper,
        Err(error) => return not_run(core, effect, &error, copies),
    };
    let identity = keeper.as_ref().map(|keeper| keeper.identity().clone());
    core.log.append(ToolStarted {
        effect: effect.clone(),
        attempt,
        keeper: identity.clone(),
        before,
    })?;
    if tool.spec().touches(Touch::changes_workspace) {
        core.shared().world_changed = true;
    }
    if tool.spec().touches(Touch::changes_world) {
        core.log.barrier().await?;
    }
    let destinations = Destinations::new(core, effect, tool.spec(), resolved.clone(), questions);
    let site = CallSite {
        sending,
        containment,
        destinations: Some(destinations),
        requests: RequestHandler::of(core, tool.spec(), requests),
        ..CallSite::new(core, effect, keeper, answer, resolved.command.clone())
    };
    let since = Instant::now();
    let output = call_of(core, effect, tool, resolved, &site).await;
    drop(site);
    end_asks(core, effect)?;
    match output {
        Ok(output) => {
            let outcome = done(core, effect, output, took_ms(since), copies)?;
            let pending = questions.pending();
            Ok(ToolResulted { pending, ..outcome })
        }
        Err(ending) => cut_off_by_person(core, effect, identity, (since, ending, copies)).await,
    }
}

/// Ends requests to a model for which the server of a call did not wait.
fn end_asks(core: &Core, effect: &EffectId) -> Result<(), Stop> {
    for entry in cut_off_asks(core, effect) {
        core.log.append(entry)?;
    }
    Ok(())
}

/// Returns the outcome of a call whose command could not be run.
fn not_run(
    core: &Core,
    effect: &EffectId,
    error: &KeeperError,
    copies: Option<Copies>,
) -> Result<ToolResulted, Stop> {
    layers::discard(core, effect);
    let changed = changes::end(core, effect, copies)?;
    let text = format!("the command was not run: {error}{}", changed.told());
    Ok(refused(core, effect, text))
}

/// Returns the outcome of a call that ran to its end.
fn done(
    core: &Core,
    effect: &EffectId,
    mut output: ToolOutput,
    took_ms: u64,
    copies: Option<Copies>,
) -> Result<ToolResulted, Stop> {
    if output.is_error {
        layers::discard(core, effect);
    }
    let changed = changes::end(core, effect, copies)?;
    output.text.push_str(&changed.told());
    let outcome = resulted(core, effect, CallEnd::Done, output, took_ms)?;
    Ok(ToolResulted {
        withheld: changed.withheld,
        to_undo: changed.to_undo,
        ..outcome
    })
}

/// Clears and executes a call, unless the files or programs that it names have changed; returns
/// `Err` if a person interrupts it.
async fn call_of(
    core: &Core,
    effect: &EffectId,
    tool: &Arc<dyn Tool>,
    resolved: ResolvedCall,
    site: &CallSite<'_>,
) -> Result<ToolOutput, Ending> {
    if let Some(why) = named_files::differs_now(core, &**tool, &resolved) {
        return Ok(ToolOutput {
            verdict: ActionVerdict::Refused,
            ..ToolOutput::error(why)
        });
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where a call is cleared"
    )]
    let cleared = Cleared::mint(resolved, effect.clone());
    tokio::select! {
        output = tool.call(cleared, site) => Ok(site.with_refused(output)),
        ending = core.controls.stopped() => Err(ending),
    }
}

/// Records an interrupted call, once all its processes have ended, and stops.
async fn cut_off_by_person(
    core: &Core,
    effect: &EffectId,
    keeper: Option<ProcessIdentity>,
    (since, ending, copies): (Instant, Ending, Option<Copies>),
) -> Result<ToolResulted, Stop> {
    if let Some(keeper) = keeper {
        wait_until_gone(&keeper, TREE_GONE_WITHIN).await;
    }
    layers::discard(core, effect);
    let changed = changes::end(core, effect, copies)?;
    let whom = match &ending {
        Ending::Limit { what } => format!("the run's limit ({what})"),
        _ => "a person".to_owned(),
    };
    let text = format!("{whom} cut this call off; it may have done part of its work");
    let output = ToolOutput {
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::error(format!("{text}{}", changed.told()))
    };
    let outcome = resulted(core, effect, CallEnd::Cancelled, output, took_ms(since))?;
    folder::record_change(core, effect)?;
    core.log.append(ToolResulted {
        withheld: changed.withheld,
        to_undo: changed.to_undo,
        ..outcome
    })?;
    Err(ending.into())
}

/// A call of an earlier process that has a start but no outcome.
pub(super) struct CutOff<'a> {
    pub(super) tool: &'a Arc<dyn Tool>,
    pub(super) started: &'a ToolStarted,
    pub(super) resolved: ResolvedCall,
}

/// Waits until all processes of a call of a dead process have ended.
pub(crate) async fn wait_for_tree(started: &ToolStarted) -> Result<(), Stop> {
    let Some(keeper) = &started.keeper else {
        return Ok(());
    };
    if wait_until_gone(keeper, TREE_GONE_WITHIN).await {
        return Ok(());
    }
    let what = format!(
        "a process that effect {} started is still alive (its keeper is process {}); end it, \
         then resume",
        started.effect, keeper.pid
    );
    Err(Ending::Stuck { what }.into())
}

/// Settles an interrupted call according to its tool's repeat policy, after its processes have
/// ended. Returns `None` if it is to be called again, provided that it is still allowed.
pub(super) async fn settle(
    core: &Core,
    effect: &EffectId,
    cut_off: CutOff<'_>,
) -> Result<Option<ToolResulted>, Stop> {
    let CutOff {
        tool,
        started,
        resolved,
    } = cut_off;
    if !core.log.is_live() {
        return Err(Stop::EndOfRecord);
    }
    wait_for_tree(started).await?;
    let changed = judged_of_the_dead(core, started)?;
    core.shared().world_changed |= tool.spec().touches(Touch::changes_workspace);
    let again = match tool.spec().repeat {
        Repeat::Freely => true,
        Repeat::Never => false,
        Repeat::Probe => {
            let site = CallSite::new(core, effect, None, None, None);
            match tool.probe(&resolved, &site).await {
                Probe::Happened(output) => {
                    return resulted(core, effect, CallEnd::Done, *output, 0).map(Some);
                }
                Probe::DidNotHappen => true,
                Probe::Unknown => false,
            }
        }
    };
    if again {
        return Ok(None);
    }
    let output = ToolOutput {
        verdict: ActionVerdict::CannotTell,
        ..ToolOutput::error(format!(
            "this call was interrupted by a crash; it may or may not have happened, in part or \
             whole. Look before you do it again.{}{}",
            core.kernel.organs().travels.told(),
            changed.told()
        ))
    };
    let outcome = resulted(core, effect, CallEnd::Interrupted, output, 0)?;
    Ok(Some(ToolResulted {
        withheld: changed.withheld,
        to_undo: changed.to_undo,
        ..outcome
    }))
}

/// Reverts the changes of an earlier process's call that may not stay. The call's processes have
/// ended.
pub(crate) fn judged_of_the_dead(
    core: &Core,
    started: &ToolStarted,
) -> Result<JudgedChanges, Stop> {
    changes::end_of_the_dead(core, &started.effect, started.before.as_ref())
}

/// Returns the outcome of a call that was not allowed.
pub(super) fn refused(core: &Core, effect: &EffectId, text: String) -> ToolResulted {
    let text = core.kernel.organs().redactor.redact(&text).into_owned();
    ToolResulted::not_done(
        effect.clone(),
        CallEnd::Refused,
        ActionVerdict::Refused,
        text,
    )
}

/// Bounds and redacts a tool's output as it enters the run.
fn resulted(
    core: &Core,
    effect: &EffectId,
    settled: CallEnd,
    output: ToolOutput,
    took_ms: u64,
) -> Result<ToolResulted, Stop> {
    let redactor = &core.kernel.organs().redactor;
    let text = bounded(redactor.redact(&output.text).into_owned());
    let value = output.value.map(|mut value| {
        redactor.redact_json(&mut value);
        value
    });
    let value = value.filter(|value| value.to_string().len() <= VALUE_LIMIT);
    let claim = match output.claim {
        None => None,
        Some(claim) => {
            let mut value =
                serde_json::to_value(claim).map_err(|error| Stop::Failed(error.to_string()))?;
            redactor.redact_json(&mut value);
            serde_json::from_value(value).map_err(|error| Stop::Failed(error.to_string()))?
        }
    };
    Ok(ToolResulted {
        effect: effect.clone(),
        settled,
        text: Inline::store(&text, &core.log)?,
        value: value
            .map(|value| Inline::store(&value, &core.log))
            .transpose()?,
        images: output.images,
        is_error: output.is_error,
        verdict: output.verdict,
        artifacts: output.artifacts,
        claim,
        withheld: None,
        to_undo: None,
        pending: Vec::new(),
        sandbox: output
            .sandbox
            .iter()
            .map(|limit| redactor.redact(limit).into_owned())
            .collect(),
        took_ms,
    })
}

fn bounded(mut text: String) -> String {
    if text.len() > OUTPUT_LIMIT {
        let kept = first_bytes(&text, OUTPUT_LIMIT).len();
        let omitted = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("\n[{} cut]", counted(omitted, "more byte")));
    }
    text
}

fn took_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
