//! Answers of the browser to requests for an object of a page.

use serde::Deserialize;

/// The answer to `DOM.resolveNode`.
#[derive(Deserialize)]
pub(super) struct ResolveResult {
    pub(super) object: Object,
}

/// Answer to `Runtime.evaluate` and `Runtime.callFunctionOn`.
#[derive(Deserialize)]
pub(super) struct RemoteResult {
    pub(super) result: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    /// Id of the object; empty for a plain value.
    #[serde(default)]
    pub(super) object_id: String,
    /// Description of the object's kind, as `Array(0)`.
    #[serde(default)]
    pub(super) description: String,
}
