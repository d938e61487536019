//! The buffers of an editor: what it shows of a file, saved or not.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use serde_json::json;

use crate::connection::EditorClient;

/// Time limit for an editor to return the text of a buffer. An editor that misses it is not asked
/// again during the call.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The buffers of the editor of a session.
#[derive(Clone)]
pub struct EditorBuffers {
    client: Arc<EditorClient>,
    session: String,
}

impl fmt::Debug for EditorBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditorBuffers")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl EditorBuffers {
    pub(crate) fn new(client: &Arc<EditorClient>, session: &str) -> Self {
        Self {
            client: client.clone(),
            session: session.to_owned(),
        }
    }

    /// Returns the text of a file in the editor; `None` if the editor has none or does not answer.
    pub async fn text(&self, path: &Path) -> Option<String> {
        let params = json!({"sessionId": self.session, "path": path});
        let request = self.client.request("fs/read_text_file", params).await;
        match tokio::time::timeout(TIMEOUT, request.answer).await {
            Ok(Ok(Ok(result))) => result["content"].as_str().map(str::to_owned),
            Ok(_) => None,
            Err(_) => {
                self.client.withdraw(request.id).await;
                None
            }
        }
    }
}
