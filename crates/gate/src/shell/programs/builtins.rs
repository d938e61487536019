//! Commands of the shell itself.

use super::Call;
use crate::shell::{
    paths,
    reader::Reader,
    variables::{self, Effect},
    walk,
    words::{Value, Word},
};

/// Operators of `test` between two operands.
const BETWEEN: &[&str] = &[
    "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

/// Operators of `test` before one operand, without those that evaluate it.
const BEFORE: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-t", "-u", "-w", "-x",
    "-G", "-L", "-N", "-O", "-S", "-z", "-n",
];

const MAY_EVALUATE: &str = "a value that may be evaluated again";

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    match call.name {
        "cd" | "pushd" => change_folder(reader, call),
        "popd" => reader.folder = None,
        "[" | "test" => test(reader, call),
        "pwd" | "type" | "times" => {}
        "dirs" | "jobs" | "help" | "wait" if call.args.is_empty() => {}
        "printf" => printf(reader, call),
        "exit" | "return" | "break" | "continue" | "shift" => {
            if !call.args.iter().all(|word| word.is_number()) {
                reader.hides(call.part, MAY_EVALUATE);
            }
        }
        "set" => set(reader, call),
        "shopt" => shopt(reader, call),
        "read" => read_variables(reader, call, "rse", "dnptiuN"),
        "mapfile" | "readarray" => read_variables(reader, call, "t", "dnsOu"),
        "unset" => unset(reader, call),
        "export" | "readonly" | "declare" | "typeset" | "local" => declare(reader, call),
        "umask" if call.args.iter().all(|word| word.is_number()) => {}
        "ulimit" => {
            if !call.args.iter().all(|word| word.prefix().starts_with('-')) {
                reader.hides(call.part, "it changes limits");
            }
        }
        "eval" => eval(reader, call),
        "source" | "." => source(reader, call),
        "trap" if ends_with(reader, call) => {}
        "trap" | "alias" | "unalias" | "hash" | "enable" | "complete" | "compgen" | "compopt"
        | "bind" | "let" | "fc" | "history" | "getopts" | "disown" | "suspend" | "logout"
        | "caller" | "coproc" | "umask" | "bg" | "fg" | "dirs" | "jobs" | "help" | "wait" => {
            reader.hides(
                call.part,
                "a command of the shell that changes what others mean",
            );
        }
        _ => return false,
    }
    true
}

fn change_folder(reader: &mut Reader<'_>, call: &Call<'_>) {
    let args: Vec<&Word> = call
        .args
        .iter()
        .filter(|word| !matches!(word.literal().as_deref(), Some("--" | "-P" | "-L")))
        .collect();
    let home = reader.place.home.clone();
    let target = match args.as_slice() {
        [] => home,
        [word] => match word.literal() {
            Some(path) if !path.starts_with('-') => reader.absolute(&path).ok(),
            _ => None,
        },
        _ => None,
    };
    let physical = args.len() != call.args.len();
    // What follows a link has two names; only where there is none is the folder certain.
    reader.folder = target.filter(|target| !physical || !target.is_symlink());
    if let Some(folder) = &reader.folder
        && folder.is_symlink()
    {
        reader.folder = folder.canonicalize().ok().map(|path| paths::normal(&path));
    }
}

/// `test` and `[` take apart what they are given, so open words may stand only where they are
/// nothing but operands.
fn test(reader: &mut Reader<'_>, call: &Call<'_>) {
    let mut args = call.args;
    if call.name == "[" {
        match args.split_last() {
            Some((last, rest)) if last.literal().as_deref() == Some("]") => args = rest,
            _ => return,
        }
    }
    while let [first, rest @ ..] = args {
        if first.literal().as_deref() != Some("!") {
            break;
        }
        args = rest;
    }
    if args
        .iter()
        .any(|word| word.literal().as_deref() == Some("-w"))
    {
        // What only reads runs where nothing is writable, and would be told so.
        reader.runs_code(call.part, "it asks what may be written");
    }
    let all_known = args.iter().all(|word| word.literal().is_some());
    let one = |word: &Word| word.is_one() || word.is_number();
    let is = |word: &Word, list: &[&str]| word.literal().is_some_and(|w| list.contains(&&*w));
    let fine = match args {
        [] => true,
        [only] => one(only),
        [operator, operand] => is(operator, BEFORE) && (one(operand) || operand.is_pattern()),
        [left, operator, right] => is(operator, BETWEEN) && one(left) && one(right),
        _ => false,
    };
    let evaluates = args.iter().any(|word| is(word, &["-v", "-R", "-o"]));
    if !(fine || all_known && !evaluates) {
        reader.hides(call.part, MAY_EVALUATE);
    }
}

fn printf(reader: &mut Reader<'_>, call: &Call<'_>) {
    let Some(first) = call.args.first() else {
        return;
    };
    let known = match first.literal() {
        Some(text) => !text.starts_with('-') || text == "--" || !text.starts_with("-v"),
        None => !first.may_begin_with('-'),
    };
    if !known {
        reader.hides(call.part, "it writes a variable, whose name is evaluated");
    }
}

fn set(reader: &mut Reader<'_>, call: &Call<'_>) {
    const FINE: &[&str] = &[
        "-e", "-u", "-x", "-eu", "-ex", "-eux", "-euo", "-exo", "-euxo", "-o", "pipefail",
        "errexit", "nounset", "xtrace", "+e", "+u", "+x", "-f", "+o", "-eo", "-uo", "-xeuo", "-xe",
        "-ue",
    ];
    if !call
        .args
        .iter()
        .all(|word| word.literal().is_some_and(|w| FINE.contains(&&*w)))
    {
        reader.hides(call.part, "it changes how the line is understood");
    }
}

fn shopt(reader: &mut Reader<'_>, call: &Call<'_>) {
    const FINE: &[&str] = &[
        "-s",
        "-u",
        "-q",
        "-p",
        "globstar",
        "nullglob",
        "failglob",
        "nocaseglob",
        "dotglob",
        "inherit_errexit",
        "lastpipe",
    ];
    if !call
        .args
        .iter()
        .all(|word| word.literal().is_some_and(|w| FINE.contains(&&*w)))
    {
        reader.hides(call.part, "it changes how the line is understood");
    }
}

/// `read` and `mapfile`: names of variables after the options.
fn read_variables(reader: &mut Reader<'_>, call: &Call<'_>, plain: &str, takes: &str) {
    let mut words = call.args.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.literal() else {
            return reader.hides(call.part, MAY_EVALUATE);
        };
        match text.strip_prefix('-') {
            Some(letters) if letters.chars().all(|c| plain.contains(c)) => {}
            Some("a") => {}
            Some(letters) => {
                let mut letters = letters.trim_start_matches(|c| plain.contains(c)).chars();
                if !letters.next().is_some_and(|c| takes.contains(c)) {
                    return reader.hides(call.part, "an option that is not known");
                }
                if letters.as_str().is_empty() {
                    match words.next().map(Word::literal) {
                        Some(Some(_)) => {}
                        _ => return reader.hides(call.part, MAY_EVALUATE),
                    }
                }
            }
            None => {
                let value = Value {
                    splits: true,
                    ..Value::default()
                };
                walk::assign(reader, &text, value, None, call.part);
            }
        }
    }
}

fn unset(reader: &mut Reader<'_>, call: &Call<'_>) {
    for word in call.args {
        match word.literal() {
            Some(text) if text == "-v" => {}
            Some(name) if variables::is_name(&name) && !variables::is_dangerous(&name) => {
                let value = Value::default();
                walk::assign(reader, &name, value, None, call.part);
            }
            _ => reader.hides(call.part, MAY_EVALUATE),
        }
    }
}

fn declare(reader: &mut Reader<'_>, call: &Call<'_>) {
    for word in call.args {
        let prefix = word.prefix();
        if word
            .literal()
            .is_some_and(|w| matches!(&*w, "-x" | "-r" | "-p" | "-g"))
        {
            continue;
        }
        let name = prefix.split('=').next().unwrap_or_default();
        // Without the sign the name itself could be open.
        let whole = prefix.contains('=') || word.literal().is_some();
        if !whole || !variables::is_name(name) || word.may_split() {
            reader.hides(call.part, MAY_EVALUATE);
            continue;
        }
        let unknown = Value {
            splits: true,
            ..Value::default()
        };
        walk::assign(reader, name, unknown, None, call.part);
        let shown_to_programs = call.name == "export"
            || call
                .args
                .iter()
                .any(|word| word.literal().as_deref() == Some("-x"));
        match variables::effect(name) {
            Effect::Unknown if shown_to_programs => {
                reader.runs_code(call.part, "it gives programs a variable nobody knows");
            }
            Effect::Harmless | Effect::Unknown => {}
            Effect::Dangerous => {
                reader.hides(call.part, "it changes which programs run, or what they run");
            }
        }
    }
}

fn eval(reader: &mut Reader<'_>, call: &Call<'_>) {
    let texts: Option<Vec<String>> = call.args.iter().map(Word::literal).collect();
    match texts {
        Some(texts) => {
            // The same shell: what it assigns remains, and nobody counts it.
            reader.hides(call.part, "it evaluates a text");
            reader.other_shell(&texts.join(" "));
        }
        None => reader.hides(
            call.part,
            "it evaluates a text that is known only when it runs",
        ),
    }
}

/// `trap TEXT EXIT`: the text runs when the shell ends or is ended, wherever it is then.
fn ends_with(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    let words: Option<Vec<String>> = call.args.iter().map(Word::literal).collect();
    let words = words.unwrap_or_default();
    let Some((text, signals)) = words.split_first() else {
        return false;
    };
    let ends = |signal: &String| matches!(signal.as_str(), "EXIT" | "INT" | "TERM" | "HUP");
    if text.is_empty() || text.starts_with('-') || signals.is_empty() || !signals.iter().all(ends) {
        return false;
    }
    let before = reader.facts();
    reader.apart(|reader| {
        reader.folder = None;
        reader.other_shell(text);
    });
    // A text that does nothing does nothing later either, unless it says something else then.
    if reader.facts() > before || text.contains(['$', '`']) {
        reader.hides(call.part, "it runs a text when the shell ends");
    }
    true
}

fn source(reader: &mut Reader<'_>, call: &Call<'_>) {
    match call.args.first().and_then(Word::literal) {
        Some(path) if path.contains('/') && !path.starts_with("/dev/") => {
            reader.reads(&path, call.part);
            reader.runs_code(call.part, "it runs a script in this shell");
            // It may have gone elsewhere.
            reader.folder = None;
        }
        _ => reader.hides(call.part, "which script it runs is not known"),
    }
}
