//! The world of a schedule: the processes, and the events that let them go on.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Waker},
};

use gyrus_fleet::LogSubject;

use super::{
    machine::Surroundings,
    outcome::{FailedFleetSchedule, Flaw, Outcome},
    state::{Event, Inner, Process, Shared},
    worker,
};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A schedule under way.
pub(super) struct World {
    seed: u64,
    shared: Arc<Shared>,
    tasks: Vec<Option<Task>>,
    runs: Vec<LogSubject>,
    steps: u32,
}

impl World {
    pub(super) fn new(seed: u64, flaw: Option<Flaw>, is_told: bool) -> Self {
        let (inner, runs, steps) = Inner::new(seed, flaw, is_told);
        Self {
            seed,
            shared: Arc::new(Shared::new(inner)),
            tasks: Vec::new(),
            runs,
            steps,
        }
    }

    pub(super) fn live(mut self) -> Result<Outcome, FailedFleetSchedule> {
        let failed = loop {
            let next = {
                let mut inner = self.shared.inner();
                if let Some(why) = inner.violation.take() {
                    break Some(why);
                }
                if inner.all_ended(&self.runs) {
                    break inner.lost_entry();
                }
                if inner.now > inner.faults_until + inner.lease_us * 60 {
                    break Some("a run is stuck".to_owned());
                }
                inner.next()
            };
            let Some(event) = next else {
                break Some("nothing happens any more, and a run has not ended".to_owned());
            };
            self.happen(event);
        };
        let mut inner = self.shared.inner();
        match failed {
            None => Ok(inner.outcome),
            Some(why) => Err(FailedFleetSchedule {
                seed: self.seed,
                why,
                trace: inner.trace.drain(..).collect(),
            }),
        }
    }

    fn happen(&mut self, event: Event) {
        let mut inner = self.shared.inner();
        inner.outcome.events += 1;
        match event {
            Event::Answer(ticket, answer) => {
                if let Some(process) = inner.answer(ticket, answer) {
                    drop(inner);
                    self.poll(process);
                }
            }
            Event::Append(proposal) => inner.append_arrives(proposal),
            Event::Read(ticket, subject, after) => inner.read_arrives(ticket, &subject, after),
            Event::Commit(subject) => inner.commit(&subject),
            Event::Effect {
                process,
                run,
                epoch,
                step,
            } => inner.effect_happens(process, run, epoch, step),
            Event::Kill(process, number) => {
                let dies =
                    inner.processes[process].is_alive && inner.processes[process].kill == number;
                if dies {
                    inner.outcome.killed_at_deadline += 1;
                    inner.dies(process, "its lease is over");
                    drop(inner);
                    self.tasks[process] = None;
                }
            }
            Event::Start(worker) => {
                drop(inner);
                self.start(worker);
            }
            Event::Fault => {
                let killed = inner.fault();
                drop(inner);
                if let Some(process) = killed {
                    self.tasks[process] = None;
                }
            }
        }
    }

    fn start(&mut self, worker: usize) {
        let process = self.tasks.len();
        let lease_us = {
            let mut inner = self.shared.inner();
            inner.processes.push(Process {
                worker,
                is_alive: true,
                kill: 0,
            });
            inner.say(|| format!("process {process} starts on worker {worker}"));
            inner.lease_us
        };
        let around = Surroundings {
            shared: Arc::clone(&self.shared),
            process,
        };
        let task = worker::work(around, self.runs.clone(), self.steps, lease_us);
        self.tasks.push(Some(Box::pin(task)));
        self.poll(process);
    }

    fn poll(&mut self, process: usize) {
        let Some(task) = &mut self.tasks[process] else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        if task.as_mut().poll(&mut context).is_ready() {
            self.tasks[process] = None;
            self.shared
                .inner()
                .dies(process, "it has nothing more to do");
        }
    }
}
