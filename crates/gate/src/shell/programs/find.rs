//! `find`: an expression whose every word must be known.

use super::{Call, wrappers};
use crate::shell::{PARTLY, reader::Reader, words::Word};

/// Tests and settings without a value.
const ALONE: &[&str] = &[
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-empty",
    "-true",
    "-false",
    "-readable",
    "-writable",
    "-executable",
    "-nouser",
    "-nogroup",
    "-daystart",
    "-follow",
    "-noleaf",
    "-not",
    "-and",
    "-a",
    "-or",
    "-o",
    "!",
    "(",
    ")",
    ",",
    "-warn",
    "-nowarn",
    "-ignore_readdir_race",
];

/// Those with one.
const WITH_VALUE: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-lname",
    "-ilname",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-newer",
    "-anewer",
    "-cnewer",
    "-newermt",
    "-newerat",
    "-newerct",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-samefile",
    "-fstype",
    "-maxdepth",
    "-mindepth",
    "-printf",
    "-used",
    "-newermm",
];

/// Those that write the file that follows.
const WRITES: &[&str] = &["-fprint", "-fprint0", "-fls", "-fprintf"];

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    if call.name != "find" {
        return false;
    }
    if !super::reading::asks_about_itself(call)
        && let Err(why) = expression(reader, call)
    {
        reader.hides(call.part, why);
    }
    true
}

fn expression(reader: &mut Reader<'_>, call: &Call<'_>) -> Result<(), &'static str> {
    let args = call.args;
    let mut at = 0;
    while args
        .get(at)
        .is_some_and(|w| matches!(w.literal().as_deref(), Some("-L" | "-P" | "-H")))
    {
        at += 1;
    }
    let start = at;
    while let Some(word) = args.get(at) {
        let begins = ['-', '!', '(', ')', ',']
            .iter()
            .any(|c| word.may_begin_with(*c));
        match word.literal() {
            Some(_) if begins => break,
            _ if begins => return Err("an argument that could be an expression"),
            _ => reader.reads_word(word, call.part),
        }
        at += 1;
    }
    let starts = &args[start..at];
    if starts.is_empty() {
        reader.reads(".", call.part);
    }
    while let Some(word) = args.get(at) {
        let name = word
            .literal()
            .ok_or("an argument that could be an expression")?;
        let value = args.get(at + 1);
        at += 1;
        if ALONE.contains(&name.as_str()) {
            continue;
        }
        if WITH_VALUE.contains(&name.as_str()) {
            let one = value.is_some_and(Word::is_one);
            // A pattern without quotes is one word while one file matches it at most.
            if !one {
                return Err("an argument that could be an expression");
            }
            at += 1;
        } else if WRITES.contains(&name.as_str()) {
            reader.writes(value.ok_or("an expression that is not whole")?, call.part);
            at += 1 + usize::from(name == "-fprintf");
        } else if name == "-delete" {
            delete(reader, call, starts, is_limited(&args[start..at]));
        } else if matches!(name.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            at = run(reader, call, starts, &name, at)?;
        } else {
            return Err("an expression that is not known");
        }
    }
    Ok(())
}

fn delete(reader: &mut Reader<'_>, call: &Call<'_>, starts: &[Word], limited: bool) {
    let here = [Word::plain(".")];
    for start in if starts.is_empty() { &here } else { starts } {
        match limited {
            true => reader.removes_partly(start, call.part, PARTLY[1]),
            false => reader.removes(start, call.part),
        }
    }
}

/// Whether what stands before an action lets it reach only names that no file of a repository's
/// history has.
fn is_limited(before: &[Word]) -> bool {
    const MADE: &[&str] = &[
        "__pycache__",
        "node_modules",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".DS_Store",
    ];
    /// Endings of git's own files.
    const HISTORY: &[&str] = &[
        "lock", "pack", "idx", "keep", "rev", "graph", "bitmap", "mtimes", "promisor", "sample",
    ];
    let words: Vec<String> = before
        .iter()
        .map(|word| word.literal().unwrap_or_default())
        .collect();
    let never_history = |pattern: &str| {
        let ending = pattern.strip_prefix("*.").unwrap_or_default();
        let plain = !ending.is_empty() && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
        MADE.contains(&pattern) || plain && !HISTORY.contains(&ending.to_lowercase().as_str())
    };
    let widens = |word: &String| matches!(word.as_str(), "-o" | "-or" | "!" | "-not" | "(" | ",");
    let named = words
        .windows(2)
        .any(|pair| matches!(pair[0].as_str(), "-name" | "-iname") && never_history(&pair[1]));
    named && !words.iter().any(widens)
}

/// Whether it is `rm` of what was found, and of nothing else.
fn removes_found(command: &[Word]) -> bool {
    let mut words = command.iter().map(Word::literal);
    let options = ["-f", "-r", "-rf", "-fr", "-v", "--"];
    words.next() == Some(Some("rm".to_owned()))
        && command.iter().any(|word| word.raw == "{}")
        && words.all(|word| word.is_some_and(|word| word == "{}" || options.contains(&&*word)))
}

/// Reads the command of `-exec`; the names it is given begin with where the search starts.
fn run(
    reader: &mut Reader<'_>,
    call: &Call<'_>,
    starts: &[Word],
    name: &str,
    from: usize,
) -> Result<usize, &'static str> {
    let ends = |word: &Word| matches!(word.literal().as_deref(), Some(";" | "+"));
    let length = call.args[from..]
        .iter()
        .position(ends)
        .ok_or("an expression that is not whole")?;
    let elsewhere = name.ends_with("dir");
    let command = &call.args[from..from + length];
    if !elsewhere && removes_found(command) && is_limited(&call.args[..from - 1]) {
        if reader.command(command) {
            delete(reader, call, starts, true);
        }
        return Ok(from + length + 1);
    }
    let found = match starts {
        _ if elsewhere => Word::made_up("{}"),
        [] => Word::below("."),
        [one] => one
            .literal()
            .map_or(Word::made_up("{}"), |start| Word::below(&start)),
        _ => Word::made_up("{}"),
    };
    let words: Vec<Word> = call.args[from..from + length]
        .iter()
        .map(|word| match word.literal() {
            Some(text) if text == "{}" => found.clone(),
            Some(text) if text.contains("{}") => {
                Word::with_unknown_end(&text, text.split("{}").next().unwrap_or_default())
            }
            _ => word.clone(),
        })
        .collect();
    wrappers::for_each(reader, &words, elsewhere, call.part);
    Ok(from + length + 1)
}
