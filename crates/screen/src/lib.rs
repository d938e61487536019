//! What gyrus sees and touches: a browser, over its debugging pipe.
//!
//! The one idea: a screen is a stream of events folded into a state, and everything that a run
//! wants of it (a look, an input, waiting for rest) is a question to that state and to scripts in
//! the page, never a fixed wait.
//!
//! Reading order: `cdp` (the wire), `socket` (the wire to a person's browser), `launch` and `profile` (the process), `state` (what is known),
//! `browser` (the session), `attached` (one in a person's
//! browser), `view` (a look), `page` (what runs inside), `settle` (rest), `input`
//! (hands), `verdict` (what came of it), `navigate`, `tools` (what a run calls), `takeover` (a
//! person at the screen).

mod cdp;
mod socket;
mod launch;
mod profile;
mod state;
mod page;
mod browser;
mod attached;
mod view;
mod door;
mod settle;
mod input;
mod verdict;
mod navigate;
mod tools;
mod takeover;

pub use browser::{Browser, ProfileChoice, Recognises};
pub use launch::{Launch, LaunchError, PROGRAM_VARIABLE, RunCommand, find_program, has_display};
pub use profile::{Profile, ProfileError};
pub use socket::{AttachError, Endpoint};
pub use takeover::{GivenBack, HAND_OVER};
pub use tools::tools;

/// The name of our world in every document.
pub(crate) const WORLD: &str = "gyrus";
