//! `gyrus runs adopt`

use clap::Args;
use gyrus_journal::Store;
use gyrus_kernel::Register;

use crate::{Gyrus, exit::Code, failure::Failure, inside_run, question::confirm};
use gyrus_surfaces::console::put;

/// Say that the state of gyrus, which was copied or moved here, is yours
///
/// gyrus begins nothing, and goes on with nothing, in a state folder that was copied: somebody else may
/// have written what is in it. After a restored backup, or a move to another disk or machine, say so
/// once with this. The runs that were begun in it can then be resumed, and its queue, agents and grants
/// count. Runs that had been imported or copied into it stay records.
#[derive(Args)]
pub(crate) struct Adopt {
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

impl Adopt {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("adopt a state folder")?;
        let home = gyrus.home()?;
        let mut stores = vec![home.store()?];
        // The copies of what a fleet has lie apart.
        let copies = home.state.join("fleet/copies");
        stores.extend(copies.is_dir().then(|| Store::open(&copies)).transpose()?);
        stores.retain(Store::is_copied);
        if stores.is_empty() {
            put("this state is of this place already\n")?;
            return Ok(Code::Reached);
        }
        let state = home.state.display();
        confirm(
            &format!("let all runs, agents, grants and commands in {state} count as yours"),
            self.yes,
        )?;
        for store in &stores {
            store.adopt()?;
            // In it the runs are still those of another place.
            Register::forget(store)?;
        }
        put("it is yours: unfinished runs can be resumed, and `gyrus serve` goes on with them\n")?;
        Ok(Code::Reached)
    }
}
