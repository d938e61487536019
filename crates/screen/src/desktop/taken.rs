//! A desktop that a person has: a page shows it as it changes, and their mouse and keys go to it.
//!
//! It has connections of its own to the X server, so that watching and doing do not wait for each
//! other. The display that the person works at needs neither: they have it before them.

use std::sync::Arc;

use axum::body::Bytes;
use gyrus_contract::{BoxedFuture, Picture, ScreenError};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use x11rb::protocol::xproto::{BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, Window};

use super::{
    Desktop,
    display::{Display, DisplayError},
    keyboard::Arrival,
    look::{self, BegunPicture},
    numbers::ElementNumbers,
    pointer::Button,
    session::{DesktopSession, lost},
};
use crate::{
    input::Chord,
    takeover::{
        Did, GivenBack, Mouse, MouseKind, PICTURE, TakenScreen, TakeoverDesk, TakeoverPage, WORDS,
        chunk, no_page,
    },
};

/// Words in place of a picture of the person's own display.
const YOURS: &str =
    "This is the display that you work at. Do there what is needed, then give it back.";

/// Pixels of scrolling that correspond to one click of the wheel.
const WHEEL_CLICK: f64 = 60.0;

/// Maximum number of clicks of the wheel at once.
const MAX_WHEEL_CLICKS: u32 = 20;

/// A desktop in a person's hands.
struct TakenDesktop {
    /// The connection for pictures; `None` for the person's own display.
    eyes: Option<Display>,
    /// The connection for inputs.
    hands: Display,
    size: (u32, u32),
}

impl Desktop {
    /// Opens the desktop if necessary, hands it to a person, and waits until they give it back.
    /// Their page shows `reason`, the run's own words for why it asked them. `told` gets the
    /// address of the page, which admits one browser. Dropping this takes the desktop back.
    ///
    /// # Errors
    /// When there is no desktop, no port, or the desktop is lost meanwhile.
    pub async fn take_over(
        &self,
        reason: Option<&str>,
        told: impl FnOnce(&str) + Send,
    ) -> Result<GivenBack, ScreenError> {
        let taken = {
            let mut open = self.open.lock().await;
            Arc::new(TakenDesktop::of(self.session(&mut open).await?).map_err(lost)?)
        };
        let _renumbered = RenumberOnDrop(self);
        let (page, given_back) = TakeoverPage::open(taken.clone(), reason, None).await?;
        told(&page.address);
        tokio::select! {
            given = given_back => given.map_err(no_page),
            reason = taken.end() => Err(lost(reason)),
        }
    }

    /// Returns a picture of the desktop, with secrets covered as in the run's own pictures; `None`
    /// while it is not open, or a run is just using it.
    pub async fn watch(&self) -> Option<Picture> {
        let mut open = self.open.try_lock().ok()?;
        let session = open.as_mut()?;
        let picture = BegunPicture::of(session).ok()?;
        let reading = look::read(session).await.ok()?;
        let (_, picture) = picture.without_secrets(&reading.elements).await.ok()?;
        Some(picture)
    }
}

/// Invalidates the ids of elements, which a person may have changed, when the value is dropped.
struct RenumberOnDrop<'a>(&'a Desktop);

impl Drop for RenumberOnDrop<'_> {
    fn drop(&mut self) {
        // Nothing but a look holds it, and the run looks at nothing meanwhile.
        if let Ok(mut open) = self.0.open.try_lock()
            && let Some(session) = open.as_mut()
        {
            let documents = session.numbers.documents();
            session.numbers = ElementNumbers::default();
            session.numbers.begin_after(documents);
            session.pressed = None;
        }
    }
}

impl TakenDesktop {
    fn of(session: &DesktopSession) -> Result<Self, DisplayError> {
        let (width, height) = session.display.size()?;
        let (eyes, hands) = match &session.nested {
            Some(nested) => (Some(nested.connect()?), nested.connect()?),
            None => (None, session.display.again()?),
        };
        Ok(Self {
            eyes,
            hands,
            size: (u32::from(width), u32::from(height)),
        })
    }

    /// Waits until the X server is gone, and returns the reason. Meanwhile it takes the events that
    /// nobody else waits for.
    async fn end(&self) -> DisplayError {
        loop {
            if let Err(why) = self.hands.next_change().await {
                return why;
            }
        }
    }

    /// Sends pictures of the desktop until the receiver or the desktop is gone.
    async fn watch(
        &self,
        desk: &TakeoverDesk,
        out: &mpsc::Sender<Bytes>,
    ) -> Result<(), DisplayError> {
        let mut told = Value::Null;
        let mut shown = None;
        loop {
            let now = self.surroundings(desk)?;
            if now != told {
                let message = chunk(WORDS, now.to_string().as_bytes());
                if out.send(message).await.is_err() {
                    return Ok(());
                }
                told = now;
            }
            let Some(eyes) = &self.eyes else {
                out.closed().await;
                return Ok(());
            };
            let picture = eyes.capture()?;
            let bytes = picture.encode()?;
            if shown.as_ref() != Some(&bytes) {
                desk.is_shown(f64::from(picture.width), f64::from(picture.height));
                if out.send(chunk(PICTURE, &bytes)).await.is_err() {
                    return Ok(());
                }
                shown = Some(bytes);
            }
            tokio::select! {
                () = out.closed() => return Ok(()),
                changed = eyes.next_change() => changed?,
            }
        }
    }

    /// Returns the data shown beside the picture.
    fn surroundings(&self, desk: &TakeoverDesk) -> Result<Value, DisplayError> {
        let windows = match self.eyes {
            Some(_) => self.hands.windows()?,
            None => Vec::new(),
        };
        let tabs = windows.iter().map(|window| {
            json!({
                "number": window.id,
                "title": window.title,
                "address": window.class,
                "active": window.is_active,
            })
        });
        Ok(json!({
            "desktop": true,
            "note": self.eyes.is_none().then_some(YOURS),
            "reason": desk.reason,
            "tabs": tabs.collect::<Vec<_>>(),
            "loading": false,
            "dialog": null,
        }))
    }

    /// Returns the window with the keyboard focus.
    fn with_keyboard(&self) -> Result<Window, String> {
        let windows = self.hands.windows()?;
        let active = windows.iter().find(|window| window.is_active);
        let active = active.ok_or("no window has the keyboard; click into one")?;
        Ok(active.id)
    }

    async fn act(&self, desk: &TakeoverDesk, did: Did) -> Result<(), String> {
        if self.eyes.is_none() {
            return Ok(());
        }
        match did {
            Did::Mouse(mouse) => {
                self.mouse(desk, &mouse)?;
                if let (MouseKind::Released, Ok(window)) = (mouse.kind, self.with_keyboard()) {
                    // Whoever looks next sees what came of it. A program that hangs is none of ours.
                    let _ = self.hands.until_read(window).await;
                }
                Ok(())
            }
            Did::Wheel { x, y, dx, dy, held } => {
                self.point(desk, (x, y))?;
                let _held = self.hands.hold(held)?;
                self.turn(dy, [Button::WheelUp, Button::WheelDown])?;
                self.turn(dx, [Button::WheelLeft, Button::WheelRight])
            }
            Did::Key { key } => {
                let chord = Chord::parse(&key)?;
                let struck = self.hands.strike(&chord, self.with_keyboard()?).await?;
                struck.map(drop)
            }
            Did::Text { text } => {
                let mut typing = self.hands.typing(&text, self.with_keyboard()?)?;
                while !typing.is_done() {
                    let (_, arrival) = typing.next_part().await??;
                    if arrival == Arrival::Unknown {
                        return Err("the program does not read what is typed".to_owned());
                    }
                }
                Ok(())
            }
            Did::Tab { number } => self.hands.activate(number),
            Did::Close { number } => self.hands.close(number),
            // These belong to pages.
            Did::Go { .. } | Did::Back | Did::Reload | Did::Dialog { .. } => Ok(()),
        }
    }

    fn point(&self, desk: &TakeoverDesk, (x, y): (f64, f64)) -> Result<(), DisplayError> {
        let (x, y) = desk.place(x, y);
        // Places lie within the screen.
        self.hands.point_at((x as i32, y as i32))
    }

    fn mouse(&self, desk: &TakeoverDesk, mouse: &Mouse) -> Result<(), DisplayError> {
        self.point(desk, (mouse.x, mouse.y))?;
        let kind = match mouse.kind {
            MouseKind::Moved => return Ok(()),
            MouseKind::Pressed => BUTTON_PRESS_EVENT,
            MouseKind::Released => BUTTON_RELEASE_EVENT,
        };
        let button = match mouse.button.as_str() {
            "left" => Button::Left,
            "middle" => Button::Middle,
            "right" => Button::Right,
            _ => return Ok(()),
        };
        let _held = self.hands.hold(mouse.held)?;
        self.hands.fake(kind, button as u8, (0, 0))?;
        self.hands.sync()
    }

    /// Turns the wheel, to the first of two directions for a negative amount.
    fn turn(&self, by: f64, [back, forth]: [Button; 2]) -> Result<(), DisplayError> {
        // It is rounded, not negative and bounded.
        let clicks = ((by.abs() / WHEEL_CLICK).ceil() as u32).min(MAX_WHEEL_CLICKS);
        let button = if by < 0.0 { back } else { forth };
        for _ in 0..clicks {
            self.hands.fake(BUTTON_PRESS_EVENT, button as u8, (0, 0))?;
            self.hands
                .fake(BUTTON_RELEASE_EVENT, button as u8, (0, 0))?;
        }
        self.hands.sync()
    }
}

impl TakenScreen for TakenDesktop {
    fn size(&self) -> (u32, u32) {
        self.size
    }

    fn show(
        self: Arc<Self>,
        desk: Arc<TakeoverDesk>,
        out: mpsc::Sender<Bytes>,
    ) -> BoxedFuture<'static, ()> {
        Box::pin(async move {
            // A desktop that is lost shows nothing more; the next look tells the run.
            let _ = self.watch(&desk, &out).await;
        })
    }

    fn forward<'a>(
        &'a self,
        desk: &'a TakeoverDesk,
        did: Did,
    ) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(self.act(desk, did))
    }
}
