//! `gyrus runs import`

use std::{
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use clap::Args;
use gyrus_contract::RunId;
use gyrus_kernel::RUNS;
use gyrus_process::open_regular;

use super::blobs::lacks_files;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run};
use gyrus_surfaces::{console::put, output};

/// Take in a run that was exported, as a record
///
/// A record can be shown, replayed, compared, exported again and removed. Nothing of it acts here: no
/// answer, grant, mode, model or folder of it counts, and nothing goes on with it by itself. `gyrus
/// resume RUN --workdir FOLDER` begins a new run of yours, which knows what it remembers as
/// untrusted text.
#[derive(Args)]
pub(crate) struct ImportRun {
    /// The file; `-` is standard input
    file: PathBuf,
}

impl ImportRun {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("import a run")?;
        let store = gyrus.store()?;
        let name = if self.file == Path::new("-") {
            store.import(RUNS, &mut io::stdin().lock())?
        } else {
            let file = open_regular(&self.file).map_err(|error| {
                Failure::usage(format!("{} cannot be read", self.file.display())).because(&error)
            })?;
            store.import(RUNS, &mut BufReader::new(file))?
        };
        writeln!(output::standard(), "{}", name.id())?;
        let short = name
            .id()
            .parse()
            .map_or_else(|_| name.id().to_owned(), RunId::short);
        put(&format!(
            "it is a record: nothing goes on with it by itself; to begin a new run with what it \
             remembers: gyrus resume {short} --workdir FOLDER\n"
        ))?;
        if lacks_files(&store.reader(&name)?)? {
            put(
                "it came without the files of its folder: what it changed there cannot be applied \
                 elsewhere\n",
            )?;
        }
        Ok(Code::Reached)
    }
}
