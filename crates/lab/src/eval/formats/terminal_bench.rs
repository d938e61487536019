//! A task folder of Terminal-Bench: `task.yaml`, a container, `run-tests.sh` and `tests/`.

use std::path::{Path, PathBuf};

use gyrus_text::{Yaml, YamlNode, parse_yaml};

use super::{
    super::{
        folder::CHECKS,
        stand_in::StandIn,
        task::{EvalTask, TaskBudget},
    },
    dockerfile::{self, ContainerFolder},
    reading::{STEPS, id, text, texts, wrong},
};
use crate::LabError;

/// The file by which a folder is such a task.
pub(super) const TASK: &str = "task.yaml";

/// Seconds of a run, where the task names none.
const SECONDS: u64 = 900;

/// Words of a script of tests that fetches the program for the tests first.
const FETCHING: [&str; 5] = ["apt-get", "curl", "pip install", "uv ", "wget"];

pub(super) fn read(folder: &Path) -> Result<EvalTask, LabError> {
    let file = folder.join(TASK);
    let task = parse_yaml(&text(&file)?, 1).map_err(|mistake| {
        let why = format!("line {}: {}", mistake.line, mistake.message);
        wrong(&file, &why)
    })?;
    let instruction = field(&task, "instruction").or_else(|| first_description(&task));
    let goal = instruction.ok_or_else(|| wrong(&file, "there is no `instruction`"))?;
    let seconds = field(&task, "max_agent_timeout_sec");
    let seconds = seconds.and_then(|it| it.parse::<f64>().ok());
    let seconds = seconds.map_or(SECONDS, |it| it.clamp(1.0, 86_400.0) as u64);
    let name = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let budget = TaskBudget {
        steps: STEPS,
        seconds: Some(seconds),
    };
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let mut read = EvalTask::in_folder(id(&name), goal, budget);
    let parser = field(&task, "parser_name").unwrap_or_else(|| "pytest".to_owned());
    if let Err(why) = complete(&mut read, folder, &parser) {
        read.left_out = Some(format!(
            "the task `{}` cannot be tried here: {why}",
            read.id
        ));
    }
    Ok(read)
}

/// Adds the files of the task, and how it is checked.
fn complete(task: &mut EvalTask, folder: &Path, parser: &str) -> Result<(), String> {
    let dockerfile = folder.join("Dockerfile");
    let container = if dockerfile.is_file() {
        let text = gyrus_process::read_regular_text(&dockerfile);
        dockerfile::read(&text.map_err(|error| error.to_string())?, folder)?
    } else {
        ContainerFolder::default()
    };
    for compose in ["docker-compose.yaml", "docker-compose.yml"] {
        if let Ok(text) = gyrus_process::read_regular_text(&folder.join(compose))
            && services(&text) > 1
        {
            return Err("it has several services".to_owned());
        }
    }
    task.copies = container.copies;
    let commands = container.commands.iter().map(|line| format!("({line})\n"));
    let commands: String = commands.collect();
    task.setup = (!commands.is_empty()).then(|| format!("set -e\n{commands}"));
    let tests = folder.join("tests");
    let mut hidden = if tests.is_dir() {
        texts(&tests)?
    } else {
        Vec::new()
    };
    let script = gyrus_process::read_regular_text(&folder.join("run-tests.sh")).ok();
    let fetches = |script: &String| FETCHING.iter().any(|word| script.contains(word));
    let check = match script {
        Some(script) if parser != "pytest" || !fetches(&script) => {
            hidden.push(("run-tests.sh".to_owned(), script));
            format!("TEST_DIR=\"$PWD/{CHECKS}\" bash {CHECKS}/run-tests.sh")
        }
        Some(_) | None if hidden.is_empty() => return Err("it has no tests".to_owned()),
        // What the script fetches is the program that runs these.
        Some(_) | None => format!("python3 -m pytest -q {CHECKS}"),
    };
    let below = hidden
        .into_iter()
        .map(|(path, text)| (format!("{CHECKS}/{path}"), text));
    task.hidden = below.collect();
    task.checks = vec![check];
    let stand_in = |path: &str, place: &str| StandIn {
        path: path.to_owned(),
        place: PathBuf::from(place),
    };
    task.stand_ins = vec![stand_in("/tests", CHECKS), stand_in(&container.workdir, "")];
    Ok(())
}

fn get<'a>(node: &'a YamlNode, key: &str) -> Option<&'a YamlNode> {
    let Yaml::Map(fields) = &node.value else {
        return None;
    };
    let found = fields.iter().find(|(_, name, _)| name == key);
    found.map(|(_, _, value)| value)
}

fn field(node: &YamlNode, key: &str) -> Option<String> {
    match &get(node, key)?.value {
        Yaml::Text(text, _) => Some(text.trim().to_owned()),
        Yaml::List(_) | Yaml::Map(_) => None,
    }
}

/// Returns the instruction of the older form, in which a task has several.
fn first_description(task: &YamlNode) -> Option<String> {
    let Yaml::List(descriptions) = &get(task, "descriptions")?.value else {
        return None;
    };
    descriptions
        .first()
        .and_then(|first| field(first, "description"))
}

fn services(text: &str) -> usize {
    let parsed = parse_yaml(text, 1).ok();
    let services = parsed.as_ref().and_then(|parsed| get(parsed, "services"));
    match services.map(|services| &services.value) {
        Some(Yaml::Map(services)) => services.len(),
        Some(Yaml::Text(..) | Yaml::List(_)) | None => 1,
    }
}
