//! Many machines, one run: a run's journal lives in a shared log, and whichever worker is alive goes
//! on with it.
//!
//! The one idea: the shared log accepts a message only if its writer names the message before it
//! ([`SharedLog::append_if`]). So two writers cannot both be right. Who drives a run is a message of
//! the run's own log ([`claim`]), and so is the sign that the driver lives; a successor waits until
//! the one before must have been killed, and its own claim then proves that no sign came meanwhile.
//! Clocks are never compared, reads are never believed to be fresh, and an answer that did not come
//! is never taken for a refusal.
//!
//! Reading order: `log` (the contract of a shared log), `message` and `standing` (what a run's log
//! says), `claim` and `hold` (how it is taken and written).

mod blobs;
mod claim;
mod copies;
mod copy;
mod driven;
mod hold;
mod inbox;
mod lease;
mod log;
mod machine;
mod message;
mod queue;
#[cfg(feature = "nats")]
pub mod nats;
mod reading;
mod standing;
mod succession;
mod waking;

pub use blobs::{BlobError, fetch_blob, store_blob};
pub use claim::{ClaimError, Claimant, Wait, claim};
pub use copies::FleetCopies;
pub use copy::{CopyError, FleetCopy, FollowError, IsOver, run_subject};
pub use driven::{DriveError, DriveOrder, Driven};
pub use hold::{Hold, HoldError};
pub use inbox::{FleetMessage, SendError, read_messages, root_of, send_message};
pub use lease::LeaseTimes;
pub use log::{AppendAnswer, LogSubject, LogUnreachable, MessageId, SharedLog, StoredMessage};
#[cfg(feature = "nats")]
pub use machine::{LeasedMachine, OsMachine};
pub use machine::{Machine, MachineTime};
pub use message::{BadMessage, ClaimWords, EntryLines, RunMessage, RunMessageKind, WriterId};
pub use queue::FleetQueue;
pub use reading::{ReadError, RunReading};
pub use standing::{Inconsistent, RunHolder, RunStanding};
pub use succession::Succession;
pub use waking::ParkedWatch;
