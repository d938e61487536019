//! A random schedule: the order of operations on a tree of runs.

use std::fmt;

use fastrand::Rng;
use gyrus_contract::{Limits, Microdollars, Price};

use super::{
    oracle::AccountRequest,
    world::{ChildEnding, ProviderAnswer, RunPhase, SimWorld},
};
use crate::MAX_DEPTH;

/// Maximum number of concurrent children of a run.
const CHILDREN_AT_ONCE: usize = 6;

/// Maximum number of attempts to find an operation, after which a schedule ends.
const MAX_TRIES: usize = 400;

/// An operation. Runs and requests are numbered from 0 as they begin.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScheduledOperation {
    Begin {
        limits: Limits,
    },
    Ask {
        run: usize,
        input: u64,
        output: u64,
        price: Option<Price>,
        granted: Option<u64>,
    },
    Answered {
        run: usize,
        call: usize,
        input: u64,
        output: u64,
    },
    AnsweredWithoutUsage {
        run: usize,
        call: usize,
    },
    FailedFree {
        run: usize,
        call: usize,
    },
    StartChild {
        run: usize,
        child: usize,
        wanted: Limits,
    },
    EndChild {
        child: usize,
        how: String,
    },
    Park {
        run: usize,
    },
    LoseRace {
        run: usize,
        calls: Vec<usize>,
        children: Vec<usize>,
    },
    EndCycle {
        run: usize,
    },
    GiveUpCycle {
        run: usize,
    },
    HandOver {
        run: usize,
    },
    Kill,
    Resume {
        more: u64,
    },
}

/// A schedule that violated a property.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) struct FailedSchedule {
    pub(super) seed: u64,
    pub(super) why: String,
    /// The operations until then: before the last one, all properties held.
    pub(super) operations: Vec<ScheduledOperation>,
}

impl fmt::Display for FailedSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.why)?;
        for (number, operation) in self.operations.iter().enumerate() {
            write!(f, "\n{number:4} {operation:?}")?;
        }
        Ok(())
    }
}

/// Runs the schedule of a seed and checks every account after every operation.
///
/// # Errors
/// Returns the first operation after which a property does not hold.
pub(super) fn live(seed: u64) -> Result<Vec<ScheduledOperation>, FailedSchedule> {
    let mut random = Rng::with_seed(seed);
    let limits = some_limits(&mut random, 20_000);
    let mut schedule = Schedule {
        world: SimWorld::new(limits),
        operations: vec![ScheduledOperation::Begin { limits }],
        random,
    };
    match schedule.live() {
        Ok(()) => Ok(schedule.operations),
        Err(why) => Err(FailedSchedule {
            seed,
            why,
            operations: schedule.operations,
        }),
    }
}

struct Schedule {
    world: SimWorld,
    random: Rng,
    operations: Vec<ScheduledOperation>,
}

impl Schedule {
    fn live(&mut self) -> Result<(), String> {
        let length = 10 + self.random.usize(..31);
        for _ in 0..MAX_TRIES {
            if self.operations.len() > length {
                break;
            }
            self.step()?;
        }
        if self.world.runs[0].phase != RunPhase::Driven {
            self.take_up()?;
        }
        self.settle_all()?;
        self.world.check_nothing_open()
    }

    /// Settles all requests in flight.
    fn settle_all(&mut self) -> Result<(), String> {
        for run in 0..self.world.runs.len() {
            if self.world.runs[run].phase == RunPhase::GivesUp {
                self.hand_over(run)?;
            }
            while !self.world.runs[run].calls.is_empty() {
                self.answer(run)?;
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        match self.world.runs[0].phase {
            RunPhase::Driven => {}
            RunPhase::GivesUp => {
                return if self.random.u8(..4) == 0 {
                    self.kill()
                } else {
                    self.hand_over(0)
                };
            }
            RunPhase::Absent | RunPhase::Parked => return self.take_up(),
        }
        let driven = self.world.in_phase(RunPhase::Driven);
        let Some(run) = self.random.choice(&driven).copied() else {
            return Ok(());
        };
        match self.random.u64(..32) {
            0..=9 => self.ask(run),
            10..=16 => self.answer(run),
            17..=21 => self.start_child(run),
            22..=23 => self.end_child(run),
            24 => self.park(run),
            25..=26 => self.lose_race(run),
            27 => self.end_cycle(run),
            28 => self.give_up(),
            29..=30 => match self.random.choice(self.world.in_phase(RunPhase::GivesUp)) {
                Some(run) => self.hand_over(run),
                None => Ok(()),
            },
            _ => self.kill(),
        }
    }

    /// Records an operation and checks the accounts after it.
    fn done(&mut self, operation: ScheduledOperation) -> Result<(), String> {
        self.operations.push(operation);
        self.world.check()
    }

    fn ask(&mut self, run: usize) -> Result<(), String> {
        let random = &mut self.random;
        let ask = AccountRequest {
            input: random.u64(..3_000),
            output: 1 + random.u64(..4_000),
            price: some_price(random),
        };
        let granted = self.world.ask(run, ask);
        self.operations.push(ScheduledOperation::Ask {
            run,
            input: ask.input,
            output: ask.output,
            price: ask.price,
            granted: granted.as_ref().ok().copied().flatten(),
        });
        granted?;
        self.world.check()
    }

    fn answer(&mut self, run: usize) -> Result<(), String> {
        let calls = &self.world.runs[run].calls;
        let Some(index) = self.random.choice(0..calls.len()) else {
            return Ok(());
        };
        let open = calls[index];
        let random = &mut self.random;
        let call = open.call;
        let usage = |input, output| ProviderAnswer::Usage { input, output };
        let (answer, operation) = match random.u64(..16) {
            0..=2 => (
                ProviderAnswer::FailedFree,
                ScheduledOperation::FailedFree { run, call },
            ),
            3..=4 => {
                let operation = ScheduledOperation::AnsweredWithoutUsage { run, call };
                (ProviderAnswer::NoUsage, operation)
            }
            kind => {
                let mut input = random.u64(..=open.ask.input);
                let mut output = random.u64(..=open.max_output);
                match kind {
                    5 => (input, output) = (open.ask.input, open.max_output),
                    // The provider errs, or the estimate of the prompt did.
                    6 => input = open.ask.input + random.u64(..2_000),
                    7 => output = open.max_output + random.u64(..1 << 40),
                    _ => {}
                }
                let operation = ScheduledOperation::Answered {
                    run,
                    call,
                    input,
                    output,
                };
                (usage(input, output), operation)
            }
        };
        self.world.answer(run, index, answer);
        self.done(operation)
    }

    fn start_child(&mut self, run: usize) -> Result<(), String> {
        let of = &self.world.runs[run];
        if of.depth >= MAX_DEPTH || of.children.len() >= CHILDREN_AT_ONCE {
            return Ok(());
        }
        let wanted = some_limits(&mut self.random, 10_000);
        let child = self.world.start_child(run, wanted);
        self.done(ScheduledOperation::StartChild { run, child, wanted })
    }

    fn end_child(&mut self, child: usize) -> Result<(), String> {
        if self.world.runs[child].parent.is_none() || !self.world.is_idle(child) {
            return Ok(());
        }
        let end = match self.random.u64(..4) {
            0 => ChildEnding::Failed,
            1 => ChildEnding::Limit,
            _ => ChildEnding::Reached,
        };
        // Not modelled: counting the children of a cycle that was abandoned after the last complete
        // one.
        if end != ChildEnding::Reached && self.world.has_dropped(child) {
            return Ok(());
        }
        self.world.end_child(child, end);
        self.done(ScheduledOperation::EndChild {
            child,
            how: format!("{end:?}"),
        })
    }

    fn park(&mut self, run: usize) -> Result<(), String> {
        let of = &self.world.runs[run];
        if !of.calls.is_empty() || !of.children.is_empty() {
            return Ok(());
        }
        self.world.park(run);
        self.done(ScheduledOperation::Park { run })
    }

    fn lose_race(&mut self, run: usize) -> Result<(), String> {
        let random = &mut self.random;
        let of = &self.world.runs[run];
        let calls = of.calls.iter().map(|open| open.call);
        let calls: Vec<usize> = calls.filter(|_| random.bool()).collect();
        // Not modelled: a child that is parked when its branch loses.
        let children = of.children.iter().copied();
        let children: Vec<usize> = children.filter(|_| random.bool()).collect();
        if calls.is_empty() && children.is_empty() {
            return Ok(());
        }
        self.world.lose(run, &calls, &children);
        self.done(ScheduledOperation::LoseRace {
            run,
            calls,
            children,
        })
    }

    fn end_cycle(&mut self, run: usize) -> Result<(), String> {
        if !self.world.is_idle(run) {
            return Ok(());
        }
        self.world.end_cycle(run);
        self.done(ScheduledOperation::EndCycle { run })
    }

    fn give_up(&mut self) -> Result<(), String> {
        let may = self.world.may_give_up();
        let Some(run) = self.random.choice(&may).copied() else {
            return Ok(());
        };
        self.world.give_up(run);
        self.done(ScheduledOperation::GiveUpCycle { run })
    }

    fn hand_over(&mut self, run: usize) -> Result<(), String> {
        self.world.hand_over(run);
        self.done(ScheduledOperation::HandOver { run })
    }

    fn kill(&mut self) -> Result<(), String> {
        self.world.kill(&mut self.random);
        self.done(ScheduledOperation::Kill)
    }

    fn take_up(&mut self) -> Result<(), String> {
        let more = if self.random.u8(..8) == 0 {
            self.random.u64(..10_000)
        } else {
            0
        };
        self.world.resume(&mut self.random, |limits| Limits {
            tokens: limits.tokens.map(|tokens| tokens + more),
            cost: limits.cost.map(|cost| cost + Microdollars(more)),
            ..limits
        });
        self.done(ScheduledOperation::Resume { more })
    }
}

fn some_limits(random: &mut Rng, most: u64) -> Limits {
    Limits {
        tokens: (random.u8(..4) != 0).then(|| random.u64(..most)),
        cost: (random.u8(..3) != 0).then(|| Microdollars(random.u64(..most))),
        ..Limits::default()
    }
}

/// Returns a price in microdollars for a million tokens: zero, less than one per token, or more.
fn some_price(random: &mut Rng) -> Option<Price> {
    let rate = |random: &mut Rng| match random.u64(..5) {
        0 => 0,
        1..=2 => random.u64(..1_000_000),
        _ => random.u64(..6_000_000),
    };
    if random.u8(..4) == 0 {
        return None;
    }
    let mut price = Price::new(rate(random), rate(random));
    price.cache_write = (random.u8(..4) == 0).then(|| rate(random));
    Some(price)
}
