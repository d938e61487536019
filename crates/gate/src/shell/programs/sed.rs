//! `sed`: scripts that neither run nor write, read letter by letter.

use super::{Call, options::Spec};
use crate::shell::{reader::Reader, words::Word};

const OPTIONS: Spec = Spec::strict(
    "nErsuzi;e:l:",
    "quiet silent regexp-extended separate unbuffered null-data expression= in-place? debug \
     sandbox posix line-length=",
);

pub(super) fn read(reader: &mut Reader<'_>, call: &Call<'_>) -> bool {
    if !matches!(call.name, "sed" | "gsed") {
        return false;
    }
    if super::reading::asks_about_itself(call) {
        return true;
    }
    let parsed = match OPTIONS.parse(call.args) {
        Ok(parsed) => parsed,
        Err(why) => {
            reader.hides(call.part, why);
            return true;
        }
    };
    let given: Vec<&Word> = parsed.values(&["e", "expression"]).collect();
    let (scripts, files) = match (given.is_empty(), parsed.operands.split_first()) {
        (false, _) => (given, parsed.operands.as_slice()),
        (true, Some((script, files))) => (vec![script], files),
        (true, None) => return true,
    };
    for script in scripts {
        match script.literal().and_then(|text| writes(&text)) {
            Some(files) => {
                for file in files {
                    reader.writes(&Word::plain(&file), call.part);
                }
            }
            None => reader.hides(call.part, "its script may run commands or write files"),
        }
    }
    let in_place = parsed.values(&["i", "in-place"]).any(|suffix| {
        // A suffix with a slash or a star names another place.
        suffix
            .literal()
            .is_none_or(|suffix| suffix.contains(['/', '*']))
    });
    if in_place {
        reader.hides(call.part, "it keeps the old file in another place");
    }
    for file in files {
        match parsed.has(&["i", "in-place"]) {
            true => reader.writes(file, call.part),
            false => reader.reads_word(file, call.part),
        }
    }
    true
}

/// The files that the script writes, if every command of it is known and none runs another.
fn writes(script: &str) -> Option<Vec<String>> {
    let mut rest = script;
    let mut files = Vec::new();
    let mut depth = 0_usize;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';']);
        rest = address(rest)?.trim_start_matches([' ', '\t', '!']);
        let Some(command) = rest.chars().next() else {
            return (depth == 0 && rest.is_empty()).then_some(files);
        };
        rest = &rest[command.len_utf8()..];
        let next = match command {
            '{' => {
                depth += 1;
                Some(rest)
            }
            '}' if depth > 0 => {
                depth -= 1;
                ended(rest)
            }
            'p' | 'd' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'D' | 'P' | '=' | 'z' | 'F' => {
                ended(rest)
            }
            'q' | 'Q' | 'l' | 'L' => {
                ended(rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()))
            }
            'b' | 't' | 'T' | ':' => label(rest),
            'a' | 'i' | 'c' => added(rest),
            's' => substitution(rest, &mut files),
            'w' => written(rest, &mut files),
            'y' => delimited_twice(rest).and_then(ended),
            '#' => Some(rest.split_once('\n').map_or("", |(_, after)| after)),
            _ => None,
        };
        rest = next?;
    }
}

/// What follows a command: its end, a blank, or a brace.
fn ended(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches([' ', '\t']);
    match rest.chars().next() {
        None | Some(';' | '\n' | '}') => Some(rest),
        _ => None,
    }
}

fn label(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(' ');
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    // Some take everything up to the line's end as the label.
    match rest[end..].chars().next() {
        None | Some('\n') => Some(&rest[end..]),
        Some(';') => Some(&rest[end..]),
        Some('}') => Some(&rest[end..]),
        _ => None,
    }
}

/// One line of text that is added; one that goes on is not read.
fn added(rest: &str) -> Option<&str> {
    let rest = rest
        .strip_prefix('\\')
        .map_or(rest, |rest| rest.strip_prefix('\n').unwrap_or(rest));
    let (text, after) = rest.split_once('\n').unwrap_or((rest, ""));
    (!text.is_empty() && !text.contains('\\')).then_some(after)
}

/// The address before a command, if there is one.
fn address(mut rest: &str) -> Option<&str> {
    for part in 0..2 {
        let first = rest.chars().next();
        rest = match first {
            Some('0'..='9' | '$' | '+' | '~') if part == 1 || first != Some('+') => rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | '~' | '+')),
            Some('/') => {
                let after = past(&rest[1..], '/')?;
                after.trim_start_matches(['I', 'M'])
            }
            _ => return Some(rest),
        };
        match rest.trim_start_matches(' ').strip_prefix(',') {
            Some(after) if part == 0 => rest = after.trim_start_matches(' '),
            _ => return Some(rest),
        }
    }
    Some(rest)
}

/// What follows the next delimiter that is not escaped.
fn past(text: &str, delimiter: char) -> Option<&str> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            // Whether a delimiter ends the pattern inside brackets differs between programs.
            '[' if bracket_holds(&text[at..], delimiter) => return None,
            '\n' => return None,
            c if c == delimiter => return Some(&text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}

fn bracket_holds(text: &str, delimiter: char) -> bool {
    let end = text.find(']').unwrap_or(text.len());
    text[..end].contains(delimiter) && end < text.len()
}

fn delimited_twice(rest: &str) -> Option<&str> {
    let delimiter = rest.chars().next()?;
    if delimiter.is_ascii_alphanumeric() || matches!(delimiter, '\\' | '\n' | ' ' | ';' | '[' | '{')
    {
        return None;
    }
    let rest = past(&rest[delimiter.len_utf8()..], delimiter)?;
    past(rest, delimiter)
}

/// The name of a file, up to the end of the line.
fn written<'a>(rest: &'a str, files: &mut Vec<String>) -> Option<&'a str> {
    let (name, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let name = name.trim_start_matches([' ', '\t']);
    files.push(name.to_owned());
    (!name.is_empty()).then_some(after)
}

fn substitution<'a>(rest: &'a str, files: &mut Vec<String>) -> Option<&'a str> {
    let rest = delimited_twice(rest)?;
    let flags = rest
        .find(|c: char| !(matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit()))
        .unwrap_or(rest.len());
    match rest[flags..].strip_prefix('w') {
        Some(name) => written(name, files),
        None => ended(&rest[flags..]),
    }
}
