//! The parts that depend on the operating system: files and locks, watching, mounts. Linux today;
//! another system needs another set of these files.

pub mod disk;
pub mod mounts;
pub mod watch;
