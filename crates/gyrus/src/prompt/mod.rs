//! `gyrus` at a terminal: a line prompt. Every line is a goal, and every run goes on with what the
//! one before it knows.
//!
//! `words` understands the lines that are no goals, `completion` knows what could be meant by a word,
//! `sessions` goes back and goes on. While a run is driven the console has the terminal: what is typed
//! then is for the run, or waits here.

mod completion;
mod own_command;
pub(crate) mod sessions;
mod words;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus::runtime::{Home, RunScreen};
use gyrus_contract::{Mode, OnAsk, Origin, RunId, SandboxOptions, Spent, Text};
use gyrus_journal::{LockWait, Store};
use gyrus_kernel::{
    Attachment, Kernel, NewRun, ResumeChanges, StandingRun, check_not_record, log_name,
};
use gyrus_text::{counted, one_line};
use tokio::runtime::Runtime;

use self::{completion::Completion, words::PromptWord};
use gyrus_runtime::request::{Approve, RunFlags, RunRequest};

use crate::{
    Gyrus, attachments,
    commands::{context::LastRequest, diff, show, undo},
    config::Config,
    drive::{self, Drive},
    exit::Code,
    failure::Failure,
    flags::{self, OutputFlags},
    kernels::{self, RunContext},
    language_servers::LanguageServers,
    learning,
    mcp::{PromptName, ServerSet, StartSurroundings, prompt_argument},
    model_choice::ModelChoice,
    new_run::{self, RunBuilder},
    procedures,
    screen::ScreenOptions,
    setup, skills, stopped, surroundings, templates,
    which_loop::{self, LoopSubject},
    workdir,
};
use gyrus_surfaces::{
    card_editor,
    console::{
        LineEditor, LineQueue, LineView, LineWish, Painter, begin_titles, end_titles, plain_line,
        put, set_title,
    },
    output,
    projection::Tone,
    watching::{LiveReplies, live_replies},
};

/// Carries out a command of gyrus, given by its words.
pub(crate) type CarryOut = fn(&Gyrus, Vec<String>) -> Result<(), Failure>;

struct TerminalConversation<'a> {
    gyrus: &'a Gyrus,
    commands: CarryOut,
    home: Home,
    config: Config,
    store: Store,
    runtime: Runtime,
    flags: RunFlags,
    workspace: PathBuf,
    /// The model of the runs, found when one is first needed.
    choice: Option<ModelChoice>,
    /// The browser of the session; pages stay open from one goal to the next.
    screen: Option<RunScreen>,
    /// The language servers of the session, which end with it.
    _language_servers: Option<Arc<LanguageServers>>,
    /// The servers of the session, started when they are needed first.
    connected: Option<ServerSet>,
    begins_at: Option<String>,
    context: Vec<Attachment>,
    last: Option<RunId>,
    runs: Vec<RunId>,
    /// Lines that were typed while a run worked.
    ahead: LineQueue,
    /// Words with which the next line begins.
    begun: String,
    /// The part of the window that the last run's model has used, as text.
    window: String,
}

/// The hint in the empty input line.
const HINT: &str = "a goal · / words · @ files · ! your command · Shift-Tab the mode";

/// Reads goals and commands until the person leaves. The first goal goes on from a run, if one is
/// named.
pub(crate) fn open(
    gyrus: &Gyrus,
    mut flags: RunFlags,
    commands: CarryOut,
    goes_on: Option<RunId>,
) -> Result<Code, Failure> {
    let (home, config) = (gyrus.home()?, gyrus.config()?);
    learning::catch_up(&home, &config)?;
    let store = home.store()?;
    flags::settle(&flags)?;
    let workspace = workdir::settle(&home, &mut flags)?;
    let screen = ScreenOptions::of_flags(&flags.screen)?
        .map(|options| options.screen(&home, &workspace, flags.approvals.confinement()))
        .transpose()?;
    let mut prompt = TerminalConversation {
        gyrus,
        commands,
        screen,
        workspace,
        choice: ModelChoice::named(gyrus, &config, &flags.model)?,
        runtime: drive::runtime()?,
        home,
        config,
        store,
        begins_at: flags.screen.url.clone(),
        flags,
        _language_servers: None,
        connected: None,
        context: Vec::new(),
        last: None,
        runs: Vec::new(),
        ahead: LineQueue::default(),
        begun: String::new(),
        window: String::new(),
    };
    let real = new_run::workspace(&prompt.home, prompt.flags.workdir.as_deref())?;
    prompt._language_servers = LanguageServers::of_folder(&prompt.around(&real))?;
    put(&prompt.greeting())?;
    if !gyrus.environment.dumb {
        begin_titles();
    }
    let (history, environment) = (prompt.home.state.join("history"), &gyrus.environment);
    let mut editor = (!environment.dumb)
        .then(|| LineEditor::open(&history, environment.editor.clone(), environment.plain));
    // Files are named, and the person's own commands run, where `gyrus` was typed.
    let mut goals = templates::names(&prompt.home);
    goals.extend(skills::names(&prompt.home, &prompt.workspace)?);
    let completion = Completion::new(&workdir::here()?, goals);
    if let Some(run) = goes_on {
        prompt.go_on_from(run)?;
    }
    loop {
        let wish = prompt.next_line(editor.as_mut(), &completion)?;
        match prompt.grant(wish) {
            Ok(true) => {}
            Ok(false) => break,
            // What went wrong with one line does not end the conversation.
            Err(failure) => put(&format!("{failure}\n"))?,
        }
    }
    if let Some(screen) = &prompt.screen {
        prompt.runtime.block_on(screen.leave());
    }
    if let Some(connected) = prompt.connected.take() {
        prompt.runtime.block_on(connected.leave());
    }
    prompt.runtime.shutdown_background();
    end_titles();
    Ok(Code::Reached)
}

impl TerminalConversation<'_> {
    fn greeting(&self) -> String {
        format!(
            "gyrus {} · works in {}\nType a goal. /help says what else; Ctrl-D leaves.\n",
            gyrus::BUILD,
            self.workspace.display()
        )
    }

    /// Returns the person's next request: a line typed ahead, or one that they type now.
    fn next_line(
        &mut self,
        editor: Option<&mut LineEditor>,
        completion: &Completion,
    ) -> Result<LineWish, Failure> {
        if let Some(goal) = self.ahead.next_goal() {
            put(&format!("❯ {}\n", one_line(&goal)))?;
            editor.into_iter().for_each(|editor| editor.remember(&goal));
            return Ok(LineWish::Line(goal));
        }
        let Some(editor) = editor else {
            return Ok(plain_line("gyrus> ")?.map_or(LineWish::Leave, LineWish::Line));
        };
        let folder = self.workspace.file_name().unwrap_or_default();
        set_title(&format!("· {}", folder.display()));
        editor.begin(&std::mem::take(&mut self.begun));
        editor.begin(&self.ahead.begun_line());
        let _ending = drive::end_on_signal(&self.runtime)?;
        Ok(editor.read(&LineView {
            above: &self.standing(),
            hint: HINT,
            candidates: &|typed| completion.candidates(typed),
        })?)
    }

    /// Fulfils a request of the person. `false`: the person leaves.
    fn grant(&mut self, wish: LineWish) -> Result<bool, Failure> {
        match wish {
            LineWish::Line(line) => return self.take(&line),
            LineWish::NextMode => {
                let next = match self.mode() {
                    Mode::ReadOnly => Mode::Ask,
                    Mode::Ask => Mode::Edits,
                    Mode::Edits | Mode::Auto | Mode::Never => Mode::ReadOnly,
                };
                self.flags.approvals.approve = Some(Approve::Mode(next));
            }
            LineWish::Back => self.go_back()?,
            LineWish::Leave => return Ok(false),
        }
        Ok(true)
    }

    fn mode(&self) -> Mode {
        let given = self.flags.approvals.mode().or(self.config.approve);
        given.unwrap_or_default()
    }

    /// Returns how the next run would work, in one line.
    fn standing(&self) -> String {
        let model = self.choice.as_ref().map(ModelChoice::in_short);
        let effort = self
            .flags
            .model
            .effort
            .map(|effort| format!("effort {}", effort.word()));
        let folder = self
            .workspace
            .file_name()
            .map(|name| name.display().to_string());
        let place = match (folder, surroundings::branch(&self.workspace)) {
            (Some(folder), Some(branch)) => format!("{folder} ({branch})"),
            (folder, _) => folder.unwrap_or_default(),
        };
        let all = [Some(self.mode().to_string()), model, effort, Some(place)];
        let all = all.into_iter().flatten().chain([self.window.clone()]);
        let all: Vec<String> = all.filter(|words| !words.is_empty()).collect();
        all.join(" · ")
    }

    /// Carries out a line. `false`: the person leaves.
    fn take(&mut self, line: &str) -> Result<bool, Failure> {
        let word = match words::understand(line) {
            Err(failure) => Some(self.named_goal(line)?.ok_or(failure)?),
            Ok(word) => word,
        };
        match word {
            None => {}
            Some(PromptWord::Goal(goal)) => self.run(&goal)?,
            Some(PromptWord::Shell(line)) => {
                self.context.push(own_command::run(&line, &self.runtime)?);
            }
            Some(PromptWord::Command(words)) => (self.commands)(self.gyrus, words)?,
            Some(PromptWord::Rewind) => self.go_back()?,
            Some(PromptWord::Help) => put(&words::help(output::columns_of(&std::io::stderr())))?,
            Some(PromptWord::Quit) => return Ok(false),
            Some(PromptWord::New) => {
                self.last = None;
                self.runs.clear();
                self.window.clear();
                self.flags.screen.url.clone_from(&self.begins_at);
                self.context.clear();
                put("a new session: nothing of before is known to the next run\n")?;
            }
            Some(PromptWord::Prompt(prompt, rest)) => self.run_prompt(&prompt, &rest)?,
            Some(PromptWord::Resume(None)) if !self.last_is_open()? => self.choose_session()?,
            Some(PromptWord::Resume(run)) => self.resume(run.as_deref())?,
            Some(PromptWord::Diff) => {
                diff::show(self.gyrus, &self.store, self.last()?, 0)?;
            }
            Some(PromptWord::Undo) => {
                undo::UndoCommand::of(self.last()?).execute(self.gyrus)?;
            }
            Some(PromptWord::Trace) => {
                show::timeline(&self.store, self.last()?, self.gyrus.environment.plain)?;
            }
            Some(PromptWord::Context) => {
                let request = LastRequest::read(&self.store, &log_name(self.last()?))?;
                put(&request.table())?;
            }
            Some(PromptWord::Compact) => {
                self.last()?;
                self.flags.compact = true;
                self.flags.summary = None;
                put("the next goal begins with a summary of what was said\n")?;
            }
            Some(PromptWord::Summary) => self.edit_summary()?,
            Some(PromptWord::Cost) => put(&format!("{}\n", self.used()?))?,
            Some(word) => self.prepare(word)?,
        }
        Ok(true)
    }

    /// Lets the person edit the summary that replaces the older part of the conversation.
    fn edit_summary(&mut self) -> Result<(), Failure> {
        let request = LastRequest::read(&self.store, &log_name(self.last()?))?;
        let editor = self.gyrus.environment.editor.as_deref();
        let written = card_editor::write_in_editor(request.summary()?, editor)?;
        if written.trim().is_empty() {
            return Ok(put("nothing was written: the summary stays\n")?);
        }
        self.flags.summary = Some(written.trim().to_owned());
        self.flags.compact = false;
        Ok(put("the next goal begins with this summary\n")?)
    }

    /// Carries out a word that concerns the next goal.
    fn prepare(&mut self, word: PromptWord) -> Result<(), Failure> {
        match word {
            PromptWord::File(path) => {
                self.context.push(attachments::file(&path)?);
                put("the attachment comes with the next goal\n")?;
            }
            PromptWord::Image(path) => {
                let picture = match path {
                    Some(path) => attachments::picture(&path)?,
                    None => {
                        let read = attachments::clipboard_picture(&self.workspace);
                        self.runtime.block_on(read)?
                    }
                };
                self.context.push(picture);
                put("the attachment comes with the next goal\n")?;
            }
            PromptWord::Model(name) => {
                self.choice = Some(ModelChoice::parse([name.as_str()])?);
                put("the next run asks it\n")?;
            }
            PromptWord::Effort(effort) => {
                self.flags.model.effort = Some(effort);
                self.choice = self
                    .choice
                    .take()
                    .map(|choice| choice.with(Some(effort), None));
                put("the next run thinks with this effort\n")?;
            }
            PromptWord::Mode(word) => {
                self.flags.approvals.approve = Some(word);
                put(&format!("the next run works in mode `{}`\n", word.mode()))?;
                flags::announce(&self.flags.approvals)?;
            }
            PromptWord::Loop(name) => {
                let before = self.flags.cognitive_loop.replace(name);
                if let Err(failure) =
                    which_loop::choose(&self.flags, &self.config, &LoopSubject::default())
                {
                    self.flags.cognitive_loop = before;
                    return Err(failure);
                }
                put("the next run thinks in it\n")?;
            }
            // Those are done at once.
            PromptWord::Goal(_)
            | PromptWord::Shell(_)
            | PromptWord::Command(_)
            | PromptWord::Help
            | PromptWord::New
            | PromptWord::Prompt(..)
            | PromptWord::Resume(_)
            | PromptWord::Rewind
            | PromptWord::Undo
            | PromptWord::Diff
            | PromptWord::Trace
            | PromptWord::Cost
            | PromptWord::Context
            | PromptWord::Compact
            | PromptWord::Summary
            | PromptWord::Quit => {}
        }
        Ok(())
    }

    /// Returns the goal of a line that begins with the name of a template or a skill.
    fn named_goal(&self, line: &str) -> Result<Option<PromptWord>, Failure> {
        if let Some(goal) = templates::goal(&self.home, line)? {
            return Ok(Some(PromptWord::Goal(goal)));
        }
        let first = line.split_whitespace().next();
        let named = first.and_then(|first| first.strip_prefix('/'));
        let skills = skills::names(&self.home, &self.workspace)?;
        let is_skill = skills.iter().any(|(name, _)| named == Some(name.as_str()));
        Ok(is_skill.then(|| PromptWord::Goal(line.to_owned())))
    }

    fn run(&mut self, goal: &str) -> Result<(), Failure> {
        for path in words::named_files(goal) {
            // A word may begin with `@` for other reasons.
            if path.is_file() {
                let attached = attachments::picture(&path).or_else(|_| attachments::file(&path))?;
                self.context.push(attached);
            }
        }
        let goal = Text::new(goal, Origin::Person);
        let mut request = RunRequest::with_flags(goal, self.flags.clone());
        request.continues = self.last;
        let mut new = RunBuilder {
            context: self.context.clone(),
            at_terminal: true,
            ..RunBuilder::new(self.gyrus, &self.home, &self.config, &request)
        }
        .new_run()?;
        let choice = self.model_choice_for(&new)?;
        new.pins = choice.pins();
        let on_ask = new.on_ask;
        let (kernel, replies) = self.kernel(
            &choice,
            (&new.agent, &new.cognitive_loop, &new.sandbox),
            None,
        )?;
        let ready = kernel.create(new)?;
        // From here on the run has what came with its goal.
        self.context.clear();
        self.flags.compact = false;
        self.flags.summary = None;
        // The next one goes on at the page where this one ends.
        self.flags.screen.url = None;
        self.last = Some(ready.id());
        self.runs.push(ready.id());
        self.drive(ready, on_ask, replies)
    }

    /// Runs a prompt of a server. Words of the form `NAME=VALUE` are its arguments, others the goal.
    fn run_prompt(&mut self, prompt: &PromptName, words: &str) -> Result<(), Failure> {
        let arguments = words
            .split_whitespace()
            .filter_map(|word| prompt_argument(word).ok());
        let arguments = arguments.collect();
        let own = words
            .split_whitespace()
            .filter(|word| prompt_argument(word).is_err());
        let own = own.collect::<Vec<_>>().join(" ");
        let goal = if own.is_empty() {
            format!("Do what the prompt `{prompt}` says.")
        } else {
            own
        };
        let mut connected = self.connected()?;
        let text = connected.prompt(prompt, &arguments);
        let text = self.runtime.block_on(text);
        self.connected = Some(connected);
        self.context.push(text?);
        self.run(&goal)
    }

    /// Returns the servers of the session, starting them at the first call.
    fn connected(&mut self) -> Result<ServerSet, Failure> {
        if let Some(connected) = self.connected.take() {
            return Ok(connected);
        }
        let workspace = new_run::workspace(&self.home, self.flags.workdir.as_deref())?;
        let _inside = self.runtime.enter();
        ServerSet::start(&self.around(&workspace))
    }

    fn around<'b>(&'b self, workspace: &'b Path) -> StartSurroundings<'b> {
        let on_ask = self.flags.approvals.on_ask.or(self.config.on_ask);
        StartSurroundings {
            home: &self.home,
            config: &self.config,
            workspace,
            confinement: self.flags.approvals.confinement(),
            on_ask: on_ask.unwrap_or(OnAsk::Wait),
        }
    }

    fn last(&self) -> Result<RunId, Failure> {
        let none = || Failure::usage("there is no run in this session yet").hint("type a goal");
        self.last.ok_or_else(none)
    }

    /// Returns the resources that the runs of the session have used, in one line.
    fn used(&self) -> Result<String, Failure> {
        let mut all = Spent::default();
        for run in &self.runs {
            let spent = gyrus_kernel::spent(&self.store, *run)?;
            all.tokens += spent.tokens;
            all.cost = all.cost + spent.cost;
        }
        let runs = counted(self.runs.len(), "run");
        let (tokens, cost) = (counted(all.tokens, "token"), all.cost.after(" · "));
        Ok(format!("this session: {runs} · {tokens}{cost}"))
    }

    /// Resumes a run where it stopped: the last one, or one that is named.
    fn resume(&mut self, named: Option<&str>) -> Result<(), Failure> {
        let run = match named {
            Some(named) => gyrus_kernel::find_run(&self.store, named)?,
            None => self.last()?,
        };
        check_not_record(&self.store, run)?;
        let before = StandingRun::read(&self.store, run)?;
        let started = &before.started;
        if started.workspace != self.workspace && !self.runs.contains(&run) {
            // The policy, the hooks and the servers of this conversation are those of its folder.
            let (run, folder) = (run.short(), started.workspace.display());
            let failure = Failure::usage(format!("run {run} works in another folder, {folder}"));
            return Err(failure.hint(format!("leave, and go on with it: gyrus resume {run}")));
        }
        let choice = self.model_choice()?.for_goal(&started.loop_config);
        let thinks = (&*started.agent, &*started.cognitive_loop, &started.sandbox);
        let (kernel, replies) = self.kernel(&choice, thinks, Some(run))?;
        let changes = ResumeChanges {
            limits: self.flags.limits.limits(),
            mode: self.flags.approvals.mode(),
            pins: Some(choice.pins()),
            ..ResumeChanges::default()
        };
        let ready = kernel.take(run, LockWait::IfFree, changes)?;
        self.last = Some(run);
        if !self.runs.contains(&run) {
            self.runs.push(run);
        }
        self.drive(ready, before.on_ask, replies)
    }

    /// Returns the models for a run; a replay needs none.
    fn model_choice_for(&mut self, new: &NewRun) -> Result<ModelChoice, Failure> {
        let choice = match &self.choice {
            None if procedures::is_replay(&new.loop_config) => {
                stopped::check(self.gyrus)?;
                setup::model_if_any(&self.runtime, self.gyrus, &self.config, &self.flags.model)?
            }
            Some(_) | None => self.model_choice()?,
        };
        Ok(choice.for_goal(&new.loop_config))
    }

    fn model_choice(&mut self) -> Result<ModelChoice, Failure> {
        stopped::check(self.gyrus)?;
        if let Some(choice) = &self.choice {
            return Ok(choice.clone());
        }
        let found =
            setup::model_choice(&self.runtime, self.gyrus, &self.config, &self.flags.model)?;
        // It may have been set up just now.
        self.config = self.gyrus.config()?;
        self.choice = Some(found.clone());
        Ok(found)
    }

    /// Builds the kernel for a run under the trust of an agent, with its loop.
    fn kernel(
        &mut self,
        choice: &ModelChoice,
        (agent, cognitive_loop, sandbox): (&str, &str, &SandboxOptions),
        goes_on: Option<RunId>,
    ) -> Result<(Kernel, LiveReplies), Failure> {
        let workspace = new_run::workspace(&self.home, self.flags.workdir.as_deref())?;
        let mut connected = self.connected()?;
        let _inside = self.runtime.enter();
        let mut ready = if choice.is_none() {
            let started = choice.start_if_possible(self.gyrus, &self.config, &self.store);
            self.runtime.block_on(started)
        } else {
            let started = choice.start(self.gyrus, &self.config, &self.store);
            self.runtime.block_on(started)?
        };
        ready.secrets.extend(connected.secrets());
        let served = match goes_on {
            Some(run) => connected.tools_of(&self.store, run)?,
            None => self.runtime.block_on(connected.tools())?,
        };
        self.connected = Some(connected);
        let (live, replies) = live_replies();
        let run_context = RunContext {
            agent,
            cognitive_loop,
            screen: self.screen.as_ref(),
            served: &served,
            sandbox,
            typed: &self.flags.sandbox.env,
        };
        let around = self.around(&workspace);
        let kernel = kernels::kernel(&around, self.store.clone(), ready, live, run_context)?;
        Ok((kernel, replies))
    }

    fn drive(
        &mut self,
        ready: gyrus_kernel::DrivableRun,
        on_ask: gyrus_contract::OnAsk,
        replies: LiveReplies,
    ) -> Result<(), Failure> {
        let run = ready.id();
        let name = run.short();
        let output = OutputFlags::default();
        let drive = Drive {
            gyrus: self.gyrus,
            store: self.store.clone(),
            on_ask,
            output: &output,
            trace: None,
            ephemeral: false,
            replies,
            screen: self.screen.clone(),
            correlation: None,
        };
        let ahead = Some(self.ahead.clone());
        set_title("works");
        let driven = self.runtime.block_on(drive.drive_with_input(ready, ahead));
        if !matches!(driven, Ok(Code::Reached)) {
            self.ahead.hold_goals();
        }
        let code = driven?;
        if matches!(
            code,
            Code::Interrupted | Code::Limit | Code::Parked | Code::Stuck
        ) {
            put(&format!(
                "run {name} is parked: /resume goes on with it, a new line goes on from it\n"
            ))?;
        }
        let request = LastRequest::read(&self.store, &log_name(run)).ok();
        self.window = request.and_then(|it| it.fullness()).unwrap_or_default();
        let painter = Painter::new(&std::io::stderr(), self.gyrus.environment.plain);
        let used = painter.paint(Tone::Aside, &self.used()?);
        put(&format!("{used}\n"))?;
        Ok(())
    }
}
