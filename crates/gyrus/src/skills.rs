//! The skills of a run: those of the person, of the project as far as the person trusts them, of
//! installed packages, and gyrus's own.

use std::path::{Path, PathBuf};

use gyrus::runtime::Home;
use gyrus_contract::{Digest, Grant, Origin, Text};
use gyrus_journal::Store;
use gyrus_kernel::{Attachment, grants};
use gyrus_skills::{Library, Places, Skill, SkillChoice, SkillChoices, SkillPlace};

use crate::{failure::Failure, flags::SkillFlags};

/// The folder of a project's skills.
const OF_PROJECT: &str = ".agents/skills";

macro_rules! built_in {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../skills/", $name, "/SKILL.md")),
        )
    };
}

/// Skills that are part of the program.
const BUILT_IN: &[(&str, &str)] = &[
    built_in!("calendar-entry"),
    built_in!("compare-prices"),
    built_in!("dependency-update"),
    built_in!("file-document"),
    built_in!("fill-form"),
    built_in!("log-analysis"),
    built_in!("mail-triage"),
    built_in!("meeting-notes"),
    built_in!("photo-sorting"),
    built_in!("repository-onboarding"),
    built_in!("social-post"),
    built_in!("spreadsheet-cleanup"),
    built_in!("web-research"),
];

/// Returns the places of skills for runs in a folder.
pub(crate) fn places(home: &Home, workspace: &Path) -> Places {
    let of_person = home.person.as_ref().map(|person| person.join(OF_PROJECT));
    Places {
        user: [Some(user_folder(home)), of_person]
            .into_iter()
            .flatten()
            .collect(),
        project: vec![project_folder(workspace)],
        plugins: Some(home.config.with_file_name("plugins")),
        built_in: BUILT_IN,
    }
}

/// Returns the folder of the person's own skills.
pub(crate) fn user_folder(home: &Home) -> PathBuf {
    home.config.with_file_name("skills")
}

/// Returns the folder of the skills of the project that a folder belongs to.
fn project_folder(workspace: &Path) -> PathBuf {
    let is_root = |folder: &&Path| folder.join(".git").exists();
    let root = workspace.ancestors().find(is_root).unwrap_or(workspace);
    root.join(OF_PROJECT)
}

/// Returns the grant by which a person lets runs of a folder follow a skill, as it is now.
pub(crate) fn grant(skill: &Skill) -> Grant {
    Grant::Guidelines {
        content: Digest::of_json(&skill.digest),
        instruct: true,
    }
}

/// Whether runs in a folder may follow a skill.
///
/// # Errors
/// The grants cannot be read.
pub(crate) fn is_trusted(store: &Store, workspace: &Path, skill: &Skill) -> Result<bool, Failure> {
    if skill.place != SkillPlace::Project {
        return Ok(true);
    }
    let standing = grants::in_folder(store, workspace)?;
    Ok(standing
        .iter()
        .any(|standing| standing.grant == grant(skill)))
}

/// The skills that a run follows.
#[derive(Debug, Default)]
pub(crate) struct SkillsOfRun {
    /// Their texts.
    pub(crate) context: Vec<Attachment>,
    /// The smallest number of steps that one of them names.
    pub(crate) max_steps: Option<u64>,
}

/// Returns the skills for a goal. Only the words of a person, or of the program, choose skills.
pub(crate) fn of_run(
    home: &Home,
    workspace: &Path,
    goal: &Text,
    flags: &SkillFlags,
) -> Result<SkillsOfRun, Failure> {
    let mut skills = SkillsOfRun::default();
    if flags.no_skills || !goal.origin.is_trusted() || goal.text.trim().is_empty() {
        return Ok(skills);
    }
    for choice in chosen(home, workspace, &goal.text, &flags.no_skill)?.loaded {
        let steps = choice.skill.max_steps;
        skills.max_steps = skills.max_steps.into_iter().chain(steps).min();
        skills.context.push(attachment(&choice));
    }
    Ok(skills)
}

/// Returns what a goal nominates. Skills of the project that the person does not trust are left out.
pub(crate) fn chosen(
    home: &Home,
    workspace: &Path,
    goal: &str,
    without: &[String],
) -> Result<SkillChoices, Failure> {
    let mut library = Library::read_for_run(&places(home, workspace));
    let store = home.store()?;
    let mut trusted = Vec::new();
    for skill in library.skills {
        if is_trusted(&store, workspace, &skill)? {
            trusted.push(skill);
        }
    }
    library.skills = trusted;
    Ok(library.choose(goal, without))
}

fn attachment(choice: &SkillChoice) -> Attachment {
    let skill = &choice.skill;
    let mut text = format!("{}\n\n{}", skill.description, skill.instructions);
    if let (Some(folder), true) = (skill.path.parent(), skill.path.ends_with("SKILL.md")) {
        text.push_str(&format!(
            "\n\nFiles that it names lie in {}.",
            folder.display()
        ));
    }
    let origin = Origin::Skill {
        name: skill.name.clone(),
        why: format!("{}: {}", skill.place, choice.why()),
    };
    Attachment::Text(Text::new(text, origin))
}
