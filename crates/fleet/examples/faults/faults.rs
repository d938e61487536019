//! The faults: which ones and how long is decided by a seed, and when by how far the runs are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    harms::{Harms, Subject, now_us},
    proxy::{Flow, Link},
    servers::{COUNT, Servers},
    workers::WorkerMachine,
};

/// Interval between two looks at how far the runs are.
const LOOK: Duration = Duration::from_millis(50);

/// The part of the runs' work within which all faults happen.
const WITHIN: f64 = 0.9;

/// Time that the servers get between two faults of theirs, at least and at most, in milliseconds.
const REST: std::ops::Range<u64> = 200..3_000;

/// Numbers of faults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultCounts {
    pub(crate) workers: u64,
    pub(crate) servers: u64,
    pub(crate) partitions: u64,
}

/// Everything that faults happen to, and the record of them.
pub(crate) struct Faults {
    pub(crate) servers: Arc<Servers>,
    pub(crate) workers: Vec<Arc<WorkerMachine>>,
    /// The links of whoever else appends.
    pub(crate) others: Arc<Vec<Vec<Link>>>,
    pub(crate) harms: Arc<Harms>,
    pub(crate) lease: Duration,
    /// Returns the part of the runs' work that is done, from 0 to 1.
    pub(crate) progress: Box<dyn Fn() -> f64 + Send + Sync>,
    pub(crate) over: AtomicBool,
    pub(crate) record: Mutex<Vec<Value>>,
}

impl Faults {
    fn note(&self, kind: &str, target: &str, ms: u64) {
        let mut record = self.record.lock();
        record.push(json!({"at_us": now_us(), "kind": kind, "target": target, "ms": ms}));
    }

    /// Whether the next fault may happen; waits for its time. Each of `count` has its own part of
    /// the runs' work.
    async fn is_time(&self, number: u64, count: u64, rng: &mut Rng) -> bool {
        let at = (number as f64 + rng.f64()) / count as f64 * WITHIN;
        while (self.progress)() < at {
            if self.over.load(Ordering::Relaxed) {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        !self.over.load(Ordering::Relaxed)
    }

    /// Does the faults of workers.
    pub(crate) async fn harm_workers(self: Arc<Self>, count: u64, seed: u64) -> anyhow::Result<()> {
        let mut rng = Rng::with_seed(seed);
        for number in 0..count {
            if !self.is_time(number, count, &mut rng).await {
                break;
            }
            while !self.harm_worker(&mut rng) {
                // Nothing is there that could be harmed.
                tokio::time::sleep(LOOK).await;
                if self.over.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn harm_worker(self: &Arc<Self>, rng: &mut Rng) -> bool {
        let machine = &self.workers[rng.usize(0..self.workers.len())];
        let target = format!("worker-{}", machine.number);
        let drivers = machine.drivers();
        let driver = (!drivers.is_empty()).then(|| drivers[rng.usize(0..drivers.len())]);
        // Before the lease is over, or after.
        let stopped = Duration::from_millis(rng.u64(200..3 * ms(self.lease)));
        let down = Duration::from_millis(rng.u64(0..2_000));
        let (worker, die) = (machine.worker(), rng.u8(0..100));
        match (die, driver, worker) {
            (0..35, Some(run), _) => {
                self.note("kill a run", &target, 0);
                let _ = kill_process(run, Signal::KILL);
            }
            (35..50, Some(run), _) => {
                self.note("stop a run", &target, ms(stopped));
                self.stop(vec![run], stopped, None);
            }
            (50..65, _, Some(worker)) => {
                self.note("kill a worker", &target, ms(down));
                machine.stay_down(down);
                let _ = kill_process(worker, Signal::KILL);
            }
            (65..80, _, Some(worker)) => {
                self.note("stop a worker", &target, ms(stopped));
                self.stop(vec![worker], stopped, Some(machine.number));
            }
            (80..92, _, Some(worker)) => {
                self.note("kill a machine", &target, ms(down));
                machine.stay_down(down);
                let _ = kill_process(worker, Signal::KILL);
                for run in machine.drivers() {
                    let _ = kill_process(run, Signal::KILL);
                }
            }
            (92.., _, Some(worker)) => {
                self.note("stop a machine", &target, ms(stopped));
                let mut all = drivers;
                all.push(worker);
                self.stop(all, stopped, Some(machine.number));
            }
            _ => return false,
        }
        true
    }

    /// Stops processes, and lets them go on later if they are still there.
    fn stop(self: &Arc<Self>, processes: Vec<Pid>, time: Duration, worker: Option<usize>) {
        let begin = |worker| self.harms.begin(Subject::Worker(worker), now_us());
        let harm = worker.map(begin);
        for process in &processes {
            let _ = kill_process(*process, Signal::STOP);
        }
        let faults = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            for process in &processes {
                let _ = kill_process(*process, Signal::CONT);
            }
            if let Some(harm) = harm {
                faults.harms.end(harm);
            }
        });
    }

    /// Does the faults of servers, one after the other.
    pub(crate) async fn harm_servers(self: Arc<Self>, count: u64, seed: u64) -> anyhow::Result<()> {
        let mut rng = Rng::with_seed(seed);
        for number in 0..count {
            if !self.is_time(number, count, &mut rng).await {
                break;
            }
            let mut all: Vec<usize> = (0..COUNT).collect();
            rng.shuffle(&mut all);
            let (kind, kills, some) = match rng.u8(0..100) {
                0..45 => ("kill a server", true, 1),
                45..78 => ("stop a server", false, 1),
                78..86 => ("kill two servers", true, 2),
                86..93 => ("stop two servers", false, 2),
                _ => ("kill all servers", true, 3),
            };
            let longest = if some == 1 { 4_000 } else { 2_500 };
            let time = rng.u64(0..longest);
            let some = &all[..some];
            self.note(kind, &format!("{some:?}"), time);
            let mut harms = Vec::new();
            for server in some {
                harms.push(self.harms.begin(Subject::Server(*server), now_us()));
                if kills {
                    self.servers.kill(*server);
                } else {
                    self.servers.signal(*server, Signal::STOP);
                }
            }
            tokio::time::sleep(Duration::from_millis(time)).await;
            for server in some {
                if kills {
                    self.servers.restart(*server).await?;
                } else {
                    self.servers.signal(*server, Signal::CONT);
                }
            }
            for (server, harm) in some.iter().zip(harms) {
                self.servers.answers(*server).await?;
                self.harms.end(harm);
            }
            tokio::time::sleep(Duration::from_millis(rng.u64(REST))).await;
        }
        Ok(())
    }

    /// Does the partitions, one after the other.
    pub(crate) async fn part(self: Arc<Self>, count: u64, seed: u64) -> anyhow::Result<()> {
        let mut rng = Rng::with_seed(seed);
        for number in 0..count {
            if !self.is_time(number, count, &mut rng).await {
                break;
            }
            let time = Duration::from_millis(rng.u64(300..2 * ms(self.lease) + 2_000));
            let delay = Duration::from_millis(rng.u64(20..900));
            let (word, there, back) = match rng.u8(0..8) {
                0..4 => ("cut off", Flow::Held, Flow::Held),
                4 => ("cut off one way", Flow::Held, Flow::Open),
                5 => ("cut off the other way", Flow::Open, Flow::Held),
                _ => ("delay", Flow::Delayed(delay), Flow::Delayed(delay)),
            };
            let resets = rng.bool();
            match rng.u8(0..10) {
                0..6 => {
                    let number = rng.usize(0..self.workers.len() + self.others.len());
                    self.part_client(number, (word, there, back), time, resets)
                        .await;
                }
                6..8 => {
                    let server = rng.usize(0..COUNT);
                    let others = (0..COUNT).filter(|other| *other != server);
                    let pairs = others.map(|other| (server, other)).collect();
                    self.part_servers(pairs, (word, there, back), time, resets)
                        .await;
                }
                _ => {
                    let server = rng.usize(0..COUNT);
                    let pairs = vec![(server, (server + 1) % COUNT)];
                    self.part_servers(pairs, (word, there, back), time, resets)
                        .await;
                }
            }
        }
        Ok(())
    }

    async fn part_client(
        &self,
        number: usize,
        (word, there, back): (&str, Flow, Flow),
        time: Duration,
        resets: bool,
    ) {
        let (links, subject) = match self.workers.get(number) {
            Some(machine) => (&machine.links, Some(Subject::Worker(number))),
            None => (&self.others[number - self.workers.len()], None),
        };
        let target = subject.map_or_else(|| "an appender".to_owned(), |_| "a worker".to_owned());
        self.note(&format!("{word}: {target}"), &number.to_string(), ms(time));
        let harm = subject.map(|subject| self.harms.begin(subject, now_us()));
        for link in links {
            link.set(there, back);
        }
        tokio::time::sleep(time).await;
        for link in links {
            if resets {
                link.reset();
            }
            link.heal();
        }
        if let Some(harm) = harm {
            self.harms.end(harm);
        }
    }

    async fn part_servers(
        &self,
        pairs: Vec<(usize, usize)>,
        (word, there, back): (&str, Flow, Flow),
        time: Duration,
        resets: bool,
    ) {
        self.note(
            &format!("{word}: a server"),
            &format!("{pairs:?}"),
            ms(time),
        );
        let begin = |server| self.harms.begin(Subject::Server(server), now_us());
        let harm = begin(pairs[0].0);
        let links: Vec<(&Link, bool)> = pairs
            .iter()
            .flat_map(|(one, other)| {
                let link = |from: usize, to: usize| self.servers.routes[from][to].as_ref();
                let there = link(*one, *other).map(|link| (link, true));
                let back = link(*other, *one).map(|link| (link, false));
                there.into_iter().chain(back)
            })
            .collect();
        for (link, is_there) in &links {
            if *is_there {
                link.set(there, back);
            } else {
                link.set(back, there);
            }
        }
        tokio::time::sleep(time).await;
        for (link, _) in &links {
            if resets {
                link.reset();
            }
            link.heal();
        }
        self.harms.end(harm);
    }

    /// Begins to do all faults. They end early when the runs are over.
    pub(crate) fn begin(
        self: &Arc<Self>,
        counts: FaultCounts,
        rng: &mut Rng,
    ) -> Vec<tokio::task::JoinHandle<anyhow::Result<()>>> {
        let FaultCounts {
            workers,
            servers,
            partitions,
        } = counts;
        let mut lanes = Vec::new();
        // Several at once, so that a thousand faults find their time.
        let (faults, seed) = (Arc::clone(self), rng.u64(..));
        lanes.push(tokio::spawn(faults.harm_workers(workers, seed)));
        let (faults, seed) = (Arc::clone(self), rng.u64(..));
        lanes.push(tokio::spawn(faults.harm_servers(servers, seed)));
        let (faults, seed) = (Arc::clone(self), rng.u64(..));
        lanes.push(tokio::spawn(faults.part(partitions, seed)));
        lanes
    }

    /// Returns the record of all faults.
    pub(crate) fn record(&self) -> Vec<Value> {
        let record = self.record.lock();
        record.clone()
    }

    /// Returns the number of faults of each kind.
    pub(crate) fn by_kind(&self) -> std::collections::BTreeMap<String, u64> {
        let mut kinds = std::collections::BTreeMap::new();
        let record = self.record.lock();
        for fault in record.iter() {
            let kind = fault["kind"].as_str().unwrap_or_default().to_owned();
            *kinds.entry(kind).or_insert(0) += 1;
        }
        kinds
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
