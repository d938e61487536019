//! `gyrus-fuzz [TARGET …] [--seconds N] [--seed S] [--folder F] | TARGET --input FILE`: tries each
//! target for so long, or one input. What `cargo xtask fuzz` runs.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads it"
)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use gyrus_fuzz::{
    Target,
    campaign::{Until, run, try_one},
    targets::{Editor, Line, PolicyFile, Redaction},
};
use rustix::process::{Resource, Rlimit, setrlimit};

const USAGE: &str = "fuzz takes targets (shell, policy, redaction, editor; all if none is named), --seconds N, --seed N, \
     --folder F; or one target and --input FILE";

/// Memory that the process may take, in bytes.
const MEMORY: u64 = 4 * 1024 * 1024 * 1024;

/// Options from the arguments.
struct Options {
    targets: Vec<String>,
    seconds: u64,
    seed: u64,
    folder: PathBuf,
    input: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match tried(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn options(arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        targets: Vec::new(),
        seconds: 60,
        seed: 1,
        folder: std::env::temp_dir(),
        input: None,
    };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => options.seconds = arguments.next()?.parse().ok()?,
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--folder" => options.folder = arguments.next()?.into(),
            "--input" => options.input = Some(arguments.next()?.into()),
            name if [Line::NAME, PolicyFile::NAME, Redaction::NAME, Editor::NAME]
                .contains(&name) =>
            {
                options.targets.push(argument);
            }
            _ => return None,
        }
    }
    (options.input.is_none() || options.targets.len() == 1).then_some(options)
}

fn tried(options: &Options) -> io::Result<bool> {
    let most = Some(MEMORY);
    setrlimit(
        Resource::As,
        Rlimit {
            current: most,
            maximum: most,
        },
    )?;
    fs::create_dir_all(&options.folder)?;
    // Panics are caught and told once, not each time that an input is made shorter.
    std::panic::set_hook(Box::new(|_| {}));
    let mut well = true;
    well &= one(&Line::new(), options)?;
    well &= one(&PolicyFile::new(), options)?;
    well &= one(&Redaction::new(), options)?;
    let editor = Editor::new()?;
    well &= one(&editor, options)?;
    if editor.messages() > 0 {
        println!("editor: {} messages in all", editor.messages());
    }
    Ok(well)
}

fn one<T: Target>(target: &T, options: &Options) -> io::Result<bool> {
    let name = T::NAME;
    if !options.targets.is_empty() && !options.targets.iter().any(|wanted| wanted == name) {
        return Ok(true);
    }
    if let Some(file) = &options.input {
        let outcome = try_one(target, &fs::read(file)?);
        println!(
            "{name}: {}",
            outcome.as_ref().err().map_or("holds", |why| why)
        );
        return Ok(outcome.is_ok());
    }
    let note = options.folder.join(format!("{name}-last"));
    let until = Until::Elapsed(Duration::from_secs(options.seconds));
    let report = run(target, options.seed, until, &note)?;
    println!("{name}: {report} (seed {})", options.seed);
    let Some(failure) = report.failure else {
        return Ok(true);
    };
    let file = options.folder.join(format!("{name}-seed-{}", options.seed));
    fs::write(&file, &failure.input)?;
    told(name, &failure.input, &failure.why, &file);
    Ok(false)
}

fn told(name: &str, input: &[u8], why: &str, file: &Path) {
    println!(
        "{name}: {why}\n  {:?}\n  try it again: cargo xtask fuzz {name} --input {}",
        String::from_utf8_lossy(input),
        file.display()
    );
}
