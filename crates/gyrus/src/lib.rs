//! gyrus as a library: an agent runtime you can trust with a computer.
//!
//! A [`SimpleCognitiveLoop`] perceives, thinks and acts; an [`AgentRuntime`] drives it as a run
//! whose every step is an entry of a journal, behind a gate and in a sandbox.
//!
//! `examples/embed.rs` is the smallest program. What a loop is made of can be used alone:
//!
//! ```
//! use gyrus::{CognitiveConfig, MemoryBuffer, Plan, ThinkingStrategy, ThoughtStep, ToolCall};
//! use serde_json::json;
//!
//! let config = CognitiveConfig::react()
//!     .with_system_prompt("You are a helpful assistant")
//!     .with_max_iterations(10)
//!     .with_reflection()
//!     .with_memory_window(50);
//! assert_eq!(config.strategy, ThinkingStrategy::React);
//!
//! let mut buffer = MemoryBuffer::new(50);
//! buffer.add_user_message("Hello");
//! buffer.add_agent_response("Hi there!");
//! buffer.add_observation("weather", "Sunny, 72°F");
//! assert_eq!(buffer.recent(5).count(), 3);
//! assert!(buffer.to_context_string().contains("72°F"));
//!
//! let mut plan = Plan::with_goal("analyze-task".to_string());
//! plan.add_step(ThoughtStep::reasoning(1, "User wants data analysis"));
//! let tool_call = ToolCall::new("sql_query", json!({"query": "SELECT * FROM data"}));
//! plan.add_step(ThoughtStep::with_tool(2, "Query the database", tool_call));
//! plan.complete_with_answer("Here are the results...");
//! assert_eq!(plan.tool_calls().count(), 1);
//! ```
//!
//! A loop of your own implements [`CognitiveLoop`]; a tool of your own implements [`TypedTool`] (or
//! [`Tool`]) and joins the [`ToolRegistry`]; a provider of your own implements
//! [`contract::Model`].

pub mod runtime;

/// The version of this build, with the commit of a released one: `0.1.0+20261129084500.1a2b3c4d`.
pub const BUILD: &str = env!("GYRUS_BUILD");

#[doc(no_inline)]
pub use gyrus_contract as contract;
pub use gyrus_journal as journal;
pub use gyrus_kernel as kernel;
pub use gyrus_loops as loops;
pub use gyrus_models as models;
pub use gyrus_runtime as agents;
pub use gyrus_tools as tools;

pub use gyrus_contract::{
    ExecutionResult, MemoryBuffer, Mode, OnAsk, Perception, Plan, RunId, ThoughtStep, Tool,
    ToolCall, TypedTool,
};
pub use gyrus_kernel::{CognitiveLoop, Ending, Finished, Run};
pub use gyrus_loops::{CognitiveConfig, Strategy as ThinkingStrategy};
pub use gyrus_runtime::{
    Event, EventBus,
    agents::{AgentAction, AgentBehavior, AgentConfig, AgentState, BehaviorError},
};
pub use gyrus_tools::Registry as ToolRegistry;
pub use runtime::{
    AgentContext, AgentRuntime, CognitiveAgent, LlmClient, RuntimeError, SimpleCognitiveLoop, init,
};
