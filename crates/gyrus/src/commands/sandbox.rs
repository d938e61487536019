//! `gyrus sandbox`

use std::{path::PathBuf, process};

use clap::{Args, Subcommand};
use gyrus::runtime::Home;
use gyrus_contract::Exit;
use gyrus_kernel::{Entry, log_name, parse};
use gyrus_surfaces::{console::put, output, terminal};
use gyrus_text::one_line;
use gyrus_tools::Shell;

use super::run_argument::RunArgument;
use gyrus_runtime::request::SandboxFlags;

use crate::{
    Gyrus, agreement, drive,
    exit::Code,
    failure::Failure,
    inside_run, new_run,
    sandbox_settings::{self, PROJECT_FILE, ProjectFile},
    trial_sandbox::TrialSandbox,
};

/// See what the sandbox of runs refused, try it, and agree to what a project asks for
#[derive(Args)]
pub(crate) struct SandboxArguments {
    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Subcommand)]
enum SandboxCommand {
    Run(Try),
    Why(SandboxWhy),
    Agree(Agree),
}

impl SandboxArguments {
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
        let seconds = allowed.options.longest_command();
        let mut command = Shell::new().spec(self.line(), &workspace, seconds);
        command.environment.extend(values);
        let home = Home {
            sockets: config.sandbox.socket_files(),
            ..home
        };
        let sandbox = TrialSandbox::new(&home, &workspace, allowed, |why| {
            let _ = put(&format!("the sandbox refuses: {}\n", one_line(why)));
        })?;
        let ran = drive::runtime()?.block_on(sandbox.run(command))?;
        let mut out = output::standard();
        write!(out, "{}{}", ran.output.head, ran.output.tail)?;
        out.flush()?;
        let code = match ran.exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
            Exit::TimedOut => {
                put(&format!(
                    "the command was ended after {seconds} s, the longest time of a command\n"
                ))?;
                124
            }
        };
        process::exit(code)
    }
}

/// List what the sandbox refused to the commands of a run, and what would let it through
#[derive(Args)]
struct SandboxWhy {
    #[command(flatten)]
    run: RunArgument,
}

impl SandboxWhy {
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
        let grant = |agreed| project.grant(agreed);
        agreement::say((gyrus, &home, &workspace), grant, !self.never)?;
        let have = if self.never { "do not have" } else { "have" };
        put(&format!(
            "runs in {} {have} this, as long as the file stays as it is:\n{}",
            one_line(&workspace.display().to_string()),
            project.in_words()
        ))?;
        Ok(Code::Reached)
    }
}
