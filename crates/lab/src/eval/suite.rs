//! Suites: files of tasks, with the files that every task of a suite is given. Everything about a
//! suite is known to be sound before its first run begins.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use gyrus_process::{read_regular, read_regular_text};
use gyrus_text::{file_mistake, fits};
use serde::Deserialize;

use super::{
    built_in::{BUILT_IN, BuiltInSuite},
    formats,
    task::{EvalTask, ScreenKind, is_address},
};
use crate::LabError;

/// Maximum number of tasks of one evaluation.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(super) struct Suite {
    /// Name of the suite, as the person gave it.
    pub(super) name: String,
    pub(super) tasks: Vec<EvalTask>,
    /// Files of the folder in which a task is done, by name.
    pub(super) files: BTreeMap<OsString, Vec<u8>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    /// Address at which the pages are served, if not by gyrus.
    address: Option<String>,
    #[serde(default)]
    screen: ScreenKind,
    #[serde(default)]
    task: Vec<EvalTask>,
}

/// Loads the suites that a person names, with the tasks that `only` selects, and checks them.
pub(super) fn load(named: &[String], only: Option<&str>) -> Result<Vec<Suite>, LabError> {
    let mut suites = Vec::new();
    for name in named {
        let mut suite = match BUILT_IN.iter().find(|suite| suite.name == name) {
            Some(suite) => read(suite)?,
            None => from_path(Path::new(name))?,
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

/// Keeps the tasks whose ids match.
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

fn read(suite: &BuiltInSuite) -> Result<Suite, LabError> {
    let mut tasks = Vec::new();
    for (name, text) in suite.tasks {
        tasks.extend(parse(Path::new(name), text)?);
    }
    let files = suite.files.iter();
    Ok(Suite {
        name: suite.name.to_owned(),
        tasks,
        files: files
            .map(|(name, bytes)| (name.into(), bytes.to_vec()))
            .collect(),
    })
}

/// Tasks of a public suite in its own form; else a file, or all files of a folder that end with
/// `.toml`. What lies in `files` beside them is given to every task.
fn from_path(path: &Path) -> Result<Suite, LabError> {
    if let Some(tasks) = formats::read(path) {
        return Ok(Suite {
            name: path.display().to_string(),
            tasks: tasks?,
            files: BTreeMap::new(),
        });
    }
    let failed = |error: io::Error| {
        LabError::usage(format!("the suite {} cannot be read", path.display()))
            .because(error)
            .hint("name a TOML file, a folder of them, demo-site, skills, desktop or everyday")
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

fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

fn parse(path: &Path, text: &str) -> Result<Vec<EvalTask>, LabError> {
    let written: SuiteFile = toml::from_str(text).map_err(|error| {
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
    if let (true, Some(address)) = (written.screen != ScreenKind::Browser, &written.address) {
        return Err(LabError::usage(format!(
            "{}: only tasks on pages have an address, but the file names {address}",
            path.display()
        )));
    }
    let beside = path.parent().unwrap_or(Path::new(""));
    let of = |mut task: EvalTask| {
        task.folder = task.folder.map(|folder| beside.join(folder));
        if let Some(server) = &mut task.server {
            server.folder = beside.join(&server.folder);
        }
        task.address.clone_from(&written.address);
        task.screen = written.screen;
        task
    };
    Ok(written.task.into_iter().map(of).collect())
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
        assert!(
            said.contains("only tasks on pages have an address"),
            "{said}"
        );
    }

    #[test]
    fn mistakes_in_tasks_without_a_screen_are_told() {
        let with = |more: &str| {
            said(&format!(
                "screen = \"none\"\n[[task]]\nid = \"a\"\ngoal = \"g\"\n{more}\n"
            ))
        };
        assert_eq!(with("checks = [\"test -f a\"]"), "1 tasks");
        assert_eq!(with("impossible = true"), "1 tasks");
        for (more, expected) in [
            ("", "neither `checks` nor an `answer`"),
            ("answer = \"x\"\nstart = \"/\"", "there are no addresses"),
            ("answer = { regexp = \"x\" }", "expected a text, or one of"),
            (
                "answer = { regex = \"(\" }",
                "invalid regular expression `(`",
            ),
            ("checks = [\"file:a\"]", "is made by a run"),
            (
                "answer = \"x\"\nfiles = { \"../a\" = \"\" }",
                "`../a` is not in the task's folder",
            ),
            (
                "answer = \"x\"\nfiles = { \"/a\" = \"\" }",
                "`/a` is not in the task's folder",
            ),
            ("answer = \"x\"\nfolder = \"b\"", "there is no folder b"),
            (
                "answer = \"x\"\nhidden = { \"a/../../b\" = \"\" }",
                "is not in the task's folder",
            ),
            (
                "answer = \"x\"\noptions = { sandbox = \"off\" }",
                "a task cannot set the option `sandbox`",
            ),
            (
                "answer = \"x\"\noptions = { jugde = \"true\" }",
                "did you mean `judge`?",
            ),
            (
                "answer = \"x\"\noptions = { judge = { a = 1 } }",
                "the option `judge` is a text",
            ),
            (
                "server = { command = \"x\", folder = \"b\", data = \"d\" }",
                "there is no folder b of its server",
            ),
        ] {
            let said = with(more);
            assert!(said.contains(expected), "{said}");
        }
        let on_page = "[[task]]\nid = \"a\"\ngoal = \"g\"\nstart = \"/\"\nsetup = \"true\"\n";
        assert!(said(on_page).contains("has `setup`, but is played on pages"));
    }

    /// Checks the suite, so that mistakes are found without playing it.
    #[test]
    fn the_everyday_tasks_are_sound() {
        let suites = load(&["everyday".to_owned()], None).unwrap();
        let tasks = &suites[0].tasks;
        assert!(tasks.len() >= 60, "{}", tasks.len());
        // The player knows a task by its goal.
        let goals: BTreeSet<&str> = tasks.iter().map(|task| task.goal.as_str()).collect();
        assert_eq!(goals.len(), tasks.len());
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
        let said = told(load(&["demo-site".to_owned()], Some("shop-ordr-lamp")).unwrap_err());
        assert!(said.contains("did you mean `shop-order-lamp`?"), "{said}");
    }
}
