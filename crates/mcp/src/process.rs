//! Starts a server's process, and the pipes to talk to it.
//!
//! It runs under a keeper, so it ends when gyrus does, however that happens. The keeper has its
//! standard error; input and output are named pipes, which a shell opens and unlinks before the
//! server is there.

use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};

use gyrus_contract::{BoxedFuture, CommandOutcome, CommandSpec, Exit, KeeperError};
use gyrus_process::Programs;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::net::unix::pipe;

use crate::setup::RunServer;

/// Maximum bytes kept of a server's standard error, for its start and its end each.
const OUTPUT_BYTES: usize = 2 * 1024;

/// Maximum running time of a server.
const LIFE: Duration = Duration::from_hours(24 * 30);

/// Script that opens the pipes and then becomes the server. In a sandbox the folder has another
/// name than outside, but the same variable.
const OPEN_PIPES: &str =
    r#"exec <"$TMPDIR/in" >"$TMPDIR/out" && rm -f "$TMPDIR/in" "$TMPDIR/out" && exec "$@""#;

/// A program that was started, and its pipes.
pub struct StartedProgram {
    pub to: pipe::Sender,
    pub from: pipe::Receiver,
    /// Ends with the program; dropping it ends the program.
    pub running: BoxedFuture<'static, Result<CommandOutcome, KeeperError>>,
}

/// A program to be started with pipes.
pub struct PipedProgram<'a> {
    pub program: &'a str,
    pub arguments: &'a [String],
    pub environment: &'a BTreeMap<String, String>,
    /// The folder that it works in.
    pub folder: &'a Path,
}

/// Starts a program, with its pipes in the folder `pipes`.
///
/// # Errors
/// The pipes cannot be made, or there is no shell.
pub fn start_piped(
    what: &PipedProgram<'_>,
    pipes: &Path,
    run: &RunServer,
) -> io::Result<StartedProgram> {
    let [to, from] = ["in", "out"].map(|name| pipes.join(name));
    for path in [&to, &from] {
        let _ = fs::remove_file(path);
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    }
    // Opened for reading and writing, so that opening never blocks; the keeper reports the server's
    // end.
    let mut options = pipe::OpenOptions::new();
    options.read_write(true);
    let ends = (options.open_sender(&to)?, options.open_receiver(&from)?);
    let shell = Programs::of_this_process().find("sh");
    let shell = shell.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    let mut arguments = ["-c", OPEN_PIPES, "sh", what.program]
        .map(str::to_owned)
        .to_vec();
    arguments.extend(what.arguments.iter().cloned());
    let mut environment = what.environment.clone();
    environment.insert("TMPDIR".to_owned(), pipes.to_string_lossy().into_owned());
    let running = run(CommandSpec {
        program: shell.path.display().to_string(),
        arguments,
        folder: what.folder.to_owned(),
        environment,
        stdin: String::new(),
        time_limit_ms: u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX),
        head_bytes: OUTPUT_BYTES,
        tail_bytes: OUTPUT_BYTES,
    });
    Ok(StartedProgram {
        to: ends.0,
        from: ends.1,
        running,
    })
}

/// Describes how a program ended, with the end of its standard error.
pub fn how_it_ended(outcome: Result<CommandOutcome, KeeperError>) -> String {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return error.to_string(),
    };
    let how = match outcome.exit {
        Exit::Code(code) => format!("it ended with code {code}"),
        Exit::Signal(signal) => format!("it was killed by signal {signal}"),
        Exit::TimedOut => "it ran for too long".to_owned(),
    };
    let said = if outcome.output.tail.is_empty() {
        &outcome.output.head
    } else {
        &outcome.output.tail
    };
    let said = crate::definition::clean(said);
    match said.trim() {
        "" => how,
        said => format!("{how}, and said: {said}"),
    }
}
