//! Builds a run that can be created from a goal, flags and configuration.

use std::path::{Path, PathBuf};

use gyrus::runtime::{self, Home};
use gyrus_contract::{DEFAULT_AGENT, Intent, Limits, OnAsk, RunId};
use gyrus_gate::is_throwaway;
use gyrus_journal::Store;
use gyrus_kernel::{
    Attachment, NewRun, Register, RunStarted, StandingRun, find_run, is_record, log_name,
    newest_run_in,
};
use gyrus_loops::{CognitiveConfig, DelegationConfig, ThinkingStrategy};
use gyrus_runtime::request::{RunFlags, RunRequest};
use gyrus_surfaces::console::put;
use gyrus_text::{one_line, shorten, visible};
use serde_json::json;

use crate::{
    Gyrus,
    agent_files::{self, ReadRoles},
    agreement,
    config::Config,
    failure::Failure,
    flags, guidelines, hooks, lessons, memory,
    plugins::names_agent,
    procedures::{self, CommandPlace, ProcedureReplay},
    sandbox_settings::{self, RunSandbox},
    screen::ScreenOptions,
    skills, surroundings,
    which_loop::{self, LoopSubject},
};

/// Tokens that a step may take where nobody limits them. It is far above what steps take, cached
/// tokens included, and stops a run whose prompts grow without end.
const TOKENS_A_STEP: u64 = 50_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionGoal {
    /// The goal is complete in itself.
    Fresh,
    /// The goal builds on what the previous run of the session knows.
    Continued,
}

/// Builds a run from its request, and from the configuration where the request says nothing.
pub(crate) struct RunBuilder<'a> {
    pub(crate) gyrus: &'a Gyrus,
    pub(crate) home: &'a Home,
    pub(crate) config: &'a Config,
    pub(crate) request: &'a RunRequest,
    pub(crate) context: Vec<Attachment>,
    /// The relation of the goal to the run that it continues.
    pub(crate) session: SessionGoal,
    /// The procedure that the run must replay, if the person named one.
    pub(crate) procedure: Option<&'a str>,
    /// A person can answer at this process's terminal.
    pub(crate) at_terminal: bool,
}

fn asks_for_sub_runs(goal: &str) -> bool {
    const WORDS: [&str; 8] = [
        "sub-run",
        "subrun",
        "sub-agent",
        "subagent",
        "delegate",
        "in parallel",
        "side by side",
        "worktree",
    ];
    let goal = goal.to_lowercase();
    WORDS.iter().any(|word| goal.contains(word))
}

impl<'a> RunBuilder<'a> {
    /// Returns a builder for this request, without attachments and with nobody at a terminal.
    pub(crate) fn new(
        gyrus: &'a Gyrus,
        home: &'a Home,
        config: &'a Config,
        request: &'a RunRequest,
    ) -> Self {
        Self {
            gyrus,
            home,
            config,
            request,
            context: Vec::new(),
            session: SessionGoal::Fresh,
            procedure: None,
            at_terminal: false,
        }
    }

    /// Checks that the options can be read, and go together.
    fn check(&self) -> Result<(), Failure> {
        match &self.request.options.refused {
            Some(refused) => Err(refused.clone().into()),
            None => flags::check(self.flags()),
        }
    }

    fn flags(&self) -> &'a RunFlags {
        &self.request.options.flags
    }

    /// Returns the run once all but its models is known to be possible.
    pub(crate) fn new_run(self) -> Result<NewRun, Failure> {
        let (flags, config) = (self.flags(), self.config);
        self.check()?;
        let before = self.before()?;
        // Flags that contradict each other are said before a browser is looked for.
        let chosen = which_loop::choose(flags, config, &self.subject(before.as_ref()))?;
        let url = flags.screen.url.as_deref().map(address).transpose()?;
        let screen = ScreenOptions::of_session(&flags.screen, before.as_ref())?;
        let workspace = workspace(self.home, flags.workdir.as_deref())?;
        let replay = self.replay(url.as_deref(), &workspace, screen.as_ref())?;
        let start = replay.as_ref().and_then(ProcedureReplay::address);
        let url = start.map(str::to_owned).or(url);
        let mut thinks = self.thinks(chosen, replay.as_ref(), screen.is_some())?;
        match &url {
            Some(url) => thinks.start_url = Some(url.clone()),
            None => thinks.left_at = self.left_at(screen.as_ref())?,
        }
        thinks.delegation = self.delegation(&thinks, &workspace, before.as_ref())?;
        let guidelines = if thinks.strategy.finds_guidelines() {
            Vec::new()
        } else {
            guidelines::of_run(self.gyrus, self.home, &workspace, self.at_terminal)?
        };
        hooks::settle(self.gyrus, self.home, &workspace, self.at_terminal)?;
        let skills = skills::of_run(self.home, &workspace, &self.request.goal, flags)?;
        let known = self.known(replay.as_ref(), &workspace, url.as_deref())?;
        let docs = thinks.docs.as_deref();
        docs.map_or(Ok(()), |docs| is_there(&workspace, docs))?;
        let throwaway = flags.workdir.is_some() && is_throwaway(&workspace);
        let mode = flags.approvals.mode().or(config.approve);
        let mode = mode.unwrap_or_default();
        let limits = self.limits(thinks.max_iterations, skills.max_steps);
        let on_ask = self.on_ask();
        let sandbox = self.sandbox(&workspace, before.as_ref())?;
        let name = thinks.strategy.loop_name();
        Ok(NewRun {
            agent: self.agent(before.as_ref()),
            context: guidelines
                .into_iter()
                .chain(skills.context)
                .chain(flags.verification.answer_in_words())
                .chain(known)
                .chain(self.context)
                .chain([surroundings::attachment(&workspace)])
                .collect(),
            skills: skills.followed,
            continues: self.request.continues,
            mode,
            throwaway,
            on_ask,
            limits,
            screen: screen.map(|wish| json!(wish)),
            trusted: url
                .into_iter()
                .chain(flags::trusted(flags))
                .chain(replay.iter().flat_map(ProcedureReplay::scripts))
                .chain(sandbox.trusted)
                // What the person named for the session.
                .chain(before.into_iter().flat_map(|before| before.trusted))
                .collect(),
            grants: sandbox.grants,
            sandbox: sandbox.options,
            ..NewRun::new(self.request.goal.clone(), name, json!(thinks), workspace)
        })
    }
}

impl RunBuilder<'_> {
    /// Returns the configuration of the loop: the one that replays, or as flags and rules say.
    fn thinks(
        &self,
        chosen: CognitiveConfig,
        replay: Option<&ProcedureReplay>,
        has_screen: bool,
    ) -> Result<CognitiveConfig, Failure> {
        let (mut config, on_screen) = match replay {
            // Once a model has taken over, another one looks.
            Some(replay) => (replay.config(), replay.is_on_screen()),
            None => {
                let on_screen = chosen.strategy == ThinkingStrategy::Reactive;
                (chosen, on_screen)
            }
        };
        let flag = match (self.flags().compact, &self.flags().summary) {
            (true, _) => Some("--compact"),
            (false, Some(_)) => Some("--summary"),
            (false, None) => None,
        };
        if let (Some(flag), None) = (flag, self.request.continues) {
            let failure = Failure::usage(format!("{flag} needs a session that goes on"));
            return Err(failure.hint(format!("go on with the last one: gyrus run -c {flag}")));
        }
        config.compacts_first = self.flags().compact;
        config.summary.clone_from(&self.flags().summary);
        flags::verify(&self.flags().verification, config, on_screen, has_screen)
    }

    /// Returns the terms under which the model may start sub-runs. A session offers what it did before,
    /// so that its requests begin alike.
    fn delegation(
        &self,
        thinks: &CognitiveConfig,
        workspace: &Path,
        before: Option<&RunStarted>,
    ) -> Result<Option<Box<DelegationConfig>>, Failure> {
        let section = &self.config.delegate;
        let acts = [
            ThinkingStrategy::ReAct,
            ThinkingStrategy::ChainOfThought,
            ThinkingStrategy::Engineer,
        ];
        let is_off = section.enabled == Some(false) || section.depth == 0;
        if is_off || !acts.contains(&thinks.strategy) {
            return Ok(None);
        }
        let offered = before.map(|before| &before.loop_config["delegation"]);
        let is_offered = section.enabled == Some(true)
            || offered.is_some_and(|terms| terms.is_object() && terms["is_unoffered"] != true)
            || thinks.intent == Some(Intent::Complex)
            || asks_for_sub_runs(&self.request.goal.text);
        let (mut roles, wrong) = agent_files::roles(self.home);
        let (proposed, unread) = self.proposed_roles(workspace)?;
        for (name, role) in proposed {
            roles.entry(name).or_insert(role);
        }
        for why in wrong.into_iter().chain(unread) {
            put(&format!("{why}\n"))?;
        }
        Ok(Some(Box::new(DelegationConfig {
            at_once: section.at_once,
            runs: section.runs,
            depth: section.depth,
            models: section.models.clone(),
            is_unoffered: !is_offered && roles.is_empty(),
            roles,
        })))
    }

    fn proposed_roles(&self, workspace: &Path) -> Result<ReadRoles, Failure> {
        let (roles, wrong) = agent_files::proposed_roles(workspace);
        if roles.is_empty() {
            return Ok((roles, wrong));
        }
        let notice = "the roles of this folder are not used, because nobody agreed to them; look at \
                      .claude/agents, then: gyrus trust\n";
        let listed = roles.iter().map(|(name, role)| {
            let about = format!("{name}: {}", one_line(&role.description));
            format!("  {}\n", visible(&shorten(&about, 100)))
        });
        let question = format!(
            "This folder has roles for sub-runs, in .claude/agents:\n{}Shall sub-runs follow them, as \
             they are now? They never may do more because of it. [y/N] ",
            listed.collect::<String>()
        );
        let place = (self.gyrus, self.home, workspace);
        let grant = |follow| agent_files::grant_of_roles(&roles, follow);
        let agreed = agreement::settle(place, self.at_terminal, grant, (notice, &question))?;
        Ok(if agreed {
            (roles, wrong)
        } else {
            ReadRoles::default()
        })
    }

    /// Returns the agent under whose trust the run works. A session goes on under the trust that it
    /// began with.
    fn agent(&self, before: Option<&RunStarted>) -> String {
        let named = self.flags().agent.as_ref();
        match (named.filter(|named| !names_agent(named)), before) {
            (Some(named), _) => named.clone(),
            (None, None) => DEFAULT_AGENT.to_owned(),
            (None, Some(before)) => before.agent.clone(),
        }
    }

    /// Returns the additions to the run's sandbox. A session keeps those that it began with.
    fn sandbox(&self, at: &Path, before: Option<&RunStarted>) -> Result<RunSandbox, Failure> {
        let of = (self.gyrus, self.home, self.config);
        let mut sandbox =
            sandbox_settings::of_run(of, &self.flags().sandbox, at, self.at_terminal)?;
        if let Some(before) = before {
            sandbox.options.extend(&before.sandbox);
        }
        Ok(sandbox)
    }

    /// Returns the limits: as the person said, then as it is configured, then those of the loop. A
    /// skill may only make the run shorter, and less than the person said. Who limits neither
    /// tokens nor cost has tokens limited by the steps.
    fn limits(&self, of_loop: Option<u64>, of_skill: Option<u64>) -> Limits {
        let of_loop = Limits {
            steps: of_loop,
            ..Limits::default()
        };
        let said = self.flags().limits.limits();
        let mut limits = either(said, either(self.config.limits.limits(), of_loop));
        if said.steps.is_none() {
            limits.steps = limits.steps.into_iter().chain(of_skill).min();
        }
        // Whoever limits the cost of a model without a price must say the tokens, too.
        if limits.cost.is_none() {
            let by_steps = limits
                .steps
                .map(|steps| steps.saturating_mul(TOKENS_A_STEP));
            limits.tokens = limits.tokens.or(by_steps);
        }
        limits
    }

    fn memory(&self) -> Result<Vec<Attachment>, Failure> {
        if self.flags().no_memory {
            return Ok(Vec::new());
        }
        let said = either(self.flags().limits.limits(), self.config.limits.limits());
        memory::of_run(self.home, &self.request.goal, said.tokens)
    }

    /// Returns the setting for questions: as the person said, or as it is configured.
    fn on_ask(&self) -> OnAsk {
        let by_place = if self.at_terminal {
            OnAsk::Wait
        } else {
            OnAsk::Deny
        };
        let said = self.flags().approvals.on_ask;
        said.or(self.config.on_ask).unwrap_or(by_place)
    }

    /// Returns the procedure that the goal replays, if one answers to it and the request names
    /// nothing else. What more comes with a goal could change its meaning.
    fn replay(
        &self,
        url: Option<&str>,
        workspace: &Path,
        screen: Option<&ScreenOptions>,
    ) -> Result<Option<ProcedureReplay>, Failure> {
        let place = CommandPlace {
            url,
            workspace,
            screen,
        };
        let says_more = !self.context.is_empty() || self.session == SessionGoal::Continued;
        let refusing = procedures::refusing_flag(self.flags());
        let found = if says_more || refusing.is_some() {
            None
        } else {
            or_none(procedures::for_command(
                &self.home.store()?,
                &self.request.goal,
                place,
            ))?
        };
        let Some(wanted) = self.procedure else {
            return Ok(found);
        };
        if found.as_ref().is_some_and(|found| found.name() == wanted) {
            return Ok(found);
        }
        let failure = Failure::usage(format!("`{wanted}` cannot be replayed here"));
        Err(match refusing {
            Some(flag) => {
                failure.hint(format!("{flag} does not go with --procedure: leave it out"))
            }
            None => failure.hint(format!(
                "is this its place, and does no other procedure answer to the same command? see: \
                 gyrus procedures show {wanted}"
            )),
        })
    }

    /// Returns the texts of earlier runs that help with the goal: how a similar one was reached,
    /// lessons, and the memory.
    fn known(
        &self,
        replay: Option<&ProcedureReplay>,
        workspace: &Path,
        url: Option<&str>,
    ) -> Result<Vec<Attachment>, Failure> {
        let (hint, lessons) = match replay {
            // No model is asked that they could help.
            Some(_) => (None, None),
            // How it was done says all that a lesson says of the same, and more exactly.
            None => match self.hint(url)? {
                Some(hint) => (Some(hint), None),
                None => (None, self.lessons(workspace, url)?),
            },
        };
        let memory = self.memory()?;
        Ok(hint.into_iter().chain(lessons).chain(memory).collect())
    }

    /// Returns a hint from earlier runs with a goal like this one.
    fn hint(&self, url: Option<&str>) -> Result<Option<Attachment>, Failure> {
        if self.flags().no_procedure {
            return Ok(None);
        }
        or_none(procedures::hint(
            &self.home.store()?,
            &self.request.goal,
            url,
        ))
    }

    /// Returns the lessons of earlier runs, unless they are turned off.
    fn lessons(&self, workspace: &Path, url: Option<&str>) -> Result<Option<Attachment>, Failure> {
        if self.flags().no_lessons || self.config.memory.lessons == Some(false) {
            return Ok(None);
        }
        lessons::of_run(self.home, workspace, &self.request.goal, url)
    }

    fn subject<'a>(&'a self, before: Option<&'a RunStarted>) -> LoopSubject<'a> {
        LoopSubject {
            goal: &self.request.goal.text,
            has_context: !self.context.is_empty(),
            before,
        }
    }

    /// Returns the start of the run before it in its session. What a record was started with counts
    /// for nothing.
    fn before(&self) -> Result<Option<RunStarted>, Failure> {
        let store = self.home.store()?;
        match self.request.continues {
            Some(run) if !is_record(&store, run) => {
                Ok(Some(StandingRun::read(&store, run)?.started))
            }
            Some(_) | None => Ok(None),
        }
    }

    fn left_at(&self, screen: Option<&ScreenOptions>) -> Result<Option<String>, Failure> {
        let store = self.home.store()?;
        match (self.request.continues, screen) {
            (Some(run), Some(_)) if !is_record(&store, run) => {
                Ok(gyrus_kernel::last_page(&store, run)?)
            }
            (Some(_) | None, Some(_) | None) => Ok(None),
        }
    }
}

/// Returns `None` with a notice where procedures cannot be read, since a run needs none.
fn or_none<T>(found: Result<Option<T>, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(found),
        Err(failure) => {
            put(&format!("no procedure is used: {failure}\n"))?;
            Ok(None)
        }
    }
}

/// The documents can be searched.
fn is_there(workspace: &Path, docs: &str) -> Result<(), Failure> {
    if workspace.join(docs).is_dir() {
        return Ok(());
    }
    let what = format!("the documents' folder `{docs}` is not there");
    Err(Failure::usage(what).hint(format!(
        "name it as it is seen from {}: --docs FOLDER",
        workspace.display()
    )))
}

/// Completes an address that a person typed.
pub(crate) fn address(given: &str) -> Result<String, Failure> {
    if !given.contains(['.', ':', '/']) && given != "localhost" {
        return Err(Failure::usage(format!("`{given}` does not name a page"))
            .hint("write an address: https://example.com, or localhost:8080"));
    }
    let near = ["localhost", "127.", "[::1]"];
    let whole = match given.split_once("://") {
        Some(_) => given.to_owned(),
        None if near.iter().any(|start| given.starts_with(start)) => format!("http://{given}"),
        None => format!("https://{given}"),
    };
    let is_page = ["http://", "https://"]
        .iter()
        .any(|start| whole.len() > start.len() && whole.starts_with(start));
    if is_page && !whole.contains(char::is_whitespace) {
        Ok(whole)
    } else {
        Err(Failure::usage(format!(
            "invalid address `{given}`: an address of a page begins with http:// or https://"
        )))
    }
}

pub(crate) fn workspace(home: &Home, given: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(runtime::workspace(home, given.unwrap_or(Path::new(".")))?)
}

/// Returns the last run in `workspace` that a person started: the end of the session to go on with.
pub(crate) fn last_in(store: &Store, workspace: &Path) -> Result<RunId, Failure> {
    let newest = newest_run_in(store, workspace)?;
    if let Some((run, _)) = newest.filter(|(_, folder)| folder == workspace) {
        return free(store, run);
    }
    let newest = find_run(store, "last").ok();
    let elsewhere = newest.and_then(|run| gyrus_kernel::workspace(store, run));
    let failure = Failure::usage(format!(
        "no run has worked in {} yet, so there is nothing to continue",
        workspace.display()
    ));
    Err(match elsewhere {
        Some(folder) => failure.hint(format!(
            "the last one worked in {}: --workdir {0}",
            folder.display()
        )),
        None => failure.hint("leave --continue out"),
    })
}

pub(crate) fn at_work_in(store: &Store, workspace: &Path) -> Result<RunId, Failure> {
    let register = Register::read(store)?;
    for line in register.roots().filter(|line| line.workspace == workspace) {
        if store.holder(&log_name(line.run))?.is_some() {
            return Ok(line.run);
        }
    }
    Err(
        Failure::usage(format!("no run is at work in {}", workspace.display()))
            .hint("see which there are: gyrus runs list; then: gyrus take RUN"),
    )
}

/// Returns the run unless it is still at work, since its memory is still growing then.
fn free(store: &Store, run: RunId) -> Result<RunId, Failure> {
    if store.holder(&log_name(run))?.is_none() {
        return Ok(run);
    }
    let name = run.short();
    Err(
        Failure::usage(format!("run {name} is still at work in this folder")).hint(format!(
            "tell it more: gyrus steer {name} TEXT, or end it: gyrus stop {name}"
        )),
    )
}

/// Returns the first limits, with those of the second where the first set none.
fn either(first: Limits, second: Limits) -> Limits {
    Limits {
        steps: first.steps.or(second.steps),
        tokens: first.tokens.or(second.tokens),
        cost: first.cost.or(second.cost),
        time_ms: first.time_ms.or(second.time_ms),
    }
}
