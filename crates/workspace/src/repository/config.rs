//! Git's configuration format, read strictly: everything that git would refuse, or read
//! differently, is an error.

use std::{collections::BTreeMap, fmt, ops::Range};

use serde::{Deserialize, Serialize};

/// Maximum bytes of a configuration.
pub(super) const MAX_CONFIG: u64 = 1 << 20;

/// Name of a setting, such as `branch.main.remote`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SettingName {
    /// Section in lower case.
    pub section: String,
    /// Subsection as written; it may contain dots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subsection: Option<String>,
    /// Name in lower case.
    pub name: String,
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.section)?;
        if let Some(subsection) = &self.subsection {
            write!(f, ".{subsection}")?;
        }
        write!(f, ".{}", self.name)
    }
}

/// The values of one setting, in order; `None` stands for a name without `=`, which means true.
pub(super) type Values = Vec<Option<String>>;

/// Position at which a file is not a valid configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not valid in a configuration file of git")]
pub(super) struct ConfigError {
    pub(super) line: usize,
}

/// A configuration file, with the positions of its parts.
#[derive(Debug, Default)]
pub(super) struct GitConfig {
    pub(super) text: String,
    pub(super) headers: Vec<SectionHeader>,
    pub(super) settings: Vec<ConfigSetting>,
}

#[derive(Debug)]
pub(super) struct SectionHeader {
    pub(super) section: String,
    pub(super) subsection: Option<String>,
    /// Span from `[` to `]`.
    pub(super) span: Range<usize>,
}

/// A setting, with its continuation lines.
#[derive(Debug)]
pub(super) struct ConfigSetting {
    pub(super) name: SettingName,
    pub(super) value: Option<String>,
    /// Index of the setting's section header.
    pub(super) header: usize,
    /// Span from the name to the end of the line, included.
    pub(super) span: Range<usize>,
}

impl GitConfig {
    pub(super) fn parse(content: &[u8]) -> Result<Self, ConfigError> {
        let text = std::str::from_utf8(content).map_err(|_| ConfigError { line: 1 })?;
        let mut parser = Parser {
            text,
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
            config: Self {
                text: text.to_owned(),
                ..Self::default()
            },
        };
        match parser.run() {
            Some(()) => Ok(parser.config),
            None => {
                let before = &text.as_bytes()[..parser.at.min(text.len())];
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                Err(ConfigError { line })
            }
        }
    }

    /// Returns all settings with their values.
    pub(super) fn values(&self) -> BTreeMap<SettingName, Values> {
        let mut values: BTreeMap<_, Values> = BTreeMap::new();
        for setting in &self.settings {
            let list = values.entry(setting.name.clone()).or_default();
            list.push(setting.value.clone());
        }
        values
    }

    /// Returns the last value of a setting without a subsection; an empty one for a name without
    /// `=`.
    pub(super) fn last(&self, section: &str, name: &str) -> Option<&str> {
        let mut settings = self.settings.iter().rev().map(|setting| {
            let SettingName {
                section,
                subsection,
                name,
            } = &setting.name;
            (
                section,
                subsection,
                name,
                setting.value.as_deref().unwrap_or(""),
            )
        });
        settings
            .find(|(s, sub, n, _)| *s == section && sub.is_none() && *n == name)
            .map(|(.., value)| value)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    config: GitConfig,
}

impl Parser<'_> {
    /// Returns the next character as git reads it: a carriage return before a line end is skipped.
    fn peek(&self) -> Option<char> {
        let rest = &self.text[self.at..];
        match rest.chars().next() {
            Some('\r') if rest[1..].starts_with('\n') => Some('\n'),
            next => next,
        }
    }

    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let next = rest.chars().next()?;
        if next == '\r' && rest[1..].starts_with('\n') {
            self.at += 2;
            return Some('\n');
        }
        self.at += next.len_utf8();
        Some(next)
    }

    fn skip(&mut self, blank: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&blank) {
            self.next();
        }
    }

    /// Parses the text; `None` if it is invalid.
    fn run(&mut self) -> Option<()> {
        loop {
            match self.peek() {
                None => return Some(()),
                Some('\0') => return None,
                Some(c) if is_space(c) => {
                    self.next();
                }
                Some('#' | ';') => self.skip(|c| c != '\n'),
                Some('[') => self.header()?,
                Some(c) if c.is_ascii_alphabetic() => self.setting()?,
                Some(_) => return None,
            }
        }
    }

    fn header(&mut self) -> Option<()> {
        let start = self.at;
        self.next();
        let mut section = String::new();
        let mut subsection = None;
        loop {
            match self.next()? {
                ']' => break,
                c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => {
                    section.push(c.to_ascii_lowercase());
                }
                ' ' | '\t' => {
                    self.skip(|c| matches!(c, ' ' | '\t'));
                    subsection = Some(self.subsection()?);
                    break;
                }
                _ => return None,
            }
        }
        // The old form `[branch.main]`, in which letters are small.
        if let Some((first, rest)) = section.clone().split_once('.') {
            let rest = match subsection {
                Some(more) => format!("{rest}.{more}"),
                None => rest.to_owned(),
            };
            subsection = Some(rest);
            section = first.to_owned();
        }
        if section.is_empty() {
            return None;
        }
        self.config.headers.push(SectionHeader {
            section,
            subsection,
            span: start..self.at,
        });
        Some(())
    }

    fn subsection(&mut self) -> Option<String> {
        if self.next()? != '"' {
            return None;
        }
        let mut name = String::new();
        loop {
            match self.next()? {
                '"' => break,
                '\n' | '\0' => return None,
                '\\' => match self.next()? {
                    '\n' | '\0' => return None,
                    c => name.push(c),
                },
                c => name.push(c),
            }
        }
        (self.next()? == ']').then_some(name)
    }

    fn setting(&mut self) -> Option<()> {
        let start = self.at;
        let mut name = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        {
            name.push(c.to_ascii_lowercase());
            self.next();
        }
        self.skip(|c| matches!(c, ' ' | '\t'));
        let value = match self.peek() {
            None | Some('\n') => {
                self.next();
                None
            }
            Some('=') => {
                self.next();
                Some(self.value()?)
            }
            // Git takes no comment after a name without a value.
            Some(_) => return None,
        };
        let header = self.config.headers.len().checked_sub(1)?;
        let SectionHeader {
            section,
            subsection,
            ..
        } = &self.config.headers[header];
        let name = SettingName {
            section: section.clone(),
            subsection: subsection.clone(),
            name,
        };
        self.config.settings.push(ConfigSetting {
            name,
            value,
            header,
            span: start..self.at,
        });
        Some(())
    }

    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        // Blanks at the end are not part of it.
        let mut length = 0;
        let mut quoted = false;
        self.skip(|c| matches!(c, ' ' | '\t'));
        loop {
            match self.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => break,
                Some('\0') => return None,
                Some('"') => {
                    quoted = !quoted;
                    length = value.len();
                }
                Some('\\') => {
                    match self.next()? {
                        '\n' => continue,
                        't' => value.push('\t'),
                        'b' => value.push('\u{8}'),
                        'n' => value.push('\n'),
                        c @ ('\\' | '"') => value.push(c),
                        _ => return None,
                    }
                    length = value.len();
                }
                Some('#' | ';') if !quoted => {
                    self.skip(|c| c != '\n');
                    self.next();
                    break;
                }
                Some(c) if !quoted && is_space(c) && value.is_empty() => {}
                Some(c) => {
                    value.push(c);
                    if quoted || !is_space(c) {
                        length = value.len();
                    }
                }
            }
        }
        value.truncate(length);
        Some(value)
    }
}

/// Whether git treats a character as white space; it accepts fewer than ASCII has.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
