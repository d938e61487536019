//! The reading of a command line, and where the line would run.

use std::path::PathBuf;

use gyrus_contract::CommandReading;

use super::names::PossiblePaths;

/// Folder and environment in which a command line would run, as far as the reader may use them.
#[derive(Debug, Clone)]
pub struct ShellPlace {
    /// The folder in which the line starts, absolute and real.
    pub folder: PathBuf,
    /// The person's home folder, which `~` and `$HOME` mean.
    pub home: Option<PathBuf>,
}

/// A reading, with the paths that the words of the line may stand for.
pub(crate) struct LineReading {
    pub(crate) reading: CommandReading,
    pub(crate) names: PossiblePaths,
}

/// Reason for a line that deletes or moves files of the folder, which undo restores.
pub(crate) const SOME: &str = "it takes away or moves files in this folder";

/// Reason for a line that destroys files of others; for that it needs the person's rights.
pub(crate) const OF_OTHERS: &str = "it overwrites or deletes what others have";
