//! The links that a run has read, so that it may follow one without asking.
//!
//! An address can carry data to its server, so a run that has read untrusted text may only follow
//! addresses that others wrote. A page can repeat what it was asked with; therefore links count
//! only on pages whose own address was written by others: by the person, or as a link on such a
//! page.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gyrus_contract::{EffectId, Tool, ToolCall, Touch, View};
use gyrus_text::full_addresses;

use crate::{CallEnd, Entry, Stop, log::RunLog, runs::entries};

type ToolsByName = BTreeMap<String, Arc<dyn Tool>>;

/// Maximum number of links that are remembered; the run asks about further ones.
const MAX_LINKS: usize = 100_000;

/// Maximum length of a link in bytes; the run asks about longer ones.
const MAX_LINK_BYTES: usize = 8 * 1024;

/// The links found so far.
#[derive(Debug, Default)]
pub(crate) struct RunLinks {
    /// The number of the next entry to read.
    next: u64,
    seen: BTreeSet<String>,
    /// Addresses of calls in progress that connect to one; `None` for a search, whose results others
    /// wrote, by a service that the person chose.
    open: BTreeMap<EffectId, Option<String>>,
}

impl RunLinks {
    /// Whether `address` is, byte for byte, a link that somebody else wrote: in a text that the run
    /// was `given` at its start, or in an entry since.
    pub(crate) fn saw(
        &mut self,
        address: &str,
        log: &RunLog,
        tools: &ToolsByName,
        given: impl FnOnce() -> Vec<String>,
    ) -> Result<bool, Stop> {
        if self.next == 0 {
            for text in given() {
                self.take(&text);
            }
            self.next = 1;
        }
        self.read_on(log, tools)?;
        Ok(self.seen.contains(address))
    }

    fn read_on(&mut self, log: &RunLog, tools: &ToolsByName) -> Result<(), Stop> {
        for entry in entries(log.reader(), self.next)? {
            let (seq, entry) = entry?;
            self.next = seq + 1;
            match entry {
                Entry::ToolCalled(called) => {
                    if let Some(address) = connects(tools, &called.call) {
                        self.open.insert(called.effect, Some(address.to_owned()));
                    } else if searches(tools, &called.call) {
                        self.open.insert(called.effect, None);
                    }
                }
                Entry::ToolResulted(resulted) => {
                    let Some(address) = self.open.remove(&resulted.effect) else {
                        continue;
                    };
                    let read = resulted.settled == CallEnd::Done && !resulted.is_error;
                    if read && address.is_none_or(|address| self.seen.contains(&address)) {
                        self.take(&resulted.text.load(log)?);
                    }
                }
                Entry::ScreenViewed(viewed) if !viewed.is_error => {
                    let view: View =
                        serde_json::from_str(&viewed.view.load(log)?).map_err(|error| {
                            Stop::Failed(format!("a recorded view cannot be read: {error}"))
                        })?;
                    self.look(&view);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Collects the links on a page whose own address was written by others. The address of a bare
    /// host gets a slash and no fragment, as in browsers.
    fn look(&mut self, view: &View) {
        let address = view.address.split('#').next().unwrap_or_default();
        let bare = address.strip_suffix('/').unwrap_or(address);
        if ![&view.address, address, bare]
            .iter()
            .any(|it| self.seen.contains(*it))
        {
            return;
        }
        for link in view
            .elements
            .iter()
            .filter_map(|element| element.address.as_ref())
        {
            if self.seen.len() < MAX_LINKS {
                self.seen.insert(link.clone());
            }
        }
    }

    fn take(&mut self, text: &str) {
        for link in full_addresses(text).filter(|link| link.len() <= MAX_LINK_BYTES) {
            if self.seen.len() < MAX_LINKS {
                self.seen.insert(link.to_owned());
            }
        }
    }
}

/// Returns the address that a call connects to.
pub(crate) fn connects<'c>(tools: &ToolsByName, call: &'c ToolCall) -> Option<&'c str> {
    let tool = tools.get(&call.tool)?;
    let argument = tool.spec().touches.iter().find_map(Touch::address)?;
    call.arguments[argument].as_str()
}

/// Whether a call searches for words. What a service finds for an address may be that address.
fn searches(tools: &ToolsByName, call: &ToolCall) -> bool {
    let tool = tools.get(&call.tool);
    let argument = tool.and_then(|tool| tool.spec().touches.iter().find_map(Touch::query));
    let query = argument.and_then(|argument| call.arguments[argument].as_str());
    query.is_some_and(|query| !query.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_view_count_where_its_own_address_was_written_by_others() {
        let view = |address: &str, link: &str| -> View {
            let element = serde_json::json!({
                "id": "b1", "role": "link", "address": link, "depth": 0,
            });
            let view = serde_json::json!({
                "session": "s", "address": address, "title": "", "width": 1, "height": 1,
                "scroll": {"x": 0, "y": 0, "width": 1, "height": 1}, "elements": [element],
                "tabs": [], "rest": {"why": "quiet"}, "documents": 2,
            });
            serde_json::from_value(view).unwrap()
        };
        let mut links = RunLinks::default();
        links.take("go to https://shop.example and nowhere else");
        let mut saw = |address: &str, link: &str| {
            links.look(&view(address, link));
            links.seen.contains(link)
        };
        // The browser added the slash, and the fragment does not matter.
        assert!(saw("https://shop.example/#top", "https://shop.example/a"));
        assert!(saw("https://shop.example/a", "https://other.example/b"));
        assert!(!saw(
            "https://shop.example/?q=made-up",
            "https://evil.example/"
        ));
        assert!(!saw("https://evil.example/", "https://evil.example/2"));
    }
}
