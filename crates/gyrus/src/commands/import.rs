//! `gyrus import`
//!
//! It first shows a plan. What is written then: servers into `config.toml`, with the values of their
//! variables as keys; skills among the person's own; agents as a plugin of the name of the other
//! agent; guidelines of a folder that has none. Done twice, the second changes nothing.

use std::{collections::BTreeMap, fs, io::Write as _, path::PathBuf};

use clap::Args;
use gyrus_mcp::ServerSection;
use gyrus_plugins::{
    InstalledPlugin, Plugin,
    import::{self, FoundServer, ImportFolders, ImportFound, ImportSource, SOURCES},
};
use gyrus_skills::{PackagedSkill, SkillFile, SkillFiles};
use gyrus_surfaces::{console::put, output, terminal};
use gyrus_text::{counted, one_line, visible};
use serde_json::json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use super::{
    plugins::install::keep,
    skills::{here::SkillPlaces, install::PackageInPlace},
};
use crate::{
    Gyrus, config::Config, exit::Code, failure::Failure, inside_run, keys::KeySource, question,
    setup, skill_places,
};

/// Maximum length of the guidelines of a folder in bytes, as runs read them.
const MAX_GUIDELINES: usize = 32 << 10;

/// Take over servers, skills, agents and guidelines of other agents on this machine
///
/// It shows what it would do, and does it once you say yes. Permissions, hooks and settings are never
/// taken over. Values of variables and headers are kept as keys of yours, beside the configuration.
/// Files of this folder, which others may have written, are taken only if you name their agent.
#[derive(Args)]
pub(crate) struct ImportCommand {
    /// Agents to look at (default: all): claude-code, claude-desktop, codex, gemini, cursor, vscode,
    /// windsurf, cline, opencode
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    /// Look here instead of in your home folder
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Default)]
struct ImportPlan {
    servers: Vec<FoundServer>,
    skills: Vec<PackagedSkill>,
    plugins: Vec<Plugin>,
    /// The text of the folder's `AGENTS.md`.
    guidelines: Option<String>,
    said: String,
}

impl ImportCommand {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        inside_run::refuse("import")?;
        let here = SkillPlaces::of(gyrus)?;
        let person = self.from.clone().or_else(|| here.home.person.clone());
        let Some(person) = person.filter(|person| person.is_dir()) else {
            return Err(Failure::usage("there is no home folder to look in")
                .hint("name one: gyrus import --from FOLDER"));
        };
        let around = ImportFolders {
            home: &person,
            folder: &here.workspace,
        };
        let config = gyrus.config()?;
        let mut plan = ImportPlan::default();
        for source in self.chosen()? {
            let found = import::look(source, around, !self.sources.is_empty());
            if !found.is_empty() {
                plan.add(&here, &config, found);
            }
        }
        write!(output::standard(), "{}", visible(&plan.said))?;
        let count = plan.count();
        if count == 0 {
            put("there is nothing to import\n")?;
            return Ok(Code::Reached);
        }
        let what = format!("import {}, as shown", counted(count, "part"));
        if !self.yes && !terminal::can_ask() {
            put("nothing was written; to import this: gyrus import --yes\n")?;
            return Ok(Code::Reached);
        }
        question::confirm(&what, self.yes)?;
        plan.write(gyrus, &here)?;
        put(&format!("imported {}\n", counted(count, "part")))?;
        Ok(Code::Reached)
    }

    fn chosen(&self) -> Result<Vec<&'static ImportSource>, Failure> {
        if self.sources.is_empty() {
            return Ok(SOURCES.iter().collect());
        }
        let names = || SOURCES.iter().map(|source| source.name);
        let by_name = |name: &String| {
            let found = SOURCES.iter().find(|source| source.name == *name);
            found.ok_or_else(|| {
                let failure =
                    Failure::usage(format!("`{name}` is not an agent that is known here"));
                match gyrus_text::closest(name, names()) {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure.hint(format!(
                        "there are: {}",
                        names().collect::<Vec<_>>().join(", ")
                    )),
                }
            })
        };
        self.sources.iter().map(by_name).collect()
    }
}

impl ImportPlan {
    fn count(&self) -> usize {
        self.servers.len()
            + self.skills.len()
            + self.plugins.len()
            + usize::from(self.guidelines.is_some())
    }

    fn say(&mut self, line: &str) {
        self.said.push_str(&format!("  {}\n", one_line(line)));
    }

    fn add(&mut self, here: &SkillPlaces, config: &Config, found: ImportFound) {
        self.said.push_str(&format!("{}:\n", found.source.title));
        for server in found.servers {
            self.server(config, server);
        }
        for skill in found.skills {
            self.skill(here, skill);
        }
        if !found.agents.is_empty() {
            self.agents(here, found.source, &found.agents);
        }
        self.guidelines(here, &found.guidelines);
        for left in found.left_out {
            self.say(&format!("left out: {left}"));
        }
    }

    fn server(&mut self, config: &Config, server: FoundServer) {
        let name = &server.name;
        let has = |known: &ServerSection| {
            let same =
                |one: &ServerSection| (one.command.clone(), one.args.clone(), one.url.clone());
            same(known) == same(&server.section)
        };
        let planned = self.servers.iter().find(|planned| planned.name == *name);
        let known = config
            .mcp
            .get(name)
            .or_else(|| planned.map(|planned| &planned.section));
        if let Some(known) = known {
            let line = if has(known) {
                format!("server {name}: there already")
            } else {
                format!("left out: server {name}: you have another one of this name")
            };
            return self.say(&line);
        }
        let is_taken = |key: &&String| {
            let mut planned = self.servers.iter();
            config.keys.contains_key(*key) || planned.any(|one| one.secrets.contains_key(*key))
        };
        if let Some(taken) = server.secrets.keys().find(is_taken) {
            let line = format!("left out: server {name}: you have a key {taken} already");
            return self.say(&line);
        }
        let mut line = format!("server {name}: {}", server.section.shown());
        if server.section.command.is_some() {
            line.push_str(" (in the sandbox, without a network)");
        }
        self.say(&line);
        for variable in server.secrets.keys() {
            self.say(&format!("  key {variable}, which only you can read"));
        }
        self.servers.push(server);
    }

    fn skill(&mut self, here: &SkillPlaces, one: PackagedSkill) {
        let name = one.skill.name.clone();
        let place = skill_places::user_folder(&here.home).join(&name);
        let is_planned = self.skills.iter().any(|planned| planned.skill.name == name);
        if is_planned || place.exists() {
            let same = SkillFiles::read(&place).is_ok_and(|files| files == one.files);
            return self.say(&if same {
                format!("skill {name}: there already")
            } else {
                format!("left out: skill {name}: you have another one of this name")
            });
        }
        let files = counted(one.files.len(), "file");
        self.say(&format!(
            "skill {name} ({files}): {}",
            one.skill.description
        ));
        self.skills.push(one);
    }

    fn agents(
        &mut self,
        here: &SkillPlaces,
        source: &ImportSource,
        agents: &[(gyrus_plugins::PluginAgent, String)],
    ) {
        let manifest = json!({
            "name": source.name,
            "description": format!("Agents of {}.", source.title),
        });
        let mut files = SkillFiles::default();
        let texts = agents
            .iter()
            .map(|(agent, text)| (agent.path.clone(), text.clone()));
        let manifest = ("plugin.json".to_owned(), manifest.to_string());
        for (path, text) in texts.chain([manifest]) {
            let file = SkillFile {
                bytes: text.into_bytes(),
                is_executable: false,
            };
            if let Err(error) = files.add(path, file) {
                return self.say(&format!("left out: agents: {error}"));
            }
        }
        let plugin = match Plugin::read(files) {
            Ok(plugin) => plugin,
            Err(error) => return self.say(&format!("left out: agents: {error}")),
        };
        let installed = PackageInPlace::at(&here.home, &plugin.name);
        let known = InstalledPlugin::read(&installed.folder).ok();
        if known.is_some_and(|known| known.plugin.files == plugin.files) {
            return self.say(&format!("agents of {}: there already", plugin.name));
        }
        for agent in &plugin.agents {
            let (of, name) = (&plugin.name, &agent.name);
            self.say(&format!("agent {of}:{name}: {}", agent.description));
            for asked in &agent.without_effect {
                self.say(&format!("  without effect: {asked}"));
            }
        }
        self.plugins.push(plugin);
    }

    fn guidelines(&mut self, here: &SkillPlaces, found: &[(PathBuf, String)]) {
        let has_own = |name: &str| here.workspace.join(name).exists();
        for (path, text) in found {
            let path = path.display();
            if has_own("AGENTS.md") || has_own("CLAUDE.md") {
                self.say(&format!(
                    "left out: {path}: this folder has guidelines already"
                ));
                continue;
            }
            let whole = self.guidelines.get_or_insert_default();
            if whole.len() + text.len() > MAX_GUIDELINES {
                self.say(&format!("left out: {path}: it is too long for guidelines"));
                continue;
            }
            whole.push_str(text);
            whole.push_str("\n\n");
            self.say(&format!("guidelines {path}: into AGENTS.md of this folder"));
        }
        self.guidelines = self.guidelines.take().filter(|text| !text.is_empty());
    }

    fn write(self, gyrus: &Gyrus, here: &SkillPlaces) -> Result<(), Failure> {
        let mut keys = BTreeMap::new();
        for (variable, secret) in self.servers.iter().flat_map(|server| &server.secrets) {
            let path = setup::write_key(&here.home, variable, secret)?;
            keys.insert(variable.clone(), KeySource::File(path));
        }
        if !self.servers.is_empty() {
            setup::edit(&here.home.config, |document| {
                for (variable, source) in &keys {
                    setup::put_key(document, variable, source)?;
                }
                for server in &self.servers {
                    put_server(document, server);
                }
                Ok(())
            })?;
        }
        let folder = skill_places::user_folder(&here.home);
        for one in &self.skills {
            fs::create_dir_all(&folder)?;
            let aside = tempfile::Builder::new()
                .prefix(".incoming-")
                .tempdir_in(&folder)?;
            let made = aside.path().join(&one.skill.name);
            one.files.write_into(&made).map_err(Failure::failed)?;
            fs::rename(&made, folder.join(&one.skill.name))?;
        }
        for plugin in &self.plugins {
            let installed = PackageInPlace::at(&here.home, &plugin.name);
            keep(gyrus, here, &installed, (plugin, None))?;
        }
        if let Some(text) = self.guidelines {
            let path = here.workspace.join("AGENTS.md");
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path)?;
            file.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Adds `[mcp.NAME]` at the end of the configuration.
fn put_server(document: &mut DocumentMut, server: &FoundServer) {
    let section = &server.section;
    let mut table = Table::new();
    if let Some(command) = &section.command {
        table["command"] = value(command);
    }
    if !section.args.is_empty() {
        table["args"] = value(section.args.iter().collect::<Array>());
    }
    if let Some(url) = &section.url {
        table["url"] = value(url);
    }
    for (key, values) in [("env", &section.env), ("headers", &section.headers)] {
        if !values.is_empty() {
            table[key] = value(values.iter().collect::<InlineTable>());
        }
    }
    let mcp = document.entry("mcp").or_insert_with(|| {
        let mut all = Table::new();
        all.set_implicit(true);
        Item::Table(all)
    });
    match mcp.as_inline_table_mut() {
        Some(inline) => {
            inline.insert(&server.name, table.into_inline_table().into());
        }
        None => mcp[&server.name] = Item::Table(table),
    }
}
