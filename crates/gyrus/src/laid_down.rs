//! What the person laid down: their policy, and the project's, which may only be stricter.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::DEFAULT_AGENT;
use gyrus_gate::{
    policy::{LineReader, Origin, Policy},
    shell,
};

use crate::{failure::Failure, home::Home};

/// Where a project keeps its rules.
const OF_PROJECT: &str = ".gyrus/policy.toml";

/// The files that hold in a workspace, those that are absent included.
pub(crate) fn files(home: &Home, workspace: &Path) -> [(PathBuf, bool); 2] {
    [(home.policy(), true), (workspace.join(OF_PROJECT), false)]
}

/// All that holds in a workspace.
pub(crate) fn policy(home: &Home, workspace: &Path) -> Result<Policy, Failure> {
    let mut policy = Policy::default();
    for (file, may_loosen) in files(home, workspace) {
        if let Some(found) = read(home, workspace, &file, may_loosen)? {
            policy = policy.and(found);
        }
    }
    Ok(policy)
}

/// Refuses an agent that nothing is laid down for: it would be trusted with everything.
pub(crate) fn knows(policy: &Policy, agent: &str) -> Result<(), Failure> {
    let mut known = policy.agents();
    known.insert(DEFAULT_AGENT);
    if known.contains(agent) {
        return Ok(());
    }
    let known: Vec<_> = known.into_iter().collect();
    Err(Failure::usage(format!(
        "there is no agent `{agent}`; there are {}",
        known.join(", ")
    ))
    .hint(format!(
        "lay down in policy.toml what it may do: [agent.{agent}]"
    )))
}

/// One file; `None` if it is absent.
pub(crate) fn read(
    home: &Home,
    workspace: &Path,
    file: &Path,
    may_loosen: bool,
) -> Result<Option<Policy>, Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(
                Failure::usage(format!("the policy {} cannot be read", file.display()))
                    .because(&error),
            );
        }
    };
    let place = shell::Place {
        folder: workspace.to_owned(),
        home: home.person.clone(),
    };
    let origin = Origin {
        file: file.to_owned(),
        may_loosen,
        home: home.person.clone(),
    };
    let lines = LineReader {
        workspace,
        read: &|line| shell::read_with_names(line, &place),
    };
    Policy::parse(&text, &origin, lines)
        .map(Some)
        .map_err(|error| {
            Failure::usage(error.to_string())
                .hint(format!("mend {}; until then nothing runs", file.display()))
        })
}
