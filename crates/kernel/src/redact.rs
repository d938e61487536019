//! The one place where secrets are removed from text, before a loop, a model, a screen or a journal
//! sees it.
//!
//! There are three passes, each over what the ones before left: values that are known by
//! configuration (literally, and as URLs, base64 and JSON write them), formats that are
//! recognisable as secrets, and values that stand beside a name for a secret. Each becomes a
//! marker, `⟦secret:NAME⟧`. A long random string alone is not a secret: hashes and ids are what
//! agents work with.
//!
//! [`Redactor::reveal`] puts values back. A web page that contains `⟦secret:NAME⟧` can make a model
//! repeat it, so a marker proves nothing: reveal only what has passed the gate, and only where it
//! leaves gyrus. A value that was found in text (not configured) is remembered by this process
//! alone.

mod pass;
mod known;
mod held;
mod formats;
mod pairs;
mod context;
mod value;
mod ends;
mod names;
mod plausible;
mod commands;
mod json;
mod files;
mod key;

use std::{borrow::Cow, collections::HashMap, fmt, ops::Range, sync::Arc};

use gyrus_contract::UnknownSecret;
use parking_lot::RwLock;
use regex::Regex;

pub(crate) use self::pass::TextBefore;
use self::{
    commands::Commands,
    context::SecretContext,
    formats::Formats,
    known::KnownSecrets,
    pairs::Pairs,
    pass::{FreeText, HitName, MARKER_START, SecretHit},
};
pub use self::{
    key::{KeyError, key_in},
    pass::{MIN_VALUE_BYTES, Secret},
};

/// Maximum number of secrets found in text that one process remembers. Further ones are redacted
/// all the same but cannot be revealed.
pub const MAX_FOUND: usize = 10_000;
/// Maximum number of rounds of all passes over one text.
const MAX_ROUNDS: usize = 8;
/// Maximum number of passwords typed by models that one process looks for; the oldest are
/// forgotten.
const MAX_TYPED: usize = 100;
/// Characters by which a line is more than prose: settings, tags, lists of values.
const SYNTAX: [char; 14] = [
    ':', '=', '<', '>', '{', '}', '[', ']', '|', '\\', '\t', '\r', '⟦', '：',
];
/// Quotation marks within which a value may have spaces.
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// The prefix of the names of such passwords.
const TYPED: &str = "typed";
/// Replaces secrets by markers, and markers by secrets.
pub struct Redactor {
    key: [u8; 32],
    marker: Regex,
    known: KnownSecrets,
    formats: Formats,
    pairs: Pairs,
    context: SecretContext,
    commands: Commands,
    /// The found values by the names given to them.
    found: RwLock<HashMap<String, String>>,
    /// The passwords typed by models, which are known from then on.
    typed: RwLock<TypedPasswords>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct TypedPasswords {
    secrets: Vec<Secret>,
    known: Option<Arc<KnownSecrets>>,
}

/// A settled part of the text: an existing marker, or a secret and its marker.
struct TextCut {
    at: Range<usize>,
    marker: Option<String>,
}

impl Redactor {
    /// Creates a redactor for the `known` secrets; of two with one name, the later gets a longer
    /// name. `key` belongs to the state home: under the same key, a found value gets the same name
    /// in every process, and without it nobody can test guesses against the name.
    pub fn new(key: [u8; 32], known: Vec<Secret>) -> Self {
        Self {
            key,
            marker: Regex::new(r"⟦secret:([A-Za-z0-9_.-]{1,128})⟧").expect("the pattern is valid"),
            known: KnownSecrets::new(known, |value| fingerprint(&key, value)),
            formats: Formats::new(),
            pairs: Pairs::new(),
            context: SecretContext::new(),
            commands: Commands::new(),
            found: RwLock::default(),
            typed: RwLock::default(),
        }
    }

    /// Whether a known secret extends beyond the end of a line or of a sentence, so that neither
    /// can be judged before the text is complete.
    pub(crate) fn needs_whole_text(&self) -> bool {
        self.known.spans_lines
    }

    /// Returns the marker for a text that is a secret because of its destination. From then on the
    /// text is redacted everywhere, unless it is so short that it would be found in ordinary words.
    pub(crate) fn conceal(&self, text: &str) -> String {
        if text.is_empty() || text.contains(MARKER_START) {
            return text.to_owned();
        }
        let marker = self.marker_for(text, HitName::Found(TYPED));
        let name = marker[MARKER_START.len()..]
            .trim_end_matches('⟧')
            .to_owned();
        let value = text.to_owned();
        let mut typed = self.typed.write();
        let is_new = typed.secrets.iter().all(|secret| secret.value != value);
        if is_new && value.len() >= MIN_VALUE_BYTES {
            typed.secrets.push(Secret { name, value });
            let first = typed.secrets.len().saturating_sub(MAX_TYPED);
            typed.secrets.drain(..first);
            let known =
                KnownSecrets::new(typed.secrets.clone(), |value| fingerprint(&self.key, value));
            typed.known = Some(Arc::new(known));
        }
        marker
    }

    /// Whether a name is that of a field for a password.
    pub(crate) fn names_password(name: &str) -> bool {
        names::class_of_label(name) == Some(names::NameClass::Password)
    }

    /// Whether the value of a screen's element with this name is secret.
    pub fn shows_secret(&self, name: &str, value: Option<&str>) -> bool {
        let is_secret = |text: &str| matches!(self.redact(text), Cow::Owned(_));
        is_secret(name)
            || value.is_some_and(|value| {
                is_secret(value) || context::value_under(name, value).is_some()
            })
    }

    /// Returns the length in bytes of the part of a text that can be redacted independently of the
    /// rest: whole lines, without one whose secret is on the next, and words of an unfinished line
    /// of prose. The rest of a long line can be split at sentences if it names nothing.
    pub(crate) fn separable(&self, text: &str, long_line: usize) -> usize {
        let held = held::from(text, &self.pairs);
        let text = &text[..held.unwrap_or(text.len())];
        let lines = text.rfind('\n').map_or(0, |at| at + 1);
        let line = &text[lines..];
        let is_plain = !(self.context.names_one(line) || self.commands.names_one(line));
        if held.is_some() || !is_plain {
            return lines;
        }
        let sentences = line.rfind(". ").filter(|_| line.len() >= long_line);
        lines + sentences.map_or(0, |at| at + 2).max(self.words(line))
    }

    /// Returns the length of the words at the beginning of an unfinished line that can be redacted by
    /// themselves: those of prose, in which no name and no syntax gives a meaning to what follows. The
    /// white space behind them stays with the rest, which begins a word then.
    fn words(&self, line: &str) -> usize {
        let has_syntax = line.contains(SYNTAX) || line.contains("login");
        let spans = |known: &KnownSecrets| known.spans_words;
        let is_known = spans(&self.known) || self.typed().is_some_and(|typed| spans(&typed));
        let words = line[..line.rfind(' ').unwrap_or(0)].trim_end_matches(' ');
        let is_open = |quote: char| words.matches(quote).count() % 2 == 1;
        let is_quoted = QUOTES.into_iter().any(is_open);
        if has_syntax || is_known || is_quoted || value::introduces_setting(words) {
            return 0;
        }
        words.len()
    }

    /// Returns the text with markers for secrets; borrowed if there were none. Existing markers are
    /// kept, so redacting twice changes nothing; a marker that contains a value instead of a name
    /// does not count as one.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_after(TextBefore::Nothing, text)
    }

    /// Redacts a text that continues another one, like [`Redactor::redact`].
    pub(crate) fn redact_after<'a>(&self, before: TextBefore, text: &'a str) -> Cow<'a, str> {
        let mut cuts = Vec::new();
        if text.contains(MARKER_START) {
            let markers = self.marker.captures_iter(text);
            cuts.extend(markers.filter_map(|captures| {
                let (whole, name) = (captures.get_match(), &captures[1]);
                let is_name = self.known.value(name).is_some() || self.known.find(name).is_empty();
                is_name.then(|| TextCut {
                    at: whole.range(),
                    marker: None,
                })
            }));
        }
        // A replacement of one pass can change how another reads the text around it.
        for _ in 0..MAX_ROUNDS {
            let settled = cuts.len();
            cuts = self.look_at_all((before, text), cuts);
            if cuts.len() == settled {
                break;
            }
        }
        if cuts.iter().all(|cut| cut.marker.is_none()) {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut end = 0;
        for cut in cuts {
            redacted.push_str(&text[end..cut.at.start]);
            redacted.push_str(cut.marker.as_deref().unwrap_or(&text[cut.at.clone()]));
            end = cut.at.end;
        }
        redacted.push_str(&text[end..]);
        Cow::Owned(redacted)
    }

    fn typed(&self) -> Option<Arc<KnownSecrets>> {
        let typed = self.typed.read();
        typed.known.clone()
    }

    /// Returns the text with every marker replaced by its value. Only for text that leaves gyrus
    /// after the gate: see the module's documentation on planted markers.
    ///
    /// # Errors
    /// Returns an error for a marker whose name this process does not know; nothing is revealed
    /// then.
    pub fn reveal(&self, text: &str) -> Result<String, UnknownSecret> {
        let mut revealed = String::with_capacity(text.len());
        let mut end = 0;
        let found = self.found.read();
        let typed = self.typed();
        for captures in self.marker.captures_iter(text) {
            let (marker, [name]) = captures.extract();
            let at = captures.get_match().start();
            let value = self
                .known
                .value(name)
                .or_else(|| found.get(name).map(String::as_str))
                .or_else(|| typed.as_deref()?.value(name));
            let value = value.ok_or_else(|| UnknownSecret {
                name: name.to_owned(),
            })?;
            revealed.push_str(&text[end..at]);
            revealed.push_str(value);
            end = at + marker.len();
        }
        revealed.push_str(&text[end..]);
        Ok(revealed)
    }

    /// Returns the text with the markers of values that this process found in texts replaced by the
    /// values; `None` if there are none. Configured secrets and typed passwords stay hidden: a page
    /// can make a model repeat their markers.
    pub(crate) fn show_found(&self, text: &str) -> Option<String> {
        let found = self.found.read();
        let typed = self.typed();
        let value = |name: &str| {
            let is_hidden = self.known.value(name).is_some()
                || typed
                    .as_deref()
                    .is_some_and(|typed| typed.value(name).is_some());
            found.get(name).filter(|_| !is_hidden)
        };
        let shown = self
            .marker
            .replace_all(text, |marker: &regex::Captures<'_>| {
                value(&marker[1]).map_or_else(|| marker[0].to_owned(), String::clone)
            });
        (shown != text).then(|| shown.into_owned())
    }

    fn look_at_all(&self, text: (TextBefore, &str), cuts: Vec<TextCut>) -> Vec<TextCut> {
        let formats = &self.formats;
        let cuts = self.look(text, cuts, |piece| self.known.find(piece.text));
        let cuts = match self.typed() {
            None => cuts,
            Some(typed) => self.look(text, cuts, |piece| typed.find(piece.text)),
        };
        let cuts = self.look(text, cuts, |piece| formats.find(piece.text));
        let cuts = self.look(text, cuts, |piece| formats.find_others(piece.text));
        let cuts = self.look(text, cuts, |piece| Formats::find_in_addresses(piece.text));
        let cuts = self.look(text, cuts, |piece| self.pairs.find(piece));
        let cuts = self.look(text, cuts, |piece| self.context.find(piece));
        self.look(text, cuts, |piece| self.commands.find(piece))
    }

    /// Applies one pass to every piece between the cuts, and keeps the cuts in order.
    fn look(
        &self,
        (before, text): (TextBefore, &str),
        cuts: Vec<TextCut>,
        find: impl Fn(&FreeText<'_>) -> Vec<SecretHit>,
    ) -> Vec<TextCut> {
        let mut all = Vec::with_capacity(cuts.len());
        let mut start = 0;
        let end = TextCut {
            at: text.len()..text.len(),
            marker: None,
        };
        for cut in cuts.into_iter().chain([end]) {
            let piece = FreeText {
                text: &text[start..cut.at.start],
                before: if start == 0 { before } else { TextBefore::Text },
                ends_text: cut.at.start == text.len(),
            };
            for hit in find(&piece) {
                let marker = Some(self.marker_for(&piece.text[hit.at.clone()], hit.name));
                all.push(TextCut {
                    at: start + hit.at.start..start + hit.at.end,
                    marker,
                });
            }
            start = cut.at.end;
            if !cut.at.is_empty() {
                all.push(cut);
            }
        }
        all
    }

    fn marker_for(&self, value: &str, name: HitName) -> String {
        let name = match name {
            HitName::Known(name) => name,
            HitName::Found(kind) => self.remember(kind, value),
        };
        format!("{MARKER_START}{name}⟧")
    }

    /// Returns the name of a found value, and records it. The name is longer in the rare case that
    /// another value has it already.
    fn remember(&self, kind: &str, value: &str) -> String {
        let digits = fingerprint(&self.key, value);
        let mut found = self.found.write();
        for length in (6..=digits.len()).step_by(6) {
            let name = format!("{kind}-{}", &digits[..length]);
            let taken = self
                .known
                .value(&name)
                .or_else(|| found.get(&name).map(String::as_str));
            match taken {
                Some(other) if other != value => continue,
                Some(_) => {}
                None if found.len() >= MAX_FOUND => {}
                None => {
                    found.insert(name.clone(), value.to_owned());
                }
            }
            return name;
        }
        format!("{kind}-{digits}")
    }
}

/// Returns hexadecimal digits that only the holder of the key can compute from the value.
fn fingerprint(key: &[u8; 32], value: &str) -> String {
    blake3::keyed_hash(key, value.as_bytes()).to_hex()[..48].to_owned()
}

#[cfg(test)]
mod tests;
