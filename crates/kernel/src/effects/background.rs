//! Processes that go on beside the calls of a run: each was started by a call of `shell`, whose id is
//! its name. They end with the run, at the latest. No call waits for them, so nobody is asked about
//! their connections. What one changes in the workspace is judged in the call that sees its end;
//! where none does, it is dropped.

use std::{
    fs::File,
    io::Write as _,
    sync::{Arc, Weak},
};

use gyrus_contract::{
    CommandOutcome, CommandSpec, Containment, EffectId, KeeperError, ProcessAction, ProcessReport,
    ResolvedCall, ToolSpec,
};
use gyrus_process::keeper::{Keeper, KeeperSandbox, make_fifo};
use gyrus_text::one_line;
use tokio::net::unix::pipe;

use super::{
    changes, layers,
    processes::{BackgroundProcess, ProcessOutlet, UNREAD_BYTES},
    program_connections::ProgramConnections,
};
use crate::{LivePiece, core::Core};

/// Maximum number of processes of one run.
pub(super) const MOST: usize = 8;

/// Time limit of a process, beside the run's own end.
pub(super) const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Starts the command of a call as a process, and returns its name.
pub(super) fn start(
    core: &Core,
    effect: &EffectId,
    (call, spec): (&ResolvedCall, &ToolSpec),
    mut command: CommandSpec,
    mut containment: Containment,
) -> Result<String, KeeperError> {
    let failed = |reason: String| KeeperError::Keeper { reason };
    let Some(this) = core.this.get() else {
        return Err(failed("a run of this kind keeps no processes".to_owned()));
    };
    if core.background.processes.lock().len() >= MOST {
        let full = format!("{MOST} processes go on already; end one first");
        return Err(failed(full));
    }
    confine(core, &mut containment);
    let (input_name, input) = pipe_of(effect, "in", &containment)?;
    let (output_name, output) = output_pipe(effect, &containment)?;
    let Some(line) = command.arguments.last_mut() else {
        return Err(failed("it has no command line".to_owned()));
    };
    let shown = shown(core, line);
    *line = format!("exec <\"$TMPDIR/{input_name}\" >\"$TMPDIR/{output_name}\" 2>&1\n{line}");
    command.time_limit_ms = LONGEST_MS;
    let keeper = core.kernel.organs().start_keeper()?;
    let layer = layers::take(core, effect);
    if let Some(layer) = &layer {
        // Whoever takes the run up drops it.
        let _ = layer.leave_undecided();
    }
    let process = Arc::new(BackgroundProcess::new(shown, Some(input)));
    *process.layer.lock() = layer;
    let policy = ProgramConnections::of_process(Weak::clone(this), spec, call);
    let outlet = core.kernel.organs().outlet.clone();
    let whole_texts = core.kernel.organs().redactor.needs_whole_text();
    let kept = Arc::clone(&process);
    keep(core, effect, kept, async move {
        let outlet = ProcessOutlet {
            outlet,
            process: &process,
        };
        let sandbox = KeeperSandbox {
            containment: &containment,
            outlet: &outlet,
            policy: &policy,
            ended: None,
        };
        let running = keeper.run_in(command, Some(sandbox));
        run(&process, running, output, whole_texts).await;
    });
    Ok(effect.to_string())
}

/// Returns the command line of a process for people.
pub(super) fn shown(core: &Core, line: &str) -> String {
    one_line(&core.kernel.organs().redactor.redact(line)).to_string()
}

/// Makes a pipe between a process and the run, and returns its name below the temporary folder.
fn pipe_of(
    effect: &EffectId,
    end: &str,
    containment: &Containment,
) -> Result<(String, File), KeeperError> {
    let name = format!(".process-{effect}-{end}");
    let made = make_fifo(&containment.temporary.join(&name));
    let made = made.map_err(|error| KeeperError::Keeper {
        reason: format!("its pipe cannot be made: {error}"),
    })?;
    Ok((name, made))
}

pub(super) fn output_pipe(
    effect: &EffectId,
    containment: &Containment,
) -> Result<(String, pipe::Receiver), KeeperError> {
    let (name, output) = pipe_of(effect, "out", containment)?;
    let output = pipe::Receiver::from_file_unchecked(output);
    let output = output.map_err(|error| KeeperError::Keeper {
        reason: format!("its output cannot be read: {error}"),
    })?;
    Ok((name, output))
}

/// Keeps a process, named as the call that started it, while `work` runs it on its own.
pub(super) fn keep(
    core: &Core,
    effect: &EffectId,
    process: Arc<BackgroundProcess>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let (this, of) = (core.this.get().map(Weak::clone), effect.clone());
    *process.task.lock() = Some(tokio::spawn(async move {
        work.await;
        if let Some(core) = this.and_then(|this| this.upgrade()) {
            core.tell(&of, LivePiece::ProcessEnded(of.to_string()));
        }
    }));
    core.background
        .processes
        .lock()
        .insert(effect.clone(), process);
}

/// Runs a process to its end, and stores its output and exit status.
pub(super) async fn run(
    process: &BackgroundProcess,
    running: impl Future<Output = Result<(CommandOutcome, Option<Keeper>), KeeperError>>,
    mut output: pipe::Receiver,
    whole_texts: bool,
) {
    let ran = tokio::select! {
        ran = running => ran,
        () = process.pump(&mut output, whole_texts) => return,
    };
    let exit = match ran {
        Ok((outcome, keeper)) => {
            keeper.into_iter().for_each(Keeper::end);
            Ok(outcome.exit)
        }
        Err(error) => Err(error.to_string()),
    };
    let mut chunk = vec![0; UNREAD_BYTES];
    if let Ok(count) = output.try_read(&mut chunk) {
        process.output.lock().push(&chunk[..count], whole_texts);
    }
    process.doors.lock().abort_all();
    process.output.lock().ended = Some(exit);
    process.moved.send_replace(());
}

/// Adapts the containment of a call to a process that outlives it. Folders that the next commands
/// change are read-only.
fn confine(core: &Core, containment: &mut Containment) {
    containment.serves = true;
    containment.layered.retain(|layer| layer.required);
    for bind in &mut containment.binds {
        bind.writable = false;
    }
    let added = core
        .started
        .sandbox
        .folders
        .iter()
        .map(|folder| &folder.path);
    for folder in added {
        if containment.writable.contains(folder) {
            containment.writable.retain(|path| path != folder);
            containment.read_only.push(folder.clone());
        }
    }
}

/// Carries out a call's operation on a background process.
pub(super) async fn act(
    core: &Core,
    effect: &EffectId,
    name: &str,
    action: ProcessAction,
) -> Result<ProcessReport, String> {
    let redactor = &core.kernel.organs().redactor;
    let (started_by, process) = core.background.find(name)?;
    match action {
        ProcessAction::End => process.end().await,
        ProcessAction::Look {
            input,
            until,
            within,
        } => {
            if let Some(input) = input {
                let Some(mut to) = process.input.as_ref() else {
                    return Err("it was started without an input".to_owned());
                };
                let written = to.write_all(input.as_bytes());
                written.map_err(|error| format!("its input takes no more now: {error}"))?;
            }
            process.wait(redactor, until.as_deref(), within).await;
        }
    }
    let report = process.read(redactor);
    if report.ended.is_some() {
        core.background.processes.lock().remove(&started_by);
        if let Some(layer) = process.layer.lock().take() {
            changes::take_over(core, effect, layer)?;
        }
    }
    Ok(report)
}
