//! Parameters of the methods that a client calls, as far as they are used here.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::host::{EditorServer, EditorServerWay};

/// The version of the protocol that gyrus speaks.
pub(crate) const PROTOCOL_VERSION: u16 = 1;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialize {
    /// The newest version that the client speaks; some clients write it as a text. The answer is
    /// the version that is spoken here, whatever it is.
    pub(crate) protocol_version: Value,
    /// The client's capabilities, any of which may be missing or of another form.
    #[serde(default)]
    pub(crate) client_capabilities: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub(crate) cwd: PathBuf,
    pub(crate) mcp_servers: Option<Vec<NamedServer>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OldSession {
    pub(crate) session_id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) mcp_servers: Option<Vec<NamedServer>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ListSessions {
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) cursor: Option<String>,
}

/// Parameters of methods that only name a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedSession {
    pub(crate) session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptSession {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<ContentBlock>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMode {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetOption {
    pub(crate) session_id: String,
    pub(crate) config_id: String,
    pub(crate) value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequest {
    pub(crate) request_id: Value,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ContentBlock {
    Text {
        text: String,
    },
    Image {
        data: String,
    },
    ResourceLink {
        name: String,
        uri: String,
    },
    Resource {
        resource: Resource,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resource {
    pub(crate) uri: String,
    /// The text; `None` if the resource is not text.
    pub(crate) text: Option<String>,
}

/// A server of the Model Context Protocol. What has no type is a program.
#[derive(Debug, Deserialize)]
pub(crate) struct NamedServer {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    name: String,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<Vec<NamedValue>>,
    url: Option<String>,
    headers: Option<Vec<NamedValue>>,
}

#[derive(Debug, Deserialize)]
struct NamedValue {
    name: String,
    value: String,
}

impl NamedServer {
    /// Returns the server in the form for the host.
    ///
    /// # Errors
    /// A message with the reason why the server cannot be used.
    pub(crate) fn server(self) -> Result<EditorServer, String> {
        let name = self.name;
        let values = |values: Option<Vec<NamedValue>>| -> BTreeMap<String, String> {
            let values = values.into_iter().flatten();
            values.map(|one| (one.name, one.value)).collect()
        };
        let shown = gyrus_text::quote(&name, 40);
        let way = match self.kind.as_deref() {
            None | Some("stdio") => EditorServerWay::Program {
                command: self
                    .command
                    .ok_or_else(|| format!("the server {shown} has no `command`"))?,
                arguments: self.args.unwrap_or_default(),
                environment: values(self.env),
            },
            Some("http") => EditorServerWay::Http {
                url: self
                    .url
                    .ok_or_else(|| format!("the server {shown} has no `url`"))?,
                headers: values(self.headers),
            },
            Some(_) => {
                return Err(format!(
                    "the server {shown} is neither of the type `stdio` nor `http`"
                ));
            }
        };
        Ok(EditorServer { name, way })
    }
}
