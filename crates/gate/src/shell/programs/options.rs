//! Options and operands of a program, as `getopt` would tell them apart.

use crate::shell::{scan::Why, words::Word};

/// Which options a program has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    /// Letters; `:` after one that takes a value, `;` after one that takes it only without a
    /// blank, `#` if `-12` is an option.
    pub short: &'static str,
    /// Names; `=` after one that takes a value, `?` after one that takes it only with `=`.
    pub long: &'static str,
    /// How strict it is.
    pub mode: Mode,
}

/// What to do with words that the lists do not settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every option must be listed, and nothing open may become one.
    Strict,
    /// No option of the program does harm, so unknown ones are passed over.
    Lenient,
    /// Strict, and the first operand ends the options.
    FirstOperandEnds,
    /// Strict, for programs that do not take letters apart as `getopt` does.
    Apart,
}

/// Options in the order written, and what is left.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub options: Vec<(String, Option<Word>)>,
    pub operands: Vec<Word>,
}

impl Parsed {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options
            .iter()
            .any(|(name, _)| names.contains(&name.as_str()))
    }

    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Word> + 'a {
        self.options
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_ref())
    }
}

impl Spec {
    pub(super) const fn strict(short: &'static str, long: &'static str) -> Self {
        Self {
            short,
            long,
            mode: Mode::Strict,
        }
    }

    pub(super) const fn first(short: &'static str, long: &'static str) -> Self {
        Self {
            short,
            long,
            mode: Mode::FirstOperandEnds,
        }
    }

    pub(super) const fn lenient(short: &'static str, long: &'static str) -> Self {
        Self {
            short,
            long,
            mode: Mode::Lenient,
        }
    }

    pub(super) const fn apart(short: &'static str, long: &'static str) -> Self {
        Self {
            short,
            long,
            mode: Mode::Apart,
        }
    }

    /// Whether the letter is an option, and whether it takes a value.
    fn letter(&self, letter: char) -> Option<Value> {
        if !letter.is_ascii_alphanumeric() && letter != '.' {
            return None;
        }
        let at = self.short.find(letter)?;
        Some(match self.short.as_bytes().get(at + 1) {
            Some(b':') => Value::Needed,
            Some(b';') => Value::Attached,
            _ => Value::None,
        })
    }

    fn name(&self, name: &str) -> Option<Value> {
        self.long.split_ascii_whitespace().find_map(|listed| {
            let bare = listed.trim_end_matches(['=', '?']);
            (bare == name).then(|| match listed.as_bytes().last() {
                Some(b'=') => Value::Needed,
                Some(b'?') => Value::Attached,
                _ => Value::None,
            })
        })
    }

    pub(super) fn parse(&self, words: &[Word]) -> Result<Parsed, Why> {
        let mut parsed = Parsed::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let literal = word.literal();
            if literal.as_deref() == Some("--") {
                parsed.operands.extend(words.cloned());
                break;
            }
            let prefix = word.prefix();
            let option = prefix.len() > 1 && prefix.starts_with('-');
            if !option {
                if self.mode != Mode::Lenient && literal.is_none() && word.may_begin_with('-') {
                    return Err("an argument that could be an option");
                }
                parsed.operands.push(word.clone());
                if self.mode == Mode::FirstOperandEnds {
                    parsed.operands.extend(words.cloned());
                    break;
                }
                continue;
            }
            if word.may_split() && self.mode != Mode::Lenient {
                return Err("an argument that could be an option");
            }
            let value = match prefix.strip_prefix("--") {
                Some(rest) => self.long_option(word, rest, literal.is_some(), &mut parsed)?,
                None => self.letters(word, &prefix, literal.is_some(), &mut parsed)?,
            };
            if value {
                let next = words.next().ok_or("an option lacks its value")?;
                if !next.is_one() && self.mode != Mode::Lenient {
                    return Err("an argument that could be an option");
                }
                if let Some(last) = parsed.options.last_mut() {
                    last.1 = Some(next.clone());
                }
            }
        }
        Ok(parsed)
    }

    /// `true` if the next word is its value.
    fn long_option(
        &self,
        word: &Word,
        rest: &str,
        whole: bool,
        parsed: &mut Parsed,
    ) -> Result<bool, Why> {
        let unknown = "an option that is not known";
        let (name, attached) = match rest.split_once('=') {
            Some((name, _)) => (name, Some(word.after(name.len() + 3))),
            None if whole => (rest, None),
            None if self.mode == Mode::Lenient => return Ok(false),
            None => return Err(unknown),
        };
        let needs = match (self.name(name), &attached) {
            (Some(Value::Needed), None) => true,
            (Some(Value::None), Some(_)) if self.mode != Mode::Lenient => return Err(unknown),
            (None, _) if self.mode != Mode::Lenient => return Err(unknown),
            _ => false,
        };
        parsed.options.push((name.to_owned(), attached));
        Ok(needs)
    }

    fn letters(
        &self,
        word: &Word,
        prefix: &str,
        whole: bool,
        parsed: &mut Parsed,
    ) -> Result<bool, Why> {
        let digits = prefix[1..].bytes().all(|byte| byte.is_ascii_digit());
        if digits && whole && self.short.contains('#') {
            parsed.options.push(("#".to_owned(), None));
            return Ok(false);
        }
        for (at, letter) in prefix.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            match self.letter(letter) {
                Some(kind @ (Value::Needed | Value::Attached)) => {
                    let attached = end < prefix.len() || !whole;
                    let number = whole && prefix[end..].bytes().all(|byte| byte.is_ascii_digit());
                    if self.mode == Mode::Apart && (at > 1 || attached && !number) {
                        return Err("an option that is not known");
                    }
                    let value = attached.then(|| word.after(end));
                    parsed.options.push((letter.to_string(), value));
                    return Ok(!attached && matches!(kind, Value::Needed));
                }
                Some(Value::None) => parsed.options.push((letter.to_string(), None)),
                None if self.mode == Mode::Lenient => {
                    parsed.options.push((letter.to_string(), None));
                }
                None => return Err("an option that is not known"),
            }
        }
        match whole || self.mode == Mode::Lenient {
            true => Ok(false),
            false => Err("an argument that could be an option"),
        }
    }
}

enum Value {
    None,
    Needed,
    Attached,
}

#[cfg(test)]
impl Spec {
    /// A letter that is listed twice: only the first would count.
    pub(super) fn listed_twice(&self) -> Option<char> {
        let letters = || self.short.chars().filter(|c| c.is_ascii_alphanumeric());
        letters().find(|letter| letters().filter(|other| other == letter).count() > 1)
    }
}
