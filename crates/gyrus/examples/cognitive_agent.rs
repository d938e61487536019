//! Two agents that live: a program that watches, and a loop that thinks. Started again after any
//! end, they go on where they were: `GYRUS_MODEL=anthropic cargo run --example cognitive_agent`.

#![expect(clippy::print_stdout, reason = "an example speaks to a person")]

use std::{sync::Arc, time::Duration};

use gyrus::{
    AgentAction, AgentBehavior, AgentConfig, AgentContext, AgentRuntime, AgentState, BehaviorError,
    CognitiveAgent, CognitiveConfig, Event, LlmClient, SimpleCognitiveLoop, ToolCall, ToolRegistry,
    contract::Origin,
};
use serde_json::json;

/// Keeps a list of the answers. It needs no model; what it does passes the gate like anything else.
struct Secretary;

impl AgentBehavior for Secretary {
    async fn on_event(
        &mut self,
        event: Event,
        state: &mut AgentState,
    ) -> Result<Vec<AgentAction>, BehaviorError> {
        let count = state.get::<u64>("answers").unwrap_or(0) + 1;
        state.set("answers", &count)?;
        let answer = event.payload["answer"].as_str().unwrap_or_default();
        let arguments = json!({"path": format!("answer-{count}.txt"), "content": answer});
        Ok(vec![AgentAction::Call {
            calls: vec![ToolCall::new("write", arguments)],
        }])
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gyrus::init(); // First of all: commands are started and confined by copies of this program.
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    // 1. Create the configuration.
    let config = CognitiveConfig::react()
        .with_system_prompt("You are a helpful assistant")
        .with_max_iterations(5)
        .with_reflection();

    // 2. Create the loop with its models and tools.
    let llm = Arc::new(LlmClient::from_env()?);
    let tools = Arc::new(ToolRegistry::builtin());
    let loop_impl = SimpleCognitiveLoop::new(config, llm, tools)
        .with_context(AgentContext::with_defaults("session-1", "agent-1"));

    // 3. Wrap it, so that it is an agent like any other.
    let agent = CognitiveAgent::new(loop_impl);

    // 4. Create the agents, on a runtime whose state outlives this process.
    let runtime = AgentRuntime::open(".gyrus-state", "notes")?;
    let secretary =
        AgentConfig::new("secretary").with_subscription("agent.counter.reached".parse()?);
    runtime
        .create_agent(AgentConfig::new("counter"), Box::new(agent))
        .await?;
    runtime.create_agent(secretary, Box::new(Secretary)).await?;

    // 5. Ask, and hear the answer.
    let topic = "agent.secretary.called".parse()?;
    let bus = runtime.bus().await?;
    let mut heard = bus.subscribe("example", &[topic], 10, gyrus::agents::Overflow::Wait)?;
    let question = json!("How many notes are here?");
    let topic = "agent.counter.inbox".parse()?;
    runtime
        .publish(Event::new(topic, "example", Origin::Person, question))
        .await?;
    let called = tokio::time::timeout(Duration::from_secs(600), heard.recv()).await?;
    println!("{}", std::fs::read_to_string("notes/answer-1.txt")?);
    drop(called);
    Ok(())
}
