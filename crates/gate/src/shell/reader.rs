//! Walks a line: finds its simple commands, those in substitutions and nested shells included, and
//! what they open.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gyrus_contract::{CommandFact, CommandReading, Does, SimpleCommand};

use super::{
    paths,
    read::{LineReading, SOME, ShellPlace},
    scan::{self, ShellPiece, UnsplitReason},
    words::{self, ShellWord, WordKnowledge},
};
use crate::shell::names::PossiblePaths;

/// Maximum depth of texts within texts: substitutions, and shells started with a text.
const MAX_DEPTH: usize = 8;

/// Maximum number of simple commands in one line.
const MAX_COMMANDS: usize = 2000;

/// Maximum number of characters of a part that a fact quotes.
const PART_CHARS: usize = 120;

/// Words that open, part or close commands, and are none.
const KEYWORDS: [&str; 12] = [
    "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "{", "}", "!",
];

/// The state of reading one line.
pub(super) struct ShellReader<'a> {
    place: &'a ShellPlace,
    home: Option<&'a str>,
    /// Folder in which the next command would run, if that is known.
    pub folder: Option<PathBuf>,
    pub names: PossiblePaths,
    reading: CommandReading,
    seen: BTreeSet<(String, String)>,
    depth: usize,
    /// Number of programs that start the next one.
    pub starting: usize,
}

/// The remaining pieces of a text.
struct Pieces<'a>(std::iter::Peekable<std::vec::IntoIter<ShellPiece<'a>>>);

impl<'a> Pieces<'a> {
    fn next_if_word(&mut self) -> Option<&'a str> {
        match self.0.peek()? {
            ShellPiece::Word(raw) => {
                let raw = *raw;
                self.0.next();
                Some(raw)
            }
            ShellPiece::Operator(_)
            | ShellPiece::Descriptor
            | ShellPiece::Sum(_)
            | ShellPiece::Body { .. } => None,
        }
    }

    fn next_is(&mut self, operator: &str) -> bool {
        let wanted = |piece: &ShellPiece<'_>| *piece == ShellPiece::Operator(operator);
        self.0.next_if(wanted).is_some()
    }
}

/// State between here and the end of a list of commands.
#[derive(Default)]
struct ListState {
    words: Vec<ShellWord>,
    /// Number of open `case` constructs.
    cases: usize,
    /// A pattern of `case` comes next.
    pattern: bool,
    /// Whether an assignment or a redirection came first, after which words open no commands.
    begun: bool,
}

impl<'a> ShellReader<'a> {
    pub(super) fn new(line: &str, place: &'a ShellPlace) -> Self {
        let home = place.home.as_deref().and_then(Path::to_str);
        Self {
            place,
            home: home.filter(|_| !sets_home(line)),
            folder: Some(paths::normal(&place.folder)),
            names: PossiblePaths::new(&place.folder),
            reading: CommandReading::default(),
            seen: BTreeSet::new(),
            depth: 0,
            starting: 0,
        }
    }

    pub(super) fn finish(self) -> LineReading {
        LineReading {
            reading: self.reading,
            names: self.names,
        }
    }

    /// Reads a text as the shell would.
    pub(super) fn text(&mut self, text: &str) {
        if text.chars().any(scan::is_invisible) {
            return self.hides(text, "it has characters that cannot be seen");
        }
        if text.contains('⟦') {
            return self.hides(text, "what the secret holds becomes part of the line");
        }
        if self.depth == MAX_DEPTH {
            return self.hides(text, "it is nested too deeply");
        }
        self.depth += 1;
        match scan::split(text) {
            Ok(pieces) => {
                let mut pieces = Pieces(pieces.into_iter().peekable());
                // A parenthesis too many, as `case` has them, ends a list early.
                while pieces.0.peek().is_some() {
                    self.commands(&mut pieces);
                }
            }
            Err(why) => self.hides(text, why),
        }
        self.depth -= 1;
    }

    /// Reads a text that runs in its own shell, whose changes of folder do not matter here.
    pub(super) fn apart(&mut self, text: &str) {
        let folder = self.folder.clone();
        self.text(text);
        self.folder = folder;
    }

    /// Reads up to a closing parenthesis or the end.
    fn commands(&mut self, pieces: &mut Pieces<'_>) {
        let mut state = ListState::default();
        while let Some(piece) = pieces.0.next() {
            match piece {
                ShellPiece::Descriptor | ShellPiece::Sum(_) => {}
                ShellPiece::Body { text, expands } => {
                    if expands {
                        self.body(text);
                    }
                    self.names.add(text);
                }
                ShellPiece::Word(raw) => self.piece(raw, &mut state, pieces),
                ShellPiece::Operator("(" | ")") if state.pattern => {
                    state.pattern = piece == ShellPiece::Operator("(")
                }
                ShellPiece::Operator(")") => break,
                ShellPiece::Operator("(") => self.parenthesis(&mut state, pieces),
                ShellPiece::Operator("<<" | "<<-") => {}
                ShellPiece::Operator(operator) if operator.contains(['<', '>']) => {
                    self.redirection(operator, &mut state, pieces);
                }
                // In a list of patterns, or before one.
                ShellPiece::Operator("|" | "\n") if state.pattern => {}
                ShellPiece::Operator(operator) => {
                    self.simple(std::mem::take(&mut state.words));
                    state.begun = false;
                    let is_end = matches!(operator, ";;" | ";&" | ";;&");
                    state.pattern = state.cases > 0 && is_end;
                }
            }
        }
        self.simple(state.words);
    }

    fn piece(&mut self, raw: &str, state: &mut ListState, pieces: &mut Pieces<'_>) {
        if raw == "esac" && (state.pattern || state.words.is_empty()) {
            state.cases = state.cases.saturating_sub(1);
            state.pattern = false;
        } else if state.pattern {
            self.word(raw);
        } else if !state.words.is_empty() {
            let word = self.word(raw);
            state.words.push(word);
        } else if let Some(value) = assigned(raw) {
            self.word(raw);
            state.begun = true;
            if value.is_empty() && pieces.next_is("(") {
                self.list(pieces);
            }
        } else if state.begun {
            let word = self.word(raw);
            state.words.push(word);
        } else if !KEYWORDS.contains(&raw) {
            self.first(raw, state, pieces);
        }
    }

    /// Handles the first word of a command.
    fn first(&mut self, raw: &str, state: &mut ListState, pieces: &mut Pieces<'_>) {
        match raw {
            "for" | "select" => {
                pieces.next_if_word();
                // What the variable may hold.
                let is_given = pieces
                    .0
                    .next_if(|piece| *piece == ShellPiece::Word("in"))
                    .is_some();
                while let Some(raw) = is_given.then(|| pieces.next_if_word()).flatten() {
                    self.word(raw);
                }
            }
            "case" => {
                if let Some(raw) = pieces.next_if_word() {
                    self.word(raw);
                }
                while pieces.next_is("\n") {}
                pieces.next_if_word();
                state.cases += 1;
                state.pattern = true;
            }
            "[[" => self.test(pieces),
            "function" | "coproc" => self.hides(raw, "it gives names another meaning"),
            _ => {
                let word = self.word(raw);
                state.words.push(word);
            }
        }
    }

    fn test(&mut self, pieces: &mut Pieces<'_>) {
        for piece in pieces.0.by_ref() {
            match piece {
                ShellPiece::Word("]]") => return,
                ShellPiece::Word("-w") => self.asks_what_may_be_written(),
                ShellPiece::Word(raw) => {
                    self.word(raw);
                }
                ShellPiece::Operator("&&" | "||" | "(" | ")" | "<" | ">") | ShellPiece::Sum(_) => {}
                ShellPiece::Operator(_) | ShellPiece::Descriptor | ShellPiece::Body { .. } => break,
            }
        }
        self.hides("[[", "it is not complete");
    }

    fn parenthesis(&mut self, state: &mut ListState, pieces: &mut Pieces<'_>) {
        if state.words.is_empty() {
            let folder = self.folder.clone();
            self.commands(pieces);
            self.folder = folder;
        } else if state
            .words
            .last()
            .is_some_and(|word| word.raw.ends_with('='))
        {
            self.list(pieces);
        } else {
            state.words.clear();
            self.hides("", "it gives names another meaning");
            pieces.next_is(")");
        }
    }

    /// The words of an array.
    fn list(&mut self, pieces: &mut Pieces<'_>) {
        while let Some(raw) = pieces.next_if_word() {
            self.word(raw);
            while pieces.next_is("\n") {}
        }
        pieces.next_is(")");
    }

    fn redirection(&mut self, operator: &str, state: &mut ListState, pieces: &mut Pieces<'_>) {
        state.begun = true;
        if matches!(operator, "<" | ">") && pieces.next_is("(") {
            let folder = self.folder.clone();
            self.commands(pieces);
            self.folder = folder;
            return state.words.push(ShellWord::open("<(…)"));
        }
        let Some(raw) = pieces.next_if_word() else {
            return;
        };
        let word = self.word(raw);
        let is_descriptor = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
        };
        match (operator, word.literal()) {
            ("<<<", _) => {}
            ("<&" | ">&", Some(text)) if is_descriptor(text) => {}
            ("<" | "<&", _) => self.reads(&word, raw),
            _ => self.writes(&word, &format!("{operator} {raw}")),
        }
    }

    /// Reads a word; one that is not understood is reported and unknown.
    fn word(&mut self, raw: &str) -> ShellWord {
        let (word, texts) = words::read(raw, self.home).unwrap_or_else(|why| {
            self.hides(raw, why);
            (ShellWord::open(raw), Vec::new())
        });
        texts.iter().for_each(|text| self.apart(text));
        self.names.word(&word);
        word
    }

    fn body(&mut self, text: &str) {
        match words::substitutions(text) {
            Ok(texts) => texts.iter().for_each(|text| self.apart(text)),
            Err(why) => self.hides(text, why),
        }
    }

    fn simple(&mut self, words: Vec<ShellWord>) {
        if words.is_empty() {
            return;
        }
        if self.reading.commands.len() == MAX_COMMANDS {
            return self.hides("", "it has too many commands");
        }
        let raw: Vec<&str> = words.iter().map(|word| &*word.raw).collect();
        let part = shortened(&raw.join(" "));
        let words_told = words.iter().map(ShellWord::contract).collect();
        self.reading
            .commands
            .push(SimpleCommand { words: words_told });
        self.program(&words, &part);
    }

    pub(super) fn fact(&mut self, does: Does, part: &str, why: &str) {
        let part = shortened(part);
        if self.seen.insert((format!("{does:?}"), why.to_owned())) {
            self.reading.facts.push(CommandFact {
                does,
                part,
                why: why.to_owned(),
            });
        }
    }

    pub(super) fn hides(&mut self, part: &str, why: UnsplitReason) {
        self.fact(Does::Hides, part, why);
    }

    /// Notes a question about write access: where nothing can be written, the command would be told
    /// so.
    pub(super) fn asks_what_may_be_written(&mut self) {
        self.fact(Does::RunsCode, "", "it asks what may be written");
    }

    /// Records that the command reads the file that a word names.
    pub(super) fn reads(&mut self, word: &ShellWord, part: &str) {
        if let Some(Ok(path)) = word.literal().map(|path| self.absolute(path))
            && !paths::is_null(&path)
        {
            self.fact(Does::Reads { path }, part, "it reads this");
        }
    }

    pub(super) fn writes(&mut self, word: &ShellWord, part: &str) {
        self.changes(word, part, "it writes this", |path| Does::Writes { path });
    }

    pub(super) fn removes(&mut self, word: &ShellWord, part: &str) {
        self.changes(word, part, "it removes this", |path| Does::Removes { path });
    }

    /// Records that the command removes some of the folder's content.
    pub(super) fn removes_some(&mut self, part: &str) {
        if let Some(path) = self.folder.clone() {
            self.fact(Does::Removes { path }, part, SOME);
        }
    }

    fn changes(&mut self, word: &ShellWord, part: &str, why: &str, does: fn(PathBuf) -> Does) {
        let (folder, name) = word.text.rsplit_once('/').unwrap_or((".", &word.text));
        let (path, why) = match word.kind {
            WordKnowledge::Literal => (self.absolute(&word.text), why),
            // All that a folder shows.
            WordKnowledge::Pattern if name.chars().all(|c| "*.?".contains(c)) => {
                (self.absolute(folder), why)
            }
            WordKnowledge::Pattern => (self.absolute(folder), SOME),
            WordKnowledge::Open => (Err("which path it means is known only when it runs"), why),
        };
        match path {
            Ok(path) if paths::is_null(&path) => {}
            Ok(path) => self.fact(does(path), part, why),
            Err(why) => self.hides(part, why),
        }
    }

    /// Changes the folder of the following commands.
    pub(super) fn enter(&mut self, word: Option<&ShellWord>, part: &str) {
        let entered = match word {
            None => self.place.home.clone(),
            Some(word) => word
                .literal()
                .filter(|path| *path != "-")
                .and_then(|path| self.absolute(path).ok()),
        };
        if entered
            .as_ref()
            .is_none_or(|folder| !self.names.enter(folder))
        {
            self.hides(
                part,
                "in which folder it goes on is known only when it runs",
            );
        }
        self.folder = entered;
    }

    pub(super) fn absolute(&self, path: &str) -> Result<PathBuf, UnsplitReason> {
        if path.is_empty() || path.contains('\0') {
            return Err("a path that cannot be");
        }
        let whole = match (Path::new(path).is_absolute(), &self.folder) {
            (true, _) => PathBuf::from(path),
            (false, Some(folder)) => folder.join(path),
            (false, None) => return Err("in which folder it runs is not known"),
        };
        paths::without_dots(&whole).ok_or("a path that goes through a link and back")
    }
}

/// Whether the line mentions the variable other than to use it.
fn sets_home(line: &str) -> bool {
    let count = |text| line.matches(text).count();
    count("HOME") > count("$HOME") + count("${HOME}")
}

/// Returns the value that a word assigns, if it is an assignment.
fn assigned(raw: &str) -> Option<&str> {
    let (name, value) = raw.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    let mut bytes = name.bytes();
    let first = bytes.next()?;
    let is_name = first == b'_' || first.is_ascii_alphabetic();
    (is_name && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())).then_some(value)
}

/// Returns the part as facts show it: one line, not too long.
fn shortened(part: &str) -> String {
    gyrus_text::shorten(part.trim(), PART_CHARS).replace('\n', " ")
}
