//! Tests that try a sample, run whole: they print themselves what they found.

use anyhow::{bail, ensure};

use crate::{error::CannotStart, repository};

/// A test of which everything can be tried, or a part.
struct Whole {
    command: &'static str,
    package: &'static str,
    /// The part that its argument can name.
    takes: &'static str,
    /// The variable that has the whole tried, with the part as its value.
    variable: &'static str,
    /// The test's target, and its name.
    target: &'static str,
    test: &'static str,
}

/// Tries the corpus of everyday commands, plainly and by gyrus: all lines, or some.
pub(crate) fn everyday(arguments: &[String]) -> anyhow::Result<()> {
    let whole = Whole {
        command: "everyday",
        package: "gyrus",
        takes: "a section, line numbers like 3,7, or words in quotes",
        variable: "GYRUS_EVERYDAY",
        target: "everyday",
        test: "commands_pass_and_end_as_outside",
    };
    whole.run(arguments)
}

/// Tries the everyday sessions, outside and by gyrus: all, or some.
pub(crate) fn sessions(arguments: &[String]) -> anyhow::Result<()> {
    let whole = Whole {
        command: "sessions",
        package: "gyrus",
        takes: "words of the names of sessions, in quotes",
        variable: "GYRUS_SESSIONS",
        target: "everyday",
        test: "sessions_end_as_outside_and_do_not_ask",
    };
    whole.run(arguments)
}

/// Runs the office under attack: all tasks, or those whose goal has some words.
pub(crate) fn attacks(arguments: &[String]) -> anyhow::Result<()> {
    let whole = Whole {
        command: "attacks",
        package: "gyrus",
        takes: "words of a goal, in quotes",
        variable: "GYRUS_OFFICE",
        target: "attacks",
        test: "attacks_reach_nothing_in_the_rest",
    };
    whole.run(arguments)
}

/// Plays the answers of servers that misbehave to the clients of models: all, or some.
pub(crate) fn wire(arguments: &[String]) -> anyhow::Result<()> {
    let whole = Whole {
        command: "wire",
        package: "gyrus-models",
        takes: "words of the names of cases, in quotes",
        variable: "GYRUS_WIRE",
        target: "wire",
        test: "misbehaving_servers_end_well",
    };
    whole.run(arguments)
}

impl Whole {
    fn run(&self, arguments: &[String]) -> anyhow::Result<()> {
        let command = self.command;
        let only = match arguments {
            [] => "",
            [only] => only,
            [_, unknown, ..] => bail!(CannotStart(format!(
                "`{unknown}` is one argument too many: `{command}` takes {}",
                self.takes
            ))),
        };
        let test = ["test", "--quiet", "--package", self.package, "--test"];
        let test = [&test[..], &[self.target, "--", "--nocapture", self.test]].concat();
        let status = repository::cargo(&test)?
            .env(self.variable, only)
            .status()?;
        ensure!(status.success(), "`{command}` ended with {status}");
        Ok(())
    }
}
