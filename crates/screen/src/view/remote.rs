//! What the browser answers when it is asked for an object of a page.

use serde::Deserialize;

/// To `DOM.resolveNode`.
#[derive(Deserialize)]
pub(super) struct Resolved {
    pub(super) object: Object,
}

/// To `Runtime.evaluate` and `Runtime.callFunctionOn`.
#[derive(Deserialize)]
pub(super) struct Evaluated {
    pub(super) result: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object {
    /// Empty: a plain value, which is no object.
    #[serde(default)]
    pub(super) object_id: String,
}
