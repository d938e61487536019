//! Messages to a person while all runs are stopped.

use std::{io, path::Path};

use gyrus::RuntimeError;
use gyrus_kernel::latch::AllStopped;
use gyrus_text::visible;

use crate::{Gyrus, exit::Code, failure::Failure};

/// Refuses to begin anything while all runs are stopped, or where there is no room for it, before a
/// model or a folder is touched. The kernel refuses what is stopped too, whoever asks it.
pub(crate) fn check(gyrus: &Gyrus) -> Result<(), Failure> {
    let home = gyrus.home()?;
    home.latch().check()?;
    Ok(home.check_room()?)
}

/// Returns one line: since when all runs are stopped, by whom and why.
pub(crate) fn words(latched: &AllStopped) -> String {
    if let Some(refused) = latched.refused {
        let (path, why) = (
            latched.path.display(),
            io::Error::from_raw_os_error(refused),
        );
        return format!("stopped, since {path} cannot be looked for: {why}");
    }
    let Some(told) = &latched.told else {
        return format!(
            "stopped for all; since when, by whom and why cannot be read in {}",
            latched.path.display()
        );
    };
    let reason = match &told.reason {
        Some(reason) => format!(": {}", visible(reason)),
        None => String::new(),
    };
    format!(
        "stopped for all since {}, by {} ({}){reason}",
        gyrus_text::utc(told.since_ms),
        visible(&told.by.id),
        visible(&told.by.surface),
    )
}

impl From<AllStopped> for Failure {
    fn from(latched: AllStopped) -> Self {
        if let Some(refused) = latched.refused {
            let folder = latched.path.parent().unwrap_or(Path::new("/"));
            return RuntimeError::State {
                folder: folder.to_owned(),
                source: io::Error::from_raw_os_error(refused),
            }
            .into();
        }
        Self {
            code: Code::Denied,
            ..Failure::failed(words(&latched))
        }
        .hint("to go on: gyrus rearm")
    }
}
