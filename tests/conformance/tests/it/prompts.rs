//! The journal holds what was really sent to a model, to the byte.

use gyrus_conformance::{
    scenario::{Bench, Scenario},
    script::{Script, Turn, too_fast},
    sketch::{self, SKETCH},
    workflow::CHILD_GOAL,
    world::{APPEND, FINISH, HOLD, LOOK, PUT, claim, line, value},
};
use gyrus_contract::{
    Limits, Message, MessageBody, Origin, Prompt, Purpose, RunId, Text, ToolCall,
};
use gyrus_kernel::{Entry, ForkInto, ModelQuestion, ResumeChanges, ToolOffer, log_name, prompt_of};
use serde_json::json;

/// Every prompt that a run's journal says was sent.
fn rebuilt(bench: &Bench, run: RunId) -> Vec<String> {
    let reader = bench.store.reader(&log_name(run)).unwrap();
    let calls = (1..).zip(gyrus_conformance::recording::Recording::read(&bench.store, run).lines);
    calls
        .filter(|(_, line)| matches!(line.entry, Entry::ModelCall(_)))
        .map(|(seq, _)| bytes(&prompt_of(&reader, seq).unwrap()))
        .collect()
}

fn bytes(prompt: &Prompt) -> String {
    serde_json::to_string(prompt).unwrap()
}

/// Compares without printing kilobytes.
fn check_same(one: &[String], other: &[String]) {
    for (place, (one, other)) in one.iter().zip(other).enumerate() {
        assert!(one == other, "prompt {place}\n{one}\n{other}");
    }
    assert_eq!(one.len(), other.len());
}

fn sent(bench: &Bench) -> Vec<String> {
    bench.model.heard().iter().map(bytes).collect()
}

fn steps(steps: u64) -> ResumeChanges {
    let limits = Limits {
        steps: Some(steps),
        ..Limits::default()
    };
    ResumeChanges {
        limits,
        ..ResumeChanges::default()
    }
}

#[tokio::test]
async fn every_prompt_can_be_rebuilt_across_resume_and_fork() {
    let script = Script::agent([
        Turn::call(LOOK, json!({})).after([too_fast()]),
        Turn::say("now a value").and_call(PUT, value("a", &"long ".repeat(2_000))),
        Turn::empty(),
        Turn::call(APPEND, line("one")).and_call(LOOK, json!({})),
        Turn::call("no_such_tool", json!({})),
        Turn::call(FINISH, claim("in order")),
    ])
    .and(Purpose::Reflect, [Turn::say("do it otherwise")])
    .and(Purpose::Plan, [Turn::say("1. look")]);
    let config = json!({
        "strategy": "chain-of-thought", "reflection": true, "memory_window": 4,
        "system_prompt": "Be careful.",
    });
    let mut scenario = Scenario::new("chain-of-thought", script).configured(config);
    scenario.new.limits.steps = Some(2);
    let first = scenario.bench();
    first.start().await.unwrap();
    first.send(MessageBody::steer("and mind the colours"));
    let second = first.again();
    second.resume_with(steps(20)).await.unwrap();
    let heard = [sent(&first), sent(&second)].concat();
    assert!(heard.len() > 8);
    assert!(heard.last().unwrap().contains("mind the colours"));
    check_same(&rebuilt(&first, first.run()), &heard);

    let forking = first.again();
    let changes = steps(20);
    let forked = forking
        .kernel
        .fork(first.run(), 2, ForkInto::InPlace, changes)
        .unwrap();
    let run = forked.ready.id();
    forked.ready.drive().await.unwrap();
    let heard = sent(&forking);
    check_same(&rebuilt(&forking, run), &heard);
    let replayed = forking.kernel.replay(run).await.unwrap();
    assert_eq!(
        (replayed.unfinished, replayed.differences.len()),
        (false, 0)
    );
}

#[tokio::test]
async fn prompts_of_a_parent_and_its_child() {
    let script = Script::default()
        .for_goal(
            CHILD_GOAL,
            Purpose::Agent,
            [Turn::call(FINISH, claim("done"))],
        )
        .and(Purpose::Plan, [Turn::say("now the people")]);
    let bench = Scenario::new("workflow", script).bench();
    bench.start().await.unwrap();
    let child = bench.recording().children[0].run;
    let both = [rebuilt(&bench, child), rebuilt(&bench, bench.run())].concat();
    check_same(&both, &sent(&bench));
}

#[tokio::test]
async fn what_a_person_says_between_two_questions_of_a_cycle() {
    let script = Script::default().and(Purpose::Plan, [Turn::say("so")]);
    let loops = sketch::factory(|run| {
        Box::pin(async move {
            run.ask(question()).await?;
            run.call(&ToolCall::new(HOLD, line("held"))).await?;
            run.ask(question()).await?;
            Ok(Some("asked"))
        })
    });
    let bench = Scenario::new(SKETCH, script).thinking(loops).bench();
    let ready = bench.create();
    let talking = async {
        bench.world.holding().await;
        bench.send(MessageBody::steer("and mind the colours"));
        bench.world.release();
    };
    tokio::join!(ready.drive(), talking).0.unwrap();
    let heard = sent(&bench);
    assert!(!heard[0].contains("colours") && heard[1].contains("colours"));
    check_same(&rebuilt(&bench, bench.run()), &heard);
}

fn question() -> ModelQuestion<'static> {
    ModelQuestion {
        purpose: Purpose::Plan,
        system: Vec::new(),
        lead: vec![Message::user(Text::new("what now?", Origin::Kernel))],
        lead_at: 0,
        memory: None,
        tail: Vec::new(),
        tools: ToolOffer::Withheld,
        output_schema: None,
        max_output_tokens: 100,
    }
}
