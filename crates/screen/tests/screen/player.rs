//! Plays on pages that know what happened to them: clicks at random, and waits for rest. The tests
//! do it a little, `cargo bench -p gyrus-screen --bench hands` thousands of times.
#![expect(clippy::unwrap_used, reason = "only tests use it")]

use std::time::{SystemTime, UNIX_EPOCH};

use gyrus_contract::ElementState;
use gyrus_screen::Launch;
use serde_json::json;

use crate::hands::World;

/// Clicks buttons at random, by id and by point; each must be heard by the one that was meant.
pub(crate) async fn play(world: &World, clicks: usize, only_points: bool) {
    let mut random = 12_345_u32;
    let mut next = |below: usize| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        usize::try_from(random >> 8).unwrap() % below
    };
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
            let arguments = match by_point {
                true => json!({"at": middle}),
                false => json!({"on": button.id.to_string()}),
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
                // It may have scrolled: points are those of another view.
                break;
            }
        }
    }
}

/// What a click on the button of this name is told as.
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

/// A page that knows when it changed last is used `trials` times.
#[expect(clippy::print_stderr, reason = "a developer reads the figures")]
pub(crate) async fn try_often(trials: usize) {
    let world = World::at("settle-oracle.html", Launch::default()).await;
    let go = world.id("Go").await;
    let mut late = Vec::new();
    let mut early = Vec::new();
    for trial in 0..trials {
        let done = world.act("click", json!({"on": go})).await;
        let rested = now();
        assert!(!done.is_error, "{}", done.text);
        let last = world.eval("last").await.as_f64().unwrap_or(f64::MAX);
        if last > rested {
            let way = world.eval("way").await;
            early.push(format!("{trial} {way}: {:.0} ms", last - rested));
        }
        late.push(rested - last);
    }
    late.sort_by(f64::total_cmp);
    let part = |share: usize| late[(trials * share / 100).min(trials - 1)];
    eprintln!(
        "{trials} trials: rest after the last change: median {:.0} ms, 95 of 100 within {:.0} ms; too early: {early:?}",
        part(50),
        part(95),
    );
    assert!(early.len() * 200 <= trials.max(200), "{early:?}");
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("it is after 1970").as_secs_f64() * 1_000.0
}
