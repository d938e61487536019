//! The answer to a call of a tool that does not exist.

use gyrus_contract::{Arguments, ShellCall, ToolCall, ToolSpec};
use gyrus_text::{closest, shorten};

use crate::core::Core;

/// Maximum number of shown characters of the unknown name.
const SHOWN: usize = 200;

/// Maximum number of servers' tools that a message names.
const SHOWN_SERVED: usize = 40;

/// Returns the list of tools, for a model that called an unknown one.
pub(super) fn told(core: &Core, call: &ToolCall) -> String {
    let tools = core.callable();
    let offered = core.shared().offered.clone();
    let is_offered = |spec: &&ToolSpec| offered.is_empty() || offered.contains(&spec.name);
    let own = tools.values().filter(|spec| !spec.is_served());
    let own = own.filter(is_offered);
    let known: Vec<_> = own.map(|spec| spec.name.as_str()).collect();
    let by_shell = if known.contains(&ShellCall::TOOL) {
        "; any command is a call of `shell`"
    } else {
        ""
    };
    let mut text = format!(
        "there is no tool `{}`; the tools are {}",
        shorten(&call.tool, SHOWN),
        known.join(", ")
    );
    let served = tools.values().filter(|spec| spec.is_served());
    let names: Vec<_> = served.map(|spec| spec.name.as_str()).collect();
    if names.len() <= SHOWN_SERVED {
        names
            .iter()
            .for_each(|name| text.push_str(&format!(", {name}")));
        return text + by_shell;
    }
    text.push_str(&format!(", and {} of servers", names.len()));
    if let Some(close) = closest(&call.tool, names.iter().copied()) {
        return text + &format!("; did you mean `{close}`?");
    }
    text + by_shell
}
