//! `gyrus fleet` and `gyrus worker` of a program that was built without them.

use std::ffi::OsString;

use clap::Args;

use crate::{Gyrus, exit::Code, failure::Failure};

/// Let several machines work on one queue of runs (not in this build)
#[derive(Args)]
pub(crate) struct FleetArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

impl FleetArguments {
    pub(crate) fn execute(self, _: &Gyrus) -> Result<Code, Failure> {
        Err(missing())
    }
}

/// Carry out runs of a fleet on this machine (not in this build)
#[derive(Args)]
pub(crate) struct WorkerCommand {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

impl WorkerCommand {
    pub(crate) fn execute(self, _: &Gyrus) -> Result<Code, Failure> {
        Err(missing())
    }
}

pub(crate) fn missing() -> Failure {
    let failure = Failure::usage("this gyrus was built without fleets");
    failure.hint("build it with: cargo install --path crates/gyrus --features fleet")
}
