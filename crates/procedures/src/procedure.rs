//! The data of a procedure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Anchor, Slot, Template};

/// A way to do one kind of task, learned from one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedure {
    /// The name: lower-case words with hyphens, from the command's fixed words.
    pub name: String,
    /// The command that it answers to.
    pub command: Template,
    /// The slots of the command, in order.
    pub slots: Vec<Slot>,
    /// The only place where it may be replayed.
    pub place: LearnedPlace,
    /// The actions, in order.
    pub steps: Vec<ProcedureStep>,
    /// Conditions that must hold at the end.
    pub ends: Vec<Expectation>,
    /// Checks of the run that it was learned from, as they are typed after `--check`; they are made
    /// after every replay too.
    pub checks: Vec<String>,
    /// The answer of the run, with slots.
    pub answer: Template,
}

/// The place of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LearnedPlace {
    /// A web site.
    Site {
        /// Scheme, host and port: `https://shop.example`.
        origin: String,
        /// The whole address that the learned run began at.
        start: String,
    },
    /// Tools other than those of a screen, in a folder.
    Folder {
        /// The absolute path of the workspace.
        workspace: String,
    },
}

/// An action of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcedureStep {
    /// The tool.
    pub tool: String,
    /// Its arguments, with the learned values. An argument that names an element of the screen is
    /// left out and described by `targets`.
    pub arguments: Value,
    /// The string arguments that hold slots, as JSON pointers (`/text`), with their templates.
    #[serde(default)]
    pub texts: Vec<(String, Template)>,
    /// The element that the action touches, if it touches one: the argument's name (`on`, `from`,
    /// `to`) with its anchor.
    pub targets: Vec<(String, Anchor)>,
    /// Conditions on the page before the action.
    pub before: Vec<Expectation>,
    /// Conditions that must hold after it.
    pub after: Vec<Expectation>,
    /// Whether the action binds somebody: it sends, orders, pays, deletes. At most one attempt is
    /// ever made, and an unknown outcome stops the run.
    pub commits: bool,
    /// The longest time in milliseconds until the learned run saw what it needed for this action.
    pub waited_ms: u64,
}

/// A condition on a page or on a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "that", rename_all = "snake_case")]
pub enum Expectation {
    /// The page's address, relative to the folder of the start address (`../` is not written: an
    /// address outside is whole), has this form. Slots stand for their value as such addresses
    /// write it: lower case with hyphens, or percent-encoded.
    Address {
        /// The form.
        is: Template,
    },
    /// The page shows this text, as an element's name or value, or inside one.
    Shows {
        /// The text.
        text: Template,
    },
    /// The one element of an anchor has this value.
    Value {
        /// The element.
        of: Box<Anchor>,
        /// The value.
        is: Template,
    },
    /// The amounts of money that the page shows are those of the learned run, wherever the slots
    /// that choose what is shown have the learned values.
    Amounts {
        /// The amounts, as the page writes them, in reading order.
        shown: Vec<String>,
    },
    /// The result of a tool contains this text.
    Says {
        /// The text.
        text: Template,
    },
}
