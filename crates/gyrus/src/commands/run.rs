//! `gyrus run`

#[cfg(feature = "fleet")]
use std::collections::BTreeSet;
use std::{
    io::{self, Read},
    path::PathBuf,
};

use clap::Args;
use gyrus::runtime::{GitWorktrees, Home};
use gyrus_contract::{Origin, RunId, RunWorktree, Text, Worktrees as _};
use gyrus_kernel::{Attachment, NewRun, log_name};
use gyrus_runtime::queue::{ContextText, RunRequest};

#[cfg(feature = "fleet")]
use crate::fleet;
use crate::{
    Gyrus, attachments,
    config::Config,
    drive::{self, Drive},
    exit::Code,
    failure::Failure,
    flags::{ContextFlags, OutputFlags, RunFlags},
    kernels::{self, RunContext},
    learning,
    mcp::{ServerSet, StartSurroundings},
    model_choice::ModelChoice,
    new_run::{self, RunOptions, SessionGoal},
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
#[derive(Default)]
pub(crate) struct Run {
    /// Goal to reach; `-` reads it from standard input
    goal: String,
    /// Go on with what the last run in this folder knows: "now do the same for March"
    #[arg(short, long = "continue")]
    continues: bool,
    /// Leave nothing behind but the work: the journal goes when the run ends
    #[arg(long, conflicts_with = "continues")]
    ephemeral: bool,
    /// Work apart, in a git work tree of the last commit; the changes come back as a branch
    #[arg(long, conflicts_with_all = ["continues", "ephemeral", "fleet"])]
    worktree: bool,
    /// Let a worker of this fleet reach it, and watch: nats://HOST:PORT?monitor=PORT, or `local`
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["continues", "ephemeral"])]
    fleet: Option<String>,
    /// With --fleet: label that the worker's machine must have, as `gpu`; may be repeated
    #[arg(long, value_name = "LABEL")]
    needs: Vec<String>,
    /// With --fleet: work in a copy of this folder, which goes from machine to machine with the run;
    /// without it, in the folder of the same path on the worker's machine
    #[arg(long)]
    upload: bool,
    /// With --fleet: work in a clone of this folder's git remote, at the commit that is checked out
    #[arg(long, conflicts_with = "upload")]
    clone: bool,
    #[command(flatten)]
    flags: RunFlags,
    #[command(flatten)]
    context: ContextFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// The order of the queue, in place of the command line.
    #[arg(skip)]
    order: Option<Order>,
    /// The procedure that must be replayed.
    #[arg(skip)]
    procedure: Option<String>,
}

/// The place where the folder of a run of a fleet comes from.
#[cfg(feature = "fleet")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderSource {
    /// It has the same path on the worker's machine.
    SamePath,
    /// This machine's folder is uploaded.
    Upload,
    /// The worker clones what is checked out here.
    Clone,
}

/// A run as the queue orders it.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) run: RunId,
    /// Its request; the options are in the flags.
    pub(crate) request: RunRequest,
    /// The id that ties it to what caused it.
    pub(crate) correlation: Option<String>,
}

/// Parts that a run is created with.
struct Parts<'a> {
    gyrus: &'a Gyrus,
    home: &'a Home,
    config: &'a Config,
    choice: &'a ModelChoice,
}

impl Run {
    /// Returns the run that replays this procedure, or nothing.
    pub(crate) fn replaying(
        command: Text,
        procedure: String,
        flags: RunFlags,
        output: OutputFlags,
    ) -> Self {
        Self {
            procedure: Some(procedure),
            ..Self::for_goal(command.text, flags, output)
        }
    }

    /// Returns the run for a goal that remembers another one.
    pub(crate) fn after(before: RunId, goal: Text, flags: RunFlags, output: OutputFlags) -> Self {
        Self {
            order: Some(Order {
                run: RunId::new(),
                request: RunRequest {
                    continues: Some(before),
                    ..RunRequest::new(goal, PathBuf::new())
                },
                correlation: None,
            }),
            ..Self::for_goal(String::new(), flags, output)
        }
    }

    fn for_goal(goal: String, flags: RunFlags, output: OutputFlags) -> Self {
        Self {
            goal,
            flags,
            output,
            ..Self::default()
        }
    }

    /// Makes it the run that the queue orders.
    pub(crate) fn take_order(&mut self, order: Order) {
        self.flags.ask_in_queue();
        self.order = Some(order);
    }

    /// Checks that nothing is said of a fleet where there is none.
    fn check_place(&self) -> Result<(), Failure> {
        let failure = if !self.needs.is_empty() {
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
        self.flags.no_memory |= self.ephemeral;
        self.flags.approvals.announce()?;
        self.flags.screen.confirm()?;
        // It is to leave nothing behind, and learns from nothing.
        self.flags.no_lessons |= self.ephemeral;
        let (home, config) = (gyrus.home()?, gyrus.config()?);
        if !self.ephemeral {
            learning::catch_up(&home, &config)?;
        }
        let goal = self.goal(&home)?;
        let mut context = self.context()?;
        let workspace = workdir::settle(&home, &mut self.flags)?;
        let continues = if self.continues {
            Some(new_run::last_in(&home.store()?, &workspace)?)
        } else {
            self.order
                .as_ref()
                .and_then(|order| order.request.continues)
        };
        let runtime = drive::runtime()?;
        if self.context.clipboard {
            context.push(runtime.block_on(attachments::clipboard(&workspace))?);
        }
        let mut new = RunOptions {
            goal,
            context,
            continues,
            session: if self.continues {
                SessionGoal::Continued
            } else {
                SessionGoal::Fresh
            },
            procedure: self.procedure.as_deref(),
            at_terminal: terminal::can_ask() && !self.output.json(),
            ..RunOptions::new(gyrus, &home, &config, &self.flags)
        }
        .new_run()?;
        if let Some(order) = &self.order {
            new.id = order.run;
        }
        let named = &self.flags.model;
        let choice = setup::models_for(&runtime, gyrus, &config, named, &new.loop_config)?;
        new.pins = choice.pins();
        // It may have been set up just now.
        let config = gyrus.config()?;
        let trace = drive::open_trace(&self.output, TracePurpose::NewRun)?;
        let (home, _guard) = if self.ephemeral {
            let (home, guard) = state_folder::ephemeral(home)?;
            (home, Some(guard))
        } else {
            (home, None)
        };
        if self.worktree {
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

    /// Lets this fleet reach the goal, unless it names another one.
    pub(crate) fn use_fleet(&mut self, fleet: &str) {
        self.fleet.get_or_insert(fleet.to_owned());
    }

    /// Returns the address of the fleet that is to reach the goal, if one is named.
    pub(crate) fn fleet(&self) -> Option<&str> {
        self.fleet.as_deref()
    }

    /// Returns the labels that the worker's machine must have: those that are named, and this machine
    /// where a flag means something of this machine.
    #[cfg(feature = "fleet")]
    pub(crate) fn needs(&self) -> Result<BTreeSet<String>, Failure> {
        let named = self.needs.iter().map(|label| fleet::parse_label(label));
        let mut needs: BTreeSet<String> =
            named.collect::<Result<_, _>>().map_err(Failure::usage)?;
        needs.extend(
            self.flags
                .screen
                .is_of_this_machine()
                .then(fleet::this_machine),
        );
        Ok(needs)
    }

    /// Returns where the folder of the run comes from.
    #[cfg(feature = "fleet")]
    pub(crate) fn folder_source(&self) -> FolderSource {
        match (self.upload, self.clone) {
            (true, _) => FolderSource::Upload,
            (false, true) => FolderSource::Clone,
            (false, false) => FolderSource::SamePath,
        }
    }

    /// Returns the goal and the folder, and whether entries are to be printed as JSON, of a run that
    /// could be started.
    #[cfg(feature = "fleet")]
    pub(crate) fn asked(&self, gyrus: &Gyrus) -> Result<(Text, PathBuf, bool), Failure> {
        self.check(gyrus)?;
        if self.output.answer_file.is_some() {
            return Err(Failure::usage(
                "--answer-file is for a run of this machine: a worker's answer comes without what \
                 is shown to you alone",
            ));
        }
        let home = gyrus.home()?;
        let workspace = new_run::workspace(&home, self.flags.workdir.as_deref())?;
        Ok((self.goal(&home)?, workspace, self.output.json()))
    }

    /// Checks that such a run could be started, as far as that is known without its model.
    pub(crate) fn check(&self, gyrus: &Gyrus) -> Result<(), Failure> {
        let (home, config) = (gyrus.home()?, gyrus.config()?);
        let options = RunOptions::new(gyrus, &home, &config, &self.flags);
        options.new_run().map(drop)
    }

    /// Creates the run and drives it.
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
            confinement: self.flags.approvals.confinement(),
            on_ask: new.on_ask,
        };
        let model = choice.start_for(gyrus, (config, &store, &new.loop_config));
        let (mut connected, ready, served) = ServerSet::beside(&around, model).await?;
        if let Some(prompt) = &self.context.mcp_prompt {
            let arguments = self.context.mcp_argument.iter().cloned().collect();
            new.context
                .push(connected.prompt(prompt, &arguments).await?);
        }
        let (live, replies) = live_replies();
        let screen = ScreenOptions::open(new.screen.as_ref(), &around)?;
        let run_context = RunContext {
            agent: &new.agent,
            cognitive_loop: &new.cognitive_loop,
            screen: screen.as_ref(),
            served: &served,
            sandbox: &new.sandbox,
            typed: &self.flags.sandbox.env,
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
            correlation: self
                .order
                .as_ref()
                .and_then(|order| order.correlation.clone()),
        };
        let code = drive.drive_and_leave(ready).await;
        connected.leave().await;
        code
    }

    /// Returns what came with the goal.
    fn context(&self) -> Result<Vec<Attachment>, Failure> {
        let mut context = attachments::read(&self.context, self.goal == "-")?;
        for ContextText { name, text } in self.order.iter().flat_map(|order| &order.request.context)
        {
            let named = format!("{name}:\n{}", text.text);
            context.push(Attachment::Text(Text::new(named, text.origin.clone())));
        }
        Ok(context)
    }

    /// Only a goal of `-` reads standard input: what is piped in for other reasons may never end.
    fn goal(&self, home: &Home) -> Result<Text, Failure> {
        let goal = if let Some(order) = &self.order {
            order.request.goal.clone()
        } else if self.goal == "-" {
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
            let template = templates::goal(home, &self.goal)?;
            Text::new(
                template.unwrap_or_else(|| self.goal.clone()),
                Origin::Person,
            )
        };
        if goal.text.trim().is_empty() {
            return Err(Failure::usage("the goal is empty").hint("say what is to be reached"));
        }
        Ok(goal)
    }
}

/// Has a run work in a work tree of its own, made from the last commit of the folder's repository.
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
