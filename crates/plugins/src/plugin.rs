//! The parts of a package: read from its manifest and from the folders that it names.

use std::collections::BTreeMap;

use gyrus_skills::{
    PackagedSkill, SkillFiles, manifest_path, manifest_places, packaged_skills, plugin_name,
};
use serde_json::Value;

use crate::{
    agent::PluginAgent,
    manifest::{PluginError, json},
    server,
    server::PluginServer,
};

pub(crate) const NPM_MANIFEST: &str = "package.json";

/// Maximum length of a description that is shown, in characters.
const MAX_DESCRIPTION: usize = 300;

/// Scripts that npm would run by itself when a package is installed or packed.
const LIFECYCLE: [&str; 8] = [
    "preinstall",
    "install",
    "postinstall",
    "prepublish",
    "preprepare",
    "prepare",
    "postprepare",
    "prepack",
];

/// Parts that other agents know and gyrus does not: the name, the key in the manifest, and the file
/// or folder.
const UNKNOWN_PARTS: [(&str, &str, &str); 8] = [
    ("commands", "commands", "commands"),
    ("hooks", "hooks", "hooks"),
    ("language servers", "lspServers", ".lsp.json"),
    ("output styles", "outputStyles", "output-styles"),
    ("monitors", "monitors", "monitors"),
    ("workflows", "workflows", "workflows"),
    ("themes", "themes", "themes"),
    ("settings", "settings", "settings.json"),
];

#[derive(Debug)]
pub struct Plugin {
    /// Its name here: lower-case letters, digits and single hyphens.
    pub name: String,
    /// The name that it gives itself, as npm knows it.
    pub given_name: String,
    /// Its version, as it says.
    pub version: Option<String>,
    /// Its purpose, as it says; empty if it does not say.
    pub description: String,
    /// Its skills, sorted by name.
    pub skills: Vec<PackagedSkill>,
    /// Its agents, sorted by name.
    pub agents: Vec<PluginAgent>,
    /// Its servers, sorted by name.
    pub servers: Vec<PluginServer>,
    /// Scripts that npm would run, with their command lines. They are never run.
    pub scripts: Vec<(String, String)>,
    /// The npm packages that it depends on, with the versions that it takes.
    pub dependencies: BTreeMap<String, String>,
    /// Its parts that have no effect here, each with the reason.
    pub left_out: Vec<String>,
    pub files: SkillFiles,
}

impl Plugin {
    /// Reads a plugin out of the files of a package.
    ///
    /// # Errors
    /// It brings nothing, or something in it is not in order.
    pub fn read(files: SkillFiles) -> Result<Self, PluginError> {
        let wrong = |path: &str, reason: String| PluginError::File {
            path: path.to_owned(),
            reason,
        };
        let Some(path) = manifest_path(&files) else {
            let reason = "it is not there; a plugin has it, plugin.json or package.json";
            return Err(wrong(".claude-plugin/plugin.json", reason.to_owned()));
        };
        let manifest = json(&files, path)?;
        let npm = if files.get(NPM_MANIFEST).is_some() {
            json(&files, NPM_MANIFEST)?
        } else {
            Value::Null
        };
        let given_name = manifest["name"].as_str().unwrap_or_default().to_owned();
        let Some(name) = plugin_name(&given_name) else {
            let what = format!(
                "invalid name `{given_name}`: 1 to 64 small letters, digits and single hyphens"
            );
            return Err(wrong(path, what));
        };
        let mut left_out = Vec::new();
        let skills = packaged_skills(&files, (path, &manifest))?;
        let places = manifest_places(&manifest, "agents").map_err(|reason| wrong(path, reason))?;
        let agents = PluginAgent::read_all(&files, &places, &mut left_out);
        let mut servers = server::read_all(&files, (path, &manifest), &mut left_out)?;
        if servers.is_empty() {
            servers = server::of_programs(&npm, &files, &mut left_out);
        }
        for (what, key, place) in UNKNOWN_PARTS {
            let is_below = || !files.below(place).is_empty();
            if !manifest[key].is_null() || files.get(place).is_some() || is_below() {
                left_out.push(format!("{what}: gyrus does not know them"));
            }
        }
        if skills.is_empty() && agents.is_empty() && servers.is_empty() {
            return Err(PluginError::Empty { name, left_out });
        }
        let text = |key: &str| {
            let said = [&manifest, &npm]
                .into_iter()
                .find_map(|one| one[key].as_str());
            said.map(str::to_owned)
        };
        Ok(Self {
            name,
            given_name,
            version: text("version"),
            description: gyrus_text::shorten(
                &text("description").unwrap_or_default(),
                MAX_DESCRIPTION,
            )
            .into_owned(),
            skills,
            agents,
            servers,
            scripts: scripts(&npm),
            dependencies: texts(&npm["dependencies"]),
            left_out,
            files,
        })
    }

    /// Whether a server of it needs packages that npm fetches.
    pub fn needs_dependencies(&self) -> bool {
        !self.dependencies.is_empty() && self.servers.iter().any(|server| server.is_inside)
    }
}

fn scripts(npm: &Value) -> Vec<(String, String)> {
    let scripts = texts(&npm["scripts"]).into_iter();
    let scripts = scripts.filter(|(name, _)| LIFECYCLE.contains(&name.as_str()));
    scripts.collect()
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    let pairs = pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    pairs.collect()
}
