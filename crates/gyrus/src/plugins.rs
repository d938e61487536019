//! The installed plugins: whether the person agreed to what they are now, and their servers and
//! agents.
//!
//! The person's word about a plugin is bound to the hash of all its files. Its skills have pins of
//! their own, as those of any package.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gyrus::runtime::Home;
use gyrus_contract::{Digest, FollowedSkill, Grant, Origin, Text};
use gyrus_kernel::{Attachment, grants};
use gyrus_plugins::{InstalledPlugin, Plugin, PluginAgent};
use gyrus_text::closest;

use crate::{failure::Failure, skill_places};

pub(crate) struct PluginInPlace {
    pub(crate) name: String,
    /// The folder of the plugin's package.
    pub(crate) package: PathBuf,
    /// The plugin as the person agreed to it, or the reason why nothing of it is used.
    pub(crate) plugin: Result<Plugin, String>,
}

pub(crate) fn all(home: &Home) -> Result<Vec<PluginInPlace>, Failure> {
    let folder = skill_places::installed_folder(home);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| InstalledPlugin::is_in(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    let standing = names.into_iter().map(|name| standing(home, name));
    standing.collect()
}

fn standing(home: &Home, name: String) -> Result<PluginInPlace, Failure> {
    let folder = skill_places::installed_folder(home).join(&name);
    let agreed = grants::in_folder(&home.store()?, &folder)?;
    let plugin = match InstalledPlugin::read(&folder) {
        Ok(read) if read.plugin.name != name => Err("its name is another one now".to_owned()),
        Ok(read) if agreed.iter().any(|one| one.grant == pin(&read.digest)) => Ok(read.plugin),
        Ok(_) => Err("its files have changed since you agreed to it".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    Ok(PluginInPlace {
        name,
        package: folder.join(gyrus_plugins::PACKAGE),
        plugin,
    })
}

/// Returns the grant that allows runs to use the servers and agents of a plugin whose files have
/// this hash.
pub(crate) fn pin(digest: &str) -> Grant {
    Grant::Servers {
        content: Digest::of_json(&digest),
    }
}

impl PluginInPlace {
    /// Returns a note with the reason why nothing of the plugin is used, if so.
    pub(crate) fn note(&self) -> Option<String> {
        let why = self.plugin.as_ref().err()?;
        let name = &self.name;
        Some(format!(
            "the plugin `{name}` is not used: {why}; install it again: gyrus plugins install"
        ))
    }
}

/// Whether `--agent` names an agent of a plugin: `PLUGIN:AGENT`.
pub(crate) fn names_agent(name: &str) -> bool {
    name.contains(':')
}

/// Returns the instructions of a plugin's agent, and the limits that it sets to a run.
///
/// # Errors
/// There is no such agent, or its plugin is not used.
pub(crate) fn agent(home: &Home, named: &str) -> Result<(Attachment, FollowedSkill), Failure> {
    let (of, name) = named.split_once(':').unwrap_or((named, ""));
    let mut known = Vec::new();
    for standing in all(home)? {
        let note = standing.note();
        match standing.plugin {
            Ok(plugin) if standing.name == of => {
                if let Some(agent) = plugin.agents.iter().find(|agent| agent.name == name) {
                    return Ok(followed(named, agent));
                }
                known.extend(
                    plugin
                        .agents
                        .iter()
                        .map(|agent| format!("{of}:{}", agent.name)),
                );
            }
            Ok(plugin) => {
                let agents = plugin.agents.iter();
                known.extend(agents.map(|agent| format!("{}:{}", plugin.name, agent.name)));
            }
            Err(_) if standing.name == of => {
                return Err(Failure::usage(note.unwrap_or_default()));
            }
            Err(_) => {}
        }
    }
    let near = closest(named, known.iter().map(String::as_str));
    Err(
        Failure::usage(format!("no plugin has the agent `{named}`")).hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "to see all: gyrus plugins list".to_owned(),
        }),
    )
}

/// Returns an agent as instructions and limits, as for a skill without any grants.
fn followed(named: &str, agent: &PluginAgent) -> (Attachment, FollowedSkill) {
    let text = if agent.description.is_empty() {
        agent.instructions.clone()
    } else {
        format!("{}\n\n{}", agent.description, agent.instructions)
    };
    let origin = Origin::Skill {
        name: named.to_owned(),
        why: "you named it as the agent".to_owned(),
    };
    let followed = FollowedSkill {
        name: named.to_owned(),
        content: Digest::of_json(&text),
        folder: None,
        tools: agent.tools.clone(),
        grants: Vec::new(),
    };
    (Attachment::Text(Text::new(text, origin)), followed)
}

/// Returns the folder under which a person's decision about a plugin is stored.
pub(crate) fn scope(home: &Home, name: &str) -> PathBuf {
    skill_places::installed_folder(home).join(name)
}

/// Returns a line for each plugin that is not used; empty if there is nothing to say.
pub(crate) fn doubts(home: &Home) -> Result<(usize, Vec<String>), Failure> {
    let all = all(home)?;
    let notes = all.iter().filter_map(PluginInPlace::note).collect();
    Ok((all.len(), notes))
}

pub(crate) fn is_installed(home: &Home, name: &str) -> bool {
    Path::new(name).components().count() == 1
        && !name.starts_with('.')
        && InstalledPlugin::is_in(&scope(home, name))
}
