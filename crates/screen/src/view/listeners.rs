//! Which elements listen for the mouse. No script of another world can find out; the browser tells,
//! and the page does not notice.

use std::collections::BTreeSet;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use crate::{browser::Session, cdp::CdpError, state::Frame};

/// Our handles on elements, released together.
const GROUP: &str = "gyrus-listeners";

/// Elements that one look hears of for the first time; the others are told by the next one.
const MAX_NEW: usize = 1_000;

const OF_THE_MOUSE: [&str; 6] = [
    "click",
    "dblclick",
    "mousedown",
    "mouseup",
    "pointerdown",
    "pointerup",
];

#[derive(Deserialize)]
struct Listening {
    listeners: Vec<Listener>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listener {
    #[serde(rename = "type")]
    kind: String,
    /// None of the window.
    #[serde(default)]
    backend_node_id: i64,
}

#[derive(Deserialize)]
struct Resolved {
    object: Object,
}

#[derive(Deserialize)]
struct Described {
    node: Node,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    backend_node_id: i64,
}

#[derive(Deserialize)]
struct Evaluated {
    result: Object,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    object_id: String,
}

impl Session {
    /// Tells our world of a frame which elements listen, each element once.
    pub(super) async fn hear(&self, frame: &Frame) -> Result<(), CdpError> {
        let session = &frame.session;
        let order = json!({
            "expression": "document",
            "contextId": frame.world.unwrap_or_default(),
            "objectGroup": GROUP,
        });
        let document: Evaluated = self.cdp.call(session, "Runtime.evaluate", order).await?;
        let of_page = self.as_the_page_has_it(frame, &document.result).await?;
        // It tells of listeners of the world that the object belongs to. Asked for those of all
        // worlds, by `pierce`, Chromium 156 goes into the fields' own shadow trees and crashes.
        let order = json!({"objectId": of_page, "depth": -1});
        let method = "DOMDebugger.getEventListeners";
        let listening: Listening = self.cdp.call(session, method, order).await?;
        let ids = listening.listeners.into_iter().filter_map(|one| {
            let is_of_the_mouse = OF_THE_MOUSE.contains(&one.kind.as_str());
            (is_of_the_mouse && one.backend_node_id != 0).then_some(one.backend_node_id)
        });
        let ids: BTreeSet<i64> = ids.collect();
        let new: Vec<i64> = {
            let documents: BTreeSet<u32> = {
                let state = self.state();
                state.frames.values().map(|frame| frame.document).collect()
            };
            let mut memory = self.memory();
            memory
                .heard
                .retain(|document, _| documents.contains(document));
            let known = memory.heard.entry(frame.document).or_default();
            // What listens no more may be gone; its number is not given again.
            known.retain(|id| ids.contains(id));
            let new: Vec<i64> = ids.difference(known).copied().take(MAX_NEW).collect();
            known.extend(&new);
            new
        };
        if !new.is_empty() {
            let resolving = new.iter().map(|id| self.resolve(frame, *id, GROUP));
            let found = futures_util::future::join_all(resolving).await;
            // Some have gone meanwhile, or stand in a frame within.
            let found = found.into_iter().flatten();
            let order = json!({
                "objectId": document.result.object_id,
                "functionDeclaration": "function(...elements) { gyrus.hear(elements); }",
                "arguments": found.map(|id| json!({"objectId": id})).collect::<Vec<_>>(),
            });
            let method = "Runtime.callFunctionOn";
            let _: IgnoredAny = self.cdp.call(session, method, order).await?;
        }
        let group = json!({"objectGroup": GROUP});
        self.cdp.send(session, "Runtime.releaseObjectGroup", group);
        Ok(())
    }

    /// An object of our world as one of the page's own.
    async fn as_the_page_has_it(&self, frame: &Frame, object: &Object) -> Result<String, CdpError> {
        let session = &frame.session;
        let order = json!({"objectId": object.object_id});
        let described: Described = self.cdp.call(session, "DOM.describeNode", order).await?;
        let order = json!({
            "backendNodeId": described.node.backend_node_id,
            "objectGroup": GROUP,
        });
        let resolved: Resolved = self.cdp.call(session, "DOM.resolveNode", order).await?;
        Ok(resolved.object.object_id)
    }
}
