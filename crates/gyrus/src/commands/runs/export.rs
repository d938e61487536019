//! `gyrus runs export`

use std::{
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use clap::Args;
use gyrus_journal::{Exported, LogName, Store};
use gyrus_kernel::log_name;

use crate::{Gyrus, console::put, exit::Code, failure::Failure, output, select};

/// Copy a run into a file, with everything that it needs to be replayed elsewhere
#[derive(Args)]
pub(crate) struct Export {
    /// The run: `last`, its id, or the start or end of it
    run: String,
    /// A new file; `-` is standard output
    file: PathBuf,
}

impl Export {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = select::find(&store, &self.run)?;
        let exported = if self.file == Path::new("-") {
            let mut out = output::standard();
            let exported = store.export(&log_name(run), out.raw())?;
            out.flush()?;
            exported
        } else {
            to_file(&store, &log_name(run), &self.file)?
        };
        put(&format!(
            "run {run}: {} entries, {} blobs, {} bytes\n",
            exported.entries, exported.blobs, exported.bytes
        ))?;
        Ok(Code::Reached)
    }
}

/// The file appears when it is complete, and never in the place of another.
fn to_file(store: &Store, name: &LogName, path: &Path) -> Result<Exported, Failure> {
    let failed = |error: &io::Error| {
        let failure =
            Failure::failed(format!("{} cannot be written", path.display())).because(error);
        match error.kind() {
            io::ErrorKind::AlreadyExists => failure.hint("name a new file"),
            _ => failure,
        }
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    let mut out = BufWriter::new(file);
    let exported = store.export(name, &mut out)?;
    let file = out.into_inner().map_err(|error| failed(error.error()))?;
    file.as_file().sync_all().map_err(|error| failed(&error))?;
    file.persist_noclobber(path)
        .map_err(|error| failed(&error.error))?;
    Ok(exported)
}
