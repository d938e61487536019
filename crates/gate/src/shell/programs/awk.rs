//! `awk`: programs that provably start nothing and write nothing.

use super::{Call, options::Spec};
use crate::shell::reader::Reader;

const OPTIONS: Spec = Spec::first("F:v:", "field-separator= assign= re-interval posix");

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    if !matches!(call.name, "awk" | "gawk" | "mawk" | "nawk") {
        return false;
    }
    if super::reading::asks_about_itself(call) {
        return true;
    }
    let parsed = match OPTIONS.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => {
            reader.hides(call.part, "it runs a program that is not read");
            reader.hides(call.part, why);
            return true;
        }
    };
    let Some((program, files)) = parsed.operands.split_first() else {
        return true;
    };
    match program.literal() {
        Some(text) if only_reads(&text) => {}
        _ => reader.hides(
            call.part,
            "it runs a program that may start others or write",
        ),
    }
    for file in files {
        match file.prefix().contains("/inet") {
            true => reader.hides(call.part, "it opens a connection"),
            false if file.prefix().contains('=') => {}
            false => reader.reads_word(file, call.part),
        }
    }
    true
}

/// Whether nothing in the program could start a program or write a file. Comparisons and
/// alternatives look like redirections, so they must come before anything that prints.
fn only_reads(program: &str) -> bool {
    if ["system", "getline", "@", "|&", "/inet"]
        .iter()
        .any(|word| program.contains(word))
    {
        return false;
    }
    // A quote inside a pattern would hide the rest, so with patterns texts are not taken out.
    let code = match program.contains('/') {
        true => program.to_owned(),
        false => match without_texts(program) {
            Some(code) => code,
            None => return false,
        },
    };
    match code.find("print") {
        None => true,
        Some(at) => !code[at..].replace("||", "  ").contains(['>', '|']),
    }
}

fn without_texts(program: &str) -> Option<String> {
    let mut code = String::new();
    let mut chars = program.chars();
    while let Some(c) = chars.next() {
        code.push(c);
        // A quote in a comment would pair with one outside it.
        if c == '#' {
            return None;
        }
        if c != '"' {
            continue;
        }
        loop {
            match chars.next()? {
                '\\' => {
                    chars.next()?;
                }
                '"' => break,
                '\n' => return None,
                _ => {}
            }
        }
    }
    Some(code)
}
