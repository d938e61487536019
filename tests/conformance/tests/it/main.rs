//! gyrus against its own conformance suite, and the proof that the suite bites.

#![expect(clippy::unwrap_used, reason = "tests, with helpers beside them")]

mod smoke;
mod matrix;
mod plan;
mod engineer;
mod changeset;
mod determinism;
mod prompts;
mod approvals;
mod budget;
mod compaction;
mod control;
mod children;
mod reactive;
mod growth;
mod secrets;
mod sessions;
mod ledger;
mod handover;
mod properties;
mod fleet;
