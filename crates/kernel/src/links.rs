//! The links that a run has read, so that it may follow one without asking.
//!
//! An address can carry data to whoever serves it, so a run that has read untrusted text may only
//! follow addresses that others wrote. A page can repeat what it was asked with; therefore only
//! pages count whose own address was written by others: by the person, or as a link on such a
//! page.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{EffectId, Part, Touch};

use crate::{Entry, Settled, Stop, core::Core, kernel::entries};

/// Links that are remembered; further ones are asked about.
const MAX_LINKS: usize = 100_000;

/// Longer addresses are asked about.
const MAX_LINK_BYTES: usize = 8 * 1024;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The next entry to look at.
    next: u64,
    seen: BTreeSet<String>,
    /// Calls that connect somewhere and have no result yet.
    open: BTreeMap<EffectId, String>,
}

impl Links {
    /// Whether `address` is, byte for byte, a link that somebody else wrote.
    pub(crate) fn saw(&mut self, core: &Core, address: &str) -> Result<bool, Stop> {
        self.read_on(core)?;
        Ok(self.seen.contains(address))
    }

    fn read_on(&mut self, core: &Core) -> Result<(), Stop> {
        if self.next == 0 {
            for part in &core.context {
                if let Part::Text(text) = part {
                    self.take(&text.text);
                }
            }
            for text in core.trusted() {
                self.take(&text);
            }
            self.next = 1;
        }
        for entry in entries(core.log.reader(), self.next)? {
            let (seq, entry) = entry?;
            self.next = seq + 1;
            match entry {
                Entry::ToolCalled(called) => {
                    if let Some(address) = connects(core, &called.call) {
                        self.open.insert(called.effect, address.to_owned());
                    }
                }
                Entry::ToolResulted(resulted) => {
                    let Some(address) = self.open.remove(&resulted.effect) else {
                        continue;
                    };
                    let read = resulted.settled == Settled::Done && !resulted.is_error;
                    if read && self.seen.contains(&address) {
                        self.take(&resulted.text.load(&core.log)?);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, text: &str) {
        for link in links(text) {
            if self.seen.len() < MAX_LINKS {
                self.seen.insert(link.to_owned());
            }
        }
    }
}

/// The address that a call connects to.
pub(crate) fn connects<'c>(core: &Core, call: &'c gyrus_contract::ToolCall) -> Option<&'c str> {
    let tool = core.kernel.organs().tools.get(&call.tool)?;
    let argument = tool.spec().touches.iter().find_map(|touch| match touch {
        Touch::Connects(argument) => Some(argument),
        _ => None,
    })?;
    call.arguments[argument].as_str()
}

/// The links in a text: from their scheme to what no address holds, without the punctuation of
/// the sentence around.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["http://", "https://"]
        .into_iter()
        .flat_map(|scheme| text.match_indices(scheme).map(|(start, _)| start));
    starts.filter_map(|start| {
        let rest = &text[start..];
        let outside = |c: char| c.is_whitespace() || c.is_control() || "\"'<>`|\\^{}".contains(c);
        let end = rest.find(outside).unwrap_or(rest.len());
        let link = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*']);
        (link.len() <= MAX_LINK_BYTES).then_some(link)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_end_where_an_address_does() {
        let cases = [
            (
                "see https://a.example/b?c=d.",
                vec!["https://a.example/b?c=d"],
            ),
            (
                "[here](https://a.example/x), and",
                vec!["https://a.example/x"],
            ),
            (
                "\"http://a.example\" <https://b.example/>",
                vec!["http://a.example", "https://b.example/"],
            ),
            ("https://a.example/ä\u{a0}b", vec!["https://a.example/ä"]),
            ("ftp://a.example none", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(links(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
