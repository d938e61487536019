//! The document `003`, *Cognitive Runtime & Agent Pattern*: its snippets with nothing but the
//! crate's name changed, and loops of one's own in its runtime.

use std::{fs, sync::Arc};

use gyrus::{
    EventBus, Run,
    agents::{LiveItem, Overflow},
    cognitive::{
        Action, AgentConfig, AgentRuntime, CognitiveLoop, Envelope, ExecutionResult, LlmClient,
        MemoryBuffer, Perception, Plan, ThoughtStep, ToolCall,
    },
    contract::Origin,
    kernel::Stop,
    tools::ToolRegistry,
};
use serde_json::json;

use crate::support::{TIMEOUT, World};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Lists the folder, and finishes.
const LISTS: &str = r#"
[[reply]]
text = "I look."
calls = [{ tool = "list", arguments = { path = "." } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "There are two." } }]
[[reply]]
purpose = "reflect"
text = "Nothing went wrong."
"#;

fn runtime(world: &World) -> AgentRuntime {
    for note in ["a", "b"] {
        fs::write(world.work().join(note), note).unwrap();
    }
    AgentRuntime::open(world.path("state"), world.work()).unwrap()
}

fn scripted(world: &World) -> Arc<LlmClient> {
    let script = format!("script:{}", world.path("script.toml").display());
    Arc::new(LlmClient::named([&*script]))
}

/// Says something to an agent, and returns the event by which it tells the end of its run.
async fn told(bus: &EventBus, agent: &str, words: &str) -> Envelope {
    let pattern = format!("agent.{agent}.*").parse().unwrap();
    let mut heard = bus
        .subscribe("test", &[pattern], 16, Overflow::Wait)
        .unwrap();
    let inbox = format!("agent.{agent}.inbox").parse().unwrap();
    let mut said = Envelope::new(inbox, "test", Origin::Person, json!(words));
    said.correlation = Some("thread-1".to_owned());
    bus.publish_durable(said).await.unwrap();
    loop {
        let received = tokio::time::timeout(TIMEOUT, heard.recv()).await.unwrap();
        let Some(LiveItem::Event(event)) = received else {
            panic!("{received:?}")
        };
        if !event.topic.as_str().ends_with("inbox") {
            return (*event).clone();
        }
    }
}

#[tokio::test]
async fn the_usage_example_runs() -> Outcome {
    let world = World::new(LISTS);
    let runtime = runtime(&world);
    let (llm_client, tool_registry) = (scripted(&world), Arc::new(ToolRegistry::builtin()));
    let agent_config = AgentConfig::new("agent-1");

    // Beginning of the example.
    use gyrus::cognitive::{CognitiveAgent, CognitiveConfig, SimpleCognitiveLoop};
    use gyrus::context::AgentContext;

    // 1. Create configuration
    let config = CognitiveConfig::react()
        .with_system_prompt("You are a helpful assistant")
        .with_max_iterations(5)
        .with_reflection();

    // 2. Create cognitive loop with LLM and tools
    let loop_impl = SimpleCognitiveLoop::new(config, llm_client, tool_registry)
        .with_context(AgentContext::with_defaults("session-1", "agent-1"));

    // 3. Wrap in CognitiveAgent for AgentRuntime compatibility
    let agent = CognitiveAgent::new(loop_impl);

    // 4. Register with AgentRuntime
    runtime.create_agent(agent_config, Box::new(agent)).await?;
    // End of the example.

    let end = told(runtime.bus().await?, "agent-1", "How many notes are here?").await;
    assert_eq!(end.payload["answer"], "There are two.", "{end:?}");
    assert_eq!(end.correlation.as_deref(), Some("thread-1"));
    Ok(())
}

#[tokio::test]
async fn the_other_snippets_are_programs() -> Outcome {
    use gyrus::cognitive::{CognitiveConfig, SimpleCognitiveLoop, ThinkingStrategy};
    use gyrus::context::AgentContext;

    // Configuration
    let config = CognitiveConfig::react()
        .with_system_prompt("You are a helpful assistant")
        .with_max_iterations(10)
        .with_reflection()
        .with_memory_window(50);
    assert_eq!(config.strategy, ThinkingStrategy::ReAct);
    for other in [
        ThinkingStrategy::SingleShot,
        ThinkingStrategy::ChainOfThought,
    ] {
        assert_ne!(config.strategy, other);
    }

    // Memory Buffer
    let mut buffer = MemoryBuffer::new(50); // capacity
    buffer.add_user_message("Hello");
    buffer.add_agent_response("Hi there!");
    buffer.add_observation("weather", "Sunny, 72°F");
    let recent = buffer.recent(5);
    assert_eq!(recent.count(), 3);
    let context = buffer.to_context_string();
    assert!(context.contains("72°F"));
    assert_eq!(MemoryBuffer::new(0).capacity(), 1);

    // AgentContext Integration
    let world = World::new(LISTS);
    let llm = scripted(&world);
    let tools = Arc::new(ToolRegistry::new());
    let context = AgentContext::with_defaults("session-1", "agent-1");
    let loop_impl = SimpleCognitiveLoop::new(config, llm, tools).with_context(context); // Enables automatic context recording
    drop(loop_impl);

    // Thought & Planning
    let mut plan = Plan::with_goal("analyze-task".to_string());
    plan.add_step(ThoughtStep::reasoning(1, "User wants data analysis"));
    let tool_call = ToolCall::new("sql_query", json!({"query": "SELECT * FROM data"}));
    plan.add_step(ThoughtStep::with_tool(2, "Query the database", tool_call));
    plan.complete_with_answer("Here are the results...");
    assert_eq!(plan.tool_calls().count(), 1);
    Ok(())
}

/// A loop of one's own, which asks no model.
#[derive(Clone)]
struct Greeter {
    memory: MemoryBuffer,
    command: bool,
}

impl Greeter {
    fn new(command: bool) -> Self {
        let memory = MemoryBuffer::new(50);
        Self { memory, command }
    }
}

impl CognitiveLoop for Greeter {
    type State = ();

    fn name(&self) -> &'static str {
        "greeter"
    }

    fn state(&self) -> &() {
        &()
    }

    fn restore(&mut self, (): ()) {}

    fn memory_buffer(&self) -> &MemoryBuffer {
        &self.memory
    }

    fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer {
        &mut self.memory
    }

    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        Ok(run.perception())
    }

    async fn think(&mut self, _: &mut Run, perception: &Perception) -> Result<Plan, Stop> {
        let said = perception.event().map_or("", |event| &event.text);
        let call = if self.command {
            ToolCall::new("shell", json!({"command": "touch greeted"}))
        } else {
            ToolCall::new("write", json!({"path": "greeting.txt", "content": said}))
        };
        let mut plan = Plan::with_goal(said);
        plan.add_step(ThoughtStep::with_tool(
            1,
            "a greeting is written down",
            call,
        ));
        plan.complete_with_answer(format!("hello, {said}"));
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        let mut result = ExecutionResult {
            claim: plan.claim.clone(),
            ..ExecutionResult::default()
        };
        for call in plan.tool_calls() {
            let observation = run.call(call).await?;
            if observation.is_error {
                result.error = Some(observation.text.text.clone());
            }
            let call = call.clone();
            result.actions.push(Action { call, observation });
        }
        assert!(result.goal_achieved() && result.response().is_some());
        assert_eq!(result.clone().into_actions().len(), 1);
        Ok(result)
    }
}

#[tokio::test]
async fn a_loop_of_ones_own_runs_alone_and_as_an_agent() -> Outcome {
    use gyrus::cognitive::CognitiveAgent;

    let world = World::new("");
    let runtime = runtime(&world);
    let finished = runtime.run(&Greeter::new(false), "world").await?;
    assert_eq!(finished.answer(), Some("hello, world"));
    assert_eq!(world.file("greeting.txt"), "world");
    // Its steps stand beside its journal.
    let run = runtime
        .store()
        .folder(&gyrus_kernel::log_name(finished.run));
    let trace = crate::support::read(&run.join("agent_trace.jsonl"));
    assert!(
        trace.contains("\"step\":1") && trace.contains("greeting.txt"),
        "{trace}"
    );

    let agent = CognitiveAgent::new(Greeter::new(false));
    runtime
        .create_agent(AgentConfig::new("greeter"), Box::new(agent))
        .await?;
    let end = told(runtime.bus().await?, "greeter", "moon").await;
    assert_eq!(end.payload["answer"], "hello, moon", "{end:?}");
    assert_eq!(world.file("greeting.txt"), "moon");
    Ok(())
}

/// This program's `main` is the test harness's, which does not begin with `gyrus::init()`.
#[tokio::test]
async fn what_cannot_be_confined_is_not_started_and_says_why() -> Outcome {
    let world = World::new("");
    let finished = runtime(&world).run(&Greeter::new(true), "world").await?;
    let ending = format!("{:?}", finished.ending);
    assert!(ending.contains("gyrus::init()"), "{ending}");
    assert!(!world.work().join("greeted").exists());
    Ok(())
}
