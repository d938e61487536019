//! Reading the clipboard, which is done elsewhere.

use std::pin::Pin;

/// Reads the clipboard of the desktop on which the server runs.
pub trait ClipboardReader: Send + Sync + 'static {
    /// Returns the text of the clipboard, `None` for none, or the reason if it cannot be read.
    fn read(&self) -> Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + '_>>;
}
