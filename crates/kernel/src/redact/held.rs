//! Texts whose lines arrive one by one: the part that must wait for the lines that follow.

use super::{ends::block_header, pairs::Pairs};

/// Maximum number of bytes that are held back, which is more than any pass reads at once. Key
/// blocks are held back to their end.
const MAX_BYTES: usize = 4096;

/// Returns the start of an unfinished part that later lines may belong to: a key block, a tag or a
/// triple quote that is not closed, a block after a name, a name whose value is on the next line.
/// Only whole lines count: the line that closes it must be complete too.
pub(super) fn from(text: &str, pairs: &Pairs) -> Option<usize> {
    let text = &text[..line_start(text, text.len())];
    let not_closed = |begin: &str, end: &str| {
        let at = text.rfind(begin)?;
        (!text[at..].contains(end)).then_some(line_start(text, at))
    };
    let key = not_closed("-----BEGIN", "-----END");
    let quotes = ["\"\"\"", "'''"].into_iter().filter_map(|quotes| {
        let is_open = text.matches(quotes).count() % 2 == 1;
        let at = text.rfind(quotes).filter(|_| is_open)?;
        Some(line_start(text, at))
    });
    quotes
        .chain(not_closed("Private-Lines:", "Private-MAC:"))
        .chain(tag(text))
        .chain(block(text))
        .chain(pair(text, pairs))
        .filter(|at| text.len() - at <= MAX_BYTES)
        .chain(key)
        .min()
}

/// Returns the start of a tag that is not closed.
fn tag(text: &str) -> Option<usize> {
    let at = text.rfind('<')?;
    let rest = &text[at + 1..];
    let is_tag = rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_tag && !rest.contains('>')).then(|| line_start(text, at))
}

/// Returns the start of a YAML block at the end of the text, to which the next line may belong.
fn block(text: &str) -> Option<usize> {
    let mut end = text.len();
    let mut least = usize::MAX;
    while text.len() - end <= MAX_BYTES {
        let whole = text[..end].trim_end_matches('\n');
        let start = line_start(text, whole.len());
        let line = &whole[start..];
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        if block_header(line) && indent < least {
            return Some(start);
        }
        if !line.trim().is_empty() {
            least = least.min(indent);
        }
        if least == 0 || start == 0 {
            return None;
        }
        end = start;
    }
    None
}

/// Returns the start of the last whole line if it is like `name: DB_PASSWORD`.
fn pair(text: &str, pairs: &Pairs) -> Option<usize> {
    let lines = text.trim_end_matches(['\n', '\r']);
    let start = line_start(lines, lines.len());
    pairs.awaits_value(&lines[start..]).then_some(start)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |at| at + 1)
}
