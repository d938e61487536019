//! A worker: takes runs that nobody drives, and goes on with them from what their logs say.

use std::sync::Arc;

use gyrus_contract::Digest;
use gyrus_fleet::{
    ClaimWords, Claimant, EntryLines, Hold, HoldError, LeaseTimes, LogSubject, Machine,
    MachineTime, RunMessage, RunMessageKind, RunReading, SharedLog, Wait, WriterId, claim,
};

use super::machine::Surroundings;

/// An entry of a run's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// An effect is about to begin.
    Started(u32),
    /// It is done.
    Finished(u32),
    /// Nobody knows whether it is, and it is not repeated.
    Unknown(u32),
    /// The run is over.
    Ended,
}

impl Step {
    fn line(self) -> String {
        match self {
            Step::Started(number) => format!("started {number}\n"),
            Step::Finished(number) => format!("finished {number}\n"),
            Step::Unknown(number) => format!("unknown {number}\n"),
            Step::Ended => "ended\n".to_owned(),
        }
    }

    fn read(line: &str) -> Option<Self> {
        if line == "ended" {
            return Some(Step::Ended);
        }
        let (word, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        match word {
            "started" => Some(Step::Started(number)),
            "finished" => Some(Step::Finished(number)),
            "unknown" => Some(Step::Unknown(number)),
            _ => None,
        }
    }
}

/// Whether an effect can be looked for: every other one can.
fn can_be_probed(step: u32) -> bool {
    step.is_multiple_of(2)
}

/// A worker's process, for as long as it lives.
pub(super) async fn work(around: Surroundings, runs: Vec<LogSubject>, steps: u32, lease_us: u64) {
    let times = LeaseTimes::new(std::time::Duration::from_micros(lease_us));
    let mut open = runs;
    while !open.is_empty() {
        let chosen = around.shared.inner().random_index(open.len());
        let mut driving = Driving {
            around: around.clone(),
            run: open[chosen].clone(),
            entries: Vec::new(),
            head: Digest::of(b""),
            times,
        };
        match driving.take_and_drive(steps).await {
            Ok(true) => drop(open.remove(chosen)),
            Ok(false) => around.sleep(lease_us / 10).await,
            // The process ends, and all that it started with it.
            Err(_) => return,
        }
    }
}

struct Driving {
    around: Surroundings,
    run: LogSubject,
    entries: Vec<Step>,
    head: Digest,
    times: LeaseTimes,
}

impl Driving {
    /// Returns whether the run is over.
    async fn take_and_drive(&mut self, steps: u32) -> Result<bool, HoldError> {
        let Some(mut hold) = self.take().await else {
            return Ok(self.entries.last() == Some(&Step::Ended));
        };
        self.around
            .shared
            .inner()
            .claimed(self.around.process, &self.run, hold.epoch());
        loop {
            match self.entries.last().copied() {
                Some(Step::Ended) => {
                    hold.release().await?;
                    self.around.shared.inner().let_go(self.around.process);
                    return Ok(true);
                }
                // Its process died before it said how this went.
                Some(Step::Started(step)) => self.settle(&mut hold, step).await?,
                Some(Step::Finished(step) | Step::Unknown(step)) if step == steps => {
                    self.append(&mut hold, Step::Ended).await?;
                }
                Some(Step::Finished(step) | Step::Unknown(step)) => {
                    self.step(&mut hold, step + 1).await?;
                }
                None => self.step(&mut hold, 1).await?,
            }
        }
    }

    async fn take(&mut self) -> Option<Hold> {
        let log: Arc<dyn SharedLog> = Arc::new(self.around.clone());
        let machine: Arc<dyn Machine> = Arc::new(self.around.clone());
        let (writer, wait) = {
            let mut inner = self.around.shared.inner();
            let wait = if inner.does_not_wait() {
                Wait::Dead
            } else {
                Wait::Succeed { seen: None }
            };
            (WriterId(inner.new_writer()), wait)
        };
        let claimant = Claimant {
            log: &log,
            machine: &machine,
            writer,
            claimed: ClaimWords {
                worker: self.around.process.to_string(),
                lease_ms: u64::try_from(self.times.lease().as_millis()).unwrap_or(u64::MAX),
                build: "simulated".to_owned(),
            },
        };
        let mut reading = RunReading::new(self.run.clone());
        let (entries, head) = (&mut self.entries, &mut self.head);
        let mut sink = |message: &RunMessage| {
            if let RunMessageKind::Entries(lines) = &message.kind {
                let text = String::from_utf8_lossy(&lines.lines);
                entries.extend(text.lines().filter_map(Step::read));
                *head = lines.head;
            }
            Ok(())
        };
        let until = machine.now() + self.times.lease() * 2;
        claim(claimant, &mut reading, &mut sink, wait, until)
            .await
            .ok()
    }

    async fn append(&mut self, hold: &mut Hold, step: Step) -> Result<(), HoldError> {
        let line = step.line();
        let number = self.entries.len() as u64 + 1;
        let head = Digest::of(format!("{}{line}", self.head).as_bytes());
        let lines = EntryLines {
            first: number,
            last: number,
            previous: self.head,
            head,
            lines: line.as_bytes().into(),
            blobs: Vec::new(),
            large_blobs: Vec::new(),
            lines_in: None,
        };
        hold.append(lines).await?;
        self.head = head;
        self.entries.push(step);
        self.around
            .shared
            .inner()
            .acknowledged(self.around.process, &self.run, number, &line);
        Ok(())
    }

    /// Does one effect, after some thought.
    async fn step(&mut self, hold: &mut Hold, step: u32) -> Result<(), HoldError> {
        let thought = self.around.shared.inner().random_thought();
        self.pass(hold, thought).await?;
        self.append(hold, Step::Started(step)).await?;
        self.effect(hold, step).await?;
        self.append(hold, Step::Finished(step)).await
    }

    /// Settles an effect whose process died.
    async fn settle(&mut self, hold: &mut Hold, step: u32) -> Result<(), HoldError> {
        if !can_be_probed(step) {
            return self.append(hold, Step::Unknown(step)).await;
        }
        let is_done = self.around.shared.inner().is_done(&self.run, step);
        if !is_done {
            self.effect(hold, step).await?;
        }
        self.append(hold, Step::Finished(step)).await
    }

    async fn effect(&mut self, hold: &mut Hold, step: u32) -> Result<(), HoldError> {
        let time = self.around.shared.inner().begin_effect(
            self.around.process,
            &self.run,
            hold.epoch(),
            step,
        );
        self.pass(hold, time).await
    }

    /// Lets time pass while the run is held.
    async fn pass(&self, hold: &mut Hold, micros: u64) -> Result<(), HoldError> {
        let end = MachineTime(self.around.now().0 + micros);
        loop {
            let next = end.min(hold.renewal_due());
            self.around.sleep_until(next).await;
            if self.around.now() >= end {
                return Ok(());
            }
            hold.renew().await?;
        }
    }
}
