//! The description that each loop gives of itself, in its own file.

use gyrus_kernel::ErasedLoop;

use crate::CognitiveConfig;

/// Default maximum number of cycles of a loop without an end of its own. It is far above what goals
/// take, and a run that reached it can be resumed.
pub(crate) const MOST_STEPS: u64 = 200;

/// A kind of loop, as its own file describes it.
#[derive(Debug)]
pub struct LoopKind {
    /// The name of the loop, as in `--loop` and the journal.
    pub name: &'static str,
    /// The prompts of the loop, beside those of verification.
    pub(crate) prompts: &'static [&'static str],
    /// Default maximum number of cycles; `None` is without limit.
    pub(crate) max_iterations: Option<u64>,
    /// Default maximum length of a reply in tokens.
    pub(crate) max_output_tokens: u64,
    /// Creates the loop; the error is a sentence.
    pub(crate) build: fn(CognitiveConfig) -> Result<Box<dyn ErasedLoop>, String>,
}

/// Implements the common methods of `CognitiveLoop` for a loop with fields for its state and
/// `memory`.
macro_rules! keeps {
    ($name:expr, $field:ident: $state:ty) => {
        type State = $state;

        fn name(&self) -> &'static str {
            $name
        }

        fn state(&self) -> &$state {
            &self.$field
        }

        fn restore(&mut self, state: $state) {
            self.$field = state;
        }

        fn memory_buffer(&self) -> &MemoryBuffer {
            &self.memory
        }

        fn memory_buffer_mut(&mut self) -> &mut MemoryBuffer {
            &mut self.memory
        }
    };
}
pub(crate) use keeps;
