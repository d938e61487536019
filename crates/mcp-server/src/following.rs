//! Following a run until there is something to tell.

use std::{collections::VecDeque, sync::Arc};

use gyrus_contract::RunId;
use gyrus_journal::{LogEntry, LogReader};
use gyrus_kernel::{
    Ending, RunState, StandingChange,
    approvals::{self, OpenQuestion},
    log_name,
};
use gyrus_runtime::blocking;
use gyrus_surfaces::{
    left_files::LeftFiles,
    projection::{Projection, Prominence},
    tree_follower::TreeFollower,
};
use gyrus_text::readable;
use tokio::time::{Instant, sleep_until};

use crate::{
    host::McpHost,
    report::{ReportedQuestion, ReportedState, RunReport},
};

/// Maximum number of events in a report.
const EVENTS: usize = 40;

/// Columns of such a line.
const COLUMNS: usize = 160;

/// Maximum number of files in a report.
const FILES: usize = 50;

pub(crate) struct RunWait<'a> {
    pub(crate) host: &'a Arc<dyn McpHost>,
    pub(crate) run: RunId,
    /// Number of the last known entry.
    pub(crate) after: u64,
    pub(crate) until: Instant,
    pub(crate) is_news: &'a (dyn Fn(&OpenQuestion) -> bool + Sync),
}

pub(crate) struct FoundRun {
    pub(crate) report: RunReport,
    pub(crate) open: Vec<OpenQuestion>,
}

impl RunWait<'_> {
    /// Follows the run until it rests, asks a new question, or the time is over. `tell` gets each
    /// event after the known ones.
    ///
    /// # Errors
    /// A message: the run never began, or cannot be read.
    pub(crate) async fn follow(
        &self,
        mut tell: impl FnMut(&str) + Send,
    ) -> Result<FoundRun, String> {
        if !self.begun().await? {
            return Ok(FoundRun {
                report: RunReport::new(self.run, self.after),
                open: Vec::new(),
            });
        }
        let reader = self.host.store().reader(&log_name(self.run));
        let reader = reader.map_err(|error| error.to_string())?;
        let mut told = ReportSoFar::new(RunReport::new(self.run, self.after));
        let open = self.to_news(&reader, &mut told, &mut tell).await?;
        let (host, run) = (Arc::clone(self.host), self.run);
        let state = blocking(move || RunState::of(host.store(), run)).await;
        let state = state.map_err(|error| error.to_string())?;
        Ok(told.finish(state, open))
    }

    /// Waits until the journal of the run is there; returns whether it is.
    async fn begun(&self) -> Result<bool, String> {
        let store = self.host.store();
        let name = log_name(self.run);
        let begins = async {
            tokio::select! {
                biased;
                created = store.created(&name) => created.map_err(|error| error.to_string()),
                ended = self.host.settled(self.run) => {
                    let run = self.run.short();
                    Err(format!("run {run} did not begin: {ended}"))
                }
            }
        };
        tokio::select! {
            biased;
            begun = begins => match begun {
                Err(why) if !store.exists(&name) => Err(why),
                Ok(()) | Err(_) => Ok(true),
            },
            () = sleep_until(self.until) => Ok(store.exists(&name)),
        }
    }

    /// Reads entries until there is news; returns the open questions.
    async fn to_news(
        &self,
        reader: &LogReader,
        told: &mut ReportSoFar,
        tell: &mut (impl FnMut(&str) + Send),
    ) -> Result<Vec<OpenQuestion>, String> {
        let mut entries = TreeFollower::new(self.host.store());
        entries.follow(self.run, 1);
        let mut settled = self.host.settled(self.run);
        let (mut is_settled, mut is_late) = (false, false);
        let on_disk = reader.end().map_err(|error| error.to_string())?;
        loop {
            // What is on disk already is told, however short the time.
            if (is_settled || is_late) && reader.end().is_ok_and(|end| told.seen >= end) {
                return Ok(self.open().await);
            }
            tokio::select! {
                biased;
                followed = entries.next() => {
                    let followed = followed.map_err(|error| error.to_string())?;
                    let is_own = followed.run == self.run;
                    if is_own {
                        told.take(&followed.entry, reader, tell);
                    }
                    // A question may be known to have been asked, and not have been shown.
                    let may_ask = match followed.change {
                        Some(StandingChange::Ended(_)) if is_own => return Ok(Vec::new()),
                        Some(StandingChange::Asked(_) | StandingChange::Parked(_)) => {
                            !is_own || told.seen > self.after
                        }
                        Some(_) | None => false,
                    };
                    if may_ask || is_own && told.seen == on_disk {
                        let open = self.open().await;
                        if open.iter().any(self.is_news) {
                            return Ok(open);
                        }
                    }
                }
                _ = &mut settled, if !is_settled => is_settled = true,
                () = sleep_until(self.until), if !is_late => is_late = true,
            }
        }
    }

    async fn open(&self) -> Vec<OpenQuestion> {
        let (host, run) = (Arc::clone(self.host), self.run);
        blocking(move || approvals::unanswered(host.store(), run).unwrap_or_default()).await
    }
}

struct ReportSoFar {
    report: RunReport,
    projection: Projection,
    files: LeftFiles,
    events: VecDeque<String>,
    /// Number of the last entry that was read.
    seen: u64,
}

impl ReportSoFar {
    fn new(report: RunReport) -> Self {
        Self {
            report,
            projection: Projection::new(),
            files: LeftFiles::default(),
            events: VecDeque::new(),
            seen: 0,
        }
    }

    fn take(&mut self, entry: &LogEntry, reader: &LogReader, tell: &mut (impl FnMut(&str) + Send)) {
        self.seen = entry.seq;
        for happening in self.projection.take(entry, reader) {
            self.files.note(&happening);
            let is_new = entry.seq > self.report.next;
            if let Some(line) = happening.in_one_line(COLUMNS)
                && is_new
                && happening.weight == Prominence::Main
            {
                tell(&line);
                self.events.push_back(line);
                if self.events.len() > EVENTS {
                    self.events.pop_front();
                }
            }
        }
    }

    fn finish(self, state: RunState, open: Vec<OpenQuestion>) -> FoundRun {
        let mut report = self.report;
        report.next = report.next.max(self.seen);
        report.events = self.events.into();
        report.files = self.files.newest(FILES).to_vec();
        report.questions = open.iter().map(ReportedQuestion::of).collect();
        let waits = !open.is_empty();
        let why = |ending: &Ending| Some(readable(&gyrus_kernel::summary(ending)).into_owned());
        (report.state, report.why) = match state {
            RunState::Over(Ending::Reached { claim, strength }) => {
                report.outcome = Some(strength.word().to_owned());
                report.answer = Some(readable(&claim.answer).into_owned());
                (ReportedState::Reached, None)
            }
            RunState::Over(ending) => (ReportedState::Failed, why(&ending)),
            RunState::Parked(_) | RunState::Running(_) if waits => {
                (ReportedState::WaitsForPerson, None)
            }
            RunState::Parked(ending) => (ReportedState::Parked, why(&ending)),
            RunState::Running(_) => (ReportedState::Running, None),
            RunState::CutOff => (ReportedState::Parked, Some("its process died".to_owned())),
            RunState::Record(ending) => {
                let why = gyrus_kernel::record_summary(ending.as_ref());
                (ReportedState::Failed, Some(readable(&why).into_owned()))
            }
            RunState::NeverBegan => (ReportedState::Queued, None),
        };
        FoundRun { report, open }
    }
}
