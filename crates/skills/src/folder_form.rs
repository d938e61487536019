//! A skill as a folder with a `SKILL.md`: settings at its head, instructions below them. What this
//! form has no field for stands in its `metadata`, so that the skill is valid everywhere.
//! Source: <https://agentskills.io/specification>.

use gyrus_text::{FileMistake, Yaml, YamlNode, parse_yaml, split_front_matter};

use crate::skill::Draft;

const KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// Parses a `SKILL.md`. The skill has the name of its folder.
pub(crate) fn read(text: &str, folder: &str) -> Result<Draft, Vec<FileMistake>> {
    let refuse = |mistake| vec![mistake];
    let (front, body, line) = split_front_matter(text).map_err(refuse)?;
    let mut draft = Draft {
        instructions: (line, body.to_owned()),
        ..Draft::default()
    };
    let root = parse_yaml(front, 2).map_err(refuse)?;
    for (line, key, node) in fields(root, &mut draft) {
        match key.as_str() {
            "metadata" => metadata(node, &mut draft),
            key if KEYS.contains(&key) => {
                let Some(text) = text_of(key, node, &mut draft) else {
                    continue;
                };
                match key {
                    "name" => draft.name = Some((line, text)),
                    "description" => draft.description = Some((line, text)),
                    "allowed-tools" => {
                        draft.permissions.push_str(&format!("{text}\n"));
                    }
                    _ => {}
                }
            }
            key => {
                let nearest = gyrus_text::closest(key, KEYS).map(str::to_owned);
                draft.mistakes.push(FileMistake {
                    line,
                    message: format!(
                        "there is no setting `{key}`; further ones belong under `metadata`"
                    ),
                    nearest,
                });
            }
        }
    }
    if let Some((line, name)) = &draft.name
        && name != folder
    {
        let (line, message) = (
            *line,
            format!("`name` is `{name}`, but its folder is `{folder}`"),
        );
        draft.mistake(line, message);
    }
    Ok(draft)
}

pub(crate) fn declared_name(text: &str) -> Option<String> {
    let (front, _, line) = split_front_matter(text).ok()?;
    let Yaml::Map(fields) = parse_yaml(front, line).ok()?.value else {
        return None;
    };
    let mut values = fields.into_iter().filter(|(_, key, _)| key == "name");
    match values.next()?.2.value {
        Yaml::Text(name, _) => Some(name),
        Yaml::List(_) | Yaml::Map(_) => None,
    }
}

fn fields(node: YamlNode, draft: &mut Draft) -> Vec<(usize, String, YamlNode)> {
    match node.value {
        Yaml::Map(fields) => fields,
        Yaml::Text(..) | Yaml::List(_) => {
            draft.mistake(node.line, "there are no `key: value`");
            Vec::new()
        }
    }
}

fn text_of(key: &str, node: YamlNode, draft: &mut Draft) -> Option<String> {
    match node.value {
        Yaml::Text(text, _) => Some(text),
        Yaml::List(_) | Yaml::Map(_) => {
            draft.mistake(node.line, format!("invalid `{key}`: it is not a text"));
            None
        }
    }
}

/// Reads `triggers` (a regular expression a line), `max-steps` and `permissions`; leaves the rest
/// to other programs.
fn metadata(node: YamlNode, draft: &mut Draft) {
    for (line, key, node) in fields(node, draft) {
        let Some(text) = text_of(&key, node, draft) else {
            continue;
        };
        match key.as_str() {
            "triggers" => {
                let given = text.lines().map(str::trim).filter(|one| !one.is_empty());
                draft
                    .triggers
                    .extend(given.map(|one| (line, one.to_owned())));
            }
            "max-steps" => draft.max_steps = Some((line, text)),
            "permissions" => {
                draft.permissions.push_str(&format!("{text}\n"));
            }
            _ => {}
        }
    }
}
