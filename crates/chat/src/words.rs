//! The commands that people may type, and what a message says.

/// A command: its name, its meaning, and how it is read.
struct KnownCommand {
    name: &'static str,
    meaning: &'static str,
    read: fn(String) -> ChatWords,
}

/// The meaning of a text that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatWords {
    Run(String),
    Stop(String),
    Status,
    Screenshot,
    Approve,
    Memory(String),
    Agents(String),
    Help,
    Start,
    Pair(String),
    /// A goal, or a message to a run.
    Plain(String),
    /// A command that does not exist.
    Unknown(String),
}

const COMMANDS: [KnownCommand; 8] = [
    KnownCommand {
        name: "run",
        meaning: "start a run for a goal",
        read: ChatWords::Run,
    },
    KnownCommand {
        name: "stop",
        meaning: "stop everything; as a reply, that run",
        read: ChatWords::Stop,
    },
    KnownCommand {
        name: "status",
        meaning: "what runs, what waits",
        read: |_| ChatWords::Status,
    },
    KnownCommand {
        name: "approve",
        meaning: "show what waits for an answer",
        read: |_| ChatWords::Approve,
    },
    KnownCommand {
        name: "screenshot",
        meaning: "a picture of a run's browser",
        read: |_| ChatWords::Screenshot,
    },
    KnownCommand {
        name: "memory",
        meaning: "search the memory for words",
        read: ChatWords::Memory,
    },
    KnownCommand {
        name: "agents",
        meaning: "list the agents; with a name and words, tell one",
        read: ChatWords::Agents,
    },
    KnownCommand {
        name: "help",
        meaning: "what can be typed here",
        read: |_| ChatWords::Help,
    },
];

pub(crate) fn read(text: &str) -> ChatWords {
    let text = text.trim();
    let Some(command) = text.strip_prefix('/') else {
        return ChatWords::Plain(text.to_owned());
    };
    let (name, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    let rest = rest.trim().to_owned();
    let name = name.to_lowercase();
    match name.as_str() {
        "start" => return ChatWords::Start,
        "pair" => return ChatWords::Pair(rest),
        _ => {}
    }
    match COMMANDS.iter().find(|known| known.name == name) {
        Some(known) => (known.read)(rest),
        None => ChatWords::Unknown(name),
    }
}

pub(crate) fn commands() -> Vec<(&'static str, &'static str)> {
    let commands = COMMANDS.iter();
    commands.map(|known| (known.name, known.meaning)).collect()
}

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
        let check = |text: &str, expected: ChatWords| assert_eq!(read(text), expected, "{text}");
        check(" do it ", ChatWords::Plain("do it".to_owned()));
        check("/run  do\nit", ChatWords::Run("do\nit".to_owned()));
        check("/RUN x", ChatWords::Run("x".to_owned()));
        check("/stop", ChatWords::Stop(String::new()));
        check("/approve 1", ChatWords::Approve);
        check("/pair  ABC ", ChatWords::Pair("ABC".to_owned()));
        check("/rum x", ChatWords::Unknown("rum".to_owned()));
        check("/", ChatWords::Unknown(String::new()));
        // Another letter that looks the same is another command.
        check("/ѕtop", ChatWords::Unknown("ѕtop".to_owned()));
        assert!(help().contains("/memory: search"));
    }
}
