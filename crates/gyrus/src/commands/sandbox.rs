//! `gyrus sandbox`

use std::{path::PathBuf, process, sync::Arc};

use clap::{Args, Subcommand};
use gyrus::runtime::{self, Confinement, sandbox, sandbox_folders};
use gyrus_contract::{
    Boxed, ConnectionPolicy, DEFAULT_AGENT, Decision, Destination, Exit, Gate as _, Judgement,
    Layer, Mode, Place, ResolvedCall, RunId, ToolCall, ToolSpec,
};
use gyrus_gate::PolicyGate;
use gyrus_kernel::{Entry, log_name, parse};
use gyrus_surfaces::{console::put, output, terminal};
use gyrus_text::one_line;
use gyrus_tools::{Shell, ToolRegistry};
use serde_json::json;

use super::run_argument::RunArgument;
use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    inside_run, new_run,
    sandbox_settings::{self, PROJECT_FILE, ProjectFile, RunSandbox, SandboxFlags},
};

/// See what the sandbox of runs refused, try it, and agree to what a project asks for
#[derive(Args)]
pub(crate) struct Sandbox {
    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Subcommand)]
enum SandboxCommand {
    Run(Try),
    Why(Why),
    Agree(Agree),
}

impl Sandbox {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            SandboxCommand::Run(command) => command.execute(gyrus),
            SandboxCommand::Why(why) => why.execute(gyrus),
            SandboxCommand::Agree(agree) => agree.execute(gyrus),
        }
    }
}

/// Run a command in the sandbox that a run in this folder would have, and exit with its code
///
/// What it changes in the folder is thrown away. Connections that would be asked about are refused.
#[derive(Args)]
struct Try {
    /// The folder that it runs in (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    workdir: Option<PathBuf>,
    #[command(flatten)]
    sandbox: SandboxFlags,
    /// The command: one word is a line for the shell, several are a program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Try {
    fn line(&self) -> String {
        match &self.command[..] {
            [line] => line.clone(),
            words => {
                let quoted = words.iter().map(|word| word.replace('\'', r"'\''"));
                let quoted: Vec<String> = quoted.map(|word| format!("'{word}'")).collect();
                quoted.join(" ")
            }
        }
    }

    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("try a sandbox")?;
        let (home, config) = (gyrus.home()?, gyrus.config()?);
        let workspace = new_run::workspace(&home, self.workdir.as_deref())?;
        let of = (gyrus, &home, &config);
        let allowed = sandbox_settings::of_run(of, &self.sandbox, &workspace, terminal::can_ask())?;
        let (values, _) =
            sandbox_settings::values(&config, &home.travels, &allowed.options, &self.sandbox.env);
        let (store, sandboxed) = (home.store()?, Confinement::Sandboxed);
        let gate = runtime::gate(&home, &store, &workspace, DEFAULT_AGENT, sandboxed)?;
        let spec = ToolRegistry::builtin();
        let spec = spec.get("shell").map(|tool| tool.spec().clone());
        let spec = spec.ok_or_else(|| Failure::failed("there is no tool for commands"))?;
        let run = RunId::new();
        let call = ToolCall::new("shell", json!({"command": self.line()}));
        let place = Place {
            run,
            workspace: &workspace,
            agent: DEFAULT_AGENT,
            mode: Mode::default(),
            skills: &[],
            sandbox: &allowed.options,
        };
        let resolved = gate.resolve(&call, &spec, place);
        let resolved = resolved.map_err(|error| Failure::usage(error.reason))?;
        let command = resolved.command.as_ref();
        let containment = command.and_then(|command| command.containment.clone());
        let mut containment = containment.ok_or_else(|| {
            Failure::failed("there is no sandbox here").hint("see why: gyrus doctor")
        })?;
        let changes = sandbox_folders::of_trial(&home, run);
        containment.writable.retain(|folder| *folder != workspace);
        containment.layered.push(Layer {
            lower: workspace.clone(),
            upper: changes.join("changes"),
            work: changes.join("work"),
            required: true,
        });
        let seconds = allowed.options.longest_command();
        let mut command = Shell::new().spec(self.line(), &workspace, seconds);
        command.environment.extend(values);
        let policy = Tried {
            gate,
            call: resolved,
            spec,
            workspace,
            allowed,
        };
        (containment.forwarded, containment.asked) = policy.loopback();
        let runtime = drive::runtime()?;
        let run_it = sandbox::run_connected(containment, Arc::new(policy));
        let ran = runtime.block_on(run_it(command));
        sandbox_folders::remove(&home, &[run]);
        let ran =
            ran.map_err(|error| Failure::failed("the command did not run").because(&error))?;
        let mut out = output::standard();
        write!(out, "{}{}", ran.output.head, ran.output.tail)?;
        out.flush()?;
        let code = match ran.exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::TimedOut => {
                put(&format!(
                    "it was ended after {seconds} s, the longest time of a command\n"
                ))?;
                124
            }
        };
        process::exit(code)
    }
}

/// Decides about the connections of a command that is tried, as for a run, and asks nobody.
struct Tried {
    gate: PolicyGate,
    call: ResolvedCall,
    spec: ToolSpec,
    workspace: PathBuf,
    allowed: RunSandbox,
}

impl Tried {
    fn under<T>(&self, ask: impl FnOnce(&Judgement<'_>) -> T) -> T {
        let trusted: Vec<&str> = self.allowed.trusted.iter().map(String::as_str).collect();
        ask(&Judgement {
            exposed: false,
            grants: &self.allowed.grants,
            trusted: &trusted,
            ..Judgement::outside_of_runs(&self.workspace)
        })
    }

    fn loopback(&self) -> (Vec<std::net::SocketAddr>, Vec<std::net::SocketAddr>) {
        let judged = self.under(|under| self.gate.forwarded(&self.call, &self.spec, under));
        let (allowed, asked): (Vec<_>, Vec<_>) = judged
            .into_iter()
            .partition(|(_, decision)| *decision == Decision::Allow);
        let addresses = |judged: Vec<_>| judged.into_iter().map(|(at, _)| at).collect();
        (addresses(allowed), addresses(asked))
    }
}

impl ConnectionPolicy for Tried {
    fn decide<'a>(&'a self, to: &'a Destination) -> Boxed<'a, Result<(), String>> {
        let verdict = self.under(|under| {
            self.gate
                .judge_destination(to, &self.call, &self.spec, under)
        });
        let decided = if verdict.decision == Decision::Allow {
            Ok(())
        } else {
            let why = verdict.reasons.join("; ");
            let _ = put(&format!("the sandbox refuses: {}\n", one_line(&why)));
            Err(why)
        };
        Box::pin(std::future::ready(decided))
    }
}

/// List what the sandbox refused to the commands of a run, and what would let it through
#[derive(Args)]
struct Why {
    #[command(flatten)]
    run: RunArgument,
}

impl Why {
    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let mut text = String::new();
        for entry in store.reader(&log_name(run))?.entries(1)? {
            if let Ok(Entry::ToolResulted(outcome)) = parse(&entry?) {
                for limit in &outcome.sandbox {
                    text.push_str(&format!("call {}: {}\n", outcome.effect, one_line(limit)));
                }
            }
        }
        if text.is_empty() {
            text.push_str("the sandbox refused nothing that gyrus noticed\n");
        }
        put(&text)?;
        Ok(Code::Reached)
    }
}

/// Let runs in a folder have what its `.gyrus/sandbox.toml` asks for
///
/// It holds for the content as it is now; to take it back: gyrus approvals.
#[derive(Args)]
struct Agree {
    /// The folder that runs work in (default: the current one)
    folder: Option<PathBuf>,
    /// Runs shall not have it, and nobody is asked again
    #[arg(long)]
    never: bool,
}

impl Agree {
    fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("agree to a project's file")?;
        let home = gyrus.home()?;
        let workspace = new_run::workspace(&home, self.folder.as_deref())?;
        let Some(project) = ProjectFile::read(&workspace)? else {
            let what = format!(
                "there is no {PROJECT_FILE} to agree to in {}",
                workspace.display()
            );
            return Err(Failure::usage(what));
        };
        project.say(gyrus, &home, &workspace, !self.never)?;
        let have = if self.never { "do not have" } else { "have" };
        put(&format!(
            "runs in {} {have} this, as long as the file stays as it is:\n{}",
            one_line(&workspace.display().to_string()),
            project.in_words()
        ))?;
        Ok(Code::Reached)
    }
}
