//! The truth about budgets, kept as plain sums over calls without asking any account.

use gyrus_contract::{Limits, Price, Spent};

use crate::{Charge, OUTPUT_FLOOR, accounts::Reservation};

/// Tokens and microdollars, wide enough for any sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    tokens: u128,
    cost: u128,
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.cost += other.cost;
    }

    fn above(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: self.cost.saturating_sub(other.cost),
        }
    }
}

impl From<Charge> for Amount {
    fn from(charge: Charge) -> Self {
        Self {
            tokens: charge.tokens.into(),
            cost: charge.cost.0.into(),
        }
    }
}

#[derive(Debug)]
struct OracleCall {
    run: usize,
    reserved: Amount,
    /// The charge; `None` while the request is in flight.
    charged: Option<Amount>,
    estimated: bool,
    /// The amount by which the request may count for more than its reservation, or than it counted
    /// for when other requests were allowed.
    beyond: Amount,
}

/// The facts about a run.
#[derive(Debug)]
struct OracleRun {
    parent: Option<usize>,
    limits: Limits,
}

/// The sums of a run and all runs below it.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    charged: Amount,
    reserved: Amount,
    beyond: Amount,
    estimated: bool,
    runs: u32,
}

#[derive(Debug)]
pub(super) struct AccountState {
    pub(super) spent: Spent,
    pub(super) reserved: Charge,
    /// Number of children; `None` if that is uncertain.
    pub(super) children: Option<u32>,
    /// Whether the account expects charges of tokens, money or children to be reported again.
    pub(super) expected: bool,
}

/// The request to the accounts for one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccountRequest {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) price: Option<Price>,
}

impl AccountRequest {
    fn needs(self, output: u64) -> Amount {
        Amount {
            tokens: u128::from(self.input) + u128::from(output),
            cost: self
                .price
                .map_or(0, |price| u128::from(price.at_most(self.input, output).0)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Oracle {
    runs: Vec<OracleRun>,
    calls: Vec<OracleCall>,
}

impl Oracle {
    pub(super) fn started(&mut self, parent: Option<usize>, limits: Limits) {
        self.runs.push(OracleRun { parent, limits });
    }

    /// Records that the run is taken up with other limits.
    pub(super) fn limited(&mut self, run: usize, limits: Limits) {
        self.runs[run].limits = limits;
    }

    /// Records that a request is sent. Returns its number.
    pub(super) fn asked(&mut self, run: usize, reserved: Charge) -> usize {
        self.calls.push(OracleCall {
            run,
            reserved: reserved.into(),
            charged: None,
            estimated: false,
            beyond: Amount::default(),
        });
        self.calls.len() - 1
    }

    /// Records the charge of a request, as far as the run can know.
    pub(super) fn came(&mut self, call: usize, charged: Charge) {
        let call = &mut self.calls[call];
        call.charged = Some(charged.into());
        call.beyond = Amount::from(charged).above(call.reserved);
    }

    /// Records that a request was interrupted, or that its cost is unknown: it may have been
    /// charged the whole reservation. If a kill lost its reply, other requests were allowed with
    /// the budget that the reply had released; then it is counted too high, never too low.
    pub(super) fn cut_off(&mut self, call: usize) {
        let call = &mut self.calls[call];
        if let Some(known) = call.charged {
            call.beyond.add(call.reserved.above(known));
        }
        call.charged = Some(call.reserved);
        call.estimated = true;
    }

    fn sums(&self) -> Vec<Sum> {
        let mut sums = vec![Sum::default(); self.runs.len()];
        for call in &self.calls {
            let sum = &mut sums[call.run];
            sum.beyond.add(call.beyond);
            match call.charged {
                Some(charged) => sum.charged.add(charged),
                None => sum.reserved.add(call.reserved),
            }
            sum.estimated |= call.estimated;
        }
        // A child's number is above its parent's.
        for run in (1..self.runs.len()).rev() {
            let Some(parent) = self.runs[run].parent else {
                continue;
            };
            let below = sums[run];
            let sum = &mut sums[parent];
            sum.charged.add(below.charged);
            sum.reserved.add(below.reserved);
            sum.beyond.add(below.beyond);
            sum.estimated |= below.estimated;
            sum.runs += 1 + below.runs;
        }
        sums
    }

    /// Checks the accounts of the runs that are driven. `waits`: a run has abandoned a cycle and has
    /// not reported its charges again yet.
    pub(super) fn check(
        &self,
        accounts: impl Iterator<Item = (usize, AccountState)>,
        waits: bool,
    ) -> Result<(), String> {
        let sums = self.sums();
        for (run, seen) in accounts {
            let sum = &sums[run];
            let spent = Amount::from(Charge {
                tokens: seen.spent.tokens,
                cost: seen.spent.cost,
            });
            same(run, "spent", &spent, &sum.charged)?;
            same(run, "reserved", &seen.reserved.into(), &sum.reserved)?;
            same(run, "estimated", &seen.spent.estimated, &sum.estimated)?;
            if let Some(children) = seen.children {
                same(run, "children", &children, &sum.runs)?;
            }
            if seen.expected && !waits {
                return Err(format!("the account of run {run} waits for nobody"));
            }
            self.check_limits(run, sum)?;
        }
        Ok(())
    }

    fn check_limits(&self, run: usize, sum: &Sum) -> Result<(), String> {
        let mut used = sum.charged;
        used.add(sum.reserved);
        let over = used.above(self.limit(run)).above(sum.beyond);
        if over == Amount::default() {
            return Ok(());
        }
        Err(format!(
            "run {run} used {used:?} of {:?}: over its limit by {over:?}",
            self.runs[run].limits
        ))
    }

    fn limit(&self, run: usize) -> Amount {
        let limits = self.runs[run].limits;
        Amount {
            tokens: limits.tokens.map_or(u128::MAX, u128::from),
            cost: limits.cost.map_or(u128::MAX, |cost| cost.0.into()),
        }
    }

    /// Returns the budget left to a run: the least of its own and its parents' rests.
    fn left(&self, run: usize) -> Amount {
        let sums = self.sums();
        let mut left = self.limit(run);
        let mut at = Some(run);
        while let Some(run) = at {
            let mut used = sums[run].charged;
            used.add(sums[run].reserved);
            let here = self.limit(run).above(used);
            left.tokens = left.tokens.min(here.tokens);
            left.cost = left.cost.min(here.cost);
            at = self.runs[run].parent;
        }
        left
    }

    /// Checks the grant for a request before it counts: everything that was wanted, or everything
    /// that is left, or nothing because less than the minimum of a call is left.
    pub(super) fn check_grant(
        &self,
        run: usize,
        ask: AccountRequest,
        granted: Option<Reservation>,
    ) -> Result<(), String> {
        let left = self.left(run);
        let fits = |output| ask.needs(output).above(left) == Amount::default();
        let least = OUTPUT_FLOOR.min(ask.output);
        let Some(granted) = granted else {
            return if fits(least) {
                Err(format!("run {run} was refused {ask:?} of {left:?}"))
            } else {
                Ok(())
            };
        };
        let output = granted.max_output_tokens;
        let enough = output == ask.output || (output < ask.output && !fits(output + 1));
        let exact = Amount::from(granted.charge) == ask.needs(output);
        if fits(output) && output >= least && enough && exact {
            return Ok(());
        }
        Err(format!(
            "run {run} was granted {granted:?} for {ask:?} of {left:?}"
        ))
    }
}

fn same<T: PartialEq + std::fmt::Debug>(
    run: usize,
    what: &str,
    said: &T,
    truth: &T,
) -> Result<(), String> {
    if said == truth {
        return Ok(());
    }
    Err(format!(
        "the account of run {run} says {what} {said:?}; it is {truth:?}"
    ))
}
