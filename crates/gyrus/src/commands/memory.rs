//! `gyrus memory`

use std::{
    io::{self, Read as _},
    process::Stdio,
};

use clap::{Args, Subcommand};
use gyrus_memory::{Author, ChangeEnd, NoteWrite, Vault, VaultChange, VaultError};
use gyrus_process::Programs;
use gyrus_surfaces::{
    console::{Painter, put},
    output,
};
use gyrus_text::{one_line, readable};
use serde_json::json;

use super::lessons::LessonsCommand;
use crate::{Gyrus, exit::Code, failure::Failure, inside_run, learning, time::now_ms};

/// The note that facts go to, where none is named.
const FACTS: &str = "Memory/facts.md";

/// Maximum bytes of a text on standard input.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Maximum number of notes in a search result.
const MAX_FOUND: usize = 100;

/// Look into what runs remember, add to it, and take back what they wrote
///
/// The memory is a folder of Markdown notes, which Obsidian opens as a vault: the one that
/// GYRUS_VAULT names, or `vault` in the section [memory] of config.toml, or ~/Documents/gyrus. You
/// may edit it with any program.
#[derive(Args)]
pub(crate) struct MemoryArguments {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Subcommand)]
enum MemoryCommand {
    /// Add a fact
    Add {
        /// Text to remember; `-` reads it from standard input
        text: String,
        /// Note to add it to
        #[arg(long, value_name = "NOTE", default_value = FACTS)]
        note: String,
    },
    /// Search the notes for words
    Search {
        /// Words to look for
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number of notes
        #[arg(long, value_name = "NUMBER", default_value_t = 10)]
        most: usize,
        /// Print one JSON object a line, for programs
        #[arg(long)]
        json: bool,
    },
    /// Print a note
    Show {
        /// Note: its path, or its name alone
        note: String,
    },
    /// List the changes that gyrus made, the newest first
    Log {
        /// Only those of this note
        note: Option<String>,
        /// Print one JSON object a line, for programs
        #[arg(long)]
        json: bool,
    },
    /// Show what a change changed, as a patch
    Diff {
        /// Number of the change (default: the newest)
        change: Option<u64>,
    },
    /// Take a change back
    ///
    /// What a run added is taken out also if the rest of the note has changed since. Taking back is
    /// a change itself, and can be taken back.
    Undo {
        /// Number of the change (default: the newest)
        change: Option<u64>,
    },
    /// Open a note in your editor (VISUAL, or EDITOR)
    Open {
        /// Note: its path, or its name alone
        note: String,
    },
    /// Print the folder of the notes
    Path,
    /// Show what finished runs taught, and how later runs did with it
    ///
    /// A run that ends with --reflect leaves a lesson. Later runs with similar goals are given at
    /// most three. A lesson that two more runs fail with than reach their goals is retired.
    Lessons(LessonsCommand),
}

impl MemoryArguments {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let home = gyrus.home()?;
        let Some(vault) = home.vault.clone() else {
            let error = "there is no place for the memory: HOME is not set, or not absolute";
            return Err(Failure::usage(error).hint("name a folder: GYRUS_VAULT=/path gyrus …"));
        };
        // What is wrong in the file may be the folder's name.
        let config = gyrus.config()?;
        match self.command {
            MemoryCommand::Add { text, note } => {
                home.create_state()?;
                add(gyrus, &vault, &text, &note)
            }
            MemoryCommand::Search { words, most, json } => {
                home.create_state()?;
                search(&vault, &words.join(" "), most, json)
            }
            MemoryCommand::Show { note } => {
                let note = vault.read(&note).map_err(failure)?;
                let mut out = output::standard();
                write!(out, "{}", readable(note.text()))?;
                if !note.text().ends_with('\n') {
                    writeln!(out)?;
                }
                Ok(Code::Reached)
            }
            MemoryCommand::Log { note, json } => log(&vault, note.as_deref(), json),
            MemoryCommand::Diff { change } => diff(gyrus, &vault, change),
            MemoryCommand::Undo { change } => undo(gyrus, &vault, change),
            MemoryCommand::Open { note } => open(gyrus, &vault, &note),
            MemoryCommand::Path => {
                writeln!(output::standard(), "{}", vault.folder().display())?;
                Ok(Code::Reached)
            }
            MemoryCommand::Lessons(command) => {
                learning::catch_up(&home, &config)?;
                command.execute(&home)
            }
        }
    }
}

fn failure(error: VaultError) -> Failure {
    match &error {
        VaultError::Name { .. } | VaultError::Missing { .. } | VaultError::NoChange(_) => {
            Failure::usage(error.to_string())
        }
        VaultError::TooLarge { .. }
        | VaultError::NotAVault(_)
        | VaultError::Conflict(_)
        | VaultError::Unchanged { .. }
        | VaultError::Note(_)
        | VaultError::Apply(_)
        | VaultError::State { .. } => Failure::failed(error.to_string()),
    }
}

fn person(gyrus: &Gyrus) -> Author {
    let name = gyrus.environment.user.clone();
    Author::Person {
        name: name.unwrap_or_else(|| "you".to_owned()),
    }
}

fn add(gyrus: &Gyrus, vault: &Vault, text: &str, note: &str) -> Result<Code, Failure> {
    inside_run::refuse("write into the memory in your name")?;
    let text = if text == "-" {
        let mut read = String::new();
        let mut input = io::stdin().lock().take(MAX_TEXT_BYTES + 1);
        input.read_to_string(&mut read).map_err(|error| {
            Failure::usage("standard input is not a text in UTF-8").because(&error)
        })?;
        read
    } else {
        text.to_owned()
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "there is nothing to remember: the text is empty",
        ));
    }
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(Failure::usage("the text is longer than 1 MB"));
    }
    let writing = NoteWrite {
        author: person(gyrus),
        why: "",
        text: &text,
        now_ms: now_ms(),
    };
    let change = vault.add(note, &writing).map_err(failure)?;
    put(&format!(
        "added to {} as change {}; to take it back: gyrus memory undo {}\n",
        one_line(&change.note),
        change.id,
        change.id
    ))?;
    Ok(Code::Reached)
}

fn search(vault: &Vault, words: &str, most: usize, json: bool) -> Result<Code, Failure> {
    if most == 0 || most > MAX_FOUND {
        return Err(Failure::usage(format!(
            "--most {most} is not a number from 1 to {MAX_FOUND}"
        )));
    }
    let mut found = Vec::new();
    if vault.exists() {
        let searcher = vault.searcher().map_err(failure)?;
        if let Some(why) = &searcher.words_alone {
            put(&format!("{why}; notes are found by their words alone\n"))?;
        }
        found = searcher.recall(words, most, now_ms()).map_err(failure)?;
    }
    let mut out = output::standard();
    for piece in &found {
        if json {
            out.json(piece)?;
            continue;
        }
        writeln!(out, "{}", one_line(&piece.place()))?;
        for line in readable(&piece.text).lines() {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
    }
    if found.is_empty() && !json {
        put("no note has these words\n")?;
    }
    Ok(Code::reached_if(!found.is_empty()))
}

fn log(vault: &Vault, note: Option<&str>, json: bool) -> Result<Code, Failure> {
    // A note that was deleted still has changes.
    let path = note.map(|note| vault.find(note).or_else(|_| Vault::path_of(note)));
    let path = path.transpose().map_err(failure)?;
    let mut out = output::standard();
    let mut count = 0;
    let changes = vault.log().map_err(failure)?;
    for change in changes.iter().rev() {
        if path.as_ref().is_some_and(|path| *path != change.note) {
            continue;
        }
        count += 1;
        if json {
            out.json(&json!(change))?;
        } else {
            writeln!(out, "{}", log_line(change))?;
        }
    }
    if count == 0 && !json {
        put("gyrus has changed nothing here\n")?;
    }
    Ok(Code::Reached)
}

fn log_line(change: &VaultChange) -> String {
    let at = gyrus_text::utc(change.at_ms);
    let mut line = format!(
        "{:>4}  {}  {}  {}",
        change.id,
        at.get(..16).unwrap_or(&at).replace('T', " "),
        one_line(&change.note),
        one_line(&change.author.in_words()),
    );
    if change.author.is_untrusted() {
        line.push_str(" (untrusted)");
    }
    if !change.why.is_empty() {
        line.push_str(&format!(": {}", one_line(&change.why)));
    }
    line.push_str(match change.end {
        Some(ChangeEnd::Done) => "",
        Some(ChangeEnd::Dropped) => " [not made]",
        Some(ChangeEnd::Unknown) | None => " [cut off]",
    });
    line
}

fn diff(gyrus: &Gyrus, vault: &Vault, change: Option<u64>) -> Result<Code, Failure> {
    let change = vault.logged(change).map_err(failure)?;
    let patch = vault.diff(&change).map_err(failure)?;
    let mut out = output::standard();
    let painter = Painter::new(&out, gyrus.environment.plain);
    for line in painter.patch(&patch) {
        writeln!(out, "{line}")?;
    }
    Ok(Code::Reached)
}

fn undo(gyrus: &Gyrus, vault: &Vault, change: Option<u64>) -> Result<Code, Failure> {
    inside_run::refuse("take back changes of the memory")?;
    let change = vault.logged(change).map_err(failure)?;
    let undone = vault
        .undo(&change, person(gyrus), now_ms())
        .map_err(failure)?;
    put(&format!(
        "change {} of {} is undone, as change {}\n",
        change.id,
        one_line(&change.note),
        undone.id
    ))?;
    Ok(Code::Reached)
}

fn open(gyrus: &Gyrus, vault: &Vault, note: &str) -> Result<Code, Failure> {
    let path = vault.folder().join(vault.find(note).map_err(failure)?);
    let Some(editor) = &gyrus.environment.editor else {
        return Err(Failure::usage("neither VISUAL nor EDITOR names an editor")
            .hint(format!("the note is {}", path.display())));
    };
    let failed = || Failure::failed(format!("the editor `{editor}` failed"));
    // It may be a command with arguments of its own, as `code --wait`.
    let ended = Programs::of_this_process()
        .shell(&format!("{editor} \"$1\""))
        .map_err(|error| failed().because(&error))?
        .arg("sh")
        .arg(&path)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .status()
        .map_err(|error| failed().because(&error))?;
    if ended.success() {
        Ok(Code::Reached)
    } else {
        Err(failed())
    }
}
