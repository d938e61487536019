//! The contract net: a task is offered, bidders bid, the best bid gets the task.
//!
//! The call is an ordinary event that asks for replies. A bid is a reply that asks for a reply
//! itself: the verdict on the bid. An award asks for its result in turn. So a bidder needs to know
//! nothing but the topic on which calls are published.

use std::{cmp::Ordering, collections::BTreeSet, fmt, sync::Arc, time::Duration};

use gyrus_contract::Origin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{error::BusError, event_bus::EventBus, replies::deadline};
use crate::event::Event;

/// Maximum number of bids for a call.
pub const CONTRACT_BIDS: usize = 1_024;

/// Maximum number of bidders that are awarded a task, one after the other.
pub const CONTRACT_AWARDS: usize = 16;

/// The bounds of one contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContractOptions {
    /// Time limit for bids.
    pub bid_within: Duration,
    /// Number of bids after which the collection ends early, at most [`CONTRACT_BIDS`].
    pub bids: usize,
    /// Time limit for the result of each award.
    pub result_within: Duration,
    /// Number of bidders that get the award in turn until one completes the task; at most
    /// [`CONTRACT_AWARDS`].
    pub awards: usize,
}

impl Default for ContractOptions {
    fn default() -> Self {
        Self {
            bid_within: Duration::from_secs(10),
            bids: CONTRACT_BIDS,
            result_within: Duration::from_secs(600),
            awards: 3,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ContractStep {
    /// The call was published to this many subscriptions.
    Called {
        /// Number of subscriptions that got the call.
        reached: usize,
    },
    /// A bid was accepted for comparison.
    Bid {
        by: String,
        /// The score, by which bids are compared.
        score: f64,
    },
    /// A bid was rejected.
    Refused { by: String, reason: &'static str },
    /// The task was awarded.
    Awarded { to: String },
    /// The bidder withdrew after the award.
    Declined {
        by: String,
        /// The bidder's reason.
        reason: String,
    },
    /// The bidder could not do the task.
    Failed {
        by: String,
        /// The bidder's reason.
        reason: String,
    },
    /// The bidder was gone, or sent no result in time.
    Silent { by: String },
    /// The bidder did the task.
    Done { by: String },
    /// The bidder was informed that another one gets the task.
    Rejected { by: String },
}

/// The end of a contract.
#[derive(Debug, Clone, PartialEq)]
pub struct ContractOutcome {
    /// The result, from the bidder named in it; `None` if nobody did the task.
    pub result: Option<ContractResult>,
    /// All steps in order.
    pub steps: Vec<ContractStep>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ContractResult {
    /// The bidder that completed the task.
    pub by: String,
    /// The source of the result.
    pub origin: Origin,
    pub value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BidVerdict {
    Awarded,
    Rejected,
}

/// The answer of a bidder to an award.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwardAnswer {
    /// The task is done, with this result.
    Done(Value),
    /// The bidder withdrew, for this reason.
    Declined(String),
    /// The bidder could not do the task, for this reason.
    Failed(String),
}

struct BidCandidate {
    score: f64,
    bid: Arc<Event>,
}

/// Orders bids, the best first. Equal scores are ordered by the bidder's name.
fn best_first(one: &BidCandidate, other: &BidCandidate) -> Ordering {
    let by_score = other.score.total_cmp(&one.score);
    by_score.then_with(|| one.bid.from.cmp(&other.bid.from))
}

impl EventBus {
    /// Publishes a call for proposals, compares the bids that come in time by their score (the
    /// highest is the best, `None` and NaN do not count), and awards the task to the best bidder.
    /// If it declines, fails or stays silent, the next best gets the award. The other bidders are
    /// told at the end that they do not.
    ///
    /// # Errors
    /// Returns an error when a bound is out of its own, or the call cannot be published. A contract
    /// that nobody fulfils is not an error.
    pub async fn contract_net(
        &self,
        call: Event,
        options: ContractOptions,
        score: impl Fn(&Event) -> Option<f64>,
    ) -> Result<ContractOutcome, BusError> {
        check(&options)?;
        let mut contract = Contract {
            bus: self,
            origin: call.origin.clone(),
            caller: call.from.clone(),
            correlation: call.correlation.clone(),
            steps: Vec::new(),
        };
        let mut candidates = contract.collect_bids(call, &options, score).await?;
        candidates.sort_by(best_first);
        let mut result = None;
        let mut waiting = candidates.into_iter();
        for candidate in waiting.by_ref().take(options.awards) {
            result = contract
                .award(&candidate.bid, options.result_within)
                .await?;
            if result.is_some() {
                break;
            }
        }
        for loser in waiting {
            contract.tell(&loser.bid, BidVerdict::Rejected).await?;
            let by = loser.bid.from.clone();
            contract.steps.push(ContractStep::Rejected { by });
        }
        let steps = contract.steps;
        Ok(ContractOutcome { result, steps })
    }

    /// Bids for an announced task, and waits for the verdict. Returns the award, or `None` if the
    /// bid was rejected or no verdict came in time.
    ///
    /// # Errors
    /// Returns an error when the call does not ask for replies, or the bid is too large.
    pub async fn bid(
        &self,
        call: &Event,
        from: &str,
        origin: Origin,
        proposal: Value,
        within: Duration,
    ) -> Result<Option<Award>, BusError> {
        let Some(bid) = call.reply(from, origin, proposal) else {
            let (what, reason) = ("call", "it does not ask for replies".to_owned());
            return Err(BusError::Invalid { what, reason });
        };
        let deadline = deadline(within);
        let (verdicts, reached) = self.converse(bid, 1, deadline).await?;
        if reached == 0 {
            // Bidding is over.
            return Ok(None);
        }
        let Some(verdict) = verdicts.next(deadline).await else {
            return Ok(None);
        };
        let is_awarded =
            BidVerdict::deserialize(&verdict.payload).ok() == Some(BidVerdict::Awarded);
        Ok(is_awarded.then(|| Award {
            bus: self.clone(),
            award: verdict,
            bidder: from.to_owned(),
            is_answered: false,
        }))
    }
}

fn check(options: &ContractOptions) -> Result<(), BusError> {
    let checks = [
        ("number of bids", options.bids, CONTRACT_BIDS),
        ("number of awards", options.awards, CONTRACT_AWARDS),
    ];
    for (what, given, limit) in checks {
        if !(1..=limit).contains(&given) {
            let reason = format!("{given} is not between 1 and {limit}");
            return Err(BusError::Invalid { what, reason });
        }
    }
    Ok(())
}

struct Contract<'a> {
    bus: &'a EventBus,
    origin: Origin,
    caller: String,
    correlation: Option<String>,
    steps: Vec<ContractStep>,
}

impl Contract<'_> {
    /// Publishes the call and returns the valid bids, at most one of each bidder.
    async fn collect_bids(
        &mut self,
        call: Event,
        options: &ContractOptions,
        score: impl Fn(&Event) -> Option<f64>,
    ) -> Result<Vec<BidCandidate>, BusError> {
        let deadline = deadline(options.bid_within);
        let (bids, reached) = self.bus.converse(call, CONTRACT_BIDS, deadline).await?;
        self.steps.push(ContractStep::Called { reached });
        let mut bidders = BTreeSet::new();
        let mut candidates = Vec::new();
        // Refused bids count too, so that a flood of them ends.
        for _ in 0..2 * CONTRACT_BIDS {
            if reached == 0 || candidates.len() == options.bids {
                break;
            }
            let Some(bid) = bids.next(deadline).await else {
                break;
            };
            let by = bid.from.clone();
            let score = match score(&bid).filter(|score| !score.is_nan()) {
                _ if bid.reply_to.is_none() => Err("it does not say where to send the verdict"),
                _ if bidders.contains(&by) => Err("the bidder has a bid already"),
                None => Err("it has no score"),
                Some(score) => Ok(score),
            };
            let step = match score {
                Ok(score) => {
                    bidders.insert(by.clone());
                    candidates.push(BidCandidate { score, bid });
                    ContractStep::Bid { by, score }
                }
                Err(reason) => {
                    self.tell(&bid, BidVerdict::Rejected).await?;
                    ContractStep::Refused { by, reason }
                }
            };
            self.steps.push(step);
        }
        Ok(candidates)
    }

    fn message(&self, bid: &Event, verdict: BidVerdict) -> Option<Event> {
        let payload = serde_json::to_value(verdict).expect("a verdict is a string");
        let mut message = bid.reply(self.caller.clone(), self.origin.clone(), payload)?;
        message.correlation = self.correlation.clone().or(message.correlation);
        Some(message)
    }

    async fn tell(&self, bid: &Event, verdict: BidVerdict) -> Result<(), BusError> {
        if let Some(message) = self.message(bid, verdict) {
            self.bus.publish(message).await?;
        }
        Ok(())
    }

    /// Awards the task to a bidder, and waits for the result.
    async fn award(
        &mut self,
        bid: &Event,
        within: Duration,
    ) -> Result<Option<ContractResult>, BusError> {
        let by = bid.from.clone();
        self.steps.push(ContractStep::Awarded { to: by.clone() });
        let deadline = deadline(within);
        let answer = match self.message(bid, BidVerdict::Awarded) {
            Some(message) => {
                let (answers, reached) = self.bus.converse(message, 1, deadline).await?;
                // A bidder that is gone has closed its conversation.
                if reached == 0 {
                    None
                } else {
                    answers.next(deadline).await
                }
            }
            None => None,
        };
        let Some(answer) = answer else {
            self.steps.push(ContractStep::Silent { by });
            return Ok(None);
        };
        let (step, result) = match AwardAnswer::deserialize(&answer.payload) {
            Ok(AwardAnswer::Done(value)) => {
                let result = ContractResult {
                    by: by.clone(),
                    origin: answer.origin.clone(),
                    value,
                };
                (ContractStep::Done { by }, Some(result))
            }
            Ok(AwardAnswer::Declined(reason)) => (ContractStep::Declined { by, reason }, None),
            Ok(AwardAnswer::Failed(reason)) => (ContractStep::Failed { by, reason }, None),
            Err(error) => {
                let reason = format!("its answer is invalid: {error}");
                (ContractStep::Failed { by, reason }, None)
            }
        };
        self.steps.push(step);
        Ok(result)
    }
}

/// A task that was awarded to a bidder. If it is dropped without an answer, the caller is told that
/// the bidder failed.
pub struct Award {
    bus: EventBus,
    award: Arc<Event>,
    bidder: String,
    is_answered: bool,
}

impl Award {
    /// Sends the answer, with content from `origin`. Returns whether the caller still waited.
    ///
    /// # Errors
    /// Returns an error when the answer is too large; the caller is told that then.
    pub fn answer(mut self, answer: AwardAnswer, origin: Origin) -> Result<bool, BusError> {
        let event = self.event(&answer, origin);
        event.check()?;
        self.is_answered = true;
        Ok(self.bus.parts.replies.deliver(&Arc::new(event)))
    }

    fn event(&self, answer: &AwardAnswer, origin: Origin) -> Event {
        let payload = serde_json::to_value(answer).expect("an answer has string keys");
        let event = self.award.reply(self.bidder.clone(), origin, payload);
        event.expect("an award asks for its result")
    }
}

impl Drop for Award {
    fn drop(&mut self) {
        if !self.is_answered {
            let failed = AwardAnswer::Failed("the bidder stopped without a result".to_owned());
            let event = self.event(&failed, Origin::Kernel);
            self.bus.parts.replies.deliver(&Arc::new(event));
        }
    }
}

impl fmt::Debug for Award {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Award").finish_non_exhaustive()
    }
}
