//! A person's word about the guidelines of a folder.

use std::path::Path;

use gyrus::runtime::{GuidelineTrust, Guidelines, Home};
use gyrus_contract::{Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_process::read_regular_text;
use gyrus_text::{counted, visible};

use crate::{Gyrus, agreement, failure::Failure};

/// The file with the guidelines of a person for all folders, beside the configuration.
const OF_PERSON: &str = "AGENTS.md";

/// Returns the guidelines for a run in this folder: the person's own, and those of the folder. A
/// person at the terminal is asked once whether the latter instruct.
pub(crate) fn of_run(
    gyrus: &Gyrus,
    home: &Home,
    workspace: &Path,
    at_terminal: bool,
) -> Result<Vec<Attachment>, Failure> {
    let own = read_regular_text(&home.config.with_file_name(OF_PERSON)).ok();
    let own = own.filter(|text| !text.trim().is_empty()).map(|text| {
        let words =
            format!("The person's guidelines for all folders follow. Keep to them.\n{text}");
        Attachment::Text(Text::new(words, Origin::Configuration))
    });
    let folder = of_folder(gyrus, home, workspace, at_terminal)?;
    Ok(own.into_iter().chain(folder).collect())
}

fn of_folder(
    gyrus: &Gyrus,
    home: &Home,
    workspace: &Path,
    at_terminal: bool,
) -> Result<Option<Attachment>, Failure> {
    let Some(found) = Guidelines::find(workspace) else {
        return Ok(None);
    };
    let question = format!(
        "{} ({}) says how agents are to work here. Shall runs follow it, as it is now?\n  They \
         never may do more because of it. Without your yes it is data. [y/N] ",
        visible(&found.path.display().to_string()),
        counted(found.text.lines().count(), "line"),
    );
    let grant = |follow| found.grant(follow);
    let place = (gyrus, home, workspace);
    let trust = if agreement::settle(place, at_terminal, grant, ("", &question))? {
        GuidelineTrust::Trusted
    } else {
        GuidelineTrust::Data
    };
    Ok(Some(found.attachment(workspace, trust)))
}
