//! The set of tools of a run.

use std::{collections::BTreeMap, sync::Arc};

use gyrus_contract::{BuiltIn, Tool, ToolSpec, TypedTool};

use crate::{
    ApplyChangeset, AskPerson, Clipboard, Edit, Fetch, Finish, Glob, List, PostToJudge,
    ProposeChangeset, RankFiles, Read, RunAsUser, Search, SearchDocs, Shell, Write,
};

fn built_in() -> Vec<Arc<dyn Tool>> {
    vec![
        tool(Read),
        tool(List),
        tool(Glob),
        tool(Search),
        tool(SearchDocs),
        tool(Edit),
        tool(Write),
        tool(Shell::new()),
        tool(RunAsUser::new()),
        tool(Fetch::new()),
        tool(PostToJudge),
        tool(Clipboard::new()),
        tool(AskPerson),
        tool(Finish),
    ]
}

/// The table of the tools of a loop that changes a project by changesets.
fn of_changesets() -> Vec<Arc<dyn Tool>> {
    vec![
        tool(RankFiles),
        tool(ProposeChangeset),
        tool(ApplyChangeset::new(Shell::new())),
    ]
}

fn tool(tool: impl TypedTool) -> Arc<dyn Tool> {
    Arc::new(BuiltIn::new(tool))
}

/// The error of two tools with the same name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are two tools called `{name}`; rename or leave out one of them")]
pub struct DuplicateTool {
    pub name: String,
}

/// The tools of a run, by name.
#[derive(Default)]
pub struct ToolRegistry {
    tools: BTreeMap<String, (Arc<ToolSpec>, Arc<dyn Tool>)>,
}

impl ToolRegistry {
    /// Creates a registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry with the tools of every run.
    pub fn builtin() -> Self {
        built_in()
            .into_iter()
            .try_fold(Self::new(), Self::with)
            .expect("their names are different")
    }

    /// Adds the tools of a loop that changes a project by changesets.
    pub fn with_changesets(self) -> Result<Self, DuplicateTool> {
        of_changesets().into_iter().try_fold(self, Self::with)
    }

    /// Adds a tool to the registry.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Result<Self, DuplicateTool> {
        let spec = Arc::new(tool.spec().clone());
        let name = spec.name.clone();
        if self.tools.contains_key(&name) {
            return Err(DuplicateTool { name });
        }
        self.tools.insert(name, (spec, tool));
        Ok(self)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|(_, tool)| tool)
    }

    /// Returns the specifications of all tools, sorted by name.
    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.tools.values().map(|(spec, _)| spec.clone()).collect()
    }

    /// Returns all tools, sorted by name.
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.values().map(|(_, tool)| tool.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_sorted() {
        let registry = ToolRegistry::builtin();
        let names: Vec<_> = registry
            .specs()
            .iter()
            .map(|spec| spec.name.clone())
            .collect();
        assert_eq!(
            names.join(" "),
            "ask_person clipboard edit fetch finish glob judge list read run_as_user search search_docs shell write"
        );
        assert!(registry.get("read").is_some() && registry.get("Read").is_none());
        let twice = registry.with(tool(Read)).map(|_| ());
        assert_eq!(
            twice,
            Err(DuplicateTool {
                name: "read".to_owned()
            })
        );
    }

    #[test]
    fn tools_that_look_around_need_no_path() {
        let registry = ToolRegistry::builtin();
        for name in ["glob", "list", "search"] {
            let parameters = &registry.get(name).unwrap().spec().parameters;
            assert_eq!(parameters["properties"]["path"]["default"], ".", "{name}");
            let required = parameters["required"].as_array().unwrap();
            assert!(required.iter().all(|argument| argument != "path"), "{name}");
        }
    }

    #[test]
    fn every_schema_is_closed_and_names_what_is_touched() {
        let registry = ToolRegistry::builtin().with_changesets().unwrap();
        assert_eq!(registry.specs().len(), 17);
        for spec in registry.specs() {
            let schema = spec.parameters.to_string();
            for needless in [
                "$schema",
                "$ref",
                "$defs",
                "\"title\"",
                "\"format\"",
                "null",
                "\\n",
            ] {
                assert!(!schema.contains(needless), "{}: {schema}", spec.name);
            }
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
            assert_eq!(
                spec.parameters["additionalProperties"], false,
                "{}",
                spec.name
            );
            for touch in &spec.touches {
                use gyrus_contract::Touch::{
                    Asks, Changes, Compares, Connects, Reads, Starts, Writes,
                };
                let (Reads(argument) | Writes(argument) | Starts(argument) | Connects(argument)
                | Asks(argument) | Changes(argument) | Compares(argument)) = touch
                else {
                    continue;
                };
                assert!(
                    spec.parameters["properties"].get(argument).is_some(),
                    "{}",
                    spec.name
                );
            }
        }
    }
}
