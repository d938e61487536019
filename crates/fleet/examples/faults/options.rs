//! The arguments.

use std::{path::PathBuf, time::Duration};

use crate::faults::FaultCounts;

/// The arguments in one line.
pub(crate) const USAGE: &str = "fleet takes --runs N, --steps N, --workers N, --at-once N, --worker-kills N, \
     --server-faults N, --partitions N, --seed N, --lease DURATION, --minutes N, --gyrus \
     PROGRAM and --nats PROGRAM";

/// The arguments that were given, and defaults.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) runs: usize,
    pub(crate) steps: usize,
    pub(crate) workers: usize,
    pub(crate) at_once: usize,
    pub(crate) faults: FaultCounts,
    pub(crate) seed: u64,
    /// Time after which nothing more is begun.
    pub(crate) within: Option<Duration>,
    /// The lease as it is written.
    pub(crate) lease: String,
    pub(crate) gyrus: PathBuf,
    pub(crate) nats: PathBuf,
}

impl Options {
    /// Reads the arguments; the error says what is wrong.
    pub(crate) fn read(arguments: &[String]) -> Result<Self, String> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut options = Self {
            runs: 1_000,
            steps: 20,
            workers: 4,
            at_once: 3,
            faults: FaultCounts {
                workers: 500,
                servers: 200,
                partitions: 100,
            },
            seed: 1,
            within: None,
            lease: "3s".to_owned(),
            gyrus: root.join("target/release/gyrus"),
            nats: root.join("target/nats-server/bin/nats-server"),
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("`{}` needs a value", pair[0]));
            };
            options.set(name, value)?;
        }
        if options.runs == 0 || options.steps == 0 || options.workers == 0 || options.at_once == 0 {
            return Err("there must be a run, a step and a worker".to_owned());
        }
        options.lease()?;
        // Workers have folders of their own, and start their program from there.
        for program in [&mut options.gyrus, &mut options.nats] {
            let found = program.canonicalize();
            *program = found.map_err(|error| format!("{}: {error}", program.display()))?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || {
            let number = value.parse::<u64>();
            number.map_err(|_| format!("`{value}` is not a whole number"))
        };
        let size = || number().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        match name {
            "--runs" => self.runs = size()?,
            "--steps" => self.steps = size()?,
            "--workers" => self.workers = size()?,
            "--at-once" => self.at_once = size()?,
            "--worker-kills" => self.faults.workers = number()?,
            "--server-faults" => self.faults.servers = number()?,
            "--partitions" => self.faults.partitions = number()?,
            "--seed" => self.seed = number()?,
            "--minutes" => self.within = Some(Duration::from_secs(60 * number()?)),
            "--lease" => value.clone_into(&mut self.lease),
            "--gyrus" => self.gyrus = value.into(),
            "--nats" => self.nats = value.into(),
            _ => return Err(format!("there is no `{name}`")),
        }
        Ok(())
    }

    /// Returns the lease.
    pub(crate) fn lease(&self) -> Result<Duration, String> {
        let seconds = self.lease.strip_suffix('s');
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        match seconds {
            Some(seconds @ 1..=60) => Ok(Duration::from_secs(seconds)),
            _ => Err(format!("`{}` is not a lease as `3s`", self.lease)),
        }
    }
}
