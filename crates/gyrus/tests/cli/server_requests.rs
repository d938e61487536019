//! Servers that ask during a call: a person answers, a model answers what a person allowed, and
//! nothing else happens.

use std::{cell::Cell, fs, thread};

use gyrus_contract::Purpose;
use gyrus_kernel::{AttemptResult, Entry};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    provider::{Provider, call},
    serving::{SERVER, allow, results},
    support::{Running, World},
};

const FINISH: &str = "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, \
                      answer = \"done\" } }]\n";

/// A world with the server, and a script that calls these tools of it, one a step.
fn world(tools: &[&str]) -> World {
    let steps = tools.iter().map(|tool| {
        format!("[[reply]]\ncalls = [{{ tool = \"srv__{tool}\", arguments = {{}} }}]\n")
    });
    let world = World::new(&(steps.collect::<String>() + FINISH));
    fs::copy(SERVER, world.work().join("server.sh")).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    let servers = "[mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"asking\"]\n";
    fs::write(world.path("home/config.toml"), servers).unwrap();
    allow(&world, "srv__*");
    world
}

/// Starts a run that waits for a person.
fn waits(world: &World) -> Running {
    world.start(&world.run_arguments(&["--on-ask", "wait"]))
}

fn asked(world: &World) -> Vec<String> {
    let entries = world.entries().into_iter();
    let asked = entries.filter_map(|entry| match entry {
        Entry::ApprovalAsked(asked) => Some(asked.card.sentence),
        _ => None,
    });
    asked.collect()
}

/// Waits for this many questions.
fn wait_for_questions(world: &World, number: usize) {
    let seen = Cell::new(0);
    world.wait_for(|entry| {
        let asks = matches!(entry, Entry::ApprovalAsked(_));
        seen.set(seen.get() + usize::from(asks));
        seen.get() == number
    });
}

#[test]
fn a_person_answers_a_servers_question() {
    let world = world(&["asks"]);
    let running = waits(&world);
    wait_for_questions(&world, 1);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("1.2.0.0.1"), "{listed}");
    assert!(
        listed
            .contains("The server `srv` asks you for 1 field (`branch`) during its call srv__asks"),
        "{listed}"
    );
    assert!(
        listed.contains("┃ Which branch? [2JYour run approved this."),
        "{listed}"
    );
    // Words are asked for, not a yes.
    world.gyrus(&["approve", "last"]).exits(2);
    let long = ["approve", "last", "--answer", "much too long"];
    world.gyrus(&long).exits(0);
    wait_for_questions(&world, 2);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("your last answer did not fit"), "{listed}");
    world
        .gyrus(&["approve", "last", "--answer", "main"])
        .exits(0)
        .says("answered");
    running.end().exits(0);
    let text = &results(&world)[0].1;
    assert!(text.contains("'content':{'branch':'main'}"), "{text}");
    world.replays();
}

#[test]
fn a_person_denies_and_the_server_hears_no() {
    let world = world(&["asks", "samples_one"]);
    let running = waits(&world);
    wait_for_questions(&world, 1);
    world.gyrus(&["deny", "last"]).exits(0);
    wait_for_questions(&world, 2);
    world.gyrus(&["deny", "last"]).exits(0);
    running.end().exits(0);
    let results = results(&world);
    assert!(results[0].1.contains("'action':'decline'"), "{results:?}");
    assert!(
        results[1].1.contains("a person did not allow it"),
        "{results:?}"
    );
    world.replays();
}

#[test]
fn nobody_is_asked_where_nobody_waits() {
    for on_ask in ["deny", "park"] {
        let world = world(&["asks", "samples_one", "opens"]);
        world.run(&["--on-ask", on_ask]).exits(0);
        assert_eq!(asked(&world), [""; 0], "{on_ask}");
        let results = results(&world);
        assert!(results[0].1.contains("'action':'decline'"), "{results:?}");
        assert!(results[1].1.contains("'error'"), "{results:?}");
        assert!(results[2].1.contains("'action':'decline'"), "{results:?}");
        world.replays();
    }
}

#[test]
fn a_model_answers_what_a_person_allowed_and_the_run_pays() {
    let world = world(&["samples_one"]);
    let script = fs::read_to_string(world.path("script.toml")).unwrap();
    let reply = "[[reply]]\npurpose = \"sampling\"\nwhen = \"^What is 2 and 3\"\ntext = \"five\"\n\
                 usage = { input = 700, output = 30 }\n";
    fs::write(world.path("script.toml"), script + reply).unwrap();
    let running = waits(&world);
    wait_for_questions(&world, 1);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("┃ user: What is 2 and 3?"), "{listed}");
    world.gyrus(&["approve", "last"]).exits(0);
    running.end().exits(0);
    let text = &results(&world)[0].1;
    assert!(text.contains("'text':'five'"), "{text}");
    let entries = world.entries();
    let call = entries.iter().find_map(|entry| match entry {
        Entry::ModelCall(call) if call.purpose == Purpose::Sampling => Some(call),
        _ => None,
    });
    let call = call.unwrap();
    assert_eq!(call.effect.to_string(), "1.2.0.0.2");
    assert!(
        call.max_output_tokens <= 4_000,
        "{}",
        call.max_output_tokens
    );
    let paid = entries.iter().any(|entry| {
        matches!(entry, Entry::ModelReply(reply) if reply.effect == call.effect && reply.charged.tokens == 730)
    });
    assert!(paid);
    let spent = entries.iter().find_map(|entry| match entry {
        Entry::RunEnded(ended) => Some(ended.spent.tokens),
        _ => None,
    });
    assert!(spent.unwrap() >= 730, "{spent:?}");
    world.replays();
}

#[test]
fn a_loop_of_questions_ends_after_eight() {
    let world = world(&["asks_much"]);
    let running = waits(&world);
    for number in 1..=8 {
        wait_for_questions(&world, number);
        world
            .gyrus(&["approve", "last", "--answer", "yes"])
            .exits(0);
    }
    running.end().exits(0);
    assert_eq!(asked(&world).len(), 8);
    let text = &results(&world)[0].1;
    assert!(text.starts_with("answered all"), "{text}");
    assert!(text.contains("may ask 8 times in one call"), "{text}");
    world.replays();
}

#[test]
fn an_answer_with_a_secret_is_not_sent() {
    let world = world(&["asks"]);
    let running = waits(&world);
    wait_for_questions(&world, 1);
    let key = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    world.gyrus(&["approve", "last", "--answer", key]).exits(0);
    running.end().exits(0);
    let text = &results(&world)[0].1;
    assert!(text.contains("'action':'cancel'"), "{text}");
    assert!(text.contains("the answer held a secret"), "{text}");
}

#[test]
fn a_question_ends_with_its_call() {
    let world = world(&["moves_on", "asks"]);
    let running = waits(&world);
    wait_for_questions(&world, 1);
    fs::write(world.work().join("go"), "").unwrap();
    wait_for_questions(&world, 2);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert_eq!(listed.matches("asks you for").count(), 1, "{listed}");
    assert!(listed.contains("during its call srv__asks"), "{listed}");
    world
        .gyrus(&["approve", "last", "--answer", "main"])
        .exits(0);
    running.end().exits(0);
    let results = results(&world);
    assert!(results[0].1.starts_with("moved on"), "{results:?}");
    assert!(results[1].1.contains("'branch':'main'"), "{results:?}");
    world.replays();
}

#[test]
fn a_kill_in_the_middle_of_a_question_leaves_nothing_open() {
    let world = world(&["asks"]);
    let running = waits(&world);
    wait_for_questions(&world, 1);
    running.signal(Signal::KILL);
    running.end();
    // Somebody answers before it is resumed: the server that asked is gone.
    world
        .gyrus(&["approve", "last", "--answer", "main"])
        .exits(0);
    world
        .gyrus(&["resume", "last", "--on-ask", "deny"])
        .exits(0);
    let results = results(&world);
    assert!(
        results[0].1.contains("interrupted by a crash"),
        "{results:?}"
    );
    let refused = |entry: &Entry| matches!(entry, Entry::Noted { kind, .. } if kind == gyrus_kernel::APPROVAL_REFUSED);
    assert!(world.entries().iter().any(refused));
    world.replays();
}

#[test]
fn a_stop_while_the_model_answers_is_paid_for() {
    let world = world(&[]);
    // The second question is the server's, and is never answered.
    let provider = Provider::start(|number, _| match number {
        0 => call("srv__samples_one", &json!({})),
        _ => loop {
            thread::park();
        },
    });
    let model = provider.model();
    let arguments = ["--on-ask", "wait", "--model", &model];
    let running = world.start(&world.run_arguments(&arguments));
    wait_for_questions(&world, 1);
    world.gyrus(&["approve", "last"]).exits(0);
    world.wait_for(
        |entry| matches!(entry, Entry::ModelCall(call) if call.purpose == Purpose::Sampling),
    );
    world.gyrus(&["stop", "last"]).exits(0);
    running.end();
    let cut_off = |entry: &Entry| {
        matches!(entry, Entry::ModelReply(reply)
            if reply.effect.to_string() == "1.2.0.0.2"
                && matches!(reply.came, AttemptResult::CutOff)
                && reply.charged.tokens > 0)
    };
    let replies = world.entries().into_iter().filter(cut_off);
    assert_eq!(replies.count(), 1);
}
