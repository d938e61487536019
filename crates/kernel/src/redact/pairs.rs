//! Values whose name has a place of its own: attributes of tags (`<add key="Password" value="…"/>`,
//! `<input type="password" value="…">`), and pairs (`"name": "DB_PASSWORD", "value": "…"`), as in
//! the settings of containers.

use std::ops::Range;

use regex::Regex;
use serde_json::{Map, Value};

use super::{
    context::{KIND, value_of},
    names::{NameClass, class_of, class_of_label},
    pass::{FreeText, HitName, SecretHit},
    value::{LineBefore, ValuePlace},
};

/// Maximum length in bytes of a text that describes a field.
const MAX_LABEL_BYTES: usize = 80;
/// Matches a tag with a value, or with a name that may be one for a secret. Bounded, as tags of
/// secrets are short.
const TAG: &str = r#"<[A-Za-z][A-Za-z0-9:._-]{0,40}\s[^<>]{1,600}>"#;
const ATTRIBUTE: &str =
    r#"([A-Za-z_:][A-Za-z0-9_:.-]{0,40})\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"#;
/// Matches a name, and behind it the beginning of its value.
const PAIR: &str = r#"(?x-u)
    \b (?: [Nn]ame | [Kk]ey | ParameterKey ) \\? ["']? [\ \t]* [:=] [\ \t]* \\? ["']?
    ([A-Za-z0-9_.-]{2,64}) \\? ["']? (?: [\ \t]* ,? (?: \r?\n | \\n )? [\ \t]* ) \\? ["']?
    (?: [Vv]alue | ParameterValue ) \\? ["']? [\ \t]* [:=] [\ \t]*"#;

/// Keys of the name of a value under a sibling key.
const NAMES: [&str; 4] = ["name", "key", "variable", "parameterkey"];
/// Keys of a text that describes a field.
const LABELS: [&str; 6] = [
    "label",
    "field",
    "element",
    "selector",
    "placeholder",
    "locator",
];
/// Keys that stand for the value, in an object that has the name under another key.
const VALUES: [&str; 5] = ["value", "text", "val", "input", "parametervalue"];

/// Returns the class of an object's value, by the object's own name or the description of its
/// field.
pub(super) fn class_by_sibling(object: &Map<String, Value>) -> Option<NameClass> {
    object.iter().find_map(|(key, value)| {
        let key = key.to_ascii_lowercase();
        let value = value
            .as_str()
            .filter(|value| value.len() <= MAX_LABEL_BYTES)?;
        match () {
            () if NAMES.contains(&&*key) => class_of(value),
            () if LABELS.contains(&&*key) => class_of_label(value),
            () => None,
        }
    })
}

/// Whether `key` names the value of a pair whose other key gives the name.
pub(super) fn is_value(key: &str) -> bool {
    VALUES.iter().any(|value| value.eq_ignore_ascii_case(key))
}

pub(super) struct Pairs {
    tag: Regex,
    attribute: Regex,
    pair: Regex,
}

impl Pairs {
    pub(super) fn new() -> Self {
        let [tag, attribute, pair] = [TAG, ATTRIBUTE, PAIR]
            .map(|pattern| Regex::new(pattern).expect("the pattern is valid"));
        Self {
            tag,
            attribute,
            pair,
        }
    }

    pub(super) fn find(&self, piece: &FreeText<'_>) -> Vec<SecretHit> {
        let tags = self
            .tag
            .find_iter(piece.text)
            .filter_map(|tag| self.in_tag(piece, tag.range()));
        let mut found: Vec<Range<usize>> = tags.collect();
        for captures in self.pair.captures_iter(piece.text) {
            let class = captures.get(1).and_then(|name| class_of(name.as_str()));
            if let Some(at) =
                class.and_then(|class| self.in_pair(piece, captures.get_match().range(), class))
            {
                found.push(at);
            }
        }
        found.sort_unstable_by_key(|at| at.start);
        found.dedup_by(|next, kept| next.start < kept.end);
        let hit = |at| SecretHit {
            at,
            name: HitName::Found(KIND),
        };
        found.into_iter().map(hit).collect()
    }

    /// Whether a line ends with a name whose value would be on the next line.
    pub(super) fn awaits_value(&self, line: &str) -> bool {
        self.pair
            .captures_iter(&format!("{line}\nvalue: "))
            .last()
            .is_some_and(|captures| class_of(&captures[1]).is_some())
    }

    fn in_tag(&self, piece: &FreeText<'_>, tag: Range<usize>) -> Option<Range<usize>> {
        let text = &piece.text[tag.clone()];
        let (mut class, mut value) = (None, None);
        for captures in self.attribute.captures_iter(text) {
            let given = (2..=4).find_map(|group| captures.get(group))?;
            match captures[1].to_ascii_lowercase().as_str() {
                "type" if given.as_str().eq_ignore_ascii_case("password") => {
                    class = Some(NameClass::Password);
                }
                "name" | "key" | "id" | "property" => class = class.or(class_of(given.as_str())),
                "value" => value = Some(tag.start + given.start()..tag.start + given.end()),
                _ => {}
            }
        }
        let class = class?;
        let at = match value {
            Some(at) => at,
            // The text between this tag and the next.
            None => {
                let rest = &piece.text[tag.end..];
                let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
                tag.end..tag.end + line.find("</")?
            }
        };
        let secret = value_of(class, &piece.text[at.clone()])?;
        Some(at.start + secret.start..at.start + secret.end)
    }

    fn in_pair(
        &self,
        piece: &FreeText<'_>,
        pair: Range<usize>,
        class: NameClass,
    ) -> Option<Range<usize>> {
        let quote = piece.text[..pair.start].ends_with(['"', '\'']);
        let settled = pair.start - usize::from(quote);
        let mut before = LineBefore::default();
        before.advance(&piece.text[settled..pair.end], 0, pair.end - settled);
        let place = ValuePlace {
            piece,
            name: pair.start
                + piece.text[pair.clone()]
                    .to_ascii_lowercase()
                    .rfind("value")?,
            start: pair.end,
            settled,
            before,
            separator: ":",
            environment: false,
        };
        let (value, _) = place.values().into_iter().next()?;
        let secret = value_of(class, &piece.text[value.clone()])?;
        Some(value.start + secret.start..value.start + secret.end)
    }
}
