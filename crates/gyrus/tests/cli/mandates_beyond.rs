//! Calls beyond the mandate, and mandates of which not all holds.

use gyrus_kernel::{CallEnd, Entry};
use serde_json::{Value, json};

use crate::{
    mandates::{script, scripted},
    office::Office,
    serving::results,
    support::World,
};

use CallEnd::{Done, Refused};

/// A script that states these calls, makes several in one reply and then those of `after`, and
/// finishes.
fn in_one_turn(stated: Value, calls: &[(&str, Value)], after: &[(&str, Value)]) -> String {
    let turn: Vec<_> = calls
        .iter()
        .map(|(tool, arguments)| {
            let arguments = toml::Value::try_from(arguments).unwrap();
            format!("{{ tool = \"office__{tool}\", arguments = {arguments} }}")
        })
        .collect();
    let mandate = json!({"calls": stated}).to_string();
    let start = format!(
        "[[reply]]\npurpose = \"mandate\"\ntext = '''{mandate}'''\n[[reply]]\ncalls = [{}]\n",
        turn.join(", ")
    );
    start + &script(&[], after)
}

fn settled(world: &World) -> Vec<CallEnd> {
    let mut settled: Vec<_> = results(world).into_iter().map(|(one, _)| one).collect();
    settled.pop();
    settled
}

#[test]
fn several_calls_of_a_turn_are_one_question() {
    let mail = |to: &str, body: &str| ("send_mail", json!({"recipients": [to], "body": body}));
    let office = Office::open(json!({"events": []}));
    // Deleting is asked about by itself, and nothing else goes with the yes: neither the same call
    // once more, nor one with another text.
    let turn = [
        mail("anna@x.com", "one"),
        mail("bob@x.com", "two"),
        ("search_events", json!({"query": "x"})),
        ("send_money", json!({"account": "DE1", "amount": 3})),
        ("delete_event", json!({"event_id": "4"})),
    ];
    // What the mandate states still passes.
    let stated = json!([
        {"id": "a", "tool": "office__create_event", "arguments": {"participants": "carl@x.com"}},
    ]);
    let event = json!({"title": "x", "participants": ["carl@x.com"]});
    let after = [
        ("create_event", event),
        mail("anna@x.com", "one"),
        mail("bob@x.com", "other"),
    ];
    let world = scripted(&office, &[], &[]);
    let script = in_one_turn(stated, &turn, &after);
    std::fs::write(world.path("script.toml"), script).unwrap();
    let goal = "tell them, and invite carl@x.com";
    let said = world.gyrus(&["run", goal, "--on-ask", "park"]).exits(5);
    for words in [
        "The run wants to make these 3 calls",
        "1. office__send_mail",
        "recipients: [\"anna@x.com\"]",
        "3. office__send_money",
        "goes to `bob@x.com`, which you did not name",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(!said.err.contains("delete_event"), "{}", said.err);
    world.gyrus(&["approve", "last"]).exits(0);
    // What is asked about by itself, each denied.
    let said = world.gyrus(&["resume", "last"]).exits(5);
    assert!(said.err.contains("deletes at the server"), "{}", said.err);
    assert_eq!(office.ledger().len(), 3, "{:?}", office.ledger());
    for code in [5, 5, 0] {
        world.gyrus(&["deny", "last"]).exits(0);
        world.gyrus(&["resume", "last"]).exits(code);
    }
    assert_eq!(
        settled(&world),
        [Done, Done, Done, Done, Refused, Done, Refused, Refused]
    );
    assert_eq!(office.ledger().len(), 4, "{:?}", office.ledger());
    world.replays();
}

#[test]
fn a_no_to_several_calls_is_one_no() {
    let mail = |to: &str| ("send_mail", json!({"recipients": [to], "body": "x"}));
    let office = Office::open(json!({"events": []}));
    let world = scripted(&office, &[], &[]);
    let turn = [mail("anna@x.com"), mail("bob@x.com")];
    std::fs::write(
        world.path("script.toml"),
        in_one_turn(json!([]), &turn, &[]),
    )
    .unwrap();
    world
        .gyrus(&["run", "tell them", "--on-ask", "park"])
        .exits(5);
    world
        .gyrus(&["deny", "last", "--reason", "not today"])
        .exits(0);
    let said = world.gyrus(&["resume", "last"]).exits(0);
    assert!(
        said.err
            .contains("together with others of this turn: not today"),
        "{}",
        said.err
    );
    assert!(office.ledger().is_empty());
    world.replays();
}

#[test]
fn of_a_mandate_that_does_not_hold_the_rest_does() {
    let office = Office::open(json!({
        "events": [{"title": "Spotify, March", "amount": 50}, {"title": "March", "amount": 12.5}],
    }));
    let mandate = json!({"calls": [
        {"id": "evil", "tool": "office__send_mail", "arguments": {"recipients": "evil@y.com"}},
        {"id": "after", "tool": "office__create_event", "arguments": {"participants": "{evil.to}"}},
        {"id": "paid", "tool": "office__search_events", "arguments": {"query": "March"}},
        {
            "id": "pay", "tool": "office__send_money", "times": 2,
            "arguments": {"account": "Spotify", "amount": "up to {paid.amounts}"},
        },
    ]})
    .to_string();
    let pay = |amount: Value| {
        (
            "send_money",
            json!({"account": "Spotify", "amount": amount}),
        )
    };
    let calls = [
        (
            "send_mail",
            json!({"recipients": ["evil@y.com"], "body": "x"}),
        ),
        ("search_events", json!({"query": "March"})),
        pay(json!(50.01)),
        pay(json!(-5)),
        pay(json!(5)),
        pay(json!(50)),
        pay(json!(1)),
    ];
    let mandates = [mandate.clone(), mandate.clone(), mandate];
    let world = scripted(&office, &mandates, &calls);
    world
        .gyrus(&[
            "run",
            "send Spotify the difference for March",
            "--approve",
            "never",
        ])
        .exits(0);
    assert_eq!(
        settled(&world),
        [Refused, Done, Refused, Refused, Done, Done, Refused]
    );
    let set = world.entries().into_iter().find_map(|entry| match entry {
        Entry::MandateSet(set) => Some(set.text),
        _ => None,
    });
    assert_eq!(
        set.unwrap(),
        "paid = office__search_events(query: March) · pay = office__send_money(account: \
         Spotify, amount: up to {paid.amounts}) up to 2 times"
    );
    world.replays();
}
