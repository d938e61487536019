//! `gyrus manual`

use std::{fs, path::PathBuf};

use clap::Args;
use gyrus_surfaces::console::put;

use crate::{Gyrus, exit::Code, failure::Failure};

/// Write the pages of the manual: gyrus.1 and one for each command
///
/// For example into `~/.local/share/man/man1`; then `man gyrus-run` shows what `gyrus run --help`
/// does.
#[derive(Args)]
pub(crate) struct Manual {
    /// Folder that gets the pages; it is made if it is missing
    folder: PathBuf,
}

impl Manual {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to((gyrus.command_line)(), &self.folder));
        written.map_err(|error| {
            let folder = self.folder.display();
            Failure::usage(format!("the pages cannot be written to {folder}")).because(&error)
        })?;
        put(&format!("the pages are in {}\n", self.folder.display()))?;
        Ok(Code::Reached)
    }
}
