//! Calls that ask for a person's own rights: one program with literal arguments, no shell, outside
//! of the sandbox.
//!
//! Nothing contains such a call, so it is critical and asked about each time. What it would do is
//! read as if a shell were given the same words, so that rules of a policy hold for it; the reading
//! makes nothing looser. Only verbs that read ([`reading_verbs`](crate::reading_verbs)) can be
//! granted, by their exact words.

use std::collections::BTreeMap;

use gyrus_contract::{
    CallPlace, Does, Grant, ResolvedCommand, ResolvedProgram, Touch, Unresolvable,
};
use gyrus_process::Programs;
use serde_json::Value;

use crate::{
    own_paths::OwnPaths,
    reading_verbs, resolve, shell,
    weight::{TouchWeight, uses_secret},
};

/// Programs that run other code whatever their arguments are.
const RUNS_OTHERS: [(&str, &str); 4] = [
    (
        "sh bash dash zsh ksh ash fish busybox python python2 python3 node deno bun ruby perl php \
         lua awk gawk mawk osascript tclsh expect emacs vim vi ed",
        "runs the code that its arguments hold, or the files that they name",
    ),
    (
        "env sudo doas su runuser setpriv xargs timeout nohup nice ionice stdbuf setsid script \
         watch find parallel flock unshare nsenter chroot systemd-run at batch strace gdb time",
        "starts another program, which its arguments name",
    ),
    (
        "make cmake ninja just npm npx pnpm yarn cargo go mvn gradle bundle rake pip pip3 uv poetry \
         tox pytest composer dotnet swift terraform tofu ansible ansible-playbook helm docker-compose \
         vagrant direnv mise asdf pre-commit",
        "runs code of this folder, which the agent may have written",
    ),
    (
        "git gh glab",
        "git runs the hooks of this repository and the programs that its settings name",
    ),
];

/// Settings that git is given when a reading verb is started: no hooks, nothing in submodules, no
/// program that watches files, no repository that the folder itself looks like, no maintenance
/// afterwards.
const GIT_READS: [(&str, &str); 8] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Settings that git is given in every other call. Its hooks run: a person's hook may check what is
/// pushed.
const GIT: [(&str, &str); 2] = [
    ("core.fsmonitor", "false"),
    ("safe.bareRepository", "explicit"),
];

/// Looks up the program that a call of [`Touch::RunsAsUser`] would start; `None` for other calls.
pub(crate) fn look_up(
    own_paths: &OwnPaths,
    programs: &Programs,
    touches: &[Touch],
    arguments: &Value,
    place: CallPlace<'_>,
) -> Result<Option<ResolvedCommand>, Unresolvable> {
    let Some((program, list)) = touches.iter().find_map(Touch::program) else {
        return Ok(None);
    };
    let words = words(&arguments[list]).ok_or_else(|| Unresolvable {
        reason: format!("`{list}` must be a list of texts"),
    })?;
    programs.keep_out_of(place.workspace);
    let found = arguments[program].as_str().unwrap_or_default();
    let found = programs.find(found).map_err(|error| Unresolvable {
        reason: format!("`{program}`: {error}"),
    })?;
    let name = name(&found);
    let line: Vec<String> = std::iter::once(name)
        .chain(words.iter().map(String::as_str))
        .map(quoted_for_shell)
        .collect();
    let mut reading = shell::read(
        &line.join(" "),
        &shell::ShellPlace {
            folder: place.workspace.to_owned(),
            home: own_paths.person.clone(),
        },
    );
    resolve::follow_links(own_paths, &mut reading);
    reading.environment = match reading_verbs::reads(name, &words) {
        true => settings(&GIT_READS),
        false if name == "git" => settings(&GIT),
        false => BTreeMap::new(),
    };
    Ok(Some(ResolvedCommand {
        reading,
        containment: None,
        program: Some(found),
    }))
}

/// Returns all weights of a call that runs with the person's rights.
pub(crate) fn weigh(
    own_paths: &OwnPaths,
    command: Option<&ResolvedCommand>,
    arguments: &Value,
    list: &str,
) -> Vec<TouchWeight> {
    let program = command.and_then(|command| command.program.as_ref());
    let (Some(command), Some(program)) = (command, program) else {
        return vec![TouchWeight::critical(
            "starts a program that was not looked up",
        )];
    };
    let words = words(&arguments[list]).unwrap_or_default();
    let own = command.reading.facts.iter().any(|fact| match &fact.does {
        Does::Reads { path } | Does::Writes { path } | Does::Removes { path } => {
            own_paths.is_own(path)
        }
        _ => false,
    });
    if own {
        let what = "touches gyrus's own state, which no run may see or change";
        return vec![TouchWeight::critical(what).forbidden()];
    }
    if uses_secret(arguments) {
        let what = "hands a secret, which is kept from the model, to a program";
        return vec![TouchWeight::critical(what)];
    }
    let what = "runs with your own rights, outside the sandbox";
    let weight = TouchWeight::critical(what);
    let name = name(program);
    if reading_verbs::reads(name, &words) {
        return vec![weight.unless(Grant::Program {
            path: program.path.clone(),
            arguments: words,
        })];
    }
    let mut weights = vec![weight];
    let runs = RUNS_OTHERS
        .iter()
        .filter(|(names, _)| is_among(names, name));
    weights.extend(runs.map(|(_, what)| TouchWeight::critical(*what)));
    for fact in &command.reading.facts {
        if matches!(
            fact.does,
            Does::Publishes | Does::Destroys | Does::ChangesSystem
        ) {
            weights.push(TouchWeight::critical(fact.why.clone()));
        }
    }
    weights
}

/// Whether a program of this name runs other programs, or the code in its arguments.
pub(crate) fn runs_others(name: &str) -> bool {
    RUNS_OTHERS.iter().any(|(names, _)| is_among(names, name))
}

fn is_among(names: &str, name: &str) -> bool {
    let mut names = names.split_ascii_whitespace();
    // `python3.12` is one, too.
    names.any(|known| known == name || name.starts_with(&format!("{known}.")))
}

fn name(program: &ResolvedProgram) -> &str {
    let name = program.path.file_name().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

fn words(list: &Value) -> Option<Vec<String>> {
    match list {
        Value::Null => Some(Vec::new()),
        Value::Array(words) => words
            .iter()
            .map(|word| Some(word.as_str()?.to_owned()))
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    }
}

fn quoted_for_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Settings for git as environment variables, which also hold for the programs that git starts.
/// They take the place of those that a person has set in this way.
fn settings(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut variables =
        BTreeMap::from([("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())]);
    for (index, (key, value)) in settings.iter().enumerate() {
        variables.insert(format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned());
        variables.insert(format!("GIT_CONFIG_VALUE_{index}"), (*value).to_owned());
    }
    variables
}
