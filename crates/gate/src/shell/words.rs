//! The value of a word of a command line, as far as it is known before the line runs.

use gyrus_contract::CommandWord;

use super::scan::{self, UnsplitReason};

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// The word as written.
    pub raw: String,
    /// The word without quotes; in a pattern, all that may stand for something else is `*` or `?`.
    pub text: String,
    pub kind: WordKnowledge,
}

/// Extent to which a word is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKnowledge {
    /// The program gets exactly this text.
    Literal,
    /// A pattern of file names.
    Pattern,
    /// The word is known only at run time; its text is what surely stands at its beginning.
    Open,
}

impl ShellWord {
    /// Creates a word that is known only at run time.
    pub(super) fn open(raw: &str) -> Self {
        Self {
            raw: raw.to_owned(),
            text: String::new(),
            kind: WordKnowledge::Open,
        }
    }

    /// Returns the text, if it is certain.
    pub(super) fn literal(&self) -> Option<&str> {
        (self.kind == WordKnowledge::Literal).then_some(&*self.text)
    }

    pub(super) fn is_option(&self) -> bool {
        self.text.len() > 1 && self.text.starts_with('-')
    }

    /// Returns the word in the form of the public reading.
    pub(super) fn contract(&self) -> CommandWord {
        match self.literal() {
            Some(text) => CommandWord::Literal(text.to_owned()),
            None => CommandWord::Open {
                open: self.raw.clone(),
            },
        }
    }
}

/// Parses a word as written, and returns the texts of its substitutions, too. `home` is what `~`
/// and `$HOME` mean, if that is known.
pub(super) fn read(
    raw: &str,
    home: Option<&str>,
) -> Result<(ShellWord, Vec<String>), UnsplitReason> {
    let mut reading = WordReader::new(raw, home);
    if let (Some(rest), Some(home)) = (raw.strip_prefix('~'), home)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        reading.push_str(home);
        reading.at = 1;
    } else if raw.starts_with('~') {
        reading.kind = WordKnowledge::Open;
    }
    reading.unquoted()?;
    Ok((reading.word(), reading.texts))
}

/// Returns the substitutions in a text that is expanded as within double quotes, such as the body
/// of a here-document.
pub(super) fn substitutions(text: &str) -> Result<Vec<String>, UnsplitReason> {
    let mut reading = WordReader::new(text, None);
    while let Some(c) = reading.next() {
        match c {
            '\\' => reading.at += 1 + reading.rest()[1..].chars().next().map_or(0, char::len_utf8),
            '$' | '`' => reading.expansion()?,
            c => reading.at += c.len_utf8(),
        }
    }
    Ok(reading.texts)
}

struct WordReader<'a> {
    raw: &'a str,
    home: Option<&'a str>,
    at: usize,
    text: String,
    kind: WordKnowledge,
    texts: Vec<String>,
}

impl<'a> WordReader<'a> {
    fn new(raw: &'a str, home: Option<&'a str>) -> Self {
        Self {
            raw,
            home,
            at: 0,
            text: String::new(),
            kind: WordKnowledge::Literal,
            texts: Vec::new(),
        }
    }

    fn word(&self) -> ShellWord {
        ShellWord {
            raw: self.raw.to_owned(),
            text: self.text.clone(),
            kind: self.kind,
        }
    }

    fn rest(&self) -> &'a str {
        &self.raw[self.at..]
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Appends known text, unless something before it is open.
    fn push_str(&mut self, text: &str) {
        if self.kind != WordKnowledge::Open {
            self.text.push_str(text);
        }
    }

    fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }

    fn wild(&mut self, c: char) {
        self.push(c);
        if self.kind == WordKnowledge::Literal {
            self.kind = WordKnowledge::Pattern;
        }
    }

    fn unquoted(&mut self) -> Result<(), UnsplitReason> {
        while let Some(c) = self.next() {
            let rest = self.rest();
            match c {
                '\\' => {
                    let c = rest[1..].chars().next().ok_or("a backslash at the end")?;
                    self.push(c);
                    self.at += 1 + c.len_utf8();
                }
                '\'' => {
                    let end = rest[1..].find('\'').ok_or("a quote has no end")?;
                    self.push_str(&rest[1..=end]);
                    self.at += end + 2;
                }
                '"' => self.double_quoted()?,
                '$' if rest.starts_with("$'") => {
                    let end = 2 + rest[2..].find('\'').ok_or("a quote has no end")?;
                    if rest[2..end].contains('\\') {
                        self.kind = WordKnowledge::Open
                    } else {
                        self.push_str(&rest[2..end])
                    }
                    self.at += end + 1;
                }
                '$' | '`' => self.expansion()?,
                '*' | '?' => {
                    self.wild(c);
                    self.at += 1;
                }
                '[' if rest.contains(']') => {
                    let end = rest.find(']').unwrap_or_default();
                    if rest[..end].contains(['$', '`', '\'', '"', '\\']) {
                        self.kind = WordKnowledge::Open;
                        self.at += 1;
                    } else {
                        self.wild('?');
                        self.at += end + 1;
                    }
                }
                '{' if is_list(rest) => {
                    self.kind = WordKnowledge::Open;
                    self.at += 1;
                }
                c => {
                    self.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        Ok(())
    }

    fn double_quoted(&mut self) -> Result<(), UnsplitReason> {
        self.at += 1;
        loop {
            let rest = self.rest();
            match self.next().ok_or("a quote has no end")? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    let c = rest[1..].chars().next().ok_or("a backslash at the end")?;
                    if !"$`\"\\\n".contains(c) {
                        self.push('\\');
                    }
                    self.push(c);
                    self.at += 1 + c.len_utf8();
                }
                '$' if rest.starts_with("$'") || rest.starts_with("$\"") => {
                    self.push('$');
                    self.at += 1;
                }
                '$' | '`' => self.expansion()?,
                c => {
                    self.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// Reads an expansion, which begins with a dollar sign or a back-tick.
    fn expansion(&mut self) -> Result<(), UnsplitReason> {
        let start = self.at;
        self.at = scan::expansion_end(self.raw, start)?;
        let written = &self.raw[start..self.at];
        if let Some(inner) = written.strip_prefix('`') {
            self.texts.push(inner.trim_end_matches('`').to_owned());
        } else if let Some(sum) = written.strip_prefix("$((") {
            // An index is evaluated, and what it holds may run something.
            if sum.contains(['$', '`', '[']) {
                return Err("arithmetic that is not understood");
            }
        } else if let Some(inner) = written.strip_prefix("$(") {
            let inner = inner.strip_suffix(')').unwrap_or(inner);
            self.texts.push(inner.to_owned());
        } else if written.starts_with("${") {
            if written.contains(['@', '!', '[']) {
                return Err("an expansion that is not understood");
            }
            if written == "${HOME}" && self.is_home() {
                return Ok(());
            }
        } else {
            let name = self.rest();
            let letters = name
                .bytes()
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            let length = match name.bytes().next() {
                Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => 1,
                _ => letters.count(),
            };
            if length == 0 {
                self.push('$');
                return Ok(());
            }
            self.at += length;
            if &name[..length] == "HOME" && self.is_home() {
                return Ok(());
            }
        }
        self.kind = WordKnowledge::Open;
        Ok(())
    }

    fn is_home(&mut self) -> bool {
        let home = self.home;
        home.inspect(|home| self.push_str(home)).is_some()
    }
}

/// Whether the text begins with a list or a range in braces.
fn is_list(text: &str) -> bool {
    let end = text.find('}').unwrap_or_default();
    text[..end].contains(',') || text[..end].contains("..")
}

/// The host of an address or of `user@host:path`, in lower case.
pub(super) fn host(text: &str) -> Option<String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#', '\\']).next()?;
    let rest = rest.rsplit('@').next()?;
    let name = match rest.strip_prefix('[') {
        Some(six) => six.split(']').next()?,
        None => rest.split(':').next()?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_taken_away_and_what_is_open_is_said() {
        use WordKnowledge::{Literal, Open, Pattern};
        for (raw, text, kind) in [
            ("a'b c'\"d\"\\ e", "ab cd e", Literal),
            ("~/x", "/home/ada/x", Literal),
            ("\"$HOME/x\"", "/home/ada/x", Literal),
            ("'$HOME'", "$HOME", Literal),
            ("\"a\\$b\\c\"", "a$b\\c", Literal),
            ("{}", "{}", Literal),
            ("cost$", "cost$", Literal),
            ("$'a'", "a", Literal),
            ("src/*.rs", "src/*.rs", Pattern),
            ("a[bc]d", "a?d", Pattern),
            ("'*'", "*", Literal),
            ("x$y*", "x", Open),
            ("a{b,c}", "a", Open),
            ("$'\\x41'", "", Open),
            ("~kim/x", "", Open),
            ("$?", "", Open),
            ("$((1 + 2))", "", Open),
        ] {
            let (word, _) = read(raw, Some("/home/ada")).unwrap();
            assert_eq!((&*word.text, word.kind), (text, kind), "{raw}");
        }
        let texts = |raw| read(raw, None).map(|(_, texts)| texts);
        assert_eq!(
            texts("a$(b)\"$(c `d`)`e`\""),
            Ok(vec!["b".into(), "c `d`".into(), "e".into()])
        );
        for raw in ["$((a[$(b)]))", "${x@P}", "${!x}"] {
            assert!(texts(raw).is_err(), "{raw}");
        }
        assert_eq!(substitutions("a \\$(b) '$(c)'"), Ok(vec!["c".to_owned()]));
    }
}
