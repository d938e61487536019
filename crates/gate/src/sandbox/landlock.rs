//! Landlock: what may be written, as a second wall within the mounts or as the only one.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::{Containment, Network};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{FileType, fstat};

use super::{devices, mounts, places::WritablePlaces, trees::open_plain};

/// Writable in every place of a confined process, beside its folders.
const ALWAYS: [&str; 5] = ["/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/dev/ptmx"];

/// Folders of the machine in which services listen and users leave files for each other. Terminals
/// are below `/dev`, where another one of the same user could be read.
const SHARED: &[&str] = &["/dev", "/run", "/var/run", "/tmp", "/var/tmp"];

/// Rights that apply to files other than folders.
const FILE: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{
    Execute | WriteFile | ReadFile | Truncate | IoctlDev
});

/// Extent of Landlock's support in this kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walls {
    Whole,
    /// Abstract sockets and signals are not restricted, and maybe nothing is.
    NoScopes,
}

#[derive(Debug)]
pub(super) enum RestrictError {
    /// The kernel has no Landlock that suffices.
    Missing,
    Rules(RulesetError),
}

impl From<RulesetError> for RestrictError {
    fn from(error: RulesetError) -> Self {
        Self::Rules(error)
    }
}

/// Keeps this process and its children from signalling others and using their abstract sockets.
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

/// Returns rules that keep a process which enters them from signalling those that have not.
pub(super) fn apart() -> Option<OwnedFd> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.scope(Scope::Signal).ok()?.create().ok()?.into()
}

/// Returns rules that restrict the writes of a process to the places that the mounts leave
/// writable; `None` where the kernel has none.
pub(super) fn within_mounts(containment: &Containment) -> Result<Option<OwnedFd>, RulesetError> {
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
        return Ok(allow(rules, places, writes)?.into());
    }
    // It is a second wall, where the first one stands.
    Ok(None)
}

/// Restricts everything that Landlock can: writes, reads of hidden files, the network, and signals
/// to processes that are not restricted.
pub(super) fn alone(
    containment: &Containment,
    places: &WritablePlaces,
) -> Result<Walls, RestrictError> {
    let (mut rules, walls) = strictest(containment.network).ok_or(RestrictError::Missing)?;
    let reads = AccessFs::ReadFile | AccessFs::Execute;
    let handled = match walls {
        Walls::Whole => AccessFs::from_all(ABI::V5),
        Walls::NoScopes => AccessFs::from_all(ABI::V3),
    };
    // No device is made in them, nor used.
    let devices = AccessFs::MakeBlock | AccessFs::MakeChar | AccessFs::IoctlDev;
    let changes = handled & !devices;
    let machine = SHARED.iter().map(Path::new);
    let hidden = containment.hidden.iter().map(PathBuf::as_path);
    let hidden: Vec<PathBuf> = hidden
        .chain(machine)
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let mut readable = Vec::new();
    collect_readable(Path::new("/"), &hidden, &mut readable);
    let binds = containment.binds.iter().map(|bind| bind.source.clone());
    readable.extend(binds.chain(mounts::RESOLVERS.map(PathBuf::from)));
    let harmless = devices::HARMLESS.map(Path::new);
    // Folders can be listed wherever they are: else none could on the way to what is hidden.
    rules = allow(rules, [Path::new("/")], AccessFs::ReadDir.into())?;
    rules = allow(rules, readable.iter().map(PathBuf::as_path), reads)?;
    rules = allow(rules, harmless, handled & FILE)?;
    // The probe is started from it, wherever it lies.
    rules = allow(rules, [Path::new("/proc/self/exe")], reads)?;
    // What is to be seen within a hidden folder; elsewhere, parts of it may be hidden.
    let shown = containment.read_only.iter().map(PathBuf::as_path);
    let shown = shown.filter(|path| hidden.iter().any(|hidden| path.starts_with(hidden)));
    rules = allow_plain(rules, shown, reads)?;
    rules = allow_plain(rules, places.folders(), reads)?;
    rules = allow_plain(rules, places.whole(), changes)?;
    restrict(rules)?;
    Ok(walls)
}

/// Does the same as [`allow`], for places that a command may have replaced by links.
fn allow_plain<'a>(
    mut rules: RulesetCreated,
    places: impl IntoIterator<Item = &'a Path>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for place in places {
        let Ok(opened) = open_plain(place) else {
            continue;
        };
        let kind = fstat(&opened).map(|data| FileType::from_raw_mode(data.st_mode));
        let access = match kind {
            Ok(FileType::Directory) => access,
            _ => access & FILE,
        };
        rules = rules.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(rules)
}

/// Returns the strictest set of rules that this kernel supports, and its walls. The third version
/// of Landlock is the first that knows of truncating.
fn strictest(network: Network) -> Option<(RulesetCreated, Walls)> {
    let whole = || {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let rules = rules.handle_access(AccessFs::from_all(ABI::V5)).ok()?;
        let rules = match network {
            Network::None | Network::Proxy => rules.handle_access(AccessNet::from_all(ABI::V4)),
            Network::Open => Ok(rules),
        };
        let rules = rules.ok()?.scope(Scope::from_all(ABI::V6)).ok()?;
        Some((rules.create().ok()?, Walls::Whole))
    };
    let without_scopes = || {
        let rules = ruleset(AccessFs::from_all(ABI::V3), Walls::NoScopes)?;
        Some((rules, Walls::NoScopes))
    };
    whole().or_else(without_scopes)
}

/// Collects the paths for Landlock's rules, which allow a folder only with everything below it: all
/// in `place` except hidden paths. Links lead to paths that are collected themselves.
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

/// Returns a set of rules that handles all these rights; `None` if the kernel lacks some of them.
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
            access & FILE
        };
        rules = rules.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(rules)
}

fn restrict(rules: RulesetCreated) -> Result<(), RulesetError> {
    rules.restrict_self().map(drop)
}
