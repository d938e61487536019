//! The table of control files: which names are obeyed, by which program, and when.

use std::{collections::HashMap, path::Path, sync::OnceLock};

use gyrus_text::fits;
use serde::Deserialize;

const EMBEDDED: &str = include_str!("control_files.toml");

/// Moment at which a program obeys a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Acts {
    /// A shell enters the folder.
    Enter,
    /// The next git command.
    Git,
    /// An editor or an agent opens the folder.
    Open,
    /// When a coding agent reads the file as instructions.
    Agent,
    /// An editor opens or saves a file.
    Save,
    /// When a program is started for another purpose.
    Start,
    /// When a service processes pushed files.
    Push,
}

impl Acts {
    /// Whether files in folders of build output count, too: nobody edits, pushes or starts anything
    /// from there, and packages bring such files along.
    pub(super) fn in_build_output(self) -> bool {
        match self {
            Acts::Enter | Acts::Git | Acts::Open => true,
            Acts::Agent | Acts::Save | Acts::Start | Acts::Push => false,
        }
    }
}

/// Whether a new file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum New {
    /// A new file counts everywhere.
    #[default]
    Anywhere,
    /// A new file counts unless its folder is new, too.
    KnownFolder,
}

/// A program with the files that it obeys, as written in the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    by: String,
    does: String,
    acts: Acts,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    stems: Vec<String>,
    #[serde(default)]
    folders: Vec<String>,
    #[serde(default)]
    new: New,
    /// A link for readers of the table.
    #[serde(default, rename = "docs")]
    _docs: Option<String>,
    #[serde(default, rename = "test")]
    _test: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTable {
    #[serde(default)]
    tool: Vec<TableRow>,
}

/// A program that obeys files.
#[derive(Debug, Clone)]
pub(crate) struct ControlTool {
    /// Name of the program and what it does, as a phrase: "direnv, which runs it when …".
    pub(crate) obeyed_by: String,
    pub(crate) acts: Acts,
    pub(crate) new: New,
}

/// Part of a path that a pattern must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Covers {
    File,
    /// The end of the path, with any extension.
    Stem,
    /// Any part of the path, with everything below.
    Folder,
}

#[derive(Debug, Clone)]
struct ControlPattern {
    /// Neighbouring parts of a path, in lower case.
    parts: Vec<String>,
    covers: Covers,
    tool: usize,
}

impl ControlPattern {
    /// Whether the pattern matches the parts of a path from here on.
    fn fits(&self, path: &[String]) -> bool {
        let Some((last, leading)) = self.parts.split_last() else {
            return false;
        };
        let at_end = path.len() == self.parts.len();
        if path.len() < self.parts.len() || (self.covers != Covers::Folder && !at_end) {
            return false;
        }
        let end = &path[leading.len()];
        leading.iter().zip(path).all(|(one, part)| fits(one, part))
            && (fits(last, end)
                || (self.covers == Covers::Stem && stems(end).any(|stem| stem == last)))
    }
}

/// Extensions of sources, documents and pictures, which are never settings.
const NOT_SETTINGS: [&str; 18] = [
    "rs", "go", "c", "h", "cc", "cpp", "java", "kt", "swift", "md", "rst", "txt", "html", "css",
    "svg", "png", "snap", "log",
];

/// Returns the name without one or more extensions, if it may be one of settings.
fn stems(name: &str) -> impl Iterator<Item = &str> {
    let ending = name.rsplit('.').next().unwrap_or_default();
    let is_one = !NOT_SETTINGS.contains(&ending);
    let dots = name.match_indices('.').filter(move |_| is_one);
    dots.map(|(at, _)| &name[..at])
}

/// Names that programs obey.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlTable {
    tools: Vec<ControlTool>,
    /// Patterns by their first part; those with a star in it stand under the empty text.
    patterns: HashMap<String, Vec<ControlPattern>>,
    /// Beginnings of patterns with several parts.
    leading: Vec<Vec<String>>,
}

impl ControlTable {
    /// Parses a table.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let written: WrittenTable = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut table = Self::default();
        for tool in written.tool {
            let index = table.tools.len();
            let lists = [
                (&tool.files, Covers::File),
                (&tool.stems, Covers::Stem),
                (&tool.folders, Covers::Folder),
            ];
            if lists.iter().all(|(names, _)| names.is_empty()) {
                return Err(format!("`{}` has no names", tool.by));
            }
            for (names, covers) in lists {
                for name in names {
                    table.add(name, covers, index)?;
                }
            }
            table.tools.push(ControlTool {
                obeyed_by: format!("{}, which {}", tool.by, tool.does),
                acts: tool.acts,
                new: tool.new,
            });
        }
        Ok(table)
    }

    /// Returns a table with one name that a policy lists, including everything below it.
    pub(crate) fn listed(name: &str) -> Result<Self, String> {
        let mut table = Self::default();
        table.add(name.trim_end_matches('/'), Covers::Folder, 0)?;
        table.tools.push(ControlTool {
            obeyed_by: "something that your policy knows of".to_owned(),
            acts: Acts::Enter,
            new: New::Anywhere,
        });
        Ok(table)
    }

    fn add(&mut self, name: &str, covers: Covers, tool: usize) -> Result<(), String> {
        let parts: Vec<String> = name.to_lowercase().split('/').map(str::to_owned).collect();
        let wrong = |part: &String| part.is_empty() || part == "." || part == "..";
        if parts.iter().any(wrong) || parts.iter().all(|part| part == "*") {
            return Err(format!("`{name}` names no file below a workspace"));
        }
        let has_star = parts[0].contains('*');
        let first = if has_star {
            String::new()
        } else {
            parts[0].clone()
        };
        if parts.len() > 1 {
            self.leading
                .extend((1..parts.len()).map(|end| parts[..end].to_vec()));
        }
        self.patterns
            .entry(first)
            .or_default()
            .push(ControlPattern {
                parts,
                covers,
                tool,
            });
        Ok(())
    }

    /// Returns a table with the names of both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.tools.extend(other.tools.iter().cloned());
        both.leading.extend(other.leading.iter().cloned());
        for (first, patterns) in &other.patterns {
            let moved = patterns.iter().cloned().map(|pattern| ControlPattern {
                tool: pattern.tool + self.tools.len(),
                ..pattern
            });
            both.patterns
                .entry(first.clone())
                .or_default()
                .extend(moved);
        }
        both
    }

    /// Returns the programs that obey a file at this path, by its name.
    pub(crate) fn find<'a>(&'a self, path: &[String]) -> impl Iterator<Item = &'a ControlTool> {
        let mut found = Vec::new();
        for start in 0..path.len() {
            let rest = &path[start..];
            let firsts = [path[start].as_str(), ""].into_iter();
            for first in firsts.chain(stems(&path[start]).filter(|stem| !stem.is_empty())) {
                let patterns = self.patterns.get(first).into_iter().flatten();
                found.extend(patterns.filter(|one| one.fits(rest)).map(|one| one.tool));
            }
        }
        found.into_iter().map(|tool| &self.tools[tool])
    }

    /// Whether programs look for files below a folder of this name, so that a link in its place
    /// redirects them.
    pub(crate) fn leads_to(&self, path: &[String]) -> bool {
        self.leading.iter().any(|leading| {
            let end = path.len().checked_sub(leading.len());
            end.is_some_and(|end| {
                leading
                    .iter()
                    .zip(&path[end..])
                    .all(|(one, part)| fits(one, part))
            })
        })
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> usize {
        self.patterns.values().map(Vec::len).sum()
    }
}

pub(crate) fn embedded() -> &'static ControlTable {
    static TABLE: OnceLock<ControlTable> = OnceLock::new();
    TABLE.get_or_init(|| ControlTable::parse(EMBEDDED).expect("the tests read the table, too"))
}

/// The parts of a path in lower case, in which names are compared.
pub(crate) fn parts(path: &Path) -> Vec<String> {
    path.iter()
        .map(|part| part.to_string_lossy().to_lowercase())
        .collect()
}

/// The program that obeys a file at this path, absolute or below a workspace or a repository's
/// root, by its name alone; `None` for ordinary files.
pub(crate) fn obeyed_by(path: &Path) -> Option<&'static str> {
    let tool = embedded().find(&parts(path)).next()?;
    Some(&tool.obeyed_by)
}
