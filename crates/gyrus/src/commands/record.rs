//! `gyrus record`

use std::{fs, io::Write, path::PathBuf};

use clap::Args;
use gyrus_kernel::log_name;
use gyrus_lab::RecordedScript;

use super::run_argument::RunArgument;
use crate::{Gyrus, exit::Code, failure::Failure};
use gyrus_surfaces::{console::put, output};

/// Turn a run into a script that plays its model's replies again
///
/// The script costs nothing and needs no key: `gyrus run GOAL --model script:FILE`. It holds what
/// the journal holds, so secrets are markers in it.
#[derive(Args)]
pub(crate) struct RecordCommand {
    #[command(flatten)]
    run: RunArgument,
    /// The file to write, which must not exist (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl RecordCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let script = RecordedScript::of(&store.reader(&log_name(run))?)?;
        let count = script.replies();
        if count == 0 {
            return Err(Failure::usage(format!("run {run} has no reply of a model")));
        }
        let text = script.to_toml()?;
        match &self.output {
            None => output::standard().raw().write_all(text.as_bytes())?,
            Some(path) => {
                let failed = |error: std::io::Error| {
                    Failure::usage(format!("{} cannot be written", path.display())).because(&error)
                };
                let mut file = fs::File::create_new(path).map_err(failed)?;
                file.write_all(text.as_bytes()).map_err(failed)?;
                put(&format!(
                    "{count} replies; to play them: gyrus run GOAL --model script:{}\n",
                    path.display()
                ))?;
            }
        }
        Ok(Code::Reached)
    }
}
