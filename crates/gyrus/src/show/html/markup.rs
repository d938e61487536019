//! HTML that cannot be forgotten to be escaped: text becomes [`Markup`] only through this file,
//! which escapes it and makes visible what hides in it. Names of elements, attributes and classes
//! are words of our own (`&'static str`), addresses are anchors of this page or pictures, and
//! there is no way to write any other kind of link, style or handler.

use std::fmt::{self, Write as _};

use gyrus_text::{unseen_when_reading, visible};

use super::picture::Picture;

/// A piece of a page, ready to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Markup(String);

impl Markup {
    /// Words of our own that are HTML already.
    pub(super) fn ours(html: &'static str) -> Self {
        Self(html.to_owned())
    }

    /// Anybody's text, as text.
    pub(super) fn text(text: &str) -> Self {
        let mut html = String::with_capacity(text.len() + text.len() / 8);
        push_text(&mut html, text);
        Self(html)
    }

    /// Puts something behind it.
    pub(super) fn push(&mut self, next: impl Into<Markup>) {
        self.0.push_str(&next.into().0);
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is sent.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromIterator<Markup> for Markup {
    fn from_iter<I: IntoIterator<Item = Markup>>(pieces: I) -> Self {
        let mut whole = Markup::default();
        for piece in pieces {
            whole.push(piece);
        }
        whole
    }
}

/// A place of the page that something points to. The number of a run is its order on the page; 0
/// is the run that the page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// A run.
    Run(u32),
    /// A step of a run.
    Step {
        /// The run.
        run: u32,
        /// The step.
        step: u32,
    },
    /// A picture, by its order on the page.
    Picture(u32),
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anchor::Run(run) => write!(f, "run{run}"),
            Anchor::Step { run: 0, step } => write!(f, "step{step}"),
            Anchor::Step { run, step } => write!(f, "run{run}-step{step}"),
            Anchor::Picture(number) => write!(f, "picture{number}"),
        }
    }
}

/// An element in the making.
#[derive(Debug, Clone)]
pub(super) struct Element {
    name: &'static str,
    classes: Vec<&'static str>,
    attributes: String,
    inside: String,
}

impl Element {
    /// An empty one.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            classes: Vec::new(),
            attributes: String::new(),
            inside: String::new(),
        }
    }

    /// With a class; called again, with several.
    pub(super) fn class(mut self, class: &'static str) -> Self {
        self.classes.push(class);
        self
    }

    /// With an attribute of our own words; an empty value is written as none.
    pub(super) fn set(mut self, name: &'static str, value: &'static str) -> Self {
        if value.is_empty() {
            self.attributes.push_str(&format!(" {name}"));
            return self;
        }
        self.attribute(name, value)
    }

    /// With an attribute that is a number, to a hundredth.
    pub(super) fn number(self, name: &'static str, value: f64) -> Self {
        let rounded = (value * 100.0).round() / 100.0;
        self.attribute(name, &rounded.to_string())
    }

    /// With words that show when one points at it.
    pub(super) fn hint(self, words: &str) -> Self {
        let shown = visible(words).into_owned();
        self.attribute("title", &shown)
    }

    /// As the place that `anchor` means.
    pub(super) fn id(self, anchor: Anchor) -> Self {
        self.attribute("id", &anchor.to_string())
    }

    /// As a link to that place.
    pub(super) fn link(self, anchor: Anchor) -> Self {
        self.attribute("href", &format!("#{anchor}"))
    }

    /// As a link to the film of an attempt, beside the page.
    pub(super) fn film(self, number: u32) -> Self {
        self.attribute("href", &gyrus_lab::eval::film_name(number))
    }

    /// With this picture as what an `img` shows.
    pub(super) fn source(self, picture: &Picture) -> Self {
        self.attribute("src", &picture.data_uri())
    }

    /// With the moment that a `time` means.
    pub(super) fn moment(self, at_ms: i64) -> Self {
        self.attribute("datetime", &gyrus_text::utc(at_ms))
    }

    /// With a policy of what the page may load, from hashes of our own words.
    pub(super) fn policy(self, script: &str, style: &str) -> Self {
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
             img-src data:; base-uri 'none'; form-action 'none'"
        );
        self.set("http-equiv", "Content-Security-Policy")
            .attribute("content", &policy)
    }

    fn attribute(mut self, name: &'static str, value: &str) -> Self {
        let _ = write!(self.attributes, " {name}=\"");
        push_escaped(&mut self.attributes, value);
        self.attributes.push('"');
        self
    }

    /// With anybody's text at its end.
    pub(super) fn text(mut self, text: &str) -> Self {
        push_text(&mut self.inside, text);
        self
    }

    /// With a piece of the page at its end.
    pub(super) fn with(mut self, inside: impl Into<Markup>) -> Self {
        self.inside.push_str(&inside.into().0);
        self
    }

    /// Its start and what is in it so far; [`Element::end`] belongs behind what else comes.
    pub(super) fn begin(self) -> Markup {
        Markup(self.open())
    }

    /// The end of an element that was begun.
    pub(super) fn end(name: &'static str) -> Markup {
        Markup(format!("</{name}>"))
    }

    fn open(self) -> String {
        let classes = if self.classes.is_empty() {
            String::new()
        } else {
            format!(" class=\"{}\"", self.classes.join(" "))
        };
        format!("<{}{classes}{}>{}", self.name, self.attributes, self.inside)
    }
}

impl From<Element> for Markup {
    fn from(element: Element) -> Self {
        let name = element.name;
        let is_void = matches!(name, "meta" | "link" | "img" | "input" | "br");
        let mut html = element.open();
        if !is_void {
            let _ = write!(html, "</{name}>");
        }
        Markup(html)
    }
}

/// Text as it stands in the file: escaped, and with a box for everything that would not be seen.
fn push_text(html: &mut String, text: &str) {
    let mut end = 0;
    for (at, c) in unseen_when_reading(text).filter(|(_, c)| *c != '\t') {
        push_escaped(html, &text[end..at]);
        end = at + c.len_utf8();
        push_box(html, &visible(&text[at..end]));
    }
    push_escaped(html, &text[end..]);
}

/// A character that shows nothing, as a box with its name.
fn push_box(html: &mut String, name: &str) {
    html.push_str("<span class=\"unseen\">");
    push_escaped(html, name.trim_matches(['<', '>']));
    html.push_str("</span>");
}

fn push_escaped(html: &mut String, text: &str) {
    let mut end = 0;
    // Nearly all characters are left as they are, and copied by the run.
    for (at, special) in text.match_indices(['&', '<', '>', '"', '\'', '`']) {
        html.push_str(&text[end..at]);
        end = at + special.len();
        html.push_str(match special {
            "&" => "&amp;",
            "<" => "&lt;",
            ">" => "&gt;",
            "\"" => "&quot;",
            "'" => "&#39;",
            _ => "&#96;",
        });
    }
    html.push_str(&text[end..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        for (text, html) in [
            ("plain\tüber\n🦀", "plain\tüber\n🦀"),
            (
                "</script><img src=x onerror='a'>",
                "&lt;/script&gt;&lt;img src=x onerror=&#39;a&#39;&gt;",
            ),
            ("a & \"b\" `c`", "a &amp; &quot;b&quot; &#96;c&#96;"),
            (
                "\0\x1b[31m",
                "<span class=\"unseen\">␀</span><span class=\"unseen\">␛</span>[31m",
            ),
            ("\u{202e}x", "<span class=\"unseen\">U+202E</span>x"),
            (
                "a\u{e0041}\u{e0101}\u{3164}",
                "a<span class=\"unseen\">U+E0041</span><span class=\"unseen\">U+E0101</span><span class=\"unseen\">U+3164</span>",
            ),
        ] {
            assert_eq!(Markup::text(text).as_str(), html, "{text:?}");
        }
    }

    #[test]
    fn attributes_stay_attributes() {
        let element = Element::new("span")
            .class("one")
            .class("two")
            .hint("\"><script>\u{202e}")
            .number("width", 1.0 / 3.0)
            .set("open", "")
            .link(Anchor::Step { run: 1, step: 2 })
            .text("<");
        assert_eq!(
            Markup::from(element).as_str(),
            "<span class=\"one two\" title=\"&quot;&gt;&lt;script&gt;&lt;U+202E&gt;\" \
             width=\"0.33\" open href=\"#run1-step2\">&lt;</span>"
        );
        assert_eq!(Markup::from(Element::new("br")).as_str(), "<br>");
    }
}
