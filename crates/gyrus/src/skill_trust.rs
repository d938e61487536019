//! A person's words about skills: each yes is bound to all files of a skill, as they are.
//!
//! The files of a skill are read once. A run gets what was hashed: its text, and a copy of
//! its files under their hash, which nothing changes afterwards.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus::runtime::Home;
use gyrus_contract::{Digest, FollowedSkill, Grant, Principal};
use gyrus_kernel::grants;
use gyrus_skills::{
    GrantableRight, SKILL_FILE, Skill, SkillFile, SkillFiles, SkillFilesError, SkillPlace,
};

use crate::{failure::Failure, skill_places};

/// Folder in the state with copies of the files of followed skills, each set under its hash.
const COPIES: &str = "skill-files";

pub(crate) enum SkillTrust {
    /// Runs follow the skill, within these bounds.
    Follows(FollowedSkill),
    /// Runs do not follow the skill, for this reason.
    Refused(String),
}

/// The pins of a person: which skills runs follow, as they are.
pub(crate) struct SkillPins {
    project: Vec<Grant>,
    /// The pins for installed packages.
    installed: Vec<Grant>,
}

impl SkillPins {
    pub(crate) fn read(home: &Home, workspace: &Path) -> Result<Self, Failure> {
        let store = home.store()?;
        let of = |folder: &Path| -> Result<Vec<Grant>, Failure> {
            let standing = grants::in_folder(&store, folder)?;
            Ok(standing
                .into_iter()
                .map(|standing| standing.grant)
                .collect())
        };
        Ok(Self {
            project: of(workspace)?,
            installed: of(&skill_places::installed_folder(home))?,
        })
    }

    /// Returns the person's words about a skill, each with the digest and the granted rights;
    /// `None` if the skill needs none.
    fn said(&self, skill: &Skill) -> Option<Vec<(Digest, &[Grant])>> {
        let grants = match skill.place {
            SkillPlace::Project => &self.project,
            SkillPlace::Installed(_) => &self.installed,
            SkillPlace::User | SkillPlace::BuiltIn => return None,
        };
        let said = grants.iter().filter_map(|grant| match grant {
            Grant::Skill {
                name,
                content,
                rights,
            } if *name == pin_name(skill) => Some((*content, rights.as_slice())),
            _ => None,
        });
        Some(said.collect())
    }

    /// Whether the person has ever said that runs follow a skill of this place and name, or need
    /// not say so.
    pub(crate) fn knows(&self, skill: &Skill) -> bool {
        self.said(skill).is_none_or(|said| !said.is_empty())
    }

    /// Returns the files of a skill, and the rights that the person granted it with exactly these; or
    /// the reason why runs do not follow it.
    pub(crate) fn agreed(&self, skill: &Skill) -> Result<(SkillFiles, Vec<Grant>), String> {
        let files = files_of(skill).map_err(|error| error.to_string())?;
        let text = files.get(SKILL_FILE);
        let digest = text.map(|text| SkillFiles::digest_of_text(&text.bytes));
        if digest.as_ref() != Some(&skill.digest) {
            return Err("it changed while it was read".to_owned());
        }
        let Some(said) = self.said(skill) else {
            return Ok((files, Vec::new()));
        };
        let content = Digest::of_json(&files.digest());
        match said.iter().rev().find(|(digest, _)| *digest == content) {
            Some((_, rights)) => Ok((files, rights.to_vec())),
            None if said.is_empty() => Err(format!(
                "not followed before: gyrus skills trust {}",
                skill.name
            )),
            None => Err(format!(
                "its files have changed since you agreed to it: gyrus skills trust {}",
                skill.name
            )),
        }
    }

    /// Decides whether runs follow a skill with its present files, and stores a copy of these.
    pub(crate) fn trust(&self, home: &Home, skill: &Skill) -> Result<SkillTrust, Failure> {
        let (files, grants) = match self.agreed(skill) {
            Ok(agreed) => agreed,
            Err(why) => return Ok(SkillTrust::Refused(why)),
        };
        let folder = if files.len() > 1 {
            Some(keep_copy(home, &files)?)
        } else {
            None
        };
        Ok(SkillTrust::Follows(FollowedSkill {
            name: skill.name.clone(),
            content: Digest::of_json(&files.digest()),
            folder,
            tools: tools(skill),
            grants,
        }))
    }
}

/// Returns the name under which a person's decision about a skill is stored.
fn pin_name(skill: &Skill) -> String {
    match &skill.place {
        SkillPlace::Installed(package) => format!("{package}/{}", skill.name),
        SkillPlace::Project | SkillPlace::User | SkillPlace::BuiltIn => skill.name.clone(),
    }
}

/// Returns the grant that makes runs follow a skill with these files and the requested rights.
pub(crate) fn pin(home: &Home, skill: &Skill, files: &SkillFiles) -> Grant {
    // Skills of a project come with the work of others, and a person is asked about them in passing.
    let rights = match skill.place {
        SkillPlace::Installed(_) => rights(home, skill),
        SkillPlace::Project | SkillPlace::User | SkillPlace::BuiltIn => Vec::new(),
    };
    Grant::Skill {
        name: pin_name(skill),
        content: Digest::of_json(&files.digest()),
        rights,
    }
}

/// Returns the folder under which a person's decisions about skills of a place are stored.
pub(crate) fn scope(home: &Home, workspace: &Path, place: &SkillPlace) -> PathBuf {
    match place {
        SkillPlace::Installed(_) => skill_places::installed_folder(home),
        SkillPlace::Project | SkillPlace::User | SkillPlace::BuiltIn => workspace.to_owned(),
    }
}

/// Revokes every pin of an installed package except these.
pub(crate) fn unpin(
    home: &Home,
    package: &str,
    but: &[Grant],
    person: &Principal,
) -> Result<(), Failure> {
    let store = home.store()?;
    let start = format!("{package}/");
    for standing in grants::in_folder(&store, &skill_places::installed_folder(home))? {
        if let Grant::Skill { name, .. } = &standing.grant
            && name.starts_with(&start)
            && !but.contains(&standing.grant)
        {
            grants::revoke(&store, &standing, person)?;
        }
    }
    Ok(())
}

fn rights(home: &Home, skill: &Skill) -> Vec<Grant> {
    let asked = skill.permissions.iter();
    let asked = asked.filter_map(|permission| permission.widening.as_ref());
    let rights = asked.filter_map(|widening| {
        Some(match widening {
            GrantableRight::Command(words) => Grant::Command {
                words: words.clone(),
            },
            GrantableRight::Registries => Grant::PackageRegistries,
            GrantableRight::Clipboard => Grant::Tool {
                tool: "clipboard".to_owned(),
            },
            GrantableRight::Reads(path) => {
                let path = match path.strip_prefix("~/") {
                    Some(below) => home.person.as_ref()?.join(below),
                    None => PathBuf::from(path),
                };
                // A grant names the real path.
                Grant::Reads {
                    path: path.canonicalize().unwrap_or(path),
                }
            }
        })
    });
    rights.collect()
}

/// Returns the tools to which a skill limits the runs that follow it; `None` if it names none.
fn tools(skill: &Skill) -> Option<Vec<String>> {
    let named = skill.permissions.iter();
    let named: Vec<String> = named
        .filter_map(|permission| permission.tool.clone())
        .collect();
    (!named.is_empty()).then_some(named)
}

/// Reads all files of a skill; the text of a single file is its `SKILL.md`.
pub(crate) fn files_of(skill: &Skill) -> Result<SkillFiles, SkillFilesError> {
    if skill.place == SkillPlace::BuiltIn {
        let text = skill_places::BUILT_IN
            .iter()
            .find(|(name, _)| *name == skill.name);
        let mut files = SkillFiles::default();
        let bytes = text.map_or_else(Vec::new, |(_, text)| text.as_bytes().to_vec());
        files.add(
            SKILL_FILE.to_owned(),
            SkillFile {
                bytes,
                is_executable: false,
            },
        )?;
        return Ok(files);
    }
    match skill.path.parent() {
        Some(folder) if skill.path.ends_with(SKILL_FILE) => SkillFiles::read(folder),
        Some(_) | None => SkillFiles::single(&skill.path),
    }
}

/// Stores a copy of files under their hash, and returns its folder. Equal files share a copy.
fn keep_copy(home: &Home, files: &SkillFiles) -> Result<PathBuf, Failure> {
    let copies = home.state.join(COPIES);
    let folder = copies.join(files.digest());
    let real = |folder: &Path| {
        folder.canonicalize().map_err(|error| {
            Failure::failed("the copy of a skill's files cannot be found").because(&error)
        })
    };
    if folder.exists() {
        return real(&folder);
    }
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Failure::failed(format!("{} cannot be written", copies.display())).because(error)
    };
    fs::create_dir_all(&copies).map_err(|error| failed(&error))?;
    let aside = tempfile::Builder::new()
        .prefix(".")
        .tempdir_in(&copies)
        .map_err(|error| failed(&error))?;
    let made = aside.path().join("files");
    files.write_into(&made).map_err(|error| failed(&error))?;
    match fs::rename(&made, &folder) {
        Ok(()) => real(&folder),
        // Another process was faster.
        Err(error) if is_there(&error) => real(&folder),
        Err(error) => Err(failed(&error)),
    }
}

fn is_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
    )
}
