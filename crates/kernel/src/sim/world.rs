//! A tree of runs in one process, with real accounts. The kernel's operations on a account are
//! repeated here in the same order; each function names the code that it mirrors.

use fastrand::Rng;
use gyrus_contract::{Limits, Microdollars, RunId, Usage};

use super::{
    journal::{Journal, SimPosition, SimRecord},
    oracle::{AccountRequest, AccountState, Oracle},
};
use crate::{
    Charge,
    accounts::{Account, TreeUsage},
};

/// The state of a run in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunPhase {
    /// The run is not driven: it has ended, or lost a race, or its process was killed.
    Absent,
    Driven,
    /// The run's parent waits for it, but it does not continue in this process.
    Parked,
    /// The run abandoned a cycle, and the next driver has not reported the charges to its account
    /// yet.
    GivesUp,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RequestInFlight {
    pub(super) call: usize,
    pub(super) ask: AccountRequest,
    pub(super) max_output: u64,
    reserved: Charge,
}

#[derive(Debug)]
pub(super) struct SimRun {
    pub(super) parent: Option<usize>,
    pub(super) depth: u32,
    pub(super) phase: RunPhase,
    pub(super) calls: Vec<RequestInFlight>,
    /// Children that are driven or abandon a cycle.
    pub(super) children: Vec<usize>,
    /// Whether other code began the recorded cycle before the run was taken up.
    pub(super) may_hand_over: bool,
    pub(super) journal: Journal,
    limits: Limits,
    account: Option<Account>,
}

/// The reply of a provider to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProviderAnswer {
    Usage { input: u64, output: u64 },
    NoUsage,
    FailedFree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildEnding {
    /// Ends with a cycle.
    Reached,
    /// Ends in the middle of a cycle.
    Failed,
    /// Ends in the middle of a cycle; in its own journal it is parked.
    Limit,
}

#[derive(Debug, Default)]
pub(super) struct SimWorld {
    pub(super) runs: Vec<SimRun>,
    oracle: Oracle,
    /// Whether a child was started while a run abandoned a cycle, so that an account above both
    /// takes it for one that is reported again. Money is not confused like this, because no other
    /// run reports any then.
    children_unsure: bool,
}

impl SimWorld {
    /// Creates a run that a person starts. Mirrors `Kernel::create`, `Driver::new`.
    pub(super) fn new(limits: Limits) -> Self {
        let mut world = Self::default();
        world.create(None, limits);
        world
    }

    fn create(&mut self, parent: Option<usize>, limits: Limits) -> usize {
        let run = self.runs.len();
        self.runs.push(SimRun {
            parent,
            depth: parent.map_or(0, |parent| self.runs[parent].depth + 1),
            phase: RunPhase::Absent,
            calls: Vec::new(),
            children: Vec::new(),
            may_hand_over: false,
            journal: Journal::default(),
            limits,
            account: None,
        });
        self.oracle.started(parent, limits);
        self.take_up(run, false);
        run
    }

    fn account(&self, run: usize) -> Account {
        let account = self.runs[run].account.clone();
        account.expect("only runs that are driven are asked for")
    }

    /// Mirrors `ask.rs`, `ReplyAttempts::attempt` up to the sending of the request. Returns the granted
    /// output.
    pub(super) fn ask(&mut self, run: usize, ask: AccountRequest) -> Result<Option<u64>, String> {
        let account = self.account(run);
        let granted = account.reserve(ask.input, ask.output, ask.price).ok();
        self.oracle.check_grant(run, ask, granted)?;
        let Some(granted) = granted else {
            return Ok(None);
        };
        let (reserved, max_output) = (granted.charge, granted.max_output_tokens);
        let call = self.oracle.asked(run, reserved);
        let run = &mut self.runs[run];
        run.journal.append(SimRecord::Call { call, reserved });
        run.journal.barrier();
        run.calls.push(RequestInFlight {
            call,
            ask,
            max_output,
            reserved,
        });
        Ok(Some(max_output))
    }

    /// Mirrors `ask.rs`, `ReplyAttempts::attempt` from the answer on, with `settle`.
    pub(super) fn answer(&mut self, run: usize, index: usize, answer: ProviderAnswer) {
        let open = self.runs[run].calls.remove(index);
        let charged = match answer {
            ProviderAnswer::NoUsage => None,
            ProviderAnswer::FailedFree => Some(Charge::default()),
            ProviderAnswer::Usage { input, output } => Some(Charge {
                tokens: input.saturating_add(output),
                cost: open.ask.price.map_or(Microdollars(0), |price| {
                    price.of(&Usage {
                        input_tokens: input,
                        output_tokens: output,
                        ..Usage::default()
                    })
                }),
            }),
        };
        match charged {
            Some(charged) => self.oracle.came(open.call, charged),
            None => self.oracle.cut_off(open.call),
        }
        let estimated = charged.is_none();
        let charged = charged.unwrap_or(open.reserved);
        self.account(run).settle(open.reserved, charged, estimated);
        self.runs[run].journal.append(SimRecord::Reply {
            call: open.call,
            charged,
            estimated,
        });
    }

    /// Mirrors `delegate.rs`, `begin` and `drive` of a child that is new.
    pub(super) fn start_child(&mut self, run: usize, wanted: Limits) -> usize {
        self.children_unsure |= self.waits();
        let left = self.account(run).remaining();
        let limits = Limits {
            tokens: tighter(wanted.tokens, left.tokens),
            cost: tighter(wanted.cost, left.cost),
            ..Limits::default()
        };
        let child = self.runs.len();
        let journal = &mut self.runs[run].journal;
        journal.append(SimRecord::ChildStarted { child });
        self.account(run).charge(TreeUsage::children(1));
        self.runs[run].journal.barrier();
        self.runs[run].children.push(child);
        self.create(Some(run), limits)
    }

    /// Mirrors `driver.rs`, the end of `Driver::drive`; `delegate.rs`, the end of `perform`.
    pub(super) fn end_child(&mut self, child: usize, end: ChildEnding) {
        if end == ChildEnding::Reached {
            self.append_cycle(child);
        }
        let spent = self.account(child).spent();
        let run = &mut self.runs[child];
        run.journal.append(match end {
            ChildEnding::Reached | ChildEnding::Failed => SimRecord::Ended { spent },
            ChildEnding::Limit => SimRecord::Parked,
        });
        run.journal.barrier();
        let children = run.journal.position().children();
        self.leave(child, RunPhase::Absent);
        self.append_above(
            child,
            SimRecord::ChildEnded {
                child,
                spent,
                children,
            },
        );
    }

    fn append_above(&mut self, child: usize, record: SimRecord) {
        if let Some(parent) = self.runs[child].parent {
            self.runs[parent].children.retain(|other| *other != child);
            self.runs[parent].journal.append(record);
        }
    }

    /// Mirrors `driver.rs`, the end of `Driver::drive`; `delegate.rs`, where the child waits and so
    /// its parent does.
    pub(super) fn park(&mut self, run: usize) {
        self.runs[run].journal.append(SimRecord::Parked);
        self.runs[run].journal.barrier();
        self.leave(run, RunPhase::Parked);
        if let Some(parent) = self.runs[run].parent {
            self.runs[parent].children.retain(|other| *other != run);
        }
    }

    fn leave(&mut self, run: usize, phase: RunPhase) {
        let run = &mut self.runs[run];
        run.phase = phase;
        run.account = None;
        run.calls.clear();
        run.children.clear();
    }

    /// Mirrors `branches.rs`, `cut_off_within`: some effects in progress of a run lost a race.
    pub(super) fn lose(&mut self, run: usize, calls: &[usize], children: &[usize]) {
        for &child in children {
            let account = self.account(child);
            let record = SimRecord::ChildEnded {
                child,
                spent: account.close(),
                children: account.children(),
            };
            self.drop_tree(child);
            self.append_above(child, record);
        }
        let cut_off = |open: &mut RequestInFlight| calls.contains(&open.call);
        let lost: Vec<_> = self.runs[run].calls.extract_if(.., cut_off).collect();
        for open in lost {
            self.account(run).settle(open.reserved, open.reserved, true);
            self.oracle.cut_off(open.call);
            self.runs[run]
                .journal
                .append(cut_off_reply(open.call, open.reserved));
        }
    }

    /// Drops the futures of a run and of all runs below it.
    fn drop_tree(&mut self, run: usize) {
        for open in std::mem::take(&mut self.runs[run].calls) {
            self.oracle.cut_off(open.call);
        }
        for child in std::mem::take(&mut self.runs[run].children) {
            self.drop_tree(child);
        }
        self.leave(run, RunPhase::Absent);
    }

    /// Mirrors `driver.rs`: a cycle ends, and the next one begins.
    pub(super) fn end_cycle(&mut self, run: usize) {
        self.append_cycle(run);
        begin_cycle(&self.account(run));
    }

    /// Mirrors `driver.rs`, `Driver::ended`.
    fn append_cycle(&mut self, run: usize) {
        let account = self.account(run);
        self.runs[run].journal.append(SimRecord::CycleEnded {
            spent: account.spent(),
            children: account.children(),
        });
    }

    /// Mirrors `driver.rs`, `DrivableRun::drive`: the present code diverges from the record. Requests
    /// whose futures the loop dropped are still in flight.
    pub(super) fn give_up(&mut self, run: usize) {
        self.account(run).leave_to_next();
        for open in std::mem::take(&mut self.runs[run].calls) {
            self.oracle.cut_off(open.call);
        }
        let run = &mut self.runs[run];
        run.journal.barrier();
        run.may_hand_over = false;
        run.phase = RunPhase::GivesUp;
    }

    /// Mirrors `driver.rs`, `DrivableRun::drive`: the next driver takes over.
    pub(super) fn hand_over(&mut self, run: usize) {
        self.take_up(run, true);
    }

    /// Mirrors `driver.rs`, `Driver::new`, and `take_up.rs` without the children. Returns the
    /// position to run again.
    fn take_up(&mut self, run: usize, hand_over: bool) -> SimPosition {
        let mut position = self.runs[run].journal.position();
        let parent = self.runs[run].parent.map(|parent| self.account(parent));
        let account = Account::open(
            parent.as_ref(),
            RunId::new(),
            self.runs[run].limits,
            &position.state,
        );
        for dropped in &position.dropped {
            count_abandoned(&account, dropped);
            account.count_cycle();
        }
        if hand_over {
            for (call, reserved) in position.open_calls() {
                self.oracle.cut_off(call);
                let reply = cut_off_reply(call, reserved);
                position.recorded.push(reply.clone());
                self.runs[run].journal.append(reply);
            }
            self.runs[run].journal.append(SimRecord::CycleDropped);
            count_abandoned(&account, &position.recorded);
            account.count_cycle();
            position.recorded.clear();
        }
        begin_cycle(&account);
        self.runs[run].account = Some(account);
        self.runs[run].phase = RunPhase::Driven;
        position
    }

    /// Kills the process. Each journal may lose the end of what was not on disk.
    pub(super) fn kill(&mut self, random: &mut Rng) {
        for run in &mut self.runs {
            let unsynced = run.journal.unsynced();
            let lost = random.usize(..=unsynced);
            run.journal.kill(lost);
            run.account = None;
            run.phase = RunPhase::Absent;
            run.children.clear();
            for open in run.calls.drain(..) {
                self.oracle.cut_off(open.call);
            }
        }
    }

    /// Resumes the run that a person started in a new process, possibly with other limits.
    pub(super) fn resume(&mut self, random: &mut Rng, limits: impl Fn(Limits) -> Limits) {
        self.runs[0].limits = limits(self.runs[0].limits);
        self.oracle.limited(0, self.runs[0].limits);
        self.resume_run(0, random);
    }

    /// Takes a run up and repeats its unfinished cycle, or abandons the cycle.
    fn resume_run(&mut self, run: usize, random: &mut Rng) {
        let recorded = self.runs[run].journal.position();
        // Not modelled: a cycle that is abandoned while a child of it has no end.
        let may_give_up = !recorded.recorded.is_empty() && recorded.open_children().is_empty();
        let hand_over = may_give_up && random.u8(..4) == 0;
        self.runs[run].may_hand_over = may_give_up && !hand_over && random.bool();
        let position = self.take_up(run, hand_over);
        let account = self.account(run);
        for record in &position.recorded {
            match record {
                // Mirrors `ask.rs`, `ReplyAttempts::again`.
                SimRecord::Reply {
                    charged, estimated, ..
                } => account.charge(TreeUsage::charged(*charged, *estimated)),
                // Mirrors `delegate.rs`, `perform`.
                SimRecord::ChildEnded {
                    spent, children, ..
                } => {
                    account.charge(TreeUsage::by_run(*spent, 1 + children));
                }
                _ => {}
            }
        }
        for (call, reserved) in position.open_calls() {
            self.runs[run].journal.append(cut_off_reply(call, reserved));
            account.charge(TreeUsage::charged(reserved, true));
            self.oracle.cut_off(call);
        }
        for child in position.open_children() {
            account.charge(TreeUsage::children(1));
            self.runs[run].journal.barrier();
            self.resume_child(run, child, random);
        }
    }

    /// Mirrors `delegate.rs`, `drive` of a child that had begun.
    fn resume_child(&mut self, run: usize, child: usize, random: &mut Rng) {
        let account = self.account(run);
        let position = self.runs[child].journal.position();
        if let Some(spent) = position.over {
            let children = position.children();
            account.charge(TreeUsage::by_run(spent, children));
            self.append_above(
                child,
                SimRecord::ChildEnded {
                    child,
                    spent,
                    children,
                },
            );
            return;
        }
        let before = &position.state;
        account.charge(TreeUsage::by_run(before.spent, before.children));
        self.runs[run].children.push(child);
        self.resume_run(child, random);
    }

    pub(super) fn in_phase(&self, phase: RunPhase) -> Vec<usize> {
        self.those(|run| run.phase == phase)
    }

    /// Returns the runs whose loop may diverge from the record, so that the cycle is abandoned.
    pub(super) fn may_give_up(&self) -> Vec<usize> {
        self.those(|run| {
            let may = run.phase == RunPhase::Driven && run.may_hand_over;
            may && run.journal.position().open_children().is_empty()
        })
    }

    fn those(&self, which: impl Fn(&SimRun) -> bool) -> Vec<usize> {
        let runs = self.runs.iter().enumerate();
        let those = runs.filter(|(_, run)| which(run));
        those.map(|(number, _)| number).collect()
    }

    /// Whether a run has no effect in progress, including a waiting child.
    pub(super) fn is_idle(&self, run: usize) -> bool {
        let run = &self.runs[run];
        run.calls.is_empty() && run.journal.position().open_children().is_empty()
    }

    /// Whether a run abandoned a cycle and has completed none since.
    pub(super) fn has_dropped(&self, run: usize) -> bool {
        !self.runs[run].journal.position().dropped.is_empty()
    }

    /// Checks that nothing is reserved when everything is settled.
    pub(super) fn check_nothing_open(&self) -> Result<(), String> {
        let accounts = self.runs.iter().filter_map(|run| run.account.as_ref());
        for account in accounts {
            if account.reserved() != (Charge::default(), false) {
                return Err(format!("all is settled, but not in {account:?}"));
            }
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.runs.iter().any(|run| run.phase == RunPhase::GivesUp)
    }

    /// Compares every account with the truth.
    pub(super) fn check(&self) -> Result<(), String> {
        let accounts = self.runs.iter().enumerate().filter_map(|(number, run)| {
            let account = run.account.as_ref()?;
            let (reserved, expected) = account.reserved();
            let seen = AccountState {
                spent: account.spent(),
                reserved,
                children: (!self.children_unsure).then(|| account.children()),
                expected,
            };
            Some((number, seen))
        });
        self.oracle.check(accounts, self.waits())
    }
}

/// Mirrors `driver.rs`, the beginning of `one_cycle`. Steps have no limit here.
fn begin_cycle(account: &Account) {
    if account.check_cycle().is_ok() {
        account.count_cycle();
    }
}

/// Mirrors `abandoned.rs`, `count_abandoned`.
fn count_abandoned(account: &Account, entries: &[SimRecord]) {
    for entry in entries {
        match entry {
            SimRecord::Reply {
                charged, estimated, ..
            } => account.charge(TreeUsage::charged(*charged, *estimated)),
            SimRecord::ChildStarted { .. } => account.charge(TreeUsage::children(1)),
            SimRecord::ChildEnded {
                spent, children, ..
            } => {
                account.charge(TreeUsage::by_run(*spent, *children));
            }
            _ => {}
        }
    }
}

fn cut_off_reply(call: usize, charged: Charge) -> SimRecord {
    SimRecord::Reply {
        call,
        charged,
        estimated: true,
    }
}

/// Mirrors `delegate.rs`, `tighter`.
fn tighter<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
