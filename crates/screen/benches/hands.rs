//! `cargo bench -p gyrus-screen --bench hands`: a thousand random clicks that must land where they
//! are meant, and three thousand waits for rest, compared with a page that knows when it was done.
//! It prints figures as it goes, and ends within six minutes however slow the machine is.

#![expect(clippy::print_stdout, reason = "a developer reads the figures")]

#[path = "../tests/screen/support.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod support;
#[path = "../tests/screen/hands.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod hands;
#[path = "../tests/screen/player.rs"]
mod player;

use std::time::{Duration, Instant};

use gyrus_screen::Launch;
use serde_json::json;

use crate::{
    hands::World,
    player::{By, Trials, play, try_often},
};

/// Time limit of all clicks, and of all trials: the rest is left out and reported.
const LIMIT: Duration = Duration::from_secs(170);

/// Number of clicks in each of four settings.
const CLICKS: usize = 250;

/// Number of trials in each of three browsers: mostly they wait for timers of the page.
const TRIALS: usize = 1_000;

#[tokio::main]
async fn main() {
    if !support::has_browser() {
        return;
    }
    let until = Instant::now() + LIMIT;
    let (plain, dense) = tokio::join!(clicks(1.0, until), clicks(2.0, until));
    println!(
        "clicks: {} of {} asked for were made, all where they were meant",
        plain + dense,
        4 * CLICKS
    );
    let until = Instant::now() + LIMIT;
    let (hand, one, two) = tokio::join!(
        trials(By::Hand, until),
        trials(By::Script, until),
        trials(By::Script, until)
    );
    say("click, rest and verdict", &[hand]);
    say("rest alone", &[one, two]);
}

/// Clicks at a device pixel density, unzoomed and pinched, and returns the number of clicks. Panics
/// when one lands elsewhere.
async fn clicks(density: f64, until: Instant) -> usize {
    let launch = Launch {
        density,
        ..Launch::default()
    };
    let world = World::at("act-frames.html", launch).await;
    let mut made = 0;
    for (what, pinch) in [("as it is", 1.0), ("pinched", 1.5)] {
        let order = json!({"pageScaleFactor": pinch});
        let pinched = world
            .browser
            .devtools("Emulation.setPageScaleFactor", order);
        pinched.await.expect("Chromium can pinch a page");
        let mut seed = 1;
        let before = made;
        while made - before < CLICKS && Instant::now() < until {
            play(&world, 50, pinch > 1.0, seed).await;
            seed += 1;
            made += 50;
            println!("density {density}, {what}: {} clicks", made - before);
        }
    }
    made
}

async fn trials(by: By, until: Instant) -> Trials {
    let world = World::at("settle-oracle.html", Launch::default()).await;
    let mut all = Trials::default();
    while all.late.len() < TRIALS && Instant::now() < until {
        let some = try_often(&world, 50, by).await;
        all.late.extend(some.late);
        all.later.extend(some.later);
        all.early.extend(some.early);
        if all.late.len() % 250 == 0 {
            println!("{} trials in a browser", all.late.len());
        }
    }
    all
}

fn say(what: &str, all: &[Trials]) {
    let sorted = |of: fn(&Trials) -> &Vec<f64>| {
        let mut times: Vec<f64> = all.iter().flat_map(of).copied().collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (late, later) = (sorted(|one| &one.late), sorted(|one| &one.later));
    let part =
        |times: &[f64], share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    let early: Vec<&String> = all.iter().flat_map(|one| &one.early).collect();
    println!(
        "{what}: {} trials, after the last change: median {:.0} ms, 95 of 100 within {:.0} ms; after two frames more: median {:.0} ms, 95 of 100 within {:.0} ms; {} too early: {early:?}",
        late.len(),
        part(&late, 50),
        part(&late, 95),
        part(&later, 50),
        part(&later, 95),
        early.len()
    );
}
