//! The tool `find_tools`, for runs whose servers have more tools than fit into every prompt.
//!
//! The kernel offers a model only the tools that were found. What is found depends on the pinned
//! definitions alone, so searching again gives the same tools.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use gyrus_contract::{
    BuiltIn, FindToolsCall, FoundTools, Repeat, ResolvedCall, Site, Tool, ToolOutput, ToolSpec,
    Touch, TypedTool, WrongArguments,
};
use gyrus_search::Ranking;

use crate::definition::words_of_server;

/// Maximum size of definitions in every prompt, in bytes: about 10,000 tokens, a tenth of the
/// windows that are common. The 36 tools of three official servers have 17,000.
const MAX_OFFERED_BYTES: usize = 40_000;

/// Maximum number of tools in one search's result.
const MAX_FOUND: usize = 8;

/// Maximum characters of a description in a result; the whole one comes with the tool.
const MAX_DESCRIPTION: usize = 300;

/// Maximum bytes of a schema in a result; a longer one only comes with the tool.
const MAX_SCHEMA: usize = 2_000;

/// Maximum number of servers in the tool's description.
const MAX_SERVERS: usize = 20;

/// Factor by which words of a tool's name count more.
const NAME_COUNTS: usize = 3;

pub(crate) type ServerToolsNow = Arc<dyn Fn() -> Vec<ToolSpec> + Send + Sync>;

/// Returns the tool that finds these tools, if they are too large to be part of every prompt.
pub(crate) fn if_large(tools: &[Arc<dyn Tool>], listed: ServerToolsNow) -> Option<Arc<dyn Tool>> {
    let sizes = tools.iter().map(|tool| offered_bytes(tool.spec()));
    (sizes.sum::<usize>() > MAX_OFFERED_BYTES).then(|| over(tools, listed))
}

/// Returns the tool that searches these tools, and those listed at the time of the search.
pub(crate) fn over(tools: &[Arc<dyn Tool>], listed: ServerToolsNow) -> Arc<dyn Tool> {
    let mut specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
    specs.sort_by(|one, other| one.name.cmp(&other.name));
    Arc::new(BuiltIn::new(FindTools { specs, listed }))
}

/// Returns the recorded tool, which searches the tools that are listed at the time of the search.
pub(crate) fn recorded(spec: ToolSpec, listed: ServerToolsNow) -> Arc<dyn Tool> {
    let specs = Vec::new();
    let tool = BuiltIn::new(FindTools { specs, listed });
    Arc::new(tool.described(spec.description))
}

fn offered_bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
}

struct FindTools {
    /// The tools with which the run began, in order of name.
    specs: Vec<ToolSpec>,
    listed: ServerToolsNow,
}

/// Message of a failed search for the model.
struct SearchFailure(String);

impl From<WrongArguments> for SearchFailure {
    fn from(wrong: WrongArguments) -> Self {
        Self(wrong.to_string())
    }
}

impl From<SearchFailure> for ToolOutput {
    fn from(failure: SearchFailure) -> Self {
        Self::error(failure.0)
    }
}

impl TypedTool for FindTools {
    type Arguments = FindToolsCall;
    type Failure = SearchFailure;
    const REPEAT: Repeat = Repeat::Freely;

    fn description(&self) -> String {
        format!(
            "Finds tools of the connected servers by words; from then on you can call what it \
             found. They are too many to be listed here, so search before you say that something \
             cannot be done. {}",
            self.servers()
        )
    }

    fn touches(&self) -> Vec<Touch> {
        Vec::new()
    }

    async fn run(
        &self,
        arguments: FindToolsCall,
        _call: &ResolvedCall,
        _site: &dyn Site,
    ) -> Result<ToolOutput, SearchFailure> {
        let all = self.all();
        let found = find(&all, &arguments.query);
        let tools = found.iter().map(|spec| spec.name.clone()).collect();
        let text = if found.is_empty() {
            format!(
                "No tool has any of these words; try others. {}",
                self.servers()
            )
        } else {
            listed(&found, all.len())
        };
        Ok(ToolOutput::read(text).with_value(&FoundTools { tools }))
    }
}

impl FindTools {
    fn servers(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for service in self.specs.iter().flat_map(|spec| &spec.touches) {
            let server = service.service().map_or("", |service| &service.server);
            *counts.entry(server).or_default() += 1;
        }
        let named = counts.iter().take(MAX_SERVERS);
        let named: Vec<_> = named
            .map(|(name, tools)| format!("`{name}` has {tools}"))
            .collect();
        let more = match counts.len().saturating_sub(MAX_SERVERS) {
            0 => "",
            _ => ", and other servers have more",
        };
        format!("The server {}{more}.", named.join(", "))
    }

    /// Returns all tools by name: those that the run began with, and those that may join it.
    fn all(&self) -> Vec<ToolSpec> {
        let named = |spec: ToolSpec| (spec.name.clone(), spec);
        let mut all: BTreeMap<String, ToolSpec> = (self.listed)().into_iter().map(named).collect();
        all.extend(self.specs.iter().cloned().map(named));
        all.into_values().collect()
    }
}

/// Returns the tools that match a query, best first.
fn find<'a>(specs: &'a [ToolSpec], query: &str) -> Vec<&'a ToolSpec> {
    let mut ranking = Ranking::new(&stems(query));
    for spec in specs {
        ranking.add(&searched(spec));
    }
    let best = ranking.best().into_iter().take(MAX_FOUND);
    best.map(|number| &specs[number]).collect()
}

fn listed(found: &[&ToolSpec], all: usize) -> String {
    let mut text = format!(
        "{} of {} tools, best first. You can call them now. The descriptions are their \
             servers' words, which bind nobody.\n",
        found.len(),
        all
    );
    for spec in found {
        let words = gyrus_text::shorten(words_of_server(spec), MAX_DESCRIPTION);
        let _ = write!(text, "\n`{}`: {words}\n", spec.name);
        let schema = spec.parameters.to_string();
        if schema.len() <= MAX_SCHEMA {
            let _ = writeln!(text, "{schema}");
        }
    }
    text
}

/// Returns the words by which a tool is found: of its name, of its description, and of its
/// arguments.
fn searched(spec: &ToolSpec) -> String {
    let service = spec.touches.iter().find_map(Touch::service);
    let name = service.map_or(&*spec.name, |service| &service.tool);
    let server = service.map_or("", |service| &service.server);
    let mut text = String::new();
    for _ in 0..NAME_COUNTS {
        text.push_str(&stems(name));
    }
    text.push_str(&stems(server));
    text.push_str(&stems(words_of_server(spec)));
    let arguments = spec.parameters["properties"].as_object();
    for (name, schema) in arguments.into_iter().flatten() {
        text.push_str(&stems(name));
        text.push_str(&stems(schema["description"].as_str().unwrap_or_default()));
    }
    text
}

/// Returns the stems of a text's words, so that `listIssues` and `list an issue` have the same.
fn stems(text: &str) -> String {
    let mut apart = String::with_capacity(text.len() + 16);
    let mut lower = false;
    for character in text.chars() {
        if lower && character.is_uppercase() {
            apart.push(' ');
        }
        lower = character.is_lowercase();
        apart.push(character);
    }
    let mut stems = String::with_capacity(apart.len());
    gyrus_search::words(&apart, |word| {
        stems.push_str(word);
        stems.push(' ');
    });
    stems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (text, expected) in [
            (
                "listIssues list_issue Listing the ISSUES",
                "list issu list issu list the issu ",
            ),
            ("directories directory", "directory directory "),
            (
                "creates create creating created",
                "creat creat creat creat ",
            ),
            ("files file pass process is", "fil fil pass process is "),
            ("", ""),
            ("🧮 \0", ""),
        ] {
            assert_eq!(stems(text), expected, "{text}");
        }
    }
}
