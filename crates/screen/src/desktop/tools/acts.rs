//! Actions of the mouse and single keys.

use std::time::{Duration, Instant};

use gyrus_contract::{
    Aim, ClickCall, ClickKind, DragCall, HoverCall, PressKeyCall, ScrollCall, ScrollDirection,
    Starts, ToolOutput,
};

use super::{DesktopAction, DesktopCall, elsewhere, told, unconfirmed, unknown};
use crate::{
    desktop::{
        effects::DesktopBefore,
        keyboard::Arrival,
        measure::DesktopSpot,
        pointer::{Button, ScreenPoint},
        session::DesktopSession,
    },
    input::{Chord, InputTarget, held_bits},
    tools::action::ActionFailure,
};

/// Maximum number of times that an element may move before the pointer has reached it.
const MAX_CHASES: usize = 4;

/// Time within which two presses at one place count as a double click, as toolkits have it.
const DOUBLE_CLICK: Duration = Duration::from_millis(500);

/// Distance of two presses that may count as a double click, in pixels.
const NEAR: i32 = 16;

/// Part of an element's height that a page of scrolling is.
const PAGE: f64 = 0.9;

/// Maximum number of steps that the wheel is turned at once.
const MAX_STEPS: u32 = 200;

fn looking(_: &DesktopSpot) -> Vec<Starts> {
    vec![Starts::Looking]
}

impl DesktopAction for ClickCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        if self.seconds.is_some() || !self.fill.is_empty() {
            let why = "refused: `seconds` and `fill` are for pages";
            return Err(ActionFailure::Refused(why.to_owned()));
        }
        let spot = session.locate(InputTarget::of(self.on, self.at)).await?;
        let starts = click_starts(self.kind)(&spot);
        Ok(spot.aim(starts))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let (button, count, verb) = match self.kind {
            Some(ClickKind::Double) => (Button::Left, 2, "Double-clicked"),
            Some(ClickKind::Triple) => (Button::Left, 3, "Triple-clicked"),
            Some(ClickKind::Right) => (Button::Right, 1, "Right-clicked"),
            Some(ClickKind::Middle) => (Button::Middle, 1, "Middle-clicked"),
            None => (Button::Left, 1, "Clicked"),
        };
        let target = InputTarget::of(self.on, self.at);
        let (spot, standing) = doing.approach(target, click_starts(self.kind)).await?;
        let held = held_bits(&self.with);
        doing.press(&spot, (button, count), held).await?;
        let effects = doing.session.effects(&standing).await?;
        let done = format!("{verb} {} {}", spot.id(), spot.words());
        Ok(told(&done, &effects))
    }
}

fn click_starts(kind: Option<ClickKind>) -> impl Fn(&DesktopSpot) -> Vec<Starts> {
    move |spot| match kind {
        // Opens a menu.
        Some(ClickKind::Right) => vec![Starts::Looking],
        // Opens what it names, closes a tab, or inserts what is selected elsewhere.
        Some(ClickKind::Double | ClickKind::Middle) if !spot.takes_text() => vec![Starts::Acts],
        Some(ClickKind::Middle) => vec![Starts::Types],
        Some(ClickKind::Double | ClickKind::Triple) | None => spot.click_starts(),
    }
}

impl DesktopAction for HoverCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::of(self.on, self.at)).await?;
        Ok(spot.aim(looking(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::of(self.on, self.at);
        let (spot, standing) = doing.judged(target, looking).await?;
        let point = spot.reached()?;
        doing.session.display.point_at(point).map_err(unknown)?;
        let effects = doing.session.effects(&standing).await?;
        let done = format!("The pointer is on {} {}", spot.id(), spot.words());
        Ok(told(&done, &effects))
    }
}

impl DesktopAction for PressKeyCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let chord = Chord::parse(&self.key).map_err(ActionFailure::Refused)?;
        let spot = session.locate(InputTarget::of(self.on, None)).await?;
        Ok(spot.aim(key_starts(&chord, &spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let chord = Chord::parse(&self.key).map_err(ActionFailure::Refused)?;
        let target = InputTarget::of(self.on, None);
        let (spot, _) = doing
            .judged(target, |spot| key_starts(&chord, spot))
            .await?;
        if self.on.is_some() {
            doing.give_keyboard(&spot).await?;
        }
        let reading = crate::desktop::look::read(doing.session).await?;
        let standing = DesktopBefore::of(doing.session, reading, Some(spot.id())).await?;
        let display = &doing.session.display;
        let struck = display.strike(&chord, spot.window.id).await;
        let arrival = struck.map_err(unknown)?.map_err(elsewhere)?;
        let mut effects = doing.session.effects(&standing).await?;
        if arrival == Arrival::Unknown {
            unconfirmed(&mut effects);
        }
        let done = format!("Pressed {} on {} {}", chord.name(), spot.id(), spot.words());
        Ok(told(&done, &effects))
    }
}

/// Returns the effects of a key on an element, as far as they are the same in all programs.
fn key_starts(chord: &Chord, spot: &DesktopSpot) -> Vec<Starts> {
    let name = chord.name();
    let plain = name.strip_prefix("Shift+").unwrap_or(&name);
    let is_closing = matches!(
        &*name,
        "Alt+F4" | "Control+q" | "Control+w" | "Control+Shift+W"
    );
    let moves = [
        "Tab",
        "Escape",
        "Home",
        "End",
        "PageUp",
        "PageDown",
        "ArrowLeft",
        "ArrowRight",
        "ArrowUp",
        "ArrowDown",
        "Alt",
        "Control",
        "Meta",
        "Shift",
    ];
    vec![if is_closing {
        closes(&spot.window.title)
    } else if spot.element.role == "terminal" || spot.is_window() {
        Starts::Acts
    } else if moves.contains(&plain) || matches!(&*name, "Control+a" | "Control+c") {
        Starts::Looking
    } else if spot.takes_text()
        && (chord.held() & 7 == 0 || matches!(&*name, "Control+x" | "Control+v" | "Control+z"))
        && !(plain == "Enter" && spot.element.role != "textbox")
    {
        Starts::Types
    } else {
        Starts::Acts
    }]
}

/// Returns the effect of closing a window with this title. Programs mark there what is not saved.
pub(super) fn closes(title: &str) -> Starts {
    let title = title.to_lowercase();
    let marks = ["*", "•", "●", "✎"];
    let is_marked = marks
        .iter()
        .any(|mark| title.starts_with(mark) || title.ends_with(mark));
    Starts::Closes {
        unsaved: is_marked || title.contains("unsaved") || title.contains("[modified]"),
    }
}

impl DesktopAction for DragCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(self.from.into()).await?;
        Ok(spot.aim(vec![Starts::Acts]))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let end = doing.session.locate(self.to.into()).await?;
        let acts = |_: &DesktopSpot| vec![Starts::Acts];
        let (spot, standing) = doing.approach(self.from.into(), acts).await?;
        let now = doing.session.locate(self.to.into()).await?;
        if now.id() != end.id() || now.point != end.point {
            return Err(ActionFailure::Refused(
                "refused: moved: where it would be dropped is something else now; look again"
                    .to_owned(),
            ));
        }
        let via = self
            .via
            .iter()
            .map(|[x, y]| (x.round() as i32, y.round() as i32));
        let path: Vec<ScreenPoint> = via.chain([end.reached()?]).collect();
        let display = &doing.session.display;
        let dragged = display.drag(spot.reached()?, spot.top, &path).await;
        dragged.map_err(unknown)?.map_err(elsewhere)?;
        doing.session.pressed = None;
        let effects = doing.session.effects(&standing).await?;
        let done = format!(
            "Dragged {} {} to {} {}",
            spot.id(),
            spot.words(),
            end.id(),
            end.words()
        );
        Ok(told(&done, &effects))
    }
}

impl DesktopAction for ScrollCall {
    async fn aim(&self, session: &mut DesktopSession) -> Result<Aim, ActionFailure> {
        let spot = session.locate(InputTarget::of(self.on, None)).await?;
        Ok(spot.aim(looking(&spot)))
    }

    async fn act(&self, doing: &mut DesktopCall<'_>) -> Result<ToolOutput, ActionFailure> {
        let target = InputTarget::of(self.on, None);
        let (spot, standing) = doing.approach(target, looking).await?;
        let (button, name) = match self.direction {
            ScrollDirection::Up => (Button::WheelUp, "up"),
            ScrollDirection::Down => (Button::WheelDown, "down"),
            ScrollDirection::Left => (Button::WheelLeft, "left"),
            ScrollDirection::Right => (Button::WheelRight, "right"),
        };
        let bounds = spot.element.bounds.unwrap_or(spot.window.bounds);
        let length = match self.direction {
            ScrollDirection::Up | ScrollDirection::Down => bounds.height,
            ScrollDirection::Left | ScrollDirection::Right => bounds.width,
        };
        // A step of GTK's is the length to the power of two thirds; others have similar ones.
        let length = f64::from(length.max(1));
        let wanted = self.pages.unwrap_or(1.0) * PAGE * length / length.powf(2.0 / 3.0);
        let steps = (wanted.round() as u32).clamp(1, MAX_STEPS);
        doing.press(&spot, (button, steps), 0).await?;
        let effects = doing.session.effects(&standing).await?;
        let done = format!("Scrolled {name} over {} {}", spot.id(), spot.words());
        Ok(told(&done, &effects))
    }
}

impl DesktopCall<'_> {
    /// Moves the pointer to the judged target, even while the target moves, and records what is
    /// there then.
    pub(super) async fn approach(
        &mut self,
        target: InputTarget,
        starts: impl Fn(&DesktopSpot) -> Vec<Starts>,
    ) -> Result<(DesktopSpot, DesktopBefore), ActionFailure> {
        let (mut spot, _) = self.judged(target, &starts).await?;
        for _ in 0..MAX_CHASES {
            let point = match spot.point {
                Some(point) => point,
                None => spot.reached()?,
            };
            self.session.display.point_at(point).map_err(unknown)?;
            let (mut again, mut standing) = self.judged(target, &starts).await?;
            if again.reached().is_err() {
                // A hint over it goes away once the pointer has moved.
                self.session.display.settle().await.map_err(unknown)?;
                (again, standing) = self.judged(target, &starts).await?;
                again.reached()?;
            }
            if again.point == spot.point {
                return Ok((again, standing));
            }
            spot = again;
        }
        Err(ActionFailure::Refused(format!(
            "refused: moved: {} does not stand still; wait, or look again",
            spot.words()
        )))
    }

    /// Presses a button a number of times at the pointer, with the modifier keys of a chord held.
    pub(super) async fn press(
        &mut self,
        spot: &DesktopSpot,
        (button, count): (Button, u32),
        held: u32,
    ) -> Result<(), ActionFailure> {
        let at = spot.reached()?;
        let is_near = |(x, y): ScreenPoint| (x - at.0).abs() < NEAR && (y - at.1).abs() < NEAR;
        if let Some((when, before)) = self.session.pressed
            && is_near(before)
        {
            tokio::time::sleep(DOUBLE_CLICK.saturating_sub(when.elapsed())).await;
        }
        let display = &self.session.display;
        let keys = display.hold(held).map_err(unknown)?;
        let pressed = display.press((button, count), at, spot.top);
        drop(keys);
        pressed.map_err(unknown)?.map_err(elsewhere)?;
        self.session.pressed = Some((Instant::now(), at));
        // The click may have closed the window, or its program hangs; the effects will tell.
        let _ = self.session.display.until_read(spot.window.id).await;
        Ok(())
    }

    /// Gives an element the keyboard focus by a click, unless it has the focus.
    pub(super) async fn give_keyboard(&mut self, spot: &DesktopSpot) -> Result<(), ActionFailure> {
        use gyrus_contract::ElementState::Focused;
        let has = |spot: &DesktopSpot| spot.is(Focused) && spot.window.is_active;
        if has(spot) {
            return Ok(());
        }
        let target = InputTarget::Element(spot.id());
        let point = spot.reached()?;
        self.session.display.point_at(point).map_err(unknown)?;
        let again = self.session.locate(target).await?;
        if again.point != spot.point {
            return Err(ActionFailure::Refused(format!(
                "refused: moved: {} does not stand still; wait, or look again",
                spot.words()
            )));
        }
        self.press(&again, (Button::Left, 1), 0).await?;
        self.session.display.settle().await.map_err(unknown)?;
        let now = self.session.locate(target).await?;
        if has(&now) || now.is_window() && now.window.is_active {
            return Ok(());
        }
        let at = self.session.locate(InputTarget::Keyboard).await;
        let at = at.map_or_else(|_| "nothing".to_owned(), |at| at.words());
        Err(ActionFailure::Refused(format!(
            "refused: {} does not take the keyboard; it is at {at}",
            spot.words()
        )))
    }
}
