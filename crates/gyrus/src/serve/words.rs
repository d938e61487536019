//! A request for a run as a command line of `gyrus run`, and what its options may be. The flags of
//! `gyrus run` are the only list of options that there is.

#[cfg(feature = "fleet")]
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

#[cfg(feature = "fleet")]
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, CommandFactory as _, FromArgMatches as _, Parser};
#[cfg(feature = "fleet")]
use gyrus_contract::Text;
#[cfg(feature = "fleet")]
use gyrus_runtime::queue::OptionValue;
use gyrus_runtime::queue::RunRequest;
use serde_json::{Map, Value, json};

use crate::{commands::run::Run, failure::Failure};

/// Options of `gyrus run` that mean the terminal or the machine at which it is typed, or that a request
/// has a field for.
const NOT_OPTIONS: [&str; 16] = [
    "fleet",
    "needs",
    "upload",
    "clone",
    "workdir",
    "continue",
    "ephemeral",
    "json",
    "output-format",
    "trace",
    "env",
    "port",
    "add-dir",
    "clipboard",
    "help",
    "version",
];

/// The command line of a run.
#[derive(Parser)]
#[command(name = "gyrus run", disable_version_flag = true)]
struct Words {
    #[command(flatten)]
    run: Run,
}

/// A folder of every machine in which nobody keeps anything.
const NOBODYS_FOLDER: &str = "/sys";

/// Returns a request that can be checked here, of one that is carried out on another machine: whether
/// its folder is there is seen there.
pub(crate) fn checkable(request: RunRequest) -> RunRequest {
    RunRequest {
        workdir: NOBODYS_FOLDER.into(),
        ..request
    }
}

/// Returns the command that carries out a request.
///
/// # Errors
/// An option is unknown, or its value cannot be taken.
pub(crate) fn command(request: &RunRequest) -> Result<Run, Failure> {
    let known = options();
    for name in request.options.keys() {
        if !known.iter().any(|option| option.get_long() == Some(name)) {
            let failure = Failure::usage(format!("there is no option `{name}`"));
            let names = known.iter().filter_map(Arg::get_long);
            return Err(match gyrus_text::closest(name, names) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("the options are those of gyrus run --help, without dashes"),
            });
        }
    }
    let mut words = vec!["gyrus run".to_owned()];
    words.extend(request.arguments());
    words.push(format!("--workdir={}", request.workdir.display()));
    words.extend(["--json".to_owned(), "--".to_owned(), "-".to_owned()]);
    let matches = Words::command().try_get_matches_from(words);
    let run = matches.and_then(|matches| Words::from_arg_matches(&matches));
    run.map(|words| words.run)
        .map_err(|error| Failure::usage(first_words(&error)))
}

/// Returns the request that this process's command line makes: its options, for a worker elsewhere.
///
/// # Errors
/// An option is not text.
#[cfg(feature = "fleet")]
pub(crate) fn typed_request(
    goal: Text,
    workdir: PathBuf,
    needs: BTreeSet<String>,
) -> Result<RunRequest, Failure> {
    let words = std::env::args_os().skip(1);
    let matches = Words::command().try_get_matches_from(words);
    let matches = matches.map_err(|error| Failure::usage(first_words(&error)))?;
    let mut typed = BTreeMap::new();
    for option in options() {
        let (id, name) = (option.get_id().as_str(), option.get_long());
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(name) = name.filter(|_| is_typed) else {
            continue;
        };
        let values: Option<Vec<String>> = matches
            .get_raw(id)
            .into_iter()
            .flatten()
            .map(|value| value.to_str().map(str::to_owned))
            .collect();
        let values =
            values.ok_or_else(|| Failure::usage(format!("`--{name}` is not valid UTF-8")))?;
        let value = match option.get_action() {
            ArgAction::SetTrue => OptionValue::Switch(true),
            ArgAction::Append => OptionValue::Texts(values),
            _ => OptionValue::Text(values.concat()),
        };
        typed.insert(name.to_owned(), value);
    }
    Ok(RunRequest {
        options: typed,
        needs,
        ..RunRequest::new(goal, workdir)
    })
}

/// Returns what is wrong with a command line, without the words around it.
fn first_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let text = lines.join("; ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// Returns the JSON Schema of the options.
pub(super) fn schema() -> Value {
    let mut properties = Map::new();
    for option in options() {
        let Some(name) = option.get_long() else {
            continue;
        };
        let values: Vec<String> = option
            .get_possible_values()
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect();
        let text = if values.is_empty() {
            json!({"type": ["string", "number"]})
        } else {
            json!({"type": "string", "enum": values})
        };
        let mut schema = match option.get_action() {
            ArgAction::SetTrue => json!({"type": "boolean"}),
            ArgAction::Append => {
                json!({"anyOf": [text, {"type": "array", "items": {"type": "string"}}]})
            }
            _ => text,
        };
        if let Some(help) = option.get_help() {
            schema["description"] = json!(help.to_string());
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "type": "object",
        "description": "Options of `gyrus run`, by their long names without dashes.",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn options() -> Vec<Arg> {
    let command = Words::command();
    let options = command.get_arguments().filter(|option| {
        let name = option.get_long();
        name.is_some_and(|name| !NOT_OPTIONS.contains(&name)) && !option.is_hide_set()
    });
    options.cloned().collect()
}
