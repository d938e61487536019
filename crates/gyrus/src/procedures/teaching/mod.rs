//! A person shows a task on a page: the steps of it, as of a run.
//!
//! The page is looked at before each press, and before keys that may leave a field. What was typed
//! or chosen meanwhile is what the fields hold then, so no typed key is recorded, and the value of a
//! field that holds a secret is never seen.
//!
//! `seen` keeps the steps, `showing` looks and judges, `on_page` knows which inputs are steps.

mod seen;
mod showing;
mod on_page;

use gyrus_contract::BoxedFuture;
use gyrus_screen::{InputWatcher, PersonInput};

pub(crate) use self::showing::{TeachingParts, TeachingSession};

impl InputWatcher for TeachingSession {
    fn before(&self, input: PersonInput) -> BoxedFuture<'_, ()> {
        Box::pin(on_page::before(self, input))
    }
}
