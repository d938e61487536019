//! Agents of a plugin: instructions for a kind of work, under a name by which a person calls them.
//!
//! The tools that an agent names are the most that its runs have. Nothing else that it asks for has
//! an effect: no mode, no model, no hook, no right.

use std::{collections::BTreeMap, path::Path};

use gyrus_skills::{SkillFiles, SkillPermission, is_name};
use gyrus_text::{Yaml, YamlNode, parse_yaml, split_front_matter};

use crate::manifest::MAX_PARTS;

/// Maximum length of the instructions in bytes: they are part of every prompt.
const MAX_INSTRUCTIONS: usize = 24 << 10;

/// Maximum length of a description in characters. Longer ones are cut.
const MAX_DESCRIPTION: usize = 1_024;

const KEYS: [&str; 3] = ["name", "description", "tools"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginAgent {
    /// The agent's name: lower-case letters, digits and single hyphens.
    pub name: String,
    /// The agent's description, which says when the agent helps.
    pub description: String,
    pub instructions: String,
    /// The tools to which the agent's runs are limited, besides those that read, ask and finish;
    /// `None` if it names none.
    pub tools: Option<Vec<String>>,
    /// Settings and rights that the agent asks for without effect.
    pub without_effect: Vec<String>,
    /// The path of the agent's file, within the package.
    pub path: String,
}

impl PluginAgent {
    /// Reads the agents in these folders or files, sorted by name. Those that cannot be used are
    /// left out.
    pub(crate) fn read_all(
        files: &SkillFiles,
        places: &[String],
        left_out: &mut Vec<String>,
    ) -> Vec<Self> {
        let is_agent = |path: &str| {
            let below = |place: &String| {
                let rest = path.strip_prefix(place.as_str());
                let file = rest.and_then(|rest| rest.strip_prefix('/'));
                file.is_some_and(|file| !file.contains('/')) || path == place
            };
            path.ends_with(".md") && places.iter().any(below)
        };
        let mut agents = BTreeMap::new();
        for (path, _) in files.iter().filter(|(path, _)| is_agent(path)) {
            if agents.len() == MAX_PARTS {
                left_out.push(format!("agents after the first {MAX_PARTS}"));
                break;
            }
            let text = files.text(path);
            let read =
                text.map_or_else(|| Err("it is not text".to_owned()), |text| read(path, text));
            let kept = read.and_then(|agent| match agents.entry(agent.name.clone()) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(agent);
                    Ok(())
                }
                std::collections::btree_map::Entry::Occupied(_) => {
                    Err("another agent has its name, too".to_owned())
                }
            });
            if let Err(why) = kept {
                left_out.push(format!("the agent `{path}`: {why}"));
            }
        }
        agents.into_values().collect()
    }

    /// Parses the text of an agent whose file has this path.
    ///
    /// # Errors
    /// The reason why the agent cannot be used.
    pub fn read(path: &str, text: &str) -> Result<Self, String> {
        read(path, text)
    }
}

fn read(path: &str, text: &str) -> Result<PluginAgent, String> {
    let (front, body, _) = split_front_matter(text).map_err(|mistake| mistake.to_string())?;
    let root = parse_yaml(front, 2).map_err(|mistake| mistake.to_string())?;
    let Yaml::Map(fields) = root.value else {
        return Err("nothing stands between its lines of `---`".to_owned());
    };
    let field = |name: &str| fields.iter().find(|(_, key, _)| key == name);
    if field("disallowedTools").is_some() {
        return Err(
            "it names tools that its runs must not have, which gyrus cannot hold".to_owned(),
        );
    }
    let said = |name: &str| field(name).and_then(|(_, _, node)| text_of(node));
    let stem = Path::new(path).file_stem().unwrap_or_default();
    let name = said("name").unwrap_or_else(|| stem.to_string_lossy().into_owned());
    if !is_name(&name) {
        return Err(format!(
            "invalid name `{name}`: 1 to 64 small letters, digits and single hyphens"
        ));
    }
    let instructions = body.trim();
    if instructions.is_empty() || instructions.len() > MAX_INSTRUCTIONS {
        return Err(format!(
            "its instructions are empty, or longer than {MAX_INSTRUCTIONS} bytes"
        ));
    }
    let others = fields
        .iter()
        .filter(|(_, key, _)| !KEYS.contains(&key.as_str()));
    let mut without_effect: Vec<String> = others
        .map(|(_, key, node)| match text_of(node) {
            Some(value) => format!("{key}: {value}"),
            None => key.clone(),
        })
        .collect();
    let tools = field("tools").map(|(_, _, node)| {
        let named = SkillPermission::read(&text_of(node).unwrap_or_default());
        for one in &named {
            if let Some(widening) = &one.widening {
                without_effect.push(format!("{widening}, without being asked"));
            } else if let Some(why) = one.no_effect {
                without_effect.push(format!("{}: {why}", one.word));
            }
        }
        let tools = named.into_iter().filter_map(|one| one.tool);
        tools.map(|tool| served_tool(&tool)).collect()
    });
    // All tools, as other agents write it.
    let tools = tools.filter(|tools: &Vec<String>| tools.iter().all(|tool| tool != "*"));
    let description = said("description").unwrap_or_default();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(PluginAgent {
        name,
        description: gyrus_text::shorten(&description, MAX_DESCRIPTION).into_owned(),
        instructions: instructions.to_owned(),
        tools,
        without_effect,
        path: path.to_owned(),
    })
}

/// Returns the name here of a server's tool, which other agents write as `mcp__SERVER__TOOL` and
/// `mcp__plugin_PLUGIN_SERVER__TOOL`.
fn served_tool(tool: &str) -> String {
    let Some(rest) = tool.strip_prefix("mcp__") else {
        return tool.to_owned();
    };
    match rest
        .strip_prefix("plugin_")
        .and_then(|rest| rest.split_once('_'))
    {
        Some((_, rest)) => rest.to_owned(),
        None => rest.to_owned(),
    }
}

fn text_of(node: &YamlNode) -> Option<String> {
    match &node.value {
        Yaml::Text(text, _) => Some(text.clone()),
        Yaml::List(items) => {
            let items: Option<Vec<String>> = items.iter().map(text_of).collect();
            items.map(|items| items.join(", "))
        }
        Yaml::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_narrow_and_nothing_loosens() {
        let text = "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Bash(git diff:*), \
                    mcp__plugin_acme_notes__add, run_as_user\nmodel: opus\npermissionMode: \
                    bypassPermissions\n---\nLook at it.\n";
        let agent = read("agents/reviewer.md", text).unwrap();
        let tools = ["read", "shell", "notes__add"].map(str::to_owned);
        assert_eq!(agent.tools, Some(tools.to_vec()));
        assert_eq!(agent.without_effect.len(), 4, "{:?}", agent.without_effect);
        let open = read("a.md", "---\ndescription: x\n---\nDo.").unwrap();
        assert_eq!((open.name.as_str(), open.tools), ("a", None));
        // Naming only what nobody knows leaves nothing, not everything.
        let none = read("a.md", "---\ntools: sudo\n---\nDo.").unwrap();
        assert_eq!(none.tools, Some(Vec::new()));
        for (text, why) in [
            ("---\nname: ../x\n---\nDo.", "invalid name"),
            ("---\nname: раper\n---\nDo.", "invalid name"),
            ("---\nname: x\n---\n", "are empty"),
            ("---\ndisallowedTools: Bash\n---\nDo.", "must not have"),
            ("no settings", ""),
        ] {
            let refused = read("a.md", text).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
