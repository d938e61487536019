//! Servers as other agents write them down. Values of variables and headers are kept apart: they are
//! plain secrets there, and stand in no configuration here.

use std::collections::BTreeMap;

use gyrus_mcp::{ServerSection, fitted_name, server_section};
use gyrus_text::is_unseen;
use serde_json::{Map, Value, json};

use super::places::ServerFileShape;

/// Maximum number of servers of one file.
const MAX_SERVERS: usize = 200;

/// Words that an argument or a part of an address with a secret is called by.
const SECRET_WORDS: [&str; 8] = [
    "token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "auth",
];

/// Beginnings of keys of well-known services.
const SECRET_STARTS: [&str; 9] = [
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
];

/// Minimum length of a word that may be a key, in bytes.
const MIN_RANDOM: usize = 24;

/// A server of another agent.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundServer {
    /// The server's name here.
    pub name: String,
    /// The server's section; a secret is written there as `secret:VARIABLE`.
    pub section: ServerSection,
    /// Values of the variables in the section, which are to be stored as keys.
    pub secrets: BTreeMap<String, String>,
}

/// Returns the servers of a file, or the reason why each cannot be imported. Reasons hold no
/// values.
pub(super) fn read_servers(shape: ServerFileShape, text: &str) -> Vec<Result<FoundServer, String>> {
    let document = match document(shape, text) {
        Ok(document) => document,
        Err(error) => return vec![Err(format!("it cannot be read: {error}"))],
    };
    let written = servers(shape, &document);
    let count = written.len();
    let mut read: Vec<_> = written
        .into_iter()
        .take(MAX_SERVERS)
        .map(|(given, written)| {
            let server = read(shape, &fitted_name(given), written);
            server.map_err(|why| format!("the server `{given}`: it {why}"))
        })
        .collect();
    if count > MAX_SERVERS {
        read.push(Err(format!("servers after the first {MAX_SERVERS}")));
    }
    read
}

fn document(shape: ServerFileShape, text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    if shape == ServerFileShape::Codex {
        // Its message would quote the line, which may hold a secret.
        return toml::from_str(text).map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().lines().count().max(1);
            format!("line {line} is not TOML")
        });
    }
    let read: serde_json::Result<Value> = serde_json::from_str(text);
    // Editors allow remarks in these files.
    read.or_else(|error| serde_json::from_str(&without_remarks(text)).map_err(|_| error))
        .map_err(|error| format!("line {} is not JSON", error.line()))
}

/// Returns the JSON without comments and trailing commas.
fn without_remarks(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut kept: String = lines.collect::<Vec<_>>().join("\n");
    let (mut at, mut in_text, mut escaped) = (0, false, false);
    let mut commas = Vec::new();
    let mut last_comma = None;
    for c in kept.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => {
                in_text = !in_text;
                last_comma = None;
            }
            _ if in_text => {}
            ',' => last_comma = Some(at),
            '}' | ']' => commas.extend(last_comma.take()),
            c if c.is_whitespace() => {}
            _ => last_comma = None,
        }
        at += c.len_utf8();
    }
    for comma in commas.into_iter().rev() {
        kept.replace_range(comma..=comma, " ");
    }
    kept
}

fn servers(shape: ServerFileShape, document: &Value) -> Vec<(&String, &Value)> {
    let below = |key: &str| document[key].as_object().into_iter().flatten();
    match shape {
        ServerFileShape::Common | ServerFileShape::Gemini => below("mcpServers").collect(),
        ServerFileShape::ClaudeCode => {
            let projects = below("projects");
            let inner =
                projects.flat_map(|(_, one)| one["mcpServers"].as_object().into_iter().flatten());
            below("mcpServers").chain(inner).collect()
        }
        ServerFileShape::VsCode => below("servers").collect(),
        ServerFileShape::Codex => below("mcp_servers").collect(),
        ServerFileShape::OpenCode => below("mcp").collect(),
    }
}

/// Parses one server; the error follows "it", and holds no value.
fn read(shape: ServerFileShape, name: &str, written: &Value) -> Result<FoundServer, String> {
    if written["disabled"] == true || written["enabled"] == false {
        return Err("is switched off there".to_owned());
    }
    if matches!(written["type"].as_str(), Some("sse" | "ws"))
        || (shape == ServerFileShape::Gemini
            && written["httpUrl"].is_null()
            && written["url"].is_string())
    {
        return Err("speaks an older protocol that gyrus does not".to_owned());
    }
    if written["cwd"]
        .as_str()
        .is_some_and(|folder| !folder.is_empty())
    {
        return Err(
            "runs in a folder of its own; servers of gyrus run in that of the run".to_owned(),
        );
    }
    let unreadable = || "is not of a form that gyrus knows".to_owned();
    let mut section = server_section(common(shape, written)).map_err(|_| unreadable())?;
    section.check(name)?;
    let mut secrets = BTreeMap::new();
    for (key, value) in section.env.iter_mut().chain(section.headers.iter_mut()) {
        *value = kept(name, key, value, &mut secrets)?;
    }
    let plain = section
        .args
        .iter()
        .chain(&section.command)
        .chain(&section.url);
    if plain.clone().any(|text| text.chars().any(is_unseen)) {
        return Err("holds characters that cannot be seen".to_owned());
    }
    if plain
        .clone()
        .any(|text| text.contains("${") || text.contains("{env:"))
    {
        return Err(
            "has a variable in its command or address; gyrus has them in `env` and `headers`"
                .to_owned(),
        );
    }
    if holds_secret(&section) {
        return Err(
            "has what looks like a secret in its command line or address; describe it in \
             config.toml yourself, with the secret in `env` or `headers`"
                .to_owned(),
        );
    }
    Ok(FoundServer {
        name: name.to_owned(),
        section,
        secrets,
    })
}

/// Converts a server to the form that most programs share.
fn common(shape: ServerFileShape, written: &Value) -> Value {
    let mut made = Map::new();
    let mut copy = |from: &str, to: &str| {
        if !written[from].is_null() {
            made.insert(to.to_owned(), written[from].clone());
        }
    };
    for key in ["command", "args", "env", "url", "headers"] {
        copy(key, key);
    }
    match shape {
        ServerFileShape::Common | ServerFileShape::ClaudeCode | ServerFileShape::VsCode => {
            copy("serverUrl", "url")
        }
        ServerFileShape::Gemini => copy("httpUrl", "url"),
        ServerFileShape::Codex => copy("http_headers", "headers"),
        ServerFileShape::OpenCode => copy("environment", "env"),
    }
    if let Some(words) = written["command"].as_array() {
        made.insert(
            "command".to_owned(),
            words.first().cloned().unwrap_or_default(),
        );
        made.insert("args".to_owned(), json!(words.get(1..).unwrap_or_default()));
    }
    if shape == ServerFileShape::Codex {
        let reference = |variable: &str| json!(format!("${{{variable}}}"));
        let mut set = |key: &str, name: &str, value: Value| {
            let object = made.entry(key).or_insert_with(|| json!({}));
            object[name] = value;
        };
        if let Some(variable) = written["bearer_token_env_var"].as_str() {
            set(
                "headers",
                "Authorization",
                json!(format!("Bearer ${{{variable}}}")),
            );
        }
        for (name, variable) in written["env_http_headers"]
            .as_object()
            .into_iter()
            .flatten()
        {
            set(
                "headers",
                name,
                reference(variable.as_str().unwrap_or_default()),
            );
        }
        for variable in written["env_vars"].as_array().into_iter().flatten() {
            let variable = variable.as_str().unwrap_or_default();
            set("env", variable, reference(variable));
        }
    }
    Value::Object(made)
}

/// Returns the form of a value in the configuration: a reference, or the name of a secret.
fn kept(
    server: &str,
    key: &str,
    value: &str,
    secrets: &mut BTreeMap<String, String>,
) -> Result<String, String> {
    if key.is_empty() || key.chars().any(|c| c.is_control() || is_unseen(c)) {
        return Err("has a variable or header without a usable name".to_owned());
    }
    if value.contains("${input:") {
        return Err(format!("asks for `{key}` when it starts; gyrus does not"));
    }
    let value = value
        .replace("${env:", "${")
        .replace("{env:", "${")
        .replace("$${", "${");
    let is_variable = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(name) = value.strip_prefix('$').filter(|name| is_variable(name)) {
        return Ok(format!("${{{name}}}"));
    }
    // A reference, and nothing beside it that could be a secret.
    let rest = value.strip_prefix("Bearer ").unwrap_or(&value);
    let inside = rest
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    if value.is_empty() || inside.is_some_and(is_variable) {
        return Ok(value);
    }
    if value.contains("${") || value.starts_with("secret:") {
        return Err(format!("mixes text and variables in `{key}`"));
    }
    if value.trim() != value || value.chars().any(char::is_control) {
        return Err(format!(
            "has a value in `{key}` that cannot be kept as a key"
        ));
    }
    let plain = |text: &str| {
        let letters = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        letters.collect::<String>().to_ascii_uppercase()
    };
    let variable = format!("MCP_{}_{}", plain(server), plain(key));
    if secrets.insert(variable.clone(), value).is_some() {
        return Err(format!("has two values for `{key}`"));
    }
    Ok(format!("secret:{variable}"))
}

/// Whether the command line or address of a server may contain a secret.
fn holds_secret(section: &ServerSection) -> bool {
    let names_secret = |text: &str| {
        let text = text.to_ascii_lowercase();
        SECRET_WORDS.iter().any(|word| text.contains(word))
    };
    let is_key = |text: &str| {
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        if authority
            .split('/')
            .next()
            .unwrap_or_default()
            .contains('@')
        {
            return true;
        }
        if text
            .split(['/', '=', ':', ' ', ',', '?', '&'])
            .any(looks_random)
        {
            return true;
        }
        let mut parts = text.split(['=', ':', ' ', ',']);
        parts.any(|part| {
            SECRET_STARTS
                .iter()
                .any(|start| part.starts_with(start) && part.len() > 12)
        })
    };
    let mut named = false;
    for argument in section.args.iter().chain(&section.command) {
        let assigned = argument
            .split_once('=')
            .or_else(|| argument.split_once(':'));
        let assigns = assigned.is_some_and(|(name, value)| names_secret(name) && !value.is_empty());
        if named || is_key(argument) || assigns {
            return true;
        }
        named = argument.starts_with('-') && !argument.contains('=') && names_secret(argument);
    }
    section.url.as_ref().is_some_and(|url| {
        let (before, query) = url.split_once('?').unwrap_or((url, ""));
        names_secret(query) || query.contains("key=") || is_key(before)
    })
}

/// Whether a word looks randomly generated: long, of letters and many digits.
fn looks_random(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+.".contains(c);
    word.len() >= MIN_RANDOM && digits >= 4 && letters >= 4 && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(shape: ServerFileShape, written: &Value) -> Result<FoundServer, String> {
        read(shape, "a", written)
    }

    #[test]
    fn values_become_secrets_and_references_stay() {
        let written = json!({"command": "x", "env": {
            "KEY": "hunter2", "A": "${A}", "B": "$B", "C": "${env:C}", "E": "",
        }});
        let server = one(ServerFileShape::Common, &written).unwrap();
        let env: Vec<_> = server.section.env.values().map(String::as_str).collect();
        assert_eq!(env, ["${A}", "${B}", "${C}", "", "secret:MCP_A_KEY"]);
        assert_eq!(server.secrets["MCP_A_KEY"], "hunter2");
        let codex = json!({
            "url": "https://a.example/mcp",
            "bearer_token_env_var": "T",
            "env_http_headers": {"X": "Y"},
            "http_headers": {"Z": "hunter2"},
        });
        let server = one(ServerFileShape::Codex, &codex).unwrap();
        let headers: Vec<_> = server
            .section
            .headers
            .values()
            .map(String::as_str)
            .collect();
        assert_eq!(headers, ["Bearer ${T}", "${Y}", "secret:MCP_A_Z"]);
        let open = json!({"type": "local", "command": ["x", "y"], "environment": {"K": "{env:K}"}});
        let server = one(ServerFileShape::OpenCode, &open).unwrap();
        assert_eq!(server.section.args, ["y"]);
        assert_eq!(server.section.env["K"], "${K}");
    }

    #[test]
    fn what_cannot_be_had_is_left_out_without_its_values() {
        for (shape, written) in [
            (
                ServerFileShape::Common,
                json!({"command": "x", "args": ["--api-key", "hunter2"]}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "args": ["--token=hunter2"]}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "args": ["Authorization: hunter2"]}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "args": ["postgresql://me:hunter2@db/x"]}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "API_KEY=hunter2 npx"}),
            ),
            (
                ServerFileShape::Common,
                json!({"url": "https://a.example/s/hunter2aB3c9Zk1Qm7Xv5Tr8/mcp"}),
            ),
            (
                ServerFileShape::Common,
                json!({"url": "https://a.example/?api_key=hunter2"}),
            ),
            (
                ServerFileShape::Common,
                json!({"url": "https://me:hunter2@a.example/"}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "env": {"K": "hunter2 ${A}"}}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "env": {"K": "hunter2\n"}}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "env": {"K": {"hunter2": 1}}}),
            ),
            (
                ServerFileShape::Common,
                json!({"command": "x", "cwd": "/hunter2"}),
            ),
            (
                ServerFileShape::Common,
                json!({"type": "sse", "url": "https://a.example"}),
            ),
            (ServerFileShape::Gemini, json!({"url": "https://a.example"})),
            (
                ServerFileShape::VsCode,
                json!({"command": "x", "env": {"K": "${input:hunter2}"}}),
            ),
            (
                ServerFileShape::VsCode,
                json!({"command": "${workspaceFolder}/x"}),
            ),
            (
                ServerFileShape::Codex,
                json!({"command": "x", "enabled": false}),
            ),
            (ServerFileShape::Common, json!(7)),
        ] {
            let why = one(shape, &written).unwrap_err();
            assert!(!why.contains("hunter2"), "{why}");
        }
        let text = "{\n// no\n\"a\": [1, 2,],\n}";
        assert_eq!(
            document(ServerFileShape::VsCode, text).unwrap(),
            json!({"a": [1, 2]})
        );
        let wrong = document(ServerFileShape::Codex, "a = 1\nb = \"hunter2").unwrap_err();
        assert_eq!(wrong, "line 2 is not TOML");
    }
}
