//! Goals that a person wrote down: `/NAME ARGUMENTS` stands for the text of `commands/NAME.md`, beside
//! the configuration.

use std::{collections::BTreeMap, fs, path::PathBuf};

use gyrus::runtime::Home;
use gyrus_process::read_regular_text;

use crate::failure::Failure;

const FOLDER: &str = "commands";

/// The place of the whole line of arguments in a template.
const ALL: &str = "ARGUMENTS";

struct GoalTemplate {
    description: String,
    arguments: Vec<String>,
    text: String,
}

impl GoalTemplate {
    /// Parses a Markdown text with an optional front matter of `description` and `arguments`.
    fn parse(file: &str) -> Self {
        let file = file.replace("\r\n", "\n");
        let parts = file
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"));
        let (head, text) = parts.unwrap_or(("", &file));
        let value = |key: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            let value = lines.find_map(|(name, value)| (name.trim() == key).then_some(value));
            value
                .unwrap_or_default()
                .trim()
                .trim_matches(['"', '\''])
                .to_owned()
        };
        let names = value("arguments");
        let names = names
            .split([',', ' ', '[', ']'])
            .filter(|name| !name.is_empty());
        Self {
            description: value("description"),
            arguments: names.map(str::to_owned).collect(),
            text: text.trim().to_owned(),
        }
    }

    /// Puts the arguments in their places: `$ARGUMENTS` is all of them, `$1` the first, and `$NAME` one
    /// that the front matter names or that is given as `NAME=VALUE`.
    fn fill(&self, name: &str, given: &str) -> Result<String, Failure> {
        let words =
            shlex::split(given).ok_or_else(|| Failure::usage("a quotation mark is not closed"))?;
        let mut values = BTreeMap::new();
        let mut placed = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some((key, value)) if self.has_place(key) => {
                    values.insert(key.to_owned(), value.to_owned());
                }
                _ => placed.push(word),
            }
        }
        let mut rest = placed.iter();
        for key in &self.arguments {
            if !values.contains_key(key) {
                let value = rest.next().ok_or_else(|| {
                    let usage = self.arguments.join(" ");
                    Failure::usage(format!("`/{name}` needs `{key}`"))
                        .hint(format!("/{name} {usage}"))
                })?;
                values.insert(key.clone(), value.clone());
            }
        }
        values.insert(ALL.to_owned(), given.to_owned());
        let mut used = false;
        let mut filled = String::new();
        let mut pieces = self.text.split('$');
        filled.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (key, after) = piece.split_at(end.unwrap_or(piece.len()));
            let value = match key.parse::<usize>() {
                Ok(place @ 1..) => Some(placed.get(place - 1).map_or("", String::as_str)),
                _ => values.get(key).map(String::as_str),
            };
            used |= value.is_some();
            match value {
                Some(value) => filled.push_str(value),
                None => filled.extend(["$", key]),
            }
            filled.push_str(after);
        }
        if !used && !given.is_empty() {
            filled.extend(["\n\n", given]);
        }
        Ok(filled)
    }

    fn has_place(&self, key: &str) -> bool {
        let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_key
            && (self.arguments.iter().any(|name| name == key)
                || self.text.contains(&format!("${key}")))
    }
}

/// Returns the goal that a line stands for; `None` if it begins with the name of no template.
pub(crate) fn goal(home: &Home, line: &str) -> Result<Option<String>, Failure> {
    let Some(line) = line.trim().strip_prefix('/') else {
        return Ok(None);
    };
    let (name, given) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(is_name) {
        return Ok(None);
    }
    let path = folder(home).join(format!("{name}.md"));
    let Ok(file) = read_regular_text(&path) else {
        return Ok(None);
    };
    let goal = GoalTemplate::parse(&file).fill(name, given.trim())?;
    if goal.is_empty() {
        return Err(Failure::usage(format!("{} is empty", path.display())));
    }
    Ok(Some(goal))
}

pub(crate) fn names(home: &Home) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder(home)).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_suffix(".md")?.to_owned();
        Some((
            name,
            GoalTemplate::parse(&read_regular_text(&entry.path()).ok()?).description,
        ))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

fn folder(home: &Home) -> PathBuf {
    home.config.with_file_name(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(file: &str, given: &str) -> Result<String, Failure> {
        GoalTemplate::parse(file).fill("fix", given)
    }

    #[test]
    fn arguments_stand_in_their_places() {
        let named = "---\ndescription: Fix an issue\narguments: [issue, branch]\n---\nFix $issue on $branch.\n";
        assert_eq!(fill(named, "12 main").unwrap(), "Fix 12 on main.");
        assert_eq!(
            fill(named, "branch=dev \"the long one\"").unwrap(),
            "Fix the long one on dev."
        );
        let missing = fill(named, "12").unwrap_err();
        assert_eq!(missing.message, "`/fix` needs `branch`");
        assert_eq!(
            fill("Say $ARGUMENTS; $2 $1 costs $5, $x.", "a b").unwrap(),
            "Say a b; b a costs , $x."
        );
        assert_eq!(fill("Greet $WHO.", "WHO=Ada a=b").unwrap(), "Greet Ada.");
        assert_eq!(fill("Look.", "at a=b").unwrap(), "Look.\n\nat a=b");
        assert!(fill("Look $1", "\"open").is_err());
        assert_eq!(GoalTemplate::parse("---\nno end").text, "---\nno end");
    }
}
