//! The meanings of servers' tools that the person confirmed: one file for each server, which only
//! `gyrus mcp roles` writes.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{ArgumentRole, Digest, Service, ToolAction, ToolMeaning};
use gyrus_process::read_regular_text;
use serde::{Deserialize, Serialize};

/// The meanings of the tools of all servers. Cheap to clone; the default knows none.
#[derive(Debug, Clone, Default)]
pub struct Meanings(Arc<BTreeMap<String, ServerMeanings>>);

/// The meanings of one server's tools, as stored in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerMeanings {
    /// The digest of how the server was started or reached when they were confirmed.
    pub setup: Digest,
    /// The tools, by their names for the server.
    #[serde(default)]
    pub tools: BTreeMap<String, ConfirmedTool>,
}

/// The confirmed meaning of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedTool {
    /// The digest of the description that the person saw.
    pub definition: Digest,
    /// The action of a call.
    pub action: ToolAction,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentRole>,
}

/// A file of meanings or forms cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be used: {reason}; delete it, and confirm again: {command}", file.display())]
pub struct MeaningsError {
    pub file: PathBuf,
    pub reason: String,
    /// The command that writes the file.
    pub command: &'static str,
}

impl ServerMeanings {
    /// Returns the text of the file.
    ///
    /// # Errors
    /// A name cannot be written as TOML.
    pub fn to_text(&self) -> Result<String, toml::ser::Error> {
        let head = "# Written by `gyrus mcp roles`, which shows it and asks. A tool that its server \
                    describes otherwise, or that is another server's by now, has none of these.\n";
        Ok(format!("{head}{}", toml::to_string(self)?))
    }
}

impl ConfirmedTool {
    /// Returns the meaning without the description for which it was confirmed.
    pub fn meaning(&self) -> ToolMeaning {
        ToolMeaning {
            action: self.action,
            arguments: self.arguments.clone(),
        }
    }
}

impl Meanings {
    /// Reads the files of all servers in a folder, which may be absent.
    ///
    /// # Errors
    /// A file cannot be used: what it would have made stricter is not known.
    pub fn read(folder: &Path) -> Result<Self, MeaningsError> {
        let mut all = BTreeMap::new();
        for file in files(folder) {
            let wrong = |reason: String| MeaningsError {
                file: file.clone(),
                reason,
                command: "gyrus mcp roles",
            };
            let text = read_regular_text(&file).map_err(|error| wrong(error.to_string()))?;
            let read: ServerMeanings =
                toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            all.insert(name.into_owned(), read);
        }
        Ok(Self(Arc::new(all)))
    }

    /// Returns the file of a server in the folder.
    pub fn file(folder: &Path, server: &str) -> PathBuf {
        folder.join(format!("{server}.toml"))
    }

    /// Returns the meanings that were confirmed for a server.
    pub fn of_server(&self, server: &str) -> Option<&ServerMeanings> {
        self.0.get(server)
    }

    /// Returns the confirmed meaning of a tool, if the server and its description of the tool are
    /// unchanged.
    pub fn of(&self, service: &Service) -> Option<ToolMeaning> {
        let server = self.0.get(&service.server)?;
        let tool = server.tools.get(&service.tool)?;
        let is_same = service.setup == Some(server.setup) && tool.definition == service.definition;
        is_same.then(|| tool.meaning())
    }
}

/// Returns the files of all servers, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        // Reading it will fail, and say why.
        Err(_) => return vec![folder.to_owned()],
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    files
}
