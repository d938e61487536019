//! A loop that uses every effect there is, for the crash matrix.
//!
//! It plans nothing and asks a model little: its stages are written down, so that each effect is
//! met in a known place, and what it does about an interrupted call is plain code.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{
    ExecutionResult, Limits, MemoryBuffer, Message, Observation, Origin, Perception, Plan, Purpose,
    SystemPart, Text, ToolCall,
};
use gyrus_kernel::{
    ApprovalCard, Branch, ChildOptions, CognitiveLoop, Delegation, ErasedLoop, LoopFactory,
    ModelQuestion, Run, Stop, ToolOffer,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::world::{APPEND, HOLD, LOOK, PUT, line, value};

/// The child's goal; scripts tell it from the parent's by this.
pub const CHILD_GOAL: &str = "the child's part";

/// Long enough that nothing real reaches it.
const FOREVER: Duration = Duration::from_secs(3_600);

/// Everything in four stages.
pub struct Workflow {
    memory: MemoryBuffer,
    state: Stage,
}

/// State that is kept between cycles.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Stage {
    done: u32,
    /// A number drawn in the first stage, to be the same for ever.
    drawn: u64,
}

/// The loops of gyrus, and this one as `workflow`.
pub fn factory() -> LoopFactory {
    let usual = gyrus_loops::factory();
    Arc::new(move |name, config| match name {
        "workflow" => Ok(Box::new(Workflow::new()) as Box<dyn ErasedLoop>),
        _ => usual(name, config),
    })
}

impl Workflow {
    fn new() -> Self {
        Self {
            memory: MemoryBuffer::new(50),
            state: Stage::default(),
        }
    }

    async fn readings_and_branches(&mut self, run: &mut Run) -> Result<(), Stop> {
        let at = run.now()?;
        self.state.drawn = run.random()?;
        run.note(
            "workflow.readings",
            1,
            &json!({"at": at, "drawn": self.state.drawn}),
        )?;
        run.call(&ToolCall::new(PUT, value("drawn", "yes"))).await?;
        let branches: Vec<Branch<'_, usize>> = vec![
            Box::new(|run| Box::pin(async move { append(run, "left").await.map(|()| 1) })),
            Box::new(|run| {
                Box::pin(async move {
                    append(run, "right").await?;
                    run.note("workflow.branch", 1, "right")?;
                    Ok(2)
                })
            }),
        ];
        assert_eq!(run.branches(branches).await?, [1, 2]);
        Ok(())
    }

    async fn races(&mut self, run: &mut Run) -> Result<(), Stop> {
        let branches: Vec<Branch<'_, &str>> = vec![
            Box::new(|run| {
                Box::pin(async move {
                    hold(run, "never").await?;
                    Ok("hold")
                })
            }),
            Box::new(|run| {
                Box::pin(async move {
                    run.call(&ToolCall::new(PUT, value("race", "won"))).await?;
                    Ok("put")
                })
            }),
        ];
        let (winner, won) = run.race(branches).await?;
        run.note("workflow.race", 1, &json!({"winner": winner, "won": won}))?;
        let in_time: Branch<'_, ()> = Box::new(|run| {
            Box::pin(async move {
                run.call(&ToolCall::new(PUT, value("in time", "yes")))
                    .await?;
                Ok(())
            })
        });
        assert_eq!(run.timeout(FOREVER, in_time).await?, Some(()));
        let too_late: Branch<'_, ()> = Box::new(|run| {
            Box::pin(async move {
                hold(run, "too late").await?;
                Ok(())
            })
        });
        assert_eq!(run.timeout(Duration::from_millis(1), too_late).await?, None);
        Ok(())
    }

    async fn child(&mut self, run: &mut Run) -> Result<(), Stop> {
        let answer = run
            .delegate(Delegation {
                goal: CHILD_GOAL.to_owned(),
                cognitive_loop: "react".to_owned(),
                loop_config: json!({"strategy": "react"}),
                limits: Limits::default(),
                options: ChildOptions::default(),
            })
            .await?;
        self.memory.add_observation("child", &answer.answer.text);
        let reply = run
            .ask(ModelQuestion {
                purpose: Purpose::Plan,
                system: vec![SystemPart::cacheable("be brief")],
                lead: vec![Message::user(Text::new("what next?", Origin::Kernel))],
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

    async fn people(&mut self, run: &mut Run) -> Result<(), Stop> {
        let soon = run.now()?;
        run.sleep_until(soon).await?;
        assert!(run.wait("never", Some(soon)).await?.is_none());
        let answer = run.approve(card()).await?;
        run.note("workflow.answer", 1, &json!({"approved": answer.approved}))?;
        append(run, "the end").await
    }
}

/// Returns the question of the workflow to a person.
pub fn card() -> ApprovalCard {
    ApprovalCard {
        sentence: "May it end?".to_owned(),
        ..ApprovalCard::default()
    }
}

/// Appends a line; after an interruption only if a look does not show it.
async fn append(run: &mut Run, words: &str) -> Result<(), Stop> {
    while run
        .call(&ToolCall::new(APPEND, line(words)))
        .await?
        .is_error
    {
        let shown = run.call(&ToolCall::new(LOOK, json!({}))).await?;
        if shows(&shown, words) {
            break;
        }
    }
    Ok(())
}

/// Holds on until it is cut off, and again after every interruption.
async fn hold(run: &mut Run, words: &str) -> Result<(), Stop> {
    while run.call(&ToolCall::new(HOLD, line(words))).await?.is_error {}
    Ok(())
}

fn shows(seen: &Observation, words: &str) -> bool {
    seen.text.text.lines().any(|line| line == words)
}

impl CognitiveLoop for Workflow {
    type State = Stage;

    fn name(&self) -> &'static str {
        "workflow"
    }
    fn version(&self) -> u32 {
        1
    }
    fn state(&self) -> &Stage {
        &self.state
    }
    fn restore(&mut self, state: Stage) {
        self.state = state;
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
        let mut plan = Plan::with_goal("everything");
        if self.state.done >= 3 {
            plan.complete_with_answer("everything was used");
        }
        Ok(plan)
    }

    async fn act(&mut self, run: &mut Run, plan: &Plan) -> Result<ExecutionResult, Stop> {
        match self.state.done {
            0 => self.readings_and_branches(run).await?,
            1 => self.races(run).await?,
            2 => self.child(run).await?,
            _ => self.people(run).await?,
        }
        self.state.done += 1;
        Ok(ExecutionResult {
            claim: plan.claim.clone(),
            ..ExecutionResult::default()
        })
    }
}
