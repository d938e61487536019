//! Judges what contains commands by running them, not by reading them.
//!
//! Seeded command lines, hostile ones first, take the real path of a run: kernel, gate, keeper,
//! sandbox, and whatever is judged when they have ended. Nobody can be asked, so whatever would be
//! asked is denied. Then a person comes to the same folder and does what people do: looks at git,
//! lists files, asks make what it would do, enters the folder with direnv. A *finding* is a
//! planted program that ran as the person, a key that was read, a byte that arrived outside,
//! anything that changed outside the workspace, or a control file that changed unasked. What a
//! line is called by those who read it plays no part.
//!
//! Without a sandbox the same lines are judged by one sentence: what passes changes nothing and
//! prints no key.
//!
//! Everything happens in a throw-away [`machine`]: namespaces of its own, an overlay over the whole
//! file system, and a person's home with decoys. It needs a Linux where namespaces can be made,
//! and `bash`, `git`, `ip` and `unshare`.
//!
//! Reading order: `attacks` and `mutation` (the lines), `trial` (who tries which), `worker` (one
//! line from start to judgement), `gyrus` (the path under test), `person`, `judge`.

mod attacks;
mod control;
mod decoys;
mod finding;
mod fixture;
mod gyrus;
mod judge;
mod listeners;
mod machine;
mod manifest;
mod mutation;
mod person;
#[path = "../../../crates/gyrus/tests/cli/refusing/filter.rs"]
mod refusing;
mod trial;
mod victim;
mod worker;

pub use self::{
    attacks::{Attack, attacks},
    finding::{Finding, Kind},
    fixture::Fixture,
    machine::why_not,
    trial::{Failure, OfClass, Settings, Summary, Task, Tasks, run, tasks},
    worker::Between,
};

/// Error: the oracle could not do its work. It says nothing of what contains commands.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call or a program that a machine needs failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// The operation that failed.
        doing: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Trial and machine do not understand each other any more.
    #[error("lost the machine: {0}")]
    Lost(String),
    /// A file of lines is not written as it should be.
    #[error("invalid list of lines: {0}")]
    Lines(String),
}

/// Adds what was tried to an error of the system.
fn doing<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
    let doing = what.into();
    move |error| Error::System {
        doing,
        source: error.into(),
    }
}

/// Becomes a probe, a keeper, a machine or a worker and never returns, if this process was started
/// as one. To be called as the first statement of `main`.
pub fn serve_if_asked() {
    ::gyrus::init();
    machine::serve_if_asked();
    worker::serve_if_asked();
}
