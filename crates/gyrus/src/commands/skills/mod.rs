//! `gyrus skills`

pub(super) mod here;
pub(super) mod install;

use std::{fs, path::PathBuf};

use clap::{Args, Subcommand};
use gyrus_kernel::grants;
use gyrus_skills::{Library, SKILL_FILE, SkillPlace};
use gyrus_surfaces::{
    console::{Painter, put},
    output,
    projection::Tone,
    terminal,
};
use gyrus_text::{counted, visible, wrap};
use serde_json::json;

use self::here::SkillPlaces;
use super::listing::ListFlags;
use crate::{
    Gyrus, exit::Code, failure::Failure, inside_run, skill_places, skill_trust,
    skills::NominatedSkills, workdir::here,
};

/// Columns of a description in a wide terminal.
const WIDEST: usize = 100;

/// See, check, make and install skills: how kinds of tasks are done
///
/// A skill is a Markdown text that a run gets when the triggers of the skill match its goal, or when
/// the goal begins with /NAME. It lies in the folder `skills` beside your configuration, in
/// ~/.agents/skills, in a project's .agents/skills, or is installed.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Skills {
    #[command(subcommand)]
    verb: Option<SkillsVerb>,
    #[command(flatten)]
    list: ListFlags,
}

#[derive(Subcommand)]
enum SkillsVerb {
    /// List all skills, and files that are none
    List(ListFlags),
    /// Show a skill whole
    Show {
        /// Its name
        name: String,
    },
    /// Say which skills a goal loads, and why
    Why {
        /// The goal
        goal: String,
    },
    /// Check a skill's file or folder, or all skills
    Check {
        /// The file or folder
        path: Option<PathBuf>,
    },
    /// Make a skill of yours from an example
    New {
        /// Its name: lower-case letters, digits and hyphens
        name: String,
    },
    /// Let runs follow a skill of the project, or an installed one that changed, as it is now
    Trust {
        /// Its name
        name: String,
    },
    /// Look through a skill or package, show it, and install it once you say yes
    ///
    /// PATH is a folder with a SKILL.md, a file NAME.md, a plugin or npm package with skills in it, or
    /// a .tgz, .tar.gz or .zip of one of these. Nothing of it is run.
    Install {
        /// The folder, file or archive
        path: PathBuf,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove an installed package, and what you granted it
    Remove {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

impl Skills {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.verb.unwrap_or(SkillsVerb::List(self.list)) {
            SkillsVerb::List(flags) => list(gyrus, &flags),
            SkillsVerb::Show { name } => show(gyrus, &name),
            SkillsVerb::Why { goal } => why(gyrus, &goal),
            SkillsVerb::Check { path } => check(gyrus, path),
            SkillsVerb::New { name } => new(gyrus, &name),
            SkillsVerb::Trust { name } => trust(gyrus, &name),
            SkillsVerb::Install { path, yes } => install::install(gyrus, &path, yes),
            SkillsVerb::Remove { name, yes } => install::remove(gyrus, &name, yes),
        }
    }
}

fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let here = SkillPlaces::of(gyrus)?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    for skill in here.library.skills.iter().chain(&here.library.unknown) {
        let agreed = here.pins.agreed(skill);
        let item = json!({
            "skill": skill.name,
            "description": skill.description,
            "place": skill.place.to_string(),
            "path": skill.path,
            "triggers": skill.triggers,
            "max_steps": skill.max_steps,
            "trusted": agreed.is_ok(),
        });
        if !flags.shows(&mut out, &item)? {
            continue;
        }
        let place = match agreed {
            Ok(_) => skill.place.to_string(),
            Err(why) => format!("{}; {}", skill.place, visible(&why)),
        };
        writeln!(
            out,
            "{}  {}",
            painter.paint(Tone::Call, &skill.name),
            painter.paint(Tone::Aside, &place)
        )?;
        for line in wrap(
            &visible(&skill.description),
            painter.columns.min(WIDEST) - 4,
        ) {
            writeln!(out, "    {line}")?;
        }
    }
    out.flush()?;
    if here.library.skills.is_empty() && !flags.is_json() {
        put("there are no skills yet; to make one: gyrus skills new NAME\n")?;
    }
    put(&problems(&here.library))?;
    Ok(Code::Reached)
}

/// Returns a description of the invalid files and of the hidden skills.
fn problems(library: &Library) -> String {
    let mut said = String::new();
    for shadowed in &library.shadowed {
        said.push_str(&format!(
            "{} does not count: {} has the name `{}`, too\n",
            shadowed.skill.path.display(),
            shadowed.by.display(),
            shadowed.skill.name,
        ));
    }
    for misread in &library.misread {
        for mistake in &misread.mistakes {
            said.push_str(&format!("{}: {mistake}\n", misread.path.display()));
        }
    }
    visible(&said).into_owned()
}

fn show(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    let here = SkillPlaces::of(gyrus)?;
    let skill = here.skill(name)?;
    let mut out = output::standard();
    writeln!(
        out,
        "{} ({})\n{}\n",
        skill.name, skill.place, skill.description
    )?;
    for trigger in &skill.triggers {
        writeln!(out, "trigger: {trigger}")?;
    }
    if let Some(steps) = skill.max_steps {
        writeln!(out, "at most {}", counted(steps, "step"))?;
    }
    for permission in &skill.permissions {
        let meaning = permission.meaning();
        writeln!(out, "asks for `{}`: {meaning}", permission.word)?;
    }
    match here.pins.agreed(skill) {
        Ok((files, rights)) => {
            for right in rights {
                writeln!(out, "granted: {right}")?;
            }
            for (path, _) in files.iter().filter(|(path, _)| *path != SKILL_FILE) {
                writeln!(out, "beside it: {path}")?;
            }
        }
        Err(why) => writeln!(out, "runs do not follow it: {why}")?,
    }
    writeln!(
        out,
        "file: {}\n\n{}",
        skill.path.display(),
        skill.instructions
    )?;
    let mut unknown = here.library.unknown.iter();
    if let Some(other) = unknown.find(|other| other.name == name && other.path != skill.path) {
        let place = &other.place;
        let path = other.path.display();
        put(&format!(
            "another of this name, {place}, is not followed before: {path}\n"
        ))?;
    }
    Ok(Code::Reached)
}

fn why(gyrus: &Gyrus, goal: &str) -> Result<Code, Failure> {
    let home = gyrus.home()?;
    let workspace = here()?;
    let chosen = NominatedSkills::by(&home, &workspace, goal, &[])?;
    let mut out = output::standard();
    for (choice, followed) in &chosen.loaded {
        writeln!(out, "{} is loaded: {}", choice.skill.name, choice.why())?;
        if let Some(tools) = &followed.tools {
            let tools = tools.join(", ");
            writeln!(
                out,
                "  its runs are limited to reading, asking, finishing and {tools}"
            )?;
        }
        for right in &followed.grants {
            writeln!(out, "  you granted it {right}")?;
        }
    }
    for (choice, reason) in &chosen.refused {
        let name = &choice.skill.name;
        writeln!(out, "{name} is not loaded: {reason}; {}", choice.why())?;
    }
    for choice in &chosen.unknown {
        let (name, why) = (&choice.skill.name, choice.why());
        writeln!(
            out,
            "{name} ({}) is not followed until you trust it: gyrus skills trust {name}; {why}",
            choice.skill.place
        )?;
    }
    if chosen.loaded.is_empty() && chosen.refused.is_empty() {
        let count = counted(chosen.count, "skill");
        writeln!(
            out,
            "no trigger of {count} matches this goal, and no description is near to it"
        )?;
    }
    Ok(Code::Reached)
}

fn check(gyrus: &Gyrus, path: Option<PathBuf>) -> Result<Code, Failure> {
    let library = match path {
        None => SkillPlaces::of(gyrus)?.library,
        Some(path) => {
            let path = path.canonicalize().map_err(|error| {
                Failure::usage(format!("{} cannot be read", path.display())).because(&error)
            })?;
            Library::read_one(&path, SkillPlace::User)
        }
    };
    let said = problems(&library);
    put(&said)?;
    if !library.misread.is_empty() {
        let wrong = counted(library.misread.len(), "file");
        return Err(Failure::failed(format!(
            "{wrong} cannot be used as a skill"
        )));
    }
    put(&format!(
        "{} in order\n",
        counted(library.skills.len(), "skill")
    ))?;
    Ok(Code::Reached)
}

fn new(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    inside_run::refuse("make skills")?;
    let home = gyrus.home()?;
    let folder = skill_places::user_folder(&home).join(name);
    let file = folder.join("SKILL.md");
    let words = name.replace('-', "\\b.*\\b");
    let text = EXAMPLE.replace("NAME", name).replace("WORDS", &words);
    let checked = Library::check(&file, SkillPlace::User, &text);
    if let Err(mistakes) = checked {
        let said = mistakes.last().map(ToString::to_string).unwrap_or_default();
        let said = said
            .split_once(": ")
            .map_or(said.clone(), |(_, said)| said.to_owned());
        return Err(Failure::usage(said));
    }
    if folder.exists() {
        return Err(Failure::usage(format!(
            "{} is there already",
            folder.display()
        )));
    }
    fs::create_dir_all(&folder)?;
    fs::write(&file, text)?;
    writeln!(output::standard(), "{}", file.display())?;
    put(
        "write down in it when it helps and how the task is done; then try: gyrus skills why GOAL\n",
    )?;
    Ok(Code::Reached)
}

const EXAMPLE: &str = "\
---
name: NAME
description: Say here in one or two sentences what it does and when it helps.
metadata:
  triggers: |
    (?i)\\bWORDS\\b
  max-steps: \"30\"
---
1. Say what to look at first.
2. Say what to do, and how to see that it worked.
3. Say what must not be done.
";

fn trust(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    inside_run::refuse("trust skills")?;
    let here = SkillPlaces::of(gyrus)?;
    // Another of its name may count as long as this one is not followed.
    let mut unknown = here.library.unknown.iter();
    let skill = match unknown.find(|skill| skill.name == name) {
        Some(skill) => skill,
        None => here.skill(name)?,
    };
    if here.pins.agreed(skill).is_ok() {
        put(&format!(
            "runs follow `{name}` already: it is {}\n",
            skill.place
        ))?;
        return Ok(Code::Reached);
    }
    let pin = install::looked_through(&here.home, skill)?;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let scope = skill_trust::scope(&here.home, &here.workspace, &skill.place);
    grants::give(
        &here.home.store()?,
        &scope,
        std::slice::from_ref(&pin),
        &person,
    )?;
    put(&format!(
        "allowed in {}, as long as it stays as it is ({}): {pin}; to take it back: gyrus approvals\n",
        scope.display(),
        counted(skill.instructions.lines().count(), "line"),
    ))?;
    Ok(Code::Reached)
}
