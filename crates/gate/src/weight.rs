//! The weight of one thing that a call does.

use gyrus_contract::{Grant, Risk};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct TouchWeight {
    pub(crate) risk: Risk,
    pub(crate) reason: String,
    /// Whether the damage stays within the workspace.
    pub(crate) contained: bool,
    /// Whether the damage is bounded only because the workspace may be lost.
    pub(crate) within: bool,
    /// Whether the touch changes something that has to be undone.
    pub(crate) changes: bool,
    /// Whether no approval can allow the touch.
    pub(crate) forbidden: bool,
    /// The grant that would allow the touch.
    pub(crate) grant: Option<Grant>,
    /// Whether no grant covers the touch, so that it is asked about each time.
    pub(crate) each_time: bool,
}

impl TouchWeight {
    pub(crate) fn new(risk: Risk, reason: impl Into<String>) -> Self {
        Self {
            risk,
            reason: reason.into(),
            contained: false,
            within: false,
            changes: false,
            forbidden: false,
            grant: None,
            each_time: false,
        }
    }

    pub(crate) fn critical(reason: impl Into<String>) -> Self {
        Self::new(Risk::Critical, reason)
    }

    pub(crate) fn safe(reason: impl Into<String>) -> Self {
        Self::new(Risk::Safe, reason).contained()
    }

    pub(crate) fn contained(mut self) -> Self {
        self.contained = true;
        self
    }

    pub(crate) fn within(mut self) -> Self {
        self.within = true;
        self
    }

    pub(crate) fn changes(mut self) -> Self {
        self.changes = true;
        self
    }

    pub(crate) fn forbidden(mut self) -> Self {
        self.forbidden = true;
        self
    }

    pub(crate) fn each_time(mut self) -> Self {
        self.each_time = true;
        self
    }

    /// Returns the grant of exact words that would allow the touch; no other grant reaches what is
    /// critical.
    pub(crate) fn by_words(&self) -> Option<&Grant> {
        let grant = self.grant.as_ref();
        grant.filter(|grant| matches!(grant, Grant::Program { .. }))
    }

    pub(crate) fn unless(mut self, grant: Grant) -> Self {
        self.grant = Some(grant);
        self
    }
}

/// Whether an argument names a secret, to be put in its place.
pub(crate) fn uses_secret(arguments: &Value) -> bool {
    match arguments {
        Value::String(text) => text.contains("⟦secret:"),
        Value::Array(all) => all.iter().any(uses_secret),
        Value::Object(all) => all.values().any(uses_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
