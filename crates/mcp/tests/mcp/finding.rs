//! Finding tools by words among many, without a model: the right one is among the first.

use std::collections::BTreeMap;

use gyrus_contract::{Arguments, FindToolsCall, FoundTools, Tool, TypedCall};
use gyrus_mcp::{ServerSetup, Servers};
use serde_json::json;

use crate::{
    official::official,
    world::{TIMEOUT, World, named},
};

/// Questions as models ask them, with the tool that is meant: of the official servers, and of the
/// server with many tools.
const OFFICIAL: &[(&str, &str)] = &[
    ("read a text file", "filesystem__read_text_file"),
    ("show the content of a file", "filesystem__read_text_file"),
    (
        "read several files at once",
        "filesystem__read_multiple_files",
    ),
    ("look at an image on disk", "filesystem__read_media_file"),
    ("save text to a file", "filesystem__write_file"),
    ("change a few lines of a file", "filesystem__edit_file"),
    ("make a new folder", "filesystem__create_directory"),
    ("list what is in a directory", "filesystem__list_directory"),
    (
        "sizes of files in a directory",
        "filesystem__list_directory_with_sizes",
    ),
    ("directory tree", "filesystem__directory_tree"),
    ("rename a file", "filesystem__move_file"),
    ("find files by pattern", "filesystem__search_files"),
    ("when was this file modified", "filesystem__get_file_info"),
    (
        "which folders am I allowed to use",
        "filesystem__list_allowed_directories",
    ),
    (
        "remember a person in the knowledge graph",
        "memory__create_entities",
    ),
    (
        "add a relation between two entities",
        "memory__create_relations",
    ),
    (
        "add an observation to an entity",
        "memory__add_observations",
    ),
    ("forget an entity", "memory__delete_entities"),
    ("remove observations", "memory__delete_observations"),
    ("read the whole knowledge graph", "memory__read_graph"),
    ("search the knowledge graph", "memory__search_nodes"),
    ("open nodes by their names", "memory__open_nodes"),
    ("add two numbers", "everything__get-sum"),
    ("echo a message back", "everything__echo"),
    ("environment variables of the server", "everything__get-env"),
    (
        "compress files to gzip",
        "everything__gzip-file-as-resource",
    ),
    (
        "weather of a city as structured content",
        "everything__get-structured-content",
    ),
    (
        "simulate a long operation with progress",
        "everything__trigger-long-running-operation",
    ),
];

const MANY: &[(&str, &str)] = &[
    ("archive an invoice", "many__archive_invoice"),
    ("listing all warehouses", "many__list_warehouse"),
    ("createNewsletter", "many__create_newsletter"),
    ("delete the backups", "many__delete_backup"),
    ("assign an incident to somebody", "many__assign_incident"),
    ("get the state of a deployment", "many__get_deployment"),
    ("export students", "many__export_student"),
    ("I want to update my recipe", "many__update_recipe"),
];

fn named_setup(setup: ServerSetup, name: &str) -> ServerSetup {
    ServerSetup {
        name: name.to_owned(),
        ..setup
    }
}

/// Returns the names that a search finds.
async fn found(world: &World, tool: &dyn Tool, query: &str) -> Vec<String> {
    let query = query.to_owned();
    let output = world.call(tool, json!({"query": query})).await;
    assert!(!output.is_error && output.text.len() < 24_000, "{output:?}");
    let found: <FindToolsCall as TypedCall>::Value =
        serde_json::from_value(output.value.unwrap()).unwrap();
    let FoundTools { tools } = found;
    for name in &tools {
        assert!(
            output.text.contains(&format!("`{name}`: ")),
            "{}",
            output.text
        );
    }
    tools
}

#[tokio::test]
async fn the_right_tool_is_among_the_first() {
    let worlds: Vec<World> = (0..4).map(|_| World::new()).collect();
    let mut setups = vec![named_setup(worlds[0].setup("many"), "many")];
    let mut asked = MANY.to_vec();
    let work = worlds[1].work("").display().to_string();
    for (world, name) in worlds[1..]
        .iter()
        .zip(["everything", "filesystem", "memory"])
    {
        let Some(program) = official(&format!("server-{name}")) else {
            continue;
        };
        let program = program.to_str().unwrap();
        let arguments: &[&str] = match name {
            "filesystem" => &[program, &work],
            _ => &[program],
        };
        setups.push(named_setup(world.process("node", arguments), name));
    }
    if setups.len() == 4 {
        asked.extend(OFFICIAL);
    }
    let mut servers = Servers::start(setups);
    servers.states(TIMEOUT).await;
    let tools = servers.tools();
    let find = named(&tools, FindToolsCall::TOOL);
    let mut places: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (query, expected) in &asked {
        let found = found(&worlds[0], find, query).await;
        assert!(found.len() <= 8, "{found:?}");
        let place = found.iter().position(|name| name == expected);
        places.entry(place.unwrap_or(99)).or_default().push(query);
    }
    let hits: usize = places.range(..8).map(|(_, queries)| queries.len()).sum();
    assert!(hits * 100 >= asked.len() * 95, "{places:#?}");
    servers.leave().await;
}

#[tokio::test]
async fn odd_searches_are_answered() {
    let world = World::new();
    let mut servers = Servers::start(vec![named_setup(world.setup("many"), "many")]);
    servers.states(TIMEOUT).await;
    let tools = servers.tools();
    assert_eq!(tools.len(), 481);
    let find = named(&tools, FindToolsCall::TOOL);
    assert!(find.spec().description.contains("`many` has 480"));
    for query in ["", "?!", "unheard", "\u{202e}\0", &"x ".repeat(100_000)] {
        assert!(found(&world, find, query).await.is_empty(), "{query}");
    }
    let output = world.call(find, json!({"words": 7})).await;
    assert!(output.is_error, "{output:?}");
    servers.leave().await;
}

/// Few tools are part of every prompt.
#[tokio::test]
async fn few_tools_are_not_searched() {
    let world = World::new();
    let mut servers = Servers::start(vec![world.setup("good")]);
    servers.states(TIMEOUT).await;
    let names = servers
        .tools()
        .into_iter()
        .map(|tool| tool.spec().name.clone());
    assert!(!names.collect::<Vec<_>>().contains(&"find_tools".to_owned()));
    servers.leave().await;
}
