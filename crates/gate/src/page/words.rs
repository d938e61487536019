//! Vocabulary that tells from the name of a control what it does, in several languages.
//!
//! Names are a page's own words. So they are a reason for more care: whoever means harm can name a
//! button as they like, and what such a button then starts is judged by the form around it and by
//! where it is. Only of a dialog about what was not saved is a yes taken at its word: the page could
//! do the same without a dialog.

use std::{collections::HashMap, sync::LazyLock};

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Meaning of a word. The later class wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Drops,
    Commits,
    Deletes,
    Authorises,
    Pays,
}

/// The words of the data file, folded. Those of secrets have no class.
#[derive(Default)]
struct Table {
    /// Words and phrases by their first word, with the rest.
    words: HashMap<String, Vec<Phrase>>,
    /// Letters of scripts that set no spaces.
    anywhere: Vec<(String, Option<Class>)>,
}

/// The words after a first word, and the meaning of all of them together.
type Phrase = (Vec<String>, Option<Class>);

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for (class, _, entries) in lines() {
        for entry in entries.split(',') {
            let entry = fold(entry);
            if entry.chars().any(sets_no_spaces) {
                table.anywhere.push((squashed(&entry), class));
                continue;
            }
            let mut words = words(&entry).map(str::to_owned);
            if let Some(first) = words.next() {
                let known = table.words.entry(first).or_default();
                known.push((words.collect(), class));
            }
        }
    }
    table
});

/// Class (`None` for secrets), language and words of each line.
fn lines() -> impl Iterator<Item = (Option<Class>, &'static str, &'static str)> {
    include_str!("words.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| {
            let (class, rest) = line.split_once(' ')?;
            let (language, words) = rest.split_once("  ")?;
            let class = match class {
                "drops" => Some(Class::Drops),
                "commits" => Some(Class::Commits),
                "pays" => Some(Class::Pays),
                "deletes" => Some(Class::Deletes),
                "authorises" => Some(Class::Authorises),
                _ => None,
            };
            Some((class, language, words))
        })
}

/// The name of a control, read.
#[derive(Debug, Default)]
pub(super) struct Label {
    /// The gravest thing that it says anywhere.
    pub(super) class: Option<Class>,
    /// Meaning of the name as a whole, if no word says anything else.
    pub(super) class_of_the_whole: Option<Class>,
    /// It names a field for a secret.
    pub(super) is_secret: bool,
    /// It has letters, all of which belong to scripts that the table knows.
    pub(super) is_readable: bool,
    /// It has letters of others.
    pub(super) is_foreign: bool,
}

impl Label {
    pub(super) fn new(name: &str) -> Self {
        let plain = undecorated(name);
        let is_known = |letter: char| is_latin(letter) || sets_no_spaces(letter);
        let mut letters = plain.chars().filter(|c| c.is_alphabetic()).peekable();
        let is_empty = letters.peek().is_none();
        let is_foreign = !letters.all(is_known);
        let mut label = Self {
            is_readable: !is_empty && !is_foreign,
            is_foreign,
            ..Self::default()
        };
        let folded = fold(name);
        let whole: Vec<&str> = words(&folded).collect();
        label.read(&whole);
        // `payNow` is two words, `pay_now` is anyway.
        let apart = fold(&humps_apart(&plain));
        if apart != folded {
            label.read(&words(&apart).collect::<Vec<_>>());
        }
        label.read_spelt(&whole);
        label.read_unspaced(&squashed(&folded));
        label
    }

    fn says(&mut self, class: Option<Class>, is_whole: bool) {
        self.is_secret |= class.is_none();
        self.class = self.class.max(class);
        if is_whole {
            self.class_of_the_whole = self.class_of_the_whole.max(class);
        }
    }

    fn read(&mut self, reading: &[&str]) {
        for (place, first) in reading.iter().enumerate() {
            let after = &reading[place + 1..];
            for (rest, class) in TABLE.words.get(*first).into_iter().flatten() {
                let fits = after.len() >= rest.len() && rest.iter().zip(after).all(|(a, b)| a == b);
                if fits {
                    self.says(*class, place == 0 && after.len() == rest.len());
                }
            }
        }
    }

    /// `P a y  n o w` has the run `paynow`.
    fn read_spelt(&mut self, reading: &[&str]) {
        let is_letter = |word: &str| word.chars().count() == 1;
        let runs = reading.chunk_by(|one, next| is_letter(one) && is_letter(next));
        for run in runs.filter(|run| run.len() > 2) {
            let run = run.concat();
            for (first, entries) in &TABLE.words {
                for (rest, class) in entries {
                    let joined = format!("{first}{}", rest.concat());
                    if joined.len() > 2 && run.contains(&joined) {
                        self.says(*class, run == joined);
                    }
                }
            }
        }
    }

    fn read_unspaced(&mut self, squashed: &str) {
        if squashed.chars().any(sets_no_spaces) {
            for (entry, class) in &TABLE.anywhere {
                if squashed.contains(entry) {
                    self.says(*class, squashed == entry);
                }
            }
        }
    }
}

fn words(folded: &str) -> impl Iterator<Item = &str> {
    folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

fn squashed(folded: &str) -> String {
    folded.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn humps_apart(text: &str) -> String {
    let mut all = String::new();
    let mut before_is_small = false;
    for letter in text.chars() {
        if before_is_small && letter.is_uppercase() {
            all.push(' ');
        }
        before_is_small = letter.is_lowercase();
        all.push(letter);
    }
    all
}

/// Returns the text in lower case, with each letter as the plain letter that it is, or looks like.
fn fold(text: &str) -> String {
    let mut folded = String::new();
    for letter in undecorated(text).to_lowercase().chars() {
        match letter {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            other => folded.push(looks_like(other)),
        }
    }
    folded
}

/// Without accents and what is not painted; wide, bold and circled letters as plain ones.
fn undecorated(text: &str) -> String {
    DecomposingNormalizerBorrowed::new_nfkd()
        .normalize_iter(gyrus_text::without_unseen(text).chars())
        .filter(|c| !is_mark(*c))
        .collect()
}

/// Marks over and under letters.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}'
        | '\u{fe20}'..='\u{fe2f}')
}

fn is_latin(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '\u{aa}' | '\u{ba}' | '\u{c0}'..='\u{24f}' | '\u{1d00}'..='\u{1d2b}'
            | '\u{1e00}'..='\u{1eff}' | '\u{1f130}'..='\u{1f189}')
}

/// Kana and Han.
fn sets_no_spaces(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Small letters by the Latin ones that they are taken for, after the table of confusable letters
/// of Unicode Technical Standard 39.
const LOOK_ALIKE: [(char, &str); 26] = [
    ('a', "аαɑᴀ"),
    ('b', "ьвʙƀ"),
    ('c', "сϲᴄ"),
    ('d', "ԁđᴅɗ"),
    ('e', "еεєᴇɛə"),
    ('f', "ꜰƒϝ"),
    ('g', "ɡɢց"),
    ('h', "һнʜհ"),
    ('i', "іιıɪɩ"),
    ('j', "јᴊϳ"),
    ('k', "кκᴋ"),
    ('l', "łʟӏƖǀ"),
    ('m', "мᴍ"),
    ('n', "ηпɴո"),
    ('o', "оοσøᴏօ"),
    ('p', "рρᴘ"),
    ('q', "ԛգ"),
    ('r', "гʀᴦ"),
    ('s', "ѕꜱ"),
    ('t', "тτᴛ"),
    ('u', "υᴜսʋ"),
    ('v', "ѵνᴠ"),
    ('w', "ԝωᴡա"),
    ('x', "хχ"),
    ('y', "уγʏү"),
    ('z', "ᴢʐ"),
];

fn looks_like(letter: char) -> char {
    if letter.is_ascii() {
        return letter;
    }
    // Letters in boxes and the halves of flags, which are not decomposed.
    let boxed = [0x1f150, 0x1f170, 0x1f1e6].into_iter().find_map(|first| {
        let place = u32::from(letter).checked_sub(first)?;
        let place = u8::try_from(place).ok().filter(|place| *place < 26)?;
        Some(char::from(b'a' + place))
    });
    let mut known = LOOK_ALIKE.iter();
    boxed
        .or_else(|| {
            let (plain, _) = known.find(|(_, all)| all.contains(letter))?;
            Some(*plain)
        })
        .unwrap_or(letter)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_language_has_every_class() {
        let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
        for (class, language, words) in lines() {
            *languages.entry(language).or_default() += 1;
            for word in words.split(',') {
                let label = Label::new(word);
                assert!(!label.is_foreign && label.is_readable, "{language} {word}");
                match class {
                    Some(class) => assert!(label.class >= Some(class), "{language} {word}"),
                    None => assert!(label.is_secret, "{language} {word}"),
                }
            }
        }
        let expected = ["de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "zh"];
        assert_eq!(languages.keys().copied().collect::<Vec<_>>(), expected);
        assert!(languages.values().all(|lines| *lines == 6), "{languages:?}");
        let all = include_str!("words.txt").lines();
        let all = all.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(all.count(), 60);
    }

    #[test]
    fn words_are_found_however_they_are_dressed() {
        for (name, class) in [
            ("Send", Some(Class::Commits)),
            ("SEND NOW!", Some(Class::Commits)),
            ("S\u{200b}e\u{ad}n\u{2060}d", Some(Class::Commits)),
            ("Ｓｅｎｄ", Some(Class::Commits)),
            ("𝐒𝐞𝐧𝐝", Some(Class::Commits)),
            ("Ⓢⓔⓝⓓ", Some(Class::Commits)),
            ("Sеnd", Some(Class::Commits)), // with a Cyrillic е
            ("S e n d", Some(Class::Commits)),
            ("S.E.N.D.", Some(Class::Commits)),
            ("sendMessage", Some(Class::Commits)),
            ("btn_send-1", Some(Class::Commits)),
            ("ᴘᴀʏ", Some(Class::Pays)),
            ("🇵🇦🇾", Some(Class::Pays)),
            ("p\u{e0041}ay", Some(Class::Pays)),
            ("payNow", Some(Class::Pays)),
            ("P A Y  N O W", Some(Class::Pays)),
            ("LÖSCHEN", Some(Class::Deletes)),
            ("lo\u{308}schen", Some(Class::Deletes)),
            ("ｹﾞｽﾄを削除", Some(Class::Deletes)),
            ("Usuń", Some(Class::Deletes)),
            ("立即 支付", Some(Class::Pays)),
            ("Send and pay", Some(Class::Pays)),
            ("Discard changes", Some(Class::Drops)),
            ("Discard changes and publish", Some(Class::Commits)),
            ("Discard draft", Some(Class::Commits)),
            ("Sender", None),
            ("Ascend", None),
            ("Payload", None),
            ("Postcode", None),
            ("Next", None),
            ("", None),
        ] {
            assert_eq!(Label::new(name).class, class, "{name}");
        }
    }

    #[test]
    fn letters_of_other_scripts_are_not_read() {
        for (name, readable, foreign) in [
            ("Next", true, false),
            ("Weiter ›", true, false),
            ("次へ", true, false),
            ("下一步", true, false),
            ("Отправить", false, true),
            ("보내기", false, true),
            ("إرسال", false, true),
            ("Nехt", false, true),
            ("→", false, false),
            ("1 2 3", false, false),
            ("", false, false),
            ("\u{200b}", false, false),
        ] {
            let label = Label::new(name);
            assert_eq!(
                (label.is_readable, label.is_foreign),
                (readable, foreign),
                "{name}"
            );
        }
    }
}
