//! `gyrus work`: carries out one command of the queue, which the server gives on standard input.

use std::io::{Read, stdin};

use clap::Args;
use gyrus_kernel::{RunState, StandingRun, log_name};
use gyrus_runtime::queue::{self, QueueWork as QueuedWork};
use serde::{Deserialize, Serialize};

use super::resume::Resume;
use crate::{Gyrus, commands::run::Run, exit::Code, failure::Failure};

/// Carry out a command of the queue
#[derive(Args)]
pub(crate) struct WorkCommand {}

impl WorkCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let mut text = String::new();
        let limit = u64::try_from(2 * queue::MAX_COMMAND).unwrap_or(u64::MAX);
        stdin().lock().take(limit).read_to_string(&mut text)?;
        let order: WorkOrder = serde_json::from_str(&text).map_err(|error| {
            Failure::usage("standard input contains no command of the queue")
                .because(&error)
                .hint("the server starts this by itself: gyrus serve")
        })?;
        match order.fleet {
            None => carry_out(order.command, gyrus),
            Some(fleet) => for_fleet(&fleet, order.command, gyrus),
        }
    }
}

/// A command of the queue, as a process of its own gets it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkOrder {
    pub(crate) command: queue::QueueCommand,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fleet: Option<FleetOrder>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FleetOrder {
    pub(crate) address: String,
    pub(crate) worker: String,
    /// Length of the lease in milliseconds.
    pub(crate) lease_ms: u64,
}

#[cfg(feature = "fleet")]
fn for_fleet(
    order: &FleetOrder,
    command: queue::QueueCommand,
    gyrus: &Gyrus,
) -> Result<Code, Failure> {
    crate::fleet::drive(order, command, gyrus, carry_out)
}

#[cfg(not(feature = "fleet"))]
fn for_fleet(_: &FleetOrder, _: queue::QueueCommand, _: &Gyrus) -> Result<Code, Failure> {
    Err(super::fleet_missing::missing())
}

fn carry_out(command: queue::QueueCommand, gyrus: &Gyrus) -> Result<Code, Failure> {
    let store = gyrus.store()?;
    if store.exists(&log_name(command.run)) {
        if let (QueuedWork::Start(_), RunState::Over(ending)) =
            (&command.work, RunState::of(&store, command.run)?)
        {
            // The process that came to its end died before it could say so.
            return Ok(Code::of(&ending));
        }
        let before = StandingRun::read(&store, command.run)?;
        let resume = Resume::of_queue(command.run, before.on_ask, command.correlation);
        return resume.execute(gyrus);
    }
    let QueuedWork::Start(request) = command.work else {
        let name = command.run.short();
        return Err(Failure::usage(format!(
            "there is no run {name} to go on with"
        )));
    };
    let priority = i32::from(command.priority);
    Run::of_queue(command.run, *request, command.correlation, priority).execute(gyrus)
}
