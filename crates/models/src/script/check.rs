//! Checks a request like a real provider, so that a test with a script finds errors.
//!
//! Pure: the request's JSON in, the first violation as a sentence out.

use std::collections::BTreeSet;

use serde_json::Value;

use super::wire::{SIGNATURE_PREFIX, signature};

/// Returns the first rule of the protocol that `request` breaks.
pub(super) fn check(request: &Value) -> Result<(), String> {
    if request["max_tokens"]
        .as_u64()
        .is_none_or(|tokens| tokens == 0)
    {
        return Err("`max_tokens` must be a number above 0".to_owned());
    }
    if request["stream"] != true {
        return Err("`stream` must be true".to_owned());
    }
    for part in list(&request["system"]) {
        check_text(part, "the system prompt")?;
    }
    check_tools(&request["tools"])?;
    check_messages(list(&request["messages"]))
}

/// Returns the text of the first message, which contains the goal.
pub(super) fn first_text(request: &Value) -> String {
    let first = list(&request["messages"]).first().unwrap_or(&Value::Null);
    texts(&first["content"]).join("\n")
}

/// Returns the text of the last message, results of tools included.
pub(super) fn last_text(request: &Value) -> String {
    let last = list(&request["messages"]).last().unwrap_or(&Value::Null);
    texts(&last["content"]).join("\n")
}

/// Returns all text of a request: the instructions, then message after message.
pub(super) fn all_text(request: &Value) -> String {
    let messages = list(&request["messages"]).iter();
    let messages = messages.flat_map(|message| texts(&message["content"]));
    texts(&request["system"])
        .into_iter()
        .chain(messages)
        .collect::<Vec<_>>()
        .join("\n")
}

fn texts(content: &Value) -> Vec<&str> {
    let mut texts: Vec<&str> = content.as_str().into_iter().collect();
    for block in list(content) {
        texts.extend(block["text"].as_str());
        texts.extend(block["content"].as_str());
        let parts = list(&block["content"]).iter();
        texts.extend(parts.filter_map(|part| part["text"].as_str()));
    }
    texts
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn kind(block: &Value) -> &str {
    block["type"].as_str().unwrap_or_default()
}

fn check_tools(tools: &Value) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for tool in list(tools) {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_name_character = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 128 || !name.chars().all(is_name_character) {
            return Err(format!("invalid tool name `{name}`"));
        }
        if !names.insert(name) {
            return Err(format!("there are two tools `{name}`"));
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(format!(
                "the schema of the tool `{name}` is not of type object"
            ));
        }
    }
    Ok(())
}

fn check_messages(messages: &[Value]) -> Result<(), String> {
    let mut all_calls = BTreeSet::new();
    let mut open_calls = BTreeSet::new();
    for (number, message) in messages.iter().enumerate() {
        let (role, place) = match number % 2 {
            0 => ("user", format!("message {number}")),
            _ => ("assistant", format!("message {number}")),
        };
        if message["role"] != role {
            return Err(format!(
                "{place} must have the role {role}: roles alternate"
            ));
        }
        let blocks = list(&message["content"]);
        if blocks.is_empty() {
            return Err(format!("{place} has no content"));
        }
        let mut results_may_follow = true;
        for block in blocks {
            check_block(role, block, &place)?;
            match kind(block) {
                "tool_use" => {
                    let id = block["id"].as_str().unwrap_or_default();
                    if !all_calls.insert(id) {
                        return Err(format!("{place} has a second tool call with the id `{id}`"));
                    }
                    open_calls.insert(id);
                }
                "tool_result" => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    if !open_calls.remove(id) {
                        return Err(format!(
                            "{place} has a result for `{id}`, which is not an open call of the \
                             message before"
                        ));
                    }
                    if !results_may_follow {
                        return Err(format!("{place} has a result after other content"));
                    }
                }
                _ => results_may_follow = false,
            }
        }
        if let (Some(id), "user") = (open_calls.first(), role) {
            return Err(format!(
                "{place} has no result for the tool call `{id}` before it"
            ));
        }
    }
    match messages.len() % 2 {
        0 => Err("the last message must be the user's".to_owned()),
        _ => Ok(()),
    }
}

fn check_block(role: &str, block: &Value, place: &str) -> Result<(), String> {
    match (role, kind(block)) {
        (_, "text") => check_text(block, place),
        ("user", "image") => check_picture(block, place),
        ("user", "tool_result") if block["content"].is_string() => Ok(()),
        ("user", "tool_result") => {
            let mut parts = list(&block["content"]).iter();
            parts.try_for_each(|part| match kind(part) {
                "image" => check_picture(part, place),
                _ => check_text(part, place),
            })
        }
        ("assistant", "tool_use") => {
            let is_call = block["id"].as_str().is_some_and(|id| !id.is_empty())
                && block["name"].as_str().is_some_and(|name| !name.is_empty())
                && block["input"].is_object();
            is_call
                .then_some(())
                .ok_or_else(|| format!("{place} has a broken tool call"))
        }
        ("assistant", "thinking") => {
            let text = |field: &str| block[field].as_str().unwrap_or_default();
            let signed = text("signature");
            if signed.starts_with(SIGNATURE_PREFIX) && signed != signature(text("thinking")) {
                Err(format!("{place} has a thinking block that was changed"))
            } else {
                Ok(())
            }
        }
        ("assistant", "redacted_thinking") => Ok(()),
        (_, other) => Err(format!(
            "{place} has a block `{other}`, which cannot stand there"
        )),
    }
}

fn check_picture(block: &Value, place: &str) -> Result<(), String> {
    let source = &block["source"];
    let text = |field: &str| source[field].as_str().unwrap_or_default();
    let is_picture = text("type") == "base64"
        && text("media_type").starts_with("image/")
        && !text("data").is_empty();
    is_picture
        .then_some(())
        .ok_or_else(|| format!("{place} has a broken picture"))
}

fn check_text(block: &Value, place: &str) -> Result<(), String> {
    if block["text"]
        .as_str()
        .is_some_and(|text| !text.trim().is_empty())
    {
        Ok(())
    } else {
        Err(format!("{place} has an empty text"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "read", "input": {}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": "", "is_error": false})
    }

    #[test]
    fn each_rule_is_kept() {
        let text = json!({"type": "text", "text": "a"});
        let with = |field: &str, value: Value| {
            let mut request = json!({
                "max_tokens": 1,
                "stream": true,
                "messages": [{"role": "user", "content": [text]}],
            });
            request[field] = value;
            check(&request).map_or_else(|violation| violation, |()| "fine".to_owned())
        };
        let turns = |turns: Value| {
            let roles = ["user", "assistant"].into_iter().cycle();
            let message = |(role, content): (_, &Value)| json!({"role": role, "content": content});
            with("messages", roles.zip(list(&turns)).map(message).collect())
        };
        insta::assert_snapshot!(with("model", json!("m")), @"fine");
        insta::assert_snapshot!(with("max_tokens", json!(0)), @"`max_tokens` must be a number above 0");
        insta::assert_snapshot!(with("stream", json!(false)), @"`stream` must be true");
        insta::assert_snapshot!(with("system", json!([{"type": "text", "text": " "}])), @"the system prompt has an empty text");
        insta::assert_snapshot!(with("tools", json!([{"name": "a b"}])), @"invalid tool name `a b`");
        insta::assert_snapshot!(with("tools", json!([{"name": "a", "input_schema": {}}])), @"the schema of the tool `a` is not of type object");
        insta::assert_snapshot!(with("messages", json!([])), @"the last message must be the user's");
        insta::assert_snapshot!(
            with("messages", json!([{"role": "assistant", "content": [text]}])), @"message 0 must have the role user: roles alternate"
        );
        insta::assert_snapshot!(turns(json!([[text], [text]])), @"the last message must be the user's");
        insta::assert_snapshot!(turns(json!([[text], [], [text]])), @"message 1 has no content");
        insta::assert_snapshot!(turns(json!([[text], [call("1")], [result("1"), text]])), @"fine");
        insta::assert_snapshot!(turns(json!([[text], [call("1")], [text, result("1")]])), @"message 2 has a result after other content");
        insta::assert_snapshot!(turns(json!([[text], [call("1")], [text]])), @"message 2 has no result for the tool call `1` before it");
        insta::assert_snapshot!(turns(json!([[text], [text], [result("1")]])), @"message 2 has a result for `1`, which is not an open call of the message before");
        insta::assert_snapshot!(turns(json!([[text], [call("1"), call("1")], [result("1")]])), @"message 1 has a second tool call with the id `1`");
        insta::assert_snapshot!(turns(json!([[text, call("1")]])), @"message 0 has a block `tool_use`, which cannot stand there");
        let changed = json!({"type": "thinking", "thinking": "a", "signature": signature("b")});
        insta::assert_snapshot!(turns(json!([[text], [changed], [text]])), @"message 1 has a thinking block that was changed");
    }
}
