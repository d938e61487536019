//! The word of a person about files of a folder: said once, it holds for their content as it is.

use std::path::Path;

use gyrus::runtime::Home;
use gyrus_contract::Grant;
use gyrus_kernel::grants;
use gyrus_surfaces::{console::put, terminal};

use crate::{Gyrus, failure::Failure};

/// Returns the person's answer, if they gave one. `grant` is the grant of a yes or a no.
pub(crate) fn said(
    home: &Home,
    workspace: &Path,
    grant: impl Fn(bool) -> Grant,
) -> Result<Option<bool>, Failure> {
    let standing = grants::in_folder(&home.store()?, workspace)?;
    let is_said = |yes: &bool| standing.iter().any(|one| one.grant == grant(*yes));
    Ok([true, false].into_iter().find(is_said))
}

/// Records the person's answer, in place of an earlier one.
pub(crate) fn say(
    (gyrus, home, workspace): (&Gyrus, &Home, &Path),
    grant: impl Fn(bool) -> Grant,
    agreed: bool,
) -> Result<(), Failure> {
    let (store, person) = (home.store()?, gyrus.environment.user.as_deref());
    let person = terminal::person(person, "command line");
    let other = grant(!agreed);
    let standing = grants::in_folder(&store, workspace)?;
    for standing in standing.iter().filter(|standing| standing.grant == other) {
        grants::revoke(&store, standing, &person)?;
    }
    grants::give(&store, workspace, &[grant(agreed)], &person)?;
    Ok(())
}

/// Returns whether the person agreed. One who said nothing yet is asked at the terminal; elsewhere
/// `notice` says how to agree.
pub(crate) fn settle(
    place: (&Gyrus, &Home, &Path),
    at_terminal: bool,
    grant: impl Fn(bool) -> Grant,
    (notice, question): (&str, &str),
) -> Result<bool, Failure> {
    let (_, home, workspace) = place;
    if let Some(said) = said(home, workspace, &grant)? {
        return Ok(said);
    }
    if !at_terminal {
        put(notice)?;
        return Ok(false);
    }
    let agreed = terminal::says_yes(question)?;
    say(place, grant, agreed)?;
    Ok(agreed)
}
