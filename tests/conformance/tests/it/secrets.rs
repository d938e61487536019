//! Secrets stay out of the journal's bytes, and reach the tools that need them all the same.

use std::{fs, path::Path};

use gyrus_conformance::{
    scenario::Scenario,
    script::{Script, Turn},
    world::{APPEND, FINISH, LOOK, PUT, claim, line, value},
};
use gyrus_contract::{MessageBody, ModelError, Origin, Text};
use gyrus_kernel::{Ending, redact::Secret};
use serde_json::json;

const SECRET: &str = "correct-horse-battery-staple";

/// Every file below a folder that holds the secret.
fn leaks(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(leaks(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            if bytes
                .windows(SECRET.len())
                .any(|window| window == SECRET.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[tokio::test]
async fn no_secret_is_ever_written_and_tools_get_the_real_one() {
    let quoting = ModelError::RateLimited {
        after_ms: Some(0),
        message: format!("too many requests with the key {SECRET}"),
    };
    let script = Script::agent([
        Turn::say(&format!("The key is {SECRET}.")).and_call(PUT, value("key", SECRET)),
        Turn::call(LOOK, json!({})).after([quoting]),
        Turn::call(APPEND, line(&format!("key={SECRET}"))),
        Turn::call(FINISH, claim(&format!("the key {SECRET} is in place"))),
    ]);
    let mut scenario = Scenario::new("react", script).with_secrets(vec![Secret {
        name: "DB_KEY".to_owned(),
        value: SECRET.to_owned(),
    }]);
    scenario.new.goal = Text::new(format!("put the key {SECRET} in place"), Origin::Person);
    // Else a person would be asked before a secret is written anywhere.
    scenario.policy = r#"
        [[rule]]
        decide = "allow"
        why = "the person wants the key there"
        tool = ["put", "append"]
    "#;
    let bench = scenario.bench();
    let ready = bench.create();
    bench.send(MessageBody::steer("and do not lose it"));
    let ended = ready.drive().await.unwrap();
    let Ending::Reached { claim, .. } = &ended.ending else {
        panic!("{ended:?}")
    };
    assert!(!claim.answer.contains(SECRET), "{claim:?}");
    assert_eq!(leaks(bench.store.root()), Vec::<String>::new());

    let state = bench.world.state();
    assert_eq!(
        state.values["key"], SECRET,
        "the tool did not get the real one"
    );
    assert_eq!(state.lines, [format!("key={SECRET}")]);
    for prompt in bench.model.heard() {
        let text = serde_json::to_string(&prompt).unwrap();
        assert!(!text.contains(SECRET), "a model saw it: {text}");
        assert!(text.contains("⟦secret:DB_KEY⟧"));
    }
    bench.kernel.replay(bench.run()).await.unwrap();
}
