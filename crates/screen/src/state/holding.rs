//! Requests that a page sends to another site because of an input: held until they are answered.
//!
//! The browser pauses all requests that can carry data, whichever page, frame or worker they come
//! from. Most continue at once. Between an input and the next look, a request that does not merely
//! fetch and goes to an origin that the gate did not name is held. Nothing here waits: held
//! requests are reported, and end with their page, with an answer, or after a few turns.

use std::{collections::HashMap, mem};

use gyrus_contract::HeldRequest;
use serde::Deserialize;

use super::{
    BrowserState, EventReaction, TabState,
    held::{InterceptedRequest, MaySend, RequestHold},
};
use crate::{
    cdp::CdpEvent,
    sent::{ExpectedForm, SentRequest, body_of},
};

/// Maximum number of requests held at once; more are blocked.
const MAX_HELD: usize = 10;

/// Number of looks and actions for which a request may be held.
const MAX_TURNS: u32 = 20;

/// Maximum number of characters of a reported address.
const MAX_ADDRESS: usize = 300;

/// Kinds of requests that can carry data; all others only fetch.
pub(crate) const KINDS: [&str; 6] = [
    "Document",
    "XHR",
    "Fetch",
    "Ping",
    "CSPViolationReport",
    "Other",
];

/// Kinds of requests whose answer no script needs: they are blocked without a question.
const NOISE: [&str; 2] = ["Ping", "CSPViolationReport"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestPaused {
    request_id: String,
    request: PausedRequest,
    #[serde(default)]
    frame_id: String,
    #[serde(default)]
    resource_type: String,
    network_id: Option<String>,
    /// The request that was redirected to this address.
    redirected_request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PausedRequest {
    url: String,
    method: String,
    #[serde(default)]
    headers: HashMap<String, String>,
    #[serde(default)]
    post_data_entries: Vec<PostData>,
}

#[derive(Deserialize)]
struct PostData {
    /// Base64 data; missing for a file.
    bytes: Option<String>,
}

impl RequestPaused {
    fn is_form(&self, form: &ExpectedForm) -> bool {
        let body = self.body();
        form.is(&self.request.url, self.content_type(), body.as_deref())
    }

    fn contradicts(&self, form: &ExpectedForm) -> bool {
        let body = self.body();
        form.is_contradicted(&SentRequest {
            is_document: self.resource_type == "Document",
            only_fetches: self.only_fetches(),
            address: &self.request.url,
            content_type: self.content_type(),
            body: body.as_deref(),
        })
    }

    fn content_type(&self) -> &str {
        let mut headers = self.request.headers.iter();
        let kind = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        kind.map_or("", |(_, kind)| kind.as_str())
    }

    fn body(&self) -> Option<Vec<u8>> {
        let entries = self.request.post_data_entries.iter();
        body_of(entries.map(|posted| posted.bytes.as_deref()))
    }

    fn only_fetches(&self) -> bool {
        ["GET", "HEAD", "OPTIONS"].contains(&self.request.method.as_str())
    }

    /// Whether a script requests an address that indicates an action.
    fn orders_by_address(&self, link_to: Option<&str>) -> bool {
        let address = &self.request.url;
        self.redirected_request_id.is_none()
            && link_to.is_none_or(|link| without_fragment(link) != without_fragment(address))
            && says_an_order(address)
    }

    /// Whether the request is a query in GraphQL, which pages send in the same way as orders.
    fn only_reads(&self) -> bool {
        #[derive(Deserialize)]
        struct GraphQuery {
            query: String,
        }
        let body = self.body().unwrap_or_default();
        let asked: Result<GraphQuery, _> = serde_json::from_slice(&body);
        asked.is_ok_and(|asked| {
            let query = asked.query.trim_start();
            let is_question = query.starts_with("query") || query.starts_with('{');
            is_question && !query.contains("mutation")
        })
    }

    /// Returns the size; `None` if the browser does not report all of it.
    fn bytes(&self) -> Option<u64> {
        let of = |posted: &PostData| {
            let text = posted.bytes.as_ref()?.trim_end_matches('=');
            Some(text.len() * 3 / 4)
        };
        let entries = &self.request.post_data_entries;
        let sum: usize = entries.iter().map(of).sum::<Option<_>>()?;
        (!entries.is_empty()).then_some(u64::try_from(sum).unwrap_or(u64::MAX))
    }
}

impl BrowserState {
    /// Handles a request that is about to be sent.
    pub(super) fn take_paused(&mut self, event: CdpEvent<'_>) -> Option<EventReaction> {
        let paused: RequestPaused = event.params()?;
        self.holdings.forget_old();
        let stopped = InterceptedRequest {
            session: event.session.to_owned(),
            id: paused.request_id.clone(),
        };
        let origin = origin_of(&paused.request.url);
        if self.is_closed_to_pages(origin.as_deref()) {
            return Some(EventReaction::Block {
                requests: vec![stopped],
            });
        }
        if self.is_not_the_form(&paused) {
            self.holdings.not_the_form += 1;
            return Some(EventReaction::Block {
                requests: vec![stopped],
            });
        }
        if self.may_go(&paused, origin.as_deref()) {
            return Some(EventReaction::LetPass { request: stopped });
        }
        let held = self.holdings.all.iter().filter(|one| !one.is_over).count();
        if NOISE.contains(&paused.resource_type.as_str()) || held >= MAX_HELD {
            self.holdings.blocked += 1;
            return Some(EventReaction::Block {
                requests: vec![stopped],
            });
        }
        let is_document = paused.resource_type == "Document";
        // A script may wait for it synchronously and block the page.
        let frame = self.frames.get(&paused.frame_id);
        let probe = frame
            .filter(|_| !is_document)
            .map(|frame| EventReaction::Probe {
                session: frame.session.clone(),
                request: stopped.clone(),
            });
        self.hold(paused, stopped, origin.unwrap_or_default(), is_document);
        probe
    }

    /// Whether a page may not connect to an origin. Ports of this machine are compared under any of
    /// its names.
    fn is_closed_to_pages(&self, origin: Option<&str>) -> bool {
        let port = origin.and_then(|origin| origin.rsplit_once(':')?.1.parse().ok());
        port.is_some() && (port == self.own_page || port == self.debugging)
    }

    fn hold(
        &mut self,
        paused: RequestPaused,
        id: InterceptedRequest,
        origin: String,
        is_document: bool,
    ) {
        let holdings = &mut self.holdings;
        holdings.counted += 1;
        let by = holdings.wake.as_ref().map_or("", |wake| wake.by.as_str());
        let what = if is_document { "a form" } else { "a script" };
        holdings.all.push(RequestHold {
            shown: HeldRequest {
                number: holdings.counted,
                bytes: paused.bytes(),
                method: gyrus_text::first_chars(&paused.request.method, 20).to_owned(),
                origin,
                address: gyrus_text::first_chars(&paused.request.url, MAX_ADDRESS).to_owned(),
                started_by: format!("{what}, after {by}"),
                // A page that waits for the next document does not answer.
                blocks: is_document,
            },
            id,
            network: paused.network_id,
            frame: paused.frame_id,
            link: holdings.wake.as_ref().and_then(|wake| wake.link.clone()),
            turns: 0,
            is_over: false,
        });
    }

    fn may_go(&self, paused: &RequestPaused, origin: Option<&str>) -> bool {
        let Some(wake) = &self.holdings.wake else {
            return true;
        };
        let orders = || wake.link.is_some() && paused.orders_by_address(wake.link_to.as_deref());
        let Some(origin) = origin.filter(|_| !paused.only_fetches() || orders()) else {
            return true;
        };
        if wake.link.is_some() && !self.is_later(paused) {
            return paused.only_reads();
        }
        self.is_later(paused) || wake.allowed.iter().any(|allowed| allowed == origin)
    }

    /// Whether a request comes from a document that was opened after the action began.
    fn is_later(&self, paused: &RequestPaused) -> bool {
        let wake = self.holdings.wake.as_ref();
        let frame = self.frames.get(&paused.frame_id);
        let last = wake.and_then(|wake| wake.up_to);
        last.zip(frame)
            .is_some_and(|(last, frame)| frame.document > last)
    }

    /// Whether a request has other content than the judged form. If only that form may be sent and
    /// this is it, nothing more may be sent.
    fn is_not_the_form(&mut self, paused: &RequestPaused) -> bool {
        if self.is_later(paused) {
            return false;
        }
        let Some(wake) = &mut self.holdings.wake else {
            return false;
        };
        match &wake.sends {
            MaySend::LikeForm(form) => paused.contradicts(form),
            MaySend::Anything => false,
            _ if paused.only_fetches() => false,
            MaySend::Form(form) if paused.is_form(form) => {
                wake.sends = MaySend::NothingMore;
                false
            }
            MaySend::NothingYet | MaySend::Form(_) | MaySend::NothingMore => true,
        }
    }

    /// Returns a sentence about requests of the last action that were not the form which it was to
    /// send; empty if there were none.
    pub(crate) fn told_of_other_forms(&mut self) -> String {
        match mem::take(&mut self.holdings.not_the_form) {
            0 => String::new(),
            many => format!(
                " Blocked {}: the page wanted to send something else than its form as it stood. \
                 Look whether the form was sent at all.",
                gyrus_text::counted(many, "request")
            ),
        }
    }

    /// Returns the requests that wait for an answer.
    pub(crate) fn held_requests(&self) -> impl Iterator<Item = &RequestHold> {
        self.holdings.all.iter().filter(|one| !one.is_over)
    }

    pub(crate) fn held_up_by(&self, tab: &TabState) -> Option<&HeldRequest> {
        let mut held = self.held_requests().filter(|one| one.shown.blocks);
        let found = held.find(|one| {
            self.tab_of_frame(&one.frame)
                .is_some_and(|of| of.number == tab.number)
        });
        found.map(|one| &one.shown)
    }

    /// Whether a request in progress is held, and so not waited for.
    pub(crate) fn is_held(&self, network: &str) -> bool {
        self.held_requests()
            .any(|one| one.network.as_deref() == Some(network))
    }

    /// Marks a request that blocks its page while it is held.
    pub(crate) fn blocks(&mut self, id: &InterceptedRequest) {
        let mut all = self.holdings.all.iter_mut();
        if let Some(one) = all.find(|one| one.id == *id) {
            one.shown.blocks = true;
            self.changes += 1;
        }
    }

    /// Removes a request that was answered. It counts as sent now.
    pub(crate) fn answered(&mut self, number: u32) -> Option<RequestHold> {
        let all = &mut self.holdings.all;
        let at = all
            .iter()
            .position(|one| one.shown.number == number && !one.is_over)?;
        let one = all.remove(at);
        let now = std::time::Instant::now();
        self.acted = Some(now);
        for ((_, network), request) in &mut self.requests {
            if one.network.as_ref() == Some(network) {
                request.since = now;
            }
        }
        self.changes += 1;
        Some(one)
    }

    pub(super) fn request_ended(&mut self, network: &str) {
        let mut all = self.holdings.all.iter_mut();
        if let Some(one) = all.find(|one| one.network.as_deref() == Some(network)) {
            one.is_over = true;
        }
    }

    /// Marks the held requests of this frame to be blocked.
    pub(crate) fn doom(&mut self, frame: &str) {
        let of_frame = |one: &RequestHold| one.frame == frame;
        self.holdings.end(of_frame);
    }

    /// Hands the screen to a person: their requests are not held, and waiting ones are blocked.
    pub(crate) fn lets_a_person(&mut self) -> Option<EventReaction> {
        self.holdings.wake = None;
        self.holdings.end(|_| true);
        self.blocking_order()
    }

    /// Returns the order to block the marked requests, if there are any.
    pub(crate) fn blocking_order(&mut self) -> Option<EventReaction> {
        let requests = mem::take(&mut self.holdings.to_block);
        (!requests.is_empty()).then_some(EventReaction::Block { requests })
    }

    /// Counts a look or a call, and ends requests that have been held for too many of them.
    pub(crate) fn turn(&mut self) -> Option<EventReaction> {
        for one in &mut self.holdings.all {
            one.turns += 1;
        }
        self.holdings.end(|one| one.turns > MAX_TURNS);
        self.blocking_order()
    }

    /// Describes the requests held after the first `counted`, in sentences.
    pub(crate) fn held_since(&self, counted: u32) -> Vec<String> {
        let new = self.holdings.all.iter();
        let new = new.filter(|one| one.shown.number > counted);
        new.map(|one| {
            if !one.is_over {
                format!(
                    "Held: {}. It is not sent until answer_request lets it go.",
                    one.shown
                )
            } else {
                format!("{} was held, and its page gave it up.", one.shown)
            }
        })
        .collect()
    }

    /// Returns the notes about held requests for a look, each once.
    pub(crate) fn notes_of_held(&mut self) -> Vec<String> {
        let holdings = &mut self.holdings;
        let over = |one: &RequestHold| one.is_over;
        let mut notes: Vec<String> = holdings
            .all
            .iter()
            .filter(|one| over(one))
            .map(|one| format!("{} ended without an answer and was not sent", one.shown))
            .collect();
        holdings.all.retain(|one| !over(one));
        match mem::take(&mut holdings.blocked) {
            0 => {}
            many => notes.push(format!(
                "what the page reports by itself was not sent ({})",
                gyrus_text::counted(many, "time")
            )),
        }
        notes
    }
}

/// Words in addresses by which a server performs an action although the request only reads.
const ORDERS: [&str; 22] = [
    "delete",
    "remove",
    "destroy",
    "erase",
    "purge",
    "wipe",
    "pay",
    "buy",
    "purchase",
    "transfer",
    "withdraw",
    "send",
    "approve",
    "grant",
    "revoke",
    "confirm",
    "cancel",
    "unsubscribe",
    "deactivate",
    "terminate",
    "uninstall",
    "publish",
];

/// Query keys whose values are search words.
const SEARCHES: [&str; 5] = ["q", "query", "search", "s", "term"];

fn without_fragment(address: &str) -> &str {
    address.split('#').next().unwrap_or_default()
}

/// Whether a step of an address, or a part of its query, is a word for an action.
fn says_an_order(address: &str) -> bool {
    let plain = without_fragment(address).to_lowercase();
    let rest = plain.split_once("://").map_or("", |(_, rest)| rest);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let steps = path.split('/').skip(1);
    let pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let pairs = pairs.filter(|(key, _)| !SEARCHES.contains(key));
    let parts = steps.chain(pairs.flat_map(|(key, value)| [key, value]));
    let mut words = parts.flat_map(|part| part.split(|it: char| !it.is_alphanumeric()));
    words.any(|word| ORDERS.contains(&word))
}

/// Returns the origin of a web address as browsers write it; `None` for other addresses.
fn origin_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    if scheme != "http" && scheme != "https" {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::{origin_of, says_an_order};

    #[test]
    fn addresses_that_do_something_say_so() {
        for (address, says) in [
            ("https://a.example/delete?id=3", true),
            ("https://a.example/items/3/remove", true),
            ("https://a.example/api?action=PAY&sum=3", true),
            ("https://a.example/do.php?delete_item=4", true),
            ("https://delete.example/items/3#delete", false),
            ("https://a.example/items?q=delete", false),
            ("https://a.example/api/payments/sender", false),
        ] {
            assert_eq!(says_an_order(address), says, "{address}");
        }
    }

    #[test]
    fn origins_are_those_of_browsers() {
        for (address, origin) in [
            ("https://a.example/x?y=//z", Some("https://a.example")),
            ("http://127.0.0.1:80?x", Some("http://127.0.0.1:80")),
            (
                "https://good.example@evil.example/",
                Some("https://evil.example"),
            ),
            ("http://[::1]:8/", Some("http://[::1]:8")),
            ("blob:https://a.example/1", None),
            ("data:text/plain,x", None),
        ] {
            assert_eq!(origin_of(address).as_deref(), origin, "{address}");
        }
    }
}
