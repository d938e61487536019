//! The word of a person about files of a folder: said once, it holds for their content as it is.

use std::path::Path;

use gyrus::runtime::Home;
use gyrus_contract::Grant;
use gyrus_kernel::grants;
use gyrus_surfaces::terminal;

use crate::{Gyrus, failure::Failure};

/// Returns what the person said, if they did. `grant` is the grant of a yes or a no.
pub(crate) fn said(
    home: &Home,
    workspace: &Path,
    grant: impl Fn(bool) -> Grant,
) -> Result<Option<bool>, Failure> {
    let standing = grants::in_folder(&home.store()?, workspace)?;
    let is_said = |yes: &bool| standing.iter().any(|one| one.grant == grant(*yes));
    Ok([true, false].into_iter().find(is_said))
}

/// Records what the person says, in place of what they said before.
pub(crate) fn say(
    gyrus: &Gyrus,
    home: &Home,
    workspace: &Path,
    (grant, other): (Grant, Grant),
) -> Result<(), Failure> {
    let (store, person) = (home.store()?, gyrus.environment.user.as_deref());
    let person = terminal::person(person, "command line");
    let standing = grants::in_folder(&store, workspace)?;
    for standing in standing.iter().filter(|standing| standing.grant == other) {
        grants::revoke(&store, standing, &person)?;
    }
    grants::give(&store, workspace, &[grant], &person)?;
    Ok(())
}
