//! A task that is done for the third time, with everything that runs remember, is done no worse.

use std::fs;

use gyrus_kernel::{Entry, log_name};
use gyrus_player::Player;
use serde_json::{Value, json};

use crate::{
    browsing::{browsing, has_browser},
    provider::{Provider, Says, call, words},
    support::{World, read, said},
};

/// Tokens by which a prompt of the third run may be longer: those of the lessons that a run is given,
/// with the sentence before them.
const MORE_TOKENS_A_PROMPT: f64 = 100.0;

/// Returns the task of ordering a clock for somebody, as the player reads it.
fn order(id: &str, goal: &str, who: &str) -> String {
    format!(
        r#"
[[task]]
id = "{id}"
goal = "{goal}"
start = "/shop/wall-clock"
checks = ["text:Thank you, {who}"]
budget = {{ steps = 15, seconds = 600 }}
does = [
  {{ click = "button Add to cart" }},
  {{ click = "link Check out" }},
  {{ type = "textbox Name", text = "{who}" }},
  {{ type = "textbox Street and number", text = "1 Row" }},
  {{ type = "textbox City", text = "London" }},
  {{ click = "button Place order" }},
]
"#
    )
}

#[test]
fn the_third_run_of_a_task_is_not_worse_than_the_first() {
    if !has_browser() {
        return;
    }
    let world = World::new("");
    let file = world.path("tasks.toml");
    let tasks = [
        order("order", "Order the wall clock for Ada in London.", "Ada"),
        order(
            "order-again",
            "Order the wall clock for Bob in London, and nothing else.",
            "Bob",
        ),
    ];
    fs::write(&file, tasks.concat()).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/config.toml"), "reflect = true\n").unwrap();
    world
        .gyrus(&["memory", "add", "Ada lives in 1 Row."])
        .exits(0);
    let player = Player::start(gyrus_player::read(&file).unwrap()).unwrap();
    let (tasks, model) = (file.display().to_string(), player.model());
    let round = |number: u32| -> Vec<Value> {
        let folder = world.path(&format!("report-{number}"));
        let folder = folder.to_str().unwrap();
        let evaluate = ["eval", &tasks, "--model", &model, "--report", folder];
        let told = said(browsing(&world, &evaluate).output().unwrap()).exits(0);
        assert!(told.out.contains("2 of 2 passed"), "{told:#?}");
        let report = read(&world.path(&format!("report-{number}/report.json")));
        let report: Value = serde_json::from_str(&report).unwrap();
        report["attempts"].as_array().unwrap().clone()
    };
    let [first, _, third] = [1, 2, 3].map(round);
    for (first, third) in first.iter().zip(&third) {
        let number = |of: &Value, path: &str| of.pointer(path).unwrap().as_u64().unwrap();
        for path in ["/steps", "/questions/asked"] {
            let (before, after) = (number(first, path), number(third, path));
            assert!(after <= before, "{path}: {after} after {before}");
        }
        let fresh = |of| number(of, "/tokens/fresh") as f64 / number(of, "/tokens/prompts") as f64;
        let more = fresh(third) - fresh(first);
        assert!(more <= MORE_TOKENS_A_PROMPT, "{more}");
    }
    // A goal that was reached directly is given no lessons; one like it, which the first run was given
    // lessons for already, keeps them, and all of that counts for them.
    let listed = world.gyrus(&["memory", "lessons", "--json"]).exits(0).out;
    let lessons: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lessons.len(), 6, "{listed}");
    let direct = |lesson: &&Value| lesson["direct"] == true;
    assert_eq!(lessons.iter().filter(direct).count(), 3, "{listed}");
    let given: Vec<&Value> = lessons
        .iter()
        .flat_map(|lesson| lesson["given"].as_array().unwrap())
        .collect();
    assert!(!given.is_empty());
    assert!(given.iter().all(|run| run["reached"] == true), "{listed}");
}

/// Words that a model looks back with; they are longer than a lesson may be.
const LONG: &str = "The work is done by looking at the folder and then at the one file that the goal \
                    names, in this order, and by writing what was found there without any change.";

/// A task of another shape than a page: how its model acts, and what it takes.
struct Shape {
    name: &'static str,
    goal: &'static str,
    /// The lesson, as the model words it.
    lesson: Value,
    /// Answers after so many results, knowing what stands in the prompt.
    acts: fn(usize, &str) -> Says,
    /// Whether the first run reaches its goal.
    reaches_at_once: bool,
}

fn finish(reached: bool) -> Says {
    call(
        "finish",
        &json!({ "reached": reached, "answer": "7 euros" }),
    )
}

fn shapes() -> Vec<Shape> {
    vec![
        Shape {
            name: "a folder",
            goal: "copy the price in price.txt to copy.txt",
            lesson: json!({ "worked": LONG, "did_not": LONG }),
            acts: |results, _| match results {
                0 => call("list", &json!({ "path": "." })),
                1 => call("read", &json!({ "path": "price.txt" })),
                2 => call(
                    "write",
                    &json!({ "path": "copy.txt", "content": "7 euros" }),
                ),
                _ => finish(true),
            },
            reaches_at_once: true,
        },
        Shape {
            name: "nothing to leave out",
            goal: "write seven euros to copy.txt",
            lesson: json!({ "worked": LONG, "did_not": LONG }),
            acts: |results, _| match results {
                0 => call(
                    "write",
                    &json!({ "path": "copy.txt", "content": "7 euros" }),
                ),
                _ => finish(true),
            },
            reaches_at_once: true,
        },
        Shape {
            name: "it fails until a lesson helps",
            goal: "find out the price of the tea and write it to copy.txt",
            lesson: json!({ "worked": "", "did_not": "The notes do not name it: read price.txt." }),
            acts: |results, asked| {
                let knows = asked.contains("read price.txt");
                match (knows, results) {
                    (false, 0..=3) => call("read", &json!({ "path": "notes.txt" })),
                    (false, _) => finish(false),
                    (true, 0) => call("read", &json!({ "path": "price.txt" })),
                    (true, 1) => call(
                        "write",
                        &json!({ "path": "copy.txt", "content": "7 euros" }),
                    ),
                    (true, _) => finish(true),
                }
            },
            reaches_at_once: false,
        },
        Shape {
            name: "a question",
            goal: "write the price to copy.txt, in the money that I use",
            lesson: json!({ "worked": "The money is euros.", "did_not": "Asking: nobody was there." }),
            acts: |results, asked| {
                let knows = asked.contains("The money is euros");
                match (knows, results) {
                    (false, 0) => call("ask_person", &json!({ "question": "Which money?" })),
                    (false, 1) | (true, 0) => call(
                        "write",
                        &json!({ "path": "copy.txt", "content": "7 euros" }),
                    ),
                    _ => finish(true),
                }
            },
            reaches_at_once: true,
        },
    ]
}

/// Figures of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Took {
    reached: bool,
    prompts: usize,
    tokens: usize,
    questions: usize,
}

/// Plays a task three times in one home.
fn three_times(shape: &Shape) -> [Took; 3] {
    let (acts, lesson) = (shape.acts, shape.lesson.to_string());
    let model = Provider::start(move |_, request| {
        let asked = request.to_string();
        if asked.contains("Write down for later runs") {
            return words(&lesson);
        }
        let results = request["messages"].as_array().into_iter().flatten();
        acts(results.filter(|one| one["role"] == "tool").count(), &asked)
    });
    let world = World::new("");
    fs::write(world.work().join("price.txt"), "7 euros\n").unwrap();
    fs::write(world.work().join("notes.txt"), "nothing\n").unwrap();
    let noted = "Prices are written in euros, and copied to copy.txt.";
    world.gyrus(&["memory", "add", noted]).exits(0);
    let name = model.model();
    [1, 2, 3].map(|_| {
        let before = model.asked.lock().len();
        let arguments = [
            "run",
            shape.goal,
            "--workdir",
            ".",
            "--reflect",
            "--loop",
            "react",
            "--on-ask",
            "deny",
            "--check",
            "test -s copy.txt",
            "--model",
            &name,
        ];
        let told = world.gyrus(&arguments);
        let _ = fs::remove_file(world.work().join("copy.txt"));
        let newest = *world.runs().iter().max().unwrap();
        let reader = world.store().reader(&log_name(newest)).unwrap();
        let entries = reader.entries(1).unwrap();
        let asks = |entry: &Entry| matches!(entry, Entry::ToolCalled(called) if called.call.tool == "ask_person");
        let entries = entries.map(|entry| gyrus_kernel::parse(&entry.unwrap()).unwrap());
        let prompts = &model.asked.lock()[before..];
        let texts = prompts.iter().map(|prompt| prompt["messages"].to_string());
        Took {
            reached: told.code == Some(0),
            prompts: prompts.len(),
            tokens: texts.map(|text| gyrus_text::tokens(&text)).sum(),
            questions: entries.filter(asks).count(),
        }
    })
}

#[test]
fn tasks_of_other_shapes_take_no_more_the_third_time() {
    for shape in shapes() {
        let name = shape.name;
        let [first, second, third] = three_times(&shape);
        println!("{name}: {first:?}, {second:?}, {third:?}");
        assert_eq!(first.reached, shape.reaches_at_once, "{name}");
        assert!(second.reached && third.reached, "{name}");
        assert!(
            third.prompts <= first.prompts,
            "{name}: {third:?} after {first:?}"
        );
        assert!(third.questions <= first.questions, "{name}");
        let a_prompt = |took: Took| took.tokens as f64 / took.prompts as f64;
        let more = a_prompt(third) - a_prompt(first);
        let all = third.tokens as f64 - first.tokens as f64;
        let most = MORE_TOKENS_A_PROMPT * third.prompts as f64;
        assert!(all <= most, "{name}: {all} more in all, {more} a prompt");
    }
}
