//! Which run a person means by a few characters.

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::runs;

use crate::failure::Failure;

/// Fewer characters name no run: they would mean another one tomorrow.
const SHORTEST: usize = 4;

/// Runs that are named when several could be meant.
const SHOWN: usize = 5;

/// The run that `given` means: `last`, an id, or the start or end of one.
pub(crate) fn find(store: &Store, given: &str) -> Result<RunId, Failure> {
    choose(&runs(store)?, given)
}

fn choose(runs: &[RunId], given: &str) -> Result<RunId, Failure> {
    let list = "see which there are: gyrus runs list";
    if given == "last" {
        let last = runs.iter().rev().find(|run| run.is_root()).copied();
        return last.ok_or_else(|| {
            Failure::usage("there is no run yet").hint("start one: gyrus run GOAL")
        });
    }
    let wanted = given.to_ascii_lowercase();
    if wanted.len() < SHORTEST {
        return Err(Failure::usage(format!(
            "`{given}` is too short to name a run; give at least {SHORTEST} characters of its id, \
             or `last`"
        ))
        .hint(list));
    }
    let matching: Vec<RunId> = runs
        .iter()
        .copied()
        .filter(|run| {
            let id = run.to_string();
            id.starts_with(&wanted) || id.ends_with(&wanted)
        })
        .collect();
    match matching.as_slice() {
        [run] => Ok(*run),
        [] => Err(Failure::usage(format!("there is no run `{given}`")).hint(list)),
        several => {
            let shown: Vec<String> = several.iter().take(SHOWN).map(RunId::to_string).collect();
            let more = if several.len() > SHOWN { ", …" } else { "" };
            Err(Failure::usage(format!(
                "`{given}` could be any of {} runs: {}{more}",
                several.len(),
                shown.join(", ")
            ))
            .hint("give more characters of the id"))
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
        let mut runs = vec![old, new, child];
        runs.sort();
        assert!(!child.is_root());
        for (given, expected) in [
            ("last", Ok(new)),
            ("aaaa", Ok(old)),
            ("0198", Ok(old)),
            ("0000BBBB", Ok(new)),
            ("bbb", Err("too short")),
            ("ffff0000", Err("there is no run")),
            ("", Err("too short")),
        ] {
            match (choose(&runs, given), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{given}"),
                (Err(failure), Err(words)) => {
                    assert!(failure.message.contains(words), "{given}: {failure}");
                }
                (found, _) => panic!("{given}: {found:?}"),
            }
        }
        let twins = [new, "01990000-0000-7000-8000-00000001bbbb".parse().unwrap()];
        assert!(
            choose(&twins, "bbbb")
                .unwrap_err()
                .message
                .contains("any of 2")
        );
        assert!(
            choose(&[], "last")
                .unwrap_err()
                .message
                .contains("no run yet")
        );
        assert_eq!(old.short(), "0000aaaa");
    }
}
