//! The skills of a run: those of the person, of the project as far as the person trusts them, of
//! installed packages, and gyrus's own.

use std::path::Path;

use gyrus::runtime::Home;
use gyrus_contract::{FollowedSkill, Origin, Text};
use gyrus_kernel::Attachment;
use gyrus_runtime::request::RunFlags;
use gyrus_skills::{Library, SkillChoice};
use gyrus_surfaces::console::put;
use gyrus_text::visible;

use crate::{
    failure::Failure,
    plugins::{self, names_agent},
    skill_places,
    skill_trust::{SkillPins, SkillTrust},
};

/// Maximum number of skills that load by themselves.
const MAX_LOADED: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct SkillsOfRun {
    pub(crate) context: Vec<Attachment>,
    /// The skills, each with the bounds that it sets to the run.
    pub(crate) followed: Vec<FollowedSkill>,
    /// The smallest number of steps that one of the skills names.
    pub(crate) max_steps: Option<u64>,
}

/// Returns the skills for a goal, and the plugin's agent that `--agent` names. Only the words of a person, or of the program, choose skills.
/// Says which nominated ones are not followed because of what they have become.
pub(crate) fn of_run(
    home: &Home,
    workspace: &Path,
    goal: &Text,
    flags: &RunFlags,
) -> Result<SkillsOfRun, Failure> {
    let mut skills = SkillsOfRun::default();
    if let Some(agent) = flags.agent.as_deref().filter(|agent| names_agent(agent)) {
        let (text, followed) = plugins::agent(home, agent)?;
        skills.context.push(text);
        skills.followed.push(followed);
    }
    if flags.no_skills || !goal.origin.is_trusted() || goal.text.trim().is_empty() {
        return Ok(skills);
    }
    let chosen = NominatedSkills::by(home, workspace, &goal.text, &flags.no_skill)?;
    for (choice, reason) in &chosen.refused {
        if let SkillRefusal::Trust(why) = reason {
            let name = &choice.skill.name;
            put(&visible(&format!(
                "skill `{name}` is not followed: {why}\n"
            )))?;
        }
    }
    for (choice, followed) in chosen.loaded {
        if let Some(agent) = skills.followed.iter().find(|one| names_agent(&one.name))
            && !agent.goes_with(&followed)
        {
            let (name, agent) = (&followed.name, &agent.name);
            put(&visible(&format!(
                "skill `{name}` is not followed: it and the agent `{agent}` name no tool in common\n"
            )))?;
            continue;
        }
        let steps = choice.skill.max_steps;
        skills.max_steps = skills.max_steps.into_iter().chain(steps).min();
        skills.context.push(attachment(&choice, &followed));
        skills.followed.push(followed);
    }
    Ok(skills)
}

/// The reason why a nominated skill is not followed.
#[derive(Debug)]
pub(crate) enum SkillRefusal {
    /// Two other skills are more specific.
    LessSpecific,
    /// The person left the skill out by its name.
    LeftOut,
    /// The skill and this more specific one have no tool in common.
    NoCommonTool(String),
    /// The files of the skill are not those that the person agreed to, or cannot be used.
    Trust(String),
}

impl std::fmt::Display for SkillRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SkillRefusal::LessSpecific => f.write_str("it is less specific than two others"),
            SkillRefusal::LeftOut => f.write_str("you left it out"),
            SkillRefusal::NoCommonTool(other) => {
                write!(
                    f,
                    "it and `{other}`, which is more specific, name no tool in common"
                )
            }
            SkillRefusal::Trust(why) => f.write_str(why),
        }
    }
}

#[derive(Debug)]
pub(crate) struct NominatedSkills {
    /// The skills that a run follows, the most specific first.
    pub(crate) loaded: Vec<(SkillChoice, FollowedSkill)>,
    /// The other nominated skills, each with the reason why it is not followed.
    pub(crate) refused: Vec<(SkillChoice, SkillRefusal)>,
    /// Skills that the goal would nominate, if runs followed them.
    pub(crate) unknown: Vec<SkillChoice>,
    pub(crate) count: usize,
}

impl NominatedSkills {
    /// Chooses for a goal; skills of the names in `without` are left out.
    pub(crate) fn by(
        home: &Home,
        workspace: &Path,
        goal: &str,
        without: &[String],
    ) -> Result<Self, Failure> {
        let pins = SkillPins::read(home, workspace)?;
        let library = Library::read_for_run(&skill_places::all(home, workspace), &|skill| {
            pins.knows(skill)
        });
        let mut chosen = Self {
            loaded: Vec::new(),
            refused: Vec::new(),
            unknown: Vec::new(),
            count: library.skills.len(),
        };
        let nominated = library.nominate(goal);
        let unknown = Library {
            skills: library.unknown,
            ..Library::default()
        };
        chosen.unknown = unknown.nominate(goal);
        for choice in nominated {
            match chosen.admits(home, &pins, &choice, without)? {
                Ok(followed) => chosen.loaded.push((choice, followed)),
                Err(reason) => chosen.refused.push((choice, reason)),
            }
        }
        Ok(chosen)
    }

    /// Decides about the next nominated skill.
    fn admits(
        &self,
        home: &Home,
        pins: &SkillPins,
        choice: &SkillChoice,
        without: &[String],
    ) -> Result<Result<FollowedSkill, SkillRefusal>, Failure> {
        if without.contains(&choice.skill.name) {
            return Ok(Err(SkillRefusal::LeftOut));
        }
        if self.loaded.len() == MAX_LOADED {
            return Ok(Err(SkillRefusal::LessSpecific));
        }
        let followed = match pins.trust(home, &choice.skill)? {
            SkillTrust::Follows(followed) => followed,
            SkillTrust::Refused(why) => return Ok(Err(SkillRefusal::Trust(why))),
        };
        let mut loaded = self.loaded.iter();
        let clash = loaded.find(|(_, other)| !other.goes_with(&followed));
        Ok(match clash {
            Some((_, other)) => Err(SkillRefusal::NoCommonTool(other.name.clone())),
            None => Ok(followed),
        })
    }
}

/// Returns the names and descriptions of the skills that a goal in a folder can name.
pub(crate) fn names(home: &Home, workspace: &Path) -> Result<Vec<(String, String)>, Failure> {
    let pins = SkillPins::read(home, workspace)?;
    let places = skill_places::all(home, workspace);
    let library = Library::read_for_run(&places, &|skill| pins.knows(skill));
    let skills = library.skills.into_iter();
    Ok(skills
        .map(|skill| (skill.name, skill.description))
        .collect())
}

fn attachment(choice: &SkillChoice, followed: &FollowedSkill) -> Attachment {
    let skill = &choice.skill;
    let mut text = format!("{}\n\n{}", skill.description, skill.instructions);
    if let Some(folder) = &followed.folder {
        text.push_str(&format!(
            "\n\nFiles that it names lie in {}, which can be read and not changed.",
            folder.display()
        ));
    }
    let origin = Origin::Skill {
        name: skill.name.clone(),
        why: format!("{}: {}", skill.place, choice.why()),
    };
    Attachment::Text(Text::new(text, origin))
}
