//! The tool `propose_changeset`: shows a changeset as one diff that a person can review and cut.
//!
//! It changes nothing. Everything that would prevent the changeset from being applied is reported
//! here at once, because the proposing model can fix it.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use gyrus_contract::{
    MAX_CHANGES, ProposeChangesetCall, ProposedChange, Repeat, ResolvedCall, Site, ToolOutput,
    Touch, TypedTool,
};
use gyrus_workspace::RootFolder;

use super::{
    CHANGES,
    paths::CallPaths,
    proposal::{self, Becomes, ProposedFile},
    secrets::Secrets,
};
use crate::{background, failure::ToolFailure};

/// Time limit for comparing old files with new ones.
const TIME_LIMIT: Duration = Duration::from_secs(10);

pub struct ProposeChangeset;

/// Returns the file with the values of its secrets. The error describes the invalid change.
fn read(
    change: ProposedChange,
    path: PathBuf,
    secrets: &mut Secrets,
    site: &dyn Site,
) -> Result<ProposedFile, String> {
    let wrong = |what: &str| format!("`{}` {what}", path.display());
    let mut reveal = |text: &str| {
        let revealed = secrets.reveal(text, site);
        revealed.map_err(|error| wrong(&error.to_string()))
    };
    if path.to_string_lossy().contains(char::is_control) {
        return Err(format!("{path:?} has a control character in its name"));
    }
    let edits = change.edits.unwrap_or_default();
    let delete = change.delete == Some(true);
    let becomes = match (change.content, &edits[..], delete, change.diff) {
        (Some(content), [], false, None) => Becomes::Content(reveal(&content)?),
        (None, [], false, Some(diff)) => Becomes::Patched(reveal(&diff)?),
        (None, [], true, None) => Becomes::Deleted,
        (None, [_, ..], false, None) => {
            let revealed = edits
                .iter()
                .map(|edit| Ok((reveal(&edit.old)?, reveal(&edit.new)?)));
            Becomes::Edited(revealed.collect::<Result<_, String>>()?)
        }
        (None, [], false, None) if change.executable.is_some() => Becomes::Same,
        _ => {
            let what = "needs exactly one of `content`, `edits` and `delete`: true";
            return Err(wrong(what));
        }
    };
    Ok(ProposedFile {
        reason: change.reason,
        before: change.before,
        executable: change.executable,
        becomes,
        path,
    })
}

impl TypedTool for ProposeChangeset {
    type Arguments = ProposeChangesetCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn touches(&self) -> Vec<Touch> {
        vec![Touch::Compares(CHANGES.to_owned())]
    }

    async fn run(
        &self,
        arguments: ProposeChangesetCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let ProposeChangesetCall { summary, changes } = arguments;
        if changes.is_empty() || changes.len() > MAX_CHANGES {
            let count = changes.len();
            let words = format!("a changeset has 1 to {MAX_CHANGES} files, not {count}");
            return Err(ToolFailure::new(words));
        }
        let (mut files, mut wrong) = (Vec::with_capacity(changes.len()), Vec::new());
        let mut paths = CallPaths::of(call);
        let mut secrets = Secrets::default();
        for (index, change) in changes.into_iter().enumerate() {
            let file = paths
                .take(index)
                .and_then(|path| read(change, path, &mut secrets, site));
            match file {
                Ok(file) => files.push(file),
                Err(why) => wrong.push(why),
            }
        }
        let root = RootFolder::open(site.workspace())?;
        let until = Instant::now() + TIME_LIMIT;
        let compared = background::work(TIME_LIMIT, move |_| {
            proposal::compare(&root, &summary, &files, wrong, until)
        });
        match compared.await {
            Ok(mut proposal) => {
                secrets.hide_in(&mut proposal);
                Ok(ToolOutput::read(proposal.to_string()).with_value(&proposal))
            }
            Err(wrong) => Err(ToolFailure::new(secrets.hide(&wrong))),
        }
    }
}
