//! Questions and prompts of servers during their calls.

use std::time::{Duration, Instant};

use gyrus_contract::{AnswerForm, PersonReply, ToolOutput};
use gyrus_mcp::{RequestPolicy, ServerSetup};
use serde_json::json;

use crate::world::{TIMEOUT, World, named, ready};

fn says(words: &str) -> PersonReply {
    PersonReply::Accepted(words.to_owned())
}

/// Calls a tool, and then a plain one: whatever a server asks, it goes on being of use.
async fn called(world: &World, name: &str) -> ToolOutput {
    let (servers, tools) = ready(world.setup("asking")).await;
    let output = world
        .call(named(&tools, &format!("srv__{name}")), json!({}))
        .await;
    let echo = named(&tools, "srv__echo");
    let after = world.call(echo, json!({"message": "again"})).await;
    assert_eq!(after.text, "you said again");
    servers.leave().await;
    output
}

#[tokio::test]
async fn a_person_answers_a_question() {
    let world = World::with_person([says("main")]);
    let output = called(&world, "asks").await;
    assert!(
        output.text.contains("'action':'accept'") && output.text.contains("'branch':'main'"),
        "{output:?}"
    );
    assert!(
        output
            .text
            .contains("[meanwhile the server asked for an answer of the person, who gave it"),
        "{output:?}"
    );
    let [asked] = &world.asked()[..] else {
        panic!("{:?}", world.asked());
    };
    assert_eq!(
        asked.sentence,
        "The server `srv` asks you for 1 field (`branch`) during its call srv__asks"
    );
    assert_eq!(
        asked.text,
        "Which branch? [2JYour run approved this.\nbranch (required): a text; Branch"
    );
    assert_eq!(asked.wants, AnswerForm::Words);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let world = World::with_person([says("far too long a name"), says("main")]);
    let output = called(&world, "asks").await;
    assert!(output.text.contains("'branch':'main'"), "{output:?}");
    let again = &world.asked()[1].reasons[0];
    assert_eq!(
        again,
        "your last answer did not fit: `branch` is not a text of at most 8 characters"
    );
    let world = World::with_person(["too long 1", "too long 2", "too long 3"].map(says));
    let output = called(&world, "asks").await;
    assert!(output.text.contains("'action':'cancel'"), "{output:?}");
    assert_eq!(world.asked().len(), 3);
}

#[tokio::test]
async fn a_person_refuses() {
    for reply in [says("Decline"), PersonReply::Declined] {
        let output = called(&World::with_person([reply]), "asks").await;
        assert!(output.text.contains("'action':'decline'"), "{output:?}");
        assert!(output.text.contains("a person refused"), "{output:?}");
    }
    let output = called(&World::with_person([]), "asks").await;
    assert!(output.text.contains("'action':'decline'"), "{output:?}");
    assert!(output.text.contains("nobody can be asked"), "{output:?}");
}

#[tokio::test]
async fn a_person_says_that_a_page_was_visited() {
    let world = World::with_person([says("")]);
    let output = called(&world, "opens").await;
    assert!(output.text.contains("'action':'accept'"), "{output:?}");
    let asked = &world.asked()[0];
    assert_eq!(
        asked.sentence,
        "The server `srv` asks you to open a page at login.example during its call srv__opens"
    );
    assert_eq!(asked.text, "https://login.example/start?a=1\nLog in there");
    assert_eq!(asked.wants, AnswerForm::Decision);
}

#[tokio::test]
async fn a_model_answers_a_prompt_that_a_person_allowed() {
    let world = World::with_person([says("")]);
    let output = called(&world, "samples_one").await;
    assert!(
        output.text.contains("'text':'five'") && output.text.contains("'model':'tester'"),
        "{output:?}"
    );
    let asked = &world.asked()[0];
    assert_eq!(
        asked.sentence,
        "The server `srv` asks for a reply of a model to its own prompt, of at most 4,000 tokens, \
         during its call srv__samples_one"
    );
    assert_eq!(
        asked.text,
        "instructions: Be brief.\nuser: What is 2 and 3?\n"
    );
    let output = called(&World::with_person([PersonReply::Declined]), "samples_one").await;
    assert!(output.text.contains("'error'"), "{output:?}");
}

#[tokio::test]
async fn odd_questions_and_prompts_reach_nobody() {
    let world = World::with_person(["a", "b", "c"].map(says));
    let output = called(&world, "asks_oddly").await;
    assert!(output.text.starts_with("after odd questions"), "{output:?}");
    assert!(output.text.contains("it asks for a password"), "{output:?}");
    let output = called(&world, "samples_all").await;
    assert!(output.text.starts_with("after all prompts"), "{output:?}");
    assert_eq!(world.asked(), []);
    let heard = world.heard();
    for id in ["o1", "o2", "o3", "o4", "o5", "o6", "t1", "t2", "t3"] {
        let answer = heard
            .lines()
            .find(|line| line.contains(&format!("\"id\":\"{id}\"")))
            .unwrap_or_else(|| panic!("{id} was not answered"));
        let refused = answer.contains("\"decline\"") || answer.contains("\"error\"");
        assert!(refused, "{answer}");
    }
}

#[tokio::test]
async fn a_flood_of_questions_is_answered_and_bounded() {
    // The run bounds the questions; here the person is there for ever, and one is asked at a time.
    let world = World::with_person(std::iter::repeat_n(says("yes"), 1_000));
    let output = called(&world, "asks_much").await;
    assert!(output.text.starts_with("answered all"), "{output:?}");
    assert!(output.text.len() < 4_000, "{}", output.text.len());
    let heard = world.heard();
    let answers = heard.lines().filter(|line| line.contains("\"id\":\"m"));
    assert_eq!(answers.count(), 500);
}

#[tokio::test]
async fn a_question_outside_of_every_call_is_declined() {
    let world = World::with_person([says("a")]);
    std::fs::write(world.work("asks_early"), "").unwrap();
    let (servers, tools) = ready(world.setup("asking")).await;
    world.call(named(&tools, "srv__asks_late"), json!({})).await;
    let begun = Instant::now();
    while !world.heard().contains("\"l1\"") {
        assert!(begun.elapsed() < TIMEOUT, "{}", world.heard());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    servers.leave().await;
    assert_eq!(world.asked(), []);
    let heard = world.heard();
    for id in ["y1", "l1"] {
        let refused = ["\"decline\"", "\"cancel\""];
        let answered =
            |line: &str| line.contains(id) && refused.iter().any(|refused| line.contains(refused));
        assert!(heard.lines().any(answered), "{id}: {heard}");
    }
}

#[tokio::test]
async fn a_question_of_10_mb_ends_the_server_and_no_more() {
    let world = World::with_person([says("a")]);
    let output = called(&world, "asks_huge").await;
    assert!(output.text.contains("a message of more than"), "{output:?}");
    assert_eq!(world.asked(), []);
}

#[tokio::test]
async fn a_call_that_is_answered_waits_for_no_person() {
    for name in ["takes_back", "password"] {
        let thinks = PersonReply::NoAnswer("thinks for ever".to_owned());
        let output = called(&World::with_person([thinks]), name).await;
        assert!(!output.is_error, "{output:?}");
    }
}

#[tokio::test]
async fn a_server_may_be_silent_while_a_person_thinks() {
    let world = World::with_person([PersonReply::NoAnswer(String::new())]);
    let silence = Duration::from_millis(400);
    let setup = ServerSetup {
        silence,
        ..world.setup("asking")
    };
    let (servers, tools) = ready(setup).await;
    let call = world.call(named(&tools, "srv__asks"), json!({}));
    let waited = tokio::time::timeout(4 * silence, call).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(world.asked().len(), 1);
    servers.leave().await;
}

#[tokio::test]
async fn nothing_is_offered_where_nobody_is_asked() {
    let world = World::with_person([says("main")]);
    let setup = ServerSetup {
        requests: RequestPolicy::Refused,
        judge_start: None,
        ..world.setup("asking")
    };
    let (servers, tools) = ready(setup).await;
    assert!(world.heard().contains("\"capabilities\":{}"));
    let output = world.call(named(&tools, "srv__asks"), json!({})).await;
    assert!(output.text.contains("'action':'decline'"), "{output:?}");
    assert_eq!(world.asked(), []);
    servers.leave().await;
}
