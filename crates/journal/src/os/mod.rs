//! The only place that knows the operating system: process identity, locks, watching, folders.
//! Linux today; another system is another set of these files.

pub mod process;
