//! gyrus as a library: an agent runtime you can trust with a computer.
//!
//! A [`SimpleCognitiveLoop`] perceives, thinks and acts; an [`AgentRuntime`] drives it as a run
//! whose every step is an entry of a journal, behind a gate and in a sandbox.
//!
//! `examples/embed.rs` is the smallest program, `examples/cognitive_agent.rs` one with agents that
//! live. What a loop is made of can be used alone: [`cognitive`].
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

pub use cognitive::{
    AgentAction, AgentBehavior, AgentConfig, AgentRuntime, AgentState, BehaviorError,
    CognitiveAgent, CognitiveConfig, CognitiveLoop, Event, EventBus, ExecutionResult, LlmClient,
    MemoryBuffer, Perception, Plan, SimpleCognitiveLoop, ThinkingStrategy, ThoughtStep, ToolCall,
};
pub use context::AgentContext;
pub use gyrus_contract::{Mode, OnAsk, RunId, Tool, TypedTool};
pub use gyrus_kernel::{DriveResult, Ending, Run};
pub use gyrus_tools::ToolRegistry;
pub use runtime::{RuntimeError, init};

/// The cognitive runtime: a loop perceives, thinks, acts and reflects; an agent lives and has one.
///
/// ```
/// use gyrus::cognitive::{CognitiveConfig, MemoryBuffer, Plan, ThinkingStrategy, ThoughtStep, ToolCall};
/// use serde_json::json;
///
/// let config = CognitiveConfig::react()
///     .with_system_prompt("You are a helpful assistant")
///     .with_max_iterations(10)
///     .with_reflection()
///     .with_memory_window(50);
/// assert_eq!(config.strategy, ThinkingStrategy::ReAct);
///
/// let mut buffer = MemoryBuffer::new(50);
/// buffer.add_user_message("Hello");
/// buffer.add_agent_response("Hi there!");
/// buffer.add_observation("weather", "Sunny, 72°F");
/// assert_eq!(buffer.recent(5).count(), 3);
/// assert!(buffer.to_context_string().contains("72°F"));
///
/// let mut plan = Plan::with_goal("analyze-task".to_string());
/// plan.add_step(ThoughtStep::reasoning(1, "User wants data analysis"));
/// let tool_call = ToolCall::new("sql_query", json!({"query": "SELECT * FROM data"}));
/// plan.add_step(ThoughtStep::with_tool(2, "Query the database", tool_call));
/// plan.complete_with_answer("Here are the results...");
/// assert_eq!(plan.tool_calls().count(), 1);
/// ```
pub mod cognitive {
    pub use gyrus_contract::{
        Action, ExecutionResult, MemoryBuffer, Observation, Perception, Plan, StepKind,
        ThoughtStep, ToolCall,
    };
    pub use gyrus_kernel::CognitiveLoop;
    pub use gyrus_loops::{CognitiveConfig, ThinkingStrategy};
    /// An event is its own envelope: its correlation id names the thread that it belongs to.
    pub use gyrus_runtime::Event as Envelope;
    pub use gyrus_runtime::{
        Event, EventBus,
        agents::{AgentAction, AgentBehavior, AgentConfig, AgentState, BehaviorError},
    };

    pub use crate::runtime::{
        AgentLoop, AgentRuntime, CognitiveAgent, LlmClient, SimpleCognitiveLoop,
    };

    /// Clients of models, and the router that chooses among them by purpose and policy.
    pub mod llm {
        pub use gyrus_models::{ModelRouter, RoutingPolicy};

        pub use crate::runtime::LlmClient;
    }
}

/// The records of an agent over its runs, and the part of them that a new run is given.
pub mod context {
    pub use crate::runtime::{
        AgentContext, ContextLimits, ContextRecord, ContextWindow, RecordKind, TokenLedger,
    };
}
