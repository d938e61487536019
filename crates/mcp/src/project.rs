//! The servers of a project, in a file that many programs share. It belongs to the project, so no
//! server is started until the person has approved exactly this content.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_contract::{Digest, Grant};
use serde::Deserialize;
use serde_json::Value;

use crate::ServerSection;

/// Name of the file, in the folder of the project.
pub const PROJECT_FILE: &str = ".mcp.json";

/// Maximum bytes of the file.
const MAX_BYTES: u64 = 256 * 1024;

/// The error of a project's file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read", file.display())]
pub struct ProjectFileError {
    pub file: PathBuf,
    /// The error of the operating system or the parser.
    pub source: Option<io::Error>,
    /// Advice for the person.
    pub hint: Option<String>,
}

/// The servers of the file.
pub struct ProjectServers {
    /// Servers by their names in gyrus.
    pub servers: BTreeMap<String, ServerSection>,
    /// Descriptions of the servers that cannot be used.
    pub left_out: Vec<String>,
    /// Digest of the whole file.
    pub content: Digest,
}

/// Form of the file; keys of other programs are ignored.
#[derive(Deserialize)]
struct McpProjectFile {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Value>,
}

/// The keys of a server that many programs share; those of other programs are ignored.
const SHARED: [&str; 5] = ["command", "args", "env", "url", "headers"];

/// The keys of a server of the person's own file: with those of its sandbox.
const OWN: [&str; 7] = [
    "command", "args", "env", "url", "headers", "network", "folders",
];

impl ProjectServers {
    /// Reads the file of a folder; `None` if it does not exist.
    pub fn read(workspace: &Path) -> Result<Option<Self>, ProjectFileError> {
        let file = workspace.join(PROJECT_FILE);
        let wrong = |source, hint: Option<String>| ProjectFileError {
            file: file.clone(),
            source,
            hint,
        };
        match fs::metadata(&file) {
            Ok(data) if data.is_file() && data.len() <= MAX_BYTES => {}
            Ok(_) => {
                let hint = format!(
                    "it must be a file of at most {MAX_BYTES} bytes; fix it, or move it away"
                );
                return Err(wrong(None, Some(hint)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(Some(error), None)),
        }
        let bytes = fs::read(&file).map_err(|error| wrong(Some(error), None))?;
        Self::parse(&bytes).map(Some).map_err(|error| {
            let hint = "fix it, or move it away".to_owned();
            wrong(Some(io::Error::other(error)), Some(hint))
        })
    }

    fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let written: McpProjectFile = serde_json::from_slice(bytes)?;
        let mut project = Self {
            servers: BTreeMap::new(),
            left_out: Vec::new(),
            content: Digest::of(bytes),
        };
        for (given, written) in written.servers {
            let name = fitted_name(&given);
            let read = server_section(written).and_then(|section| {
                section.check(&name)?;
                if project.servers.contains_key(&name) {
                    Err(format!("another one is called `{name}` here, too"))
                } else {
                    Ok(section)
                }
            });
            match read {
                Ok(section) => {
                    project.servers.insert(name, section);
                }
                Err(why) => project.left_out.push(format!(
                    "the server `{given}` of {PROJECT_FILE} is left out: it {why}"
                )),
            }
        }
        Ok(project)
    }

    /// Returns the grant that an approval of this content gives.
    pub fn grant(&self) -> Grant {
        Grant::Servers {
            content: self.content,
        }
    }
}

/// Reads the servers of a file of the same form that the person names: they are the person's own,
/// with the `network` and the `folders` of their sandbox.
///
/// # Errors
/// It names no server, or one that is not understood; in words.
pub fn own_servers(text: &str) -> Result<BTreeMap<String, ServerSection>, String> {
    let written: McpProjectFile =
        serde_json::from_str(text).map_err(|error| format!("it is not understood: {error}"))?;
    if written.servers.is_empty() {
        return Err("it names none in `mcpServers`".to_owned());
    }
    let servers = written.servers.into_iter().map(|(name, written)| {
        let section = section_of(written, &OWN);
        match section.and_then(|section| section.check(&name).map(|()| section)) {
            Ok(section) => Ok((name, section)),
            Err(why) => Err(format!("the server `{name}` {why}")),
        }
    });
    servers.collect()
}

/// Returns the section for a server as many programs write it down, which was not checked yet.
///
/// # Errors
/// A message that continues after "it": the section does not have that form.
pub fn server_section(written: Value) -> Result<ServerSection, String> {
    section_of(written, &SHARED)
}

fn section_of(mut written: Value, keys: &[&str]) -> Result<ServerSection, String> {
    if let Value::Object(fields) = &mut written {
        fields.retain(|key, _| keys.contains(&key.as_str()));
    }
    serde_json::from_value(written).map_err(|error| format!("is not understood: {error}"))
}

/// Returns a name for a server, with only the characters that are allowed in one.
pub fn fitted_name(given: &str) -> String {
    let fit = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    given.chars().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_write_is_read() {
        let text = r#"{"other": 1, "mcpServers": {
            "My Server": {"type": "stdio", "command": "x", "args": ["a"], "env": {"K": "${K}"}},
            "web": {"type": "http", "url": "https://e.example/mcp", "headers": {"A": "b"}},
            "my_server": {"command": "y"},
            "empty": {},
            "odd": {"command": 7}
        }}"#;
        let project = ProjectServers::parse(text.as_bytes()).unwrap();
        let names: Vec<_> = project.servers.keys().collect();
        assert_eq!(names, ["my-server", "web"]);
        assert_eq!(project.left_out.len(), 3, "{:?}", project.left_out);
        assert_ne!(
            ProjectServers::parse(b"{}").unwrap().content,
            project.content
        );
        assert!(ProjectServers::parse(b"[").is_err());
    }
}
