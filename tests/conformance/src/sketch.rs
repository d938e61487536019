//! A loop that is one function, for tests that need a loop of their own.

use std::sync::Arc;

use gyrus_contract::{BoxedFuture, Claim, ExecutionResult, MemoryBuffer, Perception, Plan};
use gyrus_kernel::{CognitiveLoop, ErasedLoop, LoopFactory, Run, Stop};

/// One cycle: what it does with its run, and the answer that ends the run.
pub type Body = Arc<
    dyn for<'r> Fn(&'r mut Run) -> BoxedFuture<'r, Result<Option<&'static str>, Stop>>
        + Send
        + Sync,
>;

/// The loop's name in [`factory`].
pub const SKETCH: &str = "sketch";

struct Sketch {
    body: Body,
    memory: MemoryBuffer,
}

/// The usual loops, and `body` as [`SKETCH`].
pub fn factory(
    body: impl for<'r> Fn(&'r mut Run) -> BoxedFuture<'r, Result<Option<&'static str>, Stop>>
    + Send
    + Sync
    + 'static,
) -> LoopFactory {
    let body: Body = Arc::new(body);
    let usual = gyrus_loops::factory();
    Arc::new(move |name, config| match name {
        SKETCH => Ok(Box::new(Sketch {
            body: body.clone(),
            memory: MemoryBuffer::new(50),
        }) as Box<dyn ErasedLoop>),
        _ => usual(name, config),
    })
}

impl CognitiveLoop for Sketch {
    type State = ();

    fn name(&self) -> &'static str {
        SKETCH
    }
    fn version(&self) -> u32 {
        1
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

    async fn think(&mut self, _run: &mut Run, _seen: &Perception) -> Result<Plan, Stop> {
        Ok(Plan::default())
    }

    async fn act(&mut self, run: &mut Run, _plan: &Plan) -> Result<ExecutionResult, Stop> {
        let claim = (self.body)(run).await?.map(|answer| Claim {
            reached: true,
            answer: answer.to_owned(),
            evidence: Vec::new(),
            shortfalls: Vec::new(),
        });
        Ok(ExecutionResult {
            claim,
            ..ExecutionResult::default()
        })
    }
}
