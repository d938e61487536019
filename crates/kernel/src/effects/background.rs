//! Processes that go on beside the calls of a run: each was started by a call of `shell`, whose id is
//! its name. They end with the run, at the latest. No call waits for them, so nobody is asked about
//! their connections. What one changes in the workspace is judged in the call that sees its end;
//! where none does, it is dropped.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write as _,
    mem,
    net::SocketAddr,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use gyrus_contract::{
    Boxed, CommandSpec, ConnectionPolicy, Containment, Destination, EffectId, Exit, KeeperError,
    Listeners, Outlet, ProcessAction, ProcessReport, ResolvedCall, ToolSpec,
};
use gyrus_process::keeper::{Dialer, Sandbox, make_fifo};
use gyrus_text::{one_line, shorten};
use gyrus_workspace::layer::CallLayer;
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{changes, layers, program_connections::ProgramConnections};
use crate::{core::Core, live::LONG_LINE};

/// Maximum number of processes of one run.
const MOST: usize = 8;

/// Maximum bytes of output that wait to be read; older lines are dropped.
const UNREAD_BYTES: usize = 64 * 1024;

/// Bytes read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Time limit of a process, beside the run's own end.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Characters of a command line in a list.
const SHOWN: usize = 80;

/// The processes of one run.
#[derive(Default)]
pub(crate) struct Background {
    core: OnceLock<Weak<Core>>,
    processes: Mutex<BTreeMap<EffectId, Arc<Process>>>,
}

struct Process {
    line: String,
    input: File,
    output: Mutex<Unread>,
    /// Announces output and the end.
    moved: watch::Sender<()>,
    task: Mutex<Option<JoinHandle<()>>>,
    dialer: Mutex<Option<Dialer>>,
    layer: Mutex<Option<CallLayer>>,
}

/// Output that was not read yet.
#[derive(Default)]
struct Unread {
    text: String,
    /// The beginning of a character.
    rest: Vec<u8>,
    omitted_bytes: u64,
    ended: Option<Result<Exit, String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Background {
    /// Lets processes find the run that they belong to.
    pub(crate) fn belong_to(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Ends all processes. What nobody saw them change is dropped.
    pub(crate) async fn end_all(&self) {
        let processes = mem::take(&mut *locked(&self.processes));
        for process in processes.into_values() {
            process.end().await;
            let layer = locked(&process.layer).take();
            layer.into_iter().for_each(layers::remove);
        }
    }

    /// Returns the addresses of loopback that processes serve.
    pub(super) fn served(&self) -> Vec<SocketAddr> {
        let processes = locked(&self.processes);
        let served = processes.values().filter_map(|process| {
            let mut dialer = locked(&process.dialer);
            dialer.as_mut()?.served().ok()
        });
        served.flatten().collect()
    }

    /// Returns a socket for a destination that a process serves.
    pub(super) fn socket(&self, to: &Destination) -> Option<OwnedFd> {
        let at = SocketAddr::new(to.host.parse().ok()?, to.port);
        locked(&self.processes).values().find_map(|process| {
            let mut dialer = locked(&process.dialer);
            let dialer = dialer.as_mut()?;
            dialer
                .served()
                .ok()?
                .contains(&at)
                .then(|| dialer.socket(at).ok())?
        })
    }

    /// Returns the process of this name.
    fn find(&self, name: &str) -> Result<(EffectId, Arc<Process>), String> {
        let processes = locked(&self.processes);
        let named = processes
            .iter()
            .find(|(effect, _)| effect.to_string() == name);
        if let Some((effect, process)) = named {
            return Ok((effect.clone(), Arc::clone(process)));
        }
        let list = processes.iter().map(|(effect, process)| {
            let ended = locked(&process.output).ended.is_some();
            let state = if ended { "has ended" } else { "goes on" };
            format!("{effect} {state}: {}", shorten(&process.line, SHOWN))
        });
        let list: Vec<String> = list.collect();
        Err(if list.is_empty() {
            format!(
                "process `{name}` does not go on: it ended, at the latest with the gyrus process that \
                 kept it, and what nobody saw it change was dropped"
            )
        } else {
            format!(
                "there is no process `{name}`; there are:\n{}",
                list.join("\n")
            )
        })
    }
}

/// Starts the command of a call as a process, and returns its name.
pub(super) fn start(
    core: &Core,
    effect: &EffectId,
    (call, spec): (&ResolvedCall, &ToolSpec),
    mut command: CommandSpec,
    mut containment: Containment,
) -> Result<String, KeeperError> {
    let failed = |reason: String| KeeperError::Keeper { reason };
    let Some(run) = core.background.core.get() else {
        return Err(failed("a run of this kind keeps no processes".to_owned()));
    };
    if locked(&core.background.processes).len() >= MOST {
        return Err(failed(format!(
            "{MOST} processes go on already; end one first"
        )));
    }
    confine(core, &mut containment);
    let names = ["in", "out"].map(|end| format!(".process-{effect}-{end}"));
    let pipe = |name: &String| make_fifo(&containment.temporary.join(name));
    let pipes = names.iter().map(pipe).collect::<Result<Vec<File>, _>>();
    let pipes = pipes.map_err(|error| failed(format!("its pipes cannot be made: {error}")))?;
    let Ok([input, output]) = <[File; 2]>::try_from(pipes) else {
        return Err(failed("its pipes cannot be made".to_owned()));
    };
    let output = pipe::Receiver::from_file_unchecked(output);
    let output = output.map_err(|error| failed(format!("its output cannot be read: {error}")))?;
    let line = command.arguments.last_mut();
    let line = line.ok_or_else(|| failed("it has no command line".to_owned()))?;
    let shown = one_line(&core.kernel.organs().redactor.redact(line)).to_string();
    *line = format!(
        "exec <\"$TMPDIR/{}\" >\"$TMPDIR/{}\" 2>&1\n{line}",
        names[0], names[1]
    );
    command.time_limit_ms = LONGEST_MS;
    let keeper = core.kernel.organs().start_keeper()?;
    let layer = layers::take(core, effect);
    if let Some(layer) = &layer {
        // Whoever takes the run up drops it.
        let _ = layer.leave_undecided();
    }
    let process = Arc::new(Process {
        line: shown,
        input,
        output: Mutex::default(),
        moved: watch::Sender::new(()),
        task: Mutex::default(),
        dialer: Mutex::default(),
        layer: Mutex::new(layer),
    });
    let policy = ProgramConnections::of_process(Weak::clone(run), spec, call);
    let outlet = core.kernel.organs().outlet.clone();
    let task = tokio::spawn({
        let process = Arc::clone(&process);
        let whole_texts = core.kernel.organs().redactor.needs_whole_text();
        async move {
            let outlet = ProcessOutlet {
                outlet,
                process: &process,
            };
            let sandbox = Sandbox {
                containment: &containment,
                outlet: &outlet,
                policy: &policy,
                ended: None,
            };
            let mut output = output;
            let ran = tokio::select! {
                ran = keeper.run_in(command, Some(sandbox)) => ran,
                () = process.pump(&mut output, whole_texts) => return,
            };
            let exit = match ran {
                Ok((outcome, keeper)) => {
                    keeper
                        .into_iter()
                        .for_each(gyrus_process::keeper::Keeper::end);
                    Ok(outcome.exit)
                }
                Err(error) => Err(error.to_string()),
            };
            let mut chunk = vec![0; UNREAD_BYTES];
            if let Ok(count) = output.try_read(&mut chunk) {
                locked(&process.output).push(&chunk[..count], whole_texts);
            }
            locked(&process.output).ended = Some(exit);
            process.moved.send_replace(());
        }
    });
    *locked(&process.task) = Some(task);
    locked(&core.background.processes).insert(effect.clone(), process);
    Ok(effect.to_string())
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

/// Does what a call wants with a process.
pub(super) async fn act(
    core: &Core,
    effect: &EffectId,
    name: &str,
    action: ProcessAction,
) -> Result<ProcessReport, String> {
    let (started_by, process) = core.background.find(name)?;
    match action {
        ProcessAction::End => process.end().await,
        ProcessAction::Look {
            input,
            until,
            within,
        } => {
            if let Some(input) = input {
                let written = (&process.input).write_all(input.as_bytes());
                written.map_err(|error| format!("its input takes no more now: {error}"))?;
            }
            process.wait(core, until.as_deref(), within).await;
        }
    }
    let report = process.read(core);
    if report.ended.is_some() {
        locked(&core.background.processes).remove(&started_by);
        if let Some(layer) = locked(&process.layer).take() {
            changes::take_over(core, effect, layer)?;
        }
    }
    Ok(report)
}

impl Process {
    /// Ends the process with everything that it started.
    async fn end(&self) {
        let task = locked(&self.task).take();
        if let Some(task) = task {
            task.abort();
            // Its end is that of the whole tree.
            let _ = task.await;
        }
        let ended = Err("it was ended".to_owned());
        locked(&self.output).ended.get_or_insert(ended);
    }

    /// Collects output until the pipe fails.
    async fn pump(&self, output: &mut pipe::Receiver, whole_texts: bool) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = output.read(&mut chunk).await {
            locked(&self.output).push(&chunk[..count], whole_texts);
            self.moved.send_replace(());
        }
        // Without output it goes on all the same.
        std::future::pending::<()>().await;
    }

    /// Waits for output, for `until` in it, or for the end.
    async fn wait(&self, core: &Core, until: Option<&str>, within: Duration) {
        let deadline = Instant::now() + within;
        let mut moved = self.moved.subscribe();
        loop {
            {
                let unread = locked(&self.output);
                let ready = unread.ready(core);
                let found = match until {
                    Some(until) => core.kernel.organs().redactor.redact(ready).contains(until),
                    None => !ready.is_empty(),
                };
                if found || unread.ended.is_some() {
                    return;
                }
            }
            if timeout_at(deadline, moved.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Takes what can be read.
    fn read(&self, core: &Core) -> ProcessReport {
        let mut unread = locked(&self.output);
        let ready = unread.ready(core).len();
        let rest = unread.text.split_off(ready);
        ProcessReport {
            output: mem::replace(&mut unread.text, rest),
            omitted_bytes: mem::take(&mut unread.omitted_bytes),
            ended: unread.ended.clone(),
        }
    }
}

impl Unread {
    /// Returns the part in which secrets can be recognised, whatever follows it.
    fn ready(&self, core: &Core) -> &str {
        let redactor = &core.kernel.organs().redactor;
        if self.ended.is_some() {
            &self.text
        } else if redactor.needs_whole_text() {
            ""
        } else {
            &self.text[..redactor.separable(&self.text, LONG_LINE)]
        }
    }

    /// Adds output. Where there is too much, whole lines are dropped: the end of a secret alone is not
    /// recognised as one.
    fn push(&mut self, bytes: &[u8], whole_texts: bool) {
        self.rest.extend(bytes);
        let rest = mem::take(&mut self.rest);
        let mut chunks = rest.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && invalid.len() < 4 && bytes.ends_with(invalid) {
                self.rest = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        let Some(over) = self
            .text
            .len()
            .checked_sub(UNREAD_BYTES)
            .filter(|over| *over > 0)
        else {
            return;
        };
        let line = self.text.as_bytes()[over..]
            .iter()
            .position(|byte| *byte == b'\n');
        let cut = match line {
            Some(line) if !whole_texts => over + line + 1,
            _ => self.text.len(),
        };
        self.omitted_bytes += cut as u64;
        self.text.drain(..cut);
    }
}

/// Serves the proxy of a process, and keeps the way to its servers.
struct ProcessOutlet<'a> {
    outlet: Option<Arc<dyn Outlet>>,
    process: &'a Process,
}

impl Outlet for ProcessOutlet<'_> {
    fn serve<'a>(
        &'a self,
        mut listeners: Listeners,
        policy: &'a dyn ConnectionPolicy,
    ) -> Boxed<'a, ()> {
        let dialer = listeners.dialer.take();
        *locked(&self.process.dialer) = dialer.and_then(|channel| Dialer::new(channel).ok());
        Box::pin(async move {
            if let Some(outlet) = &self.outlet {
                outlet.serve(listeners, policy).await;
            }
        })
    }
}
