//! `gyrus dot`

use clap::Args;

use crate::{Gyrus, exit::Code, failure::Failure, inside_run};

/// Show a dot on your desktop that tells what runs do, and stop all of them with Escape
///
/// Grey: nothing is at work; blue: a run looks; violet: it waits for its model; green: it acts;
/// amber: it waits for you; red: everything is stopped. Escape stops everything while a run uses
/// this display, Control-Alt-Escape at any time, as `gyrus stop --all` does. A click on the dot, or
/// Control-Alt-G, opens gyrus in a terminal, with what waits for you first. What runs ask comes as
/// a notification, too. Runs never see the dot.
#[derive(Args)]
pub(crate) struct Dot {
    /// The display, as `:0`; the one that `DISPLAY` names if none is given
    #[arg(long)]
    display: Option<String>,
}

impl Dot {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("show a dot")?;
        let given = self.display.or_else(|| gyrus.environment.display.clone());
        let display = given.ok_or_else(|| {
            Failure::usage("there is no display").hint("name it, as: gyrus dot --display :0")
        })?;
        show(gyrus, &display)
    }
}

#[cfg(feature = "desktop")]
use crate::status_dot::show;

/// Returns the failure with the advice how to get a gyrus that shows dots.
#[cfg(not(feature = "desktop"))]
fn show(_: &Gyrus, _: &str) -> Result<Code, Failure> {
    let failure = Failure::usage("this gyrus was built without desktops");
    Err(failure.hint("build it with them: cargo build --release --features desktop"))
}
