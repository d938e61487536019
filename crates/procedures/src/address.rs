//! Addresses relative to where a run began, and the ways in which they write values.

use crate::{Slot, SlotValues, Template, TemplatePart, template};

/// Returns an address relative to the folder of the start address; one outside of it as it is.
pub(crate) fn relative(address: &str, start: &str) -> String {
    let path = start.split(['?', '#']).next().unwrap_or(start);
    let folder = path.rfind('/').map_or(path, |at| &path[..=at]);
    address.strip_prefix(folder).unwrap_or(address).to_owned()
}

/// Returns the scheme, host and port of an address.
pub fn origin_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = &rest[..length];
    let is_plain = scheme.starts_with("http") && !host.is_empty() && !host.contains('@');
    is_plain.then(|| &address[..scheme.len() + 3 + length])
}

/// Returns the ways in which an address may write a value.
fn written(value: &str) -> [String; 4] {
    let slug: String = value
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .flat_map(char::to_lowercase)
        .collect();
    let encoded = |space: &str| {
        let bytes = value.bytes().map(|byte| match byte {
            b' ' => space.to_owned(),
            b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        });
        bytes.collect::<String>()
    };
    [value.to_owned(), slug, encoded("%20"), encoded("+")]
}

/// Returns a relative address as a template, with the slots that were used so far.
pub(crate) fn template_of(
    relative: &str,
    slots: &[Slot],
    used: impl Fn(usize) -> bool,
) -> Template {
    let used: Vec<_> = (0..slots.len()).filter(|number| used(*number)).collect();
    for way in 0..4 {
        let learned = slots.iter().map(|slot| Slot {
            learned: written(&slot.learned)[way].clone(),
            ..slot.clone()
        });
        let learned: Vec<_> = learned.collect();
        // Runs of hyphens would stand for nothing.
        let has_words =
            |number: &usize| learned[*number].learned.chars().any(char::is_alphanumeric);
        let found = Template::of(relative, &learned, |number| {
            used.contains(&number) && has_words(&number)
        });
        if found.slots().next().is_some() {
            return found;
        }
    }
    Template::fixed(relative)
}

/// Whether a relative address is what a template says, in one of the ways to write the values.
pub(crate) fn is(relative: &str, form: &Template, values: &SlotValues) -> bool {
    (0..4).any(|way| {
        let values = values.0.iter().map(|value| written(value)[way].clone());
        form.filled(&SlotValues(values.collect())) == relative
    })
}

/// Whether a template has a slot.
pub(crate) fn has_slot(form: &Template) -> bool {
    form.0
        .iter()
        .any(|part| matches!(part, TemplatePart::Slot(_)))
}

/// Whether a text contains digits outside of its slots.
pub(crate) fn has_other_digits(form: &Template) -> bool {
    template::one_spaced(&form.fixed_words())
        .chars()
        .any(char::is_numeric)
}
