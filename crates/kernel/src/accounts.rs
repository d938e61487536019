//! The accounts of a run and the runs below it, which form a tree. Money and tokens are reserved
//! before a model is asked, and settled when it answered.
//!
//! What a run is charged with, its parents are charged with too, so a limit holds for the whole
//! tree. At a limit nothing is lost: the run parks and reports what it did.

use std::{
    iter,
    sync::Arc,
    time::{Duration, Instant},
};

use gyrus_contract::{Limits, Microdollars, Price, RunId, Spent};
use gyrus_text::{counted, grouped};
use parking_lot::Mutex;

use crate::{Charge, Ending, KernelState};

/// Minimum length of a reply in tokens. When less can be afforded, the run stops instead of asking.
pub const OUTPUT_FLOOR: u64 = 64;

/// Share of a limit, in percent, at which it is announced.
pub const WARN_AT_PERCENT: u64 = 80;

/// The account of one run, in the tree of the run that a person started.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    tree: Arc<Mutex<AccountTree>>,
    index: usize,
}

/// The accounts that were opened by this process, each after its parent. None is ever removed: a
/// tree has at most [`MAX_CHILDREN`](crate::MAX_CHILDREN) children, and an account for each time
/// that a run is handed over.
#[derive(Debug, Default)]
struct AccountTree(Vec<AccountNode>);

#[derive(Debug)]
struct AccountNode {
    run: RunId,
    parent: Option<usize>,
    limits: Limits,
    spent: Spent,
    /// Number of child runs that were started in the whole tree below.
    children: u32,
    reserved: Charge,
    /// The use charged to the parents since the run's last cycle ended.
    charged_to_parents: TreeUsage,
    /// The use that this account or one below has charged, and that the next account of the same
    /// run will charge once more.
    expected_again: TreeUsage,
    /// Whether a cycle began under this account.
    began: bool,
    /// The time at which this process took the run up; time before that is in `spent`.
    since: Instant,
    /// Idle time since the run began, which does not count.
    idle: Duration,
    /// Number of waits for a person that are in progress, and when the first of them began.
    waits: u32,
    waiting_since: Option<Instant>,
    warned: Vec<&'static str>,
}

/// The use of tokens, money and child runs by a run and the runs below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    pub(crate) charge: Charge,
    /// Whether a part of the use is a reservation that was never settled.
    pub(crate) estimated: bool,
    pub(crate) children: u32,
}

impl TreeUsage {
    /// Creates the use of requests to models.
    pub(crate) fn charged(charge: Charge, estimated: bool) -> Self {
        Self {
            charge,
            estimated,
            children: 0,
        }
    }

    /// Creates the use of newly started child runs, which have used nothing yet.
    pub(crate) fn children(children: u32) -> Self {
        Self {
            children,
            ..Self::default()
        }
    }

    /// Creates the use of a run that spent `spent` and started this number of runs.
    pub(crate) fn by_run(spent: Spent, children: u32) -> Self {
        Self {
            charge: Charge {
                tokens: spent.tokens,
                cost: spent.cost,
            },
            estimated: spent.estimated,
            children,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.charge += other.charge;
        self.estimated |= other.estimated;
        self.children = self.children.saturating_add(other.children);
    }

    fn subtract(&mut self, other: Self) {
        self.charge -= other.charge;
        self.children = self.children.saturating_sub(other.children);
    }
}

/// The maximum use of a model attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) charge: Charge,
    pub(crate) max_output_tokens: u64,
}

impl Account {
    /// Opens the account of a run, below its parent's if there is one. `before` is the state before
    /// this process.
    pub(crate) fn open(
        parent: Option<&Account>,
        run: RunId,
        limits: Limits,
        before: &KernelState,
    ) -> Self {
        let tree = parent.map_or_else(Arc::default, |parent| parent.tree.clone());
        let mut accounts = tree.lock();
        let index = accounts.0.len();
        accounts.0.push(AccountNode {
            run,
            parent: parent.map(|parent| parent.index),
            limits,
            spent: before.spent,
            children: before.children,
            reserved: Charge::default(),
            charged_to_parents: TreeUsage::default(),
            expected_again: TreeUsage::default(),
            began: false,
            since: Instant::now(),
            idle: Duration::ZERO,
            waits: 0,
            waiting_since: None,
            warned: Vec::new(),
        });
        drop(accounts);
        Self { tree, index }
    }

    /// Returns the account of a child run, if the child was driven under this account.
    pub(crate) fn child(&self, run: RunId) -> Option<Account> {
        let tree = self.tree.lock();
        let is_child = |node: &AccountNode| node.run == run && node.parent == Some(self.index);
        let index = tree.0.iter().rposition(is_child)?;
        Some(Account {
            tree: self.tree.clone(),
            index,
        })
    }

    /// Returns the resources used up to now, time included.
    pub(crate) fn spent(&self) -> Spent {
        self.tree.lock().0[self.index].spent_now()
    }

    /// Returns the rest of each limit, as limits for a child.
    pub(crate) fn remaining(&self) -> Limits {
        self.tree.lock().0[self.index].remaining()
    }

    /// Checks that steps and time are left for another cycle. The charges of the previous cycle are
    /// now in the entry of its end, and are not made again.
    pub(crate) fn check_cycle(&self) -> Result<(), Ending> {
        let mut tree = self.tree.lock();
        let node = &mut tree.0[self.index];
        if std::mem::replace(&mut node.began, true) {
            node.charged_to_parents = TreeUsage::default();
        }
        exhausted("steps", node.limits.steps, node.spent.steps)?;
        tree.check_time(self.index)
    }

    pub(crate) fn count_cycle(&self) {
        self.tree.lock().0[self.index].spent.steps += 1;
    }

    /// Reserves the estimated prompt, and as much output as is asked for and affordable, for one
    /// attempt, here and in every account above.
    pub(crate) fn reserve(
        &self,
        input_tokens: u64,
        wanted_output: u64,
        price: Option<Price>,
    ) -> Result<Reservation, Ending> {
        let mut tree = self.tree.lock();
        tree.reserve(self.index, input_tokens, wanted_output, price)
    }

    /// Replaces a reservation by the real charge, here and in every account above.
    pub(crate) fn settle(&self, reserved: Charge, charged: Charge, estimated: bool) {
        self.tree
            .lock()
            .settle(self.index, reserved, charged, estimated);
    }

    /// Settles the open reservations of a dropped child, and returns its use.
    pub(crate) fn close(&self) -> Spent {
        let mut tree = self.tree.lock();
        tree.settle_open(self.index);
        // No other account of the run will make these charges again.
        let expected = std::mem::take(&mut tree.0[self.index].expected_again);
        tree.each_above(self.index, |above| above.expected_again.subtract(expected));
        tree.0[self.index].spent_now()
    }

    /// Leaves the run to another account, which makes the charges of the cycle in progress again,
    /// from the journal. Until then the parents remain charged, so that no other run spends the
    /// same budget.
    pub(crate) fn leave_to_next(&self) {
        let mut tree = self.tree.lock();
        tree.settle_open(self.index);
        let charged = std::mem::take(&mut tree.0[self.index].charged_to_parents);
        tree.0[self.index].expected_again.add(charged);
        tree.each_above(self.index, |above| above.expected_again.add(charged));
    }

    /// Charges use that the journal of an earlier process records, also to the parents, which have
    /// no entry about it before this run has ended.
    pub(crate) fn charge(&self, used: TreeUsage) {
        let mut tree = self.tree.lock();
        tree.0[self.index].add(used);
        tree.charge_parents(self.index, used);
    }

    /// Returns the number of child runs that were started below this run.
    pub(crate) fn children(&self) -> u32 {
        self.tree.lock().0[self.index].children
    }

    /// Returns the number of child runs that were started below the run that a person started.
    pub(crate) fn children_of_tree(&self) -> u32 {
        // The first account has no parent.
        self.tree.lock().0[0].children
    }

    /// Returns the open reservation, and whether charges are expected to be made again.
    #[cfg(test)]
    pub(crate) fn reserved(&self) -> (Charge, bool) {
        let node = &self.tree.lock().0[self.index];
        let expected = node.expected_again;
        let expects = expected.charge != Charge::default() || expected.children > 0;
        (node.reserved, expects)
    }

    /// Returns the time left by the limits of the run and those above it; `None` without a limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let tree = self.tree.lock();
        let left = tree.path(self.index);
        let left = left.filter_map(|node| node.remaining().time_ms).min();
        left.map(Duration::from_millis)
    }

    /// Stops the clock, here and in every account above, while the returned value lives: a run that
    /// waits for a person uses none.
    pub(crate) fn wait_for_a_person(&self) -> PersonWait {
        self.tree
            .lock()
            .each_from(self.index, AccountNode::begin_wait);
        PersonWait(self.clone())
    }

    /// Checks that time is left.
    pub(crate) fn check_time(&self) -> Result<(), Ending> {
        self.tree.lock().check_time(self.index)
    }

    /// Returns the limits of which more than [`WARN_AT_PERCENT`] is used and that were not
    /// announced yet.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut tree = self.tree.lock();
        let node = &mut tree.0[self.index];
        let (limits, spent) = (node.limits, node.spent_now());
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
            if near && !node.warned.contains(&name) {
                node.warned.push(name);
                warnings.push(format!("{name}: {used} of {limit}"));
            }
        }
        warnings
    }
}

/// A wait for a person, during which no time counts.
pub(crate) struct PersonWait(Account);

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.0
            .tree
            .lock()
            .each_from(self.0.index, AccountNode::end_wait);
    }
}

impl AccountTree {
    /// Returns an account and all accounts above it, up to that of the run that a person started.
    fn path(&self, index: usize) -> impl Iterator<Item = &AccountNode> {
        iter::successors(Some(&self.0[index]), |node| Some(&self.0[node.parent?]))
    }

    fn each_from(&mut self, index: usize, mut change: impl FnMut(&mut AccountNode)) {
        change(&mut self.0[index]);
        self.each_above(index, change);
    }

    fn each_above(&mut self, index: usize, mut change: impl FnMut(&mut AccountNode)) {
        let mut above = self.0[index].parent;
        while let Some(index) = above {
            change(&mut self.0[index]);
            above = self.0[index].parent;
        }
    }

    fn check_time(&self, index: usize) -> Result<(), Ending> {
        self.path(index).try_for_each(|node| {
            let used = node.spent_now().time_ms;
            exhausted("time in ms", node.limits.time_ms, used)
        })
    }

    fn reserve(
        &mut self,
        index: usize,
        input_tokens: u64,
        wanted_output: u64,
        price: Option<Price>,
    ) -> Result<Reservation, Ending> {
        self.check_time(index)?;
        let mut output = wanted_output;
        for node in self.path(index) {
            output = node.affords(input_tokens, output, price)?;
        }
        let charge = Charge {
            tokens: input_tokens.saturating_add(output),
            cost: price
                .map(|price| price.at_most(input_tokens, output))
                .unwrap_or_default(),
        };
        self.0[index].reserved += charge;
        self.each_above(index, |above| above.reserved += charge);
        Ok(Reservation {
            charge,
            max_output_tokens: output,
        })
    }

    fn settle(&mut self, index: usize, reserved: Charge, charged: Charge, estimated: bool) {
        let used = TreeUsage::charged(charged, estimated);
        let settle = |node: &mut AccountNode| {
            node.reserved -= reserved;
            node.add(used);
            if node.parent.is_some() {
                node.charged_to_parents.add(used);
            }
        };
        settle(&mut self.0[index]);
        self.each_above(index, settle);
    }

    /// Settles the open reservations of a run that was dropped, and of all runs below it: its
    /// requests may have been answered and charged.
    fn settle_open(&mut self, index: usize) {
        let reserved = self.0[index].reserved;
        if reserved != Charge::default() {
            self.settle(index, reserved, reserved, true);
        }
    }

    /// Charges the parents of an account with its counted use. Each parent deducts the charges that
    /// it expects again.
    fn charge_parents(&mut self, index: usize, used: TreeUsage) {
        self.0[index].charged_to_parents.add(used);
        self.each_above(index, |above| {
            let mut new = used;
            new.subtract(above.expected_again);
            above.expected_again.subtract(used);
            above.add(new);
            above.charged_to_parents.add(new);
        });
    }
}

impl AccountNode {
    fn add(&mut self, used: TreeUsage) {
        self.spent.tokens = self.spent.tokens.saturating_add(used.charge.tokens);
        self.spent.cost = self.spent.cost + used.charge.cost;
        self.spent.estimated |= used.estimated;
        self.children = self.children.saturating_add(used.children);
    }

    fn begin_wait(&mut self) {
        self.waits += 1;
        self.waiting_since.get_or_insert_with(Instant::now);
    }

    fn end_wait(&mut self) {
        self.waits = self.waits.saturating_sub(1);
        if self.waits == 0 {
            self.idle += self
                .waiting_since
                .take()
                .map_or(Duration::ZERO, |it| it.elapsed());
        }
    }

    fn spent_now(&self) -> Spent {
        let now = self.waiting_since.unwrap_or_else(Instant::now);
        let elapsed = now.saturating_duration_since(self.since);
        let elapsed = elapsed.saturating_sub(self.idle).as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        Spent {
            time_ms: self.spent.time_ms.saturating_add(elapsed),
            ..self.spent
        }
    }

    fn remaining(&self) -> Limits {
        let spent = self.spent_now();
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        Limits {
            steps: left(self.limits.steps, spent.steps),
            tokens: left(
                self.limits.tokens,
                spent.tokens.saturating_add(self.reserved.tokens),
            ),
            cost: left(
                self.limits.cost.map(|c| c.0),
                (spent.cost + self.reserved.cost).0,
            )
            .map(Microdollars),
            time_ms: left(self.limits.time_ms, spent.time_ms),
        }
    }

    /// Returns the output that the remaining budget allows after a prompt of this length, at most
    /// `wanted`.
    fn affords(&self, input_tokens: u64, wanted: u64, price: Option<Price>) -> Result<u64, Ending> {
        let left = self.remaining();
        let mut output = wanted;
        if let Some(tokens) = left.tokens {
            output = output.min(tokens.saturating_sub(input_tokens));
        }
        if let (Some(cost), Some(price)) = (left.cost, price) {
            output = output.min(affordable(cost, price, input_tokens));
        }
        if output >= OUTPUT_FLOOR.min(wanted) {
            return Ok(output);
        }
        let needed = OUTPUT_FLOOR.min(wanted);
        let tokens = input_tokens.saturating_add(needed);
        let what = match (left.tokens, self.limits.tokens) {
            (Some(left), Some(limit)) if left < tokens => format!(
                "tokens: the next call could cost up to {}; {} of {} are left",
                counted(tokens, "token"),
                grouped(left),
                grouped(limit)
            ),
            _ => {
                let cost = price.map(|price| price.at_most(input_tokens, needed));
                format!(
                    "cost: the next call could cost up to {}; {} of {} are left",
                    cost.unwrap_or_default(),
                    left.cost.unwrap_or_default(),
                    self.limits.cost.unwrap_or_default()
                )
            }
        };
        Err(Ending::Limit { what })
    }
}

/// Returns the maximum number of tokens of a reply for which the call, rounded up, costs no more
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

fn exhausted(name: &str, limit: Option<u64>, used: u64) -> Result<(), Ending> {
    match limit {
        Some(limit) if used >= limit => Err(Ending::Limit {
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

    fn account(parent: Option<&Account>, limits: Limits) -> Account {
        let run = RunId::new();
        Account::open(parent, run, limits, &KernelState::default())
    }

    #[test]
    fn a_wait_for_a_person_costs_no_time_in_the_whole_tree() {
        let parent = account(None, Limits::default());
        let child = account(Some(&parent), Limits::default());
        let of = |account: &Account| account.spent().time_ms;
        let wait = child.wait_for_a_person();
        let other = parent.wait_for_a_person();
        drop(wait);
        let before = (of(&parent), Instant::now());
        while before.1.elapsed() < Duration::from_millis(5) {
            std::thread::yield_now();
        }
        assert_eq!(of(&parent), before.0);
        assert!(of(&child) >= 5);
        drop(other);
        let after = Instant::now();
        while after.elapsed() < Duration::from_millis(5) {
            std::thread::yield_now();
        }
        assert!(of(&parent) >= before.0 + 4);
    }

    #[test]
    fn output_is_what_the_rest_affords() {
        let account = account(None, tokens(1_000));
        let reservation = account.reserve(400, 4_000, None).unwrap();
        assert_eq!(reservation.max_output_tokens, 600);
        // The whole limit is reserved: a concurrent request finds nothing.
        assert!(matches!(
            account.reserve(10, 100, None),
            Err(Ending::Limit { .. })
        ));
        let used = Charge {
            tokens: 500,
            cost: Microdollars(0),
        };
        account.settle(reservation.charge, used, false);
        assert_eq!(
            account.reserve(10, 100, None).unwrap().max_output_tokens,
            100
        );
    }

    #[test]
    fn money_limits_output_and_never_overflows() {
        let limits = Limits {
            cost: Some(Microdollars(1_000)),
            ..Limits::default()
        };
        let account = account(None, limits);
        let reservation = account.reserve(500, 100_000, Some(PRICE)).unwrap();
        assert_eq!(reservation.max_output_tokens, 250);
        assert_eq!(reservation.charge.cost, Microdollars(1_000));
        let dear = Price::new(u64::MAX, u64::MAX);
        assert!(account.reserve(u64::MAX / 2, 10, Some(dear)).is_err());
    }

    #[test]
    fn a_limit_names_what_the_next_call_needs() {
        let what = |limits, price| {
            let account = account(None, limits);
            let first = account.reserve(2_000, 100, Some(PRICE)).unwrap();
            let used = Charge {
                tokens: 2_649,
                cost: Microdollars(2_649),
            };
            account.settle(first.charge, used, false);
            match account.reserve(3_036, 4_000, price) {
                Err(Ending::Limit { what }) => what,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            what(tokens(5_000), None),
            "tokens: the next call could cost up to 3,100 tokens; 2,351 of 5,000 are left"
        );
        let cost = Limits {
            cost: Some(Microdollars(5_000)),
            ..Limits::default()
        };
        assert_eq!(
            what(cost, Some(PRICE)),
            "cost: the next call could cost up to $0.0031; $0.0023 of $0.0050 are left"
        );
    }

    #[test]
    fn a_report_beyond_all_bounds_leaves_nothing() {
        let limits = Limits {
            cost: Some(Microdollars(1_000_000)),
            ..tokens(1_000_000)
        };
        let account = account(None, limits);
        let first = account.reserve(100, 100, Some(PRICE)).unwrap();
        account.reserve(100, 100, Some(PRICE)).unwrap();
        let reported = Charge {
            tokens: u64::MAX,
            cost: Microdollars(u64::MAX),
        };
        account.settle(first.charge, reported, false);
        assert_eq!(account.remaining().tokens, Some(0));
        assert_eq!(account.remaining().cost, Some(Microdollars(0)));
        assert!(account.reserve(1, 1, Some(PRICE)).is_err());
    }

    #[test]
    fn parents_stay_charged_until_the_next_account_makes_the_charge_again() {
        let parent = account(None, tokens(1_000));
        let under = || account(Some(&parent), Limits::default());
        let diverges = under();
        let reserved = diverges.reserve(100, 500, None).unwrap().charge;
        diverges.leave_to_next();
        let reservation = under().reserve(100, 5_000, None).unwrap();
        assert_eq!(reservation.max_output_tokens, 300);
        let successor = under();
        successor.charge(TreeUsage::charged(reserved, true));
        assert_eq!(parent.spent().tokens, 600);
        // The expected charge is made once; what follows is new.
        successor.charge(TreeUsage::charged(reserved, true));
        assert_eq!(parent.spent().tokens, 1_200);
    }

    #[test]
    fn children_use_their_parents_money() {
        let parent = account(None, tokens(1_000));
        let child = account(Some(&parent), Limits::default());
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
        let account = Account::open(None, RunId::new(), limits, &before);
        assert_eq!(account.warnings(), ["steps: 8 of 10"]);
        assert!(account.warnings().is_empty());
        assert!(account.check_cycle().is_ok());
    }
}
