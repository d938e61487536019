//! Agents that live. A run is one attempt at one goal; this crate holds what outlives runs: the
//! events that agents exchange, the queue of commands that start runs, the triggers that feed it,
//! and the agents themselves.
//!
//! Everything durable is a log of `gyrus-journal`. Runs are driven elsewhere: whoever uses this
//! crate says how.

pub mod agents;
mod blocking;
pub mod intent;
pub mod ledger;
pub mod lessons;
pub mod procedures;
pub mod queue;
pub mod request;
pub mod triggers;
mod topic;
mod event;
mod bus;

pub use blocking::blocking;
pub use bus::{
    Arrivals, Award, AwardAnswer, BARRIER_MEMBERS, BUS_ROUTES, BUS_SUBSCRIPTIONS, BusError,
    BusStatus, CONTRACT_AWARDS, CONTRACT_BIDS, ContractOptions, ContractOutcome, ContractResult,
    ContractStep, DURABLE_SUBSCRIBERS, DurableItem, DurableStatus, DurableSubscription, EventBus,
    EventPosition, GATHER_ANSWERS, GatheredAnswers, HistoryLimits, LiveItem, OPEN_CONVERSATIONS,
    Overflow, QUEUE_CAPACITY, SUBSCRIPTION_PATTERNS, StartAt, Subscription, SubscriptionStatus,
};
pub use event::{
    EVENT_NAME_BYTES, EVENT_PAYLOAD_BYTES, EVENT_PAYLOAD_DEPTH, Event, EventError, EventId,
};
pub use topic::{TOPIC_WORDS, Topic, TopicError, TopicPattern, WORD_BYTES};
