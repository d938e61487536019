//! Instances as SWE-bench has them: an issue of a repository, the commit before its fix, and tests
//! that a fix makes pass. They lie in a file of JSON, or of JSON a line; the repositories beside it,
//! in `repos/OWNER__NAME`.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;
use serde_json::Value;

use super::{
    super::{
        folder::CHECKS,
        task::{EvalTask, TaskBudget},
    },
    reading::{STEPS, id, json, quoted, text, wrong},
};
use crate::LabError;

/// The command that runs tests, where an instance names none.
const TEST_COMMAND: &str = "python3 -m pytest -q";

/// Seconds of a run.
const SECONDS: u64 = 1_800;

/// An instance. The fix itself, `patch`, is never read.
#[derive(Deserialize)]
struct Instance {
    instance_id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    #[serde(default)]
    test_patch: String,
    #[serde(rename = "FAIL_TO_PASS", default)]
    fail_to_pass: TestNames,
    #[serde(rename = "PASS_TO_PASS", default)]
    pass_to_pass: TestNames,
    test_cmd: Option<String>,
}

/// Names of tests: a list, or a list as JSON in a text.
#[derive(Default, Deserialize)]
#[serde(try_from = "Value")]
struct TestNames(Vec<String>);

impl TryFrom<Value> for TestNames {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Self, serde_json::Error> {
        let names = match value {
            Value::String(text) => serde_json::from_str(&text)?,
            value => serde_json::from_value(value)?,
        };
        Ok(Self(names))
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<EvalTask>, LabError> {
    let text = text(path)?;
    let values = if path.extension().is_some_and(|it| it == "jsonl") {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| json(path, line))
            .collect::<Result<_, _>>()?
    } else {
        match json(path, &text)? {
            Value::Array(values) => values,
            one => vec![one],
        }
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let tasks = values.into_iter().map(|value| {
        let instance: Instance =
            serde_json::from_value(value).map_err(|error| wrong(path, &error.to_string()))?;
        task(instance, folder).map_err(|why| wrong(path, &why))
    });
    tasks.collect()
}

fn task(instance: Instance, folder: &Path) -> Result<EvalTask, String> {
    let named = &instance.instance_id;
    let is_commit = |c: char| c.is_ascii_hexdigit();
    if instance.base_commit.is_empty() || !instance.base_commit.chars().all(is_commit) {
        let commit = &instance.base_commit;
        return Err(format!("`{named}`: `{commit}` is not the id of a commit"));
    }
    if instance.fail_to_pass.0.is_empty() {
        return Err(format!("`{named}` names no test in FAIL_TO_PASS"));
    }
    let name = instance.repo.replace('/', "__");
    let repository = folder.join("repos").join(&name);
    let is_plain = !name.starts_with('.') && !name.is_empty();
    let left_out = (!is_plain || !repository.is_dir()).then(|| {
        format!(
            "`{named}` needs a clone of its repository: git clone --bare {} {}",
            instance.repo,
            repository.display()
        )
    });
    let command = instance.test_cmd.as_deref().unwrap_or(TEST_COMMAND);
    let run = |tests: &TestNames| match tests.0.as_slice() {
        [] => String::new(),
        tests => {
            let tests: Vec<_> = tests.iter().map(|test| quoted(test)).collect();
            format!("{command} {}\n", tests.join(" "))
        }
    };
    let apply = if instance.test_patch.trim().is_empty() {
        String::new()
    } else {
        let as_it_was = as_it_was(&instance.test_patch, &instance.base_commit);
        format!("{as_it_was}git apply {CHECKS}/tests.patch\n")
    };
    let (failed, passed) = (run(&instance.fail_to_pass), run(&instance.pass_to_pass));
    let script = format!("set -e\n{apply}{failed}{passed}");
    let mut patch = instance.test_patch;
    if !patch.ends_with('\n') {
        patch.push('\n');
    }
    let budget = TaskBudget {
        steps: STEPS,
        seconds: Some(SECONDS),
    };
    let mut task = EvalTask::in_folder(id(named), instance.problem_statement, budget);
    task.commit = Some((repository, instance.base_commit));
    task.hidden = [
        (format!("{CHECKS}/tests.patch"), patch),
        (format!("{CHECKS}/run.sh"), script),
    ]
    .into();
    task.checks = vec![format!("sh {CHECKS}/run.sh")];
    task.left_out = left_out;
    Ok(task)
}

/// Returns commands that make the files of a patch as they are in a commit, whatever a run did to them.
fn as_it_was(patch: &str, commit: &str) -> String {
    let named = |line: &str| {
        let path = line
            .strip_prefix("--- a/")
            .or(line.strip_prefix("+++ b/"))?;
        Some(path.split('\t').next().unwrap_or(path).to_owned())
    };
    let files: BTreeSet<String> = patch.lines().filter_map(named).collect();
    let restored = files.iter().map(|file| {
        let (of_commit, file) = (quoted(&format!("{commit}:{file}")), quoted(file));
        format!(
            "rm -rf {file}\ngit cat-file -e {of_commit} 2>/dev/null && git show {of_commit} > {file} || true\n"
        )
    });
    restored.collect()
}
