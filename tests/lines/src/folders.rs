//! Scripts for bash that lay out the folders in which the lines of the corpora mean something.

/// Lays out a small ordinary project in the folder `$1`, which is made.
pub const PROJECT: &str = include_str!("../corpus/fixture/project.sh");

/// Lays out the folder `$1` as somebody would who knows that an agent is going to look at it.
pub const HOSTILE: &str = include_str!("../corpus/fixture/hostile.sh");

/// Makes copies of the project `$1` below the folder `$2`, each with a single trap that is well
/// hidden, and prints their names.
pub const DISGUISED: &str = include_str!("../corpus/fixture/disguised.sh");
