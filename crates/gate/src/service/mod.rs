//! Calls of servers' tools: what they mean, and what that weighs.
//!
//! What a server says of itself counts for nothing. A person says once what its tools do and what
//! their arguments stand for ([`Meanings`]); without that, every call is of high risk. A call whose
//! meaning is known is judged by where its values go. It is never contained by the sandbox that its
//! server runs in: what a call means happens elsewhere.

mod hosts;
mod meanings;
mod propose;

use std::collections::BTreeMap;

use gyrus_contract::{
    ArgumentRole, ArgumentValue, Grant, Judgement, MeantCall, Reach, ResolvedCall, Risk, Service,
    ToolAction, ToolMeaning, ToolSpec,
};
use gyrus_text::{folded_name, is_named, links, may_be_file, one_line, shorten};

use crate::{
    destinations,
    weight::{TouchWeight, uses_secret},
};

pub(crate) use self::{
    hosts::host_of,
    meanings::files,
    propose::{table, words},
};
pub use self::{
    meanings::{ConfirmedTool, Meanings, MeaningsError, ServerMeanings},
    propose::propose,
};

/// Characters of a value on a card.
const SHOWN: usize = 120;

/// Splits a call into values by the meaning of its tool. The links in written text are values of
/// their own.
pub(crate) fn take_apart(
    call: &ResolvedCall,
    spec: &ToolSpec,
    meaning: Option<&ToolMeaning>,
) -> MeantCall {
    let unknown = ToolMeaning {
        action: ToolAction::Sends,
        arguments: BTreeMap::new(),
    };
    let values = meaning.unwrap_or(&unknown);
    let mut values = values.values(&call.arguments, &spec.parameters);
    add_links(&mut values);
    MeantCall {
        name: call.tool.clone(),
        action: meaning.map(|meaning| meaning.action),
        values,
    }
}

/// Adds the links in written text, which are values of their own.
pub(crate) fn add_links(values: &mut Vec<ArgumentValue>) {
    let texts = values
        .iter()
        .filter(|value| value.role == Some(ArgumentRole::Text));
    let links: Vec<_> = texts
        .flat_map(|value| {
            links(&value.text).into_iter().map(|link| ArgumentValue {
                path: value.path.clone(),
                role: Some(ArgumentRole::Page),
                text: link,
                is_text: true,
            })
        })
        .collect();
    values.extend(links);
}

/// Returns the hosts in the values of a call, for rules about hosts; an empty text if unknown.
pub(crate) fn hosts(meant: &MeantCall) -> impl Iterator<Item = String> {
    let is_address = |value: &&ArgumentValue| {
        value.role == Some(ArgumentRole::Page)
            || (value.role.is_none() && matches!(value.path.as_str(), "url" | "uri"))
    };
    let pages = meant.values.iter().filter(is_address);
    pages.map(|value| host_of(&value.text).unwrap_or_default())
}

/// Returns a destination in the form that a grant stores: a host, or the text without differences
/// in spelling.
fn granted_form(value: &ArgumentValue) -> String {
    let host = (value.role == Some(ArgumentRole::Page))
        .then(|| host_of(&value.text))
        .flatten();
    host.unwrap_or_else(|| folded_name(&value.text))
}

/// Weighs calls of one server's tool.
pub(crate) struct ServiceScales<'a> {
    pub(crate) service: &'a Service,
    pub(crate) call: &'a ResolvedCall,
    pub(crate) meant: &'a MeantCall,
    pub(crate) under: &'a Judgement<'a>,
    pub(crate) standing: &'a [Grant],
}

impl ServiceScales<'_> {
    /// Returns all weights of the call, whose effects are not known here, whatever the server
    /// claims.
    pub(crate) fn weigh(&self) -> Vec<TouchWeight> {
        let server = &self.service.server;
        let mut weights = match self.meant.action {
            _ if self.service.reach == Reach::Everything => vec![TouchWeight::critical(format!(
                "asks the server `{server}`, and no sandbox contains what it does"
            ))],
            Some(action) => self.weigh_meant(action),
            None => vec![self.weigh_unknown()],
        };
        // Under a policy that knows no meaning, there is nothing that a mandate could be about.
        let mandated = self.under.mandated.filter(|_| self.meant.action.is_some());
        if let Some(id) = mandated {
            let high = weights
                .iter_mut()
                .filter(|weight| weight.risk == Risk::High);
            high.for_each(|weight| {
                weight.risk = Risk::Moderate;
                weight.contained = true;
                weight.changes = false;
                weight
                    .reason
                    .push_str(&format!(", as call `{id}` of the mandate says"));
            });
            let own = weights
                .iter_mut()
                .filter(|weight| weight.risk == Risk::Moderate);
            own.for_each(|weight| weight.contained = true);
        }
        if uses_secret(&self.call.arguments) {
            let what = format!("hands a secret, which is kept from the model, to `{server}`");
            weights.push(TouchWeight::critical(what));
        }
        weights
    }

    /// Weighs a tool without a confirmed meaning.
    fn weigh_unknown(&self) -> TouchWeight {
        let reaches = match self.service.reach {
            Reach::Workspace => "which can change the workspace",
            Reach::Hosts => {
                "which can change the workspace and reaches hosts that you named for it"
            }
            Reach::Elsewhere | Reach::Everything => "which gyrus neither runs nor contains",
        };
        let server = &self.service.server;
        let destroys = if self.service.destructive {
            "; it says itself that this destroys"
        } else {
            ""
        };
        let weight = TouchWeight::new(
            Risk::High,
            format!(
                "asks the server `{server}`, {reaches}; nobody said what this does (gyrus mcp \
                 roles {server}){destroys}"
            ),
        );
        if self.service.destructive {
            weight.each_time()
        } else {
            weight.unless(self.whole_tool())
        }
    }

    fn whole_tool(&self) -> Grant {
        Grant::Service {
            tool: self.call.tool.clone(),
            definition: self.service.definition,
        }
    }

    /// Weighs a call by the meaning that the person confirmed.
    fn weigh_meant(&self, action: ToolAction) -> Vec<TouchWeight> {
        let server = &self.service.server;
        let values = &self.meant.values;
        let goes = |value: &&ArgumentValue| match action {
            // Whoever reads shows no text to anybody.
            ToolAction::Reads => value.is_destination() && !is_link_in_text(value, values),
            _ => value.is_destination(),
        };
        let destinations = values.iter().filter(goes);
        let mut weights: Vec<_> = destinations.map(|value| self.destination(value)).collect();
        let goes_nowhere = weights.iter().all(|weight| weight.risk < Risk::High);
        let is_password = |value: &&ArgumentValue| value.role == Some(ArgumentRole::Password);
        weights.extend(values.iter().filter(is_password).map(|value| {
            let path = shown(&value.path);
            TouchWeight::critical(format!("hands `{server}` a password or code, in `{path}`"))
        }));
        let at = |risk, what: &str| TouchWeight::new(risk, format!("{what} the server `{server}`"));
        let own = |what: &str| {
            // What was read may have asked for it, and the mandate says what the person did.
            if self.under.exposed && self.under.has_mandate && self.under.mandated.is_none() {
                let what = format!("does what the mandate does not state: it {what}");
                at(Risk::High, &what).unless(self.whole_tool())
            } else {
                at(Risk::Moderate, what).unless(self.whole_tool())
            }
        };
        weights.extend(match action {
            ToolAction::Reads => Some(at(Risk::Safe, "reads from").contained()),
            ToolAction::Creates if goes_nowhere => Some(own("creates something of your own at")),
            ToolAction::Changes if goes_nowhere => Some(own("changes something of your own at")),
            ToolAction::Sends if goes_nowhere => {
                Some(at(Risk::High, "sends by").unless(self.whole_tool()))
            }
            // Its destinations have their own weights.
            ToolAction::Creates | ToolAction::Changes | ToolAction::Sends => None,
            ToolAction::Pays => Some(at(Risk::High, "pays by").each_time()),
            ToolAction::Deletes => Some(at(Risk::Critical, "deletes at")),
        });
        weights
    }

    fn destination(&self, value: &ArgumentValue) -> TouchWeight {
        let text = shown(&value.text);
        let path = shown(&value.path);
        if value.role == Some(ArgumentRole::Page)
            && let Some((host, port)) = host_of(&value.text).as_deref().map(split_port)
            && let Some(why) = destinations::why_trusted(host, port, self.under, self.standing)
        {
            return TouchWeight::safe(format!("`{text}`: {why}"));
        }
        let is_named = is_named(&value.text, self.under.trusted);
        if value.role == Some(ArgumentRole::Page) && is_named && may_be_file(&value.text) {
            return TouchWeight::safe(format!("`{text}` is a file's name that you typed"));
        }
        let whose = if is_named {
            "which you named"
        } else {
            "which you did not name"
        };
        let reason = match value.role {
            None => {
                format!("`{text}` in `{path}`, which nobody described, and which may be a place")
            }
            Some(ArgumentRole::Page) => format!("leads to `{text}`, in `{path}`, {whose}"),
            Some(_) => format!("goes to `{text}`, {whose}"),
        };
        TouchWeight::new(Risk::High, reason).unless(Grant::Recipient {
            tool: self.call.tool.clone(),
            definition: self.service.definition,
            to: granted_form(value),
        })
    }
}

/// Whether the value is a link inside a text of the same argument.
fn is_link_in_text(value: &ArgumentValue, all: &[ArgumentValue]) -> bool {
    let mut texts = all
        .iter()
        .filter(|other| other.role == Some(ArgumentRole::Text));
    value.role == Some(ArgumentRole::Page) && texts.any(|text| text.path == value.path)
}

fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port.parse().ok()),
        _ => (host, None),
    }
}

fn shown(text: &str) -> String {
    one_line(&shorten(text, SHOWN)).into_owned()
}
