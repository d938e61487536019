//! The table of all loops: what each is called, what it asks models, and how it is built.
//!
//! A loop describes itself in its own file, as a [`LoopKind`]; adding one adds a name to
//! [`ThinkingStrategy`], and here a line to [`ThinkingStrategy::kind`] and [`ThinkingStrategy::ALL`].

use gyrus_contract::Digest;
use gyrus_procedures::{Procedure, SlotValues};

use crate::{
    CognitiveConfig, Judge, LoopKind, Replays, ThinkingStrategy, chain_of_thought, changeset,
    engineer, plan, procedure, react, reactive, single_shot, verification,
};

impl ThinkingStrategy {
    /// All strategies that a person may choose, in the order of their listing.
    /// [`ThinkingStrategy::Procedure`] needs a procedure, and is chosen if one matches the command.
    pub const ALL: [ThinkingStrategy; 7] = [
        ThinkingStrategy::ReAct,
        ThinkingStrategy::ChainOfThought,
        ThinkingStrategy::SingleShot,
        ThinkingStrategy::Plan,
        ThinkingStrategy::Engineer,
        ThinkingStrategy::Changeset,
        ThinkingStrategy::Reactive,
    ];

    /// Returns the description of the strategy's loop.
    pub fn kind(self) -> &'static LoopKind {
        match self {
            ThinkingStrategy::ReAct => &react::KIND,
            ThinkingStrategy::ChainOfThought => &chain_of_thought::KIND,
            ThinkingStrategy::SingleShot => &single_shot::KIND,
            ThinkingStrategy::Plan => &plan::KIND,
            ThinkingStrategy::Engineer => &engineer::KIND,
            ThinkingStrategy::Changeset => &changeset::KIND,
            ThinkingStrategy::Reactive => &reactive::KIND,
            ThinkingStrategy::Procedure => &procedure::KIND,
        }
    }

    /// Whether the loop looks for the folder's guidelines itself, among the files that a person
    /// approves. Every other run is given them with its goal.
    pub fn finds_guidelines(self) -> bool {
        self == Self::Changeset
    }

    /// Returns the loop's name, as in `--loop` and the journal.
    pub fn loop_name(self) -> &'static str {
        self.kind().name
    }

    /// Returns the strategy of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .chain([Self::Procedure])
            .find(|strategy| strategy.loop_name() == name)
    }

    /// Returns the names of all loops.
    pub fn names() -> [&'static str; 7] {
        Self::ALL.map(Self::loop_name)
    }
}

impl CognitiveConfig {
    /// Creates the configuration with which a loop of this strategy begins. The engineer's needs
    /// a [`judge`](Self::judge) as well.
    pub fn of(strategy: ThinkingStrategy) -> Self {
        let kind = strategy.kind();
        Self::plain(strategy, kind.max_iterations, kind.max_output_tokens)
    }

    /// Creates the configuration of a loop that answers one question, without tools.
    pub fn single_shot() -> Self {
        Self::of(ThinkingStrategy::SingleShot)
    }

    /// Creates the configuration of a loop that thinks and acts in turns.
    pub fn react() -> Self {
        Self::of(ThinkingStrategy::ReAct)
    }

    /// Creates the configuration of a loop that reasons in steps before acting.
    pub fn chain_of_thought() -> Self {
        Self::of(ThinkingStrategy::ChainOfThought)
    }

    /// Creates the configuration of a loop that works on a screen.
    pub fn reactive() -> Self {
        Self::of(ThinkingStrategy::Reactive)
    }

    /// Creates the configuration of a loop that replays a procedure with these values.
    pub fn procedure(procedure: Procedure, values: SlotValues) -> Self {
        Self {
            replays: Some(Box::new(Replays { procedure, values })),
            ..Self::of(ThinkingStrategy::Procedure)
        }
    }

    /// Creates the configuration of a loop that makes a complete plan and executes its steps.
    pub fn plan() -> Self {
        Self::of(ThinkingStrategy::Plan)
    }

    /// Creates the configuration of a loop that searches and plans, then works until the judge
    /// accepts; at most 100 cycles by default.
    pub fn engineer(judge: Judge) -> Self {
        Self {
            judge: Some(judge),
            ..Self::of(ThinkingStrategy::Engineer)
        }
    }

    /// Creates the configuration of a loop that selects files and proposes a changeset, which is
    /// applied as a whole or not at all; at most 100 cycles and no reviews by default.
    pub fn changeset() -> Self {
        Self::of(ThinkingStrategy::Changeset)
    }
}

/// Returns the digest of this crate's prompts: under others a recorded question may differ.
pub fn prompts() -> Digest {
    let own = ThinkingStrategy::ALL.map(|strategy| strategy.kind().prompts);
    let all = own
        .concat()
        .into_iter()
        .chain([verification::VERIFY, verification::lesson::PROMPT]);
    Digest::of_json(&all.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_and_the_command_line_name_a_loop_alike() {
        for strategy in ThinkingStrategy::ALL
            .into_iter()
            .chain([ThinkingStrategy::Procedure])
        {
            assert_eq!(
                serde_json::to_value(strategy).unwrap(),
                strategy.loop_name()
            );
            assert_eq!(
                ThinkingStrategy::named(strategy.loop_name()),
                Some(strategy)
            );
        }
    }
}
