//! A small office: one server of tools over HTTP, for the behaviour of single mandates. The office
//! that is attacked is one of `tests/attacks`.

use std::sync::Arc;

use serde_json::Value;

use crate::tool_server::{Definition, Shared, ToolServer};

/// An office. Its server ends with the tests.
pub(crate) struct Office {
    address: String,
    shared: Arc<Shared>,
}

impl Office {
    /// Opens an office with these `events`, `mails` and `files`.
    pub(crate) fn open(data: Value) -> Self {
        let mut definition: Definition = toml::from_str(include_str!("office.toml")).unwrap();
        definition.data = serde_json::from_value(data).unwrap();
        let shared: Arc<Shared> = Arc::default();
        let server = ToolServer::new("office", definition, shared.clone());
        Self {
            address: server.over_http(),
            shared,
        }
    }

    /// The section of a configuration that names it.
    pub(crate) fn section(&self) -> String {
        format!("[mcp.office]\nurl = \"{}\"\n", self.address)
    }

    /// Everything that was sent, created, paid or deleted, in order.
    pub(crate) fn ledger(&self) -> Vec<String> {
        let ledger = self.shared.ledger.lock();
        let lines = ledger.iter().map(|(tool, with)| format!("{tool} {with}"));
        lines.collect()
    }
}
