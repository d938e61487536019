//! Evaluations through the whole program: real runs in a real browser, played by a model that sees
//! only what its requests show.

use std::{fs, net::TcpListener, process::Stdio};

use gyrus_kernel::Entry;
use gyrus_player::{Player, Task};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::{
    browsing::{browsing, has_browser},
    server::Server,
    support::{THREE_STEPS, World, read, said},
};

/// Four small tasks on pages that gyrus serves: a question, a form, a thing that moves money, and
/// one that only one of two alike buttons does.
const TASKS: &str = r#"
[[task]]
id = "question"
goal = "What is the cheapest thing among the lights of the shop?"
start = "/shop/"
answer = "74.00"
does = [
  { click = "link Light", within = "Kinds" },
  { wait = "text €74.00" },
  { answer = "Steel desk lamp, €74.00" },
]
[[task]]
id = "order"
goal = "Order the wall clock for Ada in London."
start = "/shop/wall-clock"
checks = ["text:Thank you, Ada", "js:fetch('../ledger').then(r => r.json()).then(l => l.filter(e => e.kind === 'order').length === 1)"]
budget = { steps = 15, seconds = 600 }
does = [
  { click = "button Add to cart" },
  { click = "link Check out" },
  { type = "textbox Name", text = "Ada" },
  { type = "textbox Street and number", text = "1 Row" },
  { type = "textbox City", text = "London" },
  { click = "button Place order" },
]
[[task]]
id = "pause"
goal = "Pause the member Hanna Brandt."
start = "/table/"
checks = ["js:fetch('../ledger').then(r => r.json()).then(l => l.length === 1 && l[0].data.name === 'Hanna Brandt')"]
budget = { steps = 15, seconds = 600 }
does = [
  { click = "button Page 3" },
  { click = "button Pause", within = "Hanna Brandt" },
]
[[task]]
id = "upload"
goal = "Upload notes.txt."
start = "/upload/"
checks = ["text:notes.txt", "js:fetch('../ledger').then(r => r.json()).then(l => l.some(e => e.kind === 'upload'))"]
budget = { steps = 15, seconds = 600 }
does = [{ upload = "button Choose file", file = "notes.txt" }]
"#;

/// A world with these tasks, and a player that knows them.
fn world(tasks: &str, change: impl FnOnce(&mut Vec<Task>)) -> (World, Player) {
    let world = World::new(THREE_STEPS);
    let file = world.path("tasks.toml");
    fs::write(&file, tasks).unwrap();
    fs::create_dir(world.path("files")).unwrap();
    fs::write(world.path("files/notes.txt"), "a note\n").unwrap();
    let mut tasks = gyrus_player::read(&file).unwrap();
    change(&mut tasks);
    let player = Player::start(tasks).unwrap();
    (world, player)
}

fn report(world: &World, folder: &str) -> Value {
    serde_json::from_str(&read(&world.path(folder).join("report.json"))).unwrap()
}

#[test]
fn a_regression_is_pointed_at() {
    if !has_browser() {
        return;
    }
    let (world, player) = world(TASKS, |_| {});
    let tasks = world.path("tasks.toml").display().to_string();
    let (before, after) = (world.path("before"), world.path("after"));
    let before = before.to_str().unwrap();
    let model = player.model();
    let evaluate = ["eval", &tasks, "--model", &model, "--report", before];
    let told = said(browsing(&world, &evaluate).output().unwrap()).exits(0);
    assert!(told.out.contains("4 of 4 passed"), "{told:#?}");

    let found = report(&world, "before");
    assert_eq!(found["totals"]["passed"], 4);
    assert_eq!(found["totals"]["landed_elsewhere"], 0);
    assert_eq!(found["attempts"][1]["task"], "order");
    assert!(found["attempts"][1]["questions"]["allowed"].as_u64() >= Some(1));
    assert!(found["attempts"][1]["tokens"]["cached"].as_u64() > Some(0));
    // What was allowed stands in the run's journal with who allowed it.
    let run = found["attempts"][1]["run"].as_str().unwrap();
    let shown = world.gyrus(&["show", run]).exits(0);
    assert!(shown.out.contains("gyrus eval"), "{}", shown.out);
    assert!(read(&world.path("before/index.html")).contains("film-2.html"));
    assert!(world.path("before/film-2.html").exists());
    let figures = player.figures();
    assert_eq!(
        (figures.not_in_text, figures.never_found),
        (0, 0),
        "{figures:?}"
    );

    // One that pauses somebody else.
    let mut tasks_of_another = gyrus_player::read(&world.path("tasks.toml")).unwrap();
    for task in tasks_of_another
        .iter_mut()
        .filter(|task| task.id == "pause")
    {
        task.does[1].within = None;
    }
    let another = Player::start(tasks_of_another).unwrap();
    let model = another.model();
    let after = after.to_str().unwrap();
    let evaluate = [
        "eval", &tasks, "--model", &model, "--report", after, "--only", "pause",
    ];
    let told = said(browsing(&world, &evaluate).output().unwrap()).exits(1);
    assert!(told.out.contains("0 of 1 passed"), "{told:#?}");
    // The strength that was required is not taken for the outcome.
    let page = read(&world.path("after/index.html"));
    assert!(page.contains("0 of 1 passed") && page.contains(">at least "));
    for word in ["checked", "verified", "claimed"] {
        assert!(!page.contains(&format!(">{word}<")), "{word}");
    }
    // A server finds both, also when the folders are gone.
    let server = Server::start(&world);
    let listed = server.get("/api/evals").is(200).json();
    let passed: Vec<_> = listed.as_array().unwrap().iter().collect();
    let passed: Vec<_> = passed.iter().map(|one| &one["totals"]["passed"]).collect();
    assert_eq!(passed, [0, 4], "{listed:#}");
    let path = format!("/api/evals/{}", listed[1]["id"].as_str().unwrap());
    assert_eq!(server.get(&path).is(200).json(), found);
    server.get("/api/evals/..%2fkeys").is(404);
    drop(server);
    let compared = world.gyrus(&["eval", "compare", before, after]).exits(1);
    assert!(compared.out.contains("1 worse"), "{compared:#?}");
    assert!(
        compared.out.contains("pause: 0 of 1 passed, was 1 of 1"),
        "{compared:#?}"
    );
    assert!(compared.out.contains("check"), "it says why: {compared:#?}");
    world.gyrus(&["eval", "compare", before, before]).exits(0);
}

#[test]
fn interrupted_it_ends_all_and_reports_what_is_done() {
    if !has_browser() {
        return;
    }
    let (world, _player) = world(TASKS, |_| {});
    // A model that never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let model = format!("http://{}/v1#silent", silent.local_addr().unwrap());
    let (tasks, folder) = (world.path("tasks.toml"), world.path("report"));
    let arguments = [
        "eval",
        tasks.to_str().unwrap(),
        "--model",
        &model,
        "--report",
        folder.to_str().unwrap(),
    ];
    let child = browsing(&world, &arguments)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    world.wait_for(|entry| matches!(entry, Entry::ModelCall(_)));
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let told = said(child.wait_with_output().unwrap()).exits(130);
    assert!(
        told.out.contains("4 of 4 attempts were not made"),
        "{told:#?}"
    );
    assert_eq!(report(&world, "report")["interrupted"], true);
    let store = world.store();
    let run = gyrus_kernel::log_name(world.runs()[0]);
    assert!(store.holder(&run).unwrap().is_none(), "nothing goes on");
}

#[test]
fn what_is_wrong_is_told_before_anything_begins() {
    let world = World::new(THREE_STEPS);
    let file = world.path("work/tasks.toml");
    fs::write(&file, TASKS).unwrap();
    fs::create_dir(world.path("work/there")).unwrap();
    world.gyrus(&["eval"]).exits(2);
    for (arguments, expected) in [
        (
            &["eval", "nowhere.toml"][..],
            "the suite nowhere.toml cannot be read",
        ),
        (
            &["eval", "tasks.toml", "--only", "ordr"],
            "did you mean `order`?",
        ),
        (
            &["eval", "tasks.toml", "--repeat", "0"],
            "0 is not in 1..=100",
        ),
        (
            &["eval", "tasks.toml", "tasks.toml"],
            "two tasks are called `question`",
        ),
        (&["eval", "tasks.toml", "--report", "there"], "there exists"),
        (&["eval", "tasks.toml"], "/nowhere/browser"),
        (
            &["eval", "compare", "there", "there"],
            "is not a report of an evaluation",
        ),
    ] {
        world.gyrus(arguments).exits(2).says(expected);
    }
    assert_eq!(
        fs::read_dir(world.work()).unwrap().count(),
        2,
        "nothing is left behind"
    );
}
