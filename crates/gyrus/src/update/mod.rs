//! Newer versions of the program: found where the configuration says, and put in this one's place.
//!
//! An update is what `cargo xtask dist --sign KEY` writes, behind an address: `SHA256SUMS`, its
//! signature, and the archives that it names. Nothing is looked for unless the configuration names
//! the address and the key, and nothing that the key did not sign is unpacked.

mod index;
mod install;
mod signature;

pub(crate) use self::{
    index::{Address, Package},
    install::{UpdateEnd, go_back, install},
};
