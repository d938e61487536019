//! Flags for the models of a run.

use clap::Args;
use gyrus_contract::ThinkingEffort;

/// Flags for the models that a run asks. A run that goes on has those that it had.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ModelFlags {
    /// Model to ask: PROVIDER, PROVIDER:small|medium|large, PROVIDER/MODEL, http://HOST/v1#MODEL,
    /// or script:FILE for replies from a file; several, as A,B, are alternatives, best first
    #[arg(long = "model", value_name = "MODEL")]
    pub(crate) names: Vec<String>,
    /// Thinking before a reply: none, low, medium, high or max (default: as the model does)
    #[arg(long, value_name = "EFFORT", value_parser = effort)]
    pub(crate) effort: Option<ThinkingEffort>,
    /// Tools that it is offered: few (shell, read, edit, write, finish and those of servers) or all
    /// (default: few for a small model)
    #[arg(long, value_name = "WHICH")]
    pub(crate) tools: Option<OfferedTools>,
}

/// The tools that a model is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OfferedTools {
    /// Those that most work needs.
    Few,
    /// All of the run.
    All,
}

impl OfferedTools {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Few => "few",
            Self::All => "all",
        }
    }
}

impl ModelFlags {
    /// Returns flags that name these models only.
    pub(crate) fn named(names: Vec<String>) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }
}

/// Reads the word of an effort.
pub(crate) fn effort(word: &str) -> Result<ThinkingEffort, String> {
    let mut all = ThinkingEffort::ALL.into_iter();
    all.find(|effort| effort.word() == word)
        .ok_or_else(|| "write none, low, medium, high or max".to_owned())
}
