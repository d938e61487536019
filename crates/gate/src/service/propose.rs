//! Proposals: the probable meaning of a tool, by the words of its name and of its schema. A person
//! reads it before it counts. A wrong one costs them a correction, so in doubt it is the stricter.

use std::{collections::BTreeMap, str::FromStr};

use gyrus_contract::{ANY_PART, ArgumentRole, ToolAction, ToolMeaning, ToolSpec, Touch};
use serde_json::Value;

/// Words in names with their probable meaning, the more serious first; the file's own head says in
/// which form.
const WORDS: &str = include_str!("words.txt");

/// Returns the lines of a table for this kind of meaning.
pub(crate) fn table<T: FromStr>(words: &'static str) -> Vec<(T, Vec<&'static str>)> {
    let lines = words.lines().filter_map(|line| line.split_once(": "));
    let meant = lines.filter_map(|(word, words)| Some((word.parse().ok()?, words)));
    meant
        .map(|(meant, words)| (meant, words.split(' ').collect()))
        .collect()
}

/// Maximum depth to which a schema is searched.
const MAX_DEPTH: usize = 6;

/// Maximum number of arguments of a tool that get a role; what is left has none, which is stricter.
const MAX_ARGUMENTS: usize = 300;

/// Returns the probable meaning of a server's tool.
pub fn propose(spec: &ToolSpec) -> ToolMeaning {
    let service = spec.touches.iter().find_map(Touch::service);
    let name = service.map_or(spec.name.as_str(), |service| service.tool.as_str());
    let destructive = service.is_some_and(|service| service.destructive);
    let words = words(name);
    let actions = table::<ToolAction>(WORDS);
    let by = |word: &String| {
        let mut actions = actions.iter();
        actions.find(|(_, known)| known.contains(&word.as_str()))
    };
    let found = actions
        .iter()
        .find(|(_, known)| words.iter().any(|word| known.contains(&word.as_str())));
    let begins = words.first().and_then(by);
    // `get_payment` reads: the verb comes first. But `create_order` does not only create.
    let reads = begins.is_some_and(|(action, _)| *action == ToolAction::Reads)
        && !words.iter().any(|word| word == "and" || word == "or");
    let found = if reads { begins } else { found };
    let mut action = found.map_or(ToolAction::Sends, |(action, _)| *action);
    if destructive {
        action = ToolAction::Deletes;
    }
    let mut proposal = RoleProposal {
        root: &spec.parameters,
        meaning: ToolMeaning {
            action,
            arguments: BTreeMap::new(),
        },
        seen: 0,
    };
    proposal.collect(&spec.parameters, "", 0);
    // Whatever moves an amount pays, by whatever name.
    let mut roles = proposal.meaning.arguments.values();
    let has_amount = roles.any(|role| *role == ArgumentRole::Amount);
    if has_amount && action == ToolAction::Sends {
        proposal.meaning.action = ToolAction::Pays;
    }
    proposal.meaning
}

struct RoleProposal<'a> {
    /// The whole schema, into which references lead.
    root: &'a Value,
    meaning: ToolMeaning,
    /// The number of arguments examined so far.
    seen: usize,
}

impl<'a> RoleProposal<'a> {
    fn collect(&mut self, schema: &'a Value, above: &str, depth: usize) {
        let schema = resolved(self.root, schema);
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            self.seen += 1;
            if self.seen > MAX_ARGUMENTS {
                return;
            }
            // A name with a dot cannot be written as a path; what is below it has no role.
            if name.contains('.') || name.is_empty() {
                continue;
            }
            let path = if above.is_empty() {
                name.clone()
            } else {
                format!("{above}.{name}")
            };
            let property = resolved(self.root, property);
            let items = resolved(self.root, &property["items"]);
            let inner = if items.is_object() { items } else { property };
            let holds = inner["properties"]
                .as_object()
                .is_some_and(|inner| !inner.is_empty());
            if holds && depth < MAX_DEPTH {
                self.collect(inner, &path, depth + 1);
            } else if let Some(role) = role(name, inner, self.meaning.action) {
                // What only reads goes nowhere, whatever the parts are called.
                if self.meaning.action == ToolAction::Reads && inner["type"] == "object" {
                    let parts = format!("{path}.{ANY_PART}");
                    self.meaning.arguments.insert(parts, ArgumentRole::Option);
                }
                self.meaning.arguments.insert(path, role);
            }
        }
    }
}

/// Resolves a reference, and takes the first alternative that is not `null`.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut at = schema;
    for _ in 0..MAX_DEPTH {
        let reference = at["$ref"]
            .as_str()
            .and_then(|name| root.pointer(name.strip_prefix('#')?));
        let choices = ["anyOf", "oneOf"]
            .iter()
            .find_map(|choice| at[choice].as_array());
        let choice = choices.and_then(|all| all.iter().find(|one| one["type"] != "null"));
        match reference.or(choice) {
            Some(next) => at = next,
            None => break,
        }
    }
    at
}

/// Returns the probable role of an argument; `None` where nothing tells, which counts as a
/// destination.
fn role(name: &str, schema: &Value, action: ToolAction) -> Option<ArgumentRole> {
    let words = words(name);
    let last = words.last()?;
    let roles = table::<ArgumentRole>(WORDS);
    let by = |word: &String| {
        let mut roles = roles.iter();
        let one = word.strip_suffix('s').unwrap_or(word);
        roles
            .find(|(_, known)| known.contains(&word.as_str()) || known.contains(&one))
            .map(|(role, _)| *role)
    };
    let serious = words.iter().filter_map(by).min_by_key(|role| {
        let position = roles.iter().position(|(known, _)| known == role);
        position.unwrap_or(usize::MAX)
    });
    // `channel_id` is a channel, and `event_id` an event of one's own; so is a mail.
    let is_mail = words.len() > 1
        && ["id", "ids"].contains(&&**last)
        && words.iter().any(|word| MAIL.contains(&&**word));
    let found = match by(last) {
        _ if is_mail => Some(ArgumentRole::Name),
        _ if is_grade(last, schema) => Some(ArgumentRole::Option),
        Some(ArgumentRole::Name | ArgumentRole::Option) | None => serious,
        found => found,
    };
    let kind = schema["type"].as_str().unwrap_or_default();
    let is_number = matches!(kind, "integer" | "number");
    match (found, action) {
        // `guests`, as a number, says how many there are.
        (Some(ArgumentRole::To), _) if is_number && last.ends_with('s') => {
            Some(ArgumentRole::Option)
        }
        // What is read of somebody goes to nobody.
        (Some(ArgumentRole::To), ToolAction::Reads) => Some(ArgumentRole::Name),
        (Some(ArgumentRole::Text), ToolAction::Reads) if NAMING.contains(&&**last) => {
            Some(ArgumentRole::Name)
        }
        (Some(ArgumentRole::Text), ToolAction::Reads) => Some(ArgumentRole::Option),
        (Some(role), _) => Some(role),
        (None, _) if is_number || kind == "boolean" => Some(ArgumentRole::Option),
        (None, ToolAction::Reads) if NAMING.contains(&&**last) => Some(ArgumentRole::Name),
        (None, ToolAction::Reads) => Some(ArgumentRole::Option),
        (None, _) => None,
    }
}

/// Words of things that an id may be of, although they are also the address of somebody.
const MAIL: [&str; 3] = ["email", "mail", "message"];

/// Arguments of a search that select its object: "the mail from Bob".
const NAMING: [&str; 5] = ["sender", "from", "author", "subject", "title"];

/// Grades of a permission that let everybody in.
const OPEN: [&str; 8] = [
    "public",
    "anyone",
    "everyone",
    "everybody",
    "all",
    "world",
    "link",
    "domain",
];

/// Whether an argument is a level of permission, with all levels listed in the schema, and no
/// argument names the recipient.
fn is_grade(last: &str, schema: &Value) -> bool {
    let grades = schema["enum"].as_array();
    ["permission", "permissions"].contains(&last)
        && grades.is_some_and(|grades| {
            let mut words = grades
                .iter()
                .map(|grade| words(grade.as_str().unwrap_or("public")));
            words.all(|words| !words.iter().any(|word| OPEN.contains(&&**word)))
        })
}

/// The words of a name, in lower case: `getUserId`, `get_user_id` and `get-user-id` are the same.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    let mut begins = true;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        if begins || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        begins = false;
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use gyrus_contract::Repeat;
    use serde_json::json;

    use super::*;

    fn proposed(name: &str, parameters: &Value) -> String {
        let meaning = propose(&ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: parameters.clone(),
            touches: Vec::new(),
            repeat: Repeat::Never,
        });
        let arguments = meaning.arguments.iter();
        let arguments: Vec<_> = arguments
            .map(|(name, role)| format!("{name}={role}"))
            .collect();
        format!("{name} {}: {}", meaning.action, arguments.join(" "))
    }

    #[test]
    fn names_tell_most() {
        let of = |names: &[&str]| {
            let properties: serde_json::Map<String, Value> = names
                .iter()
                .map(|name| ((*name).to_owned(), json!({"type": "string"})))
                .collect();
            json!({"properties": properties})
        };
        let all = [
            proposed(
                "send_email",
                &of(&["recipients", "subject", "body", "cc", "attachments"]),
            ),
            proposed("getPayments", &of(&["userId", "n"])),
            proposed(
                "create_calendar_event",
                &of(&["title", "participants", "start_time", "location"]),
            ),
            proposed("send_channel_message", &of(&["channel_id", "body"])),
            proposed("delete_file", &of(&["file_id"])),
            proposed("read_webpage", &of(&["url"])),
            proposed("update_password", &of(&["password"])),
            proposed("search_mails", &of(&["query", "sender", "title"])),
            proposed("mark_thing", &of(&["email_id", "message_ids"])),
            proposed(
                "share_file",
                &json!({"properties": {"permission": {"enum": ["r", "rw"]}}}),
            ),
            proposed(
                "share_doc",
                &json!({"properties": {"permission": {"enum": ["r", "anyone_can_read"]}}}),
            ),
            proposed("create_public_link", &of(&["file_id"])),
            proposed(
                "reserve_hotel",
                &json!({"properties": {"guests": {"type": "integer"}, "user_id": {"type": "integer"}}}),
            ),
            proposed(
                "search",
                &json!({"properties": {"filter": {"type": "object"}}}),
            ),
            proposed(
                "send_mail",
                &json!({"properties": {
                    "body": {"type": "object"},
                    "attachments": {"items": {"type": "object"}},
                }}),
            ),
            proposed("frobnicate", &of(&["x"])),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        send_email sends: attachments=name body=text cc=to recipients=to subject=text
        getPayments reads: n=option userId=name
        create_calendar_event creates: location=text participants=to start_time=option title=text
        send_channel_message sends: body=text channel_id=to
        delete_file deletes: file_id=name
        read_webpage reads: url=page
        update_password changes: password=password
        search_mails reads: query=option sender=name title=name
        mark_thing changes: email_id=name message_ids=name
        share_file sends: permission=option
        share_doc sends: permission=to
        create_public_link sends: file_id=name
        reserve_hotel pays: guests=option user_id=to
        search reads: filter=option filter.*=option
        send_mail sends: attachments=name body=text
        frobnicate sends:
        ");
    }
}
