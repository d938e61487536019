//! Parts of a note: title, headings, tags, links, and pieces with where each came from.
//!
//! A piece is the text below one heading, cut where untrusted text begins or ends. What a run wrote
//! after it had read untrusted text stands in a block that begins with `> [!untrusted]`; a whole
//! note is untrusted if its front matter says `trust: untrusted`.

use gyrus_search::{IndexDocument, IndexField, name_of};

use crate::front_matter::FrontMatter;

/// Kind of block with text that a run wrote before it read anything untrusted.
pub(crate) const REMEMBERED: &str = "[!remembered]";
/// Kind of block with text that a run wrote after it had read untrusted text.
pub(crate) const UNTRUSTED: &str = "[!untrusted]";

/// Settings by which programs that clip pages name the page.
const CLIPPED: [&str; 3] = ["source", "url", "link"];

/// A parsed note.
#[derive(Debug, Clone)]
pub struct Note {
    /// Path below the vault.
    pub path: String,
    /// The settings at the note's start.
    pub front_matter: FrontMatter,
    text: String,
    /// Place at which the text after the front matter begins.
    body: usize,
}

/// Part of a note with one heading and one degree of trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotePiece<'a> {
    /// The heading above the piece; empty before the first one.
    pub heading: &'a str,
    /// Number of the piece's first line in the note, counted from 1.
    pub line: usize,
    pub text: &'a str,
    /// Whether a run wrote the piece after it had read untrusted text.
    pub is_untrusted: bool,
    /// The run that wrote the piece, according to its block; empty for a person.
    pub source: &'a str,
}

impl Note {
    /// Parses a note. Bytes that are not UTF-8 are shown as replacement characters.
    pub fn new(path: &str, content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content).into_owned();
        let (front_matter, rest) = FrontMatter::split(&text);
        let body = text.len() - rest.len();
        Self {
            path: path.to_owned(),
            front_matter: front_matter.unwrap_or_default(),
            body,
            text,
        }
    }

    /// Returns the name of the note's file, without its ending.
    pub fn name(&self) -> &str {
        name_of(&self.path)
    }

    /// Returns the whole text, front matter included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text after the front matter.
    pub fn body(&self) -> &str {
        &self.text[self.body..]
    }

    /// Whether the whole note is untrusted, because it says so or is the copy of a page. A note
    /// whose front matter cannot be read completely counts as untrusted if any of this could stand
    /// there.
    pub fn is_untrusted(&self) -> bool {
        let settings = &self.text[..self.body];
        let is_address = |value: &String| value.starts_with("http:") || value.starts_with("https:");
        let mut sources = CLIPPED.iter().flat_map(|key| self.front_matter.all(key));
        if sources.any(is_address) {
            return true;
        }
        match self.front_matter.first("trust") {
            Some(trust) => !trust.eq_ignore_ascii_case("person"),
            None => {
                let could = ["untrusted", "://"]
                    .iter()
                    .any(|word| settings.contains(word));
                self.front_matter.is_refused && could
            }
        }
    }

    /// Whether any part of the note is untrusted.
    pub fn has_untrusted(&self) -> bool {
        self.is_untrusted() || self.pieces().iter().any(|piece| piece.is_untrusted)
    }

    /// Returns the note's tags: those of the front matter and those in the text, without `#`.
    pub fn tags(&self) -> Vec<&str> {
        let mut tags: Vec<&str> = Vec::new();
        for tag in self.front_matter.all("tags") {
            tags.push(tag.trim_start_matches('#'));
        }
        for word in self.body().split_whitespace() {
            if let Some(tag) = word.strip_prefix('#') {
                let end = tag
                    .find(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '/')))
                    .unwrap_or(tag.len());
                let is_number = tag[..end].bytes().all(|byte| byte.is_ascii_digit());
                if end > 0 && !is_number {
                    tags.push(&tag[..end]);
                }
            }
        }
        tags
    }

    /// Returns the names of the notes that this note links to, as `[[name]]` gives them.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        let body = self.body();
        body.match_indices("[[").filter_map(move |(at, _)| {
            let link = &body[at + 2..];
            let end = link.find("]]").filter(|end| !link[..*end].contains('\n'))?;
            let name = link[..end].split(['|', '#', '^']).next()?.trim();
            (!name.is_empty() && name.len() <= 255).then(|| name_of(name))
        })
    }

    pub(crate) fn document(&self) -> IndexDocument {
        let mut document = IndexDocument::default();
        document.add(IndexField::Title, self.name());
        for title in ["title", "aliases"] {
            for title in self.front_matter.all(title) {
                document.add(IndexField::Title, title);
            }
        }
        for tag in self.tags() {
            document.add(IndexField::Tag, tag);
        }
        for line in self.body().lines() {
            let is_heading = heading_of(line).is_some();
            document.add(
                if is_heading {
                    IndexField::Heading
                } else {
                    IndexField::Body
                },
                line,
            );
        }
        for link in self.links() {
            document.link(link);
        }
        document
    }

    /// Returns the note's pieces, in order.
    pub fn pieces(&self) -> Vec<NotePiece<'_>> {
        let mut pieces: Vec<NotePiece<'_>> = Vec::new();
        let before = self.text[..self.body].matches('\n').count();
        let (mut at, mut fenced) = (0, false);
        let mut here = NotePlace::default();
        let mut begun = (0, before + 1, here);
        let body = self.body();
        for (number, line) in (before + 1..).zip(body.split_inclusive('\n')) {
            let trimmed = line.trim_end();
            here = here.quoting(trimmed);
            fenced ^= trimmed.starts_with("```") || trimmed.starts_with("~~~");
            let heading = heading_of(trimmed).filter(|_| !fenced);
            here.heading = heading.unwrap_or(here.heading);
            let same = (here.heading, here.block) == (begun.2.heading, begun.2.block);
            if heading.is_some() || !same {
                pieces.extend(self.piece(begun, at));
                begun = (at, number, here);
            }
            at += line.len();
        }
        pieces.extend(self.piece(begun, at));
        pieces
    }

    /// Returns the piece of the body from a position to `to`, unless it is blank.
    fn piece<'a>(
        &'a self,
        (from, line, place): (usize, usize, NotePlace<'a>),
        to: usize,
    ) -> Option<NotePiece<'a>> {
        let text = &self.body()[from..to];
        let (source, is_untrusted) = place.block.unwrap_or_default();
        (!text.trim().is_empty()).then(|| NotePiece {
            heading: place.heading,
            line,
            text,
            is_untrusted: is_untrusted || self.is_untrusted(),
            source,
        })
    }
}

/// Place in a note: the heading above, and what the block says about where it came from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct NotePlace<'a> {
    heading: &'a str,
    /// Whether the line is part of a block of quoted lines.
    is_quoted: bool,
    block: Option<(&'a str, bool)>,
}

impl<'a> NotePlace<'a> {
    /// Returns the place of the next line. Only the first line of a block can say that it is
    /// trusted: what a run wrote could say so in a later one.
    fn quoting(self, line: &'a str) -> Self {
        let quoted = line.strip_prefix('>').map(str::trim_start);
        let kind = quoted.and_then(kind_of_block);
        let block = match kind {
            Some((_, is_untrusted)) if is_untrusted || !self.is_quoted => kind,
            Some(_) | None if quoted.is_some() && self.is_quoted => self.block,
            Some(_) | None => None,
        };
        Self {
            heading: self.heading,
            is_quoted: quoted.is_some(),
            block,
        }
    }
}

/// Returns the origin in the first line of a block, and whether the block is untrusted.
fn kind_of_block(line: &str) -> Option<(&str, bool)> {
    let is_kind = |kind: &str| {
        let start = line.get(..kind.len())?;
        start
            .eq_ignore_ascii_case(kind)
            .then(|| line[kind.len()..].trim())
    };
    match is_kind(UNTRUSTED) {
        Some(source) => Some((source, true)),
        None => is_kind(REMEMBERED).map(|source| (source, false)),
    }
}

fn heading_of(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    ((1..=6).contains(&level) && words.starts_with(' ')).then(|| words.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(String, usize, bool, String)> {
        let note = Note::new("a.md", text.as_bytes());
        let pieces = note.pieces();
        let told = pieces.iter().map(|piece| {
            let text = piece.text.trim().replace('\n', "/");
            (
                piece.heading.to_owned(),
                piece.line,
                piece.is_untrusted,
                text,
            )
        });
        told.collect()
    }

    #[test]
    fn pieces_end_at_headings_and_at_untrusted_text() {
        let text = "start\n# One\na\n> [!untrusted] run 1\n> b\n> # c\n\nd\n## Two\n> [!Untrusted]\n> e\n> [!remembered] me\n\n> [!remembered] run 2\n> f";
        let told = |heading: &str, line, untrusted, text: &str| {
            (heading.to_owned(), line, untrusted, text.to_owned())
        };
        assert_eq!(
            pieces(text),
            [
                told("", 1, false, "start"),
                told("One", 2, false, "# One/a"),
                told("One", 4, true, "> [!untrusted] run 1/> b/> # c"),
                told("One", 7, false, "d"),
                told("Two", 9, false, "## Two"),
                told("Two", 10, true, "> [!Untrusted]/> e/> [!remembered] me"),
                told("Two", 14, false, "> [!remembered] run 2/> f"),
            ]
        );
    }

    #[test]
    fn a_whole_note_may_be_untrusted() {
        for (text, expected) in [
            ("---\ntrust: untrusted\n---\nx", true),
            ("---\ntrust: Untrusted \n---\nx", true),
            ("---\ntrust: whatever\n---\nx", true),
            ("---\ntrust: person\n---\nx", false),
            ("---\n trust: untrusted\n---\nx", true),
            ("---\ntitle: x\n---\ntrust: untrusted", false),
            ("trust: untrusted", false),
            ("---\nsource: https://x.example/a\n---\nx", true),
            (
                "---\nurl: \"http://x.example\"\ntrust: person\n---\nx",
                true,
            ),
            ("---\nsource: a book\n---\nx", false),
        ] {
            let note = Note::new("a.md", text.as_bytes());
            assert_eq!(note.is_untrusted(), expected, "{text}");
        }
        assert_eq!(
            pieces("---\ntrust: untrusted\n---\nx"),
            [(String::new(), 4, true, "x".to_owned())]
        );
    }

    #[test]
    fn tags_and_links() {
        let note = Note::new(
            "People/Eve.md",
            b"---\ntags: [a, '#b']\n---\n#c/d, #12 [[Bob|him]] [[x/Carl#top]] [[\n]] [[]]",
        );
        assert_eq!(note.name(), "Eve");
        assert_eq!(note.tags(), ["a", "b", "c/d"]);
        assert_eq!(note.links().collect::<Vec<_>>(), ["Bob", "Carl"]);
    }

    #[test]
    fn any_bytes_are_a_note() {
        let long = vec![b'x'; 10 << 20];
        for content in [&b"\xff\0\xfe# a"[..], b"", b"---", b"---\n---", &long] {
            let note = Note::new("a.md", content);
            assert!(note.pieces().len() <= 1);
            note.tags();
        }
    }
}
