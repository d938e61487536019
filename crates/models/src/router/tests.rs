use std::time::Duration;

use gyrus_contract::{BoxedFuture, Delta, Price, Prompt, Purpose, Reply};

use super::*;

/// A model that is only chosen and receives no request.
struct Named {
    name: &'static str,
    price: Option<Price>,
}

impl Model for Named {
    fn name(&self) -> &str {
        self.name
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn reply<'a>(
        &'a self,
        _prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async {
            Err(ModelError::Refused {
                message: "never asked".into(),
            })
        })
    }
}

fn candidate(name: &'static str, tier: Tier, window: u64, dollars: Option<u64>) -> Candidate {
    Candidate {
        model: Arc::new(Named {
            name,
            price: dollars.map(|dollars| Price::new(dollars * 1_000_000, dollars * 5_000_000)),
        }),
        tier,
        facts: ModelFacts {
            window: Some(window),
            ..ModelFacts::default()
        },
        is_local: name.starts_with("local"),
        is_prompted: false,
        latency_ms: None,
        efforts: Default::default(),
        refuses: Default::default(),
    }
}

/// Returns the candidates, in the person's order.
fn candidates() -> Vec<Candidate> {
    let mut blind = candidate("local/small", Tier::Small, 32_000, None);
    blind.facts.images = Some(false);
    blind.facts.tools = Some(false);
    blind.facts.schema = Some(false);
    vec![
        candidate("a/medium", Tier::Medium, 200_000, Some(3)),
        candidate("a/large", Tier::Large, 200_000, Some(15)),
        candidate("b/medium", Tier::Medium, 1_000_000, Some(2)),
        candidate("b/small", Tier::Small, 100_000, Some(1)),
        blind,
    ]
}

fn wanted(purpose: Purpose) -> RouteQuery<'static> {
    RouteQuery {
        purpose,
        input_tokens: 1_000,
        tools: true,
        images: false,
        schema: false,
        failed: &[],
    }
}

fn overloaded() -> ModelError {
    ModelError::Overloaded {
        after_ms: None,
        message: "busy".into(),
    }
}

fn shown(choice: Result<(usize, String), ModelError>) -> String {
    match choice {
        Ok((index, why)) => format!("{}: {why}", candidates()[index].model.name()),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn the_choice_is_a_table() {
    let failed = |failures: &[(&str, ModelError)]| -> Vec<(String, ModelError)> {
        let owned = |(name, error): &(&str, ModelError)| ((*name).to_owned(), error.clone());
        failures.iter().map(owned).collect()
    };
    let auth = ModelError::Auth {
        message: "no key".into(),
    };
    let too_long = ModelError::ContextTooLong {
        message: "too long".into(),
    };
    let one = failed(&[("a/medium", overloaded())]);
    let two = failed(&[("a/medium", overloaded()), ("b/medium", overloaded())]);
    let all = failed(&[
        ("a/medium", overloaded()),
        ("b/medium", overloaded()),
        ("a/large", overloaded()),
        ("b/small", overloaded()),
    ]);
    let no_key = failed(&[("a/medium", auth.clone())]);
    let long = failed(&[("a/medium", too_long)]);
    let agent = wanted(Purpose::Agent);
    let plain = RouteQuery {
        tools: false,
        ..wanted(Purpose::Safety)
    };
    let cases = [
        ("agent", RoutingPolicy::Order, agent),
        ("plan", RoutingPolicy::Order, wanted(Purpose::Plan)),
        (
            "safety with tools",
            RoutingPolicy::Order,
            wanted(Purpose::Safety),
        ),
        (
            "verify",
            RoutingPolicy::Order,
            RouteQuery {
                purpose: Purpose::Verify,
                ..plain
            },
        ),
        ("cost", RoutingPolicy::Cost, agent),
        ("cost, small: unknown is last", RoutingPolicy::Cost, plain),
        ("local only", RoutingPolicy::LocalOnly, plain),
        ("local only, tools", RoutingPolicy::LocalOnly, agent),
        (
            "long",
            RoutingPolicy::Order,
            RouteQuery {
                input_tokens: 500_000,
                ..agent
            },
        ),
        (
            "too long for all",
            RoutingPolicy::Order,
            RouteQuery {
                input_tokens: 2_000_000,
                ..agent
            },
        ),
        (
            "one down",
            RoutingPolicy::Order,
            RouteQuery {
                failed: &one,
                ..agent
            },
        ),
        (
            "two down",
            RoutingPolicy::Order,
            RouteQuery {
                failed: &two,
                ..agent
            },
        ),
        (
            "all down",
            RoutingPolicy::Order,
            RouteQuery {
                failed: &all,
                ..agent
            },
        ),
        (
            "no key",
            RoutingPolicy::Order,
            RouteQuery {
                failed: &no_key,
                ..agent
            },
        ),
        (
            "only a larger window",
            RoutingPolicy::Order,
            RouteQuery {
                failed: &long,
                ..agent
            },
        ),
    ];
    let table: Vec<_> = cases
        .iter()
        .map(|(case, policy, wanted)| {
            let standings = vec![Default::default(); candidates().len()];
            let choice = choose(&candidates(), &standings, *policy, Tier::Medium, wanted);
            format!("{case} -> {}", shown(choice))
        })
        .collect();
    insta::assert_snapshot!(table.join("\n"), @r##"
agent -> a/medium: medium tier
plan -> a/large: large tier
safety with tools -> b/small: small tier
verify -> b/small: small tier
cost -> b/medium: medium tier; cheapest
cost, small: unknown is last -> b/small: small tier; cheapest
local only -> local/small: small tier; local
local only, tools -> error: the model refused: no model can answer this (a/medium: it is not on this machine; a/large: it is not on this machine; b/medium: it is not on this machine; b/small: it is not on this machine; local/small: it calls no tools)
long -> b/medium: medium tier
too long for all -> error: the prompt is too long for the model: no model can answer this (a/medium: it takes 200000 tokens, and about 2004096 are needed; a/large: it takes 200000 tokens, and about 2004096 are needed; b/medium: it takes 1000000 tokens, and about 2004096 are needed; b/small: it takes 100000 tokens, and about 2004096 are needed; local/small: it calls no tools)
one down -> b/medium: medium tier; the first choice is overloaded
two down -> a/large: large tier in place of medium; b/medium is overloaded
all down -> a/medium: medium tier; b/small is overloaded
no key -> b/medium: medium tier; the first choice does not accept the key
only a larger window -> b/medium: medium tier; the first choice finds it too long
"##);
}

#[test]
fn permanent_failures_end_with_reasons() {
    let refused = ModelError::Refused {
        message: "not allowed".into(),
    };
    let failed: Vec<_> = ["a/medium", "a/large", "b/medium", "b/small"]
        .map(|name| (name.to_owned(), refused.clone()))
        .into();
    let wanted = RouteQuery {
        failed: &failed,
        ..wanted(Purpose::Agent)
    };
    let router = ModelRouter::new(candidates(), RoutingPolicy::Order);
    let error = router.choose(&wanted).err().unwrap();
    insta::assert_snapshot!(error, @"the model refused: not allowed; no model can answer this (a/medium: it refused; a/large: it refused; b/medium: it refused; b/small: it refused; local/small: it calls no tools)");
    let nobody = ModelRouter::new(Vec::new(), RoutingPolicy::Order);
    insta::assert_snapshot!(nobody.choose(&wanted).err().unwrap(), @"the model refused: not allowed; no model is configured");
}

/// Returns a router whose clock the test moves.
fn with_hand(policy: RoutingPolicy) -> (ModelRouter, impl Fn(u64)) {
    let passed = Arc::new(Mutex::new(Duration::ZERO));
    let hand = passed.clone();
    let begun = Instant::now();
    let clock: RouterClock = Arc::new(move || begun + *passed.lock());
    let router = ModelRouter::with_clock(candidates(), policy, clock);
    (router, move |seconds| {
        *hand.lock() += Duration::from_secs(seconds)
    })
}

fn chosen(router: &ModelRouter) -> String {
    let choice = router.choose(&wanted(Purpose::Agent)).unwrap();
    choice.model.name().to_owned()
}

#[test]
fn a_model_that_fails_is_left_alone_and_tried_once() {
    let (router, pass) = with_hand(RoutingPolicy::Order);
    let error = overloaded();
    let fail = || router.heard("a/medium", Err(&error));
    fail();
    fail();
    assert_eq!(chosen(&router), "a/medium");
    fail();
    assert_eq!(chosen(&router), "b/medium");
    let why = router.choose(&wanted(Purpose::Agent)).unwrap().why;
    insta::assert_snapshot!(why, @"medium tier; a/medium is left alone after 3 failures");
    pass(29);
    assert_eq!(chosen(&router), "b/medium");
    pass(1);
    // Half open: one attempt, and no other until its result is known.
    assert_eq!(chosen(&router), "a/medium");
    assert_eq!(chosen(&router), "b/medium");
    // It failed, so the pause is twice as long.
    fail();
    pass(59);
    assert_eq!(chosen(&router), "b/medium");
    pass(1);
    assert_eq!(chosen(&router), "a/medium");
    // The result of that attempt is unknown: after the same time it is tried again.
    pass(59);
    assert_eq!(chosen(&router), "b/medium");
    pass(1);
    assert_eq!(chosen(&router), "a/medium");
    router.heard("a/medium", Ok(()));
    assert_eq!(chosen(&router), "a/medium");
    // Never longer than ten minutes.
    for _ in 0..50 {
        fail();
    }
    pass(599);
    assert_eq!(chosen(&router), "b/medium");
    pass(1);
    assert_eq!(chosen(&router), "a/medium");
    // A refusal does not affect its health.
    router.heard(
        "a/medium",
        Err(&ModelError::Refused {
            message: "no".into(),
        }),
    );
    assert_eq!(chosen(&router), "a/medium");
    router.heard("nobody", Err(&error));
}

#[test]
fn who_is_left_alone_is_asked_where_nobody_else_can() {
    let (router, _) = with_hand(RoutingPolicy::LocalOnly);
    let plain = RouteQuery {
        tools: false,
        ..wanted(Purpose::Agent)
    };
    for _ in 0..9 {
        router.heard("local/small", Err(&overloaded()));
    }
    let choice = router.choose(&plain).unwrap();
    assert_eq!(choice.model.name(), "local/small");
    assert!(router.choose(&wanted(Purpose::Agent)).is_err());
}

#[test]
fn the_fastest_is_first_and_the_unpriced_is_named() {
    let mut given = candidates();
    given[2].latency_ms = Some(900);
    let router = ModelRouter::new(given.clone(), RoutingPolicy::Latency);
    // A model of unknown speed is tried once, whatever comes of it.
    let choice = router.choose(&wanted(Purpose::Agent)).unwrap();
    assert_eq!(choice.model.name(), "a/medium");
    assert_eq!(choice.why, "medium tier; its speed is not known yet");
    assert_eq!(chosen(&router), "b/medium");
    given[0].latency_ms = Some(800);
    let router = ModelRouter::new(given, RoutingPolicy::Latency);
    assert_eq!(chosen(&router), "a/medium");
    // Replies are timed too: the median moves.
    for _ in 0..5 {
        router.health.lock()[2].took(Duration::from_millis(100));
    }
    assert_eq!(chosen(&router), "b/medium");

    assert_eq!(router.unpriced().as_deref(), Some("local/small"));
    assert_eq!(
        router.name(),
        "a/medium, a/large, b/medium, b/small, local/small"
    );
    let twice = [candidates(), candidates()].concat();
    assert_eq!(
        ModelRouter::new(twice, RoutingPolicy::Cost)
            .candidates
            .len(),
        5
    );
}

#[tokio::test]
async fn the_time_of_replies_is_kept_for_later_runs() {
    let folder = tempfile::tempdir().unwrap();
    let kept = |name: &'static str| {
        let learned = LearnedModels::read(folder.path()).unwrap();
        candidate(name, Tier::Medium, 1, None).with_learned(&learned)
    };
    // The form of before times were kept.
    let file = folder.path().join("learned.json");
    std::fs::write(&file, r#"{"a/medium": ["no-pictures"]}"#).unwrap();
    assert_eq!(kept("a/medium").facts.images, Some(false));

    let passed = Arc::new(Mutex::new(Duration::ZERO));
    let begun = Instant::now();
    let hand = passed.clone();
    let clock: RouterClock = Arc::new(move || begun + *passed.lock());
    let mut given = candidates();
    given.truncate(1);
    let takes = Arc::new(Takes {
        hand,
        next: Mutex::default(),
    });
    given[0].model = takes.clone();
    let router = ModelRouter::with_clock(given, RoutingPolicy::Latency, clock)
        .with_learned_in(folder.path().to_owned());
    let model = router.choose(&wanted(Purpose::Agent)).unwrap().model;
    let prompt = sent(None);
    for (seconds, expected) in [(9, 9_000), (10, 9_000), (20, 9_000), (30, 20_000)] {
        *takes.next.lock() = Duration::from_secs(seconds);
        model.reply(&prompt, &mut |_| {}).await.unwrap();
        assert_eq!(kept("a/medium").latency_ms, Some(expected), "{seconds}");
    }
    assert_eq!(kept("a/medium").facts.images, Some(false));
    assert_eq!(kept("b/medium").latency_ms, None);
}

/// A model whose replies take the time that the test sets.
struct Takes {
    hand: Arc<Mutex<Duration>>,
    next: Mutex<Duration>,
}

impl Model for Takes {
    fn name(&self) -> &str {
        "a/medium"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn reply<'a>(
        &'a self,
        _prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        *self.hand.lock() += *self.next.lock();
        Box::pin(async {
            Ok(Reply {
                parts: Vec::new(),
                stop: gyrus_contract::StopReason::EndOfTurn,
                usage: None,
                model: String::new(),
            })
        })
    }
}

fn sent(output_schema: Option<serde_json::Value>) -> Prompt {
    Prompt {
        purpose: Purpose::Safety,
        ordinal: 0,
        system: Vec::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        must_call: false,
        output_schema,
        screen: None,
        effort: None,
        plainer: Default::default(),
        max_output_tokens: 1,
    }
}

struct KeepsPrompt(Mutex<Option<Prompt>>);

impl Model for KeepsPrompt {
    fn name(&self) -> &str {
        "kept/small"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        *self.0.lock() = Some(prompt.clone());
        Box::pin(async { Err(overloaded()) })
    }
}

#[tokio::test]
async fn a_schema_is_a_preference() {
    let bound = RouteQuery {
        tools: false,
        schema: true,
        ..wanted(Purpose::Safety)
    };
    let choose = |candidates: &[Candidate]| {
        let standings = vec![Default::default(); candidates.len()];
        choose(
            candidates,
            &standings,
            RoutingPolicy::Order,
            Tier::Medium,
            &bound,
        )
        .unwrap()
        .0
    };
    let unbound = |mut candidate: Candidate| {
        candidate.facts.schema = Some(false);
        candidate
    };
    let small = || candidate("a/small", Tier::Small, 32_000, None);
    let large = || candidate("a/large", Tier::Large, 32_000, None);
    assert_eq!(choose(&[unbound(small()), small()]), 1);
    assert_eq!(
        choose(&[large(), unbound(small())]),
        1,
        "the tier counts more"
    );
    assert_eq!(choose(&[unbound(small())]), 0);

    let model = Arc::new(KeepsPrompt(Mutex::default()));
    let mut only = unbound(small());
    only.model = model.clone();
    let choice = ModelRouter::new(vec![only], RoutingPolicy::Order)
        .choose(&bound)
        .unwrap();
    let prompt = sent(Some(serde_json::json!({"type": "object"})));
    choice.model.reply(&prompt, &mut |_| {}).await.unwrap_err();
    let heard = model.0.lock().clone().unwrap();
    assert_eq!(heard.output_schema, None);
}

#[test]
fn whether_anybody_sees_pictures_is_known() {
    let sees =
        |candidates: Vec<Candidate>, policy| ModelRouter::new(candidates, policy).sees_pictures();
    assert!(sees(candidates(), RoutingPolicy::Order));
    // The local one does not accept pictures, and no other may be asked.
    assert!(!sees(candidates(), RoutingPolicy::LocalOnly));
}

#[test]
fn the_steps_of_a_run_are_as_strong_as_its_goal_needs() {
    for (steps, expected) in [
        (Tier::Small, "b/small"),
        (Tier::Medium, "a/medium"),
        (Tier::Large, "a/large"),
    ] {
        let candidates = candidates().into_iter().filter(|one| !one.is_local);
        let router = ModelRouter::new(candidates.collect(), RoutingPolicy::Order).with_steps(steps);
        let chosen = |purpose| router.choose(&wanted(purpose)).unwrap();
        assert_eq!(chosen(Purpose::Agent).model.name(), expected);
        assert_eq!(chosen(Purpose::Plan).model.name(), "a/large");
        assert_eq!(chosen(Purpose::Reflect).model.name(), "b/small");
        assert_eq!(chosen(Purpose::Agent).why, format!("{} tier", steps.word()));
    }
}
