//! The skills and the person's words about them, as a command finds them.

use std::path::PathBuf;

use gyrus::runtime::Home;
use gyrus_skills::{Library, Skill};
use gyrus_text::closest;

use crate::{Gyrus, failure::Failure, skill_places, skill_trust::SkillPins, workdir};

pub(in crate::commands) struct SkillPlaces {
    pub(in crate::commands) home: Home,
    pub(in crate::commands) workspace: PathBuf,
    pub(in crate::commands) library: Library,
    pub(in crate::commands) pins: SkillPins,
}

impl SkillPlaces {
    pub(in crate::commands) fn of(gyrus: &Gyrus) -> Result<Self, Failure> {
        let home = gyrus.home()?;
        let workspace = workdir::here()?;
        let pins = SkillPins::read(&home, &workspace)?;
        let places = skill_places::all(&home, &workspace);
        let library = Library::read(&places, &|skill| pins.knows(skill));
        Ok(Self {
            home,
            workspace,
            library,
            pins,
        })
    }

    pub(in crate::commands) fn skill(&self, name: &str) -> Result<&Skill, Failure> {
        let unknown = || self.library.unknown.iter().find(|skill| skill.name == name);
        self.library.get(name).or_else(unknown).ok_or_else(|| {
            let names = self.library.skills.iter().map(|skill| skill.name.as_str());
            let hint = match closest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "to see all: gyrus skills list".to_owned(),
            };
            Failure::usage(format!("there is no skill `{name}`")).hint(hint)
        })
    }
}
