//! The files of JSON in a package, and the errors about a package.

use gyrus_skills::{PackageError, SkillFiles};
use serde_json::Value;

/// Maximum number of agents, and of servers.
pub(crate) const MAX_PARTS: usize = 50;

/// The reason why a package is not a plugin that can be installed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The files or a skill of the package are invalid.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// A file of the package is invalid.
    #[error("`{path}`: {reason}")]
    File {
        /// The path, within the package.
        path: String,
        reason: String,
    },
    /// The package contains nothing that gyrus can use.
    #[error("`{name}` brings no skills, agents or servers{}", told(.left_out))]
    Empty {
        name: String,
        /// The parts of the package that are left out.
        left_out: Vec<String>,
    },
}

fn told(left_out: &[String]) -> String {
    match left_out {
        [] => String::new(),
        parts => format!("; left out: {}", parts.join("; ")),
    }
}

pub(crate) fn json(files: &SkillFiles, path: &str) -> Result<Value, PluginError> {
    let read = match files.text(path) {
        Some(text) => serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| error.to_string()),
        None => Err("it is not there, or is not text".to_owned()),
    };
    read.map_err(|reason| PluginError::File {
        path: path.to_owned(),
        reason,
    })
}
