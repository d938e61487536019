//! Calls that deserve a second look: those that reading does not explain.
//!
//! The sandbox holds them, or nothing is filled in on their page, so they may be allowed; but what
//! they are for cannot be known from the line, or from the name of the control. Who takes that
//! look, and whether anybody does, is not decided here.

use gyrus_contract::{Aim, CommandReading, CommandWord, Does, ResolvedCall, Starts};

use crate::page;

/// Interpreters that accept a program as an argument.
const INTERPRETERS: &str = "python python2 python3 ipython pypy node nodejs deno bun ruby perl php \
    lua luajit Rscript R julia groovy elixir";

/// Long options, and words in their place, before the text of a program.
const GIVES_TEXT: [&str; 8] = [
    "--eval",
    "--print",
    "--execute",
    "--run",
    "--command",
    "--code",
    "eval",
    "exec",
];

/// Whether the call runs in the sandbox and its text does not show its purpose, or uses a control
/// whose name does not.
pub(crate) fn is_due(call: &ResolvedCall) -> bool {
    let (command, aim) = (call.command.as_ref(), call.aim.as_ref());
    command.is_some_and(|it| it.containment.is_some() && is_unexplained(&it.reading))
        || aim.is_some_and(is_nameless)
}

fn is_nameless(aim: &Aim) -> bool {
    let element = aim.element.as_ref();
    aim.starts.contains(&Starts::Acts) && !element.is_some_and(|it| page::is_readable(&it.name))
}

fn is_unexplained(reading: &CommandReading) -> bool {
    let hides = reading.facts.iter().any(|fact| fact.does == Does::Hides);
    let mut commands = reading.commands.iter();
    hides || commands.any(|simple| is_inline(&simple.words))
}

/// Whether an interpreter among these words is given its program in the line, or as its input. Of
/// a program before it (`env`, `timeout`, `uv run`) nothing is asked: rather one look too many.
fn is_inline(words: &[CommandWord]) -> bool {
    let is_interpreter = |word: &CommandWord| word.literal().is_some_and(is_interpreter);
    let Some(place) = words.iter().position(is_interpreter) else {
        return false;
    };
    let arguments = &words[place + 1..];
    let Some(first) = arguments.iter().find(|word| !is_option(word)) else {
        // Nothing names a file: it reads its program, unless it only says something of itself.
        return !says_something_of_itself(arguments);
    };
    let before = arguments.iter().take_while(|word| *word != first);
    first
        .literal()
        .is_none_or(|word| word == "-" || GIVES_TEXT.contains(&word))
        || before.filter_map(CommandWord::literal).any(gives_text)
}

fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let mut known = INTERPRETERS.split_ascii_whitespace();
    known.any(|known| known == name || known == plain)
}

fn is_option(word: &CommandWord) -> bool {
    let text = word.literal();
    text.is_some_and(|text| text.len() > 1 && text.starts_with('-'))
}

/// `-c`, `-e`, `-pe`, `-r`, `--eval=…`. What has these letters for other reasons is looked at too.
fn gives_text(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(_) => GIVES_TEXT
            .iter()
            .any(|known| option.split('=').next() == Some(*known)),
        None => option.contains(['c', 'e', 'E', 'r', 'p']),
    }
}

fn says_something_of_itself(arguments: &[CommandWord]) -> bool {
    let asks = ["--version", "--help", "-V", "-v", "-h"];
    let [only] = arguments else {
        return false;
    };
    only.literal().is_some_and(|word| asks.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn what_reading_does_not_explain() {
        let place = shell::ShellPlace {
            folder: "/srv/work".into(),
            home: None,
        };
        for (line, expected) in [
            ("ls -la", false),
            ("cargo test", false),
            ("make && git status", false),
            ("python3 tool.py -c settings", false),
            ("python3 -m pytest -q", false),
            ("python3 -u tool.py", false),
            ("node --version", false),
            ("node build.js --eval", false),
            ("echo python3 is good", false),
            ("python3 -c 'import os'", true),
            ("env python3.12 -c 'import os'", true),
            ("timeout 9 /usr/bin/python3 -c 'import os'", true),
            ("bash -c \"python3 -c 'import os'\"", true),
            ("python3 <<< 'import os'", true),
            ("cat x | python3 -", true),
            ("perl -pe 's/a/b/' file", true),
            ("node --eval='1'", true),
            ("deno eval '1'", true),
            ("node -p 1", true),
            ("ruby $x", true),
            ("$x", true),
            ("eval \"$x\"", true),
            ("busybox sh", true),
        ] {
            let reading = shell::read(line, &place);
            assert_eq!(is_unexplained(&reading), expected, "{line}: {reading:?}");
        }
    }
}
