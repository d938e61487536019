//! Reading a line with history, several lines at once, and completion of words and paths.

use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustyline::{
    CompletionType, Config, Context, Helper, Highlighter, Hinter,
    completion::{Completer, FilenameCompleter, Pair},
    error::ReadlineError,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};

use super::words::WORDS;
use crate::failure::Failure;
use gyrus_surfaces::console::put;

/// Lines that are kept from one conversation to the next.
const HISTORY: usize = 1_000;

/// Input that was typed.
pub(super) enum Typed {
    Line(String),
    /// Nothing will come any more.
    End,
}

/// A line editor with a history that is kept.
pub(super) struct Editor {
    lines: rustyline::Editor<Words, FileHistory>,
    history: PathBuf,
    prompt: &'static str,
}

impl Editor {
    /// With the history in this file, which nobody else may read.
    pub(super) fn open(history: &Path, plain: bool) -> Result<Self, Failure> {
        let broken = |error: ReadlineError| {
            Failure::failed("lines cannot be read from the terminal").because(&error)
        };
        let config = Config::builder()
            .max_history_size(HISTORY)
            .map_err(broken)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut lines = rustyline::Editor::with_config(config).map_err(broken)?;
        lines.set_helper(Some(Words {
            paths: FilenameCompleter::new(),
        }));
        // Made here, because the library would make it readable for others.
        let made = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(history);
        if made.is_ok() {
            // A history that cannot be read is an empty one.
            let _ = lines.load_history(history);
        }
        let prompt = if plain {
            "gyrus> "
        } else {
            "\x1b[1m❯\x1b[0m "
        };
        Ok(Self {
            lines,
            history: history.to_owned(),
            prompt,
        })
    }

    /// Adds a line to the history.
    pub(super) fn remember(&mut self, line: &str) {
        if !line.trim().is_empty() {
            // Without a history one can still talk.
            let _ = self.lines.add_history_entry(line);
            let _ = self.lines.append_history(&self.history);
        }
    }

    /// The next line, which begins with what is typed already. Ctrl-C empties the line; on an empty one,
    /// twice in a row, it leaves.
    pub(super) fn line(&mut self, mut begun: &str) -> Result<Typed, Failure> {
        let mut interrupted = false;
        loop {
            let begins = std::mem::take(&mut begun);
            match self.lines.readline_with_initial(self.prompt, (begins, "")) {
                Ok(line) => {
                    self.remember(&line);
                    return Ok(Typed::Line(line));
                }
                Err(ReadlineError::Interrupted) if !interrupted => {
                    interrupted = true;
                    put("to leave: Ctrl-C again, Ctrl-D or /quit\n")?;
                }
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(Typed::End),
                // The terminal changed its size, or the process was stopped and goes on.
                Err(ReadlineError::Signal(_)) => {}
                Err(error) => {
                    return Err(
                        Failure::failed("lines cannot be read from the terminal").because(&error)
                    );
                }
            }
        }
    }
}

#[derive(Helper, Hinter, Highlighter)]
struct Words {
    paths: FilenameCompleter,
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        if typed.starts_with('/') && !typed.contains(char::is_whitespace) {
            let matching = WORDS.iter().filter(|(word, ..)| word.starts_with(typed));
            let words: Vec<Pair> = matching
                .map(|(word, takes, _)| Pair {
                    display: (*word).to_owned(),
                    replacement: if takes.is_empty() || takes.starts_with('[') {
                        (*word).to_owned()
                    } else {
                        format!("{word} ")
                    },
                })
                .collect();
            if !words.is_empty() {
                return Ok((0, words));
            }
        }
        // A file that a goal names with `@`.
        let word = typed
            .rfind(char::is_whitespace)
            .map_or(0, |space| space + 1);
        if typed[word..].starts_with('@') {
            let path = word + 1;
            let (start, found) = self.paths.complete(&line[path..], at - path, context)?;
            return Ok((start + path, found));
        }
        self.paths.complete(line, at, context)
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}
