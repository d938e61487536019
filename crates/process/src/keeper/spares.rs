//! Keepers whose sandboxes are kept for later commands.
//!
//! Making a sandbox takes longer than most commands do. Once nothing of a command is left in one,
//! the next command with the same containment can run in it: it sees the same as in a new one.

use gyrus_contract::Containment;
use parking_lot::Mutex;

use super::Keeper;

/// Maximum number of idle keepers; more commands hardly ever run at once.
const MOST: usize = 4;

/// The keepers of one run. Dropping this ends them.
#[derive(Debug, Default)]
pub struct Spares(Mutex<Vec<Keeper>>);

impl Spares {
    /// Removes and returns a keeper whose sandbox has this containment. If there is none, all kept
    /// keepers are ended: a sandbox can hold resources that a new one needs.
    pub fn take(&self, containment: &Containment) -> Option<Keeper> {
        let mut spares = self.0.lock();
        let found = spares.iter().position(|keeper| keeper.suits(containment));
        match found {
            Some(found) => Some(spares.swap_remove(found)),
            None => {
                spares.drain(..).for_each(Keeper::end);
                None
            }
        }
    }

    /// Ends all keepers, because no command may come for long.
    pub fn end_all(&self) {
        let mut spares = self.0.lock();
        spares.drain(..).for_each(Keeper::end);
    }

    /// Stores a keeper for the next command.
    pub fn put(&self, keeper: Keeper) {
        let mut spares = self.0.lock();
        if spares.len() < MOST {
            spares.push(keeper)
        } else {
            keeper.end()
        }
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.end_all();
    }
}
