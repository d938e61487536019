//! Finds where the words of a command line begin and end, without running it.
//!
//! This splitter knows little on purpose: what it does not expect is an error, and the line is then
//! not understood.

/// Maximum depth of nested substitutions.
const MAX_DEPTH: usize = 8;

/// Maximum depth of nested parentheses.
const MAX_PARENTHESES: usize = 16;

/// Operators of the shell, longest first.
const OPERATORS: [&str; 23] = [
    "&>>", "<<<", "<<-", ";;&", "&&", "&>", "||", "|&", ";;", ";&", "<<", "<&", "<>", ">>", ">&",
    ">|", "&", "|", ";", "<", ">", "(", ")",
];

/// The reason why a text was not split.
pub(super) type UnsplitReason = &'static str;

/// A part of a line, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellPiece<'a> {
    /// A token that separates or joins.
    Operator(&'a str),
    /// All other characters, with quotes.
    Word(&'a str),
    /// The number before a redirection: `2` in `2>file`.
    Descriptor,
    /// Arithmetic expression, including its two pairs of parentheses.
    Sum(&'a str),
    /// The body of a here-document, which belongs to a command before it.
    Body {
        text: &'a str,
        /// Whether the shell expands the text.
        expands: bool,
    },
}

pub(super) fn split(line: &str) -> Result<Vec<ShellPiece<'_>>, UnsplitReason> {
    let mut scanner = Scanner {
        text: line,
        at: 0,
        depth: 0,
    };
    scanner.pieces(false)
}

/// The end of the expansion that begins at `start` with a dollar sign or a back-tick.
pub(super) fn expansion_end(text: &str, start: usize) -> Result<usize, UnsplitReason> {
    let mut scanner = Scanner {
        text,
        at: start,
        depth: 0,
    };
    if text[start..].starts_with('`') {
        scanner.back_ticks()?
    } else {
        scanner.dollar()?
    }
    Ok(scanner.at)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    /// Returns all pieces up to the end, or up to the parenthesis that closes a substitution.
    fn pieces(&mut self, substitution: bool) -> Result<Vec<ShellPiece<'a>>, UnsplitReason> {
        let mut pieces: Vec<ShellPiece<'a>> = Vec::new();
        let mut tags: Vec<Tag<'a>> = Vec::new();
        let mut open = 0_usize;
        while let Some(c) = self.next() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.rest().starts_with("\\\n") => {
                    self.between_words(pieces.last())?;
                    self.at += 2;
                }
                '\n' => {
                    self.at += 1;
                    pieces.push(ShellPiece::Operator("\n"));
                    self.bodies(&mut tags, &mut pieces)?;
                }
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                ')' if substitution && open == 0 => return Ok(pieces),
                '(' if sum(self.rest()).is_some() => {
                    let length = sum(self.rest()).unwrap_or_default();
                    pieces.push(ShellPiece::Sum(&self.rest()[..length]));
                    self.at += length;
                }
                '&' | '|' | ';' | '<' | '>' | '(' | ')' => {
                    let rest = self.rest();
                    let operator = OPERATORS
                        .into_iter()
                        .find(|operator| rest.starts_with(operator))
                        .ok_or("an operator that is not known")?;
                    self.at += operator.len();
                    pieces.push(ShellPiece::Operator(&rest[..operator.len()]));
                    match operator {
                        "(" => open += 1,
                        // The end of a `case` pattern.
                        ")" if open == 0 && pieces.contains(&ShellPiece::Word("case")) => {}
                        ")" => open = open.checked_sub(1).ok_or("a parenthesis too many")?,
                        "<<" | "<<-" => tags.push(self.tag(operator == "<<-")?),
                        _ => {}
                    }
                    if open > MAX_PARENTHESES {
                        return Err("it is nested too deeply");
                    }
                }
                _ => {
                    let word = self.word(substitution)?;
                    let redirects = self.rest().starts_with(['<', '>']);
                    let is_descriptor = redirects && (is_number(word) || is_named(word));
                    pieces.push(if is_descriptor {
                        ShellPiece::Descriptor
                    } else {
                        ShellPiece::Word(word)
                    });
                }
            }
        }
        match (substitution, tags.is_empty()) {
            (true, _) => Err("a substitution has no end"),
            (_, false) => Err("a here-document has no end"),
            _ => Ok(pieces),
        }
    }

    /// Accepts a continued line only where a blank could stand.
    fn between_words(&self, last: Option<&ShellPiece<'_>>) -> Result<(), UnsplitReason> {
        let before = self.text[..self.at].chars().next_back();
        let after = self.text[self.at + 2..].chars().next();
        let blank = |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | '\t' | '\n'));
        if last.is_none() || blank(before) || blank(after) {
            Ok(())
        } else {
            Err("a word goes on in the next line")
        }
    }

    fn word(&mut self, substitution: bool) -> Result<&'a str, UnsplitReason> {
        let start = self.at;
        while let Some(c) = self.next() {
            match c {
                ' ' | '\t' | '\n' | '&' | '|' | ';' | '<' | '>' | '(' | ')' => break,
                '\\' => self.escape()?,
                '\'' => self.single_quotes()?,
                '"' => self.double_quotes()?,
                '`' => self.back_ticks()?,
                '$' => self.dollar()?,
                _ => {
                    suspicious(c)?;
                    self.skip(c);
                }
            }
        }
        let word = &self.text[start..self.at];
        if self.rest().starts_with('(') && !word.ends_with('=') {
            return Err("a parenthesis inside a word");
        }
        if self.rest().starts_with(['<', '>']) && word.len() > 4 && is_number(word) {
            return Err("a file descriptor that cannot exist");
        }
        // The end of a `case` pattern looks like the end of the substitution.
        if substitution && word == "case" {
            Err("`case` inside a substitution")
        } else {
            Ok(word)
        }
    }

    fn escape(&mut self) -> Result<(), UnsplitReason> {
        self.at += 1;
        match self.next() {
            Some('\n') => Err("a word goes on in the next line"),
            Some(c) => {
                suspicious(c)?;
                self.skip(c);
                Ok(())
            }
            None => Err("a backslash at the end"),
        }
    }

    fn single_quotes(&mut self) -> Result<(), UnsplitReason> {
        let end = self.text[self.at + 1..].find('\'');
        self.at += end.ok_or("a quote has no end")? + 2;
        Ok(())
    }

    fn double_quotes(&mut self) -> Result<(), UnsplitReason> {
        self.at += 1;
        loop {
            match self.next().ok_or("a quote has no end")? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => self.escape()?,
                '`' => self.back_ticks()?,
                '$' if self.rest().starts_with("$'") || self.rest().starts_with("$\"") => {
                    self.at += 1;
                }
                '$' => self.dollar()?,
                c => self.skip(c),
            }
        }
    }

    fn back_ticks(&mut self) -> Result<(), UnsplitReason> {
        let rest = &self.rest()[1..];
        let end = rest.find('`').ok_or("a substitution has no end")?;
        if rest[..end].contains('\\') {
            return Err("escapes inside back-ticks");
        }
        self.at += end + 2;
        Ok(())
    }

    /// Reads an expansion, or a plain dollar sign.
    fn dollar(&mut self) -> Result<(), UnsplitReason> {
        let rest = self.rest();
        if rest.starts_with("$((") {
            let sum = sum(&rest[1..]).ok_or("a sum that is not understood")?;
            self.at += 1 + sum;
        } else if rest.starts_with("$(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err("it is nested too deeply");
            }
            self.at += 2;
            self.pieces(true)?;
            self.at += 1;
            self.depth -= 1;
        } else if rest.starts_with("${") {
            let end = rest.find('}').ok_or("an expansion has no end")?;
            if rest[2..end].contains(['$', '`', '"', '\'', '\\', '{', '\n', '(', '<', '>', ';']) {
                return Err("an expansion within an expansion");
            }
            self.at += end + 1;
        } else if rest.starts_with("$[") {
            return Err("an old form of arithmetic");
        } else if rest.starts_with("$\"") {
            return Err("a text that is translated");
        } else if let Some(text) = rest.strip_prefix("$'") {
            let end = 2 + text.find('\'').ok_or("a quote has no end")?;
            // Other shells end the text at a quote that bash takes as escaped.
            if rest[..end].ends_with('\\') {
                return Err("a quote with escapes");
            }
            self.at += end + 1;
        } else {
            self.at += 1;
        }
        Ok(())
    }

    /// Reads the tag of a here-document, whose body follows the next line end.
    fn tag(&mut self, tabs: bool) -> Result<Tag<'a>, UnsplitReason> {
        let here = self.rest().trim_start_matches([' ', '\t']);
        let at = self.text.len() - here.len();
        let end = here
            .find([' ', '\t', '\n', '&', '|', ';', '<', '>', '(', ')'])
            .unwrap_or(here.len());
        let written = &here[..end];
        let name = match written.chars().next() {
            Some(quote @ ('\'' | '"')) => written[1..].strip_suffix(quote),
            _ => Some(written),
        };
        let plain = |name: &&str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        let name = name
            .filter(plain)
            .ok_or("a here-document with an unusual tag")?;
        self.at = at + end;
        Ok(Tag {
            name,
            expands: name == written,
            tabs,
        })
    }

    fn bodies(
        &mut self,
        tags: &mut Vec<Tag<'a>>,
        pieces: &mut Vec<ShellPiece<'a>>,
    ) -> Result<(), UnsplitReason> {
        for tag in std::mem::take(tags) {
            let start = self.at;
            let mut end = None;
            while self.at < self.text.len() {
                let line_start = self.at;
                let line = self.rest().split('\n').next().unwrap_or_default();
                self.at += line.len() + 1;
                let line = if tag.tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == tag.name {
                    end = Some(line_start);
                    break;
                }
                // Tabs before a body line would have to be taken away to compare.
                if tag.tabs && self.text[line_start..].starts_with('\t') {
                    return Err("a here-document with tabs");
                }
            }
            self.at = self.at.min(self.text.len());
            let end = end.ok_or("a here-document has no end")?;
            pieces.push(ShellPiece::Body {
                text: &self.text[start..end],
                expands: tag.expands,
            });
        }
        Ok(())
    }
}

struct Tag<'a> {
    name: &'a str,
    expands: bool,
    tabs: bool,
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The length of the arithmetic in two pairs of parentheses with which a text begins. The shell takes
/// it for that only if the inner pair ends just before the outer one; what could be anything else
/// is none.
fn sum(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("((")?;
    let mut open = 1;
    for (at, c) in inner.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ if c.is_ascii_alphanumeric() || " _+-*/%<>=!&|^~?:,;$".contains(c) => {}
            _ => return None,
        }
        if open == 0 {
            return inner[at + 1..].starts_with(')').then_some(at + 4);
        }
    }
    None
}

/// Whether a word has the form `{name}`, before which the shell stores the number of a descriptor.
fn is_named(word: &str) -> bool {
    let name = word
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// Refuses characters that look like others; outside quotes they have no business in a command.
fn suspicious(c: char) -> Result<(), UnsplitReason> {
    let spaces = matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}'
                | '\u{202f}'
                | '\u{205f}'
                | '\u{3000}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{85}'
    );
    let wide = matches!(c, '\u{ff00}'..='\u{ffef}' | '\u{fe50}'..='\u{fe6f}' | '\u{37e}');
    if spaces || wide {
        Err("a character that looks like another")
    } else {
        Ok(())
    }
}

/// Whether the character cannot be seen, or changes how others are seen. Tabs and line ends are
/// part of how lines are written.
pub(super) fn is_invisible(c: char) -> bool {
    gyrus_text::is_unseen(c) && !matches!(c, '\t' | '\n')
}
