//! The tools on real files, with a site that a test can look into.

mod ask_person;
mod changeset;
mod clipboard;
mod edit;
mod fetch;
mod glob;
mod judge;
mod list;
mod propose;
mod rank_files;
mod read;
mod search;
mod search_docs;
mod server;
mod run_as_user;
mod shell;
mod site;
mod write;

use gyrus_contract::{ActionVerdict, BuiltIn, Claim, Evidence};
use gyrus_tools::Finish;
use serde_json::json;

use crate::site::World;

#[test]
fn finish_claims() {
    let world = World::new();
    let finish = BuiltIn::new(Finish);
    let output = world.call(
        &finish,
        json!({"reached": true, "answer": "42", "evidence": [{"what": "counted", "at": "a.txt"}]}),
    );
    let evidence = vec![Evidence {
        what: "counted".to_owned(),
        at: "a.txt".to_owned(),
    }];
    assert_eq!(
        output.claim,
        Some(Claim {
            reached: true,
            answer: "42".to_owned(),
            evidence,
            shortfalls: Vec::new(),
        })
    );
    assert_eq!(
        (output.is_error, output.verdict),
        (false, ActionVerdict::NoEffect)
    );

    // Some models send the object as a string.
    let output = world.call(
        &finish,
        json!(r#"{"reached": false, "answer": "no such table"}"#),
    );
    assert!(!output.claim.unwrap().reached);

    for (arguments, words) in [
        (
            json!({"reached": true, "answer": " \n"}),
            "`answer` is empty",
        ),
        (json!({"answer": "42"}), "missing argument `reached`"),
        (
            json!({"reached": "yes", "answer": "42"}),
            "expected a boolean",
        ),
        (
            json!({"reached": true, "answer": "42", "proof": 1}),
            "unknown argument `proof`",
        ),
        (json!("done"), r#"Expected an object like {"reached": true"#),
        (json!(null), "Expected an object like"),
        (json!([true]), "Expected an object like"),
    ] {
        let output = world.call(&finish, arguments);
        assert!(
            output.is_error && output.text.contains(words),
            "{}",
            output.text
        );
        assert_eq!(output.claim, None);
    }
}
