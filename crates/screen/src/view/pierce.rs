//! Information for scripts in a page that only the browser has: the frame that an element holds,
//! and closed shadow roots.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use crate::{browser::BrowserSession, cdp::CdpError, state::PageFrame};

/// Returns the group of our handles on elements of a document, released together: frames may be
/// read at once.
fn group(frame: &PageFrame) -> String {
    format!("gyrus-suspects-{}", frame.document)
}

#[derive(Deserialize)]
struct PropertyList {
    result: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    value: Option<Object>,
}

#[derive(Deserialize)]
struct HostDescription {
    node: ShadowHost,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShadowHost {
    #[serde(default)]
    shadow_roots: Vec<ShadowRoot>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShadowRoot {
    backend_node_id: i64,
    #[serde(default)]
    shadow_root_type: String,
}

impl BrowserSession {
    /// Tells the isolated world around each frame which element contains it, once per document.
    pub(crate) async fn own_frames(&self, frames: &[(String, PageFrame)]) {
        let by_id: BTreeMap<&String, &PageFrame> =
            frames.iter().map(|(id, frame)| (id, frame)).collect();
        let owning = frames.iter().filter_map(|(id, frame)| {
            let parent = by_id.get(frame.parent.as_ref()?)?;
            let key = (parent.document, id.clone());
            let known = self.memory.lock().owned.contains(&key);
            (!known).then_some(async move {
                if self.own_frame(parent, id).await.is_ok() {
                    self.memory.lock().owned.insert(key);
                }
            })
        });
        futures_util::future::join_all(owning).await;
    }

    async fn own_frame(&self, parent: &PageFrame, id: &str) -> Result<(), CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Owner {
            backend_node_id: i64,
        }
        let session = &parent.session;
        let owner: Owner = self
            .cdp
            .call(session, "DOM.getFrameOwner", json!({"frameId": id}))
            .await?;
        let element = self
            .resolve(parent, owner.backend_node_id, &group(parent))
            .await?;
        let called: Result<IgnoredAny, CdpError> = self
            .cdp
            .call(
                session,
                "Runtime.callFunctionOn",
                json!({
                    "objectId": element,
                    "functionDeclaration": "function(id) { gyrus.own(this, id); }",
                    "arguments": [{"value": id}],
                }),
            )
            .await;
        called.map(|_| ())
    }

    /// Returns a node of the browser as an object of our world.
    pub(super) async fn resolve(
        &self,
        frame: &PageFrame,
        node: i64,
        group: &str,
    ) -> Result<String, CdpError> {
        let world = frame.world.unwrap_or_default();
        let order = json!({
            "backendNodeId": node,
            "executionContextId": world,
            "objectGroup": group,
        });
        let resolved: ResolveResult = self
            .cdp
            .call(&frame.session, "DOM.resolveNode", order)
            .await?;
        Ok(resolved.object.object_id)
    }

    /// Releases the objects of a group.
    pub(super) fn release(&self, session: &str, group: &str) {
        let order = json!({"objectGroup": group});
        self.cdp.send(session, "Runtime.releaseObjectGroup", order);
    }

    /// Returns the objects in a list of our world, by an expression.
    pub(super) async fn objects(
        &self,
        frame: &PageFrame,
        expression: &str,
        group: &str,
    ) -> Result<Vec<String>, CdpError> {
        let session = &frame.session;
        let order = json!({
            "expression": expression,
            "contextId": frame.world.unwrap_or_default(),
            "objectGroup": group,
        });
        let list: RemoteResult = self.cdp.call(session, "Runtime.evaluate", order).await?;
        // Most often it is empty.
        if list.result.description == "Array(0)" {
            return Ok(Vec::new());
        }
        let order = json!({"objectId": list.result.object_id, "ownProperties": true});
        let listed: PropertyList = self
            .cdp
            .call(session, "Runtime.getProperties", order)
            .await?;
        let objects = listed.result.into_iter().filter_map(|property| {
            property.name.parse::<u32>().ok()?;
            Some(property.value?.object_id).filter(|id| !id.is_empty())
        });
        Ok(objects.collect())
    }

    /// Opens closed shadow roots in the elements that a walk suspects, and returns their number.
    pub(super) async fn open_roots(&self, frame: &PageFrame) -> Result<usize, CdpError> {
        let group = group(frame);
        let suspects = self.objects(frame, "gyrus.suspects()", &group).await?;
        let opening = suspects.into_iter().map(|host| self.open_root(frame, host));
        let opened = futures_util::future::join_all(opening).await;
        self.release(&frame.session, &group);
        // An element that is gone by now has no root to look into.
        Ok(opened
            .into_iter()
            .filter(|opened| *opened == Ok(true))
            .count())
    }

    async fn open_root(&self, frame: &PageFrame, host: String) -> Result<bool, CdpError> {
        let session = &frame.session;
        let described: HostDescription = self
            .cdp
            .call(session, "DOM.describeNode", json!({"objectId": host}))
            .await?;
        let mut roots = described.node.shadow_roots.into_iter();
        let Some(closed) = roots.find(|root| root.shadow_root_type == "closed") else {
            return Ok(false);
        };
        let root = self
            .resolve(frame, closed.backend_node_id, &group(frame))
            .await?;
        let order = json!({
            "objectId": host,
            "functionDeclaration": "function(root) { gyrus.adopt(this, root); }",
            "arguments": [{"objectId": root}],
        });
        let called: Result<IgnoredAny, CdpError> = self
            .cdp
            .call(session, "Runtime.callFunctionOn", order)
            .await;
        called.map(|_| true)
    }
}

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
