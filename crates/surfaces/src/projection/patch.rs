//! Patches among the texts of a run, and what each line of one does.

use super::Tone;

/// Whether a text is a patch: a file's header, with nothing but remarks above it.
pub fn is_patch(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some(first) if first.starts_with("--- ") => {
            lines.next().is_some_and(|next| next.starts_with("+++ "))
        }
        Some(first) => first.starts_with("diff --git "),
        None => false,
    }
}

/// Returns the lines of a patch with the colour of what they do: added, removed, a heading, or
/// neither.
pub fn patch_lines(text: &str) -> impl Iterator<Item = (Tone, &str)> {
    let mut is_header = is_patch(text);
    let text = text.trim_matches('\n');
    text.split('\n').map(move |line| {
        is_header |= line.starts_with("diff ");
        is_header &= !line.starts_with("@@");
        let tone = match line.chars().next() {
            Some('@' | '#' | '\\') => Tone::Aside,
            Some('d' | '-' | '+') if is_header => Tone::Strong,
            Some('+') => Tone::Call,
            Some('-') => Tone::Bad,
            _ => Tone::Plain,
        };
        (tone, line)
    })
}
