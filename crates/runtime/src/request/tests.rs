use serde_json::{Value, json};

use super::*;

fn stored(options: &Value) -> Value {
    let goal = Text::new("go", Origin::Person);
    json!({"goal": goal, "workdir": "/work", "options": options})
}

fn read(options: &Value) -> RunRequest {
    serde_json::from_value(stored(options)).unwrap()
}

#[test]
fn options_are_read_as_any_version_wrote_them() {
    let written = json!({
        "model": ["script:a.toml"], "loop": "react", "check": ["cmd:true"], "max-steps": 10,
        "max-cost": "0.250000", "max-time": "600000ms", "approve": "bypass", "sandbox": "off",
        "worktree": true, "review": ["plan,context"], "on-ask": "park", "no-skill": ["7"],
    });
    for given in [
        written.clone(),
        json!({
            "model": "script:a.toml", "loop": "react", "check": "cmd:true", "max-steps": "10",
            "max-cost": 0.25, "max-time": "10m", "approve": "yolo", "sandbox": "danger-full-access",
            "worktree": true, "reflect": false, "review": "plan,context", "on-ask": "park",
            "no-skill": 7,
        }),
    ] {
        let request = read(&given);
        assert_eq!(request.options.refused, None, "{given}");
        assert!(request.options.flags.asks_for_a_plan().is_some());
        assert_eq!(serde_json::to_value(&request).unwrap(), stored(&written));
    }
    assert_eq!(read(&json!({})).options, RunOptions::default());
}

#[test]
fn a_command_with_options_that_cannot_be_read_is_one_all_the_same() {
    for (given, words) in [
        (
            json!({"lop": "react"}),
            "there is no option `lop`; did you mean `loop`?",
        ),
        (
            json!({"max-steps": "many"}),
            "invalid value for `--max-steps`",
        ),
        (json!({"max-steps": -1}), "invalid value for `--max-steps`"),
        (json!({"loop": {"a": 1}}), "invalid value for `--loop`"),
        (json!({"check": [1, []]}), "invalid value for `--check`"),
        (json!({"max-cost": 0}), "not an amount above 0"),
        (json!({"on-ask": "ask"}), "invalid value for `--on-ask`"),
        (
            json!({"answer-schema": "{"}),
            "invalid value for `--answer-schema`",
        ),
        // They mean the machine at which they are typed.
        (json!({"env": ["A"]}), "there is no option `env`"),
        (json!({"workdir": "/"}), "there is no option `workdir`"),
        (json!({"refused": "x"}), "there is no option `refused`"),
    ] {
        let request = read(&given);
        let refused = request.options.refused.clone().unwrap().to_string();
        assert!(refused.contains(words), "{refused}");
        let again: RunRequest =
            serde_json::from_value(serde_json::to_value(&request).unwrap()).unwrap();
        let again = again.options.refused.unwrap().to_string();
        assert_eq!(again, refused, "it does not start unnoticed");
    }
}

#[test]
fn every_option_is_described() {
    let schema = options::schema();
    let described = schema["properties"].as_object().unwrap();
    let all = serde_json::to_value(RunOptions::default()).unwrap();
    let names = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(described), names(all.as_object().unwrap()));
    assert_eq!(
        schema["properties"]["on-ask"]["enum"],
        json!(["wait", "park", "deny"])
    );
}
