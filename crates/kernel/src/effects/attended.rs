//! Commands of a run whose person sits at the terminal: what they print last is shown while they run,
//! and the person may put one into the background, where it goes on as a process of the run.
//!
//! Its time limit is kept here and not by its keeper, for in the background it has none. Whoever decides
//! about its connections changes with the place: the call, which may ask, and then the rules alone.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use gyrus_contract::{
    AttendedEnd, BoxedFuture, CommandOutcome, CommandSpec, ConnectionPolicy, Containment,
    Destination, EffectId, Exit, KeeperError, Mode, Site,
};
use gyrus_process::keeper::{Capture, Keeper, KeeperSandbox};
use gyrus_text::one_line;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{mpsc, oneshot},
};

use super::{
    background::{self, LONGEST_MS, MOST},
    changes,
    destinations::{AskedConnection, Destinations},
    layers,
    processes::{BackgroundProcess, CHUNK_BYTES, ProcessOutlet},
    program_connections::ProgramConnections,
};
use crate::core::Core;

/// Shortest time between two lines that are shown of a command's output.
const SHOWN_AFTER: Duration = Duration::from_millis(100);

/// Maximum number of connections that wait to be decided about.
const MAX_CONNECTIONS: usize = 16;

/// The result of running a command to its end.
type CommandRun = Result<(CommandOutcome, Option<Keeper>), KeeperError>;

/// Passes connections to the call that waits for the command; once none does, the rules decide.
struct AttendedConnections {
    call: mpsc::Sender<AskedConnection>,
    rules: ProgramConnections,
}

impl ConnectionPolicy for AttendedConnections {
    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (reply, decided) = oneshot::channel();
            if self.call.send((to.clone(), reply)).await.is_ok()
                && let Ok(decided) = decided.await
            {
                return decided;
            }
            self.rules.decide(to).await
        })
    }

    fn socket(&self, to: &Destination) -> Option<std::os::fd::OwnedFd> {
        self.rules.socket(to)
    }
}

/// Whether the command of a call may be put into the background: there it can change its layer over the
/// workspace, or nothing.
pub(super) fn may_go_on(core: &Core, effect: &EffectId, containment: &Containment) -> bool {
    let changes_nothing = !containment.writable.contains(&core.started.workspace)
        && core.settings.mode != Mode::ReadOnly;
    core.controls.is_attended()
        && core.this.get().is_some()
        && core.started.sandbox.folders.is_empty()
        && (layers::has_current(core, effect) || changes_nothing)
}

enum WaitEnd {
    Ran(Box<CommandRun>),
    TimedOut,
    /// By the person, or after this time.
    PutAside(Option<Duration>),
}

/// Runs the command of a call until it ends, or until a person puts it into the background.
pub(super) async fn run(
    core: &Core,
    effect: &EffectId,
    (keeper, mut command, containment): (Keeper, CommandSpec, Containment),
    (destinations, site): (&Destinations<'_>, &dyn Site),
) -> Result<(AttendedEnd, Option<Keeper>), KeeperError> {
    let this = core.this.get().map_or_else(Weak::new, Weak::clone);
    let (name, mut output) = background::output_pipe(effect, &containment)?;
    let mut capture = Capture::new(command.head_bytes, command.tail_bytes);
    let limit = Duration::from_millis(command.time_limit_ms);
    command.time_limit_ms = LONGEST_MS;
    let line = command.arguments.last_mut();
    let process = Arc::new(BackgroundProcess::new(
        background::shown(core, line.as_deref().map_or("", String::as_str)),
        None,
    ));
    if let Some(line) = line {
        *line = format!("exec >\"$TMPDIR/{name}\" 2>&1; {line}");
    }
    let pipe = containment.temporary.join(&name);
    let (call, mut asked) = mpsc::channel(MAX_CONNECTIONS);
    let (resolved, spec) = destinations.call();
    let policy = AttendedConnections {
        call,
        rules: ProgramConnections::of_process(this, spec, resolved),
    };
    layers::command_begins(core, effect);
    let mut running = started(
        (core, effect),
        &process,
        (keeper, command, containment),
        policy,
    );
    let end = {
        let deciding = destinations.decide_all(&mut asked);
        let shown = OutputReceivers {
            core,
            process: &process,
            capture: &mut capture,
            site,
        };
        wait(shown, &mut running, &mut output, (limit, deciding)).await
    };
    drop(asked);
    let exit = match end {
        WaitEnd::PutAside(after) => {
            go_on(core, effect, process, running, output);
            let process = effect.to_string();
            return Ok((AttendedEnd::GoesOn { process, after }, None));
        }
        WaitEnd::TimedOut => {
            // Its end is that of the whole tree.
            drop(running);
            Ok((Exit::TimedOut, None))
        }
        WaitEnd::Ran(ran) => ran.map(|(outcome, keeper)| {
            rest(&mut output, &mut capture);
            // The shell said something before it began.
            for said in [&outcome.output.head, &outcome.output.tail] {
                capture.push(said.as_bytes());
            }
            (outcome.exit, keeper)
        }),
    };
    let _ = std::fs::remove_file(pipe);
    let (exit, keeper) = exit?;
    rest(&mut output, &mut capture);
    let output = capture.finish();
    Ok((AttendedEnd::Ended(CommandOutcome { exit, output }), keeper))
}

/// Returns the command as it runs, for as long as it is polled.
fn started(
    (core, effect): (&Core, &EffectId),
    process: &Arc<BackgroundProcess>,
    (keeper, command, containment): (Keeper, CommandSpec, Containment),
    policy: AttendedConnections,
) -> BoxedFuture<'static, CommandRun> {
    let outlet = core.kernel.organs().outlet.clone();
    let is_layered = containment.layered.iter().any(|layer| layer.required);
    let ended = (!is_layered).then(|| changes::end_mark(core, effect));
    let process = Arc::clone(process);
    Box::pin(async move {
        let outlet = ProcessOutlet {
            outlet,
            process: &process,
        };
        let sandbox = KeeperSandbox {
            containment: &containment,
            outlet: &outlet,
            policy: &policy,
            ended: ended.as_deref(),
        };
        keeper.run_in(command, Some(sandbox)).await
    })
}

struct OutputReceivers<'a> {
    core: &'a Core,
    process: &'a BackgroundProcess,
    capture: &'a mut Capture,
    site: &'a dyn Site,
}

/// Waits for the end of a command, for its time limit, or for the person.
async fn wait(
    shown: OutputReceivers<'_>,
    running: &mut BoxedFuture<'static, CommandRun>,
    output: &mut pipe::Receiver,
    (limit, deciding): (Duration, impl Future<Output = std::convert::Infallible>),
) -> WaitEnd {
    let OutputReceivers {
        core,
        process,
        capture,
        site,
    } = shown;
    let mut aside = core.controls.aside();
    let redactor = &core.kernel.organs().redactor;
    let whole_texts = redactor.needs_whole_text();
    let deadline = tokio::time::sleep(limit);
    let after = core.started.sandbox.background_seconds;
    let mut after = after
        .map(Duration::from_secs)
        .filter(|after| *after < limit);
    let first = tokio::time::sleep(after.unwrap_or(limit));
    tokio::pin!(deadline, deciding, first);
    let (mut chunk, mut is_open, mut told) = (vec![0; CHUNK_BYTES], true, None::<Instant>);
    let has_room = || core.background.processes.lock().len() < MOST;
    loop {
        tokio::select! {
            biased;
            ran = &mut *running => return WaitEnd::Ran(Box::new(ran)),
            () = &mut deadline => return WaitEnd::TimedOut,
            Ok(()) = aside.changed() => {
                if has_room() {
                    return WaitEnd::PutAside(None);
                }
                site.tell(&format!("{MOST} processes go on already; end one first"));
            }
            () = &mut first, if after.is_some() => {
                if has_room() {
                    return WaitEnd::PutAside(after);
                }
                // Nobody asked for it, so nothing is said.
                after = None;
            }
            never = &mut deciding => match never {},
            read = output.read(&mut chunk), if is_open => {
                let count = read.unwrap_or(0);
                is_open = count > 0;
                capture.push(&chunk[..count]);
                process.output.lock().push(&chunk[..count], whole_texts);
                if told.is_none_or(|told| told.elapsed() >= SHOWN_AFTER)
                    && let Some(line) = process.output.lock().last_line(redactor)
                {
                    told = Some(Instant::now());
                    site.tell(&one_line(&line));
                }
            }
        }
    }
}

/// Takes what still stands in the pipe of a command that has ended.
fn rest(output: &mut pipe::Receiver, capture: &mut Capture) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = output.try_read(&mut chunk) {
        capture.push(&chunk[..count]);
    }
}

/// Lets a command go on without its call.
fn go_on(
    core: &Core,
    effect: &EffectId,
    process: Arc<BackgroundProcess>,
    running: BoxedFuture<'static, CommandRun>,
    output: pipe::Receiver,
) {
    let layer = layers::take(core, effect);
    if let Some(layer) = &layer {
        // Whoever takes the run up drops it.
        let _ = layer.leave_undecided();
    }
    *process.layer.lock() = layer;
    let whole_texts = core.kernel.organs().redactor.needs_whole_text();
    let kept = Arc::clone(&process);
    background::keep(core, effect, kept, async move {
        background::run(&process, running, output, whole_texts).await;
    });
}
