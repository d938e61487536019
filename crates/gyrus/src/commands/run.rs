//! `gyrus run`

use std::{
    io::{self, Read},
    path::PathBuf,
};

use clap::Args;
use gyrus_contract::{Limits, Mode, OnAsk, Origin, RunId, Text};
use gyrus_kernel::{NewRun, gate::is_throwaway};

use crate::{
    Gyrus,
    config::Config,
    drive::{self, Drive},
    env,
    exit::Code,
    failure::Failure,
    flags::{ApprovalFlags, LimitFlags, OutputFlags},
    home::Home,
    organs::{self, ModelName},
    terminal,
    trace_file::For,
};

/// The longest goal, in bytes. A larger text belongs into a file that the goal names.
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
    /// What to reach; `-` reads it from standard input
    goal: String,
    /// Who thinks: script:FILE plays replies from a file
    #[arg(long)]
    model: Option<String>,
    /// How it thinks: auto, react, chain-of-thought or single-shot
    #[arg(long = "loop", value_name = "LOOP")]
    cognitive_loop: Option<String>,
    /// The folder that it may work in (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    /// Leave nothing behind but the work: the journal goes when the run ends
    #[arg(long)]
    ephemeral: bool,
    #[command(flatten)]
    approvals: ApprovalFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    output: OutputFlags,
}

impl Run {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let config = gyrus.config()?;
        let home = gyrus.home()?;
        let model = self.model(gyrus, &config)?;
        let new = self.new_run(&home, &config, &model)?;
        let trace = drive::open_trace(self.output.trace.as_deref(), For::NewRun)?;
        let (home, _guard) = if self.ephemeral {
            let (home, guard) = home.ephemeral()?;
            (home, Some(guard))
        } else {
            (home, None)
        };
        let store = home.store()?;
        let runtime = drive::runtime()?;
        let code = runtime.block_on(async {
            let kernel = organs::kernel(&home, store.clone(), model.start().await?)?;
            let on_ask = new.on_ask;
            let ready = kernel.create(new)?;
            let (output, ephemeral) = (&self.output, self.ephemeral);
            Drive {
                gyrus,
                store,
                on_ask,
                output,
                trace,
                ephemeral,
            }
            .drive(ready)
            .await
        });
        runtime.shutdown_background();
        code
    }

    fn model(&self, gyrus: &Gyrus, config: &Config) -> Result<ModelName, Failure> {
        let name = self
            .model
            .as_ref()
            .or(gyrus.environment.model.as_ref())
            .or(config.model.as_ref())
            .ok_or_else(|| {
                Failure::usage("no model is named").hint(format!(
                    "give --model script:FILE, set {}, or write `model = \"…\"` into the \
                     configuration; `gyrus demo` needs none",
                    env::GYRUS_MODEL
                ))
            })?;
        ModelName::parse(name)
    }

    fn new_run(&self, home: &Home, config: &Config, model: &ModelName) -> Result<NewRun, Failure> {
        let name = self
            .cognitive_loop
            .as_deref()
            .or(config.cognitive_loop.as_deref());
        let (cognitive_loop, loop_config) = organs::cognitive_loop(name)?;
        let here = PathBuf::from(".");
        let workspace = organs::workspace(home, self.workdir.as_ref().unwrap_or(&here))?;
        let throwaway = self.workdir.is_some() && is_throwaway(&workspace);
        let mode = self
            .approvals
            .approve
            .or(config.approve)
            .unwrap_or_default();
        if mode == Mode::Auto && !throwaway {
            return Err(Failure::usage(format!(
                "--approve auto lets commands run unasked, and nothing contains them but the \
                 folder, so {} must be one that may be lost",
                workspace.display()
            ))
            .hint(
                "name an empty folder, or one below the system's folder for temporary files: \
                 --workdir FOLDER",
            ));
        }
        let at_terminal = terminal::can_ask() && !self.output.json();
        let by_place = if at_terminal {
            OnAsk::Wait
        } else {
            OnAsk::Deny
        };
        let on_ask = self
            .approvals
            .on_ask()
            .or(config.on_ask)
            .unwrap_or(by_place);
        Ok(NewRun {
            id: RunId::new(),
            goal: self.goal()?,
            cognitive_loop: cognitive_loop.to_owned(),
            loop_config,
            workspace,
            mode,
            throwaway,
            on_ask,
            limits: either(self.limits.limits(), config.limits.limits()),
            pins: model.pins(),
            parent: None,
        })
    }

    /// Only a goal of `-` reads standard input: what is piped in for other reasons may never end.
    fn goal(&self) -> Result<Text, Failure> {
        let goal = if self.goal == "-" {
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
            Text::new(self.goal.clone(), Origin::Person)
        };
        if goal.text.trim().is_empty() {
            return Err(Failure::usage("the goal is empty").hint("say what is to be reached"));
        }
        Ok(goal)
    }
}

/// The first limits, and where they set none the second.
fn either(first: Limits, second: Limits) -> Limits {
    Limits {
        steps: first.steps.or(second.steps),
        tokens: first.tokens.or(second.tokens),
        cost: first.cost.or(second.cost),
        time_ms: first.time_ms.or(second.time_ms),
    }
}
