//! The reading of a command line, and where the line would run.

use std::path::PathBuf;

use gyrus_contract::CommandReading;

use super::names::PossiblePaths;

/// The folder and environment in which a command line would run, as far as reading it may look at
/// them.
#[derive(Debug, Clone)]
pub struct ShellPlace {
    /// The folder it starts in, absolute and real.
    pub folder: PathBuf,
    /// The person's home folder, which `~` and `$HOME` mean.
    pub home: Option<PathBuf>,
}

/// A reading, with what the words of the line may stand for.
pub(crate) struct LineReading {
    pub(crate) reading: CommandReading,
    pub(crate) names: PossiblePaths,
}

/// The reason of a line that removes some of what the folder holds, which undo gives
/// back.
pub(crate) const SOME: &str = "it takes away or moves files in this folder";

/// The reason of a line that destroys what others have; for that it needs the person's rights.
pub(crate) const OF_OTHERS: &str = "it overwrites or deletes what others have";
