//! Parsing of a line at the prompt.

use std::path::PathBuf;

use gyrus_contract::ThinkingEffort;
use gyrus_runtime::request::Approve;

use crate::{commands, failure::Failure, mcp::PromptName};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum PromptWord {
    Goal(String),
    /// A command line of the person's own.
    Shell(String),
    Command(Vec<String>),
    Help,
    New,
    File(PathBuf),
    /// `None`: the one on the clipboard.
    Image(Option<PathBuf>),
    Model(String),
    Loop(String),
    Prompt(PromptName, String),
    Mode(Approve),
    Effort(ThinkingEffort),
    /// Resumes the last run, or the one that is named.
    Resume(Option<String>),
    Rewind,
    Undo,
    Diff,
    Trace,
    Cost,
    Context,
    Compact,
    Summary,
    Quit,
}

/// Every word with its arguments and its effect. Arguments in brackets may be left out.
const WORDS: [(&str, &str, &str); 18] = [
    ("/file", "PATH", "give the next run this text to read"),
    (
        "/image",
        "[PATH]",
        "give the next run this picture to look at, or the one on the clipboard",
    ),
    ("/model", "NAME", "ask another model, as with --model"),
    (
        "/mode",
        "MODE",
        "read-only, ask, edits, auto or never, as with --approve",
    ),
    (
        "/effort",
        "EFFORT",
        "think none, low, medium, high or max before a reply",
    ),
    (
        "/loop",
        "NAME",
        "think in another loop, as with --loop; auto chooses",
    ),
    (
        "/resume",
        "[RUN]",
        "go on with the last run where it stopped, or choose one",
    ),
    (
        "/rewind",
        "",
        "go back to before a goal: its files, and what was said; so does Esc Esc",
    ),
    ("/diff", "", "show what the last run changed, as a patch"),
    (
        "/undo",
        "",
        "take back what the last run changed; asks first",
    ),
    (
        "/trace",
        "",
        "show what happened in the last run, step by step",
    ),
    ("/cost", "", "say what the runs of this session have used"),
    ("/context", "", "show what fills the model's window"),
    (
        "/compact",
        "",
        "begin the next goal with a summary of what was said",
    ),
    (
        "/summary",
        "",
        "edit the summary of what was said; the next goal begins with it",
    ),
    ("/new", "", "begin a new session: forget what was said"),
    ("/help", "", "this"),
    ("/quit", "", "leave; so does Ctrl-D"),
];

/// Other names of some words.
const ALIASES: [(&str, &str); 2] = [("/approve", "/mode"), ("/exit", "/quit")];

/// Returns every word, including the commands of gyrus, with its arguments and its effect.
pub(super) fn all() -> Vec<(String, String, String)> {
    let own = WORDS.map(|(word, takes, does)| (word.into(), takes.into(), does.into()));
    let is_own = |name: &str| WORDS.iter().any(|(word, ..)| word[1..] == *name);
    let commands = commands::names().into_iter();
    let commands = commands.filter(|(name, _)| !is_own(name));
    let commands = commands.map(|(name, does)| (format!("/{name}"), "[…]".to_owned(), does));
    own.into_iter().chain(commands).collect()
}

pub(super) fn help(columns: Option<usize>) -> String {
    let mut text = String::from(
        "A line is a goal; `\\` at its end, or Alt-Enter, goes on in the next line. @PATH gives it a file \
         or a picture. !COMMAND is run as yours, and what it prints comes with the next goal. Shift-Tab \
         is the next mode, Ctrl-R finds a line of before, Ctrl-G opens your editor. While a run works, what is typed is told to it before its next step; with Alt-Enter \
         it is the next goal. Escape or Ctrl-C lets the run finish what it is doing, twice cuts it off. \
         Every run knows what the ones before it said and saw. /SERVER:PROMPT begins with a prompt \
         of a server; words like NAME=VALUE after it are its arguments, others the goal. Every command of \
         gyrus is a word, too: /skills, /show 1a2b, /fork last 3.\n",
    );
    for (word, takes, does) in WORDS {
        let both = format!("{word} {takes}");
        // In a narrow terminal each explanation stands below its word.
        if columns.is_some_and(|columns| columns < WIDE) {
            text.push_str(&format!("  {both}\n    {does}\n"));
        } else {
            text.push_str(&format!("  {both:<16} {does}\n"));
        }
    }
    text
}

/// Number of columns from which the help is printed in two columns.
const WIDE: usize = 80;

/// Parses a line; `None` if there is nothing on it.
pub(super) fn understand(line: &str) -> Result<Option<PromptWord>, Failure> {
    let line = line.trim();
    if let Some(command) = line.strip_prefix('!') {
        return Ok((!command.trim().is_empty()).then(|| PromptWord::Shell(command.to_owned())));
    }
    if !line.starts_with('/') {
        // A backslash before a line's end only said that it goes on.
        let goal = line.replace("\\\n", "\n");
        return Ok((!goal.trim().is_empty()).then_some(PromptWord::Goal(goal)));
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    if let Ok(prompt) = PromptName::parse(&word[1..]) {
        return Ok(Some(PromptWord::Prompt(prompt, rest.to_owned())));
    }
    // A goal may begin with a path.
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    let word = alias.map_or(word, |(_, word)| word);
    let own = WORDS.iter().find(|(known, ..)| *known == word);
    let is_command = commands::names().iter().any(|(name, _)| word[1..] == *name);
    if is_command && own.is_none_or(|(_, takes, _)| takes.is_empty() && !rest.is_empty()) {
        let arguments = shlex::split(&line[1..]);
        let arguments =
            arguments.ok_or_else(|| Failure::usage("a quotation mark is not closed"))?;
        return Ok(Some(PromptWord::Command(arguments)));
    }
    let Some((known, takes, _)) = own else {
        if word[1..].contains('/') {
            return Ok(Some(PromptWord::Goal(line.to_owned())));
        }
        let known = WORDS.iter().map(|(known, ..)| *known);
        let failure = Failure::usage(format!("`{word}` is not a word that is known here"));
        return Err(match gyrus_text::closest(word, known) {
            Some(known) => failure.hint(format!("did you mean `{known}`?")),
            None => failure.hint("/help says which there are"),
        });
    };
    match (rest.is_empty(), takes.is_empty()) {
        (true, false) if !takes.starts_with('[') => {
            return Err(Failure::usage(format!("`{known}` needs {takes}")));
        }
        (false, true) => {
            return Err(Failure::usage(format!("`{known}` takes nothing more")));
        }
        _ => {}
    }
    Ok(Some(match *known {
        "/file" => PromptWord::File(path(rest)),
        "/image" => PromptWord::Image((!rest.is_empty()).then(|| path(rest))),
        "/model" => PromptWord::Model(rest.to_owned()),
        "/mode" => PromptWord::Mode(rest.parse().map_err(Failure::usage)?),
        "/effort" => PromptWord::Effort(rest.parse().map_err(Failure::usage)?),
        "/rewind" => PromptWord::Rewind,
        "/resume" => PromptWord::Resume((!rest.is_empty()).then(|| rest.to_owned())),
        "/loop" => PromptWord::Loop(rest.to_owned()),
        "/diff" => PromptWord::Diff,
        "/undo" => PromptWord::Undo,
        "/trace" => PromptWord::Trace,
        "/cost" => PromptWord::Cost,
        "/context" => PromptWord::Context,
        "/compact" => PromptWord::Compact,
        "/summary" => PromptWord::Summary,
        "/new" => PromptWord::New,
        "/quit" => PromptWord::Quit,
        _ => PromptWord::Help,
    }))
}

pub(super) fn named_files(goal: &str) -> Vec<PathBuf> {
    // A backslash before a space belongs to the path.
    let goal = goal.replace("\\ ", "\0");
    let words = goal.split_whitespace();
    let named = words.filter_map(|word| word.strip_prefix('@'));
    named.map(|word| path(&word.replace('\0', " "))).collect()
}

/// Returns the path that was typed or completed: with `~`, and with a backslash before a space.
pub(super) fn path(typed: &str) -> PathBuf {
    let plain = typed.replace("\\ ", " ");
    match (plain.strip_prefix("~/"), std::env::home_dir()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let word = |line: &str| understand(line).unwrap();
        assert_eq!(word("  "), None);
        assert_eq!(word(" count "), Some(PromptWord::Goal("count".into())));
        assert_eq!(word("a \\\nb"), Some(PromptWord::Goal("a \nb".into())));
        assert_eq!(
            word("/etc/hosts has how many lines?"),
            Some(PromptWord::Goal("/etc/hosts has how many lines?".into()))
        );
        assert_eq!(
            word("/file my\\ notes.txt"),
            Some(PromptWord::File("my notes.txt".into()))
        );
        assert_eq!(
            word("/approve edits"),
            Some(PromptWord::Mode(Approve::Mode(gyrus_contract::Mode::Edits)))
        );
        assert_eq!(word("/quit"), Some(PromptWord::Quit));
        let prompt = PromptName::parse("srv:plan").unwrap();
        assert_eq!(
            word("/srv:plan it now"),
            Some(PromptWord::Prompt(prompt, "it now".to_owned()))
        );
        assert_eq!(word("/resume"), Some(PromptWord::Resume(None)));
        let run = Some("1a2b".to_owned());
        assert_eq!(word("/resume 1a2b"), Some(PromptWord::Resume(run)));
        assert_eq!(
            word("! git log"),
            Some(PromptWord::Shell(" git log".into()))
        );
        assert_eq!(word("!"), None);
        let command = |words: &[&str]| {
            Some(PromptWord::Command(
                words.iter().map(|&it| it.into()).collect(),
            ))
        };
        assert_eq!(word("/skills list"), command(&["skills", "list"]));
        assert_eq!(word("/undo --to 2"), command(&["undo", "--to", "2"]));
        assert_eq!(word("/steer 'a b'"), command(&["steer", "a b"]));
        assert_eq!(word("/exit"), Some(PromptWord::Quit));
        assert_eq!(
            word("/effort high"),
            Some(PromptWord::Effort(ThinkingEffort::High))
        );
        let files = named_files("what is @a\\ b.txt and x@y.z, @c?");
        assert_eq!(files, ["a b.txt", "c?"].map(PathBuf::from));
        let error = |line: &str| understand(line).unwrap_err().to_string();
        assert!(error("/qiut").contains("did you mean `/quit`?"));
        assert!(error("/file").contains("needs PATH"));
        assert!(error("/new one").contains("takes nothing"));
        assert!(error("/approve all").contains("is not a mode"));
        assert!(error("/effort huge").contains("none, low, medium"));
        assert!(error("/steer 'a").contains("quotation mark"));
    }
}
