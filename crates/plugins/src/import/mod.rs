//! Servers, skills and agents that other agents have on this machine, and the guidelines of a folder.
//!
//! Only usual places are looked at, and files there are untrusted: what is too large, broken or of
//! another kind is one line among what is left out, and the rest goes on. Nothing is written here.
//! Permissions, hooks and whatever else decides what may be done are never taken over.

mod places;
mod servers;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_process::read_regular_text;
use gyrus_skills::{Package, PackagedSkill, SKILL_FILE, Severity, SkillFiles, scan};

pub use places::{ImportSource, SOURCES};
pub use servers::FoundServer;

use self::{
    places::{ImportPlace, PathRoot, PlaceKind, ServerFileShape},
    servers::read_servers,
};
use crate::agent::PluginAgent;

/// Maximum size of a file of another agent in bytes.
const MAX_FILE: u64 = 8 << 20;

/// Maximum number of entries of a folder that are examined.
const MAX_ENTRIES: usize = 500;

/// The folders that are searched.
#[derive(Debug, Clone, Copy)]
pub struct ImportFolders<'a> {
    pub home: &'a Path,
    /// The folder in which the person works.
    pub folder: &'a Path,
}

/// Everything found of one other agent.
#[derive(Debug)]
pub struct ImportFound {
    /// The other agent.
    pub source: &'static ImportSource,
    /// Servers that gyrus can have.
    pub servers: Vec<FoundServer>,
    /// Skills, after their check.
    pub skills: Vec<PackagedSkill>,
    /// Agents, each with its text.
    pub agents: Vec<(PluginAgent, String)>,
    /// Guidelines for the folder: each with its path.
    pub guidelines: Vec<(PathBuf, String)>,
    /// Other things that are not imported, each with the reason.
    pub left_out: Vec<String>,
}

/// Searches the places of one agent. Files of the folder, which others may have written, are read
/// only if the person named the agent.
pub fn look(source: &'static ImportSource, around: ImportFolders<'_>, named: bool) -> ImportFound {
    let mut found = ImportFound {
        source,
        servers: Vec::new(),
        skills: Vec::new(),
        agents: Vec::new(),
        guidelines: Vec::new(),
        left_out: Vec::new(),
    };
    for place in source.places {
        let path = match place.root {
            PathRoot::Home => around.home.join(place.path),
            PathRoot::Folder => around.folder.join(place.path),
        };
        if fs::symlink_metadata(&path).is_err() {
            continue;
        }
        if matches!(place.root, PathRoot::Folder)
            && !named
            && !matches!(place.form, PlaceKind::Rules)
        {
            found.left_out.push(format!(
                "{}: it is this folder's; to take it, name it: gyrus import {}",
                path.display(),
                source.name
            ));
            continue;
        }
        found.take(place, &path);
    }
    found
}

impl ImportFound {
    /// Whether the search found nothing to import.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
            && self.skills.is_empty()
            && self.agents.is_empty()
            && self.guidelines.is_empty()
            && self.left_out.is_empty()
    }

    fn take(&mut self, place: &ImportPlace, path: &Path) {
        let shown = path.display();
        match place.form {
            PlaceKind::Servers(shape) => match text(path) {
                Ok(text) => self.servers(shape, &text, path),
                Err(error) => self.left_out.push(format!("{shown}: {error}")),
            },
            PlaceKind::Skills => self.each(path, Self::skill),
            PlaceKind::Agents => self.each(path, Self::agent),
            PlaceKind::Rules => self.rules(path),
            PlaceKind::Unknown(why) => self.left_out.push(format!("{shown}: {why}")),
        }
    }

    fn servers(&mut self, shape: ServerFileShape, text: &str, path: &Path) {
        let shown = path.display();
        for read in read_servers(shape, text) {
            let server = match read {
                Ok(server) => server,
                Err(why) => {
                    self.left_out.push(format!("{shown}: {why}"));
                    continue;
                }
            };
            let mut known = self.servers.iter();
            match known.find(|known| known.name == server.name) {
                Some(known) if *known == server => {}
                Some(_) => self.left_out.push(format!(
                    "{shown}: another server is called `{}`, too",
                    server.name
                )),
                None => self.servers.push(server),
            }
        }
    }

    /// Calls `take` with every entry of a folder that is not hidden.
    fn each(&mut self, folder: &Path, take: fn(&mut Self, &Path) -> Result<(), String>) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()),
            Err(error) => return self.left_out.push(format!("{}: {error}", folder.display())),
        };
        let is_hidden = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.as_encoded_bytes().starts_with(b".")
        };
        let mut entries: Vec<PathBuf> = entries
            .filter(|path| !is_hidden(path))
            .take(MAX_ENTRIES)
            .collect();
        entries.sort();
        for path in entries {
            if let Err(why) = take(self, &path) {
                self.left_out.push(format!("{}: {why}", path.display()));
            }
        }
    }

    fn skill(&mut self, path: &Path) -> Result<(), String> {
        if !path.join(SKILL_FILE).exists() {
            return Err(format!("there is no {SKILL_FILE} in it"));
        }
        let package = Package::read(path).map_err(|error| error.to_string())?;
        for one in package.skills {
            let findings = scan(&one.files);
            if let Some(worst) = findings
                .iter()
                .find(|one| one.severity == Severity::Refused)
            {
                return Err(worst.to_string());
            }
            self.skills.push(one);
        }
        Ok(())
    }

    fn agent(&mut self, path: &Path) -> Result<(), String> {
        if path.extension().is_none_or(|end| end != "md") {
            return Err("it is not an agent".to_owned());
        }
        let text = text(path).map_err(|error| error.to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let agent = PluginAgent::read(&format!("agents/{name}"), &text)?;
        let mut files = SkillFiles::default();
        let file = gyrus_skills::SkillFile {
            bytes: text.clone().into_bytes(),
            is_executable: false,
        };
        let added = files.add(SKILL_FILE.to_owned(), file);
        added.map_err(|error| error.to_string())?;
        let findings = scan(&files);
        if let Some(worst) = findings
            .iter()
            .find(|one| one.severity == Severity::Refused)
        {
            return Err(worst.to_string());
        }
        if self
            .agents
            .iter()
            .any(|(known, _)| known.name == agent.name)
        {
            return Err("another agent has its name, too".to_owned());
        }
        self.agents.push((agent, text));
        Ok(())
    }

    fn rules(&mut self, path: &Path) {
        let one = |found: &mut Self, path: &Path| {
            let text = text(path).map_err(|error| error.to_string())?;
            let body = match gyrus_text::split_front_matter(&text) {
                Ok((_, body, _)) => body.to_owned(),
                Err(_) => text,
            };
            if !body.trim().is_empty() {
                found
                    .guidelines
                    .push((path.to_owned(), body.trim().to_owned()));
            }
            Ok(())
        };
        if path.is_dir() {
            self.each(path, one);
        } else if let Err(why) = one(self, path) {
            self.left_out.push(format!("{}: {why}", path.display()));
        }
    }
}

/// Reads a text that is a regular file and not too large.
fn text(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_FILE {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_FILE} bytes"
        )));
    }
    read_regular_text(path)
}
