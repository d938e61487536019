//! Removes from a text what programs undo before they look for links in it: entities, escapes and
//! tags.

/// Replacement of unknown entities, which may stand for any letter.
pub(crate) const ANY_LETTER: char = '\u{fffd}';

/// Maximum number of times that entities are decoded: what a program decodes may have been encoded
/// before.
const ROUNDS: usize = 3;

/// Maximum length of the name of an entity; the longest of HTML has 31 letters.
const MAX_ENTITY: usize = 32;

/// Maximum length in bytes of a comment that is removed.
const MAX_COMMENT: usize = 1_000;

/// Entities that occur in addresses, and usual ones that end them.
#[rustfmt::skip]
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'), ("AMP", '&'), ("lt", '<'), ("LT", '<'), ("gt", '>'), ("GT", '>'), ("quot", '"'),
    ("QUOT", '"'), ("apos", '\''), ("Tab", '\t'), ("NewLine", '\n'), ("excl", '!'), ("num", '#'),
    ("dollar", '$'), ("percnt", '%'), ("lpar", '('), ("rpar", ')'), ("ast", '*'), ("midast", '*'),
    ("plus", '+'), ("comma", ','), ("period", '.'), ("sol", '/'), ("colon", ':'), ("semi", ';'),
    ("equals", '='), ("quest", '?'), ("commat", '@'), ("lsqb", '['), ("lbrack", '['),
    ("bsol", '\\'), ("rsqb", ']'), ("rbrack", ']'), ("Hat", '^'), ("lowbar", '_'),
    ("UnderBar", '_'), ("grave", '`'), ("DiacriticalGrave", '`'), ("lcub", '{'), ("lbrace", '{'),
    ("verbar", '|'), ("vert", '|'), ("VerticalLine", '|'), ("rcub", '}'), ("rbrace", '}'),
    ("shy", '\u{ad}'), ("ZeroWidthSpace", '\u{200b}'), ("NegativeThinSpace", '\u{200b}'),
    ("NegativeMediumSpace", '\u{200b}'), ("NegativeThickSpace", '\u{200b}'),
    ("NegativeVeryThinSpace", '\u{200b}'), ("zwj", '\u{200d}'), ("zwnj", '\u{200c}'),
    ("lrm", '\u{200e}'), ("rlm", '\u{200f}'), ("NoBreak", '\u{2060}'),
    ("InvisibleTimes", '\u{2062}'), ("it", '\u{2062}'), ("InvisibleComma", '\u{2063}'),
    ("ic", '\u{2063}'), ("ApplyFunction", '\u{2061}'), ("af", '\u{2061}'), ("nbsp", ' '),
    ("ensp", ' '), ("emsp", ' '), ("thinsp", ' '), ("hairsp", ' '), ("ndash", '–'), ("mdash", '—'),
    ("hellip", '…'), ("bull", '•'), ("middot", '·'), ("lsquo", '‘'), ("rsquo", '’'), ("ldquo", '“'),
    ("rdquo", '”'), ("laquo", '«'), ("raquo", '»'), ("copy", '©'), ("reg", '®'), ("trade", '™'),
    ("deg", '°'), ("euro", '€'), ("pound", '£'), ("sect", '§'), ("times", '×'), ("rarr", '→'),
    ("larr", '←'),
];

/// Entities that programs decode without a semicolon, too.
const BARE: &[&str] = &[
    "amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT", "nbsp", "shy",
];

/// Tags that end no word: what stands on both sides of them is read as one.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "em", "font", "i", "ins", "kbd", "mark",
    "s", "samp", "small", "span", "strong", "sub", "sup", "tt", "u", "var", "wbr",
];

/// Returns a text with its entities decoded, unknown ones as [`ANY_LETTER`].
pub(crate) fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..ROUNDS {
        if !text.contains('&') {
            break;
        }
        let next = decoded_once(&text);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn decoded_once(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let inner = &rest[at + 1..];
        let (c, taken) = match inner.strip_prefix('#') {
            Some(number) => numeric(number).map_or(('&', 0), |(c, taken)| (c, taken + 1)),
            None => named(inner).unwrap_or(('&', 0)),
        };
        out.push(c);
        rest = &inner[taken..];
    }
    out.push_str(rest);
    out
}

/// Parses the text after `&#`: the character, and how many bytes it takes.
fn numeric(text: &str) -> Option<(char, usize)> {
    let (digits, radix, before) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16, 1),
        None => (text, 10, 0),
    };
    let length = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let number = digits[..length].trim_start_matches('0');
    let c = char::from_u32(u32::from_str_radix(number, radix).ok()?)?;
    let end = usize::from(digits[length..].starts_with(';'));
    Some((c, before + length + end))
}

/// Parses the text after `&`: the character, and how many bytes it takes.
fn named(text: &str) -> Option<(char, usize)> {
    let length = text
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    let known = |name: &str| {
        ENTITIES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, c)| *c)
    };
    if (1..=MAX_ENTITY).contains(&length) && text[length..].starts_with(';') {
        let c = known(&text[..length]).unwrap_or(ANY_LETTER);
        return Some((c, length + 1));
    }
    let bare = BARE.iter().find(|name| text.starts_with(**name))?;
    Some((known(bare)?, bare.len()))
}

/// Returns a text with the escapes of styles, scripts, JSON and markdown decoded.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (c, taken) = escape(rest).unwrap_or(('\\', 0));
        out.push(c);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// Parses the text after a backslash: the character, and how many bytes it takes.
fn escape(text: &str) -> Option<(char, usize)> {
    let hex = |text: &str, most: usize| {
        let digits = text.bytes().take(most).take_while(u8::is_ascii_hexdigit);
        digits.count()
    };
    let read = |digits: &str| char::from_u32(u32::from_str_radix(digits, 16).ok()?);
    let first = text.chars().next()?;
    match first {
        'n' | 'r' | 't' => Some((' ', 1)),
        'u' if text[1..].starts_with('{') => {
            let length = hex(&text[2..], 6);
            let end = usize::from(text[2 + length..].starts_with('}'));
            Some((read(&text[2..2 + length])?, 2 + length + end))
        }
        'u' if hex(&text[1..], 4) == 4 => Some((read(&text[1..5])?, 5)),
        'x' if hex(&text[1..], 2) == 2 => Some((read(&text[1..3])?, 3)),
        c if c.is_ascii_hexdigit() => {
            // In a style, white space may end the digits.
            let length = hex(text, 6);
            let end = usize::from(text[length..].starts_with([' ', '\t', '\n']));
            Some((read(&text[..length])?, length + end))
        }
        c if c.is_ascii_punctuation() => Some((c, 1)),
        _ => None,
    }
}

/// Returns a text without comments, and without the tags that end no word.
pub(crate) fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match rest.strip_prefix("<!--") {
            Some(comment) => end_of_comment(comment).map(|end| end + 7),
            None => inline_tag(rest),
        };
        if taken.is_none() {
            out.push('<');
        }
        rest = &rest[taken.unwrap_or(1)..];
    }
    out.push_str(rest);
    out
}

/// Returns the length of the tag at the beginning of a text, unless it separates words.
fn inline_tag(text: &str) -> Option<usize> {
    let name = text[1..].trim_start_matches('/');
    let length = name.find(|c: char| !c.is_ascii_alphanumeric())?;
    let name = name[..length].to_ascii_lowercase();
    let end = text[1..]
        .find(['<', '>'])
        .filter(|end| text[1 + end..].starts_with('>'))?;
    INLINE.contains(&&*name).then_some(end + 2)
}

fn end_of_comment(text: &str) -> Option<usize> {
    let near = &text.as_bytes()[..text.len().min(MAX_COMMENT)];
    near.windows(3).position(|bytes| bytes == b"-->")
}

/// Removes tabs and line ends from quoted attributes of a text, as browsers do in addresses.
pub(crate) fn with_whole_attributes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = None;
    for c in text.chars() {
        match within {
            Some(_) if matches!(c, '\t' | '\n' | '\r') => continue,
            Some(quote) if c == quote => within = None,
            None if matches!(c, '"' | '\'') && out.trim_end().ends_with('=') => within = Some(c),
            Some(_) | None => {}
        }
        out.push(c);
    }
    out
}
