//! The only place that knows the operating system: files and locks, watching, mounts. Linux today;
//! another system is another set of these files.

pub mod disk;
pub mod mounts;
pub mod watch;
