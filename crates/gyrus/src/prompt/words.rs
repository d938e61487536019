//! Parsing of a line at the prompt.

use std::path::PathBuf;

use crate::{failure::Failure, flags::Approve};

/// A line, understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    Goal(String),
    Help,
    New,
    File(PathBuf),
    Image(PathBuf),
    Model(String),
    Approve(Approve),
    Resume,
    Quit,
}

/// Every word with what it takes and does.
pub(super) const WORDS: [(&str, &str, &str); 8] = [
    ("/file", "PATH", "give the next run this text to read"),
    (
        "/image",
        "PATH",
        "give the next run this picture to look at",
    ),
    ("/model", "NAME", "ask another model, as with --model"),
    (
        "/approve",
        "MODE",
        "read-only, ask, edits, auto or never, as with --approve",
    ),
    ("/resume", "", "go on with the last run where it stopped"),
    ("/new", "", "begin a new session: forget what was said"),
    ("/help", "", "this"),
    ("/quit", "", "leave; so does Ctrl-D"),
];

/// Returns the help.
pub(super) fn help() -> String {
    let mut text = String::from(
        "A line is a goal; `\\` at its end goes on in the next line. While a run works, Ctrl-C lets \
         it finish\nwhat is in hand, twice cuts it off. Every run knows what the ones before it \
         said and saw.\n",
    );
    for (word, takes, does) in WORDS {
        let both = format!("{word} {takes}");
        text.push_str(&format!("  {both:<14} {does}\n"));
    }
    text
}

/// Understands a line; `None` if there is nothing on it.
pub(super) fn understand(line: &str) -> Result<Option<Word>, Failure> {
    let line = line.trim();
    if !line.starts_with('/') {
        // A backslash before a line's end only said that it goes on.
        let goal = line.replace("\\\n", "\n");
        return Ok((!goal.trim().is_empty()).then_some(Word::Goal(goal)));
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    // A goal may begin with a path.
    let Some((known, takes, _)) = WORDS.iter().find(|(known, ..)| *known == word) else {
        if word[1..].contains('/') {
            return Ok(Some(Word::Goal(line.to_owned())));
        }
        let known = WORDS.iter().map(|(known, ..)| *known);
        let failure = Failure::usage(format!("`{word}` is not a word that is known here"));
        return Err(match gyrus_text::closest(word, known) {
            Some(known) => failure.hint(format!("did you mean `{known}`?")),
            None => failure.hint("/help says which there are"),
        });
    };
    match (rest.is_empty(), takes.is_empty()) {
        (true, false) => {
            return Err(Failure::usage(format!("`{known}` needs {takes}")));
        }
        (false, true) => {
            return Err(Failure::usage(format!("`{known}` takes nothing more")));
        }
        _ => {}
    }
    Ok(Some(match *known {
        "/file" => Word::File(path(rest)),
        "/image" => Word::Image(path(rest)),
        "/model" => Word::Model(rest.to_owned()),
        "/approve" => Word::Approve(rest.parse().map_err(Failure::usage)?),
        "/resume" => Word::Resume,
        "/new" => Word::New,
        "/quit" => Word::Quit,
        _ => Word::Help,
    }))
}

/// A path as it was typed or completed: with `~`, and with a backslash before a space.
fn path(typed: &str) -> PathBuf {
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
        assert_eq!(word(" count "), Some(Word::Goal("count".into())));
        assert_eq!(word("a \\\nb"), Some(Word::Goal("a \nb".into())));
        assert_eq!(
            word("/etc/hosts has how many lines?"),
            Some(Word::Goal("/etc/hosts has how many lines?".into()))
        );
        assert_eq!(
            word("/file my\\ notes.txt"),
            Some(Word::File("my notes.txt".into()))
        );
        assert_eq!(
            word("/approve edits"),
            Some(Word::Approve(Approve::Mode(gyrus_contract::Mode::Edits)))
        );
        assert_eq!(word("/quit"), Some(Word::Quit));
        let error = |line: &str| understand(line).unwrap_err().to_string();
        assert!(error("/qiut").contains("did you mean `/quit`?"));
        assert!(error("/file").contains("needs PATH"));
        assert!(error("/new one").contains("takes nothing"));
        assert!(error("/approve all").contains("is not a mode"));
    }
}
