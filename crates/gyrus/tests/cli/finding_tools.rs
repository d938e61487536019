//! Servers with hundreds of tools: a model is offered those that it has found.

use std::fs;

use gyrus_contract::{Prompt, ToolSpec};
use gyrus_kernel::{CallEnd, Entry, log_name, prompt_of};
use serde_json::json;

use crate::{
    planning::{self, plan, reply, step, summary},
    serving::{SERVER, allow, results},
    support::World,
};

/// Bytes of a token, as the project estimates them in prompts.
const BYTES_A_TOKEN: usize = 3;

const MANY: &str = "[mcp.crm]\ncommand = \"bash\"\nargs = [\"server.sh\", \"many\"]\n";

fn world(script: &str) -> World {
    let world = World::new(script);
    fs::copy(SERVER, world.work().join("server.sh")).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/config.toml"), MANY).unwrap();
    allow(&world, "crm__*");
    world
}

/// Replies that make these calls, one each, and finish.
pub(crate) fn script(calls: &[&str]) -> String {
    let finish = r#"tool = "finish", arguments = { reached = true, answer = "done" }"#;
    let calls = calls.iter().copied().chain([finish]);
    calls
        .map(|call| format!("[[reply]]\ncalls = [{{ {call} }}]\n"))
        .collect()
}

const FIND: &str = r#"tool = "find_tools", arguments = { query = "archive an invoice" }"#;
const ARCHIVE: &str = r#"tool = "crm__archive_invoice", arguments = { id = "7" }"#;

/// Returns the prompts of the last run that offered tools.
fn prompts(world: &World) -> Vec<Prompt> {
    let run = *world.runs().last().unwrap();
    let reader = world.store().reader(&log_name(run)).unwrap();
    let entries = reader.entries(1).unwrap().map(Result::unwrap);
    let calls = entries.filter(|entry| entry.kind == "model.call");
    calls
        .map(|entry| prompt_of(&reader, entry.seq).unwrap())
        .collect()
}

/// Returns the tools with this beginning of their names that each prompt of the last run offered.
pub(crate) fn served_by(world: &World, beginning: &str) -> Vec<Vec<String>> {
    let prompts = prompts(world).into_iter();
    let named = |prompt: Prompt| {
        let names = prompt.tools.iter().map(|spec| spec.name.clone());
        names.filter(|name| name.starts_with(beginning)).collect()
    };
    prompts.map(named).collect()
}

fn served(prompt: &Prompt) -> Vec<&str> {
    let names = prompt.tools.iter().map(|spec| spec.name.as_str());
    names.filter(|name| name.starts_with("crm__")).collect()
}

fn tokens<'a>(specs: impl IntoIterator<Item = &'a ToolSpec>) -> usize {
    let bytes = specs
        .into_iter()
        .map(|spec| spec.name.len() + spec.description.len() + spec.parameters.to_string().len());
    bytes.sum::<usize>() / BYTES_A_TOKEN
}

#[test]
fn what_was_found_is_offered_and_can_be_called() {
    let world = world(&script(&[FIND, ARCHIVE]));
    fs::remove_file(world.path("home/policy.toml")).unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    let results = results(&world);
    assert!(results[0].1.contains("8 of 480 tools"), "{}", results[0].1);
    assert_eq!(results[1].1, "archive_invoice is done");
    let prompts = prompts(&world);
    assert_eq!(served(&prompts[0]), [""; 0]);
    let last = prompts.last().unwrap();
    assert_eq!(served(last).len(), 8);
    assert!(served(last).contains(&"crm__archive_invoice"));
    world.replays();
}

#[test]
fn hundreds_of_tools_cost_few_tokens() {
    let world = world(&script(&[]));
    world.run(&[]).exits(0);
    let Some(Entry::RunStarted(started)) = world.entries().into_iter().next() else {
        panic!("no start");
    };
    let store = world.store();
    let reader = store.reader(&log_name(world.runs()[0])).unwrap();
    let all = started.served_tools(&reader).unwrap();
    let all = tokens(all.iter().map(|spec| &**spec));
    let prompts = prompts(&world);
    let find = prompts[0].tools.iter();
    let find = tokens(
        find.filter(|spec| spec.name == "find_tools")
            .map(|spec| &**spec),
    );
    assert!(all > 50_000 && find > 0 && find <= 600, "{all}, {find}");
}

#[test]
fn a_tool_can_be_called_by_its_name_alone() {
    let misspelled = ARCHIVE.replace("archive", "archiv");
    let unfit = ARCHIVE.replace("id =", "it =");
    let world = world(&script(&[&misspelled, &unfit, ARCHIVE]));
    world.run(&[]).exits(0);
    let results = results(&world);
    let (first, second) = (&results[0].1, &results[1].1);
    assert!(
        first.ends_with("did you mean `crm__archive_invoice`?"),
        "{first}"
    );
    assert!(
        first.contains("find_tools") && first.len() < 1_000,
        "{first}"
    );
    assert!(second.contains("`id` is missing"), "{second}");
    assert_eq!(
        results[2],
        (CallEnd::Done, "archive_invoice is done".to_owned())
    );
    // What was called is offered, too: its schema says what was wrong.
    let prompts = prompts(&world);
    assert_eq!(served(&prompts[1]), [""; 0]);
    assert_eq!(served(&prompts[2]), ["crm__archive_invoice"]);
    world.replays();
}

#[test]
fn a_killed_run_knows_what_it_found() {
    let world = world(&script(&[FIND, ARCHIVE]));
    world.run(&["--max-steps", "1"]).exits(3);
    // What is offered comes from the journal: the server is not there any more.
    let dead = MANY.replace("many", "dead");
    fs::write(world.path("home/config.toml"), dead).unwrap();
    world
        .gyrus(&["resume", "last", "--max-steps", "9"])
        .exits(0);
    assert_eq!(served(&prompts(&world)[1]).len(), 8);
    world.replays();
}

#[test]
fn a_plan_that_searches_is_made_anew_with_what_was_found() {
    let search = step(
        "a",
        "find_tools",
        json!({"query": "archive an invoice"}),
        &[],
    );
    let archive = step("b", "crm__archive_invoice", json!({"id": "7"}), &[]);
    let script = reply("plan", &plan(&[search]), "")
        + &reply("plan", &plan(&[archive]), "")
        + &summary("It is archived.");
    let world = world(&script);
    planning::run(&world, &[]).exits(0);
    assert_eq!(results(&world)[1].1, "archive_invoice is done");
    let asked = prompts(&world);
    let shows = |prompt: &Prompt| {
        let mut parts = prompt.system.iter();
        parts.any(|part| part.text.contains("`crm__archive_invoice`"))
    };
    assert!(!shows(&asked[0]) && shows(&asked[1]));
    world.replays();
}
