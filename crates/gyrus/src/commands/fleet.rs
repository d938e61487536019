//! `gyrus fleet`

use std::{num::NonZeroUsize, time::Duration};

use clap::{Args, Subcommand};
use gyrus_fleet::{
    LogSubject,
    nats::{FleetPermissions, LocalServer, ServerOptions},
};
use gyrus_surfaces::{console::put, output};

use super::doctor::show;
use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    fleet::{self, LOCAL, LocalAddress, WorkerSettings},
    inside_run,
};

/// The port of the server if none is given.
const PORT: u16 = 4222;

/// Let several machines work on one queue of runs
#[derive(Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Subcommand)]
enum FleetCommand {
    Up(Up),
    Status(FleetStatus),
    Doctor(FleetDoctor),
    Permissions(Permissions),
}

impl FleetArguments {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.command {
            FleetCommand::Up(up) => up.execute(gyrus),
            FleetCommand::Status(status) => status.execute(gyrus),
            FleetCommand::Doctor(doctor) => doctor.execute(gyrus),
            FleetCommand::Permissions(permissions) => permissions.execute(),
        }
    }
}

/// Run a server for a fleet on this machine, for trying
///
/// One NATS server with the settings that a fleet needs, on this machine's own addresses only. It
/// ends with this command, and goes on with what it kept at the next start.
#[derive(Args)]
struct Up {
    /// Port on this machine; 0 picks a free one
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Fetch the server's program with pip if it is not on this machine
    #[arg(long)]
    install: bool,
}

impl Up {
    fn execute(&self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = gyrus.home()?;
        home.create_state()?;
        let local = LocalAddress::of(&home);
        std::fs::create_dir_all(&local.folder)?;
        let options = ServerOptions {
            program: local.program(self.install)?,
            folder: local.folder.join("server"),
            name: "local".to_owned(),
            port: (self.port != 0).then_some(self.port),
            token: Some(local.token()?),
            more: String::new(),
            syncs_always: true,
        };
        let mut server = LocalServer::start(&options).map_err(|error| {
            Failure::failed("the server does not start")
                .because(&error)
                .hint("if another program has its port: gyrus fleet up --port 0")
        })?;
        let address = server.address();
        let _written = local.write(&address)?;
        let runtime = drive::runtime()?;
        let parsed = fleet::address(gyrus, &address)?;
        runtime.block_on(async { fleet::connect(&parsed).await.map(drop) })?;
        let mut out = output::standard();
        writeln!(out, "{address}")?;
        out.flush()?;
        put(&format!(
            "it runs until Ctrl-C. On this machine, in another terminal:\n  \
             gyrus fleet doctor --fleet {LOCAL}\n"
        ))?;
        runtime.block_on(async {
            let ended = tokio::task::spawn_blocking(move || server.wait());
            tokio::select! {
                _ = ended => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        });
        runtime.shutdown_background();
        Ok(Code::Reached)
    }
}

/// Show the workers of a fleet, its queue, and who drives what
#[derive(Args)]
struct FleetStatus {
    /// Address of the fleet: nats://[TOKEN@]HOST:PORT?monitor=PORT, or `local`
    #[arg(long, value_name = "ADDRESS", default_value = LOCAL)]
    fleet: String,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl FleetStatus {
    fn execute(&self, gyrus: &Gyrus) -> Result<Code, Failure> {
        drive::wait_for(fleet::status(gyrus, &self.fleet, self.json))?
    }
}

/// Try everything that a fleet needs of its servers
#[derive(Args)]
struct FleetDoctor {
    /// Address of the fleet: nats://[TOKEN@]HOST:PORT?monitor=PORT, or `local`
    #[arg(long, value_name = "ADDRESS", default_value = LOCAL)]
    fleet: String,
}

impl FleetDoctor {
    fn execute(&self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let address = fleet::address(gyrus, &self.fleet)?;
        let findings = drive::wait_for(fleet::diagnose(&address))?;
        show(gyrus, findings)
    }
}

/// Print the rights that a worker needs on the servers, for their configuration
#[derive(Args)]
struct Permissions {
    /// Print the command of `nsc` that makes a user with these rights
    #[arg(long)]
    nsc: bool,
    /// Name of the fleet
    #[arg(long, default_value = "main")]
    name: String,
}

impl Permissions {
    fn execute(&self) -> Result<Code, Failure> {
        if LogSubject::new(&self.name).is_none() || self.name.contains('.') {
            return Err(Failure::usage(format!(
                "`{}` is not the name of a fleet: letters a-z, digits and dashes",
                self.name
            )));
        }
        let mut out = output::standard();
        let rights = FleetPermissions::of(&self.name);
        let text = if self.nsc {
            rights.nsc_command()
        } else {
            rights.configuration()
        };
        write!(out, "{text}")?;
        Ok(Code::Reached)
    }
}

/// Carry out runs of a fleet on this machine
///
/// Each run is a process of its own, which holds it by a lease that it renews: if this machine dies
/// or is cut off, another worker goes on with the run, and nothing of it happens twice.
#[derive(Args)]
pub(crate) struct WorkerCommand {
    /// Address of the fleet: nats://[TOKEN@]HOST:PORT?monitor=PORT, or `local`
    #[arg(long, value_name = "ADDRESS")]
    fleet: String,
    /// Maximum number of runs at once
    #[arg(long, value_name = "N", default_value = "4")]
    at_once: NonZeroUsize,
    /// Maximum number of runs of one agent at once, on all workers; no limit if it is not given
    #[arg(long, value_name = "N")]
    per_agent: Option<NonZeroUsize>,
    /// Time after which others may go on with the runs of a worker that is not heard of
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = lease)]
    lease: Duration,
    /// Label of this machine, as `gpu`: runs that need it come here; may be repeated
    #[arg(long, value_name = "LABEL", value_parser = fleet::parse_label)]
    label: Vec<String>,
}

fn lease(text: &str) -> Result<Duration, String> {
    let lease = gyrus_text::parse_duration(text).map_err(|error| error.to_string())?;
    if (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&lease) {
        Ok(lease)
    } else {
        Err("a lease is from 1s to 1h".to_owned())
    }
}

impl WorkerCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("work for a fleet")?;
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy().into_owned();
        let settings = WorkerSettings {
            fleet: self.fleet,
            // A worker that starts again is another one: it knows nothing of what it had.
            name: format!("{host}-{}", gyrus_contract::time_ordered_uuid().simple()),
            at_once: self.at_once,
            per_agent: self.per_agent,
            lease: self.lease,
            labels: self.label.into_iter().collect(),
        };
        drive::wait_for(fleet::work(gyrus, settings))?
    }
}
