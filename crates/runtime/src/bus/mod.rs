//! The event bus: publishers and subscribers that know topics, not each other.
//!
//! The one idea: an event is shared, never copied. Publishing looks up the subscriptions that match
//! the topic (remembered per topic), and puts a reference into the queue of each. A queue belongs to
//! one subscription and says itself what happens when it is full. Requests and the other forms of
//! collaboration are events too.
//!
//! Durable events are first appended to logs and then published; durable subscribers read them by
//! their positions in these logs, so that nothing depends on who listened at the time.
//!
//! The bus does not know what its events mean, and it is one process's own: other processes reach
//! it through that process.

mod position;
mod error;
mod queue;
mod routes;
mod subscription;
mod replies;
mod event_bus;
mod request;
mod gather;
mod contract_net;
mod barrier;
mod history;
mod durable;

pub use barrier::{Arrivals, BARRIER_MEMBERS};
pub use contract_net::{
    Award, AwardAnswer, CONTRACT_AWARDS, CONTRACT_BIDS, ContractOptions, ContractOutcome,
    ContractResult, ContractStep,
};
pub use durable::{DURABLE_SUBSCRIBERS, DurableItem, DurableStatus, DurableSubscription};
pub use error::BusError;
pub use event_bus::{BusStatus, EventBus};
pub use gather::{GATHER_ANSWERS, GatheredAnswers};
pub use history::HistoryLimits;
pub use position::{EventPosition, StartAt};
pub use queue::{LiveItem, Overflow, QUEUE_CAPACITY, SUBSCRIPTION_PATTERNS, SubscriptionStatus};
pub use replies::OPEN_CONVERSATIONS;
pub use routes::{BUS_ROUTES, BUS_SUBSCRIPTIONS};
pub use subscription::Subscription;

/// The examples of the page about events, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/events.md")]
struct EventsPage;
