//! Starting the processes that drive runs, each in its turn, and seeing to what becomes of them.

use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};

use gyrus_contract::{MessageBody, Principal, RunId, SurfaceMessage};
use gyrus_journal::{Holder, Store};
use gyrus_kernel::{
    Ending, RunState,
    approvals::{self, OpenQuestion},
    latch::Latch,
    log_name, now_ms, summary, wait_until,
};
use tokio::{sync::watch, task::JoinSet};

use super::{
    AtOnce, Gateway, QueueError,
    command::{CommandStage, QueueCommand},
    facts::want_of_room,
};
use crate::ledger::is_of_disk;

/// Number of restarts of a run's process that dies without progress, before its command pauses.
const DEATHS: u32 = 3;

/// Time after which a command whose turn could not be determined is checked again: a stop that was
/// lifted is seen by then.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The kind of the entry with which a run is taken up again.
const RESUMED: &str = "run.resumed";

/// Exit code of a process whose command line or configuration is wrong.
const WRONG_COMMAND: i32 = 2;

/// Exit code of a process that did not get its run, or lost it to another worker of the queue. Its
/// command then waits for its turn again.
pub const RUN_IS_ELSEWHERE: i32 = 8;

/// The end of a process that drove a run.
#[derive(Debug, Clone, Default)]
pub struct WorkerEnd {
    /// The process's exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The end of the process's standard error.
    pub said: String,
}

/// A process that drives a run.
pub type DrivingProcess = Pin<Box<dyn Future<Output = WorkerEnd> + Send>>;

/// Starts the processes that drive runs.
pub trait Workers: Send + Sync + 'static {
    /// Starts a process for a command. It creates the run, or goes on with it if it exists.
    ///
    /// # Errors
    /// No process can be started.
    fn start(&self, command: &QueueCommand) -> io::Result<DrivingProcess>;

    /// Kills the process of a command with its descendants. What has ended is left alone.
    fn kill(&self, command: &QueueCommand);

    /// Reports to the operator why a command could not begin. The command is retried.
    fn cannot_begin(&self, why: &str);

    /// Returns a future that resolves when a process, started by another one, has ended.
    fn ended(&self, holder: &Holder) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The dispatcher of a queue.
pub struct Dispatcher {
    gateway: Gateway,
    workers: Arc<dyn Workers>,
    at_once: AtOnce,
    latch: Latch,
    tasks: JoinSet<Result<(), QueueError>>,
    /// The reason why no command can begin, if there is one.
    want: Option<String>,
}

impl Dispatcher {
    /// Creates the dispatcher of a queue.
    pub fn new(gateway: Gateway, workers: Arc<dyn Workers>, at_once: AtOnce, latch: Latch) -> Self {
        Self {
            gateway,
            workers,
            at_once,
            latch,
            tasks: JoinSet::new(),
            want: None,
        }
    }

    /// Starts commands in their turn until `stop` is true, and then waits for the processes that it
    /// watches. Commands whose process ends later stay in their stage, to be resumed.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), QueueError> {
        self.take_up().await?;
        let mut changes = self.gateway.changes();
        while !*stop.borrow_and_update() {
            changes.borrow_and_update();
            if self.start_next().await? {
                continue;
            }
            let due = self.gateway.with(|queue| queue.next_due(now_ms()));
            let looks_again = self.latch.check().is_err() || self.want.is_some();
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN), if looks_again => {}
                () = wait_until(due.unwrap_or(i64::MAX)) => {}
                _ = stop.changed() => {}
                Some(done) = self.tasks.join_next() => outcome(done)?,
            }
        }
        self.tasks.shutdown().await;
        Ok(())
    }

    /// Takes over the commands in progress of an earlier process.
    async fn take_up(&mut self) -> Result<(), QueueError> {
        let open: Vec<(Arc<QueueCommand>, CommandStage)> = self.gateway.with(|queue| {
            let standing = queue.all().into_iter();
            let open = standing.filter(|one| !one.stage.is_over());
            open.map(|one| (one.command.clone(), one.stage.clone()))
                .collect()
        });
        for (command, stage) in open {
            match stage {
                CommandStage::Queued
                | CommandStage::Ended { .. }
                | CommandStage::Cancelled { .. } => {}
                CommandStage::Running { .. } => {
                    match RunState::of(self.gateway.store(), command.run) {
                        Ok(RunState::Running(holder)) => self.adopt(command, &holder),
                        _ => {
                            self.gateway
                                .reach(&command.id, CommandStage::Queued)
                                .await?
                        }
                    }
                }
                CommandStage::Parked {
                    deaths: Some(_), ..
                } => {
                    self.tasks.spawn(resting(self.gateway.clone(), command));
                }
                CommandStage::Parked { until_ms, .. } => {
                    // Those of a shared queue may have parked on another machine.
                    if self.gateway.store().exists(&log_name(command.run)) {
                        self.wake_later(command, until_ms);
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts the next command; returns whether there was one.
    async fn start_next(&mut self) -> Result<bool, QueueError> {
        if self.latch.check().is_err() {
            return Ok(false);
        }
        // Nothing begins while this process's own disk is full or refuses: others may have room.
        self.want = want_of_room(self.gateway.store());
        let mut command = None;
        if self.want.is_none() {
            command = match self.gateway.begin_next(self.at_once).await {
                Err(QueueError::Ledger(error)) if is_of_disk(&error) => {
                    self.want = Some(error.to_string());
                    None
                }
                begun => begun?,
            };
        }
        if let Some(want) = &self.want {
            self.workers.cannot_begin(want);
        }
        let Some(command) = command else {
            return Ok(false);
        };
        match self.workers.start(&command) {
            Ok(worker) => {
                let watching = self.watching();
                self.tasks
                    .spawn(watching.follow_to_the_end(command, worker));
            }
            Err(error) => {
                let why = format!("its process cannot be started: {error}");
                let watching = self.watching();
                self.tasks
                    .spawn(async move { watching.rest(command, &why).await });
            }
        }
        Ok(true)
    }

    /// Watches a process that an earlier process started.
    fn adopt(&mut self, command: Arc<QueueCommand>, holder: &Holder) {
        let ended = self.workers.ended(holder);
        let worker: DrivingProcess = Box::pin(async move {
            ended.await;
            WorkerEnd::default()
        });
        let watching = self.watching();
        self.tasks
            .spawn(watching.follow_to_the_end(command, worker));
    }

    fn watching(&self) -> CommandWatch {
        CommandWatch {
            gateway: self.gateway.clone(),
            workers: Arc::clone(&self.workers),
            latch: self.latch.clone(),
        }
    }

    fn wake_later(&mut self, command: Arc<QueueCommand>, until_ms: Option<i64>) {
        self.tasks
            .spawn(wake(self.gateway.clone(), command, until_ms));
    }
}

struct CommandWatch {
    gateway: Gateway,
    workers: Arc<dyn Workers>,
    latch: Latch,
}

impl CommandWatch {
    /// Waits until a command's process ends, and starts it anew if it died.
    async fn follow_to_the_end(
        self,
        command: Arc<QueueCommand>,
        mut worker: DrivingProcess,
    ) -> Result<(), QueueError> {
        let mut deaths = 0;
        let mut reached = self.progress(command.run);
        loop {
            let end = tokio::select! {
                end = &mut worker => end,
                () = self.lost(&command.id) => {
                    // All runs were stopped, or another worker has it by now.
                    self.workers.kill(&command);
                    worker.await;
                    return Ok(());
                }
            };
            if !self.gateway.has(&command.id) {
                return Ok(());
            }
            if end.code == Some(RUN_IS_ELSEWHERE) {
                tokio::time::sleep(LOOK_AGAIN).await;
                return self.gateway.reach(&command.id, CommandStage::Queued).await;
            }
            let state = self.state_after(&end, command.run).await;
            match state {
                Ok(RunState::Over(ending)) => {
                    let code = end.code;
                    return self.gateway.end(&command.id, code, summary(&ending)).await;
                }
                Ok(RunState::Parked(ending)) => return self.parked(command, &end, ending).await,
                // Nothing goes on with it, whoever asked for that.
                Ok(RunState::Record(_)) => {
                    return self.gateway.end(&command.id, end.code, failure(&end)).await;
                }
                Ok(RunState::CutOff | RunState::Running(_)) => {}
                // The command is wrong, and stays so.
                Ok(RunState::NeverBegan) | Err(_) if end.code == Some(WRONG_COMMAND) => {
                    return self.gateway.end(&command.id, end.code, failure(&end)).await;
                }
                // It lacked something (room, processes, a server): what could not begin has not run.
                Ok(RunState::NeverBegan) | Err(_) if end.code.is_some_and(|code| code != 0) => {
                    return self.rest(command, &failure(&end)).await;
                }
                Ok(RunState::NeverBegan) | Err(_) => {}
            }
            if let Err(latched) = self.latch.check() {
                let summary = summary(&Ending::from(latched));
                return self.gateway.end(&command.id, end.code, summary).await;
            }
            let now = self.progress(command.run);
            deaths = if now > reached { 1 } else { deaths + 1 };
            reached = now;
            if deaths > DEATHS {
                let why = format!("its process died {deaths} times: {}", failure(&end));
                return self.rest(command, &why).await;
            }
            worker = match self.workers.start(&command) {
                Ok(worker) => worker,
                Err(error) => {
                    let why = format!("its process cannot be started: {error}");
                    return self.rest(command, &why).await;
                }
            };
        }
    }

    async fn state_after(
        &self,
        end: &WorkerEnd,
        run: RunId,
    ) -> Result<RunState, gyrus_journal::Error> {
        let state = match RunState::of(self.gateway.store(), run) {
            Ok(RunState::Running(holder)) => {
                // Somebody else has taken it up.
                self.workers.ended(&holder).await;
                RunState::of(self.gateway.store(), run)
            }
            state => state,
        };
        // What a killed process wrote last may be on this disk alone, and then it does not count: the
        // next one goes on from what all workers have.
        let is_shared = self.gateway.name().is_some();
        match end.code {
            None if is_shared => Ok(RunState::CutOff),
            _ => state,
        }
    }

    async fn rest(&self, command: Arc<QueueCommand>, why: &str) -> Result<(), QueueError> {
        let (gateway, entries) = (&self.gateway, self.progress(command.run));
        if entries == 0 {
            self.workers.cannot_begin(why);
        }
        let until_ms = gateway.rest(&command.id, gateway.name(), entries, why);
        match until_ms.await? {
            Some(_) => resting(gateway.clone(), command).await,
            None => Ok(()),
        }
    }

    /// Waits until this worker no longer holds a command.
    async fn lost(&self, id: &str) {
        let mut changes = self.gateway.changes();
        while self.gateway.has(id) {
            // Without a queue there is nothing to lose.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns the number of the last entry of a run that is work: being taken up is none.
    fn progress(&self, run: RunId) -> u64 {
        let reader = self.gateway.store().reader(&log_name(run));
        let entries = reader.and_then(|reader| reader.entries_back());
        let work = entries.into_iter().flatten().map_while(Result::ok);
        let mut work = work.skip_while(|entry| entry.kind == RESUMED);
        work.next().map_or(0, |entry| entry.seq)
    }

    async fn parked(
        &self,
        command: Arc<QueueCommand>,
        end: &WorkerEnd,
        ending: Ending,
    ) -> Result<(), QueueError> {
        let why = summary(&ending);
        let (for_person, until_ms) = match &ending {
            Ending::Waiting { .. } => (true, None),
            Ending::Sleeping { until_ms, .. } => (false, *until_ms),
            Ending::Reached { .. }
            | Ending::Failed { .. }
            | Ending::Limit { .. }
            | Ending::Stuck { .. }
            | Ending::ModelUnreachable { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => return self.gateway.end(&command.id, end.code, why).await,
        };
        let stage = CommandStage::Parked {
            why,
            for_person,
            until_ms,
            deaths: None,
        };
        self.gateway.reach(&command.id, stage).await?;
        wake(self.gateway.clone(), command, until_ms).await
    }
}

fn failure(end: &WorkerEnd) -> String {
    let said = end.said.trim();
    match end.code {
        _ if !said.is_empty() => said.to_owned(),
        Some(code) => format!("its process ended with exit code {code}"),
        None => "its process was killed".to_owned(),
    }
}

/// Waits until a command rests, or a person stops its run.
async fn resting(gateway: Gateway, command: Arc<QueueCommand>) -> Result<(), QueueError> {
    let store = gateway.store().clone();
    // A run that never began has none, and where there is no room, none can be made.
    let mut inbox = store
        .inbox(&log_name(command.run))
        .and_then(|inbox| inbox.watch());
    let mut changes = gateway.changes();
    loop {
        changes.borrow_and_update();
        let stage = gateway.with(|queue| queue.get(&command.id).map(|one| one.stage.clone()));
        let Some(stage @ CommandStage::Parked { until_ms, .. }) = stage else {
            return Ok(());
        };
        if let Some(by) = stopped_by(&store, command.run).unwrap_or_default() {
            let summary = summary(&Ending::Stopped { by, reason: None });
            return gateway.end(&command.id, None, summary).await;
        }
        if stage.is_waited_out(now_ms()) {
            return gateway.reach(&command.id, CommandStage::Queued).await;
        }
        let told = async {
            match &mut inbox {
                Ok(inbox) => inbox.changed().await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = told => {}
            _ = changes.changed() => {}
            () = wait_until(until_ms.unwrap_or(i64::MAX)) => {}
        }
    }
}

/// Returns the person who asked in a message that a run be stopped.
fn stopped_by(store: &Store, run: RunId) -> Result<Option<Principal>, QueueError> {
    let messages = store.inbox(&log_name(run))?.messages()?;
    Ok(messages.iter().find_map(|(_, body)| {
        let message: SurfaceMessage = serde_json::from_str(body).ok()?;
        matches!(message.body, MessageBody::Stop).then_some(message.from)
    }))
}

/// Waits until a parked run can go on. A look that the disk refuses is repeated; a run that cannot be
/// read ends its own command alone.
async fn wake(
    gateway: Gateway,
    command: Arc<QueueCommand>,
    until_ms: Option<i64>,
) -> Result<(), QueueError> {
    loop {
        match woken(&gateway, &command, until_ms).await {
            Err(error) if is_of_disk(&error) => tokio::time::sleep(LOOK_AGAIN).await,
            Err(error @ (QueueError::Journal(_) | QueueError::Approval(_))) => {
                return gateway.end(&command.id, None, error.to_string()).await;
            }
            woken => return woken,
        }
    }
}

/// Waits until a parked run has the answer or the signal that it waits for, its question has expired,
/// or its time has come. Other messages wait with it.
async fn woken(
    gateway: &Gateway,
    command: &QueueCommand,
    until_ms: Option<i64>,
) -> Result<(), QueueError> {
    let store = gateway.store().clone();
    let open = approvals::open(&store, command.run).unwrap_or_default();
    let expires = open.iter().map(|open| open.valid.until_ms).min();
    let deadline = until_ms.or(expires);
    // The newest question is the one that it waits for; a child may have asked it.
    let asks = open.last().map_or(command.run, |open| open.run);
    let mut asked = store.inbox(&log_name(asks))?.watch()?;
    let mut own = store.inbox(&log_name(command.run))?.watch()?;
    let mut changes = gateway.changes();
    loop {
        changes.borrow_and_update();
        if !gateway.with(|queue| super::is_parked(queue, &command.id)) {
            // Another worker has woken it.
            return Ok(());
        }
        match called(&store, command.run, &open)? {
            Some(WakeReason::GoOn) => {
                return gateway.reach(&command.id, CommandStage::Queued).await;
            }
            Some(WakeReason::Stop(by)) => {
                let summary = summary(&Ending::Stopped { by, reason: None });
                return gateway.end(&command.id, None, summary).await;
            }
            None if deadline.is_some_and(|at| at <= now_ms()) => {
                return gateway.reach(&command.id, CommandStage::Queued).await;
            }
            None => {}
        }
        tokio::select! {
            () = asked.changed() => {}
            _ = changes.changed() => {}
            () = own.changed() => {}
            () = wait_until(deadline.unwrap_or(i64::MAX)) => {}
        }
    }
}

/// The reason why a parked run no longer waits.
enum WakeReason {
    GoOn,
    Stop(Principal),
}

fn called(
    store: &Store,
    run: RunId,
    open: &[OpenQuestion],
) -> Result<Option<WakeReason>, QueueError> {
    let signal = match RunState::of(store, run)? {
        RunState::Parked(Ending::Sleeping { signal, .. }) => signal,
        RunState::Parked(_) => None,
        // A person has gone on with it elsewhere.
        _ => return Ok(Some(WakeReason::GoOn)),
    };
    for question in open {
        if approvals::waiting_answer(store, question)?.is_some() {
            return Ok(Some(WakeReason::GoOn));
        }
    }
    for (_, body) in store.inbox(&log_name(run))?.messages()? {
        let Ok(message) = serde_json::from_str::<SurfaceMessage>(&body) else {
            continue;
        };
        match message.body {
            MessageBody::Stop => return Ok(Some(WakeReason::Stop(message.from))),
            MessageBody::Signal { name, .. } if Some(&name) == signal.as_ref() => {
                return Ok(Some(WakeReason::GoOn));
            }
            MessageBody::Signal { .. }
            | MessageBody::Background
            | MessageBody::Pause
            | MessageBody::Steer { .. }
            | MessageBody::Answer { .. } => {}
        }
    }
    Ok(None)
}

fn outcome(done: Result<Result<(), QueueError>, tokio::task::JoinError>) -> Result<(), QueueError> {
    match done {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
    }
}
