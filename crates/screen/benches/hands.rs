//! `cargo bench -p gyrus-screen --bench hands`: a thousand clicks at random that must land where
//! they are meant, and three thousand times rest, beside a page that knows when it was done.

#[path = "../tests/screen/support.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod support;
#[path = "../tests/screen/hands.rs"]
mod hands;
#[path = "../tests/screen/player.rs"]
mod player;

use gyrus_screen::Launch;

#[tokio::main]
async fn main() {
    if !support::has_browser() {
        return;
    }
    let dense = Launch {
        density: 2.0,
        ..Launch::default()
    };
    let frames = hands::World::at("act-frames.html", dense).await;
    player::play(&frames, 1_000, false).await;
    player::try_often(3_000).await;
}
