//! Patches among the texts of a run, and what each line of one does.

use gyrus_contract::BINARY;

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

/// Returns the lines of a patch, each with its colour: added, removed, a heading, or neither.
/// Contents that are not text are one line.
pub fn patch_lines(text: &str) -> impl Iterator<Item = (Tone, &str)> {
    let mut is_header = is_patch(text);
    let mut is_binary = false;
    let text = text.trim_matches('\n');
    text.split('\n').filter_map(move |line| {
        let begins = line.starts_with("diff ");
        is_header |= begins;
        is_header &= !line.starts_with("@@");
        // A remark about the next file is none of its contents.
        if is_binary && !begins && !line.starts_with('#') {
            return None;
        }
        is_binary = is_header && line == BINARY;
        let tone = match line.chars().next() {
            _ if is_binary => return Some((Tone::Aside, "the contents are not text")),
            Some('@' | '#' | '\\') => Tone::Aside,
            Some('d' | '-' | '+') if is_header => Tone::Strong,
            Some('+') => Tone::Call,
            Some('-') => Tone::Bad,
            _ => Tone::Plain,
        };
        Some((tone, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_are_no_text_are_one_line() {
        let patch = "diff --git a/x.pyc b/x.pyc\nnew file mode 100644\nindex 0..1\n\
                     GIT binary patch\nliteral 2\nJc$@<O00\n\nliteral 0\nHcmV?d00001\n\n\
                     diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-GIT\n+GIT binary patch\n+z\n";
        let lines: Vec<_> = patch_lines(patch).map(|(_, line)| line).collect();
        let shown = lines.join("\n");
        assert!(
            !shown.contains("literal") && shown.ends_with("+GIT binary patch\n+z"),
            "{shown}"
        );
        assert_eq!(lines[3], "the contents are not text");
    }
}
