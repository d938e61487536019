//! A process of gyrus that is killed at a moment of its run, and whoever comes next.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gyrus_contract::RunId;

use crate::{
    gyrus::{Called, Gyrus},
    worker::Question,
};

/// The argument that asks a program to be killed.
const ARGUMENT: &str = "--oracle-victim";

/// Becomes a run that may be killed, if this process was started as one.
pub(crate) fn serve_if_asked() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ARGUMENT) {
        return;
    }
    let mut run = || -> Option<()> {
        let run = arguments.next()?.parse().ok()?;
        let question: Question = serde_json::from_str(&arguments.next()?).ok()?;
        let gyrus = Gyrus::new().ok()?;
        gyrus.run_as(run, &question.lines, question.between).ok()?;
        Some(())
    };
    std::process::exit(i32::from(run().is_none()));
}

/// Runs the lines in a process that is killed `after` a while, and lets the next one come: either
/// the run is taken up, or another begins in the folder.
pub(crate) fn run(
    gyrus: &Gyrus,
    question: &Question,
    after: Duration,
) -> Result<Vec<Called>, String> {
    let told = |error: &dyn std::fmt::Display| format!("cannot run what is to be killed: {error}");
    let run = RunId::new();
    let text = serde_json::to_string(question).map_err(|error| told(&error))?;
    let mut child = Command::new("/proc/self/exe")
        .args([ARGUMENT, &run.to_string(), &text])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| told(&error))?;
    let deadline = Instant::now() + after;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // One that has ended before is not killed, which is as good.
    let _ = child.kill();
    child.wait().map_err(|error| told(&error))?;
    if after.as_millis().is_multiple_of(2) {
        gyrus.resume(run, question.between)
    } else {
        gyrus.run(&["true".to_owned()], question.between)
    }
}
