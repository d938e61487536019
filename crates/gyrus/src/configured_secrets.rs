//! The secrets that the configuration names, which no run may see, whether it uses them or not.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::process::CommandExt,
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use gyrus_kernel::redact::Secret;
use gyrus_process::Programs;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    config::{Config, WebSearchSection},
    env,
    keys::KeySource,
};

/// Time that all commands for keys have together. A command that takes longer is taken to ask
/// somebody.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Variables through which a program can ask a person.
const WAYS_TO_ASK: [&str; 4] = ["DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS"];

/// Returns the values of all variables that the configuration names, except those that are `known`
/// already. A command for a key runs without a way to ask somebody; a key that it does not print
/// then stays unknown.
pub(crate) fn read(config: &Config, known: &[Secret]) -> Vec<Secret> {
    let is_known = |name: &str| known.iter().any(|secret| secret.name == name);
    let mut names = variables(config);
    names.retain(|name| !is_known(name));
    let mut found = Vec::new();
    let mut commands = Vec::new();
    for name in names {
        let value = match (env::variable(name), config.keys.get(name)) {
            (Some(value), _) => Some(value),
            (None, Some(source @ KeySource::File(_))) => source.read(name).ok(),
            (None, Some(KeySource::Command(line))) => {
                commands.push((name.to_owned(), line.clone()));
                None
            }
            (None, None) => None,
        };
        found.extend(value.map(|value| Secret {
            name: name.to_owned(),
            value,
        }));
    }
    found.extend(from_commands(commands));
    found
}

/// Returns the names of the variables that hold keys and tokens.
fn variables(config: &Config) -> BTreeSet<&str> {
    let chats = config.chat.telegram.iter();
    let of_chats = chats.flat_map(|chat| {
        let transcribing = chat
            .transcribe
            .as_ref()
            .and_then(|section| section.key.as_ref());
        [Some(&chat.token), transcribing].into_iter().flatten()
    });
    let of_hooks = config
        .hooks
        .values()
        .filter_map(|hook| hook.secret.as_ref());
    let embeddings = config.memory.embeddings.iter();
    let of_memory = embeddings.filter_map(|server| server.key.as_ref());
    let all = config.keys.keys().chain(of_chats).chain(of_hooks);
    let all = all.chain(of_memory);
    let of_search = config.web_search.iter().map(WebSearchSection::variable);
    all.map(String::as_str).chain(of_search).collect()
}

/// Runs all commands at once, returns the output of those that end in time, and ends the others.
fn from_commands(commands: Vec<(String, String)>) -> Vec<Secret> {
    let (send, receive) = mpsc::channel();
    let until = Instant::now() + TIMEOUT;
    let mut running = BTreeMap::new();
    for (name, line) in commands {
        let Some(child) = started(&line) else {
            continue;
        };
        running.insert(name.clone(), Pid::from_child(&child));
        let send = send.clone();
        // Its end is told to nobody if it comes too late.
        thread::spawn(move || send.send((name, told(child))).ok());
    }
    drop(send);
    let mut found = Vec::new();
    let left = || until.saturating_duration_since(Instant::now());
    while let Ok((name, value)) = receive.recv_timeout(left()) {
        running.remove(&name);
        found.extend(value.map(|value| Secret { name, value }));
    }
    for group in running.into_values() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    found
}

/// Starts a command line without a terminal to ask at, in a process group of its own.
fn started(line: &str) -> Option<Child> {
    let mut command = Programs::of_this_process().shell(line).ok()?;
    for variable in WAYS_TO_ASK {
        command.env_remove(variable);
    }
    let command = command.process_group(0).stdin(Stdio::null());
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// Returns what a command writes, if the command succeeds.
fn told(child: Child) -> Option<String> {
    let output = child.wait_with_output().ok()?;
    let value = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !value.is_empty()).then_some(value)
}
