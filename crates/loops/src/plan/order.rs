//! The dependencies between steps.
//!
//! A step waits for those that it names, for those whose output it uses, and for every earlier one
//! with which it shares a file if one of the two changes it: models forget to say so.

use std::sync::Arc;

use gyrus_contract::{ToolSpec, Touch};

use super::draft::{AgentStep, each_text};
use crate::browse::BROWSE;

/// Maximum number of concurrent steps.
pub(super) const AT_ONCE: usize = 8;

/// Returns for each step the indices in `steps` of the steps on which it waits.
pub(super) fn waits(steps: &[AgentStep], tools: &[Arc<ToolSpec>]) -> Vec<Vec<usize>> {
    let number = |id: &String| steps.iter().position(|step| step.id == *id);
    let one = |(index, step): (usize, &AgentStep)| {
        let named = step.depends_on.iter().filter_map(number);
        let used = step.references();
        let used = used.iter().filter_map(number);
        let shared = (0..index).filter(|earlier| share(&steps[*earlier], step, tools));
        let mut waits: Vec<usize> = named.chain(used).chain(shared).collect();
        waits.sort_unstable();
        waits.dedup();
        waits
    };
    steps.iter().enumerate().map(one).collect()
}

/// Returns the ids along a cycle of dependencies, if there is one.
pub(super) fn circle(steps: &[AgentStep], waits: &[Vec<usize>]) -> Option<Vec<String>> {
    let mut left: Vec<usize> = (0..steps.len()).collect();
    loop {
        let before = left.len();
        let blocked = |index: &usize| waits[*index].iter().any(|other| left.contains(other));
        let next: Vec<usize> = left.iter().copied().filter(blocked).collect();
        if next.is_empty() {
            return None;
        }
        if next.len() == before {
            break;
        }
        left = next;
    }
    // Each remaining step waits for a remaining one, so following the dependencies leads into a
    // cycle.
    let mut way = vec![*left.first()?];
    loop {
        let here = way.last()?;
        let next = *waits[*here].iter().find(|other| left.contains(other))?;
        if let Some(start) = way.iter().position(|seen| *seen == next) {
            let ids = way[start..].iter().chain([&next]);
            return Some(ids.map(|index| steps[*index].id.clone()).collect());
        }
        way.push(next);
    }
}

/// Returns the indices of the steps that can begin now, in the order of the plan.
pub(super) fn ready(steps: &[AgentStep], tools: &[Arc<ToolSpec>]) -> Vec<usize> {
    let free = waits(steps, tools).into_iter().enumerate();
    let free = free.filter(|(_, waits)| waits.is_empty());
    free.map(|(index, _)| index).take(AT_ONCE).collect()
}

/// Whether two steps may interfere with each other.
fn share(one: &AgentStep, other: &AgentStep, tools: &[Arc<ToolSpec>]) -> bool {
    // There is one screen.
    (one.tool == BROWSE && other.tool == BROWSE)
        || written(one, tools).is_some_and(|path| names(other, path))
        || written(other, tools).is_some_and(|path| names(one, path))
}

/// Returns the path of the file that a step declares to change.
fn written<'a>(step: &'a AgentStep, tools: &[Arc<ToolSpec>]) -> Option<&'a str> {
    let spec = tools.iter().find(|spec| spec.name == step.tool)?;
    let paths = spec.touches.iter().filter_map(Touch::paths);
    let mut written = paths.filter(|paths| paths.is_changed && !paths.is_list);
    written.find_map(|path| step.input[path.name].as_str().map(plain))
}

/// Whether a step names this path anywhere: as a path, or in a command line.
fn names(step: &AgentStep, path: &str) -> bool {
    let mut found = false;
    each_text(&step.input, &mut |text| {
        found |= plain(text) == path
            || text
                .split(|letter: char| letter.is_whitespace() || "'\"=;|&<>()".contains(letter))
                .any(|word| plain(word) == path);
    });
    found
}

/// Returns a path without redundant parts.
fn plain(path: &str) -> &str {
    path.trim().trim_start_matches("./").trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use gyrus_contract::Repeat;
    use serde_json::{Value, json};

    use super::*;

    fn step(id: &str, tool: &str, input: Value, depends_on: &[&str]) -> AgentStep {
        AgentStep {
            id: id.to_owned(),
            tool: tool.to_owned(),
            input,
            reason: "r".to_owned(),
            requires_permission: false,
            expected: "e".to_owned(),
            depends_on: depends_on.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn tools() -> Vec<Arc<ToolSpec>> {
        let spec = |name: &str, touches| {
            Arc::new(ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                parameters: json!({}),
                touches,
                repeat: Repeat::Freely,
            })
        };
        vec![
            spec("write", vec![Touch::Writes("path".to_owned())]),
            spec("shell", vec![Touch::Starts("command".to_owned())]),
        ]
    }

    #[test]
    fn what_shares_a_file_keeps_its_order() {
        let steps = [
            step("1", "read", json!({"path": "a"}), &[]),
            step(
                "2",
                "write",
                json!({"path": "./sort.sh", "content": "mv a b"}),
                &[],
            ),
            step("3", "shell", json!({"command": "sh sort.sh"}), &[]),
            step(
                "4",
                "write",
                json!({"path": "a", "content": "{{1.output}}"}),
                &[],
            ),
            step("5", "shell", json!({"command": "date"}), &["4"]),
        ];
        let expected: [&[usize]; 5] = [&[], &[], &[1], &[0, 1], &[3]];
        let waits = waits(&steps, &tools());
        assert_eq!(waits, expected);
        assert_eq!(circle(&steps, &waits), None);
        assert_eq!(ready(&steps, &tools()), [0, 1]);
        assert_eq!(ready(&steps[2..], &tools()), [0, 1], "what is gone is done");
    }

    #[test]
    fn a_circle_is_named() {
        let none = || json!({});
        let steps = [
            step("a", "x", none(), &[]),
            step("b", "x", none(), &["d"]),
            step("c", "x", none(), &["b", "a"]),
            step("d", "x", json!({"text": "{{c.output}}"}), &[]),
        ];
        let circle = circle(&steps, &waits(&steps, &[]));
        assert_eq!(circle.unwrap(), ["b", "d", "c", "b"]);
        let own = [step("a", "x", none(), &["a"])];
        assert!(super::circle(&own, &waits(&own, &[])).is_some());
    }
}
