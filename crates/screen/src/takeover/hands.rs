//! A person's input: mouse, keys, text, and the controls around the page.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{
    desk::TakeoverDesk,
    did::{Did, Mouse, MouseKind},
};
use crate::{
    browser::BrowserSession,
    cdp::CdpError,
    input::Chord,
    navigate,
    state::{BrowserState, LOGIN, LoginAnswer, TabState},
};

/// Carries the input out on the current page; the error says why it could not.
pub(super) async fn forward(
    session: &BrowserSession,
    desk: &TakeoverDesk,
    did: Did,
) -> Result<(), String> {
    let words = |error: CdpError| error.to_string();
    let tab = session.tab().map_err(|error| error.to_string())?;
    match did {
        Did::Dialog {
            accept,
            text,
            password,
        } if is_login(&tab) => {
            let answer = if accept {
                LoginAnswer::Give {
                    user: text,
                    password,
                }
            } else {
                LoginAnswer::Cancel
            };
            let answered = session.answer_login(tab.number, answer).await;
            return answered.map_err(words);
        }
        Did::Dialog { accept, text, .. } => {
            let mut order = json!({"accept": accept});
            if !text.is_empty() {
                order["promptText"] = json!(text);
            }
            return order_it(session, &tab, "Page.handleJavaScriptDialog", order)
                .await
                .map_err(words);
        }
        Did::Tab { number } => return session.switch_to(number).await,
        Did::Close { number } => return session.close(number).await,
        _ => {}
    }
    // A command blocked by a dialog is answered when it is gone, and one to a crashed page never.
    match session
        .unless_held(&tab, input(session, desk, &tab, did))
        .await
    {
        Ok(done) => done,
        Err(_held) => Ok(()),
    }
}

/// Whether a tab waits for a login.
fn is_login(tab: &TabState) -> bool {
    tab.dialog
        .as_ref()
        .is_some_and(|dialog| dialog.kind == LOGIN)
}

async fn input(
    session: &BrowserSession,
    desk: &TakeoverDesk,
    tab: &TabState,
    did: Did,
) -> Result<(), String> {
    let words = |error: CdpError| error.to_string();
    match did {
        Did::Mouse(mouse) => self::mouse(session, desk, tab, mouse).await.map_err(words),
        Did::Wheel { x, y, dx, dy, held } => {
            let (x, y) = desk.place(x, y);
            let order = json!({
                "type": "mouseWheel", "x": x, "y": y, "deltaX": dx, "deltaY": dy,
                "modifiers": held,
            });
            order_it(session, tab, "Input.dispatchMouseEvent", order)
                .await
                .map_err(words)
        }
        Did::Key { key } => {
            let chord = Chord::parse(&key)?;
            session.strike(tab, &chord).await.map_err(words)
        }
        Did::Text { text } => session.type_in(tab, &text, true).await.map_err(words),
        Did::Go { address } => {
            navigate::allowed(&address).map_err(|error| error.to_string())?;
            let order = json!({"url": address});
            order_it(session, tab, "Page.navigate", order)
                .await
                .map_err(words)
        }
        Did::Back => {
            let (entry, _) = session
                .earlier(tab)
                .await
                .map_err(|error| error.to_string())?;
            let order = json!({"entryId": entry});
            order_it(session, tab, "Page.navigateToHistoryEntry", order)
                .await
                .map_err(words)
        }
        Did::Reload => order_it(session, tab, "Page.reload", json!({}))
            .await
            .map_err(words),
        Did::Dialog { .. } | Did::Tab { .. } | Did::Close { .. } => Ok(()),
    }
}

async fn order_it(
    session: &BrowserSession,
    tab: &TabState,
    method: &str,
    order: Value,
) -> Result<(), CdpError> {
    let done: IgnoredAny = session.cdp.call(&tab.session, method, order).await?;
    let _ = done;
    Ok(())
}

/// Handles mouse input, including drags.
async fn mouse(
    session: &BrowserSession,
    desk: &TakeoverDesk,
    tab: &TabState,
    mouse: Mouse,
) -> Result<(), CdpError> {
    let (x, y) = desk.place(mouse.x, mouse.y);
    let carried = session.state().dragged.clone();
    if let Some(data) = carried {
        let over = |kind: &str| json!({"type": kind, "x": x, "y": y, "data": data});
        let drag = |kind| order_it(session, tab, "Input.dispatchDragEvent", over(kind));
        match mouse.kind {
            MouseKind::Moved => {
                if !desk.is_dragging(true) {
                    drag("dragEnter").await?;
                }
                return drag("dragOver").await;
            }
            MouseKind::Released => {
                drag("drop").await?;
                dropped(desk, &mut session.state());
            }
            MouseKind::Pressed => dropped(desk, &mut session.state()),
        }
    }
    let kind = match mouse.kind {
        MouseKind::Moved => "mouseMoved",
        MouseKind::Pressed => "mousePressed",
        MouseKind::Released => "mouseReleased",
    };
    let order = json!({
        "type": kind, "x": x, "y": y, "button": mouse.button, "buttons": mouse.buttons,
        "clickCount": mouse.count, "modifiers": mouse.held,
    });
    order_it(session, tab, "Input.dispatchMouseEvent", order).await
}

fn dropped(desk: &TakeoverDesk, state: &mut BrowserState) {
    desk.is_dragging(false);
    state.dragged = None;
}
