//! References that keep a command's objects whose own names cannot be used, because others have
//! moved those meanwhile.

use std::{collections::BTreeSet, path::Path};

use rustix::io::Errno;

use super::{
    carried::{CarryError, UncarriedChange},
    changes::StoreChanges,
    decide::{ChangeFate, StoreDecision},
    folder::GitFolder,
    locks::Locks,
    names::{ObjectId, RefName, RefValue},
    reflog::LogChange,
    refs,
};

/// Maximum number of names that are tried for one reference.
const MAX_NAMES: usize = 1_000;

/// Stores changes that were not carried over below `refs/gyrus/kept/RUN`. New references cause no
/// conflicts, so this may be done even if nothing is carried over.
pub(super) fn keep(
    live: &GitFolder,
    changes: &StoreChanges,
    decision: &StoreDecision,
    locks: &Locks<'_>,
    run: &str,
) -> Result<Vec<UncarriedChange>, CarryError> {
    let keeper = ChangeKeeper {
        live,
        changes,
        decision,
        locks,
        run,
    };
    let mut kept = keeper.refs()?;
    kept.extend(keeper.heads()?);
    let settings = changes.settings.iter().zip(&decision.settings);
    kept.extend(settings.filter_map(|(change, fate)| match fate {
        ChangeFate::Kept(reason) => Some(UncarriedChange {
            what: change.name.to_string(),
            under: Vec::new(),
            reason: (*reason).to_owned(),
        }),
        ChangeFate::Done | ChangeFate::Carried => None,
    }));
    Ok(kept)
}

struct ChangeKeeper<'a> {
    live: &'a GitFolder,
    changes: &'a StoreChanges,
    decision: &'a StoreDecision,
    locks: &'a Locks<'a>,
    run: &'a str,
}

impl ChangeKeeper<'_> {
    fn refs(&self) -> Result<Vec<UncarriedChange>, CarryError> {
        let mut kept = Vec::new();
        for (change, fate) in self.changes.refs.iter().zip(&self.decision.refs) {
            let ChangeFate::Kept(reason) = fate else {
                continue;
            };
            let mut objects: Vec<_> = change.after.iter().filter_map(RefValue::object).collect();
            // Stashes below the first are in the log alone.
            if change.name.as_str() == "refs/stash" {
                let logged = change.log.iter().flat_map(LogChange::new_objects);
                let others = logged.filter(|id| !objects.contains(id));
                objects.extend(others.collect::<BTreeSet<_>>());
            }
            let name = change.name.below_refs();
            let under = objects.into_iter().map(|id| self.name(name, id));
            kept.push(UncarriedChange {
                what: change.name.to_string(),
                under: under.collect::<Result<_, _>>()?,
                reason: (*reason).to_owned(),
            });
        }
        Ok(kept)
    }

    fn heads(&self) -> Result<Vec<UncarriedChange>, CarryError> {
        let mut kept = Vec::new();
        for (change, fate) in self.changes.worktrees.iter().zip(&self.decision.worktrees) {
            let Err(reason) = fate else {
                continue;
            };
            let detached = change.head.1.object();
            let detached = detached.filter(|_| change.head.0 != change.head.1);
            let name = detached.map(|id| self.name("HEAD", id)).transpose()?;
            kept.push(UncarriedChange {
                what: change.file("HEAD").display().to_string(),
                under: name.into_iter().collect(),
                reason: (*reason).to_owned(),
            });
        }
        Ok(kept)
    }

    /// Creates a reference with an unused name for an object.
    fn name(&self, name: &str, id: ObjectId) -> Result<RefName, CarryError> {
        let content = RefValue::Object(id).content();
        let store = &self.changes.store;
        for number in 1..MAX_NAMES {
            // Numbered names are flat, so that none is below another.
            let name = match number {
                1 => name.to_owned(),
                number => format!("{}-{number}", name.replace('/', "-")),
            };
            let name = format!("refs/gyrus/kept/{}/{name}", self.run);
            let name = RefName::parse(&name).map_err(|why| CarryError::Refused {
                reason: format!("`{name}` is not a reference: {why}"),
            })?;
            let path = store.join(name.as_str());
            match refs::read_one(self.live, store, &name, &self.decision.packed) {
                Ok(Some(now)) if now.object() == Some(id) => return Ok(name),
                Ok(Some(_)) | Err(_) => continue,
                Ok(None) => {}
            }
            let above = path.parent().unwrap_or(Path::new(""));
            match self.live.make_folder(above, self.locks.modes) {
                Ok(()) => {}
                Err(failed) if failed.error == Errno::NOTDIR => continue,
                Err(failed) => return Err(failed.into()),
            }
            let staged = self.locks.stage(&content, true)?;
            match self.live.link(&staged, &path) {
                Ok(()) => return Ok(name),
                Err(failed) if failed.error == Errno::EXIST => {}
                Err(failed) => return Err(failed.into()),
            }
        }
        let reason = format!(
            "too many references are kept apart for the run {}",
            self.run
        );
        Err(CarryError::Refused { reason })
    }
}
