//! The names that other agents have for tools: files that people wrote for those agents use them.

use crate::FINISH;

/// Names of tools in other agents, each with gyrus's tool for the same use.
const NAMES: [(&str, &str); 14] = [
    ("Bash", "shell"),
    ("Read", "read"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("Write", "write"),
    ("Glob", "glob"),
    ("Grep", "search"),
    ("LS", "list"),
    ("WebFetch", "fetch"),
    ("WebSearch", "web_search"),
    ("Task", "delegate"),
    ("Agent", "delegate"),
    ("AskUserQuestion", "ask_person"),
    ("ExitPlanMode", FINISH),
];

/// Prefix of the names that other agents use for tools of servers.
const SERVED: &str = "mcp__";

/// Returns the name here of a tool that other agents call so; the name itself if it is none of theirs.
pub fn own_tool_name(name: &str) -> &str {
    let known = NAMES.iter().find(|(theirs, _)| *theirs == name);
    let own = || name.strip_prefix(SERVED).unwrap_or(name);
    known.map_or_else(own, |(_, own)| own)
}

/// Returns the name that other agents use for a tool; tools of servers are `mcp__SERVER__TOOL`
/// there.
pub fn field_tool_name(own: &str) -> String {
    let known = NAMES.iter().find(|(_, known)| *known == own);
    match known {
        Some((theirs, _)) => (*theirs).to_owned(),
        None if own.contains("__") => format!("{SERVED}{own}"),
        None => own.to_owned(),
    }
}
