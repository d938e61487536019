//! The end of a value: a quotation mark, a bracket, white space, another setting.

/// Maximum length in bytes of the name of another setting.
const MAX_NAME_BYTES: usize = 40;

/// Whether the text behind a name announces a value in the lines below.
pub(super) fn is_block(value: &str) -> bool {
    let value = value
        .split_once(" #")
        .map_or(value, |(value, _)| value)
        .trim();
    value.starts_with(['|', '>'])
        && value[1..]
            .bytes()
            .all(|b| b"+-".contains(&b) || b.is_ascii_digit())
}

/// Whether a line ends with such an announcement.
pub(super) fn block_header(line: &str) -> bool {
    line.rsplit_once(':')
        .is_some_and(|(_, value)| is_block(value))
}

/// Returns the length in bytes of a bare value.
pub(super) fn end_of_word(text: &str, quotes: &[char], environment: bool) -> usize {
    for (at, c) in text.char_indices() {
        let next = &text[at + c.len_utf8()..];
        let is_over = match c {
            c if c.is_whitespace() || quotes.contains(&c) => true,
            '\\' => next.starts_with(['n', 'r', 't', '"', '\'', 'u', '\\']),
            '"' | '\'' | '`' => {
                let closes = |c: char| c.is_whitespace() || ",;)]}".contains(c);
                at > 0 && (next.is_empty() || next.starts_with(closes))
            }
            _ if environment => false,
            // Part of the value, unless another setting, or nothing, follows it.
            ',' | '&' | '|' => {
                next.is_empty()
                    || next.starts_with(|c: char| c.is_whitespace() || "\"'`,;&|)]}".contains(c))
                    || begins_setting(&text[at..])
            }
            // A separator of settings, so it is part of a value only where the next one comes
            // later.
            ';' => {
                let later = next_setting(&text[at..]).filter(|later| *later > 0);
                !later.is_some_and(|later| {
                    text[at + later..].starts_with(';')
                        && !text[at..at + later].contains(char::is_whitespace)
                })
            }
            '<' => true,
            ')' | ']' | '}' => unclosed(&text[..at + 1]).is_some(),
            _ => false,
        };
        if is_over {
            return at;
        }
    }
    text.len()
}

/// Returns the position in a line at which another setting begins: `, user: me`, `;User Id=x`,
/// `&next=1`.
pub(super) fn next_setting(line: &str) -> Option<usize> {
    let separates = |byte: u8| b",;& ".contains(&byte);
    let bytes = line.as_bytes();
    // The first of several in a row decides.
    (0..bytes.len())
        .filter(|at| separates(bytes[*at]) && (*at == 0 || !separates(bytes[*at - 1])))
        .find(|at| begins_setting(&line[*at..]))
}

/// Whether a name and a separator follow behind separators of settings.
fn begins_setting(text: &str) -> bool {
    let name = text.trim_start_matches([',', ';', '&', ' ', '"', '\'']);
    let part = |c: &char| c.is_ascii_alphanumeric() || "_-.".contains(*c);
    let length = name
        .chars()
        .take(MAX_NAME_BYTES + 1)
        .take_while(part)
        .count();
    // A name with a space, as in `User Id=`, occurs only in connection strings.
    let rest = match (&name[length..], text.starts_with(';')) {
        (rest, true) if rest.starts_with(' ') => {
            rest[1..].trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        }
        (rest, _) => rest.trim_start_matches(['"', '\'']),
    };
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_set = match rest.strip_prefix(':') {
        Some(value) => !value.starts_with("//") && !text.starts_with('&'),
        None => rest.starts_with('=') && !rest.starts_with("=="),
    };
    begins && length <= MAX_NAME_BYTES && is_set
}

/// Returns the position of a closing bracket that was not opened before.
pub(super) fn unclosed(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.last() == Some(&c) => {
                open.pop();
            }
            ')' | ']' | '}' => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the number of bytes up to the closing quote. Inside a string that is itself quoted,
/// quotes are written as `\"`; in some languages a quote in a value is doubled.
pub(super) fn quoted_bytes(text: &str, quote: char, escaped: bool) -> Option<usize> {
    let mut backslash = false;
    let mut doubled = false;
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut doubled) {
            continue;
        }
        if c == quote && backslash == escaped {
            if at > 0 && !escaped && text[at + 1..].starts_with(quote) {
                doubled = true;
                continue;
            }
            return Some(if escaped { at - 1 } else { at });
        }
        backslash = c == '\\' && !backslash;
    }
    None
}
