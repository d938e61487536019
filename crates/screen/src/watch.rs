//! The picture of a page for somebody who watches. It is no look of the run: it opens nothing,
//! waits for nothing, and leaves what a look reports once to the run.

use gyrus_contract::Picture;

use crate::browser::Browser;

impl Browser {
    /// Returns a picture of the current page, with secrets covered as in the run's own pictures;
    /// `None` while there is no browser, or its page cannot be read.
    pub async fn watch(&self) -> Option<Picture> {
        let session = self.open_session()?;
        let tab = session.tab().ok()?;
        if tab.dialog.is_some() || session.state().held_up_by(&tab).is_some() {
            return None;
        }
        session.picture_of(&tab).await
    }
}
