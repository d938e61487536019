//! The screen of a run: a browser, over its debugging pipe.
//!
//! The one idea: a screen is a stream of events folded into a state, and every operation of a run
//! (a look, an input, waiting for rest) asks that state and scripts in the page, and never waits
//! for a fixed time.
//!
//! Reading order: `cdp` (the wire), `socket` (the wire to a person's browser), `launch` and
//! `profile` (the process), `state` (the known state), `browser` (the session), `attached` (one in
//! a person's browser), `view` (a look), `page` (scripts inside it), `settle` (rest), `input`
//! (mouse and keys), `sent` (forms on their way), `verdict` (effects), `navigate`, `tools` (a run's calls), `takeover` (a person
//! at the screen), `watch` (a person who only sees it).

mod cdp;
mod socket;
mod launch;
mod temporary;
mod profile;
mod state;
mod page;
mod browser;
mod attached;
mod view;
mod door;
mod settle;
mod input;
mod sent;
mod verdict;
mod navigate;
mod tools;
mod takeover;
#[cfg(feature = "desktop")]
mod desktop;

pub use browser::{Browser, ProfileChoice, Recognises};
#[cfg(feature = "desktop")]
pub use desktop::{
    ChosenNotification, Desktop, DesktopConnections, DesktopPlace, DotEvent, DotState, Enclosure,
    MISSING_PROGRAMS_HINT, MakeEnclosure, NestedError, NotificationChoice, NotificationService,
    StatusDot, desktop_tools, nested_parts,
};
pub use launch::{Launch, LaunchError, PROGRAM_VARIABLE, RunCommand, find_program, has_display};
pub use profile::{Profile, ProfileError, check_profile_name};
pub use socket::{AttachError, DebuggingPort};
pub use takeover::{GivenBack, InputWatcher, PersonInput};
pub use temporary::{TemporaryFolder, sweep_temporary_folders};
pub use tools::tools;

/// Name of our isolated world in every document.
pub(crate) const WORLD: &str = "gyrus";
