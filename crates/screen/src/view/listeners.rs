//! Finds the elements that listen for the mouse. Scripts of another world cannot find out; the
//! browser reports it, and the page does not notice.
//!
//! The browser is asked for a document and for each shadow root in it, since it goes into neither
//! from the other.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::json;

use super::{
    memory::KnownListeners,
    pierce::{RemoteResult, ResolveResult},
};
use crate::{browser::BrowserSession, cdp::CdpError, state::PageFrame};

/// Maximum number of new elements per look; the others follow with the next one.
const MAX_NEW: usize = 1_000;

/// Maximum number of shadow roots per document whose listeners are read.
const MAX_ROOTS: usize = 300;

/// Number of kinds of events from which on an element counts as the root of a framework, which
/// listens on behalf of the elements in it.
const OF_A_FRAMEWORK: usize = 16;

/// Ways of using an element by the mouse, as bits that `page/tell.js` reads.
const PRESSED: u8 = 1;
const POINTED_AT: u8 = 2;
const DROPPED_ON: u8 = 4;

/// Returns the use that a kind of event indicates, or 0.
fn use_of(kind: &str) -> u8 {
    match kind {
        "click" | "dblclick" | "mousedown" | "mouseup" | "pointerdown" | "pointerup"
        | "contextmenu" => PRESSED,
        "mouseenter" | "mouseover" | "pointerenter" | "pointerover" => POINTED_AT,
        "drop" | "dragover" => DROPPED_ON,
        _ => 0,
    }
}

/// Returns the uses of elements that their listeners show, by the browser's node numbers.
fn uses(listeners: Vec<DomListener>) -> BTreeMap<i64, u8> {
    let mut kinds: BTreeMap<i64, (BTreeSet<String>, u8)> = BTreeMap::new();
    for one in listeners.into_iter().filter(|one| one.backend_node_id != 0) {
        let (kinds, uses) = kinds.entry(one.backend_node_id).or_default();
        *uses |= use_of(&one.kind);
        kinds.insert(one.kind);
    }
    let used = |(id, (kinds, uses)): (i64, (BTreeSet<String>, u8))| {
        (uses != 0 && kinds.len() < OF_A_FRAMEWORK).then_some((id, uses))
    };
    kinds.into_iter().filter_map(used).collect()
}

#[derive(Default, Deserialize)]
struct NodeListeners {
    listeners: Vec<DomListener>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DomListener {
    #[serde(rename = "type")]
    kind: String,
    /// Number of the element; missing for the window.
    #[serde(default)]
    backend_node_id: i64,
}

#[derive(Deserialize)]
struct NodeDescription {
    node: NodeNumber,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeNumber {
    backend_node_id: i64,
}

/// Returns the group of our handles on elements of a document, released together.
fn group(frame: &PageFrame) -> String {
    format!("gyrus-listeners-{}", frame.document)
}

impl BrowserSession {
    /// Passes the listening elements of a frame to our world, each element once. Pages add
    /// listeners without any event, so the browser is asked each time.
    pub(super) async fn hear(&self, frame: &PageFrame) -> Result<(), CdpError> {
        let session = &frame.session;
        let document = self.document_of_page(frame).await?;
        let mut roots = vec![document.clone()];
        roots.extend(self.roots_of_page(frame).await?);
        let asking = roots.iter().map(|root| {
            // The browser reports listeners of the world that the object belongs to. Asked for those
            // of all worlds, by `pierce`, Chromium 156 goes into the fields' own shadow trees and
            // corrupts them: hit tests go wrong, and then it crashes.
            let order = json!({"objectId": root, "depth": -1});
            let method = "DOMDebugger.getEventListeners";
            self.cdp.call::<NodeListeners>(session, method, order)
        });
        let mut answers = join_all(asking).await.into_iter();
        let own = answers.next().unwrap_or(Ok(NodeListeners::default()));
        if own.is_err() {
            self.memory.lock().heard.remove(&frame.document);
        }
        // A shadow root that has gone has no listeners.
        let all = own?.listeners.into_iter();
        let all = all.chain(answers.flatten().flat_map(|one| one.listeners));
        let new = self.not_heard_of(frame, uses(all.collect()));
        if new.is_empty() {
            return Ok(());
        }
        let group = group(frame);
        let resolving = new.iter().map(|(id, _)| self.resolve(frame, *id, &group));
        let found = join_all(resolving).await.into_iter().zip(&new);
        // Some have gone meanwhile, or stand in a frame within.
        let arguments = found.filter_map(|(id, (_, uses))| {
            Some([json!({"objectId": id.ok()?}), json!({"value": uses})])
        });
        let order = json!({
            "executionContextId": frame.world.unwrap_or_default(),
            "functionDeclaration": "function(...heard) { gyrus.hear(heard); }",
            "arguments": arguments.flatten().collect::<Vec<_>>(),
        });
        // The next command is carried out after it.
        self.cdp.send(session, "Runtime.callFunctionOn", order);
        self.release(session, &group);
        Ok(())
    }

    /// Returns the listening elements that our world does not know yet, with their uses, and marks
    /// them as known.
    fn not_heard_of(&self, frame: &PageFrame, uses: BTreeMap<i64, u8>) -> Vec<(i64, u8)> {
        let mut memory = self.memory.lock();
        let Some(heard) = memory.heard.get_mut(&frame.document) else {
            return Vec::new();
        };
        // Elements that listen no more may be gone; their numbers are not reused.
        heard.known.retain(|id, _| uses.contains_key(id));
        let new = uses.into_iter();
        let new = new.filter(|(id, uses)| heard.known.get(id) != Some(uses));
        let new: Vec<(i64, u8)> = new.take(MAX_NEW).collect();
        heard.known.extend(new.iter().copied());
        new
    }

    /// Returns the known shadow roots of a document as objects of the page, each created once.
    async fn roots_of_page(&self, frame: &PageFrame) -> Result<Vec<String>, CdpError> {
        let group = group(frame);
        let new = self.objects(frame, "gyrus.newRoots()", &group).await?;
        let creating = new.into_iter().map(|root| self.as_of_page(frame, root));
        let created = join_all(creating).await;
        let mut memory = self.memory.lock();
        let Some(heard) = memory.heard.get_mut(&frame.document) else {
            return Ok(Vec::new());
        };
        heard.roots.extend(created.into_iter().flatten());
        heard.roots.truncate(MAX_ROOTS);
        Ok(heard.roots.clone())
    }

    /// Returns the page's own object for a node of our world.
    async fn as_of_page(&self, frame: &PageFrame, ours: String) -> Result<String, CdpError> {
        let session = &frame.session;
        let order = json!({"objectId": ours});
        let described: NodeDescription = self.cdp.call(session, "DOM.describeNode", order).await?;
        let order = json!({"backendNodeId": described.node.backend_node_id});
        let resolved: ResolveResult = self.cdp.call(session, "DOM.resolveNode", order).await?;
        Ok(resolved.object.object_id)
    }

    /// Returns the document of a frame as the page's own object, created once.
    async fn document_of_page(&self, frame: &PageFrame) -> Result<String, CdpError> {
        let heard = self
            .memory
            .lock()
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
        let ours: RemoteResult = self.cdp.call(session, "Runtime.evaluate", order).await?;
        let document = self.as_of_page(frame, ours.result.object_id).await;
        self.release(session, &group(frame));
        let document = document?;
        let documents: BTreeSet<u32> = {
            let state = self.state();
            state.frames.values().map(|frame| frame.document).collect()
        };
        let mut memory = self.memory.lock();
        memory.heard.retain(|known, _| documents.contains(known));
        let heard = KnownListeners {
            document: document.clone(),
            roots: Vec::new(),
            known: BTreeMap::new(),
        };
        memory.heard.insert(frame.document, heard);
        Ok(document)
    }
}
