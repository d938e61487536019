//! Conditions on the arguments of a call: by name, or by what they stand for.

use gyrus_contract::{ArgumentRole, ArgumentValue};
use gyrus_text::is_named;
use serde_json::Value;

use super::{PolicySubject, subject::ServiceArguments};

/// Maximum depth to which values of arguments are searched.
const MAX_DEPTH: usize = 16;

/// Words for roles, in the order of a table of words.
pub(super) const ROLES: [(&str, ArgumentRole); 7] = {
    let all = ArgumentRole::ALL;
    let mut words = [("", ArgumentRole::To); 7];
    let mut index = 0;
    while index < all.len() {
        words[index] = (all[index].1, all[index].0);
        index += 1;
    }
    words
};

/// A condition on arguments. Of those about the value, all that are given must hold.
#[derive(Debug)]
pub(super) struct ArgumentCondition {
    pub(super) which: WhichArgument,
    /// Patterns of which one must match; empty if any value will do.
    pub(super) values: Vec<TextPattern>,
    /// Whether the value must be contained in the person's texts, or must not be.
    pub(super) named: Option<bool>,
    /// Whether the condition also holds if the argument is missing.
    pub(super) or_absent: bool,
}

/// The arguments that a condition applies to.
#[derive(Debug)]
pub(super) enum WhichArgument {
    /// The argument of this name, with everything below it. For servers' tools the name may lead
    /// into objects: `message.to`.
    Name(String),
    /// All values of this role. A value without a described role counts as a destination.
    Role(ArgumentRole),
}

impl ArgumentCondition {
    /// Whether an allow rule's condition holds for every value with its role or name. A role
    /// without values is satisfied; a name must exist.
    pub(super) fn surely_holds(&self, subject: &PolicySubject) -> bool {
        match subject.service {
            Some(service) => {
                let mut about = self.about(service).peekable();
                let is_there =
                    matches!(self.which, WhichArgument::Role(_)) || about.peek().is_some();
                let fit = about.all(|value| self.fits(&value.text, subject));
                fit && (is_there || self.or_absent)
            }
            None => match self.value(subject) {
                Some(value) => self.all_fit(value, subject),
                None => self.or_absent,
            },
        }
    }

    /// Whether an ask or deny rule's condition may hold for some value with its role or name.
    pub(super) fn may_hold(&self, subject: &PolicySubject) -> bool {
        match subject.service {
            Some(service) => {
                let mut about = self.about(service).peekable();
                let is_there = about.peek().is_some();
                about.any(|value| self.fits(&value.text, subject)) || (!is_there && self.or_absent)
            }
            None => match self.value(subject) {
                Some(value) => self.any_fits(value, subject, 0),
                None => self.or_absent,
            },
        }
    }

    /// Returns the argument of a tool that is not a server's, to which roles do not apply.
    fn value<'a>(&self, subject: &PolicySubject<'a>) -> Option<&'a Value> {
        match &self.which {
            WhichArgument::Name(name) => subject.arguments.get(name),
            WhichArgument::Role(_) => None,
        }
    }

    fn about<'a>(
        &'a self,
        service: ServiceArguments<'a>,
    ) -> impl Iterator<Item = &'a ArgumentValue> {
        service.values.iter().filter(|value| self.is_about(value))
    }

    fn is_about(&self, value: &ArgumentValue) -> bool {
        match &self.which {
            WhichArgument::Name(name) => {
                let below = value.path.strip_prefix(name.as_str());
                below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
            }
            WhichArgument::Role(ArgumentRole::To) => {
                matches!(value.role, None | Some(ArgumentRole::To))
            }
            WhichArgument::Role(role) => value.role == Some(*role),
        }
    }

    fn fits(&self, text: &str, subject: &PolicySubject) -> bool {
        let fits = self.values.is_empty() || self.values.iter().any(|value| value.matches(text));
        let named = |wanted| is_named(text, subject.trusted) == wanted;
        fits && self.named.is_none_or(named)
    }

    /// Whether a value is a text, number or truth value that fits, or a list of such.
    fn all_fit(&self, value: &Value, subject: &PolicySubject) -> bool {
        match value {
            Value::Array(values) => {
                let plain = |value: &Value| !value.is_array() && self.all_fit(value, subject);
                !values.is_empty() && values.iter().all(plain)
            }
            Value::Object(_) => false,
            Value::String(text) => self.fits(text, subject),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.fits(&value.to_string(), subject)
            }
        }
    }

    /// Whether any part of a value fits the condition. What is too deep to look at does.
    fn any_fits(&self, value: &Value, subject: &PolicySubject, depth: usize) -> bool {
        if depth == MAX_DEPTH {
            return true;
        }
        let any = |value| self.any_fits(value, subject, depth + 1);
        match value {
            Value::Array(values) => values.iter().any(any),
            Value::Object(values) => values.values().any(any),
            Value::String(text) => self.fits(text, subject),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.fits(&value.to_string(), subject)
            }
        }
    }
}

/// Returns the first destination among the values of a server's call that none of these conditions
/// covers. All of them hold.
pub(super) fn uncovered(
    conditions: &[ArgumentCondition],
    subject: &PolicySubject,
) -> Option<usize> {
    let service = subject.service.filter(|service| service.is_meant)?;
    let must_be_covered = |value: &ArgumentValue| {
        value.is_destination() || value.role == Some(ArgumentRole::Password)
    };
    let is_covered =
        |value: &ArgumentValue| conditions.iter().any(|condition| condition.is_about(value));
    let mut values = service.values.iter();
    values.position(|value| must_be_covered(value) && !is_covered(value))
}

/// A text in which `*` stands for anything, `/` and line ends included. It is matched whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPattern(String);

impl TextPattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        gyrus_text::fits(&self.0, text)
    }

    /// Returns the text, if it contains no star.
    pub(super) fn literal(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(self.0.as_str())
    }
}
