//! Finding a run by a few characters of its id, or by the folder that it worked in.

use std::path::{Path, PathBuf};

use gyrus_contract::RunId;
use gyrus_journal::{Error, Store};

use crate::{Register, is_record};

/// Minimum number of characters that name a run: fewer could mean another run tomorrow.
const SHORTEST: usize = 4;

/// Maximum number of runs that are listed when several match.
const SHOWN: usize = 5;

/// The error of a name that matches no run, or more than one.
#[derive(Debug, thiserror::Error)]
pub enum FindRunError {
    /// The journals cannot be read.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    #[error("there is no run yet")]
    NoRuns,
    /// The name is so short that it could match another run tomorrow.
    #[error(
        "`{given}` is too short to name a run; give at least {SHORTEST} characters of its id, or \
         `last`"
    )]
    TooShort {
        /// The name as typed.
        given: String,
    },
    /// No id begins or ends with the name.
    #[error("there is no run `{given}`")]
    NotFound {
        /// The name as typed.
        given: String,
    },
    /// Several ids begin or end with the name.
    #[error("`{given}` could be any of {count} runs: {shown}")]
    Ambiguous {
        /// The name as typed.
        given: String,
        /// Number of matching runs.
        count: usize,
        /// Some of the matching runs.
        shown: String,
    },
}

/// Returns the run that `given` names: `last`, which is no record unless there is nothing else, an
/// id, or the start or end of one.
pub fn find_run(store: &Store, given: &str) -> Result<RunId, FindRunError> {
    let register = Register::read(store)?;
    if given == "last" {
        // A record is none of this person's runs, unless there is nothing else.
        let mut newest = register.newest_first().filter(|run| run.is_root());
        let own = newest.find(|run| !is_record(store, *run));
        let last = own.or_else(|| register.newest_first().find(|run| run.is_root()));
        return last.ok_or(FindRunError::NoRuns);
    }
    choose(register.newest_first(), given)
}

/// Returns the newest run that a person began in `folder` or, if there is none, in the nearest
/// folder above it, with the run's folder. Records belong to no folder of this machine.
pub fn newest_run_in(store: &Store, folder: &Path) -> Result<Option<(RunId, PathBuf)>, Error> {
    let mut newest: Option<(RunId, PathBuf)> = None;
    for line in Register::read(store)?.roots() {
        let is_nearer = newest.as_ref().is_none_or(|(_, nearest)| {
            line.workspace.starts_with(nearest) && line.workspace != *nearest
        });
        if is_nearer && folder.starts_with(&line.workspace) && line.is_own(store) {
            let is_here = line.workspace == folder;
            newest = Some((line.run, line.workspace));
            if is_here {
                break;
            }
        }
    }
    Ok(newest)
}

fn choose(runs: impl Iterator<Item = RunId>, given: &str) -> Result<RunId, FindRunError> {
    let wanted = given.to_ascii_lowercase();
    let given = given.to_owned();
    if wanted.len() < SHORTEST {
        return Err(FindRunError::TooShort { given });
    }
    let mut matching: Vec<RunId> = runs
        .filter(|run| {
            let id = run.to_string();
            id.starts_with(&wanted) || id.ends_with(&wanted) || run.short().starts_with(&wanted)
        })
        .collect();
    matching.sort_unstable();
    match matching.as_slice() {
        [run] => Ok(*run),
        [] => Err(FindRunError::NotFound { given }),
        several => {
            let shown: Vec<String> = several.iter().take(SHOWN).map(RunId::to_string).collect();
            let more = if several.len() > SHOWN { ", …" } else { "" };
            Err(FindRunError::Ambiguous {
                given,
                count: several.len(),
                shown: format!("{}{more}", shown.join(", ")),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use gyrus_contract::EffectId;

    use super::*;

    #[test]
    fn starts_ends_and_last() {
        let old: RunId = "01980000-0000-7000-8000-00000000aaaa".parse().unwrap();
        let new: RunId = "01990000-0000-7000-8000-00000000bbbb".parse().unwrap();
        let child = RunId::child(old, &EffectId::cycle(1).then(1));
        let mut runs = [old, new, child];
        runs.sort();
        assert!(!child.is_root());
        for (given, expected) in [
            ("aaaa", Ok(old)),
            ("0198", Ok(old)),
            ("0000BBBB", Ok(new)),
            ("0000b", Ok(new)),
            ("bbb", Err("too short")),
            ("ffff0000", Err("there is no run")),
            ("", Err("too short")),
        ] {
            match (choose(runs.iter().copied(), given), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{given}"),
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{given}: {error}");
                }
                (found, _) => panic!("{given}: {found:?}"),
            }
        }
        let twins = [new, "01990000-0000-7000-8000-00000001bbbb".parse().unwrap()];
        assert!(
            choose(twins.into_iter(), "bbbb")
                .unwrap_err()
                .to_string()
                .contains("any of 2")
        );
        assert_eq!(old.short(), "0000aaaa");
    }
}
