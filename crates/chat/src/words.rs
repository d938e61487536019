//! The commands that people may type, and what a message says.

/// A command: its name, its meaning, and how it is read.
struct KnownCommand {
    name: &'static str,
    meaning: &'static str,
    read: fn(String) -> TypedCommand,
}

/// Something that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypedCommand {
    Run(String),
    Stop(String),
    Status,
    Screenshot,
    Approve,
    Memory(String),
    Agents,
    Help,
    Start,
    Pair(String),
    /// No command: a goal, or words for a run.
    Plain(String),
    /// A command that does not exist.
    Unknown(String),
}

const COMMANDS: [KnownCommand; 8] = [
    KnownCommand {
        name: "run",
        meaning: "start a run for a goal",
        read: TypedCommand::Run,
    },
    KnownCommand {
        name: "stop",
        meaning: "stop everything; as a reply, that run",
        read: TypedCommand::Stop,
    },
    KnownCommand {
        name: "status",
        meaning: "what runs, what waits",
        read: |_| TypedCommand::Status,
    },
    KnownCommand {
        name: "approve",
        meaning: "show what waits for an answer",
        read: |_| TypedCommand::Approve,
    },
    KnownCommand {
        name: "screenshot",
        meaning: "a picture of a run's browser",
        read: |_| TypedCommand::Screenshot,
    },
    KnownCommand {
        name: "memory",
        meaning: "search the memory for words",
        read: TypedCommand::Memory,
    },
    KnownCommand {
        name: "agents",
        meaning: "list the agents",
        read: |_| TypedCommand::Agents,
    },
    KnownCommand {
        name: "help",
        meaning: "what can be typed here",
        read: |_| TypedCommand::Help,
    },
];

/// Reads what a person typed.
pub(crate) fn read(text: &str) -> TypedCommand {
    let text = text.trim();
    let Some(command) = text.strip_prefix('/') else {
        return TypedCommand::Plain(text.to_owned());
    };
    let (name, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    let rest = rest.trim().to_owned();
    let name = name.to_lowercase();
    match name.as_str() {
        "start" => return TypedCommand::Start,
        "pair" => return TypedCommand::Pair(rest),
        _ => {}
    }
    match COMMANDS.iter().find(|known| known.name == name) {
        Some(known) => (known.read)(rest),
        None => TypedCommand::Unknown(name),
    }
}

/// Returns the commands with their meanings.
pub(crate) fn commands() -> Vec<(&'static str, &'static str)> {
    let commands = COMMANDS.iter();
    commands.map(|known| (known.name, known.meaning)).collect()
}

/// Returns the text that says what can be typed.
pub(crate) fn help() -> String {
    let mut text = "Write what is to be done, and a run begins. Reply to its message to add \
                    something; once it is over, a reply goes on from it. Files and pictures with \
                    words come with the goal.\n"
        .to_owned();
    for known in &COMMANDS {
        text.push_str(&format!("\n/{}: {}", known.name, known.meaning));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_commands() {
        let check = |text: &str, expected: TypedCommand| assert_eq!(read(text), expected, "{text}");
        check(" do it ", TypedCommand::Plain("do it".to_owned()));
        check("/run  do\nit", TypedCommand::Run("do\nit".to_owned()));
        check("/RUN x", TypedCommand::Run("x".to_owned()));
        check("/stop", TypedCommand::Stop(String::new()));
        check("/approve 1", TypedCommand::Approve);
        check("/pair  ABC ", TypedCommand::Pair("ABC".to_owned()));
        check("/rum x", TypedCommand::Unknown("rum".to_owned()));
        check("/", TypedCommand::Unknown(String::new()));
        // Another letter that looks the same is another command.
        check("/ѕtop", TypedCommand::Unknown("ѕtop".to_owned()));
        assert!(help().contains("/memory: search"));
    }
}
