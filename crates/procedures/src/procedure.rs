//! The data of a procedure.

use gyrus_contract::ElementId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Anchor, Expectation, RecordedForm, Slot, SlotTemplate, address};

/// A way of doing one kind of task, learned from one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Procedure {
    /// The name: lower-case words with hyphens, from the command's fixed words.
    pub name: String,
    /// The command that the procedure answers to.
    pub command: SlotTemplate,
    /// The slots of the command, in order.
    pub slots: Vec<Slot>,
    /// The only place where the procedure may be replayed.
    pub place: LearnedPlace,
    /// The actions, in order.
    pub steps: Vec<ProcedureStep>,
    /// Conditions at the end.
    pub ends: Vec<Expectation>,
    /// Checks of the learned run, in the form for `--check`; they are also made after every replay.
    pub checks: Vec<String>,
    /// The answer of the run, with slots.
    pub answer: SlotTemplate,
}

/// The place of a procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LearnedPlace {
    /// A web site.
    Site {
        /// Scheme, host and port: `https://shop.example`.
        origin: String,
        /// The complete address at which the learned run began.
        start: String,
    },
    /// A desktop of the run's own.
    Desktop {
        /// The absolute path of the workspace, which its programs begin in.
        workspace: String,
    },
    /// Work with other tools than those of a screen, in a folder.
    Folder {
        /// The absolute path of the workspace.
        workspace: String,
    },
}

/// An action of a procedure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcedureStep {
    pub tool: String,
    /// The action's arguments, with the learned values. An argument that names an element of the
    /// screen is left out and described by `targets`.
    pub arguments: Value,
    /// The string arguments with slots, as JSON pointers (`/text`), with their templates.
    #[serde(default)]
    pub texts: Vec<(String, SlotTemplate)>,
    /// The elements that the action touches: each argument's name (`on`, `from`, `to`) with its
    /// anchor.
    pub targets: Vec<(String, Anchor)>,
    /// The address of the link that the action clicks, relative to the start. Slots after those of
    /// the command are ids that the application gave: they are found here, where a value of the
    /// command chose the link, and must stand in every address that has them afterwards.
    pub finds: Option<SlotTemplate>,
    /// Conditions on the page before the action.
    pub before: Vec<Expectation>,
    /// Conditions after the action.
    pub after: Vec<Expectation>,
    /// Whether the action binds somebody: it sends, orders, pays, deletes. At most one attempt is
    /// ever made, and an unknown outcome stops the run.
    pub commits: bool,
    /// The form that the action sends, which is compared once more at the press itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<RecordedForm>,
    /// Longest time in milliseconds that the learned run waited for the conditions of this action.
    pub waited_ms: u64,
}

impl ProcedureStep {
    /// Returns the ids in the address of the link that the action clicks.
    ///
    /// # Errors
    /// The link leads to an address of another form.
    pub fn found(
        &self,
        sight: &crate::ReplaySight<'_>,
        on: ElementId,
    ) -> Result<Vec<String>, String> {
        let Some(form) = &self.finds else {
            return Ok(Vec::new());
        };
        let mut elements = sight.view.elements.iter();
        let link = elements.find(|element| element.id == on);
        let to = link
            .and_then(|link| link.address.as_deref())
            .unwrap_or_default();
        let found = address::ids_in(&address::relative(to, sight.start), form, sight.values);
        found.ok_or_else(|| format!("expected a link of the form `{form}`, but it leads to `{to}`"))
    }

    /// Describes the action in a few words for people and models: `type_text into textbox “Name”`.
    pub fn in_words(&self, values: &crate::SlotValues) -> String {
        let mut words = self.tool.replace('_', " ");
        for (_, anchor) in &self.targets {
            words.push_str(&format!(" {}", anchor.in_words(values)));
        }
        for (_, text) in &self.texts {
            words.push_str(&format!(" “{}”", text.filled(values)));
        }
        words
    }
}
