//! A loop of your own program: `GYRUS_MODEL=anthropic cargo run --example embed`.

#![expect(clippy::print_stdout, reason = "an example speaks to a person")]

use std::sync::Arc;

use gyrus::{
    AgentRuntime, CognitiveConfig, LlmClient, SimpleCognitiveLoop, ToolRegistry, kernel::summary,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    gyrus::init(); // First of all: commands are started and confined by copies of this program.
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let config = CognitiveConfig::react()
        .with_system_prompt("You are a helpful assistant")
        .with_max_iterations(5)
        .with_reflection();
    let llm = Arc::new(LlmClient::from_env()?);
    let tools = Arc::new(ToolRegistry::builtin());
    let agent = SimpleCognitiveLoop::new(config, llm, tools);

    let runtime = AgentRuntime::open(".gyrus-state", "notes")?;
    let finished = runtime.run(&agent, "How many notes are here?").await?;
    println!("{}", summary(&finished.ending));
    println!("{}", finished.answer().unwrap_or_default());
    Ok(())
}
