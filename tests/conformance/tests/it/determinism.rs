//! Loops that are not deterministic: each is caught, whatever it does, and does nothing twice.

use std::{
    collections::HashMap,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use futures_util::future::select;
use gyrus_conformance::{
    recording::{Cut, Line},
    scenario::{Bench, Scenario},
    script::Script,
    sketch::{self, SKETCH},
    world::{APPEND, HOLD, PUT, line, value},
};
use gyrus_contract::{BoxedFuture, ToolCall};
use gyrus_kernel::{
    Branch, CallEnd, Divergence, Ending, Entry, KernelError, ResumeChanges, Run, Stop,
};
use serde_json::json;

type Cycle<'r> = BoxedFuture<'r, Result<Option<&'static str>, Stop>>;

type Swallowing = fn(&mut Run) -> Cycle<'_>;

/// A scenario whose only loop is `body`, told how often it was begun before.
fn scenario(
    body: impl for<'r> Fn(&'r mut Run, u32) -> Cycle<'r> + Send + Sync + 'static,
) -> Scenario {
    let begun = Arc::new(AtomicU32::new(0));
    let loops = sketch::factory(move |run| body(run, begun.fetch_add(1, SeqCst)));
    Scenario::new(SKETCH, Script::default()).thinking(loops)
}

fn put(name: &str) -> ToolCall {
    ToolCall::new(PUT, value(name, "x"))
}

fn divergence<T>(name: &str, result: Result<T, KernelError>) -> Divergence {
    match result {
        Err(KernelError::Stop(Stop::Divergence(divergence))) => {
            assert!(
                !divergence.recorded.is_empty() && !divergence.now.is_empty(),
                "{name}"
            );
            *divergence
        }
        Err(error) => panic!("{name}: {error}"),
        Ok(_) => panic!("{name}: it was not noticed"),
    }
}

/// Replaying `scenario`, and resuming it once `kept` entries are left, shows `recorded` beside
/// `now`; nothing that was done is done again.
async fn check(name: &str, scenario: Scenario, kept: Option<usize>, recorded: &str, now: &str) {
    let bench = scenario.bench();
    bench.start().await.unwrap();
    let both = |divergence: Divergence| {
        assert!(
            divergence.recorded.contains(recorded),
            "{name}: {divergence}"
        );
        assert!(divergence.now.contains(now), "{name}: {divergence}");
    };
    let deeds = bench.world.deeds();
    both(divergence(
        name,
        bench.again().kernel.replay(bench.run()).await,
    ));
    assert_eq!(
        bench.world.deeds(),
        deeds,
        "{name}: a replay touched the world"
    );

    let Some(entries) = kept else { return };
    let left = bench.recording().cut(Cut {
        entries,
        of_child: None,
    });
    let settled: Vec<_> = deeds
        .into_iter()
        .filter(|deed| left.has_settled(deed))
        .collect();
    let next = scenario.bench_after(settled.clone());
    left.plant(&bench.store, &next.store);
    both(divergence(name, next.resume().await));
    assert_eq!(
        next.world.deeds(),
        settled,
        "{name}: something was done again"
    );
}

/// Entries before the first effect: the start, and the workspace.
const START: usize = 2;
/// Entries up to the outcome of the first call: call, verdict, started, result.
const ONE_CALL: usize = START + 4;

#[tokio::test]
async fn reading_the_clock_behind_the_runs_back() {
    let clock = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos()
            .to_string()
    };
    let in_call = scenario(move |run, _| {
        Box::pin(async move {
            run.call(&ToolCall::new(PUT, value("at", &clock()))).await?;
            run.call(&put("after")).await?;
            Ok(Some("done"))
        })
    });
    check(
        "clock in a call",
        in_call,
        Some(ONE_CALL),
        "tool.call",
        "calling `put`",
    )
    .await;
    let in_note = scenario(move |run, _| {
        Box::pin(async move {
            run.note("at", 1, &clock())?;
            run.call(&put("after")).await?;
            Ok(Some("done"))
        })
    });
    check("clock in a note", in_note, Some(START + 1), "`at`", "`at`").await;
}

#[tokio::test]
async fn the_order_of_a_hash_map() {
    // Twelve keys come in the same order twice about once in 479 million runs.
    let body = scenario(|run, _| {
        Box::pin(async move {
            let map: HashMap<String, u32> = (0..12).map(|n| (format!("key {n}"), n)).collect();
            for key in map.keys() {
                run.call(&put(key)).await?;
            }
            Ok(Some("done"))
        })
    });
    check(
        "hash map",
        body,
        Some(START + 12 * 4),
        "tool.call",
        "calling `put`",
    )
    .await;
}

#[tokio::test]
async fn doing_less_more_or_in_another_order() {
    let fewer = scenario(|run, begun| {
        Box::pin(async move {
            for name in ["a", "b"].iter().take(if begun == 0 { 2 } else { 1 }) {
                run.call(&put(name)).await?;
            }
            Ok(Some("done"))
        })
    });
    let both = Some(START + 2 * 4);
    check(
        "fewer",
        fewer,
        both,
        "tool.call",
        "the cycle ends without it",
    )
    .await;

    let more_at_the_end = scenario(|run, begun| {
        Box::pin(async move {
            for name in ["a", "b"].iter().take(1 + begun.min(1) as usize) {
                run.call(&put(name)).await?;
            }
            Ok(Some("done"))
        })
    });
    check(
        "more",
        more_at_the_end,
        None,
        "the end of the cycle",
        "calling `put`",
    )
    .await;

    let more_before = scenario(|run, begun| {
        Box::pin(async move {
            if begun > 0 {
                run.now()?;
            }
            run.call(&put("a")).await?;
            Ok(Some("done"))
        })
    });
    check(
        "more before",
        more_before,
        Some(ONE_CALL),
        "tool.call",
        "reading the clock",
    )
    .await;

    let order = scenario(|run, begun| {
        Box::pin(async move {
            let names = if begun == 0 { ["a", "b"] } else { ["b", "a"] };
            for name in names {
                run.call(&put(name)).await?;
            }
            Ok(Some("done"))
        })
    });
    check("order", order, both, "\"a\"", "\"b\"").await;

    let note = scenario(|run, begun| {
        Box::pin(async move {
            run.note("count", 1, &json!({ "begun": begun }))?;
            run.call(&put("a")).await?;
            Ok(Some("done"))
        })
    });
    check("note", note, Some(START + 1), "\"begun\":0", "\"begun\":").await;
}

#[tokio::test]
async fn doing_more_in_a_branch_that_had_ended() {
    let body = scenario(|run, begun| {
        Box::pin(async move {
            let branch: Branch<'_, ()> = Box::new(move |run| {
                Box::pin(async move {
                    run.call(&put("a")).await?;
                    if begun > 0 {
                        run.call(&put("b")).await?;
                    }
                    Ok(())
                })
            });
            run.race(vec![branch]).await?;
            Ok(Some("done"))
        })
    });
    // Start, race, one call, the race is won.
    check(
        "in a race",
        body,
        Some(START + 1 + 4 + 1),
        "the end of the branch",
        "calling `put`",
    )
    .await;

    let body = scenario(|run, begun| {
        Box::pin(async move {
            let branch: Branch<'_, ()> = Box::new(move |run| {
                Box::pin(async move {
                    run.call(&put("a")).await?;
                    if begun > 0 {
                        run.call(&put("b")).await?;
                    }
                    Ok(())
                })
            });
            run.branches(vec![branch]).await?;
            run.now()?;
            run.call(&put("c")).await?;
            Ok(Some("done"))
        })
    });
    check(
        "before what follows",
        body,
        Some(START + 1 + 4 + 1),
        "value",
        "calling `put`",
    )
    .await;
}

#[tokio::test]
async fn dropping_an_effect_half_way() {
    let scenario = scenario(|run, _| {
        Box::pin(async move {
            select(
                Box::pin(run.call(&ToolCall::new(HOLD, line("held")))),
                ready(()),
            )
            .await;
            run.call(&ToolCall::new(APPEND, line("after"))).await?;
            Ok(Some("done"))
        })
    });
    let bench = scenario.bench();
    let found = divergence("live", bench.start().await);
    assert!(found.now.contains("dropped before it ended"), "{found}");
    // The next process finds a call that may have happened, and does not make it again.
    bench.world.release();
    bench.again().resume().await.unwrap();
    let tools: Vec<_> = bench
        .world
        .deeds()
        .into_iter()
        .map(|deed| deed.tool)
        .collect();
    assert_eq!(tools, [APPEND]);
    let interrupted = |entry: &Entry| matches!(entry, Entry::ToolResulted(result) if result.settled == CallEnd::Interrupted);
    assert_eq!(
        bench
            .recording()
            .entries()
            .filter(|entry| interrupted(entry))
            .count(),
        1
    );
}

#[tokio::test]
async fn swallowing_a_stop_gains_nothing() {
    let swallows: [(&str, Swallowing); 2] = [
        ("in the loop", |run| {
            Box::pin(async move {
                let _ = run.stuck("it does not move");
                let _ = run.call(&ToolCall::new(APPEND, line("after"))).await;
                Ok(Some("all is well"))
            })
        }),
        ("in a branch", |run| {
            Box::pin(async move {
                let branch: Branch<'_, ()> = Box::new(|run| {
                    Box::pin(async move {
                        let _ = run.stuck("it does not move");
                        Ok(())
                    })
                });
                let _ = run.branches(vec![branch]).await;
                Ok(Some("all is well"))
            })
        }),
    ];
    for (name, body) in swallows {
        let bench: Bench = scenario(move |run, _| body(run)).bench();
        let finished = bench.start().await.unwrap();
        assert!(
            matches!(finished.ending, Ending::Stuck { .. }),
            "{name}: {finished:?}"
        );
        assert!(bench.world.deeds().is_empty(), "{name}");
        assert_eq!(bench.recording().count("cycle.ended"), 0, "{name}");
        let replayed = bench.kernel.replay(bench.run()).await.unwrap();
        assert!(replayed.unfinished, "{name}");
    }
}

#[tokio::test]
async fn what_was_settled_before_other_code_diverged_is_settled_once() {
    let scenario = scenario(|run, begun| {
        Box::pin(async move {
            if begun > 1 {
                return Ok(Some("begun afresh"));
            }
            let branches: Vec<Branch<'_, ()>> = vec![
                Box::new(|run| {
                    Box::pin(async move {
                        run.call(&ToolCall::new(APPEND, line("one"))).await?;
                        Ok(())
                    })
                }),
                Box::new(move |run| {
                    Box::pin(async move {
                        run.call(&put(if begun == 0 { "a" } else { "b" })).await?;
                        Ok(())
                    })
                }),
            ];
            run.branches(branches).await?;
            run.call(&ToolCall::new(APPEND, line("two"))).await?;
            Ok(Some("done"))
        })
    });
    let bench = scenario.bench();
    bench.start().await.unwrap();
    // Without the outcome of the first branch, as if it had come last.
    let mut left = bench.recording();
    left.lines.truncate(1 + 1 + 8);
    let lost = |line: &Line| matches!(&line.entry, Entry::ToolResulted(result) if result.effect.to_string() == "1.1.1.1");
    left.lines.retain(|line| !lost(line));
    let next = scenario.bench_after(bench.world.deeds()[..2].to_vec());
    left.plant(&bench.store, &next.store);
    let pins = Some([("gyrus".to_owned(), "2".to_owned())].into());
    let changes = ResumeChanges {
        pins,
        ..ResumeChanges::default()
    };
    let ended = next.resume_with(changes).await.unwrap();
    assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
    let now = next.recording();
    assert_eq!(now.count("run.handed_over"), 1);
    assert_eq!(
        now.lines.iter().filter(|line| lost(line)).count(),
        1,
        "{:#?}",
        now.kinds()
    );
}
