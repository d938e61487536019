//! The budget of a run: reserved before a model is asked, settled when it answered.
//!
//! A child's ledger reserves in its parent's too, so a limit holds for the whole tree. At a limit
//! nothing is lost: the run parks and reports what it did.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use gyrus_contract::{Limits, Microdollars, Price, Spent};

use crate::{Charge, Ending, KernelState};

/// Minimum length of a reply in tokens. When less can be afforded, the run stops instead of asking.
pub const OUTPUT_FLOOR: u64 = 64;

/// Share of a limit, in percent, at which it is announced.
pub const WARN_AT_PERCENT: u64 = 80;

#[derive(Debug)]
pub(crate) struct Ledger {
    limits: Limits,
    parent: Option<Arc<Ledger>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    spent: Spent,
    /// Number of child runs that were started in the whole tree below.
    children: u32,
    reserved: Charge,
    /// The charges that this ledger passed to its parents since its run's last cycle ended.
    passed_up: Tally,
    /// The charges that this ledger or one below gave up and its successor will report again: they
    /// are counted already.
    expected: Tally,
    /// Whether a cycle began under this ledger.
    began: bool,
    /// The time at which this process took the run up; time before that is in `spent`.
    since: Instant,
    warned: Vec<&'static str>,
}

/// The charges of a run to its parents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    charge: Charge,
    children: u32,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.charge += other.charge;
        self.children = self.children.saturating_add(other.children);
    }

    fn subtract(&mut self, other: Self) {
        self.charge -= other.charge;
        self.children = self.children.saturating_sub(other.children);
    }

    /// Removes `told` from the expected charges, and returns the part that was not expected and is
    /// therefore new.
    fn absorb(&mut self, told: Self) -> Self {
        let mut new = told;
        new.subtract(*self);
        self.subtract(told);
        new
    }
}

/// The most that a model attempt may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) charge: Charge,
    pub(crate) max_output_tokens: u64,
}

impl Ledger {
    pub(crate) fn new(limits: Limits, before: &KernelState, parent: Option<Arc<Ledger>>) -> Self {
        let inner = Inner {
            spent: before.spent,
            children: before.children,
            reserved: Charge::default(),
            passed_up: Tally::default(),
            expected: Tally::default(),
            began: false,
            since: Instant::now(),
            warned: Vec::new(),
        };
        Self {
            limits,
            parent,
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the resources used up to now, time included.
    pub(crate) fn spent(&self) -> Spent {
        self.inner().spent_now()
    }

    /// Returns the rest of each limit, as limits for a child.
    pub(crate) fn remaining(&self) -> Limits {
        let inner = self.inner();
        let spent = inner.spent_now();
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        Limits {
            steps: left(self.limits.steps, spent.steps),
            tokens: left(
                self.limits.tokens,
                spent.tokens.saturating_add(inner.reserved.tokens),
            ),
            cost: left(
                self.limits.cost.map(|c| c.0),
                (spent.cost + inner.reserved.cost).0,
            )
            .map(Microdollars),
            time_ms: left(self.limits.time_ms, spent.time_ms),
        }
    }

    /// Checks that a cycle may begin: steps and time are left. The charges of the cycle before are
    /// now in the entry of its end, and are not reported again.
    pub(crate) fn check_cycle(&self) -> Result<(), Ending> {
        let spent = {
            let mut inner = self.inner();
            if std::mem::replace(&mut inner.began, true) {
                inner.passed_up = Tally::default();
            }
            inner.spent_now()
        };
        exhausted("steps", self.limits.steps, spent.steps, 1)?;
        self.check_time()
    }

    pub(crate) fn check_time(&self) -> Result<(), Ending> {
        let spent = self.spent();
        exhausted("time in ms", self.limits.time_ms, spent.time_ms, 1)?;
        self.parent
            .as_ref()
            .map_or(Ok(()), |parent| parent.check_time())
    }

    pub(crate) fn count_cycle(&self) {
        self.inner().spent.steps += 1;
    }

    /// Reserves for one attempt: the estimated prompt, and as much output as is asked for and
    /// affordable.
    pub(crate) fn reserve(
        &self,
        input_tokens: u64,
        wanted_output: u64,
        price: Option<Price>,
    ) -> Result<Reservation, Ending> {
        self.check_time()?;
        let left = self.remaining();
        let mut output = wanted_output;
        if let Some(tokens) = left.tokens {
            output = output.min(tokens.saturating_sub(input_tokens));
        }
        if let (Some(cost), Some(price)) = (left.cost, price) {
            output = output.min(affordable(cost, price, input_tokens));
        }
        if output < OUTPUT_FLOOR.min(wanted_output) {
            let spent = self.spent();
            exhausted(
                "tokens",
                self.limits.tokens,
                spent.tokens,
                input_tokens.saturating_add(OUTPUT_FLOOR),
            )?;
            return Err(Ending::Limit {
                what: format!(
                    "cost: {} of {}",
                    spent.cost,
                    self.limits.cost.unwrap_or_default()
                ),
            });
        }
        if let Some(parent) = &self.parent {
            output = parent
                .reserve(input_tokens, output, price)?
                .max_output_tokens;
        }
        let cost = price
            .map(|price| price.at_most(input_tokens, output))
            .unwrap_or_default();
        let charge = Charge {
            tokens: input_tokens.saturating_add(output),
            cost,
        };
        let mut inner = self.inner();
        inner.reserved += charge;
        Ok(Reservation {
            charge,
            max_output_tokens: output,
        })
    }

    /// Replaces a reservation by the real charge.
    pub(crate) fn settle(&self, reserved: Charge, charged: Charge, estimated: bool) {
        self.inner().reserved -= reserved;
        self.inner().add(charged, estimated);
        if let Some(parent) = &self.parent {
            self.inner().passed_up.charge += charged;
            parent.settle(reserved, charged, estimated);
        }
    }

    /// Settles the open reservations of a run that was dropped, and of all runs below it: its
    /// requests may have been answered and charged.
    fn settle_open(&self) {
        let reserved = self.inner().reserved;
        if reserved != Charge::default() {
            self.settle(reserved, reserved, true);
        }
    }

    /// Settles the open reservations of a child that was dropped, and returns what it used.
    pub(crate) fn close(&self) -> Spent {
        self.settle_open();
        // No successor will report these charges again.
        let expected = std::mem::take(&mut self.inner().expected);
        self.each_above(|above| above.expected.subtract(expected));
        self.spent()
    }

    /// Gives up this ledger for another one of the same run, which reports the charges of the cycle
    /// in progress to its parents again, from its journal. Until then the charges stay with the
    /// parents, so that no other run spends the same budget.
    pub(crate) fn take_back(&self) {
        self.settle_open();
        let passed_up = std::mem::take(&mut self.inner().passed_up);
        self.inner().expected.add(passed_up);
        self.each_above(|above| above.expected.add(passed_up));
    }

    fn each_above(&self, change: impl Fn(&mut Inner)) {
        let mut above = self.parent.as_ref();
        while let Some(ledger) = above {
            change(&mut ledger.inner());
            above = ledger.parent.as_ref();
        }
    }

    /// Counts charges from a journal of before this process, here and in every run above: none of
    /// them has an entry about them before this run has ended.
    pub(crate) fn charge(&self, charged: Charge, estimated: bool) {
        self.inner().add(charged, estimated);
        let told = Tally {
            charge: charged,
            children: 0,
        };
        self.tell_above(told, estimated);
    }

    /// Counts child runs, here and in every run above.
    pub(crate) fn count_children(&self, started: u32) {
        self.inner().count_children(started);
        let told = Tally {
            charge: Charge::default(),
            children: started,
        };
        self.tell_above(told, false);
    }

    /// Charges the parents with what they were not charged with already.
    fn tell_above(&self, told: Tally, estimated: bool) {
        self.inner().passed_up.add(told);
        let mut above = self.parent.as_ref();
        while let Some(ledger) = above {
            let mut inner = ledger.inner();
            let new = inner.expected.absorb(told);
            inner.add(new.charge, estimated);
            inner.count_children(new.children);
            inner.passed_up.add(new);
            above = ledger.parent.as_ref();
        }
    }

    /// Returns the number of child runs that were started below this run.
    pub(crate) fn children(&self) -> u32 {
        self.inner().children
    }

    /// Returns the number of child runs that were started below the run that a person started.
    pub(crate) fn children_of_tree(&self) -> u32 {
        match &self.parent {
            Some(parent) => parent.children_of_tree(),
            None => self.children(),
        }
    }

    /// Returns the open reservation, and whether charges are expected to be reported again.
    #[cfg(any(test, feature = "sim"))]
    pub(crate) fn open(&self) -> (Charge, bool) {
        let inner = self.inner();
        (inner.reserved, inner.expected != Tally::default())
    }

    /// Returns the limits of which more than [`WARN_AT_PERCENT`] is used and that were not
    /// announced yet.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let limits = self.limits;
        let mut inner = self.inner();
        let spent = inner.spent_now();
        let used = [
            ("steps", limits.steps, spent.steps),
            ("tokens", limits.tokens, spent.tokens),
            (
                "cost in microdollars",
                limits.cost.map(|c| c.0),
                spent.cost.0,
            ),
            ("time in ms", limits.time_ms, spent.time_ms),
        ];
        let mut warnings = Vec::new();
        for (name, limit, used) in used {
            let Some(limit) = limit else { continue };
            let near = u128::from(used) * 100 >= u128::from(limit) * u128::from(WARN_AT_PERCENT);
            if near && !inner.warned.contains(&name) {
                inner.warned.push(name);
                warnings.push(format!("{name}: {used} of {limit}"));
            }
        }
        warnings
    }
}

impl Inner {
    fn count_children(&mut self, started: u32) {
        self.children = self.children.saturating_add(started);
    }

    fn add(&mut self, charged: Charge, estimated: bool) {
        self.spent.tokens = self.spent.tokens.saturating_add(charged.tokens);
        self.spent.cost = self.spent.cost + charged.cost;
        self.spent.estimated |= estimated;
    }

    fn spent_now(&self) -> Spent {
        let elapsed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Spent {
            time_ms: self.spent.time_ms.saturating_add(elapsed),
            ..self.spent
        }
    }
}

/// Returns the number of tokens that a reply may have so that the call, rounded up, costs no more
/// than `left`.
fn affordable(left: Microdollars, price: Price, input_tokens: u64) -> u64 {
    let dearest = price.input.max(price.cache_write.unwrap_or(0));
    let left = u128::from(left.0) * 1_000_000;
    let for_input = u128::from(dearest) * u128::from(input_tokens);
    match left.checked_sub(for_input) {
        None => 0,
        Some(left) => left
            .checked_div(price.output.into())
            .map_or(u64::MAX, |tokens| u64::try_from(tokens).unwrap_or(u64::MAX)),
    }
}

fn exhausted(name: &str, limit: Option<u64>, used: u64, needed: u64) -> Result<(), Ending> {
    match limit {
        Some(limit) if used.saturating_add(needed) > limit => Err(Ending::Limit {
            what: format!("{name}: {used} of {limit}"),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 1_000_000,
        output: 2_000_000,
        cache_read: None,
        cache_write: None,
    };

    fn tokens(limit: u64) -> Limits {
        Limits {
            tokens: Some(limit),
            ..Limits::default()
        }
    }

    fn nothing_yet() -> KernelState {
        KernelState::default()
    }

    #[test]
    fn output_is_what_the_rest_affords() {
        let ledger = Ledger::new(tokens(1_000), &nothing_yet(), None);
        let reservation = ledger.reserve(400, 4_000, None).unwrap();
        assert_eq!(reservation.max_output_tokens, 600);
        // The whole limit is reserved: a concurrent request finds nothing.
        assert!(matches!(
            ledger.reserve(10, 100, None),
            Err(Ending::Limit { .. })
        ));
        let used = Charge {
            tokens: 500,
            cost: Microdollars(0),
        };
        ledger.settle(reservation.charge, used, false);
        assert_eq!(
            ledger.reserve(10, 100, None).unwrap().max_output_tokens,
            100
        );
    }

    #[test]
    fn money_limits_output_and_never_overflows() {
        let limits = Limits {
            cost: Some(Microdollars(1_000)),
            ..Limits::default()
        };
        let ledger = Ledger::new(limits, &nothing_yet(), None);
        let reservation = ledger.reserve(500, 100_000, Some(PRICE)).unwrap();
        assert_eq!(reservation.max_output_tokens, 250);
        assert_eq!(reservation.charge.cost, Microdollars(1_000));
        let dear = Price::new(u64::MAX, u64::MAX);
        assert!(ledger.reserve(u64::MAX / 2, 10, Some(dear)).is_err());
    }

    #[test]
    fn a_report_beyond_all_bounds_leaves_nothing() {
        let limits = Limits {
            cost: Some(Microdollars(1_000_000)),
            ..tokens(1_000_000)
        };
        let ledger = Ledger::new(limits, &nothing_yet(), None);
        let first = ledger.reserve(100, 100, Some(PRICE)).unwrap();
        ledger.reserve(100, 100, Some(PRICE)).unwrap();
        let reported = Charge {
            tokens: u64::MAX,
            cost: Microdollars(u64::MAX),
        };
        ledger.settle(first.charge, reported, false);
        assert_eq!(ledger.remaining().tokens, Some(0));
        assert_eq!(ledger.remaining().cost, Some(Microdollars(0)));
        assert!(ledger.reserve(1, 1, Some(PRICE)).is_err());
    }

    #[test]
    fn what_is_taken_back_stays_on_the_account_until_it_is_told_again() {
        let parent = Arc::new(Ledger::new(tokens(1_000), &nothing_yet(), None));
        let under = || Ledger::new(Limits::default(), &nothing_yet(), Some(parent.clone()));
        let diverges = under();
        let reserved = diverges.reserve(100, 500, None).unwrap().charge;
        diverges.take_back();
        let reservation = under().reserve(100, 5_000, None).unwrap();
        assert_eq!(reservation.max_output_tokens, 300);
        let successor = under();
        successor.charge(reserved, true);
        assert_eq!(parent.spent().tokens, 600);
        // The expected charges are reported once; what follows is new.
        successor.charge(reserved, true);
        assert_eq!(parent.spent().tokens, 1_200);
    }

    #[test]
    fn children_use_their_parents_money() {
        let parent = Arc::new(Ledger::new(tokens(1_000), &nothing_yet(), None));
        let child = Ledger::new(Limits::default(), &nothing_yet(), Some(parent.clone()));
        let reservation = child.reserve(100, 5_000, None).unwrap();
        assert_eq!(reservation.max_output_tokens, 900);
        child.settle(
            reservation.charge,
            Charge {
                tokens: 990,
                ..Charge::default()
            },
            true,
        );
        assert_eq!(parent.spent().tokens, 990);
        assert!(parent.spent().estimated);
        assert!(child.reserve(100, 5_000, None).is_err());
    }

    #[test]
    fn a_limit_is_announced_once() {
        let limits = Limits {
            steps: Some(10),
            ..Limits::default()
        };
        let spent = Spent {
            steps: 8,
            ..Spent::default()
        };
        let before = KernelState {
            spent,
            ..KernelState::default()
        };
        let ledger = Ledger::new(limits, &before, None);
        assert_eq!(ledger.warnings(), ["steps: 8 of 10"]);
        assert!(ledger.warnings().is_empty());
        assert!(ledger.check_cycle().is_ok());
    }
}
