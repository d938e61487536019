//! One attempt: this very program as a process, watched through the entries that it prints,
//! answered where that is ours to answer, ended by its id.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{BufRead, BufReader, Read, Seek},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use gyrus_contract::{Answer, ApprovalScope, Image, Principal, RunId, Strength};
use gyrus_journal::LogReader;
use gyrus_kernel::{
    ApprovalAsked, Entry,
    approvals::{self, OpenQuestion},
    log_name,
};
use rustix::process::{Pid, Signal};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use super::{
    attempt::{AttemptOutcome, AttemptReader, in_short},
    folder::TaskFolder,
    screen::AttemptScreen,
    served::AttemptServer,
    setting::EvalSetting,
    task::{EvalTask, ScreenKind},
};
use crate::{Installation, LabError};

/// Time that a run may take beyond its budget: its browser's start, its last turn.
const GRACE: Duration = Duration::from_secs(90);

/// Time limit for a run to end after it was told to, before it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Maximum number of bytes read of a process's standard error.
const SAYS: u64 = 64 << 10;

/// The longest line of an entry.
const LINE: u64 = 64 << 20;

pub(super) struct AttemptSetting<'a> {
    pub(super) task: &'a EvalTask,
    pub(super) files: &'a BTreeMap<OsString, Vec<u8>>,
    pub(super) repeat: u32,
    /// The options that vary, as they are in this attempt.
    pub(super) setting: &'a EvalSetting,
    pub(super) screen: AttemptScreen<'a>,
    /// The server of tools that the task brings, as it is for this attempt.
    pub(super) server: Option<AttemptServer>,
    /// Arguments of `gyrus run` that are the same for all attempts.
    pub(super) arguments: &'a [String],
    pub(super) required: Strength,
    pub(super) gyrus: &'a dyn Installation,
}

pub(super) struct FilmedAttempt {
    pub(super) attempt: AttemptOutcome,
    pub(super) frame: Option<Image>,
    /// Whether the run was ended from outside.
    pub(super) cut_off: bool,
}

impl AttemptSetting<'_> {
    /// Makes the attempt. When `stop` says so, the run is told to end, and ended if it does not.
    pub(super) async fn make(
        &self,
        mut stop: watch::Receiver<bool>,
    ) -> Result<FilmedAttempt, LabError> {
        let folder = TaskFolder::new(self.task, self.files)?;
        folder.set_up(self.task, self.gyrus).await?;
        let began = Instant::now();
        let mut process = GyrusProcess::start(self.command(folder.path()))?;
        let mut entries = process.entries();
        let mut watched = WatchedRun {
            setting: self,
            fold: AttemptReader::default(),
            reader: None,
        };
        let limit = Duration::from_secs(self.task.seconds()) + GRACE;
        let timer = tokio::time::sleep(limit);
        tokio::pin!(timer);
        let mut ended_by = None;
        let mut told = 0;
        loop {
            let ends = tokio::select! {
                line = entries.recv() => match line {
                    Some(line) => {
                        watched.take(&line);
                        continue;
                    }
                    None => break,
                },
                () = &mut timer => CutReason::ByTime,
                _ = stop.wait_for(|stop| *stop), if ended_by.is_none() => CutReason::ByPerson,
            };
            ended_by.get_or_insert(ends);
            // Once: finish what is in progress; twice: cut it off.
            process.signal(if told < 2 { Signal::INT } else { Signal::KILL });
            told += 1;
            timer
                .as_mut()
                .reset(tokio::time::Instant::now() + ENDS_WITHIN);
        }
        let (code, said) = process.end().await?;
        let wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if code == Some(2) && watched.reader.is_none() {
            // No attempt would fare better.
            return Err(LabError::usage(said.trim().trim_start_matches("error: ")));
        }
        let otherwise = match (&ended_by, code) {
            (Some(CutReason::ByTime), _) => format!("it did not end within {} s", limit.as_secs()),
            (Some(CutReason::ByPerson), _) => "it was interrupted".to_owned(),
            (None, Some(code)) => format!("gyrus ended with exit code {code}: {}", in_short(&said)),
            (None, None) => "gyrus was killed".to_owned(),
        };
        let fold = self.settled(watched.fold, &folder, &otherwise).await?;
        let mut attempt = fold.attempt;
        attempt.task.clone_from(&self.task.id);
        attempt.repeat = self.repeat;
        attempt.setting.clone_from(&self.setting.name);
        attempt.wall_ms = wall_ms;
        Ok(FilmedAttempt {
            cut_off: ended_by == Some(CutReason::ByPerson) && !attempt.passed,
            attempt,
            frame: fold.last_frame,
        })
    }

    async fn settled(
        &self,
        mut fold: AttemptReader,
        folder: &TaskFolder,
        otherwise: &str,
    ) -> Result<AttemptReader, LabError> {
        if self.task.screen != ScreenKind::NoScreen {
            fold.settle(self.required, self.task.answer.as_ref(), otherwise);
            return Ok(fold);
        }
        let mut failed = folder.failed_check(self.task, self.gyrus).await?;
        if let (None, Some(server), Some(own)) = (&failed, &self.task.server, &self.server) {
            failed = own.mismatch(server, self.gyrus).await?;
        }
        fold.settle_in_folder(self.task, failed, otherwise);
        Ok(fold)
    }

    fn command(&self, folder: &Path) -> Command {
        let task = self.task;
        let mut command = self.gyrus.command();
        command
            .arg("run")
            .args(self.screen.arguments())
            .args(["--workdir", &folder.display().to_string()])
            .args(["--max-steps", &task.budget.steps.to_string()])
            .args(["--max-time", &format!("{}s", task.seconds())])
            .args(["--approve", "auto", "--json"]);
        if task.screen != ScreenKind::NoScreen {
            for check in &task.checks {
                command.args(["--check", check]);
            }
            // Without a check only the answer is compared, and that is done here.
            let required = match (self.required, task.checks.is_empty()) {
                (Strength::Checked, true) => Strength::Claimed,
                (required, _) => required,
            };
            command.args(["--require", required.word()]);
        }
        // Questions are answered by us, or by nobody.
        let on_ask = if self.screen.may_allow() {
            "wait"
        } else {
            "deny"
        };
        command.args(["--on-ask", on_ask]).args(self.arguments);
        // Suites with options that are none of a task's were refused.
        command.args(task.arguments().unwrap_or_default());
        command.args(&self.setting.arguments);
        command.args(["--", &task.placed(&task.goal, folder)]);
        command
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutReason {
    ByPerson,
    ByTime,
}

struct WatchedRun<'a> {
    setting: &'a AttemptSetting<'a>,
    fold: AttemptReader,
    /// The reader of the run's journal, known from its first entry on.
    reader: Option<(RunId, LogReader)>,
}

/// An entry as `gyrus run --json` prints it.
#[derive(Deserialize)]
struct JsonEntry<'a> {
    run: RunId,
    kind: &'a str,
    v: u16,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

impl WatchedRun<'_> {
    fn take(&mut self, line: &str) {
        let Ok(line) = serde_json::from_str::<JsonEntry<'_>>(line) else {
            return;
        };
        let entry = line
            .payload
            .map(|it| Entry::parse(line.kind, line.v, it.get()));
        let Some(Ok(entry)) = entry else { return };
        if self.reader.is_none() {
            let reader = self.setting.gyrus.store().reader(&log_name(line.run)).ok();
            self.reader = reader.map(|reader| (line.run, reader));
        }
        let Some((run, reader)) = &self.reader else {
            return;
        };
        if let Some(asked) = self.fold.take(entry, reader) {
            let run = *run;
            self.answer(run, asked);
        }
    }

    /// Answers yes to questions that are only about the attempt's own screen, and no to all others.
    fn answer(&mut self, run: RunId, asked: ApprovalAsked) {
        let screen = &self.setting.screen;
        if !screen.may_allow() {
            self.fold.attempt.questions.denied += 1;
            return;
        }
        let (tool, measured) = (self.fold.tool(&asked), self.fold.measured(&asked));
        let may = !asked.card.question && screen.allows(tool, measured);
        let questions = &mut self.fold.attempt.questions;
        let answer = if may {
            questions.allowed += 1;
            Answer::yes(ApprovalScope::Once)
        } else {
            questions.denied += 1;
            Answer::no(screen.limit())
        };
        let from = Principal {
            surface: "eval".to_owned(),
            id: "gyrus eval".to_owned(),
        };
        // A run that asks nothing any more needs no answer; one that waits for ever has a limit.
        let _ = approvals::answer(
            self.setting.gyrus.store(),
            &OpenQuestion::new(run, asked),
            from,
            answer,
        );
    }
}

/// A process of gyrus. Dropping it kills it; what it started dies with it.
struct GyrusProcess {
    child: Child,
    out: Option<ChildStdout>,
    err: File,
}

impl Drop for GyrusProcess {
    fn drop(&mut self) {
        // That it has ended already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl GyrusProcess {
    fn start(mut command: Command) -> Result<Self, LabError> {
        let failed = |error| LabError::failed("gyrus cannot be started").because(error);
        let err = tempfile::tempfile().map_err(failed)?;
        let mut child = command
            // Ctrl-C is told by us, so that it is told once.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(err.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let out = child.stdout.take();
        Ok(Self { child, out, err })
    }

    /// Returns the lines that the process prints, until it prints no more.
    fn entries(&mut self) -> mpsc::Receiver<String> {
        let (send, receive) = mpsc::channel(64);
        if let Some(out) = self.out.take() {
            // Reading a pipe blocks a thread.
            tokio::task::spawn_blocking(move || {
                let mut out = BufReader::new(out);
                loop {
                    let mut line = String::new();
                    match (&mut out).take(LINE).read_line(&mut line) {
                        Ok(0) | Err(_) => return,
                        Ok(_) if send.blocking_send(line).is_err() => return,
                        Ok(_) => {}
                    }
                }
            });
        }
        receive
    }

    fn signal(&self, signal: Signal) {
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
    }

    /// Returns the exit code, and the text on standard error.
    async fn end(mut self) -> Result<(Option<i32>, String), LabError> {
        let ended = tokio::task::spawn_blocking(move || {
            let code = self.child.wait()?.code();
            let mut said = Vec::new();
            self.err.rewind()?;
            (&self.err).take(SAYS).read_to_end(&mut said)?;
            Ok::<_, std::io::Error>((code, String::from_utf8_lossy(&said).into_owned()))
        });
        Ok(ended.await.map_err(LabError::failed)??)
    }
}
