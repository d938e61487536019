//! Finds applications by the words of a person: in desktop files (Desktop Entry Specification 1.5,
//! freedesktop.org), or else among programs.

use std::{collections::BTreeMap, env, fs, path::Path};

use gyrus_process::Programs;

/// Maximum size of a desktop file, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum number of names in a message.
const MAX_NAMED: usize = 8;

/// An application that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Application {
    /// The name for a person.
    pub(super) name: String,
    /// The program, as an absolute path, and its arguments. Of those, [`FILE`] is the place of a
    /// file.
    pub(super) words: Vec<String>,
}

/// The place of a file among the arguments.
const FILE: &str = "%f";

impl Application {
    /// Returns the program and its arguments, with a file to open.
    pub(super) fn words_with(&self, file: Option<&Path>) -> Vec<String> {
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let has_place = self.words.iter().any(|word| word == FILE);
        let placed = self.words.iter().filter_map(|word| match word.as_str() {
            FILE => file.clone(),
            _ => Some(word.clone()),
        });
        let last = file.clone().filter(|_| !has_place);
        placed.chain(last).collect()
    }
}

/// An application as described by its desktop file.
struct DesktopEntry {
    id: String,
    name: String,
    generic: String,
    keywords: String,
    line: Vec<String>,
    needs_terminal: bool,
}

/// Finds the application that a name means.
pub(super) fn find(wanted: &str) -> Result<Application, String> {
    let wanted = wanted.trim();
    if wanted.is_empty() {
        return Err("refused: `application` is empty".to_owned());
    }
    let entries = entries();
    let ranked = entries
        .iter()
        .filter_map(|entry| Some((rank(entry, wanted)?, entry)));
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let best = ranked.first().map(|(rank, _)| *rank);
    let is_exact = best.is_some_and(|best| best <= EXACT);
    if !is_exact && let Ok(found) = Programs::of_this_process().find(wanted) {
        return Ok(Application {
            name: wanted.to_owned(),
            words: vec![found.path.to_string_lossy().into_owned()],
        });
    }
    let same = ranked.iter().take_while(|(rank, _)| Some(*rank) == best);
    match same.map(|(_, entry)| *entry).collect::<Vec<_>>()[..] {
        [] => Err(format!(
            "refused: no application is called “{}”; there are: {}",
            gyrus_text::shorten(wanted, 60),
            named(&entries.iter().collect::<Vec<_>>())
        )),
        [entry] => entry.application(),
        ref several => Err(format!(
            "refused: “{}” may be one of: {}; name one",
            gyrus_text::shorten(wanted, 60),
            named(several)
        )),
    }
}

fn named(entries: &[&DesktopEntry]) -> String {
    let names = entries
        .iter()
        .take(MAX_NAMED)
        .map(|entry| entry.name.as_str());
    let more = if entries.len() > MAX_NAMED {
        " …"
    } else {
        ""
    };
    format!("{}{more}", names.collect::<Vec<_>>().join(", "))
}

/// Highest rank at which a name counts as an exact match.
const EXACT: u8 = 1;

/// Returns the rank of an application for a requested name, 0 for the best; `None` if it does not
/// fit.
fn rank(entry: &DesktopEntry, wanted: &str) -> Option<u8> {
    let wanted = wanted.to_lowercase();
    let wanted = wanted.trim_end_matches(".desktop");
    let name = entry.name.to_lowercase();
    let id = entry.id.to_lowercase();
    let program = entry
        .line
        .first()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    let last = id.rsplit('.').next().unwrap_or_default();
    let has = |text: &str| {
        let text = text.to_lowercase();
        let mut words = wanted.split_whitespace();
        words.all(|word| text.contains(word))
    };
    Some(if name == wanted || id == wanted {
        0
    } else if last == wanted || program == Some(wanted) {
        EXACT
    } else if name.starts_with(wanted) {
        2
    } else if has(&name) {
        3
    } else if has(&entry.generic) {
        4
    } else if has(&entry.keywords) {
        5
    } else if is_nearly(&name, wanted) {
        6
    } else if is_described(entry, wanted) {
        7
    } else {
        return None;
    })
}

/// Whether two names differ in at most one letter of seven.
fn is_nearly(name: &str, wanted: &str) -> bool {
    let (one, other): (Vec<_>, Vec<_>) = (name.chars().collect(), wanted.chars().collect());
    let same = one.iter().zip(&other).filter(|(one, other)| one == other);
    one.len() == other.len() && (one.len() - same.count()) * 7 <= one.len()
}

/// Minimum number of letters that words of the same stem begin with.
const STEM: usize = 5;

/// Whether each word is in some text of an application, or has the stem of a word there: a calculator
/// is what performs calculations.
fn is_described(entry: &DesktopEntry, wanted: &str) -> bool {
    let texts = [&entry.name, &entry.generic, &entry.keywords, &entry.id];
    let texts = texts.map(|text| text.to_lowercase());
    let is_end = |letter: char| !letter.is_alphanumeric();
    let is_same = |one: &str, other: &str| {
        let letters = one.chars().zip(other.chars());
        let common = letters.take_while(|(one, other)| one == other).count();
        // Three quarters of the word, so that an ending may differ and no more.
        common >= STEM && common * 4 >= one.chars().count() * 3
    };
    let fits = |word: &str| {
        let mut texts = texts.iter();
        texts
            .any(|text| text.contains(word) || text.split(is_end).any(|there| is_same(word, there)))
    };
    let mut words = wanted.split_whitespace();
    words.all(fits)
}

impl DesktopEntry {
    fn application(&self) -> Result<Application, String> {
        let name = &self.name;
        if self.needs_terminal {
            return Err(format!(
                "refused: {name} runs in a terminal, not in a window"
            ));
        }
        let mut words = self.line.clone();
        let first = words
            .first()
            .ok_or_else(|| format!("refused: {name} names no program"))?;
        let path = if first.starts_with('/') {
            first.clone()
        } else {
            let found = Programs::of_this_process().find(first);
            let found =
                found.map_err(|error| format!("refused: {name} cannot be started: {error}"))?;
            found.path.to_string_lossy().into_owned()
        };
        words[0] = path;
        Ok(Application {
            name: name.clone(),
            words,
        })
    }

    /// Reads a desktop file; `None` if it shows no application.
    fn read(id: &str, text: &str) -> Option<Self> {
        let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
        let mut is_main = false;
        for line in text.lines() {
            if line.starts_with('[') {
                is_main = line.trim() == "[Desktop Entry]";
            } else if let Some((key, value)) = line.split_once('=')
                && is_main
            {
                fields.entry(key.trim()).or_insert(value.trim());
            }
        }
        let get = |key: &str| fields.get(key).copied().unwrap_or_default();
        let is = |key: &str| get(key) == "true";
        if get("Type") != "Application" || is("NoDisplay") || is("Hidden") {
            return None;
        }
        Some(Self {
            id: id.to_owned(),
            name: get("Name").to_owned(),
            generic: get("GenericName").to_owned(),
            keywords: [get("Keywords"), get("Categories"), get("Comment")].join(" "),
            line: words(get("Exec")),
            needs_terminal: is("Terminal"),
        })
    }
}

/// Splits a command line of a desktop file: words in double quotes keep their spaces, and codes
/// with a percent sign stand for files, which are given one at a time, or for nothing.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '\\' if is_quoted => word.get_or_insert_default().extend(letters.next()),
            ' ' if !is_quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    let codes = words.into_iter().filter_map(|word| match word.as_str() {
        "%f" | "%F" | "%u" | "%U" => Some(FILE.to_owned()),
        "%i" | "%c" | "%k" | "%d" | "%D" | "%n" | "%N" | "%v" | "%m" => None,
        _ => Some(word.replace("%%", "%")),
    });
    codes.collect()
}

/// Returns the applications of this machine and of this person, by name.
fn entries() -> Vec<DesktopEntry> {
    let home = env::var("HOME").map(|home| format!("{home}/.local/share"));
    let own = env::var("XDG_DATA_HOME").or(home);
    let shared = env::var("XDG_DATA_DIRS").unwrap_or_default();
    let shared = if shared.is_empty() {
        "/usr/local/share:/usr/share"
    } else {
        &shared
    };
    let folders = own.iter().map(String::as_str).chain(shared.split(':'));
    let mut found: BTreeMap<String, Option<DesktopEntry>> = BTreeMap::new();
    for folder in folders.filter(|folder| folder.starts_with('/')) {
        let Ok(files) = fs::read_dir(Path::new(folder).join("applications")) else {
            continue;
        };
        for file in files.filter_map(Result::ok) {
            let name = file.file_name().to_string_lossy().into_owned();
            let is_small = fs::metadata(file.path())
                .is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
            if let (Some(id), true) = (name.strip_suffix(".desktop"), is_small)
                && !found.contains_key(id)
            {
                let text = fs::read_to_string(file.path()).unwrap_or_default();
                found.insert(id.to_owned(), DesktopEntry::read(id, &text));
            }
        }
    }
    let mut entries: Vec<_> = found.into_values().flatten().collect();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDITOR: &str = "[Desktop Entry]\nType=Application\nName=Mouse Pad\nGenericName=Text Editor\nKeywords=notes;plain;\nExec=mousepad --x \"a b\" %U\n[Desktop Action new]\nName=Other\nExec=rm\n";

    const CALCULATOR: &str = "[Desktop Entry]\nType=Application\nName=Galculator\nComment=Perform simple and scientific calculations\nExec=galculator\nCategories=Utility;\n";

    #[test]
    fn applications_are_found_by_what_people_call_them() {
        let entry = DesktopEntry::read("org.xfce.mousepad", EDITOR).unwrap();
        for (wanted, expected) in [
            ("Mouse Pad", Some(0)),
            ("org.xfce.mousepad.desktop", Some(0)),
            ("mousepad", Some(1)),
            ("mouse", Some(2)),
            ("pad", Some(3)),
            ("editor", Some(4)),
            ("text editor", Some(4)),
            ("plain notes", Some(5)),
            ("text editor mousepad", Some(7)),
            ("editing text", None),
            ("note", Some(5)),
            ("spreadsheet", None),
        ] {
            assert_eq!(rank(&entry, wanted), expected, "{wanted}");
        }
        let calculator = DesktopEntry::read("galculator", CALCULATOR).unwrap();
        for (wanted, expected) in [
            ("calculator", Some(6)),
            ("a calculator", Some(7)),
            ("scientific calculator", Some(7)),
            ("calculations", Some(5)),
            ("calendar", None),
            ("calc", Some(5)),
            ("scientist", Some(7)),
            ("sci", Some(5)),
        ] {
            assert_eq!(rank(&calculator, wanted), expected, "{wanted}");
        }
        assert_eq!(entry.line, ["mousepad", "--x", "a b", "%f"]);
    }

    #[test]
    fn what_shows_no_application_is_left_out() {
        for text in [
            "",
            "[Desktop Entry]\nType=Link\n",
            "[Desktop Entry]\nType=Application\nNoDisplay=true\n",
        ] {
            assert!(DesktopEntry::read("a", text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_file_stands_where_the_line_has_it() {
        let application = |words: &[&str]| Application {
            name: String::new(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let file = Some(Path::new("/a b"));
        assert_eq!(
            application(&["p", "%f", "-x"]).words_with(file),
            ["p", "/a b", "-x"]
        );
        assert_eq!(application(&["p", "%f"]).words_with(None), ["p"]);
        assert_eq!(application(&["p"]).words_with(file), ["p", "/a b"]);
    }
}
