//! The configuration of one server: `[mcp.NAME]` of `config.toml`, with the same keys as in
//! `.mcp.json`.

use std::{collections::BTreeMap, time::Duration};

use gyrus_contract::Digest;
use gyrus_text::parse_duration;
use serde::{Deserialize, Deserializer, de::Error};

use crate::is_server_name;

/// Default maximum time without a message about a call.
const SILENCE: Duration = Duration::from_secs(120);

/// The section `[mcp.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// The program to start.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// The server's variables beside the few that every server gets.
    pub env: BTreeMap<String, String>,
    /// The hosts that the server's sandbox may reach; `*` is any.
    pub network: Vec<String>,
    /// The folders that the server may change beside that of the run.
    pub folders: Vec<String>,
    /// The URL of a server that is reached by HTTP.
    pub url: Option<String>,
    /// The headers of every request to the server.
    pub headers: BTreeMap<String, String>,
    /// The id of the client that the person registered for logging in at the server.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// Maximum time without a message about a call, in milliseconds.
    #[serde(deserialize_with = "milliseconds")]
    timeout: Option<u64>,
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let duration = parse_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)?;
    Ok(u64::try_from(duration.as_millis()).ok())
}

impl ServerSection {
    /// Checks the section; the error describes the mistake.
    pub fn check(&self, name: &str) -> Result<(), String> {
        if !is_server_name(name) {
            return Err("is not a valid name; use a-z, 0-9 and -, at most 24 of them".to_owned());
        }
        let is_no_host = |host: &&String| host.is_empty() || host.contains(['/', ':', ' ']);
        if let Some(wrong) = self.network.iter().find(is_no_host) {
            return Err(format!(
                "names `{wrong}` in network; name hosts alone, such as registry.npmjs.org"
            ));
        }
        let of_program = !self.args.is_empty()
            || !self.env.is_empty()
            || !self.network.is_empty()
            || !self.folders.is_empty();
        match (&self.command, &self.url) {
            (None, None) => Err("needs a command or a url".to_owned()),
            (Some(_), Some(_)) => Err("has a command and a url; it can only be one".to_owned()),
            (Some(command), None) if command.trim().is_empty() => {
                Err("has an empty command".to_owned())
            }
            (Some(_), None) if !self.headers.is_empty() => {
                Err("has headers, which only a url can have".to_owned())
            }
            (Some(_), None) if self.client_id.is_some() || self.client_secret.is_some() => {
                Err("has a client_id or client_secret, which only a url can have".to_owned())
            }
            (None, Some(_)) if self.client_id.is_none() && self.client_secret.is_some() => {
                Err("has a client_secret without a client_id".to_owned())
            }
            (None, Some(_)) if of_program => {
                Err("has args, env, network or folders, which only a command can have".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the maximum time without a message about a call.
    pub fn silence(&self) -> Duration {
        self.timeout.map_or(SILENCE, Duration::from_millis)
    }

    /// Returns a digest that identifies the server. The values of variables and headers may be
    /// secrets, of which no digest should be kept: only their names count.
    pub fn digest(&self) -> Digest {
        let names = |values: &BTreeMap<String, String>| values.keys().cloned().collect::<Vec<_>>();
        Digest::of_json(&(
            (&self.command, &self.args, &self.url),
            (
                names(&self.env),
                names(&self.headers),
                &self.network,
                &self.folders,
            ),
        ))
    }

    /// Returns the command or address on one line, without values that may be secret.
    pub fn shown(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                let words: Vec<_> = std::iter::once(command)
                    .chain(&self.args)
                    .map(String::as_str)
                    .collect();
                words.join(" ")
            }
            (None, Some(url)) => url.clone(),
            (None, None) => String::new(),
        }
    }
}

/// Value of a variable or header, by its origin.
#[derive(Clone)]
pub enum ServerValue {
    /// A text, in which variables of the environment are replaced.
    Plain(String),
    /// A secret, by its name.
    Secret {
        /// Name of the secret.
        name: String,
        /// Value of the secret.
        value: String,
    },
}

/// Reads `secret:NAME`, and replaces every `${NAME}` and `${NAME:-otherwise}`. `lookup` returns the
/// values of names.
pub fn server_value(
    text: &str,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerValue, String> {
    let unset =
        |name: &str| format!("`{name}` is set nowhere: neither in the environment, nor in [keys]");
    if let Some(name) = text.strip_prefix("secret:") {
        return match lookup(name) {
            Some(value) => Ok(ServerValue::Secret {
                name: name.to_owned(),
                value,
            }),
            None => Err(unset(name)),
        };
    }
    let mut whole = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        whole.push_str(&rest[..start]);
        let after = &rest[start + 2..];
        let Some(end) = after.find('}') else {
            return Err(format!("`{text}` has a `${{` without its `}}`"));
        };
        let (name, otherwise) = match after[..end].split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise.to_owned())),
            None => (&after[..end], None),
        };
        whole.push_str(&lookup(name).or(otherwise).ok_or_else(|| unset(name))?);
        rest = &after[end + 1..];
    }
    whole.push_str(rest);
    Ok(ServerValue::Plain(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_where_they_say() {
        let lookup = |name: &str| (name == "A").then(|| "1".to_owned());
        let read = |text: &str| match server_value(text, &lookup) {
            Ok(ServerValue::Plain(value)) => value,
            Ok(ServerValue::Secret { name, value }) => format!("secret {name}={value}"),
            Err(why) => format!("error: {why}"),
        };
        assert_eq!(read("plain $A {A}"), "plain $A {A}");
        assert_eq!(read("Bearer ${A}${A}!"), "Bearer 11!");
        assert_eq!(read("${B:-x}${A:-y}"), "x1");
        assert_eq!(read("secret:A"), "secret A=1");
        assert!(read("secret:B").starts_with("error: `B` is set nowhere"));
        assert!(read("${B}").starts_with("error: `B` is set nowhere"));
        assert!(read("${A").starts_with("error: `${A` has"));
    }

    #[test]
    fn mistakes_are_named() {
        let check = |name: &str, text: &str| {
            let section: ServerSection = toml::from_str(text).unwrap();
            section.check(name).err().unwrap_or_default()
        };
        assert_eq!(check("a-1", "command = \"x\"\nargs = [\"y\"]"), "");
        assert_eq!(check("a", "url = \"https://x\""), "");
        assert!(check("A", "command = \"x\"").contains("is not a valid name"));
        assert!(check("a__b", "command = \"x\"").contains("is not a valid name"));
        assert!(check("a", "").contains("needs a command or a url"));
        let network = "command = \"x\"\nnetwork = [\"a.example\", \"https://b.example\"]";
        assert!(check("a", network).contains("names `https://b.example` in network"));
        assert!(check("a", "command = \"x\"\nurl = \"y\"").contains("only be one"));
        assert!(check("a", "command = \"\"").contains("empty command"));
        assert!(check("a", "url = \"x\"\nargs = [\"y\"]").contains("only a command"));
        assert!(check("a", "command = \"x\"\nheaders = {a = \"y\"}").contains("only a url"));
        let unknown = toml::from_str::<ServerSection>("comand = \"x\"").unwrap_err();
        assert!(unknown.to_string().contains("comand"));
    }
}
