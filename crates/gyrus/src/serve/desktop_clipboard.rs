//! The clipboard of the desktop that the server was started on.

use std::{path::Path, pin::Pin};

use gyrus_process::keeper::Keeper;
use gyrus_runtime::triggers::ClipboardReader;
use gyrus_tools::Clipboard;

/// Reads the clipboard with the helper programs that the tool `clipboard` uses.
pub(super) struct DesktopClipboard;

impl ClipboardReader for DesktopClipboard {
    fn read(&self) -> Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + '_>> {
        Box::pin(async move {
            let command = Clipboard::new().reading(Path::new("/"))?;
            let keeper = Keeper::start().map_err(|error| error.to_string())?;
            let outcome = keeper.run(command).await;
            Clipboard::text_of(outcome.map_err(|error| error.to_string())?)
        })
    }
}
