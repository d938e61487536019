//! Texts of a run on the page: cut to a bound, and folded when they are long.

use gyrus_text::{counted, first_bytes, first_chars, grouped, head_and_tail, shorten};

use maud::{Markup, html};

use super::ansi::Ansi;
use crate::projection::{Tone, patch_lines};

/// Size of a text's start and end in bytes that are kept; what is between stays in the journal.
const HEAD: usize = 12 << 10;
const TAIL: usize = 4 << 10;

/// Lines and bytes of a long text that show while it is folded.
const SHOWN_LINES: usize = 14;
const SHOWN_BYTES: usize = 1_500;

/// Characters of a name or a phrase, and how many of them a list has.
const BRIEF: usize = 300;
const LISTED: usize = 40;

/// A rest shorter than this is not worth a fold.
const SMALL_REST: usize = 300;

/// A text, cut to the size that a page shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    head: String,
    /// Number of bytes left out between the start and the end, with the end.
    cut: Option<(usize, String)>,
}

/// Kind of a text, which decides how its bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExcerptKind {
    Prose,
    /// Monospaced text with its line breaks.
    Code,
    /// Monospaced text of a program, with the colours of a terminal.
    Output,
    /// A patch, with a colour for each kind of line.
    Diff,
}

pub(super) fn of_patch(tone: Tone) -> &'static str {
    match tone {
        Tone::Call => "added",
        Tone::Bad => "removed",
        Tone::Strong => "file",
        Tone::Thought | Tone::Observation | Tone::Ask | Tone::Aside | Tone::Plain => "kept",
    }
}

impl Excerpt {
    /// Cuts `text` to the size that a page shows.
    pub(super) fn of(text: &str) -> Self {
        Self::within(text, (HEAD, TAIL))
    }

    /// Returns the first `head` and the last `tail` bytes of `text`.
    pub(super) fn within(text: &str, (head, tail): (usize, usize)) -> Self {
        let text = text.trim_end_matches('\n');
        match head_and_tail(text, head, tail) {
            None => Self {
                head: text.to_owned(),
                cut: None,
            },
            Some((head, omitted, tail)) => Self {
                head: head.to_owned(),
                cut: Some((omitted, tail.to_owned())),
            },
        }
    }

    pub(super) fn is_line(&self) -> bool {
        self.cut.is_none() && self.head.len() <= 120 && !self.head.contains('\n')
    }

    pub(super) fn gist(&self, characters: usize) -> String {
        let line = self.head.trim_start().lines().next().unwrap_or_default();
        let mut gist = first_chars(line, characters).to_owned();
        if gist.len() < self.head.trim().len() {
            gist.push('…');
        }
        gist
    }

    /// Returns the text for reading. `rest` says where the whole text is.
    pub(super) fn render(&self, kind: ExcerptKind, rest: &str) -> Markup {
        let mut ansi = Ansi::default();
        let mut block = |text: &str| match kind {
            ExcerptKind::Prose => html! { div.prose { (text) } },
            // A newline at the start of a `pre` does not count; one of the text must.
            ExcerptKind::Code => html! { pre { "\n" (text) } },
            ExcerptKind::Output => html! { pre { "\n" (ansi.render(text)) } },
            ExcerptKind::Diff => html! {
                pre {
                    "\n"
                    @for (tone, line) in patch_lines(text) {
                        span class=(of_patch(tone)) { (line) "\n" }
                    }
                }
            },
        };
        let shown_end = first_part(&self.head).unwrap_or(self.head.len());
        let (shown, folded) = self.head.split_at(shown_end);
        let whole = block(shown);
        if folded.is_empty() && self.cut.is_none() {
            return whole;
        }
        let folded = folded.trim_start_matches('\n');
        let label = match (&self.cut, folded.lines().count()) {
            (Some(_), _) => "more of it".to_owned(),
            (None, 0 | 1) => "the rest of it".to_owned(),
            (None, lines) => counted(lines, "more line"),
        };
        html! {
            (whole)
            details.more {
                summary { (label) }
                (block(folded))
                @if let Some((omitted, tail)) = &self.cut {
                    p.cut { "… " (counted(*omitted, "more byte")) " left out here; " (rest) " …" }
                    (block(tail))
                }
            }
        }
    }
}

/// Returns the end of the part that is shown while the text is folded; `None` if it is short enough
/// to be shown completely.
fn first_part(text: &str) -> Option<usize> {
    let by_lines = text
        .match_indices('\n')
        .nth(SHOWN_LINES - 1)
        .map(|(at, _)| at);
    let by_bytes = (text.len() > SHOWN_BYTES).then(|| {
        let start = first_bytes(text, SHOWN_BYTES);
        let space = start.rfind(['\n', ' ']).filter(|at| *at > SHOWN_BYTES / 2);
        space.unwrap_or(start.len())
    });
    let end = by_lines.into_iter().chain(by_bytes).min()?;
    let rest = &text[end..];
    (rest.len() > SMALL_REST || rest.matches('\n').count() > 4).then_some(end)
}

/// Cuts a name or a phrase to a line or two.
pub(super) fn brief(text: &str) -> String {
    shorten(text, BRIEF).into_owned()
}

/// Returns the first of many names or phrases, each cut, and the number of the others.
pub(super) fn briefs<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut texts = texts.into_iter();
    let mut briefs: Vec<String> = texts.by_ref().take(LISTED).map(brief).collect();
    let others = texts.count();
    if others > 0 {
        briefs.push(format!("and {} more", grouped(others)));
    }
    briefs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_folded() {
        let short = Excerpt::of("one\ntwo\n").render(ExcerptKind::Code, "");
        assert_eq!(short.0, "<pre>\none\ntwo</pre>");

        let folded = Excerpt::of(&"line\n".repeat(100)).render(ExcerptKind::Code, "");
        assert!(folded.0.contains("<summary>86 more lines</summary>"));

        let long = format!("a{}z", "é".repeat(500_000));
        let cut = Excerpt::of(&long).render(ExcerptKind::Output, "it is elsewhere");
        assert!(
            cut.0
                .contains("983,620 more bytes left out here; it is elsewhere")
        );
        assert!(cut.0.contains("éz</pre>"));
        assert!(cut.0.len() < 20_000);
    }

    #[test]
    fn a_gist_is_one_line() {
        assert_eq!(Excerpt::of(" one two\nthree").gist(80), "one two…");
        assert_eq!(Excerpt::of("one two").gist(80), "one two");
        assert_eq!(Excerpt::of("one two").gist(3), "one…");
    }

    #[test]
    fn lists_are_bounded() {
        assert_eq!(brief(&"é".repeat(301)), format!("{}…", "é".repeat(300)));
        let many = briefs(std::iter::repeat_n("one", 1_040));
        assert_eq!((many.len(), many[40].as_str()), (41, "and 1,000 more"));
        assert_eq!(briefs(["one", "two"]), ["one", "two"]);
    }
}
