//! Servers of a plugin: programs of the package, or programs and addresses that it names.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use gyrus_mcp::{PROJECT_FILE, ServerSection, fitted_name, server_section};
use gyrus_skills::SkillFiles;
use gyrus_text::is_unseen;
use serde_json::Value;

use crate::manifest::{MAX_PARTS, PluginError, json};

/// Variables in a manifest for the folder of the package.
const ROOTS: [&str; 2] = ["${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}"];

/// Keywords that mark an npm package as a server.
const KEYWORDS: [&str; 3] = ["mcp-server", "mcp", "modelcontextprotocol"];

/// Programs that fetch a package and start it.
const FETCHERS: [&str; 6] = ["npx", "bunx", "pnpx", "uvx", "pipx", "docker"];

#[derive(Debug, Clone, PartialEq)]
pub struct PluginServer {
    /// The server's name, by which its tools are called.
    pub name: String,
    /// Whether the server starts a file of the package.
    pub is_inside: bool,
    /// The server's section; [`PluginServer::at`] puts in where the package lies.
    section: ServerSection,
}

impl PluginServer {
    /// Returns the configuration section of the server of a package in this folder.
    pub fn at(&self, package: &Path) -> ServerSection {
        let root = package.to_string_lossy();
        let mut section = self.section.clone();
        for text in texts(&mut section) {
            *text = text.replace(ROOTS[0], &root);
        }
        section
    }

    /// Returns the command or address of the server, with a placeholder for the folder of the
    /// package.
    pub fn shown(&self) -> String {
        self.section.shown().replace(ROOTS[0], "PLUGIN")
    }

    /// Returns the names of the person's variables that the server receives.
    pub fn wants(&self) -> BTreeSet<String> {
        let values = self
            .section
            .env
            .values()
            .chain(self.section.headers.values());
        values.flat_map(|value| variables(value)).collect()
    }

    /// Returns further remarks about the server for a person.
    pub fn remarks(&self) -> Vec<String> {
        let section = &self.section;
        let mut remarks = Vec::new();
        let own = section.env.keys().chain(section.headers.keys());
        let own: Vec<_> = own.map(String::as_str).collect();
        if !own.is_empty() {
            remarks.push(format!("is given {}", own.join(", ")));
        }
        let wants: Vec<_> = self.wants().into_iter().collect();
        if !wants.is_empty() {
            remarks.push(format!("reads your variables {}", wants.join(", ")));
        }
        let command = section.command.as_deref().unwrap_or_default();
        match (&section.url, section.network.as_slice()) {
            (Some(_), _) => remarks.push("what it is told leaves this machine".to_owned()),
            (None, []) => remarks.push("in the sandbox, without a network".to_owned()),
            (None, hosts) => remarks.push(format!(
                "in the sandbox, and connects to {}",
                hosts.join(", ")
            )),
        }
        if FETCHERS.contains(&command) {
            remarks.push(format!(
                "`{command}` fetches a program that does not belong to this package and is not pinned"
            ));
        }
        remarks
    }
}

pub(crate) fn read_all(
    files: &SkillFiles,
    (path, manifest): (&str, &Value),
    left_out: &mut Vec<String>,
) -> Result<Vec<PluginServer>, PluginError> {
    let mut written = BTreeMap::new();
    let mut take = |from: &Value| {
        let servers = match &from["mcpServers"] {
            Value::Null => from,
            servers => servers,
        };
        for (name, server) in servers.as_object().into_iter().flatten() {
            written.insert(name.clone(), server.clone());
        }
    };
    if files.get(PROJECT_FILE).is_some() {
        take(&json(files, PROJECT_FILE)?);
    }
    match &manifest["mcpServers"] {
        Value::Null => {}
        Value::Object(_) => take(manifest),
        Value::String(_) | Value::Array(_) => {
            let places = gyrus_skills::manifest_places(manifest, "mcpServers");
            let places = places.map_err(|reason| PluginError::File {
                path: path.to_owned(),
                reason,
            })?;
            for place in places {
                take(&json(files, &place)?);
            }
        }
        Value::Bool(_) | Value::Number(_) => {
            left_out.push("servers: `mcpServers` is neither an object nor a path".to_owned());
        }
    }
    let mut servers = BTreeMap::new();
    for (given, server) in written {
        if servers.len() == MAX_PARTS {
            left_out.push(format!("servers after the first {MAX_PARTS}"));
            break;
        }
        let name = fitted_name(&given);
        let is_new = !servers.contains_key(&name);
        let read = read(files, &name, &server).and_then(|server| {
            let twice = || format!("has the name `{name}` here, as another one");
            is_new.then_some(server).ok_or_else(twice)
        });
        match read {
            Ok(server) => {
                servers.insert(name, server);
            }
            Err(why) => left_out.push(format!("the server `{given}`: it {why}")),
        }
    }
    Ok(servers.into_values().collect())
}

pub(crate) fn of_programs(
    npm: &Value,
    files: &SkillFiles,
    left_out: &mut Vec<String>,
) -> Vec<PluginServer> {
    let keywords = npm["keywords"].as_array().into_iter().flatten();
    let mut keywords = keywords.filter_map(Value::as_str);
    if !npm["mcpName"].is_string() && !keywords.any(|word| KEYWORDS.contains(&word)) {
        return Vec::new();
    }
    let package = npm["name"].as_str().unwrap_or_default();
    let package = package.rsplit('/').next().unwrap_or_default();
    let programs: Vec<(&str, &str)> = match &npm["bin"] {
        Value::String(path) => vec![(package, path)],
        Value::Object(programs) => {
            let programs = programs.iter();
            let programs =
                programs.filter_map(|(name, path)| Some((name.as_str(), path.as_str()?)));
            programs.take(MAX_PARTS).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Vec::new(),
    };
    let mut servers = Vec::new();
    for (given, path) in programs {
        let name = fitted_name(given);
        let name = name.strip_prefix("mcp-server-").unwrap_or(&name);
        let path = path.trim_start_matches("./");
        let written = serde_json::json!({"command": "node", "args": [path]});
        let is_script = [".js", ".mjs", ".cjs"]
            .iter()
            .any(|end| path.ends_with(end));
        if !is_script || files.get(path).is_none() {
            left_out.push(format!(
                "the program `{given}`: `{path}` is not a script of the package"
            ));
            continue;
        }
        match read(files, name, &written) {
            Ok(server) => servers.push(server),
            Err(why) => left_out.push(format!("the program `{given}`: it {why}")),
        }
    }
    servers.sort_by(|one, other| one.name.cmp(&other.name));
    servers.dedup_by(|one, other| one.name == other.name);
    servers
}

/// Parses one server; the error follows "it".
fn read(files: &SkillFiles, name: &str, written: &Value) -> Result<PluginServer, String> {
    if written["disabled"] == true {
        return Err("is switched off".to_owned());
    }
    if let Some(kind @ ("sse" | "ws")) = written["type"].as_str() {
        return Err(format!(
            "is reached by `{kind}`, which gyrus does not speak"
        ));
    }
    let mut section = server_section(written.clone())?;
    let hosts = written["network"].as_array().into_iter().flatten();
    section.network = hosts
        .filter_map(|host| host.as_str().map(str::to_owned))
        .collect();
    section.check(name)?;
    let mut is_inside = false;
    let mut refused = None;
    for text in texts(&mut section) {
        *text = text.replace(ROOTS[1], ROOTS[0]);
        // A relative path would be one of the folder that a run works in.
        let path = text.strip_prefix("./").unwrap_or(text);
        if files.get(path).is_some() {
            *text = format!("{}/{path}", ROOTS[0]);
        }
        if text.contains(ROOTS[0]) {
            is_inside = true;
            if text.split('/').any(|part| part == "..") {
                refused = Some("names a path that leads out of the package");
            }
        }
        if text.contains("${CLAUDE_PLUGIN_DATA}") {
            refused = Some("needs a folder for its data, which a plugin does not have here");
        }
    }
    let mut unseen = section
        .env
        .keys()
        .chain(section.headers.keys())
        .cloned()
        .collect::<Vec<_>>();
    unseen.extend(texts(&mut section).map(|text| text.clone()));
    unseen.extend(section.network.iter().cloned());
    if unseen.iter().any(|text| text.chars().any(is_unseen)) {
        refused = Some("holds characters that cannot be seen");
    }
    match refused {
        Some(why) => Err(why.to_owned()),
        None => Ok(PluginServer {
            name: name.to_owned(),
            is_inside,
            section,
        }),
    }
}

/// Returns the command, the arguments, the address and the values of a section.
fn texts(section: &mut ServerSection) -> impl Iterator<Item = &mut String> {
    let values = section.env.values_mut().chain(section.headers.values_mut());
    let command = section.command.iter_mut().chain(section.url.iter_mut());
    command.chain(section.args.iter_mut()).chain(values)
}

pub(crate) fn variables(value: &str) -> Vec<String> {
    if let Some(name) = value.strip_prefix("secret:") {
        return vec![name.to_owned()];
    }
    let names = value.split("${").skip(1).filter_map(|rest| {
        let inside = &rest[..rest.find('}')?];
        Some(inside.split(":-").next().unwrap_or(inside).to_owned())
    });
    let names = names.filter(|name| !ROOTS.contains(&format!("${{{name}}}").as_str()));
    names.collect()
}

#[cfg(test)]
mod tests {
    use gyrus_skills::SkillFile;

    use super::*;

    fn files(paths: &[&str]) -> SkillFiles {
        let mut files = SkillFiles::default();
        for path in paths {
            let file = SkillFile {
                bytes: Vec::new(),
                is_executable: false,
            };
            files.add((*path).to_owned(), file).unwrap();
        }
        files
    }

    #[test]
    fn files_of_the_package_are_meant_and_nothing_leads_out() {
        let files = files(&["dist/index.js"]);
        let written = |text: &str| read(&files, "a", &serde_json::from_str(text).unwrap());
        let inside = written(r#"{"command": "node", "args": ["./dist/index.js", "x"]}"#).unwrap();
        assert!(inside.is_inside);
        let section = inside.at(Path::new("/p"));
        assert_eq!(section.args, ["/p/dist/index.js", "x"]);
        let rooted = written(
            r#"{"command": "${PLUGIN_ROOT}/go", "env": {"K": "${TOKEN:-}", "P": "${CLAUDE_PLUGIN_ROOT}/d"}}"#,
        );
        let rooted = rooted.unwrap();
        assert_eq!(rooted.at(Path::new("/p")).command.as_deref(), Some("/p/go"));
        assert_eq!(rooted.wants().into_iter().collect::<Vec<_>>(), ["TOKEN"]);
        for (text, why) in [
            (r#"{"command": "${CLAUDE_PLUGIN_ROOT}/../x"}"#, "leads out"),
            (r#"{"command": "a\u202eb"}"#, "cannot be seen"),
            (r#"{"type": "sse", "url": "https://a.example"}"#, "`sse`"),
            (r#"{"command": "x", "disabled": true}"#, "switched off"),
            (r#"{"command": 7}"#, "is not understood"),
            (r#"{"command": "x", "network": ["http://a"]}"#, "in network"),
        ] {
            let refused = written(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
