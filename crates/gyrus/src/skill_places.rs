//! The places in which skills lie.

use std::path::{Path, PathBuf};

use gyrus::runtime::Home;
use gyrus_skills::SkillFolders;

const OF_PROJECT: &str = ".agents/skills";

macro_rules! built_in {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../skills/", $name, "/SKILL.md")),
        )
    };
}

pub(crate) const BUILT_IN: &[(&str, &str)] = &[
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

pub(crate) fn all(home: &Home, workspace: &Path) -> SkillFolders {
    let of_person = home.person.as_ref().map(|person| person.join(OF_PROJECT));
    SkillFolders {
        user: [Some(user_folder(home)), of_person]
            .into_iter()
            .flatten()
            .collect(),
        project: vec![project_folder(workspace)],
        installed: Some(installed_folder(home)),
        built_in: BUILT_IN,
    }
}

pub(crate) fn user_folder(home: &Home) -> PathBuf {
    home.config.with_file_name("skills")
}

pub(crate) fn installed_folder(home: &Home) -> PathBuf {
    home.config.with_file_name("plugins")
}

fn project_folder(workspace: &Path) -> PathBuf {
    let is_root = |folder: &&Path| folder.join(".git").exists();
    let root = workspace.ancestors().find(is_root).unwrap_or(workspace);
    root.join(OF_PROJECT)
}
