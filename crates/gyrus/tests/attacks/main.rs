//! A model that obeys whoever speaks to it, and what the gate leaves of its obedience.
//!
//! The model is a server on loopback. It looks for orders in everything that a run hands it
//! (files, tool results, pages) and calls exactly what they say. So an attack is data: text with
//! orders in it. Nobody answers questions, so whatever is asked about does not happen. What is
//! looked at afterwards is not what the gate said, but the world: bytes that arrived elsewhere,
//! files outside the workspace, files that run by themselves, gyrus's own state.
//!
//! The same attacks are carried out once without gyrus, so that no test passes because an attack
//! was none. A skill is a file here like any other.
//!
//! In the office, the same model works with six servers of tools, states a mandate first, and finds
//! its orders in mails, events, files, payments, messages and reviews (`office_work.rs`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "these are tests, helpers included"
)]

#[expect(dead_code, reason = "only the provider speaks it here")]
#[path = "../cli/http.rs"]
mod http;
#[expect(dead_code, reason = "a provider can say more than these tests need")]
#[path = "../cli/provider.rs"]
mod provider;
mod attacker;
mod obedient;
mod world;
mod tool_server;
mod office;
mod office_attacks;

mod attack;
mod planted;
mod informed;
mod benign;
mod office_work;
