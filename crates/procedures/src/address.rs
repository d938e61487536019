//! Addresses relative to where a run began, and the ways in which they write values.

use crate::{Slot, SlotTemplate, SlotValues, TemplatePart, template};

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
    let encoded = gyrus_text::percent_encoded(value);
    let plus = encoded.replace("%20", "+");
    [value.to_owned(), slug, encoded, plus]
}

pub(crate) fn template_of(
    relative: &str,
    slots: &[Slot],
    used: impl Fn(usize) -> bool,
) -> SlotTemplate {
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
        let found = SlotTemplate::of(relative, &learned, |number| {
            used.contains(&number) && has_words(&number)
        });
        if found.slots().next().is_some() {
            return found;
        }
    }
    SlotTemplate::fixed(relative)
}

pub(crate) fn is(relative: &str, form: &SlotTemplate, values: &SlotValues) -> bool {
    (0..4).any(|way| {
        let values = values.0.iter().map(|value| written(value)[way].clone());
        form.filled(&SlotValues(values.collect())) == relative
    })
}

/// Characters between the segments of an address.
const BETWEEN: [char; 6] = ['/', '?', '&', '=', '#', ':'];

/// Whether a segment of an address is an id that an application gave: digits, or a UUID.
fn is_id(segment: &str) -> bool {
    let is_uuid = segment.len() == 36
        && segment.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && segment.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    is_uuid || (!segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Writes ids as slots: those of `ids`, counted from `first`, before the fragment. Others are added
/// to `ids` if `add` says so of their place, which is whether it is in the fragment.
pub(crate) fn with_ids(
    form: &SlotTemplate,
    ids: &mut Vec<String>,
    first: usize,
    add: impl Fn(AddressPart) -> bool,
) -> SlotTemplate {
    let mut parts = Vec::new();
    let mut place = AddressPart::Path;
    let count = form.0.len();
    for (at, part) in form.0.iter().enumerate() {
        let TemplatePart::Words(words) = part else {
            parts.push(part.clone());
            continue;
        };
        let host = if at == 0 {
            origin_of(words).map_or(0, str::len)
        } else {
            0
        };
        let mut plain = words[..host].to_owned();
        for piece in words[host..].split_inclusive(BETWEEN) {
            let segment = piece.trim_end_matches(BETWEEN);
            // Beside the value of a command it is a part of a word.
            let is_cut =
                (plain.is_empty() && at > 0) || (segment.len() == piece.len() && at + 1 < count);
            let known = ids.iter().position(|id| id == segment);
            let number = match known.filter(|_| place == AddressPart::Path) {
                _ if is_cut || !is_id(segment) => None,
                Some(known) => Some(known),
                None => add(place).then(|| {
                    ids.push(segment.to_owned());
                    ids.len() - 1
                }),
            };
            match number {
                Some(number) => {
                    if !plain.is_empty() {
                        parts.push(TemplatePart::Words(std::mem::take(&mut plain)));
                    }
                    parts.push(TemplatePart::Slot(first + number));
                    plain.push_str(&piece[segment.len()..]);
                }
                None => plain.push_str(piece),
            }
            if piece.ends_with('#') {
                place = AddressPart::Fragment;
            }
        }
        if !plain.is_empty() {
            parts.push(TemplatePart::Words(plain));
        }
    }
    SlotTemplate(parts)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressPart {
    /// The path and the query.
    Path,
    /// The fragment, after `#`.
    Fragment,
}

/// Returns the ids in a relative address for the slots of a template without a value yet, in order;
/// `None` if the address is another one.
pub(crate) fn ids_in(
    relative: &str,
    form: &SlotTemplate,
    values: &SlotValues,
) -> Option<Vec<String>> {
    (0..4).find_map(|way| {
        let mut rest = relative;
        let mut ids: Vec<String> = Vec::new();
        for part in &form.0 {
            let known = match part {
                TemplatePart::Words(words) => Some(words.clone()),
                TemplatePart::Slot(number) => match number.checked_sub(values.0.len()) {
                    None => Some(written(&values.0[*number])[way].clone()),
                    Some(new) => ids.get(new).cloned(),
                },
            };
            if let Some(known) = known {
                rest = rest.strip_prefix(known.as_str())?;
            } else {
                let length = rest.find(BETWEEN).unwrap_or(rest.len());
                let id = Some(&rest[..length]).filter(|id| is_id(id))?;
                ids.push(id.to_owned());
                rest = &rest[length..];
            }
        }
        rest.is_empty().then_some(ids)
    })
}

pub(crate) fn has_slot(form: &SlotTemplate) -> bool {
    form.0
        .iter()
        .any(|part| matches!(part, TemplatePart::Slot(_)))
}

pub(crate) fn has_other_digits(form: &SlotTemplate) -> bool {
    template::one_spaced(&form.fixed_words())
        .chars()
        .any(char::is_numeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(address: &str, known: &[&str]) -> (SlotTemplate, Vec<String>) {
        let mut ids: Vec<_> = known.iter().map(|id| (*id).to_owned()).collect();
        let form = with_ids(&SlotTemplate::fixed(address), &mut ids, 1, |_| true);
        (form, ids)
    }

    #[test]
    fn ids_are_whole_segments_and_never_the_port() {
        let check = |address: &str, expected: &str| {
            assert_eq!(form(address, &[]).0.to_string(), expected);
        };
        check("group/3/change/", "group/{2}/change/");
        check(
            "http://127.0.0.1:8080/ticket/7#comment:1",
            "http://127.0.0.1:8080/ticket/{2}#comment:{3}",
        );
        check("edit?id=12&tab=2", "edit?id={2}&tab={3}");
        check("v2/a7/12b/1.5/2031-06-24", "v2/a7/12b/1.5/2031-06-24");
        check("x/01a200bc-d480-72b8-b5c0-99583749d19e", "x/{2}");
        check(
            "x/01a200bc-d480-72b8-b5c0-99583749d19",
            "x/01a200bc-d480-72b8-b5c0-99583749d19",
        );
    }

    #[test]
    fn an_id_that_was_found_is_the_same_everywhere() {
        let (link, ids) = form("group/3/change/3", &[]);
        assert_eq!(ids, ["3"]);
        let values = SlotValues(vec!["Readers".to_owned()]);
        let check = |address: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|ids| ids.iter().map(ToString::to_string).collect());
            assert_eq!(ids_in(address, &link, &values), expected, "{address}");
        };
        check("group/41/change/41", Some(&["41"]));
        check("group/41/change/42", None);
        check("group/41/delete/41", None);
        check("group/add/change/add", None);
        check("group//change/", None);
        check("group/41/change/41/more", None);
    }
}
