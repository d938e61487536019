//! `gyrus trust`

use std::path::PathBuf;

use clap::Args;
use gyrus::runtime::Guidelines;
use gyrus_text::{counted, visible};

use crate::{Gyrus, exit::Code, failure::Failure, guidelines, inside_run, new_run};
use gyrus_surfaces::console::put;

/// Let runs follow the guidelines of a folder (AGENTS.md or CLAUDE.md)
///
/// Before that, runs read them as data. It holds for the content as it is now; to take it back:
/// gyrus approvals.
#[derive(Args)]
pub(crate) struct Trust {
    /// The folder that runs work in (default: the current one)
    folder: Option<PathBuf>,
    /// Runs shall read them as data, and nobody is asked again
    #[arg(long)]
    as_data: bool,
}

impl Trust {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("trust guidelines")?;
        let home = gyrus.home()?;
        let workspace = new_run::workspace(&home, self.folder.as_deref()).map_err(|failure| {
            failure.hint("name the folder that runs work in: gyrus trust FOLDER")
        })?;
        let Some(found) = Guidelines::find(&workspace) else {
            let what = format!("there are no guidelines in {}", workspace.display());
            return Err(Failure::usage(what).hint("they stand in AGENTS.md or CLAUDE.md"));
        };
        guidelines::say(gyrus, &home, &workspace, &found, !self.as_data)?;
        let do_with = if self.as_data {
            "read as data by runs"
        } else {
            "followed by runs"
        };
        put(&format!(
            "{} ({}) is {do_with} in {}, as long as it stays as it is\n",
            visible(&found.path.display().to_string()),
            counted(found.text.lines().count(), "line"),
            visible(&workspace.display().to_string()),
        ))?;
        Ok(Code::Reached)
    }
}
