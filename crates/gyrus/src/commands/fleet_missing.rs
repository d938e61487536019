//! `gyrus fleet` of a program that was built without it.

use std::ffi::OsString;

use clap::Args;

use crate::{Gyrus, exit::Code, failure::Failure};

/// Let several machines work on one queue of runs (not in this build)
#[derive(Args)]
pub(crate) struct Fleet {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

impl Fleet {
    pub(crate) fn execute(self, _: &Gyrus) -> Result<Code, Failure> {
        let failure = Failure::usage("this gyrus was built without its fleet");
        Err(failure.hint("build it with: cargo install --path crates/gyrus --features fleet"))
    }
}
