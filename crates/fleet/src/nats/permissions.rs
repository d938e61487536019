//! The rights that a worker needs on the servers, and no more.

use super::streams::stream_name;

/// Returns the `permissions` block of a user of the servers who works for this fleet.
pub fn permissions(fleet: &str) -> String {
    let streams = stream_name(fleet, "*");
    format!(
        "permissions {{\n  \
           publish: [\n    \
             \"gyrus.{fleet}.>\"\n    \
             \"$JS.API.STREAM.INFO.{streams}\"\n    \
             \"$JS.API.STREAM.CREATE.{streams}\"\n    \
             \"$JS.API.DIRECT.GET.{streams}\"\n    \
             \"$JS.API.INFO\"\n  \
           ]\n  \
           subscribe: [ \"gyrus.{fleet}.>\", \"_INBOX.>\" ]\n\
         }}\n"
    )
}
