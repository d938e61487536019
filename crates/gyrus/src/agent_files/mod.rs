//! Agents as files: `agents/NAME.md` in the configuration folder, with settings in YAML between
//! `---` lines and the instructions below them.
//!
//! Every mistake of a file is found at once, each with its line. A file with mistakes describes no agent,
//! and keeps no other file from being one.

mod places;
mod mistake;
mod agent_file;
mod fields;
mod role;
mod triggers;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use gyrus::runtime::{self, Home};
use gyrus_contract::{Origin, Text};
use gyrus_runtime::triggers::{HookSecret, TriggerSource};

use gyrus_text::{FileMistake, parse_yaml, split_front_matter};

pub(crate) use self::{
    agent_file::{AgentFile, HookSecrets},
    mistake::Mistake,
    places::folder,
    role::{ReadRoles, grant_of_roles, proposed_roles, roles},
    triggers::is_variable,
};
use self::{
    fields::{FieldLines, Fields},
    places::{MAX_FILE, paths},
};
use crate::{Gyrus, commands::run::Run, keys::KeyLookup};

#[derive(Debug)]
pub(crate) struct AgentFileResult {
    pub(crate) path: PathBuf,
    /// The agent, or every mistake.
    pub(crate) agent: Result<AgentFile, Vec<Mistake>>,
}

/// Reads all files, sorted by name; none if the folder does not exist. Of two files that name the
/// same agent, the second is invalid.
///
/// # Errors
/// The folder cannot be read, or has too many files.
pub(crate) fn read_all(gyrus: &Gyrus, home: &Home) -> io::Result<Vec<AgentFileResult>> {
    let mut names = BTreeMap::new();
    let mut readings = Vec::new();
    for path in paths(&folder(home))? {
        if role::is_role(&path) {
            continue;
        }
        let mut agent = read(gyrus, home, &path);
        if let Ok(file) = &agent {
            let name = file.config.name.clone();
            if let Some(first) = names.insert(name.clone(), path.clone()) {
                let message = format!("the agent `{name}` is also in {}", first.display());
                names.insert(name, first);
                agent = Err(vec![Mistake::new(1, message)]);
            }
        }
        readings.push(AgentFileResult { path, agent });
    }
    Ok(readings)
}

/// Reads the file of an agent.
///
/// # Errors
/// All mistakes in the file.
pub(crate) fn read(gyrus: &Gyrus, home: &Home, path: &Path) -> Result<AgentFile, Vec<Mistake>> {
    let unreadable =
        |error: io::Error| vec![Mistake::new(1, format!("it cannot be read: {error}"))];
    let mut text = String::new();
    let mut file = fs::File::open(path).map_err(unreadable)?.take(MAX_FILE + 1);
    file.read_to_string(&mut text).map_err(unreadable)?;
    if file.limit() == 0 {
        let message = format!("it is larger than {MAX_FILE} bytes");
        return Err(vec![Mistake::new(1, message)]);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let refused = |mistake: FileMistake| vec![Mistake::from(mistake)];
    let (front, body, body_line) = split_front_matter(&text).map_err(refused)?;
    let root = parse_yaml(front, 2).map_err(refused)?;
    let mut fields = Fields::default();
    let agent = fields.agent(root, &stem, body, body_line, home.person.as_deref());
    let mut mistakes = fields.mistakes;
    let agent = match agent {
        Some((agent, lines)) => {
            check_run(gyrus, home, &agent, &lines, &mut mistakes);
            agent
        }
        None => return Err(mistakes),
    };
    mistakes.sort_by_key(|mistake| mistake.line);
    if mistakes.is_empty() {
        Ok(agent)
    } else {
        Err(mistakes)
    }
}

pub(crate) fn secrets(gyrus: &Gyrus, readings: &[AgentFileResult]) -> HookSecrets {
    let files = readings
        .iter()
        .filter_map(|reading| reading.agent.as_ref().ok());
    let variables: BTreeSet<&String> = files
        .flat_map(|file| &file.triggers)
        .filter_map(|trigger| trigger.secret.as_ref())
        .collect();
    if variables.is_empty() {
        return HookSecrets::new();
    }
    let config = gyrus.config();
    let secret = |variable: &str| {
        let config = config.as_ref().map_err(|failure| failure.message.clone())?;
        let keys = KeyLookup::new(&config.keys);
        let Some(text) = keys.get(variable) else {
            let failure = keys.failure().map(|failure| failure.message);
            return Err(failure.unwrap_or_else(|| "it is not set".to_owned()));
        };
        HookSecret::new(&text).map_err(|error| error.to_string())
    };
    variables
        .into_iter()
        .map(|variable| (variable.clone(), secret(variable)))
        .collect()
}

/// Returns a remark for each thing that triggers need and this process lacks. A server may have
/// been started where it is there.
pub(crate) fn remarks(gyrus: &Gyrus, readings: &[AgentFileResult]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (variable, secret) in secrets(gyrus, readings) {
        if let Err(error) = secret {
            remarks.push(format!(
                "the secret {variable} of a webhook cannot be used here: {error}; store one: gyrus \
                 agents secret {variable}"
            ));
        }
    }
    let files = readings
        .iter()
        .filter_map(|reading| reading.agent.as_ref().ok());
    let mut triggers = files.flat_map(|file| &file.triggers);
    if triggers.any(|trigger| trigger.config.source == TriggerSource::Clipboard)
        && let Err(error) = gyrus_tools::Clipboard::new().reading(Path::new("/"))
    {
        remarks.push(format!("the clipboard cannot be read here: {error}"));
    }
    remarks
}

/// Makes the checks that `gyrus run` would make.
fn check_run(
    gyrus: &Gyrus,
    home: &Home,
    agent: &AgentFile,
    lines: &FieldLines,
    mistakes: &mut Vec<Mistake>,
) {
    if !gyrus.is_of_a_fleet()
        && let Err(error) = runtime::workspace(home, &agent.workdir)
    {
        mistakes.push(Mistake::of(lines.workdir, error.into()));
        return;
    }
    let request = agent.request(Text::new("", Origin::Configuration));
    if let Err(failure) = Run::ordered(request).check(gyrus) {
        mistakes.push(Mistake::of(lines.options.unwrap_or(1), failure));
    }
}
