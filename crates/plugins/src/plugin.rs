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

/// Maximum number of characters of a description on display.
const MAX_DESCRIPTION: usize = 300;

/// Scripts that npm runs by itself when a package is installed or packed.
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

/// Parts that other agents use and gyrus does not: the name, the key in the manifest, and the file
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
    /// The plugin's name here: lower-case letters, digits and single hyphens.
    pub name: String,
    /// The name in the plugin's manifest, as npm uses it.
    pub given_name: String,
    /// The version in the plugin's manifest.
    pub version: Option<String>,
    /// The description in the plugin's manifest; empty if there is none.
    pub description: String,
    /// The plugin's skills, sorted by name.
    pub skills: Vec<PackagedSkill>,
    /// The plugin's agents, sorted by name.
    pub agents: Vec<PluginAgent>,
    /// The plugin's servers, sorted by name.
    pub servers: Vec<PluginServer>,
    /// Scripts that npm would run, with their command lines; they are never run.
    pub scripts: Vec<(String, String)>,
    /// The npm packages on which the plugin depends, with the accepted versions.
    pub dependencies: BTreeMap<String, String>,
    /// The plugin's parts without effect here, each with the reason.
    pub left_out: Vec<String>,
    pub files: SkillFiles,
}

impl Plugin {
    /// Reads a plugin out of the files of a package.
    ///
    /// # Errors
    /// The package contains no part of a plugin, or an invalid one.
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

    /// Whether a server of the plugin needs packages that npm fetches.
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
