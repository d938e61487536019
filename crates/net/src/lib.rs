//! Decisions that everything that uses the network must share, each in one place.
//!
//! - `address`: what an address is ([`AddressKind`]): this machine's, a private network's, where a
//!   cloud keeps its keys, the internet's.
//! - `roots`: which certificates are trusted, and what `SSL_CERT_FILE` and `SSL_CERT_DIR` mean.
//! - `pins`: which keys must vouch for a server beside a root ([`KeyPin`]).
//! - `client`: the one builder of HTTP clients.
//! - `causes`: errors with their causes as one sentence.
//!
//! The last four need the feature `http`. This crate stands on no other crate of the workspace; it
//! connects to nothing, looks up no name and judges nothing: what may be reached is decided by
//! those who ask. It may grow to 1,000 lines beside its tests (`cargo xtask tidy` checks that): what
//! more is needed for the network belongs in a library or with whoever needs it.

mod address;
#[cfg(feature = "http")]
mod causes;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod pins;
#[cfg(feature = "http")]
mod roots;

pub use address::{AddressKind, AddressScope, is_loopback_host};
#[cfg(feature = "http")]
pub use causes::causes;
#[cfg(feature = "http")]
pub use client::{
    PinnedError, client_builder, pinned_client_builder, remembering_client_builder,
    trusting_client_builder,
};
#[cfg(feature = "http")]
pub use pins::{KeyPin, PinError, SeenKeys};
#[cfg(feature = "http")]
pub use roots::RootsError;
