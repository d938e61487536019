//! Arithmetic that cannot run anything.
//!
//! The shell evaluates the text of a variable again, and an index in it may hold a substitution.
//! So only names are let through that can hold nothing but numbers, whatever path the line takes.

use super::{scan::Why, variables, words::name_length};

/// Whether the expression is harmless in this line.
pub(super) fn check(text: &str, line: &str) -> Result<(), Why> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let name = name_length(rest);
        if name > 0 {
            if !is_number(&rest[..name], line) {
                return Err("a value that may be evaluated again");
            }
            rest = &rest[name..];
            continue;
        }
        let known = c.is_ascii_digit() || " \t+-*/%()<>=!&|^~?:,".contains(c);
        let variable = c == '$' && name_length(&rest[1..]) > 0;
        if !(known || variable) {
            return Err("arithmetic that is not understood");
        }
        rest = &rest[1..];
        // `16#ff` and `0x1f` are numbers, too.
        if c.is_ascii_digit() {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        }
    }
    Ok(())
}

/// Whether every mention of the name in the line leaves a number in it.
pub(super) fn is_number(name: &str, line: &str) -> bool {
    if variables::is_the_shells(name) {
        return false;
    }
    let mut assigned = false;
    for at in variables::bare_mentions(line, name) {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        if in_arithmetic(before, after) {
            continue;
        }
        assigned = true;
        let value = after.strip_prefix('=');
        let fine = match value {
            Some(value) => starts_with_number(value),
            None => before.ends_with("for ") && counts_up(after),
        };
        if !fine {
            return false;
        }
    }
    assigned
}

/// Whether the mention stands inside `$((…))`, `((…))` or `for ((…))`, and surely so: what the
/// shell could also take for commands in parentheses does not count.
fn in_arithmetic(before: &str, after: &str) -> bool {
    let (Some(open), Some(close)) = (before.rfind("(("), after.find("))")) else {
        return false;
    };
    let loops = before[..open].trim_end().ends_with("for");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_ +-*/%<>=!?:,^~$".contains(c);
    let fine = |c: char| plain(c) || loops && ";&|".contains(c);
    before[open + 2..].chars().all(fine) && after[..close].chars().all(fine)
}

fn starts_with_number(value: &str) -> bool {
    if value.starts_with("$((") {
        let Some(end) = value.find("))") else {
            return false;
        };
        return ends(&value[end + 2..]);
    }
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && ends(&value[digits..])
}

fn ends(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', ';', '\n', ')', '&'])
}

/// `in 1 2 3`, `in {1..9}`, `in $(seq 9)`.
fn counts_up(after: &str) -> bool {
    let Some(rest) = after.strip_prefix(" in ") else {
        return false;
    };
    let Some(end) = rest.find([';', '\n']) else {
        return false;
    };
    let values = rest[..end].trim();
    let values = values
        .strip_prefix("$(seq ")
        .and_then(|v| v.strip_suffix(')'))
        .unwrap_or(values);
    !values.is_empty()
        && values.split(' ').all(|value| {
            let range = value.strip_prefix('{').and_then(|v| v.strip_suffix('}'));
            let value = range.map_or(value.to_owned(), |range| range.replace("..", ""));
            !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
        })
}
