//! Finds the elements that listen for the mouse. Scripts of another world cannot find out; the
//! browser reports it, and the page does not notice.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;

use super::{
    memory::Heard,
    remote::{Evaluated, Resolved},
};
use crate::{browser::Session, cdp::CdpError, state::Frame};

/// Maximum number of new elements per look; the others follow with the next one.
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
    /// Number of the element; missing for the window.
    #[serde(default)]
    backend_node_id: i64,
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

/// Returns the group of our handles on elements of a document, released together.
fn group(frame: &Frame) -> String {
    format!("gyrus-listeners-{}", frame.document)
}

impl Session {
    /// Tells our world of a frame which elements listen, each element once. Pages add listeners
    /// without any event, so the browser is asked each time.
    pub(super) async fn hear(&self, frame: &Frame) -> Result<(), CdpError> {
        let session = &frame.session;
        let document = self.document_of_page(frame).await?;
        // The browser reports listeners of the world that the object belongs to. Asked for those of
        // all worlds, by `pierce`, Chromium 156 goes into the fields' own shadow trees and corrupts
        // them: hit tests go wrong, and then it crashes.
        let order = json!({"objectId": document, "depth": -1});
        let method = "DOMDebugger.getEventListeners";
        let listening: Result<Listening, CdpError> = self.cdp.call(session, method, order).await;
        if listening.is_err() {
            self.memory().heard.remove(&frame.document);
        }
        let ids = listening?.listeners.into_iter().filter_map(|one| {
            let is_of_the_mouse = OF_THE_MOUSE.contains(&one.kind.as_str());
            (is_of_the_mouse && one.backend_node_id != 0).then_some(one.backend_node_id)
        });
        let new = self.not_heard_of(frame, document, ids.collect());
        if new.is_empty() {
            return Ok(());
        }
        let group = group(frame);
        let resolving = new.iter().map(|id| self.resolve(frame, *id, &group));
        let found = futures_util::future::join_all(resolving).await;
        // Some have gone meanwhile, or stand in a frame within.
        let found = found.into_iter().flatten();
        let order = json!({
            "executionContextId": frame.world.unwrap_or_default(),
            "functionDeclaration": "function(...elements) { gyrus.hear(elements); }",
            "arguments": found.map(|id| json!({"objectId": id})).collect::<Vec<_>>(),
        });
        // The next command is carried out after it.
        self.cdp.send(session, "Runtime.callFunctionOn", order);
        self.release(session, &group);
        Ok(())
    }

    /// Returns the listening elements that our world does not know yet, and marks them as known.
    fn not_heard_of(&self, frame: &Frame, document: String, ids: BTreeSet<i64>) -> Vec<i64> {
        let documents: BTreeSet<u32> = {
            let state = self.state();
            state.frames.values().map(|frame| frame.document).collect()
        };
        let mut memory = self.memory();
        memory
            .heard
            .retain(|document, _| documents.contains(document));
        let heard = memory.heard.entry(frame.document).or_insert_with(|| Heard {
            document,
            known: BTreeSet::new(),
        });
        // Elements that listen no more may be gone; their numbers are not reused.
        heard.known.retain(|id| ids.contains(id));
        let new = ids.difference(&heard.known).copied();
        let new: Vec<i64> = new.take(MAX_NEW).collect();
        heard.known.extend(&new);
        new
    }

    /// Returns the document of a frame as the page's own object, created once.
    async fn document_of_page(&self, frame: &Frame) -> Result<String, CdpError> {
        let heard = self
            .memory()
            .heard
            .get(&frame.document)
            .map(|heard| heard.document.clone());
        if let Some(document) = heard {
            return Ok(document);
        }
        let session = &frame.session;
        let order = json!({
            "expression": "document",
            "contextId": frame.world.unwrap_or_default(),
            "objectGroup": group(frame),
        });
        let ours: Evaluated = self.cdp.call(session, "Runtime.evaluate", order).await?;
        let order = json!({"objectId": ours.result.object_id});
        let described: Described = self.cdp.call(session, "DOM.describeNode", order).await?;
        let order = json!({"backendNodeId": described.node.backend_node_id});
        let resolved: Resolved = self.cdp.call(session, "DOM.resolveNode", order).await?;
        self.release(session, &group(frame));
        Ok(resolved.object.object_id)
    }
}
