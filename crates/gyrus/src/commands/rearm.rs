//! `gyrus rearm`

use clap::Args;

use crate::{Gyrus, exit::Code, failure::Failure, inside_run, stopped};
use gyrus_surfaces::{console::put, terminal};

/// Let runs go on after `gyrus stop --all`
///
/// Only a person can: a run's own commands are refused. The runs themselves go on with `gyrus
/// resume`, one by one.
#[derive(Args)]
pub(crate) struct Rearm {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Rearm {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("let runs go on")?;
        let latch = gyrus.home()?.latch();
        let Err(latched) = latch.check() else {
            put("nothing is stopped\n")?;
            return Ok(Code::Reached);
        };
        let words = stopped::words(&latched);
        if !self.yes && !confirmed(&words)? {
            put("everything stays stopped\n")?;
            return Ok(Code::Denied);
        }
        latch.lift().map_err(|error| {
            Failure::failed("everything stays stopped")
                .because(&error)
                .hint(format!("remove it by hand: {}", latch.path().display()))
        })?;
        put(&format!(
            "runs may go on, which were {words}\n  each goes on with: gyrus resume RUN (gyrus runs \
             list names them)\n"
        ))?;
        Ok(Code::Reached)
    }
}

/// Asks the person at the terminal for confirmation.
fn confirmed(words: &str) -> Result<bool, Failure> {
    if !terminal::can_ask() {
        return Err(Failure::usage("there is no terminal to ask at")
            .hint("if you are sure: gyrus rearm --yes"));
    }
    let question = format!("{words}\nlet runs go on? y = yes, n = no: ");
    Ok(terminal::says_yes(&question)?)
}
