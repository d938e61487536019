//! The tasks on desktops can be read, and there are enough of them on enough programs.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    screen: String,
    task: Vec<Task>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    id: String,
    goal: String,
    programs: BTreeSet<String>,
    #[serde(default)]
    checks: Vec<String>,
    answer: Option<String>,
    #[serde(default)]
    budget: Budget,
    does: Vec<BTreeMap<String, toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    steps: usize,
    seconds: u32,
}

/// As for any task.
impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: 30,
            seconds: 180,
        }
    }
}

/// Kinds of steps, each with the settings that it may have.
const STEPS: [(&str, &[&str]); 13] = [
    ("open", &["file"]),
    ("window", &[]),
    ("close", &[]),
    ("enter", &[]),
    ("click", &["within", "nth", "kind"]),
    ("type", &["text", "within", "nth"]),
    ("press", &[]),
    ("mark", &["text"]),
    ("drag", &["to"]),
    ("hover", &["within", "nth"]),
    ("wait", &["within"]),
    ("extract", &["within"]),
    ("answer", &[]),
];

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("suite-of-desktops")
}

fn tasks() -> Vec<Task> {
    let mut tasks = Vec::new();
    for entry in fs::read_dir(suite()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|found| found == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let file: File =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(file.screen, "x11", "{}", path.display());
            tasks.extend(file.task);
        }
    }
    tasks
}

#[test]
fn tasks_on_desktops_are_whole() {
    let tasks = tasks();
    let mut ids = BTreeSet::new();
    for task in &tasks {
        let id = &task.id;
        assert!(ids.insert(id), "{id} is there twice");
        assert!(!task.goal.is_empty() && !task.programs.is_empty(), "{id}");
        assert!(task.budget.steps >= task.does.len(), "{id}");
        assert!(task.budget.seconds > 0, "{id}");
        assert!(!task.checks.is_empty() || task.answer.is_some(), "{id}");
        let said = task.does.iter().find_map(|step| step.get("answer"));
        assert_eq!(said.is_some(), task.answer.is_some(), "{id}");
        if let (Some(said), Some(answer)) = (said, &task.answer) {
            assert!(said.as_str().unwrap().contains(answer), "{id}");
        }
        // Starting a program that the goal names takes no question.
        for program in &task.programs {
            assert!(task.goal.contains(program.as_str()), "{id}: {program}");
        }
        task.does.iter().for_each(|step| check_step(id, step));
    }
    let crossing = tasks.iter().filter(|task| task.programs.len() > 1);
    let programs: BTreeSet<_> = tasks.iter().flat_map(|task| &task.programs).collect();
    let found = (tasks.len(), crossing.count(), programs.len());
    assert!(
        found >= (40, 8, 6) && found.1 >= 8 && found.2 >= 6,
        "{found:?}"
    );
}

fn check_step(id: &str, step: &BTreeMap<String, toml::Value>) {
    let kinds: Vec<_> = STEPS
        .iter()
        .filter(|(kind, _)| step.contains_key(*kind))
        .collect();
    let [(kind, may)] = kinds[..] else {
        panic!("{id}: {step:?} is not one step");
    };
    let mut others = step.keys().filter(|key| key != kind);
    assert!(
        others.all(|key| may.contains(&key.as_str())),
        "{id}: {step:?}"
    );
}
