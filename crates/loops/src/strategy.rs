//! The table of all loops: what each is called, what it asks models, and how it is built.
//!
//! A loop describes itself in its own file, as a [`LoopKind`]; adding one adds a name to
//! [`Strategy`] and a line to [`Strategy::kind`] and [`Strategy::ALL`].

use gyrus_contract::Digest;
use gyrus_kernel::ErasedLoop;
use serde::{Deserialize, Serialize};

use crate::{
    CognitiveConfig, chain_of_thought, changeset, engineer, plan, react, reactive, single_shot,
    verification,
};

/// The strategy of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Answers one question, without tools.
    SingleShot,
    /// Thinks and acts in turns.
    React,
    /// Reasons in steps before the first action, then works as [`React`](Strategy::React).
    ChainOfThought,
    /// Looks and acts on a screen, without a conversation.
    Reactive,
    /// Makes a complete plan first, which a person may review, then executes its steps.
    Plan,
    /// Searches and plans, then works as [`React`](Strategy::React) until a judge accepts.
    Engineer,
    /// Chooses files, then proposes a changeset, both of which a person may review; then applies
    /// all of it or nothing.
    Changeset,
}

/// A kind of loop, as its own file describes it.
#[derive(Debug)]
pub struct LoopKind {
    /// Its name, as in `--loop` and the journal.
    pub name: &'static str,
    /// The texts that it sends to models, beside the one of verification.
    pub(crate) prompts: &'static [&'static str],
    /// The maximum number of cycles, unless a person says another; `None` is without limit.
    pub(crate) max_iterations: Option<u64>,
    /// The maximum length of a reply in tokens, unless a person says another.
    pub(crate) max_output_tokens: u64,
    /// Creates the loop; the error is a sentence.
    pub(crate) build: fn(CognitiveConfig) -> Result<Box<dyn ErasedLoop>, String>,
}

impl Strategy {
    /// All strategies, in the order in which they are named to a person.
    pub const ALL: [Strategy; 7] = [
        Strategy::React,
        Strategy::ChainOfThought,
        Strategy::SingleShot,
        Strategy::Plan,
        Strategy::Engineer,
        Strategy::Changeset,
        Strategy::Reactive,
    ];

    /// Returns the description of its loop.
    pub fn kind(self) -> &'static LoopKind {
        match self {
            Strategy::React => &react::KIND,
            Strategy::ChainOfThought => &chain_of_thought::KIND,
            Strategy::SingleShot => &single_shot::KIND,
            Strategy::Plan => &plan::KIND,
            Strategy::Engineer => &engineer::KIND,
            Strategy::Changeset => &changeset::KIND,
            Strategy::Reactive => &reactive::KIND,
        }
    }

    /// Returns the loop's name, as in `--loop` and the journal.
    pub fn loop_name(self) -> &'static str {
        self.kind().name
    }

    /// Returns the strategy of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.loop_name() == name)
    }

    /// Returns the names of all loops.
    pub fn names() -> [&'static str; 7] {
        Self::ALL.map(Self::loop_name)
    }
}

/// Returns the digest of all prompts of this crate: under other prompts a recorded question may
/// differ.
pub fn prompts() -> Digest {
    let own = Strategy::ALL.map(|strategy| strategy.kind().prompts);
    let all = own.concat().into_iter().chain([verification::VERIFY]);
    Digest::of_json(&all.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_and_the_command_line_name_a_loop_alike() {
        for strategy in Strategy::ALL {
            assert_eq!(
                serde_json::to_value(strategy).unwrap(),
                strategy.loop_name()
            );
            assert_eq!(Strategy::named(strategy.loop_name()), Some(strategy));
        }
    }
}
