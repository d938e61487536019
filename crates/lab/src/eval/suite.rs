//! Tasks as a person writes them: what is to be reached, where it begins, how it is checked, and
//! what it may cost. Everything about a suite is known to be sound before its first run begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_loops::Check;
use gyrus_process::{Programs, read_regular, read_regular_text};
use gyrus_text::{file_mistake, fits};
use serde::Deserialize;

use super::desktop_suite;
use crate::{LabError, sites};

/// The name of the suite that comes with gyrus.
pub(super) const BUILT_IN: &str = "demo-site";

/// The name of the suite of tasks for the skills that come with gyrus, and its tasks.
const SKILLS: &str = "skills";
const SKILL_TASKS: &str = include_str!("../../suite-of-skills/tasks.toml");

/// The name of the suite of tasks on programs of a desktop.
const DESKTOP: &str = "desktop";

/// Steps and seconds of a task that names none.
const STEPS: u64 = 30;
const SECONDS: u64 = 180;

/// The most tasks of one evaluation.
const MOST: usize = 10_000;

/// Tasks of one server.
#[derive(Debug)]
pub(super) struct Suite {
    /// Name of the suite, as the person gave it.
    pub(super) name: String,
    pub(super) tasks: Vec<Task>,
    /// Files of the folder that a task is done in, by name.
    pub(super) files: BTreeMap<OsString, Vec<u8>>,
}

/// One task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Unique among all that are evaluated together.
    pub(super) id: String,
    pub(super) goal: String,
    /// Below the task's world or the suite's address, or an address; empty on a desktop.
    #[serde(default)]
    start: String,
    /// Names of the programs of a desktop that the task is done with.
    #[serde(default)]
    pub(super) programs: Vec<String>,
    /// As `gyrus run --check` takes them.
    #[serde(default)]
    pub(super) checks: Vec<String>,
    /// Text that the answer must contain, whatever its case.
    pub(super) answer: Option<String>,
    #[serde(default)]
    pub(super) budget: Budget,
    /// Steps of a scripted player. For others to read; no run is told.
    #[serde(default, rename = "does")]
    _does: Vec<toml::Table>,
    /// Address at which the suite is served; `None` for what gyrus serves itself.
    #[serde(skip)]
    address: Option<String>,
    /// The screen that the suite is played on.
    #[serde(skip)]
    pub(super) screen: ScreenKind,
}

/// The kind of screen that a suite is played on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScreenKind {
    #[default]
    Browser,
    /// A desktop of the run's own.
    X11,
}

/// Budget of a task.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Budget {
    pub(super) steps: u64,
    pub(super) seconds: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: STEPS,
            seconds: SECONDS,
        }
    }
}

/// A file of tasks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Address at which its pages are served, if not by gyrus.
    address: Option<String>,
    #[serde(default)]
    screen: ScreenKind,
    #[serde(default)]
    task: Vec<Task>,
}

impl Task {
    /// One at an address, with a check; its goal is not known yet.
    pub(super) fn at(id: &str, start: &str, check: &str, budget: Budget) -> Self {
        Self {
            id: id.to_owned(),
            goal: String::new(),
            start: start.to_owned(),
            programs: Vec::new(),
            checks: vec![check.to_owned()],
            answer: None,
            budget,
            _does: Vec::new(),
            address: None,
            screen: ScreenKind::Browser,
        }
    }

    /// Whether gyrus serves what it is about.
    pub(super) fn is_served_here(&self) -> bool {
        self.address.is_none() && !is_address(&self.start)
    }

    /// Returns the address at which it begins; `world` is the address of a world of its own.
    pub(super) fn start_in(&self, world: &str) -> String {
        match (is_address(&self.start), &self.address) {
            (true, _) => self.start.clone(),
            (false, Some(address)) => format!("{}{}", address.trim_end_matches('/'), self.start),
            (false, None) => format!("{world}{}", self.start),
        }
    }

    /// Returns the first mistake in the task, if it has one.
    fn mistake(&self) -> Option<String> {
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
        };
        if of_screen.is_some() {
            return of_screen;
        }
        if self.checks.is_empty() && self.answer.is_none() {
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
        (self.budget.steps == 0 || self.budget.seconds == 0)
            .then(|| format!("the task `{id}` may use nothing: its budget has a 0"))
    }

    fn mistake_on_pages(&self) -> Option<String> {
        let (id, start) = (&self.id, &self.start);
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

    fn mistake_on_a_desktop(&self) -> Option<String> {
        let (id, start) = (&self.id, &self.start);
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

    /// Checks that the programs of the desktop are installed.
    pub(super) fn needs_programs(&self) -> Result<(), LabError> {
        let programs = Programs::of_this_process();
        for name in &self.programs {
            programs.find(name).map_err(|error| {
                LabError::usage(format!("the task `{}` needs a program: {error}", self.id)).hint(
                    "install it (in Debian its package has the same name), or choose other tasks with \
                     --only",
                )
            })?;
        }
        Ok(())
    }
}

/// The suites that a person names, sound and with the tasks that `only` lets through.
pub(super) fn load(named: &[String], only: Option<&str>) -> Result<Vec<Suite>, LabError> {
    let mut suites = Vec::new();
    for name in named {
        let mut suite = match name.as_str() {
            BUILT_IN => built_in(sites::suite::tasks(), of_sites())?,
            SKILLS => built_in([(SKILLS, SKILL_TASKS)], of_sites())?,
            DESKTOP => built_in(desktop_suite::tasks(), desktop_suite::files())?,
            path => from_path(Path::new(path))?,
        };
        suite.name.clone_from(name);
        if suite.tasks.is_empty() {
            return Err(LabError::usage(format!("the suite {name} has no task"))
                .hint("a task is a table [[task]] with id, goal, start and checks"));
        }
        suites.push(suite);
    }
    let mut ids = BTreeSet::new();
    for task in suites.iter().flat_map(|suite| &suite.tasks) {
        if let Some(mistake) = task.mistake() {
            return Err(LabError::usage(mistake));
        }
        if !ids.insert(task.id.clone()) {
            return Err(
                LabError::usage(format!("two tasks are called `{}`", task.id))
                    .hint("reports are compared by these ids: rename one"),
            );
        }
    }
    if ids.len() > MOST {
        return Err(LabError::usage(format!(
            "{} tasks are more than {MOST}",
            ids.len()
        )));
    }
    choose(&mut suites, only)?;
    Ok(suites)
}

/// Keeps the tasks whose ids fit.
pub(super) fn choose(suites: &mut [Suite], only: Option<&str>) -> Result<(), LabError> {
    let all = suites.iter().flat_map(|suite| &suite.tasks);
    let ids: BTreeSet<String> = all.map(|task| task.id.clone()).collect();
    if let Some(only) = only {
        for suite in suites.iter_mut() {
            suite.tasks.retain(|task| fits(only, &task.id));
        }
        if suites.iter().all(|suite| suite.tasks.is_empty()) {
            let near = gyrus_text::closest(only, ids.iter().map(String::as_str));
            let failure = LabError::usage(format!("no task fits `{only}`"));
            return Err(match near {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            });
        }
    }
    Ok(())
}

/// Returns a suite that comes with gyrus, of these files of tasks, with the files that a task is
/// given.
fn built_in<'a>(
    written: impl IntoIterator<Item = (&'a str, &'a str)>,
    files: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Result<Suite, LabError> {
    let mut tasks = Vec::new();
    for (name, text) in written {
        tasks.extend(parse(Path::new(name), text)?);
    }
    Ok(Suite {
        name: BUILT_IN.to_owned(),
        tasks,
        files: files
            .map(|(name, bytes)| (name.into(), bytes.into()))
            .collect(),
    })
}

/// Returns the files that tasks on the sites are given.
fn of_sites() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    sites::suite::files().map(|(name, text)| (name, text.as_bytes()))
}

/// A file, or all files of a folder that end with `.toml`. What lies in `files` beside them is
/// given to every task.
fn from_path(path: &Path) -> Result<Suite, LabError> {
    let failed = |error: io::Error| {
        LabError::usage(format!("the suite {} cannot be read", path.display()))
            .because(error)
            .hint(format!(
                "name a TOML file, a folder of them, {BUILT_IN}, {SKILLS} or {DESKTOP}"
            ))
    };
    let (folder, written) = if !path.is_dir() {
        (
            path.parent().unwrap_or(Path::new("")),
            vec![path.to_owned()],
        )
    } else {
        (path, listed(path).map_err(failed)?)
    };
    let is_toml =
        |file: &&PathBuf| file == &path || file.extension().is_some_and(|it| it == "toml");
    let mut tasks = Vec::new();
    for file in written.iter().filter(is_toml) {
        let text = read_regular_text(file).map_err(failed)?;
        tasks.extend(parse(file, &text)?);
    }
    let mut files = BTreeMap::new();
    let given = folder.join("files");
    if given.is_dir() {
        for file in listed(&given).map_err(failed)? {
            let name = file.file_name().unwrap_or_default().to_owned();
            files.insert(name, read_regular(&file).map_err(failed)?);
        }
    }
    Ok(Suite {
        name: path.display().to_string(),
        tasks,
        files,
    })
}

/// The files of a folder, in order.
fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Task>, LabError> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let mistake = file_mistake(text, error.span(), error.message());
        let told = LabError::usage(format!(
            "{}, line {}: {}",
            path.display(),
            mistake.line,
            mistake.message
        ));
        match mistake.nearest {
            Some(known) => told.hint(format!("did you mean `{known}`?")),
            None => told,
        }
    })?;
    if let Some(address) = written
        .address
        .as_ref()
        .filter(|address| !is_address(address))
    {
        return Err(LabError::usage(format!(
            "{}: invalid address `{address}`: an address begins with http:// or https://",
            path.display()
        )));
    }
    if let (ScreenKind::X11, Some(address)) = (written.screen, &written.address) {
        return Err(LabError::usage(format!(
            "{}: tasks on a desktop have no address, but the file names {address}",
            path.display()
        )));
    }
    let of = |mut task: Task| {
        task.address.clone_from(&written.address);
        task.screen = written.screen;
        task
    };
    Ok(written.task.into_iter().map(of).collect())
}

fn is_address(text: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|start| text.len() > start.len() && text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message and the hint.
    fn told(error: LabError) -> String {
        match error {
            LabError::Usage(complaint) => {
                format!(
                    "{}; {}",
                    complaint.message,
                    complaint.hint.unwrap_or_default()
                )
            }
            other => panic!("{other}"),
        }
    }

    fn said(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.toml");
        fs::write(&file, text).unwrap();
        match load(&[file.display().to_string()], None) {
            Ok(suites) => format!("{} tasks", suites[0].tasks.len()),
            Err(error) => told(error).replace(&format!("{}/", folder.path().display()), ""),
        }
    }

    #[test]
    fn mistakes_are_told_before_anything_begins() {
        let good = "[[task]]\nid = \"a\"\ngoal = \"g\"\nstart = \"/shop/\"\n";
        let with = |more: &str| said(&format!("{good}{more}"));
        assert_eq!(with("checks = [\"text:done\"]\n"), "1 tasks");
        for (more, expected) in [
            ("chekcs = []\n", "did you mean `checks`?"),
            ("", "neither `checks` nor an `answer`"),
            (
                "checks = [\"text:\"]\n",
                "invalid check `text:`: nothing follows",
            ),
            (
                "answer = \"x\"\nbudget = { steps = 0 }\n",
                "its budget has a 0",
            ),
            (
                "answer = \"x\"\nbudget = { step = 1 }\n",
                "did you mean `steps`?",
            ),
        ] {
            let said = with(more);
            assert!(said.contains(expected), "{said}");
        }
        for (text, expected) in [
            ("", "has no task"),
            ("address = \"shop\"\n", "invalid address `shop`"),
            ("[[task]]\nid = \"a\"\n", "missing key `goal`"),
            (
                "[[task]]\nid = \"a\"\ngoal = \"g\"\nstart = \"shop\"\nanswer = \"x\"\n",
                "starts at `shop`, which is not an address",
            ),
            (
                "[[task]]\nid = \"A b\"\ngoal = \"g\"\nstart = \"/\"\nanswer = \"x\"\n",
                "invalid task id",
            ),
        ] {
            let said = said(text);
            assert!(said.contains(expected), "{said}");
        }
        let twice = format!("{good}answer = \"x\"\n");
        assert!(said(&twice.repeat(2)).contains("two tasks are called `a`"));
    }

    #[test]
    fn mistakes_in_tasks_on_desktops_are_told() {
        let with = |head: &str, more: &str| {
            said(&format!(
                "{head}\n[[task]]\nid = \"a\"\ngoal = \"g\"\nanswer = \"x\"\n{more}\n"
            ))
        };
        let desktop = "screen = \"x11\"";
        assert_eq!(with(desktop, "programs = [\"xfce4-terminal\"]"), "1 tasks");
        for (head, more, expected) in [
            (desktop, "", "names no `programs`"),
            (desktop, "programs = [\"\"]", "invalid program ``"),
            (
                desktop,
                "programs = [\"../bash\"]",
                "invalid program `../bash`",
            ),
            (
                desktop,
                "programs = [\"/bin/sh\"]",
                "invalid program `/bin/sh`",
            ),
            (
                desktop,
                "programs = [\"Mousepad\"]",
                "invalid program `Mousepad`",
            ),
            (desktop, "programs = [\"mousepаd\"]", "invalid program"),
            (
                desktop,
                "start = \"/shop/\"\nprograms = [\"a\"]",
                "a desktop has no addresses",
            ),
            (
                desktop,
                "programs = [\"a\"]\nchecks = [\"js:1\"]",
                "is one of pages",
            ),
            (
                "screen = \"wayland\"",
                "programs = [\"a\"]",
                "unknown word `wayland`",
            ),
            (
                "",
                "programs = [\"a\"]\nstart = \"/\"",
                "is played on pages",
            ),
            ("", "", "has no `start`"),
        ] {
            let said = with(head, more);
            assert!(said.contains(expected), "{said}");
        }
        let address = "screen = \"x11\"\naddress = \"http://127.0.0.1:1\"";
        let said = with(address, "programs = [\"a\"]");
        assert!(said.contains("have no address"), "{said}");
    }

    #[test]
    fn patterns_choose() {
        for (pattern, name, expected) in [
            ("shop-*", "shop-order", true),
            ("*", "", true),
            ("*order*", "shop-order-lamp", true),
            ("shop", "shop-order", false),
            ("*-lamp", "shop-order", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
        let said = told(load(&[BUILT_IN.to_owned()], Some("shop-ordr-lamp")).unwrap_err());
        assert!(said.contains("did you mean `shop-order-lamp`?"), "{said}");
    }
}
