//! `gyrus skills`

use std::{fs, path::PathBuf};

use clap::{Args, Subcommand};
use gyrus::runtime::Home;
use gyrus_kernel::grants;
use gyrus_skills::{Library, Skill, SkillChoice, SkillPlace};
use gyrus_surfaces::{
    console::{Painter, put},
    output,
    projection::Tone,
    terminal,
};
use gyrus_text::{closest, counted, visible, wrap};
use serde_json::json;

use super::listing::ListFlags;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, new_run, skills};

/// Columns of a description in a wide terminal.
const WIDEST: usize = 100;

/// See, check and make skills: how kinds of tasks are done
///
/// A skill is a Markdown text that a run gets when the triggers of the skill match its goal, or when
/// the goal begins with /NAME. It lies in the folder `skills` beside your configuration, in
/// ~/.agents/skills, in a project's .agents/skills, or in an installed plugin.
#[derive(Args)]
pub(crate) struct Skills {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
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
    /// Let runs in this folder follow a skill of the project, as it is now
    Trust {
        /// Its name
        name: String,
    },
}

/// Places where this command looks.
struct Here {
    home: Home,
    workspace: PathBuf,
    library: Library,
}

impl Here {
    fn of(gyrus: &Gyrus) -> Result<Self, Failure> {
        let home = gyrus.home()?;
        let workspace = new_run::workspace(&home, None)?;
        let library = Library::read(&skills::places(&home, &workspace));
        Ok(Self {
            home,
            workspace,
            library,
        })
    }

    fn skill(&self, name: &str) -> Result<&Skill, Failure> {
        self.library.get(name).ok_or_else(|| {
            let names = self.library.skills.iter().map(|skill| skill.name.as_str());
            let hint = match closest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "to see all: gyrus skills list".to_owned(),
            };
            Failure::usage(format!("there is no skill `{name}`")).hint(hint)
        })
    }

    fn is_trusted(&self, skill: &Skill) -> Result<bool, Failure> {
        skills::is_trusted(&self.home.store()?, &self.workspace, skill)
    }
}

impl Skills {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        match self.verb {
            Verb::List(flags) => list(gyrus, &flags),
            Verb::Show { name } => show(gyrus, &name),
            Verb::Why { goal } => why(gyrus, &goal),
            Verb::Check { path } => check(gyrus, path),
            Verb::New { name } => new(gyrus, &name),
            Verb::Trust { name } => trust(gyrus, &name),
        }
    }
}

fn list(gyrus: &Gyrus, flags: &ListFlags) -> Result<Code, Failure> {
    let here = Here::of(gyrus)?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    for skill in &here.library.skills {
        let trusted = here.is_trusted(skill)?;
        let item = json!({
            "skill": skill.name,
            "description": skill.description,
            "place": skill.place.to_string(),
            "path": skill.path,
            "triggers": skill.triggers,
            "max_steps": skill.max_steps,
            "trusted": trusted,
        });
        if !flags.shows(&mut out, &item)? {
            continue;
        }
        let place = if trusted {
            skill.place.to_string()
        } else {
            format!(
                "{}; not followed before: gyrus skills trust {}",
                skill.place, skill.name
            )
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

/// Says which files are no skills, and which skills do not count.
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
    let here = Here::of(gyrus)?;
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
    if !skill.permissions.is_empty() {
        let asked = skill.permissions.join(" ");
        writeln!(
            out,
            "it names these rights, which it does not get by that: {asked}"
        )?;
    }
    writeln!(
        out,
        "file: {}\n\n{}",
        skill.path.display(),
        skill.instructions
    )?;
    Ok(Code::Reached)
}

fn why(gyrus: &Gyrus, goal: &str) -> Result<Code, Failure> {
    let here = Here::of(gyrus)?;
    let choices = skills::chosen(&here.home, &here.workspace, goal, &[])?;
    let mut out = output::standard();
    let mut say = |what: &str, choices: &[SkillChoice]| -> Result<(), Failure> {
        for choice in choices {
            writeln!(out, "{} {what}: {}", choice.skill.name, choice.why())?;
        }
        Ok(())
    };
    say("is loaded", &choices.loaded)?;
    say("is less specific than two others", &choices.passed_over)?;
    if choices.loaded.is_empty() {
        let count = counted(here.library.skills.len(), "skill");
        writeln!(out, "no trigger of {count} matches this goal")?;
    }
    Ok(Code::Reached)
}

fn check(gyrus: &Gyrus, path: Option<PathBuf>) -> Result<Code, Failure> {
    let library = match path {
        None => Here::of(gyrus)?.library,
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
    let folder = skills::user_folder(&home).join(name);
    let file = folder.join("SKILL.md");
    let text = EXAMPLE.replace("NAME", name);
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

/// A skill to begin with.
const EXAMPLE: &str = "\
---
name: NAME
description: Say here in one or two sentences what it does and when it helps.
metadata:
  triggers: |
    (?i)\\bNAME\\b
  max-steps: \"30\"
---
1. Say what to look at first.
2. Say what to do, and how to see that it worked.
3. Say what must not be done.
";

fn trust(gyrus: &Gyrus, name: &str) -> Result<Code, Failure> {
    inside_run::refuse("trust skills")?;
    let here = Here::of(gyrus)?;
    let skill = here.skill(name)?;
    if skill.place != SkillPlace::Project {
        put(&format!(
            "runs follow `{name}` already: it is {}\n",
            skill.place
        ))?;
        return Ok(Code::Reached);
    }
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let store = here.home.store()?;
    grants::give(&store, &here.workspace, &[skills::grant(skill)], &person)?;
    put(&format!(
        "runs in {} follow `{name}` ({}) as long as it stays as it is; to take it back: gyrus approvals\n",
        here.workspace.display(),
        counted(skill.instructions.lines().count(), "line"),
    ))?;
    Ok(Code::Reached)
}
