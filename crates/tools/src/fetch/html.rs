//! Converts HTML to text for a model, with its links.
//!
//! It works token by token, without a tree: in linear time, at any nesting depth. Scripts, styles
//! and drawings are left out; nothing is run, nothing else is loaded.

use gyrus_text::first_bytes;
use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};
use reqwest::Url;

use crate::background::Deadline;

/// Elements whose content is omitted. All have an end tag.
const SILENT: [&[u8]; 9] = [
    b"script",
    b"style",
    b"noscript",
    b"template",
    b"svg",
    b"iframe",
    b"noembed",
    b"noframe",
    b"canvas",
];

/// Maximum depth of nested lists that are indented.
const MAX_LIST_DEPTH: usize = 8;

/// Maximum bytes of a link. A longer one is left out: it is data, not an address to follow.
const MAX_LINK_BYTES: usize = 2_000;

/// Returns the page's text, cut soon after `limit` bytes or when the time is up; `base` is the
/// page's address.
pub(super) fn text(html: &str, base: &Url, limit: usize, deadline: &Deadline) -> RenderedText {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = PageText::new(base.clone());
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => page.start(&tag),
            Token::EndTag(tag) => page.end(&tag.name),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.out.len() > limit || deadline.is_over() {
            page.close_link();
            return page.rendered(true);
        }
    }
    page.close_link();
    page.rendered(false)
}

pub(super) struct RenderedText {
    /// The text; begins with the title, if there is one.
    pub(super) text: String,
    pub(super) is_cut: bool,
}

struct PageText {
    base: Url,
    title: String,
    in_title: bool,
    out: String,
    /// Number of line breaks due before the next word.
    breaks: usize,
    space: bool,
    /// The open element whose content is not shown, and the number of open elements with its name.
    silent: Option<(Vec<u8>, usize)>,
    preformatted: usize,
    /// For each open list, the number of its last item, or `None` without numbers.
    lists: Vec<Option<u64>>,
    link: Option<Link>,
    /// Whether the position is within a row of a table, after the first cell.
    after_cell: bool,
}

struct Link {
    target: String,
    /// Offset at which the link's text begins, once there is any.
    start: Option<usize>,
}

impl PageText {
    fn new(base: Url) -> Self {
        Self {
            base,
            title: String::new(),
            in_title: false,
            out: String::new(),
            breaks: 0,
            space: false,
            silent: None,
            preformatted: 0,
            lists: Vec::new(),
            link: None,
            after_cell: false,
        }
    }

    fn rendered(self, is_cut: bool) -> RenderedText {
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if title.is_empty() {
            self.out
        } else {
            format!("Title: {title}\n\n{}", self.out)
        };
        RenderedText { text, is_cut }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = tag.name.as_slice();
        if let Some((silent, open)) = &mut self.silent {
            *open += usize::from(silent == name && !tag.self_closing);
            return;
        }
        if SILENT.contains(&name) {
            if !tag.self_closing {
                self.silent = Some((name.to_vec(), 1));
            }
            return;
        }
        let attribute = |wanted: &[u8]| {
            let value = tag.attributes.get(&HtmlString::from(wanted.to_vec()));
            value.map(|value| String::from_utf8_lossy(value).into_owned())
        };
        match name {
            b"title" => self.in_title = self.title.is_empty(),
            b"base" => self.rebase(attribute(b"href")),
            b"a" => self.open_link(attribute(b"href")),
            b"img" => {
                let words = attribute(b"alt").unwrap_or_default();
                if !words.trim().is_empty() {
                    self.text(&format!("[image: {}]", words.trim()));
                }
            }
            b"br" => self.breaks += 1,
            b"hr" => {
                self.block(2);
                self.mark("---");
                self.block(2);
            }
            [b'h', level @ b'1'..=b'6'] => {
                self.block(2);
                self.mark(&"#".repeat(usize::from(level - b'0')));
                self.space = true;
            }
            b"pre" => {
                self.block(2);
                self.preformatted += 1;
                self.mark("```\n");
            }
            b"ul" | b"ol" => {
                self.block(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push((name == b"ol").then_some(0));
            }
            b"li" => self.open_item(),
            b"tr" => {
                self.block(1);
                self.after_cell = false;
            }
            b"td" | b"th" => {
                if self.after_cell {
                    self.space = true;
                    self.mark("|");
                    self.space = true;
                }
                self.after_cell = true;
            }
            name => self.block(gap(name)),
        }
    }

    fn end(&mut self, name: &HtmlString) {
        let name = name.as_slice();
        if let Some((silent, open)) = &mut self.silent {
            if silent == name {
                *open -= 1;
                if *open == 0 {
                    self.silent = None;
                }
            }
            return;
        }
        match name {
            b"title" => self.in_title = false,
            b"a" => self.close_link(),
            b"pre" => {
                if self.preformatted > 0 {
                    self.preformatted -= 1;
                    (self.breaks, self.space) = (1, false);
                    self.mark("```");
                    self.block(2);
                }
            }
            b"ul" | b"ol" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            b"p" | [b'h', b'1'..=b'6'] => self.block(2),
            // The end of a row or cell carries no information that the next start does not.
            b"li" | b"tr" => self.block(1),
            name => self.block(gap(name)),
        }
    }

    fn text(&mut self, text: &str) {
        if self.silent.is_some() {
            return;
        }
        if self.in_title {
            self.title.push_str(text);
            // A page that never ends its title has none.
            self.title.truncate(first_bytes(&self.title, 500).len());
            return;
        }
        if self.preformatted > 0 {
            if !text.is_empty() {
                self.push(text);
            }
            return;
        }
        // The no-break space is excluded: it belongs to its words.
        let is_space = |c: char| c.is_ascii_whitespace();
        self.space |= text.starts_with(is_space);
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            self.push(word);
            self.space = true;
        }
        self.space = text.ends_with(is_space) || (self.space && text.trim().is_empty());
    }

    fn push(&mut self, words: &str) {
        self.separate();
        if let Some(link) = &mut self.link
            && link.start.is_none()
        {
            link.start = Some(self.out.len());
        }
        self.out.push_str(words);
    }

    /// Writes a mark, which is not part of a link around it.
    fn mark(&mut self, mark: &str) {
        self.separate();
        self.out.push_str(mark);
    }

    /// Writes the pending line breaks or space.
    fn separate(&mut self) {
        if !self.out.is_empty() {
            if self.breaks > 0 {
                self.out.push_str(&"\n".repeat(self.breaks.min(2)));
            } else if self.space {
                self.out.push(' ');
            }
        }
        (self.breaks, self.space) = (0, false);
    }

    /// Requests at least this many line breaks before the next text.
    fn block(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    fn open_item(&mut self) {
        self.block(1);
        let depth = self.lists.len().saturating_sub(1).min(MAX_LIST_DEPTH);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}{number}.", "  ".repeat(depth))
            }
            _ => format!("{}-", "  ".repeat(depth)),
        };
        self.mark(&mark);
        self.space = true;
    }

    fn rebase(&mut self, target: Option<String>) {
        let base = target.and_then(|target| self.base.join(&target).ok());
        if let Some(base) = base.filter(|base| matches!(base.scheme(), "http" | "https")) {
            self.base = base;
        }
    }

    fn open_link(&mut self, target: Option<String>) {
        // Links do not nest: one that was not ended ends here.
        self.close_link();
        let target = target.filter(|target| {
            !target.trim_start().starts_with('#') && target.len() <= MAX_LINK_BYTES
        });
        let Some(target) = target.and_then(|target| self.base.join(&target).ok()) else {
            return;
        };
        let is_followed = matches!(target.scheme(), "http" | "https" | "mailto" | "ftp");
        if is_followed && target.as_str().len() <= MAX_LINK_BYTES {
            let target = target.into();
            self.link = Some(Link {
                target,
                start: None,
            });
        }
    }

    fn close_link(&mut self) {
        if let Some(Link {
            target,
            start: Some(start),
        }) = self.link.take()
        {
            self.out.insert(start, '[');
            self.out.push_str(&format!("]({target})"));
        }
    }
}

/// Returns the number of line breaks before and after an element.
fn gap(name: &[u8]) -> usize {
    match name {
        b"p" | b"table" | b"blockquote" | b"figure" | b"dl" | b"fieldset" | b"details" => 2,
        b"address" | b"article" | b"aside" | b"body" | b"caption" | b"dd" | b"div" | b"dt"
        | b"figcaption" | b"footer" | b"form" | b"header" | b"legend" | b"main" | b"nav"
        | b"option" | b"section" | b"summary" | b"textarea" | b"thead" | b"tbody" | b"tfoot" => 1,
        _ => 0,
    }
}
