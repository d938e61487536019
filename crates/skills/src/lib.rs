//! Skills: what a person, a project or gyrus itself has written down about how a kind of task is
//! done. A skill is a Markdown text; a goal that its triggers match loads it into the run.
//!
//! Two forms are read: a folder with a `SKILL.md`, as agentskills.io describes it, and a single
//! file with sections (`# SKILL: name`, `## Triggers`, `## Steps`, `## MaxIterations`).
//!
//! Reading order: `skill` (what a skill is), `folder_form` and `file_form` (its two forms),
//! `permissions` (what it asks for), `library` (where skills are found, and which of one name
//! counts), `triggers` (which a goal nominates), `choice` (in which order, and why); then `files`
//! (all that belongs to a skill, read once), `package` (what can be installed) and `scan` (what is
//! looked for before that).

mod files;
mod skill;
mod folder_form;
mod file_form;
mod permissions;
mod library;
mod triggers;
mod choice;
mod package;
mod scan;

pub use choice::SkillChoice;
pub use files::{SKILL_FILE, SkillFile, SkillFiles, SkillFilesError};
pub use library::{Library, Misread, ShadowedSkill, SkillFolders};
pub use package::{
    Package, PackageError, PackagedSkill, manifest_path, manifest_places, packaged_skills,
    plugin_name, read_package,
};
pub use permissions::{GrantableRight, SkillPermission};
pub use scan::{ScanFinding, Severity, looks_like, scan};
pub use skill::{Skill, SkillPlace, is_name};
pub use triggers::{COMMON_GOALS, TriggerMatch, TriggerSet, check_trigger};
