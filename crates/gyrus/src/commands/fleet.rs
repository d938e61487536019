//! `gyrus fleet`

use std::{
    num::NonZeroUsize,
    time::{Duration, SystemTime},
};

use clap::{Args, Subcommand};
use gyrus_fleet::{
    AppendAnswer, LogSubject, Machine as _, MessageId, OsMachine, SharedLog as _, WriterId,
    nats::{
        FleetAddress, FleetConnection, FleetPermissions, LocalServer, NatsLog, ServerOptions,
        prepare_streams, requirements,
    },
};
use gyrus_surfaces::{console::put, output};

use super::doctor::{Finding, found, show};
use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    fleet::{self, LOCAL, LocalAddress, WorkerSettings},
    inside_run,
};

/// The port of the server if none is given.
const PORT: u16 = 4222;

/// Difference of two clocks from which it is told.
const SKEW_MS: i64 = 2_000;

/// Let several machines work on one queue of runs
#[derive(Args)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Subcommand)]
enum FleetCommand {
    Up(Up),
    Status(Status),
    Doctor(FleetDoctor),
    Permissions(Permissions),
}

impl Fleet {
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
                .hint("if another one has its port: gyrus fleet up --port 0")
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
struct Status {
    /// Address of the fleet: nats://[TOKEN@]HOST:PORT?monitor=PORT, or `local`
    #[arg(long, value_name = "ADDRESS", default_value = LOCAL)]
    fleet: String,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    fn execute(&self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let runtime = drive::runtime()?;
        let done = runtime.block_on(fleet::status(gyrus, &self.fleet, self.json));
        runtime.shutdown_background();
        done
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
        let runtime = drive::runtime()?;
        let findings = runtime.block_on(diagnose(&address));
        runtime.shutdown_background();
        show(gyrus, findings)
    }
}

async fn diagnose(address: &FleetAddress) -> Vec<(&'static str, Finding)> {
    let connection = match FleetConnection::open(address).await {
        Ok(connection) => connection,
        Err(error) => return vec![("servers", Finding::Bad(error.into()))],
    };
    let mut findings = vec![("servers", Finding::Good(format!("connected to {address}")))];
    findings.extend(servers(address).await);
    let streams = prepare_streams(&connection).await;
    let are_there = streams.is_ok();
    findings.push((
        "streams",
        found(
            streams
                .map(|()| {
                    "there, and nothing but a person with all rights can remove from them"
                        .to_owned()
                })
                .map_err(Failure::from),
        ),
    ));
    if are_there {
        findings.push(("fencing", found(try_fencing(&connection).await)));
    }
    findings
}

/// Looks at each server by its monitoring page.
async fn servers(address: &FleetAddress) -> Vec<(&'static str, Finding)> {
    let seen = match fleet::servers(address).await {
        Ok(seen) => seen,
        Err(error) => return vec![("sync", Finding::Bad(error.into()))],
    };
    let down = seen.unseen.into_iter();
    let mut findings: Vec<_> = down.map(|why| ("server", Finding::Gap(why))).collect();
    if seen.servers.len() + findings.len() < 3 {
        let text = "fewer than three servers: what they keep is lost with a disk, and nothing goes on \
                    while one is down";
        findings.push(("replicas", Finding::Gap(text.to_owned())));
    }
    for view in seen.servers {
        match requirements(&view.varz) {
            Ok(held) => findings.extend(
                held.into_iter()
                    .map(|one| (one.name, Finding::Good(one.found))),
            ),
            Err(error) => findings.push(("server", Finding::Bad(error.into()))),
        }
        if view.ahead_ms.abs() > SKEW_MS {
            let text = format!(
                "{} is {} ms off this machine's clock: runs are safe, but delays and schedules are \
                 off by that",
                view.varz["server_name"].as_str().unwrap_or("a server"),
                view.ahead_ms
            );
            findings.push(("clock", Finding::Gap(text)));
        }
    }
    findings
}

/// Appends as two writers of which only one can be right.
async fn try_fencing(connection: &FleetConnection) -> Result<String, Failure> {
    let log = NatsLog::new(connection.clone());
    let name = format!("queue.doctor-{}", gyrus_contract::time_ordered_uuid());
    let subject = LogSubject::new(&name).expect("it is a name");
    let until = || OsMachine.now() + Duration::from_secs(10);
    let append = async |writer: u128| {
        let id = MessageId {
            subject: subject.clone(),
            writer: WriterId(writer),
            index: 0,
        };
        let body = b"gyrus fleet doctor".as_slice().into();
        log.append_if(&id, 0, &body, until()).await
    };
    let began = SystemTime::now();
    let first = append(1).await;
    let took = began.elapsed().unwrap_or_default();
    let AppendAnswer::Stored { position } = first else {
        let complaint = connection.complaint().unwrap_or_default();
        let why = match first {
            AppendAnswer::Unknown { why } | AppendAnswer::Impossible { why } => why,
            other => format!("{other:?}"),
        };
        let failure = Failure::usage(format!("nothing can be appended: {why} {complaint}"));
        return Err(match fleet::room(&why) {
            "" => failure.hint("to see the rights that a worker needs: gyrus fleet permissions"),
            room => failure.hint(room.trim_start_matches("; ")),
        });
    };
    let second = append(2).await;
    if second != (AppendAnswer::Refused { last: position }) {
        return Err(Failure::usage(format!(
            "of two writers with the same expectation, the second was not refused: {second:?}"
        )));
    }
    let read = log.read_from(&subject, 0, until()).await;
    let read = read.map_err(|error| Failure::usage(error.to_string()))?;
    if read.len() != 1 {
        return Err(Failure::usage(format!(
            "of one message, {} were read",
            read.len()
        )));
    }
    Ok(format!(
        "the second of two writers was refused; an append took {:.1} ms",
        took.as_secs_f64() * 1e3
    ))
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
pub(crate) struct Worker {
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

impl Worker {
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
        let runtime = drive::runtime()?;
        let done = runtime.block_on(fleet::work(gyrus, settings));
        runtime.shutdown_background();
        done
    }
}
