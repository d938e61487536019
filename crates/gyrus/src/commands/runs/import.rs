//! `gyrus runs import`

use std::{
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use clap::Args;
use gyrus_process::open_regular;

use super::blobs::lacks_files;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run};
use gyrus_surfaces::{console::put, output};

/// Take in a run that was exported
#[derive(Args)]
pub(crate) struct Import {
    /// The file; `-` is standard input
    file: PathBuf,
}

impl Import {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("import a run")?;
        let store = gyrus.store()?;
        let name = if self.file == Path::new("-") {
            store.import(&mut io::stdin().lock())?
        } else {
            let file = open_regular(&self.file).map_err(|error| {
                Failure::usage(format!("{} cannot be read", self.file.display())).because(&error)
            })?;
            store.import(&mut BufReader::new(file))?
        };
        writeln!(output::standard(), "{}", name.id())?;
        if lacks_files(&store.reader(&name)?)? {
            put(
                "it came without the files of its folder: a fork of it works in place only, and \
                 nothing of it can be undone\n",
            )?;
        }
        Ok(Code::Reached)
    }
}
