//! Renders happenings as lines of a terminal.

use gyrus_text::{STYLE_MARKS, counted, one_line, visible, width, wrap, wrap_marked};
use serde_json::Value;

use super::{code_colours::CodeColours, markdown::Markdown, paint::Painter};
use crate::projection::{Happening, HappeningPart, HappeningSubject, TextForm, Tone, patch_lines};

/// Maximum number of shown lines of one event; the journal has the rest.
const SHOWN_LINES: usize = 10;

/// Maximum number of shown lines of a patch.
const SHOWN_DIFF_LINES: usize = 40;

/// Mark before the rest of a patch's broken line, so that it cannot look like a line of the patch.
pub(super) const CONTINUED: &str = "↪ ";

/// Names of arguments that are shown elsewhere as a patch, by tool. Of a text of several lines, or
/// of a list, only the size is shown.
const SHOWN_AS_PATCH: [(&str, &str); 5] = [
    ("edit", "old_text"),
    ("edit", "new_text"),
    ("write", "content"),
    ("propose_changeset", "changes"),
    ("apply_changeset", "changes"),
];

/// A text for a terminal with its colour and mark. Unseen characters are not made visible yet.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsoleLine {
    pub tone: Tone,
    /// One character that marks the kind of text.
    pub mark: char,
    /// The text, with line breaks.
    pub text: String,
    /// A patch to show below the text.
    pub patch: Option<String>,
}

impl From<&Happening> for ConsoleLine {
    fn from(happening: &Happening) -> Self {
        Self {
            tone: happening.tone,
            mark: happening.subject.mark(),
            text: text(happening),
            patch: happening.text(TextForm::Diff).map(str::to_owned),
        }
    }
}

impl ConsoleLine {
    /// Returns the line wrapped at words to the painter's columns, every further line indented, and
    /// bounded.
    pub fn rendered(&self, indent: &str, painter: &Painter) -> String {
        if self.mark == '•' && painter.has_colours() {
            let mut markdown = Markdown::default();
            let words = markdown.take(&self.text) + &markdown.end();
            let (shown, row) = painter.go_on(self.tone, indent, self.mark, "", &words);
            let end = if row.is_empty() { "" } else { "\x1b[0m\n" };
            return format!("{shown}{end}");
        }
        let columns = painter.columns.saturating_sub(width(indent) + 2);
        let all = self.text.trim_end_matches('\n').split('\n');
        let mut lines = all.flat_map(|line| {
            let wrapped = wrap(line, columns);
            if wrapped.is_empty() {
                vec![String::new()]
            } else {
                wrapped
            }
        });
        let mut text = String::new();
        // The words of a model are what a person reads; they stand whole, as where they are streamed.
        let most = if self.mark == '•' {
            usize::MAX
        } else {
            SHOWN_LINES
        };
        for (number, one) in lines.by_ref().take(most).enumerate() {
            let mark = if number == 0 { self.mark } else { ' ' };
            let painted = painter.paint(self.tone, &format!("{mark} {one}"));
            text.push_str(&format!("{indent}{}\n", painted.trim_end()));
        }
        let rest = lines.count();
        if rest > 0 {
            let more = format!("  … {}", counted(rest, "more line"));
            text.push_str(&format!("{indent}{}\n", painter.paint(Tone::Aside, &more)));
        }
        if let Some(patch) = &self.patch {
            let lines = painted_patch(patch, columns, painter);
            for line in lines.iter().take(SHOWN_DIFF_LINES) {
                text.push_str(&format!("{indent}  {line}\n"));
            }
            if let Some(more) = lines.len().checked_sub(SHOWN_DIFF_LINES + 1) {
                let more = format!("  … {}", counted(more + 1, "more line"));
                text.push_str(&format!("{indent}{}\n", painter.paint(Tone::Aside, &more)));
            }
        }
        text
    }
}

impl Painter {
    /// Returns the lines of a patch in the colours of what they do and of their languages.
    pub fn patch(&self, patch: &str) -> Vec<String> {
        painted_patch(patch, usize::MAX, self)
    }
}

/// Formats a patch as lines of at most `columns` columns, coloured by additions and removals, and by
/// the languages of the files.
pub(super) fn painted_patch(patch: &str, columns: usize, painter: &Painter) -> Vec<String> {
    let (mut colours, mut painted) = (None, Vec::new());
    for (tone, line) in patch_lines(patch) {
        // None of them may stand in the contents of a file.
        let shown = visible(line).replace(|c| STYLE_MARKS.contains(&c), "\u{fffd}");
        let header = line.strip_prefix("--- ").or(line.strip_prefix("+++ "));
        let file = header.filter(|file| tone == Tone::Strong && *file != "/dev/null");
        let words = match (&mut colours, tone) {
            (colours, Tone::Strong) => {
                *colours = file.map_or(colours.take(), CodeColours::of_file);
                shown
            }
            (Some(colours), Tone::Aside) => {
                colours.restart();
                shown
            }
            (Some(colours), Tone::Plain | Tone::Call) if painter.has_colours() => {
                let sign = shown.chars().next().map_or(0, char::len_utf8);
                format!("{}{}", &shown[..sign], colours.marked(&shown[sign..]))
            }
            _ => shown,
        };
        let (mut mark, mut open) = ("", Vec::new());
        for part in wrap_marked(&words, columns.saturating_sub(width(CONTINUED))) {
            painted.push(painter.paint_marked(tone, &format!("{mark}{part}"), &mut open));
            mark = CONTINUED;
        }
    }
    painted
}

/// Returns an event as one text: the headline, then its parts.
fn text(happening: &Happening) -> String {
    let mut text = happening.headline.clone();
    let mut remarks = Vec::new();
    for part in &happening.parts {
        match part {
            // A failure stands before what it says, as "refused: …".
            HappeningPart::Badge(Tone::Bad, word) if text.is_empty() => text.push_str(word),
            HappeningPart::Badge(_, remark) => remarks.push(remark.as_str()),
            HappeningPart::Text(TextForm::Aside, remark) => remarks.push(remark),
            HappeningPart::Text(
                TextForm::Prose | TextForm::Code | TextForm::Output | TextForm::Wrong,
                words,
            ) => {
                if !text.is_empty() {
                    text.push_str(": ");
                }
                text.push_str(words);
            }
            HappeningPart::Arguments(arguments) => {
                text.push(' ');
                // On one line, so that no argument looks like a line of ours.
                text.push_str(&one_line(&of_arguments(&happening.headline, arguments)));
            }
            HappeningPart::Text(TextForm::Diff, _) => {}
            HappeningPart::Card(_)
            | HappeningPart::Picture(_)
            | HappeningPart::Files(_)
            | HappeningPart::Run(_) => {}
        }
    }
    // What a tool says of itself and what a model thinks stands without remarks.
    let is_bare = matches!(
        happening.subject,
        HappeningSubject::Result { .. } | HappeningSubject::Thought | HappeningSubject::Person
    );
    if is_bare && text.is_empty() && happening.text(TextForm::Diff).is_some() {
        return "a patch:".to_owned();
    }
    if remarks.is_empty() || (is_bare && !text.is_empty()) {
        return text;
    }
    let remarks = remarks.join(", ");
    if text.is_empty() {
        remarks
    } else {
        format!("{text} ({remarks})")
    }
}

/// Returns arguments in a readable form, long ones last and unchanged.
fn of_arguments(tool: &str, arguments: &Value) -> String {
    let Some(object) = arguments.as_object() else {
        return arguments.to_string();
    };
    let mut parts: Vec<String> = object
        .iter()
        .map(|(name, value)| match value.as_str() {
            _ if SHOWN_AS_PATCH.contains(&(tool, name)) && is_long(value) => {
                format!("{name}=({})", size(value))
            }
            Some(text) if object.len() == 1 => text.trim_end().to_owned(),
            Some(text) => format!("{name}={}", text.trim_end()),
            None => format!("{name}={value}"),
        })
        .collect();
    parts.sort_by_key(String::len);
    parts.join(" ")
}

/// Whether a value is a list, or a text of several lines.
fn is_long(value: &Value) -> bool {
    let text = value.as_str().map(|text| text.trim_end().contains('\n'));
    text.unwrap_or_else(|| value.is_array())
}

fn size(value: &Value) -> String {
    match value.as_array() {
        Some(files) => counted(files.len(), "file"),
        None => counted(value.as_str().unwrap_or_default().lines().count(), "line"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_bounded_and_visible() {
        let line = |tone, text: &str| ConsoleLine {
            tone,
            mark: '←',
            text: text.to_owned(),
            patch: None,
        };
        let painter = Painter::plain(20);
        for (tone, text, shown) in [
            (Tone::Observation, "a\nb\n", "← a\n  b\n"),
            (Tone::Call, "shell ls\nrm", "← shell ls\n  rm\n"),
            (
                Tone::Thought,
                "one two three four five",
                "← one two three four\n  five\n",
            ),
            (Tone::Observation, "\x1b[31mred", "← ␛[31mred\n"),
            (Tone::Observation, "a\n\nb", "← a\n\n  b\n"),
        ] {
            assert_eq!(line(tone, text).rendered("", &painter), shown);
        }
        let many = line(Tone::Observation, &"x\n".repeat(30)).rendered("", &painter);
        assert!(many.ends_with("… 20 more lines\n"), "{many}");
    }
}
