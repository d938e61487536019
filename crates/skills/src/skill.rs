//! A skill.

use std::{fmt, path::PathBuf};

use gyrus_text::FileMistake;

use crate::{files::SkillFiles, permissions::SkillPermission};

/// Maximum length of a name in characters.
const MAX_NAME: usize = 64;

/// Maximum length of a description in characters.
const MAX_DESCRIPTION: usize = 1_024;

/// Maximum length of the instructions in bytes: they are part of every prompt.
const MAX_INSTRUCTIONS: usize = 24 << 10;

/// Maximum number of triggers of one skill.
const MAX_TRIGGERS: usize = 50;

/// Maximum number of steps that a skill may set as the budget of a run.
const MAX_STEPS: u64 = 10_000;

/// The kind of place in which a skill was found. Of one name the first of these counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillPlace {
    /// The person's own folder.
    User,
    /// A folder of the project, which the person trusts.
    Project,
    /// A package of this name, which the person installed.
    Installed(String),
    /// A part of gyrus itself.
    BuiltIn,
}

impl fmt::Display for SkillPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkillPlace::User => f.write_str("yours"),
            SkillPlace::Project => f.write_str("of this project"),
            SkillPlace::Installed(package) => write!(f, "installed with {package}"),
            SkillPlace::BuiltIn => f.write_str("built in"),
        }
    }
}

/// Instructions for a kind of task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name: 1 to 64 lower-case letters, digits and single hyphens.
    pub name: String,
    /// Description of the cases in which the skill helps.
    pub description: String,
    /// Text that explains how the task is done.
    pub instructions: String,
    /// Regular expressions that match the goals for the skill.
    pub triggers: Vec<String>,
    /// Maximum number of steps of a run that follows it.
    pub max_steps: Option<u64>,
    /// The tools and rights that the skill asks for, without effect by themselves.
    pub permissions: Vec<SkillPermission>,
    /// The place where the skill was found.
    pub place: SkillPlace,
    pub path: PathBuf,
    /// The hash of the file's content, in hexadecimal digits.
    pub digest: String,
}

/// Whether a text can be the name of a skill or plugin. Only ASCII letters can: no name looks like
/// another because of its script.
pub fn is_name(name: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=MAX_NAME).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// All parts are checked.
    Whole,
    /// Triggers are checked when a goal first matches them.
    WithoutTriggers,
}

/// The parsed but unchecked parts of a skill, each with its line.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: Option<(usize, String)>,
    pub(crate) description: Option<(usize, String)>,
    pub(crate) instructions: (usize, String),
    pub(crate) triggers: Vec<(usize, String)>,
    pub(crate) max_steps: Option<(usize, String)>,
    /// The words for tools and rights.
    pub(crate) permissions: String,
    pub(crate) mistakes: Vec<FileMistake>,
}

impl Draft {
    pub(crate) fn mistake(&mut self, line: usize, message: impl Into<String>) {
        self.mistakes.push(FileMistake {
            line,
            message: message.into(),
            nearest: None,
        });
    }

    /// Returns the skill, or every mistake.
    pub(crate) fn check(
        mut self,
        place: SkillPlace,
        path: PathBuf,
        text: &str,
        care: Care,
    ) -> Result<Skill, Vec<FileMistake>> {
        let name = self.checked_name();
        let description = self.checked_description();
        let max_steps = self.checked_steps();
        self.check_triggers(care);
        if self.instructions.1.trim().is_empty() {
            let line = self.instructions.0;
            self.mistake(line, "nothing says how the task is done");
        }
        if self.instructions.1.len() > MAX_INSTRUCTIONS {
            let message = format!(
                "the instructions are longer than {MAX_INSTRUCTIONS} bytes; put details into files beside them"
            );
            self.mistake(self.instructions.0, message);
        }
        if !self.mistakes.is_empty() {
            self.mistakes.sort_by_key(|mistake| mistake.line);
            return Err(self.mistakes);
        }
        Ok(Skill {
            name,
            description,
            instructions: self.instructions.1.trim().to_owned(),
            triggers: self.triggers.into_iter().map(|(_, one)| one).collect(),
            max_steps,
            permissions: SkillPermission::read(&self.permissions),
            place,
            path,
            digest: SkillFiles::digest_of_text(text.as_bytes()),
        })
    }

    fn checked_name(&mut self) -> String {
        let Some((line, name)) = self.name.clone() else {
            self.mistake(1, "`name` is missing");
            return String::new();
        };
        if !is_name(&name) {
            let message = format!(
                "invalid `name`: 1 to {MAX_NAME} lower-case letters, digits and single hyphens between them"
            );
            self.mistake(line, message);
        }
        name
    }

    fn checked_description(&mut self) -> String {
        let Some((line, description)) = self.description.clone() else {
            self.mistake(1, "`description` is missing: when does it help?");
            return String::new();
        };
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let length = description.chars().count();
        if !(1..=MAX_DESCRIPTION).contains(&length) {
            let message = format!("invalid `description`: 1 to {MAX_DESCRIPTION} characters");
            self.mistake(line, message);
        }
        description
    }

    fn checked_steps(&mut self) -> Option<u64> {
        let (line, given) = self.max_steps.clone()?;
        let steps = given
            .trim()
            .parse()
            .ok()
            .filter(|steps| (1..=MAX_STEPS).contains(steps));
        if steps.is_none() {
            self.mistake(line, format!("invalid number of steps: 1 to {MAX_STEPS}"));
        }
        steps
    }

    fn check_triggers(&mut self, care: Care) {
        if let Some((line, _)) = self.triggers.get(MAX_TRIGGERS) {
            let line = *line;
            self.mistake(line, format!("there are more than {MAX_TRIGGERS} triggers"));
        }
        for (line, trigger) in std::mem::take(&mut self.triggers) {
            if care == Care::Whole
                && let Err(message) = crate::triggers::check_trigger(&trigger)
            {
                self.mistake(line, message);
            }
            self.triggers.push((line, trigger));
        }
    }
}
