//! `gyrus run`

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::PathBuf,
};

use clap::Args;
use gyrus::runtime::{GitWorktrees, Home};
use gyrus_contract::{Origin, RunId, RunWorktree, Text, Worktrees as _};
use gyrus_kernel::{Attachment, NewRun, log_name};
use gyrus_runtime::request::{ContextFlags, ContextText, RunFlags, RunRequest};

#[cfg(feature = "fleet")]
use crate::fleet;
use crate::{
    Gyrus, attachments,
    config::Config,
    drive::{self, Drive},
    exit::Code,
    failure::Failure,
    flags::{self, OutputFlags, ServerFlags},
    kernels::{self, RunContext},
    learning,
    mcp::{PromptName, ServerSet, StartSurroundings, prompt_argument},
    model_choice::ModelChoice,
    new_run::{self, RunBuilder, SessionGoal},
    screen::ScreenOptions,
    setup, state_folder, stopped, surroundings, templates, workdir,
};
use gyrus_surfaces::{
    console::put,
    terminal,
    trace_file::{TraceFile, TracePurpose},
    watching::live_replies,
};

/// The longest goal, in bytes. A larger text belongs in a file that the goal names.
const GOAL_LIMIT: usize = 4 << 20;

/// Reach a goal in a folder
///
/// Progress goes to standard error, the answer to standard output. What happens is in the run's
/// journal: after a crash, a limit or an open question it goes on with `gyrus resume`.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 the goal is reached; 1 it failed; 2 wrong usage or configuration; 3 a limit;
4 denied, nobody to ask, or stopped; 5 waits for a person; 6 stuck; 7 the model is unreachable;
130 interrupted. After 3, 5, 6, 7 and 130, and after a stop, the run can be resumed.")]
pub(crate) struct Run {
    /// Go on with what the last run in this folder knows: "now do the same for March"
    #[arg(short, long = "continue")]
    continues: bool,
    /// Leave nothing behind but the work: the journal goes when the run ends
    #[arg(long, conflicts_with = "continues")]
    ephemeral: bool,
    /// Let a worker of this fleet reach it, and watch: nats://HOST:PORT?monitor=PORT, or `local`
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["continues", "ephemeral", "mcp_config"])]
    fleet: Option<String>,
    /// With --fleet: work in a copy of this folder, which goes from machine to machine with the run;
    /// without it, in the folder of the same path on the worker's machine
    #[arg(long)]
    upload: bool,
    /// With --fleet: work in a clone of this folder's git remote, at the commit that is checked out
    #[arg(long, conflicts_with = "upload")]
    clone: bool,
    #[command(flatten)]
    pub(super) servers: ServerFlags,
    #[command(flatten)]
    request: RunRequest,
    #[command(flatten)]
    output: OutputFlags,
    /// The id of a run that was not typed here.
    #[arg(skip)]
    ordered: Option<RunId>,
    /// The id that connects the run to its cause.
    #[arg(skip)]
    correlation: Option<String>,
    /// The priority of the command of the queue.
    #[arg(skip)]
    priority: i32,
    /// The procedure that must be replayed.
    #[arg(skip)]
    procedure: Option<String>,
}

type PromptWithArguments = (PromptName, BTreeMap<String, String>);

/// The place where the folder of a run of a fleet comes from.
#[cfg(feature = "fleet")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderSource {
    /// The worker's folder has the same path.
    SamePath,
    /// This machine's folder is uploaded.
    Upload,
    /// The worker clones the commit that is checked out here.
    Clone,
}

struct Parts<'a> {
    gyrus: &'a Gyrus,
    home: &'a Home,
    config: &'a Config,
    choice: &'a ModelChoice,
}

impl Run {
    /// Returns the run that replays this procedure, or `None`.
    pub(crate) fn replaying(
        command: Text,
        procedure: String,
        flags: RunFlags,
        output: OutputFlags,
    ) -> Self {
        let request = RunRequest::with_flags(command, flags);
        Self {
            procedure: Some(procedure),
            ..Self::of(request, output)
        }
    }

    /// Returns a run that was not typed here, in the folder of its request.
    pub(crate) fn ordered(mut request: RunRequest) -> Self {
        request.options.flags.workdir = Some(request.workdir.clone());
        Self {
            ordered: Some(RunId::new()),
            ..Self::of(request, OutputFlags::as_json())
        }
    }

    /// Returns the run for a goal that continues the memory of another run.
    pub(crate) fn after(before: RunId, goal: Text, flags: RunFlags, output: OutputFlags) -> Self {
        let mut request = RunRequest::with_flags(goal, flags);
        request.continues = Some(before);
        Self {
            ordered: Some(RunId::new()),
            ..Self::of(request, output)
        }
    }

    pub(crate) fn of_queue(
        run: RunId,
        mut request: RunRequest,
        correlation: Option<String>,
        priority: i32,
    ) -> Self {
        request.options.flags.ask_in_queue();
        Self {
            ordered: Some(run),
            correlation,
            priority,
            ..Self::ordered(request)
        }
    }

    fn of(request: RunRequest, output: OutputFlags) -> Self {
        Self {
            continues: false,
            ephemeral: false,
            fleet: None,
            upload: false,
            clone: false,
            servers: ServerFlags::default(),
            request,
            output,
            ordered: None,
            correlation: None,
            priority: 0,
            procedure: None,
        }
    }

    /// Checks that no flag for a fleet is given without a fleet.
    fn check_place(&self) -> Result<(), Failure> {
        let failure = if !self.request.needs.is_empty() && self.ordered.is_none() {
            Failure::usage("`--needs` names what a machine of a fleet must have")
        } else if self.upload || self.clone {
            Failure::usage("`--upload` and `--clone` are for runs of a fleet")
        } else {
            return Ok(());
        };
        Err(failure.hint("put the run into its queue with: --fleet ADDRESS"))
    }

    pub(crate) fn execute(mut self, gyrus: &Gyrus) -> Result<Code, Failure> {
        self.check_place()?;
        stopped::check(gyrus)?;
        let flags = &mut self.request.options.flags;
        // It is to leave nothing behind, and learns from nothing.
        flags.no_memory |= self.ephemeral;
        flags.no_lessons |= self.ephemeral;
        flags::settle(flags)?;
        let (home, config) = (gyrus.home()?, self.servers.config(gyrus)?);
        if !self.ephemeral {
            learning::catch_up(&home, &config)?;
        }
        let mut context = self.context()?;
        self.request.goal = self.goal(&home)?;
        let workspace = workdir::settle(&home, &mut self.request.options.flags)?;
        if self.continues {
            self.request.continues = Some(new_run::last_in(&home.store()?, &workspace)?);
        }
        let runtime = drive::runtime()?;
        if self.request.options.context.clipboard {
            context.push(runtime.block_on(attachments::clipboard(&workspace))?);
        }
        let mut new = RunBuilder {
            context,
            session: if self.continues {
                SessionGoal::Continued
            } else {
                SessionGoal::Fresh
            },
            procedure: self.procedure.as_deref(),
            at_terminal: terminal::can_ask() && !self.output.json(),
            ..RunBuilder::new(gyrus, &home, &config, &self.request)
        }
        .new_run()?;
        if let Some(run) = self.ordered {
            new.id = run;
        }
        new.priority = self.priority;
        let named = &self.request.options.flags.model;
        let choice = setup::models_for(&runtime, gyrus, &config, named, &new.loop_config)?;
        new.pins = choice.pins();
        // It may have been set up just now.
        let config = self.servers.config(gyrus)?;
        let trace = drive::open_trace(&self.output, TracePurpose::NewRun)?;
        let (home, _guard) = if self.ephemeral {
            let (home, guard) = state_folder::ephemeral(home)?;
            (home, Some(guard))
        } else {
            (home, None)
        };
        if self.request.options.worktree {
            move_into_worktree(&mut new)?;
        }
        let parts = Parts {
            gyrus,
            home: &home,
            config: &config,
            choice: &choice,
        };
        let (run, made) = (new.id, new.worktree.clone());
        let code = runtime.block_on(self.drive(parts, new, trace));
        drop_unused(&home, run, made);
        runtime.shutdown_background();
        code
    }

    /// Sets the fleet for the run, unless the run names another one.
    pub(crate) fn use_fleet(&mut self, fleet: &str) {
        self.fleet.get_or_insert(fleet.to_owned());
    }

    /// Returns the address of the fleet that carries out the run, if one is named.
    pub(crate) fn fleet(&self) -> Option<&str> {
        self.fleet.as_deref()
    }

    #[cfg(feature = "fleet")]
    pub(crate) fn folder_source(&self) -> FolderSource {
        match (self.upload, self.clone) {
            (true, _) => FolderSource::Upload,
            (false, true) => FolderSource::Clone,
            (false, false) => FolderSource::SamePath,
        }
    }

    /// Returns the request for a worker elsewhere, of a run that could be started, with the labels that
    /// its machine must have: those that are named, and this machine where a flag means something of it.
    #[cfg(feature = "fleet")]
    pub(crate) fn for_worker(mut self, gyrus: &Gyrus) -> Result<RunRequest, Failure> {
        self.check(gyrus)?;
        if self.output.answer_file.is_some() {
            return Err(Failure::usage(
                "--answer-file is for a run of this machine: a worker's answer comes without what \
                 is shown to you alone",
            ));
        }
        let home = gyrus.home()?;
        self.request.goal = self.goal(&home)?;
        let flags = &self.request.options.flags;
        self.request.workdir = new_run::workspace(&home, flags.workdir.as_deref())?;
        let needs = &mut self.request.needs;
        for label in &mut *needs {
            *label = fleet::parse_label(label).map_err(Failure::usage)?;
        }
        needs.extend(flags.screen.is_of_this_machine().then(fleet::this_machine));
        Ok(self.request)
    }

    /// Whether entries are to be printed as JSON.
    #[cfg(feature = "fleet")]
    pub(crate) fn is_json(&self) -> bool {
        self.output.json()
    }

    /// Checks that such a run could be started, as far as that is known without its goal and its model.
    pub(crate) fn check(&self, gyrus: &Gyrus) -> Result<(), Failure> {
        let (home, config) = (gyrus.home()?, gyrus.config()?);
        let mut request = RunRequest::new(Text::new("", Origin::Kernel), PathBuf::new());
        request.options = self.request.options.clone();
        // Whether its folder is there is seen on the machine that has it.
        let is_elsewhere = self.ordered.is_some() && gyrus.is_of_a_fleet();
        let in_its_place = is_elsewhere.then(tempfile::tempdir).transpose()?;
        if let Some(folder) = &in_its_place {
            request.options.flags.workdir = Some(folder.path().to_owned());
        }
        prompt_of(&request.options.context)?;
        RunBuilder::new(gyrus, &home, &config, &request)
            .new_run()
            .map(drop)
    }

    async fn drive(
        &self,
        parts: Parts<'_>,
        mut new: NewRun,
        trace: Option<TraceFile>,
    ) -> Result<Code, Failure> {
        let Parts {
            gyrus,
            home,
            config,
            choice,
        } = parts;
        let store = home.store()?;
        let around = StartSurroundings {
            home,
            config,
            workspace: &new.workspace,
            confinement: self.request.options.flags.approvals.confinement(),
            on_ask: new.on_ask,
        };
        let model = choice.start_for(gyrus, (config, &store, &new.loop_config));
        let (mut connected, ready, served) = ServerSet::beside(&around, model).await?;
        if let Some((prompt, arguments)) = prompt_of(&self.request.options.context)? {
            new.context
                .push(connected.prompt(&prompt, &arguments).await?);
        }
        let (live, replies) = live_replies();
        let screen = ScreenOptions::open(new.screen.as_ref(), &around)?;
        let run_context = RunContext {
            agent: &new.agent,
            cognitive_loop: &new.cognitive_loop,
            screen: screen.as_ref(),
            served: &served,
            sandbox: &new.sandbox,
            typed: &self.request.options.flags.sandbox.env,
        };
        let kernel = kernels::kernel(&around, store.clone(), ready, live, run_context)?;
        let on_ask = new.on_ask;
        let ready = kernel.create(new)?;
        let drive = Drive {
            gyrus,
            store,
            on_ask,
            output: &self.output,
            trace,
            ephemeral: self.ephemeral,
            replies,
            screen,
            correlation: self.correlation.clone(),
        };
        let code = drive.drive_and_leave(ready).await;
        connected.leave().await;
        code
    }

    fn context(&self) -> Result<Vec<Attachment>, Failure> {
        let options = &self.request.options;
        prompt_of(&options.context)?;
        let stdin_used = self.ordered.is_some() || self.request.goal.text == "-";
        let mut context = attachments::read(&options.context, stdin_used)?;
        for ContextText { name, text } in &self.request.context {
            let named = format!("{name}:\n{}", text.text);
            context.push(Attachment::Text(Text::new(named, text.origin.clone())));
        }
        Ok(context)
    }

    /// Returns the goal; only `-` reads it from standard input: what is piped in for other reasons
    /// may never end.
    fn goal(&self, home: &Home) -> Result<Text, Failure> {
        let typed = &self.request.goal;
        let goal = if self.ordered.is_some() {
            typed.clone()
        } else if typed.text == "-" {
            let mut bytes = Vec::new();
            let limit = u64::try_from(GOAL_LIMIT)
                .unwrap_or(u64::MAX)
                .saturating_add(1);
            io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
            if bytes.len() > GOAL_LIMIT {
                return Err(
                    Failure::usage(format!("the goal is longer than {GOAL_LIMIT} bytes")).hint(
                        "write the long part into a file of the folder, and name it in the goal",
                    ),
                );
            }
            let text = String::from_utf8(bytes)
                .map_err(|error| Failure::usage("the goal is not valid UTF-8").because(&error))?;
            Text::new(text, Origin::Stdin)
        } else {
            let template = templates::goal(home, &typed.text)?;
            template.map_or_else(|| typed.clone(), |goal| Text::new(goal, Origin::Person))
        };
        if goal.text.trim().is_empty() {
            return Err(Failure::usage("the goal is empty").hint("say what is to be reached"));
        }
        Ok(goal)
    }
}

fn prompt_of(flags: &ContextFlags) -> Result<Option<PromptWithArguments>, Failure> {
    let wrong = |flag, error| Failure::usage(format!("invalid value for `{flag}`: {error}"));
    let Some(prompt) = &flags.mcp_prompt else {
        let failure = Failure::usage("--mcp-argument needs --mcp-prompt");
        return if flags.mcp_argument.is_empty() {
            Ok(None)
        } else {
            Err(failure)
        };
    };
    let prompt = PromptName::parse(prompt).map_err(|error| wrong("--mcp-prompt", error))?;
    let arguments = flags.mcp_argument.iter().map(|text| prompt_argument(text));
    let arguments = arguments.collect::<Result<_, _>>();
    Ok(Some((
        prompt,
        arguments.map_err(|error| wrong("--mcp-argument", error))?,
    )))
}

/// Moves a run into a separate work tree, made from the last commit of the folder's repository.
fn move_into_worktree(new: &mut NewRun) -> Result<(), Failure> {
    let worktree = GitWorktrees.add(&new.workspace, new.id).map_err(|why| {
        Failure::usage(format!("there can be no work tree: {why}"))
            .hint("work in the folder itself: leave --worktree out")
    })?;
    new.workspace.clone_from(&worktree.folder);
    // The last of the material says where the run works.
    new.context.pop();
    new.context.push(surroundings::attachment(&new.workspace));
    put(&format!(
        "it works in {}, from the last commit; its changes come back as the branch {}\n",
        worktree.folder.display(),
        worktree.branch
    ))?;
    new.worktree = Some(worktree);
    Ok(())
}

/// Removes the work tree of a run that could not be created.
fn drop_unused(home: &Home, run: RunId, made: Option<RunWorktree>) {
    let exists = home.store().is_ok_and(|store| store.exists(&log_name(run)));
    if let Some(worktree) = made.filter(|_| !exists) {
        // Nothing was changed in it; what remains is told by `git worktree list`.
        let _ = GitWorktrees.bring_back(&worktree);
    }
}
