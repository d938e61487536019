//! Elements of the shown page that a person could use, by rules of its own: what the browser's
//! accessibility tree calls usable or focusable, what has listeners for the mouse, what shows a
//! hand. Nothing of our own reading of pages is asked.

use anyhow::Context as _;
use futures_util::future::join_all;
use gyrus_screen::Browser;
use serde::Deserialize;
use serde_json::{Value, json};

/// Roles of the browser's tree that stand for something to use.
const USABLE: &[&str] = &[
    "button",
    "link",
    "textbox",
    "searchbox",
    "checkbox",
    "radio",
    "combobox",
    "listbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "treeitem",
    "Date",
    "DateTime",
    "InputTime",
    "ColorWell",
    "DisclosureTriangle",
    "PopUpButton",
    "ToggleButton",
    "Canvas",
    "ComboBoxSelect",
    "ComboBoxMenuButton",
    "TextFieldWithComboBox",
    "DisclosureTriangleGrouped",
];

const LISTENED: [&str; 4] = ["click", "mousedown", "pointerdown", "mouseup"];

/// Something that a person could use.
#[derive(Debug, Deserialize)]
pub(crate) struct Usable {
    /// Why: `role`, `keyboard`, `listener`, `cursor`, `script` (only a script gives it the keyboard), joined by a plus.
    pub(crate) why: String,
    /// Others of its kind in it.
    pub(crate) inside: usize,
    /// For a person to find it by.
    pub(crate) what: String,
    /// Its box, those of its labels, and that of all it paints: left, top, width, height.
    pub(crate) boxes: Vec<[f64; 4]>,
    pub(crate) has_keyboard: bool,
    pub(crate) is_sized: bool,
    pub(crate) in_view: bool,
    /// A hit test finds it, where it is or once it is scrolled to.
    pub(crate) hit: bool,
    /// Only a script could scroll there.
    pub(crate) scripted: bool,
    /// A hit test finds it where it is.
    #[serde(default)]
    pub(crate) seen: bool,
}

/// The reason why an element does not count for completeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Excluded {
    NoBox,
    NotHit,
    OnlyByScript,
    Delegates,
    FocusedByScript,
}

impl Usable {
    pub(crate) fn excluded(&self) -> Option<Excluded> {
        if !self.is_sized {
            return Some(Excluded::NoBox);
        }
        if self.why == "script" {
            return Some(Excluded::FocusedByScript);
        }
        if ["listener", "listener+script"].contains(&self.why.as_str()) && self.inside > 0 {
            return Some(Excluded::Delegates);
        }
        if !self.hit && !self.has_keyboard {
            return Some(Excluded::NotHit);
        }
        self.scripted.then_some(Excluded::OnlyByScript)
    }
}

/// Everything of the main frame. It scrolls the page.
pub(crate) async fn usable(browser: &Browser) -> anyhow::Result<Vec<Usable>> {
    let tree = browser
        .devtools("Accessibility.getFullAXTree", json!({}))
        .await?;
    let nodes = tree["nodes"].as_array().context("no accessibility tree")?;
    let root = nodes.first().context("an empty accessibility tree")?["backendDOMNodeId"].clone();
    let (mut roles, mut focusable) = (Vec::new(), Vec::new());
    for node in nodes.iter().skip(1).filter(|node| node["ignored"] == false) {
        let id = node["backendDOMNodeId"].clone();
        let can_have_it = node["properties"].as_array().is_some_and(|all| {
            all.iter()
                .any(|one| one["name"] == "focusable" && one["value"]["value"] == true)
        });
        if USABLE.contains(&node["role"]["value"].as_str().unwrap_or_default()) {
            roles.push(id);
        } else if can_have_it {
            focusable.push(id);
        }
    }
    let document = object(browser, &root).await?;
    let order = json!({"objectId": document, "depth": -1, "pierce": true});
    let listening = browser
        .devtools("DOMDebugger.getEventListeners", order)
        .await?;
    let mut listeners: Vec<Value> = Vec::new();
    for one in listening["listeners"].as_array().context("no listeners")? {
        let id = &one["backendNodeId"];
        if LISTENED.iter().any(|kind| one["type"] == *kind)
            && !listeners.contains(id)
            && !id.is_null()
        {
            listeners.push(id.clone());
        }
    }
    let mut arguments = vec![
        json!({"value": roles.len()}),
        json!({"value": focusable.len()}),
    ];
    for group in [&roles, &focusable, &listeners] {
        let objects = join_all(group.iter().map(|id| object(browser, id))).await;
        // What has gone meanwhile, or stands in a frame, keeps its place.
        arguments.extend(objects.into_iter().map(|object| match object {
            Ok(object) if world_of(&object) == world_of(&document) => json!({"objectId": object}),
            _ => json!({"value": null}),
        }));
    }
    let order = json!({
        "functionDeclaration": include_str!("oracle.js"),
        "objectId": document,
        "arguments": arguments,
        "returnByValue": true,
    });
    let answered = browser.devtools("Runtime.callFunctionOn", order).await?;
    let text = answered["result"]["value"].as_str();
    let text =
        text.with_context(|| format!("the oracle failed: {}", answered["exceptionDetails"]))?;
    Ok(serde_json::from_str(text)?)
}

/// Returns the script world of an object, which its id begins with.
fn world_of(object: &str) -> &str {
    object.rsplit_once('.').map_or("", |(world, _)| world)
}

async fn object(browser: &Browser, node: &Value) -> anyhow::Result<String> {
    let resolved = browser
        .devtools("DOM.resolveNode", json!({"backendNodeId": node}))
        .await?;
    Ok(resolved["object"]["objectId"]
        .as_str()
        .context("no such node")?
        .to_owned())
}
