//! Roles of sub-runs: files among those of agents that have a description and no folder to work in, as
//! other agents write theirs. Those of a project count once a person agreed to exactly these texts.

use std::{collections::BTreeMap, path::Path};

use gyrus::runtime::Home;
use gyrus_contract::{Digest, Grant};
use gyrus_loops::SubRunRole;
use gyrus_text::{Yaml, YamlNode, parse_yaml, split_front_matter};

use super::places::{MAX_FILE, folder, paths};

/// The folder of a project with its roles.
const OF_PROJECT: &str = ".claude/agents";

/// Maximum number of roles that a run may give.
const MAX_ROLES: usize = 20;

/// Maximum size of the instructions of a role in bytes: each stands in the first entry of every run.
const MAX_INSTRUCTIONS: usize = 16 << 10;

/// Whether a file describes a role rather than an agent that works by itself.
pub(super) fn is_role(path: &Path) -> bool {
    gyrus_process::read_regular_text(path)
        .ok()
        .and_then(|text| {
            let (front, ..) = split_front_matter(&text).ok()?;
            fields(front)
        })
        .is_some_and(|fields| is_role_with(&fields))
}

fn is_role_with(fields: &BTreeMap<String, YamlNode>) -> bool {
    fields.contains_key("description") && !fields.contains_key("workdir")
}

/// The roles of a folder, and of each file that cannot be one the reason.
pub(crate) type ReadRoles = (BTreeMap<String, SubRunRole>, Vec<String>);

pub(crate) fn roles(home: &Home) -> ReadRoles {
    roles_in(&folder(home))
}

/// Reads the roles that a project proposes. Which model one costs is not for a project to say.
pub(crate) fn proposed_roles(workspace: &Path) -> ReadRoles {
    let (mut roles, wrong) = roles_in(&workspace.join(OF_PROJECT));
    roles.values_mut().for_each(|role| role.model = None);
    (roles, wrong)
}

/// Returns the grant by which a person says whether sub-runs follow these roles of a project.
pub(crate) fn grant_of_roles(roles: &BTreeMap<String, SubRunRole>, instruct: bool) -> Grant {
    Grant::Guidelines {
        content: Digest::of_json(roles),
        instruct,
    }
}

fn roles_in(folder: &Path) -> ReadRoles {
    let (mut roles, mut wrong) = (BTreeMap::new(), Vec::new());
    for path in paths(folder).unwrap_or_default() {
        if !is_role(&path) {
            continue;
        }
        let read = if roles.len() < MAX_ROLES {
            read(&path)
        } else {
            Err(format!("there are more than {MAX_ROLES}"))
        };
        match read {
            Ok((name, role)) => {
                roles.entry(name).or_insert(role);
            }
            Err(why) => wrong.push(format!("the role {} is not used: {why}", path.display())),
        }
    }
    (roles, wrong)
}

fn read(path: &Path) -> Result<(String, SubRunRole), String> {
    let text = gyrus_process::read_regular_text(path).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE {
        return Err(format!("it is larger than {MAX_FILE} bytes"));
    }
    let (front, body, _) = split_front_matter(&text).map_err(|mistake| mistake.to_string())?;
    let fields = fields(front).ok_or("its settings cannot be read")?;
    let text = |key: &str| match fields.get(key).map(|node| &node.value) {
        Some(Yaml::Text(text, _)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        _ => None,
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = text("name").unwrap_or_else(|| stem.into_owned());
    let is_letter = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_letter) {
        return Err("its name is not one word".to_owned());
    }
    let body = body.trim();
    if body.len() > MAX_INSTRUCTIONS {
        return Err(format!("its text is longer than {MAX_INSTRUCTIONS} bytes"));
    }
    let effort = text("effort").map(|word| word.parse());
    let steps = text("max-steps").or_else(|| text("maxTurns"));
    let steps = steps.map(|text| text.parse().map_err(|_| "`max-steps` is not a number"));
    let role = SubRunRole {
        description: text("description").unwrap_or_default(),
        instructions: body.to_owned(),
        tools: fields.get("tools").map(|node| tools(&node.value)),
        model: text("model").filter(|name| name != "inherit"),
        effort: effort.transpose()?,
        steps: steps.transpose()?,
    };
    Ok((name, role))
}

/// Returns the names of tools: a list, or one text with commas. A rule in brackets behind a name is
/// no limit here: the gate judges each call.
fn tools(value: &Yaml) -> Vec<String> {
    let texts: Vec<&str> = match value {
        Yaml::Text(text, _) => text.split(',').collect(),
        Yaml::List(items) => {
            let items = items.iter().map(|item| match &item.value {
                Yaml::Text(text, _) => text.as_str(),
                Yaml::List(_) | Yaml::Map(_) => "",
            });
            items.collect()
        }
        Yaml::Map(_) => Vec::new(),
    };
    let names = texts.into_iter().map(|text| {
        let name = text.split_once('(').map_or(text, |(name, _)| name);
        name.trim().to_owned()
    });
    names.filter(|name| !name.is_empty()).collect()
}

fn fields(front: &str) -> Option<BTreeMap<String, YamlNode>> {
    match parse_yaml(front, 2).ok()?.value {
        Yaml::Map(fields) => Some(
            fields
                .into_iter()
                .map(|(_, key, node)| (key, node))
                .collect(),
        ),
        Yaml::Text(..) | Yaml::List(_) => None,
    }
}
