//! The commands: one a file, one line a command in the table below. A command's doc comment is
//! its help.

mod acp;
mod agents;
mod chat;
pub(crate) mod run;
pub(crate) mod resume;
pub(crate) mod stop;
mod rearm;
mod pause;
mod steer;
mod take;
mod approve;
mod deny;
mod abandon;
mod approvals;
mod runs;
mod policy;
mod look;
mod dot;
mod browser;
pub(crate) mod show;
mod listing;
mod run_argument;
pub(crate) mod follow;
mod trace;
pub(crate) mod context;
mod telemetry;
mod sandbox;
mod trust;
mod replay;
mod record;
mod models;
mod fork;
pub(crate) mod undo;
mod withheld;
pub(crate) mod diff;
mod apply;
mod tools;
mod skills;
mod plugins;
mod import;
mod lessons;
mod memory;
mod procedures;
mod teach;
mod mcp;
mod mcp_login;
mod mcp_roles;
mod page_roles;
mod roles;
pub(crate) mod doctor;
mod update;
mod upgrade;
mod demo;
mod eval;
mod demo_site;
pub(crate) mod work;
mod completions;
mod config;
mod manual;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(not(feature = "fleet"))]
pub(crate) mod fleet_missing;

pub(crate) use self::approve::check_edited;
#[cfg(not(feature = "fleet"))]
use self::fleet_missing as fleet;
use crate::{Gyrus, exit::Code, failure::Failure, serve, setup};

/// The commands in groups, each explained in a few words.
pub(crate) const OVERVIEW: &str = "\
gyrus: an agent runtime you can trust with a computer

Usage: gyrus [FLAGS]    a prompt: every line is a goal; flags as those of `run`
       gyrus COMMAND    each one explains itself: gyrus COMMAND --help

Begin
  demo                       see it work: no key, no network, half a minute
  setup                      find or store a key, or name a server, and prove it
  run                        reach a goal in this folder
  doctor, config             see what works here, and what is configured
  update, completions        get a newer gyrus; complete words in a shell
Watch
  runs                       list this folder's runs; copy and remove them
  show, follow               see what happened in a run, and what happens now
  approvals                  see what waits for your yes, and what you allow
Answer and steer
  approve, deny              say yes or no to what a run asks
  steer, take                tell a run more; take its screen over
  pause, stop, resume        let a run pause, cut it off, and go on with it
  abandon, rearm             end a run for good; go on after stop --all
Take back
  diff, undo, fork           see changes, take them back, go on from a step
  apply, withheld            carry changes over here; see what was kept out
Teach and trust
  trust, policy, sandbox     follow guidelines; say what needs a yes or passes
  skills, memory             see how tasks are done, and what runs remember
  procedures, teach          let tasks be done again without a model
  plugins, import            install skills and servers, or take them over
Look closer
  models, tools, mcp         see what can be asked, used and reached
  look, browser, dot         see a page as a run does; log in; watch it all
  context, trace, telemetry  see what fills the window; print or send the steps
  replay, record, eval       run again, make a script of it, measure models
Many runs
  serve, agents, chat        let a server, its agents and messengers start runs
  acp, fleet, worker         serve an editor; share runs among machines
  demo-site                  serve the sites to practise on

With any command: --connect SERVER has a server carry it out; before one:
--fleet ADDRESS means the runs of a fleet.
";

pub(crate) fn names() -> Vec<(String, String)> {
    let groups = OVERVIEW.lines().filter_map(|line| line.strip_prefix("  "));
    let groups = groups.filter_map(|line| line.split_once("  "));
    let named = groups.filter(|(names, _)| !names.is_empty());
    let named = named.flat_map(|(names, does)| {
        names
            .split(", ")
            .map(|name| (name.to_owned(), does.trim().to_owned()))
    });
    named.collect()
}

macro_rules! commands {
    ($($(#[$attribute:meta])* $name:ident($arguments:ty),)*) => {
        /// Commands of the program.
        #[derive(clap::Subcommand)]
        #[expect(clippy::large_enum_variant, reason = "there is one, for as long as the program runs")]
        pub(crate) enum Command {
            $(
                $(#[$attribute])*
                $name($arguments),
            )*
        }

        impl Command {
            /// Whether the command only reads runs, or sends something to a run of another process.
            #[cfg(feature = "fleet")]
            pub(crate) fn works_on_copies(&self) -> bool {
                match self {
                    Command::Stop(stop) => stop.is_for_one(),
                    Command::Approve(_)
                    | Command::Deny(_)
                    | Command::Steer(_)
                    | Command::Pause(_)
                    | Command::Runs(_)
                    | Command::Show(_)
                    | Command::Diff(_)
                    | Command::Apply(_)
                    | Command::Trace(_)
                    | Command::Context(_)
                    | Command::Replay(_) => true,
                    _ => false,
                }
            }

            /// Executes the command, and returns the exit code.
            pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
                match self {
                    $(Command::$name(arguments) => arguments.execute(gyrus),)*
                }
            }
        }
    };
}

commands! {
    Run(run::Run),
    Resume(resume::Resume),
    Stop(stop::StopCommand),
    Abandon(abandon::Abandon),
    Rearm(rearm::Rearm),
    Pause(pause::Pause),
    Steer(steer::SteerCommand),
    Take(take::TakeCommand),
    Approve(approve::ApproveCommand),
    Deny(deny::Deny),
    Approvals(approvals::Approvals),
    Trust(trust::TrustCommand),
    Policy(policy::PolicyArguments),
    Sandbox(sandbox::SandboxArguments),
    Look(look::LookCommand),
    Dot(dot::Dot),
    Browser(browser::BrowserCommand),
    Runs(runs::RunsFlags),
    Show(show::ShowCommand),
    Follow(follow::Follow),
    Trace(trace::TraceCommand),
    Context(context::ContextCommand),
    Telemetry(telemetry::Telemetry),
    Replay(replay::ReplayCommand),
    Record(record::RecordCommand),
    Fork(fork::ForkCommand),
    Undo(undo::UndoCommand),
    Withheld(withheld::ShowWithheld),
    Diff(diff::Diff),
    Apply(apply::Apply),
    Setup(setup::SetupCommand),
    Models(models::Models),
    Tools(tools::ToolsCommand),
    Skills(skills::Skills),
    Plugins(plugins::Plugins),
    Import(import::ImportCommand),
    Memory(memory::MemoryArguments),
    Procedures(procedures::Procedures),
    Teach(teach::Teach),
    Mcp(mcp::Mcp),
    Doctor(doctor::Doctor),
    Demo(demo::DemoCommand),
    Eval(eval::Eval),
    DemoSite(demo_site::DemoSite),
    Config(config::ConfigCommand),
    Update(update::UpdateCommand),
    Completions(completions::Completions),
    #[command(hide = true)]
    Manual(manual::Manual),
    Serve(serve::Serve),
    Acp(acp::Acp),
    Agents(agents::AgentsArguments),
    Chat(chat::ChatArguments),
    Fleet(fleet::FleetArguments),
    Worker(fleet::WorkerCommand),
    #[command(hide = true)]
    Work(work::WorkCommand),
}
