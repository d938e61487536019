//! The words of a line as they stand there, with what stands between them.

/// Maximum number of characters of a word that are indexed; the rest is ignored.
const MAX_WORD_CHARS: usize = 40;

/// Maximum number of changes between letters and digits at which a word such as `hive77` is split.
/// A word with more is a digest or an id, and stays whole.
const MAX_CHANGES: usize = 2;

/// Words between a noun and its number.
const FILLERS: [&str; 6] = ["no", "nr", "num", "number", "nummer", "num\u{e9}ro"];

/// A word of a text, unchanged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordToken<'t> {
    pub(crate) text: &'t str,
    /// The text between this word and the previous one.
    pub(crate) gap: &'t str,
}

impl WordToken<'_> {
    pub(crate) fn is_number(&self) -> bool {
        self.text.starts_with(|first: char| first.is_ascii_digit())
    }

    pub(crate) fn is_capitalised(&self) -> bool {
        self.text.starts_with(char::is_uppercase)
    }

    /// Whether the word is short and in capitals, as `HR` or `IT`.
    pub(crate) fn is_acronym(&self) -> bool {
        (2..=5).contains(&self.text.len())
            && self.text.bytes().all(|byte| byte.is_ascii_uppercase())
    }

    pub(crate) fn is_filler(&self) -> bool {
        FILLERS
            .iter()
            .any(|filler| self.text.eq_ignore_ascii_case(filler))
    }
}

/// Returns the words of a line as written.
pub(crate) fn tokens(line: &str) -> Vec<WordToken<'_>> {
    let mut tokens = Vec::new();
    let (mut from, mut end) = (0, 0);
    while let Some(start) = line[from..].find(char::is_alphanumeric) {
        let start = from + start;
        let whole = &line[start..start + length(&line[start..])];
        let gap = &line[end..start];
        split(whole, gap, &mut tokens);
        end = start + whole.len();
        from = end;
    }
    tokens
}

/// Returns the bytes of the word at the beginning of a text.
fn length(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    let mut before = None;
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let is_inside = match character {
            _ if stands_alone(character) => {
                return if at == 0 { character.len_utf8() } else { at };
            }
            _ if character.is_alphanumeric() => true,
            '.' | ',' | ':' | '\'' | '\u{2019}' if is_digit(before) => is_digit(next),
            '\'' | '\u{2019}' => next.is_some_and(char::is_alphabetic),
            // An accent that stands behind its letter.
            '\u{300}'..='\u{36f}' => true,
            _ => false,
        };
        if !is_inside {
            return at;
        }
        before = Some(character);
    }
    text.len()
}

fn is_digit(character: Option<char>) -> bool {
    character.is_some_and(|character| character.is_ascii_digit())
}

/// Splits a word between letters and digits, unless it is an id.
fn split<'t>(whole: &'t str, gap: &'t str, tokens: &mut Vec<WordToken<'t>>) {
    let is_letter = |character: char| character.is_alphabetic();
    let mut cuts = Vec::new();
    let mut before = None;
    for (at, character) in whole.char_indices() {
        let changes = before.is_some_and(|before| {
            is_letter(before) && character.is_ascii_digit()
                || before.is_ascii_digit() && is_letter(character)
        });
        if changes {
            cuts.push(at);
        }
        before = Some(character);
    }
    if cuts.len() > MAX_CHANGES {
        cuts.clear();
    }
    let mut from = 0;
    for to in cuts.into_iter().chain([whole.len()]) {
        let text = searched(&whole[from..to]);
        let gap = if from == 0 { gap } else { "" };
        tokens.push(WordToken { text, gap });
        from = to;
    }
}

/// Returns the part of a word that is indexed.
fn searched(word: &str) -> &str {
    let end = word.char_indices().nth(MAX_WORD_CHARS);
    &word[..end.map_or(word.len(), |(at, _)| at)]
}

/// Whether a character belongs to a script that is written without spaces.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{20000}'..='\u{3ffff}')
        && character.is_alphanumeric()
}
