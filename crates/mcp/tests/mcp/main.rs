//! The client against real servers: processes and sockets, well and badly behaved.

#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod world;

mod asking;
mod finding;
mod hostile;
mod login;
mod official;
mod resources;
mod over_http;
mod over_pipes;
