//! Changesets: changes of several files, proposed as one diff and applied together.
//!
//! What was reviewed is what is applied: the diff of `propose_changeset` names the digest of each
//! file that it was made for, and for `apply_changeset`, below, a file that is another by now is a
//! conflict. All files become what they should be, or none does. A verify command runs while
//! everything can still be taken back, and is if it fails. See `docs/changeset.md` for what a crash
//! leaves.

mod paths;
mod diff;
mod secrets;
mod proposal;
mod propose;
mod wanted;

pub use propose::ProposeChangeset;

use gyrus_contract::{
    ActionVerdict, AppliedChangeset, ApplyChangesetCall, Arguments, Artifact, Digest, Exit, Probe,
    Repeat, ResolvedCall, Site, ToolOutput, Touch, TypedTool,
};
use gyrus_workspace::{
    RootFolder,
    changeset::{ApplyError, FileChange, HOME, UndoableChangeset, already, apply, recover},
};

use self::wanted::wanted;
use crate::{Shell, failure::ToolFailure, shell};

/// Maximum number of conflicts, or of errors of a proposal, that are listed.
const MAX_NAMED: usize = 20;

/// Time limit of the verify command, in seconds.
const VERIFY_SECONDS: u64 = 600;

const CHANGES: &str = "changes";

/// Applies changesets.
pub struct ApplyChangeset {
    shell: Shell,
}

impl ApplyChangeset {
    /// Creates the tool; `shell` runs the verify commands.
    pub fn new(shell: Shell) -> Self {
        Self { shell }
    }
}

impl TypedTool for ApplyChangeset {
    type Arguments = ApplyChangesetCall;
    type Failure = ToolFailure;
    const REPEAT: Repeat = Repeat::Probe;

    fn touches(&self) -> Vec<Touch> {
        vec![
            Touch::Changes(CHANGES.to_owned()),
            Touch::Starts("verify".to_owned()),
        ]
    }

    async fn run(
        &self,
        arguments: ApplyChangesetCall,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> Result<ToolOutput, ToolFailure> {
        let ApplyChangesetCall { changes, verify } = arguments;
        // Resolved before any file changes: a command that cannot be started verifies nothing.
        let verify = match &verify {
            Some(line) => Some(self.shell.line(line, VERIFY_SECONDS, site)?),
            None => None,
        };
        let root = RootFolder::open(site.workspace())?;
        // Else a file that was half applied would be taken for the one that a diff is made for.
        if let Err(error) = recover(&root) {
            return told(error);
        }
        let changes = wanted(call, changes, &root, site)?;
        let mut applied = None;
        if !already(&root, &changes)? {
            applied = match apply(root, &changes) {
                Ok(applied) => Some(applied),
                Err(error) => return told(error),
            };
        }
        let Some(command) = verify else {
            return settle(applied, &changes, "");
        };
        let (verified, words) = match site.run_command(command).await {
            Ok(outcome) => (
                outcome.exit == Exit::Code(0),
                shell::output(&outcome, VERIFY_SECONDS).text,
            ),
            Err(error) => (false, error.to_string()),
        };
        if verified {
            settle(applied, &changes, &format!("\nverified:\n{words}"))
        } else {
            let beside = if site.changes_follow() {
                ""
            } else {
                ", and other files that the command wrote are still there"
            };
            Ok(given_back(applied, beside, &words))
        }
    }

    async fn probe(&self, call: &ResolvedCall, site: &dyn Site) -> Probe {
        // Done before the call is judged again: the tree is restored even if it is denied.
        let Ok(root) = RootFolder::open(site.workspace()) else {
            return Probe::Unknown;
        };
        if recover(&root).is_err() {
            return Probe::Unknown;
        }
        // Arguments that are invalid now were invalid then, so nothing was applied.
        let Ok(ApplyChangesetCall { changes, .. }) = ApplyChangesetCall::parse(&call.arguments)
        else {
            return Probe::DidNotHappen;
        };
        let Ok(changes) = wanted(call, changes, &root, site) else {
            return Probe::DidNotHappen;
        };
        let found = already(&root, &changes);
        match found {
            Ok(true) => Probe::Happened(Box::new(output(&changes, ActionVerdict::Changed, ""))),
            Ok(false) => Probe::DidNotHappen,
            Err(_) => Probe::Unknown,
        }
    }
}

fn settle(
    applied: Option<UndoableChangeset<'_>>,
    changes: &[FileChange],
    words: &str,
) -> Result<ToolOutput, ToolFailure> {
    match applied {
        None => Ok(output(changes, ActionVerdict::NoEffect, words)),
        Some(applied) => match applied.keep() {
            Ok(()) => Ok(output(changes, ActionVerdict::Changed, words)),
            Err(error) => told(error),
        },
    }
}

/// Restores the files after the verify command failed or could not be run. `beside` tells of the
/// command's other files.
fn given_back(applied: Option<UndoableChangeset<'_>>, beside: &str, words: &str) -> ToolOutput {
    // The effects of the command itself are unknown.
    let mut verdict = ActionVerdict::CannotTell;
    let outcome = match applied.map(UndoableChangeset::give_back) {
        None => "the files were like this before, and nothing was changed".to_owned(),
        Some(Ok(None)) => format!("all files of the changeset are as they were before{beside}"),
        Some(Ok(Some(kept))) => format!(
            "all files of the changeset are as they were before; what was written over them \
             meanwhile is in `{}`{beside}",
            kept.display()
        ),
        Some(Err(error)) => {
            verdict = ActionVerdict::Changed;
            format!(
                "the files could not be put back: {error}. The old ones are in `{HOME}`; the next \
                 changeset takes them back before it begins"
            )
        }
    };
    ToolOutput {
        verdict,
        ..ToolOutput::error(format!("the verify command failed; {outcome}\n{words}"))
    }
}

fn told(error: ApplyError) -> Result<ToolOutput, ToolFailure> {
    match error {
        ApplyError::Stranded { .. } => Ok(ToolOutput {
            verdict: ActionVerdict::Changed,
            ..ToolOutput::error(error.to_string())
        }),
        ApplyError::Conflicts(_) | ApplyError::Busy | ApplyError::Failed(_) => Err(named(error)),
    }
}

/// Returns the failure with the first conflicts, since a changeset of ten thousand files may have
/// as many.
fn named(error: ApplyError) -> ToolFailure {
    match error {
        ApplyError::Conflicts(mut files) => {
            first_of(&mut files);
            ApplyError::Conflicts(files).into()
        }
        ApplyError::Busy | ApplyError::Failed(_) | ApplyError::Stranded { .. } => error.into(),
    }
}

/// Keeps the first entries, and appends the number of the others.
fn first_of(named: &mut Vec<String>) {
    let more = named.len().saturating_sub(MAX_NAMED);
    named.truncate(MAX_NAMED);
    if more > 0 {
        named.push(format!("and {more} more"));
    }
}

fn output(changes: &[FileChange], verdict: ActionVerdict, words: &str) -> ToolOutput {
    let count = |wanted: fn(&FileChange) -> bool| changes.iter().filter(|one| wanted(one)).count();
    let created = count(|one| one.before.is_none());
    let deleted = count(|one| one.after.is_none());
    let replaced = changes.len() - created - deleted;
    let done = match verdict {
        ActionVerdict::NoEffect => "unchanged, all files are like this already",
        ActionVerdict::Changed | ActionVerdict::CannotTell | ActionVerdict::Refused => "applied",
    };
    let text = format!("{done}: {created} created, {replaced} replaced, {deleted} deleted");
    let artifacts = changes.iter().filter_map(|change| {
        let after = change.after.as_ref()?;
        Some(Artifact {
            path: change.path.display().to_string(),
            digest: Digest::of(&after.content),
        })
    });
    ToolOutput {
        verdict,
        artifacts: artifacts.collect(),
        ..ToolOutput::read(format!("{text}{words}")).with_value(&AppliedChangeset {
            text,
            created,
            replaced,
            deleted,
        })
    }
}
