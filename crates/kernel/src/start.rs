//! Starting runs, and taking them up again.

use gyrus_contract::{ChildModel, Image, Limits, Part, RunId, Text};
use gyrus_journal::LockWait;
use gyrus_process::ProcessIdentity;

use crate::{
    Attachment, CodePins, DrivableRun, ErasedLoop, Inline, Kernel, KernelError, NewRun,
    ResumeChanges, RunResumed, RunSettings, RunStarted, Stop,
    before::PreviousRun,
    log::RunLog,
    position::RunPosition,
    redact::Redactor,
    register,
    runs::{self, log_name, summary},
};

impl Kernel {
    /// Creates a run. When this returns, its first entry is on disk; no effect has happened yet, and
    /// the workspace has not been read. If the process ends before, there is no such run.
    ///
    /// # Errors
    /// Returns an error when the loop, the limits or the journal do not allow it. Nothing is left
    /// behind then.
    pub fn create(&self, mut new: NewRun) -> Result<DrivableRun, KernelError> {
        self.check_latch()?;
        let redactor = &self.organs().redactor;
        redactor.redact_json(&mut new.loop_config);
        let cognitive_loop = self.make_loop(&new.cognitive_loop, &new.loop_config)?;
        self.check_price(&new.limits, &new.model)?;
        let goal = Text::new(redactor.redact(&new.goal.text), new.goal.origin);
        let before = new.continues.map(|run| PreviousRun::read(self, run));
        let before = before.transpose()?;
        let log = RunLog::new(self.store().prepare(&log_name(new.id))?);
        let context: Vec<Part> = new
            .context
            .into_iter()
            .map(|given| store_attachment(given, redactor, &log))
            .collect::<Result<_, _>>()?;
        let served = self.organs().pin_served(&log)?;
        // The descriptions that servers give of their tools are part of every prompt.
        let exposed = new.exposed
            || served.is_some()
            || goal.origin.exposes()
            || context.iter().any(is_untrusted)
            || before.as_ref().is_some_and(|before| before.exposed);
        let pinned = self.organs().pin_meanings(&goal, &new.trusted, &log)?;
        let memory = before.as_ref().map(|before| before.carry_into(&log));
        let memory = memory.transpose()?.unwrap_or_default();
        let of_session = before.into_iter().flat_map(|before| before.grants);
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
            grants: new.grants.into_iter().chain(of_session).collect(),
            skills: new.skills,
            trusted: new.trusted,
            screen: new.screen,
            agent: new.agent,
            priority: new.priority,
            sandbox: new.sandbox,
            loop_config: self.share_config(new.loop_config),
            workspace: new.workspace,
            throwaway: new.throwaway,
            settings: RunSettings {
                limits: new.limits,
                mode: new.mode,
                on_ask: new.on_ask,
                pins: self.pins(&*cognitive_loop, &new.pins),
            },
            tools: self.organs().tools.keys().cloned().collect(),
            served,
            model: self.organs().router_of(&new.model).name().to_owned(),
            own_model: new.model,
            hooks: (self.organs().hooks.as_ref()).is_some_and(|hooks| hooks.are_about_runs()),
            worktree: new.worktree,
            parent: new.parent,
            forked_from: None,
            meanings: pinned.meanings,
            forms: pinned.forms,
            // The folder may be large: the driver reads it when the run is on disk.
            snapshot: None,
            cognitive_loop: new.cognitive_loop,
        };
        let writer = register::publish(self.store(), log, &started, &[started.clone().into()])?;
        let position = RunPosition::fresh(started);
        DrivableRun::new(self.clone(), writer, position, None, false)
    }

    fn check_price(&self, limits: &Limits, model: &ChildModel) -> Result<(), KernelError> {
        if limits.cost.is_none() || limits.tokens.is_some() {
            return Ok(());
        }
        let organs = self.organs();
        let router = organs.router_of(model);
        let all = [Some(&router), organs.assessor.as_ref()];
        match all
            .into_iter()
            .flatten()
            .find_map(|router| router.unpriced())
        {
            Some(model) => Err(KernelError::UnknownPrice { model }),
            None => Ok(()),
        }
    }

    /// Takes up a run after a crash, a pause, a limit or an open question.
    ///
    /// # Errors
    /// Returns an error when another process holds it, when it has ended, when it is a record, or when
    /// its journal is damaged.
    pub fn take(
        &self,
        run: RunId,
        how: LockWait,
        changes: ResumeChanges,
    ) -> Result<DrivableRun, KernelError> {
        self.check_latch()?;
        let (writer, recovery) = runs::take(self.store(), run, how)?;
        let reader = writer.reader()?;
        let mut position = RunPosition::read(run, &reader)?;
        if let Some((ending, _)) = position.over() {
            return Err(KernelError::Over {
                run,
                what: summary(&ending),
            });
        }
        // The work tree of a sub-run may be taken away; its parent goes on.
        if position.started.parent.is_none() {
            runs::check_workspace(&position.started.workspace)?;
        }
        let config = &position.started.loop_config;
        let cognitive_loop = self.make_loop(&position.started.cognitive_loop, config)?;
        let before = position.settings.clone();
        position.settings = self.changed(&before, &*cognitive_loop, changes);
        self.check_price(&position.settings.limits, &position.started.own_model)?;
        let process = ProcessIdentity::current()
            .map_err(|error| Stop::Failed(format!("this process cannot be identified: {error}")))?;
        let log = RunLog::live(writer.clone())?;
        log.append(RunResumed {
            process,
            settings: position.settings.clone(),
            set_aside_bytes: recovery.set_aside.as_ref().map(|tail| tail.bytes),
        })?;
        writer.barrier_blocking()?;
        let other_code = position.other_code(&position.settings.pins);
        DrivableRun::new(self.clone(), writer, position, Some(recovery), other_code)
    }

    /// Returns the settings of a run after a person's changes.
    pub(crate) fn changed(
        &self,
        before: &RunSettings,
        cognitive_loop: &dyn ErasedLoop,
        changes: ResumeChanges,
    ) -> RunSettings {
        let limits = Limits {
            steps: changes.limits.steps.or(before.limits.steps),
            tokens: changes.limits.tokens.or(before.limits.tokens),
            cost: changes.limits.cost.or(before.limits.cost),
            time_ms: changes.limits.time_ms.or(before.limits.time_ms),
        };
        let pins = changes
            .pins
            .unwrap_or_else(|| CodePins::clone(&before.pins));
        RunSettings {
            limits,
            mode: changes.mode.unwrap_or(before.mode),
            on_ask: changes.on_ask.unwrap_or(before.on_ask),
            pins: self.pins(cognitive_loop, &pins),
        }
    }
}

/// Redacts material that came with a goal as it enters the run, and stores its pictures.
fn store_attachment(
    attachment: Attachment,
    redactor: &Redactor,
    log: &RunLog,
) -> Result<Part, Stop> {
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

/// Whether a part may contain untrusted text, as any picture may.
fn is_untrusted(part: &Part) -> bool {
    match part {
        Part::Text(text) => text.origin.exposes(),
        Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => true,
    }
}
