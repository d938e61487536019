//! The loop of the old journal, as it was and as it became.

use std::sync::Arc;

use gyrus_conformance::world::{APPEND, LOOK, PUT, line, value};
use gyrus_contract::{
    Claim, ExecutionResult, MemoryBuffer, Message, Observation, Origin, Perception, Plan, Purpose,
    SystemPart, Text, ToolCall,
};
use gyrus_kernel::{CognitiveLoop, ErasedLoop, LoopFactory, ModelQuestion, Run, Stop, ToolOffer};
use gyrus_loops::{CognitiveConfig, React, ReactState};
use serde_json::{Value, json};

/// The code that there is today.
#[derive(Clone, Copy)]
pub(crate) enum Today {
    /// The code that wrote the journal.
    Same,
    /// The same steps with other state, which knows the way from the old one.
    Migrates,
    /// The same state, but other steps.
    Differs,
    /// Another loop under the same name, which can do nothing with the old state.
    Rewritten,
}

pub(crate) fn loops(today: Today) -> LoopFactory {
    Arc::new(move |name, _| {
        assert_eq!(name, "ledger");
        Ok(match today {
            Today::Rewritten => Box::new(Second {
                react: React::new(CognitiveConfig::react()),
            }) as Box<dyn ErasedLoop>,
            _ => Box::new(First {
                today,
                memory: MemoryBuffer::new(50),
                state: json!({ "done": 0 }),
            }),
        })
    })
}

/// Three cycles: one value; a question, another value and a line; the end.
struct First {
    today: Today,
    memory: MemoryBuffer,
    state: Value,
}

impl First {
    fn field(&self) -> &'static str {
        if CognitiveLoop::version(self) == 1 {
            "done"
        } else {
            "cycles_done"
        }
    }

    async fn ask(&mut self, run: &mut Run) -> Result<(), Stop> {
        // Prompts may be edited while a run is parked: version 2 asks in other words.
        let words = format!("Which line? (version {})", CognitiveLoop::version(self));
        let reply = run
            .ask(ModelQuestion {
                purpose: Purpose::Agent,
                system: vec![SystemPart::cacheable(words)],
                lead: vec![Message::user(Text::new("Say it.", Origin::Kernel))],
                lead_at: 0,
                memory: Some(&self.memory),
                tail: Vec::new(),
                tools: ToolOffer::Withheld,
                output_schema: None,
                max_output_tokens: 100,
            })
            .await?;
        self.memory.add_reply(&reply);
        Ok(())
    }
}

impl CognitiveLoop for First {
    type State = Value;

    fn name(&self) -> &'static str {
        "ledger"
    }
    fn version(&self) -> u32 {
        match self.today {
            Today::Same => 1,
            Today::Migrates | Today::Differs | Today::Rewritten => 2,
        }
    }
    fn state(&self) -> &Value {
        &self.state
    }
    fn restore(&mut self, state: Value) {
        self.state = state;
    }
    fn migrate(&self, from_version: u32, state: Value) -> Result<Value, String> {
        assert_eq!(from_version, 1);
        Ok(json!({ "cycles_done": state["done"] }))
    }
    fn memory_buffer(&self) -> &MemoryBuffer {
        &self.memory
    }
    fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer {
        &mut self.memory
    }
    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        Ok(run.perception())
    }
    async fn think(&mut self, _run: &mut Run, _seen: &Perception) -> Result<Plan, Stop> {
        Ok(Plan::default())
    }
    async fn act(&mut self, run: &mut Run, _plan: &Plan) -> Result<ExecutionResult, Stop> {
        let done = self.state[self.field()].as_u64().unwrap_or_default();
        let mut result = ExecutionResult::default();
        match done {
            0 => {
                run.call(&ToolCall::new(PUT, value("one", "1"))).await?;
            }
            1 => {
                self.ask(run).await?;
                if matches!(self.today, Today::Differs) {
                    run.call(&ToolCall::new(LOOK, json!({}))).await?;
                }
                run.call(&ToolCall::new(PUT, value("two", "2"))).await?;
                append(run).await?;
            }
            _ => {
                result.claim = Some(Claim {
                    reached: true,
                    answer: "the ledger is complete".to_owned(),
                    evidence: Vec::new(),
                    shortfalls: Vec::new(),
                });
            }
        }
        self.state = json!({ self.field(): done + 1 });
        Ok(result)
    }
}

async fn append(run: &mut Run) -> Result<(), Stop> {
    while run
        .call(&ToolCall::new(APPEND, line("three")))
        .await?
        .is_error
    {
        let shown: Observation = run.call(&ToolCall::new(LOOK, json!({}))).await?;
        if shown.text.text.lines().any(|shown| shown == "three") {
            break;
        }
    }
    Ok(())
}

/// ReAct under the old name.
struct Second {
    react: React,
}

impl CognitiveLoop for Second {
    type State = ReactState;

    fn name(&self) -> &'static str {
        "ledger"
    }
    fn version(&self) -> u32 {
        2
    }
    fn state(&self) -> &ReactState {
        self.react.state()
    }
    fn restore(&mut self, state: ReactState) {
        self.react.restore(state);
    }
    fn memory_buffer(&self) -> &MemoryBuffer {
        self.react.memory_buffer()
    }
    fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer {
        self.react.memory_buffer_mut()
    }
    async fn perceive(&mut self, run: &mut Run) -> Result<Perception, Stop> {
        self.react.perceive(run).await
    }
    async fn think(&mut self, run: &mut Run, seen: &Perception) -> Result<Plan, Stop> {
        self.react.think(run, seen).await
    }
    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        self.react.act(run, plan).await
    }
}
