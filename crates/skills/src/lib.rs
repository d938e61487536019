//! Skills: what a person, a project or gyrus itself has written down about how a kind of task is
//! done. A skill is a Markdown text; a goal that its triggers match loads it into the run.
//!
//! Two forms are read: a folder with a `SKILL.md`, as agentskills.io describes it, and a single
//! file with sections (`# SKILL: name`, `## Triggers`, `## Steps`, `## MaxIterations`).
//!
//! Reading order: `skill` (what a skill is), `folder_form` and `file_form` (its two forms),
//! `library` (where skills are found, and which of one name counts), `triggers` (which a goal
//! nominates), `choice` (which of those are loaded, and why).

mod skill;
mod folder_form;
mod file_form;
mod library;
mod triggers;
mod choice;

pub use choice::{SkillChoice, SkillChoices};
pub use library::{Library, Misread, Places, Shadowed};
pub use skill::{Skill, SkillPlace};
pub use triggers::{COMMON_GOALS, TriggerMatch, TriggerSet, check_trigger};
