//! The format of hooks in files, which is that of other agents.

use std::collections::BTreeMap;

use gyrus_contract::{HookEvent, own_tool_name};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Default time limit of a hook in seconds.
const SECONDS: u64 = 60;

/// Maximum time limit of a hook in seconds.
const MAX_SECONDS: u64 = 600;

/// Maximum number of hooks in all files of a folder.
const MAX_RULES: usize = 100;

/// A command, and when it is run.
#[derive(Debug, Clone)]
pub(crate) struct HookRule {
    event: HookEvent,
    /// The pattern of the tools or other subjects to which the hook applies; `None` for all.
    matcher: Option<Regex>,
    pub(super) command: String,
    pub(super) seconds: u64,
}

impl HookRule {
    /// Whether the hook runs for an event about this subject. Tools match by our name, too.
    pub(super) fn fits(&self, event: HookEvent, subject: &str) -> bool {
        let matches = |name: &str| self.matcher.as_ref().is_none_or(|it| it.is_match(name));
        self.event == event && (matches(subject) || matches(own_tool_name(subject)))
    }

    /// Returns the hook as one line, for a person who is asked about it.
    pub(super) fn in_words(&self) -> String {
        let about = self.matcher.as_ref().map(|matcher| {
            let pattern = matcher.as_str();
            let inner = pattern
                .strip_prefix("^(?:")
                .and_then(|it| it.strip_suffix(")$"));
            format!(" ({})", inner.unwrap_or(pattern))
        });
        format!(
            "{}{}: {}",
            self.event.word(),
            about.unwrap_or_default(),
            self.command
        )
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct HookSettings {
    hooks: BTreeMap<String, Vec<HookGroup>>,
    disable_all_hooks: bool,
}

#[derive(Deserialize)]
struct HookGroup {
    #[serde(default)]
    matcher: String,
    #[serde(default)]
    hooks: Vec<Value>,
}

/// Reads the hooks of a file. The second list names those that gyrus cannot run, with the reason.
///
/// # Errors
/// A message about a mistake in the file.
pub(super) fn read_rules(text: &str) -> Result<(Vec<HookRule>, Vec<String>), String> {
    let settings: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let settings = HookSettings::deserialize(Value::Object(settings));
    let settings = settings.map_err(|error| error.to_string())?;
    let (mut rules, mut left_out) = (Vec::new(), Vec::new());
    if settings.disable_all_hooks {
        return Ok((rules, left_out));
    }
    for (name, groups) in settings.hooks {
        let event = HookEvent::ALL
            .into_iter()
            .find(|event| event.word() == name);
        let Some(event) = event else {
            left_out.push(format!("the event `{name}` is not known"));
            continue;
        };
        for group in groups {
            let matcher = matcher(&group.matcher)?;
            for hook in &group.hooks {
                match command(hook) {
                    Ok((command, seconds)) => rules.push(HookRule {
                        event,
                        matcher: matcher.clone(),
                        command,
                        seconds,
                    }),
                    Err(why) => left_out.push(format!("a hook of {name}: {why}")),
                }
            }
        }
    }
    if rules.len() > MAX_RULES {
        return Err(format!("there are more than {MAX_RULES} hooks"));
    }
    Ok((rules, left_out))
}

/// Returns the pattern of a matcher, which must match a whole name.
fn matcher(given: &str) -> Result<Option<Regex>, String> {
    if ["", "*"].contains(&given.trim()) {
        return Ok(None);
    }
    let pattern = Regex::new(&format!("^(?:{given})$"));
    pattern
        .map(Some)
        .map_err(|_| format!("the matcher `{given}` is not a regular expression"))
}

fn command(hook: &Value) -> Result<(String, u64), String> {
    match hook["type"].as_str() {
        Some("command") => {}
        Some(other) => return Err(format!("its type `{other}` is not known")),
        None => return Err("it has no `type`".to_owned()),
    }
    let command = hook["command"].as_str().map(str::trim).unwrap_or_default();
    if command.is_empty() || command.contains('\0') {
        return Err("it has no `command`".to_owned());
    }
    let seconds = match &hook["timeout"] {
        Value::Null => SECONDS,
        given => match given.as_f64() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is in the range"
            )]
            Some(seconds) if seconds > 0.0 => seconds.ceil().min(MAX_SECONDS as f64) as u64,
            _ => return Err("its `timeout` is not a number of seconds".to_owned()),
        },
    };
    Ok((command.to_owned(), seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_agents_are_read_and_what_is_not_run_is_named() {
        let (rules, left_out) = read_rules(
            r#"{"permissions": {}, "hooks": {
                "PreToolUse": [{"matcher": "Bash|mcp__.*", "hooks": [
                    {"type": "command", "command": "x", "timeout": 0.5},
                    {"type": "prompt", "prompt": "is it good?"}]}],
                "Stop": [{"hooks": [{"type": "command", "command": "y"}]}],
                "Notification": []}}"#,
        )
        .unwrap();
        let fits = |name| rules[0].fits(HookEvent::PreToolUse, name);
        assert!(fits("Bash") && fits("mcp__a__b") && !fits("Bash2") && !fits("Edit"));
        assert_eq!((rules[0].seconds, rules[1].seconds), (1, 60));
        assert_eq!(left_out.len(), 2);
        for wrong in [
            "",
            "[]",
            r#"{"hooks": []}"#,
            r#"{"hooks": {"Stop": {}}}"#,
            r#"{"hooks": {"Stop": [{"matcher": "(", "hooks": []}]}}"#,
        ] {
            assert!(read_rules(wrong).is_err(), "{wrong}");
        }
    }
}
