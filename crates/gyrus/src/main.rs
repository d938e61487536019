//! The program: what a person types, wired to the kernel. No thinking, acting or judging happens
//! here.
//!
//! Reading order: `commands` (one file a command, one table), `drive` (a run in this process),
//! `watching` and `console` (what a person sees of it), `kernels` (which parts a kernel gets).
//! `env`, `config`, `flags` and `state_folder` are where settings come from, the later winning; `exit` and
//! `failure` are how it ends.

mod aftermath;
mod agreement;
mod agent_files;
mod commands;
mod drive;
mod kernels;
mod model_choice;
mod measuring;
mod setup;
mod answer_file;
mod configured_secrets;
mod keys;
mod serve;
#[cfg(feature = "fleet")]
mod fleet;
mod editor;
mod templates;
mod skill_places;
mod skill_trust;
mod skills;
mod plugins;
mod learning;
mod lessons;
mod discover;
mod new_run;
mod which_loop;
mod workdir;
mod past_runs;
mod system_cause;
mod private_file;
mod procedures;
mod attachments;
mod browser;
mod sandbox_section;
mod sandbox_settings;
mod screen;
mod mcp;
mod memory;
mod takeover;
mod trial_sandbox;
mod prompt;
mod question;
mod inside_run;
#[cfg(feature = "desktop")]
mod status_dot;
mod stopped;
mod flags;
mod guidelines;
mod hooks;
mod language_servers;
mod surroundings;
mod config;
mod config_keys;
mod env;
mod state_folder;
mod telemetry;
mod program;
mod exit;
mod failure;
mod time;
mod vault;
mod embeddings;
mod web_search;
mod lab;
mod update;

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;
use gyrus::runtime;
use gyrus_runtime::request::RunFlags;
use gyrus_surfaces::{console, output, terminal};

use crate::{
    commands::{Command, resume::Resume},
    env::Environment,
    exit::Code,
    failure::Failure,
    program::Gyrus,
};

#[derive(Parser)]
#[command(
    name = "gyrus",
    version = gyrus::BUILD,
    override_help = commands::OVERVIEW,
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    /// Carry out the command at a server, `http://HOST:PORT` or its socket
    #[arg(long, value_name = "SERVER")]
    connect: Option<String>,
    /// Use the runs of a fleet, nats://HOST:PORT?monitor=PORT or `local`; stands first
    #[arg(long, value_name = "ADDRESS")]
    fleet: Option<String>,
    #[command(flatten)]
    flags: RunFlags,
}

fn main() -> ExitCode {
    gyrus::init();
    let gyrus = Gyrus {
        environment: Environment::read(),
        journal: None,
        replicas: None,
        travels: gyrus_kernel::FolderTravels::No,
        command_line: <CommandLine as clap::CommandFactory>::command,
    };
    gyrus
        .environment
        .theme
        .into_iter()
        .for_each(console::set_theme);
    let done = match serve::elsewhere(&gyrus) {
        Some(done) => done,
        None => here(&gyrus),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            if !failure.is_silent() {
                // If standard error is gone, the exit code still says it.
                let _ = console::put(&format!("{failure}\n"));
            }
            failure.code.into()
        }
    }
}

/// Removes the address of a fleet from the beginning of a command line's words.
fn for_fleet(mut words: Vec<OsString>) -> Result<(Option<String>, Vec<OsString>), Failure> {
    const FLAG: &str = "--fleet";
    let first = words.get(1).and_then(|word| word.to_str());
    let Some(rest) = first.and_then(|first| first.strip_prefix(FLAG)) else {
        return Ok((None, words));
    };
    let (address, count) = match (rest.strip_prefix('='), words.get(2)) {
        (Some(address), _) => (Some(address.to_owned()), 1),
        (None, Some(next)) if rest.is_empty() => (next.to_str().map(str::to_owned), 2),
        _ => (None, 0),
    };
    let address = address.ok_or_else(|| {
        Failure::usage("`--fleet` needs the address of a fleet after it, or `local`")
    })?;
    words.drain(1..=count);
    Ok((Some(address), words))
}

#[cfg(feature = "fleet")]
fn on_copies(command: Command, gyrus: &Gyrus, fleet: &str) -> Result<Code, Failure> {
    let command = match command {
        Command::Stop(stop) if !stop.is_for_one() => {
            return fleet::stop_all(gyrus, fleet, stop.reason());
        }
        Command::Stop(stop) => {
            if fleet::take_back(gyrus, fleet, stop.run())? {
                return Ok(Code::Reached);
            }
            Command::Stop(stop)
        }
        Command::Rearm(_) => return fleet::rearm(gyrus, fleet),
        command => command,
    };
    if !command.works_on_copies() {
        return Err(Failure::usage("this command is not for the runs of a fleet")
            .hint(
                "after --fleet ADDRESS: run, approve, deny, steer, pause, stop, rearm, show, diff, \
                 apply, trace, replay, runs list; undo and fork work on the machine where the run's \
                 folder is, without --fleet",
            ));
    }
    fleet::with_copies(gyrus, fleet, |gyrus| command.execute(gyrus))
}

#[cfg(not(feature = "fleet"))]
fn on_copies(_: Command, _: &Gyrus, _: &str) -> Result<Code, Failure> {
    Err(commands::fleet_missing::missing())
}

#[cfg(feature = "fleet")]
fn at_fleet(run: commands::run::Run, gyrus: &Gyrus) -> Result<Code, Failure> {
    fleet::submit_and_follow(gyrus, run)
}

#[cfg(not(feature = "fleet"))]
fn at_fleet(_: commands::run::Run, _: &Gyrus) -> Result<Code, Failure> {
    Err(commands::fleet_missing::missing())
}

/// Carries out a command that was typed at the prompt.
fn carry_out(gyrus: &Gyrus, words: Vec<String>) -> Result<(), Failure> {
    let words = std::iter::once("gyrus".to_owned()).chain(words);
    match CommandLine::try_parse_from(words) {
        Ok(line) => match line.command {
            Some(command) => command.execute(gyrus).map(|_| ()),
            None => Err(Failure::usage("a command is missing after the slash")),
        },
        // The help that was asked for, or what is wrong with the words.
        Err(said) => Ok(console::put(&said.to_string())?),
    }
}

/// Goes on with a session of this folder that the person chooses: a run that can be resumed is, and
/// from one that is over a conversation goes on.
fn go_on(gyrus: &Gyrus, resume: Resume) -> Result<Code, Failure> {
    let store = gyrus.store()?;
    let (runs, lines): (Vec<_>, Vec<_>) = prompt::sessions::listed(&store, &workdir::here()?)?
        .into_iter()
        .unzip();
    let run = match runs[..] {
        // There is nothing to choose.
        [] => return resume.execute(gyrus),
        [run] => run,
        _ if terminal::can_ask() => {
            match prompt::sessions::choose("go on with which", &lines, &gyrus.environment)? {
                Some(number) => runs[number],
                None => return Ok(Code::Reached),
            }
        }
        [newest, ..] => {
            let mut out = output::standard();
            for (run, line) in runs.iter().zip(lines) {
                writeln!(out, "{} {line}", run.short())?;
            }
            let failure = Failure::usage("several sessions of this folder could go on");
            let newest = newest.short();
            return Err(failure.hint(format!("name one of these: gyrus resume {newest}")));
        }
    };
    match gyrus_kernel::RunState::of(&store, run)? {
        gyrus_kernel::RunState::Over(_) if terminal::can_ask() => {
            prompt::open(gyrus, resume.run_flags().0, carry_out, Some(run))
        }
        _ => resume.with(run).execute(gyrus),
    }
}

/// Carries out the command in this process.
fn here(gyrus: &Gyrus) -> Result<ExitCode, Failure> {
    let (fleet, words) = for_fleet(std::env::args_os().collect())?;
    let mut line = CommandLine::parse_from(words);
    if let (Some(Command::Run(run)), Some(fleet)) = (&mut line.command, &fleet) {
        run.use_fleet(fleet);
    }
    if let Ok(home) = gyrus.home() {
        runtime::keep_out_of_workspaces(home);
    }
    let done = match line.command {
        Some(Command::Run(run)) if run.fleet().is_some() => at_fleet(run, gyrus),
        Some(command) if fleet.is_some() => on_copies(command, gyrus, &fleet.unwrap_or_default()),
        Some(Command::Resume(resume)) if resume.chooses() => go_on(gyrus, resume),
        Some(command) => command.execute(gyrus),
        None if fleet.is_some() => Err(Failure::usage("after `--fleet ADDRESS` stands a command")
            .hint("for example: gyrus --fleet local runs list")),
        None if terminal::can_ask() => prompt::open(gyrus, line.flags, carry_out, None),
        None => {
            write!(output::standard(), "{}", commands::OVERVIEW)?;
            Ok(Code::Reached)
        }
    };
    done.map(ExitCode::from)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;
    use gyrus_text::width;

    use super::*;

    #[test]
    fn the_overview_has_each_command_once_and_fits_a_screen() {
        let named = commands::names();
        let named: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        let command = CommandLine::command();
        let shown = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let names: BTreeSet<&str> = shown.map(clap::Command::get_name).collect();
        assert_eq!(named.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(named.len(), names.len(), "{named:?}");
        assert!(commands::OVERVIEW.lines().count() <= 40);
        assert!(commands::OVERVIEW.lines().all(|line| width(line) <= 80));
    }
}
