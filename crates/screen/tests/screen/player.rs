//! Plays on pages that know what happened to them: clicks at random, and waits for rest. The tests
//! do it a little, `cargo bench -p gyrus-screen --bench hands` thousands of times.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::time::{SystemTime, UNIX_EPOCH};

use gyrus_contract::{ElementState, Rest};
use serde_json::json;

use crate::hands::World;

/// Clicks buttons at random, by id and by point; the intended one must receive each click.
pub(crate) async fn play(world: &World, clicks: usize, only_points: bool, seed: u32) {
    let mut random = fastrand::Rng::with_seed(seed.into());
    let mut next = |below: usize| random.usize(..below);
    let mut clicked = 0;
    while clicked < clicks {
        let view = world.look().await;
        let buttons: Vec<_> = view
            .elements
            .iter()
            .filter(|one| one.role == "button")
            .collect();
        assert!(buttons.len() > 30, "{:#?}", view.unread);
        for _ in 0..10 {
            let button = buttons[next(buttons.len())];
            let bounds = button.bounds.unwrap();
            let middle = [bounds.x + bounds.width / 2, bounds.y + bounds.height / 2];
            let by_point = (only_points || next(2) == 0)
                && (0..i32::try_from(view.width).unwrap()).contains(&middle[0])
                && (0..i32::try_from(view.height).unwrap()).contains(&middle[1])
                && !button.states.contains(&ElementState::Covered)
                && !button.states.contains(&ElementState::OutOfView);
            if only_points && !by_point {
                continue;
            }
            let arguments = if by_point {
                json!({"at": middle})
            } else {
                json!({"on": button.id.to_string()})
            };
            world.log().await;
            let done = world.act("click", arguments.clone()).await;
            let told = format!("{arguments} {} {bounds:?}: {}", button.name, done.text);
            assert!(!done.is_error, "{told}");
            let log = world.log().await;
            let heard: Vec<_> = log.iter().filter(|line| line.contains(":click:")).collect();
            assert_eq!(heard.len(), 1, "{told}: {log:?}");
            let name = world.eval(&format!("{:?}", heard[0])).await;
            let wanted = element_of(&button.name);
            assert!(
                name.as_str().unwrap().starts_with(&wanted),
                "{told}: {name} instead of {wanted}"
            );
            clicked += 1;
            if !by_point {
                // The page may have scrolled: points belong to another view.
                break;
            }
        }
    }
}

/// Returns the log entry of a click on the button of this name.
fn element_of(name: &str) -> String {
    match name {
        "One" | "Two" | "Last" => format!("top:click:{}", name.to_lowercase()),
        "Middle one" => "middle:click:m1".to_owned(),
        _ => match name.split_once(' ').unwrap() {
            (frame, "bottom") => format!("{frame}:click:bottom"),
            (frame, number) => format!("{frame}:click:i{number}"),
        },
    }
}

/// The cause of a change after which the page has to come to rest.
#[derive(Clone, Copy)]
pub(crate) enum By {
    /// A click of ours: its effects are determined as well before it is over.
    Hand,
    /// The page itself: only rest is waited for.
    Script,
}

/// Results of trials, in milliseconds.
#[derive(Default)]
pub(crate) struct Trials {
    /// Time from the page's last change until it was reported at rest.
    pub(crate) late: Vec<f64>,
    /// Time from the second frame after that change: two quiet frames cannot end earlier.
    pub(crate) later: Vec<f64>,
    /// Trials that were reported at rest before the last change.
    pub(crate) early: Vec<String>,
}

/// Runs trials on a page that knows when it changed last (`settle-oracle.html`).
pub(crate) async fn try_often(world: &World, trials: usize, by: By) -> Trials {
    let go = world.id("Go").await;
    let mut found = Trials::default();
    for trial in 0..trials {
        match by {
            By::Hand => {
                let done = world.act("click", json!({"on": go})).await;
                assert!(!done.is_error, "{}", done.text);
            }
            By::Script => {
                let order = json!({"expression": "go.click()"});
                let rest = world.browser.rest_after("Runtime.evaluate", order).await;
                assert_eq!(rest.unwrap(), Rest::Quiet);
            }
        }
        let rested = now();
        let last = world.eval("last").await.as_f64().unwrap_or(f64::MAX);
        if last > rested {
            let way = world.eval("way").await;
            let early = format!("{trial} {way}: {:.0} ms", last - rested);
            found.early.push(early);
        }
        found.late.push(rested - last);
        let quiet = world.eval("quiet").await.as_f64();
        found.later.push(rested - quiet.unwrap_or(f64::MAX));
    }
    found
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is after 1970").as_secs_f64() * 1_000.0
}
