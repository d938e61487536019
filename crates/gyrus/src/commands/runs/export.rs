//! `gyrus runs export`

use std::path::{Path, PathBuf};

use clap::Args;
use gyrus_contract::BlobId;
use gyrus_journal::{ExportContents, LogName, Store};
use gyrus_kernel::log_name;
use gyrus_text::counted;
use tempfile::NamedTempFile;

use super::super::run_argument::RunArgument;
use super::{
    blobs::{CountPictures, needed},
    verify::verify,
};
use crate::{
    Gyrus,
    exit::Code,
    failure::Failure,
    private_file::{self, Draft},
};
use gyrus_surfaces::{console::put, output};

/// Copy a run into a file, with everything that it needs to be replayed elsewhere
///
/// Elsewhere the copy is a record, which can be shown, verified and replayed, and from which a new run
/// can begin. The files of its folder are left out: without them, what it changed there cannot be
/// applied elsewhere. Secrets that gyrus recognised are in no export.
#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    run: RunArgument,
    /// A new file; without it, or as `-`, standard output
    file: Option<PathBuf>,
    /// Include the files of the run's folder, as they were before it and after its steps; those
    /// that are or hold a recognised secret stay out
    #[arg(long)]
    with_files: bool,
}

impl Export {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let store = gyrus.store()?;
        let run = self.run.find(gyrus, &store)?;
        let name = log_name(run);
        verify(&store, run).map_err(|failure| Failure {
            message: format!("run {} is not exported: {}", run.short(), failure.message),
            ..failure
        })?;
        let needed = if self.with_files {
            None
        } else {
            Some(needed(&store.reader(&name)?, CountPictures::With)?)
        };
        let wanted = |id: &BlobId| needed.as_ref().is_none_or(|needed| needed.contains(id));
        let file = self.file.as_deref().filter(|file| *file != Path::new("-"));
        let exported = if let Some(file) = file {
            to_file(&store, &name, &wanted, file)?
        } else {
            let mut out = output::standard();
            if out.is_terminal() {
                let run = run.short();
                return Err(
                    Failure::usage("an export is not for a terminal").hint(format!(
                        "name a file for it: gyrus runs export {run} {run}.gyrus"
                    )),
                );
            }
            let exported = store.export(&name, &wanted, out.raw())?;
            out.flush()?;
            exported
        };
        put(&format!(
            "run {run}: {}, {}, {}\n",
            counted(exported.entries, "entry"),
            counted(exported.blobs, "blob"),
            counted(exported.bytes, "byte")
        ))?;
        if exported.left_out > 0 {
            put(&format!(
                "left out: {} with files of its folder, which --with-files includes\n",
                counted(exported.left_out, "blob")
            ))?;
        }
        Ok(Code::Reached)
    }
}

/// Writes a file, which appears once it is complete, and never replaces another.
fn to_file(
    store: &Store,
    name: &LogName,
    wanted: &dyn Fn(&BlobId) -> bool,
    path: &Path,
) -> Result<ExportContents, Failure> {
    let keep = |file: NamedTempFile| Ok(file.persist_noclobber(path).map(drop)?);
    let write = |out: &mut Draft| Ok(store.export(name, wanted, out)?);
    Ok(private_file::write_whole(path, write, keep)?.0)
}
