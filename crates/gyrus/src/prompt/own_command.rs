//! A command of the person's own, whose output comes with the next goal.

use std::{
    collections::VecDeque,
    io::{self, PipeReader, Read as _, Write as _},
    panic::resume_unwind,
    process::{ChildStdout, Stdio},
};

use gyrus_contract::{Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_process::Programs;
use gyrus_surfaces::console::put;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    termios::{OptionalActions, tcgetattr, tcsetattr},
};
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
    // A command that dies may leave the terminal as it needed it.
    let modes = tcgetattr(io::stdin());
    let mut child = Programs::of_this_process()
        .shell(&format!("exec 2>&1\n{line}"))
        .map_err(|error| Failure::failed("there is no shell").because(&error))?
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let output = child.stdout.take();
    let (end, ends) = io::pipe().map_err(failed)?;
    let ended = std::thread::spawn(move || {
        let ended = child.wait();
        drop(ends);
        ended
    });
    let kept = output.map_or(Ok(VecDeque::new()), |output| shown(output, &end));
    let ended = ended.join().unwrap_or_else(|panic| resume_unwind(panic));
    if let Ok(modes) = modes {
        // A terminal that is gone needs none.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
    }
    let (ended, kept) = (ended.map_err(failed)?, kept.map_err(failed)?);
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

/// Shows the output of a command until it ends, and returns the output's end. Whatever the command
/// left in the background goes on without being shown.
fn shown(mut output: ChildStdout, end: &PipeReader) -> io::Result<VecDeque<u8>> {
    let (mut kept, mut bytes) = (VecDeque::new(), [0; 8 << 10]);
    // As much as a pipe holds stands there when the command has ended.
    let mut rest: usize = 64 << 10;
    loop {
        let mut waiting = [
            PollFd::new(&output, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        match poll(&mut waiting, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let [is_more, has_ended] = waiting.map(|one| !one.revents().is_empty());
        if !is_more || rest == 0 {
            std::thread::spawn(move || io::copy(&mut output, &mut io::sink()));
            return Ok(kept);
        }
        let count = output.read(&mut bytes)?;
        if count == 0 {
            return Ok(kept);
        }
        if has_ended {
            rest = rest.saturating_sub(count);
        }
        io::stderr().write_all(&bytes[..count])?;
        kept.extend(&bytes[..count]);
        kept.drain(..kept.len().saturating_sub(MOST_OUTPUT));
    }
}
