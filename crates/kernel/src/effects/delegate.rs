//! Child runs. A child is a run like any other, with its own journal; its parent's journal holds
//! its task and its result, and a replay of the parent reads nothing else.

use std::sync::Arc;

use gyrus_contract::{
    ChildModel, Digest, EffectId, FollowedSkill, Limits, Origin, Part, RunId, Spent, Text, ToolCall,
};
use gyrus_journal::LockWait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    doors,
    hooks::{CallHooks, HOOKS_RAN},
};

use crate::{
    Attachment, ChildEnded, ChildStarted, Ending, Entry, Kernel, KernelError, NewRun, ParentRun,
    ResumeChanges, Stop,
    accounts::TreeUsage,
    core::{Core, OpenChild},
    position::RunPosition,
    recorded::diverges,
    run::NumberedEffect,
    runs::{check_not_record, log_name, summary},
};

/// Maximum depth of runs below the one that a person started.
pub const MAX_DEPTH: u32 = 3;

/// Maximum number of children that a run and its descendants may start in all.
pub const MAX_CHILDREN: u32 = 64;

/// A task for a child run.
#[derive(Debug, Clone)]
pub struct Delegation {
    /// The goal of the child, which does not count as a person's words there.
    pub goal: String,
    /// The name of the child's loop.
    pub cognitive_loop: String,
    /// The loop's configuration.
    pub loop_config: Value,
    /// The limits of the child; never more than its parent has left.
    pub limits: Limits,
    pub options: ChildOptions,
}

/// The ways in which a child differs from its parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildOptions {
    /// The model that the child asks.
    #[serde(flatten)]
    pub model: ChildModel,
    /// The tools to which the child is limited, as by a skill that it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrowed: Option<FollowedSkill>,
    /// Whether the child works in a work tree of its own, and returns a branch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_worktree: bool,
    /// Maximum number of runs in the child's tree, if less than [`MAX_CHILDREN`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_runs: Option<u32>,
}

/// The result of a child run.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildResult {
    pub child: RunId,
    /// The ending: reached, failed, or at a limit.
    pub ending: Ending,
    /// The answer or the reason. Untrusted.
    pub answer: Text,
    /// The resources used by the child and the runs below it.
    pub spent: Spent,
    /// A description of the outcome of the child's work tree.
    pub brought_back: Option<String>,
}

impl ChildResult {
    fn new(ended: ChildEnded) -> Self {
        let answer = match &ended.ending {
            Ending::Reached { claim, .. } => claim.answer.clone(),
            Ending::Failed { reason, .. } => reason.clone(),
            Ending::Limit { what } => format!("a limit was reached: {what}"),
            other => summary(other),
        };
        Self {
            child: ended.child,
            ending: ended.ending,
            answer: Text::new(answer, Origin::Run),
            spent: ended.spent,
            brought_back: ended.brought_back,
        }
    }
}

/// The recorded entries of a child.
#[derive(Default)]
struct PastChild {
    started: Option<ChildStarted>,
    ended: Option<ChildEnded>,
    hooks: CallHooks,
}

impl PastChild {
    fn read(
        begun: NumberedEffect,
        work: &Delegation,
        digest: Digest,
    ) -> Result<(EffectId, Self), Stop> {
        let (effect, mut past) = (begun.effect, Self::default());
        for entry in begun.past {
            match entry {
                Entry::ChildStarted(started) if started.digest == digest => {
                    past.started = Some(started);
                }
                Entry::ChildEnded(ended) if past.started.is_some() => past.ended = Some(ended),
                Entry::Noted { kind, fact, .. } if kind == HOOKS_RAN => {
                    past.hooks.read(&kind, &fact);
                }
                other => {
                    let now = format!("delegating {}", work.goal);
                    return Err(diverges(&effect, &other, now));
                }
            }
        }
        Ok((effect, past))
    }
}

pub(crate) async fn perform(
    core: &Arc<Core>,
    begun: NumberedEffect,
    work: Delegation,
) -> Result<ChildResult, Stop> {
    let digest = digest_of(&work);
    let (effect, mut past) = PastChild::read(begun, &work, digest)?;
    let child = RunId::child(core.started.run, &effect);
    if let Some(ended) = past.ended {
        let children = ended.children.saturating_add(1);
        core.account
            .charge(TreeUsage::by_run(ended.spent, children));
        core.expose();
        core.shared().world_changed |= core.log.is_live();
        return Ok(ChildResult::new(ended));
    }
    if !core.log.is_live() {
        return Err(Stop::EndOfRecord);
    }
    core.may_act()?;
    let limits = match past.started {
        Some(started) => started.limits,
        None => match begin(core, &effect, child, (&work, digest), &mut past.hooks).await? {
            Ok(limits) => limits,
            Err(refused) => {
                core.account.charge(TreeUsage::children(1));
                core.expose();
                return Ok(ChildResult::new(refused));
            }
        },
    };
    core.account.charge(TreeUsage::children(1));
    let open = OpenChild {
        effect: effect.clone(),
        child,
    };
    core.shared().open_children.push(open);
    core.log.barrier().await?;
    let own_model = work.options.model.name.is_some();
    let has_worktree = work.options.has_worktree;
    let new = child_run(core, child, work, limits, effect.clone());
    let (ending, spent, children) = match with_worktree(core, new, has_worktree).await {
        Ok(new) => drive(core, new).await?,
        Err(reason) => (failed(reason), Spent::default(), 0),
    };
    if !is_result(core, &ending, own_model) {
        // The child waits, so its parent does; resuming the parent resumes the child. It stays
        // open, because it may still lose a race.
        return Err(of_child(child, ending).into());
    }
    core.shared()
        .open_children
        .retain(|open| open.effect != effect);
    let ended = ChildEnded {
        effect,
        child,
        ending,
        spent,
        children,
        brought_back: bring_back(core, child).await?,
    };
    core.log.append(ended.clone())?;
    core.expose();
    core.shared().world_changed = true;
    Ok(ChildResult::new(ended))
}

/// Returns the ending of a child that could not be started.
fn failed(reason: String) -> Ending {
    Ending::Failed {
        reason,
        denied: Vec::new(),
    }
}

/// Moves a child that works separately into a work tree; the error is a sentence.
async fn with_worktree(core: &Core, mut new: NewRun, has_worktree: bool) -> Result<NewRun, String> {
    if !has_worktree || core.kernel.exists(new.id) {
        return Ok(new);
    }
    let worktrees = core.kernel.organs().worktrees.clone();
    let worktrees = worktrees.ok_or("there are no work trees here")?;
    let (folder, run) = (new.workspace.clone(), new.id);
    let adding = tokio::task::spawn_blocking(move || worktrees.add(&folder, run));
    let worktree = adding.await.map_err(|error| error.to_string())??;
    new.workspace.clone_from(&worktree.folder);
    new.worktree = Some(worktree);
    Ok(new)
}

/// Applies a child's work in its work tree. Returns a description of the outcome.
async fn bring_back(core: &Core, child: RunId) -> Result<Option<String>, Stop> {
    let worktree = match position(&core.kernel, child) {
        Ok(Some(position)) => position.started.worktree.clone(),
        Ok(None) | Err(_) => None,
    };
    let (Some(worktree), Some(worktrees)) = (worktree, core.kernel.organs().worktrees.clone())
    else {
        return Ok(None);
    };
    let left = format!("its work tree {} was left there", worktree.root.display());
    let bringing = tokio::task::spawn_blocking(move || worktrees.bring_back(&worktree));
    let brought = bringing.await.map_err(|error| error.to_string());
    let words = brought.and_then(|brought| brought);
    let words = words.unwrap_or_else(|why| format!("{left}: {why}"));
    let redactor = &core.kernel.organs().redactor;
    Ok(Some(redactor.redact(&words).into_owned()))
}

/// Returns the digest of a task. Default options are not part of it, as in old journals.
fn digest_of(work: &Delegation) -> Digest {
    let basic = (&work.goal, &work.cognitive_loop, &work.loop_config);
    if work.options == ChildOptions::default() {
        Digest::of_json(&basic)
    } else {
        Digest::of_json(&(basic, &work.options))
    }
}

/// Whether a child with this ending has a result for its parent. Otherwise the parent waits with
/// it.
fn is_result(core: &Core, ending: &Ending, own_model: bool) -> bool {
    match ending {
        Ending::Reached { .. }
        | Ending::Failed { .. }
        | Ending::Limit { .. }
        | Ending::Stuck { .. } => true,
        // A person stopped it alone, or all that is at work.
        Ending::Stopped { .. } => {
            core.controls.pausing().is_none() && core.kernel.check_latch().is_ok()
        }
        Ending::ModelUnreachable { .. } => own_model,
        Ending::Waiting { .. } | Ending::Sleeping { .. } | Ending::Interrupted => false,
    }
}

/// Converts a child's ending into its parent's: an answer goes to the run that asks.
fn of_child(child: RunId, ending: Ending) -> Ending {
    match ending {
        Ending::Waiting {
            effect,
            asking,
            question,
            run,
        } => Ending::Waiting {
            effect,
            asking,
            question,
            run: run.or(Some(child)),
        },
        other => other,
    }
}

/// Records the child's task. Returns its limits, or its end if it must not be started.
async fn begin(
    core: &Core,
    effect: &EffectId,
    child: RunId,
    (work, digest): (&Delegation, Digest),
    hooks: &mut CallHooks,
) -> Result<Result<Limits, ChildEnded>, Stop> {
    let depth = core
        .started
        .parent
        .as_ref()
        .map_or(0, |parent| parent.depth);
    let most = work
        .options
        .most_runs
        .unwrap_or(MAX_CHILDREN)
        .min(MAX_CHILDREN);
    let refused = if depth >= MAX_DEPTH {
        Some(format!("child runs may nest {MAX_DEPTH} deep at most"))
    } else if core.account.children_of_tree() >= most {
        Some(format!(
            "a run and its children may start {most} children at most"
        ))
    } else {
        refused_by_hooks(core, effect, work, hooks).await?
    };
    let left = core.account.remaining();
    let limits = Limits {
        steps: tighter(work.limits.steps, left.steps),
        tokens: tighter(work.limits.tokens, left.tokens),
        cost: tighter(work.limits.cost, left.cost),
        time_ms: tighter(work.limits.time_ms, left.time_ms),
    };
    let started = ChildStarted {
        effect: effect.clone(),
        child,
        goal: work.goal.clone(),
        limits,
        digest,
    };
    let Some(reason) = refused else {
        if core.started.screen.is_some() {
            doors::open(core).await;
        }
        core.log.append(started)?;
        return Ok(Ok(limits));
    };
    let ended = ChildEnded {
        effect: effect.clone(),
        child,
        ending: failed(reason),
        spent: Spent::default(),
        children: 0,
        brought_back: None,
    };
    core.log
        .append_all(&[started.into(), ended.clone().into()])?;
    Ok(Err(ended))
}

/// Asks the hooks about a child that is about to be started. Returns the reason if one refuses or
/// wants a person to be asked.
async fn refused_by_hooks(
    core: &Core,
    effect: &EffectId,
    work: &Delegation,
    hooks: &mut CallHooks,
) -> Result<Option<String>, Stop> {
    let role = work.options.narrowed.as_ref().map(|role| &role.name);
    let arguments = json!({ "prompt": work.goal, "subagent_type": role });
    let call = ToolCall::new("delegate", arguments);
    let refuses = hooks.ask_before(core, effect, &call).await?;
    Ok(refuses.or_else(|| hooks.asks().first().cloned()))
}

fn tighter<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn child_run(
    core: &Core,
    child: RunId,
    work: Delegation,
    limits: Limits,
    effect: EffectId,
) -> NewRun {
    let (exposed, grants) = {
        let shared = core.shared();
        (shared.state.exposed, shared.state.grants.clone())
    };
    let ChildOptions {
        model, narrowed, ..
    } = work.options;
    let skills = core.started.skills.iter().cloned().chain(narrowed);
    let above = core.started.parent.as_ref();
    let parent = ParentRun {
        run: core.started.run,
        effect,
        depth: above.map_or(1, |parent| parent.depth + 1),
    };
    NewRun {
        id: child,
        goal: Text::new(work.goal, Origin::Run),
        context: guidelines(core),
        continues: None,
        cognitive_loop: work.cognitive_loop,
        loop_config: work.loop_config,
        workspace: core.started.workspace.clone(),
        mode: core.settings.mode,
        throwaway: core.started.throwaway,
        on_ask: core.settings.on_ask,
        limits,
        pins: crate::CodePins::clone(&core.settings.pins),
        parent: Some(parent),
        exposed,
        grants,
        skills: skills.collect(),
        model,
        trusted: core.trusted(),
        screen: core.started.screen.clone(),
        agent: core.started.agent.clone(),
        priority: core.started.priority,
        sandbox: core.started.sandbox.clone(),
        worktree: None,
    }
}

/// Returns this run's guidelines, skills and notes, which every child gets.
fn guidelines(core: &Core) -> Vec<Attachment> {
    let parts = core.context.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    parts
        .filter(|text| {
            matches!(
                text.origin,
                Origin::Guidelines { .. } | Origin::Skill { .. } | Origin::Memory { .. }
            )
        })
        .map(|text| Attachment::Text(text.clone()))
        .collect()
}

/// Creates the child, or takes it up if it exists, and drives it to its end. Returns its ending,
/// its use, and the number of runs that were started below it.
async fn drive(core: &Arc<Core>, new: NewRun) -> Result<(Ending, Spent, u32), Stop> {
    let (kernel, child) = (&core.kernel, new.id);
    let failed = |error: KernelError| match error {
        KernelError::Stop(stop) => stop,
        KernelError::Latched(latched) => Ending::from(latched).into(),
        KernelError::Journal(error) => error.into(),
        other => Stop::Failed(format!("child run {child}: {other}")),
    };
    let position = position(kernel, child).map_err(failed)?;
    let ready = match position {
        None => {
            // A log without entries, left by a crash, can be removed without loss.
            if kernel.exists(child) {
                kernel.store().remove(&log_name(child))?;
            }
            kernel.create(new).map_err(failed)?
        }
        Some(position) => {
            check_not_record(kernel.store(), child)?;
            // A crash came between the child's end and this run's entry about it.
            if let Some((ending, spent)) = position.over() {
                // It is in no entry of this run yet.
                let used = TreeUsage::by_run(spent, position.children());
                core.account.charge(used);
                return Ok((ending, spent, position.children()));
            }
            let before = position.kernel_state();
            let used = TreeUsage::by_run(before.spent, before.children);
            core.account.charge(used);
            let changes = ResumeChanges {
                mode: Some(new.mode),
                on_ask: Some(new.on_ask),
                pins: Some(new.pins),
                ..ResumeChanges::default()
            };
            kernel
                .take(child, LockWait::IfFree, changes)
                .map_err(failed)?
        }
    };
    let ready = ready.under(core.account.clone(), core.controls.for_child());
    let finished = Box::pin(ready.drive()).await.map_err(failed)?;
    if finished.unsealed.is_some() {
        core.shared().unsealed = finished.unsealed;
    }
    let ended = self::position(kernel, child).map_err(failed)?;
    let children = ended.map_or(0, |position| position.children());
    Ok((finished.ending, finished.spent, children))
}

/// Returns the position of a child; `None` if it has not begun.
pub(super) fn position(kernel: &Kernel, child: RunId) -> Result<Option<RunPosition>, KernelError> {
    let name = log_name(child);
    if !kernel.exists(child) {
        return Ok(None);
    }
    let reader = kernel.store().reader(&name)?;
    if reader.end()? == 0 {
        // A crash came between its log and its first entry.
        return Ok(None);
    }
    RunPosition::read(child, &reader).map(Some)
}
