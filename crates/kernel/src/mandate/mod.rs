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
mod results;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gyrus_contract::{
    ArgumentRole, ArgumentValue, Decision, EffectId, MeantCall, ToolAction, ToolCall,
};
use gyrus_text::{folded_name, is_named, is_number_named};

pub(crate) use self::check::{MeantTools, describe, describe_call, read, schema};
use self::pattern::{ANY, Hole, Pattern};
use crate::{
    Entry, GateVerdict, Inline, Mandate, MandatedCall, Settled, Stop, Times, ToolResulted,
    log::Log, runs::entries,
};

/// Maximum number of calls of a kind that goes to each of several places.
const MAX_EACH: usize = 50;

/// Maximum number of leaves that are remembered; values of later ones have no source.
const MAX_LEAVES: usize = 500_000;

/// Maximum number of sources of one value that are told.
const MAX_SOURCES: usize = 3;

/// The mandate in force, and the values that the run has read.
#[derive(Debug, Default)]
pub(crate) struct Provenance {
    /// The number of the next entry to read.
    next: u64,
    mandate: Mandate,
    /// The calls that were found to be one of the mandate's: its id, and the places it goes to.
    made: BTreeMap<EffectId, Made>,
    /// Calls that have no result yet, by effect.
    open: BTreeMap<EffectId, ToolCall>,
    /// The leaves of all results, by their folded text.
    fields: HashMap<String, Vec<FieldSource>>,
    leaves: usize,
    /// The results of calls, with the tool that returned them.
    texts: Vec<(EffectId, String, Inline<String>)>,
}

#[derive(Debug, Clone)]
struct Made {
    id: String,
    /// The digest of the call's destinations.
    places: BTreeSet<String>,
}

/// The place at which a value was read.
#[derive(Debug, Clone)]
struct FieldSource {
    effect: EffectId,
    /// Whether the server returned it as structured content, and not as a text.
    is_structured: bool,
    tool: String,
    field: String,
    text: String,
}

/// A call that is to be judged.
#[derive(Clone, Copy)]
pub(crate) struct Planned<'a> {
    pub(crate) meant: &'a MeantCall,
    /// The texts that the person typed.
    pub(crate) trusted: &'a [&'a str],
}

impl Provenance {
    /// Reads the entries that were written since.
    pub(crate) fn read_on(&mut self, log: &Log) -> Result<(), Stop> {
        for entry in entries(log.reader(), self.next.max(1))? {
            let (seq, entry) = entry?;
            self.next = seq + 1;
            match entry {
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
        }
        Ok(())
    }

    fn judged(&mut self, judged: GateVerdict) {
        match judged.mandated {
            Some(id) if judged.verdict.decision == Decision::Allow => {
                // The places of one that is being judged are known already.
                let places = match self.made.remove(&judged.effect) {
                    Some(made) => made.places,
                    None => BTreeSet::new(),
                };
                self.made.insert(judged.effect, Made { id, places });
            }
            _ => {
                self.made.remove(&judged.effect);
            }
        }
    }

    fn resulted(&mut self, resulted: ToolResulted, log: &Log) -> Result<(), Stop> {
        let Some(call) = self.open.remove(&resulted.effect) else {
            return Ok(());
        };
        if resulted.settled != Settled::Done {
            // It never began, so it may still be made.
            if resulted.settled == Settled::Refused {
                self.made.remove(&resulted.effect);
            }
            return Ok(());
        }
        if resulted.is_error {
            return Ok(());
        }
        let text = resulted.text.load(log)?;
        let value = resulted.load_value(log)?;
        for leaf in results::leaves(value.as_ref(), &text) {
            if self.leaves >= MAX_LEAVES {
                break;
            }
            self.leaves += 1;
            let source = FieldSource {
                effect: resulted.effect.clone(),
                is_structured: value.is_some(),
                tool: call.tool.clone(),
                field: leaf.field,
                text: leaf.text,
            };
            for part in parts(&source.text) {
                self.fields.entry(part).or_default().push(source.clone());
            }
        }
        self.texts.push((resulted.effect, call.tool, resulted.text));
        Ok(())
    }

    /// Returns the id of the mandate's call that this one is, and counts it as made by `effect`, if
    /// one is given.
    pub(crate) fn mandated(
        &mut self,
        planned: Planned<'_>,
        effect: Option<&EffectId>,
        log: &Log,
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
                    self.made.insert(effect.clone(), Made { id, places });
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
        planned: Planned<'_>,
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

    /// Whether every value of the call is one that the mandate's call lets it have.
    fn fits(&self, call: &MandatedCall, planned: Planned<'_>, log: &Log) -> Result<bool, Stop> {
        for value in &planned.meant.values {
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
        planned: Planned<'_>,
        log: &Log,
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
        log: &Log,
    ) -> Result<bool, Stop> {
        let is_payee = pays && value.role != Some(ArgumentRole::Amount);
        let failed = std::cell::Cell::new(None);
        let fills = |hole: &Hole, text: &str| match &hole.field {
            Some(field) => self.is_in_field((&hole.of, field), text, is_payee),
            // Who is paid never comes from running text.
            None if is_payee => false,
            None => self.is_word_of(&hole.of, text, log).unwrap_or_else(|stop| {
                failed.set(Some(stop));
                false
            }),
        };
        let fits = patterns.iter().any(|pattern| {
            pattern == ANY
                || (value.role == Some(ArgumentRole::Amount)
                    && is_number_named(&value.text, &[pattern.as_str()]))
                || Pattern::read(pattern).is_ok_and(|pattern| pattern.fits(&value.text, &fills))
        });
        match failed.take() {
            Some(stop) => Err(stop),
            None => Ok(fits),
        }
    }

    /// Whether a call of the mandate with this id returned the text in this field; as structured
    /// content, if so it must be: whoever writes a whole text can write fields into it.
    fn is_in_field(&self, (id, field): (&str, &str), text: &str, structured: bool) -> bool {
        let sources = self.fields.get(&folded_name(text)).into_iter().flatten();
        let mut of = sources.filter(|source| self.is_of(&source.effect, id));
        of.any(|source| is_field(&source.field, field) && (source.is_structured || !structured))
    }

    fn is_in_field_of_mandate(&self, text: &str) -> bool {
        let mut sources = self.fields.get(&folded_name(text)).into_iter().flatten();
        sources.any(|source| {
            self.made.contains_key(&source.effect) && folded_name(&source.text) == folded_name(text)
        })
    }

    /// Whether the text stands as a whole word in what a call of the mandate with this id returned.
    fn is_word_of(&self, id: &str, text: &str, log: &Log) -> Result<bool, Stop> {
        for (effect, _, result) in &self.texts {
            if self.is_of(effect, id) && is_named(text, &[&result.load(log)?]) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_of(&self, effect: &EffectId, id: &str) -> bool {
        self.made.get(effect).is_some_and(|made| made.id == id)
    }

    /// Says where a value was read, for the person who is asked about it.
    pub(crate) fn sources(&self, value: &str, log: &Log) -> Result<Vec<String>, Stop> {
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
        for (effect, tool, result) in self.texts.iter().rev() {
            if result
                .load(log)?
                .to_lowercase()
                .contains(&value.to_lowercase())
            {
                told.push(format!(
                    "only in the text of what `{tool}` returned ({effect})"
                ));
                break;
            }
        }
        Ok(told)
    }
}

/// The patterns for a place: those of the nearest argument at or above it.
fn wanted<'a>(call: &'a MandatedCall, path: &str) -> Option<&'a [String]> {
    let mut path = path;
    loop {
        if let Some(patterns) = call.arguments.get(path) {
            return Some(patterns);
        }
        path = path.rsplit_once('.')?.0;
    }
}

/// The destinations of a call, in one form.
fn places(meant: &MeantCall) -> BTreeSet<String> {
    let destinations = meant.values.iter().filter(|value| value.is_destination());
    destinations.map(|value| folded_name(&value.text)).collect()
}

/// Whether a field is the one that a hole names: the names at the end of its path.
fn is_field(field: &str, named: &str) -> bool {
    let above = field.len().checked_sub(named.len());
    above.is_some_and(|above| {
        let (before, end) = field.split_at_checked(above).unwrap_or(("", ""));
        end.eq_ignore_ascii_case(named) && (before.is_empty() || before.ends_with('.'))
    })
}

/// The texts that a leaf holds: itself, the parts of a list in it, and the address at the end of
/// `Anna Berg <anna@example.com>`.
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
