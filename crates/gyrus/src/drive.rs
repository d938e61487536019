//! Driving a run in this process: watched, interruptible, and with a true word at its end.

use std::{io::IsTerminal, process};

use gyrus::runtime::{GitWorktrees, Home, RunScreen, sandbox_folders};
use gyrus_contract::{Claim, OnAsk, RunId, Spent, Strength, Worktrees as _};
use gyrus_journal::{LogReader, Store};
use gyrus_kernel::{
    Controls, DrivableRun, DriveResult, Ending, Entry, RunStarted, approvals, family, log_name,
};
use gyrus_telemetry::LiveExport;
use gyrus_text::{clip, counted, readable};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
};

use crate::{
    Gyrus, aftermath, answer_file,
    config::Config,
    env,
    exit::{Code, say},
    failure::Failure,
    flags::OutputFlags,
    learning::LearningMark,
    procedures::{self, ProcedureUpdate},
    state_folder,
    takeover::{self, Behind, TakeoverDoor},
    telemetry,
};
use gyrus_surfaces::{
    console::Painter,
    console::{Console, LineQueue, put},
    keys,
    notify::Notifier,
    output,
    projection::{self, Tone},
    terminal,
    trace_file::{self, TraceFile, TracePurpose},
    watching::{LiveReplies, Person, Until, Views, WatchAtWork},
};

/// Number of threads beside the one that drives: what is slow to be shown must not hold a run up.
const THREADS: usize = 1;

/// Builds the runtime that a process needs to drive a run.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("no threads can be started").because(&error))
}

/// Waits for `work` on a runtime of its own. Whatever else goes on there is left behind.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// Opens the file of `--trace`, and checks that of `--answer-file`, before anything else happens.
pub(crate) fn open_trace(
    output: &OutputFlags,
    what_for: TracePurpose,
) -> Result<Option<TraceFile>, Failure> {
    output
        .answer_file
        .as_deref()
        .map(answer_file::check)
        .transpose()?;
    let path = output.trace.as_deref();
    Ok(path
        .map(|path| TraceFile::open(path, what_for))
        .transpose()?)
}

pub(crate) struct Drive<'a> {
    pub(crate) gyrus: &'a Gyrus,
    pub(crate) store: Store,
    pub(crate) on_ask: OnAsk,
    pub(crate) output: &'a OutputFlags,
    pub(crate) trace: Option<TraceFile>,
    /// Whether the state is removed with the process, so that nothing can be resumed.
    pub(crate) ephemeral: bool,
    /// Live replies of the kernel's models.
    pub(crate) replies: LiveReplies,
    /// The run's screen; a browser can be taken over by a person.
    pub(crate) screen: Option<RunScreen>,
    /// The id that connects the run to its cause.
    pub(crate) correlation: Option<String>,
}

impl Drive<'_> {
    /// Does the same as [`Self::drive`], and then closes the run's screen.
    pub(crate) async fn drive_and_leave(self, ready: DrivableRun) -> Result<Code, Failure> {
        let screen = self.screen.clone();
        let code = self.drive(ready).await;
        if let Some(screen) = screen {
            screen.leave().await;
        }
        code
    }

    /// Drives the run until it ends or parks.
    pub(crate) async fn drive(self, ready: DrivableRun) -> Result<Code, Failure> {
        self.drive_with_input(ready, None).await
    }

    /// Does the same as [`Self::drive`] while a person can type; `ahead` gets the lines that are
    /// for later.
    pub(crate) async fn drive_with_input(
        self,
        ready: DrivableRun,
        ahead: Option<LineQueue>,
    ) -> Result<Code, Failure> {
        let run = ready.id();
        let gyrus = self.gyrus;
        let answer_file = self.output.answer_file.clone();
        let painter = Painter::new(&std::io::stderr(), self.gyrus.environment.plain);
        let reader = self.store.reader(&log_name(run))?;
        let first_here = reader.last("run.resumed")?.map_or(1, |entry| entry.seq);
        crash_after(self.gyrus.environment.crash_after.as_deref(), &reader)?;
        let store = self.store.clone();
        let _interrupting = interrupt_on_signal(ready.controls())?;
        let (json, ephemeral) = (self.output.json(), self.ephemeral);
        if !json {
            // Without anybody to tell, the run goes on all the same.
            let _ = put(&header(&ready, &reader, &painter));
        }
        let teaches = if ephemeral {
            Teaches::Nothing
        } else {
            Teaches::Lessons
        };
        let screen = self.screen.clone();
        let correlation = self.correlation.clone();
        let worktree = ready.started().worktree.clone();
        let beside = RunServices::begin(gyrus, &store, &ready, (screen, correlation, teaches))?;
        if ahead.is_some() {
            ready.controls().attend();
        }
        let spent = ready.spent();
        let watching = self.watch(run, reader.clone(), first_here, painter, spent, ahead)?;
        let done = ready.drive().await;
        let until = match &done {
            Ok(_) => Until::Entry(reader.end()?),
            Err(_) => Until::Now,
        };
        let watched = watching.finish(until).await;
        let done = done?;
        let is_over = done.ending.is_final();
        let (export, added) = beside.end(&done).await;
        let written = answer_file.map(|file| answer_file::write(&file, &done));
        let words = last_words(&reader, first_here)?;
        let code = ended(&store, done, json, ephemeral, (&painter, words.as_deref()))?;
        written.transpose()?;
        if let Some(worktree) = worktree.filter(|_| is_over) {
            let brought = GitWorktrees.bring_back(&worktree);
            let root = worktree.root.display();
            put(&brought
                .unwrap_or_else(|why| format!("its work tree {root} was left there: {why}")))?;
            put("\n")?;
        }
        if let Some(added) = added {
            tell_of(gyrus, &store, &added, json);
        }
        telemetry::finish(export).await;
        // What could not be shown is not a failure of the run, but whoever relies on it must know.
        match watched.map_err(Failure::from) {
            Err(failure) if !failure.is_silent() && code == Code::Reached => Err(failure),
            Ok(()) | Err(_) => Ok(code),
        }
    }

    fn watch(
        self,
        run: RunId,
        reader: LogReader,
        from: u64,
        painter: Painter,
        spent: Spent,
        ahead: Option<LineQueue>,
    ) -> Result<WatchAtWork, Failure> {
        let mut own_trace = trace_file::open_own(&self.store, run).ok();
        let mut trace = self.trace;
        for entry in reader
            .entries(1)?
            .take_while(|entry| entry.as_ref().is_ok_and(|entry| entry.seq < from))
        {
            let entry = entry?;
            if let Some(trace) = &mut trace {
                trace.entry(&entry, &reader)?;
            }
            own_trace.take_if(|trace| trace.entry(&entry, &reader).is_err());
        }
        let open = approvals::open(&self.store, run)?;
        let command = self.gyrus.config()?.approvals.notify;
        let command = command.map(|line| self.gyrus.persons_command(line));
        let notifier = Notifier::new(command, self.on_ask);
        let person = if self.output.json() {
            Person::Program
        } else {
            let here = terminal::can_ask()
                .then(|| terminal::person(self.gyrus.environment.user.as_deref(), "console"));
            let console = Console::new(self.store.clone(), run, painter, self.on_ask, here);
            let at_terminal = std::io::stderr().is_terminal() && !self.gyrus.environment.dumb;
            Person::Console(Box::new(match ahead {
                Some(ahead) if at_terminal => console.with_status(spent).with_input_area(ahead),
                _ if at_terminal => console.with_status(spent),
                _ => console,
            }))
        };
        // What is asked from here on comes with the entries.
        let open = open
            .into_iter()
            .filter(|open| from > 1 && !open.is_over())
            .collect();
        Ok(WatchAtWork::start(
            self.store,
            run,
            from,
            open,
            Views {
                person,
                notifier,
                trace,
                own_trace,
                editor: self.gyrus.environment.editor.clone(),
            },
            self.replies,
        ))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Teaches {
    /// Lessons are learned at the run's end.
    Lessons,
    /// Nothing is learned: the run is to leave nothing behind.
    Nothing,
}

/// The work beside a run that this process drives: it removes what killed runs left, sends
/// telemetry, lets a person take the screen over, and learns from the run.
pub(crate) struct RunServices {
    home: Home,
    config: Config,
    store: Store,
    sweeping: JoinHandle<()>,
    export: Option<LiveExport>,
    learning: Option<LearningMark>,
    _door: Option<TakeoverDoor>,
}

impl RunServices {
    pub(crate) fn begin(
        gyrus: &Gyrus,
        store: &Store,
        ready: &DrivableRun,
        (screen, correlation, teaches): (Option<RunScreen>, Option<String>, Teaches),
    ) -> Result<Self, Failure> {
        let (home, config, run) = (gyrus.home()?, gyrus.config()?, ready.id());
        let sweeping = tokio::task::spawn_blocking({
            let home = home.clone();
            move || sweep(&home)
        });
        let export = telemetry::start(&config.telemetry, store, run, correlation.as_deref());
        let learning = match teaches {
            Teaches::Nothing => None,
            Teaches::Lessons => LearningMark::begin(&home, run),
        };
        let door = screen.and_then(|screen| door(&home, store, ready, screen));
        Ok(Self {
            home,
            config,
            store: store.clone(),
            sweeping,
            export,
            learning,
            _door: door,
        })
    }

    /// Ends after the run has; returns the export that may still have data to send, and the
    /// procedure that was learned.
    pub(crate) async fn end(
        self,
        done: &DriveResult,
    ) -> (Option<LiveExport>, Option<ProcedureUpdate>) {
        if done.ending.is_final() {
            let family = family(&self.store, done.run).unwrap_or_default();
            sandbox_folders::remove(&self.home, &family);
        }
        // It has long ended, unless the run was short; it has a time limit of its own.
        let _ = self.sweeping.await;
        let learning = self.learning;
        let added = learning.and_then(|one| one.finish(&self.home, &self.store, &self.config));
        (self.export, added)
    }
}

/// Opens the socket at which a person takes over the run's screen.
fn door(
    home: &Home,
    store: &Store,
    ready: &DrivableRun,
    screen: RunScreen,
) -> Option<TakeoverDoor> {
    let behind = Behind {
        store: store.clone(),
        run: ready.id(),
        takeovers: ready.takeovers(),
        screen,
    };
    match TakeoverDoor::open(home, behind) {
        Ok(door) => Some(door),
        Err(error) => {
            let _ = put(&format!("its screen cannot be taken over: {error}\n"));
            None
        }
    }
}

/// Reports a procedure that a run added, and asks about it at a terminal. Whatever goes wrong here
/// is not the run's failure.
fn tell_of(gyrus: &Gyrus, store: &Store, added: &ProcedureUpdate, json: bool) {
    if added.is_promoted {
        let _ = put(&format!(
            "`{}` was repaired: see what changed with gyrus procedures diff {0}\n",
            added.name
        ));
    }
    if terminal::can_ask() && !json {
        let person = terminal::person(gyrus.environment.user.as_deref(), "console");
        if let Err(failure) = procedures::ask(store, added, &person) {
            let _ = put(&format!("{failure}\n"));
        }
    }
}

/// Removes what killed runs left. What cannot be removed now is tried again at the next start.
fn sweep(home: &Home) {
    let _ = sandbox_folders::sweep(home);
    let _ = takeover::sweep(home);
    state_folder::sweep(home);
    gyrus_screen::sweep_temporary_folders();
}

fn header(ready: &DrivableRun, reader: &LogReader, painter: &Painter) -> String {
    let started = ready.started();
    let text = format!(
        "run {} · {} · {} · {}",
        ready.id().short(),
        started.cognitive_loop,
        ready.model(),
        started.workspace.display()
    );
    let mut lines = vec![text];
    lines.extend(loop_choice(started));
    let skills = projection::loaded_skills(started, reader).into_iter();
    lines.extend(
        skills.map(|(name, why)| {
            format!("skill `{name}`, {why}; leave it out with --no-skill {name}")
        }),
    );
    if let Some(name) = procedures::replayed_by(started) {
        lines.push(format!(
            "replays the procedure `{name}` without a model; leave it out with --no-procedure"
        ));
    }
    if let Some((_, lessons)) = projection::given_lessons(started, reader) {
        lines.extend(lessons.lines().map(str::to_owned));
        lines.push("these are notes of earlier runs; leave them out with --no-lessons".to_owned());
    }
    let notes = projection::notes_given(started, reader);
    if notes > 0 {
        let notes = counted(notes as usize, "note");
        lines.push(format!(
            "{notes} of the memory; leave it out with --no-memory"
        ));
    }
    let painted = lines.iter().map(|line| {
        let line = clip(line, painter.columns);
        format!("{}\n", painter.paint(Tone::Aside, &line))
    });
    painted.collect()
}

/// Returns the reason for the run's loop, if nobody named it and it is not the default one.
fn loop_choice(started: &RunStarted) -> Option<String> {
    let (config, name) = (&started.loop_config, &started.cognitive_loop);
    let because = config["because"].as_str()?;
    let is_by_size = config["intent"].is_string();
    let is_usual = is_by_size && *name == gyrus_loops::ThinkingStrategy::ReAct.loop_name();
    (!is_usual).then(|| format!("uses the loop `{name}`, because {because} (--loop auto)"))
}

/// Returns the last words of the model from this entry on, which a person saw as they arrived.
pub(crate) fn last_words(reader: &LogReader, from: u64) -> Result<Option<String>, Failure> {
    let last = reader.last("thought")?.filter(|entry| entry.seq >= from);
    Ok(
        match last.and_then(|entry| gyrus_kernel::parse(&entry).ok()) {
            Some(Entry::Noted { fact, .. }) => fact.fact["text"].as_str().map(str::to_owned),
            _ => None,
        },
    )
}

/// Prints how the run ended: the answer to standard output, the rest to standard error. `words` are
/// the last ones of the model that were shown on the way.
pub(crate) fn ended(
    store: &Store,
    finished: DriveResult,
    json: bool,
    ephemeral: bool,
    (painter, words): (&Painter, Option<&str>),
) -> Result<Code, Failure> {
    if let Some(why) = &finished.unsealed {
        let _ = put(&format!(
            "the journal is whole, but could not be sealed: {}\n  `gyrus runs verify` would not \
             notice if its end was lost\n",
            readable(why)
        ));
    }
    let refused = match &finished.ending {
        Ending::Failed { denied, .. } if denied.is_empty() => {
            approvals::denied_by_people(store, finished.run).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let code = if refused.is_empty() {
        Code::of(&finished.ending)
    } else {
        Code::Denied
    };
    match &finished.ending {
        Ending::Reached { claim, strength } if !json => {
            let _ = put(&reached(claim, *strength, &finished.spent, painter));
            let _ = put(&aftermath::lines(store, finished.run, painter));
            if !stands_above(&finished, words) {
                answer(&claim.answer, finished.for_terminal.as_deref())?;
            }
        }
        ending => {
            if let Some(said) = say(ending, &finished.run.short()) {
                let what = if refused.is_empty() {
                    said.what
                } else {
                    format!("{}: {}", said.what, refused.join("; "))
                };
                let what = readable(&what);
                let next = if ephemeral {
                    "the run was ephemeral and cannot be resumed; begin it again without --ephemeral"
                } else {
                    &said.next
                };
                let left = aftermath::lines(store, finished.run, painter);
                let what = painter.paint(Tone::Bad, &what);
                let _ = put(&format!("{what}\n{left}  {next}\n"));
            }
        }
    }
    Ok(code)
}

/// Whether the answer was printed before at the same terminal, as the model's last words.
fn stands_above(finished: &DriveResult, words: Option<&str>) -> bool {
    let (answer, words) = (finished.answer().map(str::trim), words.map(str::trim));
    answer.is_some()
        && answer == words
        && finished.for_terminal.is_none()
        && output::standard().is_terminal()
        && std::io::stderr().is_terminal()
}

fn reached(claim: &Claim, strength: Strength, spent: &Spent, painter: &Painter) -> String {
    let how = match strength {
        Strength::Answered => "answered",
        Strength::Claimed => "reached, as the model claims",
        Strength::Checked => "reached: the checks passed",
        Strength::Verified => "reached: an independent look agrees",
    };
    let about = if spent.estimated { "about " } else { "" };
    let cost = spent.cost.after(&format!(" · {about}"));
    let line = format!(
        "■ {how} · {} · {about}{}{cost} · {}",
        counted(spent.steps, "step"),
        counted(spent.tokens, "token"),
        gyrus_text::span(spent.time_ms)
    );
    let mut text = painter.paint(Tone::Strong, &line);
    text.push('\n');
    for shortfall in &claim.shortfalls {
        let line = clip(&format!("  but {}", readable(shortfall)), painter.columns);
        text.push_str(&format!("{}\n", painter.paint(Tone::Bad, &line)));
    }
    for evidence in &claim.evidence {
        let at = if evidence.at.is_empty() {
            String::new()
        } else {
            format!(" ({})", evidence.at)
        };
        let line = format!("  evidence: {}{at}", evidence.what);
        text.push_str(&format!("{}\n", clip(&line, painter.columns)));
    }
    text
}

/// Prints the answer. An answer that the person asked to have in a file is shown whole at a
/// terminal only.
fn answer(answer: &str, for_terminal: Option<&str>) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = output::standard();
    let answer = answer.trim_end();
    if out.is_terminal() {
        match for_terminal {
            // Not wrapped: a link that is broken over lines cannot be followed.
            Some(whole) => {
                let whole = format!("{}\n", readable(whole.trim_end()));
                out.raw().write_all(whole.as_bytes())?;
            }
            None => writeln!(out, "{}", readable(answer))?,
        }
    } else {
        out.raw().write_all(format!("{answer}\n").as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Handles interrupts: the first finishes the effect in progress and parks, the second cuts the
/// effect off and parks, the third ends the process now.
fn interrupt_on_signal(controls: Controls) -> Result<AbortOnDrop, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listening = tokio::spawn(async move {
        for times in 1_u32.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let said = match times {
                1 => {
                    controls.interrupt();
                    "finishing what is in progress; again: cut it off\n"
                }
                2 => {
                    controls.interrupt_now();
                    "cutting off what is in progress; again: end at once\n"
                }
                _ => {
                    keys::restore_modes();
                    process::exit(Code::Interrupted as i32)
                }
            };
            // There may be nobody left to tell.
            let _ = put(&format!("\n{said}"));
        }
    });
    Ok(AbortOnDrop(listening))
}

/// Ends this process at a signal to end, while a person may type at its terminal: whoever has asked
/// for a signal once is not ended by it.
pub(crate) fn end_on_signal(runtime: &Runtime) -> Result<AbortOnDrop, Failure> {
    let _inside = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(AbortOnDrop(tokio::spawn(async move {
        terminate.recv().await;
        keys::restore_modes();
        process::exit(Code::Interrupted as i32)
    })))
}

/// A task that ends with its run: the next run counts its own interrupts.
pub(crate) struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Ends this process as a crash would once an entry is on disk; for tests of recovery.
fn crash_after(entry: Option<&str>, reader: &LogReader) -> Result<(), Failure> {
    let Some(given) = entry else { return Ok(()) };
    let entry: u64 = given.parse().map_err(|_| {
        Failure::usage(format!(
            "{}={given} is not the number of an entry",
            env::GYRUS_CRASH_AFTER
        ))
    })?;
    let reader = reader.clone();
    // A thread of its own, so that nothing the run does can delay it.
    std::thread::spawn(move || {
        let watch = async {
            let mut follower = reader.follow(entry).ok()?;
            follower.next().await.ok()?;
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).ok()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.map(|runtime| runtime.block_on(watch))
    });
    Ok(())
}
