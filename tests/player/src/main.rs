//! `gyrus-player SUITE …`: plays the tasks of these files until its standard input ends; prints
//! the model's name first, and what it counted last.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "whoever started it reads the output"
)]

use std::{
    io::{Read, Write},
    path::Path,
    process::ExitCode,
};

use gyrus_player::{Player, read};

fn main() -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn play() -> Result<(), String> {
    let mut tasks = Vec::new();
    for path in std::env::args().skip(1) {
        tasks.extend(read(Path::new(&path))?);
    }
    if tasks.is_empty() {
        return Err("there is nothing to play; name files or folders of tasks".to_owned());
    }
    let player = Player::start(tasks).map_err(|error| error.to_string())?;
    println!("{}", player.model());
    std::io::stdout()
        .flush()
        .map_err(|error| error.to_string())?;
    // Whoever started it closes this.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let figures = serde_json::to_string(&player.figures()).map_err(|error| error.to_string())?;
    println!("{figures}");
    Ok(())
}
