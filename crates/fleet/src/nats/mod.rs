//! The shared log on NATS JetStream.
//!
//! Requests go to the server as its documentation words them, and its answers are read here, because
//! what matters most (was it refused, or is it not known?) is in the error codes. Reads use the
//! batched direct get, which any replica answers: nothing here relies on a fresh read.

mod address;
mod connection;
mod log;
mod permissions;
mod requirements;
mod roll_call;
mod server;
mod streams;

pub use address::{BadFleetAddress, FleetAddress, FleetLogin};
pub use connection::{FleetConnectError, FleetConnection};
pub use log::NatsLog;
pub use permissions::FleetPermissions;
pub use requirements::{OLDEST_SERVER, Requirement, RequirementError, requirements};
pub use roll_call::{WorkerReport, answer_roll_calls, call_the_roll};
pub use server::{LocalServer, ServerError, ServerOptions};
pub use streams::{StreamError, prepare_streams};
