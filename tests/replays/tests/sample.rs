//! A sample of the replays. `cargo xtask replays` makes many.

#![expect(clippy::unwrap_used, reason = "tests")]

use gyrus_replays::{Kills, Series, gyrus_beside, table};

async fn check(only: &str, replays: u64, kills: Kills, at_least: u64) {
    let series = Series {
        gyrus: gyrus_beside(&std::env::current_exe().unwrap()).unwrap(),
        replays,
        // Moved, reordered and delayed pages come first.
        first: 2,
        only: only.to_owned(),
        kills,
    };
    let counts = series.run(|_| {}).await.unwrap();
    let wrong: Vec<_> = counts.values().flat_map(|count| &count.wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let task = &counts[&format!("task {only}")];
    assert!(
        task.replayed >= at_least,
        "{}\n{:?}",
        table(&counts),
        task.reasons
    );
}

#[tokio::test]
async fn a_learned_task_is_done_on_changed_pages_without_a_model() {
    check("settings", 3, Kills::Never, 3).await;
}

#[tokio::test]
async fn a_killed_replay_is_resumed_and_sends_nothing_twice() {
    check("mail", 2, Kills::Always, 0).await;
}
