//! Lines that are safe without a sandbox: one program of a short table, with literal words.
//!
//! The shell must have nothing to do but to find the program, so there is no variable, no pattern,
//! no redirection and no second command; and the program must have nothing to do but to print what
//! is in plain files. Whatever is not listed here is not safe.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::PathBuf};

use super::read::ShellPlace;
use crate::paths::real_path;

/// Folders in which the program is looked for, none of which a run can write to.
const PATH: &str = "/usr/bin:/bin";

/// Meaning of the words that are not options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandMeaning {
    /// Files whose content is printed.
    Files,
    /// A pattern, then at least one file.
    Pattern,
    /// Files or folders whose names and numbers are printed; the current folder if there are none.
    Places,
    /// Text that is printed or computed with.
    Text,
    /// No words are allowed.
    Nothing,
    /// A format after a plus sign: without it, the clock would be set.
    Format,
}

use OperandMeaning::{Files, Format, Nothing, Pattern, Places, Text};

/// Program, letters of options, letters of options with a number or a text, operands.
const PROGRAMS: [(&str, &str, &str, OperandMeaning); 36] = [
    ("ls", "1aAlhrtSdFpRisUCxgGno", "", Places),
    ("stat", "L", "c", Places),
    ("du", "shcakmbxS", "d", Places),
    ("readlink", "fem", "", Places),
    ("realpath", "ems", "", Places),
    ("cat", "nbsETAvte", "", Files),
    ("tac", "", "", Files),
    ("nl", "", "", Files),
    ("rev", "", "", Files),
    ("head", "qv", "nc", Files),
    ("tail", "qv", "nc", Files),
    ("wc", "lwcmL", "", Files),
    ("cut", "s", "dfc", Files),
    ("fold", "s", "w", Files),
    ("paste", "s", "d", Files),
    ("od", "cxbdv", "AtjNw", Files),
    ("hexdump", "Cv", "ns", Files),
    ("cksum", "", "", Files),
    ("md5sum", "b", "", Files),
    ("sha1sum", "b", "", Files),
    ("sha256sum", "b", "", Files),
    ("sha512sum", "b", "", Files),
    ("cmp", "ls", "", Files),
    ("comm", "123", "", Files),
    ("diff", "uqwbBiy", "U", Files),
    ("grep", "nicvlLwxFEHhosq", "mABC", Pattern),
    ("basename", "", "", Text),
    ("dirname", "", "", Text),
    ("echo", "n", "", Text),
    ("date", "uR", "", Format),
    ("pwd", "", "", Nothing),
    ("true", "", "", Nothing),
    ("whoami", "", "", Nothing),
    ("id", "ugn", "", Nothing),
    ("uname", "asnrvmpio", "", Nothing),
    ("nproc", "", "", Nothing),
];

/// Returns the files and folders that a plain line reads; `None` for every other line.
pub(super) fn reads(line: &str, place: &ShellPlace) -> Option<Vec<PathBuf>> {
    let words = words(line)?;
    let (name, arguments) = words.split_first()?;
    let mut programs = PROGRAMS.into_iter();
    let (_, flags, takes, operands) = programs.find(|(known, ..)| known == name)?;
    let mut given: Vec<&str> = options(arguments, flags, takes)?;
    match operands {
        Text => return Some(Vec::new()),
        Nothing => return given.is_empty().then(Vec::new),
        Format => {
            return given
                .iter()
                .all(|word| word.starts_with('+'))
                .then(Vec::new);
        }
        Pattern => {
            (given.len() > 1).then(|| given.remove(0))?;
        }
        Places if given.is_empty() => given.push("."),
        Places | Files => {}
    }
    let prints = matches!(operands, Files | Pattern);
    let path = |word: &&str| path(word, prints, place);
    given.iter().map(path).collect()
}

/// Variables for such a line.
pub(super) fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".to_owned(), PATH.to_owned())])
}

/// Splits a line that needs no expansion into its words, which consist of literal characters, or
/// stand within quotes that contain no others.
fn words(line: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-,:@%+".contains(c);
    let in_quotes = |c: char| is_plain(c) || " =#*?[](){}<>|&;^~".contains(c);
    let mut words = Vec::new();
    let mut rest = line.trim_matches(' ');
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '\'' | '"' => rest[1..].split_once(first)?,
            _ => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        let is_known = match first {
            '\'' | '"' => word.chars().all(in_quotes),
            _ => word.chars().all(is_plain),
        };
        if !is_known || !(after.is_empty() || after.starts_with(' ')) {
            return None;
        }
        words.push(word.to_owned());
        rest = after.trim_start_matches(' ');
    }
    Some(words)
}

/// Returns the words that are not options, if all options are listed.
fn options<'a>(words: &'a [String], flags: &str, takes: &str) -> Option<Vec<&'a str>> {
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-') else {
            operands.push(&**word);
            continue;
        };
        let first = letters.chars().next()?;
        let value = &letters[1..];
        match (takes.contains(first), value.is_empty()) {
            (true, true) => {
                words.next().filter(|value| !value.starts_with('-'))?;
            }
            (true, false) => {}
            (false, _) => letters.chars().all(|c| flags.contains(c)).then_some(())?,
        }
    }
    Some(operands)
}

/// Returns the path of an operand, unless a link or a second name leads elsewhere.
fn path(word: &str, prints: bool, place: &ShellPlace) -> Option<PathBuf> {
    let path: PathBuf = place.folder.join(word).components().collect();
    // What lies there depends on who looks.
    let depends = ["/proc", "/dev", "/sys", "/run"];
    if depends.iter().any(|folder| path.starts_with(folder)) || real_path(&path).ok()? != path {
        return None;
    }
    match fs::symlink_metadata(&path) {
        Ok(found) if prints => (found.is_file() && found.nlink() == 1).then_some(path),
        Ok(_) => Some(path),
        // It says that there is no such file.
        Err(_) => Some(path),
    }
}
