//! A run teaches, and the next one needs no model, where a person said yes to that, and nowhere
//! else. The list of the shop says what really happened.

use std::{
    fs,
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gyrus_contract::{Grant, Principal};
use gyrus_kernel::{Entry, grants, log_name};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    browsing::{browsing, ended, has_browser},
    http,
    server::Server,
    support::{Said, World},
    terminal::Terminal,
};

const COMMAND: &str = "Request the blue mug for Ada Lovelace.";

/// Asks with the values of the command, and finishes.
const ORDERS: &str = r#"
[[reply]]
find = { item = '(\w+) combobox "Item"', who = '(\w+) textbox "Your name"', order = '(\w+) button "Request it"' }
text = '''{"note": "all at once", "actions": [{"do": "select_option", "on": "{{item}}", "option": "ITEM"}, {"do": "type_text", "on": "{{who}}", "text": "WHO"}, {"do": "click", "on": "{{order}}"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "It is requested."}]}'''
"#;

/// Finds the form behind a link, and goes on as [`ORDERS`] does.
const LOOKS_FOR_THE_FORM: &str = r#"
[[reply]]
find = { link = '(\w+) link "Request something"' }
text = '''{"note": "it moved", "actions": [{"do": "click", "on": "{{link}}"}]}'''
"#;

/// A shop with one form, which can be put behind a link.
struct Shop {
    address: String,
    orders: Arc<Mutex<Vec<String>>>,
    is_moved: Arc<AtomicBool>,
}

impl Shop {
    fn open() -> Self {
        let orders: Arc<Mutex<Vec<String>>> = Arc::default();
        let is_moved = Arc::new(AtomicBool::new(false));
        let (taken, moved) = (orders.clone(), is_moved.clone());
        let address = http::serve(move |asked| match (asked.method(), asked.path()) {
            ("POST", "/request") => {
                taken.lock().push(asked.text());
                "<!doctype html><title>Thanks</title><p role=status>Thank you for your request.</p>"
                    .to_owned()
            }
            ("GET", "/") if moved.load(Ordering::Relaxed) => {
                "<!doctype html><title>Shop</title><h1>Shop</h1><a href=/form>Request something</a>"
                    .to_owned()
            }
            _ => "<!doctype html><title>Shop</title><h1>Shop</h1>\
                 <form method=post action=/request>\
                 <label>Item <select name=item><option>red mug<option>blue mug<option>green mug\
                 </select></label> <label>Your name <input name=who></label>\
                 <button>Request it</button></form>"
                .to_owned(),
        });
        Self {
            address,
            orders,
            is_moved,
        }
    }

    fn orders(&self) -> Vec<String> {
        self.orders.lock().clone()
    }
}

/// A world in which typing and sending at a shop is allowed, as a person does it once.
fn world(shop: &Shop) -> World {
    let world = World::new(&script("", "blue mug", "Ada Lovelace"));
    let person = Principal {
        surface: "command line".to_owned(),
        id: "tester".to_owned(),
    };
    let grant = Grant::Origin {
        origin: shop.address.clone(),
    };
    let work = world.work().canonicalize().unwrap();
    grants::give(&world.store(), &work, &[grant], &person).unwrap();
    world
}

fn script(before: &str, item: &str, who: &str) -> String {
    before.to_owned() + &ORDERS.replace("ITEM", item).replace("WHO", who)
}

/// Starts a run on the shop's page. Without a script there is no model.
fn start(world: &World, shop: &Shop, command: &str, more: &[&str]) -> Child {
    let check = "text:Thank you for your request.";
    let fixed = ["run", "--approve", "auto", "--url", &shop.address];
    let checks = ["--check", check, "--require", "checked"];
    let arguments = [&fixed[..], &checks, more, &["--", command]].concat();
    browsing(world, &arguments).spawn().unwrap()
}

fn run(world: &World, shop: &Shop, command: &str, more: &[&str]) -> Said {
    ended(start(world, shop, command, more))
}

/// Starts a command that only says what is wanted, where no model is configured.
pub(crate) fn without_model(world: &World, arguments: &[&str]) -> Child {
    let mut command = browsing(world, arguments);
    command.env_remove("GYRUS_MODEL");
    command.stdin(Stdio::null()).spawn().unwrap()
}

fn listed(world: &World) -> Vec<Value> {
    let listed = world.gyrus(&["procedures", "list", "--json"]).exits(0);
    serde_json::from_str(&listed.out).unwrap()
}

/// Learns to order and returns the name of the procedure.
fn learn(world: &World, shop: &Shop) -> String {
    run(world, shop, COMMAND, &[]).exits(0);
    let listed = listed(world);
    assert_eq!(listed.len(), 1, "{listed:#?}");
    listed[0]["name"].as_str().unwrap().to_owned()
}

fn learn_and_promote(world: &World, shop: &Shop) -> String {
    let name = learn(world, shop);
    world
        .gyrus(&["procedures", "promote", &name, "--yes"])
        .exits(0);
    name
}

/// Number of questions to models in the newest run.
pub(crate) fn questions(world: &World) -> usize {
    let run = *world.runs().last().unwrap();
    let reader = world.store().reader(&log_name(run)).unwrap();
    let entries = reader.entries(1).unwrap();
    entries
        .filter(|entry| {
            let entry = gyrus_kernel::parse(entry.as_ref().unwrap()).unwrap();
            matches!(entry, Entry::ModelCall(_))
        })
        .count()
}

#[test]
fn the_second_time_needs_no_model() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    let name = learn(&world, &shop);
    assert_eq!(shop.orders(), ["item=blue+mug&who=Ada+Lovelace"]);
    let again = "Request the green mug for Mary Shelley.";

    // What nobody promoted is not replayed.
    let said = ended(without_model(&world, &["run", "--", again])).exits(2);
    assert!(said.err.contains("there is no model"), "{said:#?}");
    let shown = world
        .gyrus(&["procedures", "promote", &name, "--yes"])
        .exits(0);
    assert!(shown.out.contains("← binds you"), "{shown:#?}");
    assert!(shown.out.contains("Request it"), "{shown:#?}");

    // Without an address it begins where it was learned.
    let said = ended(without_model(
        &world,
        &["run", "--approve", "auto", "--", again],
    ))
    .exits(0);
    assert!(
        said.err
            .contains(&format!("replays the procedure `{name}`")),
        "{said:#?}"
    );
    assert_eq!(questions(&world), 0);
    assert_eq!(shop.orders()[1..], ["item=green+mug&who=Mary+Shelley"]);
    // All of it again, from the journal alone.
    world.gyrus(&["replay", "last"]).exits(0);

    let named = [
        "procedures",
        "run",
        &name,
        "red mug",
        "Grace Hopper",
        "--approve",
        "auto",
    ];
    ended(without_model(&world, &named)).exits(0);
    assert_eq!(shop.orders()[2..], ["item=red+mug&who=Grace+Hopper"]);
    let listed = listed(&world);
    assert_eq!(listed[0]["counts"]["replayed"], 2, "{listed:#?}");
    assert_eq!(listed[0]["version"], 1);
}

#[test]
fn nothing_else_is_replayed() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    let name = learn_and_promote(&world, &shop);
    let plain = COMMAND.trim_end_matches('.');
    let none = |arguments: &[&str]| {
        let said = ended(without_model(&world, arguments)).exits(2);
        assert!(said.err.contains("there is no model"), "{said:#?}");
    };
    for near in [
        format!("Don't {plain}."),
        format!("{plain} tomorrow."),
        format!("{plain} unless it rains."),
        format!("Never {plain}."),
        format!("{COMMAND} Then cancel it."),
    ] {
        none(&["run", "--", &near]);
    }
    // Other wishes than the learned one.
    for flags in [
        &["--no-procedure"][..],
        &["--loop", "react"],
        &["--require", "verified"],
        &["--screen", "none"],
    ] {
        none(&[&["run"], flags, &["--", COMMAND]].concat());
    }
    let file = world.path("more.txt");
    fs::write(&file, "and a tea pot").unwrap();
    let file = file.to_str().unwrap();
    none(&["run", "--file", file, "--", COMMAND]);
    // Another site that looks the same.
    let other = Shop::open();
    none(&["run", "--url", &other.address, "--", COMMAND]);
    // A goal that no person typed.
    let mut piped = browsing(&world, &["run", "-"]);
    piped.env_remove("GYRUS_MODEL").stdin(Stdio::piped());
    let mut piped = piped.spawn().unwrap();
    {
        use std::io::Write as _;
        let mut goal = piped.stdin.take().unwrap();
        goal.write_all(COMMAND.as_bytes()).unwrap();
    }
    assert!(ended(piped).exits(2).err.contains("there is no model"));
    world.gyrus(&["procedures", "forget", &name]).exits(0);
    none(&["run", "--", COMMAND]);
    assert_eq!((shop.orders().len(), other.orders().len()), (1, 0));
}

#[test]
fn two_at_once_are_both_counted() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    learn_and_promote(&world, &shop);
    let start = |who: &str| {
        let command = format!("Request the red mug for {who}.");
        without_model(&world, &["run", "--approve", "auto", "--", &command])
    };
    let both = [start("Grace Hopper"), start("Mary Shelley")];
    for run in both {
        ended(run).exits(0);
    }
    let mut orders = shop.orders().split_off(1);
    orders.sort();
    let expected = [
        "item=red+mug&who=Grace+Hopper",
        "item=red+mug&who=Mary+Shelley",
    ];
    assert_eq!(orders, expected);
    assert_eq!(listed(&world)[0]["counts"]["replayed"], 2);
}

#[test]
fn a_killed_replay_orders_once() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    learn_and_promote(&world, &shop);
    // The entry at which a whole replay has ended.
    let arguments = ["run", "--approve", "auto", "--", COMMAND];
    ended(without_model(&world, &arguments)).exits(0);
    let whole = {
        let run = *world.runs().last().unwrap();
        world.store().reader(&log_name(run)).unwrap().end().unwrap()
    };
    for after in (4..whole).step_by(11) {
        let before = shop.orders().len();
        let mut killed = browsing(&world, &arguments);
        killed.env_remove("GYRUS_MODEL");
        killed.env("GYRUS_CRASH_AFTER", after.to_string());
        ended(killed.spawn().unwrap());
        let said = ended(without_model(
            &world,
            &["resume", "last", "--approve", "auto"],
        ));
        let made = shop.orders().len() - before;
        assert!(made <= 1, "killed after {after}: {made} orders; {said:#?}");
        // It says that it is done only if it is.
        if said.code == Some(0) {
            assert_eq!(made, 1, "killed after {after}: {said:#?}");
        }
    }
}

#[test]
fn a_model_takes_over_and_the_next_time_needs_none() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    let name = learn_and_promote(&world, &shop);
    shop.is_moved.store(true, Ordering::Relaxed);
    // Nobody is there to take over: it stops, with a true sentence.
    let said = ended(without_model(
        &world,
        &["run", "--approve", "auto", "--", COMMAND],
    ))
    .exits(7);
    assert!(said.err.contains("no model is configured"), "{said:#?}");
    assert_eq!(shop.orders().len(), 1);
    assert_eq!(listed(&world)[0]["counts"]["handed_over"], 1);

    let finishes = script(LOOKS_FOR_THE_FORM, "green mug", "Mary Shelley");
    fs::write(world.path("script.toml"), finishes).unwrap();
    let again = "Request the green mug for Mary Shelley.";
    let said = run(&world, &shop, again, &[]).exits(0);
    assert!(said.err.contains("was repaired"), "{said:#?}");
    assert_eq!(shop.orders()[1..], ["item=green+mug&who=Mary+Shelley"]);
    let kept = &listed(&world)[0];
    assert_eq!(
        (&kept["version"], &kept["versions"]),
        (&2.into(), &2.into())
    );
    assert_eq!(kept["promoted"]["version"], 2);
    let diff = world.gyrus(&["procedures", "diff", &name]).exits(0);
    assert!(diff.out.contains("Request something"), "{diff:#?}");

    let third = "Request the red mug for Grace Hopper.";
    ended(without_model(
        &world,
        &["run", "--approve", "auto", "--", third],
    ))
    .exits(0);
    assert_eq!(questions(&world), 0);
    assert_eq!(shop.orders()[2..], ["item=red+mug&who=Grace+Hopper"]);
}

#[test]
fn only_a_person_promotes() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    let name = learn(&world, &shop);
    let gyrus = env!("CARGO_BIN_EXE_gyrus");
    let asks = format!(
        r#"
[[reply]]
text = "A yes of my own."
calls = [{{ tool = "shell", arguments = {{ command = "{gyrus} procedures promote {name} --yes; {gyrus} procedures forget {name}; true" }} }}]
[[reply]]
calls = [{{ tool = "finish", arguments = {{ reached = true, answer = "tried" }} }}]
"#
    );
    fs::write(world.path("script.toml"), asks).unwrap();
    world.run(&[]).exits(0);
    assert_eq!(listed(&world)[0]["promoted"], Value::Null);
    // Without a terminal nobody can say yes either.
    let said = world.gyrus(&["procedures", "promote", &name]).exits(2);
    said.says("needs your yes");
}

#[test]
fn a_procedure_becomes_a_skill_and_a_hint() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    let name = learn(&world, &shop);
    let exported = world.gyrus(&["procedures", "export", &name]).exits(0);
    let exported: Value = serde_json::from_str(&exported.out).unwrap();
    assert_eq!(exported["name"], *name);
    let file = world
        .gyrus(&["procedures", "export", &name, "--skill"])
        .exits(0)
        .out;
    let folder = file.trim().trim_end_matches("/SKILL.md");
    world.gyrus(&["skills", "check", folder]).exits(0);
    // A person can read what was learned of each application.
    let learned = world.path("home").join("procedural");
    let application = fs::read_dir(learned)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let task = fs::read_to_string(application.join(format!("{name}.json"))).unwrap();
    let task: Value = serde_json::from_str(&task).unwrap();
    assert!(task["steps"].as_array().unwrap().len() > 1, "{task}");
    assert!(
        task["timing"].is_array() && task["traps"].is_array(),
        "{task}"
    );
    // It is not written over.
    world
        .gyrus(&["procedures", "export", &name, "--skill"])
        .exits(2);

    // A goal that is like it gets what is known, as data of nobody.
    let like = "Request the green mug for Mary Shelley, and say thanks to them.";
    fs::write(
        world.path("script.toml"),
        script("", "green mug", "Mary Shelley"),
    )
    .unwrap();
    run(&world, &shop, like, &["--no-skills"]).exits(0);
    let context = context(&world);
    assert!(
        context.contains("How a similar goal was reached"),
        "{context}"
    );
    assert!(
        context.contains(r#""name":"list of procedures""#),
        "{context}"
    );
    assert!(!context.contains("Ada"), "{context}");
    // Who wants none gets none, and the learned command itself is not a hint.
    for (command, flag) in [(like, "--no-procedure"), (COMMAND, "--no-skills")] {
        run(&world, &shop, command, &[flag]).exits(0);
        assert!(!self::context(&world).contains("How a similar goal"));
    }
}

/// Returns what came with the goal of the newest run, as JSON.
fn context(world: &World) -> String {
    let run = *world.runs().last().unwrap();
    let reader = world.store().reader(&log_name(run)).unwrap();
    let first = gyrus_kernel::parse(&reader.entry(1).unwrap().unwrap()).unwrap();
    let Entry::RunStarted(started) = first else {
        panic!("{first:?}")
    };
    serde_json::to_string(&started.context).unwrap()
}

#[test]
fn at_a_terminal_the_person_is_asked_once() {
    if !has_browser() {
        return;
    }
    let browser = browser();
    let environment = [("GYRUS_BROWSER", &*browser)];
    for (answer, promoted) in [("y\n", true), ("never\n", false), ("\n", false)] {
        let shop = Shop::open();
        let world = world(&shop);
        let check = ["--check", "text:Thank you for your request."];
        let fixed = ["run", "--approve", "auto", "--url", &shop.address];
        let more = ["--require", "checked", "--no-procedure", "--", COMMAND];
        let arguments = [&fixed[..], &check, &more].concat();
        // What is typed before the question is no answer to it.
        let terminal = Terminal::start_with(&world, &arguments, "y\n", &environment);
        let Some(mut terminal) = terminal else {
            return;
        };
        terminal.shows("[y/N/never]");
        terminal.types(answer);
        assert_eq!(terminal.exit_code(), Some(0));
        let listed = listed(&world);
        assert_eq!(listed[0]["promoted"]["by"]["id"] == "tester", promoted);
        // Once is enough.
        let again = Terminal::start_with(&world, &arguments, "", &environment);
        let mut again = again.unwrap();
        let shown = again.shows("It is requested.");
        assert!(!shown.contains("[y/N/never]"), "{shown}");
        assert_eq!(again.exit_code(), Some(0));
        assert_eq!(shop.orders().len(), 2);
    }
}

/// Returns the program of the browser that tests have.
fn browser() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .filter(|path| path.exists());
    found.next().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_server_learns_and_replays_what_a_person_asks_for() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    let browser = browser();
    let check = "text:Thank you for your request.";
    let options = json!({
        "approve": "auto", "url": shop.address, "check": check, "require": "checked",
    });
    let server = Server::start_in(&world, &[], &[("GYRUS_BROWSER", &browser)]);
    let ended = server.wait_for_end(&server.run(COMMAND, &options));
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    let name = listed(&world)[0]["name"].as_str().unwrap().to_owned();
    world
        .gyrus(&["procedures", "promote", &name, "--yes"])
        .exits(0);
    // A model would not know what to say.
    fs::write(world.path("script.toml"), "").unwrap();
    let again = "Request the green mug for Mary Shelley.";
    let options = json!({"approve": "auto", "screen": "browser"});
    let ended = server.wait_for_end(&server.run(again, &options));
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    assert_eq!(questions(&world), 0);
    assert_eq!(shop.orders()[1..], ["item=green+mug&who=Mary+Shelley"]);
    assert_eq!(listed(&world)[0]["counts"]["replayed"], 1);
}

#[test]
fn a_line_of_the_prompt_is_replayed_without_a_model() {
    if !has_browser() {
        return;
    }
    let shop = Shop::open();
    let world = world(&shop);
    learn_and_promote(&world, &shop);
    let environment = [("GYRUS_BROWSER", browser()), ("GYRUS_MODEL", String::new())];
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, &**value));
    let line = "Request the red mug for Grace Hopper.\n";
    let arguments = ["--approve", "auto"];
    let Some(mut prompt) = Terminal::start_with(&world, &arguments, line, &environment) else {
        return;
    };
    prompt.shows("replays the procedure");
    prompt.shows("this session: 1 run");
    // The next line goes on from there, and is as good as the first.
    prompt.types("Request the green mug for Mary Shelley.\n");
    prompt.shows("replays the procedure");
    prompt.shows("this session: 2 runs");
    prompt.types("/quit\n");
    assert_eq!(prompt.exit_code(), Some(0));
    assert_eq!(
        shop.orders()[1..],
        [
            "item=red+mug&who=Grace+Hopper",
            "item=green+mug&who=Mary+Shelley"
        ]
    );
}
