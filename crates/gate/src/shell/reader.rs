//! The reading as it grows: facts, commands, and where the line has gone so far.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use brush_parser::ParserOptions;
use gyrus_contract::{CommandFact, CommandReading, Does, SimpleCommand};

use super::{
    Place, arithmetic, paths, programs,
    scan::{self, Why},
    variables, walk,
    words::{Surroundings, Value, Word},
};

/// Texts within texts: substitutions, and shells started with a text.
const MAX_TEXTS: usize = 8;

/// Simple commands in one line.
const MAX_COMMANDS: usize = 2000;

/// Bytes of a part that is quoted in a fact.
const PART_BYTES: usize = 120;

/// Reads one line.
pub(super) struct Reader<'a> {
    pub place: &'a Place,
    /// Where the next command would run, if that is known.
    pub folder: Option<PathBuf>,
    /// The whole text whose variables these are.
    pub line: String,
    /// What each variable holds that was assigned so far.
    pub held: BTreeMap<String, Held>,
    /// How many conditions and loops surround the next command.
    pub conditions: usize,
    /// Links and copied folders that the line makes: what lies behind them is not known.
    pub links: Vec<PathBuf>,
    /// Whether the next command is given a text that stands in the line.
    pub given_text: bool,
    /// Whether what comes in through a pipe stands in the line.
    pub piped_text: bool,
    /// Whether `git` is to be kept from doing more than reading.
    pub calm_git: bool,
    /// Settings files that git changes by harmless settings, and the part that does it.
    settings: Vec<(PathBuf, String)>,
    reading: CommandReading,
    seen: BTreeSet<(String, String)>,
    texts: usize,
}

/// What is known of a variable that was assigned.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// Its text, if it surely holds it.
    pub text: Option<String>,
    /// What holds for whatever it may hold.
    pub value: Value,
}

impl<'a> Reader<'a> {
    pub(super) fn new(line: &str, place: &'a Place) -> Self {
        Self {
            place,
            folder: Some(paths::normal(&place.folder)),
            line: line.to_owned(),
            held: BTreeMap::new(),
            conditions: 0,
            links: Vec::new(),
            given_text: false,
            piped_text: false,
            calm_git: false,
            settings: Vec::new(),
            reading: CommandReading::default(),
            seen: BTreeSet::new(),
            texts: 0,
        }
    }

    pub(super) fn finish(mut self) -> CommandReading {
        if self.calm_git && self.reading.only_reads() {
            self.reading.environment = programs::git_environment();
        }
        if !super::only_git_changes(&self.reading) {
            for (path, part) in std::mem::take(&mut self.settings) {
                let why = "git's settings must change while other code runs, too";
                self.fact(Does::Writes { path }, &part, why);
            }
        }
        self.reading
    }

    /// Git changes the settings of the repository in this folder, by what names no program and no
    /// place. Beside other code it could not: for that, the settings are read-only.
    pub(super) fn sets_git(&mut self, part: &str) {
        let above = self.folder.iter().flat_map(|folder| folder.ancestors());
        let git = above.map(|folder| folder.join(".git"));
        let there = git.map(|git| git.join("config")).find(|file| file.exists());
        self.settings
            .extend(there.map(|file| (file, part.to_owned())));
    }

    /// Reads a text as the shell would.
    pub(super) fn text(&mut self, text: &str) {
        if let Err(why) = self.try_text(text) {
            self.hides(text, why);
        }
    }

    fn try_text(&mut self, text: &str) -> Result<(), Why> {
        if text.chars().any(scan::is_invisible) {
            return Err("it has characters that cannot be seen");
        }
        if text.contains('⟦') {
            self.fact(Does::UsesCredentials, text, "a secret is put into the line");
            return Err("what the secret holds becomes part of the line");
        }
        self.texts += 1;
        if self.texts > MAX_TEXTS {
            return Err("it is nested too deeply");
        }
        let options = ParserOptions {
            enable_extended_globbing: false,
            ..ParserOptions::default()
        };
        let pieces = scan::split(text)?;
        let tokens = brush_parser::uncached_tokenize_str(text, &options.tokenizer_options())
            .map_err(|_| "it is not complete")?;
        scan::agree(&pieces, &tokens)?;
        let program = brush_parser::parse_tokens(&tokens, &options)
            .map_err(|_| "it is not a command line that can be read")?;
        walk::program(self, &program);
        self.texts -= 1;
        Ok(())
    }

    /// Reads what runs in a process of its own: nothing it assigns or enters remains.
    pub(super) fn apart(&mut self, read: impl FnOnce(&mut Self)) {
        let folder = self.folder.clone();
        let held = self.held.clone();
        read(self);
        self.folder = folder;
        self.held = held;
    }

    /// Reads the text of another shell, which has variables of its own.
    pub(super) fn other_shell(&mut self, text: &str) {
        self.apart(|reader| {
            let line = std::mem::replace(&mut reader.line, text.to_owned());
            reader.held.clear();
            reader.text(text);
            reader.line = line;
        });
    }

    /// Notes a simple command. `false` if there is none, or once there are too many.
    pub(super) fn command(&mut self, words: &[Word]) -> bool {
        // `nohup` and its like alone.
        if words.is_empty() {
            return false;
        }
        if self.reading.commands.len() >= MAX_COMMANDS {
            self.hides("", "it has too many commands");
            return false;
        }
        let words = words.iter().map(Word::contract).collect();
        self.reading.commands.push(SimpleCommand { words });
        true
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

    pub(super) fn hides(&mut self, part: &str, why: &str) {
        self.fact(Does::Hides, part, why);
    }

    pub(super) fn runs_code(&mut self, part: &str, why: &str) {
        self.fact(Does::RunsCode, part, why);
    }

    /// It reads this path; secrets count as such.
    pub(super) fn reads(&mut self, path: &str, part: &str) {
        if path == "-" {
            return;
        }
        match self.absolute(path) {
            Ok(path) => {
                // A link that is there already may lead to a secret.
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                if real != path && (paths::is_device(&real) || self.is_secret(&real)) {
                    self.reads_path(real, part);
                }
                self.reads_path(path, part);
            }
            // Any file of the machine, but a read.
            Err(_) => {
                self.names_secret(path, part);
                self.reads_path(PathBuf::from("/"), part);
            }
        }
    }

    /// Notes it if the text is the path of a file that holds secrets.
    pub(super) fn names_secret(&mut self, text: &str, part: &str) {
        let path = self.absolute(text).unwrap_or_else(|_| PathBuf::from(text));
        if self.is_secret(&path) {
            self.fact(
                Does::UsesCredentials,
                part,
                "it names a file that holds secrets",
            );
        }
    }

    /// How many simple commands were found so far.
    pub(super) fn count(&self) -> usize {
        self.reading.commands.len()
    }

    /// How many facts were found so far.
    pub(super) fn facts(&self) -> usize {
        self.reading.facts.len()
    }

    /// Whether one of the commands found since then may go on for good.
    pub(super) fn lasts_since(&self, count: usize) -> bool {
        self.reading.commands[count..].iter().any(|command| {
            let mut words = command
                .words
                .iter()
                .map(|word| word.literal().unwrap_or_default());
            match words.next() {
                Some("sleep" | "yes" | "timeout" | "less" | "more") => true,
                Some("tail") => {
                    words.any(|word| word.starts_with('-') && word.contains(['f', 'F']))
                }
                _ => false,
            }
        })
    }

    fn is_secret(&self, path: &Path) -> bool {
        paths::is_secret(path, self.place.home.as_deref())
    }

    fn reads_path(&mut self, path: PathBuf, part: &str) {
        if paths::is_device(&path) {
            self.hides(part, "it opens a device");
        }
        if self.is_secret(&path) {
            self.fact(
                Does::UsesCredentials,
                part,
                "it reads a file that holds secrets",
            );
        }
        if !paths::is_null(&path) {
            self.fact(Does::Reads { path }, part, "it reads this");
        }
    }

    /// It reads what the word names: a path, or for a pattern the folder that it is looked up in.
    pub(super) fn reads_word(&mut self, word: &Word, part: &str) {
        match word.literal() {
            Some(path) => self.reads(&path, part),
            None => match self.folder_of(word) {
                Ok(folder) => {
                    let prefix = self.absolute(&word.prefix());
                    let raw = self.absolute(&word.raw);
                    let home = self.place.home.as_deref();
                    let may = prefix.is_ok_and(|start| {
                        let whole = word.prefix().ends_with('/');
                        paths::may_become_secret(&start, whole, home)
                    });
                    if may || raw.is_ok_and(|path| self.is_secret(&path)) {
                        let why = "it may read a file that holds secrets";
                        self.fact(Does::UsesCredentials, part, why);
                    }
                    self.reads_path(folder, part);
                }
                // Any file of the machine, but a read.
                Err(_) => self.reads_path(PathBuf::from("/"), part),
            },
        }
    }

    pub(super) fn writes(&mut self, word: &Word, part: &str) {
        self.changes(word, part, "it writes this", |path| Does::Writes { path });
    }

    pub(super) fn removes(&mut self, word: &Word, part: &str) {
        self.changes(word, part, "it removes this", |path| Does::Removes { path });
    }

    /// Removes no more than a part of what the folder holds; `why` is one of
    /// [`super::PARTLY`].
    pub(super) fn removes_partly(&mut self, folder: &Word, part: &str, why: &str) {
        self.changes(folder, part, why, |path| Does::Removes { path });
    }

    fn changes(&mut self, word: &Word, part: &str, why: &str, does: fn(PathBuf) -> Does) {
        let path = match word.literal() {
            Some(path) => self.absolute(&path),
            None => self.folder_of(word),
        };
        match path {
            Ok(path) if paths::is_null(&path) => {}
            Ok(path) if self.links.iter().any(|link| path.starts_with(link)) => {
                self.hides(part, "it goes through a link that the line itself makes");
            }
            Ok(path) => {
                if paths::is_device(&path) {
                    self.fact(Does::Destroys, part, "it writes to a device");
                }
                self.fact(does(path), part, why);
            }
            Err(why) => self.hides(part, why),
        }
    }

    /// The folder in which a pattern is looked up.
    fn folder_of(&self, word: &Word) -> Result<PathBuf, Why> {
        let unknown = "which path it means is known only when it runs";
        self.absolute(&word.below_which().ok_or(unknown)?)
    }

    pub(super) fn absolute(&self, path: &str) -> Result<PathBuf, Why> {
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

impl Surroundings for Reader<'_> {
    fn substitution(&mut self, text: &str) {
        self.apart(|reader| reader.text(text));
    }

    fn arithmetic(&mut self, text: &str) -> Result<(), Why> {
        arithmetic::check(text, &self.line)
    }

    fn text(&self, name: &str) -> Option<String> {
        if let Some(held) = self.held.get(name) {
            return held.text.clone();
        }
        if variables::mentions(&self.line, name) > 0 {
            return None;
        }
        match name {
            "HOME" => self.home(),
            "PWD" => Some(self.folder.as_ref()?.to_str()?.to_owned()),
            _ => None,
        }
    }

    fn value(&self, name: &str) -> Value {
        let mut value = match self.held.get(name) {
            Some(held) => held.value.clone(),
            None => Value {
                splits: true,
                tame: matches!(name, "PWD" | "HOME") && variables::mentions(&self.line, name) == 0,
                ..Value::default()
            },
        };
        value.number |= arithmetic::is_number(name, &self.line);
        if value.number {
            value.splits = false;
        }
        value
    }

    fn home(&self) -> Option<String> {
        Some(self.place.home.as_ref()?.to_str()?.to_owned())
    }
}

/// The part as it is shown: one line, not too long.
fn shortened(part: &str) -> String {
    let mut short = String::new();
    for c in part.trim().chars() {
        if short.len() > PART_BYTES {
            short.push('…');
            break;
        }
        short.push(if c == '\n' { ' ' } else { c });
    }
    short
}
