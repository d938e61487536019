//! Programs that run the program which their arguments name.

use gyrus_contract::Does;

use super::{Call, options::Spec};
use crate::shell::{
    reader::Reader,
    variables::{self, Effect},
    words::Word,
};

/// Name, options before the command, and how many operands come before it.
const WRAPPERS: &[(&str, Spec, usize)] = &[
    ("nice", Spec::first("n:#", "adjustment="), 0),
    ("ionice", Spec::first("c:n:t", "class= classdata="), 0),
    ("nohup", Spec::first("", ""), 0),
    ("setsid", Spec::first("w", "wait"), 0),
    ("stdbuf", Spec::first("i:o:e:", "input= output= error="), 0),
    (
        "timeout",
        Spec::first(
            "k:s:fpv",
            "kill-after= signal= preserve-status foreground verbose",
        ),
        1,
    ),
    ("time", Spec::first("pv", "portability verbose"), 0),
    ("builtin", Spec::first("", ""), 0),
    ("chronic", Spec::first("", ""), 0),
];

const XARGS: Spec = Spec::first(
    "0rtxd:n:L:P:s:I:E:",
    "null no-run-if-empty verbose exit delimiter= max-args= max-lines? max-procs= max-chars= \
     replace?",
);

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    if let Some((_, spec, skip)) = WRAPPERS.iter().find(|(name, ..)| *name == call.name) {
        wrapped(reader, call, spec, *skip);
        return true;
    }
    match call.name {
        "env" => env(reader, call),
        "flock" => flock(reader, call),
        "command" => command(reader, call),
        "exec" => exec(reader, call),
        "xargs" => xargs(reader, call),
        "sudo" | "doas" => sudo(reader, call),
        name if SHELLS.contains(&name) => shell(reader, call),
        _ => return false,
    }
    true
}

/// Reads the command that is left, in a process of its own.
fn inner(reader: &mut Reader<'_>, words: &[Word], part: &str) {
    reader.apart(|reader| {
        if reader.command(words) {
            super::read(reader, words, part);
        }
    });
}

fn wrapped(reader: &mut Reader<'_>, call: &Call<'_>, spec: &Spec, skip: usize) {
    if super::reading::asks_about_itself(call) {
        return;
    }
    match spec.parse(call.args) {
        Ok(parsed)
            if parsed.operands[..skip.min(parsed.operands.len())]
                .iter()
                .all(Word::is_one) =>
        {
            if call.name == "setsid" {
                reader.runs_code(call.part, "it goes on where nobody ends it");
            }
            inner(
                reader,
                parsed.operands.get(skip..).unwrap_or_default(),
                call.part,
            );
        }
        Ok(_) => reader.hides(
            call.part,
            "which program it runs is known only when it runs",
        ),
        Err(why) => reader.hides(call.part, why),
    }
}

/// `flock FILE COMMAND …`; with a descriptor or a text it is not looked into.
fn flock(reader: &mut Reader<'_>, call: &Call<'_>) {
    let spec = Spec::first(
        "sxneuow:E:F",
        "shared exclusive nonblock unlock wait= timeout= conflict-exit-code= close no-fork verbose",
    );
    let parsed = spec.parse(call.args);
    let Ok([file, words @ ..]) = parsed.as_ref().map(|parsed| parsed.operands.as_slice()) else {
        return reader.hides(call.part, "it can run any command");
    };
    let is_command = words
        .first()
        .is_some_and(|word| word.literal().is_some_and(|name| !name.starts_with('-')));
    if !is_command || file.literal().is_none() {
        return reader.hides(call.part, "it can run any command");
    }
    reader.writes(file, call.part);
    inner(reader, words, call.part);
}

fn env(reader: &mut Reader<'_>, call: &Call<'_>) {
    let spec = Spec::first("iu:0v", "ignore-environment unset= null debug");
    let parsed = match spec.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    let mut words = parsed.operands.as_slice();
    while let [word, rest @ ..] = words {
        let prefix = word.prefix();
        let Some((name, _)) = prefix.split_once('=') else {
            break;
        };
        if word.may_split() {
            return reader.hides(
                call.part,
                "which program it runs is known only when it runs",
            );
        }
        match variables::effect(name) {
            Effect::Harmless => {}
            Effect::Unknown => {
                reader.runs_code(call.part, "it gives a program a variable nobody knows");
            }
            Effect::Dangerous => {
                reader.hides(call.part, "it changes which programs run, or what they run");
            }
        }
        words = rest;
    }
    // Without `PATH` programs are searched for elsewhere; `env` itself finds them before.
    for name in parsed.values(&["u", "unset"]) {
        if name
            .literal()
            .is_none_or(|name| variables::is_dangerous(&name))
        {
            reader.hides(call.part, "it changes which programs run, or what they run");
        }
    }
    if parsed.has(&["i", "ignore-environment"]) && !words.is_empty() {
        reader.runs_code(
            call.part,
            "it takes away variables that keep programs from doing more",
        );
    }
    if !words.is_empty() {
        inner(reader, words, call.part);
    }
}

fn command(reader: &mut Reader<'_>, call: &Call<'_>) {
    match Spec::first("vVp", "").parse(call.args) {
        Ok(parsed) if parsed.has(&["v", "V"]) => {}
        Ok(parsed) if parsed.has(&["p"]) => {
            reader.hides(call.part, "it looks for the program elsewhere");
        }
        // It runs in this shell, so `command cd` counts.
        Ok(parsed) if !parsed.operands.is_empty() => {
            if reader.command(&parsed.operands) {
                super::read(reader, &parsed.operands, call.part);
            }
        }
        Ok(_) => {}
        Err(why) => reader.hides(call.part, why),
    }
}

fn exec(reader: &mut Reader<'_>, call: &Call<'_>) {
    let Some(first) = call.args.first() else {
        return;
    };
    // `exec -a name` lies about the program.
    match first.may_begin_with('-') {
        true => reader.hides(call.part, "an option that is not known"),
        false => inner(reader, call.args, call.part),
    }
}

fn xargs(reader: &mut Reader<'_>, call: &Call<'_>) {
    let parsed = match XARGS.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    let mut words = parsed.operands.clone();
    if words.is_empty() {
        words.push(Word::plain("echo"));
    }
    let replaced = match parsed.values(&["I", "replace"]).last() {
        Some(mark) => Some(mark.literal()),
        None => parsed.has(&["replace"]).then(|| Some("{}".to_owned())),
    };
    match replaced {
        Some(None) => return reader.hides(call.part, "what it puts in is not known"),
        Some(Some(mark)) => {
            for word in &mut words {
                if mark.is_empty() || word.literal().is_none_or(|text| text.contains(&mark)) {
                    *word = mixed(word, &mark);
                }
            }
        }
        None => words.push(Word::unknown("…")),
    }
    inner(reader, &words, call.part);
}

/// The word with something unknown where the mark stands.
fn mixed(word: &Word, mark: &str) -> Word {
    match word.literal() {
        Some(text) if !mark.is_empty() => {
            let start = text.split(mark).next().unwrap_or_default();
            Word::with_unknown_end(&text, start)
        }
        _ => Word::unknown(&word.raw),
    }
}

fn sudo(reader: &mut Reader<'_>, call: &Call<'_>) {
    reader.fact(
        Does::ChangesSystem,
        call.part,
        "it runs with another user's rights",
    );
    match Spec::first("nEHSkKvu:g:", "non-interactive user= group=").parse(call.args) {
        Ok(parsed) if !parsed.operands.is_empty() => inner(reader, &parsed.operands, call.part),
        Ok(_) => {}
        Err(why) => reader.hides(call.part, why),
    }
}

/// A shell with a text is read through; one with a script runs code.
fn shell(reader: &mut Reader<'_>, call: &Call<'_>) {
    if super::reading::asks_about_itself(call) {
        return;
    }
    let spec = Spec::first("ceuxln", "norc noprofile posix");
    let parsed = match spec.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => return reader.hides(call.part, why),
    };
    if parsed.has(&["l"]) {
        reader.runs_code(call.part, "it runs the person's start-up files");
    }
    let first = parsed.operands.first();
    match (parsed.has(&["c"]), first.map(Word::literal)) {
        (true, Some(Some(text))) => {
            if matches!(call.name, "zsh" | "ksh") {
                reader.hides(call.part, "it runs a text in another shell");
            }
            if !parsed.operands[1..].iter().all(Word::is_one) {
                reader.hides(call.part, "it runs a text with arguments nobody knows");
            }
            reader.other_shell(&text);
        }
        (false, Some(Some(script))) if script != "-" => {
            reader.reads(&script, call.part);
            // Only looked through for mistakes.
            if !parsed.has(&["n"]) {
                reader.runs_code(call.part, "it runs a script");
            }
        }
        (false, None) if reader.given_text => {
            reader.hides(call.part, "it runs a text that is not read");
        }
        _ => reader.hides(call.part, "what it runs is known only when it runs"),
    }
}

/// Reads a command that `find` runs in other folders or for names nobody knows.
pub(super) fn for_each(reader: &mut Reader<'_>, words: &[Word], elsewhere: bool, part: &str) {
    reader.apart(|reader| {
        if elsewhere {
            reader.folder = None;
        }
        inner(reader, words, part);
    });
}
