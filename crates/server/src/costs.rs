//! The cost of runs, from the entries of their calls of models. Each journal is folded once: of a
//! run that is over the sums are kept, of one that goes on also the place up to which it was read.
//!
//! Every attempt counts once, by the entry of its request, in the run that made it; a fork does not
//! repeat what it shares with its parent.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::{EffectId, Purpose, RunId, Strength};
use gyrus_journal::{LogEntry as RawEntry, Payload, Store};
use gyrus_kernel::{Charge, Ending, Entry, Register, log_name};
use gyrus_runtime::queue::Gateway;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;

use crate::heads::{Heads, RunWord};

/// Maximum number of runs started by people whose costs are cached: the newest.
const KEPT: usize = 20_000;

/// Number of child runs of one run that are read.
const CHILDREN: usize = 1_000;

/// Time for which journals are read for one request; the next one goes on.
const READ_FOR: Duration = Duration::from_secs(2);

/// Length of a day in milliseconds. Days are those of UTC.
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A key by which the costs of calls are added up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallGroup {
    /// Number of the day since 1970, UTC.
    pub(crate) day: i64,
    pub(crate) model: Arc<str>,
    pub(crate) purpose: &'static str,
}

/// Sums of calls. Money is in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    /// Number of tokens, including estimated ones.
    pub(crate) tokens: u64,
    /// Charges that the provider's figures confirm.
    pub(crate) settled: u64,
    /// Charges that are the reservation, because no figures came.
    pub(crate) estimated: u64,
    /// Reservations of attempts in progress.
    pub(crate) reserved: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, other: &Sums) {
        self.calls = self.calls.saturating_add(other.calls);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.settled = self.settled.saturating_add(other.settled);
        self.estimated = self.estimated.saturating_add(other.estimated);
        self.reserved = self.reserved.saturating_add(other.reserved);
    }

    pub(crate) fn cost(&self) -> u64 {
        let charged = self.settled.saturating_add(self.estimated);
        charged.saturating_add(self.reserved)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RunCosts {
    pub(crate) agent: Arc<str>,
    pub(crate) cognitive_loop: Arc<str>,
    /// The strength of the evidence that the run reached its goal, if it did.
    pub(crate) outcome: Option<Strength>,
    pub(crate) calls: BTreeMap<CallGroup, Sums>,
    /// The journals of the run and its children, with their open attempts.
    members: Vec<Member>,
    is_over: bool,
}

/// The journal of a run, and how far it was read.
#[derive(Debug, Clone)]
struct Member {
    run: RunId,
    next: u64,
    /// Attempts without an answer yet.
    open: HashMap<(EffectId, u32), (CallGroup, Charge)>,
}

impl Member {
    fn new(run: RunId) -> Self {
        Self {
            run,
            next: 1,
            open: HashMap::new(),
        }
    }
}

/// A request, as far as costs go. The rest of it may be large.
#[derive(Deserialize)]
struct CostRequest {
    effect: EffectId,
    attempt: u32,
    purpose: Purpose,
    model: String,
    reserved: Charge,
}

#[derive(Deserialize)]
struct RequestEnd {
    effect: EffectId,
    attempt: u32,
    charged: Charge,
    #[serde(default)]
    estimated: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Costs(Mutex<CostLedger>);

#[derive(Debug, Default)]
pub(crate) struct CostLedger {
    pub(crate) runs: HashMap<RunId, RunCosts>,
    /// Number of runs that are not read yet.
    pub(crate) unread: usize,
    /// Runs whose journals cannot be read completely.
    pub(crate) damaged: BTreeSet<RunId>,
    names: HashSet<Arc<str>>,
}

impl Costs {
    /// Reads new entries for a limited time, and returns all costs.
    pub(crate) fn now(
        &self,
        gateway: &Gateway,
        heads: &Heads,
    ) -> Result<MutexGuard<'_, CostLedger>, gyrus_journal::Error> {
        let store = gateway.store();
        let mut known = self.0.lock();
        let began = Instant::now();
        let register = Register::read(store)?;
        let roots = register.newest_first().filter(|run| run.is_root());
        let roots: Vec<RunId> = roots.take(KEPT).collect();
        let there: HashSet<RunId> = roots.iter().copied().collect();
        known.runs.retain(|run, _| there.contains(run));
        known.damaged.retain(|run| there.contains(run));
        known.unread = 0;
        for run in roots {
            let is_read = known.runs.get(&run).is_some_and(|one| !one.may_grow(heads));
            if is_read {
                continue;
            }
            if began.elapsed() > READ_FOR {
                known.unread += usize::from(!known.runs.contains_key(&run));
                continue;
            }
            known.read(gateway, run);
        }
        Ok(known)
    }

    pub(crate) fn damaged(&self) -> Vec<RunId> {
        let known = self.0.lock();
        known.damaged.iter().copied().collect()
    }
}

impl RunCosts {
    /// Creates the costs of an unread run; without an agent, the journal names it.
    fn new(run: RunId, agent: Arc<str>) -> Self {
        Self {
            agent,
            cognitive_loop: "".into(),
            outcome: None,
            calls: BTreeMap::new(),
            members: vec![Member::new(run)],
            is_over: false,
        }
    }

    fn may_grow(&self, heads: &Heads) -> bool {
        let Some(root) = self.members.first() else {
            return false;
        };
        match heads.of(root.run) {
            _ if self.is_over => false,
            Some(head) => head.state == RunWord::Running || head.seq >= root.next,
            None => true,
        }
    }

    /// Reads the new entries of the journals.
    ///
    /// # Errors
    /// Some journal cannot be read to its end; the entries read before that count.
    fn read(
        &mut self,
        store: &Store,
        names: &mut HashSet<Arc<str>>,
    ) -> Result<(), gyrus_journal::Error> {
        let mut at = 0;
        while at < self.members.len() && at < CHILDREN {
            let mut member = self.members[at].clone();
            let reader = store.reader(&log_name(member.run));
            // A child that was removed has nothing more to tell.
            if let Ok(reader) = reader {
                for entry in reader.entries(member.next)? {
                    let entry = entry?;
                    member.next = entry.seq + 1;
                    self.take(&mut member, &entry, at == 0, names);
                }
            }
            self.members[at] = member;
            at += 1;
        }
        if self.is_over {
            self.members.clear();
        }
        Ok(())
    }

    fn take(
        &mut self,
        member: &mut Member,
        entry: &RawEntry,
        is_root: bool,
        names: &mut HashSet<Arc<str>>,
    ) {
        let Payload::Json(payload) = &entry.payload else {
            return;
        };
        match &*entry.kind {
            "model.call" => {
                if let Ok(request) = serde_json::from_str(payload.get()) {
                    self.asked(member, entry.at_ms, request, names);
                }
            }
            "model.reply" => {
                if let Ok(settled) = serde_json::from_str(payload.get()) {
                    self.settled(member, &settled);
                }
            }
            "run.started" | "run.ended" | "child.started" => match gyrus_kernel::parse(entry) {
                Ok(Entry::RunStarted(started)) if is_root => {
                    self.cognitive_loop = shared(names, &started.cognitive_loop);
                    if self.agent.is_empty() {
                        self.agent = shared(names, &started.agent);
                    }
                }
                Ok(Entry::RunEnded(ended)) if is_root => {
                    self.is_over = true;
                    if let Ending::Reached { strength, .. } = ended.ending {
                        self.outcome = Some(strength);
                    }
                }
                Ok(Entry::ChildStarted(child))
                    if self.members.iter().all(|known| known.run != child.child) =>
                {
                    self.members.push(Member::new(child.child));
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn asked(
        &mut self,
        member: &mut Member,
        at_ms: i64,
        request: CostRequest,
        names: &mut HashSet<Arc<str>>,
    ) {
        let calls = CallGroup {
            day: at_ms.div_euclid(DAY_MS),
            model: shared(names, &request.model),
            purpose: request.purpose.word(),
        };
        let sums = self.calls.entry(calls.clone()).or_default();
        sums.calls += 1;
        sums.tokens = sums.tokens.saturating_add(request.reserved.tokens);
        sums.reserved = sums.reserved.saturating_add(request.reserved.cost.0);
        let key = (request.effect, request.attempt);
        member.open.insert(key, (calls, request.reserved));
    }

    fn settled(&mut self, member: &mut Member, settled: &RequestEnd) {
        let key = (settled.effect.clone(), settled.attempt);
        let Some((calls, reserved)) = member.open.remove(&key) else {
            return;
        };
        let sums = self.calls.entry(calls).or_default();
        sums.tokens = sums.tokens.saturating_sub(reserved.tokens);
        sums.tokens = sums.tokens.saturating_add(settled.charged.tokens);
        sums.reserved = sums.reserved.saturating_sub(reserved.cost.0);
        let charged = if settled.estimated {
            &mut sums.estimated
        } else {
            &mut sums.settled
        };
        *charged = charged.saturating_add(settled.charged.cost.0);
    }
}

impl CostLedger {
    fn read(&mut self, gateway: &Gateway, run: RunId) {
        let mut costs = self.runs.remove(&run).unwrap_or_else(|| {
            let queued = gateway.with(|queue| Some(queue.of_run(run)?.command.agent.clone()));
            RunCosts::new(run, shared(&mut self.names, &queued.unwrap_or_default()))
        });
        if costs.read(gateway.store(), &mut self.names).is_err() {
            self.damaged.insert(run);
            // What can be read counts, and is not read again.
            costs.is_over = true;
            costs.members.clear();
        }
        self.runs.insert(run, costs);
    }
}

/// Returns the stored copy of a name, so that equal names share memory.
fn shared(names: &mut HashSet<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = names.get(name) {
        return Arc::clone(known);
    }
    let new: Arc<str> = gyrus_text::clip(name, 200).into();
    names.insert(Arc::clone(&new));
    new
}

#[cfg(test)]
mod tests {
    use gyrus_journal::NewEntry;
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn charge(tokens: u64, cost: u64) -> Value {
        json!({"tokens": tokens, "cost": cost})
    }

    #[test]
    fn every_attempt_counts_once_and_money_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let (run, mut names) = (RunId::new(), HashSet::new());
        let writer = store.create(&log_name(run)).unwrap();
        let write = |kind: &str, payload: &Value| {
            let payload = to_raw_value(payload).unwrap();
            let version = 1;
            let entry = NewEntry {
                kind,
                version,
                payload,
            };
            writer.append(&[entry]).unwrap();
            writer.barrier_blocking().unwrap();
        };
        let call = |effect: &str, attempt: u32| {
            json!({"effect": effect, "attempt": attempt, "purpose": "agent", "model": "m",
                   "reserved": charge(100, 50), "tail": ["large"]})
        };
        let reply = |effect: &str, attempt: u32, is_estimated: bool, cost: u64| {
            json!({"effect": effect, "attempt": attempt, "charged": charge(7, cost),
                   "estimated": is_estimated, "took_ms": 1})
        };
        let mut costs = RunCosts::new(run, "scribe".into());
        write("model.call", &call("1.1", 1));
        costs.read(&store, &mut names).unwrap();
        let sums = |costs: &RunCosts| *costs.calls.values().next().unwrap();
        assert_eq!((sums(&costs).reserved, sums(&costs).tokens), (50, 100));
        write("model.reply", &reply("1.1", 1, true, 50));
        write("model.call", &call("1.1", 2));
        write("model.reply", &reply("1.1", 2, false, 20));
        // Twice the same end, as nobody should write it, changes nothing.
        write("model.reply", &reply("1.1", 2, false, 20));
        write("model.call", &call("1.2", 1));
        costs.read(&store, &mut names).unwrap();
        costs.read(&store, &mut names).unwrap();
        let whole = Sums {
            calls: 3,
            tokens: 114,
            settled: 20,
            estimated: 50,
            reserved: 50,
        };
        assert_eq!(sums(&costs), whole);
        assert_eq!(whole.cost(), 120);
    }
}
