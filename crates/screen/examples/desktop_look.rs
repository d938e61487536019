//! Times looks at a desktop: `cargo run --release -p gyrus-screen --features desktop --example
//! desktop_look -- PROGRAM …`. Prints medians of 100 looks, with and without a picture.

#![expect(clippy::print_stdout, reason = "a developer reads the output")]

use std::{sync::Arc, time::Instant};

use gyrus_contract::{CommandSpec, LookOptions, Screen as _};
use gyrus_process::keeper::{self, Keeper};
use gyrus_screen::{Desktop, DesktopPlace, Enclosure, RunCommand};

fn run() -> RunCommand {
    Arc::new(|spec: CommandSpec| Box::pin(async { Keeper::start_beside().await?.run(spec).await }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    keeper::serve_if_asked(|_| Err("nothing is confined here".to_owned()));
    tokio::runtime::Runtime::new()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let program: Vec<String> = std::env::args().skip(1).collect();
    let place = DesktopPlace::Nested {
        width: 1280,
        height: 800,
        enclosure: Enclosure::opener(run()),
    };
    let desktop = Desktop::new(place);
    let begun = Instant::now();
    desktop.start(&program).await?;
    println!("started in {} ms", begun.elapsed().as_millis());
    for frame in [false, true] {
        let mut times = Vec::new();
        let mut elements = 0;
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            let begun = Instant::now();
            let seen = desktop
                .look(LookOptions {
                    frame,
                    documents: 0,
                })
                .await?;
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            elements = seen.view.elements.len();
        }
        times.sort_by(f64::total_cmp);
        println!(
            "{elements} elements, picture {frame}: median {:.1} ms, 95 % within {:.1} ms",
            times[50], times[95]
        );
    }
    desktop.leave().await;
    Ok(())
}
