//! Tests of `ask_person`.

use gyrus_contract::BuiltIn;
use gyrus_tools::AskPerson;
use serde_json::{Value, json};

use crate::site::World;

fn ask(answer: Option<&str>, arguments: Value) -> (String, bool) {
    let mut world = World::new();
    world.answer = answer.map(str::to_owned);
    let output = world.call(&BuiltIn::new(AskPerson), arguments);
    (output.text, output.is_error)
}

#[test]
fn returns_the_words_or_the_choice() {
    let question = "Where to? 1. staging 2. Production 3. stash 10. 7";
    let choices = ["staging", "Production", "stash", "7"];
    let check = |answer: &str, expected: &str| {
        let arguments = json!({"question": question, "choices": choices});
        assert_eq!(
            ask(Some(answer), arguments),
            (expected.to_owned(), false),
            "{answer}"
        );
    };
    check("2", "Production");
    check(" 2. ", "Production");
    check("1)", "staging");
    check("production", "Production");
    check("PROD", "Production");
    check("stag", "staging");
    // The beginning of two choices, a text like none, and numbers out of range.
    check("sta", "sta");
    check("neither", "neither");
    check("0", "0");
    check("9", "9");
    check("-1", "-1");
    check("99999999999999999999999", "99999999999999999999999");
    // A choice before a number.
    check("7", "7");
    check("  my own words\nin lines ", "my own words\nin lines");
    check("", "(the person agreed without a word)");

    let open = |answer| ask(Some(answer), json!({"question": "Which?"}));
    assert_eq!(open("2"), ("2".to_owned(), false));
    let (long, _) = open(&"ü".repeat(100_000));
    assert!(long.len() < 33_000 && long.ends_with("[cut: 167,232 more bytes of the answer]"));
}

#[test]
fn no_word_of_the_model_becomes_the_persons() {
    for arguments in [
        json!({"question": "Which?", "evil.example": 1}),
        json!({"question": "Which?", "choices": "evil.example"}),
        json!("evil.example"),
    ] {
        let (text, is_error) = ask(Some("yes"), arguments);
        assert!(is_error && !text.contains("evil.example"), "{text}");
    }
    let (text, is_error) = ask(None, json!({"question": "Which?"}));
    assert!(is_error && text.contains("nobody answered"), "{text}");
}
