//! The behaviour of an agent: what it makes of an event.

use std::{any::Any, collections::BTreeMap, future::Future, pin::Pin, sync::Arc};

use gyrus_contract::{Text, ToolCall};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::runs::AgentRuns;
use crate::{Event, Topic, request::ContextText};

/// Maximum size of an agent's state as JSON, in bytes.
pub const MAX_STATE: usize = 1 << 20;

/// Maximum number of actions for one event.
pub const MAX_ACTIONS: usize = 100;

/// The state of an agent, which survives its process: values by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentState(BTreeMap<String, Value>);

impl AgentState {
    /// Returns a value; `None` if there is none of this name and type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.0.get(name)?.clone()).ok()
    }

    /// Sets the value of this name.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), BehaviorError> {
        let value = serde_json::to_value(value)
            .map_err(|error| BehaviorError(format!("`{name}` is not JSON: {error}")))?;
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// Removes the value of this name.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

/// An action that a behaviour requests. It is carried out once the event is recorded as handled,
/// and is not lost if the process ends in between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum AgentAction {
    /// Publishes a durable event.
    Publish { topic: Topic, payload: Value },
    /// Replies to the event, if its publisher waits for a reply.
    Reply { payload: Value },
    /// Calls tools, in this order, each through the gate. Their results arrive as an event
    /// `agent.NAME.called`.
    Call { calls: Vec<ToolCall> },
    /// Starts a run in which the agent's loop pursues a goal. Its end arrives as an event
    /// `agent.NAME.reached` or `agent.NAME.failed`, and as the reply.
    Run {
        goal: Text,
        /// Text with which the run starts; the payload of an event is data, and stands here.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<ContextText>,
    },
}

/// The reason why a behaviour could not handle an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BehaviorError(pub String);

/// The way in which an agent turns events into actions. It needs no model: a model is one way to decide on actions.
pub trait AgentBehavior: Send + 'static {
    /// Handles an event: changes the state, and returns what is to be done. It should do nothing
    /// else, for it is called again if the process ends before the event is recorded as handled.
    fn on_event(
        &mut self,
        event: Event,
        state: &mut AgentState,
    ) -> impl Future<Output = Result<Vec<AgentAction>, BehaviorError>> + Send;

    /// Returns the runs of an agent with a loop of its own. `host` is the creator of the agent; by
    /// default, it also drives the runs.
    fn runs_in(&self, host: &dyn Any) -> Option<Arc<dyn AgentRuns>> {
        let _ = host;
        None
    }
}

/// A behaviour behind a pointer.
pub(super) trait ErasedBehavior: Send {
    fn on_event<'a>(
        &'a mut self,
        event: Event,
        state: &'a mut AgentState,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<AgentAction>, BehaviorError>> + Send + 'a>>;
}

impl<B: AgentBehavior> ErasedBehavior for B {
    fn on_event<'a>(
        &'a mut self,
        event: Event,
        state: &'a mut AgentState,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<AgentAction>, BehaviorError>> + Send + 'a>> {
        Box::pin(AgentBehavior::on_event(self, event, state))
    }
}
