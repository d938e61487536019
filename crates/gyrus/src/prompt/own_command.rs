//! A command of the person's own, whose output comes with the next goal.

use std::{
    collections::VecDeque,
    io::{self, Read as _, Write as _},
    process::Stdio,
};

use gyrus_contract::{Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_process::Programs;
use gyrus_surfaces::console::put;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use crate::failure::Failure;

/// Maximum number of bytes of the output's end that come with the next goal.
const MOST_OUTPUT: usize = 16 << 10;

/// Runs a command line in this folder as the person, and returns its output.
pub(super) fn run(line: &str, runtime: &Runtime) -> Result<Attachment, Failure> {
    let failed = |error: io::Error| Failure::failed("the command cannot be run").because(&error);
    // Ctrl-C is for the command; whoever has asked for the signal once is not ended by it.
    let _interrupts = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt()).map_err(failed)?
    };
    let mut child = Programs::of_this_process()
        .shell(&format!("exec 2>&1\n{line}"))
        .map_err(|error| Failure::failed("there is no shell").because(&error))?
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut kept = VecDeque::new();
    if let Some(mut output) = child.stdout.take() {
        let mut bytes = [0; 8 << 10];
        loop {
            let count = match output.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(failed)?,
            };
            if count == 0 {
                break;
            }
            io::stderr().write_all(&bytes[..count])?;
            kept.extend(&bytes[..count]);
            kept.drain(..kept.len().saturating_sub(MOST_OUTPUT));
        }
    }
    let ended = child.wait().map_err(failed)?;
    let output: Vec<u8> = kept.into();
    let output = String::from_utf8_lossy(&output);
    if !output.is_empty() && !output.ends_with('\n') {
        put("\n")?;
    }
    if !ended.success() {
        put(&format!("it ended with {ended}\n"))?;
    }
    let words = format!("The person ran `{line}`, which ended with {ended}:\n{output}");
    let name = "shell".to_owned();
    Ok(Attachment::Text(Text::new(words, Origin::Tool { name })))
}
