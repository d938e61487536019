//! Limits: a run parks at them, says so, and goes on when it may use more.

use std::time::Duration;

use gyrus_conformance::{
    scenario::{Bench, Scenario},
    script::{Script, Turn},
    world::{FINISH, LOOK, claim},
};
use gyrus_contract::{Limits, Microdollars, ModelError, Price, Usage};
use gyrus_kernel::{Ending, Entry, KernelError, ResumeChanges};
use serde_json::json;

/// One microdollar a token.
const PRICE: Price = Price {
    input: 1_000_000,
    output: 1_000_000,
    cache_read: None,
    cache_write: None,
};

fn looks(count: u32) -> Script {
    let looks = (0..count).map(|n| Turn::call(LOOK, json!({ "n": n })));
    Script::agent(looks.chain([Turn::call(FINISH, claim("looked"))]))
}

fn limited(limits: Limits) -> Scenario {
    let mut scenario = Scenario::new("react", looks(5));
    scenario.price = Some(PRICE);
    scenario.new.limits = limits;
    scenario
}

fn more(limits: Limits) -> ResumeChanges {
    ResumeChanges {
        limits,
        ..ResumeChanges::default()
    }
}

fn check_books(bench: &Bench, tokens: u64) {
    assert_eq!(bench.recording().charged_tokens(), tokens);
}

/// Parks at `limits` with `words` in its ending, within them, and ends with `enough`.
async fn check(limits: Limits, enough: Limits, words: &str) {
    let bench = limited(limits).bench();
    let parked = bench.start().await.unwrap();
    let Ending::Limit { what } = &parked.ending else {
        panic!("{words}: {parked:?}")
    };
    assert!(what.contains(words), "{what}");
    let (spent, deeds) = (parked.spent, bench.world.deeds());
    assert!(limits.steps.is_none_or(|limit| spent.steps <= limit));
    assert!(limits.tokens.is_none_or(|limit| spent.tokens <= limit));
    assert!(limits.cost.is_none_or(|limit| spent.cost <= limit));
    check_books(&bench, spent.tokens);

    let next = bench.again();
    let ended = next.resume_with(more(enough)).await.unwrap();
    assert!(
        matches!(ended.ending, Ending::Reached { .. }),
        "{words}: {ended:?}"
    );
    assert_eq!(bench.world.deeds()[..deeds.len()], deeds);
    assert_eq!(
        bench.world.deeds().len(),
        6,
        "{words}: something was done twice or never"
    );
    assert_eq!((ended.spent.steps, ended.spent.tokens), (6, 660), "{words}");
    assert_eq!(ended.spent.cost, Microdollars(660), "{words}");
    check_books(&bench, 660);
}

#[tokio::test]
async fn each_limit_parks_and_more_of_it_goes_on() {
    let none = Limits::default();
    let steps = |steps| Limits {
        steps: Some(steps),
        ..none
    };
    let tokens = |tokens| Limits {
        tokens: Some(tokens),
        ..none
    };
    let cost = |cost| Limits {
        cost: Some(Microdollars(cost)),
        ..none
    };
    let time = |time| Limits {
        time_ms: Some(time),
        ..none
    };
    check(steps(2), steps(10), "steps: 2 of 2").await;
    check(tokens(1_000), tokens(100_000), "tokens").await;
    check(cost(1_000), cost(100_000), "cost").await;
    check(time(0), time(600_000), "time in ms").await;
}

#[tokio::test]
async fn what_a_provider_does_not_report_counts_as_reserved() {
    let silent = Turn::call(LOOK, json!({})).without_usage();
    let dear = Usage {
        input_tokens: 7,
        output_tokens: 5,
        cached_tokens: 0,
        cache_written_tokens: 0,
    };
    let reported = Turn::call(FINISH, claim("looked")).using(dear);
    let mut scenario = Scenario::new("react", Script::agent([silent, reported]));
    scenario.new.limits.tokens = Some(50_000);
    let bench = scenario.bench();
    let ended = bench.start().await.unwrap();
    let recording = bench.recording();
    let reserved = recording.entries().find_map(|entry| match entry {
        Entry::ModelCall(call) => Some(call.reserved.tokens),
        _ => None,
    });
    assert_eq!(ended.spent.tokens, reserved.unwrap() + 12);
    assert!(ended.spent.estimated);
    check_books(&bench, ended.spent.tokens);
}

#[tokio::test]
async fn a_limit_on_cost_needs_a_price_or_a_limit_on_tokens() {
    let mut scenario = limited(Limits {
        cost: Some(Microdollars(1_000)),
        ..Limits::default()
    });
    scenario.price = None;
    let bench = scenario.bench();
    let refused = bench.kernel.create(scenario.new.clone());
    assert!(matches!(refused, Err(KernelError::UnknownPrice { .. })));
    assert!(
        bench.store.names("runs").unwrap().is_empty(),
        "something was left behind"
    );
    scenario.new.limits.tokens = Some(100_000);
    assert!(scenario.bench().start().await.is_ok());
}

#[tokio::test]
async fn a_limit_is_announced_before_it_is_reached() {
    let steps = Limits {
        steps: Some(5),
        ..Limits::default()
    };
    let bench = limited(steps).bench();
    bench.start().await.unwrap();
    let recording = bench.recording();
    let warned: Vec<_> = recording
        .entries()
        .filter_map(|entry| match entry {
            Entry::BudgetWarning(warning) => Some(warning.what.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(warned, ["steps: 4 of 5"]);
    let fourth = recording
        .kinds()
        .iter()
        .position(|kind| *kind == "budget.warning")
        .unwrap();
    let cycles = recording.kinds()[..fourth]
        .iter()
        .filter(|kind| **kind == "cycle.ended")
        .count();
    assert_eq!(cycles, 3, "it was announced at the wrong place");
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_parks_the_run() {
    let refused = || ModelError::Auth {
        message: "no such key".to_owned(),
    };
    let busy = || ModelError::Overloaded {
        after_ms: Some(0),
        message: "busy".to_owned(),
    };
    for (errors, attempts) in [(vec![refused()], 1), ((0..9).map(|_| busy()).collect(), 4)] {
        let down = Turn::call(LOOK, json!({})).after(errors);
        let mut scenario = Scenario::new("react", Script::agent([down]));
        let bench = scenario.bench();
        let parked = bench.start().await.unwrap();
        assert!(
            matches!(parked.ending, Ending::ModelUnreachable { .. }),
            "{parked:?}"
        );
        assert_eq!(bench.model.heard().len(), attempts);
        scenario.script = looks(1);
        let ended = bench.again_as(scenario).resume().await.unwrap();
        assert!(matches!(ended.ending, Ending::Reached { .. }), "{ended:?}");
        assert_eq!(ended.spent.tokens, 220, "errors cost nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_given_up_after_one_attempt() {
    let silent = Turn::call(FINISH, claim("looked")).silent();
    let bench = Scenario::new("react", Script::agent([silent])).bench();
    let parked = bench.start().await.unwrap();
    assert!(
        matches!(parked.ending, Ending::ModelUnreachable { .. }),
        "{parked:?}"
    );
    assert_eq!(bench.model.heard().len(), 1);
}

/// The silence of all attempts together is bounded, not only that of each.
#[tokio::test(start_paused = true)]
async fn a_model_that_is_silent_again_is_given_up_sooner() {
    let almost = gyrus_contract::MAX_SILENCE - Duration::from_secs(10);
    let silent = Turn::call(FINISH, claim("looked")).silent_for(almost);
    let bench = Scenario::new("react", Script::agent([silent])).bench();
    let parked = bench.start().await.unwrap();
    let Ending::ModelUnreachable { error } = &parked.ending else {
        panic!("{parked:?}");
    };
    let said = "silent for 30 seconds once more";
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(bench.model.heard().len(), 2);
}
