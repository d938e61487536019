//! The judge of the readings of command lines: execution.
//!
//! A line whose reading says that it only reads is run by bash in a jail, in folders that were
//! made to trap it, and then the jail is looked at: every file that was opened for writing,
//! created, changed or deleted, every process that stayed, every packet that would have left is a
//! failure of the reading. The lines are those of the [`corpus`] and seeded mutations of them.
//!
//! Jails are processes in namespaces of their own, with an overlay over the whole file system, so
//! a miss harms nothing. They need a Linux where this process may make namespaces and mount.

pub mod corpus;
mod dictionary;
mod mutation;
mod random;
mod fixture;
mod overlay;
mod jail;
mod confinement;
mod worker;
mod inmate;
mod run;

pub use self::{
    dictionary::words,
    fixture::Ground,
    inmate::Inmate,
    mutation::Stock,
    run::{Failure, Settings, Summary, run},
    worker::{Outcome, Question, Reply, why_not, work},
};

/// Why the oracle could not do its work. It says nothing of a reading.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call or a program that a jail needs failed.
    #[error("cannot {doing}: {source}")]
    Jail {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A process and its jail understood each other no longer.
    #[error("cannot talk to a jail: {0}")]
    Talk(String),
    /// A file of the corpus is not written as it should be.
    #[error(transparent)]
    Corpus(#[from] corpus::CorpusError),
}

/// Adds what was tried to an error of the system.
fn doing<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
    let doing = what.into();
    move |error| Error::Jail {
        doing,
        source: error.into(),
    }
}
