//! The resources of a server, as two tools of it: one that lists them, and one that reads one.
//!
//! They are judged as calls of the server are. Their descriptions are gyrus's own words.

use gyrus_contract::{Digest, Reach, Repeat, Service, ToolSpec, Touch};
use rmcp::model::{ClientRequest, JsonObject, ReadResourceRequest, ReadResourceRequestParams};
use serde_json::{Value, json};

use crate::definition::clean;

/// Maximum number of resources and templates in one call's result.
const MAX_LISTED: usize = 200;

/// Maximum length of the description of a resource, in characters.
const MAX_ABOUT: usize = 200;

/// Maximum characters of an address.
const MAX_ADDRESS: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceTool {
    List,
    Read,
}

impl ResourceTool {
    const ALL: [Self; 2] = [Self::List, Self::Read];

    /// Returns the resource tool of a service, unless it is one of the server's own tools.
    pub(crate) fn of(service: &Service) -> Option<Self> {
        let is = |tool: &Self| tool.definition() == service.definition;
        Self::ALL.into_iter().find(is)
    }

    fn name(self) -> &'static str {
        match self {
            Self::List => "list_resources",
            Self::Read => "read_resource",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Self::List => "resources/list",
            Self::Read => "resources/read",
        }
    }

    /// Returns the digest that stands for gyrus's own description; no server's has it.
    fn definition(self) -> Digest {
        Digest::of(format!("gyrus: {}", self.method()).as_bytes())
    }

    fn spec(self, server: &str, reach: Reach) -> ToolSpec {
        let (description, parameters) = match self {
            Self::List => (
                format!(
                    "Lists the resources of the server `{server}`: texts and pictures that it \
                     offers to read, and templates of their addresses."
                ),
                json!({"words": {
                    "type": "string",
                    "description": "Only those that have all of these words.",
                }}),
            ),
            Self::Read => (
                format!(
                    "Reads a resource of the server `{server}` by its address, which \
                     `{server}__list_resources` shows."
                ),
                json!({"uri": {
                    "type": "string",
                    "maxLength": MAX_ADDRESS,
                    "description": "The address, such as demo://notes/1.",
                }}),
            ),
        };
        let required: &[&str] = match self {
            Self::List => &[],
            Self::Read => &["uri"],
        };
        ToolSpec {
            name: format!("{server}__{}", self.name()),
            description,
            parameters: json!({
                "type": "object",
                "properties": parameters,
                "required": required,
                "additionalProperties": false,
            }),
            touches: vec![Touch::Serves(Service {
                server: server.to_owned(),
                tool: self.method().to_owned(),
                reach,
                destructive: false,
                definition: self.definition(),
                setup: None,
                returns: Vec::new(),
            })],
            repeat: Repeat::Never,
        }
    }
}

/// Adds the tools for resources to those of a server that has resources, unless it has tools of
/// these names.
pub(crate) fn add_to(tools: &mut Vec<ToolSpec>, server: &str, reach: Reach) {
    let added: Vec<ToolSpec> = ResourceTool::ALL
        .map(|tool| tool.spec(server, reach))
        .into_iter()
        .filter(|added| tools.iter().all(|tool| tool.name != added.name))
        .collect();
    tools.extend(added);
    tools.sort_by(|one, other| one.name.cmp(&other.name));
}

pub(crate) fn reading(arguments: &JsonObject) -> ClientRequest {
    let uri = arguments.get("uri").and_then(Value::as_str);
    let params = ReadResourceRequestParams::new(uri.unwrap_or_default());
    ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
}

/// Describes resources and templates in a line each: those that have all of these words.
pub(crate) fn listed(resources: &[Value], templates: &[Value], words: &str) -> String {
    let all = resources.iter().filter_map(|said| line(said, "uri"));
    let all = all.chain(
        templates
            .iter()
            .filter_map(|said| line(said, "uriTemplate")),
    );
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let has_all = |line: &String| {
        let line = line.to_lowercase();
        words.iter().all(|word| line.contains(word.as_str()))
    };
    let mut lines: Vec<String> = all.filter(has_all).collect();
    if lines.is_empty() {
        return "(there are no such resources)".to_owned();
    }
    if lines.len() > MAX_LISTED {
        let more = lines.len() - MAX_LISTED;
        lines.truncate(MAX_LISTED);
        lines.push(format!("(and {more} more; name words to see fewer)"));
    }
    lines.join("\n")
}

/// Describes a resource or a template in one line; `None` if it has no address.
pub(crate) fn line(said: &Value, address: &str) -> Option<String> {
    let text = |key: &str, most: usize| {
        let text = clean(said[key].as_str().unwrap_or_default()).replace('\n', " ");
        gyrus_text::shorten(&text, most).into_owned()
    };
    let mut line = text(address, MAX_ADDRESS);
    if line.is_empty() {
        return None;
    }
    for key in ["title", "name", "mimeType", "description"] {
        let about = text(key, MAX_ABOUT);
        if !about.is_empty() {
            line.push_str(", ");
            line.push_str(&about);
        }
    }
    Some(line)
}
