//! A task as a person writes it: what is to be reached, where it begins, how it is checked, and
//! what it may cost.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use gyrus_loops::Check;
use gyrus_process::Programs;
use serde::Deserialize;

use super::{expected::ExpectedAnswer, served::TaskServer, setting, stand_in::StandIn};
use crate::LabError;

/// Default number of steps of a task, before the seconds. Without a screen there is time for a slow
/// model.
const STEPS: u64 = 30;
const SECONDS: u64 = 180;
const SECONDS_WITHOUT_SCREEN: u64 = 900;

/// The options of `gyrus run` that a task may set: none of them lets its run do more.
const OPTIONS: [&str; 17] = [
    "answer-schema",
    "docs",
    "effort",
    "file",
    "image",
    "judge",
    "judge-images",
    "loop",
    "max-cost",
    "max-tokens",
    "no-lessons",
    "no-memory",
    "no-skills",
    "on-failure",
    "reflect",
    "tools",
    "verify",
];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EvalTask {
    /// The unique id among all evaluated tasks.
    pub(super) id: String,
    pub(super) goal: String,
    /// Below the task's world or the suite's address, or an address; empty where there are no pages.
    #[serde(default)]
    start: String,
    /// Names of the programs that the task needs. Without a screen, a task whose programs are not
    /// installed is skipped.
    #[serde(default)]
    pub(super) programs: Vec<String>,
    /// Checks, in the form for `gyrus run --check`. Without a screen they are commands, which the
    /// evaluation runs after the run: no run is told of them.
    #[serde(default)]
    pub(super) checks: Vec<String>,
    pub(super) answer: Option<ExpectedAnswer>,
    /// Text of the files in the task's folder, by path.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// A folder whose contents are copied into the task's folder; in a file, relative to it.
    pub(super) folder: Option<PathBuf>,
    /// A command that completes the task's folder before the run.
    pub(super) setup: Option<String>,
    /// Whether the goal is unreachable, so that a run solves the task by giving up, or by the
    /// expected answer without the claim to have reached the goal.
    #[serde(default)]
    pub(super) impossible: bool,
    #[serde(default)]
    pub(super) budget: TaskBudget,
    /// Options of `gyrus run` for this task, by their long names: a judge, a loop, a schema.
    #[serde(default)]
    options: BTreeMap<String, toml::Value>,
    /// Text of files that are laid into the task's folder once its run has ended, for its checks.
    #[serde(default)]
    pub(super) hidden: BTreeMap<String, String>,
    /// A server whose tools the run has.
    pub(super) server: Option<TaskServer>,
    /// Files and folders beside `folder` that are copied, each to its path in the task's folder.
    #[serde(skip)]
    pub(super) copies: Vec<(PathBuf, PathBuf)>,
    /// A repository and the commit of it that the task's folder begins with.
    #[serde(skip)]
    pub(super) commit: Option<(PathBuf, String)>,
    /// Paths that stand for the task's folder where the task was written.
    #[serde(skip)]
    pub(super) stand_ins: Vec<StandIn>,
    /// The reason why the task cannot be tried here.
    #[serde(skip)]
    pub(super) left_out: Option<String>,
    /// Steps of a scripted player. For others to read; no run is told.
    #[serde(default, rename = "does")]
    _does: Vec<toml::Table>,
    /// Address at which the suite is served; `None` for what gyrus serves itself.
    #[serde(skip)]
    pub(super) address: Option<String>,
    #[serde(skip)]
    pub(super) screen: ScreenKind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScreenKind {
    #[default]
    Browser,
    X11,
    /// No screen: the task is work in a folder.
    #[serde(rename = "none")]
    NoScreen,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TaskBudget {
    pub(super) steps: u64,
    pub(super) seconds: Option<u64>,
}

impl Default for TaskBudget {
    fn default() -> Self {
        Self {
            steps: STEPS,
            seconds: None,
        }
    }
}

impl EvalTask {
    /// Creates a task at an address, with a check and without a goal yet.
    pub(super) fn at(id: &str, start: &str, check: &str, budget: TaskBudget) -> Self {
        Self {
            id: id.to_owned(),
            start: start.to_owned(),
            checks: vec![check.to_owned()],
            budget,
            screen: ScreenKind::Browser,
            ..Self::default()
        }
    }

    /// One in a folder, which is not checked yet.
    pub(super) fn in_folder(id: String, goal: String, budget: TaskBudget) -> Self {
        Self {
            id,
            goal,
            budget,
            screen: ScreenKind::NoScreen,
            ..Self::default()
        }
    }

    /// Returns the time limit of a run in seconds.
    pub(super) fn seconds(&self) -> u64 {
        let usual = match self.screen {
            ScreenKind::Browser | ScreenKind::X11 => SECONDS,
            ScreenKind::NoScreen => SECONDS_WITHOUT_SCREEN,
        };
        self.budget.seconds.unwrap_or(usual)
    }

    pub(super) fn is_served_here(&self) -> bool {
        self.address.is_none() && !is_address(&self.start)
    }

    /// Returns the address at which the task begins; `world` is the address of a world of its own.
    pub(super) fn start_in(&self, world: &str) -> String {
        match (is_address(&self.start), &self.address) {
            (true, _) => self.start.clone(),
            (false, Some(address)) => format!("{}{}", address.trim_end_matches('/'), self.start),
            (false, None) => format!("{world}{}", self.start),
        }
    }

    pub(super) fn mistake(&self) -> Option<String> {
        let id = &self.id;
        let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if id.is_empty() || id.len() > 60 || !id.chars().all(is_kebab) {
            return Some(format!(
                "invalid task id `{id}`: an id has at most 60 small letters, digits and `-`"
            ));
        }
        if self.goal.trim().is_empty() {
            return Some(format!("the task `{id}` has no goal"));
        }
        let of_screen = match self.screen {
            ScreenKind::Browser => self.mistake_on_pages(),
            ScreenKind::X11 => self.mistake_on_a_desktop(),
            ScreenKind::NoScreen => self.mistake_in_a_folder(),
        };
        if of_screen.is_some() {
            return of_screen;
        }
        let server = self.server.as_ref();
        let is_compared = server.is_some_and(|server| server.data.is_some());
        let is_judged = !self.checks.is_empty() || self.answer.is_some() || is_compared;
        if !is_judged && !self.impossible && self.left_out.is_none() {
            return Some(format!(
                "the task `{id}` has neither `checks` nor an `answer`, so nobody could tell \
                 whether it was done"
            ));
        }
        let wrong = self
            .checks
            .iter()
            .find_map(|check| check.parse::<Check>().err());
        if let Some(wrong) = wrong {
            return Some(format!("the task `{id}`: {wrong}"));
        }
        if let Err(wrong) = self.arguments() {
            return Some(format!("the task `{id}`: {wrong}"));
        }
        (self.budget.steps == 0 || self.seconds() == 0)
            .then(|| format!("the task `{id}` cannot run: its budget has a 0"))
    }

    /// Returns the options of the task as arguments of `gyrus run`.
    ///
    /// # Errors
    /// One is not for a task to set, or its value is not understood; in words.
    pub(super) fn arguments(&self) -> Result<Vec<String>, String> {
        let mut arguments = Vec::new();
        for (option, value) in &self.options {
            if !OPTIONS.contains(&option.as_str()) {
                let near = gyrus_text::closest(option, OPTIONS);
                let hint =
                    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                return Err(format!("a task cannot set the option `{option}`{hint}"));
            }
            let listed = match value {
                toml::Value::Array(values) => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            for value in listed {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
                        value.to_string()
                    }
                    _ => {
                        return Err(format!(
                            "the option `{option}` is a text, or a list of them"
                        ));
                    }
                };
                arguments.extend(setting::arguments(option, &text));
            }
        }
        Ok(arguments)
    }

    pub(super) fn placed(&self, text: &str, folder: &Path) -> String {
        let text = text.to_owned();
        let stand_ins = self.stand_ins.iter();
        stand_ins.fold(text, |text, stand_in| stand_in.replaced(&text, folder))
    }

    fn mistake_on_pages(&self) -> Option<String> {
        let (id, start) = (&self.id, &self.start);
        if let Some(key) = self.key_of_folders() {
            return Some(format!(
                "the task `{id}` has `{key}`, but is played on pages: write `screen = \"none\"` at the \
                 beginning of its file"
            ));
        }
        if start.is_empty() {
            return Some(format!("the task `{id}` has no `start`"));
        }
        if !start.starts_with('/') && !is_address(start) {
            return Some(format!(
                "the task `{id}` starts at `{start}`, which is not an address: it begins with `/`, \
                 http:// or https://"
            ));
        }
        (!self.programs.is_empty()).then(|| {
            format!(
                "the task `{id}` names programs, but is played on pages: write `screen = \"x11\"` at \
                 the beginning of its file"
            )
        })
    }

    /// Returns a key that only a task without a screen may have, if the task has one.
    fn key_of_folders(&self) -> Option<&'static str> {
        [
            ("files", !self.files.is_empty()),
            ("folder", self.folder.is_some()),
            ("setup", self.setup.is_some()),
            ("impossible", self.impossible),
            ("hidden", !self.hidden.is_empty()),
            ("server", self.server.is_some()),
        ]
        .into_iter()
        .find_map(|(key, is_there)| is_there.then_some(key))
    }

    fn mistake_in_a_folder(&self) -> Option<String> {
        let id = &self.id;
        if !self.start.is_empty() {
            return Some(format!(
                "the task `{id}` starts at `{}`, but without a screen there are no addresses",
                self.start
            ));
        }
        let is_inside = |path: &&String| {
            let mut parts = Path::new(path.as_str()).components();
            !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        let mut files = self.files.keys().chain(self.hidden.keys());
        if let Some(outside) = files.find(|path| !is_inside(path)) {
            return Some(format!(
                "the task `{id}`: the file `{outside}` is not in the task's folder: write a path without \
                 `..` and without a `/` at its beginning"
            ));
        }
        if let Some(folder) = self.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Some(format!(
                "the task `{id}`: there is no folder {}: `folder` is relative to the file of the task",
                folder.display()
            ));
        }
        let server = self.server.as_ref().map(|server| &server.folder);
        if let Some(folder) = server.filter(|folder| !folder.is_dir()) {
            return Some(format!(
                "the task `{id}`: there is no folder {} of its server",
                folder.display()
            ));
        }
        let is_command = |check: &&String| {
            let check = check.parse::<Check>();
            check.is_ok_and(|check| !matches!(check, Check::Command(_)))
        };
        let wrong = self.checks.iter().find(is_command)?;
        Some(format!(
            "the task `{id}`: the check `{wrong}` is made by a run; without a screen the evaluation \
             checks, by commands"
        ))
    }

    fn mistake_on_a_desktop(&self) -> Option<String> {
        let (id, start) = (&self.id, &self.start);
        if let Some(key) = self.key_of_folders() {
            return Some(format!(
                "the task `{id}` has `{key}`, which is for tasks without a screen"
            ));
        }
        if !start.is_empty() {
            return Some(format!(
                "the task `{id}` starts at `{start}`, but a desktop has no addresses"
            ));
        }
        if self.programs.is_empty() {
            return Some(format!(
                "the task `{id}` names no `programs`, so its run may start none"
            ));
        }
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.+".contains(c);
        let is_program = |name: &&String| !name.is_empty() && name.chars().all(is_name);
        if let Some(wrong) = self.programs.iter().find(|name| !is_program(name)) {
            return Some(format!(
                "the task `{id}`: invalid program `{wrong}`: a name in small letters without a folder"
            ));
        }
        let is_of_pages = |check: &&String| {
            let check = check.parse::<Check>();
            check.is_ok_and(|check| matches!(check, Check::Url(_) | Check::Script(_)))
        };
        let wrong = self.checks.iter().find(is_of_pages)?;
        Some(format!(
            "the task `{id}`: the check `{wrong}` is one of pages; on a desktop there are text:, file: \
             and commands"
        ))
    }

    pub(super) fn needs_sandbox(&self) -> bool {
        let has_commands = self.setup.is_some() || !self.checks.is_empty() || self.server.is_some();
        self.screen == ScreenKind::NoScreen && has_commands && self.left_out.is_none()
    }

    pub(super) fn needs_programs(&self) -> Result<(), LabError> {
        match self.missing() {
            Some(missing) if self.screen == ScreenKind::X11 => Err(LabError::usage(missing).hint(
                "install it (in Debian its package has the same name), or choose other tasks with \
                     --only",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Says why the task cannot be tried here, such as a program that is not installed; `None` if it
    /// can.
    pub(super) fn missing(&self) -> Option<String> {
        if self.left_out.is_some() {
            return self.left_out.clone();
        }
        let programs = Programs::of_this_process();
        let missing = self
            .programs
            .iter()
            .find_map(|name| programs.find(name).err())?;
        Some(format!("the task `{}` needs a program: {missing}", self.id))
    }
}

pub(super) fn is_address(text: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|start| text.len() > start.len() && text.starts_with(start))
}
