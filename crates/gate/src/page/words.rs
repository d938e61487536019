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
pub(super) enum WordClass {
    Drops,
    Commits,
    Deletes,
    Authorises,
    Pays,
}

/// The words of the data file, folded. Those of secrets have no class.
#[derive(Default)]
struct WordTable {
    /// Words and phrases by their first word, with the other words.
    words: HashMap<String, Vec<Phrase>>,
    /// Letters of scripts that set no spaces.
    anywhere: Vec<(String, Option<WordClass>)>,
}

/// The words after a first word, and the meaning of the whole phrase.
struct Phrase {
    rest: Vec<String>,
    class: Option<WordClass>,
    place: PhrasePlace,
}

/// A place in a name at which a phrase counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PhrasePlace {
    Anywhere,
    /// As the first word of a name that is an order.
    First,
    Whole,
}

/// Maximum number of words of a link's name that is an order: `Delete row 4`.
const ORDER: usize = 4;

/// First words of a title that describes something and is not an order, folded.
const ABOUT: [[&str; 2]; 8] = [
    ["how", "to"],
    ["how", "do"],
    ["how", "can"],
    ["wie", "man"],
    ["wie", "kann"],
    ["comment", "faire"],
    ["como", "se"],
    ["come", "si"],
];

/// Orders that are nouns before a number: `Order 4711`.
const NUMBERED: [&str; 3] = ["order", "post", "book"];

/// Signs and codes of currencies, folded.
const CURRENCIES: [&str; 20] = [
    "€", "$", "£", "¥", "₹", "₽", "₩", "₺", "₴", "eur", "usd", "gbp", "chf", "jpy", "sek", "nok",
    "dkk", "pln", "czk", "inr",
];

static TABLE: LazyLock<WordTable> = LazyLock::new(|| {
    let mut table = WordTable::default();
    for (class, _, entries) in lines() {
        for entry in entries.split(',') {
            let entry = entry.trim();
            let place = match entry.chars().next() {
                Some('^') => PhrasePlace::First,
                Some('=') => PhrasePlace::Whole,
                _ => PhrasePlace::Anywhere,
            };
            let entry = fold(entry);
            if entry.chars().any(stands_in_words) {
                table.anywhere.push((squashed(&entry), class));
                continue;
            }
            let mut words = words(&entry).map(str::to_owned);
            if let Some(first) = words.next() {
                let known = table.words.entry(first).or_default();
                known.push(Phrase {
                    rest: words.collect(),
                    class,
                    place,
                });
            }
        }
    }
    table
});

/// Returns the class (`None` for secrets), language and words of each line.
fn lines() -> impl Iterator<Item = (Option<WordClass>, &'static str, &'static str)> {
    include_str!("words.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| {
            let (class, rest) = line.split_once(' ')?;
            let (language, words) = rest.split_once("  ")?;
            let class = match class {
                "drops" => Some(WordClass::Drops),
                "commits" => Some(WordClass::Commits),
                "pays" => Some(WordClass::Pays),
                "deletes" => Some(WordClass::Deletes),
                "authorises" => Some(WordClass::Authorises),
                _ => None,
            };
            Some((class, language, words))
        })
}

/// The name of a control, read.
#[derive(Debug, Default)]
pub(super) struct Label {
    /// The most serious meaning of any of its words.
    pub(super) class: Option<WordClass>,
    /// Meaning of the name as a whole, used if no single word has a meaning.
    pub(super) class_of_the_whole: Option<WordClass>,
    /// Meaning of its first words, if the name is as short as an order.
    pub(super) class_of_the_order: Option<WordClass>,
    /// Whether the name contains an amount of money.
    pub(super) has_amount: bool,
    /// Whether the name is that of a field for a secret.
    pub(super) is_secret: bool,
    /// Whether the name has letters, all from scripts that the table knows.
    pub(super) is_readable: bool,
    /// Whether the name has letters from other scripts.
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
        if name.contains(['🗑', '🚮']) {
            label.says(Some(WordClass::Deletes), true, true);
        }
        let folded = fold(name);
        let whole: Vec<&str> = words(&folded).collect();
        // A picture often says the same as the words beside it.
        let (half, rest) = whole.split_at(whole.len() / 2);
        let whole = if half == rest { half.to_vec() } else { whole };
        label.read(&whole);
        // `payNow` is two words, `pay_now` is anyway.
        let apart = fold(&humps_apart(&plain));
        if apart != folded {
            label.read(&words(&apart).collect::<Vec<_>>());
        }
        label.read_spelt(&whole);
        label.read_unspaced(&squashed(&folded));
        label.read_amount(&folded);
        label
    }

    /// Reads amounts of money: whoever sends or books one, pays.
    fn read_amount(&mut self, folded: &str) {
        let has_digit = folded.chars().any(|c| c.is_ascii_digit());
        let mut codes = folded.split(|c: char| !c.is_alphabetic());
        let has_code = codes.any(|code| CURRENCIES.contains(&code));
        let has_sign = CURRENCIES[..9].iter().any(|sign| folded.contains(sign));
        self.has_amount = has_digit && (has_code || has_sign);
        for class in [&mut self.class, &mut self.class_of_the_order] {
            if self.has_amount && *class == Some(WordClass::Commits) {
                *class = Some(WordClass::Pays);
            }
        }
    }

    fn says(&mut self, class: Option<WordClass>, is_whole: bool, is_order: bool) {
        self.is_secret |= class.is_none();
        self.class = self.class.max(class);
        if is_order {
            self.class_of_the_order = self.class_of_the_order.max(class);
        }
        if is_whole {
            self.class_of_the_whole = self.class_of_the_whole.max(class);
        }
    }

    fn read(&mut self, reading: &[&str]) {
        let is_number = |word: &str| word.bytes().all(|c| c.is_ascii_digit());
        let names_a_thing = match reading {
            // Two of a thing can be ordered.
            [first, number] if number.len() > 2 || *first != "order" => {
                NUMBERED.contains(first) && is_number(number)
            }
            _ => false,
        };
        if names_a_thing || ABOUT.iter().any(|about| reading.starts_with(about)) {
            return;
        }
        for (place, first) in reading.iter().enumerate() {
            let after = &reading[place + 1..];
            for phrase in TABLE.words.get(*first).into_iter().flatten() {
                let rest = &phrase.rest;
                let is_whole = place == 0 && after.len() == rest.len();
                let counts = match phrase.place {
                    PhrasePlace::Anywhere => true,
                    PhrasePlace::First => place == 0,
                    PhrasePlace::Whole => is_whole,
                };
                let fits = after.len() >= rest.len() && rest.iter().zip(after).all(|(a, b)| a == b);
                if counts && fits {
                    let is_order = place == 0 && reading.len() <= ORDER;
                    self.says(phrase.class, is_whole, is_order);
                }
            }
        }
    }

    /// Adds the word spelt by single letters: `P a y  n o w` adds `paynow`.
    fn read_spelt(&mut self, reading: &[&str]) {
        let is_letter = |word: &str| word.chars().count() == 1;
        let runs = reading.chunk_by(|one, next| is_letter(one) && is_letter(next));
        for run in runs.filter(|run| run.len() > 2) {
            let run = run.concat();
            for (first, entries) in &TABLE.words {
                for phrase in entries {
                    let joined = format!("{first}{}", phrase.rest.concat());
                    let is_whole = run == joined;
                    let counts = is_whole || phrase.place == PhrasePlace::Anywhere;
                    if joined.len() > 2 && counts && run.contains(&joined) {
                        self.says(phrase.class, is_whole, false);
                    }
                }
            }
        }
    }

    fn read_unspaced(&mut self, squashed: &str) {
        if squashed.chars().any(stands_in_words) {
            for (entry, class) in &TABLE.anywhere {
                if squashed.contains(entry) {
                    self.says(*class, squashed == entry, false);
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

/// Folds a text to lower case, each letter replaced by the plain letter that it is or looks like.
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

/// Returns the text without accents and invisible characters; wide, bold and circled letters as
/// plain ones.
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

/// Whether a character is Kana or Han.
fn sets_no_spaces(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Whether a character belongs to a script whose words stand within others: Kana, Han, and the
/// parts of Hangul.
fn stands_in_words(c: char) -> bool {
    sets_no_spaces(c) || matches!(c, '\u{1100}'..='\u{11ff}')
}

/// Small letters with the Latin ones that they resemble, after the table of confusable letters of
/// Unicode Technical Standard 39.
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
                let is_read = !OF_OTHER_SCRIPTS.contains(&language);
                assert_eq!(label.is_readable, is_read, "{language} {word}");
                match class {
                    Some(class) => assert!(label.class >= Some(class), "{language} {word}"),
                    None => assert!(label.is_secret, "{language} {word}"),
                }
            }
        }
        assert_eq!(languages.len(), 32, "{languages:?}");
        assert!(languages.values().all(|lines| *lines == 6), "{languages:?}");
        let all = include_str!("words.txt").lines();
        let all = all.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(all.count(), 32 * 6);
    }

    /// Languages whose letters are compared, though a name in them may say more than is known.
    const OF_OTHER_SCRIPTS: [&str; 9] = ["ar", "bg", "el", "fa", "he", "hi", "ko", "ru", "uk"];

    #[test]
    fn words_are_found_however_they_are_dressed() {
        for (name, class) in [
            ("Send", Some(WordClass::Commits)),
            ("SEND NOW!", Some(WordClass::Commits)),
            ("S\u{200b}e\u{ad}n\u{2060}d", Some(WordClass::Commits)),
            ("Ｓｅｎｄ", Some(WordClass::Commits)),
            ("𝐒𝐞𝐧𝐝", Some(WordClass::Commits)),
            ("Ⓢⓔⓝⓓ", Some(WordClass::Commits)),
            ("Sеnd", Some(WordClass::Commits)), // with a Cyrillic е
            ("S e n d", Some(WordClass::Commits)),
            ("S.E.N.D.", Some(WordClass::Commits)),
            ("sendMessage", Some(WordClass::Commits)),
            ("btn_send-1", Some(WordClass::Commits)),
            ("ᴘᴀʏ", Some(WordClass::Pays)),
            ("🇵🇦🇾", Some(WordClass::Pays)),
            ("p\u{e0041}ay", Some(WordClass::Pays)),
            ("payNow", Some(WordClass::Pays)),
            ("P A Y  N O W", Some(WordClass::Pays)),
            ("LÖSCHEN", Some(WordClass::Deletes)),
            ("lo\u{308}schen", Some(WordClass::Deletes)),
            ("ｹﾞｽﾄを削除", Some(WordClass::Deletes)),
            ("Usuń", Some(WordClass::Deletes)),
            ("立即 支付", Some(WordClass::Pays)),
            ("Send and pay", Some(WordClass::Pays)),
            ("Discard changes", Some(WordClass::Drops)),
            ("Discard changes and publish", Some(WordClass::Commits)),
            ("Discard draft", Some(WordClass::Commits)),
            ("Transfer 500 EUR", Some(WordClass::Pays)),
            ("Book for $30", Some(WordClass::Pays)),
            ("Delete Delete", Some(WordClass::Deletes)),
            ("Del", Some(WordClass::Deletes)),
            ("Empty", Some(WordClass::Deletes)),
            ("Show empty rows", None),
            ("Order 4711", None),
            ("Book 1", None),
            ("Order 2", Some(WordClass::Commits)),
            ("Order 4711 now", Some(WordClass::Commits)),
            ("How to pay", None),
            ("Pay, and how to", Some(WordClass::Pays)),
            ("Force push", Some(WordClass::Deletes)),
            ("🗑", Some(WordClass::Deletes)),
            ("icon fa-trash", Some(WordClass::Deletes)),
            ("Yes", Some(WordClass::Commits)),
            ("Yes, show more", None),
            ("Grant admin rights", Some(WordClass::Authorises)),
            ("Удалить", Some(WordClass::Deletes)),
            ("Оплатить заказ", Some(WordClass::Pays)),
            ("계정 삭제하기", Some(WordClass::Deletes)),
            ("حذف", Some(WordClass::Deletes)),
            ("हटाएं", Some(WordClass::Deletes)),
            ("Διαγραφή", Some(WordClass::Deletes)),
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
