//! Landlock: what may be written, as a second wall within the mounts or as the only one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gyrus_contract::Containment;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::devices;

/// Writable in every place of a confined process, beside its folders.
const ALWAYS: [&str; 5] = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/ptmx"];

/// How much of Landlock there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walls {
    Whole,
    /// Abstract sockets and signals are not restricted, and maybe nothing is.
    NoScopes,
}

/// Why there is no restriction.
#[derive(Debug)]
pub(super) enum Failure {
    /// The kernel has no Landlock that suffices.
    Missing,
    Rules(RulesetError),
}

impl From<RulesetError> for Failure {
    fn from(error: RulesetError) -> Self {
        Self::Rules(error)
    }
}

/// Keeps what this process starts from signalling others and from their abstract sockets.
pub(super) fn part() -> Result<Walls, RulesetError> {
    // Whatever rules do not mention this, they forbid: files could not be moved between folders.
    let moves = AccessFs::Refer.into();
    match ruleset(moves, Walls::Whole) {
        Some(rules) => {
            restrict(allow(rules, [Path::new("/")], moves)?)?;
            Ok(Walls::Whole)
        }
        None => Ok(Walls::NoScopes),
    }
}

/// Restricts writes to where the mounts allow them too.
pub(super) fn within_mounts(containment: &Containment) -> Result<(), RulesetError> {
    // Below the second version no file could be renamed from folder to folder.
    for abi in [ABI::V3, ABI::V2] {
        let writes = AccessFs::from_write(abi);
        let Some(rules) = ruleset(writes, Walls::NoScopes) else {
            continue;
        };
        let always = ALWAYS.iter().chain(&devices::HARMLESS).map(Path::new);
        let folders = containment.writable.iter().map(PathBuf::as_path);
        let layers = containment
            .layered
            .iter()
            .map(|layer| layer.lower.as_path());
        let binds = containment.binds.iter().filter(|bind| bind.writable);
        let binds = binds.map(|bind| bind.place.as_path());
        let places = always.chain(folders).chain(layers).chain(binds);
        return restrict(allow(rules, places, writes)?);
    }
    // It is a second wall, where the first one stands.
    Ok(())
}

/// Restricts writes, and reads of what is hidden.
pub(super) fn alone(containment: &Containment) -> Result<Walls, Failure> {
    // The third version is the first that knows of truncating.
    let (writes, reads) = (
        AccessFs::from_write(ABI::V3),
        AccessFs::ReadFile | AccessFs::Execute,
    );
    let all = writes | reads | AccessFs::ReadDir;
    let (rules, walls) = [Walls::Whole, Walls::NoScopes]
        .into_iter()
        .find_map(|walls| Some((ruleset(all, walls)?, walls)))
        .ok_or(Failure::Missing)?;
    let hidden: Vec<PathBuf> = containment
        .hidden
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let mut readable = Vec::new();
    collect_readable(Path::new("/"), &hidden, &mut readable);
    let devices = devices::HARMLESS.iter().map(Path::new);
    let devices = devices.chain([Path::new("/dev/pts"), Path::new("/dev/ptmx")]);
    let folders = containment.writable.iter().map(PathBuf::as_path);
    let rules = allow(rules, [Path::new("/")], AccessFs::ReadDir.into())?;
    let rules = allow(rules, readable.iter().map(PathBuf::as_path), reads)?;
    let rules = allow(rules, devices, writes)?;
    let rules = allow(rules, folders.chain([containment.temporary.as_path()]), all)?;
    restrict(rules)?;
    Ok(walls)
}

/// The rules of Landlock allow a folder with all below, so everything but what is hidden has to
/// be named. Links lead to what is named itself.
fn collect_readable(place: &Path, hidden: &[PathBuf], readable: &mut Vec<PathBuf>) {
    if hidden.iter().any(|path| path == place) || place.is_symlink() {
        return;
    }
    if !hidden.iter().any(|path| path.starts_with(place)) {
        readable.push(place.to_owned());
        return;
    }
    // What cannot be listed by us cannot be found by the command.
    let entries = fs::read_dir(place).into_iter().flatten();
    for entry in entries.filter_map(Result::ok) {
        collect_readable(&entry.path(), hidden, readable);
    }
}

/// A set of rules that handles all of this; `None` if the kernel knows some of it not.
fn ruleset(access: BitFlags<AccessFs>, walls: Walls) -> Option<RulesetCreated> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(access)
        .ok()?;
    let rules = match walls {
        Walls::Whole => rules.scope(Scope::from_all(ABI::V6)).ok()?,
        Walls::NoScopes => rules,
    };
    rules.create().ok()
}

fn allow<'a>(
    mut rules: RulesetCreated,
    places: impl IntoIterator<Item = &'a Path>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for place in places {
        // What is not there needs no rule.
        let Ok(opened) = PathFd::new(place) else {
            continue;
        };
        let access = if place.is_dir() {
            access
        } else {
            access & AccessFs::from_file(ABI::V3)
        };
        rules = rules.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(rules)
}

fn restrict(rules: RulesetCreated) -> Result<(), RulesetError> {
    rules.restrict_self().map(drop)
}
