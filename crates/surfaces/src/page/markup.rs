//! Conversion of text to markup: the templates escape it by type, and whatever a page writes passes
//! [`shown`], so that no character on it is unseen.

use std::{borrow::Cow, fmt};

use gyrus_contract::RunId;
use gyrus_text::{unseen_when_reading, visible};

/// A place of the page that links point to. The number of a run is its order on the page; 0 is the
/// run that the page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageAnchor {
    Run(u32),
    Step { run: u32, step: u32 },
    Picture(u32),
}

impl fmt::Display for PageAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageAnchor::Run(run) => write!(f, "run{run}"),
            PageAnchor::Step { run: 0, step } => write!(f, "step{step}"),
            PageAnchor::Step { run, step } => write!(f, "run{run}-step{step}"),
            PageAnchor::Picture(number) => write!(f, "picture{number}"),
        }
    }
}

/// Returns the address at which a server shows the step that the entry `seq` belongs to.
pub fn step_address(run: RunId, seq: u64) -> String {
    format!("/runs/{run}/steps/{seq}")
}

/// Returns HTML in which every unseen character is replaced by its name. The name has no character
/// that means something in HTML, so this is right in texts and in attributes.
pub(super) fn shown(html: &str) -> Cow<'_, str> {
    let mut end = 0;
    let mut shown = String::new();
    for (at, c) in unseen_when_reading(html).filter(|(_, c)| *c != '\t') {
        shown.push_str(&html[end..at]);
        end = at + c.len_utf8();
        let name = visible(&html[at..end]);
        match name
            .strip_prefix('<')
            .and_then(|name| name.strip_suffix('>'))
        {
            Some(name) => shown.push_str(&format!("⟨{name}⟩")),
            None => shown.push_str(&name),
        }
    }
    if end == 0 {
        return Cow::Borrowed(html);
    }
    shown.push_str(&html[end..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn text_stays_text() {
        for (text, html) in [
            ("plain\tüber\n🦀", "plain\tüber\n🦀"),
            (
                "</script><img src=x onerror='a'>",
                "&lt;/script&gt;&lt;img src=x onerror='a'&gt;",
            ),
            ("a & \"b\" `c`", "a &amp; &quot;b&quot; `c`"),
            ("\0\x1b[31m", "␀␛[31m"),
            ("\u{202e}x", "⟨U+202E⟩x"),
            ("a\u{e0041}\u{3164}", "a⟨U+E0041⟩⟨U+3164⟩"),
        ] {
            let element = html! { b title=(text) { (text) } }.into_string();
            let expected = format!("<b title=\"{html}\">{html}</b>");
            assert_eq!(shown(&element), expected, "{text:?}");
        }
    }
}
