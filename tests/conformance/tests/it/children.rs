//! Child runs: caps, money, parking, and one identity through every crash.

use gyrus_conformance::{
    recording::{Cut, Recording},
    scenario::{Bench, Scenario},
    script::{Script, Turn},
    sketch::{self, SKETCH},
    world::{FINISH, HOLD, LOOK, claim, line},
};
use gyrus_contract::{
    BoxedFuture, Limits, Message, MessageBody, OnAsk, Origin, Purpose, RunId, Text, ToolCall,
};
use gyrus_kernel::{
    Branch, ChildOptions, Delegation, Ending, Entry, MAX_CHILDREN, MAX_DEPTH, ModelQuestion,
    ResumeChanges, Run, Stop, ToolOffer, summary,
};
use serde_json::{json, value::to_raw_value};

type Cycle<'r> = BoxedFuture<'r, Result<Option<&'static str>, Stop>>;

fn work(goal: &str, cognitive_loop: &str) -> Delegation {
    let strategy = if cognitive_loop == SKETCH {
        "react"
    } else {
        cognitive_loop
    };
    Delegation {
        goal: goal.to_owned(),
        cognitive_loop: cognitive_loop.to_owned(),
        loop_config: json!({ "strategy": strategy }),
        limits: Limits::default(),
        options: ChildOptions::default(),
    }
}

fn scenario(
    script: Script,
    body: impl for<'r> Fn(&'r mut Run) -> Cycle<'r> + Send + Sync + 'static,
) -> Scenario {
    Scenario::new(SKETCH, script).thinking(sketch::factory(body))
}

fn is_parent(run: &Run) -> bool {
    run.goal()[0].text.contains("into order")
}

fn failure(ending: &Ending) -> &str {
    match ending {
        Ending::Failed { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn children_nest_only_so_deep() {
    let bench = scenario(Script::default(), |run| {
        Box::pin(async move {
            let child = run.delegate(work("deeper", SKETCH)).await?;
            match child.ending {
                Ending::Reached { .. } => Ok(Some("deep enough")),
                _ => Err(Stop::Failed(child.answer.text)),
            }
        })
    })
    .bench();
    let ended = bench.start().await.unwrap();
    assert!(failure(&ended.ending).contains("3 deep"), "{ended:?}");
    let mut depth = 0;
    let mut recording = &bench.recording();
    while let Some(child) = recording.children.first() {
        (depth, recording) = (depth + 1, child);
    }
    assert_eq!(depth, MAX_DEPTH);
}

#[tokio::test]
async fn a_whole_tree_has_only_so_many_children() {
    // Two children with 40 each are more than 64, though each run has fewer.
    let script = Script::agent([Turn::say("done")]);
    let scenario = scenario(script, |run| {
        Box::pin(async move {
            if is_parent(run) {
                for goal in ["first half", "second half"] {
                    let half = run.delegate(work(goal, SKETCH)).await?;
                    if let Ending::Failed { reason, .. } = half.ending {
                        return Err(Stop::Failed(reason));
                    }
                }
                return Ok(Some("all of it"));
            }
            for _ in 0..4 {
                let grain = run.delegate(work("a grain", "single-shot")).await?;
                if let Ending::Failed { reason, .. } = grain.ending {
                    return Err(Stop::Failed(reason));
                }
            }
            Ok((run.cycle() == 10).then_some("a half"))
        })
    });
    let bench = scenario.bench();
    let ended = bench.start().await.unwrap();
    assert!(failure(&ended.ending).contains("64 children"), "{ended:?}");
    fn count(recording: &Recording) -> usize {
        recording.children.len() + recording.children.iter().map(count).sum::<usize>()
    }
    assert_eq!(count(&bench.recording()), MAX_CHILDREN as usize);

    // The count survives a crash in the middle of the second half.
    let whole = bench.recording();
    let entries = whole
        .kinds()
        .iter()
        .rposition(|kind| *kind == "child.started")
        .unwrap()
        + 1;
    let of_child = Some(whole.children[1].lines.len() / 2);
    let next = scenario.bench();
    let cut = Cut { entries, of_child };
    whole.cut(cut).plant(&bench.store, &next.store);
    let again = next.resume().await.unwrap();
    assert!(failure(&again.ending).contains("64 children"), "{again:?}");
    assert_eq!(again.spent.tokens, ended.spent.tokens);
}

/// A parent that gives everything to one ReAct child.
fn giving(script: Script) -> Scenario {
    scenario(script, |run| {
        Box::pin(async move {
            let child = run.delegate(work("the part", "react")).await?;
            match child.ending {
                Ending::Reached { .. } => Ok(Some("done")),
                ending => Err(Stop::Failed(summary(&ending))),
            }
        })
    })
}

fn child_of(bench: &Bench) -> RunId {
    bench.recording().children[0].run
}

#[tokio::test]
async fn a_tree_spends_from_one_purse() {
    let look = |n: u32| Turn::call(LOOK, json!({ "n": n }));
    let looks = (0..20).map(look).chain([Turn::call(FINISH, claim("seen"))]);
    let mut scenario = giving(Script::agent(looks));
    let ended = scenario.bench().start().await.unwrap();
    assert_eq!(
        ended.spent.tokens,
        21 * 110,
        "the parent pays for its child"
    );

    scenario.new.id = RunId::new();
    scenario.new.limits.tokens = Some(1_500);
    let bench = scenario.bench();
    let ended = bench.start().await.unwrap();
    assert!(
        failure(&ended.ending).contains("limit reached: tokens"),
        "{ended:?}"
    );
    assert!(ended.spent.tokens <= 1_500, "{ended:?}");
    assert_eq!(bench.recording().charged_tokens(), ended.spent.tokens);
}

#[tokio::test]
async fn a_child_that_parks_parks_its_parent_and_both_go_on() {
    let script = Script::agent([
        Turn::call(HOLD, line("held")),
        Turn::call(FINISH, claim("held")),
    ]);
    let bench = giving(script).bench();
    let ready = bench.create();
    let controls = ready.controls();
    let interrupting = async {
        bench.world.holding().await;
        controls.interrupt();
        bench.world.release();
    };
    let (parked, ()) = tokio::join!(ready.drive(), interrupting);
    assert_eq!(parked.unwrap().ending, Ending::Interrupted);
    let child = child_of(&bench);
    let parked = |recording: &Recording| {
        matches!(recording.entries().next_back(), Some(Entry::RunParked(_)))
    };
    assert!(parked(&bench.recording()) && parked(&bench.recording().children[0]));
    let ended = bench.again().resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    assert_eq!(child_of(&bench), child, "it began another child");
    assert_eq!(bench.world.state().lines, ["held"]);
    assert_eq!(ended.spent.tokens, 220);
}

#[tokio::test]
async fn a_request_that_lost_a_race_is_recorded_and_paid_for() {
    let script = Script::default().and(Purpose::Plan, [Turn::say("never").hanging()]);
    let bench = scenario(script, |run| {
        Box::pin(async move {
            let branches: Vec<Branch<'_, ()>> = vec![
                Box::new(|run| {
                    Box::pin(async move {
                        run.ask(question()).await?;
                        Ok(())
                    })
                }),
                Box::new(|run| {
                    Box::pin(async move {
                        // It wins once the other is under way.
                        let soon = run.now()? + 50;
                        run.sleep_until(soon).await
                    })
                }),
            ];
            let (winner, ()) = run.race(branches).await?;
            assert_eq!(winner, 2);
            Ok(Some("the clock won"))
        })
    })
    .bench();
    let ended = bench.start().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    let recording = bench.recording();
    assert_eq!(
        recording.count("model.call"),
        recording.count("model.reply")
    );
    assert!(recording.charged_tokens() > 0);
    assert_eq!(ended.spent.tokens, recording.charged_tokens());
    // The next process neither asks again nor forgets what it cost.
    let entries = recording
        .kinds()
        .iter()
        .position(|kind| *kind == "cycle.ended")
        .unwrap();
    let cut = Cut {
        entries,
        of_child: None,
    };
    let next = bench.scenario.bench();
    recording.cut(cut).plant(&bench.store, &next.store);
    let again = next.resume().await.unwrap();
    assert_eq!(
        (again.spent.tokens, next.model.heard().len()),
        (ended.spent.tokens, 0)
    );
    next.kernel.replay(next.run()).await.unwrap();
}

/// A child that waits for its model for ever, against `rival`.
fn racing(
    rival: impl for<'r> Fn(&'r mut Run) -> BoxedFuture<'r, Result<(), Stop>>
    + Send
    + Sync
    + Copy
    + 'static,
) -> Scenario {
    let script = Script::agent([
        Turn::call(LOOK, json!({})),
        Turn::call(LOOK, json!({})).hanging(),
    ]);
    scenario(script, move |run| {
        Box::pin(async move {
            let child: Branch<'_, ()> = Box::new(|run| {
                Box::pin(async move {
                    run.delegate(work("the part", "react")).await?;
                    Ok(())
                })
            });
            let (winner, ()) = run.race(vec![child, Box::new(rival)]).await?;
            assert_eq!(winner, 2);
            Ok(Some("the rival won"))
        })
    })
}

#[tokio::test]
async fn a_child_that_lost_a_race_is_recorded_and_paid_for() {
    let mut scenario = racing(|run| {
        Box::pin(async move {
            run.wait("go", None).await?;
            Ok(())
        })
    });
    scenario.new.on_ask = OnAsk::Wait;
    let bench = scenario.bench();
    let ready = bench.create();
    let going = async {
        bench.model.hanging().await;
        bench.send(MessageBody::Signal {
            name: "go".to_owned(),
            payload: String::new(),
        });
    };
    let (ended, ()) = tokio::join!(ready.drive(), going);
    let ended = ended.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    let recording = bench.recording();
    let of_child = recording.entries().find_map(|entry| match entry {
        Entry::ChildEnded(child) => Some(child),
        _ => None,
    });
    let of_child = of_child.expect("the journal says what became of the child");
    assert_eq!(of_child.ending, Ending::Interrupted);
    // One whole reply, and the reservation of the one that was cut off.
    assert!(of_child.spent.tokens > 2 * 110 && of_child.spent.estimated);
    assert_eq!(ended.spent.tokens, of_child.spent.tokens);
    // The next process does not forget what it cost.
    let entries = recording
        .kinds()
        .iter()
        .position(|kind| *kind == "cycle.ended")
        .unwrap();
    let cut = Cut {
        entries,
        of_child: None,
    };
    let next = bench.scenario.bench();
    recording.cut(cut).plant(&bench.store, &next.store);
    let again = next.resume().await.unwrap();
    assert_eq!(again.spent.tokens, ended.spent.tokens);
    next.kernel.replay(next.run()).await.unwrap();
}

#[tokio::test]
async fn a_child_that_nobody_runs_again_is_paid_for_all_the_same() {
    let script = Script::agent([
        Turn::call(LOOK, json!({})),
        Turn::call(LOOK, json!({})).hanging(),
    ]);
    let mut scenario = scenario(script, |run| {
        Box::pin(async move {
            let rival: Branch<'_, ()> = Box::new(|run| {
                Box::pin(async move {
                    run.wait("go", None).await?;
                    Ok(())
                })
            });
            let child: Branch<'_, ()> = Box::new(|run| {
                Box::pin(async move {
                    run.delegate(work("the part", "react")).await?;
                    Ok(())
                })
            });
            // The rival is looked at first: on resume the race is decided before the child is.
            run.race(vec![rival, child]).await?;
            Ok(Some("the rival won"))
        })
    });
    scenario.new.on_ask = OnAsk::Wait;
    let bench = scenario.bench();
    let ready = bench.create();
    let going = async {
        bench.model.hanging().await;
        bench.send(MessageBody::Signal {
            name: "go".to_owned(),
            payload: String::new(),
        });
    };
    let (ended, ()) = tokio::join!(ready.drive(), going);
    let ended = ended.unwrap();
    let recording = bench.recording();
    let after = |kind: &str| {
        let kinds = recording.kinds();
        1 + kinds.iter().position(|one| *one == kind).unwrap()
    };
    let of_child = recording.children[0].kinds();
    let asked_twice = 1 + of_child
        .iter()
        .rposition(|kind| *kind == "model.call")
        .unwrap();
    let next = bench.scenario.bench();
    let cut = Cut {
        entries: after("wait.ended"),
        of_child: Some(asked_twice),
    };
    recording.cut(cut).plant(&bench.store, &next.store);
    let again = next.resume().await.unwrap();
    assert!(matches!(again.ending, Ending::Reached { .. }), "{again:?}");
    assert_eq!(again.spent.tokens, ended.spent.tokens);
    assert!(again.spent.estimated);
}

#[tokio::test]
async fn a_deadline_is_not_given_again() {
    let scenario = scenario(Script::default(), |run| {
        Box::pin(async move {
            let held: Branch<'_, ()> = Box::new(|run| {
                Box::pin(async move {
                    run.call(&ToolCall::new(HOLD, line("held"))).await?;
                    Ok(())
                })
            });
            let minute = std::time::Duration::from_secs(60);
            match run.timeout(minute, held).await? {
                None => Ok(Some("too late")),
                Some(()) => Ok(Some("in time")),
            }
        })
    });
    let bench = scenario.bench();
    let ready = bench.create();
    let controls = ready.controls();
    let cutting = async {
        bench.world.holding().await;
        controls.interrupt_now();
    };
    let (parked, ()) = tokio::join!(ready.drive(), cutting);
    assert_eq!(parked.unwrap().ending, Ending::Interrupted);
    // A year later there is nothing left of the minute, but what had ended had.
    let mut late = bench.recording();
    for line in &mut late.lines {
        if let Entry::BranchesStarted(started) = &mut line.entry {
            started.until_ms = Some(0);
            line.payload = to_raw_value(started).unwrap();
        }
    }
    let next = bench.scenario.bench();
    late.plant(&bench.store, &next.store);
    let ended = next.resume().await.unwrap();
    let Ending::Reached { claim, .. } = ended.ending else {
        panic!("{ended:?}")
    };
    assert_eq!(claim.answer, "in time", "the cut-off call is its outcome");
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

#[tokio::test]
async fn an_interrupt_waits_for_every_branch_of_a_race() {
    let mut scenario = scenario(Script::default(), |run| {
        Box::pin(async move {
            let branches: Vec<Branch<'_, ()>> = vec![
                Box::new(|run| {
                    Box::pin(async move {
                        run.wait("never", None).await?;
                        Ok(())
                    })
                }),
                Box::new(|run| {
                    Box::pin(async move {
                        run.call(&ToolCall::new(HOLD, line("held"))).await?;
                        run.now()?;
                        Ok(())
                    })
                }),
            ];
            run.race(branches).await?;
            Ok(Some("done"))
        })
    });
    scenario.new.on_ask = OnAsk::Wait;
    let bench = scenario.bench();
    let ready = bench.create();
    let controls = ready.controls();
    let interrupting = async {
        bench.world.holding().await;
        controls.interrupt();
        bench.world.release();
    };
    let (parked, ()) = tokio::join!(ready.drive(), interrupting);
    assert_eq!(parked.unwrap().ending, Ending::Interrupted);
    let recording = bench.recording();
    assert_eq!(
        recording.count("tool.started"),
        recording.count("tool.result")
    );
    assert_eq!(recording.count("branches.won"), 0);
    let ended = bench
        .again()
        .resume_with(ResumeChanges::default())
        .await
        .unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    assert_eq!(bench.world.state().lines, ["held"]);
}

#[tokio::test]
async fn a_signal_ends_a_wait_once() {
    let mut scenario = scenario(Script::default(), |run| {
        Box::pin(async move {
            let first = run.wait("go", None).await?;
            assert_eq!(first.unwrap().text, "now");
            let soon = run.now()?;
            assert!(
                run.wait("go", Some(soon)).await?.is_none(),
                "it was used twice"
            );
            Ok(Some("went"))
        })
    });
    scenario.new.on_ask = OnAsk::Park;
    let bench = scenario.bench();
    let parked = bench.start().await.unwrap();
    assert!(
        matches!(parked.ending, Ending::Sleeping { .. }),
        "{parked:?}"
    );
    let unfinished = bench.kernel.replay(bench.run()).await.unwrap();
    assert!(unfinished.unfinished, "a replay does not wait");
    let signal = || MessageBody::Signal {
        name: "go".to_owned(),
        payload: "now".to_owned(),
    };
    let id = bench.send(signal());
    let ended = bench.again().resume().await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    // The crash came before the message was removed.
    let whole = bench.recording();
    let entries = 1 + whole
        .kinds()
        .iter()
        .position(|kind| *kind == "wait.ended")
        .unwrap();
    let next = scenario.bench();
    let cut = Cut {
        entries,
        of_child: None,
    };
    whole.cut(cut).plant(&bench.store, &next.store);
    next.send_as(&id, signal());
    let again = next.resume().await.unwrap();
    assert!(matches!(again.ending, Ending::Reached { .. }), "{again:?}");
    assert_eq!(next.waiting(), 0);
}
