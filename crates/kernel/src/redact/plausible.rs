//! Decides whether a value is a secret, once a name says that it could be.
//!
//! Quoted values and `.env` lines count as secrets; a bare word must look like one, because code
//! and prose put ordinary words in the same places.

use super::{
    names::{NameClass, class_of},
    pass::MIN_VALUE_BYTES,
};

/// Maximum length in bytes of a placeholder or a name of a variable.
const MAX_WORD_BYTES: usize = 64;
/// Minimum number of words in a phrase from which keys are derived.
const MIN_PHRASE_WORDS: usize = 12;
/// Placeholders in the place of a secret.
const PLACEHOLDERS: &str = "\
    string str number integer boolean object optional required option hidden redacted masked \
    invalid incorrect missing expired unknown default undefined changeme changeit placeholder \
    example sample dummy enabled disabled false bearer basic credentials notset nullptr uint64 \
    uint32 int64 float64 varchar username pass removed omitted unset nullable readonly encrypted \
    protected generated todo tbd";
/// Prefixes of values that name the place of the secret.
const REFERENCES: [&str; 17] = [
    "op://",
    "vault:",
    "env:",
    "env.",
    "file:",
    "ref+",
    "secret://",
    "secretref:",
    "arn:aws:",
    "ssm:",
    "awssm:",
    "sm://",
    "keyring:",
    "enc[",
    "!vault",
    "@microsoft.keyvault",
    "process.env",
];
/// Words of sentences. A phrase that was chosen as a password mostly has none of them.
const SENTENCE: &str = "\
    a an the is are was be been must may can could will would shall should has have had do does \
    did not no and or but if then else when while for from to of in on at by with without as than \
    it its this that these those you your yours we our my me i he she they them their here there \
    least most minimum maximum characters digits letters long short please enter type choose \
    required optional invalid incorrect wrong forgot reset change changed new old same see use \
    used using above below none null only also again \
    bitte ihr ihre dein deine das der die den ist und oder nicht mit mindestens eingeben \
    votre vos le la les est et ou pas avec entrez saisissez au moins \
    su tu el los y o con ingrese introduzca sua seu por favor il tuo inserisci";
/// Operators between values in code.
const OPERATORS: [&str; 16] = [
    "|", "||", "+", "-", "=", "==", "!=", "?", ":", "??", "&&", "&", "*", "/", "=>", "->",
];
/// Names of algorithms, which occur beside passwords and have digits.
const ALGORITHMS: [&str; 16] = [
    "sha", "md5", "md4", "base64", "base32", "argon2", "bcrypt", "scrypt", "pbkdf", "oauth", "utf",
    "aes", "rsa", "hs256", "rs256", "totp",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSyntax {
    /// A line `NAME=value`, which shells and `.env` files read.
    Environment,
    /// A value in quotation marks, between tags, or in a block of its own.
    Quoted,
    /// The rest of a line that begins with the name, as in a setting.
    Line,
    Bare {
        /// Whether nothing follows the value on its line.
        ends_line: bool,
    },
    /// A word behind the name, with only white space or `is` between.
    Said,
}

/// Whether a value of this shape, beside a name of this class, is a secret.
pub(super) fn plausible(value: &str, class: NameClass, shape: ValueSyntax) -> bool {
    if value.len() < MIN_VALUE_BYTES || is_placeholder(value) {
        return false;
    }
    let digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let special = value.contains(['!', '@', '#', '%', '^', '*']);
    let phrase = value.contains(char::is_whitespace);
    if class == NameClass::Phrase {
        let plain = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase());
        return value.split_whitespace().count() >= MIN_PHRASE_WORDS
            && value.split_whitespace().all(plain);
    }
    match shape {
        ValueSyntax::Environment => true,
        ValueSyntax::Quoted | ValueSyntax::Line if phrase => {
            let several = value.split_whitespace().count() > 2;
            let odd = value.split_whitespace().any(is_odd);
            let chosen = class == NameClass::Password && (odd || !reads_as_prose(value));
            chosen && (shape == ValueSyntax::Quoted || digit || special || several)
        }
        ValueSyntax::Quoted => true,
        ValueSyntax::Line | ValueSyntax::Bare { .. } | ValueSyntax::Said if is_code(value) => false,
        ValueSyntax::Said if phrase => false,
        ValueSyntax::Said => match class {
            NameClass::Password => (digit || special) && letter && !is_about_passwords(value),
            NameClass::Token | NameClass::Phrase => {
                value.len() >= 20 && digit && has_mixed_case(value) && !value.starts_with('/')
            }
        },
        ValueSyntax::Line | ValueSyntax::Bare { .. } => match class {
            NameClass::Password => {
                let ends_line = !matches!(shape, ValueSyntax::Bare { ends_line: false });
                let lower = value.starts_with(|c: char| c.is_ascii_lowercase());
                digit || special || (ends_line && lower && !value.contains('_'))
            }
            NameClass::Token | NameClass::Phrase => {
                let made = value.len() >= 8 && digit && letter && !is_numbered_word(value);
                made && class_of(value).is_none()
            }
        },
    }
}

/// Whether a value is a label, a message, a comment or an expression: a text with a sentence's
/// words or an operator.
fn reads_as_prose(value: &str) -> bool {
    let is_word = |word: &str| {
        let word = word
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        SENTENCE.split_ascii_whitespace().any(|known| known == word)
            || class_of(&word).is_some()
            || PLACEHOLDERS.split(' ').any(|known| known == word)
    };
    let ends = value
        .trim_end()
        .ends_with(['.', ':', '?', '…', ';', '{', '(']);
    let code = value.split_whitespace().next().is_some_and(is_code);
    ends || code
        || value
            .split_whitespace()
            .any(|word| is_word(word) || OPERATORS.contains(&word) || is_call(word))
}

/// Whether a word has digits among its letters, unlike words of a sentence.
fn is_odd(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    letters.bytes().any(|b| b.is_ascii_digit())
        && letters.bytes().any(|b| b.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric())
        && !is_about_passwords(word)
}

/// Whether a word is a name with an opening bracket behind it.
fn is_call(word: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || "_.:$!".contains(c);
    word.find(['(', '[', '{', '<']).is_some_and(|at| {
        word[..at].chars().all(name) && !word.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a value is code and not a chosen value: a call, indexing, generics, a path, a member, a
/// number with a type.
fn is_code(value: &str) -> bool {
    let member = value.split_once('.').is_some_and(|(first, rest)| {
        let word = |c: char| c.is_ascii_alphabetic() || c == '_';
        first.len() <= 10 && first.chars().all(word) && rest.starts_with(word)
    });
    let number = value.trim_start_matches(|c: char| c.is_ascii_digit() || "_-".contains(c));
    let sized = number.len() < value.len()
        && [
            "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "isize", "usize",
        ]
        .contains(&number);
    member
        || sized
        || is_call(value)
        || ["0x", "!0", "!1"]
            .iter()
            .any(|start| value.starts_with(start))
        || value.starts_with(['*', '&', '(', '[', '{', '<', '|', '\\', '='])
        || ["::", "->", "=>", "://", "$(", "${", "()"]
            .iter()
            .any(|sign| value.contains(sign))
}

/// Whether a value is letters and then a small number, like `base64_url2`.
fn is_numbered_word(value: &str) -> bool {
    let word = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.len() - word.len() <= 3 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Whether a value is about passwords: an algorithm, a version, the name of something else.
fn is_about_passwords(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let version = lower.trim_start_matches('v');
    ALGORITHMS.iter().any(|name| lower.starts_with(name))
        || version
            .bytes()
            .all(|b| b.is_ascii_digit() || b == b'.' || b == b'-')
        || lower.contains('_')
        || lower.contains('/')
        || lower.starts_with('$')
        || lower.ends_with('?')
        || class_of(value).is_some()
}

pub(super) fn has_mixed_case(value: &str) -> bool {
    let upper_inside = value.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
    upper_inside && value.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Whether a value only marks the place of a secret: a variable, a template, a word for it, a
/// reference to where it is stored.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if REFERENCES.iter().any(|start| lower.starts_with(start)) {
        return true;
    }
    if value.len() > MAX_WORD_BYTES {
        return false;
    }
    let first = value.chars().next().unwrap_or('x');
    let surrounded = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    // A value like `next_page_token` or `challengePassword` is itself a name for a secret.
    let words = value
        .bytes()
        .all(|b| b.is_ascii_alphabetic() || b"_-. ".contains(&b));
    value.chars().all(|c| c == first)
        || surrounded('<', '>')
        || surrounded('[', ']')
        || surrounded('%', '%')
        || is_variable(value)
        || value.starts_with('{')
        || value.contains("${")
        || value.contains("{{")
        || value.ends_with("...")
        || value.ends_with('…')
        || lower.starts_with("xxx")
        || value.starts_with("***")
        || is_path(value)
        || is_constant(value)
        || is_choice(&lower)
        || is_pattern_or_colour(value)
        || lower.starts_with("http://")
        || lower.starts_with("https://")
        || PLACEHOLDERS.split(' ').any(|word| word == plain)
        || lower.starts_with("your")
        || words
            && ["example", "placeholder", "change", "replace", "insert"]
                .iter()
                .any(|word| lower.contains(word))
        || words && class_of(value).is_some()
}

/// Whether a value is the name of a constant, like `MAX_TOKEN_0`.
fn is_constant(value: &str) -> bool {
    let part = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    value.contains('_') && value.bytes().all(part)
}

/// Whether a value is a choice, like `required|min:8` or `true/false`.
fn is_choice(lower: &str) -> bool {
    let is_known = |part: &str| {
        PLACEHOLDERS
            .split_ascii_whitespace()
            .any(|word| word == part)
    };
    lower.contains(['|', '/']) && lower.split(['|', '/']).any(is_known)
}

/// Whether a value is a pattern or a colour, like `#ccddee` or `[^\W\d]\w*`.
fn is_pattern_or_colour(value: &str) -> bool {
    let colour = value
        .strip_prefix('#')
        .is_some_and(|digits| digits.len() <= 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    colour
        || ["(?", "[^", "\\w", "\\d", "=\""]
            .iter()
            .any(|sign| value.contains(sign))
}

/// Whether a value is a variable: `$NAME`, `$env:NAME`, `${…}`, `$(…)`.
fn is_variable(value: &str) -> bool {
    let Some(name) = value.strip_prefix('$') else {
        return false;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:.->[]'\"".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    name.starts_with(['{', '(']) || (starts && name.chars().all(plain))
}

/// Whether a value is the path of a file with the secret, like `/run/secrets/db`.
fn is_path(value: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-./".contains(&b);
    let starts = ["/", "./", "../", "~/"]
        .iter()
        .any(|start| value.starts_with(start));
    starts && value.matches('/').count() > 1 && value.trim_start_matches('~').bytes().all(plain)
}
