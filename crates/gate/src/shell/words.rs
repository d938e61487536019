//! What a word becomes when the shell expands it, as far as that is known before.

use gyrus_contract::CommandWord;

use super::scan::{self, Why};

/// A word of a command line.
#[derive(Debug, Clone)]
pub(super) struct Word {
    /// As it is written.
    pub raw: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    /// Text that stands for itself.
    Text(String),
    /// A pattern or a list in braces: one word or many, with what stands before unchanged.
    Many,
    /// A value.
    Value(Value),
}

/// A value that is put in when the line runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    /// Within quotes, so it stays one word and is no pattern.
    pub quoted: bool,
    /// A whole number, or nothing.
    pub number: bool,
    /// It does not begin with a dash, whatever it is, and is never empty.
    pub tame: bool,
    /// Without quotes it may become several words.
    pub splits: bool,
    /// It is a path below this folder, as written, and surely set.
    pub below: Option<String>,
}

/// What a word needs to know of its surroundings.
pub(super) trait Surroundings {
    /// A substitution with this text.
    fn substitution(&mut self, text: &str);
    /// An arithmetic expression.
    fn arithmetic(&mut self, text: &str) -> Result<(), Why>;
    /// The text of a variable, if it is certain.
    fn text(&self, name: &str) -> Option<String>;
    /// What else is known of its value.
    fn value(&self, name: &str) -> Value;
    /// The home folder.
    fn home(&self) -> Option<String>;
}

impl Word {
    /// Text that stands for itself.
    pub(super) fn plain(text: &str) -> Self {
        Self {
            raw: text.to_owned(),
            parts: vec![Part::Text(text.to_owned())],
        }
    }

    /// Something nobody knows, possibly several words.
    pub(super) fn unknown(raw: &str) -> Self {
        Self {
            raw: raw.to_owned(),
            parts: vec![Part::Value(Value {
                splits: true,
                ..Value::default()
            })],
        }
    }

    /// A path that the shell makes up, such as that of a process substitution.
    pub(super) fn made_up(raw: &str) -> Self {
        Self {
            raw: raw.to_owned(),
            parts: vec![Part::Value(Value {
                quoted: true,
                tame: true,
                ..Value::default()
            })],
        }
    }

    /// Some path below this folder.
    pub(super) fn below(folder: &str) -> Self {
        let folder = format!("{}/", folder.trim_end_matches('/'));
        Self {
            raw: format!("{folder}…"),
            parts: vec![Part::Text(folder), Part::Many],
        }
    }

    /// One word that begins with this text, and nobody knows how it ends.
    pub(super) fn with_unknown_end(raw: &str, start: &str) -> Self {
        let mut parts = vec![Part::Text(start.to_owned())];
        parts.push(Part::Value(Value {
            quoted: true,
            ..Value::default()
        }));
        Self {
            raw: raw.to_owned(),
            parts,
        }
    }

    /// The word without its first bytes, which must be text.
    pub(super) fn after(&self, bytes: usize) -> Self {
        let mut rest = self.clone();
        if let Some(Part::Text(text)) = rest.parts.first_mut() {
            *text = text.get(bytes..).unwrap_or_default().to_owned();
        }
        rest.raw = self.raw.get(bytes..).unwrap_or_default().to_owned();
        rest
    }

    /// Its text, if it is certain.
    pub(super) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(more) => text.push_str(more),
                Part::Many | Part::Value(_) => return None,
            }
        }
        Some(text)
    }

    /// What surely stands at its beginning.
    pub(super) fn prefix(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(more) => text.push_str(more),
                Part::Many | Part::Value(_) => break,
            }
        }
        text
    }

    /// Whether it, or a word that it becomes, could begin with this character.
    pub(super) fn may_begin_with(&self, c: char) -> bool {
        let prefix = self.prefix();
        if self.may_split() {
            return true;
        }
        if !prefix.is_empty() {
            return prefix.starts_with(c);
        }
        match self
            .parts
            .iter()
            .find(|part| !matches!(part, Part::Text(_)))
        {
            None => false,
            Some(Part::Value(value)) => !(value.tame && c == '-'),
            Some(_) => true,
        }
    }

    /// Whether it could become several words, of which only the first begins as written.
    pub(super) fn may_split(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Value(value) if !value.quoted && value.splits))
    }

    /// Whether it is exactly one word.
    pub(super) fn is_one(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Text(_) => true,
            Part::Many => false,
            Part::Value(value) => value.quoted || !value.splits && value.tame,
        })
    }

    /// Whether it is a whole number or nothing.
    pub(super) fn is_number(&self) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Text(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
            Part::Many => false,
            Part::Value(value) => value.number,
        })
    }

    /// Whether what is open in it is a pattern or a list only.
    pub(super) fn is_pattern(&self) -> bool {
        let value = |part: &Part| matches!(part, Part::Value(_));
        !self.parts.iter().any(value) && self.literal().is_none()
    }

    /// For the reading that others see.
    pub(super) fn contract(&self) -> CommandWord {
        match self.literal() {
            Some(text) => CommandWord::Literal(text),
            None => CommandWord::Open {
                open: self.raw.clone(),
            },
        }
    }

    /// What a value of this word would be, if it were assigned.
    pub(super) fn as_value(&self) -> Value {
        Value {
            quoted: false,
            number: self.is_number() && self.literal().is_some_and(|text| !text.is_empty()),
            tame: !self.may_begin_with('-') && !self.prefix().is_empty(),
            splits: self.literal().is_none_or(|text| {
                text.is_empty() || text.contains([' ', '\t', '\n', '*', '?', '['])
            }),
            below: self.below_which(),
        }
    }

    /// The folder below which the path surely lies, as written.
    pub(super) fn below_which(&self) -> Option<String> {
        if self.raw.contains("..") {
            return None;
        }
        let empty = |part: &&Part| matches!(part, Part::Text(text) if text.is_empty());
        let first = match self.parts.iter().find(|part| !empty(part))? {
            Part::Value(value) if value.quoted || !value.splits => return value.below.clone(),
            Part::Value(_) => return None,
            Part::Text(_) | Part::Many => self.prefix(),
        };
        let open = |part: &Part| matches!(part, Part::Value(value) if value.below.is_none());
        if self.parts.iter().any(open) || first.contains("..") {
            return None;
        }
        Some(match first.rfind('/') {
            Some(0) => "/".to_owned(),
            Some(end) => first[..end].to_owned(),
            None => ".".to_owned(),
        })
    }

    fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(before)) => before.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }
}

/// Reads a word as it is written. `Err` says what in it is not understood.
pub(super) fn word(raw: &str, around: &mut dyn Surroundings) -> Result<Word, Why> {
    let mut reading = Reading {
        raw,
        at: 0,
        word: Word {
            raw: raw.to_owned(),
            parts: Vec::new(),
        },
        around,
    };
    reading.tilde()?;
    reading.unquoted()?;
    Ok(reading.word)
}

/// Reads a text that is expanded as within double quotes, such as a here-document's.
pub(super) fn quoted_text(raw: &str, around: &mut dyn Surroundings) -> Result<(), Why> {
    let mut reading = Reading {
        raw,
        at: 0,
        word: Word::plain(""),
        around,
    };
    while let Some(c) = reading.next() {
        match c {
            '\\' if reading.rest().starts_with("\\\n") => return Err("a line that goes on"),
            '\\' => reading.at += 1 + reading.rest()[1..].chars().next().map_or(0, char::len_utf8),
            '$' | '`' => reading.expansion(true)?,
            _ => reading.at += c.len_utf8(),
        }
    }
    Ok(())
}

struct Reading<'a> {
    raw: &'a str,
    at: usize,
    word: Word,
    around: &'a mut dyn Surroundings,
}

impl<'a> Reading<'a> {
    fn rest(&self) -> &'a str {
        &self.raw[self.at..]
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn tilde(&mut self) -> Result<(), Why> {
        let Some(rest) = self.raw.strip_prefix('~') else {
            return Ok(());
        };
        if !(rest.is_empty() || rest.starts_with('/')) {
            return Err("another's home folder");
        }
        let home = self.around.home().ok_or("the home folder is not known")?;
        self.word.push_text(&home);
        self.at = 1;
        Ok(())
    }

    fn unquoted(&mut self) -> Result<(), Why> {
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    let c = self.rest()[1..]
                        .chars()
                        .next()
                        .ok_or("a backslash at the end")?;
                    self.word.push_text(c.encode_utf8(&mut [0; 4]));
                    self.at += 1 + c.len_utf8();
                }
                '\'' => {
                    let rest = &self.rest()[1..];
                    let end = rest.find('\'').ok_or("a quote has no end")?;
                    self.word.push_text(&rest[..end]);
                    self.at += end + 2;
                }
                '"' => self.double_quoted()?,
                '$' if self.rest().starts_with("$'") => self.escaped_quote()?,
                '$' | '`' => self.expansion(false)?,
                '*' | '?' => {
                    self.word.parts.push(Part::Many);
                    self.at += 1;
                }
                '[' if self.rest().contains(']') => {
                    self.word.parts.push(Part::Many);
                    self.at += 1;
                }
                '{' if is_brace_list(self.rest()) => {
                    self.word.parts.push(Part::Many);
                    self.at += 1;
                }
                // `a=~/x` and `a:~/x` expand in assignments and in a few programs' arguments.
                '~' if self.raw[..self.at].ends_with([':', '=']) => {
                    self.word.parts.push(Part::Many);
                    self.at += 1;
                }
                _ => {
                    self.word.push_text(c.encode_utf8(&mut [0; 4]));
                    self.at += c.len_utf8();
                }
            }
        }
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), Why> {
        self.at += 1;
        self.word.push_text("");
        loop {
            match self.next().ok_or("a quote has no end")? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    let c = self.rest()[1..]
                        .chars()
                        .next()
                        .ok_or("a backslash at the end")?;
                    if !matches!(c, '$' | '`' | '"' | '\\') {
                        self.word.push_text("\\");
                    }
                    self.word.push_text(c.encode_utf8(&mut [0; 4]));
                    self.at += 1 + c.len_utf8();
                }
                '$' | '`' => self.expansion(true)?,
                c => {
                    self.word.push_text(c.encode_utf8(&mut [0; 4]));
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn escaped_quote(&mut self) -> Result<(), Why> {
        let rest = &self.rest()[2..];
        let end = rest.find('\'').ok_or("a quote has no end")?;
        let mut chars = rest[..end].chars();
        while let Some(c) = chars.next() {
            let c = match c {
                '\\' => match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('\\') => '\\',
                    Some('"') => '"',
                    Some('r') => '\r',
                    Some('e') => '\u{1b}',
                    _ => return Err("a text written in escapes"),
                },
                c => c,
            };
            self.word.push_text(c.encode_utf8(&mut [0; 4]));
        }
        self.at += end + 3;
        Ok(())
    }

    /// Whatever a dollar sign or a back-tick begins.
    fn expansion(&mut self, quoted: bool) -> Result<(), Why> {
        let rest = self.rest();
        if quoted && (rest.starts_with("$'") || rest.starts_with("$\"")) {
            self.word.push_text("$");
            self.at += 1;
            return Ok(());
        }
        let end = scan::expansion_end(self.raw, self.at)?;
        let written = &self.raw[self.at..end];
        self.at = end;
        let mut value = Value {
            splits: true,
            ..Value::default()
        };
        if let Some(inner) = written.strip_prefix("$((") {
            self.around
                .arithmetic(inner.strip_suffix("))").unwrap_or(inner))?;
            value.number = true;
            value.splits = false;
        } else if let Some(inner) = written.strip_prefix("$(") {
            self.around
                .substitution(inner.strip_suffix(')').unwrap_or(inner));
        } else if let Some(inner) = written.strip_prefix('`') {
            self.around
                .substitution(inner.strip_suffix('`').unwrap_or(inner));
        } else if let Some(inner) = written.strip_prefix("${") {
            match self.braced(inner.strip_suffix('}').unwrap_or(inner), quoted)? {
                Some(known) => value = known,
                None => return Ok(()),
            }
        } else {
            match self.named(quoted) {
                Some(known) => value = known,
                None => return Ok(()),
            }
        }
        value.quoted = quoted;
        self.word.parts.push(Part::Value(value));
        Ok(())
    }

    /// `$name`, `$?` and their like; the dollar sign itself is already behind.
    fn named(&mut self, quoted: bool) -> Option<Value> {
        let rest = self.rest();
        let length = name_length(rest);
        if length > 0 {
            let name = &rest[..length];
            self.at += length;
            return self.variable(name, quoted);
        }
        match rest.chars().next() {
            Some(c @ ('?' | '#' | '$' | '!')) => {
                self.at += c.len_utf8();
                Some(Value {
                    number: true,
                    tame: c != '!',
                    ..Value::default()
                })
            }
            Some(c @ ('@' | '*')) => {
                self.at += c.len_utf8();
                // Even in quotes it is as many words as there are arguments.
                self.word.parts.push(Part::Value(Value {
                    splits: true,
                    ..Value::default()
                }));
                None
            }
            Some(c) if c == '-' || c.is_ascii_digit() => {
                self.at += 1;
                Some(Value {
                    splits: true,
                    ..Value::default()
                })
            }
            _ => {
                self.word.push_text("$");
                None
            }
        }
    }

    /// A variable: its text goes into the word if it is certain, else what is known of it.
    fn variable(&mut self, name: &str, quoted: bool) -> Option<Value> {
        let special = [' ', '\t', '\n', '*', '?', '['];
        match self.around.text(name) {
            Some(text) if quoted || !(text.is_empty() || text.contains(special)) => {
                self.word.push_text(&text);
                None
            }
            _ => Some(self.around.value(name)),
        }
    }

    fn braced(&mut self, inner: &str, quoted: bool) -> Result<Option<Value>, Why> {
        let unknown = Value {
            splits: true,
            ..Value::default()
        };
        if let Some(name) = inner.strip_prefix('#').filter(|name| !name.is_empty()) {
            let name = name
                .strip_suffix("[@]")
                .or(name.strip_suffix("[*]"))
                .unwrap_or(name);
            return match name_length(name) == name.len() {
                true => Ok(Some(Value {
                    number: true,
                    tame: true,
                    ..Value::default()
                })),
                false => Err("an expansion that is not understood"),
            };
        }
        let mut length = name_length(inner);
        if length == 0 {
            length = inner.bytes().take_while(u8::is_ascii_digit).count();
        }
        let (name, rest) = inner.split_at(length);
        if name.is_empty() {
            return Err("an expansion that is not understood");
        }
        if rest.is_empty() {
            return match name_length(name) == name.len() {
                true => Ok(self.variable(name, quoted)),
                false => Ok(Some(unknown)),
            };
        }
        if let Some(rest) = rest.strip_prefix('[') {
            let (index, after) = rest.split_once(']').ok_or("an index has no end")?;
            let whole = matches!(index, "@" | "*");
            if !after.is_empty() || !(whole || index.bytes().all(|byte| byte.is_ascii_digit())) {
                return Err("an index that may be evaluated again");
            }
            if whole {
                self.word.parts.push(Part::Value(unknown));
                return Ok(None);
            }
            return Ok(Some(unknown));
        }
        let plain_operator = rest.starts_with(['%', '#', '/', '^', ','])
            || [":-", ":+", ":?"]
                .iter()
                .any(|operator| rest.starts_with(operator))
            || rest.starts_with(['-', '+', '?']);
        let part = rest.strip_prefix(':').is_some_and(|rest| {
            !rest.is_empty()
                && rest
                    .bytes()
                    .all(|b| b.is_ascii_digit() || b == b':' || b == b' ')
        });
        match plain_operator || part {
            true => Ok(Some(unknown)),
            false => Err("an expansion that is not understood"),
        }
    }
}

/// How much of the beginning is a variable's name.
pub(super) fn name_length(text: &str) -> usize {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return 0;
    }
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count()
}

/// Whether the text begins with a list or a range in braces, or with what could be one.
fn is_brace_list(text: &str) -> bool {
    text.find('}')
        .is_some_and(|_| text.contains(',') || text.contains(".."))
}
