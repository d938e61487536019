//! Commands as they are meant, where a model could not write them in JSON.
//!
//! JSON has no `\;`, and its `\b` is a backspace. A model that writes a command inside a text of JSON
//! uses them all the same: held to a schema it ends `-exec` with a lone backslash, a dash or a quote.

use std::borrow::Cow;

/// Returns the repaired command with a description of the repair, or `None` if it needs none.
pub(super) fn mended(command: &str) -> Option<(String, &'static str)> {
    let unescaped = with_escapes(command);
    match closed(&unescaped) {
        Some(closed) => Some((closed, "`-exec` was ended by `\\;`")),
        None => match unescaped {
            Cow::Owned(text) => Some((text, "`\\b` and `\\f` were read as they were written")),
            Cow::Borrowed(_) => None,
        },
    }
}

/// Replaces backspaces and form feeds, which are misread `\b` and `\f` of a regular expression.
fn with_escapes(command: &str) -> Cow<'_, str> {
    if command.contains(['\u{8}', '\u{c}']) {
        let text = command.replace('\u{8}', "\\b").replace('\u{c}', "\\f");
        Cow::Owned(text)
    } else {
        Cow::Borrowed(command)
    }
}

/// Adds a missing end to the last `-exec` of a command. It must be an argument of `find`, outside
/// of quotation marks.
fn closed(command: &str) -> Option<String> {
    let (before, after) = command.rsplit_once(" -exec")?;
    let ends = ["\\;", "';'", "\";\"", "+"];
    let is_quoted = |text: &str, mark: char| text.matches(mark).count() % 2 == 1;
    let first = before.rsplit(['|', '&', ';', '\n']).next()?;
    if !first.trim_start().starts_with("find ")
        || ['"', '\''].iter().any(|mark| is_quoted(before, *mark))
        || ends.iter().any(|end| after.contains(end))
    {
        return None;
    }
    let is_end =
        |c: char| matches!(c, ' ' | '\\' | '–' | '—' | ';') || c == '"' && is_quoted(command, '"');
    let kept = command.trim_end_matches(is_end);
    let is_tried = command[kept.len()..].contains(['\\', '–', '—', ';']);
    let is_all = kept.ends_with("{}");
    (is_all || is_tried && kept.contains("{}")).then(|| format!("{kept} \\;"))
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[test]
    fn commands_are_read_as_they_are_meant() {
        let check = |command: &str, expected: Option<&str>| {
            let mended = mended(command).map(|(command, _)| command);
            assert_eq!(mended.as_deref(), expected, "{command}");
        };
        let find = "find . -name '*.tmp' -exec rm {}";
        for end in ["", " \\", " –", " \";", " ;"] {
            let meant = format!("{find} \\;");
            check(&format!("{find}{end}"), Some(&meant));
        }
        for end in [" \\;", " +", " ';'", " | sort"] {
            check(&format!("{find}{end}"), None);
        }
        check("grep -E '\u{8}a\u{8}' x", Some("grep -E '\\ba\\b' x"));
        check("cargo test \\", None);
        for command in [
            "echo -exec ;",
            "echo \"find . -exec {}\"",
            "bash -c \"find . -exec rm {}\"",
            "git rebase --exec \"make {}\"",
            "echo 'find . -exec rm {} \\",
            "ls | xargs -I{} echo -exec {}",
        ] {
            check(command, None);
        }
    }
}
