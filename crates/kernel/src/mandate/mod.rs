//! Mandates, and the origins of values.
//!
//! Before anything untrusted is read, a model is shown what the person typed and the tools alone,
//! and states the calls that it means to make ([`check`]). Values that only the work can tell are
//! holes, bound to what an earlier call of the mandate returns. A call that fits one of them, and
//! whose values come from there, passes unasked; every other is judged as ever.
//!
//! Both are read from the journal: the mandate, which call was which of its calls, and what the
//! calls returned. So a resumed run knows the same.

mod check;
mod pattern;
mod question;
mod results;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gyrus_contract::{
    ANY_PART, Aim, ArgumentRole, ArgumentValue, Decision, Digest, EffectId, MeantCall, ToolAction,
    ToolCall, ToolMeaning,
};
use gyrus_text::{folded_name, is_named, is_slip, number_in};
use serde_json::Value;

pub(crate) use self::check::{BrokenMandate, MeantTools, describe, describe_call, read, schema};
use self::pattern::{ANY, ELEMENT, Hole, HolePattern, UP_TO};
pub(crate) use self::question::question;
use crate::{
    CallEnd, Entry, GateVerdict, Mandate, MandatedCall, Stop, Times, ToolResulted, log::RunLog,
    runs::entries,
};

/// Maximum number of calls of a kind that goes to each of several places.
const MAX_EACH: usize = 50;

/// Maximum number of remembered leaves; values of later ones have no source.
const MAX_LEAVES: usize = 500_000;

/// Maximum number of sources of one value that are reported.
const MAX_SOURCES: usize = 3;

/// The mandate in force, and the values that the run has read.
#[derive(Debug, Default)]
pub(crate) struct Provenance {
    /// The number of the next entry to read.
    next: u64,
    mandate: Mandate,
    /// The calls found to be in the mandate, each with its id there and its destinations.
    made: BTreeMap<EffectId, EarlierCall>,
    /// Calls that have no result yet, by effect.
    open: BTreeMap<EffectId, ToolCall>,
    /// The leaves of all results, by their folded text.
    fields: HashMap<String, Vec<FieldSource>>,
    leaves: usize,
    /// The fields of each result.
    names: BTreeMap<EffectId, BTreeSet<String>>,
    /// The leaves that are numbers.
    numbers: Vec<(f64, FieldSource)>,
    /// The tools that only read, with the meanings of their arguments.
    reading: BTreeMap<String, ToolMeaning>,
    /// The tools that returned something, with the result.
    returned: Vec<(String, ToolResulted)>,
}

#[derive(Debug, Clone)]
struct EarlierCall {
    id: String,
    /// The call's destinations; of one that was made before the run was resumed, all its values.
    places: BTreeSet<String>,
}

/// The place at which a value was read.
#[derive(Debug, Clone)]
struct FieldSource {
    effect: EffectId,
    written: FieldWriter,
    is_element: bool,
    tool: String,
    field: String,
    text: String,
}

/// The writer of a field, the least certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldWriter {
    /// The author of the content of the single thing that was read: who writes a whole file can
    /// write fields into it.
    InContent,
    /// In YAML that a call returned which reads no single thing. A server that joins lines lets
    /// whoever writes one of them write more.
    Joined,
    /// In structured content, or in JSON, of a call that reads no single thing.
    Encoded,
}

impl FieldSource {
    /// Whether the value is in the field that a hole names.
    fn is_for(&self, field: &str, at_least: FieldWriter) -> bool {
        if field == ELEMENT {
            // Lists of lists and fields within elements have names of their own.
            let at_least = at_least.max(FieldWriter::Joined);
            return self.is_element && self.written >= at_least && !self.field.contains('.');
        }
        is_field(&self.field, field) && self.written >= at_least
    }
}

#[derive(Clone, Copy)]
pub(crate) struct MandateCall<'a> {
    pub(crate) arguments: &'a Value,
    pub(crate) meant: &'a MeantCall,
    /// The texts that the person typed.
    pub(crate) trusted: &'a [&'a str],
}

impl Provenance {
    pub(crate) fn read_on(&mut self, log: &RunLog) -> Result<(), Stop> {
        for entry in entries(log.reader(), self.next)? {
            let (seq, entry) = entry?;
            self.next = seq + 1;
            self.take(entry, log)?;
        }
        Ok(())
    }

    fn take(&mut self, entry: Entry, log: &RunLog) -> Result<(), Stop> {
        match entry {
            Entry::RunStarted(started) => {
                let meanings = started.meanings.map(|meanings| meanings.load(log));
                self.begin(meanings.transpose()?.unwrap_or_default());
            }
            Entry::MandateSet(set) if set.extends => {
                self.mandate.calls.extend(set.mandate.calls);
            }
            Entry::MandateSet(set) => {
                self.mandate = set.mandate;
                self.made.clear();
            }
            Entry::ToolCalled(called) => {
                self.open.insert(called.effect, called.call);
            }
            Entry::GateVerdict(judged) => self.judged(judged),
            Entry::ToolResulted(resulted) => self.resulted(resulted, log)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether a mandate was stated, as far as the entries were read.
    pub(crate) fn has_mandate(&self) -> bool {
        !self.mandate.calls.is_empty()
    }

    fn begin(&mut self, meanings: BTreeMap<String, ToolMeaning>) {
        self.reading = meanings;
        self.reading
            .retain(|_, meaning| meaning.action == ToolAction::Reads);
    }

    fn judged(&mut self, judged: GateVerdict) {
        match judged.mandated {
            Some(id) if judged.verdict.decision == Decision::Allow => {
                // The places of one that is being judged are known already.
                let places = match self.made.remove(&judged.effect) {
                    Some(made) => made.places,
                    None => {
                        let called = self.open.get(&judged.effect).map(values);
                        let mut all = called.unwrap_or_default();
                        all.extend(judged.aim.iter().flat_map(sent_values));
                        all
                    }
                };
                self.made.insert(judged.effect, EarlierCall { id, places });
            }
            _ => {
                self.made.remove(&judged.effect);
            }
        }
    }

    fn resulted(&mut self, resulted: ToolResulted, log: &RunLog) -> Result<(), Stop> {
        let Some(call) = self.open.remove(&resulted.effect) else {
            return Ok(());
        };
        if resulted.settled != CallEnd::Done {
            // It never began, so it may still be made.
            if resulted.settled == CallEnd::Refused {
                self.made.remove(&resulted.effect);
            }
            return Ok(());
        }
        if resulted.is_error {
            return Ok(());
        }
        let text = resulted.text.load(log)?;
        let value = resulted.load_value(log)?;
        let written = match (value.is_some(), self.is_listing(&call)) {
            (true, _) => FieldWriter::Encoded,
            (false, true) if results::is_json(&text) => FieldWriter::Encoded,
            (false, true) => FieldWriter::Joined,
            (false, false) => FieldWriter::InContent,
        };
        for leaf in results::leaves(value.as_ref(), &text) {
            if self.leaves >= MAX_LEAVES {
                break;
            }
            self.leaves += 1;
            let names = self.names.entry(resulted.effect.clone()).or_default();
            if !names.contains(&leaf.field) {
                names.insert(leaf.field.clone());
            }
            let source = FieldSource {
                effect: resulted.effect.clone(),
                written,
                is_element: leaf.is_element,
                tool: call.tool.clone(),
                field: leaf.field,
                text: leaf.text,
            };
            if let Some(number) = number_in(&source.text) {
                self.numbers.push((number, source.clone()));
            }
            for part in parts(&source.text) {
                self.fields.entry(part).or_default().push(source.clone());
            }
        }
        // Pictures hold no words.
        let images = Vec::new();
        let resulted = ToolResulted { images, ..resulted };
        self.returned.push((call.tool, resulted));
        Ok(())
    }

    /// Whether a call reads no single thing that its arguments name, such as a file: nobody else can
    /// write the whole of what it returns.
    fn is_listing(&self, call: &ToolCall) -> bool {
        let Some(meaning) = self.reading.get(&call.tool) else {
            return false;
        };
        let given = call.arguments.as_object().into_iter().flatten();
        let mut given = given.filter(|(_, value)| !value.is_null());
        given.all(|(name, _)| {
            let below = |path: &str| {
                path.strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let mut roles = meaning
                .arguments
                .iter()
                .filter(|(path, _)| below(path))
                .peekable();
            roles.peek().is_some() && roles.all(|(_, role)| *role == ArgumentRole::Option)
        })
    }

    /// Returns the id of the mandate's call that matches this one, and counts it as made by
    /// `effect`, if that is given.
    pub(crate) fn mandated(
        &mut self,
        planned: MandateCall<'_>,
        effect: Option<&EffectId>,
        log: &RunLog,
    ) -> Result<Option<String>, Stop> {
        let places = places(planned.meant);
        let calls = self.mandate.calls.clone();
        for call in &calls {
            if call.tool == planned.meant.name
                && self.may_be_made(call, planned, &places, effect)
                && self.fits(call, planned, log)?
            {
                if let Some(effect) = effect {
                    let id = call.id.clone();
                    self.made.insert(effect.clone(), EarlierCall { id, places });
                }
                return Ok(Some(call.id.clone()));
            }
        }
        if let Some(effect) = effect {
            self.made.remove(effect);
        }
        Ok(None)
    }

    /// Whether the mandate leaves a call of this kind. Reading is never used up.
    fn may_be_made(
        &self,
        call: &MandatedCall,
        planned: MandateCall<'_>,
        places: &BTreeSet<String>,
        effect: Option<&EffectId>,
    ) -> bool {
        if planned.meant.action == Some(ToolAction::Reads) {
            return true;
        }
        let others = self
            .made
            .iter()
            .filter(|(other, made)| Some(*other) != effect && made.id == call.id);
        let made: Vec<_> = others.map(|(_, made)| made).collect();
        match call.times {
            Times::AtMost(times) => made.len() < times as usize,
            Times::Each => {
                let is_new = |place: &String| !made.iter().any(|made| made.places.contains(place));
                made.is_empty() || (made.len() < MAX_EACH && places.iter().any(is_new))
            }
        }
    }

    /// Whether every value of the call is allowed by the mandate's call.
    fn fits(
        &self,
        call: &MandatedCall,
        planned: MandateCall<'_>,
        log: &RunLog,
    ) -> Result<bool, Stop> {
        if let Some(exact) = call.exact {
            return Ok(exact == Digest::of_json(planned.arguments));
        }
        for value in &planned.meant.values {
            // The name of a part that the mandate states, which is a value as well.
            let name = value.path.rsplit('.').next();
            if name == Some(&value.text) && call.arguments.contains_key(&value.path) {
                continue;
            }
            if !self.may_have(call, value, planned, log)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn may_have(
        &self,
        call: &MandatedCall,
        value: &ArgumentValue,
        planned: MandateCall<'_>,
        log: &RunLog,
    ) -> Result<bool, Stop> {
        let reads = planned.meant.action == Some(ToolAction::Reads);
        let sends = planned.meant.action == Some(ToolAction::Sends);
        let pays = planned.meant.action == Some(ToolAction::Pays);
        let is_link =
            value.role == Some(ArgumentRole::Page)
                && planned.meant.values.iter().any(|other| {
                    other.path == value.path && other.role == Some(ArgumentRole::Text)
                });
        if is_link {
            // What is written may lead to what the person named, or to what a field holds.
            return Ok(reads
                || is_named(&value.text, planned.trusted)
                || self.is_in_field_of_mandate(&value.text));
        }
        let wanted = wanted(call, &value.path);
        match value.role {
            Some(ArgumentRole::Password) => Ok(false),
            Some(ArgumentRole::Text) => Ok(true),
            Some(ArgumentRole::Option) if !reads || !value.is_text => Ok(true),
            Some(ArgumentRole::Amount) if !pays && !sends => Ok(true),
            _ => match wanted {
                None => Ok(false),
                Some(patterns) => self.is_one_of(patterns, value, pays, log),
            },
        }
    }

    fn is_one_of(
        &self,
        patterns: &[String],
        value: &ArgumentValue,
        pays: bool,
        log: &RunLog,
    ) -> Result<bool, Stop> {
        let is_payee = pays && value.role != Some(ArgumentRole::Amount);
        let failed = std::cell::Cell::new(None);
        let at_least = if is_payee {
            FieldWriter::Encoded
        } else {
            FieldWriter::InContent
        };
        let fills = |hole: &Hole, text: &str| match &hole.field {
            Some(field) => self.is_in_field((&hole.of, field), text, at_least),
            // Who is paid never comes from running text.
            None if is_payee => false,
            None => self.is_word_of(&hole.of, text, log).unwrap_or_else(|stop| {
                failed.set(Some(stop));
                false
            }),
        };
        let is_amount = value.role == Some(ArgumentRole::Amount);
        let fits = patterns.iter().any(|pattern| {
            (pattern == ANY && !value.is_destination())
                || self.is_meant_by(pattern, &value.text)
                || (is_amount && self.is_amount_of(pattern, &value.text))
                || HolePattern::read(pattern).is_ok_and(|pattern| pattern.fits(&value.text, &fills))
        });
        match failed.take() {
            Some(stop) => Err(stop),
            None => Ok(fits),
        }
    }

    /// Whether an amount is the one that a mandate states, or up to it: a number, or one that a call
    /// of the mandate returned in a field.
    fn is_amount_of(&self, pattern: &str, text: &str) -> bool {
        let Some(value) = number_in(text) else {
            return false;
        };
        let bound = pattern.strip_prefix(UP_TO);
        let fits = |number: f64| match bound {
            Some(_) => (0.0..=number).contains(&value),
            None => number == value,
        };
        let stated = bound.unwrap_or(pattern);
        let Ok(pattern) = HolePattern::read(stated) else {
            return false;
        };
        match (pattern.constant(), pattern.sole_hole()) {
            (Some(_), _) => number_in(stated).is_some_and(fits),
            (None, Some(Hole { of, field })) => {
                let Some(field) = field else { return false };
                let mut of = self
                    .numbers
                    .iter()
                    .filter(|(_, from)| self.is_of(&from.effect, of));
                of.any(|(number, from)| {
                    fits(*number) && self.is_for(from, field, FieldWriter::Joined)
                })
            }
            (None, None) => false,
        }
    }

    /// Whether a call of the mandate with this id returned the text in this field.
    fn is_in_field(&self, (id, field): (&str, &str), text: &str, at_least: FieldWriter) -> bool {
        let sources = self.fields.get(&folded_name(text)).into_iter().flatten();
        let mut of = sources.filter(|source| self.is_of(&source.effect, id));
        of.any(|source| self.is_for(source, field, at_least))
    }

    /// Whether a source is the field that a hole names. Of several fields of that name those count
    /// that lie least deep: deeper ones may be keys that somebody else chose, as in a mail's headers.
    fn is_for(&self, source: &FieldSource, field: &str, at_least: FieldWriter) -> bool {
        if field == ELEMENT || !source.is_for(field, at_least) {
            return source.is_for(field, at_least);
        }
        let depth = |name: &str| name.matches('.').count();
        let names = self.names.get(&source.effect).into_iter().flatten();
        let named = names.filter(|name| is_field(name, field));
        let least = named.map(|name| depth(name)).min();
        least == Some(depth(&source.field))
    }

    /// Whether a text is the only one in the results of the mandate's calls that the person can
    /// have meant by a mistyped name.
    fn is_meant_by(&self, pattern: &str, text: &str) -> bool {
        let Ok(pattern) = HolePattern::read(pattern) else {
            return false;
        };
        let Some(typed) = pattern.constant().filter(|typed| is_slip(typed, text)) else {
            return false;
        };
        let (typed, text) = (folded_name(typed), folded_name(text));
        let mut known = self.fields.iter().filter(|(known, sources)| {
            let is_near = **known == typed || is_slip(&typed, known);
            is_near && sources.iter().any(|source| self.is_entry(source))
        });
        known.next().is_some_and(|(only, _)| *only == text) && known.next().is_none()
    }

    /// Whether a source is an entry of a result of a mandate's call, rather than a part that the
    /// author of a single thing wrote.
    fn is_entry(&self, source: &FieldSource) -> bool {
        let made = self.made.get(&source.effect);
        source.written > FieldWriter::InContent
            && made.is_some_and(|made| self.stated(&made.id).is_some())
    }

    fn is_in_field_of_mandate(&self, text: &str) -> bool {
        let mut sources = self.fields.get(&folded_name(text)).into_iter().flatten();
        sources.any(|source| {
            let made = self.made.get(&source.effect);
            made.is_some_and(|made| self.stated(&made.id).is_some())
                && folded_name(&source.text) == folded_name(text)
        })
    }

    /// Returns the call that the mandate states under this id. A call that a person approved with
    /// exactly its arguments is not returned, because its results were not described.
    fn stated(&self, id: &str) -> Option<&MandatedCall> {
        let mut calls = self.mandate.calls.iter();
        calls.find(|call| call.id == id && call.exact.is_none())
    }

    /// Whether the text is a whole word in the result of the mandate's call with this id. What
    /// reads as several places, or as a name with an address, is not a word.
    fn is_word_of(&self, id: &str, text: &str, log: &RunLog) -> Result<bool, Stop> {
        if text.contains([',', ';', '<', '>', '\n', '\r', '\t']) {
            return Ok(false);
        }
        let is_in = |said: &str| is_named(text, &[said]);
        let of = self.returned.iter().map(|(_, resulted)| resulted);
        for resulted in of.filter(|resulted| self.is_of(&resulted.effect, id)) {
            let value = resulted.load_value(log)?;
            if results::has_word(value.as_ref(), &resulted.text.load(log)?, is_in) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an effect is the mandate's call with this id. A call fits the first of several that
    /// are stated alike, and is each of them.
    fn is_of(&self, effect: &EffectId, id: &str) -> bool {
        let stated = |id: &str| {
            let call = self.stated(id)?;
            Some((&call.tool, &call.arguments))
        };
        let made = self.made.get(effect).map(|made| made.id.as_str());
        made.is_some_and(|made| {
            made == id || stated(made).is_some_and(|made| Some(made) == stated(id))
        })
    }

    /// Describes where a value was read, for the person who is asked about it.
    pub(crate) fn sources(&self, value: &str, log: &RunLog) -> Result<Vec<String>, Stop> {
        let fields = self.fields.get(&folded_name(value)).into_iter().flatten();
        let mut told: Vec<String> = Vec::new();
        for source in fields.take(MAX_SOURCES) {
            let FieldSource {
                effect,
                tool,
                field,
                ..
            } = source;
            told.push(format!(
                "from the field `{field}` of what `{tool}` returned ({effect})"
            ));
        }
        if !told.is_empty() {
            told.dedup();
            return Ok(told);
        }
        let value = value.to_lowercase();
        for (tool, resulted) in self.returned.iter().rev() {
            if resulted.text.load(log)?.to_lowercase().contains(&value) {
                told.push(format!(
                    "only in the text of what `{tool}` returned ({})",
                    resulted.effect
                ));
                break;
            }
        }
        Ok(told)
    }
}

/// The patterns for a place: its own, or those for all parts of an argument around it. What is said
/// of an argument was checked by the role of that alone, and says nothing of its parts.
fn wanted<'a>(call: &'a MandatedCall, path: &str) -> Option<&'a [String]> {
    let around = path.match_indices('.').rev().map(|(at, _)| &path[..at]);
    let all_parts = around.map(|path| format!("{path}.{ANY_PART}"));
    let mut paths = std::iter::once(path.to_owned()).chain(all_parts);
    paths.find_map(|path| call.arguments.get(&path).map(Vec::as_slice))
}

/// Returns the destinations of a call, in normal form.
fn places(meant: &MeantCall) -> BTreeSet<String> {
    let destinations = meant.values.iter().filter(|value| value.is_destination());
    destinations.map(|value| folded_name(&value.text)).collect()
}

/// Returns all values that the form of an input sends, in normal form.
fn sent_values(aim: &Aim) -> BTreeSet<String> {
    let sends = aim.form.iter().filter_map(|form| form.sends.as_ref());
    let controls = sends.flat_map(|sends| &sends.controls);
    let values = controls.filter_map(|control| control.read());
    values.map(folded_name).collect()
}

/// Returns all texts in the arguments of a call, in normal form.
fn values(call: &ToolCall) -> BTreeSet<String> {
    fn collect(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                found.insert(folded_name(text));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(fields) => {
                found.extend(fields.keys().map(|key| folded_name(key)));
                fields.values().for_each(|value| collect(value, found));
            }
            other => {
                found.insert(folded_name(&other.to_string()));
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(&call.arguments, &mut found);
    found
}

/// Whether a field is the one that a hole names: the names at the end of its path. The model has
/// not seen it yet, so `Participant`, `participants` and `participants_` are the same.
fn is_field(field: &str, named: &str) -> bool {
    fn plain(name: &str) -> String {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        let plain: String = letters.flat_map(char::to_lowercase).collect();
        match plain.strip_suffix('s') {
            Some(one) if !one.is_empty() => one.to_owned(),
            _ => plain,
        }
    }
    let mut ends = field.rsplit('.').map(plain);
    named
        .rsplit('.')
        .map(plain)
        .all(|name| ends.next() == Some(name))
}

/// Returns the texts that a leaf contains: itself, the parts of a list in it, and the address at
/// the end of `Anna Berg <anna@example.com>`.
fn parts(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    all.insert(folded_name(text));
    let split = text
        .split([',', ';'])
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let split: Vec<_> = split.collect();
    if (2..=100).contains(&split.len()) {
        all.extend(split.iter().map(|part| folded_name(part)));
    }
    if let Some((_, address)) = text
        .strip_suffix('>')
        .and_then(|text| text.rsplit_once('<'))
    {
        all.insert(folded_name(address));
    }
    all.remove("");
    all
}
