//! Targets of the fuzzer.

mod editor;
mod line;
mod policy;
mod redaction;

pub use self::{editor::Editor, line::Line, policy::PolicyFile, redaction::Redaction};

/// A number that looks random and follows from the input alone.
fn number(input: &[u8]) -> usize {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    usize::try_from(hash >> 40).expect("24 bits fit")
}
