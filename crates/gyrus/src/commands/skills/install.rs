//! `gyrus skills install` and `gyrus skills remove`.
//!
//! A package is read once; what was shown is what is hashed and written. It is written aside and
//! comes to its place by one rename, after the person's word about it is on disk. Of two versions
//! that one rename exchanges the places, so whenever this is killed, one of them stands there whole.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gyrus::runtime::Home;
use gyrus_contract::{Grant, git_mode};
use gyrus_kernel::grants;
use gyrus_plugins::InstalledPlugin;
use gyrus_skills::{
    Library, Package, PackageError, PackagedSkill, SKILL_FILE, Severity, SkillFile, SkillFiles,
    SkillPlace, looks_like, scan,
};
use gyrus_surfaces::{console::put, output, terminal};
use gyrus_text::{counted, visible};
use gyrus_workspace::patch::{self, FileVersion};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::here::SkillPlaces;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, question, skill_places, skill_trust};

/// Maximum length of a change that is shown, in characters.
const MAX_DIFF: usize = 60_000;

/// Prefix of the folder with the previous version of a package.
const PREVIOUS: &str = ".previous-";

/// Prefix of the folders in which packages are written. One that is left was cut off half-way.
const INCOMING: &str = ".incoming-";

pub(super) fn install(gyrus: &Gyrus, path: &Path, yes: bool) -> Result<Code, Failure> {
    inside_run::refuse("install skills")?;
    let here = SkillPlaces::of(gyrus)?;
    let package = Package::read(path).map_err(|error| unusable(path, &error))?;
    let name = name_of(&package).to_owned();
    check(&package, &name)?;
    let installed = PackageInPlace::at(&here.home, &name);
    if InstalledPlugin::is_in(&installed.folder) {
        return Err(Failure::usage(format!("`{name}` is installed as a plugin"))
            .hint("install it so, too: gyrus plugins install PATH"));
    }
    let mut shown = String::new();
    for one in &package.skills {
        shown.push_str(&described(one, &installed, &here.library));
    }
    let pins = pins(&here.home, &name, &package.skills);
    if package.left_behind > 0 {
        let files = counted(package.left_behind, "file");
        shown.push_str(&format!(
            "{files} of the package are no part of a skill; they are left behind, and nothing is run\n"
        ));
    }
    writeln!(output::standard(), "{}", visible(&shown))?;
    let what = format!("install {}", counted(package.skills.len(), "skill"));
    question::confirm(&format!("{what} as `{name}`, as shown"), yes)?;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let store = here.home.store()?;
    let _alone = alone(&here.home)?;
    // Before the files: without them it means nothing, and they mean nothing without it.
    grants::give(
        &store,
        &skill_places::installed_folder(&here.home),
        &pins,
        &person,
    )?;
    let replaced = installed.put(&package.skills, |_| Ok(()))?;
    skill_trust::unpin(&here.home, &name, &pins, &person)?;
    let names: Vec<_> = package.skills.iter().map(|one| &*one.skill.name).collect();
    installed.say(&names.join(", "), replaced)?;
    Ok(Code::Reached)
}

pub(in crate::commands) fn pins(home: &Home, name: &str, skills: &[PackagedSkill]) -> Vec<Grant> {
    let pin = |one: &PackagedSkill| {
        let mut skill = one.skill.clone();
        skill.place = SkillPlace::Installed(name.to_owned());
        skill_trust::pin(home, &skill, &one.files)
    };
    skills.iter().map(pin).collect()
}

pub(super) fn remove(gyrus: &Gyrus, name: &str, yes: bool) -> Result<Code, Failure> {
    inside_run::refuse("remove skills")?;
    let here = SkillPlaces::of(gyrus)?;
    let is_plain = Path::new(name).components().count() == 1 && !name.starts_with('.');
    let installed = PackageInPlace::at(&here.home, name);
    if !is_plain || fs::symlink_metadata(&installed.folder).is_err() {
        let skill = here.skill(name)?;
        let failure = Failure::usage(format!("`{name}` is not an installed package"));
        return Err(match &skill.place {
            SkillPlace::Installed(package) => failure.hint(format!(
                "it is a part of `{package}`: gyrus skills remove {package}"
            )),
            SkillPlace::User | SkillPlace::Project => {
                failure.hint(format!("delete {} yourself", skill.path.display()))
            }
            SkillPlace::BuiltIn => {
                failure.hint(format!("to leave it out of a run: --no-skill {name}"))
            }
        });
    }
    if InstalledPlugin::is_in(&installed.folder) {
        return Err(Failure::usage(format!("`{name}` is a plugin"))
            .hint(format!("gyrus plugins remove {name}")));
    }
    question::confirm(&format!("remove `{name}` and what you granted it"), yes)?;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let _alone = alone(&here.home)?;
    skill_trust::unpin(&here.home, name, &[], &person)?;
    installed.remove()
}

fn unusable(path: &Path, error: &PackageError) -> Failure {
    let failure = Failure::usage(format!("{} cannot be installed: {error}", path.display()));
    match error {
        PackageError::Form {
            hint: Some(hint), ..
        } => failure.hint(hint),
        PackageError::Form { .. } | PackageError::Files(_) | PackageError::Skill { .. } => failure,
    }
}

fn name_of(package: &Package) -> &str {
    let first = package.skills.first().map(|one| one.skill.name.as_str());
    package.plugin.as_deref().or(first).unwrap_or_default()
}

/// Checks the package, and prints the findings.
pub(in crate::commands) fn check(package: &Package, name: &str) -> Result<(), Failure> {
    let built_in = || skill_places::BUILT_IN.iter().map(|(name, _)| *name);
    let names = package.skills.iter().map(|one| one.skill.name.as_str());
    for name in names.chain([name]) {
        if let Some(known) = looks_like(name, built_in()) {
            let what = format!("the name `{name}` is easily taken for `{known}`, which it is not");
            return Err(Failure::failed(what).hint("nothing was installed"));
        }
    }
    let mut refused = false;
    for one in &package.skills {
        refused |= is_refused(&one.skill.name, &one.files)?;
    }
    if refused {
        let what = format!("`{name}` holds what no skill may hold");
        return Err(Failure::failed(what).hint("nothing was installed"));
    }
    Ok(())
}

/// Prints the findings in the files of a skill or agent, and returns whether any file is refused.
pub(in crate::commands) fn is_refused(name: &str, files: &SkillFiles) -> Result<bool, Failure> {
    let mut refused = false;
    for finding in scan(files) {
        let weight = match finding.severity {
            Severity::Refused => "refused",
            Severity::Warning => "look at this",
        };
        refused |= finding.severity == Severity::Refused;
        put(&visible(&format!("{weight}: {name}: {finding}\n")))?;
    }
    Ok(refused)
}

/// Describes a skill before its installation: the rights that it asks for, those that count, and
/// its text or the changes of it.
pub(in crate::commands) fn described(
    one: &PackagedSkill,
    installed: &PackageInPlace,
    library: &Library,
) -> String {
    let skill = &one.skill;
    let mut said = format!("{}: {}\n", skill.name, skill.description);
    for trigger in &skill.triggers {
        said.push_str(&format!("  loads for goals that match `{trigger}`\n"));
    }
    if let Some(steps) = skill.max_steps {
        said.push_str(&format!("  at most {}\n", counted(steps, "step")));
    }
    for permission in &skill.permissions {
        said.push_str(&format!(
            "  asks for `{}`: {}\n",
            permission.word,
            permission.meaning()
        ));
    }
    if skill.permissions.iter().any(|one| one.tool.is_some()) {
        said.push_str(
            "  runs that follow it have no other tools, but those that read, ask and finish\n",
        );
    }
    let other = library.get(&skill.name);
    match other.map(|other| &other.place) {
        Some(place @ (SkillPlace::User | SkillPlace::Project)) => said.push_str(&format!(
            "  it does not count here: a skill of this name is {place}\n"
        )),
        Some(SkillPlace::BuiltIn) => {
            said.push_str("  the skill replaces the built-in one of this name\n");
        }
        Some(SkillPlace::Installed(package)) if *package != installed.name => said.push_str(
            &format!("  a skill of this name is installed with {package}, too; of the two, the first by name of package counts\n"),
        ),
        Some(SkillPlace::Installed(_)) | None => {}
    }
    match installed.files_of(&skill.name) {
        Some(before) if before == one.files => said.push_str("  nothing in it changes\n"),
        Some(before) => said.push_str(&difference(&before, &one.files)),
        None => {
            for (path, file) in one.files.iter().filter(|(path, _)| *path != SKILL_FILE) {
                let size = counted(file.bytes.len(), "byte");
                said.push_str(&format!("  file {path} ({size})\n"));
            }
            said.push_str(&format!(
                "\n{}\n",
                one.files.text(SKILL_FILE).unwrap_or_default()
            ));
        }
    }
    said
}

fn difference(before: &SkillFiles, after: &SkillFiles) -> String {
    let side = |file: &'_ SkillFile| git_mode(file.is_executable);
    let paths = before.iter().chain(after.iter()).map(|(path, _)| path);
    let paths: std::collections::BTreeSet<&str> = paths.collect();
    // All are named, however little of their changes is shown.
    let mut said = String::new();
    let mut changes = String::from("\n");
    for path in paths {
        let version = |files: &'_ SkillFiles| files.get(path).cloned();
        let (old, new) = (version(before), version(after));
        if old == new {
            continue;
        }
        said.push_str(&format!("  changes {path}\n"));
        let old = old.as_ref().map(|file| FileVersion {
            mode: side(file),
            content: &file.bytes,
        });
        let new = new.as_ref().map(|file| FileVersion {
            mode: side(file),
            content: &file.bytes,
        });
        changes.push_str(&patch::of_file(path.as_bytes(), old, new));
    }
    if changes.chars().count() > MAX_DIFF {
        changes = gyrus_text::first_chars(&changes, MAX_DIFF).to_owned();
        changes.push_str("\n[the rest of the changes is not shown]\n");
    }
    said.push_str(&changes);
    said
}

pub(in crate::commands) struct PackageInPlace {
    name: String,
    pub(in crate::commands) folder: PathBuf,
}

impl PackageInPlace {
    pub(in crate::commands) fn at(home: &Home, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            folder: skill_places::installed_folder(home).join(name),
        }
    }

    pub(in crate::commands) fn previous(&self) -> PathBuf {
        self.folder
            .with_file_name(format!("{PREVIOUS}{}", self.name))
    }

    pub(in crate::commands) fn say(&self, what: &str, replaced: bool) -> Result<(), Failure> {
        let mut said = format!("installed {what} in {}", self.folder.display());
        if replaced {
            let previous = self.previous();
            said.push_str(&format!(
                "; what was there before is in {}",
                previous.display()
            ));
        }
        Ok(put(&format!("{said}\n"))?)
    }

    /// Moves the package aside, and prints the new place.
    pub(in crate::commands) fn remove(&self) -> Result<Code, Failure> {
        let (name, previous) = (&self.name, self.previous());
        clear(&previous)?;
        fs::rename(&self.folder, &previous)?;
        put(&format!(
            "removed `{name}`; its files are in {}\n",
            previous.display()
        ))?;
        Ok(Code::Reached)
    }

    fn files_of(&self, skill: &str) -> Option<SkillFiles> {
        SkillFiles::read(&self.folder.join("skills").join(skill)).ok()
    }

    /// Installs the folder that `fill` writes, and the skills. Returns whether there was a version
    /// before, which is kept.
    pub(in crate::commands) fn put(
        &self,
        skills: &[PackagedSkill],
        fill: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let failed = |error: &(dyn std::error::Error + 'static)| {
            Failure::failed(format!("{} cannot be written", self.folder.display())).because(error)
        };
        let parent = self.folder.parent().unwrap_or(Path::new("/"));
        let aside = tempfile::Builder::new().prefix(INCOMING).tempdir_in(parent);
        let aside = aside.map_err(|error| failed(&error))?;
        let made = aside.path().join("package");
        let all = made.join("skills");
        fs::create_dir_all(&all).map_err(|error| failed(&error))?;
        for one in skills {
            let written = one.files.write_into(&all.join(&one.skill.name));
            written.map_err(|error| failed(&error))?;
        }
        fill(&made)?;
        let rename = |from: &Path, flags| renameat_with(CWD, from, CWD, &self.folder, flags);
        match rename(&made, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(false),
            Err(error) if error == rustix::io::Errno::EXIST => {}
            Err(error) => return Err(failed(&io::Error::from(error))),
        }
        let previous = self.previous();
        clear(&previous)?;
        fs::rename(&made, &previous).map_err(|error| failed(&error))?;
        let exchanged = rename(&previous, RenameFlags::EXCHANGE);
        exchanged.map_err(|error| failed(&io::Error::from(error)))?;
        Ok(true)
    }
}

/// Locks the installation of skills against other processes for as long as the result lives, and
/// removes what an interrupted installation left.
pub(in crate::commands) fn alone(home: &Home) -> Result<fs::File, Failure> {
    let folder = skill_places::installed_folder(home);
    let failed = |error: io::Error| {
        Failure::failed(format!("{} cannot be changed", folder.display())).because(&error)
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    let held = fs::File::open(&folder).map_err(failed)?;
    held.lock().map_err(failed)?;
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(INCOMING.as_bytes())
        {
            clear(&entry.path())?;
        }
    }
    Ok(held)
}

/// Removes an older version.
pub(in crate::commands) fn clear(folder: &Path) -> Result<(), Failure> {
    let removed = match fs::symlink_metadata(folder) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
        Err(_) => Ok(()),
    };
    removed.map_err(|error| {
        Failure::failed(format!("{} cannot be removed", folder.display())).because(&error)
    })
}

/// Returns the pin of a skill that a person trusts, after its files were checked again.
pub(super) fn looked_through(home: &Home, skill: &gyrus_skills::Skill) -> Result<Grant, Failure> {
    let files = skill_trust::files_of(skill);
    let files = files.map_err(|error| Failure::failed(error.to_string()))?;
    let digest = files
        .get(SKILL_FILE)
        .map(|text| SkillFiles::digest_of_text(&text.bytes));
    if digest.as_ref() != Some(&skill.digest) {
        return Err(Failure::failed("it changed while it was read").hint("look at it again"));
    }
    let one = PackagedSkill {
        skill: skill.clone(),
        files,
    };
    let pin = skill_trust::pin(home, skill, &one.files);
    let package = Package {
        plugin: None,
        skills: vec![one],
        left_behind: 0,
    };
    check(&package, &skill.name)?;
    Ok(pin)
}
